"""The browser, the ranking and the findings in every state, as text; see test_screens.py."""

from dataclasses import replace

import pytest
from syrupy.assertion import SnapshotAssertion
from textual.pilot import Pilot

from tests.ui.recorded import SPOOL
from tests.ui.recorded_tree import (
    NOW_S,
    RANKING,
    SESSIONS,
    SESSIONS_LISTING,
    found_survey,
    spool_listing,
)
from tests.ui.test_screens import LARGE, Act, a_quiet_machine, keys, look, picture, then
from tui_fs.model.paths import PathStr
from tui_fs.model.survey import Listing, Ranking, Survey, Totals
from tui_fs.screens.base import BaseScreen, Settings
from tui_fs.screens.browser.screen import BrowserScreen, ListingUpdated
from tui_fs.screens.browser.side_screens import FindingsScreen, RankingScreen
from tui_fs.screens.selection import Selection, Size
from tui_fs.screens.survey_client import SurveyClient, SurveyUpdated
from tui_fs.survey.process import Update

__all__ = ["a_quiet_machine", "picture"]

COMPLETE = Update(found_survey(), spool_listing())
COUNTING = Update(found_survey(finished=False), spool_listing(is_complete=False))


@pytest.fixture(autouse=True)
def a_quiet_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ages are of one moment."""
    for module in ("screen", "side_screens"):
        monkeypatch.setattr(f"tui_fs.screens.browser.{module}.time.time", lambda: float(NOW_S))


def choose(imported: str | None = None) -> BrowserScreen:
    return BrowserScreen(SPOOL, Settings(), imported)


def told(update: Update) -> Act:
    """Post what a survey tells."""

    async def act(pilot: Pilot[None]) -> None:
        screen = pilot.app.screen
        assert isinstance(screen, BrowserScreen)
        message = ListingUpdated(update)
        message.survey_number = screen.client.number
        screen.post_message(message)

    return act


async def test_before_anything_is_counted(picture: SnapshotAssertion) -> None:
    assert await look(choose()) == picture


async def test_counting(picture: SnapshotAssertion) -> None:
    assert await look(choose(), told(COUNTING)) == picture


async def test_paused(picture: SnapshotAssertion) -> None:
    acts = then(told(COUNTING), keys("p"), told(COUNTING))
    assert await look(choose(), acts) == picture


async def test_complete(picture: SnapshotAssertion) -> None:
    assert await look(choose(), told(COMPLETE)) == picture


async def test_complete_on_a_large_terminal(picture: SnapshotAssertion) -> None:
    assert await look(choose(), told(COMPLETE), LARGE) == picture


async def test_complete_here_while_counting_elsewhere(picture: SnapshotAssertion) -> None:
    assert await look(choose(), told(replace(COUNTING, listing=spool_listing()))) == picture


async def test_unreadable_directories(picture: SnapshotAssertion) -> None:
    survey = found_survey(unreadable=2)
    assert await look(choose(), told(replace(COMPLETE, survey=survey))) == picture


async def test_an_empty_directory(picture: SnapshotAssertion) -> None:
    survey = Survey(path=SPOOL, finished=True, complete=True)
    empty = Listing(SPOOL, Totals(0, 1), complete=True)
    assert await look(choose(), told(Update(survey, empty))) == picture


async def test_a_directory_that_is_newer_than_the_counts() -> None:
    unknown = Listing(SPOOL)
    assert "not counted; r counts again" in await look(
        choose(), told(replace(COMPLETE, listing=unknown))
    )


async def test_a_directory_that_cannot_be_listed() -> None:
    closed = Listing(SPOOL, Totals(0, 1), problem="It cannot be read: permission denied.")
    assert "permission denied" in await look(choose(), told(replace(COMPLETE, listing=closed)))


@pytest.mark.parametrize(
    "sorting", ["inodes", "allocated", "oldest", "newest", "name", "name reversed"]
)
async def test_sorted(sorting: str, picture: SnapshotAssertion) -> None:
    order = ["inodes", "allocated", "oldest", "newest", "name", "name reversed"]
    pressed = ["s"] * min(order.index(sorting) + 1, 5) + ["S"] * ("reversed" in sorting)
    assert await look(choose(), then(told(COMPLETE), keys(*pressed))) == picture


async def test_searching(picture: SnapshotAssertion) -> None:
    assert await look(choose(), then(told(COMPLETE), keys("slash", "s", "e"))) == picture


async def test_marked(picture: SnapshotAssertion) -> None:
    acts = then(told(COMPLETE), keys("j", "space", "space"))
    assert await look(choose(), acts) == picture


async def test_marked_around(picture: SnapshotAssertion) -> None:
    inside = Update(found_survey(), SESSIONS_LISTING)
    acts = then(told(COMPLETE), keys("j", "space", "k", "enter"), told(inside))
    assert await look(choose(), acts) == picture


async def test_more_than_is_listed(
    picture: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui_fs.screens.browser.table.MAX_ROWS", 3)
    listing = replace(spool_listing(), not_listed=198_000)
    assert await look(choose(), told(replace(COMPLETE, listing=listing))) == picture


async def test_imported(picture: SnapshotAssertion) -> None:
    acts = then(told(Update(found_survey())), told(COMPLETE))
    assert await look(choose("export.json"), acts) == picture


async def test_help(picture: SnapshotAssertion) -> None:
    assert await look(choose(), then(told(COMPLETE), keys("question_mark"))) == picture


def client(update: Update) -> SurveyClient:
    """A client that has received an update."""
    client = SurveyClient(BaseScreen(Settings()), 1, SurveyUpdated)
    client.accept(SurveyUpdated(update))
    return client


def stay(path: PathStr) -> None:
    raise AssertionError(path)


def findings(update: Update = COMPLETE) -> FindingsScreen:
    return FindingsScreen(client(update), Selection(), stay, Settings())


def ranking(by: Ranking = Ranking.ENTRIES) -> RankingScreen:
    marks = Selection()
    marks.toggle(SESSIONS, Size(58_999, 3 << 20))
    update = replace(COMPLETE, ranked_by=by, ranking=RANKING)
    return RankingScreen(client(update), marks, stay, Settings())


async def test_findings(picture: SnapshotAssertion) -> None:
    assert await look(findings()) == picture


async def test_findings_on_a_large_terminal(picture: SnapshotAssertion) -> None:
    assert await look(findings(), size=LARGE) == picture


async def test_a_group(picture: SnapshotAssertion) -> None:
    assert await look(findings(), keys("G")) == picture


async def test_findings_while_counting(picture: SnapshotAssertion) -> None:
    assert await look(findings(COUNTING)) == picture


async def test_no_findings(picture: SnapshotAssertion) -> None:
    survey = replace(found_survey(), findings=())
    assert await look(findings(Update(survey))) == picture


async def test_ranking(picture: SnapshotAssertion) -> None:
    assert await look(ranking()) == picture


async def test_ranking_on_a_large_terminal(picture: SnapshotAssertion) -> None:
    assert await look(ranking(), size=LARGE) == picture


async def test_ranking_by_the_oldest(picture: SnapshotAssertion) -> None:
    screen = ranking(Ranking.OLDEST)
    assert await look(screen, keys("s", "s", "s")) == picture


async def test_ranking_that_is_not_told_yet() -> None:
    assert "reading…" in await look(ranking(), keys("s"))
