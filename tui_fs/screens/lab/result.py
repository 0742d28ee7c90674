"""The result of a run of an experiment: claims, tables, plots, system calls, the machine."""

import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import ClassVar

from rich.console import Group
from rich.table import Table as Grid
from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.widget import Widget
from textual.widgets import Static

from tui_fs.lab.exhibits import (
    Calls,
    CallsOf,
    Claims,
    Exhibit,
    Flames,
    Table,
    exhibits_of,
)
from tui_fs.lab.experiment import Experiment, Judged, Verdict, run_command
from tui_fs.lab.page import page
from tui_fs.lab.results import Ending, Results
from tui_fs.lab.runs import load
from tui_fs.model.compat import assert_never
from tui_fs.model.errors import BadInput, TuiFsError
from tui_fs.model.paths import displayable, harmless
from tui_fs.model.strategy import Argv
from tui_fs.model.units import duration
from tui_fs.screens.base import (
    COPY_BINDING,
    PAGE_BINDINGS,
    SCROLL_BINDINGS,
    BaseScreen,
    Failed,
    Settings,
    muted,
)
from tui_fs.screens.lab.drawing import (
    flame_lines,
    pair_lines,
    pair_remarks,
    table_lines,
)
from tui_fs.survey.export_file import new_file
from tui_fs.widgets.cell_drawing import dots
from tui_fs.widgets.figure_layout import Line
from tui_fs.widgets.fitted_lines import FittedLines
from tui_fs.widgets.footer import Footer

VERDICT_SIGNS = {Verdict.HOLDS: "✓", Verdict.DOES_NOT: "✗", Verdict.UNTESTED: "○"}
VERDICT_CLASSES = {
    Verdict.HOLDS: "holds",
    Verdict.DOES_NOT: "does-not",
    Verdict.UNTESTED: "untested",
}

_NAMES = {
    Claims: "claims",
    Table: "tables",
    Calls: "calls",
    Flames: "flames",
}


def pages_of(exhibits: Sequence[Exhibit]) -> dict[str, list[Exhibit]]:
    """Return the exhibits by page; the last page is the machine."""
    pages: dict[str, list[Exhibit]] = {}
    for kind, name in _NAMES.items():
        on_page = [exhibit for exhibit in exhibits if isinstance(exhibit, kind)]
        if on_page:
            pages[name] = on_page
    pages["machine"] = []
    return pages


def page_line(names: Sequence[str], shown: str, width: int) -> Line:
    """Return the keys of the pages and their names; on a narrow line only the shown name."""
    is_narrow = sum(len(f"›{number} {name}  ") for number, name in enumerate(names, 1)) > width
    return tuple(
        ("strong", f"›{number} {name}  ")
        if name == shown
        else ("muted", f" {number}  " if is_narrow else f" {number} {name}  ")
        for number, name in enumerate(names, 1)
    )


def run_words(results: Results) -> str:
    """Return scale, day and ending of a run."""
    began, ended = results.began, results.ended
    day = time.strftime("%Y-%m-%d %H:%M", time.localtime(began.started_at))
    ending = ending_words(None if ended is None else ended.ending)
    return f"{began.scale} · {day}" + ("" if ending == "done" else f" · {ending} !")


def summary(experiment: Experiment, results: Results, claims: Sequence[Judged]) -> Text:
    """Return the question, the numbers of the claims, and the notes on the run."""
    text = Text(experiment.question, "bold")
    verdicts = Counter(claim.verdict for claim in claims)
    if verdicts:
        text.append(f"\n{verdict_words(verdicts)}", "not bold")
    ended = results.ended
    if ended is not None and ended.reason:
        text.append(f"\n! {harmless(ended.reason)}", "bold")
    for note in results.notes:
        text.append(f"\n! {harmless(note)}", "not bold")
    return text


def verdict_words(verdicts: Counter[Verdict]) -> str:
    """Return ``9 hold here, 1 does not hold, 4 cannot be tested here``."""
    parts = []
    for verdict, number in sorted(verdicts.items(), key=lambda item: list(Verdict).index(item[0])):
        match verdict:
            case Verdict.HOLDS:
                parts.append(f"{number} {'holds' if number == 1 else 'hold'} here")
            case Verdict.DOES_NOT:
                parts.append(f"{number} {'does' if number == 1 else 'do'} not hold")
            case Verdict.UNTESTED:
                parts.append(f"{number} cannot be tested here")
            case _:
                assert_never(verdict)
    return ", ".join(parts)


def ending_words(ending: Ending | None) -> str:
    """Return how a run has ended; without an end it was killed, or is still running."""
    return "unfinished" if ending is None else ending.value


def verdict_text(verdict: Verdict) -> Text:
    """Return a verdict with its sign."""
    return Text(f"{VERDICT_SIGNS[verdict]} {verdict.value}")


