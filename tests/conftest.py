"""Fixtures: a state directory of its own for every test, and a runner for the program."""

import ctypes
import gc
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.filesystems import (
    btrfs,
    btrfs_root,
    crowded,
    crowded_image,
    ext4,
    ext4_root,
    filesystem,
    mount_root,
    ramfs,
    ramfs_root,
    tmpfs,
    tmpfs_root,
    unmount_copies,
    xfs,
    xfs_root,
)
from tests.matrix.ordinary_user import ordinary_user, statements_of_ordinary_user
from tests.needs import lacks, needs_tools_of
from tests.preloaded import Preloaded
from tests.waiting_process import start_python
from tui_fs.job.store import find
from tui_fs.job.view import JobView
from tui_fs.linux.mount_namespaces import own_mounts
from tui_fs.linux.statx import spread_subdirectories
from tui_fs.strategies.registry import STRATEGIES

__all__ = [
    "btrfs",
    "btrfs_root",
    "crowded",
    "crowded_image",
    "ext4",
    "ext4_root",
    "filesystem",
    "mount_root",
    "ramfs",
    "ramfs_root",
    "start_python",
    "tmpfs",
    "tmpfs_root",
    "xfs",
    "xfs_root",
]

Json = dict[str, Any]
Argument = str | bytes | Path

DEADLINE_S = 300.0
"""A busy machine is no failure."""
_SEEN_BY_PYTHON = ("PYTHON", "LD_", "LC_", "LANG")
"""Beginnings of the names of variables that the interpreter or the loader read at its start."""

_POLL_S, _MAX_POLL_S = 0.01, 0.1
_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h


