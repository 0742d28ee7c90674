"""Directories of one name that are spread over a tree."""

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tui_fs.model.survey import Totals
from tui_fs.survey import same_name_dirs as groups_module
from tui_fs.survey.same_name_dirs import GROUPS_TOLD, groups_of, paths_named
from tui_fs.survey.table import NO_ROW, DirectoryTable


def table_of(*paths: str, files: int = 1, roots: tuple[str, ...] = ("/t",)) -> DirectoryTable:
    """Make a table of directories with so many files each; relative paths are below /t."""
    table = DirectoryTable()
    rows = {root: table.add(NO_ROW, root.encode()) for root in roots}
    for path in paths:
        whole = path if path.startswith("/") else f"/t/{path}"
        above, _, name = whole.rpartition("/")
        rows[whole] = table.add(rows[above], name.encode())
        table.files[rows[whole]] = files
    return table


def test_a_known_name_is_told_from_the_second_directory_on() -> None:
    # Given one .cache, and two node_modules that hold next to nothing
    table = table_of("a", "b", "a/.cache", "a/node_modules", "b/node_modules", "b/node_modules/x")
    # When asked / Then the node_modules are a group, with what is below them
    (group,) = groups_of(table)
    assert (group.name, group.directories) == ("node_modules", 2)
    assert group.totals == Totals(files=3, directories=3)
    assert group.paths == ("/t/b/node_modules", "/t/a/node_modules")


def test_nested_directories_of_a_name_are_counted_once() -> None:
    # Given node_modules inside node_modules
    inside = "a/node_modules/x/node_modules/node_modules"
    parts = inside.split("/")
    chain = ["/".join(parts[: n + 1]) for n in range(len(parts))]
    table = table_of(*chain, "node_modules")
    # When asked / Then only the outermost are in the group
    (group,) = groups_of(table)
    assert group.directories == 2
    assert group.totals == Totals(files=5, directories=5)
    assert paths_named(table, b"node_modules", 10) == ("/t/a/node_modules", "/t/node_modules")


def test_one_directory_with_others_of_its_name_inside_is_no_group() -> None:
    # Given three directories of a name inside each other / When asked / Then there is no group
    assert groups_of(table_of("tmp", "tmp/tmp", "tmp/tmp/tmp")) == ()


def test_the_surveyed_directory_itself_is_in_no_group() -> None:
    # Given a root called as two directories in it / When asked / Then those two are the group
    table = table_of("/cache/a", "/cache/a/cache", "/cache/cache", roots=("/cache",))
    (group,) = groups_of(table)
    assert (group.directories, set(group.paths)) == (2, {"/cache/a/cache", "/cache/cache"})
    assert set(paths_named(table, b"cache", 10)) == {"/cache/a/cache", "/cache/cache"}


@pytest.mark.parametrize(
    ("number", "files", "is_told"),
    [(3, 400, True), (2, 800, False), (3, 333, True), (3, 332, False), (1000, 0, True)],
)
def test_another_name_is_told_if_there_are_three_that_hold_much(
    number: int, files: int, is_told: bool
) -> None:
    # Given so many directories called x with so many files each, themselves counted too
    above = [f"{n}" for n in range(number)]
    table = table_of(*above, files=0)
    for n in range(number):
        table.files[table.add(table.find(f"/t/{n}"), b"x")] = files
    # When asked / Then they are told from 1,000 entries on
    assert [group.name for group in groups_of(table)] == (["x"] if is_told else [])


@pytest.mark.parametrize(("entries", "is_told"), [(300_099, True), (300_100, False)])
def test_another_name_is_told_if_it_holds_one_in_a_hundred(entries: int, is_told: bool) -> None:
    # Given three directories that hold 3,000 entries together, in a tree of so many
    table = table_of("a", "b", "c", "a/x", "b/x", "c/x", files=0)
    for path in ("/t/a/x", "/t/b/x", "/t/c/x"):
        table.files[table.find(path)] = 999
    table.files[0] = entries - 3000 - 4
    assert table.subtree(0).totals.entries == entries
    # When asked / Then they are told if that is a hundredth of it
    assert [group.name for group in groups_of(table)] == (["x"] if is_told else [])


def test_numbers_are_no_names() -> None:
    # Given hashed directories 0 to 9 / When asked / Then they are no group
    paths = [f"{a}" for a in range(5)] + [f"{a}/{b}" for a in range(5) for b in range(10, 15)]
    assert groups_of(table_of(*paths, files=1000)) == ()


def test_the_largest_groups_are_told_in_order() -> None:
    # Given more groups than are told / When asked / Then the largest, in order
    paths = ["a", "b"]
    names = sorted(groups_module.KNOWN_NAMES)[: GROUPS_TOLD + 3]
    paths += [f"{above}/{os.fsdecode(name)}" for above in "ab" for name in names]
    table = table_of(*paths)
    for number, name in enumerate(names):
        table.files[table.find(f"/t/a/{os.fsdecode(name)}")] = 10 + number
    told = [os.fsencode(group.name) for group in groups_of(table)]
    assert told == list(reversed(names))[:GROUPS_TOLD]


def test_a_limit_of_paths_is_kept() -> None:
    # Given three directories of a name / When two are asked for / Then the first two come
    table = table_of("a", "b", "c", "a/x", "b/x", "c/x")
    assert paths_named(table, b"x", 2) == ("/t/a/x", "/t/b/x")
    assert paths_named(table, b"missing", 2) == ()


WORDS = st.sampled_from(["tmp", "logs", "x", "y"])


@given(st.lists(st.tuples(st.integers(0, 1000), WORDS), max_size=30))
@settings(max_examples=100)
def test_groups_are_what_a_plain_search_finds(steps: list[tuple[int, str]]) -> None:
    # Given random trees of few names
    paths = ["/t"]
    for at, name in steps:
        path = f"{paths[at % len(paths)]}/{name}"
        if path not in paths:
            paths.append(path)
    table = table_of(*paths[1:])
    # When asked / Then outermost directories of known names are grouped from two on
    for group in (groups := {str(group.name): group for group in groups_of(table)}).values():
        assert group.name in ("tmp", "logs")
        below = [p for p in paths if f"/{group.name}/" in p + "/"]
        assert group.totals == Totals(files=len(below), directories=len(below))
    for name in ("tmp", "logs", "x"):
        outermost = [p for p in paths if p.endswith(f"/{name}") and p.split("/").count(name) == 1]
        assert set(paths_named(table, name.encode(), 100)) == set(outermost)
        if name in groups:
            assert set(groups[name].paths) == set(outermost)
        else:
            assert name == "x" or len(outermost) < 2
