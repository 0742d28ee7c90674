"""The tools' output, in pieces that may end at any byte."""

import errno
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_fs.job.tool_output import FURTHER_KINDS, OutputLimits, ToolOutput
from tui_fs.model.calls import CallCount, Removed
from tui_fs.model.events import EntryFailed, Event, FailuresCounted, ToolSaid
from tui_fs.model.paths import PathStr
from tui_fs.model.strategy import StrategyName
from tui_fs.strategies.registry import STRATEGIES

OUT = b"removed 't/a'\nremoved 't/'$'\\377'\nremoved directory 't'\n"
ERRORS = (
    b"rm: cannot remove 't/x': Operation not permitted\n"
    b"rm: warning about nothing\n"
    b"rm: cannot remove 't/'$'\\n': Permission denied\n"
)


def of(name: StrategyName, limits: OutputLimits | None = None) -> ToolOutput:
    """Return a reader of a strategy's output."""
    return ToolOutput(STRATEGIES[name], "/t", limits or OutputLimits())


def pieces(text: bytes, cuts: list[int]) -> Iterator[bytes]:
    """Cut text at these places."""
    last = 0
    for cut in sorted({min(cut, len(text)) for cut in cuts} | {len(text)}):
        yield text[last:cut]
        last = cut


cuts = st.lists(st.integers(0, 200), max_size=6)


@given(cuts)
def test_removals_count_wherever_the_output_is_cut(cut_at: list[int]) -> None:
    output = of(StrategyName("rm"))
    for piece in pieces(OUT, cut_at):
        assert list(output.take_output(piece, 1.0)) == []
    assert output.removed() == Removed(3, 1)


@given(cuts)
def test_failures_are_read_wherever_the_errors_are_cut(cut_at: list[int]) -> None:
    output = of(StrategyName("rm"))
    seen: list[Event] = []
    for piece in pieces(ERRORS, cut_at):
        seen += output.take_errors(piece, 1.0)
    assert seen == [
        EntryFailed(1.0, PathStr("/t/t/x"), "remove", 1),
        ToolSaid(1.0, "rm: warning about nothing"),
        EntryFailed(1.0, PathStr("/t/t/\n"), "remove", 13),
    ]


def test_the_two_channels_are_not_mixed() -> None:
    output = of(StrategyName("rm"))
    list(output.take_output(b"removed 't", 1.0))
    assert list(output.take_errors(b"rm: so", 1.0)) == []
    list(output.take_output(b"/a'\n", 1.0))
    assert list(output.take_errors(b"-so\n", 1.0)) == [ToolSaid(1.0, "rm: so-so")]
    assert output.removed() == Removed(1, 0)


@pytest.mark.parametrize(
    ("output", "errors", "rest"),
    [(b"f\nd", b"find: killed", [ToolSaid(2.0, "find: killed")]), (b"f\nd\n", b"", [])],
)
def test_a_last_line_without_its_end_is_not_lost(
    output: bytes, errors: bytes, rest: list[Event]
) -> None:
    read = of(StrategyName("find"))
    list(read.take_output(output, 1.0))
    list(read.take_errors(errors, 1.0))
    assert list(read.take_rest(2.0)) == rest
    assert read.removed() == Removed(2, 1)


@pytest.mark.parametrize(
    ("lines", "printed"), [(b"\n  \n\n", []), (b"rm: \xff\n", [ToolSaid(1.0, "rm: \ufffd")])]
)
def test_empty_lines_are_dropped_and_other_bytes_printed_readably(
    lines: bytes, printed: list[Event]
) -> None:
    assert list(of(StrategyName("rm")).take_errors(lines, 1.0)) == printed


def denied(name: str) -> bytes:
    """Return a message of rm."""
    return f"rm: cannot remove '{name}': Permission denied\n".encode()


BUSY = b"rm: cannot remove 'b': Device or resource busy\n"
FULL = b"rm: cannot remove 'c': No space left on device\n"


@pytest.mark.parametrize(
    ("limits", "lines", "paths", "counted"),
    [
        pytest.param(
            OutputLimits(paths=2),
            denied("a") * 3 + BUSY * 2,
            ["/t/a", "/t/a"],
            [("remove", 13, 1), ("remove", 16, 2)],
            id="by kind",
        ),
        pytest.param(
            OutputLimits(paths_of_kind=2),
            denied("a") * 50 + BUSY,
            ["/t/a", "/t/a", "/t/b"],
            [("remove", 13, 48)],
            id="a frequent kind hides no rare one",
        ),
        pytest.param(
            OutputLimits(bytes=100),
            denied("x" * 60) * 5,
            ["/t/" + "x" * 60],
            [("remove", 13, 4)],
            id="paths too long to keep",
        ),
        pytest.param(
            OutputLimits(kinds=1),
            denied("a") + BUSY + FULL,
            ["/t/a"],
            [(FURTHER_KINDS, 0, 2)],
            id="too many kinds",
        ),
    ],
)
def test_failures_beyond_those_kept_are_counted(
    limits: OutputLimits, lines: bytes, paths: list[str], counted: list[tuple[str, int, int]]
) -> None:
    output = of(StrategyName("rm"), limits)
    seen = list(output.take_errors(lines, 1.0))
    assert [event.path for event in seen if isinstance(event, EntryFailed)] == paths
    assert len(seen) == len(paths)
    assert list(output.counted_failures(2.0)) == [
        FailuresCounted(2.0, *failures) for failures in counted
    ]


