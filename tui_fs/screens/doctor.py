"""The diagnosis: what works on this machine, and how to make the rest work."""

from textwrap import wrap
from typing import ClassVar

from rich.cells import cell_len
from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.widgets import Static

from tui_fs.job.doctor import Diagnosis, diagnose, sections
from tui_fs.screens.base import PAGE_BINDINGS, SCROLL_BINDINGS, BaseScreen
from tui_fs.widgets.cell_drawing import dots

_BESIDE_TEXT = 3
"""Cells of the padding and the scroll bar."""
_MIN_TEXT_CELLS = 12
_MARKS = {True: "✓", False: "!", None: " "}


class DoctorScreen(BaseScreen):
    """What works on this machine, section by section."""

    KEYS: ClassVar = (("↑↓", "scroll"), ("esc", "back"))
    EXPLANATION = (
        "Which tools are installed, which system call counters work here, and how to "
        "enable the others."
    )

    BINDINGS = [
        Binding("escape,q,left,h", "app.pop_screen", tooltip="Go back"),
        *SCROLL_BINDINGS,
        *PAGE_BINDINGS,
    ]

    _diagnosis: Diagnosis | None = None

    def compose_body(self) -> ComposeResult:
        """Lay out the findings."""
        with VerticalScroll(id="body", can_focus=False):
            yield Static(Text(f"looking{dots()}"), id="findings")

    def on_mount(self) -> None:
        """Begin the diagnosis."""
        self.show_place("", "this machine")
        self._diagnose()

    @work(thread=True, exclusive=True)
    def _diagnose(self) -> None:
        self._diagnosis = diagnose()
        self.app.call_from_thread(self.on_resize)

    def on_resize(self) -> None:
        """Show the diagnosis in the present width."""
        if self._diagnosis is not None:
            text = _as_text(self._diagnosis, self.size.width - _BESIDE_TEXT)
            self.query_one("#findings", Static).update(text)


def _as_text(diagnosis: Diagnosis, width: int) -> Text:
    text = Text()
    for section in sections(diagnosis):
        text.append(f"{section.title}\n", "bold")
        name_cells = max(cell_len(row.name) for row in section.rows)
        for row in section.rows:
            name = f" {_MARKS[row.works]} "
            name += f"{row.name:<{name_cells}}  " if name_cells else ""
            lines = wrap(
                row.text, max(_MIN_TEXT_CELLS, width - cell_len(name)), break_on_hyphens=False
            )
            text.append(name)
            style = "dim" if row.works is not None else ""
            text.append(f"\n{'':{cell_len(name)}}".join(lines) + "\n", style)
        text.append("\n")
    return text
