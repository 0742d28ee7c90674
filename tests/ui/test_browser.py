"""The browser: moving, marking, querying the survey, returning."""

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from msgspec.structs import replace
from textual import events
from textual.pilot import Pilot
from textual.widgets import Input

from tests.ui.recorded import (
    MAILDROP,
    RUNNING,
    SPOOL,
    Host,
    record,
    screen_text,
    settle,
    until,
    wait_for,
)
from tests.ui.recorded_tree import CACHES, DETAILS, NOW_S, SESSIONS, SilentSurvey, TreeSurvey
from tests.ui.test_browser_parts import JOB
from tests.ui.test_screens import a_quiet_machine
from tui_fs.job.store import JobFolder
from tui_fs.job.view import JobSummary
from tui_fs.model.outcome import JobState
from tui_fs.model.paths import PathStr
from tui_fs.model.strategy import Filters
from tui_fs.model.survey import EntryKind, Listing, Match, Order, Sorting
from tui_fs.model.units import bytes_iec
from tui_fs.screens.base import Settings
from tui_fs.screens.browser.screen import BrowserScreen, ListingUpdated
from tui_fs.screens.browser.side_screens import (
    FindingsScreen,
    LargestFilesScreen,
    MarksScreen,
    RankingScreen,
)
from tui_fs.screens.preview import PreviewScreen
from tui_fs.screens.run import RunScreen
from tui_fs.survey.process import SearchRequest, SearchUpdate, Update
from tui_fs.widgets.bar_table import BarTable

__all__ = ["a_quiet_machine"]

pytestmark = pytest.mark.usefixtures("answering")


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Surveys answer at once."""
    monkeypatch.setattr("tui_fs.screens.survey_client.SurveyProcess", TreeSurvey)
    TreeSurvey.begun.clear()
    yield
    assert all(survey.is_stopped for survey in TreeSurvey.begun), "a survey runs on unseen"


@pytest.fixture
def previewed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Collect the targets of all previews; the word "file" follows a single file."""
    targets: list[tuple[str, ...]] = []

    def preview(
        paths: tuple[str, ...],
        settings: Settings,
        *,
        allows_file: bool = False,
        **changes: Any,
    ) -> PreviewScreen:
        targets.append((*paths, "file") if allows_file else paths)
        return PreviewScreen(paths, settings, allows_file=allows_file, **changes)

    monkeypatch.setattr("tui_fs.screens.preview.PreviewScreen", preview)
    return targets


class Browsing:
    """The browser, opened on the spool directory."""

    def __init__(self, pilot: Pilot[None], screen: BrowserScreen) -> None:
        self.pilot, self.screen = pilot, screen

    async def press(self, *keys: str) -> str:
        """Press keys; return what is to be seen then."""
        for key in keys:
            await self.pilot.press(key)
            await settle(self.pilot)
        return screen_text(self.pilot.app)

    async def sees(self, words: str) -> None:
        """Wait until some words are shown."""
        await wait_for(self.pilot, words)

    @property
    def marked(self) -> tuple[str, ...]:
        return tuple(self.screen.marks)

    @property
    def survey(self) -> TreeSurvey:
        """The one that runs."""
        return TreeSurvey.begun[-1]


@asynccontextmanager
async def browsing(imported: str | None = None) -> AsyncIterator[Browsing]:
    """Open the browser on the spool directory."""
    screen = BrowserScreen(SPOOL, Settings(interval_s=0), imported)
    async with Host(screen).run_test(size=(80, 24), notifications=True) as pilot:
        browser = Browsing(pilot, screen)
        await browser.sees("maildrop/")
        yield browser


async def test_keys_that_are_typed_before_the_browser_is_drawn_do_no_harm() -> None:
    app = Host(BrowserScreen(SPOOL, Settings(interval_s=0)))
    async with app.run_test(size=(80, 24)) as pilot:
        early = BrowserScreen(SPOOL, Settings(interval_s=0))
        app.push_screen(early)
        for key in ("f", "slash", "colon"):
            app.post_message(events.Key(key, None))
        await settle(pilot)
        await pilot.press("escape")
        await settle(pilot)
        await pilot.press("f", *"*.log", "enter")
        await settle(pilot)
        assert early.filters.name_glob == "*.log"


