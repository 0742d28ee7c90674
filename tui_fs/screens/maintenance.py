"""Maintenance without deletion: recreate an emptied directory, set a full one aside."""

import os
from collections.abc import Callable
from functools import partial
from typing import ClassVar

from msgspec import Struct
from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.widgets import Static

from tui_fs.job.aside_store import Action, AsideRecord, AsideState, records
from tui_fs.job.maintenance import Prospect, look, run_maintenance
from tui_fs.job.permission import read_only_reason
from tui_fs.linux.missing_figures import missing_figures
from tui_fs.maintenance.open_users import OpenUsers
from tui_fs.model.errors import TuiFsError
from tui_fs.model.figures import Figure
from tui_fs.model.paths import displayable
from tui_fs.model.units import bytes_iec, count, counted
from tui_fs.screens.base import TEXT_BINDINGS, TEXT_HINT, BaseScreen, Settings
from tui_fs.widgets.bar_table import BarRow, BarTable, Column
from tui_fs.widgets.confirm_dialog import ConfirmDialog

_COLUMNS = (
    Column("what", 16, meaning="what you can do"),
    Column("what it does", 0, meaning="the effect, or why it is impossible here"),
)
_DELETES = "show what deleting it would cost; asks before it deletes"
_ACTION_WORDS = {Action.ASIDE: "set aside", Action.RECREATE: "recreate"}
_WITH_TWIN = ("--twin",)
_RECREATE, _ASIDE, _TWIN, _BACK, _DELETE = "recreate", "aside", "twin", "back:", "delete:"


class _Action(Struct, frozen=True):
    """A row.

    Attributes:
        impossible: why the action is impossible; empty if it is possible.
        question, consequence: lines of the confirmation.
        act: acts and returns a sentence about the result; raises TuiFsError.
    """

    key: str
    title: str
    meaning: str
    impossible: str
    question: tuple[str, ...]
    consequence: str
    act: Callable[[], str]


class MaintenanceScreen(BaseScreen):
    """Maintenance of one directory, and all directories set aside before."""

    KEYS: ClassVar = (("enter", "do it…"), TEXT_HINT, ("↑↓", "choose"), ("esc", "back"))
    EXPLANATION = (
        "An emptied directory of an ext4 file system stays as large as it was, and slow; "
        "recreate puts a new one in its place, with the same owner, mode, access list and "
        "times. Set aside renames a full directory within its parent, which takes no time: the "
        "service that uses it continues immediately, you delete the renamed directory later, "
        "and until then you can put it back. Nothing changes before you confirm."
    )

    OPENS = "Do the highlighted action (asks first)"
    OPENS_FOR = "delete"
    BINDINGS = [
        Binding("escape,q,left,h", "app.pop_screen", tooltip="Go back; nothing changes"),
        *TEXT_BINDINGS,
    ]

    def __init__(self, path: str, settings: Settings) -> None:
        super().__init__(settings)
        self._path = path
        self.has_acted = False
        self._actions: dict[str, _Action] = {}
        self._aside: dict[str, AsideRecord] = {}

    def compose_body(self) -> ComposeResult:
        """Lay out the list and the result."""
        yield BarTable(_COLUMNS, empty_text="looking…", id="strategies")
        with VerticalScroll(id="body", can_focus=False):
            yield Static(Text(""), id="command")

    def on_mount(self) -> None:
        """Show the possible actions."""
        self.show_place("Maintenance", displayable(self._path))
        self.query_one(BarTable).focus()
        self._read_actions()

    @work(thread=True, exclusive=True, group="look")
    def _read_actions(self) -> None:
        actions = {action.key: action for action in (_recreate(self._path), *_asides(self._path))}
        problem = ""
        try:
            listed, damaged = records()
        except TuiFsError as error:
            listed, damaged, problem = [], [], str(error)
        if damaged:
            problem = f"A record is damaged: {damaged[0].reason}"
        actions |= {action.key: action for action in (_undo(*pair) for pair in listed) if action}
        aside = {record.id: record for record, standing in listed if standing is AsideState.ASIDE}
        self.app.call_from_thread(self._show, actions, aside, problem)

    def _show(
        self, actions: dict[str, _Action], aside: dict[str, AsideRecord], problem: str
    ) -> None:
        if not self.is_attached or not self.query(BarTable):  # the screen is closing
            return
        self._actions, self._aside = actions, aside
        rows = [_row(action) for action in actions.values()]
        for record in aside.values():
            meaning = f"{displayable(record.aside)}, gently"
            rows.append(BarRow(_DELETE + record.id, ("delete", meaning)))
        self.query_one(BarTable).set_rows(rows)
        self._show_keys()
        if problem:
            self._show_text(Text(problem, style="bold"))
        elif not self.has_acted:
            self.on_bar_table_highlighted()

    def on_bar_table_highlighted(self) -> None:
        """Show in full what the action does, or why it is impossible; the table cuts both."""
        action = self._highlighted()
        self._show_text(Text((action.impossible or action.meaning) if action else _DELETES))
        self._show_keys()

    def _highlighted(self) -> _Action | None:
        """Return the action under the cursor; None on the row of a deletion."""
        row = self.query_one(BarTable).cursor_row
        return None if row is None else self._actions.get(row.key)

    def _show_keys(self) -> None:
        action = self._highlighted()
        self.show_keys(without={"enter"} if action is not None and action.impossible else ())

    def on_bar_table_opened(self, message: BarTable.Opened) -> None:
        """Ask for confirmation of the action."""
        key = message.row.key
        if key.startswith(_DELETE):
            from tui_fs.screens.preview import PreviewScreen  # not loaded before it is opened

            paths = (self._aside[key.removeprefix(_DELETE)].aside,)
            self.app.push_screen(PreviewScreen(paths, self.settings, is_gentle=True))
            return
        action = self._actions[key]
        forbidden = read_only_reason(by_option=self.settings.read_only)
        if forbidden:
            self.notify(f"Maintenance is switched off: {forbidden.rstrip('.')}.", markup=False)
        elif action.impossible:
            self.notify(action.impossible, title=f"{action.title} is not possible", markup=False)
        else:
            title = action.title.capitalize()
            dialog = ConfirmDialog(
                f"{title}?",
                action.question,
                action.consequence,
                None,
                yes_label=title,
                is_danger=False,
            )

            def answered(yes: bool | None) -> None:
                if yes:
                    self._act(action)

            self.app.push_screen(dialog, answered)

    @work(thread=True, exclusive=True, group="act")
    def _act(self, action: _Action) -> None:
        self.has_acted = True
        try:
            text = Text(action.act(), style="bold")
        except TuiFsError as error:
            text = Text(f"{error.sentence}\n", style="bold")
            text.append(error.advice, "not bold")
        self.app.call_from_thread(self._show_text, text)
        self.app.call_from_thread(self._read_actions)

    def _show_text(self, text: Text) -> None:
        self.query_one("#command", Static).update(text)


