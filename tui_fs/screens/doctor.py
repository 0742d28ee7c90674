"""What works on this machine, and what would make the rest work."""

from typing import ClassVar

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.widgets import Static

from tui_fs.job.doctor import Diagnosis, diagnose
from tui_fs.model.paths import displayable, harmless
from tui_fs.screens.frame import FramedScreen, Settings


class DoctorScreen(FramedScreen):
    """Tools, sources of counts, privileges."""

    KEYS: ClassVar = (("↑↓", "scroll"), ("esc", "back"))
    EXPLANATION = "Which tools are installed, who may count system calls here, and what would help."

    BINDINGS = [
        Binding("escape,q,left,h", "app.pop_screen", tooltip="Go back"),
        Binding("j,down", "scroll(1)", tooltip="Scroll down"),
        Binding("k,up", "scroll(-1)", tooltip="Scroll up"),
    ]

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)

    def compose_body(self) -> ComposeResult:
        """Lay out the findings."""
        with VerticalScroll(id="body"):
            yield Static(Text("looking…"), id="findings")

    def on_mount(self) -> None:
        """Begin to look."""
        self.show_place("", "this machine")
        self._look()

    @work(thread=True, exclusive=True)
    def _look(self) -> None:
        text = _as_text(diagnose())
        self.app.call_from_thread(self.query_one("#findings", Static).update, text)

    def action_scroll(self, direction: int) -> None:
        """Scroll by a line."""
        self.query_one("#body").scroll_relative(y=direction, animate=False)


def _as_text(found: Diagnosis) -> Text:
    text = Text()
    text.append("tools\n", "bold")
    for tool in found.tools:
        mark = "✓" if tool.path and not tool.remedy else "!"
        text.append(f" {mark} {tool.name:<14}")
        text.append(f"{harmless(tool.version) or displayable(tool.path)} {tool.remedy}\n", "dim")
    text.append("\nsystem calls are counted by\n", "bold")
    text.append(f" {found.tracing.source}: {found.tracing.note}\n")
    for source in found.tracing.sources:
        text.append(f" {'✓' if source.usable else '!'} {source.kind:<10}")
        text.append(f"{source.note}\n", "dim")
    text.append("\nuser\n", "bold")
    text.append(f" {found.privileges.uid}: {found.privileges.note}\n")
    text.append("\nengine\n", "bold")
    text.append(f" {found.engine.note}\n")
    text.append("\njobs\n", "bold")
    text.append(f" kept in {displayable(found.jobs)}\n {found.logout}\n")
    text.append("\npolicy\n", "bold")
    text.append(f" {found.policy}\n")
    text.append("\nfigures\n", "bold")
    for one in found.missing_figures:
        text.append(f" ! {one.sentence}\n")
    if not found.missing_figures:
        text.append(" all can be measured\n")
    return text
