"""All directories of a survey, ranked by what is in them themselves."""

import time
from collections.abc import Collection, Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.widgets import Static

from tui_fs.model.paths import PathStr, displayable
from tui_fs.model.survey import LargeDirectory, Ranking
from tui_fs.model.units import bytes_iec, count
from tui_fs.screens.ages import age
from tui_fs.screens.browser_access import BrowserAccess
from tui_fs.screens.frame import Settings
from tui_fs.screens.header import shown_below
from tui_fs.screens.selection import Size
from tui_fs.screens.side_screen import SideScreen
from tui_fs.survey.process import Update
from widgets.bar_table import BarRow, BarTable, Column
from widgets.lazy_rows import LazyRows

TITLES = {
    Ranking.ENTRIES: "most entries first",
    Ranking.INODES: "most inodes first",
    Ranking.ALLOCATED: "most allocated bytes first",
    Ranking.OLDEST: "oldest entry first",
    Ranking.NEWEST: "youngest entry first",
}
_FIELDS: dict[Ranking, tuple[Ranking, Ranking]] = {
    Ranking.ENTRIES: (Ranking.ENTRIES, Ranking.ALLOCATED),
    Ranking.INODES: (Ranking.INODES, Ranking.ALLOCATED),
    Ranking.ALLOCATED: (Ranking.ENTRIES, Ranking.ALLOCATED),
    Ranking.OLDEST: (Ranking.OLDEST, Ranking.ENTRIES),
    Ranking.NEWEST: (Ranking.NEWEST, Ranking.ENTRIES),
}
_UPWARDS = Ranking.NEWEST


def following(by: Ranking) -> Ranking:
    """Return the next criterion, in a circle."""
    every = list(Ranking)
    return every[(every.index(by) + 1) % len(every)]


def columns_of(by: Ranking) -> tuple[Column, ...]:
    """Return the columns; the arrow is at what is ranked by."""
    arrow = " ▲" if by is _UPWARDS else " ▼"
    return (
        *(
            Column(f"{field}{arrow if field is by else ''}", 11, right=True)
            for field in _FIELDS[by]
        ),
        Column("", 12, bar=True),
        Column("directory", 0, keep_end=True),
    )


def rows_of(
    ranking: Sequence[LargeDirectory],
    by: Ranking,
    root: str,
    marked: Collection[str],
    now_s: float,
) -> LazyRows:
    """Return the rows.

    Args:
        root: the surveyed directory; paths are shown from there.
        now_s: the moment that ages refer to, in seconds since the epoch.
    """
    largest = max((_amount(one, by, now_s) for one in ranking), default=0.0)

    def make(index: int) -> BarRow:
        one = ranking[index]
        return BarRow(
            key=one.path,
            cells=(*(_cell(one, field, now_s) for field in _FIELDS[by]), "", _place(one, root)),
            fraction=_amount(one, by, now_s) / largest if largest > 0 else None,
            marked=one.path in marked,
            tone="directory",
        )

    return LazyRows([one.path for one in ranking], make)


def _cell(one: LargeDirectory, field: Ranking, now_s: float) -> str:
    match field:
        case Ranking.ENTRIES:
            return count(one.entries)
        case Ranking.INODES:
            return count(one.inodes)
        case Ranking.ALLOCATED:
            return bytes_iec(one.allocated_bytes)
        case Ranking.OLDEST:
            return age(one.oldest_s, now_s)
        case Ranking.NEWEST:
            return age(one.newest_s, now_s)


def _amount(one: LargeDirectory, by: Ranking, now_s: float) -> float:
    match by:
        case Ranking.ENTRIES:
            return one.entries
        case Ranking.INODES:
            return one.inodes
        case Ranking.ALLOCATED:
            return one.allocated_bytes
        case Ranking.OLDEST:
            return max(0.0, now_s - one.oldest_s) if one.oldest_s is not None else 0.0
        case Ranking.NEWEST:
            return max(0.0, now_s - one.newest_s) if one.newest_s is not None else 0.0


def _place(one: LargeDirectory, root: str) -> str:
    shown = shown_below(one.path, root)
    return shown if shown.endswith("/") else shown + "/"


class RankingScreen(SideScreen):
    """Up to a thousand directories, whatever depth they are at."""

    KEYS: ClassVar = (
        ("enter", "go there"),
        ("space", "mark"),
        ("s", "next ranking"),
        ("esc", "back"),
    )
    EXPLANATION = (
        "All directories of the tree, wherever they are, ranked by what is in each of them "
        "itself: what lies in its subdirectories does not count here. Entries are the names in "
        "it; inodes count the names of one file once; oldest and newest tell how long ago its "
        "oldest and its youngest entry were last written. Enter shows the directory in the "
        "browser."
    )

    BINDINGS = [
        Binding("s", "next", tooltip="Rank by entries, inodes, allocated, oldest, newest"),
        Binding("t", "app.pop_screen", tooltip="Go back", show=False),
    ]

    def __init__(self, browser: BrowserAccess, update: Update, settings: Settings) -> None:
        super().__init__(browser, update, settings)
        self._by = Ranking.ENTRIES
        self._has_moved = False

    def compose_body(self) -> ComposeResult:
        """Lay out what is ranked, and the list."""
        yield Static(Text(""), id="totals")
        yield BarTable(columns_of(self._by), empty_text="reading…", id="ranking")
        yield Static(Text(""), id="marks")

    def on_mount(self) -> None:
        """Ask for the first ranking."""
        self.query_one(BarTable).focus()
        self.browser.rank(self._by)
        self.show_update()

    def show_update(self) -> None:
        """Show the ranking, if it is the one that is wanted."""
        super().show_update()
        update = self.update_shown
        survey = update.survey
        self.show_place(
            "", displayable(survey.path), Text("" if survey.finished else "~ so far", "bold")
        )
        rows = self.query_one(BarTable)
        is_wanted = update.ranked_by is self._by
        ranking = update.ranking if is_wanted else ()
        self.query_one("#totals", Static).update(self._about(len(ranking)))
        rows.set_columns(columns_of(self._by))
        rows.empty_text = "no directory has entries with a date" if is_wanted else "reading…"
        rows.set_rows(
            rows_of(ranking, self._by, survey.path, tuple(self.browser.marks), time.time()),
            keep_cursor=self._has_moved,
        )

    def _about(self, number: int) -> Text:
        survey = self.update_shown.survey
        line = Text(no_wrap=True, overflow="ellipsis")
        line.append(TITLES[self._by], "bold")
        line.append(" · in the directory itself, not below", "dim")
        if 0 < number < survey.totals.directories:
            line.append(f" · {count(number)} of {count(survey.totals.directories)}", "dim")
        return line

    def on_bar_table_highlighted(self) -> None:
        """From now on the cursor stays on its directory when the order changes."""
        self._has_moved = True

    def action_next(self) -> None:
        """Rank by the next criterion."""
        self._by, self._has_moved = following(self._by), False
        self.browser.rank(self._by)
        self.show_update()

    def on_bar_table_opened(self, message: BarTable.Opened) -> None:
        """Go there."""
        self.app.pop_screen()
        self.browser.jump_to(PathStr(message.row.key))

    def on_bar_table_mark_toggled(self, message: BarTable.MarkToggled) -> None:
        """Mark a directory; all that is known of it is that it holds at least what is in it."""
        one = self._of(message.row.key)
        if one is not None:
            size = Size(one.entries + 1, one.allocated_bytes)
            self.browser.toggle_mark(one.path, size)
            self.show_update()

    def _of(self, path: str) -> LargeDirectory | None:
        return next((one for one in self.update_shown.ranking if one.path == path), None)
