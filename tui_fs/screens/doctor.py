"""The diagnosis: what works on this machine, and how to make the rest work."""

from typing import ClassVar

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.widgets import Static

from tui_fs.job.doctor import Diagnosis, diagnose
from tui_fs.model.paths import displayable, harmless
from tui_fs.screens.base import SCROLL_BINDINGS, BaseScreen


class DoctorScreen(BaseScreen):
    """Tools, sources of counts, privileges."""

    KEYS: ClassVar = (("↑↓", "scroll"), ("esc", "back"))
    EXPLANATION = (
        "Which tools are installed, which system call counters work here, and how to "
        "enable the others."
    )

    BINDINGS = [
        Binding("escape,q,left,h", "app.pop_screen", tooltip="Go back"),
        *SCROLL_BINDINGS,
    ]

    def compose_body(self) -> ComposeResult:
        """Lay out the findings."""
        with VerticalScroll(id="body"):
            yield Static(Text("looking…"), id="findings")

    def on_mount(self) -> None:
        """Begin the diagnosis."""
        self.show_place("", "this machine")
        self._diagnose()

    @work(thread=True, exclusive=True)
    def _diagnose(self) -> None:
        text = _as_text(diagnose())
        self.app.call_from_thread(self.query_one("#findings", Static).update, text)


def _as_text(diagnosis: Diagnosis) -> Text:
    text = Text()
    text.append("tools\n", "bold")
    for tool in diagnosis.tools:
        mark = "✓" if tool.path and not tool.remedy else "!"
        text.append(f" {mark} {tool.name:<14}")
        text.append(f"{harmless(tool.version) or displayable(tool.path)} {tool.remedy}\n", "dim")
    text.append("\nsystem calls are counted by\n", "bold")
    text.append(f" {diagnosis.tracing.source}: {diagnosis.tracing.note}\n")
    for source in diagnosis.tracing.sources:
        text.append(f" {'✓' if source.usable else '!'} {source.kind:<10}")
        text.append(f"{source.note}\n", "dim")
    text.append("\nuser\n", "bold")
    text.append(f" {diagnosis.privileges.uid}: {diagnosis.privileges.note}\n")
    text.append("\nengine\n", "bold")
    text.append(f" {diagnosis.engine.note}\n")
    text.append("\njobs\n", "bold")
    text.append(f" kept in {displayable(diagnosis.jobs)}\n {diagnosis.logout}\n")
    text.append("\npolicy\n", "bold")
    text.append(f" {diagnosis.policy}\n")
    text.append("\nfigures\n", "bold")
    for figure in diagnosis.missing_figures:
        text.append(f" ! {figure.sentence}\n")
    if not diagnosis.missing_figures:
        text.append(" all can be measured\n")
    return text
