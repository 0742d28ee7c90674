"""Feeding the measured times of a race back into the calibration."""

from collections.abc import Mapping

from tui_fs.job.calibration.store import NOISE_DOUBTFUL, refine
from tui_fs.job.planning import forecast
from tui_fs.lab.results import Results
from tui_fs.linux.filesystem import FileSystem, file_system_of
from tui_fs.model.calls import TraceSource
from tui_fs.model.errors import TuiFsError
from tui_fs.model.estimate import Estimate
from tui_fs.model.eta import MIN_CONCLUSIVE_S
from tui_fs.model.strategy import Options
from tui_fs.survey.runner import SurveyRunner

_MIN_RUNS = 3
_NEVER_MEASURED = (
    "the cost of deleting on this file system was never measured; tui-fs estimate measures it "
    "for a large tree"
)


def predictions(tree: str) -> dict[str, Estimate]:
    """Return the estimates of the strategies that can delete a tree, by their names.

    Args:
        tree: absolute path of a built tree, which is counted completely.

    Raises:
        OSError, TuiFsError: it cannot be counted.
    """
    *_, survey = SurveyRunner((tree,), checks_surroundings=False).run()
    # A timed step is not counted
    estimates = forecast((tree,), survey, Options(), TraceSource.OFF).estimates
    return {estimate.strategy: estimate for estimate in estimates if estimate.feasible}


def refine_estimates(
    directory: str, predicted: Mapping[str, Estimate], results: Results
) -> tuple[str, ...]:
    """Refine the unit costs of strategies by a race that came to its end.

    Args:
        directory: on the file system of the race.
        predicted: by the keys of the steps.

    Returns:
        Sentences on the refined strategies, and on the others with reasons.
    """
    filesystem = file_system_of(directory)
    refined: list[str] = []
    unrefined: dict[str, list[str]] = {}
    for key, estimate in predicted.items():
        if results.has(key):
            reason = _refine(filesystem, results, key, estimate)
            if reason:
                unrefined.setdefault(reason, []).append(key)
            else:
                took = f"took {results.median(key):.2f} s and not {estimate.seconds:.2f} s"
                refined.append(f"{key} {took}")
    notes = [
        f"Estimates are not refined from {', '.join(names)}: {reason}."
        for reason, names in unrefined.items()
    ]
    if refined:
        words = "; ".join(refined)
        notes.insert(0, f"Estimates for this file system are refined from now on: {words}.")
    return tuple(notes)


def _refine(filesystem: FileSystem, results: Results, key: str, estimate: Estimate) -> str:
    """Refine the unit costs by one step; if that fails, return the reason without a full stop."""
    least_s, most_s = results.span(key)
    if len(results.measured[key].runs) < _MIN_RUNS:
        return "too few runs"
    if most_s > NOISE_DOUBTFUL * least_s:
        return "the runs differ too much"
    if not estimate.measured_at:
        return _NEVER_MEASURED
    if results.median(key) < MIN_CONCLUSIVE_S:
        return f"under {MIN_CONCLUSIVE_S:g} s, too short to learn from (start-up dominates)"
    try:
        return refine(filesystem, estimate, results.median(key))
    except TuiFsError as error:
        return error.sentence.rstrip(".")
    except OSError as error:
        return f"the result cannot be saved: {error.strerror}"
