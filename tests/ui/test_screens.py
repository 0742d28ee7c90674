"""Every screen in every state, as text at every size, from recorded data.

``pytest tests/ui/test_screens.py --snapshot-update`` regenerates the pictures; review them
before you commit them.
"""

import os
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from functools import partial
from itertools import count
from pathlib import Path

import pytest
from msgspec.structs import replace
from syrupy.assertion import SnapshotAssertion
from textual.message_pump import MessagePump
from textual.pilot import Pilot
from textual.widgets import Input

from tests.ui.recorded import (
    BY_THE_ENGINE,
    FAILING,
    MAIL_ESTIMATE,
    MAILDROP,
    PAUSED,
    REFUSED,
    RUNNING,
    SPACE,
    STARTED,
    Host,
    at_all_sizes,
    ended,
    has_size,
    maildrop_survey,
    record,
    screen_text,
    settle,
    until,
    wait_for,
)
from tests.ui.recorded_tree import SilentSurvey
from tests.unit.test_job_store import plan
from tui_fs.job.doctor import (
    Diagnosis,
    EngineState,
    MechanismState,
    Privileges,
    Terminal,
    ToolState,
    TracingState,
)
from tui_fs.job.journal import JournalWriter
from tui_fs.job.planning import Forecast, forecast, forecast_by_estimate
from tui_fs.job.store import JobFolder
from tui_fs.job.view import JobSummary
from tui_fs.linux.filesystem import FileSystem
from tui_fs.model.calls import TraceSource
from tui_fs.model.errors import Refused
from tui_fs.model.events import (
    CancelRequested,
    Event,
    JobFinished,
    MachineUse,
    PaceChanged,
    Sampled,
)
from tui_fs.model.figures import Figure, MissingFigure
from tui_fs.model.outcome import Outcome
from tui_fs.model.paths import PathStr
from tui_fs.model.quick_estimate import Interval, QuickEstimate
from tui_fs.model.space import Space
from tui_fs.model.strategy import Filters, Mechanism, Options, Pace, Share
from tui_fs.model.survey import Survey, Totals
from tui_fs.model.target import Pin, Target
from tui_fs.screens.base import BaseScreen, Failed, HelpScreen, Settings
from tui_fs.screens.comparison import ComparisonScreen
from tui_fs.screens.doctor import DoctorScreen
from tui_fs.screens.jobs import JobsScreen
from tui_fs.screens.preview import ForecastUpdated, PreviewScreen
from tui_fs.screens.report import ReportScreen
from tui_fs.screens.run import RunScreen
from tui_fs.survey.process import Update
from tui_fs.tracing.select_source import SourceState
from tui_fs.widgets.confirm_dialog import ConfirmDialog

SMALL, LARGE = (80, 24), (120, 40)
DISK = FileSystem("ext4", "/dev/vda1", "/", False, 250 << 30, 20 << 30, 19 << 30, 10**7, 10**5)
Act = Callable[[Pilot[None]], Awaitable[None]]


@pytest.fixture(autouse=True)
def a_quiet_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing on the screen may depend on this machine or this moment."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("XDG_STATE_HOME", "/nowhere/state")
    monkeypatch.setattr("tui_fs.screens.survey_client.SurveyProcess", SilentSurvey)
    monkeypatch.setattr("tui_fs.screens.browser.screen.file_system_of", lambda _: DISK)
    monkeypatch.setattr("tui_fs.job.planning.file_system_of", lambda _: DISK)
    monkeypatch.setattr("tui_fs.job.planning.tools_of", _all_tools)
    monkeypatch.setattr("tui_fs.job.path_safety.replaceable_part", lambda *_: None)
    monkeypatch.setattr("tui_fs.job.path_safety._replaceable", lambda _: None)
    target = Target(MAILDROP, Pin(1, 2, 3))
    monkeypatch.setattr("tui_fs.screens.preview.check_targets", lambda *_, **__: (target,))
    monkeypatch.setattr("tui_fs.screens.preview.keep_open", lambda _: nullcontext())
    monkeypatch.setattr("tui_fs.screens.preview.estimates", lambda _: iter(()))
    monkeypatch.setattr("tui_fs.screens.preview.needs_measuring", lambda *_: False)
    monkeypatch.setattr("tui_fs.job.planning.likely_source", lambda *_, **__: TraceSource.OFF)
    monkeypatch.setattr("tui_fs.strategies.parallel.threads_of", lambda _: 2)
    monkeypatch.setattr("tui_fs.job.planning.memory_room", lambda: None)
    monkeypatch.setattr("tui_fs.job.planning.slowdown_by_load", lambda: 1.0)
    monkeypatch.setattr("tui_fs.job.planning.installed_versions", lambda _: {})
    monkeypatch.setattr("tui_fs.job.planning.missing_figures", lambda _: ())
    monkeypatch.setattr("tui_fs.job.planning.mechanisms_for", lambda *_, **__: tuple(Mechanism))
    monkeypatch.setattr("tui_fs.screens.jobs.time.time", lambda: 1_700_000_125.0)
    monkeypatch.setattr("tui_fs.job.store.jobs_directory", lambda: "jobs")


