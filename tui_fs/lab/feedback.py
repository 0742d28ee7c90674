"""Feeding the measured times of a race back into the calibration."""

from collections.abc import Mapping

from tui_fs.job.calibration.store import NOISE_DOUBTFUL, refine
from tui_fs.job.planning import forecast
from tui_fs.lab.results import Results
from tui_fs.linux.filesystem import FileSystem, file_system_of
from tui_fs.model.calls import TraceSource
from tui_fs.model.errors import TuiFsError
from tui_fs.model.estimate import Estimate
from tui_fs.model.eta import SHORTEST_TELLING_S
from tui_fs.model.strategy import Options
from tui_fs.survey.runner import SurveyRunner

_FEWEST_RUNS = 3
_NEVER_MEASURED = (
    "what deleting costs on this file system was never measured; tui-fs estimate measures it "
    "beside a large tree"
)


def predictions(tree: str) -> dict[str, Estimate]:
    """Return what the cost model expects of each strategy that can delete a tree, by its name.

    Args:
        tree: absolute path of what was built; all of it is counted.

    Raises:
        OSError, TuiFsError: it cannot be counted.
    """
    *_, survey = SurveyRunner((tree,), checks_surroundings=False).run()
    found = forecast((tree,), survey, Options(), TraceSource.OFF)  # nobody counts what is timed
    return {one.strategy: one for one in found.estimates if one.feasible}


def teach(directory: str, predicted: Mapping[str, Estimate], results: Results) -> tuple[str, ...]:
    """Refine the prices of strategies by a race that came to its end; return what was learnt.

    Args:
        directory: on the file system it was done on.
        predicted: by the keys of the steps.

    Returns:
        sentences, of what was not learnt and why among them.
    """
    filesystem = file_system_of(directory)
    learnt: list[str] = []
    untold: dict[str, list[str]] = {}
    for key, estimate in predicted.items():
        if not results.has(key):
            continue
        took_s = results.median(key)
        why = _why_unsure(results, key) or _why_nothing(filesystem, estimate, took_s)
        if why:
            untold.setdefault(why, []).append(key)
        else:
            learnt.append(f"{key} took {took_s:.2f} s and not {estimate.seconds:.2f} s")
    notes = [f"Nothing was learnt of {_listed(names)}: {why}." for why, names in untold.items()]
    if learnt:
        words = "; ".join(learnt)
        notes.insert(0, f"Estimates for this file system are refined from now on: {words}.")
    return tuple(notes)


def _why_unsure(results: Results, key: str) -> str:
    least_s, most_s = results.span(key)
    if len(results.measured[key].runs) < _FEWEST_RUNS:
        return "it ran too few times"
    return "its runs differ too much" if most_s > NOISE_DOUBTFUL * least_s else ""


def _why_nothing(filesystem: FileSystem, estimate: Estimate, took_s: float) -> str:
    """Let the cost model learn; return why it did not, as a part of a sentence."""
    if not estimate.measured_at:
        return _NEVER_MEASURED
    if took_s < SHORTEST_TELLING_S:
        return f"less than {SHORTEST_TELLING_S:g} s tells more of a start than of entries"
    try:
        return refine(filesystem, estimate, took_s)
    except TuiFsError as why:
        return why.sentence.rstrip(".")
    except OSError as error:
        return f"it cannot be kept: {error.strerror}"


def _listed(names: list[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last
