"""Predicted peak memory against what was measured (MiB, by VmHWM)."""

from dataclasses import replace

import pytest

from tui_fs.cost.heap import entries_held, fts_entry_bytes, heap_growth
from tui_fs.cost.memory import peak_memory_bytes
from tui_fs.model.fts import FTS_ENTRIES_AT_ONCE
from tui_fs.model.paths import PathStr
from tui_fs.model.strategy import Options, Pace, StrategyName
from tui_fs.model.survey import LargeDirectory, Root, Survey, Totals

ROOT = PathStr("/t")


def flat(names: int, name_bytes: int = 8) -> Survey:
    """Survey one directory of so many files."""
    return Survey(
        ROOT,
        Totals(files=names, directories=1),
        max_depth=1,
        max_entries_in_directory=names,
        non_empty_directories=1,
        non_directory_name_bytes=names * name_bytes,
        non_directory_path_bytes=names * (name_bytes + 3),
        top_non_directories=names,
        largest=(LargeDirectory(ROOT, names, 0),),
        roots=(Root(ROOT, 1, 2),),
    )


EMPTY = Survey(ROOT, Totals(directories=1), roots=(Root(ROOT, 1, 2),))
DIRECTORIES = replace(
    flat(20_000), totals=Totals(directories=20_001), top_directories=20_000, top_non_directories=0
)
SOME_LARGE = replace(
    flat(36_000, 200),
    totals=Totals(files=360_000, directories=11),
    non_directory_name_bytes=360_000 * 200,
    largest=tuple(LargeDirectory(PathStr(f"/t/{one}"), 36_000, 0) for one in range(10)),
)
FEWER = replace(
    SOME_LARGE,
    totals=Totals(files=120_000, directories=11),
    non_directory_name_bytes=120_000 * 200,
    max_entries_in_directory=12_000,
    largest=tuple(LargeDirectory(PathStr(f"/t/{one}"), 12_000, 0) for one in range(10)),
)
WIDE = replace(
    flat(3_000, 200),
    totals=Totals(files=300_000, directories=101),
    non_directory_name_bytes=60_000_000,
)
LEVELS = replace(
    EMPTY,
    totals=Totals(files=240_000, directories=401),
    non_directory_name_bytes=240_000 * 5,
    non_empty_directories=400,
    non_empty_levels=400 * 200,
    max_entries_in_directory=601,
    max_depth=401,
)
CHAIN = replace(EMPTY, totals=Totals(directories=2_001), max_depth=2_000)
BESIDE = replace(
    EMPTY,
    totals=Totals(files=200_000, directories=201),
    non_directory_name_bytes=200_000 * 11,
    max_depth=101,
    most_by_level=(2, *[2_000] * 100),
    ways=((*[2] * 100, 2_000),),
)
"""2,000 names beside each of 100 levels."""
BESIDE_A_CHAIN = replace(
    EMPTY,
    totals=Totals(files=210_900, directories=1_001),
    non_directory_name_bytes=210_900 * 11,
    max_depth=301,
    most_by_level=(701, 300, *[4] * 299),
    ways=((701, *[4] * 300),),
)
"""700 directories of 300 files beside a chain of 300."""
NESTED = replace(
    EMPTY,
    totals=Totals(files=200_000, directories=21),
    non_directory_name_bytes=200_000 * 11,
    max_depth=20,
    most_by_level=(10_001,) * 20,
    ways=((10_001,) * 20,),
)
"""20 levels of 10,000: their lists are larger than what a list takes at least."""


@pytest.mark.parametrize(
    ("survey", "strategy", "filesystem", "measured_kib"),
    [
        (flat(1_000), StrategyName.RM, "tmpfs", 1_580),
        (flat(1_000), StrategyName.FIND, "tmpfs", 2_704),
        (flat(1_000), StrategyName.RSYNC, "tmpfs", 6_268),
        (flat(1_000), StrategyName.RMTREE, "tmpfs", 10_012),
        (flat(100_000), StrategyName.RM, "ext4", 30_944),
        (flat(100_000), StrategyName.FIND, "ext4", 31_924),
        (flat(100_000), StrategyName.XARGS, "ext4", 32_064),
        (flat(100_000), StrategyName.RSYNC, "ext4", 11_284),
        (flat(100_000), StrategyName.RMTREE, "ext4", 26_184),
        (flat(1_000_000), StrategyName.RM, "ext4", 31_164),
        (flat(1_000_000), StrategyName.FIND, "ext4", 32_172),
        (flat(1_000_000), StrategyName.RSYNC, "tmpfs", 63_940),
        (flat(1_000_000), StrategyName.RMTREE, "tmpfs", 160_308),
        (flat(50_000, 200), StrategyName.RM, "tmpfs", 24_796),
        (flat(50_000, 200), StrategyName.RSYNC, "tmpfs", 17_608),
        (flat(50_000, 200), StrategyName.RMTREE, "tmpfs", 28_344),
        (WIDE, StrategyName.RSYNC, "tmpfs", 6_332),
        (LEVELS, StrategyName.RSYNC, "tmpfs", 20_036),
        (BESIDE, StrategyName.RSYNC, "tmpfs", 16_500),
        (BESIDE_A_CHAIN, StrategyName.RSYNC, "tmpfs", 6_996),
        (NESTED, StrategyName.RSYNC, "tmpfs", 16_552),
        (DIRECTORIES, StrategyName.RM, "tmpfs", 6_668),
        (DIRECTORIES, StrategyName.RMTREE, "tmpfs", 26_340),
        (flat(1_000), StrategyName.PARALLEL, "tmpfs", 2_000),
        (flat(120_000), StrategyName.PARALLEL, "tmpfs", 5_228),
        (flat(1_000_000), StrategyName.PARALLEL, "tmpfs", 25_892),
        (flat(8_000, 200), StrategyName.PARALLEL, "tmpfs", 4_192),
        (SOME_LARGE, StrategyName.PARALLEL, "tmpfs", 19_440),
        (FEWER, StrategyName.PARALLEL, "ext4", 10_060),
        (CHAIN, StrategyName.RM, "tmpfs", 1_960),
        (CHAIN, StrategyName.FIND, "tmpfs", 2_940),
    ],
)
def test_memory_is_what_was_measured(
    survey: Survey, strategy: StrategyName, filesystem: str, measured_kib: int
) -> None:
    # Given a tree whose deletion was measured / When predicted / Then within 15 %
    told = peak_memory_bytes(survey, strategy, Options(pace=Pace(threads=2)), filesystem)
    assert told / 1024 == pytest.approx(measured_kib, rel=0.15)


