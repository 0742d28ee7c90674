"""A survey under way: its counts so far, stopping it early, and the death of its walkers."""

import itertools
import os
import signal
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.conftest import wait_until
from tests.trees import hostile_names
from tests.unit.survey_trees import children_of, still
from tui_fs.model.errors import TuiFsError
from tui_fs.model.survey import Survey
from tui_fs.survey.scandir import ScandirSurvey

WALKERS = pytest.mark.parametrize("walkers", [1, 2, 3])


def test_stopping_early_leaves_no_descriptor_and_no_process(tmp_path: Path) -> None:
    # Given a survey under way
    hostile_names(tmp_path / "t")
    before, family = len(os.listdir("/proc/self/fd")), children_of(os.getpid())
    survey = ScandirSurvey([str(tmp_path)], interval_s=0, clock=still, walkers=3, backend="scandir")
    running = survey.run()
    next(running)
    assert len(os.listdir("/proc/self/fd")) > before
    assert len(children_of(os.getpid()) - family) == 3
    # When its reader loses interest / Then every descriptor is closed, every process gone
    running.close()  # type: ignore[attr-defined]  # a generator behind the Iterator
    assert len(os.listdir("/proc/self/fd")) == before
    assert children_of(os.getpid()) == family


def _stopped(processes: set[int]) -> list[int]:
    states = {
        one: Path("/proc", str(one), "stat").read_text().rpartition(")")[2].split()[0]
        for one in processes
    }
    return [one for one, state in states.items() if state == "T"]


def _with_one_halted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, walkers: int
) -> tuple[Iterator[Survey], list[Survey]]:
    """Give a survey of which one walker stands still in the middle of the tree."""
    hostile_names(tmp_path / "t")
    (tmp_path / "t" / "halt").mkdir()
    family = children_of(os.getpid())
    real = os.scandir

    def halting(path: bytes) -> AbstractContextManager[Iterator[os.DirEntry[bytes]]]:
        if os.path.basename(os.getcwd()) == "halt":
            os.kill(os.getpid(), signal.SIGSTOP)
        return real(path)

    monkeypatch.setattr(os, "scandir", halting)
    survey = ScandirSurvey(
        [str(tmp_path)], interval_s=0, walkers=walkers, looks_around=False, backend="scandir"
    )
    running = survey.run()
    seen: list[Survey] = []

    def is_halted() -> bool:
        seen.append(next(running))
        return bool(_stopped(children_of(os.getpid()) - family))

    wait_until(is_halted, "a walker that halts")
    return running, seen


@WALKERS
def test_a_walker_that_is_killed_never_gives_a_finished_survey(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, walkers: int
) -> None:
    # Given a survey of which one walker stands still
    family = children_of(os.getpid())
    running, seen = _with_one_halted(tmp_path, monkeypatch, walkers)
    # When that one is killed / Then it is an error that says so
    (halted,) = _stopped(children_of(os.getpid()) - family)
    os.kill(halted, signal.SIGKILL)
    with pytest.raises(TuiFsError, match="ended unexpectedly"):
        seen.extend(running)
    assert not any(survey.finished or survey.complete for survey in seen)
    assert children_of(os.getpid()) == family


@WALKERS
def test_counts_so_far_only_grow(tmp_path: Path, walkers: int) -> None:
    # Given a survey that tells its counts whenever it can
    hostile_names(tmp_path / "t")
    survey = ScandirSurvey([str(tmp_path)], interval_s=0, clock=still, walkers=walkers)
    seen = list(survey.run())
    # When looked at in order / Then no count falls, and only the last is finished
    assert len(seen) > 1
    for one, following in itertools.pairwise(seen):
        assert one.totals.entries <= following.totals.entries
        assert one.totals.allocated_bytes <= following.totals.allocated_bytes
        assert one.max_depth <= following.max_depth
    assert [one.finished for one in seen] == [False] * (len(seen) - 1) + [True]
    assert not any(one.complete for one in seen[:-1])


def test_a_question_is_heard_while_it_counts(tmp_path: Path) -> None:
    # Given a survey that tells nothing by itself before its end, and a question that has come
    hostile_names(tmp_path / "t")
    asked, asks = os.pipe()
    os.write(asks, b"?")
    survey = ScandirSurvey([str(tmp_path)], interval_s=3600, looks_around=False)
    heard: list[bytes] = []

    def hear() -> None:
        heard.append(os.read(asked, 1))
        survey.tell_at_once()

    # When it runs / Then the question is heard once, and there are counts at once
    seen = list(survey.run((asked, hear)))
    os.close(asked)
    os.close(asks)
    assert heard == [b"?"]
    assert [one.finished for one in seen] == [False, True]


def test_a_walker_that_stands_still_can_be_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a survey of which one walker stands still / When stopped / Then no process is left
    family = children_of(os.getpid())
    running, _ = _with_one_halted(tmp_path, monkeypatch, 2)
    running.close()  # type: ignore[attr-defined]  # a generator behind the Iterator
    assert children_of(os.getpid()) == family
