"""The browser, the ranking and the findings in every state, as text; see test_screens.py."""

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import cast

import pytest
from msgspec.structs import replace
from syrupy.assertion import SnapshotAssertion
from textual.pilot import Pilot
from textual.widgets import Input

from tests.ui.recorded import MAILDROP, SPOOL, settle
from tests.ui.recorded_tree import (
    DETAILS,
    NOW_S,
    RANKING,
    SESSIONS,
    SESSIONS_LISTING,
    directory,
    found_survey,
    spool_listing,
)
from tests.ui.test_screens import (
    LARGE,
    SMALL,
    Act,
    a_quiet_machine,
    keys,
    look,
    look_at_all_sizes,
    shows,
    then,
)
from tui_fs.model.paths import PathStr
from tui_fs.model.survey import Child, EntryKind, Listing, Match, Ranking, Survey, Totals
from tui_fs.screens.base import BaseScreen, Settings
from tui_fs.screens.browser.screen import BrowserScreen, ListingUpdated
from tui_fs.screens.browser.search import SearchScreen
from tui_fs.screens.browser.side_screens import (
    FindingsScreen,
    MarksScreen,
    RankingScreen,
    SideScreen,
)
from tui_fs.screens.selection import Selection, Size
from tui_fs.screens.survey_client import SurveyClient, SurveyUpdated
from tui_fs.survey.process import Query, SearchRequest, SearchUpdate, Update

__all__ = ["a_quiet_machine"]

COMPLETE = Update(found_survey(), spool_listing())
DESCRIBED = replace(COMPLETE, query=Query(described=MAILDROP), details=DETAILS)
COUNTING = Update(found_survey(finished=False), spool_listing(is_complete=False))


