"""The lab's screens in every state, from a hand-made run: list, running, result, older runs."""

import os
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.conftest import DEADLINE_S
from tests.ui.lab_screens import (
    a_quiet_lab,
    keep,
    look,
    looks,
    played,
    prepared,
)
from tests.ui.recorded import Host, screen_text, settle, until, wait_for
from tests.ui.recorded_lab import (
    DONE,
    EXPERIMENT,
    RUNNING,
    PlayedRun,
    store,
)
from tests.ui.test_screens import LARGE, SMALL
from tui_fs.lab.experiment import Scale
from tui_fs.lab.results import Ending, RunEnded
from tui_fs.model.errors import BadInput, Missing
from tui_fs.screens.base import HelpScreen, Settings
from tui_fs.screens.browser.screen import BrowserScreen
from tui_fs.screens.jobs import JobsScreen
from tui_fs.screens.lab.experiments import LabRunsScreen, LabScreen
from tui_fs.screens.lab.result import LabResultScreen, page_line
from tui_fs.screens.lab.run import LabRunScreen

__all__ = ["a_quiet_lab", "played", "prepared"]


def lab(target: str = "/srv/spool") -> LabScreen:
    return LabScreen(target, Settings())


async def test_list_before_the_first_run(picture: SnapshotAssertion) -> None:
    assert await look(lab(), first="0 run", at_sizes=True) == picture


async def test_list_with_a_run(picture: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(monkeypatch, {"rsync-vs-rm-1": DONE})
    assert await look(lab(), first="1 run", at_sizes=True) == picture


async def test_a_whole_run_goes_before_a_later_one_that_was_cancelled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cancelled = (*RUNNING, RunEnded(Ending.CANCELLED, 1.0))
    keep(monkeypatch, {"rsync-vs-rm-2": cancelled, "rsync-vs-rm-1": DONE})
    assert "1 holds here, 1 does not" in await look(lab(), first="1 run")
    keep(monkeypatch, {"rsync-vs-rm-3": cancelled})
    assert "1 does not hold, 2 cannot be tested" in await look(lab(), first="1 run")


async def test_list_of_an_experiment_on_a_tree_of_ones_own(picture: SnapshotAssertion) -> None:
    assert await look(lab(), "j", first="0 run", at_sizes=True) == picture


async def test_a_run_is_asked_for_with_what_it_needs(
    picture: SnapshotAssertion, prepared: list[tuple[str, str, str]]
) -> None:
    assert await look(lab(), "enter", first="0 run", at_sizes=True) == picture
    assert prepared == [("rsync-vs-rm", "small", "")]


@pytest.mark.usefixtures("prepared")
@pytest.mark.slow
async def test_a_question_is_withdrawn() -> None:
    asked = await look(lab(), "enter", first="0 run")
    assert "enter run  esc cancel" in asked and "all runs" not in asked
    for key in ("j", "escape"):
        shown = await look(lab(), "enter", key, first="0 run")
        assert "Run rsync-vs-rm" not in shown and "experiments, 0 run" in shown
        assert "all runs" in shown


@pytest.mark.slow
async def test_the_published_scale_and_the_target_are_handed_on(
    prepared: list[tuple[str, str, str]],
) -> None:
    await look(lab(), "P", "j", "P", first="0 run")
    assert prepared == [
        ("rsync-vs-rm", "published", ""),
        ("race-your-strategies", "published", "/srv/spool"),
    ]


async def test_without_a_directory_there_is_no_race(
    prepared: list[tuple[str, str, str]],
) -> None:
    shown = await look(lab(""), "j", "enter", first="0 run")
    assert "Open the lab from the browser" in shown
    assert prepared == []


async def test_what_is_in_the_way_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise Missing("[b]rsync[/b] is not installed.")

    monkeypatch.setattr("tui_fs.screens.lab.experiments.prepare", refuse)
    shown = await look(lab(), "enter", "enter", first="0 run")
    assert "[b]rsync[/b] is not installed." in shown


@pytest.mark.usefixtures("prepared")
@pytest.mark.slow
async def test_run_from_question_to_result(played: PlayedRun) -> None:
    app = Host(lab())
    async with app.run_test(size=SMALL) as pilot:
        await wait_for(pilot, "0 run")
        await pilot.press("enter")
        await wait_for(pilot, "Run rsync-vs-rm at small scale?")
        await pilot.press("enter")
        await wait_for(pilot, "running rsync, 1,000 files")
        played.goes_on.set()
        await until(pilot, lambda: isinstance(app.screen, LabResultScreen))
        await wait_for(pilot, "does not hold here")
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, LabScreen))
    assert played.cleared.is_set() and not played.cancelled


