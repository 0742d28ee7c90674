"""A survey as one page of HTML that opens without a network: treemap, tables, findings."""

import heapq
import importlib.resources
import itertools
import json
import os
import time
from collections.abc import Iterable, Sequence

from msgspec import Struct

from tui_fs import __version__
from tui_fs.model.finding import Finding
from tui_fs.model.html import document, pairs, section, text, wide_table
from tui_fs.model.paths import displayable, shell_quoted
from tui_fs.model.survey import Bin, Histograms, Survey
from tui_fs.model.units import bytes_iec, count, counted
from tui_fs.survey.aggregator import Aggregator
from tui_fs.survey.findings.registry import FINDING_TYPES
from tui_fs.survey.table import NO_ROW, DirectoryTable
from tui_fs.survey.tables import (
    Table,
    groups_table,
    key_figures,
    labelled_bins,
    largest_files_table,
    old_entries,
    owners_table,
    ranking_tables,
    suffixes_table,
)

DRAWN_DIRECTORIES = 3_000
"""Directories in the treemap at most: about 200 KB of the page, drawn in a few milliseconds."""

_DAY_S = 86_400


class Circumstances(Struct, frozen=True):
    """Where and when a survey was made, as text for its page.

    Attributes:
        moment_s: seconds since the epoch; None if unknown, as for an imported survey.
        machine: names with values, the host name first; empty if unknown.
    """

    moment_s: float | None = None
    machine: tuple[tuple[str, str], ...] = ()


def circumstances(*, is_here: bool) -> Circumstances:
    """Return the circumstances of a survey that has just ended, on this machine or elsewhere."""
    if not is_here:
        return Circumstances(machine=(("source", "an exported file"),))
    system = os.uname()
    return Circumstances(time.time(), (("machine", system.nodename), ("kernel", system.release)))


def page(survey: Survey, collector: Aggregator, circumstances: Circumstances, top: int) -> str:
    """Return the page, with all variable text escaped.

    Args:
        survey: finished, or its counts so far; the page states which.
        top: rows of each table.
    """
    files = importlib.resources.files("tui_fs.survey.report")
    style = files.joinpath("page.css").read_text("utf-8")
    script = files.joinpath("treemap.js").read_text("utf-8")
    path = displayable(survey.path)
    histograms = collector.histograms.of(collector.table)
    tables = (
        largest_files_table(collector, top),
        suffixes_table(histograms),
        owners_table(histograms),
        *ranking_tables(collector, top),
        groups_table(survey),
    )
    body = [
        f'<header><p class="kind">tui-fs survey</p><h1>{text(path)}</h1>',
        pairs("facts", _facts(survey, circumstances)),
        _incomplete(survey),
        pairs("totals", (*key_figures(survey), *old_entries(histograms))),
        "</header>",
        _findings(survey.findings),
        _treemap(survey, collector.table, circumstances.moment_s or time.time()),
        _histograms(histograms),
        *(_table(table) for table in tables if table is not None),
        f"<footer>Written by tui-fs {text(__version__)}; "
        f"<code>{text(shell_quoted(('tui-fs', 'survey', survey.path)))}</code> counts again."
        "</footer>",
    ]
    return document(f"{path} · tui-fs survey", body, style, script)


def _facts(survey: Survey, circumstances: Circumstances) -> Iterable[tuple[str, str]]:
    if circumstances.moment_s is not None:
        moment = time.localtime(circumstances.moment_s)
        yield ("counted", time.strftime("%Y-%m-%d %H:%M:%S %Z", moment))
    yield from circumstances.machine
    if survey.filesystem:
        yield ("file system", survey.filesystem)


def _incomplete(survey: Survey) -> str:
    if not survey.finished:
        entries = counted(survey.totals.entries, "entry", "entries")
        directories = counted(survey.totals.directories, "directory", "directories")
        return (
            '<p class="warning">Counting had not finished when this page was written: it has only '
            f"{entries} in {directories} that were counted until then.</p>"
        )
    if survey.complete:
        return ""
    return '<p class="warning">The counts are incomplete; the findings below say why.</p>'


def _findings(findings: Iterable[Finding]) -> str:
    items = "".join(
        f'<li class="{finding.severity}"><p class="severity">{text(finding.severity)}</p>'
        f"<div><p><b>{text(FINDING_TYPES[finding.kind].label_of(finding))}</b> "
        f"<code>{text(displayable(finding.path))}</code></p>"
        f"<p>{text(finding.meaning)}</p><p>{text(finding.advice)}</p></div></li>"
        for finding in findings
    )
    content = f'<ul class="findings">{items}</ul>' if items else "<p>Nothing unusual was found.</p>"
    return section("Findings", content)