def claim_text(claim: Judged) -> Group:
    """Return a claim above the published figures, those of this run, and the reason."""
    grid = Grid.grid(padding=(0, 2, 0, 0))
    for label, words in (
        ("published", claim.published),
        ("here", claim.here),
        ("why", claim.reason),
    ):
        if words:
            grid.add_row(Text(label, "dim"), Text(words))
    return Group(Text(claim.text, "bold"), grid)


def machine_text(results: Results, folder: str) -> Group:
    """Return the machine of the run, and the exact commands."""
    began, machine, ended = results.began, results.began.machine, results.ended
    about_run = {
        "worked in": displayable(began.directory),
        "copied": displayable(began.target),
        "took": "" if ended is None else duration(ended.elapsed_s),
        "kept": "" if ended is None else ", ".join(ended.files),
        "record": displayable(folder),
    }
    tools = {name: words or "of unknown version" for name, words in sorted(machine.tools.items())}
    parts: list[Text | Grid] = []
    for title, pairs in (("machine", machine.facts), ("run", about_run), ("tools", tools)):
        parts += [Text(title, "bold"), _grid(pairs), Text("")]
    return Group(*parts, _steps(results))


def _grid(pairs: dict[str, str]) -> Grid:
    grid = Grid.grid(padding=(0, 2))
    for label, value in pairs.items():
        if value:
            grid.add_row(Text(f"  {label:<9}", "dim"), Text(harmless(value), overflow="fold"))
    return grid


def _steps(results: Results) -> Text:
    text = Text("steps", "bold")
    for step in results.measured.values():
        text.append(f"\n{harmless(step.plan.title)}", "not bold")
        about = ", ".join(harmless(word) for word in (step.plan.tree, step.plan.place) if word)
        text.append(f"  {about}", "dim not bold")
        for command in step.plan.commands:
            text.append("\n  $ ", "dim not bold")
            text.append(harmless(command), "not bold")
        if step.why_not:
            text.append(f"\n  ! {harmless(step.why_not)}", "not bold")
    return text


_CHOICE_KEYS = ("[ ] < >", "tables")
_REPORT = "report.html"
_PAGES = 9


