"""A run as one page of HTML, without scripts."""

import importlib.resources
import time
from collections.abc import Iterable

from tui_fs import __version__
from tui_fs.lab.exhibits import (
    PUBLISHED_LABEL,
    Bar,
    Bars,
    Calls,
    CallsOf,
    Claims,
    Exhibit,
    Flames,
    Row,
    Table,
    why_empty,
)
from tui_fs.lab.experiment import Experiment, Judged, Verdict, run_command
from tui_fs.lab.figures import Axis
from tui_fs.lab.results import Ending, Machine, Measured, Results
from tui_fs.model.compat import assert_never
from tui_fs.model.html import document, pairs, section, text, wide_table
from tui_fs.model.paths import shell_quoted
from tui_fs.model.units import count, duration

_VERDICT_CLASSES = {
    Verdict.HOLDS: ("holds", "✓"),
    Verdict.DOES_NOT: ("fails", "✗"),
    Verdict.UNTESTED: ("untested", "–"),
}


def page(
    experiment: Experiment, results: Results, exhibits: Iterable[Exhibit], run_id: str = ""
) -> str:
    """Return the page, with all variable text escaped.

    Args:
        exhibits: see `tui_fs.lab.exhibits.exhibits_of`.
        run_id: as ``tui-fs lab runs`` lists it.
    """
    style = importlib.resources.files("tui_fs.lab").joinpath("page.css").read_text("utf-8")
    source = f'<p class="source">Source: {text(experiment.source)}</p>' if experiment.source else ""
    parts = [
        '<header><p class="kind">tui-fs lab</p>',
        f"<h1>{text(experiment.title)}</h1>",
        f'<p class="question">{text(experiment.question)}</p>{source}',
        f"{_facts(results, run_id)}{_ending(results)}</header>",
        *(_exhibit(exhibit) for exhibit in exhibits),
        _notes(results),
        _commands(results),
        _machine(results.began.machine),
        f"<footer>Written by tui-fs {text(__version__)}; "
        f"<code>{text(_repeating(experiment, results))}</code> repeats this run.</footer>",
    ]
    return document(f"{experiment.title} · tui-fs lab", parts, style)


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
    return pairs("facts", ((name, value) for name, value in facts if value))


def _ending(results: Results) -> str:
    ended = results.ended
    if ended is None:
        return '<p class="warning">This run has no end: it is still running or was killed.</p>'
    if ended.ending is Ending.DONE:
        return ""
    reason = f": {text(ended.reason.rstrip('.'))}" if ended.reason else ""
    return f'<p class="warning">This run is incomplete ({text(ended.ending)}{reason}).</p>'


def _repeating(experiment: Experiment, results: Results) -> str:
    """Return the command that runs the experiment again in the same way."""
    return shell_quoted(run_command(experiment, results.began.scale, results.began.target))


def _exhibit(exhibit: Exhibit) -> str:
    match exhibit:
        case Claims():
            claims = "".join(_claim(claim) for claim in exhibit.claims)
            return section("Claims", f'<ol class="claims">{claims}</ol>')
        case Table():
            content = wide_table(exhibit.columns, map(_row, exhibit.rows))
            content += _bars(exhibit.bars) if exhibit.bars else ""
            content += _remark(exhibit.remark)
        case Calls():
            tables = "".join(_calls(of_step, exhibit.columns) for of_step in exhibit.tables)
            content = f'<div class="pair">{tables}</div>'
        case Flames():
            content = _flames(exhibit) + _remark(exhibit.remark)
        case _:
            assert_never(exhibit)
    return section(exhibit.title, content)


def _claim(claim: Judged) -> str:
    kind, sign = _VERDICT_CLASSES[claim.verdict]
    figures = [("published", claim.published), ("here", claim.here), ("why", claim.reason)]
    return (
        f'<li class="{kind}"><p class="verdict"><span aria-hidden="true">{sign}</span> '
        f'{text(claim.verdict)}</p><p class="claim">{text(claim.text)}</p>'
        f"{pairs('figures', ((name, value) for name, value in figures if value))}</li>"
    )


