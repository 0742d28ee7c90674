"""What a run shows: its claims judged, then its views filled with what was measured."""

import os
import statistics
from collections.abc import Iterable
from dataclasses import dataclass

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
    Line,
    Point,
    Row,
    Table,
)
from tui_fs.lab.experiment import (
    BarsView,
    CallsView,
    Claim,
    CurveView,
    Experiment,
    FlameView,
    Published,
    PublishedCalls,
    RatiosView,
    Scale,
    TableView,
    View,
)
from tui_fs.lab.figures import safe, shown, shown_span
from tui_fs.lab.results import Measure, Measured, Results
from tui_fs.lab.stacks import flames
from tui_fs.model.calls import CallCount, TraceSource
from tui_fs.model.units import count, counted
from tui_fs.tracing.syscalls import SYSCALLS

PUBLISHED_LABEL = "  published"
"""The first cell of a row that holds the text's figures for the row above it."""
_LOG_FROM_RATIO = 50.0
_CALL_COLUMNS = ("call", "calls", "errors", "time", "published", "its errors")
_AT_PUBLISHED_SCALE = "This is a small run; published figures may be of larger trees."
_COUNTED_BY = {
    TraceSource.PERF: "Counted by perf, which knows some calls only; install bpftrace for all.",
    TraceSource.BPF: "Counted by bpf.",
    TraceSource.STRACE: "Counted by strace.",
    TraceSource.OUTPUT: "Counted from what the tool printed.",
    TraceSource.OFF: "Not counted.",
}


def exhibits_of(experiment: Experiment, results: Results, folder: str) -> tuple[Exhibit, ...]:
    """Return all that a run shows: the claims first, then the views in their order.

    A plot that has nothing to show yet is left out.

    Args:
        folder: where the run's files are kept.
    """
    showing = _Showing(
        results,
        folder,
        {(one.key, one.measure): one for one in experiment.published},
        {one.key: one for one in experiment.published_calls},
    )
    claims = tuple(_judged(one, results) for one in experiment.claims)
    exhibits: list[Exhibit] = [Claims(claims)] if claims else []
    for view in experiment.views(results):
        exhibit = showing.exhibit(view)
        if exhibit is not None:
            exhibits.append(exhibit)
    return tuple(exhibits)


def why_empty(results: Results, measured: Measured) -> str:
    """Return why nothing is known of a step."""
    if measured.why_not:
        return safe(measured.why_not)
    return "not run" if results.ended is not None else "not yet run"


def _ratio(seconds: float | None, reference: float | None) -> str:
    return "" if seconds is None or not reference else f"{seconds / reference:.2f}"


def _judged(claim: Claim, results: Results) -> Judged:
    judgement = claim.judged(results)
    return Judged(
        claim.text, claim.published, judgement.verdict, safe(judgement.here), safe(judgement.why)
    )


