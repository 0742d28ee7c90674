"""A survey counts what a naive walk counts, reports progress, and leaves nothing open."""

import itertools
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.conftest import open_descriptors
from tests.trees import hostile_names
from tests.unit.survey_trees import (
    TREES,
    Tree,
    assert_counts,
    children_of,
    comb,
    deep,
    grown,
    naive,
    refuse_to_open,
    still,
    surveyed,
)
from tui_fs.model.finding import Severity
from tui_fs.survey.result import LARGEST_KEPT
from tui_fs.survey.runner import Backend, SurveyRunner

__all__ = ["deep"]

BACKENDS = pytest.mark.parametrize("backend", ["scandir", "engine"])


@given(TREES, st.sampled_from(["scandir", "engine"]))
@example({b"a": {b"x": "link", b"y": "link"}, b"b": "link"}, "scandir")
@example({b"\xff": {b"\n": {b"-rf": 1}}}, "scandir")
@settings(max_examples=120)
@pytest.mark.slow
def test_every_count_is_that_of_a_naive_walk(tree: Tree, backend: Backend) -> None:
    with grown(tree) as root:
        assert_counts(surveyed(root, backend=backend), naive(root))


@BACKENDS
def test_several_roots_are_counted_together(tmp_path: Path, backend: Backend) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / "t" / name / "below").mkdir(parents=True)
        (tmp_path / "t" / name / "below" / "file").write_bytes(b"x" * 5000)
    os.link(tmp_path / "t" / "a" / "below" / "file", tmp_path / "t" / "b" / "link")
    paths = [tmp_path / "t" / name for name in ("a", "b", "c")]
    survey = surveyed(*paths, backend=backend)
    whole = naive(os.fsencode(tmp_path / "t"))
    own = os.lstat(tmp_path / "t")
    assert survey.path == str(tmp_path / "t")
    assert survey.totals.directories == whole.totals.directories - 1
    assert survey.totals.files == whole.totals.files
    assert survey.totals.apparent_bytes == whole.totals.apparent_bytes - own.st_size
    assert survey.freed_bytes_min == survey.totals.allocated_bytes
    assert survey.inodes == whole.inodes - 1
    assert (survey.top_directories, survey.top_non_directories) == (3, 1)
    identities = [(str(path), os.lstat(path).st_dev, os.lstat(path).st_ino) for path in paths]
    assert [(root.path, root.device, root.inode) for root in survey.roots] == identities


