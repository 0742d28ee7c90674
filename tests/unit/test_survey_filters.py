"""The matches of a filter in a survey equal what find would delete."""

import os
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.needs import needs_tool
from tui_fs.model.strategy import Filters
from tui_fs.model.survey import Totals
from tui_fs.strategies.base import find_tests
from tui_fs.survey.runner import SurveyRunner

NOW = 1_700_000_000
NANOSECONDS = 1_000_000_000
# As the launcher starts the tools: the C locale, in which every byte is a character.
ENVIRONMENT = {"LC_ALL": "C"}

File = tuple[bytes, str, int, int]
"""Name, kind, size and nanoseconds after NOW."""

SPELLINGS = st.text(st.sampled_from("abAB1.-"), min_size=1, max_size=4)
FILES = st.lists(
    st.tuples(
        SPELLINGS.filter(lambda name: name not in (".", "..")).map(str.encode),
        st.sampled_from(["file", "file", "file", "symlink", "directory"]),
        st.sampled_from([0, 1, 511, 512, 513, 1023, 1024, 1025, 1 << 20]),
        st.sampled_from([-NANOSECONDS, -1, 0, 1, NANOSECONDS]),
    ),
    max_size=10,
    unique_by=lambda file: file[0],
)
GLOBS = st.lists(
    st.sampled_from(["a", "B", "1", ".", "-", "*", "?", "[ab]", "[!a]", "[a-b]", "[!1-9]"]),
    min_size=1,
    max_size=4,
).map("".join)
FILTERS = st.builds(
    Filters,
    name_glob=st.none() | GLOBS,
    min_size_bytes=st.none() | st.sampled_from([0, 1, 512, 513, 1024, 1 << 20]),
    size_below_bytes=st.none() | st.sampled_from([0, 1, 513, 1 << 20]),
    modified_before_s=st.none() | st.sampled_from([NOW - 1, NOW, NOW + 1]),
    modified_after_s=st.none() | st.sampled_from([NOW - 1, NOW, NOW + 1]),
).filter(lambda filters: filters.active)


def make(directory: bytes, files: list[File]) -> None:
    """Make entries with these sizes and times."""
    for name, kind, size, age_ns in files:
        path = os.path.join(directory, name)
        match kind:
            case "directory":
                os.mkdir(path)
            case "symlink":
                os.symlink(b"x" * min(size, 1000) or b"x", path)
            case _:
                with open(path, "wb") as file:
                    file.truncate(size)
        moment = NOW * NANOSECONDS + age_ns
        os.utime(path, ns=(moment, moment), follow_symlinks=False)


def found_by_find(directory: bytes, filters: Filters) -> set[bytes]:
    """Ask find itself which names the tests of the strategies select."""
    find = needs_tool("find", package="findutils")
    finished = subprocess.run(
        [find, directory, "-mindepth", "1", *find_tests(filters), "-print0"],
        env=ENVIRONMENT,
        capture_output=True,
        check=True,
    )
    return set(finished.stdout.split(b"\0")) - {b""}


def surveyed(directory: bytes, filters: Filters) -> tuple[Totals, dict[bytes, int]]:
    """Return what a survey matches, and how many entries of each subdirectory of the top."""
    runner = SurveyRunner(
        [os.fsdecode(directory)], filters, checks_surroundings=False, matches_by_directory=True
    )
    *_, survey = runner.run()
    table = runner.collector.table
    assert survey.matched is not None
    assert table.matches is not None
    counts = zip(table.matches.files, table.matches.symlinks, table.matches.other, strict=True)
    by_name = {
        table.name(row): sum(matching)
        for row, matching in enumerate(counts)
        if table.parent[row] == 0
    }
    return survey.matched, by_name


def matched(directory: bytes, filters: Filters) -> Totals:
    """Return what a survey matches."""
    return surveyed(directory, filters)[0]


def assert_agree(files: list[File], filters: Filters) -> None:
    """Compare the survey and find, each name by itself."""
    with tempfile.TemporaryDirectory() as directory:
        top = os.fsencode(directory)
        make(top, files)
        for name, _, _, _ in files:
            # Each entry alone in a directory of its own: a count then says which one it is
            alone = os.path.join(top, b"alone-" + name)
            os.mkdir(alone)
            os.rename(os.path.join(top, name), os.path.join(alone, name))
        found = found_by_find(top, filters)
        totals, by_name = surveyed(top, filters)
        for name, kind, _, _ in files:
            expected = os.path.join(top, b"alone-" + name, name) in found
            assert by_name[b"alone-" + name] == expected, (name, kind, filters)
        assert totals.entries == len(found)
        assert totals.apparent_bytes == sum(os.lstat(path).st_size for path in found)


@given(FILES, FILTERS)
@settings(max_examples=40)
@pytest.mark.slow
def test_filters_match_what_find_matches(files: list[File], filters: Filters) -> None:
    assert_agree(files, filters)


@pytest.mark.parametrize(
    ("glob", "name"),
    [
        ("*", b"plain"),
        ("*", b".hidden"),
        ("*", b"new\nline"),
        ("*.log", b".log"),
        ("A*", b"a"),
        ("[!a]*", b"\xffx"),
        ("[]]", b"]"),
        ("[", b"["),
        ("a[", b"a["),
        ("-rf", b"-rf"),
        ("?", b"\xff"),
        ("*\xe9", "é".encode("latin-1")),
    ],
)
def test_this_pattern_means_the_same_to_find(glob: str, name: bytes) -> None:
    pattern = os.fsdecode(glob.encode("latin-1"))
    assert_agree([(name, "file", 1, 0)], Filters(name_glob=pattern))


@pytest.mark.parametrize(
    ("glob", "name"),
    [
        ("[^a]*", b"b"),
        ("[^a]*", b"a"),
        ("\\*", b"*"),
        ("\\*", b"\\x"),
        ("[[:digit:]]", b"1"),
        ("?", "é".encode()),
        ("??", "é".encode()),
        ("[é]", "é".encode()),
        ("[a-", b"[a-"),
    ],
)
def test_this_pattern_too_means_the_same_to_find(glob: str, name: bytes) -> None:
    assert_agree([(name, "file", 1, 0)], Filters(name_glob=glob))


def test_directories_never_match(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    os.utime(tmp_path / "old", (0, 0))
    filters = Filters(name_glob="old", modified_before_s=NOW)
    assert matched(os.fsencode(tmp_path), filters) == Totals()


def test_a_hard_link_is_matched_by_each_name_but_its_bytes_once(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(b"x" * 100)
    os.link(tmp_path / "a.log", tmp_path / "b.log")
    totals = matched(os.fsencode(tmp_path), Filters(name_glob="*.log"))
    assert (totals.files, totals.apparent_bytes) == (2, 100)


def test_bytes_of_a_matching_name_count_whichever_name_is_seen_first(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / f"{number}.keep").write_bytes(b"x" * 100)
        os.link(tmp_path / f"{number}.keep", tmp_path / f"{number}.log")
    totals = matched(os.fsencode(tmp_path), Filters(name_glob="*.log"))
    assert (totals.files, totals.apparent_bytes) == (20, 2000)


def test_without_filters_nothing_is_said_about_matches(tmp_path: Path) -> None:
    *_, survey = SurveyRunner([str(tmp_path)], Filters()).run()
    assert survey.matched is None
