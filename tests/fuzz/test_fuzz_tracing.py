"""Lines of strace and bpftrace, and tracefs: damaged, interrupted, contradicting themselves."""

import json
import math
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.common import damaged, filled, fuzzed, fuzzed_rarely, mutated, tried
from tests.fuzz.samples import BPFTRACE_LINES, STRACE_LINES, STRACE_TEMPLATES
from tui_fs.model.errors import Missing
from tui_fs.tracing.bpf import BpftraceParser
from tui_fs.tracing.perf import PerfCounters
from tui_fs.tracing.source import Counts
from tui_fs.tracing.strace import StraceParser, add_up

NAMES = {"263": "unlinkat", "84": "rmdir", "87": "unlink", "3": "close"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory that many inputs share."""
    return tmp_path_factory.mktemp("fuzz")


def assert_possible(counts: Counts) -> None:
    """Fail unless the counts could be those of a run."""
    for count in counts.calls.values():
        assert 0 <= count.errors <= count.calls
        assert count.seconds is None or (math.isfinite(count.seconds) and count.seconds >= 0)
    assert counts.removed is not None
    assert counts.removed.entries >= 0


@given(st.lists(mutated(STRACE_LINES) | filled(*STRACE_TEMPLATES), max_size=8))
@fuzzed
def test_damaged_lines_of_strace_give_possible_counts(lines: list[bytes]) -> None:
    parser = StraceParser()
    with tried(max(1, len(lines))):
        for line in lines:
            for part in line.split(b"\n"):
                parser.line(part)
        counts = parser.counts()
        twice = add_up([counts, counts])
    assert_possible(counts)
    assert counts.removed is not None
    assert counts.removed.directories is not None
    assert 0 <= counts.removed.directories <= counts.removed.entries
    assert {name: count.calls * 2 for name, count in counts.calls.items()} == {
        name: count.calls for name, count in twice.calls.items()
    }


calls = st.tuples(
    st.sampled_from(["unlinkat", "unlink", "rmdir", "openat", "getdents64", "newfstatat"]),
    st.lists(st.sampled_from(["0", "0x1", "0x200", "0xffffff9c"]), min_size=1, max_size=4),
    st.sampled_from(["0", "0x7f", "-1 ENOENT (No such file or directory)", "-1 (errno 9)", "?"]),
    st.booleans(),
)


@given(st.lists(st.tuples(st.integers(1, 4), calls), max_size=12), st.data())
@fuzzed
def test_calls_that_interrupt_each_other_are_counted_once(
    them: list[tuple[int, tuple[str, list[str], str, bool]]], data: st.DataObject
) -> None:
    queues: dict[int, list[str]] = {}
    expected: Counter[str] = Counter()
    entries = directories = 0
    for pid, (name, arguments, result, interrupted) in them:
        joined = ", ".join(arguments)
        end = f") = {result} <0.000010>"
        if interrupted:
            cut = data.draw(st.sampled_from([len(joined), *_commas(joined)]))
            queues.setdefault(pid, []).extend(
                [
                    f"{pid} {name}({joined[:cut]} <unfinished ...>",
                    f"{pid} <... {name} resumed>{joined[cut:]}{end}",
                ]
            )
        else:
            queues.setdefault(pid, []).append(f"{pid} {name}({joined}{end}")
        if result != "?":
            expected[name] += 1
            succeeded = not result.startswith("-")
            is_directory = name == "rmdir" or (
                name == "unlinkat" and int(arguments[-1], 16) & 0x200 != 0
            )
            entries += succeeded and name in ("unlinkat", "unlink", "rmdir")
            directories += succeeded and is_directory
    parser = StraceParser()
    with tried():
        while queues:
            pid = data.draw(st.sampled_from(sorted(queues)))
            parser.line(queues[pid].pop(0).encode())
            if not queues[pid]:
                del queues[pid]
        counts = parser.counts()
    assert {name: count.calls for name, count in counts.calls.items()} == expected
    assert counts.removed is not None
    assert (counts.removed.entries, counts.removed.directories) == (entries, directories)


def _commas(text: str) -> list[int]:
    return [at for at, character in enumerate(text) if character == ","]


@given(st.lists(mutated(BPFTRACE_LINES), max_size=8))
@fuzzed
def test_damaged_lines_of_bpftrace_give_possible_counts(lines: list[bytes]) -> None:
    parser = BpftraceParser(NAMES)
    with tried(max(1, len(lines))):
        for line in lines:
            parser.line(line)
            assert_possible(parser.counts())


maps = st.sampled_from([json.loads(line) for line in BPFTRACE_LINES if line])


@given(st.lists(maps.flatmap(damaged), max_size=6))
@fuzzed
def test_wrong_maps_of_bpftrace_give_possible_counts(lines: list[bytes]) -> None:
    parser = BpftraceParser(NAMES)
    with tried(max(1, len(lines))):
        for line in lines:
            parser.line(line)
            assert_possible(parser.counts())


sums = st.dictionaries(st.sampled_from([*NAMES, "999"]), st.integers(0, 1 << 40), max_size=4)


@given(st.lists(st.tuples(st.sampled_from(["@calls", "@errors", "@ns"]), sums), max_size=8))
@fuzzed
def test_the_last_sums_of_bpftrace_count(printed: list[tuple[str, dict[str, int]]]) -> None:
    parser = BpftraceParser(NAMES)
    last: dict[str, dict[str, int]] = {"@calls": {}}
    with tried():
        for name, value in printed:
            parser.line(json.dumps({"type": "map", "data": {name: value}}).encode())
            last[name] = value
        counts = parser.counts()
    assert {name: count.calls for name, count in counts.calls.items()} == {
        NAMES.get(number, f"system call {number}"): value
        for number, value in last["@calls"].items()
    }


@given(st.lists(st.integers(1, 1 << 40), min_size=90, max_size=300))
@fuzzed
def test_quantiles_of_bpftrace_are_limits_that_enough_calls_keep(times_ns: list[int]) -> None:
    classes = Counter(time_ns.bit_length() for time_ns in times_ns)
    histogram = [
        {"min": 1 << bits - 1, "max": (1 << bits) - 1, "count": number}
        for bits, number in sorted(classes.items())
    ]
    parser = BpftraceParser(NAMES)
    number, name = next(iter(NAMES.items()))
    with tried():
        parser.line(json.dumps({"type": "map", "data": {"@calls": {number: 9}}}).encode())
        parser.line(json.dumps({"type": "hist", "data": {"@times": {number: histogram}}}).encode())
        quantiles_s = parser.counts().calls[name].quantiles_s
    assert (quantiles_s is None) == (len(times_ns) < 100)
    if quantiles_s is None:
        return
    for share, limit_s in zip((0.5, 0.99), quantiles_s, strict=True):
        within = sum(time_ns <= round(1e9 * limit_s) for time_ns in times_ns)
        below = sum(time_ns <= round(1e9 * limit_s) // 2 for time_ns in times_ns)
        assert below < share * len(times_ns) <= within


@given(mutated([b"336\n", b"12"]))
@fuzzed_rarely
def test_a_damaged_tracefs_is_missing(
    tmp_path_factory: pytest.TempPathFactory, text: bytes
) -> None:
    place: Path = tmp_path_factory.getbasetemp() / "tracefs"
    event = place / "events" / "raw_syscalls" / "sys_exit"
    event.mkdir(parents=True, exist_ok=True)
    (event / "id").write_bytes(text)
    with tried():
        try:
            PerfCounters(str(place)).probe()
        except Missing as why:
            assert why.sentence.endswith(".")
