"""The words and lines of a result, made from what a run shows."""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from rich.console import Group
from rich.table import Table as Grid
from rich.text import Text

from tui_fs.lab.exhibits import (
    Bars,
    Calls,
    CallsOf,
    Claims,
    Curves,
    Exhibit,
    Flames,
    Judged,
    Table,
)
from tui_fs.lab.experiment import Experiment, Verdict
from tui_fs.lab.figures import safe, shown_tick
from tui_fs.lab.results import Results
from tui_fs.model.calls import REMOVING_CALLS
from tui_fs.model.paths import displayable
from tui_fs.model.units import bytes_iec, count, duration
from tui_fs.screens.lab_text import ending_words, verdict_words
from widgets.cell_drawing import eighth_blocks, fit_cells
from widgets.curve_plot import Plot
from widgets.fitted_lines import Line
from widgets.table_pair import layout_pair

VERDICT_SIGNS = {Verdict.HOLDS: "✓", Verdict.DOES_NOT: "✗", Verdict.UNTESTED: "○"}
VERDICT_CLASSES = {
    Verdict.HOLDS: "holds",
    Verdict.DOES_NOT: "does-not",
    Verdict.UNTESTED: "untested",
}

_SHORT_CALL_COLUMNS = ("call", "calls", "err.", "time", "publ.", "err.")
"""Calls, errors, share of the time, calls and errors as published."""
_CALL_COLUMNS = ("call", "calls", "errors", "time", "published", "errors")
_GIVEN_UP = (5, 3, 2, 4)
_WIDE_CELLS = 110
_FLAME_BAR = 16
_NAMES = {
    Claims: "claims",
    Table: "tables",
    Bars: "bars",
    Curves: "curves",
    Calls: "calls",
    Flames: "flames",
}


def pages_of(exhibits: Sequence[Exhibit]) -> dict[str, list[Exhibit]]:
    """Return the exhibits by the page they stand on; the machine has the last one."""
    pages: dict[str, list[Exhibit]] = {}
    for kind, name in _NAMES.items():
        found = [one for one in exhibits if isinstance(one, kind)]
        if found:
            pages[name] = found
    pages["machine"] = []
    return pages


def page_line(names: Sequence[str], shown: str) -> Line:
    """Return the names of the pages with their keys."""
    pieces: list[tuple[str, str]] = []
    for number, name in enumerate(names, 1):
        is_shown = name == shown
        pieces.append(("strong" if is_shown else "muted", f"{'›' if is_shown else ' '}{number} "))
        pieces.append(("strong" if is_shown else "muted", f"{name}  "))
    return tuple(pieces)


def run_words(results: Results) -> str:
    """Return scale, day and ending of a run."""
    began, ended = results.began, results.ended
    day = time.strftime("%Y-%m-%d %H:%M", time.localtime(began.started_at))
    ending = ending_words(None if ended is None else ended.ending)
    return f"{began.scale} · {day}" + ("" if ending == "done" else f" · {ending} !")


def summary(experiment: Experiment, results: Results, claims: Sequence[Judged]) -> Text:
    """Return the question, the claims in numbers, and what a person should know of the run."""
    text = Text(experiment.question, "bold")
    verdicts = Counter(one.verdict for one in claims)
    if verdicts:
        text.append(f"\n{verdict_words(verdicts)}", "not bold")
    ended = results.ended
    if ended is not None and ended.why:
        text.append(f"\n! {safe(ended.why)}", "bold")
    for note in results.notes:
        text.append(f"\n! {safe(note)}", "not bold")
    return text


def verdict_text(verdict: Verdict) -> Text:
    """Return a verdict with its sign."""
    return Text(f"{VERDICT_SIGNS[verdict]} {verdict.value}")


def claim_text(claim: Judged) -> Group:
    """Return a claim above what was published, what was found here, and why."""
    grid = Grid.grid(padding=(0, 2, 0, 0))
    for label, words in (("published", claim.published), ("here", claim.here), ("why", claim.why)):
        if words:
            grid.add_row(Text(label, "dim"), Text(words))
    return Group(Text(claim.text, "bold"), grid)


