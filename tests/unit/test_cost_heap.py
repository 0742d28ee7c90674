"""How often the tools' heaps grow, and what else follows from memory, against what was counted."""

import itertools
import math
from dataclasses import replace

import pytest

from tests.unit.test_cost_calls import EMPTY, TEN_TIMES_100
from tui_fs.cost.calls import batches_of, predicted_calls
from tui_fs.model.paths import PathStr
from tui_fs.model.strategy import Options, StrategyName
from tui_fs.model.survey import LargeDirectory, LikePaths, Survey, Totals


def flat_survey(names: int, letters: int) -> Survey:
    """Return one directory of files."""
    return replace(
        EMPTY,
        totals=Totals(files=names, directories=1),
        max_entries_in_directory=names,
        non_empty_directories=1,
        non_directory_path_bytes=names * letters,
        non_directory_name_bytes=names * letters,
        top_non_directories=names,
    )


def test_the_heap_holds_the_largest_directory_and_is_kept_for_the_next() -> None:
    # Given three directories of 12,000 names / When predicted / Then it grows for one
    large = tuple(LargeDirectory(PathStr(f"/mnt/t/{n}"), 12_000, 0) for n in "abc")
    survey = replace(
        TEN_TIMES_100,
        totals=Totals(files=36_000, directories=4),
        non_empty_directories=4,
        max_entries_in_directory=12_000,
        non_directory_name_bytes=36_000 * 8,
        largest=(*large, LargeDirectory(PathStr("/mnt/t"), 3, 0)),
    )
    for kind in ("ext4", "tmpfs"):
        calls = predicted_calls(survey, StrategyName.RM, Options(), filesystem=kind)
        assert calls["brk"] == 3 + math.ceil(12_000 * 288 / 135_168)


def test_long_paths_fill_the_heap_of_each_rm_of_xargs() -> None:
    # Given 10,000 names with short paths, and as many whose paths have 1,500 bytes
    survey = replace(
        TEN_TIMES_100,
        totals=Totals(files=20_000, directories=11),
        non_directory_path_bytes=10_000 * 50 + 10_000 * 1_500,
        like_paths=(LikePaths(10_000, 10_000 * 50), LikePaths(10_000, 10_000 * 1_500)),
    )
    # When a hundred are given at once (of the long ones as many as a command line holds)
    calls = predicted_calls(survey, StrategyName.XARGS, Options(batch_size=100))
    # Then each rm of the long ones grows its heap once, and none of the short ones
    batches = batches_of(survey, Options(batch_size=100))
    long_batches = math.ceil(10_000 / 87)
    assert batches == 100 + long_batches
    assert calls["brk"] == pytest.approx(9 + 3 * batches + long_batches, abs=3)


def test_few_paths_of_each_length_share_their_rm() -> None:
    # Given 100 names of each of ten lengths, which one rm takes together
    alike = tuple(LikePaths(100, 100 * letters) for letters in range(20, 30))
    together = LikePaths(1_000, sum(like.path_bytes for like in alike))
    survey = replace(
        TEN_TIMES_100,
        totals=Totals(files=1_000, directories=11),
        non_directory_path_bytes=together.path_bytes,
    )
    # When predicted / Then its heap grows as for 1,000 names of their mean length
    several, one = (
        predicted_calls(replace(survey, like_paths=like), StrategyName.XARGS, Options())
        for like in (alike, (together,))
    )
    assert (
        several["brk"] == one["brk"] > predicted_calls(EMPTY, StrategyName.XARGS, Options())["brk"]
    )


@pytest.mark.parametrize(
    ("names", "letters", "growth"),
    [(440, 10, 0), (460, 10, 1), (920, 10, 2), (1_260, 50, 3), (1_080, 100, 2), (1_100, 100, 3)],
)
def test_the_heap_of_an_rm_grows_where_it_was_seen_to(
    names: int, letters: int, growth: int
) -> None:
    # Given arguments of one rm / When predicted / Then brk is called as it was, 3 times at least
    survey = replace(
        EMPTY,
        totals=Totals(files=names, directories=1),
        non_directory_path_bytes=names * letters,
        non_directory_name_bytes=names * letters,
    )
    calls = predicted_calls(survey, StrategyName.XARGS, Options(batch_size=5_000))
    find = predicted_calls(survey, StrategyName.FIND, Options())
    # beside it there are a second find and xargs, of 3 each
    assert calls["brk"] == find["brk"] + 6 + 3 + growth


def way(directories: dict[int, int], levels: int) -> tuple[int, ...]:
    """Return the entries of directories below each other: 1, or as many as are given."""
    return tuple(directories.get(level, 1) for level in range(levels))


