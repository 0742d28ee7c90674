"""The exhibits of a run, as values that a terminal, a screen or a page can draw."""

import os
import re
import statistics
from collections.abc import Iterable, Iterator

from msgspec import Struct, field

from tui_fs.lab.experiment import (
    CallsView,
    Experiment,
    FlameView,
    Judged,
    Published,
    PublishedCalls,
    RatiosView,
    Scale,
    TableView,
)
from tui_fs.lab.figures import Axis, bars_axis, shown, shown_span
from tui_fs.lab.results import Measure, Measured, Results
from tui_fs.model.calls import CallCount, TraceSource
from tui_fs.model.paths import harmless
from tui_fs.model.units import count, counted
from tui_fs.tracing.syscalls import SYSCALLS


class Row(Struct, frozen=True):
    """A row of a table: formatted cells; `note` says why there are none."""

    cells: tuple[str, ...]
    note: str = ""


class Bar(Struct, frozen=True):
    """A median with the least and the most, and the published figure if there is one.

    Attributes:
        shown: the median as a person reads it, with its unit.
    """

    label: str
    median: float
    least: float
    most: float
    shown: str
    published: float | None = None
    published_shown: str = ""


class Bars(Struct, frozen=True):
    """Bars of one measure; `is_log` where the longest is over 50 times the shortest."""

    unit: str
    bars: tuple[Bar, ...]
    is_log: bool

    @property
    def axis(self) -> Axis:
        """The axis of all bars, their spans and the published figures."""
        values = [value for bar in self.bars for value in (bar.least, bar.median, bar.most)]
        values += [bar.published for bar in self.bars if bar.published is not None]
        return bars_axis(values, is_log=self.is_log)

    @property
    def caption(self) -> str:
        """What is drawn."""
        return f"{self.unit} (logarithmic)" if self.axis.is_log else self.unit


class Table(Struct, frozen=True):
    """Rows below titles; the first column is text, the others are figures.

    Attributes:
        bars: of the first figures; None if they are not drawn.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    remark: str = ""
    bars: Bars | None = None


class CallsOf(Struct, frozen=True):
    """The system calls of one step, the most frequent first.

    Attributes:
        rows: call, calls, errors, share of the time, published calls, published errors.
        remark: the call source, and whether the text's figures are of another number of files.
    """

    key: str
    title: str
    rows: tuple[Row, ...]
    remark: str = ""


class Calls(Struct, frozen=True):
    """Tables of system calls to be read side by side."""

    title: str
    columns: tuple[str, ...]
    tables: tuple[CallsOf, ...]


class Flame(Struct, frozen=True):
    """The time in a function, alone and with its callees, in per cent."""

    function: str
    own_percent: float
    total_percent: float
    depth: int


class Flames(Struct, frozen=True):
    """Where the time went, as a tree, the largest first."""

    title: str
    rows: tuple[Flame, ...]
    remark: str = ""


class Claims(Struct, frozen=True):
    """All claims of an experiment."""

    claims: tuple[Judged, ...]


Exhibit = Claims | Table | Calls | Flames


PUBLISHED_LABEL = "  published"
"""The first cell of a row that holds the text's figures for the row above it."""
MAX_FLAMES = 25
_MIN_LINE_SHARE = 0.01
"""A source line with a smaller share of all samples gets no row."""
_LINE_NUMBER = re.compile(r":(\d+)\)$")
_LOG_FROM_RATIO = 50.0
_CALL_COLUMNS = ("call", "calls", "errors", "time", "published", "its errors")
_AT_PUBLISHED_SCALE = "This is a small run; the published figures may come from larger trees."
_PROCESSOR_MEASURES = frozenset({Measure.USER_S, Measure.SYSTEM_S, Measure.CPU_PERCENT})
_PREPARATION = "Processor time includes preparing each process, a few milliseconds; time does not."
_SAMPLED_MEMORY = "Peak memory is sampled: of tools that end within milliseconds it may be too low."
_COUNTED_BY = {
    TraceSource.PERF: "Counted by perf, which covers only some calls; bpftrace covers all.",
    TraceSource.BPF: "Counted by bpf.",
    TraceSource.STRACE: "Counted by strace.",
    TraceSource.OUTPUT: "Counted from the tool output.",
    TraceSource.OFF: "Not counted.",
}


