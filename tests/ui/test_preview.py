"""The preview while it waits for an answer, a job or a key; and jobs that cannot be shown."""

import errno
import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from msgspec.structs import replace
from textual.widgets import Button, Static

from tests.ui.recorded import (
    MAILDROP,
    STARTED,
    Host,
    maildrop_survey,
    record,
    screen_text,
    settle,
    until,
    wait_for,
)
from tests.ui.test_confirmation_stays import SURVEY, alive, ask, chosen, found
from tests.ui.test_screens import (
    SMALL,
    a_quiet_machine,
    counted,
    counted_together,
    post_forecast,
    preview,
    several,
)
from tui_fs.job.planning import make_plan
from tui_fs.job.store import JobFolder
from tui_fs.model.errors import JobFailed, Refused
from tui_fs.model.finding import Finding, FindingKind, Severity
from tui_fs.model.paths import PathStr
from tui_fs.model.plan import Plan
from tui_fs.model.strategy import StrategyName
from tui_fs.screens.base import Failed, Settings
from tui_fs.screens.call_dialog import CallDialog
from tui_fs.screens.jobs import JobsScreen
from tui_fs.screens.options import OptionsDialog
from tui_fs.screens.preview import CallsScreen, PreviewScreen, uncounted_words
from tui_fs.screens.run import RunScreen
from tui_fs.widgets.confirm_dialog import ConfirmDialog

__all__ = ["a_quiet_machine", "alive", "several"]

pytestmark = pytest.mark.usefixtures("alive")


@pytest.mark.parametrize("has_begun", [False, True])
@pytest.mark.slow
async def test_leaving_before_it_begins_deletes_nothing(
    monkeypatch: pytest.MonkeyPatch, has_begun: bool
) -> None:
    # A job that takes a while to start, and was ordered to begin before it was left or not
    entered, left = threading.Event(), threading.Event()

    def start(plan: Plan, is_wanted: Callable[[], bool]) -> JobFolder | None:
        del plan
        entered.set()
        while is_wanted():
            time.sleep(0.01)
        left.set()
        return record([STARTED]) if has_begun else None

    monkeypatch.setattr("tui_fs.screens.preview.check_plan", lambda _: None)
    monkeypatch.setattr("tui_fs.screens.preview.why_type_name", lambda *_: None)
    monkeypatch.setattr("tui_fs.screens.preview.start", start)
    monkeypatch.setattr("tui_fs.widgets.confirm_dialog.IGNORED_KEYS_S", 0)
    preview = PreviewScreen((MAILDROP,), Settings())
    async with Host(preview).run_test(size=SMALL) as pilot:
        await ask(pilot, preview, StrategyName("rm"))
        pilot.app.screen.query_one("#confirm-yes", Button).focus()
        await pilot.press("enter")
        await until(pilot, entered.is_set)
        await pilot.press("escape")
        await until(pilot, left.is_set)
        app = pilot.app
        await until(pilot, lambda: isinstance(app.screen, RunScreen) or len(app._notifications) > 0)
        # It is not begun, and that is said; or it is shown, above what was there before
        assert preview not in pilot.app.screen_stack
        assert isinstance(pilot.app.screen, RunScreen) == has_begun
        messages = [notice.message for notice in pilot.app._notifications]
        assert any("nothing was deleted" in message for message in messages) != has_begun


async def test_a_job_has_the_times_that_were_confirmed(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Plan] = []

    def plan_later(*arguments: Any) -> Plan:
        plan = make_plan(*arguments)
        assert plan.predicted is not None
        return replace(plan, predicted=replace(plan.predicted, seconds_high=9_999.0))  # more load

    monkeypatch.setattr("tui_fs.screens.preview.make_plan", plan_later)
    monkeypatch.setattr("tui_fs.screens.preview.check_plan", lambda _: None)
    monkeypatch.setattr("tui_fs.screens.preview.why_type_name", lambda *_: None)
    monkeypatch.setattr("tui_fs.screens.preview.start", lambda plan, _: started.append(plan))
    monkeypatch.setattr("tui_fs.widgets.confirm_dialog.IGNORED_KEYS_S", 0)
    preview = PreviewScreen((MAILDROP,), Settings())
    async with Host(preview).run_test(size=SMALL) as pilot:
        await ask(pilot, preview, StrategyName("rm"))
        assert preview._question is not None
        shown = preview._question.estimate
        pilot.app.screen.query_one("#confirm-yes", Button).focus()
        await pilot.press("enter")
        await until(pilot, lambda: started != [])
    (plan,) = started
    assert plan.predicted is not None
    assert (plan.predicted.seconds_low, plan.predicted.seconds_high) == (
        shown.seconds_low,
        shown.seconds_high,
    )


