"""Tests of the line with the present action, its path and a note."""

import pytest
from rich.text import Text
from textual.app import App, ComposeResult

from tui_fs.widgets.header import Header


class Shown(App[None]):
    def compose(self) -> ComposeResult:
        header = Header()
        header.verb, header.place = "deleting", "/srv/spool/mail"
        header.note = Text("ext4 on /dev/vda1 · 19.0 GiB free · 100 k inodes")
        yield header


async def test_a_verb_too_long_for_the_line_is_marked_as_cut() -> None:
    app = Shown()
    async with app.run_test(size=(40, 3)):
        header = app.query_one(Header)
        header.verb = "WAITING: others wait for the processors"
        assert str(header.render()) == "WAITING: others wait for the processo…"


@pytest.mark.parametrize(
    ("width", "line"),
    [
        (80, "deleting /srv/spool/mail      ext4 on /dev/vda1 · 19.0 GiB free · 100 k inodes"),
        (66, "deleting /srv/spool/mail            19.0 GiB free · 100 k inodes"),
        (40, "deleting /srv/spool/mail  100 k inodes"),
        (28, "deleting …il  100 k inodes"),
    ],
)
async def test_the_place_counts_more_than_the_first_parts_of_the_note(
    width: int, line: str
) -> None:
    app = Shown()
    async with app.run_test(size=(width, 3)):
        shown = str(app.query_one(Header).render())
        assert shown.startswith(line)
        assert len(shown) == width - 2
