"""The names in journals: renaming a class or a field must not change them by accident."""

import json
from pathlib import Path

import pytest

from tui_fs.model.codec import encode
from tui_fs.model.events import Event, event_from_json

LINES = (Path(__file__).with_name("wire_format.jsonl")).read_text(encoding="utf-8").splitlines()
"""One event of each type; no field has its default value."""


@pytest.mark.parametrize("line", LINES, ids=[json.loads(line)["type"] for line in LINES])
def test_an_event_is_written_as_it_was_read(line: str) -> None:
    assert encode(event_from_json(json.loads(line))) == json.loads(line)


def test_every_type_of_event_has_a_line() -> None:
    types = [type(event_from_json(json.loads(line))) for line in LINES]
    assert sorted(types, key=str) == sorted(Event.__args__, key=str)
