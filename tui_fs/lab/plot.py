"""Curves drawn with characters by plotext, for the terminal and the screens."""

import textwrap

import plotext  # type: ignore[import-untyped]

from tui_fs.lab.exhibits import Curves
from tui_fs.lab.figures import points_axis, shown_tick
from tui_fs.model.paths import harmless

_MARKERS = "●▲■◆○△□◇"
"""One for each line, so that lines are distinguished without colour."""
_COLOURS = ("blue+", "orange+", "green+", "magenta+", "cyan+", "gray+")


def draw_curves(curves: Curves, width: int, height: int) -> str:
    """Return lines of text, coloured by escape sequences, that fit a width and a height.

    A vertical line through a point reaches from its least to its most.
    """
    points = [point for line in curves.lines for point in line.points]
    x_axis = points_axis(point.x for point in points)
    y_axis = points_axis(point.median for point in points)
    y_title, x_title = f"{curves.y_title}, logarithmic", f"{curves.x_title}, logarithmic"
    names = [
        f"{_MARKERS[index % len(_MARKERS)]} {harmless(line.name)}"
        for index, line in enumerate(curves.lines)
    ]
    legend = textwrap.wrap("   ".join(names), max(20, width), break_on_hyphens=False)
    plotext.clear_figure()  # plotext has one figure for the whole process
    plotext.limit_size(False, False)
    plotext.plot_size(width, max(5, height - 2 - len(legend)))
    plotext.theme("clear")
    plotext.xlim(0.0, 1.0)
    plotext.ylim(0.0, 1.0)
    x_ticks, y_ticks = x_axis.ticks(), y_axis.ticks()
    plotext.xticks(
        [x_axis.position(tick) for tick in x_ticks], [shown_tick("", tick) for tick in x_ticks]
    )
    plotext.yticks(
        [y_axis.position(tick) for tick in y_ticks],
        [shown_tick(curves.y_title, tick) for tick in y_ticks],
    )
    for index, line in enumerate(curves.lines):
        colour = _COLOURS[index % len(_COLOURS)]
        xs = [x_axis.position(point.x) for point in line.points]
        ys = [y_axis.position(point.median) for point in line.points]
        if len(xs) > 1:
            plotext.plot(xs, ys, marker="braille", color=colour)
        for x, point in zip(xs, line.points, strict=True):
            if point.least < point.most:
                ends = [y_axis.position(point.least), y_axis.position(point.most)]
                plotext.plot([x, x], ends, marker="braille", color=colour)
    for index, line in enumerate(curves.lines):  # later, so that no line hides a mark
        xs = [x_axis.position(point.x) for point in line.points]
        ys = [y_axis.position(point.median) for point in line.points]
        marker, colour = _MARKERS[index % len(_MARKERS)], _COLOURS[index % len(_COLOURS)]
        plotext.scatter(xs, ys, marker=marker, color=colour)
    plot = [line.rstrip() for line in plotext.build().rstrip("\n").split("\n")]
    return "\n".join([y_title, *plot, x_title.center(width).rstrip(), *legend])
