"""What a run of an experiment has shown: claims, tables, plots, system calls, the machine."""

import os
from collections.abc import Iterator, Sequence
from functools import partial
from typing import ClassVar

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.widget import Widget
from textual.widgets import Static

from tui_fs.lab.exhibits import Bars, Calls, CallsOf, Claims, Curves, Exhibit, Flames, Table
from tui_fs.lab.experiment import Experiment
from tui_fs.lab.figures import safe
from tui_fs.lab.page import page
from tui_fs.lab.results import Results
from tui_fs.lab.runs import load
from tui_fs.lab.view_model import exhibits_of
from tui_fs.model.errors import BadInput, TuiFsError
from tui_fs.model.paths import displayable
from tui_fs.screens.frame import FramedScreen, Settings, muted
from tui_fs.screens.lab_messages import ResultRead
from tui_fs.screens.lab_result_text import (
    VERDICT_CLASSES,
    claim_text,
    flame_lines,
    machine_text,
    page_line,
    pages_of,
    pair_lines,
    pair_remarks,
    plot_of,
    run_words,
    summary,
    verdict_text,
)
from tui_fs.screens.messages import Failed
from widgets.curve_plot import CurvePlot
from widgets.fitted_lines import FittedLines, Line
from widgets.span_bars import layout_bars
from widgets.stats_table import layout_table

_REPORT = "report.html"
_PAGES = 9


