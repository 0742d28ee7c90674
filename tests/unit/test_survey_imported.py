"""An import is the export, its directories are listed from its file."""

import gzip
import io
import os
import select
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.import_files import last, listing, tree_file, written
from tests.unit.survey_trees import TREES, Tree, grown
from tui_fs.model.errors import BadInput
from tui_fs.model.paths import PathStr
from tui_fs.model.strategy import Filters
from tui_fs.model.survey import DEFAULT_ORDER, EntryKind, Order, Totals
from tui_fs.survey import imported
from tui_fs.survey.imported import ImportedSurvey, root_of
from tui_fs.survey.listing import OTHERS_LISTED
from tui_fs.survey.ncdu_export import ExportHeader, NcduExport
from tui_fs.survey.process import ListingQuery, Query, SurveyProcess, SurveyRequest
from tui_fs.survey.records import DirectoryFlag
from tui_fs.survey.runner import SurveyRunner

SAME = [
    "path", "totals", "inodes", "freed_bytes_min", "freed_bytes_max", "max_depth",
    "max_path_bytes", "complete", "groups", "max_entries_in_directory", "non_empty_directories",
    "parent_directories", "directory_reads", "non_directory_path_bytes",
    "unreadable", "finished",
]  # fmt: skip
"""Fields of a survey that an export keeps."""


@given(TREES, st.booleans())
@settings(max_examples=60)
@pytest.mark.slow
def test_export_and_import_keep_what_was_counted(tree: Tree, compressed: bool) -> None:
    with grown(tree) as root:
        os.sync()
        top = os.fsdecode(root)
        counting = SurveyRunner([top], checks_surroundings=False)
        *_, counted = counting.run()
        output = io.BytesIO()
        NcduExport(top, output).run(ExportHeader(1))
        data = gzip.compress(output.getvalue()) if compressed else output.getvalue()
        survey = ImportedSurvey(written(Path(top).parent, data))
        result = last(survey)
    for field in SAME:
        assert getattr(result, field) == getattr(counted, field), field
    assert (result.backend, result.roots) == ("ncdu-import", ())
    # And so is every directory, by itself and with what is below it
    table, other = survey.collector.table, counting.collector.table
    assert len(table) == len(other)
    for row in range(len(table)):
        same = other.find(table.path(row))
        assert table.entries(row) == other.entries(same)
        assert table.flags[row] & ~DirectoryFlag.SHARED == other.flags[same] & ~DirectoryFlag.SHARED
        assert table.subtree(row).oldest_s == other.subtree(same).oldest_s
        assert table.subtree(row).newest_s == other.subtree(same).newest_s
        assert table.subtree(row).totals.directories == other.subtree(same).totals.directories
        assert table.subtree(row).is_complete
        assert len(listing(survey, table.path(row)).children) == other.entries(same)


def test_hard_links_count_once(tmp_path: Path) -> None:
    size = {"asize": 5_000, "dsize": 8_192}
    path = tree_file(
        tmp_path,
        {"name": "a", **size, "ino": 7, "hlnkc": True, "nlink": 2},
        [{"name": "d"}, {"name": "b", **size, "ino": 7, "hlnkc": True, "nlink": 2}],
        {"name": "c", **size, "ino": 8, "hlnkc": True, "nlink": 3},
        {"name": "old", **size, "ino": 9, "hlnkc": True},
        {"name": "other disk", **size, "dev": 5, "ino": 7, "nlink": 2},
    )
    result = last(ImportedSurvey(path))
    # Bytes are counted once, and those with other names elsewhere may not come back
    assert result.totals.files == 5
    assert result.inodes == result.totals.entries - 1
    assert result.totals.allocated_bytes == result.freed_bytes_max == 4 * 8_192
    assert result.freed_bytes_min == 8_192


