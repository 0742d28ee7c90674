"""Damaged and hostile imports are refused in one sentence."""

import gzip
import lzma
import math
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.import_files import DIRECTORY, last, listing, tree_file, written
from tui_fs.model.errors import BadInput
from tui_fs.model.paths import PathStr
from tui_fs.model.survey import Ranking, Totals
from tui_fs.survey.imported import ImportedSurvey
from tui_fs.survey.process import SurveyProcess, SurveyRequest

HOSTILE: dict[str, str | bytes] = {
    "empty": "",
    "no JSON": "hello",
    "another JSON": '{"a": 1}',
    "version 2": '[2,0,{},[{"name":"/t"}]]',
    "no directory": "[1,2,{}]",
    "an array without a name": "[1,2,{},[[]]]",
    "only brackets": "[1,2,{}," + "[" * 100_000,
    "cut off": DIRECTORY + ',{"name":"a"}',
    "cut off in a name": DIRECTORY + ',{"name":"a',
    "cut off at the end": DIRECTORY + "]",
    "something behind it": DIRECTORY + "]] x",
    "two directories": DIRECTORY + '],[{"name":"/u"}]]',
    "a number as an entry": DIRECTORY + ",1]]",
    "no comma": DIRECTORY + '{"name":"a"}]]',
    "a missing name": DIRECTORY + ',{"asize":1}]]',
    "a slash": DIRECTORY + ',{"name":"a/b"}]]',
    "a NUL": DIRECTORY + ',{"name":"a\\u0000b"}]]',
    "the directory above": DIRECTORY + ',[{"name":".."}]]]',
    "an empty name": DIRECTORY + ',{"name":""}]]',
    "a name of a megabyte": DIRECTORY + ',{"name":"' + "a" * 1_000_000 + '"}]]',
    "a name without end": DIRECTORY + ',{"name":"' + "a" * 5_000_000,
    "backslashes without end": DIRECTORY + ',{"name":"' + "\\" * 5_000_000,
    "fields without end": DIRECTORY + ',{"name":"a",' + '"b":1,' * 1_000_000,
    "brackets in an entry": DIRECTORY + ',{"name":' + "[" * 3_000_000,
    "nesting in an entry": DIRECTORY + ',{"name":"a","b":' + "[" * 50_000 + "]" * 50_000 + "}]]",
    "spaces without end": DIRECTORY + " " * 5_000_000,
    "a huge size": DIRECTORY + ',{"name":"a","asize":' + "9" * 300 + '},{"name":"b","asize":1}]]',
    "a number of 5,000 digits": DIRECTORY + ',{"name":"a","asize":' + "9" * 5_000 + "}]]",
    "not a number": DIRECTORY + ',{"name":"a","asize":NaN}]]',
    "a line break in a name": DIRECTORY + ',{"name":"a\nb"}]]',
    "the top without a name": "[1,2,{},[{}]]",
    "zeros": b"\0" * 10_000,
    "any bytes": bytes(range(256)) * 100,
    "gzip without its end": gzip.compress(DIRECTORY.encode())[:-12],
    "gzip with exchanged bytes": gzip.compress(b"x" * 1000)[:20] + b"damage" * 10,
    "a damaged file in gzip": gzip.compress(DIRECTORY.encode() + b",1]]"),
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_a_damaged_file_is_refused_in_one_sentence(tmp_path: Path, content: str | bytes) -> None:
    with pytest.raises(BadInput) as raised:
        last(ImportedSurvey(written(tmp_path, content)))
    assert len(str(raised.value)) < 400
    assert str(raised.value).isprintable()


TEXT = (DIRECTORY + ',{"name":"a"}]]').encode()

OTHER_FORMATS = {
    "xz": lzma.compress(TEXT),
    "UTF-16": TEXT.decode().encode("utf-16"),
    "a byte order mark": b"\xef\xbb\xbf" + TEXT,
    "ncdu's binary format": b"\xbfncduEX1" + b"\0" * 50,
}


@pytest.mark.parametrize("content", OTHER_FORMATS.values(), ids=OTHER_FORMATS)
def test_another_format_is_no_export(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(BadInput) as raised:
        last(ImportedSurvey(written(tmp_path, content)))
    assert "is not an export of ncdu or tui-fs" in raised.value.sentence
    assert "ncdu -f FILE -o NEW.json" in raised.value.advice


def test_an_empty_file_is_named_as_empty(tmp_path: Path) -> None:
    path = written(tmp_path, b"", name="its name.json")
    with pytest.raises(BadInput, match="is empty") as raised:
        ImportedSurvey(path)
    assert f"ncdu -o '{path}'" in raised.value.advice  # quoted for the shell


NOT_FILES = {
    "nothing": ("cannot be read", ""),
    "directory": ("is a directory", "tui-fs survey"),
    "fifo": ("is not a regular file", "Write the export to a file"),
    "NUL": ("is not a valid path", ""),
}


@pytest.mark.parametrize("kind", NOT_FILES)
def test_what_is_no_regular_file_is_refused_with_advice(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "file"
    match kind:
        case "directory":
            path.mkdir()
        case "fifo":
            os.mkfifo(path)
    with pytest.raises(BadInput) as raised:
        ImportedSurvey("a\0b" if kind == "NUL" else str(path))
    sentence, advice = NOT_FILES[kind]
    assert sentence in raised.value.sentence
    assert advice in raised.value.advice


def test_odd_values_are_clamped(tmp_path: Path) -> None:
    path = tree_file(
        tmp_path,
        {"name": "negative", "mtime": -1, "ino": -1, "nlink": -3},
        {"name": "words", "mtime": [], "dev": {}, "mode": "x"},
        {"name": "truth", "hlnkc": "yes", "notreg": 1, "read_error": "no"},
        {"name": "infinite", "asize": 1, "mtime": 10**200, "nlink": 10**30, "ino": 10**30},
        {"name": "same"},
        {"name": "same"},
        [{"name": "same"}, {"name": "x", "asize": 4}],
        [{"name": "same"}],
        {"name": "half \ud800", "uid": -7},
        {"name": "mode", "mode": 10**12},
        top={"mode": 10**40, "dev": -1, "uid": 1e300},
    )
    survey = ImportedSurvey(path)
    result = last(survey)
    assert result.totals == Totals(8, 3, 0, 1, 5, 0)
    assert len(listing(survey, "/top").children) >= 7
    for by in Ranking:
        assert len(survey.collector.table.ranked(by, 10)) >= 1


@pytest.mark.parametrize("field", ("asize", "dsize"))
@pytest.mark.parametrize("size", (-1, 1 << 63, 1 << 70, 1e300, math.inf, "5", None, True, [], {}))
@pytest.mark.parametrize("is_directory", (False, True))
def test_a_size_that_is_none_is_refused_and_not_counted_as_another(
    tmp_path: Path, field: str, size: object, is_directory: bool
) -> None:
    entry = {"name": "big\x1b", field: size}
    path = tree_file(tmp_path, [entry] if is_directory else entry)
    if size == math.inf:
        Path(path).write_text(Path(path).read_text().replace("Infinity", "1e400"))
    with pytest.raises(BadInput) as raised:
        last(ImportedSurvey(path))
    assert raised.value.sentence == (
        f"The imported file is damaged: the {field} of big\\e is not a size in bytes."
    )


@pytest.mark.slow
def test_thousands_of_levels_are_imported(tmp_path: Path) -> None:
    levels = 30_000
    text = DIRECTORY + ',[{"name":"d"}' * levels + ',{"name":"f","asize":3}' + "]" * (levels + 2)
    survey = ImportedSurvey(written(tmp_path, text))
    result = last(survey)
    assert (result.totals.directories, result.max_depth) == (levels + 1, levels + 1)
    assert [child.name for child in survey.names("/t" + "/d" * levels).others] == ["f"]


@given(st.data())
@settings(max_examples=200)
@pytest.mark.slow
def test_damage_anywhere_is_bad_input(data: st.DataObject) -> None:
    good = (
        b'[1,2,{"progname":"ncdu"},[{"name":"/t","asize":4096,"dev":1},'
        b'{"name":"a\\u0001\xff","asize":10,"dsize":512,"ino":3,"nlink":2,"hlnkc":true},\n'
        b'[{"name":"d","read_error":true},{"name":"x","mode":33188,"mtime":5}],[{"name":"e"}]]]'
    )
    damaged = bytearray(good)
    alphabet = st.sampled_from(b'[]{},:"\\0-.e/\0\xff \n')
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(good) - 1))] = data.draw(alphabet)
    with tempfile.TemporaryDirectory() as place:
        path = written(Path(place), bytes(damaged))
        try:
            survey = ImportedSurvey(path)
            result = last(survey)
        except BadInput:
            return
        listing(survey, result.path)


def test_no_path_that_the_file_names_is_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "real" / "inside").mkdir(parents=True)
    top = {"name": str(tmp_path / "real")}
    path = tree_file(tmp_path, [{"name": "inside"}, {"name": "no"}], {"name": "f"}, top=top)
    touched: list[object] = []
    for function in ("open", "stat", "lstat", "scandir", "listdir", "access", "readlink"):
        true = getattr(os, function)

        def watching(place: object, *rest: Any, _true: Any = true, **named: Any) -> Any:
            touched.append(place)
            return _true(place, *rest, **named)

        monkeypatch.setattr(os, function, watching)
    survey = ImportedSurvey(path)
    result = last(survey)
    assert len(listing(survey, result.path).children) == 2
    # Only the file itself has been opened
    assert touched == [path]


def test_the_survey_process_reports_a_damaged_file(tmp_path: Path) -> None:
    process = SurveyProcess(SurveyRequest((), PathStr(written(tmp_path, "hello"))))
    try:
        with pytest.raises(BadInput, match="not an export of ncdu"):
            list(process.updates())
    finally:
        process.stop()
