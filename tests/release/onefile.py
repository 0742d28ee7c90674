"""The one file in a root that has nothing else: no Python, no C library, no tools.

    scripts/build-onefile
    python -m pytest -n 0 tests/release/onefile.py

Run as root. The name of this module keeps it out of other test runs, as the build takes minutes;
TUI_FS_ONEFILE names another file than dist/tui-fs.
"""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from itertools import count
from pathlib import Path

import pytest

from tests.conftest import Cli, wait_until
from tests.contracts.fleet_servers import servers
from tests.e2e.terminal import Terminal
from tests.filesystems import mount, mount_image, mounts_below, unmount_below
from tests.needs import needs_root, needs_tool
from tests.release.test_readme import expect_file_systems, start_commands, started
from tests.seccomp import UNKNOWN_TO_4_18, under_filter
from tests.trees import many_directories
from tui_fs.model.paths import PathStr
from tui_fs.strategies.base import Failure, gnu_failure, unquote_shell

REPOSITORY = Path(__file__).parents[2]
FILE = Path(os.environ.get("TUI_FS_ONEFILE", REPOSITORY / "dist/tui-fs"))
NO_TOOLS = ("rm", "find", "xargs", "rsync")
FILES = 20_000
SLOWLY = ("--rate", "50")
"""A job of `FILES` then loses its terminal and its file long before its end."""

pytestmark = [pytest.mark.root, pytest.mark.slow]


class Server(Cli):
    """An empty root directory with the one file."""

    def __init__(self, root: Path, state: str = "/state", outside: Sequence[str] = ()) -> None:
        """Enter with `root`; jobs are stored in `state`, a path inside.

        Args:
            outside: a command that enters, before its words.
        """
        self.root = root
        self.memory = root / "dev/shm"
        environment = ("env", "-i", "HOME=/", f"XDG_STATE_HOME={state}", "TERM=xterm-256color")
        wrapper = (*outside, *environment, needs_tool("chroot", "coreutils"), str(root))
        super().__init__("/tui-fs", root / state.lstrip("/"), wrapper=wrapper)

    def programs(self) -> list[Path]:
        """List the unpacked trees."""
        return sorted(self.memory.glob("tui-fs-*"))

    def wait_for_deletion(self) -> str:
        """Wait until the only job deletes, when it no longer needs its starter; return its id."""
        wait_until(lambda: any(job["deleted_entries"] for job in self.jobs()), "a deletion")
        return self.only_job()

    def expect_no_programs(self) -> None:
        """Wait until nothing that was unpacked is left."""
        wait_until(lambda: not self.programs(), "the unpacked programs are removed")