@pytest.mark.parametrize(
    ("ways", "moves"),
    [
        pytest.param([way({}, 60)], 45, id="60 levels"),
        pytest.param([way({}, 200)], 117, id="200 levels"),
        pytest.param([way({}, 400)], 221, id="400 levels"),
        pytest.param([(11,) * 900], 490, id="900 levels of 10 files"),
        pytest.param([(301,) * 400], 287, id="400 levels of 300"),
        pytest.param([(901,) * 400], 414, id="400 levels of 900"),
        pytest.param([(2_001,) * 100], 111, id="100 levels of 2,000"),
        pytest.param([(10_001,) * 20], 62, id="20 levels of 10,000"),
        pytest.param([way(dict.fromkeys(range(5, 200, 10), 3_001), 200)], 135, id="some of 3,000"),
        pytest.param([(2, 300_000), way({0: 2}, 200)], 112, id="300,000 beside 200 levels"),
    ],
)
def test_rsync_keeps_a_list_for_each_level(ways: list[tuple[int, ...]], moves: int) -> None:
    # Given directories inside each other, as measured / When predicted / Then as was counted
    survey = replace(
        TEN_TIMES_100,
        totals=Totals(files=sum(map(sum, ways)), directories=sum(map(len, ways))),
        non_directory_name_bytes=11 * sum(map(sum, ways)),
        max_depth=max(map(len, ways)),
        max_entries_in_directory=max(map(max, ways)),
        most_by_level=tuple(map(max, itertools.zip_longest(*ways, fillvalue=0))),
        ways=tuple(ways),
    )
    calls = predicted_calls(survey, StrategyName.RSYNC, Options())
    assert calls["brk"] == pytest.approx(moves, abs=8)
    assert calls["mmap"] == 47


def test_of_lists_beside_the_way_down_the_heap_keeps_none() -> None:
    # Given 100 levels with 2,000 names beside each, as measured; the ways are not known
    survey = replace(
        TEN_TIMES_100,
        totals=Totals(files=200_000, directories=201),
        non_directory_name_bytes=11 * 200_000,
        max_depth=101,
        max_entries_in_directory=2_000,
        most_by_level=(2, *[2_000] * 100),
        largest=(LargeDirectory(PathStr("/t/a"), 2_000, 0),),
    )
    # When predicted / Then the heap moves 63 times, and in each level for large ones on one way
    assert predicted_calls(survey, StrategyName.RSYNC, Options())["brk"] == pytest.approx(63, abs=8)
    largest = tuple(LargeDirectory(PathStr(f"/t{'/b' * n}"), 2_000, 0) for n in range(100))
    calls = predicted_calls(replace(survey, largest=largest), StrategyName.RSYNC, Options())
    assert calls["brk"] == pytest.approx(111, abs=8)


@pytest.mark.parametrize(
    ("letters", "moves"), [(6, 77), (9, 88), (15, 88), (16, 101), (20, 101), (41, 138), (100, 223)]
)
def test_rsync_lists_names_in_steps_of_eight_bytes(letters: int, moves: int) -> None:
    # Given 400,000 names in one directory, as measured / When predicted / Then as was counted
    calls = predicted_calls(flat_survey(400_000, letters), StrategyName.RSYNC, Options())
    assert calls["brk"] == pytest.approx(moves, abs=4)


def test_rsync_reads_and_writes_nothing_about_what_is_gone() -> None:
    # Given many long names / When predicted / Then its processes say as much as for none
    none = predicted_calls(flat_survey(0, 0), StrategyName.RSYNC, Options())
    many = predicted_calls(flat_survey(120_000, 200), StrategyName.RSYNC, Options())
    assert {none[name] - many[name] for name in ("read", "write", "poll")} == {0}


def test_each_rm_that_keeps_the_root_holds_what_it_was_given() -> None:
    # Given 120,000 names of 11 letters, for which brk was called 500 times / When predicted
    calls = predicted_calls(flat_survey(120_000, 11), StrategyName.RM, Options(keep_root=True))
    # Then as often, nearly
    assert calls["brk"] == pytest.approx(500, abs=8)


def test_python_maps_no_list_below_the_limit_that_the_launcher_sets() -> None:
    # Given 120,000 names, for which mremap was not called, and ten times as many
    small, large = (
        predicted_calls(flat_survey(names, 11), StrategyName.RMTREE, Options())
        for names in (120_000, 1_200_000)
    )
    # When predicted / Then the list of the first is in the heap, the other's is mapped
    assert "mremap" not in small
    assert large["mremap"] > 10
