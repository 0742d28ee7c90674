"""A profile of ten seconds of this program."""

import os
from functools import partial
from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.widgets import Static
from textual.worker import get_current_worker

from tui_fs.lab.exhibits import Flame, flames
from tui_fs.lab.pyspy import Profile, profile_itself
from tui_fs.model.errors import TuiFsError
from tui_fs.model.paths import displayable
from tui_fs.model.units import counted
from tui_fs.screens.base import BaseScreen, Settings, muted
from tui_fs.widgets.bar_table import BarRow, BarTable, Column

SECONDS = 10
_COLUMNS = (
    Column("function", 0, meaning="a function, below the one that calls it"),
    Column("itself", 7, right=True, meaning="the time in the function alone"),
    Column("total", 7, right=True, meaning="the time in it and in all functions that it calls"),
    Column("", 14, bar=True),
)
_MAX_ROWS = 500
_MAX_INDENT = 24  # a terminal of 80 columns has 44 cells for the name
_GROUP = "profile"


def begin_profile(app: App[None], settings: Settings) -> None:
    """Profile this program for ten seconds in the background, then show the result."""
    if any(worker.group == _GROUP and not worker.is_finished for worker in app.workers):
        app.notify("tui-fs is being profiled already.")
        return
    app.notify(f"Profiling tui-fs for {SECONDS} seconds; continue your work.")
    app.run_worker(partial(_profile_and_show, app, settings), group=_GROUP, thread=True)


def _profile_and_show(app: App[None], settings: Settings) -> None:
    worker = get_current_worker()
    try:
        profile = profile_itself(SECONDS, lambda: not worker.is_cancelled)
    except TuiFsError as error:
        if not worker.is_cancelled:
            app.call_from_thread(app.notify, str(error), severity="warning", markup=False)
        return
    app.call_from_thread(app.push_screen, ProfileScreen(profile, settings))


class ProfileScreen(BaseScreen):
    """The functions of a profile as a tree, with the share of the time in each."""

    KEYS: ClassVar = (("↑↓", "choose"), ("esc", "back"))
    EXPLANATION = (
        "Where tui-fs itself spent ten seconds, sampled by py-spy a hundred times a second. "
        "Waiting time is left out. The folder named below contains the same samples for other "
        "programs."
    )

    BINDINGS = [Binding("escape,q,left,h", "app.pop_screen", tooltip="Go back")]

    def __init__(self, profile: Profile, settings: Settings) -> None:
        super().__init__(settings)
        self._profile = profile

    def compose_body(self) -> ComposeResult:
        """Lay out the list and the path of the files."""
        yield BarTable(_COLUMNS, empty_text="tui-fs was idle", id="flames")
        kept = f"raw stacks, also for speedscope: {displayable(self._profile.folder)}"
        yield Static(muted(kept), id="kept")

    def on_mount(self) -> None:
        """Show the profile."""
        samples, functions = flames(self._profile.raw.splitlines(), _MAX_ROWS)
        note = f"{SECONDS} seconds, busy in {counted(samples, 'sample', 'samples')}"
        self.show_place("", "tui-fs itself", note)
        rows = self.query_one(BarTable)
        rows.set_rows([_row(number, flame) for number, flame in enumerate(functions)])
        rows.focus()


def _row(number: int, flame: Flame) -> BarRow:
    return BarRow(
        key=str(number),
        cells=(
            " " * min(flame.depth, _MAX_INDENT) + _short(flame.function),
            f"{flame.own_percent:.1f} %",
            f"{flame.total_percent:.1f} %",
        ),
        fraction=flame.total_percent / 100,
    )


def _short(function: str) -> str:
    """Shorten the location of a function to the file's name."""
    name, mark, place = function.partition(" (")
    return f"{name} ({os.path.basename(place)}" if mark else function