def exhibits_of(experiment: Experiment, results: Results, folder: str) -> tuple[Exhibit, ...]:
    """Return the exhibits of a run: the claims first, then the views in their order.

    Args:
        folder: where the run's files are kept.
    """
    claims = tuple(claim.judged(results) for claim in experiment.claims)
    exhibits: list[Exhibit] = [Claims(claims)] if claims else []
    run = _Run(
        results,
        {(figure.key, figure.measure): figure for figure in experiment.published},
        {table.key: table for table in experiment.published_calls},
    )
    for view in experiment.views(results):
        match view:
            case TableView():
                exhibits.append(run.table(view))
            case RatiosView():
                exhibits.append(run.ratios(view))
            case CallsView():
                tables = tuple(run.calls(measured) for measured in run.steps(view.keys))
                exhibits.append(Calls(view.title, _CALL_COLUMNS, tables))
            case FlameView():
                exhibits.append(_flames(view, folder))
    return tuple(exhibits)


def why_empty(results: Results, measured: Measured) -> str:
    """Return why a step has no figures."""
    if measured.why_not:
        return harmless(measured.why_not)
    return "not run" if results.ended is not None else "not yet run"


def flames(lines: Iterable[str], max_rows: int = MAX_FLAMES) -> tuple[int, tuple[Flame, ...]]:
    """Return the number of samples and the largest functions, as a tree depth first.

    Args:
        lines: stacks as ``py-spy record --format raw`` writes them:
            ``outer;inner;innermost 12``, the last word being the number of samples; other lines
            are ignored. A function that calls itself counts as one call. If samples hit several
            lines of a function, the larger lines are rows below it instead of its own time.
    """
    root = _Node("", -1)
    for line in lines:
        stack, _, samples = line.strip().rpartition(" ")
        if stack and samples.isascii() and samples.isdigit():
            root.add(stack, int(samples))
    if not root.total:
        return 0, ()
    for node in list(root.descendants()):
        node.split_lines(root.total * _MIN_LINE_SHARE)
    by_size = sorted(root.descendants(), key=lambda node: (-node.total, node.depth))
    # A caller has at least the samples of its callees and sorts before them: it is kept, too.
    kept = {id(node) for node in by_size[:max_rows]}
    return root.total, tuple(
        Flame(
            harmless(node.function),
            100.0 * node.own / root.total,
            100.0 * node.total / root.total,
            node.depth,
        )
        for node in root.descendants()
        if id(node) in kept
    )


