"""Everything unusual that a survey has found."""

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.widgets import Static

from tui_fs.model.finding import Finding, Severity
from tui_fs.model.paths import displayable
from tui_fs.model.survey import NamedGroup
from tui_fs.model.units import bytes_iec, count, counted
from tui_fs.screens.frame import muted
from tui_fs.screens.header import shown_below
from tui_fs.screens.side_screen import SideScreen
from tui_fs.survey.findings.base import FindingType
from tui_fs.survey.findings.registry import FINDING_TYPES
from widgets.bar_table import BarRow, BarTable, Column

MARKS = {Severity.CRITICAL: "!!", Severity.WARNING: "!", Severity.INFO: "i"}
SEVERITY_WORDS = {
    Severity.CRITICAL: "critical",
    Severity.WARNING: "warning",
    Severity.INFO: "for information",
}

COLUMNS = (
    Column("", 2),
    Column("what", 20),
    Column("how much", 19, right=True),
    Column("where", 0, keep_end=True),
)


def rows_of(findings: Sequence[Finding], root: str) -> list[BarRow]:
    """Return a row for each finding, in the order given, its place from the surveyed directory."""
    return [_row(finding, root) for finding in findings]


def key_of(finding: Finding) -> str:
    """Return the identity of a finding, also after the findings are detected again."""
    return "\0".join((finding.kind, finding.path, *finding.numbers))


def finding_in_full(finding: Finding, *, may_mark: bool) -> Text:
    """Return place, meaning, numbers and advice.

    Args:
        may_mark: directories may be marked here.
    """
    severity = SEVERITY_WORDS[finding.severity]
    text = Text(f"{displayable(finding.path)}\n", style="bold")
    text.append(f"{_type(finding).label} · {severity}\n", "dim not bold")
    text.append(f"{finding.meaning}\n", "not bold")
    if finding.numbers:
        numbers = (
            f"{_number_label(finding, key)} {_number(key, number)}"
            for key, number in finding.numbers.items()
        )
        text.append(" · ".join(numbers) + "\n", "dim not bold")
    text.append(f"→ {finding.advice}", "not bold")
    if _type(finding).is_group and may_mark:
        text.append("\nspace marks all directories of this name", "dim not bold")
    return text


def group_name(finding: Finding, groups: Sequence[NamedGroup]) -> str | None:
    """Return the name that a group's directories have; None if it is another finding."""
    if not _type(finding).is_group:
        return None
    for group in groups:
        if finding.path in group.paths:
            return group.name
    return finding.path.rpartition("/")[2] or None


def _row(finding: Finding, root: str) -> BarRow:
    is_info = finding.severity is Severity.INFO
    cells = (
        MARKS[finding.severity],
        _type(finding).label,
        _headline(finding),
        shown_below(finding.path, root),
    )
    return BarRow(key_of(finding), cells, tone="normal" if is_info else "warning")


def flag_of(finding: Finding) -> str:
    """Return what stands beside a name in the browser; empty for nothing."""
    entry = _type(finding)
    return entry.label if entry.flag is None else entry.flag


def _type(finding: Finding) -> FindingType:
    return FINDING_TYPES[finding.kind]


def _headline(finding: Finding) -> str:
    """Return the number that says most."""
    entry = _type(finding)
    key = entry.headline or next(iter(finding.numbers), "")
    if key not in finding.numbers:
        return ""
    number = finding.numbers[key]
    if key.endswith("_bytes"):
        return bytes_iec(number)
    return f"{count(number)} {entry.unit or _number_label(finding, key)}"


def _number(key: str, number: int) -> str:
    return bytes_iec(number) if key.endswith("_bytes") else count(number)


def _number_label(finding: Finding, key: str) -> str:
    label = _type(finding).number_labels.get(key)
    return label or key.removesuffix("_bytes").replace("_", " ")


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