def test_counted_failures_are_reported_once() -> None:
    output = of(StrategyName("rm"), OutputLimits(paths=0))
    for number in (1, 2):
        list(output.take_errors(denied("x") * number, 1.0))
        assert list(output.counted_failures(2.0)) == [FailuresCounted(2.0, "remove", 13, number)]
        assert list(output.counted_failures(2.0)) == []


def test_further_lines_are_reported_by_their_number() -> None:
    output = of(StrategyName("rm"), OutputLimits(lines=1))
    assert list(output.take_errors(b"a\nb\nc\n", 1.0)) == [ToolSaid(1.0, "a")]
    (event,) = output.counted_failures(2.0)
    assert isinstance(event, ToolSaid)
    assert "omitted: 2" in event.text
    assert list(output.counted_failures(3.0)) == []


def test_a_line_without_end_does_not_fill_the_memory() -> None:
    output = of(StrategyName("rm"))
    for _ in range(16):
        list(output.take_errors(b"x" * 65_536, 1.0))
    (event,) = output.take_errors(b"\n", 1.0)
    assert isinstance(event, ToolSaid)
    assert len(event.text) <= 65_536


def test_failures_on_standard_output_count_too() -> None:
    output = of(StrategyName("rsync"))
    (failed,) = output.take_output(b"deleting a\ncannot delete non-empty directory: d\n", 1.0)
    assert failed == EntryFailed(1.0, PathStr("/t/d"), "rmdir", 39)
    assert output.removed() == Removed(1, 0)


def test_rmdir_is_counted_by_its_status_and_named_by_the_target() -> None:
    output = ToolOutput(STRATEGIES[StrategyName("rmtree")], "/t")
    step = (("/usr/bin/rmdir", "--", "./t"),)
    (failed,) = output.take_errors(b"/bin/rmdir: failed to remove './t': Device busy\n", 1.0)
    assert isinstance(failed, EntryFailed)
    assert failed.path == "/t"
    output.step_ended(step, (1,))
    assert output.removed() == Removed(0, 0)
    output.step_begins("/t")
    output.step_ended(step, (0,))
    assert output.removed() == Removed(1, 1)
    # Several targets share one rmdir, and each that it cannot remove has a line
    output.step_begins("/t")
    (failed,) = output.take_errors(b"rmdir: failed to remove '/v': Device or resource busy\n", 2.0)
    assert isinstance(failed, EntryFailed) and failed.path == "/v"
    # (what is left in a target is reported as that)
    assert not list(output.take_errors(b"rmdir: failed to remove '/u': Directory not empty\n", 2.0))
    output.step_ended((("/usr/bin/rmdir", "--", "/u", "/v", "/w", "/x"),), (1,))
    assert output.removed() == Removed(3, 3)
    # One that could not start has removed nothing
    output.step_begins("/t")
    output.step_ended(step, (127,))
    assert output.removed() == Removed(3, 3)


def test_a_confined_tool_cannot_remove_the_target_and_that_is_no_failure(tmp_path: Path) -> None:
    # The target may be changed by this user, so the kernel has refused only its removal
    target = str(tmp_path)
    output = ToolOutput(STRATEGIES[StrategyName("rm")], target, confined=(target,))
    line = f"rm: cannot remove '{target}': Read-only file system\n".encode()
    assert list(output.take_errors(line, 1.0)) == []
    assert output.refused_targets == 1
    assert list(output.withheld_failures((target,), 2.0)) == []
    # But any other entry, and any other error, counts
    other = f"rm: cannot remove '{target}/a': Permission denied\n".encode()
    (failed,) = output.take_errors(other, 3.0)
    assert isinstance(failed, EntryFailed) and failed.path == f"{target}/a"
    full = f"rm: cannot remove '{target}': Directory not empty\n".encode()
    assert len(list(output.take_errors(full, 4.0))) == 1
    # And what rmdir reports of the target counts, too
    busy = f"rmdir: failed to remove '{target}': Device or resource busy\n".encode()
    assert len(list(output.take_errors(busy, 5.0))) == 1


