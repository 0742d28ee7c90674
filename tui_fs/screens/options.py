"""The options of a deletion."""

import time

from msgspec import Struct, field
from msgspec.structs import replace
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.validation import Integer
from textual.widgets import Checkbox, Input, Label, Select, Static

from tui_fs.model.calls import TraceSource
from tui_fs.model.command import MOST_PER_S, MOST_THREADS
from tui_fs.model.errors import Missing
from tui_fs.model.filter_text import SYNTAX, parse_filters
from tui_fs.model.strategy import Confine, Options
from tui_fs.tracing.select_source import open_source
from tui_fs.widgets.dialog import Dialog
from tui_fs.widgets.footer import linked_hints
from tui_fs.widgets.ordered_input import OrderedInput

_MAX_BATCH = 1_000_000
_MAX_PROCESSES = 256
_SOURCES: tuple[tuple[str, str], ...] = (
    ("automatic: the engine, or kernel counters", "auto"),
    ("bpftrace: durations too, 5 to 10 % slower", TraceSource.BPF.value),
    ("strace: durations too, 5 to 7 TIMES slower", TraceSource.STRACE.value),
    ("do not count", TraceSource.OFF.value),
)
_CONFINE: tuple[tuple[str, str], ...] = (
    ("automatic: where the kernel can, except in deep trees", Confine.AUTO.value),
    ("always: refuse the job if the kernel cannot", Confine.ALWAYS.value),
    ("off", Confine.OFF.value),
)


class Choices(Struct, frozen=True):
    """Options and the source of counts; None for the best source.

    Attributes:
        filter_text: the filters of the options as the user has typed them.
    """

    options: Options = field(default_factory=Options)
    trace: TraceSource | None = None
    filter_text: str = ""


class _Box(Checkbox, inherit_bindings=False):
    """A checkbox with a state visible without colour; space toggles it, enter accepts the form."""

    BINDINGS = [
        Binding("space", "toggle_button", "switch", show=False),
        Binding("enter", "screen.accept", "accept", show=False),
    ]

    def render(self) -> Content:
        """Draw the state in characters that need neither colour nor a font."""
        label_style = self.get_visual_style("toggle--label")
        state = Content("[x]" if self.value else "[ ]")
        return state + self.label.pad(1, 1).stylize_before(label_style)