async def test_each_strategy_is_reached_in_a_small_terminal() -> None:
    async with Host(PreviewScreen((MAILDROP,), Settings())).run_test(size=(40, 15)) as pilot:
        await settle(pilot)
        await counted(maildrop_survey())(pilot)
        await wait_for(pilot, "parallel")
        for keys, strategy in (("g", "rm"), ("jjj", "rsync"), ("G", "parallel")):
            await pilot.press(*keys)
            await settle(pilot)
            (line,) = (line for line in screen_text(pilot.app).splitlines() if line[:1] == "›")
            assert strategy in line
            assert "options" in screen_text(pilot.app)


async def test_a_long_refusal_is_read_to_its_end_in_a_small_terminal() -> None:
    screen = PreviewScreen((MAILDROP,), Settings())
    async with Host(screen).run_test(size=(40, 15)) as pilot:
        await settle(pilot)
        screen.post_message(
            Failed(Refused("A policy keeps it. " * 30, "Choose another directory."))
        )
        await wait_for(pilot, "Refused:")
        assert "goes back" not in screen_text(pilot.app)
        await pilot.press(*["pagedown"] * 5)
        await wait_for(pilot, "esc goes back")


@pytest.mark.slow
async def test_jobs_that_cannot_be_listed_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(_: object) -> None:
        raise JobFailed("/state/jobs cannot be read: Input/output error.")

    monkeypatch.setattr("tui_fs.screens.jobs.JobList.read", read)
    async with Host(JobsScreen(Settings())).run_test(size=SMALL) as pilot:
        await wait_for(pilot, "/state/jobs cannot be read: Input/output error.")


async def test_a_journal_that_cannot_be_read_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def poll(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr("tui_fs.screens.run.JobView.poll", poll)
    folder = record([STARTED])
    app = Host(RunScreen(folder, Settings()))
    async with app.run_test(size=SMALL, notifications=True) as pilot:
        await wait_for(pilot, f"{folder.job_id} cannot be read: Input/output error.")


class Silence:
    """A function that returns when it is released."""

    def __init__(self) -> None:
        self.entered, self.released = threading.Event(), threading.Event()

    def __call__(self, *_: object, **__: object) -> None:
        assert threading.current_thread() is not threading.main_thread()
        self.entered.set()
        assert self.released.wait(60)


@pytest.fixture
def silence() -> Iterator[Silence]:
    """Yield such a function, which is released at the end."""
    silence = Silence()
    yield silence
    silence.released.set()


@pytest.mark.slow
async def test_what_the_confirmation_needs_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, silence: Silence
) -> None:
    monkeypatch.setattr("tui_fs.screens.preview.why_type_name", silence)
    preview = PreviewScreen((MAILDROP,), Settings())
    async with Host(preview).run_test(size=SMALL) as pilot:
        await settle(pilot)
        post_forecast(preview, SURVEY, found())
        await settle(pilot)
        await pilot.press("enter")
        await until(pilot, silence.entered.is_set)
        await pilot.press("m")
        await until(pilot, lambda: isinstance(pilot.app.screen, CallsScreen))
        # And the question is not asked any more over what is shown by then
        silence.released.set()
        await settle(pilot)
        assert isinstance(pilot.app.screen, CallsScreen)


@pytest.mark.slow
async def test_pressing_again_examines_the_targets_once(
    monkeypatch: pytest.MonkeyPatch, silence: Silence
) -> None:
    calls: list[int] = []

    def examine(_: object, entries: int) -> None:
        calls.append(entries)
        silence()

    monkeypatch.setattr("tui_fs.screens.preview.why_type_name", examine)
    monkeypatch.setattr("tui_fs.screens.preview._PATIENCE_S", 0.01)
    preview = PreviewScreen((MAILDROP,), Settings())
    async with Host(preview).run_test(size=SMALL, notifications=True) as pilot:
        await settle(pilot)
        post_forecast(preview, SURVEY, found())
        await settle(pilot)
        await pilot.press("enter")
        await wait_for(pilot, "The file system has not answered")
        await pilot.press("enter", "enter")
        silence.released.set()
        await until(pilot, lambda: isinstance(pilot.app.screen, ConfirmDialog))
        assert len(calls) == 1


@pytest.mark.slow
async def test_the_prediction_for_other_options_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, silence: Silence
) -> None:
    preview = PreviewScreen((MAILDROP,), Settings())
    async with Host(preview).run_test(size=SMALL) as pilot:
        await settle(pilot)
        post_forecast(preview, SURVEY, found())
        await settle(pilot)
        monkeypatch.setattr("tui_fs.screens.preview.forecast", silence)
        await pilot.press("o")
        await until(pilot, lambda: isinstance(pilot.app.screen, OptionsDialog))
        await pilot.press("enter")
        await until(pilot, silence.entered.is_set)
        # And nothing is confirmed by what was predicted for the options before
        await pilot.press("enter")
        await pilot.pause(0.2)
        assert pilot.app.screen is preview
        await pilot.press("escape")
        await until(pilot, lambda: pilot.app.screen is not preview)
        silence.released.set()


