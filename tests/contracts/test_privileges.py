"""Rights are neither lent nor borrowed: setuid starts, other users' words, other users' trees."""

import os
import shutil
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import DEADLINE_S, Cli, Finished, Json
from tests.contracts.test_control import of_type
from tests.contracts.test_overlap import cancel, start_slowly
from tests.needs import lacks, needs_root, needs_tool, needs_tools_of
from tests.strategies import BY_PATH, RACE_SAFE
from tests.trees import Sentinel, flat, manifest, many_directories
from tui_fs.linux.tools import find_engine
from tui_fs.strategies.registry import STRATEGIES

NOBODY = 65534
COMMANDS = (
    ("survey", "{target}"),
    ("estimate", "{target}"),
    ("delete", "--strategy", "rm", "--yes", "{target}"),
    ("delete", "--strategy", "rm", "--dry-run", "{target}"),
    ("jobs",),
    ("jobs", "--json"),
    ("attach", "abc123"),
    *((order, "abc123") for order in ("pause", "resume", "cancel")),
    ("rate", "abc123", "5"),
    ("doctor",),
    ("{target}",),
    ("--version",),
    ("no", "such", "command"),
)
_CAP_DAC_OVERRIDE = 1
_CAPABILITIES_V2 = 0x02000000 | 1  # VFS_CAP_REVISION_2, effective: linux/capability.h


@pytest.fixture
def target(tmpfs: Path) -> Path:
    """Return a tree of 9 entries."""
    many_directories(tmpfs / "t", 2, 3)
    return tmpfs / "t"


def run_as(
    prepare: Callable[[], None], command: list[str], environment: dict[str, str] | None = None
) -> Finished:
    """Run a command in a process that has changed its rights."""
    done = subprocess.run(
        command,
        preexec_fn=prepare,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=DEADLINE_S,
        check=False,
    )
    return Finished(tuple(command[1:]), done.returncode, done.stdout, done.stderr.decode())


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_nothing_is_done_with_borrowed_privileges(
    cli: Cli, target: Path, words: tuple[str, ...]
) -> None:
    # A start as from a setuid program: root's rights, another user's person
    needs_root("becoming another user")
    before = manifest(target)
    command = [cli.program, *(word.format(target=target) for word in words)]
    finished = run_as(lambda: os.setresuid(NOBODY, 0, 0), command).expect(3)
    finished.assert_one_sentence()
    assert "borrowed privileges" in finished.stderr
    assert manifest(target) == before
    assert not cli.jobs_directory.exists()


def test_a_borrowed_group_is_borrowed_too(cli: Cli) -> None:
    needs_root("changing groups")
    finished = run_as(lambda: os.setresgid(NOBODY, 0, 0), [cli.program, "jobs"]).expect(3)
    finished.assert_one_sentence()


def test_root_itself_is_not_refused(cli: Cli) -> None:
    needs_root("setting ids")
    run_as(lambda: os.setresuid(0, 0, 0), [cli.program, "jobs"]).expect(0)


def _setuid(copy: Path) -> None:
    copy.chmod(0o4755)


def _with_capabilities(copy: Path) -> None:
    """As setcap cap_dac_override+ep does."""
    bits = 1 << _CAP_DAC_OVERRIDE
    value = struct.pack("<5I", _CAPABILITIES_V2, bits, 0, 0, 0)
    os.setxattr(copy, "security.capability", value)


@pytest.mark.parametrize("lend", (_setuid, _with_capabilities))
def test_a_copy_of_python_that_lends_rights_is_refused(
    tmpfs: Path, target: Path, lend: Callable[[Path], None]
) -> None:
    needs_root("lending rights")
    copy = tmpfs / "python"
    shutil.copy(os.path.realpath(sys.executable), copy)
    copy.chmod(0o755)
    lend(copy)
    before = manifest(target)
    copy_fd = os.open(copy, os.O_RDONLY)  # its path is root's; its mode admits everyone
    os.set_inheritable(copy_fd, True)
    entry = "from tui_fs.cli import entry_point; entry_point()"
    words = ["-c", entry, "delete", "--strategy", "rm", "--yes", str(target)]
    start = (
        "import os, sys; os.setgroups([]); "
        f"os.setresgid({NOBODY}, {NOBODY}, {NOBODY}); os.setresuid({NOBODY}, {NOBODY}, {NOBODY}); "
        f"os.execve({copy_fd}, ['python', *sys.argv[1:]], os.environ)"
    )
    environment = {
        "PYTHONHOME": f"{sys.base_prefix}:{sys.base_exec_prefix}",
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }
    done = subprocess.run(
        [sys.executable, "-c", start, *words],
        env={**os.environ, **environment},
        pass_fds=[copy_fd],
        cwd="/",
        capture_output=True,
        timeout=DEADLINE_S,
        check=False,
    )
    os.close(copy_fd)
    finished = Finished((), done.returncode, done.stdout, done.stderr.decode()).expect(3)
    finished.assert_one_sentence()
    assert "borrowed privileges" in finished.stderr
    assert manifest(target) == before


