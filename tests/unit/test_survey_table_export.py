"""Tables of a survey: every directory once, in a form that other programs read."""

import base64
import csv
import io
import json
import os
from pathlib import Path

import pytest

from tui_fs.survey.records import DIRECTORY_FLAGS
from tui_fs.survey.runner import SurveyRunner
from tui_fs.survey.table_export import COLUMNS, FLAG_WORDS, guarded, write_csv, write_json


def surveyed(path: Path) -> SurveyRunner:
    survey = SurveyRunner([str(path)], checks_surroundings=False)
    assert [*survey.run()][-1].finished
    return survey


def test_csv_has_every_directory_once(tmp_path: Path) -> None:
    # Directories whose names need quotes, and one that is not UTF-8
    for name in (b'a,"b', b"new\nline", b"\xff", b"plain/below"):
        os.makedirs(os.path.join(os.fsencode(tmp_path), name))
    (tmp_path / "plain" / "file").write_bytes(b"x" * 5_000)
    output = io.BytesIO()
    write_csv(surveyed(tmp_path).collector, output)
    header, *lines = csv.reader(io.StringIO(output.getvalue().decode(), newline=""))
    assert tuple(header) == COLUMNS
    rows = [dict(zip(header, line, strict=True)) for line in lines]
    top = str(tmp_path)
    assert [row["path"] for row in rows] == [
        top,
        f'{top}/a,"b',
        f"{top}/new\\nline",
        f"{top}/plain",
        f"{top}/plain/below",
        f"{top}/\\xff",
    ]
    assert base64.b64decode(rows[-1]["path_b64"]) == os.fsencode(tmp_path) + b"/\xff"
    assert base64.b64decode(rows[2]["path_b64"]) == os.fsencode(tmp_path) + b"/new\nline"
    assert rows[3]["path_b64"] == ""
    plain = rows[3]
    assert (plain["own_entries"], plain["subtree_entries"]) == ("2", "3")
    assert plain["own_apparent_bytes"] == "5000"
    assert int(rows[0]["subtree_entries"]) == 7
    assert plain["oldest_s"] == str(int((tmp_path / "plain" / "file").stat().st_mtime))
    assert rows[1]["oldest_s"] == ""
    assert rows[0]["flags"] == "control-names undecodable-names"


def test_csv_ends_its_lines_as_rfc_4180_says(tmp_path: Path) -> None:
    output = io.BytesIO()
    write_csv(surveyed(tmp_path).collector, output)
    assert output.getvalue().count(b"\r\n") == output.getvalue().count(b"\n") == 2


@pytest.mark.parametrize("cell", ["=1+1", "+1", "-1", "@x", "\t=1", "\r=1"])
def test_no_cell_is_a_formula(cell: str) -> None:
    assert guarded(cell) == f"'{cell}"
    assert guarded(f"/{cell}") == f"/{cell}"


def test_every_flag_has_a_word() -> None:
    assert len(FLAG_WORDS) == len(DIRECTORY_FLAGS)
    assert FLAG_WORDS[1] == "unreadable"


def test_json_has_every_directory(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    output = io.BytesIO()
    write_json({"schema": 1, "path": "x"}, surveyed(tmp_path).collector, output)
    exported = json.loads(output.getvalue())
    assert exported["schema"] == 1
    assert [row["path"] for row in exported["tree"]] == [
        str(tmp_path), str(tmp_path / "a"), str(tmp_path / "a" / "b")
    ]  # fmt: skip
    assert exported["tree"][0]["subtree_entries"] == 3
