"""Output that tools and the kernel never print, and that once broke a parser."""

import argparse
import math
from pathlib import Path

import pytest

from tests.fuzz.common import DIGITS
from tui_fs.cli.arguments import glob
from tui_fs.job import tool_output
from tui_fs.job.tool_output import ToolOutput
from tui_fs.linux.fnmatch import matches_glob
from tui_fs.linux.mounts import read_mounts
from tui_fs.linux.pressure import PressureMeter, io_pressure_percent
from tui_fs.model.calls import Removed
from tui_fs.model.errors import BadInput, Missing
from tui_fs.model.events import (
    Event,
    FailuresCounted,
    ToolSaid,
)
from tui_fs.model.strategy import StrategyName
from tui_fs.strategies.registry import STRATEGIES
from tui_fs.tracing.bpf import BpftraceParser
from tui_fs.tracing.perf import PerfCounters
from tui_fs.tracing.strace import StraceParser


@pytest.mark.parametrize(
    "line",
    [
        b"rsync: [generator] delete_file: unlink(x) failed: No (" + DIGITS.encode() + b")",
        b'rsync: [generator] opendir "x" failed: No (' + DIGITS.encode() + b")",
        b"rsync: [generator] delete_file: unlink(x\\#777) failed: Permission denied (13)",
        b"cannot delete non-empty directory: x\\#400",
    ],
)
def test_impossible_numbers_in_messages_of_rsync_break_nothing(line: bytes) -> None:
    rsync = STRATEGIES[StrategyName("rsync")]
    rsync.parse_error(line)
    rsync.parse_output(line)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("rm", b"rm: cannot remove 'a'rm: cannot remove 'b': Permission denied"),
        ("xargs", b"rm: cannot remove 'a'rm: cannot remove 'b': Permission denied"),
        ("rm", b"rm: cannot remove 'a': Permission denied: Permission denied"),
        ("rm", b"rm: cannot remove 'a: Permission denied"),
        ("rm", b"rm: cannot remove ''$'\\777': Permission denied"),
        ("find", b"find: 'a'find: 'b': Permission denied"),
        ("find", b"find: 'a: Permission denied"),
        ("find", b"find: '\\777': Permission denied"),
        ("find", b'find: "a": Permission denied'),
    ],
)
def test_a_torn_message_names_no_entry(name: str, line: bytes) -> None:
    assert STRATEGIES[StrategyName(name)].parse_error(line) is None


@pytest.mark.parametrize("pieces", [1, 3, 7])
def test_a_removal_with_a_very_long_path_counts(
    monkeypatch: pytest.MonkeyPatch, pieces: int
) -> None:
    monkeypatch.setattr(tool_output, "LONGEST_LINE_BYTES", 100)
    output = ToolOutput(STRATEGIES[StrategyName("rm")], "/t")
    text = b"removed '" + b"x/" * 500 + b"'\nremoved directory '" + b"x/" * 500 + b"'\n"
    size = len(text) // pieces + 1
    for start in range(0, len(text), size):
        assert list(output.take_output(text[start : start + size], 1.0)) == []
    assert output.removed() == Removed(2, 1)


@pytest.mark.parametrize("pieces", [1, 3, 7])
def test_a_failure_with_a_very_long_path_counts_without_it(
    monkeypatch: pytest.MonkeyPatch, pieces: int
) -> None:
    monkeypatch.setattr(tool_output, "LONGEST_LINE_BYTES", 100)
    output = ToolOutput(STRATEGIES[StrategyName("rm")], "/t")
    text = b"rm: cannot remove '" + b"x/" * 500 + b"': Permission denied\n"
    size = len(text) // pieces + 1
    events: list[Event] = []
    for start in range(0, len(text), size):
        events += output.take_errors(text[start : start + size], 1.0)
    assert [*events, *output.counted_failures(2.0)] == [FailuresCounted(2.0, "remove", 13, 1)]


def test_a_very_long_line_without_an_entry_is_reported_alike_in_any_pieces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tool_output, "LONGEST_LINE_BYTES", 100)
    parsed = []
    for size in (1, 30, 1_000):
        output = ToolOutput(STRATEGIES[StrategyName("rm")], "/t")
        text = b"begin" + b"x" * 500 + b"end\n"
        events: list[Event] = []
        for start in range(0, len(text), size):
            events += output.take_errors(text[start : start + size], 1.0)
        parsed.append(events)
    assert parsed[0] == parsed[1] == parsed[2]
    (event,) = parsed[0]
    assert isinstance(event, ToolSaid)
    assert event.text.startswith("begin")
    assert event.text.endswith("end")