_ASK = """
import os, socket, sys
os.setgroups([])
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
client = socket.socket(socket.AF_UNIX)
try:
    client.connect(f"/proc/self/fd/{sys.argv[1]}/control.sock")
except OSError as error:
    sys.exit(f"cannot connect: {error.strerror}")
client.sendall(sys.argv[2].encode() + b"\\n")
print(client.makefile().readline())
"""


def ask_as_nobody(folder: Path, order: str) -> "subprocess.CompletedProcess[str]":
    """Send an order from a process of another user that was handed the job's directory."""
    folder_fd = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        return subprocess.run(
            [sys.executable, "-I", "-c", _ASK, str(folder_fd), order],
            pass_fds=[folder_fd],
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
    finally:
        os.close(folder_fd)


def test_another_user_has_no_say_in_a_job(cli: Cli, tmpfs: Path) -> None:
    needs_root("becoming another user")
    flat(tmpfs / "t", 20_000)
    job = start_slowly(cli, tmpfs / "t")
    folder = cli.jobs_directory / job
    orders = ("cancel", "pause", "rate off", "gentle on", "nice 19", "ionice idle")
    for order in orders[:2]:
        assert "Permission denied" in ask_as_nobody(folder, order).stderr
    # And where the directories are open all the same, the refusal names the job's owner
    folder.chmod(0o755)
    (folder / "control.sock").chmod(0o666)
    for order in orders:
        answer = ask_as_nobody(folder, order)
        assert (
            "This job belongs to another user; only that user and root can control it."
            in answer.stdout
        ), answer.stderr
    # And nothing has changed
    events = cli.journal(job)
    assert cli.state_of(job) == "running"
    for name in ("PaceChanged", "Paused", "CancelRequested", "HeldBack"):
        assert of_type(events, name) == []
    cancel(cli, job)


def test_those_who_say_nothing_do_not_keep_the_owner_from_it(cli: Cli, tmpfs: Path) -> None:
    flat(tmpfs / "t", 20_000)
    job = start_slowly(cli, tmpfs / "t")
    cli.run("pause", job).expect(0)
    job_fd = os.open(cli.jobs_directory / job, os.O_PATH)
    silent = [socket.socket(socket.AF_UNIX) for _ in range(5)]
    for client in silent:
        client.connect(f"/proc/self/fd/{job_fd}/control.sock")
    cli.run("nice", job, "18").expect(0)
    cli.run("cancel", job).expect(0)
    for client in silent:
        client.close()
    os.close(job_fd)
    assert cli.run("attach", "--json", job).expect(130).report()["outcome"] == "cancelled"


def shared_inside(place: Path) -> Path:
    many_directories(place / "t", 2, 3)
    os.chown(place / "t" / "directory-00001", NOBODY, NOBODY)
    return place / "t"


def shared_itself(place: Path) -> Path:
    many_directories(place / "t", 2, 3)
    (place / "t").chmod(0o777)
    return place / "t"


def below_a_directory_of_all(place: Path) -> Path:
    (place / "all").mkdir()
    (place / "all").chmod(0o777)
    many_directories(place / "all" / "t", 2, 3)
    return place / "all" / "t"


def below_another_users(place: Path) -> Path:
    (place / "theirs" / "above").mkdir(parents=True)
    os.chown(place / "theirs", NOBODY, NOBODY)
    many_directories(place / "theirs" / "above" / "t", 2, 3)
    return place / "theirs" / "above" / "t"


def below_a_sticky_directory(place: Path) -> Path:
    (place / "tmp").mkdir()
    (place / "tmp").chmod(0o1777)
    many_directories(place / "tmp" / "t", 2, 3)
    return place / "tmp" / "t"


def roots_own(place: Path) -> Path:
    many_directories(place / "t", 2, 3)
    return place / "t"


RACY = (shared_inside, shared_itself, below_a_directory_of_all, below_another_users)
RACIEST = (shared_inside, below_another_users)


@pytest.fixture
def place(tmpfs: Path) -> Iterator[Path]:
    """Yield a directory that others can reach but not replace, with a sentinel next to it."""
    needs_root("giving directories away")
    sentinel = Sentinel(tmpfs)
    (tmpfs / "place").mkdir(mode=0o755)
    yield tmpfs / "place"
    sentinel.assert_whole()


@pytest.mark.parametrize("build", RACY)
@pytest.mark.parametrize("strategy", BY_PATH)
def test_a_strategy_that_could_be_led_astray_is_refused(
    cli: Cli, place: Path, strategy: str, build: Callable[[Path], Path]
) -> None:
    # A tree where another user can exchange a directory
    target = build(place)
    before = manifest(target)
    for option in ("--yes", "--dry-run"):
        words = ("--strategy", strategy, "--confine", "off", option)
        finished = cli.run("delete", *words, target).expect(3)
        finished.assert_one_sentence()
        assert "--accept-races" in finished.stderr
        assert manifest(target) == before
    # And an estimate says so
    estimate = cli.run("estimate", "--confine", "off", "--json", target).expect(0).object()
    feasible = {row["strategy"]: row["feasible"] for row in estimate["strategies"]}
    assert feasible.pop("parallel") is (find_engine() is not None)
    assert feasible == {name: name in RACE_SAFE for name in feasible}


@pytest.mark.parametrize(
    ("strategy", "build"), (("xargs", below_another_users), ("rsync", shared_inside))
)
def test_accepted_races_are_run(
    cli: Cli, place: Path, strategy: str, build: Callable[[Path], Path]
) -> None:
    target = build(place)
    cli.delete(target, strategy, "--confine", "off", "--accept-races").expect(0)
    assert not target.exists()
    lines = [event["line"] for event in of_type(cli.journal(cli.only_job()), "Audited")]
    assert all("accept_races=yes" in line for line in lines)


@pytest.mark.parametrize(
    ("strategy", "build"), (("xargs", roots_own), ("rsync", below_a_sticky_directory))
)
def test_where_only_root_can_write_nothing_is_refused(
    cli: Cli, place: Path, strategy: str, build: Callable[[Path], Path]
) -> None:
    target = build(place)
    report = cli.delete(target, strategy).expect(0).report()
    assert not target.exists()
    assert names_of_the_target(report, target) == {str(target)}


@pytest.mark.parametrize("build", RACIEST)
@pytest.mark.parametrize("strategy", RACE_SAFE)
def test_a_strategy_that_holds_directories_runs_anywhere(
    cli: Cli, place: Path, strategy: str, build: Callable[[Path], Path]
) -> None:
    needs_tools_of(strategy)
    target = build(place)
    report = cli.delete(target, strategy).expect(0).report()
    assert report["outcome"] == "done"
    assert not target.exists()
    # By its path where that is firm; else inside it, and its name goes last, from its parent
    named = {str(target)} if build is shared_inside else {".", "./t"}
    assert names_of_the_target(report, target) == named


def names_of_the_target(report: Json, target: Path) -> set[str]:
    """Return the arguments that name the target, without a trailing slash."""
    words = {word.rstrip("/") for argv in report["command"] for word in argv}
    assert not any(str(target) in word for word in words - {str(target)})
    return words & {str(target), f"./{target.name}", target.name, "."}


@pytest.mark.parametrize(
    ("strategy", "options"),
    (
        *((name, ()) for name in STRATEGIES),
        *((name, ("--keep-root",)) for name in ("rm", "find", "parallel")),
    ),
)
def test_what_failed_is_reported_by_its_absolute_path(
    cli: Cli, place: Path, strategy: str, options: tuple[str, ...]
) -> None:
    needs_tools_of(strategy)
    chattr = needs_tool("chattr", package="e2fsprogs")
    target = below_another_users(place)
    kept = target / "directory-00001" / "file-0000001"
    frozen = subprocess.run([chattr, "+i", kept], capture_output=True, check=False)
    if frozen.returncode != 0:
        lacks("this tmpfs has no immutable files; enable it with Linux 6.6")
    finished = cli.delete(target, strategy, "--accept-races", *options)
    subprocess.run([chattr, "-i", kept], check=True)
    report = finished.expect(1).report()
    assert report["outcome"] == "partial"
    paths = [error["path"] for error in report["errors"]]
    assert str(kept) in paths, report["errors"]
    assert all(path == str(target) or path.startswith(f"{target}/") for path in paths)
    assert [p.name for p in target.rglob("*")] == ["directory-00001", "file-0000001"]
