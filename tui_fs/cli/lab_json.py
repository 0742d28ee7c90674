"""Runs of the lab as JSON, with raw figures."""

from tui_fs.cli.output import SCHEMA
from tui_fs.lab.diff import StepPair
from tui_fs.lab.experiment import Experiment
from tui_fs.lab.results import Measured, Results
from tui_fs.model.codec import Json, encode


def run_as_json(experiment: Experiment, results: Results, run_id: str) -> dict[str, Json]:
    """Return a run as one JSON object; `ending` is null while it has none."""
    began, ended = results.began, results.ended
    return {
        "schema": SCHEMA,
        "experiment": experiment.name,
        "scale": began.scale,
        "run": run_id,
        "started_at": began.started_at,
        "directory": began.directory,
        "target": began.target,
        "machine": encode(began.machine),
        "claims": [_claim(results, index, experiment) for index in range(len(experiment.claims))],
        "steps": [_step(one) for one in results.measured.values()],
        "notes": list(results.notes),
        "ending": None if ended is None else ended.ending.value,
        "why": "" if ended is None else ended.why,
        "elapsed_s": None if ended is None else ended.elapsed_s,
    }


def comparison_as_json(
    first: Results, names: tuple[str, str], steps: tuple[StepPair, ...]
) -> dict[str, Json]:
    """Return two runs side by side; of the calls only those that differ."""
    return {
        "schema": SCHEMA,
        "experiment": first.began.experiment,
        "runs": list(names),
        "steps": [
            {
                "key": one.key,
                "title": one.title,
                "medians": {measure.value: encode(pair) for measure, pair in one.medians.items()},
                "calls": {name: list(pair) for name, pair in one.calls.items()},
            }
            for one in steps
        ],
    }


def _claim(results: Results, index: int, experiment: Experiment) -> dict[str, Json]:
    claim = experiment.claims[index]
    judgement = claim.judged(results)
    return {"text": claim.text, "published": claim.published, **encode(judgement)}


def _step(measured: Measured) -> dict[str, Json]:
    return {
        **encode(measured.plan),
        "why_not": measured.why_not,
        "runs": [encode(one) for one in measured.runs],
        "calls": {name: encode(one) for name, one in measured.calls.items()},
        "source": None if measured.source is None else measured.source.value,
        "left": None if measured.left is None else encode(measured.left),
    }
