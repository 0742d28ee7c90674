"""The judges of claims: comparisons that several experiments make, with their sentences.

A judge returns a verdict with the figures it is based on. A figure that was not measured raises
`NotMeasured`, which leaves the claim untested.
"""

import math

from tui_fs.lab.experiment import Judge, Judgement, Verdict, judged
from tui_fs.lab.figures import shown, shown_span
from tui_fs.lab.results import Measure, Results
from tui_fs.model.units import shown_ratio


def faster(fast: str, slow: str) -> Judge:
    """Return a judge: one step takes less time than another, beyond the noise."""
    return lambda results: compare_times(results, fast, slow)


def compare_times(results: Results, fast: str, slow: str) -> Judgement:
    """Judge that a step is the faster one; undecided where the runs of both overlap.

    With four runs or more, a quarter of them at either end does not count.
    """
    spans = [_middle(results.values(key)) for key in (fast, slow)]
    here = _times(results, fast, slow, "of the time")
    if spans[0][0] <= spans[1][1] and spans[1][0] <= spans[0][1]:
        return Judgement(
            Verdict.UNTESTED, here, "The ranges of the runs overlap: the difference may be noise."
        )
    return judged(spans[0][1] < spans[1][0], here)


def time_ratio(
    key: str, reference: str, at_least: float = 0.0, at_most: float = math.inf, reason: str = ""
) -> Judge:
    """Return a judge: the ratio of the median times of two steps is within bounds."""

    def judge(results: Results) -> Judgement:
        ratio = results.median(key) / results.median(reference)
        here = _times(results, key, reference, "times as long")
        return judged(at_least <= ratio <= at_most, here, reason)

    return judge


def time_with_span(results: Results, key: str) -> str:
    """Return the median time of a step with the least and the most: ``11 ms (10–14)``."""
    median = shown(Measure.SECONDS, results.median(key))
    span = shown_span(Measure.SECONDS, *results.span(key), median)
    return f"{median} ({span})" if span else median


def _times(results: Results, key: str, reference: str, words: str) -> str:
    ratio = shown_ratio(results.median(key) / results.median(reference))
    times = " against ".join(time_with_span(results, each) for each in (key, reference))
    return f"{times}: {ratio} {words}"


def _middle(values: tuple[float, ...]) -> tuple[float, float]:
    """Return the least and the most without a quarter of the values at either end."""
    cut = len(values) // 4
    ordered = sorted(values)[cut : len(values) - cut]
    return ordered[0], ordered[-1]
