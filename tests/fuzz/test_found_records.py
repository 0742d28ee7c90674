"""Command lines, journals, plans and reports that once broke a parser."""

import argparse
import json
import math
from pathlib import Path

import pytest

from tests.fuzz.common import DIGITS
from tests.fuzz.samples import plan_json
from tui_fs.cli.arguments import directory_argument, positive
from tui_fs.cli.parser import parse
from tui_fs.job import journal
from tui_fs.job.journal import JournalReader
from tui_fs.model.calls import CallCount, Removed
from tui_fs.model.codec import decode
from tui_fs.model.errors import BadInput
from tui_fs.model.events import (
    Event,
    Sampled,
    StepStarted,
    event_from_json,
)
from tui_fs.model.plan import Plan
from tui_fs.model.snapshot import Snapshot, fold
from tui_fs.model.units import parse_age, parse_size


@pytest.mark.parametrize(
    "number", ["NaN", "Infinity", "-Infinity", "1e400", "1e300", "1" * 60, "1" * 401]
)
def test_a_moment_that_is_no_moment_is_refused(number: str) -> None:
    with pytest.raises(BadInput):
        event_from_json(json.loads(f'{{"type": "Resumed", "at_s": {number}}}'))


def test_a_count_of_thousands_of_digits_is_refused() -> None:
    value = {"type": "StepStarted", "at_s": 1, "step": 10**4_000, "pids": []}
    with pytest.raises(BadInput, match=r"StepStarted\.step"):
        event_from_json(value)


@pytest.mark.parametrize("text", ["\ud800", "a\udfff", "\udc00"])
def test_half_a_character_is_refused_in_every_text(text: str) -> None:
    with pytest.raises(BadInput, match="unpaired surrogate"):
        event_from_json({"type": "ToolSaid", "at_s": 1, "text": text})


def test_half_a_character_is_refused_in_a_key() -> None:
    with pytest.raises(BadInput, match="unpaired surrogate"):
        decode(Plan, {**plan_json(), "tools": {"\ud800": "/bin/rm"}})


def test_a_key_is_shown_harmlessly() -> None:
    with pytest.raises(BadInput) as refusal:
        decode(Plan, {**plan_json(), "tools": {"\x1b[2J": 1}})
    assert refusal.value.sentence.isprintable()


@pytest.mark.parametrize("kind", [None, 1, [], {}, [["x"]]])
def test_a_type_that_is_no_word_is_refused(kind: object) -> None:
    with pytest.raises(BadInput, match="unknown type"):
        event_from_json({"type": kind})


def test_a_deep_type_or_choice_is_refused() -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(BadInput):
        event_from_json({"type": deep})
    with pytest.raises(BadInput):
        decode(Plan, {**plan_json(), "strategy": deep})
    while deep:  # Python frees it in one recursion otherwise
        deep = deep.pop()  # type: ignore[assignment]


def test_an_unknown_type_is_shown_harmlessly() -> None:
    with pytest.raises(BadInput) as refusal:
        event_from_json({"type": "\x1b[2J\u202e" + "x" * 1_000_000})
    assert refusal.value.sentence.isprintable()
    assert len(refusal.value.sentence) < 200


def test_a_line_longer_than_what_is_read_at_once_is_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A journal whose second line never ends
    monkeypatch.setattr(journal, "READ_AT_ONCE_BYTES", 500)
    monkeypatch.setattr(journal, "MAX_LINE_BYTES", 1_000)
    (tmp_path / "j").write_bytes(b'{"type":"Resumed","at_s":1}\n' + b" " * 1_500)
    reader = JournalReader(str(tmp_path / "j"))
    assert len(reader.poll()) == 1
    with pytest.raises(BadInput, match="damaged at byte 28"):
        reader.poll()


def test_the_place_of_a_damaged_journal_is_shown_harmlessly(tmp_path: Path) -> None:
    folder = tmp_path / "\x1b[2J"
    folder.mkdir()
    (folder / "j").write_bytes(b"{}\n")
    with pytest.raises(BadInput) as refusal:
        JournalReader(str(folder / "j")).poll()
    assert refusal.value.sentence.isprintable()
    assert not refusal.value.sentence.endswith("..")


def test_two_samples_at_almost_one_moment_give_no_rate() -> None:
    counts = {"unlinkat": CallCount(1 << 100)}
    sample = Sampled(0.0, 5e-324, counts, Removed(1 << 100), None, None, None)
    events: tuple[Event, ...] = (StepStarted(0.0, 0, (1,)), sample)
    snapshot = Snapshot()
    for event in events:
        snapshot = fold(snapshot, event)
    assert snapshot.rate_per_s is None
    assert all(map(math.isfinite, snapshot.call_rates.values()))


def test_a_size_or_age_of_thousands_of_digits_is_refused_in_our_words() -> None:
    with pytest.raises(ValueError, match="larger than any file"):
        parse_size(DIGITS)
    with pytest.raises(ValueError, match="older than any file"):
        parse_age(f"{DIGITS}d")


def test_leading_zeros_are_no_size() -> None:
    assert parse_size("0" * 5_000 + "7k") == 7 << 10
    assert parse_age("0" * 5_000 + "7m") == 420


def test_a_number_of_thousands_of_digits_is_refused_in_our_words() -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="not a number from 1"):
        positive(DIGITS)


@pytest.mark.parametrize(
    "arguments",
    [
        ["survey", "x", "--\x1b[2J"],
        ["survey", "x", "\u202ey"],
        ["delete", "x", "--strategy", "\u3164"],
        ["delete", "x", "--strategy=rm", "--trace=\x1b]0;x\x07"],
        ["delete", "x", "--strategy=rm", "--min-size=\u3164"],
        ["delete", "x", "--strategy=rm", "--\udcff"],
    ],
)
def test_wrong_arguments_are_shown_harmlessly(arguments: list[str]) -> None:
    # An argument that acts on a terminal (a shell pattern expands to file names)
    with pytest.raises(BadInput) as refusal:
        parse(arguments)
    assert refusal.value.sentence.isprintable()
    assert "\u3164" not in refusal.value.sentence


def test_a_backslash_in_a_wrong_argument_is_shown_once() -> None:
    with pytest.raises(BadInput) as refusal:
        parse(["survey", "x", "--a\\b"])
    assert "--a\\b" in refusal.value.sentence


def test_the_sources_to_choose_from_are_shown_as_they_are_written() -> None:
    with pytest.raises(BadInput) as refusal:
        parse(["delete", "x", "--strategy=rm", "--trace=foo"])
    assert "perf" in refusal.value.sentence
    assert "TraceSource" not in refusal.value.sentence


@pytest.mark.parametrize("path", ["", "a\0b", "\ud800"])
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(BadInput):
        directory_argument(path)
