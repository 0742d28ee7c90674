"""Runs of the lab on a terminal: verdicts, tables, bars and curves drawn with characters."""

import itertools
import sys
import textwrap
import time
from collections.abc import Iterable
from typing import assert_never

import plotext  # type: ignore[import-untyped]

from tui_fs.cli.output import columns
from tui_fs.lab.axis import bars_axis, points_axis
from tui_fs.lab.exhibits import (
    Bar,
    Bars,
    Calls,
    CallsOf,
    Claims,
    Curves,
    Exhibit,
    Flames,
    Judged,
    Row,
    Table,
)
from tui_fs.lab.experiment import Experiment, Verdict
from tui_fs.lab.figures import safe, shown_span, shown_tick
from tui_fs.lab.results import Ending, Results
from tui_fs.lab.view_model import PUBLISHED_LABEL
from tui_fs.model.units import bytes_iec, counted, duration

_SIGNS = {Verdict.HOLDS: "✓", Verdict.DOES_NOT: "✗", Verdict.UNTESTED: "–"}
_EIGHTHS = " ▏▎▍▌▋▊▉"
_LONGEST_LABEL = 40
_LEAST_WIDTH = 40
_GAP = "    "
_PLOT_HEIGHT = 20
_WIDEST_PLOT = 110
_MARKERS = "●▲■◆○△□◇"


def run_as_text(
    experiment: Experiment,
    results: Results,
    exhibits: Iterable[Exhibit],
    run_id: str,
    width: int,
) -> str:
    """Return a run in lines of at most `width` characters, long words excepted."""
    began, ended = results.began, results.ended
    machine = began.machine
    begun = time.strftime("%Y-%m-%d %H:%M", time.localtime(began.started_at))
    facts = [f"{began.scale} scale", begun, machine.kernel, machine.processor]
    facts.append(
        f"{counted(machine.processors, 'processor', 'processors')}, "
        f"{bytes_iec(machine.memory_bytes)}"
    )
    head = [experiment.title, _wrapped(experiment.question, width)]
    if experiment.source:
        head.append(_wrapped(f"After: {experiment.source}", width))
    head.append(_wrapped("; ".join(facts), width))
    parts = ["\n".join(head), exhibits_as_text(exhibits, width)]
    if results.notes:
        notes = (_wrapped(one, width, "- ", "  ") for one in results.notes)
        parts.append("\n".join(["Notes", *notes]))
    took = "" if ended is None else f" after {duration(ended.elapsed_s)}"
    ending = "still going on, or killed" if ended is None else f"{ended.ending}{took}"
    if ended is not None and ended.ending is not Ending.DONE and ended.why:
        ending += f": {safe(ended.why)}"
    parts.append(f"Run {safe(run_id)}: {ending}")
    return "\n\n".join(part for part in parts if part)


def exhibits_as_text(exhibits: Iterable[Exhibit], width: int) -> str:
    """Return exhibits, an empty line between them."""
    return "\n\n".join(_exhibit(one, width) for one in exhibits)


def _exhibit(exhibit: Exhibit, width: int) -> str:
    match exhibit:
        case Claims():
            return _claims(exhibit, width)
        case Table():
            table = _table(exhibit.columns, exhibit.rows, width)
            return _with_remark(f"{safe(exhibit.title)}\n{table}", exhibit.remark, width)
        case Bars():
            return _with_remark(_bars(exhibit, width), exhibit.remark, width)
        case Curves():
            return f"{safe(exhibit.title)}\n{curves_as_text(exhibit, min(width, _WIDEST_PLOT))}"
        case Calls():
            return f"{safe(exhibit.title)}\n{_calls(exhibit, width)}"
        case Flames():
            return _with_remark(
                f"{safe(exhibit.title)}\n{_flames(exhibit, width)}", exhibit.remark, width
            )
        case _:
            assert_never(exhibit)


