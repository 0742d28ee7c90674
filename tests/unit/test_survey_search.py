"""A search finds the names that find would find, in the tree that a survey counts."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import open_descriptors
from tests.trees import chain, hostile_names
from tests.unit.import_files import tree_file
from tests.unit.survey_trees import children_of, comb, deep
from tui_fs.model.errors import BadInput
from tui_fs.model.paths import PathStr
from tui_fs.model.survey import EntryKind, Match
from tui_fs.survey import search as search_module
from tui_fs.survey.process import SearchProcess, SearchRequest, SearchUpdate
from tui_fs.survey.search import Search, TreeSearch, name_predicate, search_of

__all__ = ["deep"]


def result(search: Search) -> tuple[list[Match], SearchUpdate]:
    """Run a search to its end; return the listed matches and the counts."""
    for _ in search.run():
        pass
    update = search.matches.update(is_finished=True)
    return list(update.matches), update


def tree_search(tree: Path, text: str) -> Search:
    """Return the search of a tree."""
    return search_of(SearchRequest(PathStr(str(tree)), text))


def paths(search: Search) -> set[str]:
    """Return the paths of all matches."""
    matches, update = result(search)
    assert len(matches) == update.matched
    return {match.path for match in matches}


@pytest.mark.parametrize("pattern", ["*", "*.log", "f*", "[a-c]*", "?", "*\\**", ".*"])
def test_a_pattern_finds_what_find_finds(tmp_path: Path, pattern: str) -> None:
    tree = tmp_path / "t"
    hostile_names(tree)
    for name in (".log", "x.log", "X.LOG", "zz/b.log", "zz/c/d.log"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).touch()
    command = ["find", str(tree), "-mindepth", "1", "-name", pattern, "-print0"]
    environment = {**os.environ, "LC_ALL": "C"}
    expected = subprocess.run(command, capture_output=True, check=True, env=environment).stdout
    found = paths(tree_search(tree, pattern))
    assert found == {os.fsdecode(path) for path in expected.split(b"\0") if path}


@pytest.mark.parametrize(
    ("text", "name", "is_match"),
    [
        ("log", b"Catalog.old", True),
        ("LOG", b"catalog", True),
        ("log", b"lo", False),
        ("grün", "IMMERGRÜN".encode(), True),
        ("\\xff", b"a\xff", True),
        ("\\n", b"a\nb", True),
        ("a.c", b"abc", False),
    ],
)
def test_other_text_is_a_part_of_the_name(text: str, name: bytes, is_match: bool) -> None:
    assert name_predicate(text)(name) is is_match


def test_matches_have_kind_size_and_time_and_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere" / "deep").mkdir(parents=True)
    (tmp_path / "elsewhere" / "deep" / "x-hidden").touch()
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "x-link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "t" / "x-file").write_bytes(b"x" * 5000)
    os.utime(tmp_path / "t" / "x-file", (77, 77))
    (tmp_path / "t" / "x-dir").mkdir()
    matches, update = result(tree_search(tmp_path / "t", "x-"))
    kinds = {os.path.basename(match.path): match.kind for match in matches}
    assert kinds == {
        "x-link": EntryKind.SYMLINK,
        "x-file": EntryKind.FILE,
        "x-dir": EntryKind.DIRECTORY,
    }
    (file,) = [match for match in matches if match.kind is EntryKind.FILE]
    blocks = os.lstat(tmp_path / "t" / "x-file").st_blocks
    assert (file.allocated_bytes, file.modified_s) == (blocks * 512, 77)
    assert (update.matched, update.entries, update.unreadable) == (3, 3, 0)


def test_ten_files_among_very_many_are_found(tmp_path: Path) -> None:
    for number in range(5_000):
        (tmp_path / f"mail-{number}").touch()
    for number in range(10):
        (tmp_path / f"{number}.log").touch()
    assert len(paths(tree_search(tmp_path, "*.log"))) == 10


@pytest.mark.parametrize("limit", ["LISTED", "LISTED_BYTES"])
def test_the_list_is_bounded_and_all_matches_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(search_module, limit, 10)
    for number in range(50):
        (tmp_path / f"{number}.log").touch()
    matches, update = result(tree_search(tmp_path, "*.log"))
    assert len(matches) == (10 if limit == "LISTED" else 1)
    assert update.matched == 50


def test_a_mount_point_is_found_but_not_entered(tmp_path: Path) -> None:
    (tmp_path / "t" / "x-mount" / "x-inside").mkdir(parents=True)
    (tmp_path / "t" / "a" / "x-mount" / "x-inside").mkdir(parents=True)
    root = str(tmp_path / "t")
    mount = os.fsencode(tmp_path / "t" / "x-mount")
    found = paths(TreeSearch(root, name_predicate("x-"), {mount}))
    assert found == {f"{root}/x-mount", f"{root}/a/x-mount", f"{root}/a/x-mount/x-inside"}


def test_a_tree_deeper_than_any_path_is_searched(deep: Path) -> None:
    chain(deep, 3_000)
    comb(deep, 100)
    expected = subprocess.run(
        ["find", deep, "-mindepth", "1", "-printf", "."], capture_output=True, check=True
    ).stdout
    before = open_descriptors()
    _, update = result(tree_search(deep, "*"))
    assert update.matched == update.entries == len(expected)
    assert open_descriptors() == before


def test_an_import_is_searched_by_its_names(tmp_path: Path) -> None:
    path = tree_file(
        tmp_path,
        [{"name": "logs"}, {"name": "a.log", "dsize": 4096}, [{"name": "b.log"}]],
        {"name": "c.txt"},
    )
    matches, update = result(search_of(SearchRequest(PathStr("/top"), "*log*", PathStr(path))))
    assert [(match.path, match.kind) for match in matches] == [
        ("/top/logs", EntryKind.DIRECTORY),
        ("/top/logs/a.log", EntryKind.FILE),
        ("/top/logs/b.log", EntryKind.DIRECTORY),
    ]
    assert (update.matched, update.entries) == (3, 4)


@pytest.fixture
def begin() -> Iterator[Callable[..., SearchProcess]]:
    """Yield a function that begins searches, which are always stopped."""
    begun: list[SearchProcess] = []
    family = children_of(os.getpid())

    def begin(path: Path, text: str) -> SearchProcess:
        begun.append(SearchProcess(SearchRequest(PathStr(str(path)), text)))
        return begun[-1]

    yield begin
    for process in begun:
        process.stop()
    assert children_of(os.getpid()) == family


def test_a_process_searches_and_ends(tmp_path: Path, begin: Callable[..., SearchProcess]) -> None:
    hostile_names(tmp_path / "t")
    updates = list(begin(tmp_path / "t", "*").updates())
    found = {match.path for update in updates for match in update.matches}
    expected = {
        os.path.join(path, name)
        for path, below, others in os.walk(tmp_path / "t")
        for name in (*below, *others)
    }
    assert found == expected
    assert [update.is_finished for update in updates] == [False] * (len(updates) - 1) + [True]


def test_a_directory_that_does_not_exist_is_bad_input(
    tmp_path: Path, begin: Callable[..., SearchProcess]
) -> None:
    with pytest.raises(BadInput, match="does not exist"):
        list(begin(tmp_path / "missing", "x").updates())


def test_stopping_a_search_is_no_error(begin: Callable[..., SearchProcess]) -> None:
    process = begin(Path("/"), "*")
    updates = process.updates()
    next(updates)
    process.stop()
    list(updates)
