"""What the preview writes about the targets."""

from tui_fs.job.planning import Forecast, expected_of
from tui_fs.model.estimate import Estimate
from tui_fs.model.paths import PathStr
from tui_fs.model.quick_estimate import Interval, QuickEstimate
from tui_fs.model.strategy import Options, StrategyName
from tui_fs.model.survey import Survey, Totals
from tui_fs.screens.preview import about_estimate, about_targets, confirmation

MIB = 1 << 20
SURVEY = Survey(
    PathStr("/m/t"),
    Totals(files=2, directories=1, allocated_bytes=3 * MIB),
    freed_bytes_max=3 * MIB,
    is_on_overlay=True,
    finished=True,
)


def test_files_of_a_lower_layer_are_not_promised_to_free_space() -> None:
    found = Forecast((), None, (), expected_of(SURVEY, Options(), "overlay"))
    shown = about_targets(SURVEY, found).plain
    assert "frees 0 B to 3.0 MiB (files of a lower layer free nothing)" in shown


def test_a_quick_estimate_does_not_promise_them_either() -> None:
    sure = Interval(3, 3, 3)
    size = Interval(2 * MIB, 3 * MIB, 4 * MIB)
    estimate = QuickEstimate(sure, sure, size, 1.0, True, 2, "A sample.", SURVEY)
    shown = about_estimate(SURVEY, estimate).plain
    assert "frees 0 B to 4.0 MiB (files of a lower layer free nothing)" in shown


def _question(path: str) -> list[str]:
    rm = StrategyName("rm")
    predicted = Estimate(
        rm, 1, 2, 3, {}, None, 1, 1 << 20, True, True, True, (), (), "guesses", "guesses", "take it"
    )
    lines, _ = confirmation([path], SURVEY, predicted, Options(), "a reason")
    return [str(line) for line in lines]


def test_the_confirmation_of_a_deep_directory_begins_with_its_name() -> None:
    above = "/srv" + "/deep" * 100
    lines = _question(f"{above}/trail ")
    assert lines[0] == "trail\\x20"
    assert lines[1].startswith("2 files")
    assert lines[-1] == f"It is in {above}"
    # And of a short path everything is in the first line
    assert _question("/srv/trail ")[0] == "/srv/trail\\x20"