def _table(table: Table) -> str:
    *numbers, last = table.columns
    rows = (
        f'<tr><th scope="row">{text(name)}</th>'
        + "".join(f"<td>{text(cell)}</td>" for cell in cells)
        + "</tr>"
        for *cells, name in table.rows
    )
    return section(table.title.capitalize(), wide_table((last, *numbers), rows))


def _histograms(histograms: Histograms) -> str:
    labelled = labelled_bins(histograms)
    ages, sizes = labelled[: len(histograms.ages)], labelled[len(histograms.ages) :]
    charts = _chart("By last change", ages) + _chart("By apparent size", sizes)
    return section("How old, how large", f'<div class="charts">{charts}</div>')


def _chart(title: str, bins: Sequence[tuple[str, Bin]]) -> str:
    """Return a table with a bar for the share of each class in bytes, and one in entries."""
    if not bins:
        return ""
    all_bytes = max(1, sum(each.allocated_bytes for _, each in bins))
    all_entries = max(1, sum(each.entries for _, each in bins))
    rows = "".join(
        f'<tr><th scope="row">{text(label)}</th>'
        f"{_bar_cell(bytes_iec(each.allocated_bytes), each.allocated_bytes / all_bytes)}"
        f"{_bar_cell(count(each.entries), each.entries / all_entries)}</tr>"
        for label, each in bins
    )
    return (
        f'<table class="chart"><caption>{text(title)}</caption><thead><tr><td></td>'
        f'<th scope="col">allocated</th><th scope="col">entries</th></tr></thead>'
        f"<tbody>{rows}</tbody></table>"
    )


def _bar_cell(words: str, share: float) -> str:
    return f'<td>{text(words)}<svg aria-hidden="true"><rect width="{share:.2%}"/></svg></td>'


def _treemap(survey: Survey, table: DirectoryTable, moment_s: float) -> str:
    nodes = _nodes(survey, table, moment_s)
    data = json.dumps(nodes, separators=(",", ":"), ensure_ascii=True).replace("<", "\\u003c")
    return section(
        "Where it is",
        '<div id="map"><p class="controls"><span id="by">'
        '<button type="button" data-by="bytes" aria-pressed="true">allocated</button>'
        '<button type="button" data-by="entries" aria-pressed="false">entries</button></span>'
        '<span id="trail"></span></p><div id="treemap"></div>'
        '<ul id="ages" aria-label="colours"></ul>'
        "<noscript><p>The treemap needs JavaScript; the tables below do not.</p></noscript></div>"
        f'<script type="application/json" id="tree">{data}</script>',
    )


def _nodes(survey: Survey, table: DirectoryTable, moment_s: float) -> list[list[int | str]]:
    """Return the largest directories, each after its parent.

    A node has: index of its parent, name, allocated bytes and entries of the subtree, allocated
    bytes and entries of its own, and the days since the last change in the subtree and in itself;
    -1 for a root's parent and where there are no files.
    """
    roots = list(table.roots())
    sums = [table.subtree(row) for row in roots]
    all_bytes = max(1, sum(subtree.totals.allocated_bytes for subtree in sums))
    all_entries = max(1, sum(subtree.totals.entries for subtree in sums))
    order = itertools.count()
    waiting: list[tuple[float, int, int, int]] = []

    def add(row: int, parent: int) -> None:
        totals = table.subtree(row).totals
        share = max(totals.allocated_bytes / all_bytes, totals.entries / all_entries)
        heapq.heappush(waiting, (-share, next(order), row, parent))

    nodes: list[list[int | str]] = []
    if len(roots) > 1:
        nodes.append([NO_ROW, displayable(survey.path), all_bytes, all_entries, 0, 0, -1, -1])
    for root in roots:
        add(root, len(nodes) - 1)
    while waiting and len(nodes) < DRAWN_DIRECTORIES:
        _, _, row, parent = heapq.heappop(waiting)
        subtree = table.subtree(row)
        own_bytes = table.allocated[row] + table.index_allocated[row]
        nodes.append(
            [
                parent,
                displayable(table.name(row)),
                subtree.totals.allocated_bytes,
                subtree.totals.entries,
                own_bytes,
                table.entries(row) - table.subdirectories[row],
                _days_since(subtree.newest_s, moment_s),
                _days_since(table.newest_s[row], moment_s),
            ]
        )
        for child in table.children(row):
            add(child, len(nodes) - 1)
    return nodes


def _days_since(changed_s: int, moment_s: float) -> int:
    return max(0, int(moment_s - changed_s) // _DAY_S) if changed_s else -1
