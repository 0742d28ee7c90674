"""The lab: experiments, the question that each answers, and what came out last."""

import time
from typing import ClassVar

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.widgets import Static

from tui_fs.lab.experiment import Experiment, Scale
from tui_fs.lab.figures import safe
from tui_fs.lab.preparing import prepare
from tui_fs.lab.registry import experiment, experiments
from tui_fs.lab.results import Ending
from tui_fs.lab.runs import load, stored_runs
from tui_fs.model.errors import TuiFsError
from tui_fs.screens.frame import FramedScreen, Settings
from tui_fs.screens.lab_messages import RunPrepared, RunsJudged
from tui_fs.screens.lab_result import LabResultScreen
from tui_fs.screens.lab_run import LabRunScreen
from tui_fs.screens.lab_runs import LabRunsScreen
from tui_fs.screens.lab_text import (
    EXPERIMENT_COLUMNS,
    Judgements,
    ask_words,
    experiment_rows,
    in_full,
    judgements_of,
)
from widgets.bar_table import BarTable


class LabScreen(FramedScreen):
    """A list of experiments.

    Args:
        target: the directory the browser shows, whose shape an experiment may copy; empty for
            none.
    """

    KEYS: ClassVar = (
        ("enter", "run small"),
        ("p", "run as published"),
        ("o", "result"),
        ("v", "older runs"),
        ("esc", "back"),
    )
    EXPLANATION = (
        "Published measurements of deleting and of files, to be repeated here. Small takes under "
        "a minute, published has the size of the text. Holds, not and open tell how many of the "
        "claims hold in the last run, do not, and cannot be tested here. A run works in a "
        "directory of its own, says before what it needs, and clears away whatever happens."
    )

    BINDINGS = [
        Binding("p", "ask('published')", tooltip="Run at the published scale (asks first)"),
        # With priority, since the list would open a row, which runs it.
        Binding("o,right,l", "result", tooltip="Show the last result", priority=True),
        Binding("v", "runs", tooltip="List the older runs; compare two of them"),
        Binding("escape", "refuse", tooltip="Do not run; go back"),
        Binding("q,left,h", "app.pop_screen", tooltip="Go back"),
    ]

    def __init__(self, target: str, settings: Settings) -> None:
        super().__init__(settings)
        self._target = target
        self._last: dict[str, Judgements] = {}
        self._asked: tuple[str, Scale] | None = None
        self._is_ready = False

    def compose_body(self) -> ComposeResult:
        """Lay out the list above the chosen experiment in full."""
        yield BarTable(EXPERIMENT_COLUMNS, id="experiments")
        with VerticalScroll(id="body", can_focus=False):
            yield Static(Text(""), id="experiment-in-full")
        yield Static(Text(""), id="ask")

    def on_mount(self) -> None:
        """List the experiments."""
        self.query_one(BarTable).focus()
        self._show()

    def on_screen_resume(self) -> None:
        """There may be another run now."""
        self._withdraw()
        self._look()

    @work(thread=True, exclusive=True, group="runs")
    def _look(self) -> None:
        known = {one.name: one for one in experiments()}
        last: dict[str, Judgements] = {}
        # The newest one that is done; where there is none, the newest one that has ended.
        runs = sorted(stored_runs(), key=lambda one: one.ending is not Ending.DONE)
        for run in runs:
            if run.experiment in known and run.ending is not None and run.experiment not in last:
                try:
                    results = load(run.folder)
                except TuiFsError:
                    continue  # somebody has removed it meanwhile
                last[run.experiment] = judgements_of(known[run.experiment], run, results)
        self.post_message(RunsJudged(list(last.values())))

    def on_runs_judged(self, message: RunsJudged) -> None:
        """Show the last run of each experiment."""
        self._last = {one.run.experiment: one for one in message.runs}
        self._show()

    def _show(self) -> None:
        found = experiments()
        self.query_one(BarTable).set_rows(experiment_rows(found, self._last, time.time()))
        self.show_place("", "lab", f"{len(found)} experiments, {len(self._last)} run")
        self._show_chosen()

    def _show_chosen(self) -> None:
        chosen = self._chosen()
        if chosen is not None:
            text = in_full(chosen, self._last.get(chosen.name), self._target)
            self.query_one("#experiment-in-full", Static).update(text)

    def _chosen(self) -> Experiment | None:
        row = self.query_one(BarTable).cursor_row
        return None if row is None else experiment(row.key)

    def on_bar_table_highlighted(self) -> None:
        """Show the experiment under the cursor, and run none that was asked for before."""
        self._withdraw()
        self._show_chosen()
        self.query_one("#body").scroll_home(animate=False)

    def on_bar_table_opened(self) -> None:
        """Ask whether to run it, or run what was asked for."""
        if self._asked is None:
            self.action_ask(Scale.SMALL)
        elif self._is_ready:
            name, scale = self._asked
            chosen = experiment(name)
            target = self._target if chosen.takes_target else ""
            self.app.push_screen(LabRunScreen(chosen, scale, target, self.settings))

    def action_ask(self, scale: str) -> None:
        """Say what a run would do and need, and ask for it."""
        chosen = self._chosen()
        if chosen is None:
            return
        if chosen.takes_target and not self._target:
            self._say(Text("Open it from the browser, in a directory of this machine."))
            return
        self._asked, self._is_ready = (chosen.name, Scale(scale)), False
        self._say(Text(f"looking what {chosen.name} needs…", "dim"))
        self._prepare(chosen, Scale(scale))

    @work(thread=True, exclusive=True, group="prepare")
    def _prepare(self, chosen: Experiment, scale: Scale) -> None:
        target = self._target if chosen.takes_target else ""
        try:
            prepared = prepare(chosen, scale, None, target)
        except (TuiFsError, OSError) as why:
            self.post_message(RunPrepared(chosen.name, scale, None, safe(str(why))))
            return
        self.post_message(RunPrepared(chosen.name, scale, prepared, ""))

    def on_run_prepared(self, message: RunPrepared) -> None:
        """Show the question, or why there can be no run."""
        if self._asked != (message.name, message.scale):
            return
        prepared = message.prepared
        if prepared is None:
            self._withdraw()
            self._say(Text(message.why_not, "bold"))
            return
        self._is_ready = True
        possible = [one for one in prepared.plans if not one.why_not]
        self._say(
            ask_words(
                prepared.experiment,
                prepared.scale,
                len(possible),
                prepared.needs.words,
            )
        )

    def _say(self, text: Text) -> None:
        self.query_one("#ask", Static).update(text)
        self.query_one("#ask").display = bool(text)

    def _withdraw(self) -> None:
        self._asked, self._is_ready = None, False
        self._say(Text(""))

    def action_refuse(self) -> None:
        """Do not run what was asked for; without a question, go back."""
        if self._asked is None:
            self.app.pop_screen()
        else:
            self._withdraw()

    def action_result(self) -> None:
        """Show the last result."""
        chosen = self._chosen()
        judged = None if chosen is None else self._last.get(chosen.name)
        if chosen is None or judged is None:
            self.notify("It has not been run yet; enter runs it.", markup=False)
            return
        self.app.push_screen(LabResultScreen(chosen, judged.run.folder, self.settings))

    def action_runs(self) -> None:
        """List the runs that are kept."""
        chosen = self._chosen()
        if chosen is not None:
            self.app.push_screen(LabRunsScreen(chosen, self.settings))