async def test_enter_is_offered_when_there_is_something_to_confirm() -> None:
    screen = preview()
    async with Host(screen).run_test(size=SMALL) as pilot:
        await settle(pilot)
        assert "enter confirm" not in screen_text(pilot.app)
        await counted(maildrop_survey())(pilot)
        await wait_for(pilot, "enter confirm")


async def test_a_new_recommendation_is_said_and_does_not_move_the_cursor() -> None:
    screen = preview()
    async with Host(screen).run_test(size=SMALL) as pilot:
        await settle(pilot)
        await counted(maildrop_survey())(pilot)
        await settle(pilot)
        assert (chosen(screen), new_recommendation(screen)) == ("rm", "")
        changed = replace(found(), recommended=StrategyName("parallel"))
        post_forecast(screen, SURVEY, changed)
        await settle(pilot)
        said = "new recommendation: parallel (r)"
        assert (chosen(screen), new_recommendation(screen)) == ("rm", said)
        await pilot.press("down")
        assert (chosen(screen), new_recommendation(screen)) == ("find", said)
        await pilot.press("r")
        assert (chosen(screen), new_recommendation(screen)) == ("parallel", "")
        # And it is not new again
        await pilot.press("up")
        post_forecast(screen, SURVEY, changed)
        await settle(pilot)
        assert (chosen(screen), new_recommendation(screen)) == ("rmtree", "")


def new_recommendation(screen: PreviewScreen) -> str:
    """Return what the screen says of a new recommendation."""
    news = screen.query_one("#news", Static)
    return str(news.render()) if news.display else ""


async def test_what_others_do_in_the_target_is_said_before_and_in_the_question(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tui_fs.screens.preview.why_type_name", lambda *_: None)
    meaning = "2 processes use this tree: postfix (812), cron (90)."
    used = Finding(
        FindingKind("in-use"), Severity.WARNING, PathStr(MAILDROP), {"processes": 2}, meaning, ""
    )
    screen = preview()
    async with Host(screen).run_test(size=SMALL) as pilot:
        await settle(pilot)
        post_forecast(screen, replace(SURVEY, findings=(used,)), found())
        await settle(pilot)
        assert f"! {meaning}" in str(screen.query_one("#about", Static).render())
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, ConfirmDialog))
        await settle(pilot)
        assert f"! {meaning}" in str(pilot.app.screen.query_one("#confirm-facts", Static).render())


@pytest.mark.slow
async def test_options_and_advice_for_several_targets_are_visible(several: PreviewScreen) -> None:
    async with Host(several).run_test(size=SMALL) as pilot:
        await settle(pilot)
        await counted_together(pilot)
        await settle(pilot)
        assert "recommended:" in screen_text(pilot.app)
        assert "keep directory [ ]" in screen_text(pilot.app)
        before = chosen(several)
        await pilot.press("pagedown")
        await settle(pilot)
        assert "app-0" in screen_text(pilot.app)
        assert chosen(several) == before


async def test_the_help_of_the_preview_explains_the_columns_that_it_shows() -> None:
    preview = PreviewScreen((MAILDROP,), Settings())
    async with Host(preview).run_test(size=SMALL) as pilot:
        await settle(pilot)
        await counted(maildrop_survey())(pilot)
        legend = preview.legend()
        assert list(legend) == ["strategy", "time", "calls", "memory", "proc.", "safe against"]
        assert legend["time"].startswith("the predicted time")
        assert legend["calls"].startswith("the predicted system calls")
        # The calls have a place on a tall terminal, and no column of a run
        await pilot.resize_terminal(100, 50)
        await settle(pilot)
        assert list(preview.legend())[-2:] == ["group", "call"]
        # And a screen of their own
        await pilot.press("m")
        await until(pilot, lambda: isinstance(pilot.app.screen, CallsScreen))
        await settle(pilot)
        calls = pilot.app.screen
        assert isinstance(calls, CallsScreen)
        assert list(calls.legend()) == ["group", "call", "calls"]


async def test_enter_explains_a_predicted_call_in_any_terminal() -> None:
    preview = PreviewScreen((MAILDROP,), Settings())
    async with Host(preview).run_test(size=(60, 9)) as pilot:
        await settle(pilot)
        await counted(maildrop_survey())(pilot)
        await pilot.press("m")
        await until(pilot, lambda: isinstance(pilot.app.screen, CallsScreen))
        await pilot.press(*"jjjjjj")
        await until(pilot, lambda: "all others" in screen_text(pilot.app))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, CallDialog))


async def test_calls_that_will_not_be_counted_have_their_own_line() -> None:
    rm = found().of(StrategyName("rm"))
    assert uncounted_words(rm) == ""
    words = "and about 170 to start the processes, which the engine does not count"
    screen = CallsScreen(replace(rm, uncounted_calls=173), Settings())
    async with Host(screen).run_test(size=SMALL) as pilot:
        await wait_for(pilot, words)