class OptionsDialog(Dialog[Choices | None]):
    """A form; escape discards the changes.

    Args:
        can_filter: the filters can be changed.
        at_filter: only the filters are shown.
    """

    AUTO_FOCUS = "Checkbox"

    BINDINGS = [
        Binding("escape", "dismiss(None)", "back"),
        Binding("ctrl+s", "accept", "accept"),
    ]

    def __init__(
        self, choices: Choices, *, can_filter: bool = True, at_filter: bool = False
    ) -> None:
        super().__init__()
        self._choices = choices
        self._can_filter, self._at_filter = can_filter, at_filter

    def compose(self) -> ComposeResult:
        """Lay out the form."""
        with VerticalScroll(classes="box form", can_focus=False) as box:
            box.border_title = "filter" if self._at_filter else "options"
            box.border_subtitle = linked_hints(
                ("enter", "accept", "screen.accept"),
                ("tab", "next", "app.focus_next"),
                ("esc", "cancel", "screen.dismiss(None)"),
            )
            if self._can_filter:
                yield from self._filter_field()
            with Vertical(id="options") as options:
                options.display = not self._at_filter
                yield from self._option_fields()
            yield Static(Text(""), id="problem")

    def _filter_field(self) -> ComposeResult:
        with Horizontal(classes="form-row"):
            yield Label("filter: only files that match")
            yield OrderedInput(
                self._choices.filter_text,
                id="filter",
                placeholder="all files; example: *.log >30d",
                compact=True,
                select_on_focus=False,
            )
        syntax = Text("\n".join(SYNTAX) if self._at_filter else "", "dim")
        yield Static(syntax, id="filter-syntax")

    def _option_fields(self) -> ComposeResult:
        options, trace = self._choices.options, self._choices.trace
        label = "keep the directory, delete its contents"
        yield _Box(label, options.keep_root, id="keep")
        yield _Box(
            "gentle: yield to others (disk, processors)",
            options.pace.gentle,
            id="gentle",
        )
        yield from _number("names per rm (xargs)", "batch", options.batch_size, _MAX_BATCH)
        yield from _number(
            "parallel rm processes (xargs)", "processes", options.processes, _MAX_PROCESSES
        )
        pace = options.pace
        yield from _number("niceness, 0 to 19", "nice", pace.nice, 19, minimum=0)
        label = "entries per second, 0: no limit"
        yield from _number(label, "rate", pace.rate_per_s, MOST_PER_S, minimum=0)
        label = "threads (parallel), 0: automatic"
        yield from _number(label, "threads", pace.threads, MOST_THREADS, minimum=0)
        yield Label("confinement: the kernel keeps the tools inside the target")
        yield Select(
            _CONFINE, value=options.confine.value, allow_blank=False, compact=True, id="confine"
        )
        yield Label("system call counter")
        offered = trace is not None and trace.value in dict(_SOURCES).values()
        source = trace.value if trace is not None and offered else "auto"
        yield Select(_SOURCES, value=source, allow_blank=False, compact=True, id="source")

    def on_mount(self) -> None:
        """Focus the field of the filters, if that was asked for."""
        if self._at_filter:
            self.query_one("#filter").focus()

    def on_input_submitted(self) -> None:
        """Accept the form on Enter in a field."""
        self.action_accept()

    def action_accept(self) -> None:
        """Accept the values, or show the error in them."""
        for number in self.query(Input):
            result = number.validate(number.value)
            if result is not None and not result.is_valid:
                self._show_problem(f"{number.name}: {', '.join(result.failure_descriptions)}")
                number.focus()
                return
        filters, filter_text = self._choices.options.filters, self._choices.filter_text
        for typed in self.query("#filter").results(Input):
            if typed.value.strip() != filter_text:  # else ages count from the first time
                filter_text = typed.value.strip()
                try:
                    filters = parse_filters(filter_text, time.time())
                except ValueError as error:
                    text = Text(f"{error}\n", "bold")
                    text.append("\n".join(SYNTAX), "dim not bold")
                    self.query_one("#filter-syntax", Static).update(text)
                    typed.focus()
                    return
        chosen = str(self.query_one("#source", Select).value)
        trace = None if chosen == "auto" else TraceSource(chosen)
        try:
            open_source(trace)
        except Missing as error:
            self._show_problem(str(error))
            return
        options = replace(
            self._choices.options,
            filters=filters,
            keep_root=self.query_one("#keep", Checkbox).value,
            pace=replace(
                self._choices.options.pace,
                gentle=self.query_one("#gentle", Checkbox).value,
                nice=self._value("nice"),
                rate_per_s=self._value("rate"),
                threads=self._value("threads"),
            ),
            batch_size=self._value("batch"),
            processes=self._value("processes"),
            confine=Confine(str(self.query_one("#confine", Select).value)),
        )
        self.dismiss(Choices(options, trace, filter_text))

    def _show_problem(self, problem: str) -> None:
        self.query_one("#problem", Static).update(Text(problem, style="bold"))

    def _value(self, name: str) -> int:
        return int(self.query_one(f"#{name}", Input).value)


def _number(label: str, name: str, value: int, maximum: int, minimum: int = 1) -> ComposeResult:
    with Horizontal(classes="form-row"):
        yield Label(label)
        yield OrderedInput(
            str(value),
            id=name,
            name=label,
            type="integer",
            compact=True,
            select_on_focus=True,
            validators=[Integer(minimum, maximum)],
            valid_empty=False,
        )