class _Run(Struct, frozen=True):
    results: Results
    published: dict[tuple[str, Measure], Published]
    published_calls: dict[str, PublishedCalls]

    def steps(self, keys: Iterable[str]) -> list[Measured]:
        measured = self.results.measured
        return [measured[key] for key in keys if key in measured]

    def table(self, view: TableView) -> Table:
        rows: list[Row] = []
        published: list[Published] = []
        for measured in self.steps(view.keys):
            cells = [_cell(measure, measured) for measure in view.measures]
            note = "" if any(cells) else why_empty(self.results, measured)
            rows.append(Row((measured.plan.title, *cells), note))
            figures = [
                self.published.get((measured.plan.key, measure)) for measure in view.measures
            ]
            if any(figures):
                cells = ["" if figure is None else _shown(figure) for figure in figures]
                rows.append(Row((PUBLISHED_LABEL, *cells)))
                published += [figure for figure in figures if figure is not None]
        remarks = [
            *self._runs_remark(view.keys),
            *self._shares_remark(view.keys),
            *([_PREPARATION] if _PROCESSOR_MEASURES.intersection(view.measures) else []),
            *([_SAMPLED_MEMORY] if Measure.PEAK_MEMORY_BYTES in view.measures else []),
            *self._published_remark(published),
        ]
        columns = ("", *(measure.label for measure in view.measures))
        bars = self._bars(view) if view.has_bars else None
        return Table(view.title, columns, tuple(rows), " ".join(remarks), bars)

    def _bars(self, view: TableView) -> Bars | None:
        """Return bars of the first measure; None without a value."""
        measure = view.measures[0]
        steps = [step for step in self.steps(view.keys) if step.values(measure)]
        order = list(dict.fromkeys(step.plan.series for step in steps))
        steps.sort(key=lambda step: order.index(step.plan.series))
        bars = tuple(self._bar(step, measure) for step in steps)
        lengths = [bar.median for bar in bars]
        lengths += [bar.published for bar in bars if bar.published is not None]
        lengths = [length for length in lengths if length > 0]
        is_log = bool(lengths) and max(lengths) > _LOG_FROM_RATIO * min(lengths)
        return Bars(measure.label, bars, is_log) if bars else None

    def _bar(self, measured: Measured, measure: Measure) -> Bar:
        values = measured.values(measure)
        median = statistics.median(values)
        published = self.published.get((measured.plan.key, measure))
        return Bar(
            measured.plan.title,
            median,
            min(values),
            max(values),
            shown(measure, median),
            None if published is None else published.value,
            "" if published is None else _shown(published),
        )

    def ratios(self, view: RatiosView) -> Table:
        seconds = {
            key: self.results.median(key)
            for _, keys in view.rows
            for key in keys
            if self.results.has(key)
        }
        references = [seconds.get(key) for key in view.rows[0][1]]
        times = ("" if s is None else shown(Measure.SECONDS, s) for s in references)
        rows = [Row(("time", *times))]
        for title, keys in view.rows:
            ratios = [
                f"{seconds[key] / reference:.2f}" if key in seconds and reference else ""
                for key, reference in zip(keys, references, strict=True)
            ]
            unknown = [] if any(ratios) else self.steps(keys)
            note = why_empty(self.results, unknown[0]) if unknown else ""
            rows.append(Row((title, *ratios), note))
        remark = " ".join(self._runs_remark(key for _, keys in view.rows for key in keys))
        return Table(view.title, ("", *view.columns), tuple(rows), remark)

    def calls(self, measured: Measured) -> CallsOf:
        key, title = measured.plan.key, measured.plan.title
        published = self.published_calls.get(key)
        if measured.calls:
            source = measured.source or TraceSource.OFF
            remarks = [_COUNTED_BY[source], *self._shares_remark((key,))]
        elif measured.why_not or not measured.runs:
            remarks = [f"Not counted: {why_empty(self.results, measured)}."]
        else:
            remarks = ["Not counted."]
        if published is not None:
            remarks += [f"Published: {published.note}."] if published.note else []
            remarks += self._scale_remark()
        return CallsOf(key, title, _call_rows(measured, published), " ".join(remarks))

    def _runs_remark(self, keys: Iterable[str]) -> list[str]:
        most = max((len(step.runs) for step in self.steps(keys)), default=0)
        return [f"Medians of up to {most} runs (minimum–maximum)."] if most > 1 else []

    def _shares_remark(self, keys: Iterable[str]) -> list[str]:
        return [
            f"{step.plan.title}: extrapolated from {100 * step.plan.share:g} % of the work."
            for step in self.steps(keys)
            if step.plan.share < 1
        ]

    def _published_remark(self, figures: list[Published]) -> list[str]:
        notes = sorted({f"Published: {figure.note}." for figure in figures if figure.note})
        return [*self._scale_remark(), *notes] if figures else []

    def _scale_remark(self) -> list[str]:
        return [_AT_PUBLISHED_SCALE] if self.results.began.scale == Scale.SMALL else []