async def test_the_key_line_shows_only_what_is_no_text_while_a_field_is_open() -> None:
    async with browsing() as browser:
        for key in ("f", "slash", "colon"):
            await browser.press(key)
            await browser.sees("esc close the field")
            line = screen_text(browser.pilot.app).splitlines()[-1]
            assert "d delete" not in line
            assert ("tab complete" in line) == (key == "colon")
            await browser.press("escape")
            await browser.sees("d delete")


async def test_a_list_that_is_not_known_yet_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui_fs.screens.survey_client.SurveyProcess", SilentSurvey)
    async with Host(BrowserScreen(SPOOL, Settings(interval_s=0))).run_test() as pilot:
        await settle(pilot)
        for key in ("tab", "b"):
            await pilot.press(key)
            await wait_for(pilot, "The directory has not answered yet.")
            await pilot.press("j")


@pytest.mark.slow
async def test_space_marks_and_goes_down_also_from_the_first_row() -> None:
    async with browsing() as browser:
        for key in (None, "b"):
            await browser.press("u", *([key] if key else []))
            rows = browser.pilot.app.screen.query_one(BarTable)
            keys = [rows.cursor_row.key if rows.cursor_row else ""]
            await browser.press("space")
            keys.append(rows.cursor_row.key if rows.cursor_row else "")
            assert keys[0] != keys[1]
            assert len(browser.marked) == 1
            assert browser.marked[0].endswith(keys[0])


async def test_keys_that_follow_a_mark_at_once_act_on_the_mark(
    previewed: list[tuple[str, ...]],
) -> None:
    async with browsing() as browser:
        rows = browser.screen.query_one(BarTable)
        first = rows.cursor_row
        # As when "space d" arrives over a slow line in one packet: no message is handled between.
        rows.action_toggle_mark()
        browser.screen.action_delete()
        await settle(browser.pilot)
        assert first is not None
        assert [[path.rsplit("/", 1)[1] for path in paths] for paths in previewed] == [[first.key]]


async def test_counts_that_arrive_with_the_first_space_leave_the_cursor_below() -> None:
    async with browsing() as browser:
        # The counts are drawn before any message about the key press is handled.
        rows = browser.screen.query_one(BarTable)
        first = rows.cursor_row
        rows.action_toggle_mark()
        browser.screen.refresh_rows()
        assert first is not None and rows.cursor_row is not None
        assert rows.cursor_row.key != first.key
        await settle(browser.pilot)
        await browser.press("space")
        assert len(browser.marked) == 2


@pytest.mark.slow
async def test_entering_and_leaving_asks_the_same_survey() -> None:
    async with browsing() as browser:
        await browser.press("j", "enter")
        await browser.sees("two/")
        await browser.press("h")
        await browser.sees("› ")
        assert "›        61,002      3.0 MiB  ▏           <1 %  sessions/" in await browser.press()
        assert len(TreeSurvey.begun) == 1
        assert browser.survey.asked == [f"show {SPOOL}", f"show {SESSIONS}", f"show {SPOOL}"]


@pytest.mark.slow
async def test_going_above_the_surveyed_directory_asks_before_it_surveys_the_one_above() -> None:
    async with browsing() as browser:
        assert "/srv is not in the tree that was counted" in await browser.press("h")
        # What is pressed too often or in a hurry means No
        for key in ("h", "left", "enter", "escape", "space"):
            await browser.press(key)
            assert isinstance(browser.pilot.app.screen, BrowserScreen)
            assert len(TreeSurvey.begun) == 1
            await browser.press("left")
        await browser.press("y")
        await browser.sees("spool/")
        first, second = TreeSurvey.begun
        assert first.is_stopped
        assert second.paths == ("/srv",)


@pytest.mark.slow
async def test_what_a_survey_leaves_out_is_surveyed_after_a_question() -> None:
    async with browsing() as browser:
        assert "Count another directory?" in await browser.press("j", "j", "enter")
        assert len(TreeSurvey.begun) == 1
        await browser.press("y")
        await browser.pilot.pause()
        assert TreeSurvey.begun[-1].paths == ("/srv/spool/a[",)


@pytest.mark.slow
async def test_only_directories_are_marked() -> None:
    async with browsing() as browser:
        shown = await browser.press("G", "space")
        assert "Only directories" in shown
        assert browser.marked == ()


