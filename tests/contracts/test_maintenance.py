"""``aside`` and ``recreate`` as a person meets them: there and back, refusals, records."""

import fcntl
import os
import re
import shlex
import signal
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Cli, wait_until
from tests.contracts.curing import full, put_aside, refused, spool
from tests.contracts.test_overlap import cancel, start_slowly
from tests.filesystems import mount_overlay, mount_tmpfs, unmount_below
from tests.namespaces import other_namespace
from tests.needs import needs_root, needs_tool
from tests.trees import flat
from tests.waiting_process import StartPython
from tui_fs.job import maintenance
from tui_fs.job.aside_store import Action, new_record
from tui_fs.linux.pins import take_pin
from tui_fs.model.paths import PathStr
from tui_fs.model.target import Target

__all__ = ["full", "spool"]


@pytest.mark.parametrize("command", ["recreate", "aside"])
def test_without_a_terminal_it_needs_yes(cli: Cli, spool: Path, command: str) -> None:
    inode = spool.stat().st_ino

    assert "Add --yes" in refused(cli.run(command, spool), 2)

    assert spool.stat().st_ino == inode


@pytest.mark.parametrize("command", ["recreate", "aside"])
def test_a_mount_point_is_refused(cli: Cli, spool: Path, command: str) -> None:
    needs_root("mounting")
    mount_tmpfs(spool)
    try:
        assert "mount point" in refused(cli.run(command, spool, "--yes"))
    finally:
        unmount_below(spool)


def test_a_container_that_mounts_on_the_twin_keeps_it(cli: Cli, full: Path) -> None:
    needs_root("a mount namespace")
    record = put_aside(cli, full, "--twin")
    with other_namespace('mount -t tmpfs none "$1"', full) as pid:
        sentence = refused(cli.run("aside", "--undo", record["id"], "--yes"))
        table = Path(f"/proc/{pid}/mountinfo").read_text()

    assert "has a file system mounted on" in sentence
    assert f" {full} " in table
    assert Path(record["aside"]).exists()


def test_a_begun_deletion_is_not_undone(cli: Cli, tmpfs: Path) -> None:
    spool = tmpfs / "spool"
    flat(spool, 20_000)
    record = put_aside(cli, spool)
    job = start_slowly(cli, Path(record["aside"]))

    order = ("aside", "--undo", record["id"], "--yes")
    assert f"Job {job} is already working" in refused(cli.run(*order))
    cancel(cli, job)
    assert f"deletion has begun: job {job}" in refused(cli.run(*order))

    assert not spool.exists()


def test_a_directory_with_a_job_is_left_alone(cli: Cli, tmpfs: Path) -> None:
    tree = tmpfs / "tree"
    tree.mkdir()
    flat(tree / "inner", 20_000)
    job = start_slowly(cli, tree / "inner")

    finished = cli.run("aside", tree, "--yes")

    cancel(cli, job)
    assert f"Job {job} is already working" in refused(finished)
    assert os.listdir(tmpfs) == ["tree"]


@pytest.mark.parametrize("command", ["recreate", "aside"])
def test_a_lower_layer_of_an_overlay_is_named(cli: Cli, tmpfs: Path, command: str) -> None:
    """A directory of a lower layer, which the kernel does not rename (EXDEV), is refused."""
    spool = mount_overlay(tmpfs, lambda lower: (lower / "spool").mkdir()) / "spool"
    sentence = refused(cli.run(command, spool, "--yes"))
    assert f"{spool} is in a lower layer of an overlay, which cannot rename it" in sentence
    assert "tui-fs delete" in sentence
    assert os.listdir(spool.parent) == ["spool"]


