"""The table of directories against plain Python."""

import os
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.survey_trees import NAMES
from tui_fs.model.survey import Totals
from tui_fs.survey.table import NO_ROW, DirectoryTable

COUNTS = ("files", "symlinks", "other", "apparent", "allocated", "index_bytes", "index_allocated")


@dataclass
class Plain:
    """A naive model of a directory."""

    path: bytes
    numbers: dict[str, int]
    times: tuple[int, int] | None
    children: list["Plain"] = field(default_factory=list)

    def all(self) -> list["Plain"]:
        """Return itself and everything below it."""
        return [self, *(node for child in self.children for node in child.all())]

    def sum(self, name: str) -> int:
        """Add up a column over the subtree."""
        return sum(node.numbers[name] for node in self.all())


ROWS = st.lists(
    st.tuples(
        st.integers(0, 1000),
        NAMES,
        st.fixed_dictionaries({name: st.integers(0, 1 << 33) for name in COUNTS[3:]}),
        st.fixed_dictionaries(
            {name: st.integers(0, 9) for name in (*COUNTS[:3], "repeats", "pending", "further")}
        ),
        st.none() | st.tuples(st.integers(1, 1 << 40), st.integers(1, 1 << 40)),
    ),
    max_size=25,
)


@given(ROWS, st.sampled_from([[b"/t"], [b"/"], [b"/a/b", b"/a/c"]]), st.booleans())
@settings(max_examples=150)
@pytest.mark.slow
def test_the_table_is_what_plain_objects_say(
    rows: list[tuple[int, bytes, dict[str, int], dict[str, int], tuple[int, int] | None]],
    roots: list[bytes],
    is_asked_before: bool,
) -> None:
    table = DirectoryTable()
    nothing = dict.fromkeys((*COUNTS, "repeats", "pending", "further"), 0)
    plain = [Plain(root, nothing, None) for root in roots]
    for root in roots:
        table.add(NO_ROW, root)
    if is_asked_before:
        assert table.subtree(0).totals == Totals(directories=1)
    for at, name, large, small, times in rows:
        above = at % len(table)
        path = plain[above].path.rstrip(b"/") + b"/" + name
        if path in {directory.path for directory in plain}:
            continue
        row = table.add(above, name)
        numbers = {**large, **small}
        for column, number in numbers.items():
            getattr(table, column)[row] = number
        if times is not None:
            table.oldest_s[row], table.newest_s[row] = min(times), max(times)
        plain.append(Plain(path, numbers, times))
        plain[above].children.append(plain[-1])
    table.forget_sums()
    assert len(table) == len(plain)
    assert [plain[row].path for row in table.roots()] == roots
    for row, directory in enumerate(plain):
        path_text = os.fsdecode(directory.path)
        assert (table.path(row), table.find(path_text)) == (path_text, row)
        assert table.path_bytes[row] == len(directory.path.rstrip(b"/"))
        assert {plain[child].path for child in table.children(row)} == {
            child.path for child in directory.children
        }
        subtree = table.subtree(row)
        assert subtree.totals == Totals(
            directory.sum("files"),
            len(directory.all()) + directory.sum("further"),
            directory.sum("symlinks"),
            directory.sum("other"),
            directory.sum("apparent") + directory.sum("index_bytes"),
            directory.sum("allocated") + directory.sum("index_allocated"),
        )
        moments = [time for below in directory.all() for time in below.times or ()]
        assert (subtree.oldest_s, subtree.newest_s) == (
            min(moments, default=0),
            max(moments, default=0),
        )
        assert subtree.repeats == directory.sum("repeats")
        assert subtree.is_complete == (directory.sum("pending") == 0)
        assert table.entries_below(row) == subtree.totals.entries - 1


def test_a_path_that_is_not_in_the_table_is_not_found() -> None:
    table = DirectoryTable()
    first, second = table.add(NO_ROW, b"/a"), table.add(NO_ROW, b"/ab")
    below = table.add(second, b"c")
    assert [table.find(path) for path in ("/a", "/a/", "/ab", "/ab/c")] == [
        first,
        first,
        second,
        below,
    ]
    for path in ("/", "/b", "/a/c", "/ab/c/d", "/ab/", "/abc", "a", "", "/a/b", "/ab/cc"):
        assert table.find(path) == (second if path == "/ab/" else NO_ROW)


def test_entries_are_the_names_in_the_directory_itself() -> None:
    table = DirectoryTable()
    row = table.add(NO_ROW, b"/a")
    below = table.add(row, b"b")
    table.files[below] = 100
    table.files[row], table.symlinks[row], table.other[row] = 1, 2, 3
    table.subdirectories[row] = 1
    assert (table.entries(row), table.entries(below)) == (7, 100)
    assert [table.depth[row], table.depth[below]] == [0, 1]