async def test_highlighted_file_is_previewed(previewed: list[tuple[str, ...]]) -> None:
    async with browsing() as browser:
        await browser.press("G", "d")
        assert len(previewed) == 1
        path, kind = previewed[0]
        assert os.path.dirname(path) == SPOOL
        assert kind == "file"


async def test_a_file_that_cannot_be_marked_stays_the_one_that_d_previews(
    previewed: list[tuple[str, ...]],
) -> None:
    async with browsing() as browser:
        await browser.press("S", "g")
        rows = browser.screen.query_one(BarTable)
        file = rows.cursor_row
        assert file is not None
        assert "d deletes a single file" in await browser.press("space")
        assert rows.cursor_row == file
        await browser.press("d")
        assert [(os.path.basename(path), kind) for path, kind in previewed] == [(file.key, "file")]


async def test_largest_files_are_listed_and_previewed(previewed: list[tuple[str, ...]]) -> None:
    async with browsing() as browser:
        shown = await browser.press("B")
        assert isinstance(browser.pilot.app.screen, LargestFilesScreen)
        size, path = DETAILS.largest_files[0]
        assert "largest files in /srv/spool" in shown
        assert bytes_iec(size) in shown
        await browser.press("d")
        assert previewed == [(path, "file")]
        await browser.press("escape", "enter")
        assert browser.screen.path == os.path.dirname(path)


@pytest.mark.slow
async def test_marks_stay_elsewhere_and_go_at_a_key() -> None:
    async with browsing() as browser:
        await browser.press("j", "enter")
        await browser.sees("two/")
        await browser.press("space")
        await browser.press("h")
        await browser.sees("maildrop/")
        assert "1 marked · 302 entries · 600.0 KiB" in await browser.press()
        await browser.press("u")
        assert browser.marked == ()


async def test_all_of_a_name_are_marked() -> None:
    async with browsing() as browser:
        await browser.press("N")
        await browser.sees("2 directories named maildrop")
        assert browser.survey.asked[-1] == "name maildrop"
        assert browser.marked == CACHES
        assert "2 marked · the preview counts them" in await browser.press()


@pytest.mark.slow
async def test_d_previews_the_marked_directories_or_else_the_highlighted_one() -> None:
    async with browsing() as browser:
        await browser.press("d")
        assert isinstance(preview := browser.pilot.app.screen, PreviewScreen)
        assert preview._paths == (MAILDROP,)
        await browser.press("escape", "N")
        await browser.sees("2 marked")
        seen: list[tuple[str, ...]] = []
        browser.pilot.app.push_screen = lambda screen, *_: seen.append(screen._paths)  # type: ignore
        await browser.press("d")
        assert seen == [CACHES]


@pytest.mark.slow
async def test_coming_back_without_a_new_job_counts_nothing_again() -> None:
    async with browsing() as browser:
        browser.survey.count_on(finished=False)
        await browser.sees("counting")
        await browser.press("d")
        first = TreeSurvey.begun[0]
        assert first.asked[-1] == "pause"
        await browser.press("escape")
        assert first.asked[-1] == "resume"
        assert not first.is_stopped


@pytest.mark.slow
async def test_coming_back_after_a_job_counts_again_and_drops_marks_of_what_is_gone() -> None:
    async with browsing() as browser:
        await browser.press("space", "J")
        folder = Path("jobs/7f3a99")
        folder.mkdir(parents=True, mode=0o700)
        folder.parent.chmod(0o700)
        (folder / "plan.json").write_text("{}")
        await browser.press("escape")
        await browser.sees("maildrop/")
        assert len(TreeSurvey.begun) == 2
        assert browser.marked == ()  # /srv/spool is nowhere on this machine


@pytest.mark.slow
async def test_imported_survey_is_read_only() -> None:
    async with browsing("export.json") as browser:
        assert "imported, read-only" in await browser.press()
        assert browser.survey.imported == "export.json"
        assert browser.survey.paths == ()
        for key in ("space", "N", "d"):
            assert "nothing here can be marked or" in await browser.press(key)
        assert browser.marked == ()
        assert isinstance(browser.pilot.app.screen, BrowserScreen)
        assert "top directory of" in await browser.press("h")
        assert len(TreeSurvey.begun) == 1