@pytest.mark.parametrize("command", [("recreate",), ("aside", "--twin")])
def test_another_quota_project_is_named(cli: Cli, xfs: Path, command: tuple[str, ...]) -> None:
    """A directory whose project is not the one that its parent passes on (EXDEV) is refused."""
    chattr = needs_tool("chattr", package="e2fsprogs")
    spool = xfs / "spool"
    spool.mkdir()
    subprocess.run([chattr, "-p", "7", spool], check=True)
    subprocess.run([chattr, "+P", "-p", "42", xfs], check=True)
    sentence = refused(cli.run(*command, spool, "--yes"))
    assert "its quota project differs from that of its parent" in sentence
    assert "lsattr -pd" in sentence
    assert os.listdir(xfs) == ["spool"]
    subprocess.run([chattr, "+P", "-p", "42", spool], check=True)
    cli.run(*command, spool, "--yes").expect(0)


def test_putting_aside_and_back(cli: Cli, full: Path) -> None:
    inode = full.stat().st_ino
    record = put_aside(cli, full)
    aside = Path(record["aside"])
    assert re.fullmatch(r"\.spool\.tui-fs-aside-[0-9a-f]{8}", aside.name)
    assert (aside.parent, aside.stat().st_ino) == (full.parent, inode)
    assert not full.exists()
    assert record["delete_command"] == [
        ["tui-fs", "delete", str(aside), "--strategy", "rm", "--gentle"]
    ]
    (listed,) = cli.run("aside", "--list", "--json").expect(0).array()
    assert (listed["id"], listed["state"], listed["path"]) == (record["id"], "aside", str(full))
    cli.run(*record["undo_command"][1:], "--yes").expect(0)
    assert full.stat().st_ino == inode
    assert os.listdir(full.parent) == ["spool"]
    assert cli.run("aside", "--list", "--json").expect(0).array() == []


def test_a_twin_takes_the_place(cli: Cli, full: Path) -> None:
    inode, mode = full.stat().st_ino, full.stat().st_mode

    record = put_aside(cli, full, "--twin")

    assert record["twin"] is True
    assert (os.listdir(full), full.stat().st_mode) == ([], mode)
    assert set(os.listdir(full.parent)) == {"spool", Path(record["aside"]).name}
    cli.run("aside", "--undo", record["id"], "--yes").expect(0)
    assert full.stat().st_ino == inode
    assert os.listdir(full.parent) == ["spool"]


def test_what_is_printed_can_be_pasted(cli: Cli, tmpfs: Path) -> None:
    spool = tmpfs / "it's a \x1b[31m 'spool'"
    spool.mkdir()

    printed = cli.run("aside", spool, "--yes").expect(0).stdout.decode()

    assert "\x1b" not in printed
    command = next(line for line in printed.splitlines() if line.startswith("To delete it:"))
    pasted = command.removeprefix("To delete it:").strip().replace("tui-fs", "printf '%s\\n'", 1)
    words = subprocess.run(["bash", "-c", pasted], capture_output=True, check=True).stdout
    assert words.decode().splitlines()[1] == str(next(iter(tmpfs.iterdir())))


def test_the_printed_command_deletes_it(cli: Cli, full: Path) -> None:
    record = put_aside(cli, full)

    cli.run(*record["delete_command"][0][1:], "--yes").expect(0)

    (listed,) = cli.run("aside", "--list", "--json").expect(0).array()
    assert listed["state"] == "gone"
    order = ("aside", "--undo", record["id"], "--yes")
    assert "so nothing can be put back" in refused(cli.run(*order))
    assert "There is no record" in refused(cli.run(*order), 2)


@pytest.mark.parametrize("instead", ["file", "empty", "full", "link"])
def test_what_is_now_at_the_old_place_stays(cli: Cli, full: Path, instead: str) -> None:
    record = put_aside(cli, full)
    if instead == "file":
        full.touch()
    elif instead == "link":
        full.symlink_to(Path(record["aside"]).name)
    else:
        full.mkdir()
        if instead == "full":
            (full / "new").touch()

    sentence = refused(cli.run("aside", "--undo", record["id"], "--yes"))

    assert "There is something else at" in sentence
    assert f"mv -T {shlex.quote(str(full))}" in sentence
    assert sorted(os.listdir(record["aside"])) == ["a", "b", "c"]
    assert set(os.listdir(full.parent)) == {"spool", Path(record["aside"]).name}


