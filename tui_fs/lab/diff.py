"""Two runs of one experiment side by side: times, memory, and the calls that differ."""

from msgspec import Struct

from tui_fs.lab.exhibits import Exhibit, Row, Table
from tui_fs.lab.figures import shown
from tui_fs.lab.results import Measure, NotMeasured, Results
from tui_fs.model.errors import BadInput
from tui_fs.model.paths import harmless
from tui_fs.model.units import count, shown_ratio

_MEASURES = (Measure.SECONDS, Measure.PEAK_MEMORY_BYTES)


class Pair(Struct, frozen=True):
    """The medians of a measure in two runs.

    Attributes:
        ratio: the second divided by the first; None if the first is zero.
        are_apart: the ranges do not overlap, so the difference is more than noise.
    """

    first: float
    second: float
    ratio: float | None
    are_apart: bool


class StepPair(Struct, frozen=True):
    """A step that both runs have.

    Attributes:
        calls: those made a different number of times, by name.
    """

    key: str
    title: str
    medians: dict[Measure, Pair]
    calls: dict[str, tuple[int, int]]


def compared(first: Results, second: Results) -> tuple[StepPair, ...]:
    """Return all steps that both runs have.

    Raises:
        BadInput: they are runs of different experiments.
    """
    if first.began.experiment != second.began.experiment:
        raise BadInput(
            (
                f"The first run is of {first.began.experiment}, the second of "
                f"{second.began.experiment}."
            ),
            "Compare two runs of the same experiment.",
        )
    pairs = []
    for key, measured in first.measured.items():
        if key in second.measured:
            medians = {measure: _pair(first, second, key, measure) for measure in _MEASURES}
            known = {measure: pair for measure, pair in medians.items() if pair is not None}
            calls = _different_calls(first, second, key)
            pairs.append(StepPair(key, measured.plan.title, known, calls))
    return tuple(pairs)


def comparison_exhibits(
    first: Results, second: Results, names: tuple[str, str]
) -> tuple[Exhibit, ...]:
    """Return the comparison as tables; `names` are those of the runs."""
    steps = compared(first, second)
    remark = "; ".join([f"first: {names[0]}", f"second: {names[1]}", *_differences(first, second)])
    exhibits: list[Exhibit] = []
    for measure in _MEASURES:
        rows = tuple(_row(step, measure) for step in steps)
        columns = ("step", "first", "second", "second/first", "ranges")
        exhibits.append(Table(f"Medians of {measure.label}", columns, rows, remark))
    rows = tuple(
        Row((f"{step.title}: {name}", *map(count, calls)))
        for step in steps
        for name, calls in step.calls.items()
    )
    if rows:
        titles = ("step and call", "first", "second")
        exhibits.append(Table("System calls that differ", titles, rows))
    return tuple(exhibits)


def _row(step: StepPair, measure: Measure) -> Row:
    pair = step.medians.get(measure)
    if pair is None:
        return Row((step.title, "", "", "", ""), "not measured in both runs")
    return Row(
        (
            step.title,
            shown(measure, pair.first),
            shown(measure, pair.second),
            "" if pair.ratio is None else shown_ratio(pair.ratio),
            "apart" if pair.are_apart else "overlap",
        )
    )


def _pair(first: Results, second: Results, key: str, measure: Measure) -> Pair | None:
    try:
        medians = first.median(key, measure), second.median(key, measure)
        spans = first.span(key, measure), second.span(key, measure)
    except NotMeasured:
        return None
    are_apart = spans[0][1] < spans[1][0] or spans[1][1] < spans[0][0]
    ratio = medians[1] / medians[0] if medians[0] > 0 else None
    return Pair(*medians, ratio, are_apart)


def _different_calls(first: Results, second: Results, key: str) -> dict[str, tuple[int, int]]:
    steps = first.measured[key], second.measured[key]
    if not steps[0].calls or not steps[1].calls or steps[0].source is not steps[1].source:
        return {}  # sources differ in which calls they count
    pairs = {}
    for name in sorted({*steps[0].calls, *steps[1].calls}):
        counts = [step.calls[name].calls if name in step.calls else 0 for step in steps]
        if counts[0] != counts[1]:
            pairs[name] = counts[0], counts[1]
    return pairs


def _differences(first: Results, second: Results) -> list[str]:
    """Return the conditions in which the runs differ: these may explain a difference in time."""
    before, after = _facts(first), _facts(second)
    return [
        harmless(
            f"{name}: {before.get(name, 'missing') or 'none'} / "
            f"{after.get(name, 'missing') or 'none'}"
        )
        for name in {**before, **after}
        if before.get(name, "missing") != after.get(name, "missing")
    ]


def _facts(results: Results) -> dict[str, str]:
    began, sources = results.began, {step.source for step in results.measured.values()}
    return {
        "scale": began.scale,
        "target": began.target,
        "kernel": began.machine.kernel,
        "processor": began.machine.processor,
        "counted by": ", ".join(sorted(source for source in sources if source)),
        **dict(sorted(began.machine.tools.items())),
    }
