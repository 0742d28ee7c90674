"""Events and plans survive JSON; anything else is refused with a sentence."""

import dataclasses
import json
import os
from collections.abc import Callable
from functools import partial
from typing import Any, get_args

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tui_fs.model.caller import CallerIdentity
from tui_fs.model.calls import CallCount, Removed, TraceSource
from tui_fs.model.codec import argv_fields, decode, encode, path_fields, shown_path
from tui_fs.model.errors import BadInput
from tui_fs.model.estimate import Estimate
from tui_fs.model.events import (
    Audited,
    CancelRequested,
    EntryFailed,
    Event,
    FailuresCounted,
    JobFinished,
    JobRefused,
    JobStarted,
    PaceChanged,
    Paused,
    RecordIncomplete,
    Resumed,
    Sampled,
    StepFinished,
    StepStarted,
    Throttled,
    ToolSaid,
    Unthrottled,
    Usage,
    event_from_json,
    event_to_json,
)
from tui_fs.model.outcome import Outcome
from tui_fs.model.paths import PathStr
from tui_fs.model.plan import Expected, Plan
from tui_fs.model.space import Space
from tui_fs.model.strategy import Filters, IoPriority, Options, Pace
from tui_fs.model.survey import Totals
from tui_fs.model.target import Pin, Target
from tui_fs.strategies.registry import STRATEGIES

# Others import these to build journals of their own.
seconds = st.floats(0, 1e9, allow_nan=False)
counts = st.integers(0, 1 << 63)
small = st.integers(0, 1000)
texts = st.text(max_size=12)
# surrogateescape decodes any bytes; these are what the kernel can hand out
paths = st.binary(max_size=16).map(lambda name: PathStr(os.fsdecode(name)))
argvs = st.lists(st.lists(paths, max_size=3).map(tuple), max_size=3).map(tuple)
call_names = st.sampled_from(["unlinkat", "rmdir", "openat", "all others"])

totals = st.builds(Totals, counts, counts, counts, counts, counts, counts)
expected = st.builds(Expected, totals, counts, counts, st.booleans())
spaces = st.builds(Space, counts, st.none() | counts)
usages = st.builds(
    Usage, seconds, seconds, st.none() | seconds, counts, counts, counts, small, texts
)
call_counts = st.dictionaries(
    call_names, st.builds(CallCount, counts, counts, st.none() | seconds), max_size=4
)
removed = st.builds(Removed, counts, st.none() | counts)

paces = st.builds(Pace, st.booleans(), counts, small, st.sampled_from(IoPriority))

absolute_paths = paths.map(lambda path: PathStr(f"/{path}"))
several_paths = st.lists(absolute_paths, min_size=1, max_size=3).map(tuple)

EVENT_KINDS: dict[type[Event], st.SearchStrategy[Event]] = {
    JobStarted: st.builds(
        JobStarted,
        at_s=seconds,
        job_id=texts,
        started_at=seconds,
        supervisor_pid=small,
        targets=several_paths,
        strategy=st.sampled_from(list(STRATEGIES)),
        keep_root=st.booleans(),
        command=argvs,
        expected=expected,
        predicted_calls=st.dictionaries(call_names, counts, max_size=3),
        predicted_seconds=st.none() | st.tuples(seconds, seconds, seconds),
        source=st.sampled_from(TraceSource),
        source_note=texts,
        space=st.none() | spaces,
        pace=paces,
        predicted_other_calls=st.none() | counts,
    ),
    JobRefused: st.builds(JobRefused, seconds, texts, texts, texts),
    StepStarted: st.builds(StepStarted, seconds, small, st.lists(small, max_size=3).map(tuple)),
    StepFinished: st.builds(
        StepFinished,
        seconds,
        small,
        st.lists(st.integers(-64, 255), max_size=3).map(tuple),
        seconds,
        seconds,
        counts,
    ),
    Sampled: st.builds(
        Sampled,
        seconds,
        seconds,
        call_counts,
        st.none() | removed,
        st.none() | usages,
        st.none() | spaces,
        st.none() | seconds,
    ),
    EntryFailed: st.builds(EntryFailed, seconds, paths, texts, small),
    FailuresCounted: st.builds(FailuresCounted, seconds, texts, small, counts),
    ToolSaid: st.builds(ToolSaid, seconds, texts),
    Paused: st.builds(Paused, seconds, seconds, st.booleans()),
    Resumed: st.builds(Resumed, seconds),
    PaceChanged: st.builds(PaceChanged, seconds, paces),
    Throttled: st.builds(Throttled, seconds, texts, seconds),
    Unthrottled: st.builds(Unthrottled, seconds),
    Audited: st.builds(Audited, seconds, texts, texts),
    CancelRequested: st.builds(CancelRequested, seconds, texts),
    JobFinished: st.builds(
        JobFinished,
        at_s=seconds,
        outcome=st.sampled_from(Outcome),
        explanation=texts,
        strategy_wall_s=seconds,
        deleted_files=st.none() | counts,
        deleted_directories=st.none() | counts,
        split_is_exact=st.booleans(),
        surviving_entries=st.none() | counts,
        space=st.none() | spaces,
        left=st.lists(absolute_paths, max_size=3).map(tuple),
    ),
    RecordIncomplete: st.builds(RecordIncomplete, seconds, texts),
}
events = st.one_of(*EVENT_KINDS.values())

