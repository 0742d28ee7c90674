"""The native engine as a process: broken, killed, stopped, and left alone."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acl import NAMED_GROUP, NAMED_USER, grant
from tests.conftest import Cli, open_descriptors, wait_until
from tests.needs import needs_engine, needs_root
from tests.trees import hostile_names
from tests.unit.survey_trees import assert_counts, children_of, naive
from tui_fs.linux.tools import find_engine
from tui_fs.model.errors import Missing, TuiFsError
from tui_fs.model.survey import Survey
from tui_fs.survey import runner
from tui_fs.survey.engine import RECORD_FORMAT
from tui_fs.survey.runner import Backend, SurveyRunner

DAEMON, NOBODY = 1, 65534

_MESSAGE = bytes((RECORD_FORMAT,))
"""The version of the record format in MessagePack."""


def _install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Let a script be the engine."""
    path = tmp_path / "engine"
    path.write_text(script)
    path.chmod(0o755)
    monkeypatch.setattr(runner, "find_engine", lambda: str(path))


def _printing(*messages: bytes) -> str:
    """Return a script that sends messages and waits."""
    whole = b"".join(len(message).to_bytes(4, "little") + message for message in messages)
    octal = "".join(f"\\{byte:03o}" for byte in whole)
    return f"#!/bin/sh\nprintf '{octal}'\nexec sleep 1000\n"


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        ("#!/no/such/interpreter\n", "cannot be started: No such file"),
        ("not a program", "cannot be started: Exec format error"),
        ("#!/bin/sh\nexit 3\n", "cannot count"),
        ("#!/bin/sh\necho 'tui-fs-engine: no such thing' >&2; exit 2\n", "count: no such thing"),
        ("#!/bin/sh\nprintf 'tui-fs-engine 9.9.9'\n", "cannot count"),
        (_printing(bytes((RECORD_FORMAT + 1,))), "have different versions"),
        (_printing(_MESSAGE, b"\x91\x90"), "have different versions"),
        (_printing(_MESSAGE, b"no MessagePack"), "have different versions"),
        (_printing(b""), "have different versions"),
    ],
)
def test_an_engine_that_cannot_be_used_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, sentence: str
) -> None:
    _install(tmp_path, monkeypatch, script)
    before, family = open_descriptors(), children_of(os.getpid())
    with pytest.raises(TuiFsError, match=sentence) as error:
        list(SurveyRunner([str(tmp_path)], backend="engine").run())
    assert "Reinstall tui-fs" in error.value.advice
    # And nothing is left of it
    assert open_descriptors() == before
    assert children_of(os.getpid()) == family


def test_an_engine_killed_before_it_says_anything_may_be_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _install(tmp_path, monkeypatch, "#!/bin/sh\nkill -KILL $$\n")
    with pytest.raises(TuiFsError, match="exited unexpectedly") as error:
        list(SurveyRunner([str(tmp_path)], backend="engine").run())
    assert error.value.advice == "Count again."


def test_without_an_engine_the_walkers_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "find_engine", lambda: None)
    *_, survey = SurveyRunner([str(tmp_path)]).run()
    assert (survey.backend, survey.complete) == ("scandir", True)
    with pytest.raises(Missing):
        SurveyRunner([str(tmp_path)], backend="engine")