def _shown(figure: Published) -> str:
    return shown(figure.measure, figure.value)


def _cell(measure: Measure, measured: Measured) -> str:
    values = measured.values(measure)
    if not values:
        return "not measured" if measure is Measure.PEAK_MEMORY_BYTES and measured.runs else ""
    median = shown(measure, statistics.median(values))
    span = shown_span(measure, min(values), max(values), median)
    return f"{median} ({span})" if span else median


def _call_rows(measured: Measured, table: PublishedCalls | None) -> tuple[Row, ...]:
    """Return calls, errors and time of each system call, with the published numbers."""
    share, is_whole = measured.plan.share, measured.source is not TraceSource.PERF
    here = {
        name: CallCount(round(call.calls / share), round(call.errors / share), call.seconds)
        for name, call in measured.calls.items()
    }
    published = table.calls if table else {}
    if not here and not published:
        return ()
    total_s = sum(call.seconds or 0.0 for call in here.values())

    def rank(name: str) -> tuple[bool, int, str]:
        calls = here if name in here else published
        return name not in here, -calls[name].calls, name

    rows = []
    for name in sorted({*here, *published}, key=rank):
        call = here.get(name, CallCount(0))
        is_known = bool(here) and (is_whole or name in SYSCALLS)
        has_time = total_s > 0 and call.seconds is not None
        time = f"{100 * (call.seconds or 0.0) / total_s:.1f} %" if has_time else ""
        there = [published[name]] if name in published else []
        rows.append(
            Row((harmless(name), *_counts([call] if is_known else []), time, *_counts(there)))
        )
    totals = _counts(here.values() if is_whole else ()), _counts(published.values())
    rows.append(Row(("total", *totals[0], "", *totals[1])))
    return tuple(rows)


def _counts(calls: Iterable[CallCount]) -> tuple[str, str]:
    """Return the sums of calls and errors, empty for none."""
    calls = list(calls)
    errors = sum(call.errors for call in calls)
    return (
        count(sum(call.calls for call in calls)) if calls else "",
        count(errors) if errors else "",
    )


def _flames(view: FlameView, folder: str) -> Flames:
    try:
        path = os.path.join(folder, view.file)
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            samples, rows = flames(file)
    except OSError:
        return Flames(view.title, (), "No stacks were kept.")
    if not rows:
        return Flames(view.title, (), "No samples were taken.")
    remark = f"{counted(samples, 'sample', 'samples')}; recursion is shown as one call."
    return Flames(view.title, rows, remark)


class _Node(Struct):
    """A function below its callers, with the samples that hit it itself and in all."""

    function: str
    depth: int
    own: int = 0
    total: int = 0
    callees: dict[str, "_Node"] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)

    def add(self, stack: str, samples: int) -> None:
        """Add the samples of a stack to this root."""
        node = self
        node.total += samples
        for frame in stack.split(";"):
            function = _LINE_NUMBER.sub(")", frame)
            if function == node.function:
                continue
            node = node.callees.setdefault(function, _Node(function, node.depth + 1))
            node.total += samples
        node.own += samples
        line = _LINE_NUMBER.search(stack)
        if line is not None:
            node.lines[line[1]] = node.lines.get(line[1], 0) + samples

    def split_lines(self, min_samples: float) -> None:
        """Turn the larger source lines into callees, if there are several."""
        if len(self.lines) < 2:
            return
        for number, samples in self.lines.items():
            if samples >= min_samples:
                name = f"line {number}"
                self.callees[name] = _Node(name, self.depth + 1, samples, samples)
                self.own -= samples

    def descendants(self) -> Iterator["_Node"]:
        """Yield all functions below depth first, the largest first."""
        pending = self._by_size()
        while pending:
            node = pending.pop()
            yield node
            pending += node._by_size()

    def _by_size(self) -> list["_Node"]:
        callees = self.callees.values()
        return sorted(callees, key=lambda node: (-node.total, node.function), reverse=True)
