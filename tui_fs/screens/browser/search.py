"""The search of a whole tree for names, and the list of what it has found."""

import time
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.message import Message
from textual.widgets import Static
from textual.worker import get_current_worker

from tui_fs.linux.fnmatch import is_pattern
from tui_fs.model.errors import TuiFsError
from tui_fs.model.filter_text import typed_glob
from tui_fs.model.paths import PathStr, displayable
from tui_fs.model.survey import EntryKind, Match
from tui_fs.model.units import bytes_iec, count, counted
from tui_fs.screens.base import Failed, Settings, age, shown_below
from tui_fs.screens.browser.side_screens import SideScreen
from tui_fs.screens.selection import Size, removed_paths
from tui_fs.survey.process import SearchProcess, SearchRequest, SearchUpdate
from tui_fs.widgets.bar_table import BarRow, BarTable, Column, LazyRows
from tui_fs.widgets.daemon_thread import in_daemon_thread

if TYPE_CHECKING:
    from tui_fs.screens.browser.screen import BrowserScreen

COLUMNS = (
    Column(
        "allocated",
        11,
        right=True,
        meaning="the disk space of a file; – for a directory, which is not counted here",
    ),
    Column("changed", 9, right=True, is_optional=True, meaning="how long ago it was last modified"),
    Column(
        "path",
        0,
        keep_end=True,
        meaning="below the top directory; a name that ends in / is a directory",
    ),
)
_FLAGS = {EntryKind.SYMLINK: "symlink", EntryKind.OTHER: "special file"}


class Searched(Message):
    """A search has new results."""

    def __init__(self, update: SearchUpdate) -> None:
        super().__init__()
        self.update = update


def match_rows(
    matches: Mapping[PathStr, Match], root: str, marked: Collection[str], now_s: float
) -> LazyRows:
    """Return a row for each match, with a path relative to the root."""
    paths = list(matches)

    def make(index: int) -> BarRow:
        match = matches[paths[index]]
        is_directory = match.kind is EntryKind.DIRECTORY
        return BarRow(
            key=match.path,
            cells=(
                "–" if is_directory else bytes_iec(match.allocated_bytes),
                age(match.modified_s, now_s),
                shown_below(match.path, root) + ("/" if is_directory else ""),
            ),
            marked=match.path in marked,
            flag=_FLAGS.get(match.kind, ""),
            tone="directory" if is_directory else "normal",
        )

    return LazyRows(paths, make)


def about_search(update: SearchUpdate, listed: int, columns: int = 80) -> Text:
    """Return the number of matches, how many are listed, and the progress."""
    line = Text(no_wrap=True, overflow="ellipsis")
    is_complete = update.is_finished and not update.unreadable
    line.append("searching  " if not update.is_finished else "complete  " * is_complete, "dim")
    line.append(counted(update.matched, "match", "matches"), "bold")
    if listed < update.matched:
        line.append(f" · only {count(listed)} of them listed !", "bold")
    if update.unreadable:
        directories = counted(update.unreadable, "directory", "directories")
        line.append(f" · {directories} unreadable !", "bold")
    searched = f" · {counted(update.entries, 'name', 'names')} searched"
    if line.cell_len + len(searched) <= columns:
        line.append(searched, "dim")
    return line


def cannot_mark_files(files: int) -> str:
    """Return why files are not marked, and what deletes them."""
    matches = counted(files, "match is not a directory", "matches are not directories")
    return (
        f"{matches}: only directories can be marked. To delete files of such names, listed or "
        "not, press f; d deletes a single one."
    )