@dataclass(frozen=True, slots=True)
class _Showing:
    results: Results
    folder: str
    published: dict[tuple[str, Measure], Published]
    published_calls: dict[str, PublishedCalls]

    def exhibit(self, view: View) -> Exhibit | None:
        match view:
            case TableView():
                return self._table(view)
            case BarsView():
                return self._bars(view)
            case CurveView():
                return self._curves(view)
            case RatiosView():
                return self._ratios(view)
            case CallsView():
                return self._calls(view)
            case FlameView():
                return self._flames(view)

    def _table(self, view: TableView) -> Table:
        rows: list[Row] = []
        published: list[Published] = []
        for measured in self._steps(view.keys):
            rows.append(self._row(measured, view.measures))
            key = measured.plan.key
            texts = [self.published.get((key, measure)) for measure in view.measures]
            known = [one for one in texts if one is not None]
            if known:
                cells = ("" if one is None else shown(one.measure, one.value) for one in texts)
                rows.append(Row((PUBLISHED_LABEL, *cells)))
                published += known
        remarks = [*self._runs_remark(view.keys), *self._shares_remark(view.keys)]
        if published:
            remarks += self._scale_remark()
            remarks += sorted({f"Published: {one.note}." for one in published if one.note})
        columns = ("", *(measure.value for measure in view.measures))
        return Table(view.title, columns, tuple(rows), " ".join(remarks))

    def _row(self, measured: Measured, measures: tuple[Measure, ...]) -> Row:
        cells = [_cell(measure, measured.values(measure)) for measure in measures]
        note = "" if any(cells) else why_empty(self.results, measured)
        return Row((measured.plan.title, *cells), note)

    def _bars(self, view: BarsView) -> Bars | None:
        steps = [one for one in self._steps(view.keys) if one.values(view.measure)]
        if not steps:
            return None
        order = list(dict.fromkeys(one.plan.series for one in steps))
        steps.sort(key=lambda one: order.index(one.plan.series))
        bars = tuple(self._bar(one, view.measure) for one in steps)
        lengths = [one.median for one in bars]
        lengths += [one.published for one in bars if one.published is not None]
        lengths = [one for one in lengths if one > 0]
        texts = [self.published.get((one.plan.key, view.measure)) for one in steps]
        remarks = self._scale_remark() if any(texts) else []
        remarks += sorted({f"Published: {one.note}." for one in texts if one and one.note})
        is_log = bool(lengths) and max(lengths) > _LOG_FROM_RATIO * min(lengths)
        return Bars(view.title, view.measure.value, bars, is_log, " ".join(remarks))

    def _bar(self, measured: Measured, measure: Measure) -> Bar:
        plan, values = measured.plan, measured.values(measure)
        median = statistics.median(values)
        published = self.published.get((plan.key, measure))
        return Bar(
            plan.title,
            median,
            min(values),
            max(values),
            shown(measure, median),
            None if published is None else published.value,
            "" if published is None else shown(measure, published.value),
        )

    def _curves(self, view: CurveView) -> Curves | None:
        lines: dict[str, list[Point]] = {}
        for measured in self._steps(view.keys):
            values, x = measured.values(view.measure), measured.plan.x
            if not values:
                continue
            point = Point(x, statistics.median(values), min(values), max(values))
            if (view.has_log_x and x <= 0) or (view.has_log_y and point.median <= 0):
                continue  # it has no place on such an axis
            lines.setdefault(measured.plan.series, []).append(point)
        if not lines:
            return None
        return Curves(
            view.title,
            view.x_title,
            view.measure.value,
            tuple(
                Line(name, tuple(sorted(points, key=lambda one: one.x)))
                for name, points in lines.items()
            ),
            view.has_log_x,
            view.has_log_y,
        )

    def _ratios(self, view: RatiosView) -> Table:
        references = [self._seconds(key) for key in view.rows[0][1]]
        rows = [Row(("seconds", *("" if s is None else f"{s:.2f} s" for s in references)))]
        for title, keys in view.rows:
            ratios = [
                _ratio(self._seconds(key), reference)
                for key, reference in zip(keys, references, strict=True)
            ]
            unknown = [one for one in self._steps(keys) if not any(ratios)]
            rows.append(
                Row((title, *ratios), why_empty(self.results, unknown[0]) if unknown else "")
            )
        runs = [key for _, keys in view.rows for key in keys]
        return Table(
            view.title, ("", *view.columns), tuple(rows), " ".join(self._runs_remark(runs))
        )

    def _seconds(self, key: str) -> float | None:
        return self.results.median(key) if self.results.has(key) else None

    def _calls(self, view: CallsView) -> Calls:
        tables = tuple(self._calls_of(one) for one in self._steps(view.keys))
        return Calls(view.title, _CALL_COLUMNS, tables)

    def _calls_of(self, measured: Measured) -> CallsOf:
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

    def _flames(self, view: FlameView) -> Flames:
        try:
            path = os.path.join(self.folder, view.file)
            with open(path, encoding="utf-8", errors="surrogateescape") as file:
                samples, rows = flames(file)
        except OSError:
            return Flames(view.title, (), "No stacks were kept.")
        if not rows:
            return Flames(view.title, (), "No samples were taken.")
        remark = f"{counted(samples, 'sample', 'samples')}; recursion is shown as one call."
        return Flames(view.title, rows, remark)

    def _steps(self, keys: Iterable[str]) -> list[Measured]:
        measured = self.results.measured
        return [measured[key] for key in keys if key in measured]

    def _runs_remark(self, keys: Iterable[str]) -> list[str]:
        most = max((len(one.runs) for one in self._steps(keys)), default=0)
        return [f"Medians of up to {most} runs (least–most)."] if most > 1 else []

    def _shares_remark(self, keys: Iterable[str]) -> list[str]:
        return [
            f"{one.plan.title}: extrapolated from {100 * one.plan.share:g} % of the work."
            for one in self._steps(keys)
            if one.plan.share < 1
        ]

    def _scale_remark(self) -> list[str]:
        return [_AT_PUBLISHED_SCALE] if self.results.began.scale == Scale.SMALL else []


def _cell(measure: Measure, values: tuple[float, ...]) -> str:
    if not values:
        return ""
    median = shown(measure, statistics.median(values))
    span = shown_span(measure, min(values), max(values), median)
    return f"{median} ({span})" if span else median


def _call_rows(measured: Measured, published: PublishedCalls | None) -> tuple[Row, ...]:
    here = {name: _whole(one, measured.plan.share) for name, one in measured.calls.items()}
    text = dict(published.calls) if published is not None else {}
    if not here and not text:
        return ()
    names = sorted({*here, *text}, key=lambda name: (-_calls_in(here, text, name), name))
    total_s = sum(one.seconds or 0.0 for one in here.values())
    rows = []
    for name in names:
        one = here.get(name, CallCount(0))
        calls, errors, _ = text.get(name, (None, None, None))
        is_known = bool(here) and (measured.source is not TraceSource.PERF or name in SYSCALLS)
        cells = (_number(one.calls), _nonzero(one.errors)) if is_known else ("", "")
        has_time = total_s > 0 and one.seconds is not None
        time = f"{100 * (one.seconds or 0.0) / total_s:.1f} %" if has_time else ""
        rows.append(Row((safe(name), *cells, time, _number(calls), _nonzero(errors))))
    is_whole = bool(here) and measured.source is not TraceSource.PERF
    totals = (_sums(here) if is_whole else ("", ""), _sums_of(text) if text else ("", ""))
    rows.append(Row(("total", *totals[0], "", *totals[1])))
    return tuple(rows)


def _whole(one: CallCount, share: float) -> CallCount:
    return CallCount(round(one.calls / share), round(one.errors / share), one.seconds)


def _calls_in(
    here: dict[str, CallCount], text: dict[str, tuple[int, int, float | None]], name: str
) -> float:
    """Return by what a call is ranked: what is only published ranks below what happens here."""
    if name in here:
        return float(here[name].calls)
    return text[name][0] if not here else 1.0 - 1.0 / (1 + text[name][0])


def _sums(calls: dict[str, CallCount]) -> tuple[str, str]:
    return (
        count(sum(one.calls for one in calls.values())),
        _nonzero(sum(one.errors for one in calls.values())),
    )


def _sums_of(calls: dict[str, tuple[int, int, float | None]]) -> tuple[str, str]:
    return (
        count(sum(one[0] for one in calls.values())),
        _nonzero(sum(one[1] for one in calls.values())),
    )


def _number(value: int | None) -> str:
    return "" if value is None else count(value)


def _nonzero(value: int | None) -> str:
    return count(value) if value else ""