def run_screen() -> LabRunScreen:
    return LabRunScreen(EXPERIMENT, Scale.SMALL, "", Settings())


@pytest.mark.usefixtures("played")
@pytest.mark.slow
async def test_running(picture: SnapshotAssertion) -> None:
    assert await look(run_screen(), first="62.0 %", at_sizes=True) == picture


@pytest.mark.usefixtures("played")
@pytest.mark.slow
async def test_why_a_step_is_not_done_is_said_where_the_cursor_stands() -> None:
    shown = await look(run_screen(), "g", *"jjjjjj", first="62.0 %")
    assert "find is not installed" in shown


@pytest.mark.usefixtures("played")
@pytest.mark.slow
async def test_running_asks_before_it_cancels(picture: SnapshotAssertion) -> None:
    assert await look(run_screen(), "c", first="62.0 %", at_sizes=True) == picture


@pytest.mark.slow
async def test_cancelling_clears_away_and_goes_back(
    played: PlayedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui_fs.widgets.confirm_dialog.IGNORED_KEYS_S", 0.0)
    app = Host(lab())
    async with app.run_test(size=SMALL, notifications=True) as pilot:
        await pilot.pause()
        app.push_screen(run_screen())
        await wait_for(pilot, "62.0 %")
        await pilot.press("escape", "l", "enter")
        await until(pilot, lambda: isinstance(app.screen, LabScreen))
        assert "Everything the run" in screen_text(app)
        assert played.cancelled and played.cleared.is_set()


@pytest.mark.parametrize("key", ["ctrl+q", "L"])
@pytest.mark.slow
async def test_leaving_the_program_ends_the_run(played: PlayedRun, key: str) -> None:
    app = Host(run_screen())
    async with app.run_test(size=SMALL) as pilot:
        await wait_for(pilot, "62.0 %")
        await pilot.press("J")
        await pilot.pause()
        await pilot.press(key)
    assert played.cleared.wait(DEADLINE_S) and played.cancelled


@pytest.mark.slow
async def test_a_run_that_ends_behind_another_screen_waits(played: PlayedRun) -> None:
    app = Host(run_screen())
    async with app.run_test(size=SMALL) as pilot:
        await wait_for(pilot, "62.0 %")
        await pilot.press("J")
        await until(pilot, lambda: isinstance(app.screen, JobsScreen))
        played.goes_on.set()
        await until(pilot, played.cleared.is_set)
        assert isinstance(app.screen, JobsScreen)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, LabResultScreen))


async def test_why_a_run_cannot_begin_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise BadInput("There is no [b]room[/b].")

    monkeypatch.setattr("tui_fs.screens.lab.run.LabRun", refuse)
    app = Host(lab())
    async with app.run_test(size=SMALL, notifications=True) as pilot:
        await pilot.pause()
        app.push_screen(run_screen())
        await wait_for(pilot, "There is no [b]room[/b].")
        assert isinstance(app.screen, LabScreen)


def result(folder: str) -> LabResultScreen:
    return LabResultScreen(EXPERIMENT, folder, Settings())


@pytest.mark.slow
async def test_result(picture: SnapshotAssertion) -> None:
    pages = ("claims", "tables", "calls", "flames", "machine")
    keys = map(str, range(1, len(pages) + 1))
    shown = await looks(result(store(DONE)), *keys, first="cannot be tested", at_sizes=True)
    for page, text in zip(pages, shown, strict=True):
        assert text == picture(name=page)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("width", "line"),
    [(40, " 1  ›2 tables   3   4   5"), (80, " 1 claims  ›2 tables   3 bars")],
)
def test_the_keys_of_all_pages_fit_a_narrow_line(width: int, line: str) -> None:
    pieces = page_line(("claims", "tables", "bars", "calls", "machine"), "tables", width)
    assert "".join(text for _, text in pieces).startswith(line)


async def test_pages_are_turned_with_the_arrows() -> None:
    steps = (("right",), ("left", "h"), "llllll", ("left", "m"))
    tables, first, last, machine = await looks(result(store(DONE)), *steps, first="cannot be")
    assert "rm, 10 files" in tables
    assert "cannot be tested" in first
    assert "A Processor" in last and "A Processor" in machine


