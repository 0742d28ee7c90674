"""Tables, system calls and flames of a run, drawn alike by the screens and the command line.

This module does not load textual.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from tui_fs.lab.exhibits import CallsOf, Flames, Table
from tui_fs.model.calls import REMOVING_CALLS
from tui_fs.widgets.cell_drawing import eighth_blocks, fit_cells
from tui_fs.widgets.figure_layout import Line, layout_bars, layout_pair, layout_table, wrapped

_SHORT_CALL_COLUMNS = ("call", "calls", "err.", "time", "publ.", "err.")
"""Calls, errors, share of the time, published calls and errors."""
_SHORT_MEANINGS = {"err.": "calls with an error", "publ.": "as published"}
_CALL_COLUMNS = ("call", "calls", "errors", "time", "published", "errors")
_DROPPED_FIRST = (5, 3, 2, 4)
_WIDE_CELLS = 110
_FLAME_BAR = 16
_MIN_FLAME_NAME = 16


def table_lines(table: Table, width: int) -> list[Line]:
    """Draw a table and its bars."""
    lines = layout_table(table.columns, table.rows, width)
    if table.bars is not None:
        lines += [(("", ""),), (("muted", table.bars.caption),)]
        lines += layout_bars(table.bars.bars, width, table.bars.axis.position)
    return lines


def pair_lines(pair: Sequence[CallsOf], width: int, *, has_choice: bool = False) -> list[Line]:
    """Draw the tables of one or two steps side by side, with the meanings of short titles.

    Args:
        has_choice: the user can choose other steps; the titles name the keys.
    """
    columns = _SHORT_CALL_COLUMNS if width < _WIDE_CELLS else _CALL_COLUMNS
    if has_choice:
        titles = [f"< {pair[0].title} >", *(f"[ {table.title} ]" for table in pair[1:])]
        pair = [replace(table, title=title) for table, title in zip(pair, titles, strict=True)]
    strong = {*REMOVING_CALLS, "total"}
    lines = layout_pair(pair, columns, width, given_up=_DROPPED_FIRST, strong=strong)
    heads = " ".join(text for line in lines for style, text in line if style == "muted")
    meanings = [
        f"{title}: {text}" for title, text in _SHORT_MEANINGS.items() if title in heads.split()
    ]
    if meanings:
        lines += [(("muted", text),) for text in wrapped(f"{'; '.join(meanings)}.", width)]
    return lines


def pair_remarks(pair: Sequence[CallsOf]) -> str:
    """Return the call source, and the origin of the published figures."""
    titles: dict[str, list[str]] = {}
    for table in pair:
        titles.setdefault(table.remark, []).append(table.title)
    lines = [
        remark if len(titles[remark]) == len(pair) else f"{titles[remark][0]}: {remark}"
        for remark in titles
    ]
    return "\n".join(lines)


def flame_lines(flames: Flames, width: int) -> list[Line]:
    """Draw functions, indented by their depth, with their share of the time."""
    lines: list[Line] = []
    bar_cells = max(0, min(_FLAME_BAR, width - 2 * 9 - 2 - _MIN_FLAME_NAME))
    if flames.rows:
        head = f"{'total':>7}  {'own':>7}  {'':{bar_cells}}  function"
        lines.append((("muted", fit_cells(head, width)),))
    for row in flames.rows:
        bar = fit_cells(eighth_blocks(row.total_percent / 100, bar_cells), bar_cells)
        name = "  " * row.depth + row.function
        lines.append(
            (
                ("", f"{row.total_percent:>5.1f} %  {row.own_percent:>5.1f} %  "),
                ("bar", bar),
                ("", "  " + fit_cells(name, max(1, width - 2 * 9 - bar_cells - 2))),
            )
        )
    return lines
