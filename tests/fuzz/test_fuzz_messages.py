"""The tools' output: damaged, split, with every quoting style, in pieces of any size."""

import errno
import os
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.common import TOKENS, filled, fuzzed, mutated, pieces, tried
from tests.fuzz.samples import MESSAGE_TEMPLATES, MESSAGES, OUTPUT
from tui_fs.job import tool_output
from tui_fs.job.tool_output import OutputLimits, ToolOutput
from tui_fs.model.codec import encode as to_json
from tui_fs.model.events import EntryFailed, Event, FailuresCounted, ToolSaid, event_from_json
from tui_fs.model.strategy import StrategyName
from tui_fs.strategies.base import (
    Failure,
    Remark,
    Totals,
    gnu_failure,
    tool_of,
    unquote_c,
    unquote_shell,
)
from tui_fs.strategies.registry import STRATEGIES

names = st.sampled_from(list(STRATEGIES))
EVERY_MESSAGE = tuple(line for lines in MESSAGES.values() for line in lines)
REASONS = {b"Permission denied": 13, b"Operation not permitted": 1, b"Directory not empty": 39}
any_name = st.one_of(
    st.binary(min_size=1, max_size=12),
    st.lists(st.sampled_from([b"'", b'"', b"\\", b"$", b": ", b"\n", b"a", b"\xff", b"7"]))
    .map(b"".join)
    .filter(bool),
    st.sampled_from([token for token in TOKENS if 0 < len(token) < 20]),
).map(lambda name: name.replace(b"\0", b"x"))


