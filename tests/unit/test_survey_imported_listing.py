"""The directories of an imported survey are listed from its file."""

import gzip
import os
from pathlib import Path

import pytest

from tests.unit.import_files import last, listing, tree_file, written
from tui_fs.model.paths import PathStr
from tui_fs.model.survey import EntryKind, Totals
from tui_fs.survey import imported
from tui_fs.survey.imported import ImportedSurvey
from tui_fs.survey.listing import OTHERS_LISTED


def test_a_directory_is_listed_from_the_file(tmp_path: Path) -> None:
    path = tree_file(
        tmp_path,
        {"name": "first", "asize": 10, "dsize": 512, "mtime": 99},
        [{"name": "sub", "asize": 4096, "dsize": 4096}, {"name": "inner", "asize": 7}],
        {"name": "second", "notreg": True, "mode": 0o120777},
        [{"name": "empty"}],
        {"name": "third", "notreg": True},
    )
    survey = ImportedSurvey(path)
    last(survey)
    top, sub = listing(survey, "/top"), listing(survey, "/top/sub")
    children = {child.name: child for child in top.children}
    assert sorted(children) == ["empty", "first", "second", "sub", "third"]
    first = children[PathStr("first")]
    assert first.totals == Totals(files=1, apparent_bytes=10, allocated_bytes=512)
    assert (first.oldest_s, first.newest_s) == (99, 99)
    assert children[PathStr("second")].kind is EntryKind.SYMLINK
    assert children[PathStr("third")].kind is EntryKind.OTHER
    assert children[PathStr("sub")].totals == Totals(1, 1, 0, 0, 4103, 4096)
    assert [child.name for child in sub.children] == ["inner"]
    assert (top.not_listed, top.complete, top.problem) == (0, True, "")
    assert survey.names("/top/no").others == ()


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_listing_passes_over_large_directories(tmp_path: Path, ending: str) -> None:
    lines = [f'{{"name":"file-{number:020}"}}' for number in range(60_000)]
    big = ",".join(lines)
    text = f'[1,2,{{}},[{{"name":"/t"}},[{{"name":"a"}},{big}],{{"name":"m"}},[{{"name":"b"}},{big}'
    data = f'{text}],{{"name":"z"}}]]'.encode()
    path = written(tmp_path, gzip.compress(data, 1) if ending else data, f"file{ending}")
    survey = ImportedSurvey(path)
    told = last(survey)
    assert told.totals.files == 120_002
    assert [child.name for child in survey.names("/t").others] == ["m", "z"]
    # And of a large one as many as can be shown
    assert len(survey.names("/t/b").others) == OTHERS_LISTED
    assert listing(survey, "/t/b").not_listed == 60_000 - OTHERS_LISTED


def test_a_compressed_file_is_never_read_backwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directories = [[{"name": f"d{number}"}, {"name": "x" * 200}] for number in range(20_000)]
    path = tree_file(tmp_path, *directories, {"name": "z"})
    Path(path).write_bytes(gzip.compress(Path(path).read_bytes(), 1))
    survey = ImportedSurvey(path)
    last(survey)
    true_seek = gzip.GzipFile.seek

    def forward(stream: gzip.GzipFile, offset: int, whence: int = 0) -> int:
        if whence == os.SEEK_SET:
            here = true_seek(stream, 0, os.SEEK_CUR)
            assert offset >= here, "this unpacks everything from the beginning again"
        return true_seek(stream, offset, whence)

    monkeypatch.setattr(gzip.GzipFile, "seek", forward)
    assert [child.name for child in survey.names("/top").others] == ["z"]


def test_a_directory_is_complete_when_all_of_it_is_read(tmp_path: Path) -> None:
    # A file of which a part has been read: some directories, and one of them half
    full = [[{"name": f"d{number}"}, {"name": "f"}] for number in range(1_000)]
    half = [{"name": "half"}, *({"name": f"f{number}"} for number in range(20_000))]
    survey = ImportedSurvey(tree_file(tmp_path, *full, half), interval_s=0)
    told = next(one for one in survey.run() if one.totals.files > 5_000)
    assert not told.finished
    children = {child.name: child.complete for child in listing(survey, "/top").children}
    assert not listing(survey, "/top").complete
    assert children[PathStr("d7")]
    assert not children[PathStr("half")]
    assert survey.names("/top/half").others


def test_small_reads_find_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [{"name": f"file-{number}", "asize": number} for number in range(50)]
    path = tree_file(tmp_path, *entries, [{"name": "d"}, *entries], *entries)
    whole = ImportedSurvey(path)
    expected = last(whole).totals
    monkeypatch.setattr(imported, "_CHUNK_BYTES", 7)
    survey = ImportedSurvey(path)
    assert last(survey).totals == expected
    assert survey.names("/top") == whole.names("/top")
    assert len(survey.names("/top").others) == 100


def test_a_file_that_changes_afterwards_is_told(tmp_path: Path) -> None:
    path = tree_file(tmp_path, {"name": "a"})
    survey = ImportedSurvey(path)
    last(survey)
    Path(path).write_bytes(b"")
    assert "has changed" in survey.names("/top").problem
