"""The browser: a surveyed tree, directory by directory, with live counts."""

import os
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace
from rich.text import Text
from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.events import Click
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input, Static
from textual.worker import get_current_worker

from tui_fs.job.command_line import survey_command
from tui_fs.job.permission import read_only_reason
from tui_fs.job.store import all_jobs, find
from tui_fs.linux.filesystem import file_system_of
from tui_fs.model.errors import JobFailed, TuiFsError
from tui_fs.model.filter_text import SYNTAX, in_words, parse_filters
from tui_fs.model.paths import PathStr, displayable, is_within
from tui_fs.model.strategy import Argv, Filters
from tui_fs.model.survey import Child, EntryKind, Listing, Order, Sorting, Survey
from tui_fs.screens.base import (
    COPY_BINDING,
    FIELD_KEYS,
    NARROW_COLUMNS,
    PATIENCE_S,
    BaseScreen,
    Failed,
    Settings,
)
from tui_fs.screens.browser.details import (
    filter_line,
    finding_line,
    place_note,
    totals_line,
    within_lines,
)
from tui_fs.screens.browser.job_strip import JobStrip
from tui_fs.screens.browser.panes import DetailsPane, TreemapPane, details_lines
from tui_fs.screens.browser.search import SearchScreen
from tui_fs.screens.browser.side_screens import (
    FindingsScreen,
    LargestFilesScreen,
    MarksScreen,
    RankingScreen,
    SideScreen,
    measured_sizes,
)
from tui_fs.screens.browser.table import (
    READING,
    Arranged,
    EntryTable,
    arrange,
    size_of,
    sizes_of,
)
from tui_fs.screens.selection import Selection, Size, marks_line, removed_paths
from tui_fs.screens.survey_client import SurveyClient, SurveyUpdated
from tui_fs.survey.findings.registry import FINDING_TYPES
from tui_fs.survey.process import Query, SurveyProcess, Update
from tui_fs.widgets.bar_table import BarRow, BarTable
from tui_fs.widgets.cell_drawing import dots
from tui_fs.widgets.daemon_thread import in_daemon_thread
from tui_fs.widgets.figure_layout import Line
from tui_fs.widgets.footer import Footer
from tui_fs.widgets.key_question import KeyQuestion
from tui_fs.widgets.ordered_input import OrderedInput
from tui_fs.widgets.path_input import PathInput
from tui_fs.widgets.treemap import Treemap

# Each screen that the first one does not show is loaded when it is opened.
if TYPE_CHECKING:
    from tui_fs.screens.browser.page_dialog import PageFile
    from tui_fs.screens.maintenance import MaintenanceScreen
    from tui_fs.screens.preview import PreviewScreen

_IMPORTED = "This was imported from a file: nothing here can be marked or deleted."
_NO_ANSWER = "The directory has not answered yet. Press the key again in a moment."


class ListingUpdated(SurveyUpdated):
    """An update, with the sorted rows if it has the listing of the shown directory."""

    def __init__(self, update: Update, arranged: Arranged | None = None) -> None:
        super().__init__(update)
        self.arranged = arranged


class RowsArranged(Message):
    """The rows are sorted in the order that the user has chosen."""

    def __init__(self, arranged: Arranged) -> None:
        super().__init__()
        self.arranged = arranged


