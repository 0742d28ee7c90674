"""A treemap in half blocks: the area of a rectangle is the value of its part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.style import Style
from rich.text import Text
from textual.reactive import reactive
from textual.widget import Widget

from tui_fs.widgets.cell_drawing import draws_blocks, fit_cells

_MIN_LABEL = 4
_GAP = -1
_TONES = ("recent", "old", "rest", "cursor")


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
    """

    key: str
    label: str
    value: float
    amount: str
    tone: str = "recent"


class Treemap(Widget):
    """Parts as rectangles with labels; the colours and gaps separate them.

    With few colours or none, and without block characters, their fillings differ.
    """

    COMPONENT_CLASSES = {f"treemap--{name}" for name in _TONES}

    DEFAULT_CSS = """
    Treemap {
        & > .treemap--recent { background: $primary 45%; color: $foreground; }
        & > .treemap--old { background: $primary 20%; color: $foreground; }
        & > .treemap--rest { background: $foreground 10%; color: $foreground; }
        & > .treemap--cursor { background: $accent 75%; color: $text; text-style: bold; }
    }
    """

    parts: reactive[tuple[Part, ...]] = reactive(())
    highlighted: reactive[str] = reactive("")

    @property
    def is_plain(self) -> bool:
        """Whether tones are fillings, for want of colours."""
        return self.app.no_color or self.app.current_theme.ansi or not draws_blocks()

    @property
    def old_sign(self) -> str:
        """What an old part looks like."""
        return 3 * fillings()["old"] if self.is_plain else "faint:"

    def render(self) -> Text:
        """Draw the rectangles."""
        width, height = self.content_size
        parts = sorted((part for part in self.parts if part.value > 0), key=lambda p: -p.value)
        if self.is_plain:
            return _drawn_plain(parts, width, height, self.highlighted)
        grid = _grid(parts, width, 2 * height)
        styles = [self._style(part) for part in parts]
        backgrounds = [style.bgcolor for style in styles]
        labels = _labels(parts, width, height, 2)
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

    def _style(self, part: Part) -> Style:
        name = "cursor" if part.key == self.highlighted else part.tone
        return self.get_component_rich_style(f"treemap--{name}")


def fillings() -> dict[str, str]:
    """Return the characters of the tones on a terminal without colours."""
    return dict(zip(_TONES, "░▒ █" if draws_blocks() else ".: #", strict=True))


def _grid(parts: Sequence[Part], width: int, height: int) -> list[list[int]]:
    """Return the index of the part at each point; a gap at the right and below each part."""
    grid = [[_GAP] * width for _ in range(height)]
    for index, left, top, right, bottom in _cells(parts, width, height):
        for row in grid[top : max(top + 1, bottom - 1)]:
            row[left : max(left + 1, right - 1)] = [index] * (max(left + 1, right - 1) - left)
    return grid


def _cells(
    parts: Sequence[Part], width: int, height: int
) -> Iterator[tuple[int, int, int, int, int]]:
    """Yield index, left, top, right and bottom of the parts that are at least one point large."""
    for index, place in enumerate(squarify([part.value for part in parts], width, height)):
        left, top = round(place.x), round(place.y)
        right, bottom = round(place.x + place.width), round(place.y + place.height)
        if right > left and bottom > top:
            yield index, left, top, right, bottom


def _labels(
    parts: Sequence[Part], width: int, height: int, scale: int
) -> dict[tuple[int, int], tuple[int, str]]:
    """Return the labels by column and row.

    Args:
        scale: points of the grid in a row.
    """
    labels: dict[tuple[int, int], tuple[int, str]] = {}
    for index, left, top, right, bottom in _cells(parts, width, scale * height):
        room = right - left - 1
        first, last = -(-top // scale), (bottom - 1) // scale
        if last > first and room >= _MIN_LABEL:
            labels[left, first] = index, fit_cells(f" {parts[index].label}", room)
            amount = f" {parts[index].amount}"
            if last > first + 1 and cell_len(amount) <= room:  # a cut number would mislead
                labels[left, first + 1] = index, fit_cells(amount, room)
    return labels


def _drawn_plain(parts: Sequence[Part], width: int, height: int, highlighted: str) -> Text:
    """Draw without colours."""
    by_tone = fillings()
    grid = _grid(parts, width, height)
    marks = [by_tone["cursor" if part.key == highlighted else part.tone] for part in parts]
    labels = _labels(parts, width, height, 1)
    lines: list[str] = []
    for row in range(height):
        line = ""
        while (column := cell_len(line)) < width:
            if (label := labels.get((column, row))) is not None:
                line += label[1].rstrip()[1:] + " "
            else:
                part = grid[row][column]
                line += " " if part == _GAP else marks[part]
        lines.append(set_cell_size(line, width))
    return Text("\n".join(lines), no_wrap=True, end="")
