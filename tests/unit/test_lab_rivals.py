"""The engine and its rivals: what is done, and the verdicts on made-up figures."""

from collections.abc import Mapping

from tests.unit import lab_results
from tui_fs.lab.experiment import Judged, Place, Scale, Verdict
from tui_fs.lab.experiments.rivals import EXPERIMENT, PLACES, key_of
from tui_fs.lab.results import Run
from tui_fs.linux.tools import ENGINE

SETTING = lab_results.all_tools(EXPERIMENT)
SHAPES = ("many", "small", "flat", "chain", "mixed")


def judged(
    text: str, seconds: Mapping[str, tuple[float, ...]], peak_bytes: int = 1 << 20
) -> Judged:
    """Return the verdict on the claim that begins so."""
    runs = {
        key: [Run(value, 0.0, 0.0, peak_bytes, 0, 0) for value in values]
        for key, values in seconds.items()
    }
    results = lab_results.run_with(EXPERIMENT, Scale.PUBLISHED, seconds=runs)
    return lab_results.judgement_of(EXPERIMENT, text, results)


def everywhere(tool: str, seconds: float) -> dict[str, tuple[float, ...]]:
    """Return the same time on every file system and shape."""
    return {key_of(place, shape, tool): (seconds,) for place in PLACES for shape in SHAPES}


def test_ratios_are_of_medians_and_every_limit_counts() -> None:
    rm, half = everywhere("rm", 2.0), everywhere("engine", 1.0)
    claims = (
        "In trees of many",
        "In one large directory",
        "The engine is never slower than rm on any",
    )
    assert [judged(text, rm | half).verdict for text in claims[:2]] == [Verdict.HOLDS] * 2
    slow = {key_of(Place.XFS, "flat", "engine"): (1.0, 2.1, 2.2)}
    judgement = judged("The engine is never slower than rm on any", {**rm, **half, **slow})
    assert judgement.verdict is Verdict.DOES_NOT
    assert "xfs one directory 1.05" in judgement.here


def test_what_was_not_measured_is_no_verdict() -> None:
    alone = everywhere("engine", 1.0)
    assert judged("The engine is never slower than rmz", alone).verdict is Verdict.UNTESTED
    assert (
        judged("The engine counts with sizes", {"count-engine": (1.0,)}).verdict is Verdict.UNTESTED
    )
    assert judged("The engine deletes a deep chain", {}).verdict is Verdict.UNTESTED


def test_counting_is_compared_with_the_fastest() -> None:
    # Three others that count, and one that counts names only
    others = {"count-du": (2.0,), "count-ncdu": (1.0, 9.0, 1.2), "count-gdu": (1.5,)}
    times = {**others, "count-find": (0.1,)}
    half = judged("The engine counts with sizes", {**times, "count-engine": (0.6,)})
    assert (half.verdict, half.here) == (Verdict.HOLDS, "0.50 of ncdu")
    more = judged("The engine counts with sizes", {**times, "count-engine": (0.7,)})
    assert more.verdict is Verdict.DOES_NOT
    # And so is its memory
    counted = {"count-engine": (1.0,)}
    assert judged("The engine needs little memory", counted, 40 << 20).verdict is Verdict.HOLDS
    assert (
        judged("The engine needs little memory", counted, (40 << 20) + 4096).verdict
        is Verdict.DOES_NOT
    )


def test_the_engine_is_given_the_tree_and_nothing_else() -> None:
    steps = [s for trial in EXPERIMENT.trials(Scale.SMALL, SETTING) for s in trial.steps]
    ours = {s.commands for s in steps if s.key.endswith("-engine")}
    assert {argv for (((argv,),),) in [(c,) for c in ours]} == {
        (ENGINE, "delete", "--pin", "{pin}", "--", "{tree}"),
        (ENGINE, "survey", "--", "{tree}"),
    }
