"""The runs of an experiment that are kept; two of them can be compared."""

import os
import time
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding

from tui_fs.lab.diff import comparison_exhibits
from tui_fs.lab.experiment import Experiment
from tui_fs.lab.runs import load, stored_runs
from tui_fs.model.errors import TuiFsError
from tui_fs.model.units import counted
from tui_fs.screens.frame import FramedScreen, Settings
from tui_fs.screens.lab_messages import RunsJudged
from tui_fs.screens.lab_result import LabResultScreen
from tui_fs.screens.lab_text import RUN_COLUMNS, Judgements, judgements_of, run_rows
from tui_fs.screens.messages import Failed
from widgets.bar_table import BarTable


class LabRunsScreen(FramedScreen):
    """A list of runs, the newest first."""

    KEYS: ClassVar = (
        ("enter", "result"),
        ("space", "mark"),
        ("c", "compare two"),
        ("esc", "back"),
    )
    EXPLANATION = (
        "Every run of this experiment that is kept. Enter shows its result. Mark two with space, "
        "and c sets them side by side. An unfinished run was killed, or is still at work."
    )

    BINDINGS = [
        Binding("c", "compare", tooltip="Set the two marked runs side by side"),
        Binding("escape,q,left,h,v", "app.pop_screen", tooltip="Go back"),
    ]

    def __init__(self, experiment: Experiment, settings: Settings) -> None:
        super().__init__(settings)
        self._experiment = experiment
        self._runs: list[Judgements] = []
        self._marked: list[str] = []

    def compose_body(self) -> ComposeResult:
        """Lay out the list."""
        yield BarTable(RUN_COLUMNS, empty_text="reading…", id="runs")

    def on_mount(self) -> None:
        """Read the runs."""
        self.show_place("runs of", self._experiment.name)
        self.query_one(BarTable).focus()
        self._look()

    @work(thread=True, exclusive=True, group="runs")
    def _look(self) -> None:
        found = []
        for run in stored_runs():
            if run.experiment == self._experiment.name:
                try:
                    found.append(judgements_of(self._experiment, run, load(run.folder)))
                except TuiFsError:
                    continue  # somebody has removed it meanwhile
        self.post_message(RunsJudged(found))

    def on_runs_judged(self, message: RunsJudged) -> None:
        """Show them."""
        self._runs = message.runs
        self._show()

    def _show(self) -> None:
        rows = self.query_one(BarTable)
        rows.empty_text = "no runs yet"
        began = [_began(one.run.started_at) for one in self._runs]
        rows.set_rows(run_rows(self._runs, self._marked, began))
        note = counted(len(self._runs), "run", "runs")
        self.show_place("runs of", self._experiment.name, note)

    def on_bar_table_opened(self, message: BarTable.Opened) -> None:
        """Show the result."""
        screen = LabResultScreen(self._experiment, message.row.key, self.settings)
        self.app.push_screen(screen)

    def on_bar_table_mark_toggled(self, message: BarTable.MarkToggled) -> None:
        """Mark at most two; the mark set first gives way."""
        folder = message.row.key
        if folder in self._marked:
            self._marked.remove(folder)
        else:
            self._marked = [*self._marked[-1:], folder]
        self._show()

    def action_compare(self) -> None:
        """Compare the marked runs, the older one first."""
        if len(self._marked) < 2:
            self.notify("Mark two runs with space first.", markup=False)
            return
        order = [one.run.folder for one in reversed(self._runs)]
        first, second = sorted(self._marked, key=order.index)
        self._compare(first, second)

    @work(thread=True, exclusive=True, group="compare")
    def _compare(self, first: str, second: str) -> None:
        names = os.path.basename(first), os.path.basename(second)
        short = tuple(name.removeprefix(f"{self._experiment.name}-") for name in names)
        try:
            one, other = load(first), load(second)
            exhibits = comparison_exhibits(one, other, (short[0], short[1]))
        except TuiFsError as why:
            self.post_message(Failed(why))
            return
        screen = LabResultScreen(self._experiment, second, self.settings, (other, exhibits))
        self.app.call_from_thread(self.app.push_screen, screen)

    def on_failed(self, message: Failed) -> None:
        """Say why they cannot be compared."""
        self.notify(str(message.error), severity="warning", markup=False)


def _began(at_s: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at_s))