@pytest.mark.parametrize("change", ["entry", "mode", "occupant"])
def test_a_twin_in_use_stays(cli: Cli, full: Path, start_python: StartPython, change: str) -> None:
    record = put_aside(cli, full, "--twin")
    twin = full.stat().st_ino
    if change == "entry":
        (full / "new").touch()
    elif change == "mode":
        full.chmod(0o700)
    else:
        start_python("", cwd=full)

    refused(cli.run("aside", "--undo", record["id"], "--yes"))

    assert full.stat().st_ino == twin
    assert sorted(os.listdir(record["aside"])) == ["a", "b", "c"]


@pytest.mark.parametrize(
    "arguments", [(), ("--list", "--undo", "x"), ("P", "--list"), ("--twin", "--list"), ("P", "-x")]
)
def test_arguments_that_make_no_sense(cli: Cli, arguments: tuple[str, ...]) -> None:
    refused(cli.run("aside", *arguments), 2)


def test_a_long_name_can_be_put_aside(cli: Cli, tmpfs: Path) -> None:
    name = b"\xff" * 255
    os.mkdir(os.path.join(os.fsencode(tmpfs), name))

    record = put_aside(cli, Path(os.fsdecode(os.path.join(os.fsencode(tmpfs), name))))

    assert len(os.listdir(os.fsencode(tmpfs))[0]) <= 255
    assert "path_b64" in record
    cli.run("aside", "--undo", record["id"], "--yes").expect(0)
    assert os.listdir(os.fsencode(tmpfs)) == [name]


def test_ctrl_c_while_waiting_changes_nothing(cli: Cli, full: Path, state_home: Path) -> None:
    state = state_home / "tui-fs"
    state.mkdir(parents=True, mode=0o700)
    with (state / "starting").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        process = cli.start("aside", full, "--yes")
        inode = os.fstat(lock.fileno()).st_ino
        waits = re.compile(rf"-> FLOCK .*:{inode} ")
        wait_until(lambda: bool(waits.search(Path("/proc/locks").read_text())), "its waiting")
        process.send_signal(signal.SIGINT)
        wait_until(lambda: process.poll() is not None, "its end", 10)
    process.communicate()

    assert process.returncode == 130
    assert os.listdir(full.parent) == ["spool"]
    assert cli.run("aside", "--list", "--json").expect(0).array() == []


def test_a_damaged_record_is_listed_as_such(cli: Cli, full: Path, state_home: Path) -> None:
    record = put_aside(cli, full)
    (state_home / "tui-fs" / "aside" / "0badbad0.json").write_text("{")

    listed = cli.run("aside", "--list", "--json").expect(0).array()
    printed = cli.run("aside", "--list").expect(0)

    assert [(row["id"], row["state"]) for row in listed] == [
        (record["id"], "aside"),
        ("0badbad0", "damaged"),
    ]
    assert "0badbad0 is damaged" in printed.stderr
    cli.run("aside", "--undo", record["id"], "--yes").expect(0)


def test_the_record_is_private(cli: Cli, full: Path, state_home: Path) -> None:
    record = put_aside(cli, full)

    place = state_home / "tui-fs" / "aside"
    file = place / f"{record['id']}.json"
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert '"action": "aside"' in file.read_text()


def test_a_full_state_directory_needs_another_place(cli: Cli, full: Path, state_home: Path) -> None:
    needs_root("mounting tmpfs")
    state_home.mkdir()
    mount_tmpfs(state_home)
    subprocess.run(["mount", "-o", "remount,nr_inodes=1", state_home], check=True)
    try:
        assert "record" in refused(cli.run("aside", full, "--yes"))
        assert full.exists()

        Path(os.environ["XDG_RUNTIME_DIR"]).mkdir(mode=0o700)
        record = put_aside(cli, full)

        (listed,) = cli.run("aside", "--list", "--json").expect(0).array()
        assert listed["id"] == record["id"]
        cli.run("aside", "--undo", record["id"], "--yes").expect(0)
        assert full.exists()
    finally:
        unmount_below(state_home)


