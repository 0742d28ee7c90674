"""Findings as rows, and one of them in full."""

from collections.abc import Sequence

from rich.text import Text

from tui_fs.model.paths import displayable
from tui_fs.model.survey import Finding, NamedGroup, Severity
from tui_fs.model.units import bytes_iec, count
from tui_fs.screens.place import shown_below
from widgets.bar_list import BarRow, Column

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

KIND_WORDS = {
    "mount-inside": "mounted here",
    "used-elsewhere": "used elsewhere",
    "subvolume-inside": "btrfs subvolume",
    "immutable": "immutable",
    "append-only": "append-only",
    "locked-files": "files locked",
    "unreadable": "unreadable",
    "listed-only": "listed, not there",
    "unwritable": "not writable for you",
    "sticky": "sticky",
    "flat": "one huge directory",
    "emptied": "emptied, still huge",
    "many-subdirectories": "many subdirectories",
    "deep": "very deep",
    "long-names": "long names",
    "inodes-low": "inodes nearly gone",
    "space-low": "space nearly gone",
    "small-file-waste": "small files waste",
    "sparse": "sparse file",
    "shared-blocks": "shared blocks",
    "lower-layer": "on an overlay",
    "fragmented": "fragmented file",
    "hard-links": "many hard links",
    "in-use": "in use",
    "deleted-but-open": "deleted but open",
    "foreign-owners": "other owners",
    "weird-names": "weird names",
    "refilled": "being refilled",
    "group": "one name, many",
    "writable-by-others": "others may write",
}
"""At most as wide as their column."""

KIND_FLAGS = {**KIND_WORDS, "flat": "flat", "in-use": "in use", "group": ""}
"""What stands beside a name in the browser; nothing for a group, which is no pathology."""

_MOST_IMPORTANT = {"emptied": "index_bytes", "group": "entries"}
"""The number that says most; of other kinds it is the first."""

_SHORT_WORDS = {
    "subdirectories": "subdirs",
    "directories": "dirs",
    "directories_control": "dirs",
    "directories_not_utf8": "dirs",
    "directories_space": "dirs",
    "directories_dash": "dirs",
    "free_inodes": "free",
}
_NUMBER_WORDS = {
    "index_bytes": "size of the directory itself",
    "max_depth": "levels",
    "max_path_bytes": "longest path",
    "longest_name_bytes": "longest name",
    "apparent_bytes": "size",
    "allocated_bytes": "allocated",
    "waste_bytes": "wasted",
    "held_bytes": "still held",
    "linked_outside_bytes": "with names outside",
    "linked_outside_inodes": "inodes with names outside",
    "directories_control": "directories",
    "directories_not_utf8": "directories",
    "directories_space": "directories",
    "directories_dash": "directories",
}


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
    text.append(f"{_kind(finding)} · {severity}\n", "dim not bold")
    text.append(f"{finding.meaning}\n", "not bold")
    if finding.numbers:
        numbers = (f"{_words(key)} {_number(key, n)}" for key, n in finding.numbers.items())
        text.append(" · ".join(numbers) + "\n", "dim not bold")
    text.append(f"→ {finding.advice}", "not bold")
    if finding.kind == "group" and may_mark:
        text.append("\nspace marks all directories of this name", "dim not bold")
    return text


def group_name(finding: Finding, groups: Sequence[NamedGroup]) -> str | None:
    """Return the name that a group's directories have; None if it is another finding."""
    if finding.kind != "group":
        return None
    for group in groups:
        if finding.path in group.paths:
            return group.name
    return finding.path.rpartition("/")[2] or None


def _row(finding: Finding, root: str) -> BarRow:
    is_info = finding.severity is Severity.INFO
    cells = (
        MARKS[finding.severity],
        _kind(finding),
        _most_important(finding),
        shown_below(finding.path, root),
    )
    return BarRow(key_of(finding), cells, tone="normal" if is_info else "warning")


def _kind(finding: Finding) -> str:
    return KIND_WORDS.get(finding.kind, finding.kind)


def _most_important(finding: Finding) -> str:
    key = _MOST_IMPORTANT.get(finding.kind) or next(iter(finding.numbers), None)
    if key is None or key not in finding.numbers:
        return ""
    number = finding.numbers[key]
    if key.endswith("_bytes"):
        return bytes_iec(number)
    return f"{count(number)} {_SHORT_WORDS.get(key, _words(key))}"


def _number(key: str, number: int) -> str:
    return bytes_iec(number) if key.endswith("_bytes") else count(number)


def _words(key: str) -> str:
    return _NUMBER_WORDS.get(key, key.removesuffix("_bytes").replace("_", " "))