@pytest.mark.slow
async def test_other_tables_of_calls_can_be_chosen() -> None:
    steps = ("3", ("right_square_bracket",), ("left_square_bracket", "greater_than_sign"))
    first, other, left = await looks(result(store(DONE)), *steps, first="cannot be")
    assert "< rm, 1,000 files >" in first and "[ rsync, 1,000 files ]" in first
    assert "< rm, 1,000 files >" in other and "[ find, 1,000 files ]" in other
    assert "< find, 1,000 files >" in left and "[ rsync, 1,000 files ]" in left


@pytest.mark.slow
async def test_a_page_scrolls() -> None:
    top, bottom = await looks(result(store(DONE)), "m", "G", first="cannot be")
    assert "find, 1,000 files" not in top
    assert "find, 1,000 files" in bottom and "$ find --option tree" in bottom


@pytest.mark.slow
async def test_the_report_is_written_beside_the_run() -> None:
    folder = store(DONE)
    app = Host(result(folder))
    async with app.run_test(size=SMALL, notifications=True) as pilot:
        await wait_for(pilot, "cannot be tested")
        await pilot.press("e")
        await wait_for(pilot, "report.html")
    with open(os.path.join(folder, "report.html"), encoding="utf-8") as file:
        assert EXPERIMENT.question in file.read()


@pytest.mark.slow
async def test_a_run_that_failed_says_why() -> None:
    ended = RunEnded(Ending.FAILED, 1.0, "[red]no room[/red]")
    shown = await look(result(store((*RUNNING, ended))), first="cannot be")
    assert "! [red]no room[/red]" in shown and "failed !" in shown


async def test_a_run_that_cannot_be_read_says_so(tmp_path: Path) -> None:
    shown = await look(result(str(tmp_path / "none")))
    assert "cannot be read" in " ".join(shown.split())  # a long path breaks the line there


@pytest.mark.slow
async def test_older_runs(picture: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = RunEnded(Ending.CANCELLED, 1.0)
    keep(monkeypatch, {"rsync-vs-rm-2": DONE, "rsync-vs-rm-1": (*RUNNING, ended), "a": RUNNING})
    screen = LabRunsScreen(EXPERIMENT, Settings())
    assert await look(screen, "space", "space", first="3 runs", at_sizes=True) == picture


@pytest.mark.slow
async def test_two_runs_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    keep(monkeypatch, {"rsync-vs-rm-2": DONE, "rsync-vs-rm-1": DONE})
    app = Host(LabRunsScreen(EXPERIMENT, Settings()))
    async with app.run_test(size=LARGE, notifications=True) as pilot:
        await wait_for(pilot, "2 runs")
        await pilot.press("equals_sign")
        await wait_for(pilot, "Mark two runs")
        await pilot.press("space", "space", "equals_sign")
        await wait_for(pilot, "comparison of")
        await wait_for(pilot, "first: 1; second: 2")


@pytest.mark.slow
async def test_the_lab_opens_from_the_browser_and_once() -> None:
    app = Host(BrowserScreen("/srv/spool", Settings()))
    async with app.run_test(size=SMALL) as pilot:
        await pilot.pause()
        await pilot.press("L")
        await until(pilot, lambda: isinstance(app.screen, LabScreen))
        await pilot.press("j")
        await wait_for(pilot, "/srv/spool")
        await pilot.press("J")
        await until(pilot, lambda: isinstance(app.screen, JobsScreen))
        await pilot.press("L")
        await until(pilot, lambda: isinstance(app.screen, LabScreen))
        assert sum(isinstance(screen, LabScreen) for screen in app.screen_stack) == 1


@pytest.mark.slow
async def test_keys_that_choose_tables_are_named_on_their_page_only() -> None:
    app = Host(result(store(DONE)))
    async with app.run_test(size=LARGE) as pilot:
        await wait_for(pilot, "cannot be tested")
        for key, is_named in (("1", False), ("3", True), ("2", False)):
            await pilot.press(key)
            await settle(pilot)
            assert ("[ ] < > tables" in screen_text(app)) == is_named
            await pilot.press("question_mark")
            await until(pilot, lambda: isinstance(app.screen, HelpScreen))
            lines = [line.split() for line in screen_text(app).splitlines()]
            assert (["│", "]"] in [words[:2] for words in lines]) == is_named
            await pilot.press("escape")


async def test_help_names_the_pages_that_there_are() -> None:
    app = Host(result(store(DONE)))
    async with app.run_test(size=LARGE) as pilot:
        await wait_for(pilot, "cannot be tested")
        await pilot.press("9")
        await pilot.press("question_mark")
        await wait_for(pilot, "Page 1, 2, 3, 4, 5")
        assert "1–5" in screen_text(app)
        assert "6" not in screen_text(app).partition("Page 1")[2].partition("\n")[0]