def _all_tools(strategy: object) -> tuple[dict[str, str], tuple[str, ...]]:
    tools: tuple[str, ...] = strategy.tools  # type: ignore[attr-defined]
    return {tool: f"/usr/bin/{tool}" for tool in tools}, ()


async def look(screen: BaseScreen, act: Act | None = None, size: tuple[int, int] = SMALL) -> str:
    app = Host(screen)
    async with app.run_test(size=size, notifications=True) as pilot:
        await settle(pilot)
        if act is not None:
            await act(pilot)
            await settle(pilot)
        return screen_text(app)


async def look_at_all_sizes(screen: BaseScreen, act: Act) -> str:
    """Return what a screen shows at each size after an act."""
    async with Host(screen).run_test(size=SMALL, notifications=True) as pilot:
        await settle(pilot)
        await act(pilot)
        return await at_all_sizes(pilot)


PIN = Pin(1, 2, 3)


def counted(survey: Survey) -> Act:
    async def act(pilot: Pilot[None]) -> None:
        screen = pilot.app.screen
        assert isinstance(screen, PreviewScreen)
        options = screen._choices.options
        post_forecast(screen, survey, forecast((survey.path,), survey, options, pins=[PIN]))

    return act


def post_forecast(preview: MessagePump, survey: Survey, prediction: Forecast) -> None:
    """Let a preview show counts and a forecast, as if a survey had reported them."""
    assert isinstance(preview, PreviewScreen)
    message = ForecastUpdated(Update(survey), prediction, preview._choices)
    message.survey_number = preview._client.number
    preview.post_message(message)


def then(*acts: Act) -> Act:
    async def act(pilot: Pilot[None]) -> None:
        for step in acts:
            await step(pilot)
            await settle(pilot)

    return act


def keys(*pressed: str) -> Act:
    async def act(pilot: Pilot[None]) -> None:
        await pilot.press(*pressed)

    return act


def shows(words: str) -> Act:
    async def act(pilot: Pilot[None]) -> None:
        await wait_for(pilot, words)

    return act


def preview() -> PreviewScreen:
    return PreviewScreen((MAILDROP,), Settings())


PREVIEWS: dict[str, Act] = {
    "complete": counted(maildrop_survey()),
    "while counting": counted(maildrop_survey(finished=False)),
    "xargs": then(counted(maildrop_survey()), keys("j", "j")),
    "too deep for rsync": then(counted(maildrop_survey(longest_path=9_000)), keys("j", "j", "j")),
    "calls": then(counted(maildrop_survey()), keys("m")),
    "options": then(counted(maildrop_survey()), keys("o")),
    "filter": then(counted(maildrop_survey()), keys("f")),
    "parallel": then(counted(maildrop_survey()), keys("j", "j", "j", "j", "j")),
    "confirm by name": then(counted(maildrop_survey()), keys("enter")),
}


@pytest.mark.parametrize("state", PREVIEWS)
@pytest.mark.slow
async def test_preview(state: str, picture: SnapshotAssertion) -> None:
    assert await look_at_all_sizes(preview(), PREVIEWS[state]) == picture