@pytest.mark.slow
async def test_the_ranking_jumps_and_marks() -> None:
    async with browsing() as browser:
        await browser.press("b")
        assert isinstance(browser.pilot.app.screen, RankingScreen)
        await browser.sees("sessions/one/cache/")
        assert browser.survey.asked[-1] == "rank allocated"
        await browser.press("j", "j", "space")
        assert browser.marked == CACHES[:1]
        await browser.press("g", "j", "j", "enter")
        await browser.sees("/srv/spool/sessions/one ")
        assert browser.survey.asked[-1] == "show /srv/spool/sessions/one"
        assert browser.screen.path == "/srv/spool/sessions/one"


async def test_a_ranking_that_is_being_closed_shows_no_further_update() -> None:
    async with browsing() as browser:
        await browser.press("b")
        ranking = browser.pilot.app.screen
        assert isinstance(ranking, RankingScreen)
        await ranking.remove_children()
        left = browser.pilot.app.pop_screen()
        assert ranking.is_attached
        ranking.on_survey_update()
        await left
        await browser.sees("maildrop/")


@pytest.mark.slow
async def test_the_surveyed_directory_itself_is_jumped_to() -> None:
    async with browsing() as browser:
        await browser.press("j", "enter", "b")
        await browser.sees("./")
        await browser.press("G", "enter")
        await browser.sees("maildrop/")
        assert browser.screen.path == SPOOL
        assert len(TreeSurvey.begun) == 1


@pytest.mark.slow
async def test_findings_jump_and_mark_groups() -> None:
    async with browsing() as browser:
        await browser.press("tab")
        assert isinstance(browser.pilot.app.screen, FindingsScreen)
        assert "Only a group" in await browser.press("space")
        await browser.press("G", "space")
        await browser.sees("2 marked · 420 entries · 840.0 KiB")
        assert browser.survey.asked[-1] == "name cache"
        await browser.press("g", "j", "enter")
        await browser.sees("maildrop/")
        assert "›     1,204,113" in await browser.press()


@pytest.mark.slow
async def test_d_previews_the_directory_of_a_finding_and_comes_back_to_the_list(
    previewed: list[tuple[str, ...]],
) -> None:
    async with browsing() as browser:
        await browser.press("tab", "j", "d")
        assert previewed == [(MAILDROP,)]
        await browser.press("escape")
        assert isinstance(browser.pilot.app.screen, FindingsScreen)
        # The finding of a group is about several directories
        assert "Mark the directories of this name" in await browser.press("G", "d")
        await browser.press("space")
        await browser.sees("2 marked")
        await browser.press("d")
        assert previewed == [(MAILDROP,), CACHES]


@pytest.mark.slow
async def test_d_previews_the_directory_of_a_ranking_but_not_the_surveyed_one(
    previewed: list[tuple[str, ...]],
) -> None:
    async with browsing() as browser:
        await browser.press("b")
        await browser.sees("sessions/one/cache/")
        assert "the surveyed directory" in await browser.press("G", "d")
        await browser.press("g", "d")
        assert previewed == [(MAILDROP,)]


@pytest.mark.slow
async def test_the_screens_beside_go_on_while_it_counts() -> None:
    async with browsing() as browser:
        browser.survey.count_on(finished=False)
        await browser.press("tab")
        await browser.sees("~ so far")
        browser.survey.count_on(finished=True)
        await until(browser.pilot, lambda: "~ so far" not in screen_text(browser.pilot.app))


async def test_messages_of_an_earlier_survey_are_ignored() -> None:
    async with browsing() as browser:
        first = browser.survey
        await browser.press("r")
        await browser.sees("maildrop/")
        late = Update(replace(first.survey, path=PathStr("/late")), Listing(SPOOL))
        message = ListingUpdated(late)
        message.survey_number = 1
        browser.screen.post_message(message)
        await browser.pilot.pause()
        assert "maildrop/" in await browser.press()
        assert browser.screen.client.survey is not late.survey


