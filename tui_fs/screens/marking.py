"""A browser in which directories are marked, one by one or all of a name."""

import os

from textual.binding import Binding

from tui_fs.model.paths import PathStr, displayable
from tui_fs.model.survey import Child, EntryKind
from tui_fs.screens.browser_rows import size_of
from tui_fs.screens.browsing import BrowsingScreen, child_path
from tui_fs.screens.frame import Settings
from tui_fs.screens.selection import Selection, Size
from tui_fs.survey.process import Update
from widgets.bar_table import BarTable

_IMPORTED = "This was imported from a file: nothing here can be marked or deleted."


class MarkingScreen(BrowsingScreen):
    """Marks stay wherever one goes."""

    BINDINGS = [
        Binding("u", "unmark_all", tooltip="Remove all marks"),
        Binding("N", "mark_named", tooltip="Mark all directories named as the highlighted one"),
    ]

    def __init__(self, path: str, settings: Settings, imported: str | None = None) -> None:
        super().__init__(path, settings, imported)
        self._marks = Selection()
        self._naming: str | None = None

    def heard(self, update: Update) -> None:
        """Mark what was asked for by its name."""
        if self._naming is not None and update.named == self._naming:
            self._mark_named(update)

    @property
    def marks(self) -> Selection:
        """What is marked."""
        return self._marks

    @property
    def why_no_marks(self) -> str:
        """Why nothing may be marked here."""
        return "" if self.imported is None else _IMPORTED

    def marks_here(self) -> list[PathStr]:
        """Return the marked directories in the one shown."""
        return [mark for mark in self._marks if os.path.dirname(mark) == self.path]

    def highlighted(self) -> Child | None:
        """Return what the cursor is on."""
        row = self.query_one(BarTable).cursor_row
        if row is None or self.arranged is None:
            return None
        return self.arranged.child(row.key)

    def on_bar_table_mark_toggled(self, message: BarTable.MarkToggled) -> None:
        """Mark a directory or remove its mark; say why other entries cannot be marked."""
        child = self.arranged.child(message.row.key) if self.arranged is not None else None
        if child is not None and child.kind is EntryKind.DIRECTORY:
            self.toggle_mark(child_path(self.path, child.name), size_of(child))
        elif child is not None:
            self.notify("Only directories can be marked and deleted here.", markup=False)

    def toggle_mark(self, path: PathStr, size: Size) -> None:
        """Mark a directory or remove its mark; says why if it cannot be."""
        told = self.why_no_marks or self._marks.toggle(path, size)
        if told:
            self.app.notify(told, markup=False)
        self.show_arranged()

    def action_unmark_all(self) -> None:
        """Remove all marks."""
        self._marks.clear()
        self.show_arranged()

    def action_mark_named(self) -> None:
        """Mark all directories that are named as the highlighted one."""
        child = self.highlighted()
        if child is None or child.kind is not EntryKind.DIRECTORY:
            self.notify("Put the cursor on a directory whose name is meant.", markup=False)
        else:
            self.mark_named(child.name)

    def mark_named(self, name: str) -> None:
        """Ask the survey for the directories of a name; they are marked when it answers."""
        if self.why_no_marks:
            self.app.notify(self.why_no_marks, markup=False)
        elif self.questions is not None:
            self._naming = name
            self.questions.name(name)

    def _mark_named(self, update: Update) -> None:
        self._naming = None
        found = len(update.paths_named)
        marked = self._marks.add_all(update.paths_named, _together(update))
        shown = displayable(str(update.named))
        words = "directory is" if marked == 1 else "directories are"
        told = f"{marked:,} {words} marked that are called {shown}."
        if found > marked:
            told += f" {found - marked:,} more lie in marked ones or would be too many."
        elif not update.survey.finished:
            told += " Counting may find more."
        self.app.notify(told, markup=False)
        self.show_arranged()


def _together(update: Update) -> Size | None:
    """Return what all directories of the asked name hold, where the survey has told it."""
    for group in update.survey.groups:
        if group.name == update.named and group.directories == len(update.paths_named):
            return Size(group.totals.entries, group.totals.allocated_bytes, is_whole=True)
    return None
