"""The first screen: what is full, and where; directories of earlier jobs; running jobs."""

import os
import time
from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.cells import cell_len
from rich.text import Text
from textual import events, work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.widgets import Static
from textual.worker import get_current_worker

from tui_fs.job.view import JobList, JobSummary
from tui_fs.linux.filesystem import FileSystem, mounted_file_systems
from tui_fs.model.errors import BadInput, TuiFsError
from tui_fs.model.paths import displayable
from tui_fs.model.target import common_directory
from tui_fs.model.units import bytes_iec, counted, percent_used, short_count
from tui_fs.screens.base import (
    FIELD_KEYS,
    LOW_LINES,
    BaseScreen,
    Settings,
    age,
    broken_at_dots,
    muted,
)
from tui_fs.screens.browser.details import NEARLY_FULL
from tui_fs.screens.browser.screen import BrowserScreen
from tui_fs.widgets.bar_table import HEADER_HEIGHT, BarRow, BarTable, Column
from tui_fs.widgets.cell_drawing import eighth_blocks, fit_cells
from tui_fs.widgets.footer import Footer
from tui_fs.widgets.path_input import PathInput

_POLL_INTERVAL_S = 2.0
_MOST_DIRECTORIES = 5
_BAR_CELLS = ((160, 40), (110, 20), (76, 10), (56, 5), (0, 0))
"""Columns of the terminal, and the cells of a bar from there on."""
_PERCENT_CELLS = 6
_FREE_CELLS = 11
_MIN_BAR = 5
_GAPS = 10
"""Cells beside the columns of the file systems: cursor, gaps, and the end of the line."""


