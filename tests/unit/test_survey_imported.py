"""What is imported is what was exported; whatever else is in the file does no harm."""

import gzip
import io
import json
import os
import select
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tui_fs.model.errors import BadInput
from tui_fs.model.paths import PathStr
from tui_fs.model.survey import EntryKind, Listing, Ranking, Survey, Totals
from tui_fs.survey import ncdu_format
from tui_fs.survey.imported import ImportedSurvey, root_of
from tui_fs.survey.listing import OTHERS_LISTED, listing_of
from tui_fs.survey.ncdu_export import NcduExport
from tui_fs.survey.process import SurveyProcess
from tui_fs.survey.records import DirectoryFlag
from tui_fs.survey.scandir import ScandirSurvey

SAME = [
    "path", "totals", "inodes", "freed_bytes_min", "freed_bytes_max", "max_depth",
    "max_path_bytes", "complete", "groups", "max_entries_in_directory", "non_empty_directories",
    "parent_directories", "directory_reads", "non_directory_path_bytes", "unreadable", "finished",
]  # fmt: skip
"""Fields of a survey that an export keeps."""

NAMES = (
    st.one_of(st.binary(min_size=1, max_size=12), st.text(min_size=1, max_size=6).map(str.encode))
    .map(lambda name: name.replace(b"/", b"-").replace(b"\0", b"-"))
    .filter(lambda name: name not in (b".", b".."))
)
LEAVES = st.sampled_from([0, 1, 4095, 100_000, "symlink", "fifo", "inside", "outside"])
TREES = st.dictionaries(
    NAMES,
    st.recursive(LEAVES, lambda below: st.dictionaries(NAMES, below, max_size=5), max_leaves=12),
    max_size=6,
)


def grow(directory: bytes, tree: dict[bytes, Any], shared: bytes, outside: bytes) -> None:
    """Make a tree; "inside" is one more name of a file in it, "outside" of one that is not."""
    for name, what in tree.items():
        path = os.path.join(directory, name)
        match what:
            case dict():
                os.mkdir(path)
                grow(path, what, shared, outside)
            case int():
                with open(path, "wb") as file:
                    file.write(b"x" * what)
                    os.utime(path, (1_600_000_000 + what, 1_600_000_000 + what))
            case "symlink":
                os.symlink(b"/nowhere", path)
            case "fifo":
                os.mkfifo(path)
            case "inside":
                os.link(shared, path)
            case "outside":
                os.link(outside, path)


def last(survey: ImportedSurvey) -> Survey:
    *_, told = survey.run()
    return told


def written(directory: Path, text: str | bytes, name: str = "file.json") -> str:
    path = directory / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(path)


def tree_file(directory: Path, *entries: Any, top: dict[str, Any] | None = None) -> str:
    """Write a file with these entries in its top directory."""
    whole = [1, 2, {"progname": "x"}, [{"name": "/top", **(top or {})}, *entries]]
    return written(directory, json.dumps(whole))


def listing(survey: ImportedSurvey, path: str) -> Listing:
    return listing_of(survey.collector.table, path, survey.names(path))


@given(TREES, st.booleans())
@settings(deadline=None, max_examples=60)
def test_export_and_import_keep_what_was_counted(tree: dict[bytes, Any], compressed: bool) -> None:
    # Given a random tree with hard links inside and to outside
    with tempfile.TemporaryDirectory() as place:
        top = os.path.join(place, "top")
        os.mkdir(top)
        shared, outside = os.path.join(top, "shared"), os.path.join(place, "outside")
        for path in (shared, outside):
            with open(path, "wb") as file:
                file.write(b"y" * 5_000)
        grow(os.fsencode(top), {b"tree": tree}, os.fsencode(shared), os.fsencode(outside))
        os.sync()
        counting = ScandirSurvey([top], walkers=1, looks_around=False)
        *_, counted = counting.run()
        # When it is exported and imported
        output = io.BytesIO()
        NcduExport(top, output).run("tui-fs", "0", 1)
        data = gzip.compress(output.getvalue()) if compressed else output.getvalue()
        survey = ImportedSurvey(written(Path(place), data))
        told = last(survey)
    # Then every count is the same
    for field in SAME:
        assert getattr(told, field) == getattr(counted, field), field
    assert (told.backend, told.roots) == ("ncdu-import", ())
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