DAY_S = 86_400
LOGS = (
    {"name": "a.log", "asize": 2_000, "dsize": 4_096, "mtime": 10 * DAY_S},
    {"name": "b.log", "asize": 10, "dsize": 512, "mtime": 20 * DAY_S},
    {"name": "c.txt", "asize": 2_000, "dsize": 4_096, "mtime": 10 * DAY_S},
    {"name": "left out.log", "excluded": "pattern"},
)


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        (Filters(name_glob="*.log"), {"a.log", "b.log", "left out.log"}),
        (Filters(min_size_bytes=1_000), {"a.log", "c.txt"}),
        (Filters(name_glob="*.log", size_below_bytes=1_000), {"b.log"}),
        (Filters(modified_before_s=10 * DAY_S), {"a.log", "c.txt"}),
        (Filters(modified_after_s=10 * DAY_S), {"b.log"}),
    ],
)
def test_a_filter_selects_by_what_the_file_states(
    tmp_path: Path, filters: Filters, names: set[str]
) -> None:
    path = tree_file(tmp_path, *LOGS, [{"name": "below"}, *LOGS], [{"name": "empty"}])
    survey = ImportedSurvey(path, filters=filters)
    result = last(survey)
    assert result.matched is not None and result.totals.non_directories == 2 * len(LOGS)
    assert result.matched.entries == 2 * len(names)
    bytes_of = {str(item["name"]): int(str(item.get("dsize", 0))) for item in LOGS}
    assert result.matched.allocated_bytes == 2 * sum(bytes_of[name] for name in names)
    matches = survey.collector.table.matches
    assert matches is not None
    for place, number in (("/top", 2), ("/top/below", 1), ("/top/empty", 0)):
        row = survey.collector.table.find(place)
        assert matches.subtree(row).totals.non_directories == number * len(names)
    listed = survey.matching_names("/top/below", DEFAULT_ORDER, "", lambda _: True)
    assert {child.name for child in listed.others} == names


def test_without_times_a_file_is_not_filtered_by_age(tmp_path: Path) -> None:
    path = tree_file(tmp_path, {"name": "a.log", "asize": 9, "dsize": 512})
    survey = ImportedSurvey(path, filters=Filters(name_glob="*.log", modified_before_s=1))
    with pytest.raises(BadInput, match="no modification times: it cannot be filtered by age"):
        last(survey)
    by_name = last(ImportedSurvey(path, filters=Filters(name_glob="*.log")))
    assert by_name.matched == Totals(files=1, apparent_bytes=9, allocated_bytes=512)


def test_what_was_not_read_is_reported(tmp_path: Path) -> None:
    # A directory that could not be read, a mount, a file and names left out
    path = tree_file(
        tmp_path,
        [{"name": "closed", "asize": 4096, "dsize": 4096, "read_error": True}],
        [{"name": "mount", "dev": 9, "excluded": "otherfs"}],
        [{"name": "mount2", "dev": 9, "excluded": "othfs"}],
        {"name": "gone", "read_error": True},
        {"name": "pattern", "excluded": "pattern"},
    )
    survey = ImportedSurvey(path)
    result = last(survey)
    # The findings say so, and the survey is not called complete
    kinds = [(finding.kind, finding.path) for finding in result.findings]
    assert ("unreadable", "/top/closed") in kinds
    assert ("mount-inside", "/top/mount") in kinds
    assert ("mount-inside", "/top/mount2") in kinds
    assert ("left-out", "/top") in kinds
    assert not result.complete
    assert result.unreadable == 2
    assert result.totals.directories == 4
    assert result.totals.other == 2


def test_files_of_other_programs(tmp_path: Path) -> None:
    text = """
      [ 1 , 0 , { "a" : { "b" : [ 1, { } ] } } ,
        [ { "name" : "srv/data/" , "dsize" : 1000.0 } ,
          { "name" : "x" , "asize" : 1e3 , "what" : { "deep" : [ "}" ] } } ,
          [ { "name" : "d" } ] ] ]
    """
    result = last(ImportedSurvey(written(tmp_path, text)))
    # It is read; sizes are whole blocks
    assert result.path == "/srv/data"
    assert result.totals == Totals(1, 2, 0, 0, 1000, 1024)


SPELLED_NAMES = {
    b"\xff\xc3\xa9": b"\xff\xc3\xa9",
    rb"\udcff\udCc3\udca9": b"\xff\xc3\xa9",
    rb"\u00e9": "é".encode(),
    rb"\ud83d\ude00": "😀".encode(),
    rb"half \ud800x": b"half ?x",
    rb"half \ud800\u0041": b"half ?A",
    rb"half \udfff": b"half ?",
    rb"\\udcff\"[,]": rb'\udcff"[,]',
}


