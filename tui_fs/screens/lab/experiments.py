"""The lab: experiments with their questions, their runs, and the comparison of two runs."""

import os
import time
from collections import Counter
from collections.abc import Sequence
from typing import ClassVar

from msgspec import Struct
from rich.console import Group
from rich.table import Table as Grid
from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.widgets import Static

from tui_fs.lab.diff import comparison_exhibits
from tui_fs.lab.experiment import Experiment, Scale, Verdict, run_command
from tui_fs.lab.experiments import experiment, experiments
from tui_fs.lab.preparing import Prepared, prepare
from tui_fs.lab.results import Ending
from tui_fs.lab.runs import StoredRun, load, stored_runs
from tui_fs.model.errors import BadInput, TuiFsError
from tui_fs.model.paths import displayable, harmless
from tui_fs.model.strategy import Argv
from tui_fs.model.units import counted
from tui_fs.screens.base import (
    COPY_BINDING,
    TEXT_BINDINGS,
    TEXT_HINT,
    BaseScreen,
    Failed,
    Settings,
    age,
)
from tui_fs.screens.lab.result import LabResultScreen, ending_words, verdict_words
from tui_fs.screens.lab.run import LabRunScreen
from tui_fs.screens.selection import toggled_pair
from tui_fs.widgets.bar_table import BarRow, BarTable, Column
from tui_fs.widgets.cell_drawing import dots
from tui_fs.widgets.footer import Footer

_VERDICT_COLUMNS = (
    Column("holds", 5, right=True, is_optional=True, meaning="claims that hold on this machine"),
    Column("not", 3, right=True, is_optional=True, meaning="claims that do not hold here"),
    Column("open", 4, right=True, is_optional=True, meaning="claims that cannot be tested here"),
)
EXPERIMENT_COLUMNS = (
    Column("experiment", 20, meaning="its name, for tui-fs lab run"),
    Column("", 0),
    Column("last run", 8, right=True, is_optional=True, meaning="the age of the last run"),
    *_VERDICT_COLUMNS,
)
RUN_COLUMNS = (
    Column("began", 0, meaning="when the run began"),
    Column("scale", 9, is_optional=True, meaning="small or published"),
    Column("ended", 10, meaning="how the run ended"),
    *_VERDICT_COLUMNS,
)


class Judgements(Struct, frozen=True):
    """A run with the numbers of claims that hold, do not hold and stay untested in it."""

    run: StoredRun
    verdicts: Counter[Verdict]

    @property
    def cells(self) -> tuple[str, str, str]:
        """Three counts, a dot for none."""
        holds, does_not, untested = (
            str(self.verdicts[verdict]) if self.verdicts[verdict] else "·"
            for verdict in (Verdict.HOLDS, Verdict.DOES_NOT, Verdict.UNTESTED)
        )
        return holds, does_not, untested


def judge(experiment: Experiment, run: StoredRun) -> Judgements | None:
    """Judge all claims by a run; return None if the run has just been removed."""
    try:
        results = load(run.folder)
    except TuiFsError:
        return None
    return Judgements(run, Counter(claim.judged(results).verdict for claim in experiment.claims))


def experiment_rows(
    listed: Sequence[Experiment], last: dict[str, Judgements], now_s: float
) -> list[BarRow]:
    """Return a row for each experiment with its last run."""
    rows = []
    for entry in listed:
        judged = last.get(entry.name)
        cells: tuple[str, ...] = ("never", "", "", "")
        if judged is not None:
            cells = (age(int(judged.run.started_at), now_s), *judged.cells)
        rows.append(BarRow(entry.name, (entry.name, entry.title, *cells)))
    return rows


def run_rows(runs: Sequence[Judgements], marked: Sequence[str]) -> list[BarRow]:
    """Return a row for each run; those with a folder in `marked` are marked."""
    return [
        BarRow(
            judged.run.folder,
            (
                time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(judged.run.started_at)),
                judged.run.scale.value,
                ending_words(judged.run.ending),
                *judged.cells,
            ),
            marked=judged.run.folder in marked,
            tone="normal" if judged.run.ending is Ending.DONE else "muted",
        )
        for judged in runs
    ]