class StartScreen(BaseScreen):
    """The mounted file systems, the fullest first, above directories to return to.

    Args:
        here: the present directory.
        read: returns the file systems in the order in which they are shown.
    """

    KEYS: ClassVar = (
        ("enter", "open"),
        (".", "this directory"),
        (":", "path"),
        ("tab", "other list"),
        ("J", "jobs"),
        ("q", "quit"),
    )
    EXPLANATION = (
        "The mounted file systems, the fullest first. A file system is full when its bytes or its "
        "inodes are used up; each file and each directory takes an inode. Enter opens it "
        "and counts what is in it; nothing is changed. Below are this directory, and those in "
        "which jobs have deleted. : opens any other."
    )

    VERTICAL_BREAKPOINTS = [(0, "-low"), (LOW_LINES, "-tall")]
    OPENS = "Open it, and count what is in it"
    BINDINGS = [
        Binding("tab,shift+tab", "switch", tooltip="Go to the other list"),
        Binding("full_stop", "open_here", tooltip="Open the current directory"),
        Binding("colon", "path", tooltip="Type a path (tab completes)", priority=True),
        Binding("escape", "leave", tooltip="Return to the directory from which you came"),
        Binding("q", "app.quit", tooltip="Quit; running jobs continue"),
    ]

    def __init__(
        self,
        here: str,
        settings: Settings,
        read: Callable[[], list[FileSystem]] = mounted_file_systems,
    ) -> None:
        super().__init__(settings)
        self._here = here
        self._read = read
        self._file_systems: dict[str, FileSystem] = {}

    def compose_body(self) -> ComposeResult:
        """Lay out both lists above a line on the highlighted file system."""
        yield BarTable(_columns(), empty_text="reading…", id="file-systems")
        yield BarTable(_directory_columns(()), id="directories")
        yield Static(Text(""), id="about-file-system")
        path = PathInput(id="path-input", classes="hidden")
        path.border_title = "path"
        yield path

    def on_mount(self) -> None:
        """Start reading."""
        self.show_place("", "what is full")
        self._show_directories(())
        self.query_one("#file-systems", BarTable).focus()
        self._poll()

    @work(thread=True, exclusive=True, group="start")
    def _poll(self) -> None:
        worker = get_current_worker()
        jobs = JobList()
        while not worker.is_cancelled:
            if self.is_current:
                problem, file_systems = "", []
                try:
                    file_systems = self._read()
                except (BadInput, OSError) as error:
                    problem = str(error)
                try:
                    summaries, _ = jobs.read()
                except TuiFsError:
                    summaries = []  # the list of jobs says why
                running = sum(job.state.is_live for job in summaries)
                recent = _recent_rows(summaries, self._here)
                self.app.call_from_thread(self._show, file_systems, problem, recent, running)
            time.sleep(_POLL_INTERVAL_S)

    def _show(
        self,
        file_systems: Sequence[FileSystem],
        problem: str,
        recent: Sequence[BarRow],
        running: int,
    ) -> None:
        if not self.is_attached:
            return
        self._file_systems = {each.mount_point: each for each in file_systems}
        self.query_one("#file-systems", BarTable).empty_text = (
            problem or "no file system that stores files is mounted"
        )
        self._draw()
        self._show_directories(recent)
        jobs = f"{counted(running, 'job is', 'jobs are')} running: J" if running else ""
        self.show_place("", "what is full", jobs)

    def _show_directories(self, recent: Sequence[BarRow]) -> None:
        rows = [_present(self._here), *recent]
        directories = self.query_one("#directories", BarTable)
        directories.set_columns(_directory_columns(rows))
        directories.set_rows(rows)
        directories.styles.height = HEADER_HEIGHT + len(rows)

    def on_resize(self, _: events.Resize) -> None:
        """Use the new width for the bars."""
        self._draw()

    def _draw(self) -> None:
        table = self.query_one("#file-systems", BarTable)
        names = max((cell_len(displayable(name)) for name in self._file_systems), default=0)
        bar_cells = _bar_cells(self.size.width, names)
        table.set_columns(_columns(bar_cells, names))
        table.set_rows([_row(each, bar_cells) for each in self._file_systems.values()])
        table.styles.max_height = HEADER_HEIGHT + max(2, len(self._file_systems))
        self._show_details()

    def _show_details(self) -> None:
        row = self.query_one("#file-systems", BarTable).cursor_row
        chosen = None if row is None else self._file_systems.get(row.key)
        text = Text("") if chosen is None else details_of(chosen)
        text = broken_at_dots(text, self.size.width - 2)
        self.query_one("#about-file-system", Static).update(text)

    def on_bar_table_highlighted(self) -> None:
        """Describe the file system under the cursor."""
        self._show_details()

    def on_bar_table_opened(self, message: BarTable.Opened) -> None:
        """Count what is in the chosen directory."""
        self._open(message.row.key)

    def action_switch(self) -> None:
        """Go to the other list."""
        tables = list(self.query(BarTable))
        tables[0 if tables[1].has_focus else 1].focus()

    def action_open_here(self) -> None:
        """Open the present directory."""
        self._open(self._here)

    def on_descendant_focus(self) -> None:
        """Show the keys of the field or of the lists."""
        is_typing = isinstance(self.focused, PathInput)
        keys = FIELD_KEYS if is_typing else (*self.KEYS, ("?", "help"))
        self.query_one("#keys", Footer).keys = keys

    def action_leave(self) -> None:
        """Return to the screen below, if there is any."""
        if isinstance(self.app.screen_stack[-2], BaseScreen):
            self.app.pop_screen()
        else:
            self.notify("q quits.", markup=False)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool:  # noqa: ARG002
        """Disable the key of the field while the user types in it, or before it exists."""
        return action != "path" or isinstance(self.focused, BarTable)

    def action_path(self) -> None:
        """Open the path field with the present directory."""
        self.open_path_field(self._here)

    def on_path_input_cancelled(self) -> None:
        """Hide the field."""
        self.workers.cancel_group(self, "typed")
        self.query_one(PathInput).add_class("hidden")
        self.set_focus(next(table for table in self.query(BarTable) if table.has_cursor))

    def on_path_input_chosen(self, message: PathInput.Chosen) -> None:
        """Open the typed directory, or explain why not."""
        self.open_typed(os.path.normpath(os.path.join(self._here, message.path)), self._open)

    def _open(self, path: str) -> None:
        if isinstance(self.focused, PathInput):
            self.on_path_input_cancelled()
        self.app.push_screen(BrowserScreen(path, self.settings))