@pytest.mark.parametrize("backend", ("yajl2_c", "python"))
@pytest.mark.parametrize("spelled", SPELLED_NAMES)
def test_a_name_of_any_bytes_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spelled: bytes, backend: str
) -> None:
    if backend == "python":
        monkeypatch.setitem(sys.modules, "ijson.backends.yajl2_c", None)
        monkeypatch.delattr("ijson.backends.yajl2_c", raising=False)
    path = written(tmp_path, b'[1,2,{},[{"name":"/t"},[{"name":"%s"}]]]' % spelled)
    survey = ImportedSurvey(path)
    last(survey)
    assert [os.fsencode(child.name) for child in listing(survey, "/t").children] == [
        SPELLED_NAMES[spelled]
    ]


def test_the_top_directory_may_be_the_root(tmp_path: Path) -> None:
    path = written(tmp_path, '[1,2,{},[{"name":"/"},[{"name":"a"},{"name":"f"}]]]')
    survey = ImportedSurvey(path)
    assert last(survey).path == root_of(path) == "/"
    assert [child.name for child in listing(survey, "/").children] == ["a"]
    assert [child.name for child in listing(survey, "/a").children] == ["f"]


def test_questions_are_heard_while_it_reads(tmp_path: Path) -> None:
    entries = [{"name": f"file-{number}"} for number in range(20_000)]
    survey = ImportedSurvey(tree_file(tmp_path, *entries), interval_s=1_000)
    reading, writing = os.pipe()
    os.write(writing, b"?")
    asked: list[bytes] = []

    def answer() -> None:
        asked.append(os.read(reading, 1))
        survey.flush_progress()

    result = list(survey.run(questions=(reading, answer)))
    assert asked == [b"?"]
    assert [update.finished for update in result] == [False, True]
    assert 0 < result[0].totals.files < 20_000
    assert not select.select([reading], [], [], 0)[0]
    os.close(reading)
    os.close(writing)


def test_a_process_of_its_own_reports_an_import(tmp_path: Path) -> None:
    path = tree_file(tmp_path, [{"name": "d"}, {"name": "inner", "asize": 9}], {"name": "f"})
    process = SurveyProcess(SurveyRequest((), PathStr(path)))
    try:
        updates = process.updates()
        assert next(updates).survey.backend == "ncdu-import"
        process.ask(Query(listing=ListingQuery(PathStr("/top/d"), Order())))
        shown = next(update.listing for update in updates if update.listing is not None)
        assert [child.name for child in shown.children] == ["inner"]
        assert shown.totals.apparent_bytes == 9
    finally:
        process.stop()


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
@pytest.mark.slow
def test_listing_passes_over_large_directories(tmp_path: Path, ending: str) -> None:
    lines = [f'{{"name":"file-{number:020}"}}' for number in range(20_000)]
    big = ",".join(lines)
    text = f'[1,2,{{}},[{{"name":"/t"}},[{{"name":"a"}},{big}],{{"name":"m"}},[{{"name":"b"}},{big}'
    data = f'{text}],{{"name":"z"}}]]'.encode()
    path = written(tmp_path, gzip.compress(data, 1) if ending else data, f"file{ending}")
    survey = ImportedSurvey(path)
    result = last(survey)
    assert result.totals.files == 40_002
    assert [child.name for child in survey.names("/t").others] == ["m", "z"]
    # And of a large one as many as can be shown
    assert len(survey.names("/t/b").others) == OTHERS_LISTED
    assert listing(survey, "/t/b").not_listed == 20_000 - OTHERS_LISTED


@pytest.mark.slow
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
    # A partly read file: some directories, and one of them half
    full = [[{"name": f"d{number}"}, {"name": "f"}] for number in range(1_000)]
    half = [{"name": "half"}, *({"name": f"f{number}"} for number in range(20_000))]
    survey = ImportedSurvey(tree_file(tmp_path, *full, half), interval_s=0)
    result = next(update for update in survey.run() if update.totals.files > 5_000)
    assert not result.finished
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


def test_a_file_that_changes_afterwards_is_reported(tmp_path: Path) -> None:
    path = tree_file(tmp_path, {"name": "a"})
    survey = ImportedSurvey(path)
    last(survey)
    Path(path).write_bytes(b"")
    assert "has changed" in survey.names("/top").problem
