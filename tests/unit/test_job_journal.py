"""The journal: readers get whole events, even if its end is damaged."""

from pathlib import Path

import pytest

from tui_fs.job.journal import JournalReader, JournalWriter
from tui_fs.model.errors import BadInput
from tui_fs.model.events import EntryFailed, Event, Paused, Resumed, ToolSaid
from tui_fs.model.paths import PathStr

SAMPLE: list[Event] = [
    Paused(1.0, 1.0, True),
    EntryFailed(1.5, PathStr("/t/\udcff\n"), "remove", 1),
    ToolSaid(2.0, 'a "quoted"\nline, ü'),
    Resumed(3.25),
]


def written(directory: Path, them: list[Event]) -> Path:
    """Write a journal."""
    path = directory / "events.jsonl"
    path.unlink(missing_ok=True)
    writer = JournalWriter(str(path))
    for event in them:
        writer.write(event)
    return path


def test_a_journal_cut_at_any_byte_reads_to_its_last_whole_event(tmp_path: Path) -> None:
    whole = written(tmp_path, SAMPLE).read_bytes()
    cut = tmp_path / "cut"
    for size in range(len(whole) + 1):
        cut.write_bytes(whole[:size])
        assert JournalReader(str(cut)).poll() == SAMPLE[: whole[:size].count(b"\n")]


def test_the_rest_of_a_cut_line_is_read_when_it_comes(tmp_path: Path) -> None:
    whole = written(tmp_path, SAMPLE).read_bytes()
    growing = tmp_path / "growing"
    for size in range(0, len(whole) + 1, 7):
        growing.write_bytes(whole[:size])
        reader = JournalReader(str(growing))
        first = reader.poll()
        growing.write_bytes(whole)
        assert first + reader.poll() == SAMPLE
        assert reader.poll() == []


def test_a_missing_journal_is_an_empty_one(tmp_path: Path) -> None:
    assert JournalReader(str(tmp_path / "none")).poll() == []


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"[]",
        pytest.param(b"[" * 100_000, id="deep"),
        b"null",
        b"\xff\xfe",
        b'{"type": "Paused"}',
        b'{"type": "Paused", "at_s": "1"}',
        b'{"type": "Exploded", "at_s": 1}',
        b'{"type": "Paused", "at_s": 1}{"type": "Paused", "at_s": 1}',
    ],
)
def test_a_damaged_whole_line_is_bad_input(tmp_path: Path, line: bytes) -> None:
    (tmp_path / "j").write_bytes(line + b"\n")
    with pytest.raises(BadInput):
        JournalReader(str(tmp_path / "j")).poll()


def test_events_before_the_damage_are_not_lost(tmp_path: Path) -> None:
    good = written(tmp_path, SAMPLE).read_bytes()
    (tmp_path / "j").write_bytes(good + b"{\n")
    reader = JournalReader(str(tmp_path / "j"))
    seen: list[Event] = []
    with pytest.raises(BadInput, match=f"damaged at byte {len(good)}"):
        while True:
            seen += reader.poll()
    assert seen == SAMPLE


def test_two_writers_append(tmp_path: Path) -> None:
    path = written(tmp_path, SAMPLE)
    JournalWriter(str(path)).write(Paused(9.0, 9.0, True))
    assert JournalReader(str(path)).poll() == [*SAMPLE, Paused(9.0, 9.0, True)]


def test_only_the_owner_may_read_a_journal(tmp_path: Path) -> None:
    assert written(tmp_path, SAMPLE).stat().st_mode & 0o777 == 0o600
