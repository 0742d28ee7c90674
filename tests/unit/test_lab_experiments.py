"""Invariants of every experiment: its steps, published figures, views and claims."""

import pytest

from tests.unit import lab_results
from tui_fs.lab.experiment import Counting, Experiment, Scale, Verdict
from tui_fs.lab.experiments import experiments
from tui_fs.lab.results import Measure

EACH = pytest.mark.parametrize(
    "experiment", experiments(), ids=lambda experiment: str(experiment.name)
)
SCALES = pytest.mark.parametrize("scale", list(Scale))


@EACH
@SCALES
def test_every_step_has_a_key_of_its_own_and_known_tools(
    experiment: Experiment, scale: Scale
) -> None:
    trials = experiment.trials(scale, lab_results.all_tools(experiment))
    steps = [step for trial in trials for step in trial.steps]
    assert len({step.key for step in steps}) == len(steps)
    tools = {argv[0] for step in steps for pipeline in step.commands for argv in pipeline}
    assert tools <= set(experiment.tools)
    assert all(trial.rounds <= (3 if scale is Scale.SMALL else 11) for trial in trials)


@EACH
@SCALES
def test_views_show_steps_there_are_and_all_that_is_published(
    experiment: Experiment, scale: Scale
) -> None:
    keys = {plan.key for plan in lab_results.plans_of(experiment, scale)}
    results = lab_results.run_with(experiment, scale, seconds={key: [1.0] for key in keys})
    shown: set[str] = set()
    for view in experiment.views(results):
        if hasattr(view, "keys"):
            assert len(set(view.keys)) == len(view.keys)
            shown.update(view.keys)
    # What an experiment may leave out at one scale: batches of the curve, tools of a table
    assert shown - keys <= {"xargs-5000", "xargs-1000"}
    published = {figure.key for figure in experiment.published}
    published |= {table.key for table in experiment.published_calls}
    on_images = {key for key in published if key.startswith("ext4-") and key not in keys}
    assert published - on_images <= shown
    if scale is Scale.PUBLISHED:
        assert not on_images


@EACH
def test_published_figures_are_unique_and_tables_have_their_counts(
    experiment: Experiment,
) -> None:
    figures = [(figure.key, figure.measure) for figure in experiment.published]
    assert len(set(figures)) == len(figures)
    assert "?" in experiment.question and experiment.title and experiment.claims
    if experiment.name not in ("profile", "race-your-strategies", "rivals"):
        assert experiment.source and (figures or experiment.published_calls)
    steps = lab_results.steps_of(experiment, Scale.PUBLISHED)
    totals = {
        figure.key: figure.value
        for figure in experiment.published
        if figure.measure is Measure.CALLS
    }
    for table in experiment.published_calls:
        total = sum(call.calls for call in table.calls.values())
        assert total == totals.get(table.key, total)
        assert steps[table.key][0].counting is not Counting.NOTHING


@pytest.mark.parametrize(
    ("name", "key", "calls", "errors"),
    [
        ("rsync-vs-rm", "rm-all-10", 62, 3),
        ("rsync-vs-rm", "rsync-10", 365, 25),
        ("rsync-vs-rm", "rm-all-10000", 20_063, 3),
        ("rsync-vs-rm", "rsync-10000", 20_374, 25),
        ("exec-vs-xargs", "batches", 24_910, 232),
        ("exec-vs-xargs", "exec-name", 15_811_808, 3_600_017),
        ("tree-shapes", "wide-rm-tmpfs", 1_016_627, 15),
        ("tree-shapes", "flat-rm-tmpfs", 1_003_151, 1),
    ],
)
def test_the_tables_add_up_to_the_texts_totals(
    name: str, key: str, calls: int, errors: int
) -> None:
    (experiment,) = (
        other_experiment for other_experiment in experiments() if other_experiment.name == name
    )
    (table,) = (figure.calls.values() for figure in experiment.published_calls if figure.key == key)
    assert sum(call.calls for call in table) == calls
    assert sum(call.errors for call in table) == errors


@EACH
@SCALES
def test_what_was_not_measured_is_untested_and_says_why(
    experiment: Experiment, scale: Scale
) -> None:
    results = lab_results.run_with(experiment, scale)
    for claim in experiment.claims:
        judgement = claim.judged(results)
        assert judgement.verdict is Verdict.UNTESTED and judgement.reason


@EACH
def test_the_small_scale_is_small(experiment: Experiment) -> None:
    trials = experiment.trials(Scale.SMALL, lab_results.all_tools(experiment))
    assert all(trial.tree is None or trial.tree.entries <= 21_000 for trial in trials)
    assert all(trial.disk_bytes <= 64 << 20 for trial in trials)
