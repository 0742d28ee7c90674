"""The browser: a surveyed tree, directory by directory, with live counts."""

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.widgets import Input, Static
from textual.worker import get_current_worker

from tui_fs.job.store import all_jobs
from tui_fs.linux.filesystem import file_system_of
from tui_fs.linux.resolve_path import canonical_directory
from tui_fs.model.errors import JobFailed, TuiFsError
from tui_fs.model.paths import PathStr, displayable, is_within
from tui_fs.model.survey import EntryKind, Ranking
from tui_fs.screens.browser_rows import columns_of, sizes_of
from tui_fs.screens.browser_text import finding_line, totals_line
from tui_fs.screens.browsing import child_path
from tui_fs.screens.findings import FindingsScreen
from tui_fs.screens.frame import Settings
from tui_fs.screens.header import place_note
from tui_fs.screens.maintenance import MaintenanceScreen
from tui_fs.screens.marking import MarkingScreen
from tui_fs.screens.messages import Failed
from tui_fs.screens.preview import PreviewScreen
from tui_fs.screens.prompts import Prompts
from tui_fs.screens.ranking import RankingScreen
from tui_fs.screens.selection import marks_line
from tui_fs.screens.side_screen import SideScreen
from tui_fs.survey.process import Update
from widgets.bar_table import BarTable
from widgets.daemon_thread import in_daemon_thread
from widgets.footer import Footer


def jobs_seen() -> frozenset[tuple[str, bool]] | None:
    """Return all jobs and whether each has its report; None if they cannot be listed."""
    try:
        return frozenset((job.path, os.path.exists(job.report)) for job in all_jobs())
    except JobFailed:
        return None  # the list of jobs tells why


_READING = "reading…"
_PATIENCE_S = 2.0
"""A typed path that takes longer to look at is said not to answer."""


