"""Parts of all screens: header, footer, help, scrolling, and functions that format text."""

from collections.abc import Callable, Container, Iterable
from functools import partial
from typing import ClassVar

from msgspec import Struct
from rich.cells import cell_len
from rich.style import Style
from rich.table import Table
from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import ActiveBinding, Binding
from textual.containers import VerticalScroll
from textual.dom import DOMNode
from textual.message import Message
from textual.notifications import SeverityLevel
from textual.screen import Screen
from textual.widgets import Input, Static

from tui_fs.linux.resolve_path import canonical_directory
from tui_fs.model.errors import TuiFsError
from tui_fs.model.paths import (
    displayable,
    is_shown_as_it_is,
    is_within,
    shell_quoted,
    upwards,
)
from tui_fs.model.strategy import Argv
from tui_fs.widgets.bar_table import BarTable
from tui_fs.widgets.call_table import CallTable
from tui_fs.widgets.daemon_thread import in_daemon_thread
from tui_fs.widgets.dialog import Dialog
from tui_fs.widgets.footer import KEY_NAMES, Footer, key_text, linked_hints, pressing
from tui_fs.widgets.header import Header
from tui_fs.widgets.one_shot_timers import OneShotTimers

_MAX_KEY_CELLS = 20
"""Of the keys in the help; the text beside them has the rest of the line."""

SCROLL_BINDINGS = (
    Binding("j,down", "scroll(1)", tooltip="Scroll down"),
    Binding("k,up", "scroll(-1)", tooltip="Scroll up"),
)
PAGE_BINDINGS = (
    Binding("pagedown,ctrl+f,space", "scroll(10)", tooltip="Scroll a page down"),
    Binding("pageup,ctrl+b", "scroll(-10)", tooltip="Scroll a page up"),
)
TEXT_BINDINGS = (
    Binding("greater_than_sign", "scroll(3)", tooltip="Scroll the text below the list down"),
    Binding("less_than_sign", "scroll(-3)", tooltip="Scroll the text below the list up"),
)
"""For a text below a list, which has the other keys."""
TEXT_HINT = ("<>", "scroll")

NARROW_COLUMNS = 60
"""Below this width lines leave out what is said elsewhere, too."""

LOW_LINES = 20
"""Below this height the parts of a screen have no blank lines between them."""

PATIENCE_S = 2.0
"""How long a screen waits for a directory before it says that there is no answer yet."""

COPY_BINDING = Binding("y", "copy", tooltip="Copy the command line that does the same")

_SHOWN_KEYS = {name: key for key, name in KEY_NAMES.items() if key not in "←→↑↓"}
_TEXTUAL_ACTIONS = (
    "app.copy_text",
    "screen.copy_text",
    "copy_text",
    "help_quit",
)
HELP_TASKS = {
    "experiment": ("ask", "result", "runs"),
    "find": (
        "open", "open_here", "up", "search", "ranking", "largest_files", "findings", "filter",
        "remove_filter", "sort", "sort_by", "reverse", "next", "rank_by", "path", "start",
        "recount", "switch", "map",
    ),
    "choose": ("toggle_mark", "unmark_all", "mark_named", "mark_all", "marks", "compare"),
    "delete": ("delete", "delete_here", "recommended", "options", "maintenance"),
    "while it runs": (
        "watch", "jobs", "pause", "gentle", "nicer", "threads", "cancel", "errors", "explain",
    ),
    "move": ("move", "page", "top", "bottom", "scroll", "to_end", "turn", "choose"),
    "leave": ("pop_screen", "leave", "quit", "refuse", "suspend_process"),
    "more": ("more", "help", "command_palette", "doctor", "lab", "export", "copy"),
}  # fmt: skip
"""What a user wants to do, and the actions that do it, in the order of the help."""
FIELD_KEYS = (("enter", "accept"), ("tab", "complete"), ("esc", "close the field"))
"""The keys while the user types in a field: all others are text."""
_ROW_KEYS = frozenset(("enter", "space", "A", "d", "=", "u", "y"))
"""What they do concerns the rows of a list."""
_SCROLL = (("↑↓", "scroll"), TEXT_HINT)
_ARROWS = " ▲▼"
"""What follows the title of the column by which a table is sorted."""

