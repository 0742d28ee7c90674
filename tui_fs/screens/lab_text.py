"""The rows and words of the lab: experiments, runs, steps so far."""

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from rich.console import Group
from rich.table import Table as Grid
from rich.text import Text

from tui_fs.lab.experiment import Experiment, Scale, Verdict
from tui_fs.lab.figures import safe, shown, shown_span
from tui_fs.lab.results import Ending, Measure, Measured, Results
from tui_fs.lab.runs import StoredRun
from tui_fs.model.paths import displayable
from tui_fs.model.units import count, counted
from tui_fs.screens.ages import age
from widgets.bar_table import BarRow, Column

EXPERIMENT_COLUMNS = (
    Column("experiment", 20),
    Column("", 0),
    Column("last run", 8, right=True),
    Column("holds", 5, right=True),
    Column("not", 3, right=True),
    Column("open", 4, right=True),
)
RUN_COLUMNS = (
    Column("began", 19),
    Column("", 0),
    Column("scale", 9),
    Column("ended", 10),
    Column("holds", 5, right=True),
    Column("not", 3, right=True),
    Column("open", 4, right=True),
)
STEP_COLUMNS = (
    Column("step", 0),
    Column("runs", 4, right=True),
    Column("median", 8, right=True),
    Column("least–most", 12, right=True),
    Column("calls", 9, right=True),
)


@dataclass(frozen=True, slots=True)
class Judgements:
    """A run with how many of the experiment's claims hold in it, do not, and stay open."""

    run: StoredRun
    verdicts: Counter[Verdict]

    @property
    def cells(self) -> tuple[str, str, str]:
        """Three counts, a dot for none."""
        holds, does_not, untested = (
            str(self.verdicts[one]) if self.verdicts[one] else "·"
            for one in (Verdict.HOLDS, Verdict.DOES_NOT, Verdict.UNTESTED)
        )
        return holds, does_not, untested


def judgements_of(experiment: Experiment, run: StoredRun, results: Results) -> Judgements:
    """Judge all claims by a run."""
    return Judgements(run, Counter(one.judged(results).verdict for one in experiment.claims))


def verdict_words(verdicts: Counter[Verdict]) -> str:
    """Return ``9 hold here, 1 does not, 4 cannot be tested here``."""
    parts = []
    for verdict, number in sorted(verdicts.items(), key=lambda item: list(Verdict).index(item[0])):
        match verdict:
            case Verdict.HOLDS:
                parts.append(f"{number} {'holds' if number == 1 else 'hold'} here")
            case Verdict.DOES_NOT:
                parts.append(f"{number} {'does' if number == 1 else 'do'} not")
            case Verdict.UNTESTED:
                parts.append(f"{number} cannot be tested here")
            case _:
                assert_never(verdict)
    return ", ".join(parts)


def experiment_rows(
    experiments: Sequence[Experiment], last: dict[str, Judgements], now_s: float
) -> list[BarRow]:
    """Return a row for each experiment with its last run."""
    rows = []
    for one in experiments:
        judged = last.get(one.name)
        cells: tuple[str, ...] = ("never", "", "", "")
        if judged is not None:
            cells = (age(int(judged.run.started_at), now_s), *judged.cells)
        rows.append(BarRow(one.name, (one.name, one.title, *cells)))
    return rows


def run_rows(runs: Sequence[Judgements], marked: Sequence[str], began: list[str]) -> list[BarRow]:
    """Return a row for each run.

    Args:
        marked: folders.
        began: when each run began, in words.
    """
    return [
        BarRow(
            one.run.folder,
            (when, "", one.run.scale.value, ending_words(one.run.ending), *one.cells),
            marked=one.run.folder in marked,
            tone="normal" if one.run.ending is Ending.DONE else "muted",
        )
        for one, when in zip(runs, began, strict=True)
    ]


def ending_words(ending: Ending | None) -> str:
    """Return how a run has ended; one without an end was killed, or is still at work."""
    return "unfinished" if ending is None else ending.value


def in_full(experiment: Experiment, judged: Judgements | None, target: str) -> Group:
    """Return the question, who has published it, what it needs, and what the last run found."""
    copies = ""
    if experiment.takes_target:
        copies = "the shape of the directory it is opened from"
        if target:
            copies = f"the shape of {displayable(target)}, which is only looked at"
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


def ask_words(experiment: Experiment, scale: Scale, steps: int, needs: str) -> Text:
    """Return the question before a run."""
    text = Text(f"Run {experiment.name} at {scale} scale?", "bold")
    text.append(f" {counted(steps, 'step', 'steps')}, {needs}. ", "not bold")
    text.append("enter")
    text.append(" runs, ", "dim not bold")
    text.append("esc")
    text.append(" does not", "dim not bold")
    return text


def step_rows(results: Results) -> list[BarRow]:
    """Return the steps with their figures so far."""
    return [_step_row(one) for one in results.measured.values()]


def _step_row(one: Measured) -> BarRow:
    values, calls = one.values(Measure.SECONDS), one.values(Measure.CALLS)
    median = shown(Measure.SECONDS, statistics.median(values)) if values else ""
    span = shown_span(Measure.SECONDS, min(values), max(values), median) if values else ""
    flag = "! failed" if one.failed else "not here" if one.plan.why_not else ""
    return BarRow(
        one.plan.key,
        (
            safe(one.plan.title),
            count(len(values)) if values else "",
            median,
            span,
            count(round(calls[0])) if calls else "",
        ),
        flag=flag,
        tone="warning" if one.failed else "muted" if not values and not calls else "normal",
    )


def step_in_full(one: Measured) -> Text:
    """Return a step's commands, or why it cannot be done."""
    text = Text()
    if one.why_not:
        text.append(safe(one.why_not))
    else:
        text.append("$ ", "dim")
        text.append("; ".join(safe(line) for line in one.plan.commands))
        if one.plan.tree:
            text.append(f"  on {safe(one.plan.tree)}, {safe(one.plan.place)}", "dim")
    return text