class BrowserScreen(BaseScreen):
    """A table of one directory, with the counts of everything below each of its entries.

    Opening a directory outside the surveyed one starts a new survey, after a question.

    Args:
        path: the first directory; ignored for an imported survey, which has its own.
        imported: a file to read instead of directories.
        survey: one of the first directory or the file that runs already; a new one by default.
        origin: where an imported survey comes from, for the header.

    Attributes:
        path: the shown directory.
        root: the surveyed directory; empty until an imported survey has reported it.
        client: the survey and its answers.
        marks: the marked directories; opening another directory keeps the marks.
        filters: the entries to count, show and delete; inactive for all.
    """

    EXPLANATION = (
        "Each line is an entry of the directory named at the top; its numbers include "
        "everything below it. Numbers marked ~ are still growing; ? was not counted. Symbolic "
        "links are shown but never followed. Marks remain when you change to another directory. "
        "d previews deleting the marked directories or, if none is marked, the highlighted entry, "
        "which may be a file; nothing is deleted before you have confirmed the preview. f sets a "
        "filter, for example *.log >100M >30d: then the numbers count only the files that match, "
        "and d and D preview deleting only these. From 110 columns on, a pane shows the ages and "
        "sizes of the files in the highlighted directory; from 160 on, another one shows a "
        "treemap. T shows the treemap in any terminal; enter zooms into the highlighted directory, "
        "← out again. e writes the survey as a page (HTML) that opens in any web browser. A click "
        "on the path at the top opens the parent directory; one on a line of this help presses its "
        "key."
    )

    HORIZONTAL_BREAKPOINTS = [
        (0, "-narrow"),
        (NARROW_COLUMNS, "-table"),
        (110, "-details"),
        (160, "-treemap"),
    ]

    OPENS = "Open the directory under the cursor"
    BINDINGS = [
        COPY_BINDING,
        Binding("u", "unmark_all", tooltip="Remove all marks"),
        Binding("M", "marks", tooltip="List the marked directories"),
        Binding(
            "N", "mark_named", tooltip="Mark all directories with the name of the highlighted one"
        ),
        Binding("left,h,backspace", "up", tooltip="Open the parent directory"),
        Binding("d", "delete", tooltip="Show what deleting would cost; asks before it deletes"),
        Binding("D", "delete_here", tooltip="With a filter: preview deleting what matches in here"),
        Binding("f", "filter", tooltip="Filter by name, size or age", priority=True),
        Binding("escape", "remove_filter", tooltip="Remove the filter; count everything"),
        Binding("a", "maintenance", tooltip="Set a directory aside, or recreate an emptied one"),
        Binding("s", "sort", tooltip="Sort by the next criterion"),
        Binding(
            "S", "reverse", tooltip="Reverse the order; so does the number of the current order"
        ),
        *(
            Binding(
                str(number),
                f"sort_by('{sorting}')",
                tooltip=f"Sort by {sorting}",
            )
            for number, sorting in enumerate(Sorting, 1)
        ),
        # With priority, so that the characters typed right after it reach the field.
        Binding("slash", "search", tooltip="Search the whole tree for names", priority=True),
        Binding("b", "ranking", tooltip="List the biggest directories of the tree"),
        Binding("B", "largest_files", tooltip="List the largest files below the shown directory"),
        Binding("tab", "findings", tooltip="List all findings"),
        Binding("e", "export", tooltip="Write this survey as a page (HTML) to hand on"),
        Binding("T", "map", tooltip="Show the treemap in place of the panes, or hide it again"),
        Binding("w", "watch", tooltip="Watch the job that runs"),
        Binding("p", "pause", tooltip="Pause or resume counting"),
        Binding("r", "recount", tooltip="Count again"),
        Binding("colon", "path", tooltip="Type a path (tab completes)", priority=True),
        Binding("q", "app.quit", tooltip="Quit; running jobs continue"),
    ]

    def __init__(
        self,
        path: str,
        settings: Settings,
        imported: str | None = None,
        survey: SurveyProcess | None = None,
        origin: str = "imported",
    ) -> None:
        super().__init__(settings)
        self.imported = None if imported is None else PathStr(imported)
        self._origin = origin
        self.path = path if imported is None else ""
        self.root = ""
        self.client = SurveyClient(self, settings.interval_s, self._arrange_listing, survey)
        self.marks = Selection("" if imported is None else _IMPORTED)
        self.filters = Filters()
        self._filter_text = ""
        self._table = EntryTable(self._toggle_mark)
        self._details = DetailsPane(self._lay_out_details, id="details-pane")
        self._treemap = TreemapPane()
        self._order = Order()
        self._side_screen: SideScreen | None = None
        self._maintenance: MaintenanceScreen | None = None
        self._is_paused_for_preview = False
        self._page_file: PageFile | None = None
        self._known_jobs: frozenset[tuple[str, bool]] | None = None

    def compose_body(self) -> ComposeResult:
        """Lay out totals, table, marks, findings and running jobs."""
        yield Static(Text(""), id="totals")
        with Horizontal(id="panes"):
            yield self._table
            yield self._details
            yield self._treemap
        yield Static(Text(""), id="marks")
        yield Static(Text(""), id="finding")
        yield JobStrip()
        yield Prompts()

    def on_mount(self) -> None:
        """Open the first directory."""
        if self.focused is None:
            self.set_focus(self._table)
        self._show_keys()
        self.open_directory(self.path)

    def on_unmount(self) -> None:
        """Stop the survey."""
        self.client.stop()

    def on_screen_suspend(self) -> None:
        """Store the present jobs, to detect a deletion later."""
        self._known_jobs = _known_jobs()

    def on_screen_resume(self) -> None:
        """Show the marks of other screens; count again after a deletion."""
        self.after_preview()
        if self.client.survey is not None:
            self.refresh_rows()

    def after_preview(self) -> None:
        """Continue counting, or count again after a deletion."""
        if self.client.survey is None:
            return
        has_acted = self._maintenance is not None and self._maintenance.has_acted
        self._maintenance = None
        known_jobs = _known_jobs()
        if has_acted or self._known_jobs != known_jobs:
            self._known_jobs = known_jobs
            self._unmark_removed(tuple(self.marks))
            self.action_recount()
        elif self._is_paused_for_preview:
            self.client.toggle_pause()
        self._is_paused_for_preview = False

    @work(exclusive=True, group="marks")
    async def _unmark_removed(self, marks: Sequence[PathStr]) -> None:
        """Remove the marks of removed directories; the file system may not answer."""
        self.marks.remove(await in_daemon_thread(partial(removed_paths, marks)))
        self._show_marks()

    # The shown directory and its survey

    def open_directory(self, path: str, came_from: str | None = None) -> None:
        """Show another directory, with the cursor on the entry `came_from` if set."""
        self.path = path
        if self._is_surveyed(path):
            self.client.show(path, self._order, came_from)
            self._show_nothing(sought=came_from)
            self._sort_rows()
        else:
            self._survey(path, sought=came_from)

    def jump_to(self, path: PathStr) -> None:
        """Show the directory of a surveyed path, with the cursor on that path."""
        if path == self.root:
            self.open_directory(path)
        elif is_within(path, self.root):
            parent, name = os.path.split(path)
            self.open_directory(parent, came_from=name)
        else:
            self.notify(f"{displayable(path)} is outside the surveyed tree.", markup=False)

    def _survey(self, root: str, sought: str | None = None) -> None:
        self.root = root
        if self._page_file is not None:
            self._page_file = None
            self.notify(
                "Counting begins again, so no page is written. Press e later.", markup=False
            )
        paths = () if self.imported is not None else (root,)
        self.client.start(paths, self.imported, self.filters)
        self._show_nothing(sought=sought)
        if self.path:
            self.client.show(self.path, self._order, sought)

    def _is_surveyed(self, path: str) -> bool:
        if self.imported is not None:
            return self.root != ""
        if not self.root or not is_within(path, self.root):
            return False
        survey = self.client.survey
        # A path that the survey skipped is not in it, unless the survey started inside that path.
        return survey is None or not any(
            not FINDING_TYPES[finding.kind].is_counted
            and is_within(path, finding.path)
            and not is_within(self.root, finding.path)
            for finding in survey.findings
        )

    def _arrange_listing(self, update: Update) -> ListingUpdated:
        """Sort the listing in the thread that reads the survey."""
        arranged = None
        if update.listing is not None and update.listing.path == self.path:
            arranged = self._arrange(update.listing, update.survey, self._order)
        return ListingUpdated(update, arranged)

    def on_listing_updated(self, message: ListingUpdated) -> None:
        """Show counts and answers."""
        if not self.client.accept(message):
            return
        update = message.update
        self.marks.update_sizes(measured_sizes(update))
        if not self.root and update.survey.path:
            self.root = update.survey.path
            self.open_directory(self.root)
        if update.listing is not None and update.listing.path == self.path:
            if message.arranged is not None and message.arranged.order == self._order:
                self._show_rows(message.arranged)
            else:
                self._sort_rows()  # the user has chosen another order meanwhile
        if update.page is not None and self._page_file is not None:
            self._write_page(self._page_file, update.page, is_whole=update.survey.finished)
            self._page_file = None
        named = self.client.take_named()
        if named is not None:
            self._mark_named(named)
        if self._side_screen is not None:
            self._side_screen.on_survey_update()
        self._show_keys()

    def on_failed(self, message: Failed) -> None:
        """Show the error."""
        self._page_file = None
        self.client.stop()
        self._show_nothing(str(message.error))

    # Drawing the directory

    def _sort_rows(self) -> None:
        """Sort the last listing of the directory in the current order."""
        listing, survey = self.client.listing(self.path), self.client.survey
        if listing is not None and survey is not None:
            self._sort_in_thread(listing, survey, self._order)

    @work(thread=True, exclusive=True, group="rows")
    def _sort_in_thread(self, listing: Listing, survey: Survey, order: Order) -> None:
        worker = get_current_worker()
        arranged = self._arrange(listing, survey, order)
        if not worker.is_cancelled:
            self.post_message(RowsArranged(arranged))

    def _arrange(self, listing: Listing, survey: Survey, order: Order) -> Arranged:
        return arrange(
            listing,
            survey.findings,
            order,
            is_growing=not survey.finished,
            now_s=time.time(),
            required=self._table.sought,
            is_filtered=self.client.is_filtered,
        )

    def on_rows_arranged(self, message: RowsArranged) -> None:
        """Show the new order, unless the user has changed it again."""
        arranged = message.arranged
        if arranged.order == self._order and arranged.listing is self.client.listing(self.path):
            self._show_rows(arranged)

    def refresh_rows(self) -> None:
        """Redraw rows and lines, for example after a change of the marks."""
        if self._table.arranged is not None:
            self._show_rows(self._table.arranged)
        else:
            self._show_marks()

    def _show_rows(self, arranged: Arranged) -> None:
        survey = self.client.survey
        if survey is None:
            return
        listing = arranged.listing
        marked = {
            os.path.basename(mark) for mark in self.marks if os.path.dirname(mark) == self.path
        }
        self.marks.update_sizes(sizes_of(listing, marked))
        self._table.show(arranged, marked, self._reason_empty(listing, survey))
        self._show_totals()
        self._show_marks()
        self._show_finding()
        self._show_panes()
        self._show_treemap()

    def _reason_empty(self, listing: Listing, survey: Survey) -> str:
        if listing.problem:
            return listing.problem
        if not (survey.finished or listing.complete):
            return READING
        if self.client.is_filtered:
            return "nothing here matches the filter"
        if not listing.totals.entries:
            return "not counted; r counts again"
        return "empty directory"

    def _show_nothing(self, reason: str = READING, sought: str | None = None) -> None:
        """Show a directory without any counts yet."""
        self._table.clear_rows(reason, sought)
        for line in ("#totals", "#finding"):
            self.set_line(line, Text(""))
        if self.filters.active:
            self._show_finding()
        self._show_panes()
        self._treemap.clear()
        self._show_marks()
        if self.imported is not None:
            self.show_place("", displayable(self.path), f"{self._origin}, read-only")
            return
        self.show_place("", displayable(self.path), dots())
        self._stat_file_system(self.path)
        self.set_timer(PATIENCE_S, partial(self._show_no_answer, self.path))

    @work(thread=True, exclusive=True, group="place")
    def _stat_file_system(self, path: str) -> None:
        note = place_note(file_system_of(path))
        if read_only_reason(by_option=self.settings.read_only) is not None:
            note.append(" · read-only", "bold")
        if not get_current_worker().is_cancelled:
            self.app.call_from_thread(self.show_place, "", displayable(path), note)

    def _show_no_answer(self, path: str) -> None:
        """Report that the file system does not answer, unless it has answered meanwhile."""
        is_waiting = self._table.arranged is None and self._table.empty_text == READING
        if self.path == path and is_waiting:
            self._table.empty_text = "The file system has not answered yet. ← leaves, q quits."

    def on_descendant_focus(self) -> None:
        """Show the keys of the field or of the table."""
        self._show_keys()

    def _show_keys(self) -> None:
        footer = self.query_one("#keys", Footer)
        if isinstance(self.focused, Input):
            can_complete = self.focused.id == "path-input"
            footer.keys = tuple(key for key in FIELD_KEYS if can_complete or key[0] != "tab")
            return
        survey = self.client.survey
        number = len(survey.findings) if survey is not None else 0
        is_here = self.imported is None
        actions: tuple[tuple[str, str], ...] = (("f", "filter"),)
        if self.filters.active:
            actions += (("esc", "no filter"),)
            if is_here:
                actions = ("d", "delete matches…"), ("D", "all matches…"), *actions
        elif is_here:
            actions = ("d", "delete…"), *actions
        if is_here:
            actions = ("space", "mark"), *actions
        footer.keys = (
            *actions,
            ("/", "search"),
            ("tab", f"findings ({number})"),
            ("s", "sort"),
            ("enter", "open"),
            ("b", "biggest"),
            ("T", "map"),
            ("M", "marks"),
            ("←", "up"),
            ("1–6", "order"),
            (":", "path"),
            ("e", "page"),
            ("y", "copy"),
            ("p", "resume" if self.client.is_paused else "pause"),
            ("q", "quit"),
            ("?", "help"),
        )

    def idle_keys(self) -> frozenset[str]:
        """Return the keys that would do nothing now."""
        idle = set[str]()
        if self._table.arranged is not None and self._table.cursor_row is None:
            idle |= {"enter", "space", "T"}
        if not self.marks:
            idle.add("M")
        if not self.client.is_counting:
            idle.add("p")
        return frozenset(idle)

    def _show_marks(self) -> None:
        self.show_idle_keys()
        line = marks_line(
            self.marks,
            self.path,
            is_filtered=self.client.is_filtered,
            keys="d previews · M lists",
        )
        self.set_line("#marks", line)

    def _show_finding(self) -> None:
        finding = self.query_one("#finding", Static)
        finding.set_class(self.filters.active, "filter")
        if self.filters.active:
            finding.update(filter_line(self.filter_words()))
        elif self.client.survey is not None:
            child = self._table.highlighted
            path = self._path_of(child) if child is not None else None
            line = finding_line(self.client.survey, self.path, path)
            size = finding.content_size
            text = within_lines(line, self.app.console, size.width, size.height)
            self.set_line("#finding", text)

    def _show_panes(self) -> None:
        """Show the highlighted directory in the panes, as far as the screen is wide enough."""
        self._follow_cursor()
        self._details.refresh()

    def _follow_cursor(self) -> None:
        """Highlight the directory in the treemap, and ask for its details."""
        child = self._table.highlighted
        self._treemap.treemap.highlighted = "" if child is None else child.name
        if self._details.display and self.client.survey is not None:
            directory = self._highlighted_directory()
            self.client.describe(self.path if directory is None else self._path_of(directory))

    def _show_treemap(self) -> None:
        """Show the listed directory in the treemap, if there is room for it."""
        arranged = self._table.arranged
        if arranged is not None and self._treemap.display:
            self._treemap.show(arranged.listing, arranged.order, arranged.now_s)

    def _lay_out_details(self, width: int) -> list[Line]:
        survey, listing = self.client.survey, self.client.listing(self.path)
        if survey is None or listing is None:
            return []
        directory = self._highlighted_directory()
        path = PathStr(self.path) if directory is None else self._path_of(directory)
        return details_lines(
            path,
            listing.totals if directory is None else directory.totals,
            self.client.details(path),
            survey.findings,
            width,
            self._details.size.height,
            is_complete=listing.complete if directory is None else directory.complete,
            is_filtered=self.client.is_filtered,
        )

    def _path_of(self, child: Child) -> PathStr:
        return PathStr(os.path.join(self.path, child.name))

    def _highlighted_directory(self) -> Child | None:
        child = self._table.highlighted
        return child if child is not None and child.kind is EntryKind.DIRECTORY else None

    # Navigation

    def on_bar_table_highlighted(self) -> None:
        """Show the finding and the details of the entry under the cursor."""
        self._show_finding()
        self._follow_cursor()
        self.call_after_refresh(self._details.refresh)  # it takes longer to draw than the cursor

    def action_map(self) -> None:
        """Show the treemap below the table at full width, or the panes again."""
        self.toggle_class("-map")
        self.call_after_refresh(self._show_treemap)
        self.call_after_refresh(self._show_panes)

    def on_treemap_clicked(self, message: Treemap.Clicked) -> None:
        """Move the cursor to an entry, or open it if the cursor is there, as in the table."""
        child = self._table.highlighted
        if child is not None and child.name == message.key:
            self._table.action_open()
        else:
            self._table.move_to(message.key)
            self.on_bar_table_highlighted()

    def _show_totals(self) -> None:
        survey, arranged = self.client.survey, self._table.arranged
        if survey is None or arranged is None:
            return
        line = totals_line(
            survey,
            arranged.listing,
            arranged.order,
            is_paused=self.client.is_paused,
            since_finished_s=self.client.since_finished_s,
            is_imported=self.imported is not None,
            room=self.size.width - 2,
            is_filtered=self.client.is_filtered,
        )
        self.set_line("#totals", line)

    def on_resize(self) -> None:
        """Fill the panes that have appeared, and shorten the totals to a narrow terminal."""
        self._show_totals()
        self.call_after_refresh(self._show_treemap)
        self.call_after_refresh(self._show_finding)
        self.call_after_refresh(self._show_panes)

    def on_bar_table_opened(self, message: BarTable.Opened) -> None:
        """Open a directory, or explain why an entry cannot be opened."""
        child = self._table.child(message.row.key)
        if child is None:
            return
        path = self._path_of(child)
        if child.kind is EntryKind.DIRECTORY and self._is_surveyed(path):
            self.open_directory(path)
        elif child.kind is EntryKind.DIRECTORY:
            self._ask_to_survey(path, "It is on another file system, or another subvolume.")
        elif child.kind is EntryKind.SYMLINK:
            self.notify("A symbolic link; links are not followed.", markup=False)
        else:
            self.notify("Not a directory.", markup=False)

    def _ask_to_survey(self, path: str, where: str, came_from: str | None = None) -> None:
        """Ask before another survey replaces this one."""
        lines = (
            f"{displayable(path)} is not in the tree that was counted. {where}",
            f"Counting it may take long, and the counts of {displayable(self.root)} are lost.",
        )
        question = KeyQuestion("Count another directory?", lines, "y", "counts it")

        def answered(yes: bool | None) -> None:
            if yes:
                self.open_directory(path, came_from)

        self.app.push_screen(question, answered)

    def action_up(self) -> None:
        """Open the parent directory, with the cursor on the previous one.

        Above the top directory of an import is the list of hosts if it came from one.
        """
        parent, name = os.path.split(self.path)
        is_top = self.imported is not None and self.path == self.root
        if is_top and isinstance(self.app.screen_stack[-2], BaseScreen):
            self.app.pop_screen()
        elif is_top:
            self.notify("This is the top directory of the import.", markup=False)
        elif name and self._is_surveyed(parent):
            self.open_directory(parent, came_from=name)
        elif name:
            self._ask_to_survey(parent, f"It is above {displayable(self.root)}.", came_from=name)

    @on(Click, "#place")
    def on_place_clicked(self) -> None:
        """Open the parent directory."""
        self.action_up()

    def action_sort(self) -> None:
        """Sort by the next criterion."""
        sortings = list(Sorting)
        at = sortings.index(self._order.sorting)
        self._sort_by(Order(sortings[(at + 1) % len(sortings)]))

    def action_sort_by(self, criterion: str) -> None:
        """Sort by a criterion, or reverse the order of the present one."""
        sorting = Sorting(criterion)
        if sorting is self._order.sorting:
            self.action_reverse()
        else:
            self._sort_by(Order(sorting))

    def action_reverse(self) -> None:
        """Reverse the order."""
        self._sort_by(replace(self._order, is_reversed=not self._order.is_reversed))

    def _sort_by(self, order: Order) -> None:
        self._order = order
        self._sort_rows()
        listing = self.client.listing(self.path)
        if listing is not None and not listing.is_sorted(order):
            child = self._table.highlighted if self._table.is_cursor_placed else None
            self.client.show(self.path, order, None if child is None else child.name)

    def action_recount(self) -> None:
        """Survey the same tree again and show the same directory."""
        child = self._table.highlighted
        self._survey(self.root, sought=child.name if child is not None else None)

    def action_pause(self) -> None:
        """Pause counting, or resume it."""
        if not self.client.is_counting:
            self.notify("Counting is complete.", markup=False)
            return
        self.client.toggle_pause()
        self.refresh_rows()
        self._show_keys()

    # Typing

    def check_action(
        self,
        action: str,
        parameters: tuple[object, ...],  # noqa: ARG002  textual's signature
    ) -> bool | None:
        """Disable the keys that open a field while the user types in one, or before it exists."""
        if action == "remove_filter":
            return self.filters.active
        if action in ("search", "path", "filter"):
            return self.focused is not None and not isinstance(self.focused, Input)
        return True

    def action_search(self) -> None:
        """Open the search field."""
        self.open_field("#search-input", "")

    def action_path(self) -> None:
        """Open the path field."""
        if self.imported is not None:
            self.notify("Only the imported directories can be shown here.", markup=False)
        else:
            self.open_path_field(self.path)

    def action_filter(self) -> None:
        """Open the filter field with the present filter."""
        self.ask_for_filter(self._filter_text)

    def ask_for_filter(self, text: str) -> None:
        """Open the filter field with a text."""
        self.open_field("#filter-input", text)
        self.query_one(Prompts).show_filter_help()

    def on_input_submitted(self, message: Input.Submitted) -> None:
        """Search the whole tree, or count it with the filters unless they are wrong."""
        if message.input.id == "filter-input":
            try:
                filters = parse_filters(message.value, time.time())
            except ValueError as error:
                self.query_one(Prompts).show_filter_help(str(error))
                return
            self.action_close_field()
            self._count_filtered(filters, message.value.strip())
            return
        self.action_close_field()
        if message.value:
            self._open_beside(SearchScreen, text=message.value, imported=self.imported)

    def _count_filtered(self, filters: Filters, text: str) -> None:
        if not filters.active:
            self.action_remove_filter()
            return
        self.filters, self._filter_text = filters, text
        self.marks.forget_sizes()
        self._survey(self.root)
        self._measure_marks()

    def action_remove_filter(self) -> None:
        """Show the counts of everything, which the survey has as well."""
        if not self.filters.active:
            return
        self.filters, self._filter_text = Filters(), ""
        if self.client.is_stopped:
            self._survey(self.root)
        else:
            self.client.count_everything()
        self.marks.forget_sizes()
        child = self._table.highlighted
        self.open_directory(self.path, child.name if child is not None else None)
        self._measure_marks()

    def _measure_marks(self) -> None:
        if self.marks:
            self.client.ask(Query(measured=tuple(self.marks)))
        self._show_keys()

    def command_to_copy(self) -> Argv:
        """Return the command that counts the shown directory, or what the filters select in it."""
        if self.imported is not None:
            return ("tui-fs", "survey", f"--import={os.path.abspath(self.imported)}")
        return survey_command(self.path, self.filters, time.time())

    def filter_words(self) -> str:
        """Return what the filter selects; empty without a filter."""
        return in_words(self.filters, time.time())

    def on_path_input_chosen(self, message: PathInput.Chosen) -> None:
        """Open the typed directory, or explain why not; the field stays until it is opened."""

        def open_directory(path: str) -> None:
            self.action_close_field()
            self.open_directory(path)

        self.open_typed(os.path.normpath(os.path.join(self.path, message.path)), open_directory)

    def on_path_input_cancelled(self) -> None:
        """Close the field."""
        self.action_close_field()

    def action_close_field(self) -> None:
        """Close the field, and return to the table."""
        self.workers.cancel_group(self, "typed")
        self.query_one(Prompts).close()
        self.set_focus(self._table)

    # Marking

    def _toggle_mark(self, row: BarRow) -> bool:
        """Mark a directory or remove its mark, or explain why an entry cannot be marked."""
        child = self._table.child(row.key)
        if child is None:
            return False
        if child.kind is not EntryKind.DIRECTORY:
            self.notify("Only directories can be marked. d deletes a single file.", markup=False)
            return False
        path = self._path_of(child)
        was_marked = path in self.marks
        explanation = self.marks.toggle(path, size_of(child))
        if explanation:
            self.notify(explanation, markup=False)
        self.refresh_rows()
        return (path in self.marks) != was_marked

    def action_unmark_all(self) -> None:
        """Remove all marks."""
        self.marks.clear()
        self.refresh_rows()

    def action_mark_named(self) -> None:
        """Query the survey for all directories with the highlighted name, to mark them."""
        child = self._highlighted_directory()
        if child is None:
            self.notify("Move to a directory first.", markup=False)
        elif self.marks.refusal:
            self.notify(self.marks.refusal, markup=False)
        else:
            self.client.find_named(child.name)

    def _mark_named(self, update: Update) -> None:
        """Mark the directories with the requested name, and report their number."""
        number = len(update.paths_named)
        marked = self.marks.add_all(update.paths_named, _size_of_named(update))
        directories, are = ("directory", "is") if marked == 1 else ("directories", "are")
        name = displayable(str(update.query.name))
        report = f"{marked:,} {directories} named {name} {are} marked."
        if number > marked:
            report += (
                f" {number - marked:,} more skipped (inside a marked directory, or over the limit)."
            )
        elif not update.survey.finished:
            report += " Counting is not complete and may find more."
        self.app.notify(report, markup=False)
        self.refresh_rows()

    # Other screens

    def action_findings(self) -> None:
        """List the findings."""
        self._open_beside(FindingsScreen)

    def action_ranking(self) -> None:
        """Rank all directories of the tree."""
        self._open_beside(RankingScreen)

    def action_largest_files(self) -> None:
        """List the largest files below the shown directory."""
        self._open_beside(LargestFilesScreen, path=PathStr(self.path))

    def action_marks(self) -> None:
        """List the marked directories."""
        if self.marks:
            self._open_beside(MarksScreen)
        else:
            self.notify("Nothing is marked. space marks a directory.", markup=False)

    def _open_beside(self, screen: Callable[..., SideScreen], **arguments: str | None) -> None:
        """Open a screen that shows updates of the survey, once there is one."""
        if self.client.last_update is None:
            self.notify(_NO_ANSWER, markup=False)
            return
        self._side_screen = screen(self, settings=self.settings, **arguments)
        self.app.push_screen(self._side_screen)

    def action_export(self) -> None:
        """Ask for a file name, and write the survey into it as a page (HTML)."""
        from tui_fs.screens.browser.page_dialog import PageDialog

        survey = self.client.survey
        if survey is None:
            self.notify("Nothing is counted yet. Press e later.", markup=False)
        elif self.client.has_filters:
            self.notify(
                "A page has no filter. Remove the filter (esc), count again (r), and press e.",
                markup=False,
            )
        elif self._page_file is not None:
            self.notify("A page is being written already.", markup=False)
        else:
            dialog = PageDialog(self.root, is_whole=survey.finished)
            self.app.push_screen(dialog, self._make_page)

    def _make_page(self, file: "PageFile | None") -> None:
        if file is not None:
            self._page_file = file
            self.notify(f"Making the page{dots()}", markup=False)
            self.client.ask(Query(page=True))

    @work(group="page")
    async def _write_page(self, file: "PageFile", content: bytes, *, is_whole: bool) -> None:
        from tui_fs.screens.browser.page_dialog import write_page

        sentence = await in_daemon_thread(partial(write_page, file, content, is_whole=is_whole))
        self.app.notify(sentence, markup=False)

    def action_watch(self) -> None:
        """Show the newest running job."""
        from tui_fs.screens.run import RunScreen

        job_id = self.query_one(JobStrip).job_id
        if not job_id:
            self.notify("No job runs. J lists the ended ones.", markup=False)
            return
        try:
            self.app.push_screen(RunScreen(find(job_id), self.settings))
        except TuiFsError as error:
            self.notify(error.sentence, markup=False)

    def on_job_strip_ended(self, message: JobStrip.Ended) -> None:
        """Report how jobs have ended; count again if they have changed the tree."""
        for job in message.jobs:
            sentence = f"Job {job.job_id} has ended: {job.state}. J leads to its report."
            self.notify(sentence, markup=False)
        targets = [target for job in message.jobs for target in job.targets]
        if self.imported is None and any(
            is_within(target, self.root) or is_within(self.root, target) for target in targets
        ):
            self.after_preview()

    def action_maintenance(self) -> None:
        """Show the maintenance of the highlighted directory."""
        from tui_fs.screens.maintenance import MaintenanceScreen

        child = self._highlighted_directory()
        if self.imported is not None or child is None:
            self.notify("Move to a directory on this machine first.", markup=False)
            return
        self._maintenance = MaintenanceScreen(self._path_of(child), self.settings)
        self.app.push_screen(self._maintenance)

    def action_delete(self) -> None:
        """Preview the deletion of the marked directories, or of the highlighted entry."""
        if self.marks.refusal:
            self.notify(self.marks.refusal, markup=False)
            return
        paths: Sequence[PathStr] = tuple(self.marks)
        if not paths:
            child = self._table.highlighted
            if child is None:
                self.notify("To delete the directory you are in, press ← first.", markup=False)
                return
            paths = (self._path_of(child),)
            if child.kind is not EntryKind.DIRECTORY:
                self.preview_file(paths[0])
                return
        self.preview(paths)

    def action_delete_here(self) -> None:
        """Preview the deletion of what matches in the shown directory."""
        if self.marks.refusal:
            self.notify(self.marks.refusal, markup=False)
        elif self.filters.active:
            self.preview((PathStr(self.path),))
        else:
            self.notify(
                "D deletes what a filter (f) matches. To delete this directory itself, press ← "
                "first, then d.",
                markup=False,
            )

    def preview(self, paths: Sequence[PathStr]) -> None:
        """Preview the deletion of some directories; counting pauses meanwhile."""
        from tui_fs.screens.preview import PreviewScreen

        screen = PreviewScreen(
            tuple(paths), self.settings, filters=self.filters, filter_text=self._filter_text
        )
        self._preview(screen)

    def preview_file(self, path: PathStr) -> None:
        """Preview the deletion of a single file; a filter has no part in that."""
        from tui_fs.screens.preview import PreviewScreen

        self._preview(PreviewScreen((path,), self.settings, allows_file=True))

    def _preview(self, screen: "PreviewScreen") -> None:
        if self.client.is_counting and not self.client.is_paused:
            self.client.toggle_pause()  # two surveys would each run at half speed
            self._is_paused_for_preview = True
        self.app.push_screen(screen)