def _row(action: _Action) -> BarRow:
    if action.impossible:
        return BarRow(action.key, (action.title, action.impossible), tone="muted")
    return BarRow(action.key, (action.title, action.meaning))


def _recreate(path: str) -> _Action:
    try:
        prospect = look(path, to_recreate=True)
    except TuiFsError as error:
        return _Action(_RECREATE, "recreate", "", str(error), (), "", str)
    size = bytes_iec(prospect.index_bytes)
    impossible = ""
    if prospect.occupants.users:
        impossible = (
            f"{_occupant_words(prospect.occupants)} this directory and would keep the old one."
        )

    meaning = f"replace the emptied directory, which takes {size}, with a new one"
    lines: tuple[str, ...] = (
        displayable(path),
        "Owner, mode, access list, attributes and times are kept.",
    )
    lines += _unseen(prospect.occupants)
    act = partial(_act_on, prospect, "recreate")
    consequence = "The new directory replaces the empty one in one step."
    return _Action(_RECREATE, "recreate", meaning, impossible, lines, consequence, act)


def _asides(path: str) -> tuple[_Action, ...]:
    variants = (
        (
            _ASIDE,
            "set aside",
            "rename it now; the service creates a new directory when it needs one",
            (),
        ),
        (
            _TWIN,
            "set aside, twin",
            "the same, and an empty directory replaces it immediately",
            _WITH_TWIN,
        ),
    )
    try:
        prospect = look(path, to_recreate=False)
    except TuiFsError as error:
        return tuple(
            _Action(key, title, "", str(error), (), "", str) for key, title, _, _ in variants
        )
    lines = [displayable(path)]
    if prospect.occupants.users:
        lines.append(
            f"{_occupant_words(prospect.occupants)} this directory and will keep it under its "
            "new name."
        )
    lines += _unseen(prospect.occupants)
    consequence = "Nothing is deleted; you can put the directory back until its deletion begins."
    return tuple(
        _Action(
            key,
            title,
            meaning,
            "",
            tuple(lines),
            consequence,
            partial(_act_on, prospect, "aside", *options),
        )
        for key, title, meaning, options in variants
    )


def _undo(record: AsideRecord, standing: AsideState | None) -> _Action | None:
    """Return the action that undoes a record; None if there is nothing to undo."""
    act = partial(run_maintenance, "aside", "--undo", record.id)
    shown, name = displayable(record.path), displayable(os.path.basename(record.path))
    match standing:
        case AsideState.ASIDE:
            meaning = f"{displayable(record.aside)} as {name}"
            lines = (f"from {displayable(record.aside)}", f"to {shown}")
            consequence = (
                "An empty twin there is removed; if anything else is there, nothing changes."
            )
            return _Action(_BACK + record.id, "put back", meaning, "", lines, consequence, act)
        case AsideState.INTERRUPTED:
            meaning = f"an earlier {_ACTION_WORDS[record.action]} was interrupted: {shown}"
            lines = (shown, f"with what is left in {displayable(record.aside)}")
            consequence = "The remaining entries move into the directory; none is lost."
            return _Action(_BACK + record.id, "repair", meaning, "", lines, consequence, act)
        case AsideState.ELSEWHERE:
            meaning = f"{shown}, on host {displayable(record.host.name)}"
            impossible = (
                f"This directory belongs to host {displayable(record.host.name)}; put "
                "it back there."
            )
            return _Action(_BACK + record.id, "put back", meaning, impossible, (), "", act)
        case _:
            return None


def _act_on(prospect: Prospect, command: str, *options: str) -> str:
    """Run the command in a separate process, on the directory that was shown."""
    return run_maintenance(
        command, "--pin", str(prospect.target.pin), *options, "--", prospect.target.path
    )


def _unseen(occupants: OpenUsers) -> tuple[str, ...]:
    hidden = tuple(figure.sentence for figure in missing_figures({Figure.PROCESSES}))
    if not occupants.unseen:
        return hidden
    processes = counted(occupants.unseen, "process", "processes")
    return (f"{processes} could not be inspected and may be working in the directory.", *hidden)


def _occupant_words(occupants: OpenUsers) -> str:
    first = occupants.users[0]
    number = len({user.pid for user in occupants.users})
    words, more, verb = ("process", "", "uses") if number == 1 else ("processes", ", …", "use")
    return f"{count(number)} {words} ({displayable(first.name)}, {first.pid}{more}) {verb}"