@pytest.fixture(autouse=True, scope="module")
def _short_lines() -> Iterator[None]:
    """Have long lines begin early, so that many are tried."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tool_output, "LONGEST_LINE_BYTES", 64)
        yield


@given(name=names, line=mutated((*EVERY_MESSAGE, *OUTPUT["parallel"])) | filled(*MESSAGE_TEMPLATES))
@fuzzed
def test_a_damaged_message_is_read_or_reported(name: StrategyName, line: bytes) -> None:
    strategy = STRATEGIES[name]
    with tried():
        for failed in (strategy.parse_error(line), strategy.parse_output(line)):
            if isinstance(failed, Failure):
                assert 0 <= failed.error < 10_000
                assert failed.operation.isascii()
                os.fsencode(failed.path)
            elif isinstance(failed, Totals):
                assert 0 <= (failed.removed.directories or 0) <= failed.removed.entries
            elif failed is not None and not isinstance(failed, Remark):
                assert 0 <= failed.directories <= failed.entries <= 1


def _c_quoted(data: st.DataObject, name: bytes) -> bytes:
    """Quote a name as findutils does in the C locale, or with more escapes than it needs."""
    quoted = b""
    for byte in name:
        plain = bytes([byte]) if 0x20 <= byte < 0x7F and byte not in b"'\\" else b""
        escaped = b"\\" + bytes([byte]) if byte in b"'\\" else b"\\%03o" % byte
        quoted += data.draw(st.sampled_from([plain, escaped])) if plain else escaped
    return b"'" + quoted + b"'"


@given(name=any_name, data=st.data())
@fuzzed
def test_a_name_comes_back_from_any_quoting(name: bytes, data: st.DataObject) -> None:
    shell = b"".join(_parts(data, name))
    with tried(2):
        assert unquote_shell(shell) == name
        assert unquote_c(_c_quoted(data, name)) == name


def _parts(data: st.DataObject, name: bytes) -> list[bytes]:
    """Quote each byte in one of the coreutils quoting styles."""
    parts: list[bytes] = []
    for number in name:
        byte = bytes([number])
        ways = [b"$'\\%03o'" % number]
        if byte == b"'":
            ways.append(b"\\'")
        else:
            ways.append(b"'" + byte + b"'")
        if byte not in (b'"', b"\\", b"$", b"`"):
            ways.append(b'"' + byte + b'"')
        parts.append(data.draw(st.sampled_from(ways)))
    return parts


@given(
    st.lists(
        st.tuples(
            st.sampled_from([b"rm: ", b"/usr/bin/rm: "]),
            st.sampled_from([b"a", b"b", b"'", b"a\n"]),
            st.sampled_from(sorted(REASONS)),
        ),
        min_size=2,
        max_size=3,
    ),
    st.data(),
)
@fuzzed
def test_what_several_rm_write_into_one_pipe_makes_up_no_name(
    them: list[tuple[bytes, bytes, bytes]], data: st.DataObject
) -> None:
    queues = [
        [tool, b"cannot remove " + _quoted_by_rm(name), b": " + reason, b"\n"]
        for tool, name, reason in them
    ]
    text = b""
    while queues:
        queue = data.draw(st.sampled_from(queues))
        text += queue.pop(0)
        queues = [pending for pending in queues if pending]
    xargs = STRATEGIES[StrategyName("xargs")]
    with tried():
        for line in text.split(b"\n"):
            failed = xargs.parse_error(line)
            if failed is not None:
                assert os.fsencode(failed.path) in {name for _, name, _ in them}
                assert failed.error in {0, *(REASONS[reason] for _, _, reason in them)}


def _quoted_by_rm(name: bytes) -> bytes:
    return {b"'": b'"\'"', b"a\n": b"'a'$'\\n'"}.get(name, b"'" + name + b"'")


channel = st.lists(
    mutated((*EVERY_MESSAGE, *OUTPUT["parallel"]), most=2)
    | st.sampled_from([line for lines in OUTPUT.values() for line in lines])
    | st.binary(max_size=100),
    max_size=10,
).map(b"\n".join)


@given(name=names, output=channel, errors=channel, data=st.data())
@fuzzed
def test_the_pieces_in_which_tools_are_read_change_nothing(
    name: StrategyName, output: bytes, errors: bytes, data: st.DataObject
) -> None:
    with tried():
        whole = _taken(name, [output], [errors])
        assert _taken(name, data.draw(pieces(output)), data.draw(pieces(errors))) == whole
    # And each of them can be written into the journal and read again
    assert [event_from_json(to_json(event)) for event in whole[0]] == whole[0]


def _taken(
    name: StrategyName, output: list[bytes], errors: list[bytes]
) -> tuple[list[Event], object]:
    tool = ToolOutput(STRATEGIES[name], "/t", OutputLimits(paths=5, lines=5))
    events: list[Event] = []
    for piece in output:
        events += tool.take_output(piece, 1.0)
    for piece in errors:
        events += tool.take_errors(piece, 1.0)
    events += tool.take_rest(2.0)
    events += tool.counted_failures(2.0)
    return [_without_moment(event) for event in events], (tool.removed(), tool.calls())


def _without_moment(event: Event) -> Event:
    """The last line counts at the end, however it came; all else is the same."""
    match event:
        case EntryFailed(_, path, operation, error):
            return EntryFailed(0.0, path, operation, error)
        case ToolSaid(_, text):
            return ToolSaid(0.0, text)
        case FailuresCounted(_, operation, error, number):
            return FailuresCounted(0.0, operation, error, number)
    raise AssertionError(event)


def _is_not_empty(line: bytes) -> bool:
    """Return whether rmdir reports that a target is not empty."""
    shortened = line if len(line) <= 64 else line[:32] + line[-32:]
    failure = gnu_failure(shortened, unquote_shell) if tool_of(shortened) == b"rmdir" else None
    return failure is not None and failure.error == errno.ENOTEMPTY


@given(name=names, errors=st.lists(mutated(EVERY_MESSAGE, most=1), max_size=12))
@fuzzed
def test_nothing_that_is_said_gets_lost(name: StrategyName, errors: list[bytes]) -> None:
    text = b"\n".join(errors) + b"\n"
    with tried():
        events, _ = _taken(name, [], [text])
    tool_messages = sum(isinstance(event, ToolSaid) for event in events)
    failed = sum(isinstance(event, EntryFailed) for event in events)
    failed += sum(event.number for event in events if isinstance(event, FailuresCounted))
    more = [
        said_event.text
        for said_event in events
        if isinstance(said_event, ToolSaid) and "further lines" in said_event.text
    ]
    ignored = int(more[0].split()[-1].removesuffix(")")) - 1 if more else 0
    # (a target that rmdir finds not empty follows from what is left in it)
    said = [line for line in text.split(b"\n") if line.strip() and not _is_not_empty(line)]
    assert tool_messages + ignored + failed == len(said)
