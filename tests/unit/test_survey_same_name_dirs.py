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
    """Make a table of directories with these numbers of files; relative paths are below /t."""
    table = DirectoryTable()
    rows = {root: table.add(NO_ROW, root.encode()) for root in roots}
    for path in paths:
        whole = path if path.startswith("/") else f"/t/{path}"
        above, _, name = whole.rpartition("/")
        rows[whole] = table.add(rows[above], name.encode())
        table.files[rows[whole]] = files
    return table


def test_a_known_name_is_reported_from_the_second_directory_on() -> None:
    table = table_of("a", "b", "a/.cache", "a/node_modules", "b/node_modules", "b/node_modules/x")
    (group,) = groups_of(table)
    assert (group.name, group.directories) == ("node_modules", 2)
    assert group.totals == Totals(files=3, directories=3)
    assert group.paths == ("/t/b/node_modules", "/t/a/node_modules")


def test_nested_directories_of_a_name_are_counted_once() -> None:
    inside = "a/node_modules/x/node_modules/node_modules"
    parts = inside.split("/")
    chain = ["/".join(parts[: n + 1]) for n in range(len(parts))]
    table = table_of(*chain, "node_modules")
    (group,) = groups_of(table)
    assert group.directories == 2
    assert group.totals == Totals(files=5, directories=5)
    assert paths_named(table, b"node_modules", 10) == ("/t/a/node_modules", "/t/node_modules")


def test_one_directory_with_others_of_its_name_inside_is_no_group() -> None:
    assert groups_of(table_of("tmp", "tmp/tmp", "tmp/tmp/tmp")) == ()


def test_the_surveyed_directory_itself_is_in_no_group() -> None:
    table = table_of("/cache/a", "/cache/a/cache", "/cache/cache", roots=("/cache",))
    (group,) = groups_of(table)
    assert (group.directories, set(group.paths)) == (2, {"/cache/a/cache", "/cache/cache"})
    assert set(paths_named(table, b"cache", 10)) == {"/cache/a/cache", "/cache/cache"}


@pytest.mark.parametrize(
    ("number", "files", "is_reported"),
    [(3, 400, True), (2, 800, False), (3, 333, True), (3, 332, False), (1000, 0, True)],
)
@pytest.mark.slow
def test_another_name_is_reported_if_there_are_three_that_hold_much(
    number: int, files: int, is_reported: bool
) -> None:
    above = [f"{n}" for n in range(number)]
    table = table_of(*above, files=0)
    for n in range(number):
        table.files[table.add(table.find(f"/t/{n}"), b"x")] = files
    assert [group.name for group in groups_of(table)] == (["x"] if is_reported else [])


@pytest.mark.parametrize(("entries", "is_reported"), [(300_099, True), (300_100, False)])
def test_another_name_is_reported_if_it_holds_one_in_a_hundred(
    entries: int, is_reported: bool
) -> None:
    table = table_of("a", "b", "c", "a/x", "b/x", "c/x", files=0)
    for path in ("/t/a/x", "/t/b/x", "/t/c/x"):
        table.files[table.find(path)] = 999
    table.files[0] = entries - 3000 - 4
    assert table.subtree(0).totals.entries == entries
    assert [group.name for group in groups_of(table)] == (["x"] if is_reported else [])


def test_numbers_are_no_names() -> None:
    paths = [f"{a}" for a in range(5)] + [f"{a}/{b}" for a in range(5) for b in range(10, 15)]
    assert groups_of(table_of(*paths, files=1000)) == ()


def test_the_largest_groups_are_reported_in_order() -> None:
    paths = ["a", "b"]
    names = sorted(groups_module.KNOWN_NAMES)[: GROUPS_TOLD + 3]
    paths += [f"{above}/{os.fsdecode(name)}" for above in "ab" for name in names]
    table = table_of(*paths)
    for number, name in enumerate(names):
        table.files[table.find(f"/t/a/{os.fsdecode(name)}")] = 10 + number
    group_names = [os.fsencode(group.name) for group in groups_of(table)]
    assert group_names == list(reversed(names))[:GROUPS_TOLD]


def test_a_limit_of_paths_is_kept() -> None:
    table = table_of("a", "b", "c", "a/x", "b/x", "c/x")
    assert paths_named(table, b"x", 2) == ("/t/a/x", "/t/b/x")
    assert paths_named(table, b"missing", 2) == ()


WORDS = st.sampled_from(["tmp", "logs", "x", "y"])


@given(st.lists(st.tuples(st.integers(0, 1000), WORDS), max_size=30))
@settings(max_examples=100)
@pytest.mark.slow
def test_groups_are_what_a_plain_search_finds(steps: list[tuple[int, str]]) -> None:
    paths = ["/t"]
    for at, name in steps:
        path = f"{paths[at % len(paths)]}/{name}"
        if path not in paths:
            paths.append(path)
    table = table_of(*paths[1:])
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
