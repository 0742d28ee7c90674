"""An open confirmation keeps its subject, and exactly the confirmed plan starts."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace
from textual.pilot import Pilot
from textual.widgets import Button, Input, Static

from tests.ui.recorded import MAILDROP, STARTED, Host, maildrop_survey, record, settle, wait_for
from tests.ui.test_screens import (
    SMALL,
    a_quiet_machine,
    alive,
    counted_together,
    post_forecast,
    several,
)
from tui_fs.job.planning import Forecast, forecast
from tui_fs.job.store import JobFolder
from tui_fs.model.plan import Plan
from tui_fs.model.strategy import Options, StrategyName
from tui_fs.model.survey import Root
from tui_fs.model.target import Pin, command_lines
from tui_fs.screens.base import Settings
from tui_fs.screens.preview import PreviewScreen
from tui_fs.strategies.registry import STRATEGIES
from tui_fs.widgets.bar_table import BarTable
from tui_fs.widgets.confirm_dialog import ConfirmDialog

__all__ = ["a_quiet_machine", "alive", "several"]

pytestmark = pytest.mark.usefixtures("alive")

SURVEY = replace(maildrop_survey(), roots=(Root(MAILDROP, 1, 2),))
# They answer the question, or belong to the whole program: quit, command palette.
NOT_PRESSED = {"enter", "escape", "ctrl+q", "ctrl+p"}


@pytest.fixture(autouse=True)
def plans(monkeypatch: pytest.MonkeyPatch) -> list[Plan]:
    """Return the plans that are started, instead of starting them."""
    begun: list[Plan] = []

    def start(plan: Plan, is_wanted: Callable[[], bool]) -> JobFolder:
        assert is_wanted()
        begun.append(plan)
        return record([STARTED])

    monkeypatch.setattr("tui_fs.screens.preview.check_plan", lambda _: None)
    monkeypatch.setattr("tui_fs.screens.preview.start", start)
    monkeypatch.setattr("tui_fs.widgets.confirm_dialog.IGNORED_KEYS_S", 0)
    return begun


@pytest.fixture(params=[None, "it is large"], ids=["no word", "by name"])
def by_name(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Return whether the name has to be typed."""
    monkeypatch.setattr("tui_fs.screens.preview.why_type_name", lambda *_: request.param)
    return request.param is not None


def found() -> Forecast:
    """Return the forecast that the preview shows."""
    return forecast((MAILDROP,), SURVEY, Options(), pins=[Pin(1, 2, 3)])


async def ask(pilot: Pilot[None], preview: PreviewScreen, strategy: StrategyName) -> set[str]:
    """Choose a strategy and ask for it; return the keys that did something before."""
    await settle(pilot)
    post_forecast(preview, SURVEY, found())
    await settle(pilot)
    for _ in STRATEGIES:
        if chosen(preview) != strategy:
            await pilot.press("down")
    assert chosen(preview) == strategy
    active = set(preview.active_bindings)
    await pilot.press("enter")
    await settle(pilot)
    assert isinstance(pilot.app.screen, ConfirmDialog)
    return active


def chosen(preview: PreviewScreen) -> str:
    """Return the strategy under the cursor."""
    row = preview.query_one(BarTable).cursor_row
    assert row is not None
    return row.key


def shown_command(preview: PreviewScreen) -> str:
    """Return the text below the table of strategies."""
    return str(preview.query_one("#command", Static).render())


async def confirm(pilot: Pilot[None], *, by_name: bool) -> None:
    """Say yes, wherever the focus is, and wait for the job's screen."""
    if by_name:
        entry = pilot.app.screen.query_one("#confirm-word", Input)
        entry.clear()
        entry.focus()
        await pilot.press(*"maildrop", "enter")
    else:
        pilot.app.screen.query_one("#confirm-yes", Button).focus()
        await pilot.press("enter")
    await wait_for(pilot, "deleting")


def assert_started(plans: list[Plan], strategy: StrategyName, shown: str) -> None:
    """Fail unless one plan was started, with this strategy and the command lines shown."""
    (plan,) = plans
    assert (plan.strategy, plan.options) == (strategy, Options())
    assert [(target.path, target.pin) for target in plan.targets] == [(MAILDROP, Pin(1, 2, 3))]
    assert plan.predicted is not None
    command = command_lines(plan.predicted.command, found().directories)
    lines = [line.removeprefix("$ ") for line in shown.splitlines() if line.startswith("$ ")]
    if strategy == StrategyName("rsync"):  # its empty directory has a name only when it is started
        empty = f"/nowhere/state/tui-fs/jobs/{plan.job_id}/empty/"
        command = [line.replace(empty, "EMPTY/") for line in command]
    assert lines == command


