"""Two runs of one experiment side by side: what took longer, and which calls differ."""

from dataclasses import dataclass

from tui_fs.lab.exhibits import Exhibit, Row, Table
from tui_fs.lab.figures import safe, shown, shown_times
from tui_fs.lab.results import Measure, NotMeasured, Results
from tui_fs.model.errors import BadInput
from tui_fs.model.units import count

_MEASURES = (Measure.SECONDS, Measure.PEAK_MEMORY_BYTES)


@dataclass(frozen=True, slots=True)
class Pair:
    """The medians of a measure in two runs.

    Attributes:
        ratio: the second by the first; None if the first is zero.
        are_apart: the runs' least and most do not overlap, so that it is more than noise.
    """

    first: float
    second: float
    ratio: float | None
    are_apart: bool


@dataclass(frozen=True, slots=True)
class StepPair:
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
            f"One is a run of {first.began.experiment}, the other of {second.began.experiment}.",
            "Runs of the same experiment can be compared.",
        )
    return tuple(
        StepPair(
            key,
            one.plan.title,
            {
                measure: pair
                for measure in _MEASURES
                if (pair := _pair(first, second, key, measure)) is not None
            },
            _different_calls(first, second, key),
        )
        for key, one in first.measured.items()
        if key in second.measured
    )


def comparison_exhibits(
    first: Results, second: Results, names: tuple[str, str]
) -> tuple[Exhibit, ...]:
    """Return the comparison as tables; `names` are those of the runs."""
    steps = compared(first, second)
    remark = "; ".join([f"first: {names[0]}", f"second: {names[1]}", *_differences(first, second)])
    exhibits: list[Exhibit] = [_medians(steps, measure, remark) for measure in _MEASURES]
    rows = tuple(
        Row((f"{step.title}: {name}", count(one), count(other)))
        for step in steps
        for name, (one, other) in step.calls.items()
    )
    if rows:
        exhibits.append(
            Table("System calls that differ", ("step and call", "first", "second"), rows)
        )
    return tuple(exhibits)


def _medians(steps: tuple[StepPair, ...], measure: Measure, remark: str) -> Table:
    rows = []
    for step in steps:
        pair = step.medians.get(measure)
        if pair is None:
            rows.append(Row((step.title, "", "", "", ""), "not in both runs"))
            continue
        rows.append(
            Row(
                (
                    step.title,
                    shown(measure, pair.first),
                    shown(measure, pair.second),
                    "" if pair.ratio is None else shown_times(pair.ratio),
                    "apart" if pair.are_apart else "overlap",
                )
            )
        )
    columns = ("step", "first", "second", "second/first", "ranges")
    return Table(f"Medians of {measure}", columns, tuple(rows), remark)


def _pair(first: Results, second: Results, key: str, measure: Measure) -> Pair | None:
    try:
        one, other = first.median(key, measure), second.median(key, measure)
        (low, high), (other_low, other_high) = first.span(key, measure), second.span(key, measure)
    except NotMeasured:
        return None
    are_apart = high < other_low or other_high < low
    return Pair(one, other, other / one if one > 0 else None, are_apart)


def _different_calls(first: Results, second: Results, key: str) -> dict[str, tuple[int, int]]:
    one, other = first.measured[key].calls, second.measured[key].calls
    if not one or not other or first.measured[key].source is not second.measured[key].source:
        return {}  # who counts decides what is counted
    pairs = {
        name: (
            one[name].calls if name in one else 0,
            other[name].calls if name in other else 0,
        )
        for name in sorted({*one, *other})
    }
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def _counters(results: Results) -> str:
    return ", ".join(sorted({one.source for one in results.measured.values() if one.source}))


def _differences(first: Results, second: Results) -> list[str]:
    """Return in what the runs differ, so that nobody takes it for a gain."""
    one, other = first.began, second.began
    pairs = [
        ("scale", one.scale, other.scale),
        ("target", one.target, other.target),
        ("kernel", one.machine.kernel, other.machine.kernel),
        ("processor", one.machine.processor, other.machine.processor),
        ("counted by", _counters(first), _counters(second)),
    ]
    tools, others = one.machine.tools, other.machine.tools
    pairs += [
        (name, tools.get(name, "missing"), others.get(name, "missing"))
        for name in sorted({*tools, *others})
    ]
    return [
        safe(f"{what}: {was or 'none'} / {now or 'none'}") for what, was, now in pairs if was != now
    ]
