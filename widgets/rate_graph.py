"""A graph of a rate over a whole run in a line or two."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

from rich.cells import cell_len
from rich.text import Text
from textual.reactive import reactive
from textual.widget import Widget

from tui_fs.widgets.cell_drawing import fit_cells

_LEVELS = " ▁▂▃▄▅▆▇█"

# Shorter than this a graph shows no shape; the caption is cut instead.
MINIMUM_GRAPH = 10

# A lower graph has no room for a line of reference and for marks.
MINIMUM_DETAILED = 4

_REFERENCE = "─"


class RateHistory:
    """The rates of a run of any length in a bounded number of values.

    A rate counts for the time since the previous one, so that a late sample leaves no hole. When
    the buckets are full, neighbours are merged and every bucket covers twice the time.
    """

    def __init__(self, capacity: int = 240, bucket_s: float = 1.0) -> None:
        """Create an empty history.

        Args:
            capacity: Maximum of values, at least 2.
            bucket_s: Seconds covered by a value at the beginning.

        Raises:
            ValueError: If the capacity is below 2 or the bucket has no length.
        """
        if capacity < 2 or not bucket_s > 0:
            raise ValueError("a history needs two buckets of some length")
        self.capacity = capacity
        self.bucket_s = bucket_s
        self._start_s: float | None = None
        self._sums: list[float] = []
        self._weights: list[float] = []

    @property
    def values(self) -> tuple[float, ...]:
        """The mean rate of each bucket, the oldest first."""
        return tuple(
            total / weight for total, weight in zip(self._sums, self._weights, strict=True)
        )

    def index_of(self, t_s: float) -> int:
        """Return the index of the bucket with a time; the last or the first if it has none."""
        passed_s = t_s - (self._start_s if self._start_s is not None else t_s)
        return max(0, min(int(passed_s / self.bucket_s), len(self._sums) - 1))

    def add(self, t_s: float, rate: float, weight: float = 1.0) -> None:
        """Add a rate measured at a time; a time before the last bucket counts for the last.

        Args:
            t_s: Seconds on any clock that does not jump.
            rate: Anything per second; a rate that is not finite is ignored.
            weight: What the rate counts in the mean of its bucket, above 0: the seconds that it
                was measured over, or the same for all.
        """
        if not math.isfinite(rate) or not math.isfinite(t_s):
            return
        if self._start_s is None:
            self._start_s = t_s
        while (index := int((t_s - self._start_s) / self.bucket_s)) >= self.capacity:
            self._merge_neighbours()
        while len(self._sums) < index:
            self._sums.append(rate * weight)
            self._weights.append(weight)
        if len(self._sums) <= index:
            self._sums.append(0.0)
            self._weights.append(0.0)
        self._sums[-1] += rate * weight
        self._weights[-1] += weight

    def _merge_neighbours(self) -> None:
        """Halve the number of buckets."""
        self._sums = [sum(self._sums[i : i + 2]) for i in range(0, len(self._sums), 2)]
        self._weights = [sum(self._weights[i : i + 2]) for i in range(0, len(self._weights), 2)]
        self.bucket_s *= 2


def resample(values: Sequence[float], width: int) -> list[float]:
    """Average neighbours until the values fit into `width` cells; fewer stay as they are."""
    if len(values) <= width:
        return list(values)
    if width <= 0:
        return []
    edges = [index * len(values) // width for index in range(width + 1)]
    return [sum(values[start:end]) / (end - start) for start, end in pairwise(edges)]


def on_axis(
    values: Sequence[float], bucket_s: float, run_s: float, axis_s: float, width: int
) -> list[float]:
    """Return the mean rates of the equal parts of a time axis, zero after the end of a run.

    Args:
        values: Rates, each over a bucket of time, the oldest first.
        bucket_s: Seconds of a bucket.
        run_s: Length of the run.
        axis_s: Length of the axis.
        width: Number of parts.
    """
    parts = []
    for number in range(width):
        start_s, end_s = number * axis_s / width, (number + 1) * axis_s / width
        first = min(int(start_s / bucket_s), len(values) - 1)
        part = values[first : max(first + 1, math.ceil(end_s / bucket_s))]
        is_over = not values or start_s >= run_s
        parts.append(0.0 if is_over else sum(part) / len(part))
    return parts


def draw_graph(
    values: Sequence[float], width: int, height: int = 1, reference: float = 0.0, top: float = 0.0
) -> list[str]:
    """Draw values as columns, the oldest at the left.

    Zero is blank; anything above is at least the lowest block.

    Args:
        values: Rates; negative ones and those not finite are drawn as zero.
        width: Cells of a line.
        height: Lines; each has eight levels.
        reference: A value that is drawn as a line behind the columns; 0 for none.
        top: The value of a full column at least, as for several graphs with one scale; a higher
            value raises it.

    Returns:
        The lines from top to bottom, each `width` cells.
    """
    known = [value if math.isfinite(value) and value > 0 else 0.0 for value in values]
    drawn = resample(known, width)
    peak = max(reference, top, *drawn, 0.0)
    levels = [max(1, round(value / peak * 8 * height)) if value > 0 else 0 for value in drawn]
    levels += [0] * (width - len(levels))
    reference_line = (round(reference / peak * 8 * height) - 1) // 8 if reference > 0 else -1
    return [
        "".join(
            _REFERENCE
            if below == reference_line and level <= 8 * below
            else _LEVELS[max(0, min(8, level - 8 * below))]
            for level in levels
        )
        for below in reversed(range(height))
    ]


def draw_marks(marks: Iterable[tuple[int, str]], values: int, width: int) -> str:
    """Draw characters below the columns of a graph.

    Args:
        marks: Index of a value and its character; a later one replaces an earlier one.
        values: The number of values of the graph.
        width: Cells of the graph.
    """
    cells = [" "] * max(1, width)
    for index, mark in marks:
        column = index * width // values if values > width else index
        cells[min(len(cells) - 1, column)] = mark
    return "".join(cells)[:width]


class RateGraph(Widget):
    """A graph with a label at the left and a caption at the right of its lowest lines."""

    COMPONENT_CLASSES = {"rate-graph--label", "rate-graph--graph", "rate-graph--caption"}

    DEFAULT_CSS = """
    RateGraph {
        height: 1;

        & > .rate-graph--label { color: $text-muted; }
        & > .rate-graph--graph { color: $primary 80%; }
        & > .rate-graph--caption { color: $text-muted; }
    }
    """

    values: reactive[tuple[float, ...]] = reactive[tuple[float, ...]](())
    """The rates, the oldest first."""

    label: reactive[str] = reactive("rate")
    """Displayable text at the left."""

    caption: reactive[str] = reactive("")
    """Displayable lines at the right, such as the peak."""

    reference: reactive[float] = reactive(0.0)
    """A rate drawn as a line where the graph has some lines; 0 for none."""

    marks: reactive[tuple[tuple[int, str], ...]] = reactive[tuple[tuple[int, str], ...]](())
    """Index of a value and a character below it, where the graph has some lines."""

    _caption_width = 0

    def watch_caption(self, caption: str) -> None:
        """Reserve the widest caption so far, so that the graph keeps its width."""
        self._caption_width = max(self._caption_width, *map(cell_len, caption.split("\n")))

    def render(self) -> Text:
        """Draw the graph into the widget's lines."""
        width, height = self.content_size
        if height <= 0:
            return Text("")
        label_width = cell_len(self.label) + 1 if self.label else 0
        reserved_cells = self._caption_width + 2 if self._caption_width else 0
        caption_width = max(0, min(reserved_cells, width - label_width - MINIMUM_GRAPH))
        graph_width, reference, below = width - label_width - caption_width, 0.0, []
        if height >= MINIMUM_DETAILED:
            reference = self.reference
            below = [draw_marks(self.marks, len(self.values), graph_width)]
        graph = draw_graph(self.values, graph_width, height - len(below), reference)
        labels = [""] * (len(graph) - 1) + [self.label, *[""] * len(below)]
        lines = [*graph, *below]
        caption = self.caption if reference else self.caption.replace(f"{_REFERENCE} ", "")
        captions = [*[""] * height, *caption.split("\n"), *[""] * len(below)][-height:]
        styles = [
            self.get_component_rich_style(f"rate-graph--{part}")
            for part in ("label", "graph", "caption")
        ]
        text = Text(no_wrap=True, overflow="crop", end="")
        for number, parts in enumerate(zip(labels, lines, captions, strict=True)):
            label, line, caption = parts
            caption = "  " + " " * (self._caption_width - cell_len(caption)) + caption
            text.append("\n" if number else "")
            text.append(fit_cells(label, label_width), styles[0])
            text.append(line, styles[1])
            text.append(fit_cells(caption, caption_width), styles[2])
        return text