def test_a_directory_is_listed_from_the_file(tmp_path: Path) -> None:
    # Given files before, between and after directories
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
    # When the top and a subdirectory are listed
    top, sub = listing(survey, "/top"), listing(survey, "/top/sub")
    # Then each shows what is in it, with sizes, kinds and dates
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
    # Given files behind directories that are larger than what is read at once
    lines = [f'{{"name":"file-{number:020}"}}' for number in range(60_000)]
    big = ",".join(lines)
    text = f'[1,2,{{}},[{{"name":"/t"}},[{{"name":"a"}},{big}],{{"name":"m"}},[{{"name":"b"}},{big}'
    data = f'{text}],{{"name":"z"}}]]'.encode()
    path = written(tmp_path, gzip.compress(data, 1) if ending else data, f"file{ending}")
    survey = ImportedSurvey(path)
    told = last(survey)
    assert told.totals.files == 120_002
    # When the top is listed / Then the files between and behind are found
    assert [child.name for child in survey.names("/t").others] == ["m", "z"]
    # And of a large one as many as can be shown
    assert len(survey.names("/t/b").others) == OTHERS_LISTED
    assert listing(survey, "/t/b").not_listed == 60_000 - OTHERS_LISTED


def test_a_compressed_file_is_never_read_backwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a compressed file with many directories, each of which is passed over
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
    # When the top is listed / Then the file is read once, forwards
    assert [child.name for child in survey.names("/top").others] == ["z"]


def test_a_directory_is_complete_when_all_of_it_is_read(tmp_path: Path) -> None:
    # Given a file of which a part has been read: some directories, and one of them half
    full = [[{"name": f"d{number}"}, {"name": "f"}] for number in range(1_000)]
    half = [{"name": "half"}, *({"name": f"f{number}"} for number in range(20_000))]
    survey = ImportedSurvey(tree_file(tmp_path, *full, half), interval_s=0)
    told = next(one for one in survey.run() if one.totals.files > 5_000)
    # When directories are listed / Then those read to their end are complete, no others
    assert not told.finished
    children = {child.name: child.complete for child in listing(survey, "/top").children}
    assert not listing(survey, "/top").complete
    assert children[PathStr("d7")]
    assert not children[PathStr("half")]
    assert survey.names("/top/half").others


def test_hard_links_count_once(tmp_path: Path) -> None:
    # Given two names of a file of two, one of a file of three, and one of an old ncdu
    size = {"asize": 5_000, "dsize": 8_192}
    path = tree_file(
        tmp_path,
        {"name": "a", **size, "ino": 7, "hlnkc": True, "nlink": 2},
        [{"name": "d"}, {"name": "b", **size, "ino": 7, "hlnkc": True, "nlink": 2}],
        {"name": "c", **size, "ino": 8, "hlnkc": True, "nlink": 3},
        {"name": "old", **size, "ino": 9, "hlnkc": True},
        {"name": "other disk", **size, "dev": 5, "ino": 7, "nlink": 2},
    )
    told = last(ImportedSurvey(path))
    # Then bytes are counted once, and those with other names elsewhere may not come back
    assert told.totals.files == 5
    assert told.inodes == told.totals.entries - 1
    assert told.totals.allocated_bytes == told.freed_bytes_max == 4 * 8_192
    assert told.freed_bytes_min == 8_192


