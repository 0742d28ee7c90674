"""The explanation of a system call, on the run screen and in a report."""

import pytest
from msgspec.structs import replace
from textual.widgets import Static

from tests.ui.recorded import STARTED, Host, record, settle, wait_for
from tests.ui.test_screens import RUNS, SMALL, a_quiet_machine, alive
from tui_fs.lab.experiments import experiments
from tui_fs.model.calls import CALL_GUIDES, OTHER_CALLS_GUIDE, CallCount, Failures, call_lines
from tui_fs.model.snapshot import Snapshot
from tui_fs.model.strategy import StrategyName
from tui_fs.screens.base import Settings
from tui_fs.screens.call_dialog import CallDialog, explanation
from tui_fs.screens.run import RunScreen
from tui_fs.strategies.registry import STRATEGIES

__all__ = ["a_quiet_machine", "alive"]

pytestmark = pytest.mark.usefixtures("alive")


def shown(app: Host) -> str:
    """Return the text of the dialog."""
    return str(app.screen.query_one("#call", Static).render())


@pytest.mark.parametrize("size", [SMALL, (40, 15)])
async def test_enter_explains_the_call_under_the_cursor(size: tuple[int, int]) -> None:
    app = Host(RunScreen(record(RUNS["running"][0]), Settings()))
    async with app.run_test(size=size) as pilot:
        await wait_for(pilot, "649,632")
        await pilot.press("enter")
        await settle(pilot)
        assert isinstance(app.screen, CallDialog)
        assert CALL_GUIDES["unlinkat"].action in shown(app)
        assert "rm: " in shown(app)
        await pilot.press("down")
        assert CALL_GUIDES["getdents64"].action in shown(app)
        await pilot.press("escape")
        await settle(pilot)
        assert isinstance(app.screen, RunScreen)


def test_costs_and_errors_are_those_of_the_job() -> None:
    counted = {"unlinkat": CallCount(30, 2, 0.3), "openat": CallCount(10, 9, 0.1)}
    lines = call_lines(counted, {}, None, Failures())
    rm = StrategyName("rm")
    text = " ".join(explanation(lines[0], lines, rm, Snapshot()))
    assert "It makes up 30 of 40 calls here and 75 % of their time, 10,000.0 µs each." in text
    timed = replace(lines[0], counted=CallCount(30, 2, 0.3, (8.191e-6, 0.065535)))
    text = " ".join(explanation(timed, lines, rm, Snapshot()))
    assert "each. Half of them took at most 8.2 µs (p50), and 99 of 100 at most 66 ms" in text
    assert "A few took far longer" in text
    assert "2 of its calls returned an error, which is normal. No failure was reported" in text
    failed = call_lines(counted, {}, None, Failures({"unlink": 2}))
    assert "x lists them" in " ".join(explanation(failed[0], failed, rm, Snapshot()))
    assert STARTED.strategy == rm


@pytest.mark.parametrize(
    ("mean_s", "quantiles_s", "meaning"),
    [
        (6e-6, (5e-6, 40e-6), "They hardly waited"),
        (9e-6, (5e-6, 400e-6), "A few took far longer"),
        (78e-6, (7e-6, 20e-6), "A few took far longer"),
        (2e-3, (2e-3, 3e-3), "More threads (strategy parallel) wait at the same time"),
    ],
)
def test_times_of_removals_say_what_they_mean_for_the_strategy(
    mean_s: float, quantiles_s: tuple[float, float], meaning: str
) -> None:
    counted = {
        name: CallCount(1_600, 0, 1_600 * mean_s, quantiles_s, 100)
        for name in ("unlinkat", "getdents64")
    }
    removal, reading = call_lines(counted, {}, None, Failures())
    text = explanation(removal, [removal, reading], StrategyName("parallel"), Snapshot())[2]
    assert "100 of them were timed alone: half took at most" in text
    assert meaning in text
    other = explanation(reading, [removal, reading], StrategyName("parallel"), Snapshot())[2]
    assert meaning not in other


def test_every_call_leads_to_an_experiment_and_strategies_explain_known_calls() -> None:
    names = {str(experiment.name) for experiment in experiments()}
    for guide in (*CALL_GUIDES.values(), OTHER_CALLS_GUIDE):
        assert guide.experiment in names
        assert guide.man.endswith("(2)")
    for strategy in STRATEGIES.values():
        assert set(strategy.call_reasons) <= {*CALL_GUIDES, "all others"}
