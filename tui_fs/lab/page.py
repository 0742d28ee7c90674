"""A run as one page of HTML that needs nothing else: no script, no request, no other file."""

import time
from collections.abc import Iterable
from typing import assert_never

from tui_fs import __version__
from tui_fs.lab.drawing import bars_svg, curves_svg, text
from tui_fs.lab.exhibits import (
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
from tui_fs.lab.figures import shown_tick
from tui_fs.lab.page_style import STYLE
from tui_fs.lab.results import Ending, Machine, Measured, Results
from tui_fs.lab.view_model import PUBLISHED_LABEL, why_empty
from tui_fs.model.units import bytes_iec, count, duration

_VERDICT_CLASSES = {
    Verdict.HOLDS: ("holds", "✓"),
    Verdict.DOES_NOT: ("fails", "✗"),
    Verdict.UNTESTED: ("untested", "–"),
}
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def page(
    experiment: Experiment, results: Results, exhibits: Iterable[Exhibit], run_id: str = ""
) -> str:
    """Return the page; every text in it that is not ours is escaped.

    Args:
        exhibits: see `tui_fs.lab.view_model.exhibits_of`.
        run_id: as ``tui-fs lab runs`` lists it.
    """
    source = f'<p class="source">After: {text(experiment.source)}</p>' if experiment.source else ""
    parts = [
        '<header><p class="kind">tui-fs lab</p>',
        f"<h1>{text(experiment.title)}</h1>",
        f'<p class="question">{text(experiment.question)}</p>{source}',
        f"{_facts(results, run_id)}{_ending(results)}</header>",
        *(_exhibit(one) for one in exhibits),
        _notes(results),
        _commands(results),
        _machine(results.began.machine),
        f"<footer>Written by tui-fs {text(__version__)}; "
        f"<code>tui-fs lab run {text(experiment.name)} --scale {text(results.began.scale)}</code> "
        "repeats it.</footer>",
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        '<link rel="icon" href="data:,">\n'
        f"<title>{text(experiment.title)} · tui-fs lab</title>\n"
        f"<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(part for part in parts if part)
        + "\n</main>\n</body>\n</html>\n"
    )


def _facts(results: Results, run_id: str) -> str:
    began, ended = results.began, results.ended
    facts = [
        ("scale", began.scale),
        ("begun", time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(began.started_at))),
        ("took", duration(ended.elapsed_s) if ended is not None else ""),
        ("run", run_id),
        ("directory", began.directory),
        ("shape of", began.target),
    ]
    return _pairs("facts", ((name, value) for name, value in facts if value))


def _ending(results: Results) -> str:
    ended = results.ended
    if ended is None:
        return '<p class="warning">This run has no end: it still goes on, or was killed.</p>'
    if ended.ending is Ending.DONE:
        return ""
    why = f": {text(ended.why)}" if ended.why else ""
    return f'<p class="warning">This run was not finished, but {text(ended.ending)}{why}.</p>'


def _exhibit(exhibit: Exhibit) -> str:
    match exhibit:
        case Claims():
            return _section("Claims", _claims(exhibit.claims))
        case Table():
            table = _table(exhibit.columns, exhibit.rows)
            return _section(exhibit.title, table + _remark(exhibit.remark))
        case Bars():
            plot = f'<figure><div class="wide">{bars_svg(exhibit)}</div>{_bars_key(exhibit)}'
            return _section(exhibit.title, plot + _remark(exhibit.remark))
        case Curves():
            plot = f'<figure><div class="wide">{curves_svg(exhibit)}</div>{_spread_key(exhibit)}'
            return _section(exhibit.title, plot + _curve_figures(exhibit))
        case Calls():
            tables = "".join(_calls(one, exhibit.columns) for one in exhibit.tables)
            return _section(exhibit.title, f'<div class="pair">{tables}</div>')
        case Flames():
            return _section(exhibit.title, _flames(exhibit) + _remark(exhibit.remark))
        case _:
            assert_never(exhibit)


def _claims(claims: Iterable[Judged]) -> str:
    return f'<ol class="claims">{"".join(_claim(one) for one in claims)}</ol>'


def _claim(one: Judged) -> str:
    kind, sign = _VERDICT_CLASSES[one.verdict]
    pairs = [("published", one.published), ("here", one.here), ("why", one.why)]
    return (
        f'<li class="{kind}"><p class="verdict"><span aria-hidden="true">{sign}</span> '
        f'{text(one.verdict)}</p><p class="claim">{text(one.text)}</p>'
        f"{_pairs('figures', ((name, value) for name, value in pairs if value))}</li>"
    )


def _table(columns: Iterable[str], rows: Iterable[Row]) -> str:
    head = "".join(f'<th scope="col">{text(one)}</th>' for one in columns)
    body = "".join(_row(one) for one in rows)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="wide">{table}</div>'


