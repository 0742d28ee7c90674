"""Trees that break naive walks: very deep, very wide, changing, counted by both backends."""

import os
import resource
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import DEADLINE_S, Cli
from tests.namespaces import after_shell
from tests.pathologies.case import Scene
from tests.pathologies.counting import surveyed, totals_of_survey, totals_of_tools
from tests.pathologies.grounds import Grounds
from tests.pathologies.processes import hold
from tests.pathologies.shapes import make_subdirectories
from tests.trees import chain, flat, many_directories
from tests.unit.survey_trees import comb
from tui_fs.survey.runner import Backend, SurveyRunner

BACKENDS: tuple[Backend, ...] = ("scandir", "engine")
_DESCRIPTORS = 64
_DISTURBED_DIRECTORIES = 40
_DISTURBED_FILES = 500
_DISTURBED_S = 3.0


@pytest.fixture
def tmpfs_place(grounds: Grounds) -> Path:
    """Return an empty directory on tmpfs."""
    return grounds.directory_on("tmpfs")


@pytest.fixture(scope="module")
def spread(grounds: Grounds) -> Path:
    """Make a tree with some large, some deep, and many small directories."""
    tree = grounds.directory_on("tmpfs")
    many_directories(tree / "small", 500, 20)
    flat(tree / "large", 30_000)
    (tree / "deep").mkdir()
    comb(tree / "deep", 1_000)
    (tree / "linked").mkdir()
    for number in range(200):
        (tree / "linked" / f"file-{number}").write_bytes(b"x" * 5_000)
        for again in range(number % 5, 500, 50):
            name = tree / "small" / f"directory-{again:05}" / f"again-{number}"
            os.link(tree / "linked" / f"file-{number}", name)
    return tree


class TestDepth:
    """Chains of directories."""

    def test_counts_a_chain_of_100_000_levels(self, tmpfs_place: Path) -> None:
        levels = 100_000
        chain(tmpfs_place, levels)

        survey = surveyed(tmpfs_place)

        assert survey.complete
        assert (survey.totals.directories, survey.totals.entries) == (levels + 1, levels + 1)
        assert survey.max_depth == levels
        assert survey.max_path_bytes == len(os.fsencode(tmpfs_place)) + 2 * levels
        assert "deep" in {finding.kind for finding in survey.findings}

    def test_time_grows_with_the_levels_and_not_with_their_square(
        self, tmpfs_place: Path, cli: Cli
    ) -> None:
        # A chain with a directory on both sides at every level; to open each again by
        # the path from the top would take 400 million calls, longer than the deadline of `run`
        levels = 20_000
        comb(tmpfs_place, levels)

        report = cli.run("survey", "--json", "--", tmpfs_place).expect(0).object()

        assert report["complete"] is True
        assert report["directories"] == 3 * levels + 1
        assert report["max_depth"] == levels + 1


def test_counts_100_000_subdirectories(tmpfs_place: Path) -> None:
    number = 100_000
    make_subdirectories(tmpfs_place, number)

    survey = surveyed(tmpfs_place)

    assert survey.complete
    assert survey.totals.directories == number + 1
    assert survey.max_entries_in_directory == number
    kinds = {finding.kind for finding in survey.findings}
    assert {"flat", "many-subdirectories"} <= kinds


class TestBackends:
    """The engine and the walker count one tree."""

    @pytest.mark.parametrize("backend", BACKENDS)
    def test_they_count_what_find_and_du_count(self, spread: Path, backend: Backend) -> None:
        assert totals_of_survey(spread, backend) == totals_of_tools(spread)

    def test_few_descriptors_are_enough(self, spread: Path, cli: Cli) -> None:
        limited = cli.wrapped(after_shell(f"ulimit -n {_DESCRIPTORS}"))
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > _DESCRIPTORS

        finished = limited.run("survey", "--json", "--", spread).expect(0)

        report, expected = finished.object(), totals_of_tools(spread)
        assert report["complete"] is True
        assert report["entries"] == expected["entries"]
        assert report["allocated_bytes"] == expected["allocated bytes"]


class TestDisturbedTree:
    """A process that continuously renames, removes and makes entries."""

    @pytest.fixture
    def disturbed(self, grounds: Grounds) -> Iterator[Path]:
        """Yield a tree that a process changes, always of about the same size."""
        scene = Scene(grounds.directory_on("tmpfs"), "tmpfs")
        tree = scene.tree()
        many_directories(tree, _DISTURBED_DIRECTORIES, _DISTURBED_FILES)
        flat(scene.place / "outside", 10 * _DISTURBED_FILES)
        with scene.until_the_end:
            hold(scene, "disturb", tree)
            yield tree

    def test_the_survey_ends_with_plausible_counts(self, disturbed: Path) -> None:
        vanished = 0
        began_s = time.monotonic()
        while not vanished or time.monotonic() - began_s < _DISTURBED_S:
            survey = surveyed(disturbed)
            vanished += survey.vanished
            totals = survey.totals
            # One directory may be met twice or not at all when it is renamed, a short-lived one
            # may be there; in each directory twenty files come and go. What a link leads to for
            # a moment is never counted (ten times as many as a directory holds).
            assert survey.unreadable == 0
            assert survey.complete
            assert abs(totals.directories - _DISTURBED_DIRECTORIES - 1) <= 2
            whole = _DISTURBED_DIRECTORIES * _DISTURBED_FILES
            going = 20 * _DISTURBED_DIRECTORIES
            assert abs(totals.files - whole) <= 2 * _DISTURBED_FILES + going
            assert time.monotonic() - began_s < DEADLINE_S, "no name ever vanished"

    def test_the_survey_of_a_tree_that_is_deleted_ends(self, tmpfs_place: Path) -> None:
        tree = tmpfs_place / "tree"
        many_directories(tree, 2_000, 20)
        counting = SurveyRunner([str(tree)], interval_s=0.0).run()
        next(counting)

        with subprocess.Popen(["rm", "-rf", tree]) as rm:
            *_, survey = counting

        assert rm.returncode == 0
        assert survey.finished
        assert survey.totals.files <= 40_000
        assert survey.totals.directories <= 2_001
