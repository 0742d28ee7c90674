"""What is left out of a frame, the terminal shows already."""

import random

import pyte
import pytest

from tui_fs.widgets.changed_lines_driver import FORGETS_AFTER_S, ChangedLines

COLUMNS, LINES = 20, 6
STYLES = (
    "", "1", "38;2;1;2;3", "48;2;4;5;6", "38;2;1;2;3;48;2;4;5;6", "38;2;9;2;3;48;2;4;5;6",
    "1;38;2;1;2;3;48;2;7;5;6", "38;5;3", "1;38;5;4", "31;48;2;4;5;6", "38;2;1;2;3;38;2;4;5;6",
)  # fmt: skip


class Terminal:
    """An emulated terminal."""

    def __init__(self) -> None:
        self._screen = pyte.Screen(COLUMNS, LINES)
        self._screen.reset_mode(pyte.modes.DECAWM)
        self._stream = pyte.Stream(self._screen)
        self.bytes_received = 0

    def receive(self, data: str) -> None:
        """Draw."""
        self.bytes_received += len(data.encode())
        self._stream.feed(data)

    def cells(self) -> list[pyte.screens.Char]:
        """Return what each cell shows, with its colours."""
        rows = self._screen.buffer
        return [rows[line][column] for line in range(LINES) for column in range(COLUMNS)]


def frame(chance: random.Random) -> str:
    """Return a frame that draws some pieces of some lines, a few of them often."""
    data = ""
    for line in chance.sample(range(1, LINES + 1), chance.randint(1, LINES)):
        column = chance.choice((1, 1, 5, 9))
        data += f"\x1b[{line};{column}H"
        for _ in range(chance.randint(0, 3)):
            style, text = chance.choice(STYLES), chance.choice(("ab", "a b", "漢", "████", " "))
            data += f"\x1b[{style}m{text}\x1b[0m" if style else text
        data += chance.choice(("", "\n")) if line < LINES else ""
    return data


@pytest.mark.parametrize("seed", range(40))
def test_the_screen_is_the_same(seed: int) -> None:
    chance = random.Random(seed)
    changed, whole, reduced = ChangedLines(), Terminal(), Terminal()
    frames = [frame(chance) for _ in range(8)]
    for _ in range(60):
        data = chance.choice(frames)
        if chance.random() < 0.05:
            data = "\x1b[2J"
        whole.receive(data)
        reduced.receive(changed.reduced(data))
        assert reduced.cells() == whole.cells()
    assert reduced.bytes_received < whole.bytes_received


def test_an_unchanged_frame_only_moves_the_cursor() -> None:
    changed = ChangedLines()
    data = "\x1b[1;1H\x1b[1mtitle\x1b[0m\n\x1b[2;1Hfigures\x1b[2;5H"
    assert changed.reduced(data) == "\x1b[1;1H\x1b[1mtitle\x1b[0m\x1b[2;1Hfigures\x1b[2;5H"
    assert changed.reduced(data) == "\x1b[2;5H"
    changed.forget()
    assert "title" in changed.reduced(data)


def test_what_is_no_frame_passes_and_all_is_sent_again() -> None:
    changed = ChangedLines()
    data = "\x1b[1;1Htitle"
    changed.reduced(data)
    assert changed.reduced("\x1b[?2026h") == "\x1b[?2026h"
    assert changed.reduced(data) == ""
    for other in ("\x1b[?1049h", "\x1b[2J", "\a", "\x1b]52;c;eA==\a"):
        assert changed.reduced(other) == other
        assert changed.reduced(data) == data


def test_only_the_colour_that_differs_is_sent() -> None:
    changed = ChangedLines()
    data = "\x1b[1;1H\x1b[38;2;1;2;3;48;2;4;5;6ma\x1b[0m\x1b[38;2;7;8;9;48;2;4;5;6mb\x1b[0m"
    sent = "\x1b[1;1H\x1b[38;2;1;2;3;48;2;4;5;6ma\x1b[38;2;7;8;9mb\x1b[0m"
    assert changed.reduced(data) == sent


def test_only_the_changed_part_of_a_line_is_sent_and_each_style_once() -> None:
    changed = ChangedLines()
    first = "\x1b[3;1H\x1b[1mcalls\x1b[0m\x1b[1m  10\x1b[0m\x1b[2m /s\x1b[0m\x1b[2m.\x1b[0m"
    assert changed.reduced(first) == "\x1b[3;1H\x1b[1mcalls  10\x1b[0m\x1b[2m /s.\x1b[0m"
    second = first.replace("10", "11")
    assert changed.reduced(second) == "\x1b[3;9H\x1b[1m1\x1b[0m"
    # A style that adds to another one
    assert changed.reduced("\x1b[1;1H\x1b[1m\x1b[3ma\x1b[0m") == "\x1b[1;1H\x1b[1;3ma\x1b[0m"


def test_what_others_wrote_over_the_screen_is_repaired() -> None:
    now_s = 0.0
    changed = ChangedLines(lambda: now_s)
    data = "\x1b[1;1Htitle"
    assert changed.reduced(data) == data
    now_s = FORGETS_AFTER_S
    assert changed.reduced(data) == ""
    now_s += 1
    assert changed.reduced(data) == data
    assert changed.reduced(data) == ""


def test_columns_stay_where_they_are_whatever_cells_a_terminal_gives_to_a_character() -> None:
    changed = ChangedLines()
    name, beside = "\x1b[1m漢 \x1b[0m", "\x1b[2mbeside\x1b[0m"
    assert "\x1b[3;5Hbeside" in changed.reduced(f"\x1b[3;2H{name}{beside}")
    assert "\x1b[4;5Hbeside" not in changed.reduced(f"\x1b[4;2H\x1b[1mabc\x1b[0m{beside}")