class LabResultScreen(BaseScreen):
    """The result of a run, page by page.

    Args:
        folder: the folder of the run.
        shown: results and exhibits to show instead of those of the run, such as a comparison with
            another run.
    """

    KEYS: ClassVar = (
        ("←→", "page"),
        ("↑↓", "scroll"),
        ("e", "export"),
        ("m", "machine"),
        ("esc", "back"),
        ("y", "copy"),
    )
    EXPLANATION = (
        "The results of a run. Every published claim is listed with the published figure, the "
        "figure measured here and a verdict: it holds here, does not hold, or cannot be tested "
        "here (with the reason). Figures are medians with minimum and maximum. The page of "
        "system calls compares two steps: < and > change the left one, [ and ] the right one. e "
        "writes a report (HTML) into the directory of the run."
    )

    BINDINGS = [
        COPY_BINDING,
        Binding("escape,q", "app.pop_screen", tooltip="Go back"),
        Binding("right,l,tab", "turn(1)", tooltip="Next page"),
        Binding("left,h,shift+tab", "turn(-1)", tooltip="Previous page"),
        *(
            Binding(str(number), f"page({number})", tooltip=f"Page {number}", show=False)
            for number in range(1, _PAGES + 1)
        ),
        Binding("m", "more", tooltip="Show machine, tools and commands"),
        Binding("e", "export", tooltip="Write the report (HTML) into the directory of the run"),
        Binding("less_than_sign", "choose(0, -1)", tooltip="Calls: previous table on the left"),
        Binding("greater_than_sign", "choose(0, 1)", tooltip="Calls: next table on the left"),
        Binding(
            "left_square_bracket", "choose(1, -1)", tooltip="Calls: previous table on the right"
        ),
        Binding("right_square_bracket", "choose(1, 1)", tooltip="Calls: next table on the right"),
        *SCROLL_BINDINGS,
        *PAGE_BINDINGS,
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
        yield Vertical(Static(Text(f"reading{dots()}"), id="headline"), id="pages")

    def on_mount(self) -> None:
        """Read the run."""
        self._show_heading("")
        if self._given is not None:
            self.call_later(self._show, *self._given)
        else:
            self._read()

    def _show_heading(self, note: str) -> None:
        verb = "result of" if self._given is None else "comparison of"
        self.show_place(verb, self._experiment.name, note)

    @work(thread=True, exclusive=True, group="read")
    def _read(self) -> None:
        try:
            results = load(self._folder)
            exhibits = exhibits_of(self._experiment, results, self._folder)
        except TuiFsError as error:
            self.post_message(Failed(error))
            return
        self.call_later(self._show, results, exhibits)

    async def _show(self, results: Results, exhibits: tuple[Exhibit, ...]) -> None:
        """Lay out all pages, and show the first one."""
        self._results, self._exhibits = results, exhibits
        self._pages = pages_of(exhibits)
        calls = [exhibit for exhibit in exhibits if isinstance(exhibit, Calls)]
        self._calls = [table for exhibit in calls for table in exhibit.tables if table.rows]
        self._show_heading(run_words(results))
        place = self.query_one("#pages")
        await place.remove_children()
        await place.mount_all(
            VerticalScroll(
                *self._widgets_of(name, on_page, results),
                id=f"page-{name}",
                classes="page",
                can_focus=False,
            )
            for name, on_page in self._pages.items()
        )
        self._show_page(next(iter(self._pages)))

    def command_to_copy(self) -> Argv:
        """Return the command that repeats this run."""
        if self._results is None:
            raise BadInput("The result is not read yet.")
        began = self._results.began
        return run_command(self._experiment, began.scale, began.target)

    def on_failed(self, message: Failed) -> None:
        """Show the error."""
        if self._results is None:
            self.query_one("#headline", Static).update(Text(str(message.error), "bold"))
        else:
            self.notify(str(message.error), severity="warning", markup=False)

    def _widgets_of(
        self, name: str, exhibits: Sequence[Exhibit], results: Results
    ) -> Iterator[Widget]:
        if name == "machine":
            yield Static(machine_text(results, self._folder))
        elif name == "calls":
            yield from self._calls_page()
        for exhibit in exhibits:
            match exhibit:
                case Claims():
                    yield from self._claims(exhibit, results)
                case Table():
                    lay_out = partial(table_lines, exhibit)
                    yield from _titled(exhibit.title, FittedLines(lay_out), exhibit.remark)
                case Flames():
                    lay_out = partial(flame_lines, exhibit)
                    yield from _titled(exhibit.title, FittedLines(lay_out), exhibit.remark)
                case Calls():
                    pass  # the page shows two of all tables, independent of their exhibit

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
        pages = tuple(self._pages)
        names = self.query_one("#page-names", FittedLines)
        names.lay_out_by(lambda width: (page_line(pages, name, width),))
        if name == "calls":
            self._show_pair()
        page_key, scroll_key, *others = self.KEYS
        choice = (_CHOICE_KEYS,) if self._has_choice else ()
        keys = (page_key, scroll_key, *choice, *others, ("?", "help"))
        self.query_one("#keys", Footer).keys = keys
        self.refresh_bindings()

    @property
    def _has_choice(self) -> bool:
        """Whether the page shows two of more tables of calls."""
        return self._page == "calls" and len(self._calls) > 2

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool:
        """Offer only pages that this result has, and other tables only where there are some."""
        match action, parameters:
            case "page", (int(number),):
                return number <= len(self._pages)
            case "choose", _:
                return self._has_choice
        return True

    def _pair(self) -> list[CallsOf]:
        return [self._calls[index] for index in self._chosen if index < len(self._calls)]

    def _pair_lines(self, width: int) -> Sequence[Line]:
        return pair_lines(self._pair(), width, has_choice=self._has_choice)

    def _show_pair(self) -> None:
        self.query_one("#pair", FittedLines).lay_out_by(self._pair_lines)
        self.query_one("#pair-remarks", Static).update(muted(f"\n{pair_remarks(self._pair())}"))

    def action_choose(self, side: int, direction: int) -> None:
        """Select another table for one side of the page of system calls."""
        index = self._chosen[side]
        while index in self._chosen:
            index = (index + direction) % len(self._calls)
        self._chosen[side] = index
        self._show_pair()

    def action_turn(self, direction: int) -> None:
        """Show the next or the previous page."""
        names = list(self._pages)
        if names:
            index = names.index(self._page) + direction
            self._show_page(names[max(0, min(index, len(names) - 1))])

    def action_page(self, number: int) -> None:
        """Show a page by its number."""
        self._show_page(list(self._pages)[number - 1])

    def action_more(self) -> None:
        """Show the page of the machine."""
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

    def action_export(self) -> None:
        """Write the report as an HTML page."""
        if self._results is not None:
            self._write(self._results)

    @work(thread=True, exclusive=True, group="report")
    def _write(self, results: Results) -> None:
        try:
            path = write_report(self._experiment, results, self._exhibits, self._folder)
        except TuiFsError as error:
            self.post_message(Failed(error))
            return
        written = f"The report was written to {displayable(path)}"
        self.app.call_from_thread(self.notify, written, markup=False)


def write_report(
    experiment: Experiment, results: Results, exhibits: tuple[Exhibit, ...], folder: str
) -> str:
    """Write a run's report into its folder and return its path; BadInput if that fails."""
    path = os.path.join(folder, _REPORT)
    try:
        with new_file(path, overwrites=True) as file:
            file.write(page(experiment, results, exhibits, os.path.basename(folder)).encode())
    except OSError as error:
        raise BadInput(f"{displayable(path)} cannot be written: {error.strerror}.") from error
    return path


def _titled(title: str, widget: Widget, remark: str = "") -> Iterator[Widget]:
    """Yield a widget between its title and a remark."""
    yield Static(Text(harmless(title), "bold"), classes="exhibit-title")
    yield widget
    if remark:
        yield Static(muted(harmless(remark)), classes="remark")