def test_a_list_of_rsync_that_is_larger_takes_the_places_of_others() -> None:
    # Given 20 levels of 10,000 names, no two of which are below each other
    survey = replace(NESTED, ways=((*[2] * 19, 10_001),))
    # When predicted / Then each fills 128 KiB, and one takes more than that
    each, whole = 128 << 10, 10_001 * (48 + 9.5)
    told = peak_memory_bytes(survey, StrategyName.RSYNC, Options())
    base = peak_memory_bytes(EMPTY, StrategyName.RSYNC, Options())
    assert told - base == pytest.approx(19 * each + whole + 20 * 6_000, rel=0.001)


@pytest.mark.parametrize("strategy", StrategyName)
@pytest.mark.parametrize("keep_root", [False, True])
def test_an_empty_directory_needs_what_the_program_itself_needs(
    strategy: StrategyName, keep_root: bool
) -> None:
    # Given an empty directory / When predicted / Then some megabytes
    assert 1 << 20 < peak_memory_bytes(EMPTY, strategy, Options(keep_root=keep_root)) < 11 << 20


def test_long_paths_in_a_batch_may_need_more_than_find() -> None:
    # Given 100,000 names of ten bytes a directory, whose paths have 150 bytes
    survey = replace(
        flat(100_000), max_entries_in_directory=10, largest=(), non_directory_path_bytes=15_000_000
    )
    # When xargs hands on 800 at once / Then its rm holds those, and find only ten
    large = peak_memory_bytes(survey, StrategyName.XARGS, Options(batch_size=5000))
    small = peak_memory_bytes(survey, StrategyName.XARGS, Options(batch_size=10))
    assert large == small  # rm with 128 KiB of names is still smaller than find
    find = peak_memory_bytes(survey, StrategyName.FIND, Options())
    assert small == find


def test_directories_inside_each_other_are_held_together() -> None:
    # Given a large directory in a large directory, and one beside it
    survey = replace(
        EMPTY,
        totals=Totals(files=22_000, directories=4),
        max_entries_in_directory=9_000,
        max_depth=3,
        largest=(
            LargeDirectory(PathStr("/t/a/b"), 9_000, 0),
            LargeDirectory(PathStr("/t/ab"), 8_000, 0),
            LargeDirectory(PathStr("/t/a"), 5_000, 0),
        ),
    )
    # When asked how many names fts holds / Then those of one way down, and a few of its levels
    assert entries_held(survey) == 9_000 + 5_000 + 3


@pytest.mark.parametrize(
    ("names_held", "megabytes", "moves"),
    [
        pytest.param(63, 1.9, 0, id="listed before the way down"),
        pytest.param(359_100, 99.6, 723, id="listed after it"),
        pytest.param(None, 99.6, 723, id="not known: the most"),
    ],
)
def test_what_is_held_of_a_chain_is_what_is_listed_after_the_way_down(
    names_held: int | None, megabytes: float, moves: int
) -> None:
    # Given a chain of 1,900 directories with files, as measured on xfs and on tmpfs
    survey = replace(
        EMPTY,
        totals=Totals(files=359_100, directories=1_901),
        non_directory_name_bytes=6 * 359_100,
        max_entries_in_directory=190,
        max_depth=1_901,
        non_empty_directories=1_900,
        non_empty_levels=1_900 * 950,
        names_held=names_held,
    )
    # When asked / Then rm needs what it was seen to need, and moves the heap as often
    predicted = peak_memory_bytes(survey, StrategyName.RM, Options())
    assert predicted == pytest.approx(megabytes * 1e6, rel=0.06, abs=500_000)
    assert heap_growth(survey) == pytest.approx(moves, abs=5)


def test_fts_holds_no_more_than_it_reads_at_once() -> None:
    # Given ten million names / When asked / Then 100,000 and the level
    assert entries_held(flat(10_000_000)) == FTS_ENTRIES_AT_ONCE + 1


def test_an_entry_takes_steps_of_sixteen_bytes() -> None:
    # Given names / When rounded as malloc does / Then the measured 272, 288 and 480
    assert [fts_entry_bytes(letters) for letters in (6, 8, 200)] == [272, 288, 480]
    assert all(fts_entry_bytes(length) % 16 == 0 for length in range(1, 256))


def test_small_directories_fit_in_one_step_of_the_heap() -> None:
    # Given 10,000 directories of 20 names / When asked / Then it grows once at most
    survey = replace(
        flat(20),
        totals=Totals(files=200_000, directories=10_001),
        non_empty_directories=10_000,
        max_entries_in_directory=20,
        largest=(),
    )
    assert heap_growth(survey) == 1