class LabResultScreen(FramedScreen):
    """The result of a run, page by page.

    Args:
        folder: of the run.
        shown: results and exhibits to show instead of all that the run has, such as how it
            compares with another one.
    """

    KEYS: ClassVar = (
        ("←→", "page"),
        ("↑↓", "scroll"),
        ("[ ] < >", "tables"),
        ("r", "report"),
        ("m", "machine"),
        ("esc", "back"),
    )
    EXPLANATION = (
        "What a run has shown. Every claim of the text stands beside what was published and what "
        "was found here, with a verdict: it holds here, it does not, or it cannot be tested here "
        "and why. Figures are medians, with the least and the most. The page of system calls "
        "shows two steps side by side: < and > change the left one, [ and ] the right one. r "
        "writes all of it as a page for the browser beside the run."
    )

    BINDINGS = [
        Binding("escape,q", "app.pop_screen", tooltip="Go back"),
        Binding("right,l,tab", "turn(1)", tooltip="Next page"),
        Binding("left,h,shift+tab", "turn(-1)", tooltip="Page before"),
        *(
            Binding(str(number), f"page({number})", tooltip=f"Page {number}", show=False)
            for number in range(1, _PAGES + 1)
        ),
        Binding("m", "machine", tooltip="Show machine, tools and commands"),
        Binding("r", "report", tooltip="Write the report (HTML) beside the run"),
        Binding("less_than_sign", "choose(0, -1)", tooltip="Calls: other table at the left"),
        Binding("greater_than_sign", "choose(0, 1)", tooltip="Calls: next table at the left"),
        Binding("left_square_bracket", "choose(1, -1)", tooltip="Calls: other table at the right"),
        Binding("right_square_bracket", "choose(1, 1)", tooltip="Calls: next table at the right"),
        Binding("j,down", "scroll(1)", tooltip="Scroll down"),
        Binding("k,up", "scroll(-1)", tooltip="Scroll up"),
        Binding("pagedown,ctrl+f,space", "scroll(10)", tooltip="Scroll a page down"),
        Binding("pageup,ctrl+b", "scroll(-10)", tooltip="Scroll a page up"),
        Binding("g,home", "to_end(-1)", tooltip="Scroll to the beginning"),
        Binding("G,end", "to_end(1)", tooltip="Scroll to the end"),
    ]

    def __init__(
        self,
        experiment: Experiment,
        folder: str,
        settings: Settings,
        shown: tuple[Results, tuple[Exhibit, ...]] | None = None,
    ) -> None:
        super().__init__(settings)
        self._experiment = experiment
        self._folder = folder
        self._given = shown
        self._results: Results | None = None
        self._exhibits: tuple[Exhibit, ...] = ()
        self._pages: dict[str, list[Exhibit]] = {}
        self._page = ""
        self._calls: list[CallsOf] = []
        self._chosen = [0, 1]

    def compose_body(self) -> ComposeResult:
        """Lay out the names of the pages above the page."""
        yield FittedLines(lambda _: ((("", ""),),), id="page-names")
        yield Vertical(Static(Text("reading…"), id="headline"), id="pages")

    def on_mount(self) -> None:
        """Read the run."""
        verb = "result of" if self._given is None else "comparison of"
        self.show_place(verb, self._experiment.name)
        self._read()

    @work(thread=True, exclusive=True, group="read")
    def _read(self) -> None:
        if self._given is not None:
            self.post_message(ResultRead(*self._given))
            return
        try:
            results = load(self._folder)
            exhibits = exhibits_of(self._experiment, results, self._folder)
        except TuiFsError as why:
            self.post_message(Failed(why))
            return
        self.post_message(ResultRead(results, exhibits))

    async def on_result_read(self, message: ResultRead) -> None:
        """Lay out all pages, and show the first one."""
        results, self._exhibits = message.results, message.exhibits
        self._results = results
        self._pages = pages_of(self._exhibits)
        calls = [one for one in self._exhibits if isinstance(one, Calls)]
        self._calls = [table for one in calls for table in one.tables if table.rows]
        verb = "result of" if self._given is None else "comparison of"
        self.show_place(verb, self._experiment.name, run_words(results))
        place = self.query_one("#pages")
        await place.remove_children()
        await place.mount_all(
            VerticalScroll(
                *self._widgets_of(name, found, results),
                id=f"page-{name}",
                classes="page",
                can_focus=False,
            )
            for name, found in self._pages.items()
        )
        self._show_page(next(iter(self._pages)))

    def on_failed(self, message: Failed) -> None:
        """Say what went wrong."""
        if self._results is None:
            self.query_one("#headline", Static).update(Text(str(message.error), "bold"))
        else:
            self.notify(str(message.error), severity="warning", markup=False)

    def _widgets_of(
        self, name: str, found: Sequence[Exhibit], results: Results
    ) -> Iterator[Widget]:
        if name == "machine":
            yield Static(machine_text(results, self._folder))
        elif name == "calls":
            yield from self._calls_page()
        for exhibit in found:
            match exhibit:
                case Claims():
                    yield from self._claims(exhibit, results)
                case Table():
                    lay_out = partial(layout_table, exhibit.columns, exhibit.rows)
                    yield from _titled(exhibit.title, FittedLines(lay_out), exhibit.remark)
                case Bars():
                    lay_out = partial(layout_bars, exhibit.bars, is_log=exhibit.is_log)
                    title = exhibit.title + (" · bars of logarithms" if exhibit.is_log else "")
                    yield from _titled(title, FittedLines(lay_out), exhibit.remark)
                case Curves():
                    plot = CurvePlot()
                    plot.plot = plot_of(exhibit)
                    yield from _titled(exhibit.title, plot)
                case Flames():
                    lay_out = partial(flame_lines, exhibit)
                    yield from _titled(exhibit.title, FittedLines(lay_out), exhibit.remark)
                case Calls():
                    pass  # two tables of all are on the page, whichever exhibit they belong to

    def _claims(self, claims: Claims, results: Results) -> Iterator[Widget]:
        yield Static(summary(self._experiment, results, claims.claims), classes="summary")
        for claim in claims.claims:
            verdict = Static(verdict_text(claim.verdict), classes="verdict")
            verdict.add_class(VERDICT_CLASSES[claim.verdict])
            yield Horizontal(verdict, Static(claim_text(claim)), classes="claim")

    def _calls_page(self) -> Iterator[Widget]:
        yield FittedLines(self._pair_lines, id="pair")
        yield Static(Text(""), id="pair-remarks")

    def _show_page(self, name: str) -> None:
        self._page = name
        for page_shown in self.query(".page"):
            page_shown.display = page_shown.id == f"page-{name}"
        line = page_line(tuple(self._pages), name)
        self.query_one("#page-names", FittedLines).lay_out_by(lambda _: (line,))
        if name == "calls":
            self._show_pair()

    def _pair(self) -> list[CallsOf]:
        return [self._calls[index] for index in self._chosen if index < len(self._calls)]

    def _pair_lines(self, width: int) -> Sequence[Line]:
        return pair_lines(self._pair(), width, has_choice=len(self._calls) > 2)

    def _show_pair(self) -> None:
        self.query_one("#pair", FittedLines).lay_out_by(self._pair_lines)
        self.query_one("#pair-remarks", Static).update(pair_remarks(self._pair()))

    def action_choose(self, side: int, direction: int) -> None:
        """Put another table at a side of the page of system calls."""
        if self._page != "calls" or len(self._calls) < 3:
            return
        index = self._chosen[side]
        while index in self._chosen:
            index = (index + direction) % len(self._calls)
        self._chosen[side] = index
        self._show_pair()

    def action_turn(self, direction: int) -> None:
        """Show the page beside."""
        names = list(self._pages)
        if names:
            index = names.index(self._page) + direction
            self._show_page(names[max(0, min(index, len(names) - 1))])

    def action_page(self, number: int) -> None:
        """Show a page by its number."""
        names = list(self._pages)
        if number <= len(names):
            self._show_page(names[number - 1])

    def action_machine(self) -> None:
        """Show what it was measured on."""
        if self._pages:
            self._show_page("machine")

    def action_scroll(self, lines: int) -> None:
        """Scroll the page by some lines."""
        for shown in self.query(f"#page-{self._page}") if self._page else ():
            shown.scroll_relative(y=lines, animate=False)

    def action_to_end(self, direction: int) -> None:
        """Scroll to the beginning or the end of the page."""
        for shown in self.query(f"#page-{self._page}") if self._page else ():
            if direction > 0:
                shown.scroll_end(animate=False)
            else:
                shown.scroll_home(animate=False)

    def action_report(self) -> None:
        """Write the report as a page for the browser."""
        if self._results is not None:
            self._write(self._results)

    @work(thread=True, exclusive=True, group="report")
    def _write(self, results: Results) -> None:
        try:
            path = write_report(self._experiment, results, self._exhibits, self._folder)
        except TuiFsError as why:
            self.post_message(Failed(why))
            return
        written = f"The report is written: {displayable(path)}"
        self.app.call_from_thread(self.notify, written, markup=False)


def write_report(
    experiment: Experiment, results: Results, exhibits: tuple[Exhibit, ...], folder: str
) -> str:
    """Write a run's report into its folder and return its path; BadInput if that fails."""
    path = os.path.join(folder, _REPORT)
    try:
        with open(f"{path}.new", "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(page(experiment, results, exhibits, os.path.basename(folder)))
        os.replace(f"{path}.new", path)
    except OSError as error:
        raise BadInput(f"{displayable(path)} cannot be written: {error.strerror}.") from error
    return path


def _titled(title: str, widget: Widget, remark: str = "") -> Iterator[Widget]:
    """Yield a widget between its title and a remark."""
    yield Static(Text(safe(title), "bold"), classes="exhibit-title")
    yield widget
    if remark:
        yield Static(muted(safe(remark)))
