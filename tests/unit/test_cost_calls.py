"""Predicted system calls against counts that were measured."""

import math
from dataclasses import replace

import pytest

from tui_fs.cost.calls import RMDIR_CALLS, batches_of, predicted_calls, processes_started
from tui_fs.cost.calls_rm_find import COMMAND_BYTES, RM_ARGV_BYTES
from tui_fs.model.calls import REMOVING_CALLS
from tui_fs.model.paths import PathStr
from tui_fs.model.strategy import Filters, Options, StrategyName
from tui_fs.model.survey import LikePaths, Survey, Totals

TEN_TIMES_100 = Survey(
    path=PathStr("/mnt/t"),
    totals=Totals(files=1000, directories=11),
    max_depth=2,
    max_entries_in_directory=100,
    non_empty_directories=11,
    parent_directories=1,
    non_directory_parents=10,
    directory_reads=22,
    non_directory_path_bytes=1000 * len("/mnt/t/d0001/f0001"),
    non_directory_name_bytes=1000 * len("f0001"),
    top_directories=10,
    non_empty_levels=10,
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
                "unlink": 0,
                "rmdir": 11,
                "getdents64": 24,
                "openat": 54,
                "close": 64,
                "newfstatat": 1047,
            },
        ),
        (
            StrategyName.PARALLEL,
            {
                "unlinkat": 1011,
                "getdents64": 22,
                "openat2": 10,
                "statx": 11 + 3,  # the start asks three times, for the number of processors
                "fchdir": 10,
                "execve": 1,
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
    removing = sum(predicted.get(name, 0) for name in REMOVING_CALLS)
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
    fitting = (COMMAND_BYTES - RM_ARGV_BYTES) // 4001
    assert fitting == 32
    assert batches_of(survey, Options(batch_size=5000)) == 32


def test_batches_are_by_count_far_up_and_by_length_far_down() -> None:
    # Given a half of paths of 100 bytes and a half of 4,000 / When by a hundred / Then each has
    # batches of its own, and not those of a path of 2,050
    halves = (LikePaths(50_000, 50_000 * 100), LikePaths(50_000, 50_000 * 4_000))
    survey = replace(
        TEN_TIMES_100,
        totals=Totals(files=100_000, directories=11),
        non_directory_path_bytes=sum(half.path_bytes for half in halves),
        like_paths=halves,
    )
    assert batches_of(survey, Options(batch_size=100)) == 500 + math.ceil(50_000 / 32)


def test_a_name_longer_than_a_command_is_still_a_batch() -> None:
    # Given impossible lengths / When counted / Then one name a batch, not a division by zero
    survey = replace(TEN_TIMES_100, non_directory_path_bytes=1000 * (COMMAND_BYTES + 1))
    assert batches_of(survey, Options()) == 1000


def test_each_run_of_xargs_has_a_batch_of_its_own() -> None:
    # Given files that fit in one command line / When three xargs share them / Then three rm
    assert batches_of(TEN_TIMES_100, Options(), 3) == 3
    calls = predicted_calls(TEN_TIMES_100, StrategyName.XARGS, Options(), targets=3, runs=3)
    assert calls["clone"] == 3
    assert processes_started(TEN_TIMES_100, StrategyName.XARGS, Options(), 3) == 3 * 3 + 3


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


def test_rsync_takes_what_lies_in_the_target_by_unlink_and_the_rest_by_descriptors() -> None:
    # Given five files and two directories in the target, of which one holds three files
    survey = Survey(
        PathStr("/t"), Totals(files=8, directories=3), top_non_directories=5, top_directories=2
    )
    # When predicted / Then unlink for the five, rmdir for the two and the target, and unlinkat
    calls = predicted_calls(survey, StrategyName.RSYNC, Options())
    assert (calls["unlink"], calls["rmdir"], calls["unlinkat"]) == (5, 3, 3)


@pytest.mark.parametrize(
    ("strategy", "field"),
    [
        (StrategyName.RM, "tall_full_directories"),
        (StrategyName.FIND, "tall_directories"),
        (StrategyName.XARGS, "tall_directories"),
    ],
)
def test_what_is_too_tall_for_the_ring_is_opened_on_the_way_back(
    strategy: StrategyName, field: str
) -> None:
    # Given seven directories to which fts does not hold the way back / When predicted
    # Then each costs an open, a status and a close more; twice where two find run
    times = 2 if strategy is StrategyName.XARGS else 1
    flat = predicted_calls(TEN_TIMES_100, strategy, Options())
    tall = predicted_calls(replace(TEN_TIMES_100, **{field: 7}), strategy, Options())  # type: ignore[arg-type]
    differences = {name: tall[name] - flat[name] for name in tall if tall[name] != flat[name]}
    assert differences == dict.fromkeys(("openat", "newfstatat", "close"), 7 * times)


def test_find_starts_as_many_rm_as_the_names_need() -> None:
    # Given 30,000 names of eight bytes in the target / When it is to be kept
    survey = replace(
        TEN_TIMES_100,
        totals=Totals(files=30_000, directories=1),
        top_non_directories=30_000,
        top_directories=0,
        non_directory_name_bytes=30_000 * 8,
    )
    calls = predicted_calls(survey, StrategyName.RM, Options(keep_root=True))
    # Then "./name" and a NUL are eleven bytes, of which 11,912 fit in a command line: three rm
    assert (calls["clone"], calls["execve"]) == (3, 4)
    assert processes_started(survey, StrategyName.RM, Options(keep_root=True)) == 4


@pytest.mark.parametrize(
    ("strategy", "keep_root", "processes"),
    [
        (StrategyName.RM, False, 1),
        (StrategyName.RM, True, 2),
        (StrategyName.FIND, True, 1),
        (StrategyName.XARGS, False, 4),
        (StrategyName.RSYNC, False, 4),
        (StrategyName.RSYNC, True, 3),
        (StrategyName.RMTREE, False, 1),
        (StrategyName.PARALLEL, False, 1),
    ],
)
def test_processes_are_counted(strategy: StrategyName, keep_root: bool, processes: int) -> None:
    # Given a strategy / When asked / Then it starts so many
    options = Options(keep_root=keep_root)
    assert processes_started(TEN_TIMES_100, strategy, options) == processes


def test_an_empty_target_that_is_kept_needs_find_only() -> None:
    # Given nothing to hand to rm / When asked / Then find runs alone
    options = Options(keep_root=True)
    assert processes_started(EMPTY, StrategyName.RM, options) == 1
    assert predicted_calls(EMPTY, StrategyName.RM, options)["execve"] == 1


def test_paths_are_shorter_where_the_tools_run_in_the_target() -> None:
    # Given paths that fill six command lines / When named from the target / Then five are enough
    path = PathStr("/" + "t" * 59)
    survey = replace(TEN_TIMES_100, path=path, non_directory_path_bytes=1000 * 700)
    options = Options(batch_size=5000)
    assert batches_of(survey, options) == 6
    assert batches_of(survey, options, is_inside=True) == 5


def test_rmdir_is_a_process_of_its_own() -> None:
    # Given rmdir(1) / When counted / Then it executes once and removes once
    assert (RMDIR_CALLS["execve"], RMDIR_CALLS["rmdir"]) == (1, 1)