@pytest.mark.parametrize("by_name", [None], indirect=True, ids=["no word"])
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.slow
async def test_what_starts_is_the_command_shown(
    strategy: StrategyName, by_name: bool, plans: list[Plan]
) -> None:
    preview = PreviewScreen((MAILDROP,), Settings())
    async with Host(preview).run_test(size=SMALL) as pilot:
        await ask(pilot, preview, strategy)
        shown = shown_command(preview)
        await confirm(pilot, by_name=by_name)
    assert_started(plans, strategy, shown)


@pytest.mark.slow
async def test_no_key_changes_what_is_asked_about(by_name: bool, plans: list[Plan]) -> None:
    strategy = StrategyName("xargs")
    preview = PreviewScreen((MAILDROP,), Settings())
    async with Host(preview).run_test(size=SMALL) as pilot:
        keys = await ask(pilot, preview, strategy)
        question, shown = pilot.app.screen, shown_command(preview)
        assert {"up", "down", "j", "k", "g", "G", "o", "m", "q"} <= keys
        for key in sorted(keys - NOT_PRESSED):
            await pilot.press(key)
            assert (chosen(preview), shown_command(preview)) == (strategy, shown), key
            assert pilot.app.screen is question, key
        rows = preview.query_one(BarTable).region
        for line in range(rows.y, rows.bottom):
            await pilot.click(offset=(1, line))
            assert (chosen(preview), shown_command(preview)) == (strategy, shown), line
        assert plans == []
        await confirm(pilot, by_name=by_name)
    assert_started(plans, strategy, shown)


@pytest.mark.parametrize("by_name", ["it is large"], indirect=True, ids=["by name"])
@pytest.mark.slow
async def test_what_is_counted_meanwhile_does_not_change_what_starts(
    by_name: bool, plans: list[Plan]
) -> None:
    preview = PreviewScreen((MAILDROP,), Settings())
    async with Host(preview).run_test(size=SMALL) as pilot:
        assert found().recommended == StrategyName("rm")
        await ask(pilot, preview, StrategyName("rm"))
        shown = shown_command(preview)
        post_forecast(preview, SURVEY, replace(found(), recommended=StrategyName("find")))
        await settle(pilot)
        await confirm(pilot, by_name=by_name)
    assert_started(plans, StrategyName("rm"), shown)


@pytest.mark.parametrize("by_name", ["it is large"], indirect=True, ids=["by name"])
@pytest.mark.slow
async def test_the_question_shows_the_present_figures_and_those_start(
    by_name: bool, plans: list[Plan]
) -> None:
    preview = PreviewScreen((MAILDROP,), Settings())
    async with Host(preview).run_test(size=SMALL) as pilot:
        await ask(pilot, preview, StrategyName("rm"))
        more = replace(SURVEY, totals=replace(SURVEY.totals, files=SURVEY.totals.files + 5))
        prediction = forecast((MAILDROP,), more, Options(), pins=[Pin(1, 2, 3)])
        slower = replace(prediction.of(StrategyName("rm")), seconds_low=600, seconds_high=660)
        others = [e for e in prediction.estimates if e.strategy != StrategyName("rm")]
        post_forecast(preview, more, replace(prediction, estimates=(slower, *others)))
        await settle(pilot)
        facts = str(pilot.app.screen.query_one("#confirm-facts", Static).render())
        assert f"{SURVEY.totals.non_directories + 5:,} files" in facts
        assert "with rm in 10 min to 11 min" in facts
        await confirm(pilot, by_name=by_name)
    (plan,) = plans
    assert plan.expected.totals.files == SURVEY.totals.files + 5


@pytest.mark.slow
async def test_a_larger_terminal_shows_more_names_in_the_open_question(
    several: PreviewScreen,
) -> None:
    async with Host(several).run_test(size=SMALL) as pilot:
        await settle(pilot)
        await counted_together(pilot)
        await settle(pilot)
        await pilot.press("enter")
        await settle(pilot)
        facts = pilot.app.screen.query_one("#confirm-facts", Static)
        before = len(str(facts.render()).splitlines())
        await pilot.resize_terminal(80, 44)
        await settle(pilot)
        assert len(str(facts.render()).splitlines()) == before + 20
