"""The browser: what is in a directory, counted while one looks."""

import os
import time
from typing import ClassVar

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.widgets import Input, Static
from textual.worker import get_current_worker

from tui_fs.linux.filesystem import file_system_of
from tui_fs.model.paths import displayable
from tui_fs.model.survey import EntryKind, Severity, Survey
from tui_fs.model.units import bytes_iec, count, counted
from tui_fs.screens.choose_rows import COLUMNS, Sorting, rows_of
from tui_fs.screens.counting import CountingScreen
from tui_fs.screens.findings import FindingsScreen
from tui_fs.screens.frame import Settings, muted
from tui_fs.screens.messages import Failed, SurveyUpdated
from tui_fs.screens.place import place_note
from tui_fs.screens.preview import PreviewScreen
from widgets.bar_list import BarList
from widgets.path_input import PathInput

_SURVEYS_KEPT = 50


class ChooseScreen(CountingScreen):
    """A list of one directory, with the counts of everything below each of its entries."""

    KEYS: ClassVar = (
        ("enter", "open"),
        ("←", "up"),
        ("d", "delete…"),
        ("s", "sort"),
        ("/", "search"),
        ("o", "path"),
        ("J", "jobs"),
        ("q", "quit"),
        ("tab", "findings"),
    )
    EXPLANATION = (
        "Each line is an entry of the directory named at the top, with everything below it "
        "counted. Numbers marked ~ still grow. Symbolic links are shown, never followed. "
        "d shows what deleting the highlighted directory would cost; nothing is deleted "
        "before you have confirmed it there."
    )

    BINDINGS = [
        Binding("left,h,backspace", "up", tooltip="Open the directory above"),
        Binding("d", "delete", tooltip="Show what deleting this directory would cost"),
        Binding("s", "sort", tooltip="Sort by entries, allocated bytes or name"),
        Binding("slash", "search", tooltip="Show only names that contain a text"),
        Binding("o", "path", tooltip="Type a path (tab completes)"),
        Binding("r", "recount", tooltip="Count again"),
        Binding("tab", "findings", tooltip="Show what is unusual here"),
        Binding("escape", "clear_search", tooltip="End the search", show=False),
        Binding("q", "app.quit", tooltip="Quit; running jobs go on"),
    ]

    def __init__(self, path: str, settings: Settings) -> None:
        super().__init__(settings)
        self._path = path
        self._came_from: str | None = None
        self._survey: Survey | None = None
        self._counted_at_s = 0.0
        self._known: dict[str, tuple[Survey, float]] = {}
        self._sorting = Sorting.ENTRIES
        self._search = ""
        self._cursor_moved = False

    def compose_body(self) -> ComposeResult:
        """Lay out totals, list, and what is unusual."""
        yield Static(Text(""), id="totals")
        yield BarList(COLUMNS, empty_text="reading…", id="entries")
        yield Static(Text(""), id="finding")
        path = PathInput(id="path-input", classes="hidden")
        path.border_title = "path"
        yield path
        search = Input(id="search-input", placeholder="part of a name", classes="hidden")
        search.border_title = "search"
        yield search

    def on_mount(self) -> None:
        """Begin with the directory the person named."""
        self.query_one(BarList).focus()
        self.open_directory(self._path)

    def on_screen_resume(self) -> None:
        """After a deletion the old counts are wrong."""
        if self._survey is not None:
            self._known.clear()
            self.action_recount()

    def open_directory(self, path: str, came_from: str | None = None) -> None:
        """Show another directory; its counts are kept from the last visit if there was one."""
        self.stop_counting()
        self._path, self._came_from, self._search = path, came_from, ""
        self._cursor_moved = False
        known = self._known.get(path)
        self._survey, self._counted_at_s = known or (None, 0.0)
        rows = self.query_one(BarList)
        rows.empty_text = "reading…"
        rows.set_rows((), keep_cursor=False)
        self._show_place()
        if known is None:
            self.count(path)
        else:
            self._show()

    def on_survey_updated(self, message: SurveyUpdated) -> None:
        """Show the counts so far, unless they are of a directory that was left."""
        if message.survey.path != self._path:
            return
        self._survey, self._counted_at_s = message.survey, time.monotonic()
        if message.survey.finished:
            self._known[self._path] = (message.survey, self._counted_at_s)
            if len(self._known) > _SURVEYS_KEPT:
                del self._known[next(iter(self._known))]
        self._show()

    def on_failed(self, message: Failed) -> None:
        """Say why nothing can be shown."""
        self.query_one(BarList).empty_text = str(message.error)

    def _show_place(self) -> None:
        self.show_place("", displayable(self._path), "…")
        self._look_at_place(self._path)

    @work(thread=True, exclusive=True, group="place")
    def _look_at_place(self, path: str) -> None:
        note = place_note(file_system_of(path))
        if not get_current_worker().is_cancelled:
            self.app.call_from_thread(self.show_place, "", displayable(path), note)

    def _show(self) -> None:
        survey = self._survey
        if survey is None:
            return
        rows = self.query_one(BarList)
        shown = rows_of(survey, self._sorting, self._search)
        rows.empty_text = "nothing matches" if self._search else "empty directory"
        if not survey.finished and not shown:
            rows.empty_text = "reading…"
        rows.set_rows(shown, keep_cursor=self._cursor_moved)
        if self._came_from is not None and any(row.key == self._came_from for row in shown):
            rows.move_to(self._came_from)
            self._came_from, self._cursor_moved = None, True
        self.query_one("#totals", Static).update(self._totals(survey))
        self.query_one("#finding", Static).update(_first_finding(survey))

    def _totals(self, survey: Survey) -> Text:
        totals = survey.totals
        line = Text(no_wrap=True, overflow="ellipsis")
        line.append("" if survey.finished else "counting  ", "dim")
        line.append(count(totals.entries), "bold")
        noun = "entry" if totals.entries == 1 else "entries"
        line.append(f" {noun} in {counted(totals.directories, 'directory', 'directories')} · ")
        line.append(bytes_iec(totals.allocated_bytes), "bold")
        if not survey.finished:
            rate = round(totals.entries / survey.elapsed_s) if survey.elapsed_s > 0 else 0
            line.append(f" · {count(rate)} /s  ~ so far", "dim")
        elif survey.unreadable:
            line.append(f" · {count(survey.unreadable)} unreadable, not complete !", "bold")
        else:
            age_s = time.monotonic() - self._counted_at_s
            line.append(" · complete", "dim")
            if age_s >= 60:
                line.append(f", counted {age_s / 60:.0f} min ago (r counts again)", "dim")
        line.append(f" · sorted by {self._sorting}", "dim")
        return line

    def on_bar_list_highlighted(self) -> None:
        """From now on the cursor stays on its entry when the order changes."""
        self._cursor_moved = True

    def on_bar_list_opened(self, message: BarList.Opened) -> None:
        """Open a directory; say why other entries cannot be opened."""
        kind = self._kind_of(message.row.key)
        if kind is EntryKind.DIRECTORY:
            self.open_directory(os.path.join(self._path, message.row.key))
        elif kind is EntryKind.SYMLINK:
            self.notify("A symbolic link; links are not followed.", markup=False)
        elif kind is not None:
            self.notify("Not a directory.", markup=False)

    def _kind_of(self, name: str) -> EntryKind | None:
        children = self._survey.children if self._survey else ()
        return next((child.kind for child in children if child.name == name), None)

    def action_up(self) -> None:
        """Open the directory above, the cursor on the one that was left."""
        parent, name = os.path.split(self._path)
        if name:
            self.open_directory(parent, came_from=name)

    def action_sort(self) -> None:
        """Sort by the next criterion."""
        self._sorting = self._sorting.following
        self._show()

    def action_recount(self) -> None:
        """Count this directory again."""
        row = self.query_one(BarList).cursor_row
        self._known.pop(self._path, None)
        self.open_directory(self._path, came_from=row.key if row else None)

    def action_search(self) -> None:
        """Ask for a part of a name."""
        self._ask("#search-input", self._search)

    def action_path(self) -> None:
        """Ask for a path."""
        self._ask("#path-input", displayable(self._path).rstrip("/") + "/")

    def _ask(self, selector: str, value: str) -> None:
        field = self.query_one(selector, Input)
        field.remove_class("hidden")
        field.value = value
        field.cursor_position = len(value)
        field.focus()

    def _answered(self) -> None:
        for field in self.query(Input):
            field.add_class("hidden")
        self.query_one(BarList).focus()

    def on_input_changed(self, message: Input.Changed) -> None:
        """Narrow the list while the person types."""
        if message.input.id == "search-input" and not message.input.has_class("hidden"):
            self._search = message.value
            self._show()

    def on_input_submitted(self, message: Input.Submitted) -> None:
        """Keep the search and go back to the list."""
        if message.input.id == "search-input":
            self._answered()

    def on_path_input_chosen(self, message: PathInput.Chosen) -> None:
        """Open the typed directory, or say why not."""
        path = os.path.normpath(os.path.join(self._path, message.path))
        if os.path.islink(path):
            self.notify(f"{displayable(path)} is a symbolic link.", markup=False)
        elif not os.path.isdir(path):
            self.notify(f"{displayable(path)} is not a directory.", markup=False)
        else:
            self._answered()
            self.open_directory(os.path.realpath(path))

    def on_path_input_cancelled(self) -> None:
        """Go back to the list."""
        self._answered()

    def action_clear_search(self) -> None:
        """Show everything again."""
        self._answered()
        if self._search:
            self._search = ""
            self._show()

    def action_findings(self) -> None:
        """List everything unusual."""
        if self._survey is not None:
            self.app.push_screen(FindingsScreen(self._survey, self.settings))

    def action_delete(self) -> None:
        """Show what deleting the highlighted directory would cost."""
        row = self.query_one(BarList).cursor_row
        if row is None or self._kind_of(row.key) is not EntryKind.DIRECTORY:
            self.notify(
                "Only directories are deleted here. To delete the one you are in, press ← first.",
                markup=False,
            )
            return
        self.stop_counting()
        self.app.push_screen(PreviewScreen(os.path.join(self._path, row.key), self.settings))


def _first_finding(survey: Survey) -> Text:
    graver = [f for f in survey.findings if f.severity is not Severity.INFO]
    if not graver:
        return muted("nothing unusual so far" if not survey.finished else "nothing unusual here")
    path = graver[0].path.removeprefix(survey.path).lstrip("/") or survey.path
    text = Text(f"! {displayable(path)}: ", style="bold")
    text.append(graver[0].meaning, "not bold")
    plural = "finding" if len(graver) == 1 else "findings"
    text.append(f"  tab: {len(graver)} {plural}, with advice", "dim not bold")
    return text
