"""Two jobs side by side, ended or running."""

import time
from collections.abc import Sequence
from functools import partial
from typing import ClassVar

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.widgets import Static
from textual.worker import get_current_worker

from tui_fs.job.comparison import (
    ComparedJob,
    JobFigures,
    call_remark,
    call_rows,
    figure_rows,
    remarks,
)
from tui_fs.job.sampling import SAMPLE_EVERY_S
from tui_fs.job.store import JobFolder
from tui_fs.model.errors import TuiFsError
from tui_fs.model.events import Event
from tui_fs.model.units import count, duration
from tui_fs.screens.base import (
    PAGE_BINDINGS,
    SCROLL_BINDINGS,
    BaseScreen,
    Failed,
    Settings,
    muted,
)
from tui_fs.screens.run_history import RunHistory
from tui_fs.widgets.cell_drawing import dots, fit_cells
from tui_fs.widgets.figure_layout import Line, layout_table
from tui_fs.widgets.fitted_lines import FittedLines
from tui_fs.widgets.rate_graph import MINIMUM_GRAPH, RateHistory, draw_graph, on_axis

_GRAPH_LINES = 3
_RATIO = "2nd/1st"

Compared = tuple[JobFigures, RateHistory]
"""A job and its rates."""


class ComparisonScreen(BaseScreen):
    """Figures, rates and system calls of two jobs.

    Args:
        folders: the jobs; the first one is the left one.
    """

    KEYS: ClassVar = (("↑↓", "scroll"), ("J", "jobs"), ("esc", "back"))
    EXPLANATION = (
        "Two jobs side by side. The last column is the figure of the second job divided by that of "
        "the first. The time is without pauses. Both graphs have the same time axis and the same "
        "scale. A job that still runs is compared with its figures so far. Trees with different "
        "numbers of entries are compared by their rates, because a larger tree takes longer."
    )

    BINDINGS = [
        Binding("escape,q,left,h,equals_sign", "app.pop_screen", tooltip="Go back"),
        *SCROLL_BINDINGS,
        *PAGE_BINDINGS,
    ]

    def __init__(self, folders: tuple[JobFolder, JobFolder], settings: Settings) -> None:
        super().__init__(settings)
        self._folders = folders

    def compose_body(self) -> ComposeResult:
        """Lay out the places, what differs, the figures, the rates and the calls."""
        yield Static(Text(f"reading{dots()}"), id="headline")
        with VerticalScroll(id="body", can_focus=False):
            yield Static(Text(""), id="remarks")
            yield FittedLines(lambda _: (), id="figure-rows")
            yield FittedLines(lambda _: (), id="rates")
            yield FittedLines(lambda _: (), id="call-rows")
            yield Static(Text(""), id="call-remark")

    def on_mount(self) -> None:
        """Read the jobs until both have ended."""
        self.show_place("", "compare jobs " + " and ".join(f.job_id for f in self._folders))
        self._follow()

    @work(thread=True, exclusive=True, group="follow")
    def _follow(self) -> None:
        worker = get_current_worker()
        try:
            jobs = [ComparedJob(folder) for folder in self._folders]
            histories = [RunHistory(SAMPLE_EVERY_S) for _ in jobs]
            while not worker.is_cancelled:
                pairs: list[Compared] = []
                for job, history in zip(jobs, histories, strict=True):
                    figures = job.poll(partial(_record, job, history))
                    history.add(job.view.snapshot)
                    pairs.append((figures, history.removals))
                self.app.call_from_thread(self._show, pairs)
                if all(job.view.is_over for job in jobs):
                    return
                time.sleep(self.settings.interval_s)
        except TuiFsError as error:
            self.post_message(Failed(error))

    def _show(self, pairs: list[Compared]) -> None:
        if not self.is_attached:
            return
        first, second = (figures for figures, _ in pairs)
        self.query_one("#headline", Static).update(_places((first, second)))
        sentences = remarks(first, second)
        self.query_one("#remarks", Static).update(Text("\n".join(sentences), "bold"))
        self.query_one("#remarks").display = bool(sentences)
        ids = (first.job_id, second.job_id)
        for name, title, rows in (
            ("#figure-rows", "", figure_rows(first, second)),
            ("#call-rows", "system calls", call_rows(first, second)),
        ):
            columns = (title, *ids, _RATIO)
            lay_out = partial(layout_table, columns, rows)
            self.query_one(name, FittedLines).lay_out_by(lay_out if rows else lambda _: ())
        self.query_one("#call-remark", Static).update(muted(call_remark(first, second)))
        self.query_one("#rates", FittedLines).lay_out_by(partial(rate_lines, pairs))

    def on_failed(self, message: Failed) -> None:
        """Show why the jobs cannot be compared."""
        self.query_one("#headline", Static).update(Text(str(message.error), "bold"))


def _record(job: ComparedJob, history: RunHistory, event: Event) -> None:
    history.add(job.view.snapshot, event)


def _places(jobs: Sequence[JobFigures]) -> Text:
    text = Text()
    for number, job in enumerate(jobs):
        text.append("\n" if number else "")
        text.append(f"{job.job_id}  ", "dim")
        text.append(job.place)
    return text


def rate_lines(pairs: Sequence[Compared], width: int) -> list[Line]:
    """Draw the rates of jobs, on one time axis and to one scale.

    Args:
        width: cells of a line.
    """
    axis_s = max(figures.working_s for figures, _ in pairs)
    peaks = [max(history.values, default=0.0) for _, history in pairs]
    if axis_s <= 0 or not any(peaks):
        return []
    captions = [
        f"peak {count(round(peak))} /s" if history.values else "peak ?"
        for peak, (_, history) in zip(peaks, pairs, strict=True)
    ]
    label_cells = max(len(figures.job_id) for figures, _ in pairs) + 1
    caption_cells = max(map(len, captions)) + 2
    if width - label_cells - caption_cells < MINIMUM_GRAPH:
        caption_cells = 0
    graph_cells = max(1, width - label_cells - caption_cells)
    lines: list[Line] = [(("muted", fit_cells("rate, same time axis and scale", width)),)]
    for (figures, history), caption in zip(pairs, captions, strict=True):
        values = on_axis(history.values, history.bucket_s, figures.working_s, axis_s, graph_cells)
        graph = draw_graph(values, graph_cells, _GRAPH_LINES, top=max(peaks))
        for number, part in enumerate(graph):
            is_last = number == _GRAPH_LINES - 1
            label = figures.job_id if is_last else ""
            end = fit_cells(caption if is_last else "", caption_cells, right=True)
            lines.append((("muted", fit_cells(label, label_cells)), ("bar", part), ("muted", end)))
    axis = " " * label_cells + "0 s" + duration(axis_s).rjust(graph_cells - len("0 s"))
    lines.append((("muted", fit_cells(axis, width)),))
    return lines