def test_what_was_not_read_is_told(tmp_path: Path) -> None:
    # Given a directory that could not be read, a mount, a file and names left out
    path = tree_file(
        tmp_path,
        [{"name": "closed", "asize": 4096, "dsize": 4096, "read_error": True}],
        [{"name": "mount", "dev": 9, "excluded": "otherfs"}],
        [{"name": "mount2", "dev": 9, "excluded": "othfs"}],
        {"name": "gone", "read_error": True},
        {"name": "pattern", "excluded": "pattern"},
    )
    survey = ImportedSurvey(path)
    told = last(survey)
    # Then the findings say so, and the survey is not called complete
    kinds = [(finding.kind, finding.path) for finding in told.findings]
    assert ("unreadable", "/top/closed") in kinds
    assert ("mount-inside", "/top/mount") in kinds
    assert ("mount-inside", "/top/mount2") in kinds
    assert ("left-out", "/top") in kinds
    assert not told.complete
    assert told.unreadable == 2
    assert told.totals.directories == 4
    assert told.totals.other == 2


def test_files_of_other_programs(tmp_path: Path) -> None:
    # Given no metadata to speak of, whitespace, floats, unknown and nested fields, a relative top
    text = """
      [ 1 , 0 , { "a" : { "b" : [ 1, { } ] } } ,
        [ { "name" : "srv/data/" , "dsize" : 1000.0 } ,
          { "name" : "x" , "asize" : 1e3 , "what" : { "deep" : [ "}" ] } } ,
          [ { "name" : "d" } ] ] ]
    """
    told = last(ImportedSurvey(written(tmp_path, text)))
    # Then it is read; sizes are whole blocks
    assert told.path == "/srv/data"
    assert told.totals == Totals(1, 2, 0, 0, 1000, 1024)


def test_the_top_directory_may_be_the_root(tmp_path: Path) -> None:
    path = written(tmp_path, '[1,2,{},[{"name":"/"},[{"name":"a"},{"name":"f"}]]]')
    survey = ImportedSurvey(path)
    assert last(survey).path == root_of(path) == "/"
    assert [child.name for child in listing(survey, "/").children] == ["a"]
    assert [child.name for child in listing(survey, "/a").children] == ["f"]


DIRECTORY = '[1,2,{},[{"name":"/t"}'
HOSTILE = {
    "empty": "",
    "no JSON": "hello",
    "another JSON": '{"a": 1}',
    "another array": "[1, 2, 3]",
    "version 2": '[2,0,{},[{"name":"/t"}]]',
    "no directory": "[1,2,{}]",
    "a file on top": '[1,2,{},{"name":"/t"}]',
    "an array without a name": "[1,2,{},[[]]]",
    "only brackets": "[1,2,{}," + "[" * 100_000,
    "cut off": DIRECTORY + ',{"name":"a"}',
    "cut off in a name": DIRECTORY + ',{"name":"a',
    "cut off behind a comma": DIRECTORY + ",",
    "cut off at the end": DIRECTORY + "]",
    "something behind it": DIRECTORY + "]] x",
    "one more element": DIRECTORY + "],1]",
    "two directories": DIRECTORY + '],[{"name":"/u"}]]',
    "a number as an entry": DIRECTORY + ",1]]",
    "a comma too many": DIRECTORY + ",]]",
    "no comma": DIRECTORY + '{"name":"a"}]]',
    "a missing name": DIRECTORY + ',{"asize":1}]]',
    "a name that is a number": DIRECTORY + ',{"name":1}]]',
    "a slash": DIRECTORY + ',{"name":"a/b"}]]',
    "an escaped slash": DIRECTORY + ',{"name":"a\\u002fb"}]]',
    "a NUL": DIRECTORY + ',{"name":"a\\u0000b"}]]',
    "the directory above": DIRECTORY + ',[{"name":".."}]]]',
    "the directory itself": DIRECTORY + ',{"name":"."}]]',
    "an empty name": DIRECTORY + ',{"name":""}]]',
    "a name of a megabyte": DIRECTORY + ',{"name":"' + "a" * 1_000_000 + '"}]]',
    "a name without end": DIRECTORY + ',{"name":"' + "a" * 5_000_000,
    "backslashes without end": DIRECTORY + ',{"name":"' + "\\" * 5_000_000,
    "fields without end": DIRECTORY + ',{"name":"a",' + '"b":1,' * 1_000_000,
    "brackets in an entry": DIRECTORY + ',{"name":' + "[" * 3_000_000,
    "pairs in an entry": DIRECTORY + ',{"name":' + "[]" * 2_000_000,
    "nesting in an entry": DIRECTORY + ',{"name":"a","b":' + "[" * 50_000 + "]" * 50_000 + "}]]",
    "spaces without end": DIRECTORY + " " * 5_000_000,
    "a huge size": DIRECTORY + ',{"name":"a","asize":' + "9" * 300 + '},{"name":"b","asize":1}]]',
    "a number of 5,000 digits": DIRECTORY + ',{"name":"a","asize":' + "9" * 5_000 + "}]]",
    "not a number": DIRECTORY + ',{"name":"a","asize":NaN}]]',
    "a bare word": DIRECTORY + ',{"name":"a","asize":what}]]',
    "single quotes": DIRECTORY + ",{'name':'a'}]]",
    "a line break in a name": DIRECTORY + ',{"name":"a\nb"}]]',
    "the top without a name": "[1,2,{},[{}]]",
}


