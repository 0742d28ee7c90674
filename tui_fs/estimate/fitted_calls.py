"""System calls of tools of other versions, learnt by counting a few tiny deletions.

Which features of a tree a strategy's calls depend on is in its own table of calls; the coefficients
are found by least squares from trees that differ in all of these.
"""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tui_fs.linux.tools import find_tool
from tui_fs.model.calls import OTHER_CALLS, REMOVING_CALLS, TELLING_CALLS
from tui_fs.model.errors import Missing
from tui_fs.model.paths import PathStr
from tui_fs.model.survey import Survey
from tui_fs.strategies.base import Strategy
from tui_fs.strategies.prediction import FURTHER_READS, START, CallCounts, CallTable, Work
from tui_fs.strategies.registry import STRATEGIES


def is_measured(strategy: Strategy, versions: Mapping[str, str]) -> bool:
    """Return whether the strategy's table of calls was measured with these versions of its tools.

    Args:
        versions: of each tool the first line of its ``--version``; see `installed_versions`.
    """
    return all(
        _begins_with(versions.get(tool, ""), measured)
        for tool, measured in strategy.measured_with.items()
    )


def versions_used(strategy: Strategy, versions: Mapping[str, str]) -> dict[str, str]:
    """Return the versions that a strategy's calls depend on, to keep them with what is counted."""
    return {tool: versions.get(tool, "") for tool in strategy.measured_with}


def installed_versions() -> dict[str, str]:
    """Return what is installed here; what is missing, or cannot be started now, has no version."""
    found: dict[str, str] = {}
    for name in {tool for strategy in STRATEGIES.values() for tool in strategy.measured_with}:
        with contextlib.suppress(Missing):  # no table is used for it, and the strategy says why
            if (tool := find_tool(name)) is not None:
                found[name] = tool.version
    return found


def _begins_with(version: str, measured: str) -> bool:
    """Return whether a version is the measured one or a correction of it: 9.1.4, but not 9.10."""
    return version.startswith(measured) and not version[len(measured) : len(measured) + 1].isdigit()


_FRACTIONS = frozenset({START, "children", "path_bytes", "entries"})
"""Features whose coefficient need not be a whole number of calls."""

_LEAST_PIVOT = 1e-9


@dataclass(frozen=True, slots=True)
class CalibrationTree:
    """A tree to build, survey and delete while the calls are counted.

    Attributes:
        directories: relative paths, each after the one above it; the root itself is left out.
        files: relative paths of empty files.
    """

    name: str
    directories: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    batch_size: int = 1000


@dataclass(frozen=True, slots=True)
class CountedRun:
    """A deletion whose calls were counted.

    Attributes:
        work: the tree as it was, and how it was deleted.
        calls: by name, of all processes together.
    """

    work: Work
    calls: Mapping[str, int]


def predicted_with(table: CallTable, strategy: Strategy, work: Work) -> CallCounts:
    """Return the calls by a fitted table; those that remove add up to the entries."""
    found = strategy.predicted_calls(work, table)
    calls = dict(found.calls)
    removing = {name: calls[name] for name in REMOVING_CALLS & calls.keys()}
    if removing:
        most = max(sorted(removing), key=lambda name: removing[name])
        calls[most] += work.survey.totals.entries - work.kept - sum(removing.values())
    return CallCounts(calls, found.other)


def calibration_shapes() -> tuple[CalibrationTree, ...]:
    """Return trees, at most 300 entries each, that together determine every share."""
    tens = tuple(f"d{number}" for number in range(10))
    pairs = tuple(f"{top}/{below}" for top in tens[:5] for below in ("a", "b", "c", "d"))
    chain = tuple("/".join("c" * depth) for depth in range(1, 13))
    other = tuple("/".join("o" * depth) for depth in range(1, 10))
    return (
        CalibrationTree("empty"),
        CalibrationTree("flat", files=_names(40)),
        CalibrationTree("small batches", files=_names(40), batch_size=4),
        CalibrationTree("long names", files=tuple(f"{n:0200}" for n in range(280))),
        CalibrationTree("long names below", ("d",), tuple(f"d/{n:0200}" for n in range(160))),
        CalibrationTree("empty directories", tens),
        CalibrationTree("directories", tens, tuple(f"{d}/{f}" for d in tens for f in _names(7))),
        CalibrationTree(
            "two levels", (*tens[:5], *pairs), tuple(f"{d}/{f}" for d in pairs for f in _names(2))
        ),
        CalibrationTree("chain", chain, (f"{chain[-1]}/f",)),
        CalibrationTree(
            "mixed",
            (*tens, *pairs, *other),
            (*_names(25), *(f"{d}/{f}" for d in other for f in _names(3))),
        ),
    )