def in_full(experiment: Experiment, judged: Judgements | None, target: str) -> Group:
    """Return the question, its publication, its requirements, and the result of the last run."""
    copies = ""
    if experiment.takes_target:
        copies = "the shape of the directory from which you open the lab"
        if target:
            copies = f"the shape of {displayable(target)}, which is only read"
    grid = Grid.grid(padding=(0, 2))
    for label, words in (
        ("needs", "; ".join(experiment.needs)),
        ("copies", copies),
        ("claims", _claims_words(experiment, judged)),
    ):
        if words:
            grid.add_row(Text(label, "dim"), Text(words))
    return Group(Text(experiment.question, "bold"), Text(f"{experiment.source}\n", "dim"), grid)


def _claims_words(experiment: Experiment, judged: Judgements | None) -> str:
    if judged is None or not experiment.claims:
        return counted(len(experiment.claims), "claim", "claims") if experiment.claims else ""
    return f"{verdict_words(judged.verdicts)} ({judged.run.scale} scale)"


def ask_words(prepared: Prepared) -> Text:
    """Return the question before a run."""
    steps = sum(not plan.why_not for plan in prepared.plans)
    text = Text(f"Run {prepared.experiment.name} at {prepared.scale} scale?", "bold")
    text.append(f" {counted(steps, 'step', 'steps')}, {prepared.needs.words}. ", "not bold")
    text.append("enter")
    text.append(" runs, ", "dim not bold")
    text.append("esc")
    text.append(" cancels", "dim not bold")
    return text