class TestEngine:
    """The real one."""

    @pytest.fixture(autouse=True)
    def engine(self) -> str:
        """Return its path."""
        needs_engine()
        return find_engine() or ""

    @pytest.fixture
    def many(self, tmp_path: Path) -> Path:
        """Return a tree whose records exceed the capacity of a pipe."""
        root = tmp_path / "many"
        for number in range(2_000):
            (root / f"{number % 20}" / f"directory-{number}").mkdir(parents=True)
        return root

    def test_it_is_used_where_it_is(self, tmp_path: Path, cli: Cli) -> None:
        hostile_names(tmp_path / "t")
        *_, survey = SurveyRunner([str(tmp_path / "t")], checks_surroundings=False).run()
        assert survey.backend == "engine"
        assert_counts(survey, naive(os.fsencode(tmp_path / "t")))
        report = cli.run("survey", "--json", tmp_path / "t").expect(0).object()
        assert (report["backend"], report["entries"]) == ("engine", survey.totals.entries)

    def _begun(self, many: Path) -> tuple[Iterator[Survey], int]:
        family = children_of(os.getpid())
        running = SurveyRunner([str(many)], interval_s=0, checks_surroundings=False).run()
        assert not next(running).finished
        (pid,) = children_of(os.getpid()) - family
        return running, pid

    def test_its_death_is_reported(self, many: Path) -> None:
        running, pid = self._begun(many)
        os.kill(pid, signal.SIGKILL)
        seen: list[Survey] = []
        with pytest.raises(TuiFsError, match="exited unexpectedly"):
            seen.extend(running)
        assert not any(survey.finished or survey.complete for survey in seen)
        assert pid not in children_of(os.getpid())

    def test_stopping_early_leaves_nothing(self, many: Path) -> None:
        before = open_descriptors()
        running, pid = self._begun(many)
        os.kill(pid, signal.SIGSTOP)
        running.close()  # type: ignore[attr-defined]  # a generator behind the Iterator
        assert pid not in children_of(os.getpid())
        assert open_descriptors() == before

    @pytest.mark.parametrize("is_paused", [False, True])
    def test_it_ends_with_who_started_it(self, many: Path, is_paused: bool) -> None:
        # A process that surveys in a group of its own, paused or not
        with subprocess.Popen(
            [sys.executable, "-c", _WAITING, many],
            stdout=subprocess.PIPE,
            start_new_session=True,
        ) as process:
            assert process.stdout is not None
            pid = int(process.stdout.readline())
            assert os.getpgid(pid) == process.pid
            if is_paused:
                # Stopped before it has asked to end with its parent it could not know.
                wait_until(lambda: _state(pid) == "S", "an engine that waits for its workers")
                os.killpg(process.pid, signal.SIGSTOP)
                wait_until(lambda: _state(pid) == "T", "an engine that stands still")
            process.kill()
        wait_until(lambda: _state(pid) in "ZX", "the end of the engine")

    def test_another_directory_in_the_place_is_refused(self, tmp_path: Path, engine: str) -> None:
        status = tmp_path.stat()
        pin = f"{status.st_dev}:{status.st_ino + 1}"
        finished = subprocess.run(
            [engine, "survey", "--pin", pin, "--", tmp_path], capture_output=True, check=False
        )
        assert finished.returncode == 1
        assert finished.stdout == len(_MESSAGE).to_bytes(4, "little") + _MESSAGE
        assert finished.stderr.count(b"\n") == 1
        assert b"another directory" in finished.stderr

    @pytest.mark.parametrize("words", [[], ["--threads", "x", "/"], ["--odd", "/"]])
    def test_what_cannot_be_meant_is_wrong_usage(self, words: list[str], engine: str) -> None:
        finished = subprocess.run([engine, "survey", *words], capture_output=True, check=False)
        assert (finished.returncode, finished.stdout) == (2, b"")
        assert finished.stderr


_WAITING = """
import os, signal, sys
from tests.unit.survey_trees import children_of
from tui_fs.survey.runner import SurveyRunner
runner = SurveyRunner([sys.argv[1]], interval_s=0, checks_surroundings=False, backend="engine")
running = runner.run()
next(running)
print(*children_of(os.getpid()), flush=True)
signal.pause()
"""


def _state(pid: int) -> str:
    try:
        return Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


@pytest.mark.parametrize("backend", ["scandir", "engine"])
def test_both_backends_count_the_directories_that_an_acl_opens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, backend: Backend
) -> None:
    needs_root("giving directories away")
    if backend == "engine":
        needs_engine()
    lists: dict[str, tuple[int, int, int, int] | None] = {
        "without": None,
        "nobody writes": (NAMED_USER, NOBODY, 7, 7),
        "a group writes": (NAMED_GROUP, NOBODY, 7, 7),
        "nobody reads": (NAMED_USER, NOBODY, 5, 7),
        "masked": (NAMED_USER, NOBODY, 7, 5),
        "the user writes": (NAMED_USER, 0, 7, 7),
    }
    tree = tmp_path / "tree"
    for name, entry in lists.items():
        (tree / name).mkdir(parents=True)
        os.chown(tree / name, 0, DAEMON)
        (tree / name).chmod(0o775)
        if entry is not None:
            grant(tree / name, *entry)
    monkeypatch.setattr(os, "geteuid", lambda: DAEMON)
    *_, survey = SurveyRunner([str(tree)], checks_surroundings=False, backend=backend).run()
    # Those count whose list grants write access to another user
    assert (survey.backend, survey.writable_by_others) == (backend, 2)