# New inputs, which may find an old mistake, are for tests/fuzz/run.py
settings.register_profile(
    "steady", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("steady")
os.umask(0o022)  # modes are compared


IN_PROCESS = ("unit", "ui")
"""The directories of tests that start no job and need no privilege, unless marked otherwise."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what a developer runs after each change: ``pytest -m fast``."""
    for item in items:
        directory = item.nodeid.removeprefix("tests/").partition("/")[0]
        if directory in IN_PROCESS:
            is_slow = any(item.get_closest_marker(name) for name in ("slow", "root"))
            if not is_slow:
                item.add_marker(pytest.mark.fast)


def pytest_collection_finish() -> None:
    """Let garbage collection pass over the thousands of tests that were collected."""
    gc.collect()
    gc.freeze()


def wait_until(
    condition: Callable[[], bool],
    what: str,
    deadline_s: float = DEADLINE_S,
    poll_s: float = _POLL_S,
) -> None:
    """Wait for a condition; fail with `what` when the deadline passes.

    Args:
        poll_s: time between two looks at first; the longer the wait, the rarer they are.
    """
    begun_s = time.monotonic()
    while not condition():
        waited_s = time.monotonic() - begun_s
        assert waited_s < deadline_s, f"not within {deadline_s:.0f} s: {what}"
        time.sleep(max(poll_s, min(waited_s / 20, _MAX_POLL_S)))


@dataclass(frozen=True, slots=True)
class Finished:
    """A run of the program that has ended."""

    arguments: tuple[str, ...]
    code: int
    stdout: bytes
    stderr: str

    def expect(self, code: int) -> "Finished":
        """Fail unless it ended with this code, and without a traceback."""
        stdout = f"{self.stdout[:500]!r} … {self.stdout[-2000:]!r}"
        message = f"{self}\nstdout: {stdout}\nstderr: {self.stderr[-2000:]}"
        assert self.code == code, f"exit {self.code}, expected {code}: {message}"
        assert "Traceback" not in self.stderr, message
        return self

    def object(self) -> Json:
        """Read the one JSON object of standard output."""
        value = json.loads(self.stdout.decode())
        assert isinstance(value, dict)
        return value

    def array(self) -> list[Json]:
        """Read the one JSON array of standard output."""
        value = json.loads(self.stdout.decode())
        assert isinstance(value, list)
        return value

    def stream(self) -> list[Json]:
        """Read standard output as one JSON object a line."""
        return [json.loads(line) for line in self.stdout.decode().splitlines()]

    def report(self) -> Json:
        """Read the stream's last line, which is the report."""
        last = self.stream()[-1]
        assert last["type"] == "report"
        return last

    def assert_one_sentence(self) -> None:
        """Fail unless standard error is one clear sentence and standard output is empty."""
        assert self.stdout == b"", f"data on standard output: {self.stdout!r}"
        assert "Traceback" not in self.stderr, self.stderr
        assert len(self.stderr.strip().splitlines()) == 1, f"not one line: {self.stderr!r}"
        assert len(self.stderr.split()) > 3, f"no sentence: {self.stderr!r}"

    def __str__(self) -> str:
        """Show the command line."""
        return "tui-fs " + " ".join(map(repr, self.arguments))


class _Started(subprocess.Popen[bytes]):
    """A process that a failed assertion does not wait for."""

    def __exit__(self, kind: type[BaseException] | None, *rest: Any) -> None:
        if kind is not None:
            self.kill()
        super().__exit__(kind, *rest)


class Cli:
    """The installed program, run as a user would."""

    def __init__(
        self,
        program: str,
        state_home: Path,
        preloaded: Preloaded | None = None,
        wrapper: Sequence[str] = (),
        prepare: str = "",
    ) -> None:
        """Take the program's path and the state directory that its jobs go to.

        Args:
            preloaded: the same program, to be run without loading it.
            wrapper: a command that runs the program, before its path.
            prepare: Python statements that do in the preloaded program what the wrapper does.
        """
        self.program = program
        self.command = [*wrapper, program]
        self._preloaded = preloaded
        self._prepare = prepare
        self._wrapper = wrapper
        self._state_home = state_home
        self.jobs_directory = state_home / "tui-fs" / "jobs"

    def run(
        self,
        *arguments: Argument,
        cwd: Path | None = None,
        environment: dict[str, str] | None = None,
        deadline_s: float = DEADLINE_S,
    ) -> Finished:
        """Run it to its end, with no terminal."""
        words = tuple(map(os.fsdecode, arguments))
        given = environment or {}
        starts_alike = not any(name.startswith(_SEEN_BY_PYTHON) for name in given)
        if self._preloaded and self._preloaded.is_ours and starts_alike:
            command = [self.program, *words]
            finished = self._preloaded.run(command, cwd, deadline_s, given, self._prepare)
        else:
            finished = subprocess.run(
                [*self.command, *words],
                cwd=cwd,
                env={**os.environ, **given},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=deadline_s,
                check=False,
            )
        stderr = finished.stderr.decode(errors="backslashreplace")
        return Finished(words, finished.returncode, finished.stdout, stderr)

    def start(self, *arguments: Argument) -> "subprocess.Popen[bytes]":
        """Start it in the foreground of a session of its own, with no terminal."""
        return _Started(
            [*self.command, *map(os.fsdecode, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            # A shell that runs the tests in the background hands down an ignored SIGINT.
            preexec_fn=default_signals,
        )

    def wrapped(self, wrapper: Sequence[str]) -> "Cli":
        """Return the program as another command runs it, which is put before its path."""
        return Cli(self.program, self._state_home, wrapper=(*wrapper, *self._wrapper))

    def prepared(self, statements: str) -> "Cli":
        """Return the preloaded program, which executes these Python statements first."""
        assert self._preloaded is not None
        return Cli(self.program, self._state_home, self._preloaded, prepare=statements)

    def as_ordinary_user(self, *places: Path) -> "Cli":
        """Return the program as a user without rights runs it, who can reach these places."""
        wrapper = (*ordinary_user(*places), *self._wrapper)
        preloaded = None if self._wrapper else self._preloaded
        prepare = statements_of_ordinary_user(*places)
        return Cli(self.program, self._state_home, preloaded, wrapper, prepare)

    def delete(self, target: Argument, strategy: str, *options: str) -> Finished:
        """Delete in the foreground without asking, as a JSON stream."""
        return self.run("delete", "--strategy", strategy, "--yes", "--json", *options, "--", target)

    def jobs(self) -> list[Json]:
        """List the jobs."""
        return self.run("jobs", "--json").expect(0).array()

    def state_of(self, job: str) -> str:
        """Return one job's state, as `jobs` prints it."""
        return next(str(listed["state"]) for listed in self.jobs() if listed["id"] == job)

    def only_job(self) -> str:
        """Wait for the only job of this test and return its id."""
        wait_until(self.jobs_directory.exists, "a directory of jobs")
        wait_until(lambda: bool(os.listdir(self.jobs_directory)), "a job that is kept")
        wait_until(lambda: bool(self.jobs()), "a job that is listed")
        (job,) = self.jobs()
        return str(job["id"])

    def journal(self, job: str) -> list[Json]:
        """Read the whole lines of a job's journal."""
        text = (self.jobs_directory / job / "events.jsonl").read_text(encoding="utf-8")
        return [json.loads(line) for line in text.split("\n")[:-1]]

    def supervisor_of(self, job: str) -> int:
        """Wait for the job's supervisor and return its process id."""
        journal = self.jobs_directory / job / "events.jsonl"
        wait_until(lambda: journal.exists() and bool(self.journal(job)), f"a journal of {job}")
        return int(self.journal(job)[0]["supervisor_pid"])

    def wait_for_state(self, job: str, state: str, deadline_s: float = DEADLINE_S) -> None:
        """Wait until `jobs` says that a job is in a state."""
        view = JobView(find(job))  # to ask the program again and again would hold the job up

        def seems_so() -> bool:
            view.poll()
            return view.state == state

        wait_until(seems_so, f"job {job} being {state}", deadline_s)
        condition = f"job {job} being listed as {state}"
        wait_until(lambda: self.state_of(job) == state, condition, deadline_s)


@pytest.fixture(scope="session", autouse=True)
def mounts_are_ours() -> None:
    """Let no process of another session copy the mounts of a test, and so keep them in use."""
    if os.geteuid() == 0:
        with suppress(PermissionError):  # a container whose root may not mount
            own_mounts()
            unmount_copies()


@pytest.fixture(scope="session", autouse=True)
def spread_out(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Let no test wait for ext4, which is slow to make files where others were just deleted."""
    directory = os.open(tmp_path_factory.getbasetemp(), os.O_RDONLY)
    spread_subdirectories(directory)
    os.close(directory)


@pytest.fixture(scope="session", autouse=True)
def counters_are_held() -> Iterator[None]:
    """Let no job wait for the kernel to take down the counters of the one before."""
    if os.environ.get("PYTEST_XDIST_WORKER", "gw0") != "gw0":
        yield  # the first worker holds them for all
        return
    holding = [sys.executable, "-m", "tests.holding_counters"]
    holder = subprocess.Popen(
        holding, cwd=Path(__file__).parents[1], stdin=subprocess.PIPE, start_new_session=True
    )
    yield
    assert holder.stdin is not None
    holder.stdin.close()


@pytest.fixture
def tmp_path(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """Return an empty directory; pytest's own lists those of all earlier tests to number it."""
    name = re.sub(r"\W", "_", request.node.name)[:16]
    return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=tmp_path_factory.getbasetemp()))


@pytest.fixture(autouse=True)
def state_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Keep every test's jobs out of the real home, and end those that it leaves running."""
    home = tmp_path / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "runtime"))
    yield home
    for journal in home.glob("tui-fs/jobs/*/events.jsonl"):
        _end_supervisor(journal, home)


