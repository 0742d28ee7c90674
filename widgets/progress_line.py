"""A progress bar with its percentage and a caption on one line."""

from __future__ import annotations

import math

from rich.cells import cell_len
from rich.text import Text
from textual.reactive import reactive
from textual.widget import Widget

from tui_fs.widgets.cell_drawing import eighth_blocks, fit_cells

TRACK = "░"

# Shorter than this a bar shows no movement; the caption is cut instead.
MINIMUM_BAR = 6


def clamp_fraction(fraction: float) -> float:
    """Bring a fraction into 0..1; not a number counts as nothing done."""
    return 0.0 if math.isnan(fraction) else max(0.0, min(1.0, fraction))


def draw_bar(fraction: float, width: int) -> str:
    """Draw a bar on a track; it is full only at 1 and empty only at 0.

    Args:
        fraction: Filled part, clamped to 0..1.
        width: Cells of bar and track.
    """
    blocks = eighth_blocks(clamp_fraction(fraction), width)
    return blocks + TRACK * (width - len(blocks))


def percentage(fraction: float) -> str:
    """Format a fraction as a percentage, rounded down: 100 % only at 1, and 0 % only at 0."""
    fraction = clamp_fraction(fraction)
    if 0 < fraction < 0.001:
        return "<0.1 %"
    tenths = math.floor(fraction * 1000)
    return f"{tenths // 10}.{tenths % 10} %"


class ProgressLine(Widget):
    """One line: bar, percentage, caption."""

    COMPONENT_CLASSES = {"progress-line--bar", "progress-line--track", "progress-line--percentage"}

    DEFAULT_CSS = """
    ProgressLine {
        height: 1;

        & > .progress-line--bar { color: $primary 80%; }
        & > .progress-line--track { color: $foreground 30%; }
        & > .progress-line--percentage { text-style: bold; }
    }
    """

    fraction: reactive[float | None] = reactive[float | None](None)
    """Part done, 0..1; None when the total is not known, which draws the track alone."""

    caption: reactive[str] = reactive("")
    """Displayable text at the right of the percentage."""

    _caption_width = 0

    def validate_fraction(self, fraction: float | None) -> float | None:
        """Bring the fraction into 0..1."""
        return None if fraction is None else clamp_fraction(fraction)

    def watch_caption(self, before: str, caption: str) -> None:
        """Reserve the widest figures so far: a growing one must not push the bar about."""
        if before[:1].isdigit() != caption[:1].isdigit():
            self._caption_width = 0
        self._caption_width = max(self._caption_width, cell_len(caption))

    def render(self) -> Text:
        """Draw the line."""
        bar, percent, caption = progress_parts(
            self.fraction, self.caption, self.content_size.width, self._caption_width
        )
        blocks = bar.rstrip(TRACK)
        return Text(no_wrap=True, overflow="crop", end="").append_tokens(
            (
                (blocks, self.get_component_rich_style("progress-line--bar")),
                (bar[len(blocks) :], self.get_component_rich_style("progress-line--track")),
                (percent, self.get_component_rich_style("progress-line--percentage")),
                (caption, None),
            )
        )


def progress_parts(
    fraction: float | None, caption: str, width: int, caption_width: int
) -> tuple[str, str, str]:
    """Lay out bar, percentage and caption, which together fill the line.

    Args:
        fraction: Part done; None leaves the percentage out.
        caption: Displayable text; its last parts, after commas, are left out when the bar would
            become too short, and the first one is cut.
        width: Cells of the line.
        caption_width: Cells to reserve for the caption.
    """
    percent = "" if fraction is None else f"   {percentage(fraction):>7}"
    reserved_cells = 2 + caption_width if caption_width else 0
    caption_cells = max(0, min(reserved_cells, width - MINIMUM_BAR - len(percent)))
    while cell_len(caption) > caption_cells - 2 and ", " in caption:
        caption = caption.rpartition(", ")[0]  # a cut number would be another one
    bar = draw_bar(fraction or 0.0, max(0, width - len(percent) - caption_cells))
    return bar, percent, fit_cells("  " + caption, caption_cells)