class SearchScreen(SideScreen):
    """The matches of a search, in the order in which they are found.

    Args:
        text: a pattern, or a part of the names.
        imported: the file that is searched instead of the directories.
    """

    KEYS: ClassVar = (
        ("enter", "go there"),
        ("space", "mark"),
        ("A", "mark all"),
        ("d", "delete…"),
        ("f", "filter"),
        ("esc", "back"),
    )
    EXPLANATION = (
        "All entries of the surveyed tree whose names match. A text with *, ? or [ is a pattern "
        "for whole names, as in find -name; any other text is a part of the names, in upper or "
        "lower case. Enter shows the entry in the browser. Directories can be marked. f makes a "
        "filter of the text, with which the browser counts and deletes files of such names."
    )

    BINDINGS = [
        Binding("A", "mark_all", tooltip="Mark all listed directories"),
        Binding("f", "filter", tooltip="Filter the browser by the text"),
    ]

    def __init__(
        self, browser: "BrowserScreen", text: str, imported: PathStr | None, settings: Settings
    ) -> None:
        super().__init__(browser, settings)
        self._text, self._imported = text, imported
        self._root = self.shown.survey.path
        self._matches: dict[PathStr, Match] = {}
        self._update = SearchUpdate()
        self._removed = 0
        self._process: SearchProcess | None = None

    def compose_body(self) -> ComposeResult:
        """Lay out the progress and the list."""
        yield Static(Text(""), id="totals")
        yield BarTable(
            COLUMNS, empty_text="searching…", toggle_mark=self._toggle_mark, id="matches"
        )
        yield Static(Text(""), id="marks")

    def on_mount(self) -> None:
        """Begin to search."""
        self.query_one(BarTable).focus()
        # In this thread: the kernel may kill a process when the thread that forked it exits.
        self._process = SearchProcess(SearchRequest(self._root, self._text, self._imported))
        self._follow(self._process)
        self.show_update()

    def on_screen_resume(self) -> None:
        """Leave out what was deleted after a preview."""
        if self._is_previewing and self._imported is None:
            self._forget_removed(tuple(self._matches))

    @work(exclusive=True, group="removed")
    async def _forget_removed(self, paths: Sequence[PathStr]) -> None:
        """Forget the matches that are gone; the file system may not answer."""
        for path in await in_daemon_thread(partial(removed_paths, paths)):
            del self._matches[path]
            self._removed += 1
        self.show_update()

    def on_unmount(self) -> None:
        """End the search."""
        if self._process is not None:
            self._process.stop()

    @work(thread=True, exclusive=True, group="survey")
    def _follow(self, process: SearchProcess) -> None:
        worker = get_current_worker()
        try:
            for update in process.updates():
                if worker.is_cancelled:
                    return
                self.post_message(Searched(update))
        except TuiFsError as error:
            if not worker.is_cancelled:
                self.post_message(Failed(error))

    def on_searched(self, message: Searched) -> None:
        """List the new matches."""
        self._update = message.update
        self._matches.update({match.path: match for match in message.update.matches})
        self.show_update()

    def on_failed(self, message: Failed) -> None:
        """Show why the search has ended."""
        self.set_line("#totals", Text(str(message.error), "bold"))
        self.query_one(BarTable).empty_text = "the search has ended early"

    def show_update(self) -> None:
        """Show the matches so far."""
        super().show_update()
        self.show_place("search in", displayable(self._root), displayable(self._text))
        listed = len(self._matches) + self._removed
        about = about_search(self._update, listed, self.size.width - 2)
        if self._removed:
            about.append(f" · {count(self._removed)} gone since", "bold")
        if self.client.is_filtered:
            about.append(" · without the filter", "dim")
        self.set_line("#totals", about)
        rows = self.query_one(BarTable)
        nothing = "no name matches"
        if is_pattern(self._text):
            nothing = (
                "no whole name matches the pattern; * stands for any text, and \\ before *, ? or [ "
                "takes it literally"
            )
        rows.empty_text = nothing if self._update.is_finished else "searching…"
        rows.set_rows(
            match_rows(dict(self._matches), self._root, tuple(self.marks), time.time()),
            keep_cursor=rows.is_cursor_placed,
        )

    def _toggle_mark(self, row: BarRow) -> bool:
        """Toggle the mark of a directory."""
        match = self._matches[PathStr(row.key)]
        if match.kind is EntryKind.DIRECTORY:
            return self.toggle_mark(match.path, Size())
        self.notify(cannot_mark_files(1), markup=False)
        return False

    def action_mark_all(self) -> None:
        """Mark all listed directories, and report how many that are."""
        if self.marks.refusal:
            self.notify(self.marks.refusal, markup=False)
            return
        matches = self._matches.values()
        directories = [match.path for match in matches if match.kind is EntryKind.DIRECTORY]
        self.notify(self._report_marked(directories, len(matches)), markup=False)
        self.show_update()

    def _report_marked(self, directories: Sequence[PathStr], listed: int) -> str:
        sentences = []
        if directories:
            marked = self.marks.add_all(directories)
            are = "directory is" if marked == 1 else "directories are"
            sentences.append(f"{count(marked)} {are} marked.")
            if len(directories) > marked:
                skipped = len(directories) - marked
                sentences.append(
                    f"{count(skipped)} more skipped (inside a marked directory, or over the limit)."
                )
        if not self._update.is_finished:
            sentences.append("The search is not complete and may find more.")
        elif listed < self._update.matched:
            sentences.append(f"Only the {count(listed)} listed matches can be marked.")
        if files := listed - len(directories):  # last: its command is not limited to the list
            sentences.append(cannot_mark_files(files))
        return " ".join(sentences) or "There is nothing to mark."

    def action_filter(self) -> None:
        """Go back, and offer a filter for the names."""
        self.app.pop_screen()
        literal = self._text.replace("\\", "\\\\")
        glob = self._text if is_pattern(self._text) else f"*{literal}*"
        self.browser.ask_for_filter(typed_glob(glob))

    def target(self) -> PathStr | None:
        """Return the directory under the cursor; preview a file there, which is no target of it."""
        row = self.query_one(BarTable).cursor_row
        if row is None:
            return None
        match = self._matches[PathStr(row.key)]
        if match.kind is EntryKind.DIRECTORY:
            return self.check_target(match.path)
        self.preview_file(match.path)
        return None