@pytest.fixture(autouse=True)
def orphans_go_to_init() -> Iterator[None]:
    """Let no test's launcher make this process the parent of what later tests leave."""
    yield
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


@pytest.fixture(scope="session")
def preloaded() -> Iterator[Preloaded]:
    """Yield the program in a process that has loaded it."""
    program = Preloaded()
    yield program
    program.close()


@pytest.fixture
def cli(state_home: Path, preloaded: Preloaded) -> Cli:
    """Return the installed program."""
    beside_python = Path(sysconfig.get_path("scripts")) / "tui-fs"
    program = str(beside_python) if beside_python.exists() else shutil.which("tui-fs")
    if program is None:
        lacks("tui-fs is not installed; enable it with: pip install -e .")
    return Cli(program, state_home, preloaded)


@pytest.fixture(params=STRATEGIES)
def strategy(request: pytest.FixtureRequest) -> str:
    """Return each strategy in turn."""
    needs_tools_of(request.param)
    return str(request.param)


def entries_in(directory: Path) -> int:
    """Count the names in one directory; none where it is gone."""
    try:
        return sum(1 for _ in os.scandir(directory))
    except FileNotFoundError:
        return 0


def open_descriptors() -> int:
    """Count this process's descriptors, without those of garbage that earlier tests left."""
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


def removed_since(directory: Path) -> Callable[[], int]:
    """Count inodes freed from now on, without reading (and so disturbing) a big directory."""
    free_before = os.statvfs(directory).f_ffree
    above = directory.parent
    return lambda: os.statvfs(above).f_ffree - free_before


def processes_with(argument: Argument) -> list[tuple[int, Sequence[bytes]]]:
    """List the living processes that have this text in an argument."""
    wanted = os.fsencode(argument)
    processes: list[tuple[int, Sequence[bytes]]] = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            words = Path("/proc", name, "cmdline").read_bytes().split(b"\0")
            if int(name) != os.getpid() and any(wanted in word for word in words):
                processes.append((int(name), words))
    return processes


def default_signals() -> None:
    """In a child process: undo what a shell that runs the tests in the background has ignored."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def _end_supervisor(journal: Path, home: Path) -> None:
    """End a supervisor that a test left, known by its log or its state directory."""
    with suppress(OSError, ValueError, KeyError):
        pid = int(json.loads(journal.read_text().split("\n", 1)[0])["supervisor_pid"])
        process = Path("/proc", str(pid))
        log = os.readlink(process / "fd" / "2")  # a forked one has the environment of another
        if log == str(journal.parent / "log") or (
            os.fsencode(home) in (process / "environ").read_bytes()
        ):
            os.kill(pid, signal.SIGKILL)