@pytest.mark.parametrize("what", HOSTILE)
@pytest.mark.parametrize("compressed", [False, True])
def test_what_is_no_such_file_is_one_sentence(tmp_path: Path, what: str, compressed: bool) -> None:
    # Given a file that is damaged, or something else / When imported / Then one sentence says so
    data = HOSTILE[what].encode()
    path = written(tmp_path, gzip.compress(data) if compressed else data)
    with pytest.raises(BadInput) as told:
        last(ImportedSurvey(path))
    assert len(str(told.value)) < 400
    assert str(told.value).isprintable()


DAMAGED = {
    "without its end": gzip.compress(DIRECTORY.encode())[:-12],
    "only a head": gzip.compress(DIRECTORY.encode())[:5],
    "exchanged bytes": gzip.compress(b"x" * 1000)[:20] + b"damage" * 10,
    "the binary format of ncdu": b"\xbfncduEX1" + b"\0" * 100,
    "zeros": b"\0" * 10_000,
    "any bytes": bytes(range(256)) * 100,
}


@pytest.mark.parametrize("what", DAMAGED)
def test_damaged_compression_and_other_formats(tmp_path: Path, what: str) -> None:
    with pytest.raises(BadInput):
        last(ImportedSurvey(written(tmp_path, DAMAGED[what])))


@pytest.mark.parametrize("what", ["nothing", "directory", "fifo", "NUL"])
def test_what_is_no_file_is_one_sentence(tmp_path: Path, what: str) -> None:
    path = tmp_path / "file"
    match what:
        case "directory":
            path.mkdir()
        case "fifo":
            os.mkfifo(path)
    with pytest.raises(BadInput):
        ImportedSurvey("a\0b" if what == "NUL" else str(path))