_MINUTE_S, _HOUR_S, _DAY_S, _YEAR_S = 60, 3_600, 86_400, 31_557_600


def broken_at_dots(text: Text, width: int) -> Text:
    """Return a text whose lines end between the parts that dots separate, not within a figure."""
    lines = [Text()]
    for line in text.split("\n"):
        for part in line.split(" · "):
            if lines[-1].cell_len + len(" · ") + part.cell_len > width:
                lines.append(Text())
            lines[-1].append(" · " if lines[-1] else "").append_text(part)
        lines.append(Text())
    return Text("\n").join(filter(None, lines))


LinePart = tuple[int, str, str]
"""A part of a line: its rank, its text, and its style."""


def fitted_line(parts: Iterable[LinePart], room: int) -> Text:
    """Return a line without the parts for which there is no room.

    Those of the highest rank are left out first, of equals the last one; rank 0 always stays.
    """
    shown = list(parts)
    while sum(cell_len(text) for _, text, _ in shown) > room and any(rank for rank, *_ in shown):
        highest = max(rank for rank, *_ in shown)
        del shown[max(at for at, (rank, *_) in enumerate(shown) if rank == highest)]
    line = Text(no_wrap=True, overflow="ellipsis")
    for _, text, style in shown:
        line.append(text, style)
    return line


class Settings(Struct, frozen=True):
    """The user's settings for all screens.

    Attributes:
        interval_s: time between two redraws.
        read_only: deleting is switched off.
    """

    interval_s: float = 0.25
    read_only: bool = False


class Failed(Message):
    """A worker failed."""

    def __init__(self, error: TuiFsError) -> None:
        super().__init__()
        self.error = error


class KeyAction(Struct, frozen=True):
    """An action that keys run.

    Attributes:
        keys: as shown.
        text: what it does.
        node: the widget, screen or app that has the action.
    """

    keys: list[str]
    text: str
    action: str
    node: DOMNode