@pytest.fixture
def server(tmp_path: Path, mount_root: Path) -> Iterator[Server]:
    """Yield a root on ext4 with /proc, /dev, /sys, the file, and a tree /data/big."""
    needs_root()
    root = mount_image(mount_root / tmp_path.name, "ext4", 192 << 20, "-N", "40000")
    for name in ("proc", "dev", "sys"):
        (root / name).mkdir()
        subprocess.run(["mount", "--rbind", "--make-rslave", f"/{name}", root / name], check=True)
    mount(root / "dev/shm", "tui-fs-test", "tmpfs", "mode=1777,size=128m")
    shutil.copy(FILE, root / "tui-fs")
    (root / "data").mkdir()
    many_directories(root / "data/big", 20, FILES // 20)
    (root / "data/keep").write_text("kept")
    yield Server(root)
    unmount_below(root)


def test_it_is_static_and_prints_its_version(server: Server) -> None:
    assert b"INTERP" not in subprocess.check_output(["readelf", "--program-headers", FILE])
    assert server.run("--version").expect(0).stdout.startswith(b"tui-fs ")
    server.expect_no_programs()


def test_the_command_of_the_readme_for_it_opens_the_list_of_file_systems(tmp_path: Path) -> None:
    command = start_commands()[0]
    file = tmp_path / command.rpartition("/")[2]
    shutil.copy(FILE, file)
    file.chmod(0o644)  # as a browser saves it
    with started(command, tmp_path / "home", tmp_path) as terminal:
        expect_file_systems(terminal)


def test_survey_estimate_and_doctor(server: Server) -> None:
    assert server.run("survey", "--json", "/data/big").expect(0).object()["files"] == FILES
    estimates = server.run("estimate", "--json", "/data/big").expect(0).object()
    possible = {each["strategy"]: each for each in estimates["strategies"]}
    assert [name for name in possible if possible[name]["feasible"]] == ["rmtree", "parallel"]
    for name in NO_TOOLS:
        assert "it comes with the package" in str(possible[name]["reasons"])
    doctor = server.run("doctor", "--json").expect(0).object()
    assert doctor["engine"]["path"].startswith("/dev/shm/tui-fs-")


@pytest.mark.parametrize("strategy", ["parallel", "rmtree"])
@pytest.mark.parametrize("options", [(), ("--keep-root",)])
def test_a_deletion(server: Server, strategy: str, options: tuple[str, ...]) -> None:
    report = server.delete("/data/big", strategy, *options).expect(0).report()
    assert (report["outcome"], report["deleted_files"]) == ("done", FILES)
    assert sorted(os.listdir(server.root / "data")) == (["big"] if options else []) + ["keep"]
    server.expect_no_programs()


@pytest.fixture
def screens(server: Server) -> Iterator[Terminal]:
    """Yield the screens on /data in a terminal."""
    needs_tool("tmux", "tmux")
    terminal = Terminal([*server.command, "/data"], server.root)
    yield terminal
    terminal.close()


def test_the_screens_delete_a_directory(server: Server) -> None:
    with closing(Terminal([*server.command, "/data"], server.root)) as screens:
        screens.wait_for("complete")
        screens.press("d")
        screens.wait_for("best")
        screens.press("r", "Enter")
        screens.wait_for("Delete permanently?")
        screens.type("big")
        screens.answer("Delete permanently?", "Enter")
        screens.wait_for("DONE")
        assert os.listdir(server.root / "data") == ["keep"]
    server.expect_no_programs()


def test_a_second_start_shares_the_programs(server: Server, screens: Terminal) -> None:
    screens.wait_for("complete")
    (tree,) = server.programs()
    assert server.run("jobs").expect(0).stdout == b""
    assert server.programs() == [tree]
    screens.close()
    server.expect_no_programs()


def test_the_programs_see_only_what_they_brought(server: Server, screens: Terminal) -> None:
    screens.wait_for("complete")
    (tree,) = server.programs()
    script = "import sys, tui_fs.app; print(*sys.path)"
    inside = Path("/", tree.relative_to(server.root))
    command = [*server.command[:-1], f"{inside}/bin/python3", "-I", "-c", script]
    path = subprocess.check_output(command, text=True).split()
    assert path and all(entry.startswith(f"{inside}/") for entry in path)


def test_a_failed_rmdir_is_understood(server: Server, screens: Terminal) -> None:
    screens.wait_for("complete")
    name = server.root / "data" / "it's\na \\ 'name' \xe9"
    (name / "inside").mkdir(parents=True)
    command = [str(server.programs()[0] / "bin/rmdir"), "--", str(name)]
    failed = subprocess.run(command, capture_output=True, check=False)
    failure = gnu_failure(failed.stderr.rstrip(b"\n"), unquote_shell)
    assert failed.returncode == 1
    assert failure == Failure(PathStr(str(name)), "remove", errno.ENOTEMPTY)


def test_a_job_outlives_its_terminal_and_its_file(server: Server) -> None:
    words = ("delete", "--yes", "--strategy", "parallel", *SLOWLY, "/data/big")
    terminal = Terminal([*server.command, *words], server.root)
    job = server.wait_for_deletion()
    terminal.close()
    (server.root / "tui-fs").rename(server.root / "elsewhere")
    (server.root / "elsewhere").unlink()
    assert (server.root / "data/big").exists()
    with pytest.raises(subprocess.CalledProcessError):
        subprocess.run([*server.command, "--version"], check=True, capture_output=True)
    shutil.copy(FILE, server.root / "tui-fs")
    server.run("rate", job, "off").expect(0)
    report = server.run("attach", job).expect(0).stdout
    assert b"gone" in report
    assert b"\n$ tui-fs-engine delete " in report  # without the directory, which is gone
    assert os.listdir(server.root / "data") == ["keep"]
    server.expect_no_programs()


def test_programs_left_by_killed_processes_are_removed_by_the_next_start(server: Server) -> None:
    terminal = Terminal([*server.command, "/data"], server.root)
    terminal.wait_for("complete")
    (tree,) = server.programs()
    for link in Path("/proc").glob("[0-9]*/exe"):
        with suppress(OSError):
            if tree.name in os.readlink(link):
                os.kill(int(link.parent.name), signal.SIGKILL)
    terminal.close()
    assert server.programs() == [tree]
    assert server.run("--version").expect(0).code == 0
    server.expect_no_programs()


@pytest.mark.parametrize("strategy", ["parallel", "rmtree"])
def test_a_full_disk_with_jobs_in_memory(server: Server, strategy: str) -> None:
    _fill(server.root)
    refused = server.delete("/data/big", strategy)
    assert "set XDG_STATE_HOME to another place. Nothing was deleted." in refused.stderr
    assert len(os.listdir(server.root / "data/big")) == 20
    in_memory = _with_jobs_in_memory(server)
    assert in_memory.run("survey", "--json", "/data/big").expect(0).object()["files"] == FILES
    report = in_memory.delete("/data/big", strategy).expect(0).report()
    assert report["deleted_files"] == FILES
    assert [job["state"] for job in in_memory.jobs()] == ["done"]


def test_the_screens_delete_on_a_full_disk(server: Server) -> None:
    _fill(server.root)
    test_the_screens_delete_a_directory(_with_jobs_in_memory(server))


def test_a_job_on_a_full_disk_outlives_its_terminal(server: Server) -> None:
    _fill(server.root)
    test_a_job_outlives_its_terminal_and_its_file(_with_jobs_in_memory(server))


def _with_jobs_in_memory(server: Server) -> Server:
    return Server(server.root, state="/dev/shm/state")


def test_a_full_disk_with_a_runtime_directory_needs_no_option(server: Server) -> None:
    mount(server.root / "run", "tui-fs-test", "tmpfs", "mode=0755")
    _fill(server.root)
    assert server.delete("/data/big", "parallel").expect(0).report()["outcome"] == "done"
    assert (server.root / "run/tui-fs").is_dir()


def _without_mounting(server: Server) -> Server:
    return Server(
        server.root, outside=(needs_tool("setpriv", "util-linux"), "--bounding-set=-sys_admin")
    )


def _forbid_programs(place: Path) -> None:
    subprocess.run(["mount", "-o", "remount,noexec", place], check=True)


def test_memory_that_forbids_programs_is_passed_over(server: Server) -> None:
    _forbid_programs(server.memory)
    refused = _without_mounting(server).run("--version").expect(4)
    assert "/dev/shm: mounted noexec" in refused.stderr
    assert "a tmpfs in /dev/shm: Operation not permitted" in refused.stderr
    server.expect_no_programs()
    mount(server.root / "run", "tui-fs-test", "tmpfs", "mode=0755")
    server.run("--version").expect(0)
    wait_until(lambda: os.listdir(server.root / "run") == [], "the programs are removed")


def test_where_no_memory_permits_programs_root_gets_a_tmpfs_of_its_own(server: Server) -> None:
    _forbid_programs(server.memory)
    with closing(Terminal([*server.command, "/data"], server.root)) as terminal:
        terminal.wait_for("complete")
        _expect_a_mounted_tree(server)
    server.expect_no_programs()
    assert set(mounts_below(server.memory)) == {server.memory}


def _expect_a_mounted_tree(server: Server) -> None:
    (tree,) = server.programs()
    assert mounts_below(tree) == [tree]
    report = server.delete("/data/big", "parallel").expect(0).report()
    assert report["deleted_files"] == FILES
    assert server.programs() == [tree]


def test_no_file_system_in_memory_is_needed(server: Server) -> None:
    devices = server.root / "dev"
    unmount_below(devices)
    subprocess.run(["mknod", devices / "null", "c", "1", "3"], check=True)
    report = server.delete("/data/big", "parallel").expect(0).report()
    assert report["deleted_files"] == FILES
    wait_until(lambda: os.listdir(devices) == ["null"], "the programs are removed")


@pytest.fixture
def old_server(server: Server) -> Server:
    """Return a server whose kernel has only the system calls of Linux 4.18."""
    return Server(server.root, outside=under_filter("ENOSYS", UNKNOWN_TO_4_18))


@pytest.mark.parametrize("strategy", ["parallel", "rmtree"])
def test_the_system_calls_of_linux_4_18_suffice(old_server: Server, strategy: str) -> None:
    old_server.run("--version").expect(0)
    test_survey_estimate_and_doctor(old_server)
    test_a_deletion(old_server, strategy, ())


def test_the_screens_need_only_the_system_calls_of_linux_4_18(old_server: Server) -> None:
    test_the_screens_delete_a_directory(old_server)


def test_a_job_outlives_its_terminal_with_the_system_calls_of_linux_4_18(
    old_server: Server,
) -> None:
    test_a_job_outlives_its_terminal_and_its_file(old_server)


def test_memory_that_is_too_small_is_left_as_it_was(server: Server) -> None:
    subprocess.run(["mount", "-o", "remount,size=20m", server.memory], check=True)
    refused = _without_mounting(server).run("--version").expect(4)
    assert "/dev/shm: No space left on device" in refused.stderr
    server.expect_no_programs()
    command = [*server.command[:2], "TUI_FS_UNPACK_DIR=/data", *server.command[2:], "--version"]
    subprocess.run(command, check=True, capture_output=True)
    wait_until(lambda: len(os.listdir(server.root / "data")) == 2, "the programs are removed")


def test_an_ordinary_user_and_a_hostile_environment(server: Server) -> None:
    chroot = server.command.index(str(server.root))
    user = [*server.command[:chroot], "--userspec=65534:65534", *server.command[chroot:]]
    hostile = [f"{name}=/data" for name in ("PYTHONHOME", "PYTHONPATH", "LD_LIBRARY_PATH")]
    command = [*user[:2], *hostile, *user[2:], "survey", "--json", "/data/big"]
    counted = json.loads(subprocess.check_output(command))
    assert counted["files"] == FILES
    server.expect_no_programs()


def _fill(root: Path) -> None:
    """Use all bytes and all inodes of the file system."""
    (root / "fill").mkdir()
    with suppress(OSError):
        for number in count():
            (root / f"fill/{number}").touch()
    with suppress(OSError), (root / "fill/0").open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    status = os.statvfs(root)
    assert (status.f_bavail, status.f_favail) == (0, 0)


def test_it_is_brought_to_a_host_without_python(cli: Cli) -> None:
    with servers() as hosts:
        for place in sorted({sys.prefix, sys.base_prefix}):
            hosts.run("bare", "mount", "-t", "tmpfs", "none", place)
        for directory in ("/usr/bin", "/bin", "/usr/local/bin"):
            for interpreter in Path(directory).glob("python*"):
                hosts.run("bare", "mount", "--bind", "/dev/null", str(interpreter))
        lookup = "command -v python3 python || echo none"
        path = "PATH=/usr/local/bin:/usr/bin:/bin"
        assert hosts.run("bare", "env", "-i", path, "sh", "-c", lookup) == "none\n"
        sentinels = hosts.plant("bare", files=3000)
        fleet = ("bare", hosts.target, "--ssh", hosts.ssh, "--bring", FILE, "--json")
        (answer,) = cli.run("fleet", "survey", *fleet).expect(0).object()["hosts"]
        assert answer["survey"]["entries"] > 3000
        finished = cli.run("fleet", "delete", *fleet, "--yes").expect(0)
        assert finished.stream()[-1]["hosts"][0]["report"]["outcome"] == "done"
        assert not hosts.seen_by("bare", hosts.target).exists()
        sentinels["bare"].assert_whole()
        wait_until(lambda: hosts.in_memory("bare") == [], "nothing of tui-fs in /dev/shm")
