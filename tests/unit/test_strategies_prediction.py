"""Predicted calls, processes and memory of each strategy against what was measured."""

import pytest
from msgspec.structs import replace

from tui_fs.model.calls import REMOVING_CALLS
from tui_fs.model.paths import PathStr
from tui_fs.model.strategy import Filters, Options, Pace, StrategyName
from tui_fs.model.survey import LargeDirectory, Root, Survey, Totals
from tui_fs.strategies.fts import COMMAND_BYTES, RM_ARGV_BYTES
from tui_fs.strategies.prediction import Work, about_bytes, reopened_directories
from tui_fs.strategies.registry import STRATEGIES

TEN_TIMES_100 = Survey(
    path=PathStr("/mnt/t"),
    totals=Totals(files=1000, directories=11),
    max_depth=2,
    max_entries_in_directory=100,
    non_empty_directories=11,
    parent_directories=1,
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


def calls_of(strategy: StrategyName, work: Work) -> dict[str, int]:
    """Return the calls that are predicted by name."""
    return STRATEGIES[strategy].predicted_calls(work).calls


def batches_of(survey: Survey, options: Options | None = None, **how: int) -> int:
    """Return how many rm xargs starts."""
    work = Work(survey, options or Options(), **how)  # type: ignore[arg-type]
    return STRATEGIES[StrategyName("xargs")].child_processes(work)


@pytest.mark.parametrize(
    ("strategy", "measured"),
    [
        (
            StrategyName("rm"),
            {
                "unlinkat": 1011,
                "getdents64": 33,
                "openat": 24,
                "newfstatat": 36,
            },
        ),
        (
            StrategyName("find"),
            {
                "unlinkat": 1011,
                "getdents64": 22,
                "openat": 18,
                "newfstatat": 39,
            },
        ),
        (
            StrategyName("xargs"),
            {
                "unlinkat": 1011,
                "getdents64": 46,
                "openat": 42,
                "newfstatat": 1085,
                "execve": 4,
                "clone": 1,
            },
        ),
        (
            StrategyName("rsync"),
            {
                "unlinkat": 1000,
                "unlink": 0,
                "rmdir": 11,
                "getdents64": 24,
                "openat": 54,
                "newfstatat": 1047,
            },
        ),
        (
            StrategyName("parallel"),
            {
                "unlinkat": 1011,
                "getdents64": 22,
                "openat2": 10,
                "statx": 15,
                "execve": 1,
            },
        ),
    ],
)
def test_the_tables_give_what_was_measured(
    strategy: StrategyName, measured: dict[str, int]
) -> None:
    predicted = calls_of(strategy, Work(TEN_TIMES_100))
    assert {name: predicted.get(name, 0) for name in measured} == measured


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("survey", [EMPTY, TEN_TIMES_100], ids=["empty", "full"])
@pytest.mark.parametrize("keep_root", [False, True])
def test_every_prediction_is_sorted_positive_and_removes_the_entries(
    strategy: StrategyName, survey: Survey, keep_root: bool
) -> None:
    predicted = calls_of(strategy, Work(survey, Options(keep_root=keep_root)))
    assert list(predicted) == sorted(predicted)
    assert all(number > 0 for number in predicted.values())
    removing = sum(predicted.get(name, 0) for name in REMOVING_CALLS)
    assert removing == survey.totals.entries - keep_root


@pytest.mark.parametrize("strategy", [StrategyName("find"), StrategyName("xargs")])
def test_with_filters_only_removals_are_predicted(strategy: StrategyName) -> None:
    survey = replace(TEN_TIMES_100, matched=Totals(files=70))
    options = Options(filters=Filters(name_glob="x*"))
    assert calls_of(strategy, Work(survey, options)) == {"unlinkat": 70}


@pytest.mark.parametrize(
    ("batch_size", "batches"), [(1, 1000), (7, 143), (999, 2), (1000, 1), (5000, 1)]
)
def test_batches_are_by_count(batch_size: int, batches: int) -> None:
    assert batches_of(TEN_TIMES_100, Options(batch_size=batch_size)) == batches


@pytest.mark.parametrize(
    ("path_bytes", "batches"),
    [
        (4000, -(-1000 // ((COMMAND_BYTES - RM_ARGV_BYTES) // 4001))),
        (COMMAND_BYTES + 1, 1000),  # a name longer than a command is still a batch
    ],
)
def test_batches_are_by_length_where_names_are_long(path_bytes: int, batches: int) -> None:
    survey = replace(TEN_TIMES_100, non_directory_path_bytes=1000 * path_bytes)
    assert batches_of(survey, Options(batch_size=5000)) == batches


def test_each_run_of_xargs_has_a_batch_of_its_own() -> None:
    assert batches_of(TEN_TIMES_100, runs=3) == 3
    work = Work(TEN_TIMES_100, targets=3, runs=3)
    assert calls_of(StrategyName("xargs"), work)["clone"] == 3
    assert STRATEGIES[StrategyName("xargs")].processes(work) == 3 * 3 + 3


def test_no_files_need_no_batch() -> None:
    assert batches_of(EMPTY, Options()) == 0
    assert "clone" not in calls_of(StrategyName("xargs"), Work(EMPTY, Options()))


@pytest.mark.parametrize("keep_root", [False, True])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_several_directories_cost_what_they_cost_alone_but_for_the_starts(
    strategy: StrategyName, keep_root: bool
) -> None:
    options = Options(keep_root=keep_root)
    alone = calls_of(strategy, Work(TEN_TIMES_100, options))
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

    for runs in (1, 3):
        if runs == 1 and (strategy == StrategyName("rsync") or (strategy, keep_root) == RM_KEEPS):
            continue  # these take one at once
        prediction = calls_of(strategy, Work(three, options, targets=3, runs=runs))
        assert removed(prediction) == 3 * removed(alone)
        if strategy not in (StrategyName("xargs"), StrategyName("rsync")):
            assert prediction["execve"] == runs * alone["execve"]


RM_KEEPS = (StrategyName("rm"), True)


def test_rsync_takes_what_lies_in_the_target_by_unlink_and_the_rest_by_descriptors() -> None:
    survey = Survey(
        PathStr("/t"), Totals(files=8, directories=3), top_non_directories=5, top_directories=2
    )
    calls = calls_of(StrategyName("rsync"), Work(survey, Options()))
    assert (calls["unlink"], calls["rmdir"], calls["unlinkat"]) == (5, 3, 3)


def chain(levels: int) -> Survey:
    """Survey directories inside each other, and a file in the last."""
    return Survey(
        PathStr("/t"),
        Totals(files=1, directories=levels + 1),
        max_depth=levels + 1,
        non_empty_directories=levels + 1,
        parent_directories=levels,
    )


@pytest.mark.parametrize(
    ("survey", "expected"),
    [
        (chain(60), 56),
        # a chain of 60 with two side branches on each level
        (replace(chain(60), totals=Totals(directories=181)), 56),
        # 500 directories, each in one of the six before it: 203 counted
        (
            replace(chain(148), totals=Totals(directories=500), parent_directories=346),
            pytest.approx(203, abs=0.03 * 500),
        ),
        (chain(3), 0),
        (TEN_TIMES_100, 0),
        # 4,013 directories that grew at random, half of them without directories: 429 counted
        (
            replace(chain(20), totals=Totals(directories=4013), parent_directories=2013),
            pytest.approx(429, abs=0.03 * 4013),
        ),
        # a complete binary tree of 13 levels: those with four levels below are a sixteenth
        (
            replace(chain(13), totals=Totals(directories=8191), parent_directories=4095),
            pytest.approx(511, abs=0.03 * 8191),
        ),
    ],
)
def test_directories_that_fts_opens_again_are_estimated(survey: Survey, expected: int) -> None:
    assert reopened_directories(Work(survey)) == expected


@pytest.mark.parametrize(
    ("strategy", "times"),
    [(StrategyName("rm"), 1), (StrategyName("find"), 1), (StrategyName("xargs"), 2)],
)
def test_a_directory_that_is_opened_again_costs_an_open_and_a_status(
    strategy: StrategyName, times: int
) -> None:
    shorter, longer = (calls_of(strategy, Work(chain(levels))) for levels in (50, 60))
    table = STRATEGIES[strategy].call_table(Options())
    again = table["openat"]["reopened"]
    assert again == table["newfstatat"]["reopened"] == times
    of_each = sum(table["openat"].get(name, 0) for name in ("directories", "non_empty", "reopened"))
    assert longer["openat"] - shorter["openat"] == 10 * of_each


def test_find_starts_as_many_rm_as_the_names_need() -> None:
    survey = replace(
        TEN_TIMES_100,
        totals=Totals(files=30_000, directories=1),
        top_non_directories=30_000,
        top_directories=0,
        non_directory_name_bytes=30_000 * 8,
    )
    calls = calls_of(StrategyName("rm"), Work(survey, Options(keep_root=True)))
    # "./name" and a NUL are eleven bytes; 11,912 of them fit in a command line: three rm
    assert (calls["clone"], calls["execve"]) == (3, 4)
    assert STRATEGIES[StrategyName("rm")].processes(Work(survey, Options(keep_root=True))) == 4


@pytest.mark.parametrize(
    ("strategy", "keep_root", "processes"),
    [
        (StrategyName("rm"), False, 1),
        (StrategyName("rm"), True, 2),
        (StrategyName("find"), True, 1),
        (StrategyName("xargs"), False, 4),
        (StrategyName("rsync"), False, 4),
        (StrategyName("rsync"), True, 3),
        (StrategyName("rmtree"), False, 1),
        (StrategyName("parallel"), False, 1),
    ],
)
def test_processes_are_counted(strategy: StrategyName, keep_root: bool, processes: int) -> None:
    options = Options(keep_root=keep_root)
    assert STRATEGIES[strategy].processes(Work(TEN_TIMES_100, options)) == processes


def test_an_empty_target_that_is_kept_needs_find_only() -> None:
    options = Options(keep_root=True)
    assert STRATEGIES[StrategyName("rm")].processes(Work(EMPTY, options)) == 1
    assert calls_of(StrategyName("rm"), Work(EMPTY, options))["execve"] == 1


def test_paths_are_shorter_where_the_tools_run_in_the_target() -> None:
    path = PathStr("/" + "t" * 59)
    survey = replace(TEN_TIMES_100, path=path, non_directory_path_bytes=1000 * 700)
    options = Options(batch_size=5000)
    assert batches_of(survey, options) == 6
    assert batches_of(survey, options, is_inside=True) == 5


def test_a_tool_that_counts_its_own_calls_leaves_its_start_out() -> None:
    seen = STRATEGIES[StrategyName("parallel")].predicted_calls(Work(TEN_TIMES_100))
    prediction = STRATEGIES[StrategyName("parallel")].predicted_calls(
        Work(TEN_TIMES_100, counts_itself=True)
    )
    assert (seen.calls.get("execve"), prediction.calls.get("execve")) == (1, None)
    assert prediction.other is not None and seen.other is not None and prediction.other < seen.other


@pytest.mark.parametrize(
    ("keep_root", "emptied", "calls", "other"),
    [
        (False, 0, {"unlinkat": 1, "getdents64": 2, "newfstatat": 1}, 6),
        (False, 1, {"unlinkat": 1, "getdents64": 4, "newfstatat": 1}, 7),
        (True, 0, {"getdents64": 4}, 7),
        (True, 1, {"getdents64": 4}, 7),
    ],
)
def test_the_engine_opens_a_target_part_by_part_and_reads_it_again_if_it_remains(
    keep_root: bool, emptied: int, calls: dict[str, int], other: int
) -> None:
    survey = replace(EMPTY, path=PathStr("/srv/spool/t"), totals=Totals(directories=1))
    prediction = STRATEGIES[StrategyName("parallel")].predicted_calls(
        Work(survey, Options(keep_root=keep_root), counts_itself=True, emptied=emptied)
    )
    assert prediction.calls == {"openat": 4, "statx": 1, **calls}
    assert prediction.other == other


@pytest.mark.parametrize(("filesystem", "names"), [("ext4", 6_500), ("tmpfs", 0)])
def test_names_that_another_thread_evicts_are_opened_and_closed(
    filesystem: str, names: int
) -> None:
    survey = replace(
        EMPTY, totals=Totals(files=10_000, directories=1), max_entries_in_directory=10_000
    )
    two = Options(pace=Pace(threads=2))
    prediction = STRATEGIES[StrategyName("parallel")].predicted_calls(Work(survey, two, filesystem))
    plain = STRATEGIES[StrategyName("parallel")].predicted_calls(Work(survey, two))
    assert prediction.other is not None and plain.other is not None
    assert prediction.other - plain.other == names
    assert prediction.calls["openat"] - plain.calls["openat"] == names


def test_threads_share_each_target_that_is_deleted_in_a_run_of_its_own() -> None:
    roots = [Root(PathStr(f"/t/{name}"), 1, inode) for inode, name in enumerate("ab")]
    survey = replace(
        flat(120_000),
        roots=tuple(roots),
        totals=Totals(files=120_000, directories=2),
        max_entries_in_directory=60_000,
        largest=tuple(LargeDirectory(root.path, 60_000, 0) for root in roots),
    )
    two = Options(pace=Pace(threads=2))
    parallel = STRATEGIES[StrategyName("parallel")]
    together = parallel.predicted_calls(Work(survey, two, "ext4", targets=2, counts_itself=True))
    in_turn = parallel.predicted_calls(
        Work(survey, two, "ext4", targets=2, runs=2, counts_itself=True)
    )
    of_paths = 2 * 3  # the root, /t and its subdirectory
    assert together.calls["openat"] == of_paths
    assert in_turn.calls["openat"] == of_paths + 78_000


def flat(names: int, name_bytes: int = 8) -> Survey:
    """Survey one directory of this many files."""
    root = PathStr("/t")
    return Survey(
        root,
        Totals(files=names, directories=1),
        max_depth=1,
        max_entries_in_directory=names,
        non_empty_directories=1,
        non_directory_name_bytes=names * name_bytes,
        non_directory_path_bytes=names * (name_bytes + 3),
        top_non_directories=names,
        largest=(LargeDirectory(root, names, 0),),
    )


@pytest.mark.parametrize(
    ("strategy", "measured_mb"),
    [
        (StrategyName("rm"), 30),
        (StrategyName("find"), 31),
        (StrategyName("xargs"), 31),
        (StrategyName("rsync"), 86),
        (StrategyName("rmtree"), 180),
        (StrategyName("parallel"), 33),
    ],
)
def test_memory_of_a_million_names_is_of_the_measured_magnitude(
    strategy: StrategyName, measured_mb: int
) -> None:
    predicted_bytes = STRATEGIES[strategy].peak_memory_bytes(Work(flat(1_000_000, 10)))
    assert predicted_bytes == pytest.approx(measured_mb * 1e6, rel=0.5)


def test_fts_holds_no_more_than_it_reads_at_once() -> None:
    rm = STRATEGIES[StrategyName("rm")]
    assert rm.peak_memory_bytes(Work(flat(10_000_000))) == pytest.approx(
        rm.peak_memory_bytes(Work(flat(100_000))), rel=0.01
    )


def test_rsync_holds_the_path_of_each_removed_entry() -> None:
    def memory(files: int) -> int:
        survey = replace(flat(100), totals=Totals(files=files, directories=files // 100))
        survey = replace(survey, non_directory_path_bytes=files * 23)
        return STRATEGIES[StrategyName("rsync")].peak_memory_bytes(Work(survey))

    assert memory(1_100_000) - memory(100_000) == pytest.approx(1_000_000 * 24, rel=0.1)


@pytest.mark.parametrize(
    ("peak_bytes", "shown_mib"),
    [(0, 1), (1_400 << 10, 1), (1_600 << 10, 2), (30_400 << 10, 30), (197 << 20, 200)],
)
def test_memory_is_an_order_of_magnitude(peak_bytes: int, shown_mib: int) -> None:
    assert about_bytes(peak_bytes) == shown_mib << 20