class LabScreen(BaseScreen):
    """A list of experiments.

    Args:
        target: the browser's directory, whose shape an experiment may copy; empty for none.
    """

    KEYS: ClassVar = (
        ("enter", "run small"),
        TEXT_HINT,
        ("esc", "back"),
        ("P", "run as published"),
        ("→", "result"),
        ("v", "all runs"),
        ("y", "copy"),
    )
    EXPLANATION = (
        "Published measurements of deleting and of file handling, to repeat on this machine. "
        "Small takes under a minute; published uses the sizes of the original publication. A "
        "run works in a private directory, shows its needs before it starts, and always removes "
        "what it made."
    )

    OPENS = "Run the experiment at small scale (asks first)"
    OPENS_FOR = "experiment"
    BINDINGS = [
        COPY_BINDING,
        Binding("P", "ask('published')", tooltip="Run at the published scale (asks first)"),
        # With priority, because the list would open the row, which runs the experiment.
        Binding("right,l", "result", tooltip="Show the last result", priority=True),
        Binding("v", "runs", tooltip="List all runs; compare two of them"),
        Binding("escape", "refuse", tooltip="Go back without running"),
        Binding("q,left,h", "app.pop_screen", tooltip="Go back"),
        *TEXT_BINDINGS,
    ]

    def __init__(self, target: str, settings: Settings) -> None:
        super().__init__(settings)
        self._target = target
        self._last: dict[str, Judgements] = {}
        self._asked: tuple[str, Scale] | None = None
        self._is_ready = False

    def compose_body(self) -> ComposeResult:
        """Lay out the list above the full text of the chosen experiment."""
        yield BarTable(EXPERIMENT_COLUMNS, id="experiments")
        with VerticalScroll(id="body", can_focus=False):
            yield Static(Text(""), id="experiment-in-full")
        yield Static(Text(""), id="ask")

    def on_mount(self) -> None:
        """List the experiments."""
        self.query_one(BarTable).focus()
        self._show()

    def on_screen_resume(self) -> None:
        """List the runs again: there may be a new one."""
        self._withdraw()
        self._read_runs()

    @work(thread=True, exclusive=True, group="runs")
    def _read_runs(self) -> None:
        known = {entry.name: entry for entry in experiments()}
        last: dict[str, Judgements] = {}
        # The newest completed run; without one, the newest ended run.
        for run in sorted(stored_runs(), key=lambda run: run.ending is not Ending.DONE):
            if run.experiment in known and run.ending is not None and run.experiment not in last:
                judged = judge(known[run.experiment], run)
                if judged is not None:
                    last[run.experiment] = judged
        self.call_later(self._show_runs, last)

    def _show_runs(self, last: dict[str, Judgements]) -> None:
        self._last = last
        self._show()

    def _show(self) -> None:
        listed = experiments()
        table = self.query_one(BarTable)
        # Without a run, the descriptions have the room of its columns.
        table.set_columns(EXPERIMENT_COLUMNS if self._last else EXPERIMENT_COLUMNS[:3])
        table.set_rows(experiment_rows(listed, self._last, time.time()))
        self.show_place("", "lab", f"{len(listed)} experiments, {len(self._last)} run")
        self._show_chosen()

    def _show_chosen(self) -> None:
        chosen = self._chosen()
        if chosen is not None:
            text = in_full(chosen, self._last.get(chosen.name), self._target)
            self.query_one("#experiment-in-full", Static).update(text)
        self.show_idle_keys()

    def idle_keys(self) -> frozenset[str]:
        """Return the keys that would do nothing now: without a run there is no result."""
        idle, chosen = super().idle_keys(), self._chosen()
        return idle if chosen is not None and chosen.name in self._last else idle | {"→"}

    def _chosen(self) -> Experiment | None:
        row = self.query_one(BarTable).cursor_row
        return None if row is None else experiment(row.key)

    def on_bar_table_highlighted(self) -> None:
        """Show the experiment under the cursor, and drop an open question."""
        self._withdraw()
        self._show_chosen()
        self.query_one("#body").scroll_home(animate=False)

    def on_bar_table_opened(self) -> None:
        """Ask whether to run the experiment, or run it if the question is open."""
        if self._asked is None:
            self.action_ask(Scale.SMALL)
        elif self._is_ready:
            name, scale = self._asked
            chosen = experiment(name)
            target = self._target if chosen.takes_target else ""
            self.app.push_screen(LabRunScreen(chosen, scale, target, self.settings))

    def action_ask(self, scale: str) -> None:
        """Ask whether to run the experiment; show its actions and requirements."""
        chosen = self._chosen()
        if chosen is None:
            return
        if chosen.takes_target and not self._target:
            self._show_question(
                Text("Open the lab from the browser, in a directory on this machine.")
            )
            return
        self._asked, self._is_ready = (chosen.name, Scale(scale)), False
        self._show_question(Text(f"checking the needs of {chosen.name}{dots()}", "dim"))
        self._prepare(chosen, Scale(scale))

    @work(thread=True, exclusive=True, group="prepare")
    def _prepare(self, chosen: Experiment, scale: Scale) -> None:
        target = self._target if chosen.takes_target else ""
        try:
            prepared = prepare(chosen, scale, None, target)
        except (TuiFsError, OSError) as error:
            self.call_later(self._refuse, (chosen.name, scale), harmless(str(error)))
            return
        self.call_later(self._ask, prepared)

    def _refuse(self, asked: tuple[str, Scale], why_not: str) -> None:
        """Show why a run is impossible."""
        if self._asked == asked:
            self._withdraw()
            self._show_question(Text(why_not, "bold"))

    def _ask(self, prepared: Prepared) -> None:
        if self._asked == (prepared.experiment.name, prepared.scale):
            self._is_ready = True
            self._show_question(ask_words(prepared))

    def _show_question(self, text: Text) -> None:
        self.query_one("#ask", Static).update(text)
        self.query_one("#ask").display = bool(text)
        asked = (*((("enter", "run"),) if self._is_ready else ()), ("esc", "cancel"), ("y", "copy"))
        keys = self.KEYS if self._asked is None else asked
        self.query_one("#keys", Footer).keys = (*keys, ("?", "help"))

    def _withdraw(self) -> None:
        self._asked, self._is_ready = None, False
        self._show_question(Text(""))

    def action_refuse(self) -> None:
        """Drop the open question; without one, go back."""
        if self._asked is None:
            self.app.pop_screen()
        else:
            self._withdraw()

    def command_to_copy(self) -> Argv:
        """Return the command for the highlighted experiment, at the scale of an open question."""
        chosen = self._chosen()
        if chosen is None:
            raise BadInput("There is no experiment.")
        if chosen.takes_target and not self._target:
            raise BadInput("Open the lab from the browser, in a directory on this machine.")
        scale = Scale.SMALL if self._asked is None else self._asked[1]
        return run_command(chosen, scale, self._target)

    def action_result(self) -> None:
        """Show the last result."""
        chosen = self._chosen()
        judged = None if chosen is None else self._last.get(chosen.name)
        if chosen is None or judged is None:
            self.notify("This experiment has not been run yet; enter runs it.", markup=False)
            return
        self.app.push_screen(LabResultScreen(chosen, judged.run.folder, self.settings))

    def action_runs(self) -> None:
        """List the stored runs."""
        chosen = self._chosen()
        if chosen is not None:
            self.app.push_screen(LabRunsScreen(chosen, self.settings))


