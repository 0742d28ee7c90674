"""A running experiment: progress, the present step, the figures so far."""

import contextlib
import statistics
import time
from typing import ClassVar, NamedTuple

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.widgets import Static

from tui_fs.lab.experiment import Experiment, Scale
from tui_fs.lab.figures import shown, shown_span
from tui_fs.lab.process import LabRun
from tui_fs.lab.results import (
    Ending,
    Measure,
    Measured,
    Progressed,
    Results,
    fold_one,
)
from tui_fs.model.errors import TuiFsError
from tui_fs.model.paths import harmless
from tui_fs.model.units import clock, count
from tui_fs.screens.base import BaseScreen, Settings
from tui_fs.screens.lab.result import LabResultScreen
from tui_fs.widgets.bar_table import BarRow, BarTable, Column
from tui_fs.widgets.cell_drawing import dots
from tui_fs.widgets.confirm_dialog import ConfirmDialog
from tui_fs.widgets.progress_line import ProgressLine
from tui_fs.widgets.stats_line import Figure, StatsLine

STEP_COLUMNS = (
    Column("step", 0, meaning="a timed command"),
    Column("median", 8, right=True, meaning="the median of the times"),
    Column("runs", 4, right=True, is_optional=True, meaning="how often it has been timed"),
    Column(
        "least–most", 12, right=True, is_optional=True, meaning="the shortest and the longest time"
    ),
    Column("calls", 9, right=True, is_optional=True, meaning="its system calls"),
)
_ALL_COLUMNS_FROM = 80
"""With fewer cells the names of the steps need the room: many differ only at their ends."""


class RunOver(NamedTuple):
    """A run that has ended, and whose files are removed.

    Attributes:
        folder: empty if the run never started.
        reason: why there are no results; empty if there are.
    """

    folder: str
    results: Results | None
    reason: str


def step_rows(results: Results) -> list[BarRow]:
    """Return the steps with their figures so far."""
    return [_step_row(step) for step in results.measured.values()]


def _step_row(step: Measured) -> BarRow:
    values, calls = step.values(Measure.SECONDS), step.values(Measure.CALLS)
    median = shown(Measure.SECONDS, statistics.median(values)) if values else ""
    span = shown_span(Measure.SECONDS, min(values), max(values), median) if values else ""
    flag = "! failed" if step.failed else "not here" if step.plan.why_not else ""
    return BarRow(
        step.plan.key,
        (
            harmless(step.plan.title),
            median,
            count(len(values)) if values else "",
            span,
            count(round(calls[0])) if calls else "",
        ),
        flag=flag,
        tone="normal" if values or calls or step.failed else "muted",
        flag_tone="warning" if step.failed else "muted",
    )


def step_in_full(step: Measured) -> Text:
    """Return a step's commands, or why it is impossible."""
    text = Text()
    if step.why_not:
        text.append(harmless(step.why_not))
    else:
        text.append("$ ", "dim")
        text.append("; ".join(harmless(line) for line in step.plan.commands))
        if step.plan.tree:
            text.append(f"  on {harmless(step.plan.tree)}, {harmless(step.plan.place)}", "dim")
    return text