async def test_the_key_that_scrolls_the_text_of_a_preview_is_offered() -> None:
    ready = counted(maildrop_survey())
    assert "<> scroll" in await look(preview(), ready, (40, 15))
    for size in ((60, 20), SMALL):
        assert "<> scroll  esc back" in await look(preview(), ready, size)
    scrolled = then(ready, keys(*["greater_than_sign"] * 12))
    assert "most entries in one directory" in await look(preview(), scrolled, (40, 15))
    assert "<> scroll" not in await look(preview(), ready, (200, 50))


@pytest.mark.parametrize("asks", [False, True], ids=["figures", "confirmation"])
@pytest.mark.slow
async def test_preview_with_a_filter(asks: bool, picture: SnapshotAssertion) -> None:
    filters = Filters(name_glob="*.log", min_size_bytes=1 << 20)
    survey = replace(
        maildrop_survey(),
        matched=Totals(41_203, allocated_bytes=19_542_000_000),
        matching_directories=1,
    )
    screen = PreviewScreen((MAILDROP,), Settings(), filters=filters)
    acts = (counted(survey), keys("enter")) if asks else (counted(survey),)
    assert await look_at_all_sizes(screen, then(*acts)) == picture


@pytest.mark.slow
async def test_preview_with_a_quick_estimate(
    picture: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui_fs.screens.preview.estimates", lambda _: iter((MAIL_ESTIMATE,)))
    begun = replace(
        maildrop_survey(finished=False), totals=Totals(120_300, 1), max_entries_in_directory=120_300
    )
    by_estimate = forecast_by_estimate((MAILDROP,), MAIL_ESTIMATE, Options(), pins=[PIN])

    async def estimated(pilot: Pilot[None]) -> None:
        post_forecast(pilot.app.screen, begun, by_estimate)

    assert await look_at_all_sizes(preview(), estimated) == picture


@pytest.mark.parametrize("estimates", [(), (MAIL_ESTIMATE,)])
async def test_costs_of_nothing_are_not_shown_while_counting(
    estimates: tuple[QuickEstimate, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui_fs.screens.preview.estimates", lambda _: iter(estimates))
    begun = replace(maildrop_survey(finished=False), totals=Totals(), max_entries_in_directory=0)
    shown = await look(preview(), counted(begun))
    assert "counting…" in shown and "instant" not in shown


async def test_a_quick_estimate_gives_way_to_the_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui_fs.screens.preview.estimates", lambda _: iter((MAIL_ESTIMATE,)))
    shown = await look(preview(), counted(maildrop_survey()))
    assert "1,204,112 files" in shown and "90 % range" not in shown


async def test_a_count_above_the_quick_estimate_is_what_is_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    few = replace(MAIL_ESTIMATE, entries=Interval(9_000, 10_000, 11_000))
    monkeypatch.setattr("tui_fs.screens.preview.estimates", lambda _: iter((few,)))
    shown = await look(preview(), counted(maildrop_survey(finished=False)))
    assert "~1,204,112 files" in shown and "90 % range" not in shown


@pytest.mark.parametrize(
    ("settings", "said"),
    [(Settings(), "nobody may"), (Settings(read_only=True), "--read-only")],
)
@pytest.mark.slow
async def test_what_could_not_be_measured_is_said(
    settings: Settings, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def measure(target: str, _: Callable[[], bool]) -> str:
        asked.append(target)
        return "nobody may"

    monkeypatch.setattr("tui_fs.screens.preview.needs_measuring", lambda *_: True)
    monkeypatch.setattr("tui_fs.screens.preview.measure", measure)
    screen = PreviewScreen((MAILDROP,), settings)
    assert said in await look(screen, then(counted(maildrop_survey()), shows(said)))
    assert asked == ([] if settings.read_only else [MAILDROP])


@pytest.mark.slow
async def test_preview_without_rsync(
    picture: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_rsync(strategy: object) -> tuple[dict[str, str], tuple[str, ...]]:
        tools, _ = _all_tools(strategy)
        if "rsync" in tools:
            return {}, ("rsync is not installed; it comes with the package rsync",)
        return tools, ()

    monkeypatch.setattr("tui_fs.job.planning.tools_of", without_rsync)
    acts = then(counted(maildrop_survey()), keys("j", "j", "j"))
    assert await look_at_all_sizes(preview(), acts) == picture


async def test_preview_refused(picture: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> Target:
        raise Refused(f"{MAILDROP} is a mount point.", "Unmount it first.", rule="mount-point")

    monkeypatch.setattr("tui_fs.screens.preview.check_targets", refuse)
    assert await look_at_all_sizes(preview(), shows("Refused")) == picture


def make_timers_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a second pass between any two statements of a timer for one tick."""
    late_s = count()

    def get_time() -> float:
        timer = sys._getframe(1).f_locals.get("self")
        return next(late_s) if getattr(timer, "_repeat", None) == 0 else time.monotonic()

    monkeypatch.setattr("textual._time.get_time", get_time)


async def test_a_timer_of_a_screen_runs_even_if_it_is_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    screen, runs = BaseScreen(Settings()), list[int]()
    async with Host(screen).run_test() as pilot:
        make_timers_late(monkeypatch)
        screen.set_timer(0.01, partial(runs.append, 1))
        await until(pilot, lambda: runs == [1])


async def test_a_resize_is_not_lost_on_a_busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    app = Host(preview())
    async with app.run_test(size=SMALL) as pilot:
        await counted(maildrop_survey())(pilot)
        await settle(pilot)
        make_timers_late(monkeypatch)
        for size in (LARGE, SMALL):
            await pilot.resize_terminal(*size)
            await until(pilot, partial(has_size, pilot, size))


async def test_a_refused_deletion_leaves_no_recommendation_on_the_screen() -> None:
    async def refuse(pilot: Pilot[None]) -> None:
        error = Refused("The directory was replaced.", "Check it.", rule="changed")
        pilot.app.screen.post_message(Failed(error))

    shown = await look(preview(), then(counted(maildrop_survey()), refuse, shows("Refused")))
    assert "recommended" not in shown and "/usr/bin/rm" not in shown


@pytest.mark.slow
async def test_enter_accepts_the_options_and_nothing_behind_them() -> None:
    act = then(counted(maildrop_survey()), keys("o", "space", "enter"))
    shown = await look(preview(), act)
    assert "keep directory [x]" in shown
    assert "for ever?" not in shown


@pytest.mark.slow
async def test_every_option_has_a_field_on_a_narrow_terminal() -> None:
    async with Host(preview()).run_test(size=(40, 15)) as pilot:
        await settle(pilot)
        await counted(maildrop_survey())(pilot)
        await settle(pilot)
        await pilot.press("o")
        await settle(pilot)
        fields = list(pilot.app.screen.query(Input))
        assert fields and all(field.size.width >= 8 for field in fields)
        for field in fields:
            field.focus()
            await settle(pilot)
            assert pilot.app.screen.region.contains_region(field.region), field.id


@pytest.mark.slow
async def test_the_confinement_is_chosen_among_the_options() -> None:
    to_the_choice, choose_always = ("tab",) * 7, ("enter", "down", "enter")
    act = then(counted(maildrop_survey()), keys("o", *to_the_choice, *choose_always, "ctrl+s"))
    assert "confine always" in await look(preview(), act)


@pytest.mark.slow
async def test_confirm_a_small_directory(
    picture: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui_fs.screens.preview.why_type_name", lambda *_: None)
    acts = then(counted(maildrop_survey()), keys("enter"))
    assert await look_at_all_sizes(preview(), acts) == picture


@pytest.mark.slow
async def test_read_only_never_asks() -> None:
    sentence = "Deleting is switched off: --read-only."

    async def answered(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: screen_text(pilot.app).count(sentence) == 2)

    screen = PreviewScreen((MAILDROP,), Settings(read_only=True))
    shown = await look(screen, then(counted(maildrop_survey()), shows(sentence)))
    assert shown.count(sentence) == 1
    screen = PreviewScreen((MAILDROP,), Settings(read_only=True))
    shown = await look(screen, then(counted(maildrop_survey()), keys("enter"), answered))
    assert "Delete permanently?" not in shown and "confirm…" not in shown
    assert "counted · read-only" in shown


async def test_a_job_that_deleted_only_a_share_is_resumed_on_the_command_line() -> None:
    died = replace(plan(), options=Options(filters=Filters(share=Share(1, 3))))
    screen = PreviewScreen((MAILDROP,), Settings(), died)
    shown = await look(screen, then(keys("enter"), shows("cannot count that")))
    assert "Delete permanently?" not in shown


@pytest.fixture
def alive(monkeypatch: pytest.MonkeyPatch) -> None:
    """A supervisor is at work."""
    monkeypatch.setattr("tui_fs.job.view.has_supervisor", lambda _: True)


@pytest.mark.parametrize(
    "name, asked",
    (("cafe\u0301", "Type the word below,"), ("caf\u00e9", "Type the directory's name,")),
)
@pytest.mark.slow
async def test_preview_asks_for_a_word_where_the_name_cannot_be_typed(
    monkeypatch: pytest.MonkeyPatch, name: str, asked: str
) -> None:
    path = PathStr(f"/srv/{name}")
    targets = (Target(path, Pin(1, 2, 3)),)
    monkeypatch.setattr("tui_fs.screens.preview.check_targets", lambda *_, **__: targets)
    survey = replace(maildrop_survey(), path=path)
    screen = PreviewScreen((path,), Settings())
    shown = await look(screen, then(counted(survey), keys("enter"), shows("Delete permanently?")))
    assert asked in shown


HIDDEN = MissingFigure(Figure.PRESSURE, "/proc/pressure/io is masked")
NO_SWAPS = MissingFigure(Figure.SWAP, "/proc/swaps is missing")


@pytest.mark.usefixtures("alive")
@pytest.mark.parametrize("size", (SMALL, LARGE))
async def test_run_names_a_figure_that_is_missing_and_why(size: tuple[int, int]) -> None:
    events = [replace(STARTED, missing_figures=(HIDDEN,)), *RUNNING[1:]]
    events = [
        replace(event, io_pressure_percent=None) if isinstance(event, Sampled) else event
        for event in events
    ]
    shown = await look(RunScreen(record(events), Settings()), shows("Unknown: disk"), size)
    assert HIDDEN.sentence in shown
    assert "io pressure" not in shown


async def test_preview_names_a_figure_that_is_missing_and_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tui_fs.job.planning.missing_figures", lambda _: (NO_SWAPS,))
    shown = await look(preview(), counted(maildrop_survey()), LARGE)
    assert NO_SWAPS.sentence in shown


RUNS: dict[str, tuple[Sequence[Event], Act]] = {
    "starting": ([STARTED], shows("deleting")),
    "running": (RUNNING, shows("649,632")),
    "paused": (PAUSED, shows("PAUSED")),
    "with failures": (FAILING, shows("failed 2")),
    "errors": (FAILING, then(shows("failed 2"), keys("x"))),
    "by the engine": (BY_THE_ENGINE, shows("649,632")),
    "a call": (BY_THE_ENGINE, then(shows("649,632"), keys("enter"))),
    "asks before it cancels": (RUNNING, then(shows("649,632"), keys("c"))),
    "help": (RUNNING, then(shows("649,632"), keys("question_mark"))),
}


@pytest.mark.usefixtures("alive")
@pytest.mark.parametrize("state", RUNS)
@pytest.mark.slow
async def test_run(state: str, picture: SnapshotAssertion) -> None:
    events, act = RUNS[state]
    screen = RunScreen(record(events), Settings())
    assert await look_at_all_sizes(screen, act) == picture


REPORTS = {
    "done": ended(Outcome.DONE, "The directory is gone.", 1_204_113, 0),
    "partial": ended(
        Outcome.PARTIAL, "2 entries are left. 1 entry could not be deleted.", 1_204_111, 2
    ),
    "cancelled": ended(
        Outcome.CANCELLED, "Stopped before the end: cancelled by UID 0.", 700_000, 504_113
    ),
    "refused": REFUSED,
    "died": RUNNING,
}


@pytest.mark.parametrize("outcome", REPORTS)
async def test_report(outcome: str, picture: SnapshotAssertion) -> None:
    screen = ReportScreen(record(REPORTS[outcome]), Settings())
    assert await look_at_all_sizes(screen, shows(outcome.upper())) == picture


async def test_report_of_a_miss(picture: SnapshotAssertion) -> None:
    *events, end = REPORTS["partial"]
    assert isinstance(end, JobFinished)
    started = replace(
        STARTED,
        predicted_seconds=(2.0, 4.0, 8.0),
        predicted_measured_at=STARTED.started_at,
        predicted_processes=1,
    )
    busy = replace(end, strategy_wall_s=24.9, machine=MachineUse(2, 49.8, 0.0))
    screen = ReportScreen(record((started, *events[1:], busy)), Settings())
    acts = shows("took longer than predicted")
    assert await look_at_all_sizes(screen, acts) == picture


@pytest.mark.slow
async def test_jobs_empty(picture: SnapshotAssertion) -> None:
    screen = JobsScreen(Settings())
    assert await look_at_all_sizes(screen, shows("no jobs yet")) == picture


@pytest.mark.slow
async def test_jobs(picture: SnapshotAssertion) -> None:
    for number, events in enumerate(REPORTS.values()):
        folder = record(events, job_id=f"7f3a0{number}")
        os.utime(folder.plan, (number, number))
    screen = JobsScreen(Settings())
    assert await look_at_all_sizes(screen, shows("7f3a04")) == picture


@pytest.mark.slow
@pytest.mark.usefixtures("alive")
@pytest.mark.parametrize("size", [SMALL, LARGE])
async def test_the_progress_of_a_running_job_is_in_the_list(size: tuple[int, int]) -> None:
    record(RUNNING)
    shown = await look(JobsScreen(Settings()), shows("running"), size)
    assert "running 53 %" in shown
    assert "5.8 s–8.0 s" in shown
    assert ("649,632" in shown) == (size == LARGE)


@pytest.mark.usefixtures("alive")
async def test_the_state_is_whole_while_the_time_left_is_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    record(RUNNING)
    monkeypatch.setattr(JobSummary, "left_s", None)
    assert "running 53 %" in await look(JobsScreen(Settings()), shows("running"), SMALL)


def _pair() -> tuple[JobFolder, JobFolder]:
    """A finished job of rm, and a cancelled one of the engine, which took half of the time."""
    shorter = (*BY_THE_ENGINE, JobFinished(8.6, *_END_OF_THE_SHORTER))
    return record(REPORTS["done"], job_id="7f3a00"), record(shorter, job_id="7f3a01")


_END_OF_THE_SHORTER = (Outcome.CANCELLED, "Cancelled.", 8.2, 649_632, 0, True, 554_481, SPACE, ())


async def test_comparison(picture: SnapshotAssertion) -> None:
    screen = ComparisonScreen(_pair(), Settings())
    assert await look_at_all_sizes(screen, shows("7f3a01")) == picture


async def test_comparison_of_calls(picture: SnapshotAssertion) -> None:
    screen = ComparisonScreen(_pair(), Settings())

    async def act(pilot: Pilot[None]) -> None:
        await wait_for(pilot, "7f3a01")
        await pilot.press("pagedown", "pagedown", "pagedown")

    assert await look(screen, act) == picture


@pytest.mark.parametrize("number", [1, 2])
async def test_a_comparison_is_offered_only_with_two_jobs(number: int) -> None:
    for at in range(number):
        record(REPORTS["done"], job_id=f"7f3a0{at}")
    shown = await look(JobsScreen(Settings()), shows(f"7f3a0{number - 1}"))
    assert ("= compare two" in shown) is (number == 2)


async def test_two_jobs_are_compared_from_the_list() -> None:
    for number in range(3):
        folder = record(REPORTS["done"], job_id=f"7f3a0{number}")
        os.utime(folder.plan, (number, number))
    app = Host(JobsScreen(Settings()))
    async with app.run_test(size=SMALL) as pilot:
        await wait_for(pilot, "7f3a00")
        await pilot.press("equals_sign")
        await wait_for(pilot, "Mark two jobs with space first")
        # One marked, the other under the cursor; the older job is the first.
        await pilot.press("space", "equals_sign")
        await wait_for(pilot, "compare jobs 7f3a01 and 7f3a02")
        await pilot.press("escape")
        await wait_for(pilot, "3 ended")
        # Two marked: the cursor does not count.
        await pilot.press("j", "space", "g", "equals_sign")
        await wait_for(pilot, "compare jobs 7f3a00 and 7f3a02")


async def test_doctor(picture: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch) -> None:
    diagnosis = Diagnosis(
        tools=(
            ToolState("rm", "/usr/bin/rm", "rm (GNU coreutils) 9.1", ("strategy rm",), ""),
            ToolState("rsync", "", "", ("strategy rsync",), "install the package rsync"),
        ),
        tracing=TracingState(
            TraceSource.OUTPUT,
            "counted from the tool's own output.",
            (SourceState(TraceSource.PERF, False, "Kernel counters need root. Run with sudo."),),
        ),
        privileges=Privileges(1000, False, "kernel counters need root"),
        engine=EngineState(True, "tui-fs-engine 0.1.0, /usr/bin/tui-fs-engine"),
        terminal=Terminal("xterm", True, "utf-8"),
        jobs=PathStr("/home/me/.local/state/tui-fs/jobs"),
        logout="a job continues after logout",
        policy="no policy file",
        missing_figures=(HIDDEN,),
        confinement=(
            MechanismState(Mechanism.NAMESPACE, False, "it needs root (CAP_SYS_ADMIN)"),
            MechanismState(Mechanism.LANDLOCK, True, "the tools may only remove"),
        ),
    )
    monkeypatch.setattr("tui_fs.screens.doctor.diagnose", lambda: diagnosis)
    screen = DoctorScreen(Settings())
    assert await look_at_all_sizes(screen, shows("rsync")) == picture


@pytest.mark.usefixtures("alive")
@pytest.mark.slow
async def test_threads_are_asked_for_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    monkeypatch.setattr("tui_fs.screens.run.send", lambda _, command: sent.append(str(command)))
    for threads in (0, 2, 8):
        paced = PaceChanged(8.3, Pace(threads=threads))
        screen = RunScreen(record((*BY_THE_ENGINE, paced), job_id=f"7f3b0{threads}"), Settings())
        await look(screen, then(shows("649,632"), keys("t")))
    assert sent == ["threads 1", "threads 4", "threads auto"]


PATHS = tuple(PathStr(f"/srv/app-{number}/node\n_modules") for number in range(300))
STARTED_SEVERAL = replace(STARTED, targets=PATHS)


@pytest.fixture
def several(monkeypatch: pytest.MonkeyPatch) -> PreviewScreen:
    """Return the preview of three hundred directories."""
    targets = tuple(Target(path, Pin(1, number, 3)) for number, path in enumerate(PATHS))
    monkeypatch.setattr("tui_fs.screens.preview.check_targets", lambda *_, **__: targets)
    monkeypatch.setattr("tui_fs.screens.preview.keep_open", lambda _: nullcontext())
    monkeypatch.setattr("tui_fs.screens.preview.why_type_name", lambda *_: "they are many")
    return PreviewScreen(PATHS, Settings())


async def counted_together(pilot: Pilot[None]) -> None:
    """Post what the survey of all of them says."""
    survey = replace(maildrop_survey(), path=PathStr("/srv"), largest=())
    prediction = forecast(PATHS, survey, Options())
    post_forecast(pilot.app.screen, survey, prediction)


async def test_several_preview(several: PreviewScreen, picture: SnapshotAssertion) -> None:
    assert await look_at_all_sizes(several, counted_together) == picture


@pytest.mark.slow
async def test_several_confirmation(several: PreviewScreen, picture: SnapshotAssertion) -> None:
    acts = then(counted_together, keys("enter"))
    assert await look_at_all_sizes(several, acts) == picture


@pytest.mark.slow
async def test_the_word_is_no_name(several: PreviewScreen) -> None:
    shown = await look(several, then(counted_together, keys("enter", *"node", "enter")))
    assert "delete 300 directories in /srv" in shown
    assert "type delete to confirm" in shown


async def test_one_target_is_not_listed() -> None:
    screen = PreviewScreen((MAILDROP,), Settings())
    await look(screen, counted(maildrop_survey()))
    assert not screen.query("#targets")


@pytest.mark.usefixtures("alive")
async def test_several_run(picture: SnapshotAssertion) -> None:
    events = (STARTED_SEVERAL, *RUNNING[1:])
    screen = RunScreen(record(events), Settings())
    assert await look_at_all_sizes(screen, shows("649,632")) == picture


async def test_several_report(picture: SnapshotAssertion) -> None:
    *events, finished = ended(Outcome.PARTIAL, "2 entries are left.", 1_204_111, 2)
    assert isinstance(finished, JobFinished)
    command = (("/usr/bin/rm", "-rf", "--one-file-system", "--", *PATHS),)
    begun = replace(STARTED_SEVERAL, command=command)
    end = replace(finished, left=PATHS[7:12])
    screen = ReportScreen(record((begun, *events[1:], end)), Settings())
    assert await look_at_all_sizes(screen, shows("PARTIAL")) == picture


@pytest.mark.slow
async def test_the_report_waits_until_the_help_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tui_fs.job.view.has_supervisor", lambda _: True)
    folder = record(RUNNING)
    app = Host(RunScreen(folder, Settings(0.05)))
    async with app.run_test(size=SMALL) as pilot:
        await shows("649,632")(pilot)
        await pilot.press("question_mark")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))
        events = ended(Outcome.DONE, "The directory is gone.", 1_204_113, 0)
        writer = JournalWriter(folder.journal)
        for event in events[len(RUNNING) :]:
            writer.write(event)
        monkeypatch.setattr("tui_fs.job.view.has_supervisor", lambda _: False)
        for _ in range(10):
            await pilot.pause(0.05)
        assert isinstance(app.screen, HelpScreen)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, ReportScreen))
        await settle(pilot)


@pytest.mark.usefixtures("alive")
async def test_a_job_that_is_being_cancelled_is_not_cancelled_again() -> None:
    events = [*RUNNING, CancelRequested(9.0, "cancelled by UID 0")]
    app = Host(RunScreen(record(events), Settings()))
    async with app.run_test(size=SMALL, notifications=True) as pilot:
        await wait_for(pilot, "cancelling")
        await pilot.press("c")
        await wait_for(pilot, "being cancelled already")
        assert not isinstance(app.screen, ConfirmDialog)


@pytest.mark.slow
@pytest.mark.usefixtures("alive")
@pytest.mark.parametrize("is_paused", [False, True])
async def test_the_question_before_cancelling_does_not_advise_a_second_pause(
    is_paused: bool,
) -> None:
    app = Host(RunScreen(record(PAUSED if is_paused else RUNNING), Settings()))
    async with app.run_test(size=SMALL, notifications=True) as pilot:
        await wait_for(pilot, "PAUSED" if is_paused else "649,632")
        await pilot.press("c")
        await wait_for(pilot, "No, do not cancel")
        assert ("press p" in screen_text(app)) != is_paused


@pytest.mark.slow
@pytest.mark.usefixtures("alive")
async def test_a_narrow_question_shows_both_answers_whole() -> None:
    app = Host(RunScreen(record(RUNNING), Settings()))
    async with app.run_test(size=(40, 15)) as pilot:
        await wait_for(pilot, "deleting")
        await pilot.press("c")
        await wait_for(pilot, "No, do not cancel")
        await settle(pilot)
        lines = screen_text(app).splitlines()
        assert "Cancel the job" in lines[-3]
        assert "No, do not cancel" in lines[-4]
        await pilot.press("tab", "shift+tab", "escape")
        assert not isinstance(app.screen, ConfirmDialog)


@pytest.mark.usefixtures("alive")
async def test_a_job_that_ends_while_its_question_is_open_names_no_command() -> None:
    app = Host(RunScreen(record(RUNNING), Settings()))
    async with app.run_test(size=SMALL, notifications=True) as pilot:
        await wait_for(pilot, "649,632")
        await pilot.press("c")
        await until(pilot, lambda: isinstance(app.screen, ConfirmDialog))
        app.screen.dismiss(True)
        await wait_for(pilot, "Job 7f3a01 does not answer: it is not running.")


@pytest.mark.usefixtures("alive")
async def test_space_that_others_use_up_is_no_negative_gain() -> None:
    less = Space(SPACE.free_bytes - (2 << 20), 1_000_000)
    events = [
        replace(event, space=less) if isinstance(event, Sampled) else event for event in RUNNING
    ]
    shown = await look(RunScreen(record(events), Settings()), shows("649,632"))
    assert "free space no gain yet" in shown
