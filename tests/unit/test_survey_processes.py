"""A survey by a process that ignores SIGCHLD, and processes that it does not report."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.needs import needs_engine
from tests.trees import hostile_names
from tests.unit.survey_trees import children_of, naive
from tests.waiting_process import waiting_process
from tui_fs.survey.runner import SurveyRunner

_IGNORING = """
import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
from tui_fs.survey.runner import SurveyRunner
*_, survey = SurveyRunner(sys.argv[1:2], backend=sys.argv[2]).run()
print(survey.totals, survey.inodes, survey.finished, survey.complete)
try:
    print(os.waitpid(-1, os.WNOHANG))
except ChildProcessError:
    print("no child is left")
"""


def _printed(code: str, tree: Path, backend: str) -> list[str]:
    """Run a program over a tree; return the lines it prints."""
    command = [sys.executable, "-c", code, str(tree), backend]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (finished.returncode, finished.stderr) == (0, "")
    return finished.stdout.splitlines()


@pytest.mark.parametrize("backend", ["scandir", "engine"])
def test_it_counts_where_sigchld_is_ignored(tmp_path: Path, backend: str) -> None:
    # A process that ignores SIGCHLD, so that its children vanish when they end
    if backend == "engine":
        needs_engine()
    hostile_names(tmp_path)
    expected = naive(os.fsencode(tmp_path))
    assert _printed(_IGNORING, tmp_path, backend) == [
        f"{expected.totals} {expected.inodes} True True",
        "no child is left",
    ]


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[int, int]]:
    """Give a process at work in a directory, and one that it has started there."""
    script = "exec 3>by-parent; (echo; exec cat) 4>by-child; :"
    with waiting_process(["sh", "-c", script], cwd=tmp_path) as parent:
        (child,) = children_of(parent.pid)
        yield parent.pid, child


def _told_at_work(tree: Path, pids: tuple[int, int], family: int) -> tuple[bool, bool]:
    """Tell which of two processes a survey tells as being at work."""
    *_, survey = SurveyRunner([str(tree)], family=family).run()
    meanings = [one.meaning for one in survey.findings if one.kind == "in-use"]
    parent, child = (any(f"({pid})" in meaning for meaning in meanings) for pid in pids)
    return parent, child


def test_a_family_is_not_told_as_being_at_work(tmp_path: Path, pair: tuple[int, int]) -> None:
    parent, child = pair
    assert _told_at_work(tmp_path, pair, 0) == (True, True)
    assert _told_at_work(tmp_path, pair, parent) == (False, False)
    assert _told_at_work(tmp_path, pair, child) == (True, False)
    assert _told_at_work(tmp_path, pair, os.getpid()) == (False, False)
