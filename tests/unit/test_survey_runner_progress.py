"""A survey under way: its counts so far, stopping it early, and questions to it."""

import itertools
import os
from pathlib import Path

import pytest

from tests.trees import hostile_names
from tests.unit.survey_trees import children_of, still
from tui_fs.survey.runner import Backend, SurveyRunner

BACKENDS = pytest.mark.parametrize("backend", ["scandir", "engine"])


@BACKENDS
def test_stopping_early_leaves_no_descriptor_and_no_process(
    tmp_path: Path, backend: Backend
) -> None:
    hostile_names(tmp_path / "t")
    before, family = len(os.listdir("/proc/self/fd")), children_of(os.getpid())
    survey = SurveyRunner([str(tmp_path)], interval_s=0, clock=still, backend=backend)
    running = survey.run()
    next(running)
    assert len(os.listdir("/proc/self/fd")) > before
    assert len(children_of(os.getpid()) - family) == (backend == "engine")
    running.close()  # type: ignore[attr-defined]  # a generator behind the Iterator
    assert len(os.listdir("/proc/self/fd")) == before
    assert children_of(os.getpid()) == family


@BACKENDS
def test_counts_so_far_only_grow(tmp_path: Path, backend: Backend) -> None:
    hostile_names(tmp_path / "t")
    survey = SurveyRunner([str(tmp_path)], interval_s=0, clock=still, backend=backend)
    seen = list(survey.run())
    assert len(seen) > 1
    for one, following in itertools.pairwise(seen):
        assert one.totals.entries <= following.totals.entries
        assert one.totals.allocated_bytes <= following.totals.allocated_bytes
        assert one.max_depth <= following.max_depth
    assert [one.finished for one in seen] == [False] * (len(seen) - 1) + [True]
    assert not any(one.complete for one in seen[:-1])


def test_a_question_is_heard_while_it_counts(tmp_path: Path) -> None:
    hostile_names(tmp_path / "t")
    asked, asks = os.pipe()
    os.write(asks, b"?")
    survey = SurveyRunner([str(tmp_path)], interval_s=3600, checks_surroundings=False)
    heard: list[bytes] = []

    def hear() -> None:
        heard.append(os.read(asked, 1))
        survey.flush_progress()

    seen = list(survey.run((asked, hear)))
    os.close(asked)
    os.close(asks)
    assert heard == [b"?"]
    assert [one.finished for one in seen] == [False, True]