def _known_jobs() -> frozenset[tuple[str, bool]] | None:
    """Return all jobs and whether each has its report; None if they cannot be listed."""
    try:
        return frozenset((job.path, os.path.exists(job.report)) for job in all_jobs())
    except JobFailed:
        return None  # the list of jobs shows the reason


def _size_of_named(update: Update) -> Size | None:
    """Return the total size of all directories of the name, if the survey has reported it."""
    if update.is_filtered:
        return None  # the survey's groups count everything
    for group in update.survey.groups:
        if group.name == update.query.name and group.directories == len(update.paths_named):
            return Size(group.totals.entries, group.totals.allocated_bytes, is_whole=True)
    return None


class Prompts(Widget):
    """The fields below the table, for a search, filters and a path; hidden until used."""

    BINDINGS = [Binding("escape", "screen.close_field", tooltip="Close the field")]

    def compose(self) -> ComposeResult:
        """Lay out the fields."""
        path = PathInput(id="path-input", classes="hidden")
        path.border_title = "path"
        yield path
        search = OrderedInput(
            id="search-input",
            placeholder="a part of a name, or a pattern for whole names: *.log",
            classes="hidden",
        )
        search.border_title = "search the whole tree"
        yield search
        filters = OrderedInput(id="filter-input", placeholder="*.log >100M >30d", classes="hidden")
        filters.border_title = "count only files that match; empty: everything"
        yield filters
        yield Static(Text(""), id="filter-help", classes="hidden")

    def show_filter_help(self, problem: str = "") -> None:
        """Show what can be typed into the field for filters, below what is wrong in it."""
        text = Text(f"{problem}\n" if problem else "", "bold")
        text.append("\n".join(SYNTAX), "dim not bold")
        filter_help = self.query_one("#filter-help", Static)
        filter_help.update(text)
        filter_help.remove_class("hidden")

    def close(self) -> None:
        """Hide the fields."""
        for field in self.query("Input, #filter-help"):
            field.add_class("hidden")
