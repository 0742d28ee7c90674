"""Predicted system calls against counts that were measured."""

from dataclasses import replace

import pytest

from tui_fs.cost.calls import XARGS_COMMAND_BYTES, batches_of, predicted_calls
from tui_fs.model.paths import PathStr
from tui_fs.model.strategy import Filters, Options, StrategyName
from tui_fs.model.survey import Survey, Totals

TEN_TIMES_100 = Survey(
    path=PathStr("/mnt/t"),
    totals=Totals(files=1000, directories=11),
    max_depth=2,
    max_entries_in_directory=100,
    non_empty_directories=11,
    parent_directories=1,
    directory_reads=22,
    non_directory_path_bytes=1000 * len("/mnt/t/d0001/f0001"),
    finished=True,
    complete=True,
)
"""Ten directories of a hundred files: the tree whose counts were measured."""

EMPTY = Survey(
    path=PathStr("/mnt/t"),
    totals=Totals(directories=1),
    directory_reads=2,
    finished=True,
    complete=True,
)


@pytest.mark.parametrize(
    ("strategy", "measured"),
    [
        (
            StrategyName.RM,
            {
                "unlinkat": 1011,
                "getdents64": 33,
                "openat": 24,
                "close": 38,
                "newfstatat": 36,
                "fcntl": 55,
            },
        ),
        (
            StrategyName.FIND,
            {
                "unlinkat": 1011,
                "getdents64": 22,
                "openat": 18,
                "close": 52,
                "newfstatat": 39,
                "fcntl": 54,
            },
        ),
        (
            StrategyName.XARGS,
            {
                "unlinkat": 1011,
                "getdents64": 46,
                "openat": 42,
                "close": 111,
                "newfstatat": 1085,
                "execve": 4,
                "clone": 1,
                "wait4": 1,
            },
        ),
        (
            StrategyName.RSYNC,
            {
                "unlinkat": 1000,
                "rmdir": 11,
                "getdents64": 24,
                "openat": 54,
                "close": 64,
                "newfstatat": 1047,
            },
        ),
    ],
)
def test_the_formulas_give_what_was_measured(
    strategy: StrategyName, measured: dict[str, int]
) -> None:
    # Given the survey of the tree that was measured / When predicted / Then the counts are equal
    predicted = predicted_calls(TEN_TIMES_100, strategy, Options())
    assert {name: predicted.get(name, 0) for name in measured} == measured


@pytest.mark.parametrize("strategy", StrategyName)
@pytest.mark.parametrize("survey", [EMPTY, TEN_TIMES_100], ids=["empty", "full"])
@pytest.mark.parametrize("keep_root", [False, True])
def test_every_prediction_is_sorted_and_positive(
    strategy: StrategyName, survey: Survey, keep_root: bool
) -> None:
    # Given any strategy and tree / When predicted / Then names are in order and counts above zero
    predicted = predicted_calls(survey, strategy, Options(keep_root=keep_root))
    assert list(predicted) == sorted(predicted)
    assert all(number > 0 for number in predicted.values())


@pytest.mark.parametrize("strategy", StrategyName)
@pytest.mark.parametrize("survey", [EMPTY, TEN_TIMES_100], ids=["empty", "full"])
@pytest.mark.parametrize("keep_root", [False, True])
def test_what_removes_adds_up_to_the_entries(
    strategy: StrategyName, survey: Survey, keep_root: bool
) -> None:
    # Given any strategy and tree / When predicted / Then each entry is removed once
    predicted = predicted_calls(survey, strategy, Options(keep_root=keep_root))
    removing = predicted.get("unlinkat", 0) + predicted.get("rmdir", 0)
    assert removing == survey.totals.entries - keep_root


def test_keeping_the_root_makes_find_start_rm() -> None:
    # Given rm that is to keep the target / When predicted / Then there are two programs
    calls = predicted_calls(TEN_TIMES_100, StrategyName.RM, Options(keep_root=True))
    assert (calls["execve"], calls["clone"], calls["unlinkat"]) == (2, 1, 1010)


