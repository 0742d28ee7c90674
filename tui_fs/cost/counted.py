"""System calls of tools that no formula is known for, learnt by counting a few tiny deletions.

What a tool calls is a sum: so much to start, so much for each file, each directory and so on.
The numbers are found by least squares from trees that differ in all of these. Calls by which the
allocator moves the heap for large directories are too few to matter, and are left out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tui_fs.cost.calls_parallel import steps_out
from tui_fs.cost.calls_rm_find import rm_processes_keeping_root
from tui_fs.cost.calls_xargs import batches_of, path_bytes_of
from tui_fs.model.calls import OF_CHANCE, REMOVING_CALLS
from tui_fs.model.strategy import Options, StrategyName
from tui_fs.model.survey import Survey

_START = "start"
_FURTHER_READS = "further_reads"
"""Reads of directories beyond the two that each takes; only getdents64 depends on them."""

_FRACTIONS = frozenset({_START, "batches", "pipe_buffers"})
"""Features whose share need not be a whole number of calls."""

_FEATURES: Mapping[StrategyName, tuple[str, ...]] = {
    StrategyName.RM: (
        *(_START, "non_directories", "directories", "non_empty", _FURTHER_READS, "tall"),
        *("top_directories", "top_non_directories", "batches"),
    ),
    StrategyName.FIND: (
        _START,
        "non_directories",
        "directories",
        "non_empty",
        _FURTHER_READS,
        "tall",
    ),
    StrategyName.XARGS: (
        *(_START, "non_directories", "directories", "non_empty", "parents", _FURTHER_READS, "tall"),
        *("batches", "pipe_buffers"),
    ),
    StrategyName.RSYNC: (
        *(_START, "non_directories", "directories", "non_empty", _FURTHER_READS, "levels"),
        *("top_directories", "top_non_directories"),
    ),
    StrategyName.RMTREE: (_START, "non_directories", "directories", "non_empty", _FURTHER_READS),
    # it reads 256 KiB at once
    StrategyName.PARALLEL: (_START, "non_directories", "directories", "non_directory_parents"),
}
_NOT_OF_THE_TREE = OF_CHANCE[StrategyName.RSYNC] | {"brk", "mmap", "munmap", "mremap"}
"""How rsync's processes interleave, and memory, which tiny trees hardly need: the same for all."""

_LEAST_PIVOT = 1e-9
_PIPE_BUFFER_BYTES = 4_096


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
        survey: of the tree as it was.
        calls: by name, of all processes together.
    """

    survey: Survey
    options: Options
    calls: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class CallModel:
    """What one strategy calls with the tools it was counted with.

    Attributes:
        keep_root: the targets were kept; the calls without that are others.
        shares: for each call, how many of it each feature of a tree costs.
    """

    strategy: StrategyName
    keep_root: bool
    shares: dict[str, dict[str, float]]

    def predicted(
        self, survey: Survey, options: Options, *, is_inside: bool = False
    ) -> dict[str, int]:
        """Return the calls by name; those that remove add up to the entries."""
        features = _features(self.strategy, survey, options, is_inside=is_inside)
        calls = {
            name: max(0, round(sum(share * features[what] for what, share in shares.items())))
            for name, shares in self.shares.items()
        }
        if self.strategy is StrategyName.PARALLEL:  # of this small trees tell nothing
            calls["chdir"] = steps_out(survey, options)
        removing = {name: calls[name] for name in REMOVING_CALLS & calls.keys()}
        if removing:
            most = max(sorted(removing), key=lambda name: removing[name])
            kept = 1 if self.keep_root else 0
            calls[most] += survey.totals.entries - kept - sum(removing.values())
        return {name: number for name, number in sorted(calls.items()) if number > 0}


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


def fits(strategy: StrategyName, shares: Mapping[str, Mapping[str, float]]) -> bool:
    """Tell whether shares that were kept are of features that trees have."""
    known = set(_FEATURES[strategy])
    return all(set(each) <= known for each in shares.values())


def fit(strategy: StrategyName, samples: Sequence[CountedRun]) -> CallModel:
    """Return the model that explains the samples best.

    Args:
        samples: deletions of all of `calibration_shapes`, all with the root kept or all without.

    Raises:
        ValueError: there are no samples, or they are of both sorts.
    """
    kept = {sample.options.keep_root for sample in samples}
    if len(kept) != 1:
        raise ValueError("samples of one sort are needed")
    rows = [_features(strategy, one.survey, one.options, is_inside=False) for one in samples]
    names = sorted({name for sample in samples for name in sample.calls})
    shares: dict[str, dict[str, float]] = {}
    for name in names:
        used = set(_FEATURES[strategy])
        if strategy is StrategyName.RSYNC and name in _NOT_OF_THE_TREE:
            used = {_START}
        elif name != "getdents64":
            used.discard(_FURTHER_READS)
        counts = [sample.calls.get(name, 0) for sample in samples]
        shares[name] = _shares(
            [{what: row[what] for what in row if what in used} for row in rows], counts
        )
    return CallModel(strategy, kept.pop(), shares)


def _names(number: int) -> tuple[str, ...]:
    return tuple(f"f{one:03}" for one in range(number))


def _features(
    strategy: StrategyName, survey: Survey, options: Options, *, is_inside: bool
) -> dict[str, float]:
    totals = survey.totals
    reopens = strategy is StrategyName.RM
    if not reopens:
        batches = batches_of(survey, options, is_inside=is_inside)
    else:
        batches = rm_processes_keeping_root(survey) if options.keep_root else 0
    written = path_bytes_of(survey, is_inside=is_inside) + totals.non_directories
    every: dict[str, float] = {
        _START: 1,
        "non_directories": totals.non_directories,
        "directories": totals.directories,
        "non_empty": survey.non_empty_directories,
        "parents": survey.parent_directories,
        "non_directory_parents": survey.non_directory_parents,
        _FURTHER_READS: survey.directory_reads - 2 * totals.directories,
        "tall": survey.tall_full_directories if reopens else survey.tall_directories,
        "levels": survey.non_empty_levels,
        "top_directories": survey.top_directories,
        "top_non_directories": survey.top_non_directories,
        "batches": batches,
        "pipe_buffers": written / _PIPE_BUFFER_BYTES,
    }
    return {name: every[name] for name in _FEATURES[strategy]}


def _shares(rows: Sequence[Mapping[str, float]], counts: Sequence[int]) -> dict[str, float]:
    """Return how many calls each feature costs; the features cost whole numbers of calls."""
    names = list(rows[0])
    solved = _least_squares([[row[name] for name in names] for row in rows], counts)
    shares = {
        name: share if name in _FRACTIONS else float(round(share))
        for name, share in zip(names, solved, strict=True)
    }
    without = [
        sum(share * row[name] for name, share in shares.items() if name != _START) for row in rows
    ]
    shares[_START] = sum(counts) / len(counts) - sum(without) / len(counts)
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