def test_the_target_itself_is_not_followed_as_a_symlink(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(OSError):
        surveyed(tmp_path / "link")


def test_a_missing_target_is_an_error_and_leaves_nothing_open(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    before = open_descriptors()
    with pytest.raises(FileNotFoundError):
        surveyed(tmp_path / "there", tmp_path / "missing")
    assert open_descriptors() == before


@BACKENDS
def test_a_chain_with_waiting_siblings_everywhere_is_counted(deep: Path, backend: Backend) -> None:
    levels = 300
    comb(deep, levels)
    before = open_descriptors()
    survey = surveyed(deep, backend=backend)
    assert (survey.totals.directories, survey.totals.files) == (1 + 3 * levels, 3 * levels)
    assert survey.complete
    assert open_descriptors() == before


def test_an_unreadable_directory_makes_the_survey_incomplete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A directory that may not be opened (said by os.open, so that root is refused too)
    (tmp_path / "open").mkdir()
    (tmp_path / "secret").mkdir()
    (tmp_path / "open" / "x").touch()
    refuse_to_open(b"secret", monkeypatch)
    survey = surveyed(tmp_path)
    assert survey.totals == naive(os.fsencode(tmp_path)).totals
    assert (survey.totals.entries, survey.unreadable) == (4, 1)
    assert (survey.finished, survey.complete) == (True, False)
    (finding,) = survey.findings
    assert (finding.kind, finding.path) == ("unreadable", str(tmp_path / "secret"))


def _with_mounts(tmp_path: Path, *points: Path) -> str:
    table = tmp_path / "mountinfo"
    escaped = [os.fsencode(point).replace(b" ", b"\\040") for point in points]
    table.write_bytes(b"".join(b"50 1 0:50 / %s rw - tmpfs none rw\n" % point for point in escaped))
    return str(table)


def test_a_mount_point_is_counted_but_not_entered(tmp_path: Path) -> None:
    # A bind mount inside (the same st_dev), which only the mount table shows
    inside = tmp_path / "t" / "sub" / "a mount"
    inside.mkdir(parents=True)
    (inside / "must not be counted").touch()
    (tmp_path / "t" / "a mount").mkdir()
    (tmp_path / "t" / "a mount" / "not mounted").touch()
    survey = surveyed(tmp_path / "t", mountinfo=_with_mounts(tmp_path, inside))
    assert (survey.totals.directories, survey.totals.files) == (4, 1)
    assert (survey.complete, survey.vanished) == (True, 0)
    (finding,) = survey.findings
    assert (finding.kind, finding.severity) == ("mount-inside", Severity.CRITICAL)
    assert finding.path == str(inside)


def test_a_mount_beside_the_target_does_not_matter(tmp_path: Path) -> None:
    (tmp_path / "t" / "d").mkdir(parents=True)
    (tmp_path / "t" / "d" / "x").touch()
    survey = surveyed(tmp_path / "t", mountinfo=_with_mounts(tmp_path, tmp_path / "tt"))
    assert (survey.totals.files, survey.findings) == (1, ())


def test_mounts_below_the_root_directory_are_known() -> None:
    running = SurveyRunner(["/"], interval_s=0, clock=still, checks_surroundings=False).run()
    first = next(running)
    running.close()  # type: ignore[attr-defined]  # a generator behind the Iterator
    assert "/proc" in {finding.path for finding in first.findings}


def test_the_largest_directories_are_kept_in_order(tmp_path: Path) -> None:
    for number in range(LARGEST_KEPT + 5):
        (tmp_path / f"d{number}").mkdir()
        for file in range(number):
            (tmp_path / f"d{number}" / str(file)).touch()
    survey = surveyed(tmp_path)
    sizes = [row.entries for row in survey.largest]
    assert sizes == [LARGEST_KEPT + 5, *range(LARGEST_KEPT + 4, 5, -1)]
    assert survey.largest[1].path == str(tmp_path / f"d{LARGEST_KEPT + 4}")


@pytest.mark.parametrize(
    ("files", "reads"),
    [
        (0, 2),
        (1, 2),
        (1000, 2),
        (1022, 2),
        (1023, 3),
        (1024, 3),
        (5000, 6),
    ],
)
def test_reads_of_a_directory_are_those_that_find_needs(
    tmp_path: Path, files: int, reads: int
) -> None:
    # One directory of names of seven bytes: records of 32 bytes in a buffer of 32 KiB
    target = tmp_path / "t"
    target.mkdir()
    for number in range(files):
        (target / f"{number:07}").touch()
    assert surveyed(target).directory_reads == reads
    shutil.rmtree(target)


@BACKENDS
def test_stopping_early_leaves_no_descriptor_and_no_process(
    tmp_path: Path, backend: Backend
) -> None:
    hostile_names(tmp_path / "t")
    before, family = open_descriptors(), children_of(os.getpid())
    survey = SurveyRunner([str(tmp_path)], interval_s=0, clock=still, backend=backend)
    running = survey.run()
    next(running)
    assert open_descriptors() > before
    assert len(children_of(os.getpid()) - family) == (backend == "engine")
    running.close()  # type: ignore[attr-defined]  # a generator behind the Iterator
    assert open_descriptors() == before
    assert children_of(os.getpid()) == family


@BACKENDS
def test_counts_so_far_only_grow(tmp_path: Path, backend: Backend) -> None:
    hostile_names(tmp_path / "t")
    survey = SurveyRunner([str(tmp_path)], interval_s=0, clock=still, backend=backend)
    seen = list(survey.run())
    assert len(seen) > 1
    for state, following in itertools.pairwise(seen):
        assert state.totals.entries <= following.totals.entries
        assert state.totals.allocated_bytes <= following.totals.allocated_bytes
        assert state.max_depth <= following.max_depth
    assert [state.finished for state in seen] == [False] * (len(seen) - 1) + [True]
    assert not any(state.complete for state in seen[:-1])


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
    assert [state.finished for state in seen] == [False, True]


_PRINT_FREED = """
import sys
from tui_fs.survey.runner import SurveyRunner
*_, survey = SurveyRunner([sys.argv[1]]).run()
print(survey.freed_bytes_min, survey.freed_bytes_max)
"""


def test_a_target_that_tui_fs_itself_has_open_is_freed(tmp_path: Path) -> None:
    # As the preview does from its check until the job has started, and a child counts
    (tmp_path / "file").touch()
    descriptor = os.open(tmp_path, os.O_PATH | os.O_DIRECTORY)
    try:
        command = [sys.executable, "-c", _PRINT_FREED, str(tmp_path)]
        least, most = subprocess.check_output(command, text=True).split()
    finally:
        os.close(descriptor)
    assert least == most != "0"