def _claims(claims: Claims, width: int) -> str:
    verdicts = [one.verdict for one in claims.claims]
    counts = (f"{sign} {verdicts.count(verdict)}" for verdict, sign in _SIGNS.items())
    return "\n".join(
        ["   ".join(["Claims", *counts]), *(_claim(one, width) for one in claims.claims)]
    )


def _claim(one: Judged, width: int) -> str:
    lines = [_wrapped(f"{_SIGNS[one.verdict]} {one.verdict}: {one.text}", width, "", "  ")]
    for name, value in (("published", one.published), ("here", one.here), ("why", one.why)):
        if value:
            lines.append(_wrapped(value, width, f"    {name + ':':<11}", " " * 15))
    return "\n".join(lines)


def _table(titles: tuple[str, ...], rows: tuple[Row, ...], width: int) -> str:
    """Return a table; where it is too wide, its columns below each other."""
    cells = [tuple(safe(cell) for cell in one) for one in (titles, *(row.cells for row in rows))]
    widths = [max(len(row[i]) for row in cells) for i in range(len(titles))]
    blocks: list[list[int]] = [[]]
    used = widths[0]
    for i in range(1, len(titles)):
        if blocks[-1] and used + 2 + widths[i] > width:
            blocks.append([])
            used = widths[0]
        blocks[-1].append(i)
        used += 2 + widths[i]
    return "\n\n".join(_block(cells, rows, block, is_first=block is blocks[0]) for block in blocks)


def _block(
    cells: list[tuple[str, ...]], rows: tuple[Row, ...], block: list[int], *, is_first: bool
) -> str:
    chosen = [(row[0], *(row[i] for i in block)) for row in cells]
    lines = columns(chosen, frozenset(range(1, len(block) + 1))).split("\n")
    kept = [lines[0]]
    for line, row in zip(lines[1:], rows, strict=True):
        if row.cells[0] == PUBLISHED_LABEL and not any(row.cells[i] for i in block):
            continue
        kept.append(f"{line}  ({safe(row.note)})" if row.note and is_first else line)
    return "\n".join(kept)


def _bars(bars: Bars, width: int) -> str:
    values = [one.median for one in bars.bars]
    values += [one.published for one in bars.bars if one.published is not None]
    axis = bars_axis(values, is_log=bars.is_log)
    labels = [_cut(safe(one.label), _LONGEST_LABEL) for one in bars.bars]
    margin = max(len(one) for one in labels)
    figures = [_bar_figure(one, bars.unit) for one in bars.bars]
    figures += [f"{one.published_shown} published" for one in bars.bars if one.published_shown]
    room = max(width - margin - max(len(one) for one in figures) - 4, 8)
    lines = [safe(bars.title) + (" (logarithmic)" if axis.is_log else "")]
    for one, label in zip(bars.bars, labels, strict=True):
        lines.append(
            f"{label:<{margin}}  {_blocks(axis.position(one.median), room)} "
            f"{_bar_figure(one, bars.unit)}"
        )
        if one.published is not None:
            length = round(axis.position(one.published) * room)
            bar = ("░" * max(length, 1)).ljust(room)
            lines.append(f"{'':<{margin}}  {bar} {one.published_shown} published")
    return "\n".join(line.rstrip() for line in lines)


def _bar_figure(one: Bar, unit: str) -> str:
    span = shown_span(unit, one.least, one.most, one.shown)
    return f"{one.shown} ({span})" if span else one.shown


def _blocks(share: float, room: int) -> str:
    eighths = max(round(share * room * 8), 1)
    whole, rest = divmod(eighths, 8)
    return ("█" * whole + (_EIGHTHS[rest] if rest else "")).ljust(room)


