"""All strategies against each other, on a copy of the shape of the user's tree."""

from tui_fs.lab.claims import compare_times, faster
from tui_fs.lab.experiment import (
    PIN,
    CallsView,
    Claim,
    Counting,
    Experiment,
    Judgement,
    Scale,
    Setting,
    Step,
    TableView,
    Trial,
    View,
    judged,
)
from tui_fs.lab.results import Measure, NotMeasured, Results
from tui_fs.lab.shape_copy import copy_shape
from tui_fs.lab.tree_generators import Tree, Wide
from tui_fs.model.calls import REMOVING_CALLS
from tui_fs.model.strategy import Options
from tui_fs.strategies.base import Invocation, Strategy
from tui_fs.strategies.parallel import Parallel, with_pins
from tui_fs.strategies.registry import STRATEGIES
from tui_fs.strategies.rm import Rm
from tui_fs.strategies.rsync import Rsync
from tui_fs.strategies.xargs import Xargs

KEYS = tuple(map(str, STRATEGIES))

_ROUNDS = {Scale.SMALL: 3, Scale.PUBLISHED: 5}
_MAX_ENTRIES_SMALL = 20_000
"""The tree is made and deleted twenty times."""
_MEASURES = (
    Measure.SECONDS,
    Measure.MICROSECONDS_PER_ENTRY,
    Measure.CALLS,
    Measure.PEAK_MEMORY_BYTES,
)


def _trials(scale: Scale, setting: Setting) -> tuple[Trial, ...]:
    tree, rounds = _tree(scale, setting.target), _ROUNDS[scale]
    return tuple(Trial((_step(strategy),), tree, rounds=rounds) for strategy in STRATEGIES.values())


def _tree(scale: Scale, target: str) -> Tree:
    """Return a copy of the target, at the published scale with its sizes; a forest without one."""
    if scale is Scale.SMALL:
        return copy_shape(target, max_entries=_MAX_ENTRIES_SMALL) if target else _forest(100)
    return copy_shape(target, is_sized=True) if target else _forest(5_000)


def _forest(directories: int) -> Wide:
    return Wide(breadth=directories, files=100)


def _step(strategy: Strategy) -> Step:
    # A tool that another one starts is named by its path, as in a job.
    tools = {name: f"{{path:{name}}}" for name in strategy.tools}
    bare = {path: name for name, path in tools.items()}
    steps = strategy.steps(Invocation(("{tree}",), Options(), tools, "{empty}"))
    if isinstance(strategy, Parallel):
        steps = with_pins(steps, [PIN])
    return Step(
        key=str(strategy.name),
        title=str(strategy.name),
        commands=tuple(
            tuple((bare[argv[0]], *argv[1:]) for argv in pipeline) for pipeline in steps
        ),
        counting=Counting.CALLS,
    )


def _ranked(results: Results, measure: Measure) -> list[str]:
    """Return the strategies that have figures of a measure, the least first."""
    keys = [key for key in KEYS if key in results.measured]
    known = [key for key in keys if results.measured[key].values(measure)]
    return sorted(known, key=lambda key: results.median(key, measure))


def _fewest_calls_are_fastest(results: Results) -> Judgement:
    fewest, *_ = _at_least_two(results, Measure.CALLS)
    fastest, *_ = _at_least_two(results, Measure.SECONDS)
    here = (
        f"{fewest} makes the fewest calls, {results.total_calls(fewest):,}; {fastest} is the "
        f"fastest, {results.median(fastest):.2f} s"
    )
    if fewest == fastest:
        return judged(True, here)
    compared = compare_times(results, fewest, fastest)
    return Judgement(compared.verdict, here, compared.reason)


def _each_entry_is_removed(results: Results) -> Judgement:
    removed = {
        key: results.successes(key, *REMOVING_CALLS)
        for key in _at_least_two(results, Measure.CALLS)
    }
    (entries,) = {results.plan(key).entries for key in removed}
    here = ", ".join(f"{key} {number:,}" for key, number in removed.items())
    return judged(set(removed.values()) == {entries}, f"{here} for {entries:,} entries")


def _are_alike(results: Results) -> Judgement:
    fastest, *_, slowest = _at_least_two(results, Measure.SECONDS)
    fastest_s, slowest_s = results.median(fastest), results.median(slowest)
    return judged(
        slowest_s < 2 * fastest_s,
        f"{slowest} takes {slowest_s / fastest_s:.2f} times as long as {fastest}",
    )


def _at_least_two(results: Results, measure: Measure) -> list[str]:
    """Return at least two strategies by a measure, the least first."""
    keys = _ranked(results, measure)
    if len(keys) < 2:
        raise NotMeasured(f"the {measure} of fewer than two strategies were measured")
    return keys


def _views(results: Results) -> tuple[View, ...]:
    by_time = _ranked(results, Measure.SECONDS)
    ranked = (*by_time, *(key for key in KEYS if key in results.measured and key not in by_time))
    others = (
        ("By system calls", Measure.CALLS),
        ("By the memory of the largest process", Measure.PEAK_MEMORY_BYTES),
    )
    return (
        TableView("All strategies, the fastest first", ranked, _MEASURES, has_bars=True),
        *(
            TableView(title, tuple(keys), (measure,), has_bars=True)
            for title, measure in others
            if (keys := _ranked(results, measure))
        ),
        CallsView("System calls", ranked),
    )


EXPERIMENT = Experiment(
    name="race-your-strategies",
    title="A race of your strategies",
    question="Which strategy is the fastest for a tree like yours?",
    trials=_trials,
    tools=tuple(sorted({tool for strategy in STRATEGIES.values() for tool in strategy.tools})),
    claims=(
        Claim(
            "rsync deletes faster than rm, as is often claimed.",
            "",
            faster(Rsync.name, Rm.name),
        ),
        Claim(
            "A single rm is faster than find and xargs, which start many rm processes.",
            "",
            faster(Rm.name, Xargs.name),
        ),
        Claim(
            "The strategy with the fewest system calls is the fastest.",
            "",
            _fewest_calls_are_fastest,
        ),
        Claim(
            "Every strategy makes one call for each entry it removes.", "", _each_entry_is_removed
        ),
        Claim(
            "The slowest strategy takes less than twice the time of the fastest.", "", _are_alike
        ),
    ),
    views=_views,
    takes_target=True,
    refines_estimates=True,
)
