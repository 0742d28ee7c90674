"""The engine's arguments, and the parsing of its output."""

import json

import pytest

from tui_fs.model.calls import CallCount, Removed
from tui_fs.model.strategy import Filters, Options, flatten
from tui_fs.model.target import Pin
from tui_fs.strategies.base import Failure, Invocation, Remark, Totals
from tui_fs.strategies.parallel import Parallel

TOOLS = {"tui-fs-engine": "/bin/tui-fs-engine"}
PARALLEL = Parallel()
COUNTS = (
    b'{"type":"counts","removed":12,"directories":2,"threads":3,'
    b'"calls":{"unlinkat":[14,2,2000000],"openat2":[1,0,500],"statx":[0,0,0]},'
    b'"removal_ns":[[3071,1],[4095,2]]}'
)


def argv(targets: tuple[str, ...], pins: list[Pin], options: Options) -> tuple[str, ...]:
    """Build the one command line of a deletion with pins."""
    steps = PARALLEL.pinned(PARALLEL.steps(Invocation(targets, options, TOOLS)), pins)
    (line,) = flatten(steps)
    return line


def test_each_target_has_its_pin_in_their_order() -> None:
    line = argv(("/t/a", "/t/b"), [Pin(8, 2, 99), Pin(9, 3, 99)], Options())
    assert line[1:] == (
        *("delete", "--every", "50", "--pin", "8:2:0", "--pin", "9:3:0"),
        *("--", "/t/a", "/t/b"),
    )


@pytest.mark.parametrize("glob", ["--", "--pin", "-*", "/t"])
def test_a_pattern_like_an_option_stays_a_pattern(glob: str) -> None:
    line = argv((".",), [Pin(8, 2, 99)], Options(filters=Filters(name_glob=glob)))
    assert line[1:] == ("delete", "--name", glob, "--every", "50", "--pin", "8:2:0", "--", ".")


def test_counts_are_read_with_their_times() -> None:
    assert PARALLEL.parse_output(COUNTS) == Totals(
        Removed(12, 2),
        {"unlinkat": CallCount(14, 2, 0.002), "openat2": CallCount(1, 0, 5e-7)},
        threads=3,
        removal_ns={3071: 1, 4095: 2},
    )


def test_only_an_answer_that_is_a_problem_is_reported() -> None:
    assert PARALLEL.parse_output(b'{"type":"answer","command":"pause","problem":null}') is None
    message = PARALLEL.parse_output(b'{"type":"answer","command":"rate x","problem":"no number"}')
    assert message == Remark("tui-fs-engine: rate x: no number")


def changed(**fields: object) -> bytes:
    """Return the line of counts with other fields; None leaves one out."""
    whole = {**json.loads(COUNTS), **fields}
    return json.dumps({name: field for name, field in whole.items() if field is not None}).encode()


@pytest.mark.parametrize(
    "line",
    [
        b"Hello",
        b"[]",
        b"null",
        b'{"type":"news"}',
        b'{"type":"answer","command":1,"problem":2}',
        b"[" * 100_000,
        b'{"type":"counts"}',
        changed(removed=-1),
        changed(removed=1 << 64),
        changed(removed=1.5),
        changed(removed=True),
        changed(removed=None),
        changed(directories=13),
        changed(directories="2"),
        changed(threads=None),
        changed(threads=1 << 40),
        changed(calls=None),
        changed(calls=[]),
        changed(calls={"unlinkat": [1, 2]}),
        changed(removal_ns={}),
        changed(removal_ns=[[1]]),
        changed(removal_ns=[[1, -1]]),
        changed(removal_ns=[[number, 1] for number in range(129)]),
        changed(calls={"unlinkat": [1, 0, "x"]}),
        changed(calls={"unlinkat": [1, 0, -5]}),
        changed(calls={"\x1b[2J": [1, 0, 5]}),
        changed(calls={"x" * 40: [1, 0, 5]}),
        changed(calls={f"call{number}": [1, 0, 5] for number in range(65)}),
        b'{"removed":' + b"9" * 5_000 + b"}",
    ],
)
def test_what_has_another_shape_is_reported_verbatim(line: bytes) -> None:
    assert PARALLEL.parse_output(line) == Remark(line.decode())


def test_an_empty_line_says_nothing() -> None:
    assert PARALLEL.parse_output(b" ") is None


@pytest.mark.parametrize(
    ("line", "failure"),
    [
        (b"tui-fs-engine: cannot remove '/t/a\\nb': Permission denied", ("/t/a\nb", "remove", 13)),
        (b"tui-fs-engine: cannot go back to './a': Stale file handle", ("./a", "go back to", 116)),
        (b"tui-fs-engine: cannot read '/t/it\\'s\\377': ?", ("/t/it's\udcff", "read", 0)),
    ],
)
def test_failures_are_read(line: bytes, failure: tuple[str, str, int]) -> None:
    assert PARALLEL.parse_error(line) == Failure(*failure)  # type: ignore[arg-type]


def test_what_is_about_no_entry_is_no_failure() -> None:
    line = b"tui-fs-engine: '/t' is not the directory that was confirmed"
    assert PARALLEL.parse_error(line) is None