def test_target_that_rmdir_finds_not_empty_fails_only_if_nothing_else_explains_it() -> None:
    line = b"rmdir: failed to remove './t': Directory not empty\n"
    output = ToolOutput(STRATEGIES[StrategyName("parallel")], "/t")
    assert list(output.take_errors(line, 1.0)) == []
    assert list(output.withheld_failures((), 2.0)) == []
    (failed,) = output.withheld_failures(("/t",), 2.0)
    assert isinstance(failed, EntryFailed)
    assert (failed.path, failed.error) == ("/t", errno.ENOTEMPTY)
    # Another failure, a message or a killed tool is the reason why it is not empty
    for other in (b"tui-fs-engine: cannot remove '/t/a': Input/output error\n", b"Too hot\n"):
        output = ToolOutput(STRATEGIES[StrategyName("parallel")], "/t")
        assert len(list(output.take_errors(other + line, 1.0))) == 1
        assert list(output.withheld_failures(("/t",), 2.0)) == []
    output = ToolOutput(STRATEGIES[StrategyName("parallel")], "/t")
    output.step_ended((("/usr/bin/tui-fs-engine", "delete", "--", "/t"),), (-9,))
    assert list(output.take_errors(line, 1.0)) == []
    assert list(output.withheld_failures(("/t",), 2.0)) == []


@pytest.mark.parametrize(
    ("written", "whole"), [(b".", "/t"), (b"./a", "/t/a"), (b"a/b", "/t/a/b"), (b"/t/c", "/t/c")]
)
def test_entries_below_the_target_are_named_by_their_whole_path(written: bytes, whole: str) -> None:
    output = ToolOutput(STRATEGIES[StrategyName("find")], "/t")
    line = b"find: cannot delete '" + written + b"': Permission denied\n"
    (failed,) = output.take_errors(line, 1.0)
    assert isinstance(failed, EntryFailed)
    assert failed.path == whole


def counts(removed: int, directories: int, calls: int, threads: int = 2) -> bytes:
    """Return a line of the engine's counts."""
    return (
        f'{{"type":"counts","removed":{removed},"directories":{directories},'
        f'"threads":{threads},"split":false,"calls":{{"unlinkat":[{calls},1,{calls}000000000]}}}}\n'
    ).encode()


def test_totals_take_the_place_of_those_before() -> None:
    output = of(StrategyName("parallel"))
    assert list(output.take_output(counts(5, 1, 5) + counts(9, 2, 10), 1.0)) == []
    assert output.removed() == Removed(9, 2)
    assert output.calls() == {"unlinkat": CallCount(10, 1, 10.0)}
    assert output.threads == 2


def test_totals_of_several_runs_are_added_up() -> None:
    output = of(StrategyName("parallel"))
    list(output.take_output(counts(5, 1, 5), 1.0))
    output.step_ended((("/bin/tui-fs-engine", "delete"),), (0,))
    assert output.threads == 0
    output.step_ended((("/bin/rmdir", "--", "./t"),), (0,))
    list(output.take_output(counts(4, 0, 4, threads=1), 2.0))
    assert output.removed() == Removed(10, 2)
    assert output.calls() == {"unlinkat": CallCount(9, 2, 9.0)}
    assert output.threads == 1


def with_times(classes: list[list[int]]) -> bytes:
    """Return the counts of a run of 1,600 removals with times."""
    line = json.loads(counts(1_600, 0, 1_600))
    return json.dumps({**line, "removal_ns": classes}).encode() + b"\n"


def test_times_of_several_runs_are_added_up_and_need_a_hundred_calls() -> None:
    output = of(StrategyName("parallel"))
    list(output.take_output(with_times([[4_000, 90], [9_000, 9]]), 1.0))
    assert output.calls()["unlinkat"].times_text == ""
    output.step_ended((("/bin/tui-fs-engine", "delete"),), (0,))
    list(output.take_output(with_times([[4_000, 90], [8_000_000, 11]]), 2.0))
    removals = output.calls()["unlinkat"]
    assert (removals.quantiles_s, removals.timed_calls) == ((4e-6, 8e-3), 200)
    assert removals.times_text == "p50 4.0 µs, p99 8.0 ms (sampled: 1 in 16)"


def test_what_else_the_engine_prints_is_reported() -> None:
    output = of(StrategyName("parallel"))
    lines = b'{"type":"answer","command":"rate x","problem":"no number"}\nthread panicked\n'
    assert list(output.take_output(lines, 1.0)) == [
        ToolSaid(1.0, "tui-fs-engine: rate x: no number"),
        ToolSaid(1.0, "thread panicked"),
    ]
    assert output.removed() == Removed(0, 0)
