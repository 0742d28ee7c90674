"""A treemap in half blocks: the area of a rectangle is the value of its part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.style import Style
from rich.text import Text
from textual.events import Click
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from tui_fs.widgets.cell_drawing import fit_cells, has_few_characters

_MIN_LABEL = 4
_MIN_FRAME, _MIN_INNER_ROWS = 14, 3
"""The columns of a part, and the rows below its label, from which its own parts are drawn."""
_GAP = -1
_TONES = ("recent", "old", "rest", "frame", "cursor")


class Rectangle(NamedTuple):
    """A place in a treemap, in any unit."""

    x: float
    y: float
    width: float
    height: float


def squarify(values: Sequence[float], width: float, height: float) -> list[Rectangle]:
    """Divide a rectangle in proportion to values, into parts as square as possible.

    The algorithm is that of Bruls, Huizing and van Wijk (2000): rows along the shorter side, each
    as long as the worst ratio of the sides in it becomes better.

    Args:
        values: positive, in descending order.

    Returns:
        A rectangle for each value; together they cover the whole without overlap.
    """
    total = sum(values)
    if not total > 0 or not width > 0 or not height > 0:
        return [Rectangle(0.0, 0.0, 0.0, 0.0)] * len(values)
    areas = [value * width * height / total for value in values]
    places: list[Rectangle] = []
    x = y = 0.0
    while len(places) < len(areas):
        begin = len(places)
        is_column = width - x >= height - y
        side = height - y if is_column else width - x
        end = _row_end(areas, begin, side)
        row = sum(areas[begin:end])
        thickness = row / side if side > 0 else 0.0
        if end == len(areas):  # without the rounding errors of all rows before
            thickness = width - x if is_column else height - y
        along = y if is_column else x
        for area in areas[begin:end]:
            length = area / row * side
            if is_column:
                places.append(Rectangle(x, along, thickness, length))
            else:
                places.append(Rectangle(along, y, length, thickness))
            along += length
        if is_column:
            x += thickness
        else:
            y += thickness
    return places


def _row_end(areas: Sequence[float], begin: int, side: float) -> int:
    """Return the end of the row that begins at an area."""
    row, worst = 0.0, float("inf")
    for end in range(begin, len(areas)):
        row += areas[end]
        square = (row / side) ** 2 if side > 0 else 0.0
        ratio = max(areas[begin] / square, square / areas[end]) if square else 0.0
        if ratio > worst:
            return end
        worst = ratio
    return len(areas)


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a treemap.

    Attributes:
        key: the highlighted part is chosen by it.
        label: displayable.
        value: its area, in any unit.
        amount: the value in words.
        tone: a component class: recent, old or rest.
        parts: what is in it, drawn where there is room for it; together at most its value.
    """

    key: str
    label: str
    value: float
    amount: str
    tone: str = "recent"
    parts: tuple[Part, ...] = ()


class _Block(NamedTuple):
    """The place of a part in points: columns, and rows or halves of rows.

    Attributes:
        key: of the outermost part that contains it.
        is_inner: it is inside another one.
        is_frame: others are inside it.
    """

    part: Part
    key: str
    left: int
    top: int
    right: int
    bottom: int
    is_inner: bool
    is_frame: bool


class Treemap(Widget):
    """Parts as rectangles with labels; the colours and gaps separate them.

    With few colours or few characters, their fillings differ.
    """

    COMPONENT_CLASSES = {f"treemap--{name}" for name in _TONES}

    DEFAULT_CSS = """
    Treemap {
        & > .treemap--recent { background: $primary 45%; color: $foreground; }
        & > .treemap--old { background: $primary 20%; color: $foreground; }
        & > .treemap--rest { background: $foreground 10%; color: $foreground; }
        & > .treemap--frame { background: $foreground 20%; color: $foreground; }
        & > .treemap--cursor { background: $primary 90%; color: $text; text-style: bold; }
    }
    """

    parts: reactive[tuple[Part, ...]] = reactive(())
    highlighted: reactive[str] = reactive("")

    class Clicked(Message):
        """The user has clicked on an outermost part, or on one inside it.

        Attributes:
            key: of the outermost part.
        """

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    @property
    def is_plain(self) -> bool:
        """Whether tones are fillings, for want of colours."""
        return self.app.no_color or self.app.current_theme.ansi or has_few_characters()

    @property
    def has_old(self) -> bool:
        """Whether one of the parts that it has room for is old."""
        blocks = self._blocks(1 if self.is_plain else 2)
        return any(block.part.tone == "old" and not block.is_frame for block in blocks)

    @property
    def old_sign(self) -> str:
        """What an old part looks like."""
        return 3 * fillings()["old"] if self.is_plain else "faint:"

    def on_click(self, event: Click) -> None:
        """Report the part at the mouse."""
        offset = event.get_content_offset(self)
        if offset is None:
            return
        scale = 1 if self.is_plain else 2
        x, y = offset.x, offset.y * scale
        for block in self._blocks(scale):
            is_in_row = block.top < y + scale and y < block.bottom
            if not block.is_inner and block.left <= x < block.right and is_in_row:
                self.post_message(self.Clicked(block.key))
                event.stop()
                return

    def render(self) -> Text:
        """Draw the rectangles."""
        width, height = self.content_size
        scale = 1 if self.is_plain else 2
        blocks = self._blocks(scale)
        grid = _grid(blocks, width, scale * height)
        labels = _labels(blocks, scale)
        if self.is_plain:
            return _drawn_plain([self._tone(block) for block in blocks], grid, labels)
        names = [f"treemap--{self._tone(block)}" for block in blocks]
        styles = [self.get_component_rich_style(name) for name in names]
        backgrounds = [style.bgcolor for style in styles]
        lines: list[Text] = []
        for row in range(height):
            line = Text(no_wrap=True, end="")
            upper, lower = grid[2 * row], grid[2 * row + 1]
            column = 0
            while column < width:
                label = labels.get((column, row))
                if label is not None:
                    line.append(label[1], styles[label[0]])
                    column += cell_len(label[1])
                    continue
                top, bottom = upper[column], lower[column]
                if top == bottom:
                    line.append(" ", Style() if top == _GAP else Style(bgcolor=backgrounds[top]))
                elif top == _GAP:
                    line.append("▄", Style(color=backgrounds[bottom]))
                else:
                    background = None if bottom == _GAP else backgrounds[bottom]
                    line.append("▀", Style(color=backgrounds[top], bgcolor=background))
                column += 1
            lines.append(line)
        return Text("\n", end="").join(lines)

    def _blocks(self, scale: int) -> list[_Block]:
        width, height = self.content_size
        return list(_placed(self.parts, 0, 0, width, scale * height, scale))

    def _tone(self, block: _Block) -> str:
        if block.key == self.highlighted and not block.is_inner:
            return "cursor"
        return "frame" if block.is_frame else block.part.tone


