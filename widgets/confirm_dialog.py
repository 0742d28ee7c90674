"""A confirmation before an irreversible action; its default answer is No."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence

from rich.cells import cell_len
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.widgets import Button, Input, Static

from tui_fs.widgets.dialog import Dialog
from tui_fs.widgets.footer import linked_hints
from tui_fs.widgets.ordered_input import OrderedInput
from tui_fs.widgets.path_input import TYPABLE

_BUTTON_CELLS = 14
"""Taken beside the labels of the buttons: frame, and what surrounds each button."""

# A held key repeats after 0.25 s at the earliest. An earlier one was meant for the screen below.
IGNORED_KEYS_S = 0.3
IGNORED_BY_ITSELF_S = 1.5
"""Of a question that opens by itself, while the user may be at work on the screen below."""

DIALOG_FRAME_CELLS = 6
DIALOG_TEXT_CELLS = 66
"""Cells of a line of text, without frame and padding, if the terminal is wide enough."""

_OPEN_BOX = "␣"


def visible_spaces(word: str) -> str:
    """Make the invisible spaces of a word visible: at its ends and next to each other."""
    return re.sub(r"^ +| +$| {2,}", lambda spaces: _OPEN_BOX * len(spaces.group()), word)


def word_prompt(word: str) -> Text:
    """Ask for a word to be typed; the word is never read as markup."""
    shown = visible_spaces(word)
    prompt = Text.assemble("type ", (shown, "bold"), " to confirm")
    if shown != word:
        prompt.append(f"  ({_OPEN_BOX} is a space)")
    return prompt


def _joined(lines: Sequence[str | Text]) -> Text:
    return Text("\n").join(Text(line) if isinstance(line, str) else line for line in lines)


class ConfirmDialog(Dialog[bool]):
    """A dialog that returns True only after a second, deliberate step."""

    BINDINGS = [
        Binding(
            "escape", "refuse", "no", show=False, id="confirm-dialog.refuse", tooltip="Go back"
        ),
        *(
            Binding(
                keys,
                action,
                show=False,
                id=f"confirm-dialog.{direction}",
                tooltip=tooltip,
            )
            for keys, action, direction, tooltip in (
                ("left,h,shift+tab", "choose_previous", "previous", "Previous answer"),
                ("right,l,tab", "choose_next", "next", "Next answer"),
                ("up,k", "scroll_text(-1)", "up", "Scroll the text up"),
                ("down,j", "scroll_text(1)", "down", "Scroll the text down"),
            )
        ),
    ]

    AUTO_FOCUS = "#confirm-word, #confirm-no"

    DEFAULT_CSS = """
    ConfirmDialog {
        align: center middle;

        #confirm-frame {
            width: 72;
            max-width: 100%;
            height: auto;
            max-height: 100%;
            padding: 0 2;
            border: round $foreground 40%;
            border-subtitle-color: $text-muted;
            background: $surface;
        }
        #confirm-text {
            height: auto;
            scrollbar-size-vertical: 1;
            scrollbar-color: $foreground 20%;
            scrollbar-background: $surface;
        }
        #confirm-title { text-style: bold; margin-bottom: 1; }
        #confirm-consequence { text-style: bold; margin-bottom: 1; }
        &.-danger #confirm-consequence { color: $text-error; }
        #confirm-answer { height: auto; margin-top: 1; }
        #confirm-word {
            background: $foreground 10%;
            &:focus { background: $foreground 10%; }
        }
        #confirm-mismatch { color: $text-warning; height: 1; }
        #confirm-buttons { height: 1; align-horizontal: right; }
        &.-stacked #confirm-buttons { layout: vertical; height: 2; }
        #confirm-buttons Button {
            width: auto;
            min-width: 0;
            height: 1;
            border: none;
            margin-left: 2;
            background: $foreground 10%;
            color: $foreground;
            tint: transparent;
            &:focus { text-style: bold reverse; background-tint: transparent; }
            &:disabled { text-opacity: 50%; }
            &:ansi, &:ansi:disabled, &:ansi:hover { border: none !important; }
            &:ansi { text-style: underline; }
            &:ansi:focus { text-style: bold reverse; }
            &:ansi:disabled { text-style: dim; }
        }
        &.-danger #confirm-buttons #confirm-yes {
            background: $error 20%;
            color: $text-error;
            &:disabled { background: $foreground 5%; color: $foreground; }
            &:ansi { background: $background; }  /* else red on red: there are no shares */
        }
    }
    """

    def __init__(
        self,
        title: str,
        lines: Sequence[str | Text],
        consequence: str,
        word: str | None,
        yes_label: str = "Delete",
        no_label: str = "No, go back",
        *,
        is_danger: bool = True,
        opens_by_itself: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create the question.

        Args:
            title: The question.
            lines: Facts to read before answering; long paths are wrapped.
            consequence: The effect.
            word: The user must type it exactly before Yes is enabled; None asks for no word.
            yes_label: The answer that confirms.
            no_label: The answer that goes back; the default.
            is_danger: The effect is irreversible, and drawn as a danger.
            opens_by_itself: No key of the user opens it.
            clock: Monotonic seconds.
        """
        super().__init__(classes="-danger" if is_danger else None)
        self._heading = title
        self._lines = lines
        self._consequence = consequence
        self._word = word
        self._yes_label = yes_label
        self._no_label = no_label
        self._ignored_s = IGNORED_BY_ITSELF_S if opens_by_itself else IGNORED_KEYS_S
        self._clock = clock
        self._answers_from_s = clock() + self._ignored_s

    def compose(self) -> ComposeResult:
        """Lay out text above answer."""
        with Vertical(id="confirm-frame") as frame:
            frame.border_subtitle = linked_hints(
                ("tab", "choose", "screen.choose_next"),
                ("enter", "accept", "screen.choose_next"),
                ("esc", "back", "screen.refuse"),
            )
            with VerticalScroll(id="confirm-text", can_focus=False):
                yield Static(Text(self._heading), id="confirm-title")
                yield Static(_joined(self._lines), id="confirm-facts")
            with Vertical(id="confirm-answer"):
                if self._consequence:
                    yield Static(Text(self._consequence), id="confirm-consequence")
                if self._word is not None:
                    yield Static(word_prompt(self._word))
                    yield OrderedInput(id="confirm-word", compact=True, restrict=TYPABLE)
                    yield Static(id="confirm-mismatch")
                with Horizontal(id="confirm-buttons"):
                    yield Button(Text(self._no_label), id="confirm-no")
                    yield Button(
                        Text(self._yes_label), id="confirm-yes", disabled=self._word is not None
                    )

    def replace_lines(self, lines: Sequence[str | Text]) -> None:
        """Show other facts: the figures have changed, or the room for them."""
        self._lines = lines
        for facts in self.query("#confirm-facts").results(Static):  # none before it is composed
            facts.update(_joined(lines))

    def on_mount(self) -> None:
        """Start the time in which keys are ignored."""
        for button in self.query(Button):
            # A button swallows the next Enter while it shows that it was pressed.
            button.active_effect_duration = 0
        self._answers_from_s = self._clock() + self._ignored_s

    def on_key(self) -> None:
        """Prolong the time in which keys are ignored until none is pressed, as after a paste."""
        self._prolong()

    def _prolong(self) -> None:
        if self._is_too_early():
            self._answers_from_s = self._clock() + self._ignored_s

    def on_resize(self) -> None:
        """Show both buttons whole, and reserve the lines of the answer; a longer text scrolls."""
        labels = cell_len(self._no_label) + cell_len(self._yes_label)
        self.set_class(labels + _BUTTON_CELLS > self.size.width, "-stacked")
        self.call_after_refresh(self._bound_text)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Enable the button while the typed word is right."""
        event.stop()
        self._prolong()  # the field does not pass its keys on
        self.query_one("#confirm-yes", Button).disabled = event.value != self._word
        self.query_one("#confirm-mismatch", Static).update()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Confirm with the right word."""
        event.stop()
        if self._is_too_early():
            return
        if event.value == self._word:
            self.dismiss(True)
        else:
            self.query_one("#confirm-mismatch", Static).update(Text("does not match"))

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Answer by a button."""
        event.stop()
        if not self._is_too_early():
            self.dismiss(event.button.id == "confirm-yes")

    def action_refuse(self) -> None:
        """Answer No."""
        self.dismiss(False)

    def action_choose_previous(self) -> None:
        """Move to the previous answer."""
        if not self._is_too_early():
            self.focus_previous()

    def action_choose_next(self) -> None:
        """Move to the next answer."""
        if not self._is_too_early():
            self.focus_next()

    def action_scroll_text(self, lines: int) -> None:
        """Scroll a text that does not fit."""
        self.query_one("#confirm-text").scroll_relative(y=lines, animate=False)

    def _is_too_early(self) -> bool:
        """Return whether a key may still be meant for the screen below."""
        return self._clock() < self._answers_from_s

    def _bound_text(self) -> None:
        """Limit the text to the height that frame and answer leave."""
        frame = self.query_one("#confirm-frame")
        answer = self.query_one("#confirm-answer")
        margin = answer.styles.margin.height
        room = self.size.height - frame.gutter.height - answer.outer_size.height - margin
        self.query_one("#confirm-text").styles.max_height = max(3, room)
