"""Everything unusual that a survey has found."""

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.widgets import Static

from tui_fs.model.finding import Finding
from tui_fs.model.paths import displayable
from tui_fs.model.units import counted
from tui_fs.screens.findings_rows import (
    COLUMNS,
    finding_in_full,
    group_name,
    key_of,
    rows_of,
)
from tui_fs.screens.frame import muted
from tui_fs.screens.side_screen import SideScreen
from widgets.bar_table import BarTable


class FindingsScreen(SideScreen):
    """Findings, the gravest first, and the highlighted one in full."""

    KEYS: ClassVar = (
        ("enter", "go there"),
        ("↑↓", "choose"),
        ("space", "mark all of a name"),
        ("esc", "back"),
    )
    EXPLANATION = (
        "What the survey noticed: where it is, why it matters, and what to do about it. "
        "!! is critical, ! a warning, i for information. Enter shows the place in the browser. "
        "A group is many directories of one name; space marks all of them."
    )

    BINDINGS = [Binding("tab", "app.pop_screen", tooltip="Go back", show=False)]

    def compose_body(self) -> ComposeResult:
        """Lay out the list above the finding in full."""
        yield BarTable(COLUMNS, id="finding-list")
        with VerticalScroll(id="body", can_focus=False):
            yield Static(Text(""), id="finding-in-full")
        yield Static(Text(""), id="marks")

    def on_mount(self) -> None:
        """Show what is known so far."""
        self.query_one(BarTable).focus()
        self.show_update()

    def show_update(self) -> None:
        """Show the findings so far."""
        super().show_update()
        survey = self.update_shown.survey
        number = counted(len(survey.findings), "finding", "findings")
        note = Text(number, "" if survey.finished else "bold")
        if not survey.finished:
            note.append(" ~ so far")
        self.show_place("", displayable(survey.path), note)
        rows = self.query_one(BarTable)
        rows.empty_text = (
            "nothing unusual was found" if survey.finished else "nothing unusual so far"
        )
        rows.set_rows(rows_of(survey.findings, survey.path))
        self._show_finding()

    def on_bar_table_highlighted(self) -> None:
        """Show the finding under the cursor."""
        self._show_finding()
        self.query_one("#body").scroll_home(animate=False)

    def _show_finding(self) -> None:
        finding = self._highlighted()
        shown = muted("")
        if finding is not None:
            shown = finding_in_full(finding, may_mark=not self.browser.why_no_marks)
        self.query_one("#finding-in-full", Static).update(shown)

    def _highlighted(self) -> Finding | None:
        row = self.query_one(BarTable).cursor_row
        return self._of(row.key) if row is not None else None

    def _of(self, key: str) -> Finding | None:
        findings = self.update_shown.survey.findings
        return next((finding for finding in findings if key_of(finding) == key), None)

    def on_bar_table_opened(self) -> None:
        """Go there."""
        finding = self._highlighted()
        if finding is not None:
            self.app.pop_screen()
            self.browser.jump_to(finding.path)

    def on_bar_table_mark_toggled(self, message: BarTable.MarkToggled) -> None:
        """Mark the directories of a group."""
        finding = self._of(message.row.key)
        if finding is None:
            return
        name = group_name(finding, self.update_shown.survey.groups)
        if name is None:
            self.notify(
                "Only a group (one name, many) is marked here; enter goes to the place.",
                markup=False,
            )
            return
        self.browser.mark_named(name)