def plot_of(curves: Curves) -> Plot:
    """Return curves as they are drawn."""
    return Plot(
        curves.lines,
        curves.x_title,
        curves.y_title,
        curves.has_log_x,
        curves.has_log_y,
        partial(shown_tick, curves.y_title),
    )


def pair_lines(pair: Sequence[CallsOf], width: int, *, has_choice: bool) -> list[Line]:
    """Draw the tables of one or two steps side by side.

    Args:
        has_choice: other steps can be chosen; the titles name the keys.
    """
    columns = _SHORT_CALL_COLUMNS if width < _WIDE_CELLS else _CALL_COLUMNS
    if has_choice:
        titles = [f"< {pair[0].title} >", *(f"[ {one.title} ]" for one in pair[1:])]
        pair = [replace(one, title=title) for one, title in zip(pair, titles, strict=True)]
    strong = {*REMOVING_CALLS, "total"}
    return layout_pair(pair, columns, width, given_up=_GIVEN_UP, strong=strong)


def pair_remarks(pair: Sequence[CallsOf]) -> Text:
    """Return who has counted, and of what the published figures are."""
    text = Text(style="dim")
    remarks: dict[str, list[str]] = {one.remark: [] for one in pair}
    for one in pair:
        remarks[one.remark].append(one.title)
    for remark, titles in remarks.items():
        text.append(f"\n{remark}" if len(titles) == len(pair) else f"\n{titles[0]}: {remark}")
    text.append("\nerr.: calls with an error; publ.: as published.")
    return text


def flame_lines(flames: Flames, width: int) -> list[Line]:
    """Draw functions, indented by their depth, with the share of the time in them."""
    lines: list[Line] = []
    if flames.rows:
        head = f"{'total':>7}  {'own':>7}  {'':{_FLAME_BAR}}  function"
        lines.append((("muted", fit_cells(head, width)),))
    for row in flames.rows:
        bar = fit_cells(eighth_blocks(row.total_percent / 100, _FLAME_BAR), _FLAME_BAR)
        name = "  " * row.depth + row.function
        lines.append(
            (
                ("", f"{row.total_percent:>5.1f} %  {row.own_percent:>5.1f} %  "),
                ("bar", bar),
                ("", "  " + fit_cells(name, max(1, width - 2 * 9 - _FLAME_BAR - 2))),
            )
        )
    return lines


def machine_text(results: Results, folder: str) -> Group:
    """Return what the run was measured on, and the exact commands."""
    began, machine, ended = results.began, results.began.machine, results.ended
    about_machine = {
        "kernel": machine.kernel,
        "system": machine.distribution,
        "processor": f"{machine.processor}, {count(machine.processors)} usable",
        "memory": bytes_iec(machine.memory_bytes),
    }
    about_run = {
        "worked in": displayable(began.directory),
        "copied": displayable(began.target),
        "took": "" if ended is None else duration(ended.elapsed_s),
        "kept": "" if ended is None else ", ".join(ended.files),
        "record": displayable(folder),
    }
    tools = {name: words or "of unknown version" for name, words in sorted(machine.tools.items())}
    parts: list[Text | Grid] = []
    for title, pairs in (("machine", about_machine), ("run", about_run), ("tools", tools)):
        parts += [Text(title, "bold"), _grid(pairs), Text("")]
    return Group(*parts, _steps(results))


def _grid(pairs: dict[str, str]) -> Grid:
    grid = Grid.grid(padding=(0, 2))
    for label, value in pairs.items():
        if value:
            grid.add_row(Text(f"  {label:<9}", "dim"), Text(safe(value)))
    return grid


def _steps(results: Results) -> Text:
    text = Text("steps", "bold")
    for one in results.measured.values():
        text.append(f"\n{safe(one.plan.title)}", "not bold")
        about = ", ".join(safe(word) for word in (one.plan.tree, one.plan.place) if word)
        text.append(f"  {about}", "dim not bold")
        for command in one.plan.commands:
            text.append("\n  $ ", "dim not bold")
            text.append(safe(command), "not bold")
        if one.why_not:
            text.append(f"\n  ! {safe(one.why_not)}", "not bold")
    return text
