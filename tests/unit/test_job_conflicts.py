"""Of jobs that overlap only one runs: asked by processes, as a lock binds processes."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.conftest import DEADLINE_S
from tests.unit.test_job_store import plan
from tests.waiting_process import waiting_process
from tui_fs.job import conflicts
from tui_fs.job.conflicts import check_conflicts, check_nested, register_or_refuse
from tui_fs.job.lock import has_supervisor
from tui_fs.job.store import JobFolder, create, jobs_directory, load_plan
from tui_fs.linux.pins import take_pin
from tui_fs.model.errors import Refused
from tui_fs.model.paths import PathStr
from tui_fs.model.target import Pin, Target

_AT_WORK = """
import os, sys
from tui_fs.job.conflicts import register_or_refuse
from tui_fs.job.store import JobFolder, load_plan
folder = JobFolder(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
lock, refusal = register_or_refuse(folder, load_plan(folder).targets)
print("free" if refusal is None else f"{refusal.rule}: {refusal.sentence}", flush=True)
sys.stdin.readline()
"""

REAL_LSTAT = os.lstat
Process = subprocess.Popen[str]


def job(job_id: str, *paths: str) -> JobFolder:
    """Make the folder of a job on paths."""
    return create(replace(plan(job_id), targets=tuple(map(at, paths))))


def at(path: str) -> Target:
    """Return a target that is nowhere: only its path is asked for."""
    return Target(PathStr(path), Pin(1, 2, 3))


def process_of(folder: JobFolder) -> AbstractContextManager[Process]:
    """Start a process that will take the job's lock."""
    return waiting_process([sys.executable, "-I", "-c", _AT_WORK, folder.path])


def start_locking(process: Process) -> None:
    """Let it take its lock."""
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def answer_of(process: Process) -> str:
    """Return whether it may run."""
    assert process.stdout is not None
    return process.stdout.readline().rstrip("\n")


@contextmanager
def at_work(folder: JobFolder) -> Iterator[None]:
    """Have a process at work on a job, by its lock."""
    with process_of(folder) as process:
        start_locking(process)
        answer_of(process)
        yield


@pytest.mark.parametrize(
    ("theirs", "ours", "is_busy"),
    [
        (("/srv/spool",), ("/srv/spool",), True),
        (("/srv/spool",), ("/srv/spool/a",), True),
        (("/srv/spool",), ("/srv/spool/a/b",), True),
        (("/srv/spool",), ("/srv",), True),
        (("/srv/spool",), ("/srv/spool2",), False),
        (("/srv/spool",), ("/srv/spoo",), False),
        (("/srv/spool",), ("/srv/spool\n",), False),
        (("/srv/spool",), ("/home/srv/spool",), False),
        (("/a", "/b", "/c"), ("/d", "/e"), False),
        (("/a", "/b", "/c"), ("/d", "/c"), True),
        (("/a/x", "/b"), ("/d", "/a"), True),
        (("/d", "/a"), ("/b", "/a/x/y"), True),
    ],
)
def test_any_target_that_overlaps_one_of_a_job_at_work_is_busy(
    theirs: tuple[str, ...], ours: tuple[str, ...], is_busy: bool
) -> None:
    with at_work(job("aaaaaa", *theirs)):
        _, refusal = register_or_refuse(job("bbbbbb", *ours), [at(path) for path in ours])
    assert (refusal is not None) is is_busy
    if refusal is not None:
        assert refusal.rule == "busy"
        assert "aaaaaa" in refusal.sentence
        assert any(path in refusal.sentence for path in theirs)


def pinned(path: Path) -> Target:
    """Return the target at a path."""
    return Target(PathStr(str(path)), take_pin(str(path)))


def test_targets_beside_each_other_do_not_touch(tmp_path: Path) -> None:
    for name in ("a", "ab", "a b/c", "d/a"):
        (tmp_path / name).mkdir(parents=True)
    check_nested([pinned(tmp_path / name) for name in ("a", "ab", "a b/c", "d/a")])


@pytest.mark.parametrize(
    "names", [("a", "a"), ("a", "a/b"), ("a/b/c", "x", "a"), ("x", "a/b", "a")]
)
def test_a_target_in_another_is_refused(tmp_path: Path, names: tuple[str, ...]) -> None:
    for name in ("a/b/c", "x"):
        (tmp_path / name).mkdir(parents=True)
    with pytest.raises(Refused) as refusal:
        check_nested([pinned(tmp_path / name) for name in names])
    assert refusal.value.rule == "overlap"
    assert str(tmp_path / "a") in refusal.value.sentence


@pytest.mark.parametrize(("inside", "other"), [("", ""), ("b", ""), ("", "b"), ("b/c", "b")])
def test_other_names_hide_nothing(tmp_path: Path, inside: str, other: str) -> None:
    (tmp_path / "real" / "b" / "c").mkdir(parents=True)
    (tmp_path / "name" / "b" / "c").mkdir(parents=True)
    lied = {
        str(tmp_path / "name" / suffix): tmp_path / "real" / suffix for suffix in ("", "b", "b/c")
    }
    lied = {name.rstrip("/"): real for name, real in lied.items()}

    def target(path: str) -> Target:
        return Target(PathStr(path), take_pin(str(lied.get(path, path))))

    def lstat(path: str) -> os.stat_result:
        return REAL_LSTAT(lied.get(str(path), path))

    one, two = str(tmp_path / "real" / inside), str(tmp_path / "name" / other)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tui_fs.job.conflicts.os.lstat", lstat)
        with pytest.raises(Refused) as refusal:
            check_nested([target(one.rstrip("/")), target(two.rstrip("/"))])
    assert refusal.value.rule == "overlap"


def test_a_file_system_that_only_another_job_works_on_is_not_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A job at work on another device, which may not answer any more
    monkeypatch.setattr(conflicts, "is_occupied", lambda _: True)
    job("aaaaaa", "/mnt/lost/a")
    theirs = load_plan(job("bbbbbb", "/srv/b")).targets
    ours = [replace(their_path, pin=replace(their_path.pin, device=99)) for their_path in theirs]
    looked_at = []

    def lstat(path: str) -> os.stat_result:
        looked_at.append(path)
        return REAL_LSTAT(path)

    monkeypatch.setattr("tui_fs.job.conflicts.os.lstat", lstat)
    check_conflicts(ours, JobFolder(f"{jobs_directory()}/bbbbbb"))
    assert not any(path.startswith("/mnt/lost") for path in looked_at)
    # And paths are compared all the same
    inside = Target(PathStr("/mnt/lost/a/b"), ours[0].pin)
    with pytest.raises(Refused):
        check_conflicts([inside], JobFolder(f"{jobs_directory()}/bbbbbb"))


_NAMES = st.lists(st.sampled_from("ab"), min_size=1, max_size=4)


@given(_NAMES, _NAMES)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@pytest.mark.slow
def test_overlap_is_mutual(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, one: list[str], other: list[str]
) -> None:
    monkeypatch.setattr(conflicts, "is_occupied", lambda _: True)
    paths = ["/" + "/".join(names) for names in (one, other)]
    refused = []
    for number, (first, second) in enumerate((paths, paths[::-1])):
        home = tmp_path / f"{number}{''.join(one)}-{''.join(other)}"
        monkeypatch.setenv("XDG_STATE_HOME", str(home))
        if not home.exists():
            job("aaaaaa", first)
            job("bbbbbb", second)
        lock, refusal = register_or_refuse(JobFolder(f"{home}/tui-fs/jobs/bbbbbb"), [at(second)])
        lock.release()
        refused.append(refusal is not None)
    # Each is refused while the other runs, or neither: if one path is a prefix of the other
    shorter = min(len(one), len(other))
    assert refused == [one[:shorter] == other[:shorter]] * 2


def test_a_job_that_has_ended_or_died_causes_no_conflict() -> None:
    # A job whose process was killed, and one that never had one
    dead = job("aaaaaa", "/srv")
    with at_work(dead):
        assert has_supervisor(dead.lock)
    job("cccccc", "/srv")
    _, refusal = register_or_refuse(job("bbbbbb", "/srv"), [at("/srv")])
    assert refusal is None


def test_a_job_is_not_in_its_own_way() -> None:
    folder = job("aaaaaa", "/srv")
    with process_of(folder) as process:
        start_locking(process)
        assert answer_of(process) == "free"
        assert has_supervisor(folder.lock)
    assert not has_supervisor(folder.lock)


@pytest.mark.slow
def test_a_refused_job_holds_its_lock_until_it_has_said_so() -> None:
    folder = job("bbbbbb", "/srv/x")
    with at_work(job("aaaaaa", "/srv")), process_of(folder) as process:
        start_locking(process)
        assert answer_of(process).startswith("busy: ")
        assert has_supervisor(folder.lock)


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff", b'{"schema": 1}'])
def test_a_job_at_an_unknown_place_conflicts_with_every_job(content: bytes) -> None:
    folder = job("aaaaaa", "/srv")
    with at_work(folder):
        Path(folder.plan).write_bytes(content)
        _, refusal = register_or_refuse(job("bbbbbb", "/elsewhere"), [at("/elsewhere")])
    assert refusal is not None
    assert refusal.rule == "busy"
    assert "aaaaaa" in refusal.sentence


@pytest.mark.parametrize("number", [2, 5])
@pytest.mark.slow
def test_of_those_that_enlist_together_one_may_run(number: int) -> None:
    paths = ["/srv", "/srv/a", "/srv", "/srv/a/b", "/srv"][:number]
    folders = [job(f"aaaaa{index}", path) for index, path in enumerate(paths)]
    with ExitStack() as stack:
        processes = [stack.enter_context(process_of(folder)) for folder in folders]
        for process in processes:
            start_locking(process)
        answers = [answer_of(process) for process in processes]
    assert answers.count("free") == 1
    assert all(answer.startswith("busy: ") for answer in answers if answer != "free")


def test_no_job_waits_for_its_own_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = Path(os.environ["XDG_RUNTIME_DIR"])
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_STATE_HOME", f"{runtime}/missing/..")
    script = "from tui_fs.job.conflicts import no_job_starting as lock\nwith lock(): print('alone')"
    ended = subprocess.run(
        [sys.executable, "-I", "-c", script],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=True,
    )
    assert ended.stdout == "alone\n"
