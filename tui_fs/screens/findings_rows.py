"""Findings as rows, and one of them in full."""

from collections.abc import Sequence

from rich.text import Text

from tui_fs.model.finding import Finding, Severity
from tui_fs.model.paths import displayable
from tui_fs.model.survey import NamedGroup
from tui_fs.model.units import bytes_iec, count
from tui_fs.screens.header import shown_below
from tui_fs.survey.findings.base import FindingType
from tui_fs.survey.findings.registry import FINDING_TYPES
from widgets.bar_table import BarRow, Column

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
    """Return what tells a finding from all others, also when they are told anew."""
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