@pytest.fixture(autouse=True)
def a_quiet_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ages are of one moment, and a busy machine does not exhaust the patience of the screen."""
    monkeypatch.setattr("tui_fs.screens.browser.screen.PATIENCE_S", 1e6)
    for module in ("screen", "side_screens", "search"):
        monkeypatch.setattr(f"tui_fs.screens.browser.{module}.time.time", lambda: float(NOW_S))
    monkeypatch.setattr("tui_fs.screens.browser.search.SearchProcess", RecordedSearch)


def choose(imported: str | None = None) -> BrowserScreen:
    return BrowserScreen(SPOOL, Settings(), imported)


def post_update(update: Update) -> Act:
    """Post an update of a survey."""

    async def act(pilot: Pilot[None]) -> None:
        screen = pilot.app.screen
        assert isinstance(screen, BrowserScreen)
        message = ListingUpdated(update)
        message.survey_number = screen.client.number
        screen.post_message(message)

    return act


def other(**changes: object) -> Act:
    """Post a complete survey with some changes."""
    return post_update(replace(COMPLETE, **changes))


def typed_filter(text: str) -> Act:
    """Enter a filter."""

    async def act(pilot: Pilot[None]) -> None:
        await pilot.press("f")
        pilot.app.screen.query_one("#filter-input", Input).value = text
        await pilot.press("enter")
        await settle(pilot)

    return act


MATCHING = Listing(
    SPOOL,
    Totals(41_203, allocated_bytes=19_542_000_000),
    (
        directory("maildrop", Totals(41_000, allocated_bytes=19_500_000_000)),
        directory("sessions", Totals(202, allocated_bytes=41_000_000)),
        directory("a[", Totals()),
        Child(PathStr("mail.log"), EntryKind.FILE, Totals(1, allocated_bytes=1_000_000), True),
    ),
    complete=True,
)
FILTERED = Update(found_survey(), MATCHING, is_filtered=True)


SESSIONS_INSIDE = replace(
    spool_listing().children[1], inside=SESSIONS_LISTING.children
)  # what a survey adds to a large directory
NESTED = replace(
    DESCRIBED,
    listing=replace(spool_listing(), totals=SESSIONS_INSIDE.totals, children=(SESSIONS_INSIDE,)),
)


BROWSERS: dict[str, tuple[Act, tuple[int, int] | None]] = {
    "nothing counted": (shows("reading"), None),
    "counting": (post_update(COUNTING), None),
    "paused": (then(post_update(COUNTING), keys("p"), post_update(COUNTING)), None),
    "complete": (post_update(DESCRIBED), None),
    "details not counted yet": (post_update(COMPLETE), LARGE),
    "details on a low terminal": (post_update(DESCRIBED), (110, 24)),
    "treemap alone": (then(post_update(NESTED), keys("T")), None),
    "treemap by entries": (then(post_update(DESCRIBED), keys("2")), (160, 30)),
    "complete here and counting elsewhere": (
        post_update(replace(COUNTING, listing=spool_listing())),
        SMALL,
    ),
    "unreadable": (other(survey=found_survey(unreadable=2)), SMALL),
    "empty": (
        post_update(
            Update(
                Survey(path=SPOOL, finished=True, complete=True),
                Listing(SPOOL, Totals(0, 1), complete=True),
            )
        ),
        None,
    ),
    "typing a search": (then(post_update(COMPLETE), keys("slash", "s", "e")), None),
    "above the surveyed tree": (then(post_update(COMPLETE), keys("left")), None),
    "marked": (then(post_update(COMPLETE), keys("j", "space", "space")), None),
    "marked around": (
        then(
            post_update(COMPLETE),
            keys("j", "space", "k", "enter"),
            post_update(Update(found_survey(), SESSIONS_LISTING)),
        ),
        SMALL,
    ),
    "help": (then(post_update(COMPLETE), keys("question_mark")), None),
    "typing a filter": (then(post_update(COMPLETE), keys("f")), None),
    "a wrong filter": (then(post_update(COMPLETE), typed_filter(">15m")), SMALL),
    "filtered": (then(typed_filter("*.log >1k"), post_update(FILTERED)), None),
    "filtered and counting": (
        then(
            typed_filter("*.log >1k"),
            post_update(
                replace(
                    FILTERED,
                    survey=found_survey(finished=False),
                    listing=replace(MATCHING, complete=False),
                )
            ),
        ),
        SMALL,
    ),
}


@pytest.mark.parametrize("state", BROWSERS)
@pytest.mark.slow
async def test_browser(state: str, picture: SnapshotAssertion) -> None:
    """One size where it alone matters, else all."""
    act, size = BROWSERS[state]
    seen = look_at_all_sizes(choose(), act) if size is None else look(choose(), act, size)
    assert await seen == picture


async def test_read_only_mode_is_named() -> None:
    screen = BrowserScreen(SPOOL, Settings(read_only=True))
    assert "inodes free ! · read-only" in await look(screen, post_update(COMPLETE))


async def test_a_directory_that_is_newer_than_the_counts() -> None:
    unknown = Listing(SPOOL)
    assert "not counted; r counts again" in await look(
        choose(), post_update(replace(COMPLETE, listing=unknown))
    )


async def test_a_directory_that_cannot_be_listed() -> None:
    closed = Listing(
        SPOOL, Totals(0, 1), problem="This directory cannot be read: permission denied."
    )
    assert "permission denied" in await look(
        choose(), post_update(replace(COMPLETE, listing=closed))
    )


@pytest.mark.parametrize(
    "sorting", ["entries", "inodes", "oldest", "newest", "name", "name reversed"]
)
@pytest.mark.slow
async def test_sorted(sorting: str, picture: SnapshotAssertion) -> None:
    order = ["entries", "inodes", "oldest", "newest", "name", "name reversed"]
    pressed = ["s"] * min(order.index(sorting) + 1, 5) + ["S"] * ("reversed" in sorting)
    assert await look(choose(), then(post_update(COMPLETE), keys(*pressed))) == picture


async def test_more_than_is_listed(
    picture: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui_fs.screens.browser.table.MAX_ROWS", 3)
    listing = replace(spool_listing(), not_listed=198_000)
    assert await look(choose(), post_update(replace(COMPLETE, listing=listing))) == picture


@pytest.mark.slow
async def test_imported(picture: SnapshotAssertion) -> None:
    acts = then(post_update(Update(found_survey())), post_update(COMPLETE))
    assert await look(choose("export.json"), acts) == picture


def client(update: Update) -> SurveyClient:
    """A client that has received an update."""
    client = SurveyClient(BaseScreen(Settings()), 1, SurveyUpdated)
    client.accept(SurveyUpdated(update))
    return client


def below(client: SurveyClient, marks: Selection | None = None) -> BrowserScreen:
    """The browser below a side screen; it stays where it is."""
    return cast(BrowserScreen, SimpleNamespace(client=client, marks=marks or Selection()))


def findings(update: Update = COMPLETE) -> FindingsScreen:
    return FindingsScreen(below(client(update)), Settings())


def ranking(by: Ranking = Ranking.ALLOCATED) -> RankingScreen:
    marks = Selection()
    marks.toggle(SESSIONS, Size(58_999, 3 << 20))
    update = replace(COMPLETE, query=Query(ranking=by), ranking=RANKING)
    return RankingScreen(below(client(update), marks), Settings())


def marked() -> MarksScreen:
    marks = Selection()
    marks.toggle(SESSIONS, Size(61_002, 3 << 20, is_whole=True))
    marks.toggle(PathStr("/srv/spool/new\nline"), Size(4, 4096))
    return MarksScreen(below(client(COMPLETE), marks), Settings())


MATCHES = (
    Match(PathStr("/srv/spool/sessions/old.log"), EntryKind.DIRECTORY, 4096, NOW_S - 86_400),
    Match(PathStr("/srv/spool/[red]/new\nline.log"), EntryKind.FILE, 3 << 20, NOW_S - 300),
    Match(PathStr("/srv/spool/now.log"), EntryKind.SYMLINK, 0, NOW_S - 60),
)
SEARCHES = {
    "*.log": SearchUpdate(MATCHES, 3, 1_279_040, 0, True),
    "[red": SearchUpdate((), 0, 1_279_040, 0, True),
    "red": SearchUpdate((), 0, 1_279_040, 0, True),
    "*.old": SearchUpdate(MATCHES, 123_456, 1_000_000, 2, False),
}


class RecordedSearch:
    """Stand-in for a search process."""

    def __init__(self, request: SearchRequest) -> None:
        self._update = SEARCHES[request.text]

    def updates(self) -> Iterator[SearchUpdate]:
        yield self._update

    def stop(self) -> None:
        pass


def search(text: str = "*.log") -> SearchScreen:
    return SearchScreen(below(client(COMPLETE)), text, None, Settings())


SIDE_SCREENS: dict[str, tuple[Callable[[], SideScreen], Act]] = {
    "findings": (findings, keys("j")),
    "group": (findings, keys("G")),
    "findings while counting": (lambda: findings(COUNTING), keys("g")),
    "no findings": (lambda: findings(Update(replace(found_survey(), findings=()))), keys("g")),
    "ranking": (ranking, keys("j")),
    "ranking by the oldest": (lambda: ranking(Ranking.OLDEST), keys("4")),
    "marks": (marked, keys("j")),
    "search": (search, shows("now.log")),
    "search that lists a part": (lambda: search("*.old"), shows("now.log")),
}


@pytest.mark.parametrize("state", SIDE_SCREENS)
@pytest.mark.slow
async def test_side_screen(state: str, picture: SnapshotAssertion) -> None:
    screen, act = SIDE_SCREENS[state]
    assert await look_at_all_sizes(screen(), act) == picture


@pytest.mark.parametrize("key", ["tab", "b", "B"])
async def test_a_list_says_that_the_survey_has_not_answered_yet(key: str) -> None:
    assert "The directory has not answered yet." in await look(choose(), keys(key))


async def test_a_pattern_without_a_match_is_explained() -> None:
    assert "no whole name matches the pattern" in await look(search("[red"), shows("0 matches"))
    shown = await look(search("red"), shows("0 matches"))
    assert "no name matches" in shown and "pattern" not in shown


async def test_ranking_that_is_not_known_yet() -> None:
    assert "reading…" in await look(ranking(), keys("s"))


@pytest.mark.parametrize(
    ("screen", "text"),
    [
        (ranking, "Mark the row under the cursor and move down"),
        (findings, "Mark all directories of the same name"),
        (marked, "Remove the mark of the row, or set it again"),
    ],
)
async def test_the_help_says_what_space_does_in_the_list(
    screen: Callable[[], SideScreen], text: str
) -> None:
    assert text in await look(screen(), keys("question_mark"), (120, 60))


@pytest.mark.parametrize(
    ("columns", "scope"),
    [
        (90, "in the directory itself, not below"),
        (70, "in the directory itself"),
        (60, "not below"),
    ],
)
async def test_a_ranking_states_its_scope_as_fully_as_fits(columns: int, scope: str) -> None:
    shown = await look(ranking(), keys("j"), (columns, 20))
    assert f"bytes first · {scope} · 4 of 4,112" in shown


async def test_the_advice_of_a_finding_is_reached_where_there_is_no_room() -> None:
    shown = await look(findings(), keys("j"), (40, 15))
    assert "<> scroll" in shown and "tui-fs copes" not in shown
    assert "tui-fs copes" in await look(findings(), keys("j", *[">"] * 3), (40, 15))
    shown = await look(findings(), keys("j", *[">"] * 3, *["<"] * 3), (40, 15))
    assert "one huge directory · warning" in shown


async def test_keys_that_do_nothing_for_a_finding_are_not_offered() -> None:
    shown = await look(findings(), keys("g"))
    assert "mark group" not in shown and "scroll" not in shown
    assert "mark group" in await look(findings(), keys("G"))