class BaseScreen(OneShotTimers, Screen[None]):
    """A screen between a header and a footer.

    Attributes:
        KEYS: keys and labels for the footer.
        EXPLANATION: a description of the screen in a few sentences, for the help.
        OPENS: what enter does to a row of its list, for the help; empty for nothing.
        OPENS_FOR: the task of `HELP_TASKS` which that belongs to.
        MARKS: what space does to a row of its list, for the help; empty for marking that row only.
    """

    KEYS: ClassVar[tuple[tuple[str, str], ...]] = ()
    EXPLANATION: ClassVar[str] = ""
    OPENS: ClassVar[str] = ""
    OPENS_FOR: ClassVar[str] = "find"
    MARKS: ClassVar[str] = ""

    BINDINGS = [
        Binding("question_mark", "help", "help", id="frame.help", tooltip="Show all keys"),
    ]

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.settings = settings
        self._message = Static(Text(""), id="message")

    def compose(self) -> ComposeResult:
        """Lay out header and footer around `compose_body`."""
        yield Header(id="place")
        yield from self.compose_body()
        yield self._message
        footer = Footer(id="keys")
        footer.keys = (*self.KEYS, ("?", "help"))
        yield footer

    def show_keys(self, without: Container[str] = ()) -> None:
        """Show the keys in the footer, without those that do nothing now."""
        keys = (*self.KEYS, ("?", "help"))
        self.query_one("#keys", Footer).keys = tuple(key for key in keys if key[0] not in without)

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,  # noqa: ARG002  a sentence stays until it can have been read
        markup: bool = True,
    ) -> None:
        """Show a sentence above the keys until the next key or the end of the screen."""
        text = Text.from_markup(message) if markup else Text(message)
        if title:
            text = Text(f"{title}: ").append_text(text)
        if severity != "information":
            text.stylize("bold")
        self._message.update(text)
        self._message.display = True

    def open_field(self, selector: str, text: str) -> None:
        """Show a field with a text, and focus it at once: the next keys must reach it."""
        field = self.query_one(selector, Input)
        field.remove_class("hidden")
        field.value = text
        field.cursor_position = len(text)
        self.set_focus(field)

    def open_path_field(self, path: str) -> None:
        """Show the field for a path with the longest typable part of this one."""
        typable = next(part for part in upwards(path) if is_shown_as_it_is(part))
        self.open_field("#path-input", typable.rstrip("/") + "/")

    def open_typed(self, path: str, open_directory: Callable[[str], None]) -> None:
        """Open a typed directory once its file system has resolved the path, or explain why not.

        Args:
            path: absolute.
            open_directory: called with the canonical path; perhaps never.
        """
        opening = self._resolve_typed(path, open_directory)

        def report_silence() -> None:
            if opening.is_running:
                self.notify(f"{displayable(path)} does not answer yet.", markup=False)

        self.set_timer(PATIENCE_S, report_silence)

    @work(exclusive=True, group="typed")
    async def _resolve_typed(self, path: str, open_directory: Callable[[str], None]) -> None:
        try:
            path = await in_daemon_thread(partial(canonical_directory, path))
        except TuiFsError as error:
            self.notify(error.sentence, markup=False)
        else:
            open_directory(path)

    def command_to_copy(self) -> Argv:
        """Return the command line that does what the screen shows; for `COPY_BINDING`.

        Raises:
            TuiFsError: there is none.
        """
        raise NotImplementedError

    def action_copy(self) -> None:
        """Copy the command line, and show it, since the terminal may not allow to copy."""
        try:
            argv = self.command_to_copy()
        except TuiFsError as error:
            self.notify(error.sentence, markup=False)
            return
        line = shell_quoted(argv)
        width = max(1, self.size.width - 2)
        shown = continued_lines(argv, width)
        height = sum(-(-cell_len(text) // width) for text in shown)
        if not line.isprintable() or height > self.size.height // 2:
            self.notify(
                f"The command line has {len(line):,} characters, too many to check them on this "
                "screen before you run it. Choose fewer directories, or enlarge the terminal.",
                markup=False,
            )
            return
        self.app.copy_to_clipboard(line)
        text = "\n".join(("Copied, if your terminal allows it:", *shown))
        self.notify(text, markup=False)

    def on_key(self) -> None:
        """Remove the sentence above the keys."""
        self._message.display = False

    def compose_body(self) -> ComposeResult:
        """Yield the widgets between header and footer; overridden by every screen."""
        yield from ()

    def on_mount(self) -> None:
        """Follow what decides which keys do something."""
        for table in self.query(BarTable):
            self.watch(table, "is_empty", self.show_idle_keys)
        if any(hint in self.KEYS for hint in _SCROLL):
            self.screen_layout_refresh_signal.subscribe(self, lambda _: self.show_idle_keys())

    def show_idle_keys(self) -> None:
        """Leave out of the key line what would do nothing now."""
        for footer in self.query(Footer):  # none on a screen that is being closed
            footer.idle = self.idle_keys()

    def idle_keys(self) -> frozenset[str]:
        """Return the keys that would do nothing now."""
        idle = set[str]()
        tables, bodies = self.query(BarTable), self.query(VerticalScroll)
        if tables and all(table.is_empty for table in tables):
            idle |= _ROW_KEYS
        if not any(body.max_scroll_y for body in bodies):
            idle |= {key for key, label in _SCROLL if (key, label) in self.KEYS}
        return frozenset(idle)

    def on_screen_suspend(self) -> None:
        """Show no keys below a dialog, which has its own."""
        self.query(Footer).set(visible=False)

    def on_screen_resume(self) -> None:
        """Show the keys again."""
        self.query(Footer).set(visible=True)

    def show_place(self, verb: str, place: str, note: Text | str = "") -> None:
        """Set the header: the action, its displayable path, and a note."""
        header = self.query_one("#place", Header)
        header.verb, header.place = verb, place
        header.note = Text(note) if isinstance(note, str) else note

    def set_line(self, name: str, text: Text) -> None:
        """Change a text of fixed height; a layout of the screen would draw all of it again."""
        line = self.query_one(name, Static)
        shown = line.content
        if shown != text or (isinstance(shown, Text) and shown.style != text.style):
            line.update(text, layout=False)

    def actions(self) -> list[KeyAction]:
        """Return all that the keys do on this screen now."""
        return key_actions(self.active_bindings.values(), self.OPENS, self.MARKS)

    def action_help(self) -> None:
        """Show the explanation and all keys."""
        tasks = by_task(self.actions(), self.OPENS_FOR)
        self.app.push_screen(HelpScreen(self.EXPLANATION, tasks, self.legend()))

    def legend(self) -> dict[str, str]:
        """Return the meaning of each titled column that the screen shows now."""
        meanings: dict[str, str] = {}
        for table in self.query(BarTable):
            if table.is_on_screen:
                for column in table.columns:
                    if column.title:
                        meanings[column.title.rstrip(_ARROWS)] = column.meaning
        for calls in self.query(CallTable):
            if calls.is_on_screen:
                for title, meaning in calls.legend().items():
                    meanings.setdefault(title, meaning)
        return meanings

    def action_scroll(self, lines: int) -> None:
        """Scroll the body."""
        self.query_one("#body").scroll_relative(y=lines, animate=False)


class HelpScreen(Dialog[None]):
    """A box with the keys of the screen below it by task, its columns and its explanation."""

    BINDINGS = [
        Binding("escape,q,question_mark,enter", "dismiss", "close"),
        *SCROLL_BINDINGS,
        *PAGE_BINDINGS,
    ]

    def __init__(
        self, explanation: str, tasks: dict[str, list[tuple[str, str]]], legend: dict[str, str]
    ) -> None:
        super().__init__()
        self._explanation = explanation
        self._legend = legend
        self._tasks = tasks

    def compose(self) -> ComposeResult:
        """Lay out the keys of each task above the columns and the explanation."""
        with VerticalScroll(classes="box") as box:
            box.border_title = "help"
            cells = max(cell_len(key) for rows in self._tasks.values() for key, _ in rows)
            cells = min(cells, _MAX_KEY_CELLS)
            for task, rows in self._tasks.items():
                yield Static(Text(task.upper(), "bold"))
                yield Static(_two_columns(map(_clickable, rows), cells))
                yield Static(Text(""))
            if self._legend:
                yield Static(Text("COLUMNS", "bold"))
                legend = [(Text(term, "bold"), Text(text)) for term, text in self._legend.items()]
                yield Static(_two_columns(legend, cells), id="legend")
                yield Static(Text(""))
            yield Static(Text("THIS SCREEN", "bold"))
            yield Static(Text(self._explanation))

    def on_mount(self) -> None:
        """Show the keys that do something."""
        self.screen_layout_refresh_signal.subscribe(self, lambda _: self._show_keys())

    def _show_keys(self) -> None:
        box = self.query_one(VerticalScroll)
        hints = [("esc", "close", "screen.dismiss")]
        if box.max_scroll_y:
            hints.insert(0, ("space j k", "scroll", "screen.scroll(10)"))
        box.border_subtitle = linked_hints(*hints)

    def action_press(self, key: str) -> None:
        """Press a key of the screen below."""
        self.dismiss()
        self.app.simulate_key(key)

    def action_scroll(self, lines: int) -> None:
        """Scroll the text."""
        self.query_one(VerticalScroll).scroll_relative(y=lines, animate=False)


def by_task(actions: Iterable[KeyAction], opens_for: str) -> dict[str, list[tuple[str, str]]]:
    """Return keys and texts by task, in the order of `HELP_TASKS`.

    Keys that are numbers share a row if they have the same action.
    """
    named: dict[str, list[KeyAction]] = {}
    for action in actions:
        is_number = action.keys[0].isdigit()
        name = action.action.partition("(")[0] if is_number else action.action
        named.setdefault(name, []).append(action)
    tasks: dict[str, list[tuple[str, str]]] = {}
    for task, names in HELP_TASKS.items():
        ordered = sorted(
            (name for name in named if _task_of(name, opens_for) == task),
            key=lambda name: names.index(_plain(name)) if _plain(name) in names else -1,
        )
        if ordered:
            tasks[task] = [_row(named[name]) for name in ordered]
    return tasks


def _plain(action: str) -> str:
    return action.partition("(")[0].rpartition(".")[2]


def _task_of(action: str, opens_for: str) -> str:
    if action == "open":
        return opens_for
    tasks = (task for task, names in HELP_TASKS.items() if _plain(action) in names)
    return next(tasks, "")  # of a widget of Textual itself


def _row(group: list[KeyAction]) -> tuple[str, str]:
    first = group[0]
    if len(group) == 1:
        return ", ".join(first.keys), first.text
    begin = f"{first.text.rpartition(' ')[0]} "
    others = ", ".join(action.text.removeprefix(begin) for action in group)
    return f"{first.keys[0]}–{group[-1].keys[0]}", begin + others


def _clickable(row: tuple[str, str]) -> tuple[Text, Text]:
    """Return a row of the help; a click on it presses its first key."""
    keys, meaning = row
    if "–" in keys:
        return key_text(keys, Style(bold=True), "screen.press"), Text(meaning)
    style = pressing(keys.split(", ")[0], "screen.press")
    return Text(keys, Style(bold=True) + style), Text(meaning, style)


def _two_columns(rows: Iterable[tuple[Text, Text]], cells: int) -> Table:
    shown = list(rows)
    longest = max((first.cell_len for first, _ in shown), default=0)
    table = Table.grid(padding=(0, 2))
    # Of a fixed width: on a narrow line rich makes the second column too wide beside a minimum.
    table.add_column(width=max(cells, min(longest, _MAX_KEY_CELLS)))
    for row in shown:
        table.add_row(*row)
    return table


def key_actions(bindings: Iterable[ActiveBinding], opens: str, marks: str = "") -> list[KeyAction]:
    """Return each action once, with its keys; omit Textual's own actions.

    Args:
        opens: what `open` does; empty omits that action.
        marks: what `toggle_mark` does; empty for the text of its binding.
    """
    actions: dict[str, KeyAction] = {}
    for active in bindings:
        binding = active.binding
        text = binding.tooltip or binding.description
        if binding.action == "open":
            text = opens
        elif binding.action == "toggle_mark":
            text = marks or text
        is_textual = binding.action in _TEXTUAL_ACTIONS
        if not text or is_textual or binding.action.startswith("app.focus"):
            continue
        # By the text: q and ctrl+q quit by two actions.
        action = actions.setdefault(text, KeyAction([], text, binding.action, active.node))
        key = _SHOWN_KEYS.get(binding.key, binding.key)
        if key not in action.keys:
            action.keys.append(key)
    return list(actions.values())


def continued_lines(argv: Argv, width: int) -> list[str]:
    """Return a command line in lines that a shell reads as one if they are pasted.

    A word longer than a line is quoted. Pasted with the line breaks of the screen, it names
    nothing, instead of the beginning of its path.

    Args:
        width: cells of a line.
    """
    room = max(2, width - len(" \\"))
    lines = [""]
    for argument in argv:
        word = shell_quoted((argument,))
        if cell_len(word) > room and word == argument:
            word = f"'{word}'"
        if lines[-1] and cell_len(f"{lines[-1]} {word}") > room:
            lines[-1] += " \\"
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else word
    return lines


def deleting_is_off(reason: str) -> str:
    """Return a sentence for read-only mode; the reason may be a sentence itself."""
    return f"Deleting is switched off: {reason.rstrip('.')}."


def muted(text: str) -> Text:
    """Return dimmed text."""
    return Text(text, style="dim")


def shown_below(path: str, base: str) -> str:
    """Return a displayable path relative to a directory that contains it, else the whole path."""
    if path == base:
        return "./"
    return displayable(path[len(base.rstrip("/")) + 1 :] if is_within(path, base) else path)


def age(at_s: int | None, now_s: float) -> str:
    """Return how long ago something was: ``45 s``, ``5 min``, ``12 h``, ``12 d``, ``3 y``."""
    if at_s is None:
        return "–"
    passed_s = now_s - at_s
    if passed_s < 0:
        return "future"
    for unit_s, unit, until_s in (
        (1, "s", 2 * _MINUTE_S),
        (_MINUTE_S, "min", 2 * _HOUR_S),
        (_HOUR_S, "h", 2 * _DAY_S),
        (_DAY_S, "d", 2 * _YEAR_S),
    ):
        if passed_s < until_s:
            return f"{passed_s // unit_s:,.0f} {unit}"
    return f"{passed_s // _YEAR_S:,.0f} y"