def fits(strategy: Strategy, table: CallTable) -> bool:
    """Return whether a stored table is of features that the strategy's calls depend on."""
    known = set(strategy.features(Work(Survey(PathStr("/")))))
    return all(set(shares) <= known for shares in table.values())


def fit(strategy: Strategy, samples: Sequence[CountedRun]) -> dict[str, dict[str, float]]:
    """Return the table of calls that explains the samples best.

    Args:
        samples: deletions of all of `calibration_shapes`, all with the root kept or all without.

    Raises:
        ValueError: there are no samples, or they are of both sorts.
    """
    if len({sample.work.options.keep_root for sample in samples}) != 1:
        raise ValueError("samples of one sort are needed")
    measured = strategy.call_table(samples[0].work.options)
    rows = [strategy.features(sample.work) for sample in samples]
    counts = [_counts(sample.calls) for sample in samples]
    table: dict[str, dict[str, float]] = {}
    for name in sorted({name for numbers in counts for name in numbers}):
        used = _features_of(name, measured)
        table[name] = _shares(
            [{feature: row[feature] for feature in used} for row in rows],
            [numbers.get(name, 0) for numbers in counts],
        )
    return table


def _features_of(call: str, measured: CallTable) -> tuple[str, ...]:
    """Return the features that a call may depend on: those it does in the measured table.

    Another version may remove by another call: a removing call, and one that the table does not
    have, may depend on all. Entries and reads are sums of other features.
    """
    known = {feature for shares in measured.values() for feature in shares}
    is_same = call in measured and call not in REMOVING_CALLS
    found = {*(measured[call] if is_same else known), START, "non_directories", "directories"}
    found |= {FURTHER_READS} if call == "getdents64" else set()
    return tuple(sorted(found - {"entries", "directory_reads", "targets", "kept"}))


def _counts(calls: Mapping[str, int]) -> dict[str, int]:
    """Return the counts of the calls that are predicted by name, and the sum of all others."""
    counts = {name: number for name, number in calls.items() if name in TELLING_CALLS}
    counts[OTHER_CALLS] = sum(calls.values()) - sum(counts.values())
    return counts


def _names(number: int) -> tuple[str, ...]:
    return tuple(f"f{one:03}" for one in range(number))


def _shares(rows: Sequence[Mapping[str, float]], counts: Sequence[int]) -> dict[str, float]:
    """Return how many calls each feature costs; the features cost whole numbers of calls."""
    names = list(rows[0])
    solved = _least_squares([[row[name] for name in names] for row in rows], counts)
    shares = {
        name: share if name in _FRACTIONS else float(round(share))
        for name, share in zip(names, solved, strict=True)
    }
    without = [
        sum(share * row[name] for name, share in shares.items() if name != START) for row in rows
    ]
    shares[START] = sum(counts) / len(counts) - sum(without) / len(counts)
    return {name: share for name, share in shares.items() if share}


def _least_squares(rows: Sequence[Sequence[float]], counts: Sequence[int]) -> list[float]:
    """Solve the normal equations by elimination; what the rows leave open is 0."""
    width = len(rows[0])
    scale = [max(abs(row[column]) for row in rows) or 1.0 for column in range(width)]
    scaled = [[value / size for value, size in zip(row, scale, strict=True)] for row in rows]
    matrix = [
        [sum(row[i] * row[j] for row in scaled) for j in range(width)]
        + [sum(row[i] * count for row, count in zip(scaled, counts, strict=True))]
        for i in range(width)
    ]
    determined: list[int] = []
    for column in range(width):
        top = len(determined)
        pivot = max(range(top, width), key=lambda row: abs(matrix[row][column]))
        if abs(matrix[pivot][column]) < _LEAST_PIVOT:
            continue
        matrix[top], matrix[pivot] = matrix[pivot], matrix[top]
        for row in range(width):
            if row != top:
                factor = matrix[row][column] / matrix[top][column]
                pairs = zip(matrix[row], matrix[top], strict=True)
                matrix[row] = [value - factor * above for value, above in pairs]
        determined.append(column)
    solution = [0.0] * width
    for row, column in enumerate(determined):
        solution[column] = matrix[row][width] / matrix[row][column] / scale[column]
    return solution