def test_the_line_for_the_systems_log(full: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    monkeypatch.setattr(maintenance, "send_to_syslog", lines.append)
    path = PathStr('/srv/a" result="done\n' + "x" * 4000)

    record = new_record(Action.ASIDE, Target(path, take_pin(str(full))))
    assert maintenance.log_maintenance("aside", path, record.aside, "refused")

    (line,) = lines
    fields = {key: value.strip('"') for key, value in re.findall(r'(\w+)=("[^"]*"|[^ "]*)', line)}
    assert (fields["action"], fields["result"], fields["uid"]) == ("aside", "refused", "0")
    assert fields["path"].startswith("/srv/a\\x22 result\\x3d")
    assert "\n" not in line
    assert len(line.encode()) < 1024


INDEXED_FILES = 30_000


@pytest.fixture
def occupant_pid(spool: Path, start_python: StartPython) -> int:
    """Start a process whose current directory is the directory."""
    return start_python("", cwd=spool)


def test_an_emptied_directory_gets_a_small_index(cli: Cli, ext4: Path) -> None:
    spool = ext4 / "spool"
    flat(spool, INDEXED_FILES)
    for entry in list(os.scandir(spool)):
        os.unlink(entry.path)
    before = spool.stat()
    assert before.st_size > 1 << 19
    report = cli.run("recreate", spool, "--yes", "--json").expect(0).object()
    after = spool.stat()
    assert (report["type"], report["path"], report["moved_entries"]) == ("recreate", str(spool), 0)
    assert report["index_bytes_before"] == before.st_size
    assert report["index_bytes_after"] == after.st_size == 4096
    assert after.st_ino != before.st_ino
    assert os.listdir(ext4) == ["spool"]
    assert cli.run("aside", "--list", "--json").expect(0).array() == []


def test_recreating_reports_what_it_did(cli: Cli, spool: Path) -> None:
    finished = cli.run("recreate", spool, "--yes").expect(0)

    assert re.search(rf"{spool} is recreated: .* took .*, now ", finished.stdout.decode())


def test_recreating_refuses_what_it_must(cli: Cli, full: Path) -> None:
    link = full.parent / "link"
    link.symlink_to("spool")

    sentence = refused(cli.run("recreate", full, "--yes"))
    assert sentence.endswith(f"not empty. Empty it first: tui-fs delete {full} --keep-root")
    assert "symbolic link" in refused(cli.run("recreate", link, "--yes"))
    assert "not a directory" in refused(cli.run("recreate", full / "a", "--yes"))
    assert "does not exist" in refused(cli.run("recreate", full / "nothing", "--yes"), 2)
    assert "--help" in refused(cli.run("recreate", "--yes"), 2)
    assert sorted(os.listdir(full)) == ["a", "b", "c"]


def test_processes_in_it_are_named(cli: Cli, spool: Path, occupant_pid: int) -> None:
    sentence = refused(cli.run("recreate", spool, "--yes"))
    assert f"Process {occupant_pid} " in sentence
    assert "--accept-occupants" in sentence

    finished = cli.run("recreate", spool, "--yes", "--json", "--accept-occupants").expect(0)

    assert [occupant["pid"] for occupant in finished.object()["occupants"]] == [occupant_pid]
    assert str(occupant_pid) in finished.stderr


@pytest.fixture
def mounted_on(spool: Path) -> Iterator[int]:
    """Yield a process in another mount namespace that has a file system mounted on it."""
    needs_root("a mount namespace")
    with other_namespace('mount -t tmpfs none "$1"', spool) as pid:
        yield pid
        table = Path(f"/proc/{pid}/mountinfo").read_text()
    assert f" {spool} " in table


def test_a_mount_of_a_container_stays(cli: Cli, spool: Path, mounted_on: int) -> None:
    inode = spool.stat().st_ino

    for option in ((), ("--accept-occupants",)):
        sentence = refused(cli.run("recreate", spool, "--yes", *option))
        assert f"Process {mounted_on} " in sentence
        assert "has a file system mounted on" in sentence
        assert "--accept-occupants" not in sentence

    assert spool.stat().st_ino == inode