def _row(row: Row) -> str:
    first, *others = row.cells
    kind = ' class="published"' if first == PUBLISHED_LABEL else ""
    head = f'<th scope="row">{text(first.strip())}</th>'
    if row.note and not any(others):
        note = f'<td class="note" colspan="{max(len(others), 1)}">{text(row.note)}</td>'
        return f"<tr{kind}>{head}{note}</tr>"
    cells = "".join(f"<td>{text(cell)}</td>" for cell in others)
    return f"<tr{kind}>{head}{cells}</tr>"


def _bars(bars: Bars) -> str:
    """Return horizontal bars: medians, whiskers from least to most, marks for published ones."""
    caption = [f"Bars are medians of {bars.caption}"]
    if any(bar.most > bar.least for bar in bars.bars):
        caption.append("whiskers reach from minimum to maximum")
    if any(bar.published is not None for bar in bars.bars):
        caption.append("diamonds are published figures")
    rows = "".join(_bar(bar, bars.axis) for bar in bars.bars)
    return f"<figure>{rows}<figcaption>{text('; '.join(caption))}.</figcaption></figure>"


def _bar(bar: Bar, axis: Axis) -> str:
    low, median, high = (100 * axis.position(value) for value in (bar.least, bar.median, bar.most))
    figure, marks = bar.shown, f'<div class="length" style="width:{median:.2f}%"></div>'
    if bar.most > bar.least:
        marks += f'<div class="whisker" style="left:{low:.2f}%;width:{high - low:.2f}%"></div>'
    if bar.published is not None:
        figure += f" · published {bar.published_shown}"
        left = 100 * axis.position(bar.published)
        marks += f'<div class="mark" style="left:{left:.2f}%">◆</div>'
    return (
        f'<div class="bar"><p>{text(bar.label)}<span>{text(figure)}</span></p>'
        f'<div class="track">{marks}</div></div>'
    )


def _calls(calls: CallsOf, columns: tuple[str, ...]) -> str:
    rows = wide_table(columns, map(_row, calls.rows)) if calls.rows else ""
    return f"<div><h3>{text(calls.title)}</h3>{rows}{_remark(calls.remark)}</div>"


def _flames(flames: Flames) -> str:
    rows = [
        f'<tr><th scope="row"><span style="padding-left:{flame.depth * 0.7:.1f}em">'
        f"{text(flame.function)}</span></th><td>{flame.total_percent:.1f} %</td>"
        f'<td>{flame.own_percent:.1f} %</td><td class="share"><div style="width:'
        f'{min(flame.total_percent, 100.0):.1f}%"></div></td></tr>'
        for flame in flames.rows
    ]
    return wide_table(("function", "with callees", "itself", ""), rows, "flames") if rows else ""


def _notes(results: Results) -> str:
    items = "".join(f"<li>{text(note)}</li>" for note in results.notes)
    return section("Notes", f"<ul>{items}</ul>") if items else ""


def _commands(results: Results) -> str:
    steps = "".join(_command(results, measured) for measured in results.measured.values())
    return section("Exact commands", f'<dl class="commands">{steps}</dl>')


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
    lines = "\n".join(text(command) for command in plan.commands)
    about = " · ".join(text(fact) for fact in facts if fact)
    return (
        f"<dt>{text(plan.title)}</dt><dd><p>{about}</p>"
        f"{f'<pre><code>{lines}</code></pre>' if lines else ''}</dd>"
    )


def _machine(machine: Machine) -> str:
    facts = [*machine.facts.items(), *sorted(machine.tools.items())]
    return section("Machine and tools", pairs("machine", facts))


def _remark(remark: str) -> str:
    return f'<p class="remark">{text(remark)}</p>' if remark else ""
