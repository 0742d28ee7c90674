"""Records that are not events or plans are refused with a sentence; see also tests/fuzz."""

import json
import os

import pytest
from hypothesis import example, given
from msgspec import Struct

from tests.fuzz.common import values_of
from tui_fs.model.codec import argv_fields, decode, path_fields
from tui_fs.model.errors import BadInput
from tui_fs.model.events import (
    Resumed,
    event_from_json,
)
from tui_fs.model.paths import PathStr
from tui_fs.model.strategy import Options, Pace
from tui_fs.model.target import Pin, Target


@pytest.mark.parametrize("wrong", ["1", True, None, [], {}])
def test_a_field_of_another_type_is_refused_by_its_name(wrong: object) -> None:
    with pytest.raises(BadInput, match=r"Paused\.at_s"):
        event_from_json({"type": "Paused", "at_s": wrong})
    with pytest.raises(BadInput):
        decode(Pin, {"device": wrong, "inode": 1, "mount_id": 1})


def test_a_missing_field_is_refused_by_its_name() -> None:
    with pytest.raises(BadInput, match="missing required field `at_s`"):
        event_from_json({"type": "Paused"})


def test_an_unknown_type_is_refused() -> None:
    with pytest.raises(BadInput, match="unknown type 'Exploded'"):
        event_from_json({"type": "Exploded"})


def test_half_a_character_is_refused_as_a_path() -> None:
    with pytest.raises(BadInput):
        event_from_json(
            {"type": "EntryFailed", "at_s": 0, "path": "\ud800", "operation": "", "error": 0}
        )


def test_a_word_that_is_not_one_of_the_choices_is_refused() -> None:
    with pytest.raises(BadInput, match=r"Invalid enum value 'best' - at `Pace\.io_priority`"):
        decode(Pace, {"io_priority": "best"})


def test_unknown_fields_are_passed_over() -> None:
    assert event_from_json({"type": "Resumed", "at_s": 1, "why": "?"}) == Resumed(1.0)


def test_fields_with_a_default_may_be_absent() -> None:
    assert decode(Options, {"keep_root": True}) == Options(keep_root=True)


def test_a_pair_is_no_triple() -> None:
    class Three(Struct, frozen=True):
        numbers: tuple[int, int, int]

    with pytest.raises(BadInput, match="length 3, got 2"):
        decode(Three, {"numbers": [1, 2]})


@pytest.mark.parametrize("text", ["!", "YQ", "é"])
def test_bytes_that_are_not_base64_are_refused(text: str) -> None:
    value = {"path": "x", "path_b64": text, "pin": {"device": 1, "inode": 1, "mount_id": 1}}
    with pytest.raises(BadInput, match="path_b64 is not base64"):
        decode(Target, value)


def test_only_other_bytes_than_utf8_are_given_twice() -> None:
    assert path_fields("path", "/tmp/größe") == {"path": "/tmp/größe"}
    fields = path_fields("path", os.fsdecode(b"/a\xff"))
    assert fields == {"path": "/a\\xff", "path_b64": "L2H/"}
    assert argv_fields("command", (("rm", "é"),)) == {"command": [["rm", "é"]]}


@given(values_of(tuple[tuple[PathStr, ...], ...]))
@example(((PathStr("rm"), PathStr(os.fsdecode(b"\xff"))),))
def test_command_lines_are_always_valid_json_text(command: tuple[tuple[str, ...], ...]) -> None:
    json.dumps(argv_fields("command", command), ensure_ascii=False).encode("utf-8")