def curves_as_text(curves: Curves, width: int) -> str:
    """Return lines over an axis, drawn with characters, and their names below."""
    points = [point for line in curves.lines for point in line.points]
    x_axis = points_axis((one.x for one in points), is_log=curves.has_log_x)
    y_axis = points_axis((one.median for one in points), is_log=curves.has_log_y)
    plotext.clear_figure()
    plotext.limit_size(False, False)
    plotext.plot_size(width, _PLOT_HEIGHT)
    plotext.theme("clear")
    plotext.xlim(0.0, 1.0)
    plotext.ylim(0.0, 1.0)
    x_ticks, y_ticks = x_axis.ticks(), y_axis.ticks()
    plotext.xticks([x_axis.position(one) for one in x_ticks], [shown_tick("", t) for t in x_ticks])
    plotext.yticks(
        [y_axis.position(one) for one in y_ticks],
        [shown_tick(curves.y_title, one) for one in y_ticks],
    )
    places = [
        (
            [x_axis.position(one.x) for one in line.points],
            [y_axis.position(one.median) for one in line.points],
        )
        for line in curves.lines
    ]
    for xs, ys in places:
        if len(xs) > 1:
            plotext.plot(xs, ys, marker="braille")
    for index, (xs, ys) in enumerate(places):  # later, so that no line hides a mark
        plotext.scatter(xs, ys, marker=_MARKERS[index % len(_MARKERS)])
    drawn = plotext.uncolorize(plotext.build())
    x_title, y_title = (
        f"{title}, logarithmic" if is_log else title
        for title, is_log in (
            (curves.x_title, curves.has_log_x),
            (curves.y_title, curves.has_log_y),
        )
    )
    names = "   ".join(
        f"{_MARKERS[index % len(_MARKERS)]} {safe(line.name)}"
        for index, line in enumerate(curves.lines)
    )
    plot = "\n".join(line.rstrip() for line in drawn.rstrip("\n").split("\n"))
    return "\n".join([y_title, plot, x_title.center(width).rstrip(), _wrapped(names, width)])


def _calls(calls: Calls, width: int) -> str:
    """Return the tables, the first two side by side where they fit."""
    texts = [_calls_of(one, calls.columns, width) for one in calls.tables]
    if len(texts) > 1:
        pair = calls.tables[:2]
        widths = [max(_calls_width(one, calls.columns), _LEAST_WIDTH) for one in pair]
        if sum(widths) + len(_GAP) <= width:
            first, second = (
                _calls_of(one, calls.columns, room).split("\n")
                for one, room in zip(pair, widths, strict=True)
            )
            lines = itertools.zip_longest(first, second, fillvalue="")
            texts[:2] = ["\n".join(f"{one:<{widths[0]}}{_GAP}{two}".rstrip() for one, two in lines)]
    return "\n\n".join(texts)


def _calls_of(one: CallsOf, titles: tuple[str, ...], width: int) -> str:
    head = _cut(safe(one.title), width)
    body = f"{head}\n{_table(titles, one.rows, width)}" if one.rows else head
    return _with_remark(body, one.remark, width)


def _calls_width(one: CallsOf, titles: tuple[str, ...]) -> int:
    return max(len(line) for line in _table(titles, one.rows, sys.maxsize).split("\n"))


def _flames(flames: Flames, width: int) -> str:
    if not flames.rows:
        return ""
    lines = ["  total    own  function"]
    for one in flames.rows:
        figures = f"{one.total_percent:5.1f} %  {one.own_percent:3.0f} %"
        lines.append(_cut(f"{figures}  {'  ' * one.depth}{safe(one.function)}", width))
    return "\n".join(lines)


def _with_remark(body: str, remark: str, width: int) -> str:
    body = body.rstrip("\n")
    return f"{body}\n{_wrapped(remark, width)}" if remark else body


def _wrapped(text: str, width: int, first: str = "", others: str = "") -> str:
    return textwrap.fill(
        safe(text),
        max(width, _LEAST_WIDTH),
        initial_indent=first,
        subsequent_indent=others,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: room - 1]}…"