def _bar_cells(width: int, names: int) -> int:
    """Return the cells of a bar; the longest of the names is shown rather than a long bar."""
    cells = next(cells for columns, cells in _BAR_CELLS if width >= columns)
    missing = 2 * (cells + _PERCENT_CELLS) + _FREE_CELLS + names + _GAPS - width
    return max(min(cells, _MIN_BAR), cells - max(0, missing + 1) // 2)


def _columns(bar_cells: int = 0, names: int = 0) -> tuple[Column, ...]:
    """Return the columns for the mount points.

    Args:
        names: cells of the longest mount point.
    """
    cells = bar_cells + _PERCENT_CELLS
    return (
        Column(
            "bytes",
            cells,
            meaning="the used part of its bytes without those reserved for root, as df counts it",
        ),
        Column("inodes", cells, meaning="the used part of its inodes; – if they are not limited"),
        Column("free", _FREE_CELLS, right=True, meaning="free for users other than root"),
        Column(
            "file system",
            0,
            keep_end=True,
            text_cells=names,
            meaning="the directory where it is mounted",
        ),
    )


def _directory_columns(rows: Sequence[BarRow]) -> tuple[Column, ...]:
    """Return the column for the directories of these rows, and why they are listed."""
    cells = max((cell_len(row.cells[0]) for row in rows), default=0)
    meaning = "a directory to open: the current one, and those in which jobs worked"
    return (Column("directory", 0, keep_end=True, text_cells=cells, meaning=meaning),)


def _row(filesystem: FileSystem, bar_cells: int) -> BarRow:
    shares = (filesystem.used_share, filesystem.used_inodes_share)
    names = [
        name
        for name, share in zip(("bytes", "inodes"), shares, strict=True)
        if share is not None and share >= NEARLY_FULL
    ]
    available = filesystem.available_bytes
    return BarRow(
        key=filesystem.mount_point,
        cells=(
            *(_share_cell(share, bar_cells) for share in shares),
            "no answer" if available is None else bytes_iec(available),
            displayable(filesystem.mount_point),
        ),
        flag=f"! {' and '.join(names)}" if names else "",
        flag_tone="warning" if names else "muted",
    )


def _share_cell(share: float | None, bar_cells: int) -> str:
    """Return a bar and a percentage."""
    if share is None:
        return fit_cells("", bar_cells) + fit_cells("–", _PERCENT_CELLS - 1, right=True)
    return fit_cells(eighth_blocks(share, bar_cells), bar_cells) + fit_cells(
        percent_used(share), _PERCENT_CELLS, right=True
    )


def _present(path: str) -> BarRow:
    return BarRow(path, (displayable(path),), flag="this directory", tone="directory")


def _recent_rows(jobs: Sequence[JobSummary], here: str) -> list[BarRow]:
    """Return the nearest existing directory of the targets of jobs, the latest first.

    It may block on a file system that does not answer.
    """
    rows: dict[str, BarRow] = {}
    for job in jobs:
        path: str = common_directory(job.targets)
        while not os.path.isdir(path) and path != "/":
            path = os.path.dirname(path)
        if path in (here, "/") or path in rows:
            continue
        flag = f"last job {age(int(job.created_at), time.time())} ago"
        if job.state.is_live:
            flag = "a job is at work"
        rows[path] = BarRow(path, (displayable(path),), flag=flag, tone="directory")
        if len(rows) == _MOST_DIRECTORIES:
            break
    return list(rows.values())


def details_of(filesystem: FileSystem) -> Text:
    """Return type, source and sizes of a file system."""
    text = Text()
    source = displayable(filesystem.source)
    text.append(f"{filesystem.kind} on {source}" if source.startswith("/") else filesystem.kind)
    if filesystem.is_read_only:
        text.append(" · read-only !", "bold")
    total, free, available = (
        filesystem.total_bytes,
        filesystem.free_bytes,
        filesystem.available_bytes,
    )
    if total is None or free is None or available is None:
        text.append_text(muted(" · it does not answer"))
        return text
    text.append(f" · {bytes_iec(total - free)} of {bytes_iec(total)} used")
    if free > available:
        text.append(f" · {bytes_iec(free - available)} reserved for root")
    if filesystem.total_inodes and filesystem.free_inodes is not None:
        used = filesystem.total_inodes - filesystem.free_inodes
        text.append(f" · {short_count(used)} of {short_count(filesystem.total_inodes)} inodes used")
    return text
