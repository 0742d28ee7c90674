"""Journals, plans and reports: damaged, torn, in the wrong order, and folded all the same."""

import json
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.common import damaged, fuzzed, mutated, nasty, tried, values_of
from tests.fuzz.samples import EVENT_LINES, JOURNALS, event_line, plan_json
from tui_fs.cli.follow import report_as_text, status
from tui_fs.job.journal import JournalReader, JournalWriter
from tui_fs.job.report import Report, report_of
from tui_fs.job.store import JobFolder, load_plan
from tui_fs.model.codec import decode, encode
from tui_fs.model.errors import BadInput
from tui_fs.model.events import EntryFailed, Event, JobFinished, event_from_json
from tui_fs.model.outcome import JobState, Outcome
from tui_fs.model.plan import Plan
from tui_fs.model.snapshot import Snapshot, fold
from tui_fs.screens.report import call_rows, details, headline, where_kept

KINDS = get_args(Event)
any_event: st.SearchStrategy[Event] = st.one_of([values_of(kind) for kind in KINDS])
event_values = st.sampled_from([json.loads(line) for line in EVENT_LINES])
nasty_values = st.recursive(
    nasty, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4)
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory that all inputs share."""
    return tmp_path_factory.mktemp("fuzz")


def read(journal: Path, text: bytes) -> tuple[list[Event], str]:
    """Read a journal to its end or its damage; return what is whole, and what is wrong."""
    journal.write_bytes(text)
    reader = JournalReader(str(journal))
    events: list[Event] = []
    try:
        while new := reader.poll():
            events += new
    except BadInput as refusal:
        assert refusal.sentence.isprintable()
        assert refusal.sentence.endswith(".")
        return events, refusal.sentence
    return events, ""


def event_of(line: bytes) -> Event | None:
    """Return the event of a line, None if it is none."""
    try:
        return event_from_json(json.loads(line))
    except (BadInput, ValueError, RecursionError):
        return None


def report_for(events: list[Event]) -> Report:
    """Fold events and return the report, as the job view does."""
    snapshot = Snapshot()
    for event in events:
        snapshot = fold(snapshot, event)
        assert snapshot.fraction is None or snapshot.fraction <= 1
        assert isinstance(snapshot.elapsed_s, float)
        status(snapshot, snapshot.state or JobState.RUNNING)
    state = snapshot.state if snapshot.state and not snapshot.state.is_live else JobState.DIED
    errors = [event for event in events if isinstance(event, EntryFailed)]
    return report_of(snapshot, state, errors)


def assert_can_be_shown(report: Report) -> None:
    """Fail unless a report can be written and shown in every view."""
    json.dumps(report.to_json(), allow_nan=False).encode("ascii")
    show(report)


def show(report: Report) -> None:
    """Draw a report in every view."""
    report_as_text(report)
    headline(report)
    details(report, 80)
    call_rows(report)
    where_kept(report, JobFolder("/x"))


@given(event=any_event)
@fuzzed
def test_an_event_that_can_be_written_can_be_read(folder: Path, event: Event) -> None:
    path = folder / "written"
    path.unlink(missing_ok=True)
    with tried():
        JournalWriter(str(path)).write(event)
        assert JournalReader(str(path)).poll() == [event]


@given(event_values.flatmap(damaged))
@fuzzed
def test_a_damaged_event_that_is_read_stays_what_it_is(line: bytes) -> None:
    with tried():
        event = event_of(line)
        if event is None:
            return
        # Writing it returns the same again: no figure is NaN
        assert event_of(event_line(event)) == event


@given(mutated(EVENT_LINES))
@fuzzed
def test_a_line_of_damaged_bytes_is_read_or_refused(folder: Path, line: bytes) -> None:
    with tried():
        events, problem = read(folder / "line", line + b"\n")
    whole = [event_of(part) for part in line.split(b"\n")]
    good = whole.index(None) if None in whole else len(whole)
    assert events == whole[:good]
    assert bool(problem) == (good < len(whole))


@given(
    st.lists(st.sampled_from(EVENT_LINES) | mutated(EVENT_LINES, most=1), max_size=12).map(
        b"\n".join
    )
)
@fuzzed
def test_a_journal_of_any_lines_can_be_reported(folder: Path, text: bytes) -> None:
    with tried():
        events, _ = read(folder / "journal", text)
        report = report_for(events)
        assert_can_be_shown(report)
    # And it says done only if that was written
    ends = [event.outcome for event in events if isinstance(event, JobFinished)]
    assert report.outcome is not Outcome.DONE or Outcome.DONE in ends


@given(st.lists(any_event, max_size=12))
@fuzzed
def test_events_of_any_values_can_be_reported(events: list[Event]) -> None:
    with tried():
        report = report_for(events)
        assert_can_be_shown(report)


@given(st.sampled_from(JOURNALS), st.data())
@fuzzed
def test_a_torn_journal_is_read_to_its_last_whole_line(
    folder: Path, journal: tuple[Event, ...], data: st.DataObject
) -> None:
    text = b"".join(event_line(event) + b"\n" for event in journal)
    first, second = sorted(data.draw(st.integers(0, len(text))) for _ in range(2))
    path = folder / "torn"
    with tried():
        path.write_bytes(text[:first])
        reader = JournalReader(str(path))
        seen = reader.poll()
        assert seen == list(journal[: text[:first].count(b"\n")])
        path.write_bytes(text[:second])
        seen += reader.poll()
        assert seen == list(journal[: text[:second].count(b"\n")])
        report_for(seen)


def test_a_journal_torn_at_every_byte_can_be_reported(folder: Path) -> None:
    for journal in JOURNALS:
        last = list(journal[-4:])
        for whole in range(len(last) + 1):
            report_for(last[:whole])
        text = b"".join(event_line(event) + b"\n" for event in last)
        for size in range(len(text) + 1):
            with tried():
                events, problem = read(folder / "every", text[:size])
                assert not problem
                assert events == last[: text[:size].count(b"\n")]


@given(plan=values_of(Plan))
@fuzzed
def test_a_plan_that_can_be_written_can_be_read(plan: Plan) -> None:
    with tried():
        assert decode(Plan, json.loads(json.dumps(encode(plan)))) == plan


@given(values_of(Plan).map(encode).flatmap(damaged))
@fuzzed
def test_a_damaged_plan_is_read_as_it_is_or_refused(folder: Path, text: bytes) -> None:
    (folder / "plan.json").write_bytes(b'{"schema":2,' + text[1:])
    with tried():
        try:
            plan = load_plan(JobFolder(str(folder)))
        except BadInput as refusal:
            # ... or a sentence
            assert refusal.sentence.isprintable()
            return
        assert decode(Plan, json.loads(json.dumps(encode(plan), allow_nan=False))) == plan


@given(mutated([json.dumps(plan_json(), indent=1).encode()]))
@fuzzed
def test_a_plan_of_damaged_bytes_is_read_or_refused(folder: Path, text: bytes) -> None:
    (folder / "plan.json").write_bytes(text)
    with tried():
        try:
            load_plan(JobFolder(str(folder)))
        except BadInput as refusal:
            assert refusal.sentence.endswith(".")


@given(
    nasty | st.recursive(nasty, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))
)
@fuzzed
def test_json_that_is_nothing_of_ours_is_refused(value: Any) -> None:
    with tried():
        for read_one in (
            event_from_json,
            lambda document: decode(Plan, document),
        ):
            with pytest.raises(BadInput):
                read_one(value)