def fillings() -> dict[str, str]:
    """Return the characters of the tones on a terminal without colours."""
    return dict(zip(_TONES, "░▒· █", strict=True))


def _placed(
    parts: Sequence[Part], left: int, top: int, right: int, bottom: int, scale: int, key: str = ""
) -> Iterator[_Block]:
    """Yield the parts that are at least one point large, each before those inside it.

    Args:
        scale: points in a row.
        key: of the outermost part with these; empty for the outermost ones.
    """
    shown = sorted((part for part in parts if part.value > 0), key=lambda part: -part.value)
    places = squarify([part.value for part in shown], right - left, bottom - top)
    for part, place in zip(shown, places, strict=True):
        x, y = left + round(place.x), top + round(place.y)
        end_x = left + round(place.x + place.width)
        end_y = top + round(place.y + place.height)
        if end_x <= x or end_y <= y:
            continue
        below_label = scale * (-(-y // scale) + 1)
        is_frame = (
            bool(part.parts)
            and end_x - x >= _MIN_FRAME
            and (end_y - 1 - below_label >= _MIN_INNER_ROWS * scale)
        )
        outer = key or part.key
        yield _Block(part, outer, x, y, end_x, end_y, bool(key), is_frame)
        if is_frame:
            rest = part.value - sum(inner.value for inner in part.parts)
            inner = (*part.parts, Part("", "the rest", rest, "", "rest"))
            yield from _placed(inner, x + 1, below_label, end_x - 1, end_y - 1, scale, outer)


def _grid(blocks: Sequence[_Block], width: int, height: int) -> list[list[int]]:
    """Return the index of the block at each point; a gap at the right and below each block."""
    grid = [[_GAP] * width for _ in range(height)]
    for index, block in enumerate(blocks):
        end = max(block.left + 1, block.right - 1)
        for row in grid[block.top : max(block.top + 1, block.bottom - 1)]:
            row[block.left : end] = [index] * (end - block.left)
    return grid


def _labels(blocks: Sequence[_Block], scale: int) -> dict[tuple[int, int], tuple[int, str]]:
    """Return the block and the text of the labels by column and row."""
    labels: dict[tuple[int, int], tuple[int, str]] = {}
    for index, block in enumerate(blocks):
        room = block.right - block.left - 1
        first, last = -(-block.top // scale), (block.bottom - 1) // scale
        if last <= first or room < _MIN_LABEL or not block.part.label:
            continue
        label, amount = f" {block.part.label}", f" {block.part.amount}"
        if block.is_frame:
            fits = cell_len(label) + cell_len(amount) <= room
            labels[block.left, first] = index, fit_cells(label + amount * fits, room)
            continue
        labels[block.left, first] = index, fit_cells(label, room)
        if last > first + 1 and cell_len(amount) <= room:  # a cut number would mislead
            labels[block.left, first + 1] = index, fit_cells(amount, room)
    return labels


def _drawn_plain(
    tones: Sequence[str],
    grid: Sequence[Sequence[int]],
    labels: Mapping[tuple[int, int], tuple[int, str]],
) -> Text:
    """Draw without colours."""
    by_tone = fillings()
    marks = [by_tone[tone] for tone in tones]
    lines: list[str] = []
    for number, row in enumerate(grid):
        line = ""
        while (column := cell_len(line)) < len(row):
            if (label := labels.get((column, number))) is not None:
                line += label[1].rstrip()[1:] + " "
            else:
                line += " " if row[column] == _GAP else marks[row[column]]
        lines.append(set_cell_size(line, len(row)))
    return Text("\n".join(lines), no_wrap=True, end="")