class LabRunsScreen(BaseScreen):
    """A list of runs, the newest first."""

    KEYS: ClassVar = (
        ("enter", "result"),
        ("space", "mark"),
        ("=", "compare two"),
        ("esc", "back"),
    )
    EXPLANATION = (
        "All stored runs of this experiment. Enter shows the result of one. Mark two with space, "
        "and = compares them. An unfinished run was killed or is still running."
    )

    OPENS = "Show the result"
    OPENS_FOR = "experiment"
    BINDINGS = [
        Binding("equals_sign", "compare", tooltip="Compare the two marked runs"),
        Binding("escape,q,left,h,v", "app.pop_screen", tooltip="Go back"),
    ]

    def __init__(self, experiment: Experiment, settings: Settings) -> None:
        super().__init__(settings)
        self._experiment = experiment
        self._runs: list[Judgements] = []
        self._marked: list[str] = []

    def compose_body(self) -> ComposeResult:
        """Lay out the list."""
        yield BarTable(RUN_COLUMNS, empty_text="reading…", toggle_mark=self._toggle_mark, id="runs")

    def on_mount(self) -> None:
        """Read the runs."""
        self.show_place("runs of", self._experiment.name)
        self.query_one(BarTable).focus()
        self._read_runs()

    @work(thread=True, exclusive=True, group="runs")
    def _read_runs(self) -> None:
        runs = [run for run in stored_runs() if run.experiment == self._experiment.name]
        judged = [judge(self._experiment, run) for run in runs]
        self.call_later(self._show_runs, [run for run in judged if run is not None])

    def _show_runs(self, runs: list[Judgements]) -> None:
        self._runs = runs
        self._show()

    def _show(self) -> None:
        rows = self.query_one(BarTable)
        rows.empty_text = "no runs yet"
        rows.set_rows(run_rows(self._runs, self._marked))
        note = counted(len(self._runs), "run", "runs")
        self.show_place("runs of", self._experiment.name, note)

    def on_bar_table_opened(self, message: BarTable.Opened) -> None:
        """Show the result."""
        screen = LabResultScreen(self._experiment, message.row.key, self.settings)
        self.app.push_screen(screen)

    def _toggle_mark(self, row: BarRow) -> bool:
        self._marked = toggled_pair(self._marked, row.key)
        self._show()
        return True

    def action_compare(self) -> None:
        """Compare the marked runs, the older one first."""
        if len(self._marked) < 2:
            self.notify("Mark two runs with space first.", markup=False)
            return
        order = [judged.run.folder for judged in reversed(self._runs)]
        first, second = sorted(self._marked, key=order.index)
        self._compare(first, second)

    @work(thread=True, exclusive=True, group="compare")
    def _compare(self, first: str, second: str) -> None:
        names = os.path.basename(first), os.path.basename(second)
        short = tuple(name.removeprefix(f"{self._experiment.name}-") for name in names)
        try:
            earlier, later = load(first), load(second)
            exhibits = comparison_exhibits(earlier, later, (short[0], short[1]))
        except TuiFsError as error:
            self.post_message(Failed(error))
            return
        screen = LabResultScreen(self._experiment, second, self.settings, (later, exhibits))
        self.app.call_from_thread(self.app.push_screen, screen)

    def on_failed(self, message: Failed) -> None:
        """Report why the runs cannot be compared."""
        self.notify(str(message.error), severity="warning", markup=False)
