"""The screens on a file system that does not answer: they stay usable, and quit at once."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import wait_until
from tests.e2e.conftest import Open
from tests.e2e.terminal import Terminal
from tests.fuse.hanging_tree import fuse_tree
from tests.fuse.protocol import FuseMount

NO_ANSWER = "The file system has not answered yet."


@pytest.fixture
def fuse(tmp_path: Path) -> Iterator[FuseMount]:
    """Yield a tree in which ``hang`` never answers, however it is asked."""
    with fuse_tree(tmp_path / "mount", "hang") as fuse:
        yield fuse


def assert_quits(terminal: Terminal) -> None:
    """Press q, and fail unless the program ends."""
    terminal.press("q")
    wait_until(lambda: not terminal.is_open(), "the end of the program")


def test_a_directory_that_does_not_answer_can_be_left(open_on: Open, fuse: FuseMount) -> None:
    # So wide that panes beside the table ask about the directory, too
    terminal = open_on(fuse.tree, columns=120, lines=40)
    terminal.wait_for("hang/")
    terminal.press("G", "Enter")
    terminal.wait_for("tree/hang")
    terminal.wait_for(NO_ANSWER)
    # And it can be left again, and others can be entered
    terminal.press("Left")
    terminal.wait_for("d0/")
    terminal.press("g", "Enter")
    terminal.wait_for("f00")
    terminal.press("Left")
    terminal.wait_for("hang/")
    # And the preview says it, too, and can be left
    terminal.press("G", "d")
    terminal.wait_for("Delete ")
    terminal.wait_for(f"{NO_ANSWER} Nothing was deleted; esc goes back.")
    terminal.press("Escape")
    terminal.wait_for("d0/")
    assert_quits(terminal)


def test_the_screens_quit_while_they_wait_for_the_first_answer(
    open_on: Open, fuse: FuseMount
) -> None:
    terminal = open_on(fuse.tree)
    terminal.wait_for("hang/")
    terminal.press("G", "d")
    terminal.wait_for("Delete ")
    terminal.press("Escape")
    terminal.wait_for("d0/")
    fuse.stop_answering()
    terminal.press("Left")
    terminal.wait_for("Count another directory?")
    terminal.press("y")
    terminal.wait_for(f"{NO_ANSWER} ← leaves, q quits.")
    terminal.press(":")
    terminal.wait_for("path")
    terminal.press("C-u")
    terminal.type("/usr/share/doc")
    terminal.press("Enter")
    terminal.wait_for("· complete")  # the keys of the field complete, too
    assert_quits(terminal)


def test_many_visits_of_a_directory_that_does_not_answer_use_nothing_up(
    open_on: Open, fuse: FuseMount
) -> None:
    terminal = open_on(fuse.tree)
    terminal.wait_for("hang/")
    terminal.press("G")
    for _ in range(4):
        terminal.press("d")
        terminal.wait_for(NO_ANSWER)
        terminal.press("Escape")
        terminal.wait_for("d0/")
    terminal.press("g", "d")
    terminal.wait_for("counted")
    terminal.press("Escape")
    terminal.wait_for("d0/")
    assert_quits(terminal)