@pytest.mark.parametrize(
    ("path", "begins"),
    [
        ("/srv/spool", "/srv/spool/"),
        ("/srv/a\\b/c", "/srv/a\\b/c/"),
        ("/srv/a\nb/c", "/srv/"),
        ("/srv/trail ", "/srv/"),
        ("/\udcff", "/"),
    ],
)
async def test_the_path_to_type_begins_with_what_leads_there(path: str, begins: str) -> None:
    async with browsing() as browser:
        browser.screen.open_path_field(path)
        assert browser.screen.query_one("#path-input", Input).value == begins


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Collect the searches; each finds two directories, a file, and more than it lists."""
    searches: list[tuple[str, str]] = []

    class Search:
        def __init__(self, request: SearchRequest) -> None:
            searches.append((request.root, request.text))

        def updates(self) -> Iterator[SearchUpdate]:
            file = Match(PathStr(f"{SPOOL}/maildrop/a.log"), EntryKind.FILE, 4096, NOW_S)
            matches = [Match(path, EntryKind.DIRECTORY, 4096, NOW_S) for path in CACHES]
            yield SearchUpdate((*matches, file), 1_003, 1_274_926, 0, True)

        def stop(self) -> None:
            pass

    monkeypatch.setattr("tui_fs.screens.browser.search.SearchProcess", Search)
    return searches


@pytest.mark.slow
async def test_letters_typed_quickly_after_a_slash_belong_to_the_search(
    searched: list[tuple[str, str]],
) -> None:
    async with browsing() as browser:
        for key, letter in (("slash", "/"), ("d", "d"), ("r", "r"), ("o", "o")):
            browser.pilot.app.post_message(events.Key(key, letter))
        await browser.press("enter")
        await browser.sees("1,003 matches")
        assert searched == [(SPOOL, "dro")]
        await browser.press("escape", "colon", "slash", "o")
        assert browser.screen.query_one("#path-input").value.endswith("/o")  # type: ignore


@pytest.mark.slow
async def test_a_search_lists_paths_and_says_how_many_it_does_not_list(
    searched: list[tuple[str, str]],
    previewed: list[tuple[str, ...]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tui_fs.screens.browser.search.removed_paths", lambda _: [])
    async with browsing() as browser:
        await browser.press("slash", "asterisk", "c", "enter")
        await browser.sees("1,003 matches · only 3 of them listed !")
        shown = await browser.press()
        assert "sessions/one/cache/" in shown
        assert "maildrop/a.log" in shown
        assert searched == [(SPOOL, "*c")]
        # A filter for these names
        await browser.press("f")
        assert browser.screen.query_one("#filter-input", Input).value == "*c"
        await browser.press("enter")
        assert browser.survey.filters == Filters(name_glob="*c")
        await browser.press("escape", "slash", "asterisk", "c", "enter")
        await browser.sees("1,003 matches")
        # Directories are marked, and the rest is named
        await browser.press("A")
        assert list(browser.marked) == list(CACHES)
        await browser.sees("2 directories are marked.")
        await browser.press("d")
        assert previewed == [CACHES]
        await browser.press("escape", "u", "G", "space", "d")
        assert list(browser.marked) == []
        assert previewed.pop() == (f"{MAILDROP}/a.log", "file")
        await browser.press("escape", "g", "enter")
        await browser.sees("/srv/spool/sessions/one ")
        assert browser.screen.path == "/srv/spool/sessions/one"


@pytest.mark.slow
async def test_marked_directories_are_listed_with_their_sum_and_unmarked_there(
    previewed: list[tuple[str, ...]],
) -> None:
    async with browsing() as browser:
        assert "Nothing is marked" in await browser.press("M")
        await browser.press("N")
        await browser.sees("2 marked")
        await browser.press("M")
        assert isinstance(browser.pilot.app.screen, MarksScreen)
        await browser.sees("2 marked · 420 entries · 2.0 MiB")
        shown = await browser.press()
        assert "1.0 MiB            210  /srv/spool/sessions/one/cache/" in shown
        # A mark that was removed can be set again
        await browser.press("space")
        assert browser.marked == CACHES[1:]
        await browser.press("k", "space")
        assert set(browser.marked) == set(CACHES)
        await browser.press("d")
        assert set(previewed[0]) == set(CACHES)
        await browser.press("escape", "u", "d")
        assert list(browser.marked) == []
        assert len(previewed) == 1


@pytest.mark.slow
async def test_a_digit_selects_the_order_and_again_reverses_it() -> None:
    async with browsing() as browser:
        assert "allocated ▼" in await browser.press()
        assert "entries ▼" in await browser.press("2")
        assert "entries ▲" in await browser.press("2")
        assert "name ▲" in await browser.press("6")
        assert "allocated ▼" in await browser.press("1")


async def test_an_order_that_needs_other_entries_is_asked_for() -> None:
    async with browsing() as browser:
        await browser.press("j", "enter")
        await browser.sees("two/")
        before = len(browser.survey.asked)
        shown = await browser.press("4")
        assert browser.survey.asked[before:] == [f"show {SESSIONS}"]
        assert browser.survey.orders[-1] == Order(Sorting.OLDEST)
        assert "only" not in shown


@pytest.mark.slow
async def test_a_typed_path_that_does_not_answer_holds_nothing_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers, looks_like_a_link = Event(), os.path.islink

    def islink(path: str) -> bool:
        return answers.wait(60) if path == "/net/dead" else looks_like_a_link(path)

    monkeypatch.setattr("os.path.islink", islink)
    monkeypatch.setattr("tui_fs.screens.base.PATIENCE_S", 0.1)

    async with browsing() as browser:
        await browser.press("colon")
        browser.screen.query_one("#path-input").value = "/net/dead"  # type: ignore
        await browser.pilot.press("enter")
        await browser.sees("/net/dead does not answer yet.")
        await browser.pilot.press("escape", "j", "enter")
        await browser.sees("two/")
        # And the last update no longer matters
        answers.set()
        await browser.pilot.pause(0.3)
        assert "symbolic link" not in screen_text(browser.pilot.app)
        assert browser.screen.path == "/srv/spool/sessions"


@pytest.mark.slow
async def test_counts_that_come_before_a_screen_is_composed_wait_for_it() -> None:
    async with browsing() as browser:
        for opened in (browser.screen.action_findings, browser.screen.action_ranking):
            opened()
            update = browser.screen.client.last_update
            assert update is not None
            message = ListingUpdated(update)
            message.survey_number = browser.screen.client.number
            browser.screen.on_listing_updated(message)
            await settle(browser.pilot)
            assert browser.pilot.app.screen is not browser.screen
            await browser.press("escape")


@pytest.mark.slow
async def test_a_running_job_has_a_line_that_leads_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = [JOB]

    class Jobs:
        def read(self) -> tuple[list[JobSummary], list[str]]:
            return list(jobs), []

    monkeypatch.setattr("tui_fs.screens.browser.job_strip.JobList", Jobs)
    monkeypatch.setattr("tui_fs.screens.browser.job_strip._POLL_INTERVAL_S", 0.05)
    folder = record(RUNNING)
    monkeypatch.setattr("tui_fs.screens.browser.screen.find", lambda _: folder)
    monkeypatch.setattr("tui_fs.job.view.has_supervisor", lambda _: True)

    def run(folder: JobFolder, _: Settings) -> RunScreen:
        return RunScreen(folder, Settings())

    monkeypatch.setattr("tui_fs.screens.run.RunScreen", run)
    async with browsing() as browser:
        await browser.sees("▶ rm 6 % · 12 min–13 min left · job 7f3a01 · w watches")
        await browser.press("w")
        assert isinstance(browser.pilot.app.screen, RunScreen)
        await browser.press("escape")
        await browser.pilot.click("#running")
        await until(browser.pilot, lambda: isinstance(browser.pilot.app.screen, RunScreen))
        await browser.press("escape")
        known = frozenset({(folder.path, True)})
        monkeypatch.setattr("tui_fs.screens.browser.screen._known_jobs", lambda: known)
        jobs[0] = replace(JOB, state=JobState.PARTIAL, fraction=None, left_s=None)
        await browser.sees("Job 7f3a01 has ended: partial")
        # Its target is in the tree, whose counts are out of date
        assert len(TreeSurvey.begun) == 2
        await browser.sees("maildrop/")
        await until(browser.pilot, lambda: "w watches" not in screen_text(browser.pilot.app))
        assert "No job runs" in await browser.press("w")


@pytest.mark.slow
async def test_no_single_key_deletes(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(*_: object) -> None:
        raise AssertionError("a job was started")

    monkeypatch.setattr("tui_fs.screens.preview.start", start)
    bound = [key for binding in BrowserScreen.BINDINGS for key in binding.key.split(",")]  # type: ignore

    async with browsing() as browser:
        for key in (*bound, "space", "D", "x", "delete"):
            if key != "q":
                await browser.pilot.press(key)
                await browser.press("enter")
                await browser.pilot.press("escape")
                await browser.press("escape")