@pytest.mark.parametrize(
    "line",
    [
        b"x",
        b"30 22 0:5 / /m rw",
        b"30 22 0:5 / /m rw - tmpfs",
        b"x 22 0:5 / /m rw - tmpfs x rw",
        b"3_0 22 0:5 / /m rw - tmpfs x rw",
        b"30 22 \xff / /m rw - tmpfs x rw",
        b"30 22 0:5 / /m\\777 rw - tmpfs x rw",
        b"30 22 0:5 / /m\\04 rw - tmpfs x rw",
        DIGITS.encode() + b" 22 0:5 / /m rw - tmpfs x rw",
        b"30 22 0:5 / m rw - tmpfs x rw",
    ],
)
def test_a_mount_table_that_is_none_is_refused(tmp_path: Path, line: bytes) -> None:
    (tmp_path / "m").write_bytes(line + b"\n")
    with pytest.raises(BadInput, match="mount table"):
        read_mounts(str(tmp_path / "m"))


@pytest.mark.parametrize(
    "line",
    [
        "some",
        "some ",
        "some x",
        "some avg10= total=",
        "some avg10=x avg60=0.00 avg300=0.00 total=x",
        "some avg10=nan avg60=0.00 avg300=0.00 total=1_0",
        "some avg10=1e400 avg60=0.00 avg300=0.00 total=-1",
        f"some avg10={DIGITS} avg60=0.00 avg300=0.00 total={DIGITS}",
        "some avg10=\xff total=\xff",
        "some avg10=101.00 avg60=0.00 avg300=0.00 total=\u0661",
    ],
)
def test_pressure_that_is_none_gives_no_figure(tmp_path: Path, line: str) -> None:
    (tmp_path / "io").write_text(line + "\n", encoding="utf-8")
    assert io_pressure_percent(str(tmp_path / "io")) is None
    moments = iter((1.0, 2.0))
    meter = PressureMeter(str(tmp_path / "io"), lambda: next(moments))
    assert meter.percent() is None


def test_a_pressure_that_falls_gives_no_figure(tmp_path: Path) -> None:
    moments = iter((1.0, 2.0))
    text = "some avg10=0.00 avg60=0.00 avg300=0.00 total={}\n"
    (tmp_path / "io").write_text(text.format(500_000))
    meter = PressureMeter(str(tmp_path / "io"), lambda: next(moments))
    (tmp_path / "io").write_text(text.format(400_000))
    assert meter.percent() is None


def test_a_pattern_with_a_nul_is_refused() -> None:
    with pytest.raises(BadInput):
        matches_glob(b"a\0b", b"a")
    with pytest.raises(argparse.ArgumentTypeError):
        glob("a\0b")


@pytest.mark.parametrize(
    "line",
    [
        b"1 unlink(0x1) = 0 <1.2.3>",
        b"1 unlink(0x1) = 0 <.>",
        b"1 unlink(0x1) = 0 <" + DIGITS.encode() + b".0>",
        b"1 unlinkat(0x1, 0x2, 0200) = 0 <0.000009>",
        b"1 unlinkat(0x1, 0x2, " + DIGITS.encode() + b") = 0 <0.000009>",
        b"1 unlinkat(0x1, 0x2, 0x" + b"f" * 5_000 + b") = 0 <0.000009>",
    ],
)
def test_impossible_numbers_in_lines_of_strace_break_nothing(line: bytes) -> None:
    parser = StraceParser()
    parser.line(line)
    for count in parser.counts().calls.values():
        assert count.seconds is not None
        assert math.isfinite(count.seconds)


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"{}",
        b"{\xff}",
        b'{"type": "map"}',
        b'{"type": "map", "data": []}',
        b'{"type": "map", "data": {"@calls": {"1": "x"}}}',
        b'{"type": "map", "data": {"@calls": {"1": -1}}}',
        b'{"type": "map", "data": {"@calls": [1]}}',
        b'{"type": "map", "data": {"@directories": "x"}}',
        b'{"type": "map", "data": {"@directories": 1e400}}',
        b'{"type": "map", "data": {"@directories": ' + DIGITS.encode() + b"}}",
        b'{"type": "map", "data": ' + b"[" * 100_000,
    ],
)
def test_damaged_lines_of_bpftrace_change_no_count(line: bytes) -> None:
    parser = BpftraceParser({"1": "unlinkat"})
    parser.line(b'{"type": "map", "data": {"@calls": {"1": 5}}}')
    parser.line(b'{"type": "map", "data": {"@directories": 2}}')
    before = parser.counts()
    parser.line(line)
    assert parser.counts() == before
    assert before.removed == Removed(5, 2)


def test_errors_of_bpftrace_are_at_most_its_calls() -> None:
    parser = BpftraceParser({"1": "unlinkat"})
    parser.line(b'{"type": "map", "data": {"@calls": {"1": 5}}}')
    parser.line(b'{"type": "map", "data": {"@errors": {"1": 7}}}')
    assert parser.counts().removed == Removed(0, 0)


@pytest.mark.parametrize("text", ["", "x", "1_0", "-1", DIGITS, "\xff", "18446744073709551616"])
def test_a_tracepoint_without_a_number_is_missing(tmp_path: Path, text: str) -> None:
    event = tmp_path / "events" / "raw_syscalls" / "sys_exit"
    event.mkdir(parents=True)
    (event / "id").write_text(text, encoding="utf-8")
    with pytest.raises(Missing):
        PerfCounters(str(tmp_path)).probe()
