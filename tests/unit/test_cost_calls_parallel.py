"""What is predicted of the calls of the native engine."""

from collections import Counter
from dataclasses import replace

import pytest

from tests.unit.test_cost_calls import EMPTY, TEN_TIMES_100
from tui_fs.cost.calls import predicted_calls
from tui_fs.cost.calls_parallel import turns_up
from tui_fs.model.strategy import Options, Pace, StrategyName
from tui_fs.model.survey import Totals


def test_more_threads_cost_their_start_and_nothing_else() -> None:
    # Given the engine with one thread, and with four / When predicted
    one, four = (
        predicted_calls(TEN_TIMES_100, StrategyName.PARALLEL, Options(pace=Pace(threads=threads)))
        for threads in (1, 4)
    )
    # Then what is called on the tree is the same
    assert four["clone3"] - one["clone3"] == 3
    tree = ("unlinkat", "openat2", "getdents64", "statx")
    assert {name: one[name] for name in tree} == {name: four[name] for name in tree}


def test_a_deep_tree_is_opened_again_on_the_way_up() -> None:
    # Given a chain deeper than the engine holds open with one thread / When predicted
    options = Options(pace=Pace(threads=1))
    for levels, again in ((2_048, 0), (5_000, 2_952)):
        survey = replace(
            EMPTY,
            totals=Totals(directories=levels + 1),
            max_depth=levels,
            directory_reads=2 * (levels + 1),
        )
        calls = predicted_calls(survey, StrategyName.PARALLEL, options)
        # Then each level beyond is opened once more, and asked what it is
        assert calls["statx"] == levels + 1 + again


@pytest.mark.parametrize(
    ("directories", "files_each", "reads", "predicted"),
    [
        (1, 9_000, 18, 4),  # others read it by 17 calls and one more: 3 and 1
        (100, 3_600, 500, 200),  # by four and one more each: 1 and 1
    ],
)
def test_directories_are_read_in_large_pieces(
    directories: int, files_each: int, reads: int, predicted: int
) -> None:
    # Given directories that others read by so many calls of 32 KiB / When predicted
    survey = replace(
        EMPTY,
        totals=Totals(files=directories * files_each, directories=directories),
        directory_reads=reads,
        max_entries_in_directory=files_each,
    )
    # Then by an eighth where they are large, and all at once where not
    calls = predicted_calls(survey, StrategyName.PARALLEL, Options())
    assert calls["getdents64"] == predicted


@pytest.mark.parametrize(
    ("filesystem", "threads", "largest", "slices"),
    [
        ("tmpfs", 2, 120_000, 117),  # half of them, 512 at a time
        ("tmpfs", 4, 120_000, 175),
        ("tmpfs", 2, 60_000, 0),  # the other thread has as many elsewhere
        ("tmpfs", 1, 120_000, 0),
        ("xfs", 2, 120_000, 0),
    ],
)
def test_names_given_to_other_threads_take_a_descriptor_each_time(
    filesystem: str, threads: int, largest: int, slices: int
) -> None:
    # Given so many names in the largest directory of 120,000 / When predicted
    survey = replace(
        EMPTY,
        totals=Totals(files=120_000, directories=2),
        max_entries_in_directory=largest,
    )
    options = Options(pace=Pace(threads=threads))
    calls = predicted_calls(survey, StrategyName.PARALLEL, options, filesystem=filesystem)
    # Then each part of them is given with a descriptor of its own
    assert (calls.get("fcntl", 0), calls.get("fchdir", 0)) == (slices, slices)


@pytest.mark.parametrize(
    ("pace", "largest", "kept", "parts"),
    [
        (Pace(threads=2), 900_000, 806_400, 2),  # 27 bytes each, read in parts of 16 MiB
        (Pace(threads=2), 500_000, 86_400, 1),  # the other thread has 400,000 elsewhere
        (Pace(threads=2), 455_000, 7_000, 1),
        (Pace(threads=2), 450_500, 0, 0),  # of a thousand nobody keeps any
        (Pace(threads=1), 900_000, 0, 0),
        (Pace(threads=2, rate_per_s=1_000), 900_000, 0, 0),
        (Pace(threads=2, gentle=True), 900_000, 0, 0),
    ],
)
def test_names_that_another_thread_keeps_are_opened_and_closed(
    pace: Pace, largest: int, kept: int, parts: int
) -> None:
    # Given so many names of ten letters in the largest directory of 900,000 on ext4
    survey = replace(
        EMPTY,
        totals=Totals(files=900_000, directories=2),
        non_directory_name_bytes=9_000_000,
        max_entries_in_directory=largest,
    )
    # When predicted with and without what is known of the file system
    options = Options(pace=pace)
    there, elsewhere = (
        Counter(predicted_calls(survey, StrategyName.PARALLEL, options, filesystem=kind))
        for kind in ("ext4", "")
    )
    # Then most are opened and closed again, and for each part read there is one more descriptor
    assert (
        there - elsewhere
        == Counter(
            openat=kept,
            close=kept + parts,
            fcntl=parts,
            fchdir=parts,
            chdir=min(parts, pace.threads),
        )
        - Counter()
    )


@pytest.mark.parametrize(
    ("directories", "parents", "turns"),
    [(1, 0, 0), (2, 1, 1), (1_001, 1, 1), (1_901, 1_900, 1), (41, 14, 9.45)],
    ids=["one", "one below", "wide", "chain", "between"],
)
def test_a_chain_is_turned_in_once_as_a_wide_tree_is(
    directories: int, parents: int, turns: float
) -> None:
    # Given so many directories, of which so many hold others / When asked / Then it is so often
    totals = Totals(directories=directories)
    survey = replace(EMPTY, totals=totals, parent_directories=parents)
    assert turns_up(survey) == pytest.approx(turns)
