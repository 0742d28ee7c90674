"""What all screens share: a line of place at the top, a line of keys at the bottom."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.screen import Screen

from tui_fs.screens.help import HelpScreen
from widgets.footer import Footer
from widgets.header import Header


@dataclass(frozen=True, slots=True)
class Settings:
    """How the person wants the screens to behave.

    Attributes:
        interval_s: time between two redraws.
        read_only: deleting is switched off.
    """

    interval_s: float = 0.25
    read_only: bool = False


class FramedScreen(Screen[None]):
    """A screen between the line of place and the line of keys.

    Attributes:
        KEYS: what the bottom line names.
        EXPLANATION: what is to be seen here, in a few sentences, for the help screen.
    """

    KEYS: ClassVar[tuple[tuple[str, str], ...]] = ()
    EXPLANATION: ClassVar[str] = ""

    BINDINGS = [
        Binding("question_mark", "help", "help", id="frame.help", tooltip="Show all keys"),
    ]

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.settings = settings

    def compose(self) -> ComposeResult:
        """Lay out the frame around `compose_body`."""
        yield Header(id="place")
        yield from self.compose_body()
        line = Footer(id="keys")
        line.keys = (*self.KEYS, ("?", "help"))
        yield line

    def compose_body(self) -> ComposeResult:
        """Yield the widgets between the lines; overridden by every screen."""
        yield from ()

    def show_place(self, verb: str, place: str, note: Text | str = "") -> None:
        """Set the line at the top: what is done, where (displayable), and a note."""
        line = self.query_one("#place", Header)
        line.verb, line.place = verb, place
        line.note = Text(note) if isinstance(note, str) else note

    def own_bindings(self) -> Iterable[Binding]:
        """Return the keys of this screen that do something one can name."""
        for kind in type(self).__mro__:
            for binding in vars(kind).get("BINDINGS", ()) if issubclass(kind, FramedScreen) else ():
                if isinstance(binding, Binding) and binding.tooltip and binding.show:
                    yield binding

    def action_help(self) -> None:
        """Show what is here and all keys."""
        self.app.push_screen(HelpScreen(self.EXPLANATION, self.active_bindings.values()))


def muted(text: str) -> Text:
    """Return text of less importance."""
    return Text(text, style="dim")