def test_keeping_the_root_saves_rsync_its_rmdir() -> None:
    # Given rsync that is to keep the target / When predicted / Then rmdir(1) does not run
    removing = predicted_calls(TEN_TIMES_100, StrategyName.RSYNC, Options())
    keeping = predicted_calls(TEN_TIMES_100, StrategyName.RSYNC, Options(keep_root=True))
    assert (removing["execve"], keeping["execve"]) == (2, 1)
    assert (removing["rmdir"], keeping["rmdir"]) == (11, 10)


@pytest.mark.parametrize("strategy", [StrategyName.FIND, StrategyName.XARGS])
def test_with_filters_only_removals_are_predicted(strategy: StrategyName) -> None:
    # Given a filter that matches 70 files / When predicted / Then 70 removals and no claim else
    survey = replace(TEN_TIMES_100, matched=Totals(files=70))
    options = Options(filters=Filters(name_glob="x*"))
    assert predicted_calls(survey, strategy, options) == {"unlinkat": 70}


@pytest.mark.parametrize(
    ("batch_size", "batches"), [(1, 1000), (7, 143), (999, 2), (1000, 1), (5000, 1)]
)
def test_batches_are_by_count(batch_size: int, batches: int) -> None:
    # Given 1,000 files / When in batches of this many / Then this many rm run
    assert batches_of(TEN_TIMES_100, Options(batch_size=batch_size)) == batches


def test_batches_are_by_length_where_names_are_long() -> None:
    # Given paths of 4,000 bytes / When xargs fills its command line / Then 32 fit in one
    survey = replace(TEN_TIMES_100, non_directory_path_bytes=1000 * 4000)
    fitting = (XARGS_COMMAND_BYTES - 32) // 4001
    assert fitting == 32
    assert batches_of(survey, Options(batch_size=5000)) == 32


def test_a_name_longer_than_a_command_is_still_a_batch() -> None:
    # Given impossible lengths / When counted / Then one name a batch, not a division by zero
    survey = replace(TEN_TIMES_100, non_directory_path_bytes=1000 * (XARGS_COMMAND_BYTES + 1))
    assert batches_of(survey, Options()) == 1000


def test_no_files_need_no_batch() -> None:
    # Given directories only / When counted / Then xargs starts nothing (-r)
    assert batches_of(EMPTY, Options()) == 0
    assert "clone" not in predicted_calls(EMPTY, StrategyName.XARGS, Options())


def test_small_batches_cost_processes() -> None:
    # Given one rm for each file / When predicted / Then a thousand and three programs start
    calls = predicted_calls(TEN_TIMES_100, StrategyName.XARGS, Options(batch_size=1))
    assert (calls["execve"], calls["clone"], calls["wait4"]) == (1003, 1000, 1000)


@pytest.mark.parametrize("keep_root", [False, True])
@pytest.mark.parametrize("strategy", StrategyName)
def test_several_directories_cost_what_they_cost_alone_but_for_the_starts(
    strategy: StrategyName, keep_root: bool
) -> None:
    # Given a survey of one, and how the tools are started for three such
    options = Options(keep_root=keep_root)
    alone = predicted_calls(TEN_TIMES_100, strategy, options)
    three = replace(
        TEN_TIMES_100,
        totals=replace(
            TEN_TIMES_100.totals,
            files=3 * TEN_TIMES_100.totals.files,
            directories=3 * TEN_TIMES_100.totals.directories,
        ),
    )
    removing = ("unlink", "unlinkat", "rmdir")

    def removed(calls: dict[str, int]) -> int:
        return sum(calls.get(name, 0) for name in removing)

    # When predicted, in one run or in three / Then all entries, and the execs of each run
    for runs in (1, 3):
        if runs == 1 and (strategy is StrategyName.RSYNC or (strategy, keep_root) == RM_KEEPS):
            continue  # these take one at once
        found = predicted_calls(three, strategy, options, targets=3, runs=runs)
        assert removed(found) == 3 * removed(alone)
        if strategy is not StrategyName.XARGS:
            assert found["execve"] == runs * alone["execve"]


RM_KEEPS = (StrategyName.RM, True)