class LabRunScreen(BaseScreen):
    """A run of an experiment; leaving the screen ends the run and removes its files.

    Args:
        target: the directory whose shape the run copies; empty for none.
    """

    KEYS: ClassVar = (("c", "cancel…"), ("↑↓", "show a step"))
    EXPLANATION = (
        "The progress of an experiment. Every step is listed with the median, minimum and "
        "maximum of its runs so far and its system calls; highlight a step that cannot run here "
        "to see the reason. The result appears when all steps are done. The run ends with this "
        "screen: cancelling the run, or leaving tui-fs, removes everything the run made."
    )

    BINDINGS = [
        Binding("c,escape,q", "cancel", tooltip="Cancel the run and remove its files (asks first)")
    ]

    def __init__(
        self, experiment: Experiment, scale: Scale, target: str, settings: Settings
    ) -> None:
        super().__init__(settings)
        self._experiment = experiment
        self._scale = scale
        self._target = target
        self._run: LabRun | None = None
        self._is_cancelled = False
        self._latest: Results | None = None  # set by the worker, drawn by the timer
        self._latest_step = ""
        self._drawn: Results | None = None
        self._is_followed = True
        self._over: RunOver | None = None
        self._began_s = time.monotonic()

    def compose_body(self) -> ComposeResult:
        """Lay out progress above the steps."""
        yield ProgressLine(id="progress")
        yield Static(Text(f"examining the machine{dots()}"), id="doing")
        yield StatsLine(id="figures")
        yield BarTable(STEP_COLUMNS, id="steps")
        yield Static(Text(""), id="step")

    def on_mount(self) -> None:
        """Start the run."""
        self.query_one(BarTable).focus()
        self.show_place("running", self._experiment.name, f"{self._scale} scale")
        self._began_s = time.monotonic()
        self.set_interval(max(0.25, self.settings.interval_s), self._draw)
        self._follow()

    def on_unmount(self) -> None:
        """End the run; the worker waits until its files are removed."""
        self._cancel()

    def on_resize(self) -> None:
        """Leave the names of the steps room."""
        has_all = self.size.width >= _ALL_COLUMNS_FROM
        self.query_one(BarTable).set_columns(STEP_COLUMNS if has_all else STEP_COLUMNS[:2])

    @work(thread=True, exclusive=True, group="lab-run")
    def _follow(self) -> None:
        folder, reason = "", ""
        try:
            with LabRun(self._experiment.name, self._scale, None, self._target) as run:
                self._run, folder = run, run.folder
                if self._is_cancelled:
                    run.cancel()
                for event in run.events():
                    if isinstance(event, Progressed) and event.key:
                        self._latest_step = event.key
                    self._latest = fold_one(self._latest, event)
        except TuiFsError as error:
            reason = str(error)
        except OSError as error:
            reason = f"The record of the run cannot be written: {error.strerror}."
        self.call_later(self._end, RunOver(folder, self._latest, reason))

    def _draw(self) -> None:
        """Draw the latest state of the run."""
        results = self._latest
        elapsed = Figure("elapsed", clock(time.monotonic() - self._began_s), label_first=True)
        figures = [elapsed]
        if results is not None:
            timed = sum(bool(step.runs) for step in results.measured.values())
            possible = sum(not step.why_not for step in results.measured.values())
            figures.append(Figure("timed", f"{count(timed)} of {count(possible)} steps"))
        self.query_one(StatsLine).figures = tuple(figures)
        if results is None or results is self._drawn:
            return
        self._drawn = results
        self.query_one(ProgressLine).fraction = results.progress.done
        if not self._is_cancelled:
            self.query_one("#doing", Static).update(Text(harmless(results.progress.words)))
        rows = self.query_one(BarTable)
        rows.set_rows(step_rows(results))
        if self._is_followed and self._latest_step:
            rows.move_to(self._latest_step)
        self._show_step()

    def on_bar_table_highlighted(self) -> None:
        """Keep the cursor on its step from now on."""
        self._is_followed = False
        self._show_step()

    def _show_step(self) -> None:
        row = self.query_one(BarTable).cursor_row
        if row is not None and self._drawn is not None:
            text = step_in_full(self._drawn.measured[row.key])
            self.query_one("#step", Static).update(text)

    def action_cancel(self) -> None:
        """Ask, then cancel."""
        if self._is_cancelled:
            return
        dialog = ConfirmDialog(
            f"Cancel the run of {self._experiment.name}?",
            ["Everything it made is removed. The figures so far are kept."],
            "",
            None,
            yes_label="Cancel the run",
            no_label="No, keep it running",
            is_danger=False,
        )
        self.app.push_screen(dialog, self._cancel_confirmed)

    def _cancel_confirmed(self, yes: bool | None) -> None:
        if yes:
            self._cancel()
            self.show_place("cancelling", self._experiment.name, f"{self._scale} scale")
            self.query_one("#doing", Static).update(Text(f"removing its files{dots()}"))

    def _cancel(self) -> None:
        self._is_cancelled = True
        if self._run is not None:
            # The process may have exited already.
            with contextlib.suppress(OSError):
                self._run.cancel()

    def _end(self, over: RunOver) -> None:
        """Show the result as soon as this screen is on top."""
        self._over = over
        if self.app.screen is self:
            self._leave()

    def on_screen_resume(self) -> None:
        """Show the result if the run ended behind another screen."""
        self._leave()

    def _leave(self) -> None:
        over, self._over = self._over, None
        if over is None:
            return
        ended = None if over.results is None else over.results.ended
        if ended is not None and ended.ending is not Ending.CANCELLED and over.results is not None:
            screen = LabResultScreen(self._experiment, over.folder, self.settings)
            self.app.switch_screen(screen)
            return
        self.app.pop_screen()
        if ended is not None:
            message = "Cancelled. Everything the run made was removed."
            self.app.notify(message, markup=False)
        else:
            self.app.notify(harmless(over.reason), severity="warning", markup=False)
