"""Everything unusual that a survey has found."""

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.widgets import Static

from tui_fs.model.paths import displayable
from tui_fs.model.survey import Severity, Survey
from tui_fs.screens.frame import FramedScreen, Settings, muted

_MARKS = {Severity.CRITICAL: "!!", Severity.WARNING: "! ", Severity.INFO: "i "}


class FindingsScreen(FramedScreen):
    """Findings, the gravest first."""

    KEYS: ClassVar = (("↑↓", "scroll"), ("esc", "back"))
    EXPLANATION = "What the survey noticed: where it is, why it matters, and what to do about it."

    BINDINGS = [
        Binding("escape,q,tab,left,h", "app.pop_screen", tooltip="Go back"),
        Binding("j,down", "scroll(1)", tooltip="Scroll down"),
        Binding("k,up", "scroll(-1)", tooltip="Scroll up"),
    ]

    def __init__(self, survey: Survey, settings: Settings) -> None:
        super().__init__(settings)
        self._survey = survey

    def compose_body(self) -> ComposeResult:
        """Lay out one paragraph for each finding."""
        with VerticalScroll(id="body"):
            if not self._survey.findings:
                yield Static(muted("Nothing unusual was found."))
            for finding in self._survey.findings:
                text = Text(f"{_MARKS[finding.severity]} {displayable(finding.path)}\n", "bold")
                text.append(f"   {finding.meaning}\n   {finding.advice}\n", "not bold")
                yield Static(text)

    def on_mount(self) -> None:
        """Name the directory."""
        note = "complete" if self._survey.complete else "~ so far"
        self.show_place("", displayable(self._survey.path), note)

    def action_scroll(self, direction: int) -> None:
        """Scroll by a line."""
        self.query_one("#body").scroll_relative(y=direction, animate=False)