class BrowserScreen(MarkingScreen):
    """A list of one directory, with the counts of everything below each of its entries."""

    EXPLANATION = (
        "Each line is an entry of the directory named at the top, with everything below it "
        "counted. Numbers marked ~ still grow; ? was not counted. Symbolic links are shown, "
        "never followed. Oldest and newest tell how long ago the oldest and the newest file "
        "below were last written. Marks stay wherever you go. d shows what deleting the marked "
        "directories, or else the highlighted one, would cost; nothing is deleted before you "
        "have confirmed it there."
    )

    BINDINGS = [
        Binding("left,h,backspace", "up", tooltip="Open the directory above"),
        Binding("d", "delete", tooltip="Show what deleting would cost; asks before it deletes"),
        Binding("a", "maintenance", tooltip="Set aside, or make an emptied directory anew"),
        Binding("s", "sort", tooltip="Sort: entries, inodes, allocated, oldest, newest, name"),
        Binding("S", "reverse", tooltip="Sort the other way round"),
        # With priority, so that what is typed right after it goes to the field.
        Binding("slash", "search", tooltip="Show only names that contain a text", priority=True),
        Binding("t", "ranking", tooltip="Rank all directories of the tree"),
        Binding("tab", "findings", tooltip="Show what is unusual here"),
        Binding("p", "pause", tooltip="Pause counting, or go on"),
        Binding("r", "recount", tooltip="Count again"),
        Binding("o", "path", tooltip="Type a path (tab completes)", priority=True),
        Binding("escape", "clear_search", tooltip="End the search", show=False),
        Binding("q", "app.quit", tooltip="Quit; running jobs go on"),
    ]

    def __init__(self, path: str, settings: Settings, imported: str | None = None) -> None:
        super().__init__(path, settings, imported)
        self._beside: SideScreen | None = None
        self._last_update: Update | None = None
        self._cursor_moved = False
        self._paused_for_preview = False
        self._maintenance: MaintenanceScreen | None = None
        self._jobs_seen: frozenset[tuple[str, bool]] | None = None

    def compose_body(self) -> ComposeResult:
        """Lay out totals, list, marks, and what is unusual."""
        yield Static(Text(""), id="totals")
        yield BarTable(columns_of(self.view), empty_text=_READING, id="entries")
        yield Static(Text(""), id="marks")
        yield Static(Text(""), id="finding")
        yield Prompts()

    def on_mount(self) -> None:
        """Begin with the directory the person named."""
        self.query_one(BarTable).focus()
        self._show_keys()
        self.open_directory(self.path)

    def on_screen_suspend(self) -> None:
        """Remember which jobs there are."""
        self._jobs_seen = jobs_seen()

    def on_screen_resume(self) -> None:
        """After a deletion the old counts are wrong."""
        if self.survey is None:
            return
        has_acted = self._maintenance is not None and self._maintenance.has_acted
        self._maintenance = None
        if has_acted or self._jobs_seen != jobs_seen():
            self._forget_removed(tuple(self.marks))
            self.action_recount()
        elif self._paused_for_preview and self.questions is not None:
            self.questions.toggle_pause()
        self._paused_for_preview = False
        self._show_marks()

    @work(exclusive=True, group="marks")
    async def _forget_removed(self, marks: Sequence[PathStr]) -> None:
        """Take the marks off what is gone, when the file system has told."""
        self.marks.remove(await in_daemon_thread(partial(_removed, marks)))
        self._show_marks()

    def heard(self, update: Update) -> None:
        """Tell the screen beside, and mark what was asked for by its name."""
        self._last_update = update
        super().heard(update)
        if self._beside is not None:
            self._beside.take(update)
        self._show_keys()

    def on_failed(self, message: Failed) -> None:
        """Say why nothing can be shown."""
        self.query_one(BarTable).empty_text = str(message.error)
        self.show_emptiness(str(message.error))

    def show_emptiness(self, why: str = _READING) -> None:
        """Show a place of which nothing is known yet."""
        self._cursor_moved = False
        rows = self.query_one(BarTable)
        rows.empty_text = why
        rows.set_rows((), keep_cursor=False)
        for line in ("#totals", "#finding"):
            self.query_one(line, Static).update(Text(""))
        self._show_marks()
        self._show_place()
        if self.imported is None:
            self.set_timer(_PATIENCE_S, partial(self._show_no_answer, self.path))

    def _show_no_answer(self, path: str) -> None:
        """Say it if nothing is known of a directory yet that is still shown."""
        rows = self.query_one(BarTable)
        if self.path == path and self.arranged is None and rows.empty_text == _READING:
            rows.empty_text = "The file system has not answered yet. ← leaves, q quits."

    def _show_place(self) -> None:
        if self.imported is not None:
            self.show_place("", displayable(self.path), "imported, read-only")
            return
        self.show_place("", displayable(self.path), "…")
        self._look_at_place(self.path)

    @work(thread=True, exclusive=True, group="place")
    def _look_at_place(self, path: str) -> None:
        note = place_note(file_system_of(path))
        if not get_current_worker().is_cancelled:
            self.app.call_from_thread(self.show_place, "", displayable(path), note)

    def _show_keys(self) -> None:
        survey = self.survey
        number = len(survey.findings) if survey is not None else 0
        marks = (("space", "mark"), ("d", "delete…")) if self.imported is None else ()
        self.query_one("#keys", Footer).keys = (
            ("enter", "open"),
            *marks,
            ("s", "sort"),
            ("t", "rank"),
            ("tab", f"findings ({number})"),
            ("←", "up"),
            ("/", "search"),
            ("p", "pause"),
            ("q", "quit"),
            ("?", "help"),
        )

    def show_arranged(self) -> None:
        """Show the listing in its order."""
        arranged, survey = self.arranged, self.survey
        if arranged is None or survey is None:
            return
        listing = arranged.listing
        here = {os.path.basename(mark) for mark in self.marks_here()}
        self.marks.learn(sizes_of(listing, here))
        rows = self.query_one(BarTable)
        rows.set_columns(columns_of(arranged.view))
        rows.empty_text = self._why_empty()
        rows.set_rows(arranged.rows(here), keep_cursor=self._cursor_moved)
        if self.came_from is not None and self.came_from in arranged.keys:
            rows.move_to(self.came_from)
            self.came_from, self._cursor_moved = None, True
        self.query_one("#totals", Static).update(totals_line(survey, listing, self.progress()))
        self._show_marks()
        self._show_finding()

    def _why_empty(self) -> str:
        arranged, survey = self.arranged, self.survey
        assert arranged is not None
        if arranged.listing.problem:
            return arranged.listing.problem
        if self.view.search:
            return "nothing matches"
        if survey is None or not (survey.finished or arranged.listing.complete):
            return _READING
        if not arranged.listing.totals.entries:
            return "not counted; r counts again"
        return "empty directory"

    def _show_marks(self) -> None:
        line = marks_line(self.marks, self.path, self.view.search)
        self.query_one("#marks", Static).update(line)

    def _show_finding(self) -> None:
        if self.survey is not None:
            child = self.highlighted()
            path = child_path(self.path, child.name) if child is not None else None
            line = finding_line(self.survey, self.path, path)
            self.query_one("#finding", Static).update(line)

    def on_bar_table_highlighted(self) -> None:
        """From now on the cursor stays on its entry when the order changes."""
        self._cursor_moved = True
        self._show_finding()

    def on_bar_table_opened(self, message: BarTable.Opened) -> None:
        """Open a directory; say why other entries cannot be opened."""
        child = self.arranged.child(message.row.key) if self.arranged is not None else None
        if child is None:
            return
        if child.kind is EntryKind.DIRECTORY:
            self.open_directory(child_path(self.path, child.name))
        elif child.kind is EntryKind.SYMLINK:
            self.notify("A symbolic link; links are not followed.", markup=False)
        else:
            self.notify("Not a directory.", markup=False)

    def action_up(self) -> None:
        """Open the directory above, the cursor on the one that was left."""
        parent, name = os.path.split(self.path)
        if self.imported is not None and self.path == self.root:
            self.notify("This is the top of what was imported.", markup=False)
        elif name:
            self.open_directory(parent, came_from=name)

    def jump_to(self, path: PathStr) -> None:
        """Show a place of the survey, the cursor on it."""
        if path == self.root:
            self.open_directory(path)
        elif is_within(path, self.root):
            parent, name = os.path.split(path)
            self.open_directory(parent, came_from=name)
        else:
            self.notify(f"{displayable(path)} is not in what was counted.", markup=False)

    def rank(self, by: Ranking) -> None:
        """Ask the survey for a ranking."""
        if self.questions is not None:
            self.questions.rank(by)

    def action_sort(self) -> None:
        """Sort by the next criterion."""
        self.view = replace(self.view, sorting=self.view.sorting.following, is_reversed=False)
        self.put_in_order()

    def action_reverse(self) -> None:
        """Sort the other way round."""
        self.view = replace(self.view, is_reversed=not self.view.is_reversed)
        self.put_in_order()

    def action_recount(self) -> None:
        """Count the whole tree again."""
        row = self.query_one(BarTable).cursor_row
        self.count_again(row.key if row is not None else None)

    def action_pause(self) -> None:
        """Let counting stand still, or go on."""
        if self.questions is None or (self.survey is not None and self.survey.finished):
            self.notify("Everything is counted.", markup=False)
            return
        self.questions.toggle_pause()
        self.show_arranged()

    def check_action(
        self,
        action: str,
        parameters: tuple[object, ...],  # noqa: ARG002  textual's signature
    ) -> bool | None:
        """While the person types, what opens a field is a letter like any other."""
        return not (action in ("search", "path") and isinstance(self.focused, Input))

    def action_search(self) -> None:
        """Ask for a part of a name."""
        self.query_one(Prompts).ask_for_search(self.view.search)

    def action_path(self) -> None:
        """Ask for a path."""
        if self.imported is not None:
            self.notify("Only what was imported can be looked at here.", markup=False)
        else:
            self.query_one(Prompts).ask_for_path(self.path)

    def on_prompts_closed(self) -> None:
        """Go back to the list."""
        self.workers.cancel_group(self, "typed")
        self.query_one(BarTable).focus()

    def on_prompts_searched(self, message: Prompts.Searched) -> None:
        """Narrow the list while the person types."""
        self.view = replace(self.view, search=message.text)
        self.put_in_order()

    def on_prompts_path_typed(self, message: Prompts.PathTyped) -> None:
        """Open the typed directory, or say why not."""
        path = os.path.normpath(os.path.join(self.path, message.path))
        look = self._look_at_typed(path)

        def tell() -> None:
            if look.is_running:
                self.notify(f"{displayable(path)} does not answer yet.", markup=False)

        self.set_timer(_PATIENCE_S, tell)

    @work(exclusive=True, group="typed")
    async def _look_at_typed(self, path: str) -> None:
        """Open a directory or say why not, when the file system has told; a dead one never does."""
        path, why = await in_daemon_thread(partial(_look_at, path))
        if why:
            self.notify(why, markup=False)
        else:
            self.query_one(Prompts).close()
            self.open_directory(path)

    def action_clear_search(self) -> None:
        """Show everything again."""
        if self.view.search:
            self.view = replace(self.view, search="")
            self.put_in_order()

    def action_findings(self) -> None:
        """List everything unusual."""
        self._open_beside(FindingsScreen)

    def action_ranking(self) -> None:
        """Rank all directories of the tree."""
        self._open_beside(RankingScreen)

    def _open_beside(self, screen: type[SideScreen]) -> None:
        if self._last_update is not None and self.survey is not None:
            self._beside = screen(self, self._last_update, self.settings)
            self.app.push_screen(self._beside)

    def action_maintenance(self) -> None:
        """Show what else can be done with the highlighted directory."""
        child = self.highlighted()
        if self.imported is not None or child is None or child.kind is not EntryKind.DIRECTORY:
            self.notify("Highlight a directory of this machine.", markup=False)
            return
        self._maintenance = MaintenanceScreen(child_path(self.path, child.name), self.settings)
        self.app.push_screen(self._maintenance)

    def action_delete(self) -> None:
        """Show what deleting the marked directories, or the highlighted one, would cost."""
        if self.why_no_marks:
            self.notify(self.why_no_marks, markup=False)
            return
        paths: tuple[str, ...] = tuple(self.marks)
        if not paths:
            child = self.highlighted()
            if child is None or child.kind is not EntryKind.DIRECTORY:
                self.notify(
                    "Only directories are deleted here. To delete the one you are in, press ← "
                    "first.",
                    markup=False,
                )
                return
            paths = (child_path(self.path, child.name),)
        is_counting = self.survey is None or not self.survey.finished
        if is_counting and self.questions is not None and not self.questions.is_paused:
            self.questions.toggle_pause()  # two surveys would count at half the speed each
            self._paused_for_preview = True
        self.app.push_screen(PreviewScreen(paths, self.settings))


def _look_at(path: str) -> tuple[str, str]:
    """Return the directory that a typed path names, and why it cannot be opened."""
    try:
        return canonical_directory(path), ""
    except TuiFsError as error:
        return path, error.sentence


def _removed(marks: Sequence[PathStr]) -> list[PathStr]:
    return [mark for mark in marks if not os.path.lexists(mark)]