def test_odd_values_are_clamped(tmp_path: Path) -> None:
    # Given numbers and words where others belong
    path = tree_file(
        tmp_path,
        {"name": "negative", "asize": -5, "dsize": -512, "mtime": -1, "ino": -1, "nlink": -3},
        {"name": "words", "asize": "1", "dsize": None, "mtime": [], "dev": {}, "mode": "x"},
        {"name": "truth", "asize": True, "hlnkc": "yes", "notreg": 1, "read_error": "no"},
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
    told = last(survey)
    # Then they count as nothing, and everything can be shown
    assert told.totals == Totals(8, 3, 0, 1, 5, 0)
    assert len(listing(survey, "/top").children) >= 7
    for by in Ranking:
        assert len(survey.collector.ranked(by, 10)) >= 1


def test_a_hundred_thousand_levels_are_only_a_number(tmp_path: Path) -> None:
    # Given directories in directories, as deep as no other tool likes them
    levels = 100_000
    text = DIRECTORY + ',[{"name":"d"}' * levels + ',{"name":"f","asize":3}' + "]" * (levels + 2)
    survey = ImportedSurvey(written(tmp_path, text))
    told = last(survey)
    # Then they are counted, and the lowest can be listed
    assert (told.totals.directories, told.max_depth) == (levels + 1, levels + 1)
    assert [child.name for child in survey.names("/t" + "/d" * levels).others] == ["f"]


@given(st.data())
@settings(deadline=None, max_examples=200)
def test_damage_anywhere_is_one_sentence(data: st.DataObject) -> None:
    # Given a good file in which some bytes are exchanged
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
        # When it is imported and listed / Then it works or one sentence says why not
        try:
            survey = ImportedSurvey(path)
            told = last(survey)
        except BadInput:
            return
        listing(survey, told.path)


def test_small_reads_find_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a file that is read a few bytes at a time, as if it were huge
    entries = [{"name": f"file-{number}", "asize": number} for number in range(50)]
    path = tree_file(tmp_path, *entries, [{"name": "d"}, *entries], *entries)
    whole = ImportedSurvey(path)
    expected = last(whole).totals
    monkeypatch.setattr(ncdu_format, "_CHUNK_BYTES", 7)
    survey = ImportedSurvey(path)
    # When it is read / Then the same is found, and listed
    assert last(survey).totals == expected
    assert survey.names("/top") == whole.names("/top")
    assert len(survey.names("/top").others) == 100


def test_nothing_that_the_file_names_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a file that names a directory of this machine
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
    # When it is imported and listed
    survey = ImportedSurvey(path)
    told = last(survey)
    assert len(listing(survey, told.path).children) == 2
    # Then only the file itself has been opened
    assert touched == [path]


def test_a_file_that_changes_afterwards_is_told(tmp_path: Path) -> None:
    # Given an imported file that somebody empties / When it is listed / Then a sentence says so
    path = tree_file(tmp_path, {"name": "a"})
    survey = ImportedSurvey(path)
    last(survey)
    Path(path).write_bytes(b"")
    assert "has changed" in survey.names("/top").problem


def test_questions_are_heard_while_it_reads(tmp_path: Path) -> None:
    # Given a file that takes a while, and a question that waits
    entries = [{"name": f"file-{number}"} for number in range(20_000)]
    survey = ImportedSurvey(tree_file(tmp_path, *entries), interval_s=1_000)
    reading, writing = os.pipe()
    os.write(writing, b"?")
    asked: list[bytes] = []

    def answer() -> None:
        asked.append(os.read(reading, 1))
        survey.tell_at_once()

    # When it is read / Then the question is heard and an answer is told before the end
    told = list(survey.run(questions=(reading, answer)))
    assert asked == [b"?"]
    assert [one.finished for one in told] == [False, True]
    assert 0 < told[0].totals.files < 20_000
    assert not select.select([reading], [], [], 0)[0]
    os.close(reading)
    os.close(writing)


def test_a_process_of_its_own_tells_an_import(tmp_path: Path) -> None:
    # Given a survey process that reads a file
    path = tree_file(tmp_path, [{"name": "d"}, {"name": "inner", "asize": 9}], {"name": "f"})
    process = SurveyProcess([], imported=path)
    try:
        updates = process.updates()
        assert next(updates).survey.backend == "ncdu-import"
        # When a directory is asked for
        process.show("/top/d")
        shown = next(one.listing for one in updates if one.listing is not None)
        # Then it is listed from the file
        assert [child.name for child in shown.children] == ["inner"]
        assert shown.totals.apparent_bytes == 9
    finally:
        process.stop()


def test_a_process_of_its_own_tells_what_is_wrong(tmp_path: Path) -> None:
    process = SurveyProcess([], imported=written(tmp_path, "hello"))
    try:
        with pytest.raises(BadInput, match="not in the export format"):
            list(process.updates())
    finally:
        process.stop()