estimates = st.builds(
    Estimate,
    strategy=st.sampled_from(list(STRATEGIES)),
    seconds_low=seconds,
    seconds=seconds,
    seconds_high=seconds,
    syscalls=st.dictionaries(call_names, counts, max_size=3),
    other_calls=counts,
    processes=small,
    peak_memory_bytes=counts,
    feasible=st.booleans(),
    race_safe=st.booleans(),
    mount_safe=st.booleans(),
    reasons=st.lists(texts, max_size=2).map(tuple),
    command=argvs,
    rests_on=texts,
)
options = st.builds(
    Options,
    keep_root=st.booleans(),
    batch_size=small,
    processes=small,
    pace=paces,
    accept_races=st.booleans(),
    filters=st.builds(Filters, st.none() | texts, st.none() | counts, st.none() | counts),
)
plans = st.builds(
    Plan,
    job_id=texts,
    created_at=seconds,
    targets=st.lists(
        st.builds(Target, absolute_paths, st.builds(Pin, counts, counts, small)),
        min_size=1,
        max_size=3,
    ).map(tuple),
    strategy=st.sampled_from(list(STRATEGIES)),
    options=options,
    tools=st.dictionaries(texts, texts, max_size=2),
    expected=expected,
    predicted=st.none() | estimates,
    confirmed_from=paths,
    requester=st.builds(CallerIdentity, small, texts, texts, texts, texts, texts),
    trace=st.none() | st.sampled_from(TraceSource),
    writable_by_others=counts,
    name_typed=st.booleans(),
    continues=texts,
)