def _row(row: Row) -> str:
    first, *others = row.cells
    kind = ' class="published"' if first == PUBLISHED_LABEL else ""
    head = f'<th scope="row">{text(first.strip())}</th>'
    if row.note and not any(others):
        note = f'<td class="note" colspan="{max(len(others), 1)}">{text(row.note)}</td>'
        return f"<tr{kind}>{head}{note}</tr>"
    cells = "".join(f"<td>{_figure(one)}</td>" for one in others)
    return f"<tr{kind}>{head}{cells}</tr>"


def _figure(cell: str) -> str:
    median, opening, span = cell.partition(" (")
    if not opening:
        return text(cell)
    return f'{text(median)} <span class="span">({text(span)}</span>'


def _calls(one: CallsOf, columns: tuple[str, ...]) -> str:
    table = _table(columns, one.rows) if one.rows else ""
    return f"<div><h3>{text(one.title)}</h3>{table}{_remark(one.remark)}</div>"


def _flames(flames: Flames) -> str:
    rows = "".join(
        f'<tr><th scope="row"><span style="padding-left:{one.depth * 0.7:.1f}em">'
        f"{text(one.function)}</span></th><td>{one.total_percent:.1f} %</td>"
        f'<td>{one.own_percent:.1f} %</td><td class="share"><div style="width:'
        f'{min(one.total_percent, 100.0):.1f}%"><div style="width:'
        f'{min(100.0 * one.own_percent / max(one.total_percent, 1e-9), 100.0):.1f}%"></div></div>'
        "</td></tr>"
        for one in flames.rows
    )
    if not rows:
        return ""
    heads = ("function", "with callees", "itself", "")
    head = "".join(f'<th scope="col">{one}</th>' for one in heads)
    return (
        f'<div class="wide"><table class="flames"><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _bars_key(bars: Bars) -> str:
    words = ["Bars are medians"]
    if any(one.most > one.least for one in bars.bars):
        words.append("whiskers reach from the least to the most")
    if any(one.published is not None for one in bars.bars):
        words.append("diamonds are published figures")
    return f"<figcaption>{'; '.join(words)}.</figcaption></figure>"


def _spread_key(curves: Curves) -> str:
    has_spread = any(one.most > one.least for line in curves.lines for one in line.points)
    spread = "; upright lines reach from the least to the most" if has_spread else ""
    return f"<figcaption>Marks are medians{spread}.</figcaption></figure>"


def _curve_figures(curves: Curves) -> str:
    rows = [
        Row(
            (
                line.name,
                f"{one.x:,g}",
                *(_plain(curves.y_title, value) for value in (one.median, one.least, one.most)),
            )
        )
        for line in curves.lines
        for one in line.points
    ]
    columns = ("line", curves.x_title, f"{curves.y_title}: median", "least", "most")
    return f"<details><summary>Figures</summary>{_table(columns, rows)}</details>"


def _plain(unit: str, value: float) -> str:
    return shown_tick(unit, float(f"{value:.3g}"))


def _notes(results: Results) -> str:
    items = "".join(f"<li>{text(one)}</li>" for one in results.notes)
    return _section("Notes", f"<ul>{items}</ul>") if items else ""


def _commands(results: Results) -> str:
    steps = "".join(_command(results, one) for one in results.measured.values())
    return _section("Exact commands", f'<dl class="commands">{steps}</dl>')


def _command(results: Results, measured: Measured) -> str:
    plan = measured.plan
    facts = [plan.place]
    if plan.tree:
        names = f" ({count(plan.entries)} names)" if plan.entries else ""
        facts.append(f"{plan.tree}{names}")
    if measured.runs:
        facts.append(
            f"timed {len(measured.runs)} times" if len(measured.runs) > 1 else "timed once"
        )
    else:
        facts.append(why_empty(results, measured))
    lines = "\n".join(text(one) for one in plan.commands)
    about = " · ".join(text(one) for one in facts if one)
    return (
        f"<dt>{text(plan.title)}</dt><dd><p>{about}</p>"
        f"{f'<pre><code>{lines}</code></pre>' if lines else ''}</dd>"
    )


def _machine(machine: Machine) -> str:
    pairs = [
        ("kernel", machine.kernel),
        ("distribution", machine.distribution),
        ("processor", f"{machine.processor}, {machine.processors} available"),
        ("memory", bytes_iec(machine.memory_bytes)),
        *sorted(machine.tools.items()),
    ]
    return _section("Machine and tools", _pairs("machine", pairs))


def _pairs(kind: str, pairs: Iterable[tuple[str, str]]) -> str:
    items = "".join(
        f"<div><dt>{text(name)}</dt><dd>{text(value)}</dd></div>" for name, value in pairs
    )
    return f'<dl class="{kind}">{items}</dl>'


def _remark(remark: str) -> str:
    return f'<p class="remark">{text(remark)}</p>' if remark else ""


def _section(title: str, content: str) -> str:
    return f"<section><h2>{text(title)}</h2>{content}</section>"