json_values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["YQ==", "rm", "perf", "done", "\udcff", "\ud800"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


def through_json(value: Any) -> Any:
    """Write a JSON value as the journal does, and read it again."""
    return json.loads(json.dumps(value).encode("ascii"))


@st.composite
def damaged(draw: st.DrawFn, whole: st.SearchStrategy[Any]) -> Any:
    """Return a valid JSON value in which one thing was replaced, removed or added."""
    top = through_json(draw(whole))
    holder: Any = top
    while True:
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        if not keys:
            return draw(json_values)
        key = draw(st.sampled_from(keys))
        if isinstance(holder[key], dict | list) and draw(st.booleans()):
            holder = holder[key]
            continue
        match draw(st.sampled_from(["replace", "remove", "add"])):
            case "replace":
                holder[key] = draw(json_values)
            case "remove":
                del holder[key]
            case _ if isinstance(holder, dict):
                holder[f"{key}_b64"] = draw(json_values)
            case _:
                holder.append(draw(json_values))
        return top


def test_every_kind_of_event_is_generated() -> None:
    assert set(EVENT_KINDS) == set(get_args(Event))


@pytest.mark.parametrize("kind", EVENT_KINDS, ids=lambda kind: str(kind.__name__))
def test_every_event_survives_json(kind: type[Event]) -> None:
    @given(EVENT_KINDS[kind])
    @settings(max_examples=60)
    def survives(event: Event) -> None:
        assert event_from_json(through_json(event_to_json(event))) == event

    survives()


@given(plans)
@pytest.mark.slow
def test_every_plan_survives_json(plan: Plan) -> None:
    assert decode(Plan, through_json(encode(plan))) == plan


@given(json_values)
def test_json_of_another_shape_is_refused(value: Any) -> None:
    with pytest.raises(BadInput):
        event_from_json(value)
    with pytest.raises(BadInput):
        decode(Plan, value)


@pytest.mark.parametrize(
    ("records", "read"),
    [(events.map(event_to_json), event_from_json), (plans.map(encode), partial(decode, Plan))],
)
@pytest.mark.slow
def test_a_damaged_record_is_read_or_refused(
    records: st.SearchStrategy[Any], read: Callable[[Any], Any]
) -> None:
    @given(damaged(records))
    @settings(max_examples=300)
    def is_read_or_refused(value: Any) -> None:
        try:
            assert isinstance(read(value), (*get_args(Event), Plan))
        except BadInput as refusal:
            assert refusal.sentence.endswith(".")

    is_read_or_refused()


def test_a_number_too_large_for_a_float_is_refused() -> None:
    value = json.loads('{"type": "Paused", "at_s": 1' + "0" * 400 + "}")
    with pytest.raises(BadInput):
        event_from_json(value)


def test_half_a_character_is_refused_as_a_path() -> None:
    value = json.loads(
        '{"type": "EntryFailed", "at_s": 0, "path": "\\ud800", "operation": "", "error": 0}'
    )
    with pytest.raises(BadInput):
        event_from_json(value)


@pytest.mark.parametrize("wrong", ["1", True, None, [], {}])
def test_a_field_of_another_type_is_refused_by_its_name(wrong: object) -> None:
    with pytest.raises(BadInput, match=r"Paused\.at_s"):
        event_from_json({"type": "Paused", "at_s": wrong})
    with pytest.raises(BadInput):
        decode(Pin, {"device": wrong, "inode": 1, "mount_id": 1})


def test_a_missing_field_is_refused_by_its_name() -> None:
    with pytest.raises(BadInput, match="lacks the field at_s"):
        event_from_json({"type": "Paused"})


def test_an_unknown_type_is_refused() -> None:
    with pytest.raises(BadInput, match="unknown type 'Exploded'"):
        event_from_json({"type": "Exploded"})


def test_unknown_fields_are_passed_over() -> None:
    assert event_from_json({"type": "Resumed", "at_s": 1, "why": "?"}) == Resumed(1.0)


def test_fields_with_a_default_may_be_absent() -> None:
    assert decode(Options, {"keep_root": True}) == Options(keep_root=True)


def test_a_pair_is_no_triple() -> None:
    @dataclasses.dataclass(frozen=True)
    class Three:
        numbers: tuple[int, int, int]

    with pytest.raises(BadInput, match="2 items, expected 3"):
        decode(Three, {"numbers": [1, 2]})


@pytest.mark.parametrize("text", ["!", "YQ", "é"])
def test_bytes_that_are_not_base64_are_refused(text: str) -> None:
    value = {"path": "x", "path_b64": text, "pin": {"device": 1, "inode": 1, "mount_id": 1}}
    with pytest.raises(BadInput, match="path_b64 is not base64"):
        decode(Target, value)


def test_a_readable_path_is_given_once() -> None:
    assert path_fields("path", "/tmp/größe") == {"path": "/tmp/größe"}


def test_other_bytes_are_given_readably_and_exactly() -> None:
    fields = path_fields("path", os.fsdecode(b"/a\xff"))
    assert fields == {"path": "/a\\xff", "path_b64": "L2H/"}


def test_command_lines_in_utf8_are_given_once() -> None:
    assert argv_fields("command", (("rm", "é"),)) == {"command": [["rm", "é"]]}


@pytest.mark.parametrize(
    ("record", "shown"),
    [
        ({"path": "a\nb"}, "a\\nb"),
        ({"path": "a\\xff", "path_b64": "Yf8="}, "a\\xff"),
    ],
)
def test_a_path_in_json_is_escaped_once(record: dict[str, str], shown: str) -> None:
    assert shown_path(record, "path") == shown


@given(argvs)
@example(((PathStr("rm"), PathStr(os.fsdecode(b"\xff"))),))
def test_command_lines_are_always_valid_json_text(command: tuple[tuple[str, ...], ...]) -> None:
    json.dumps(argv_fields("command", command), ensure_ascii=False).encode("utf-8")
