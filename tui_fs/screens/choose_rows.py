"""A survey as the rows of the browser's list."""

import enum

from tui_fs.model.paths import displayable, is_within
from tui_fs.model.survey import Child, EntryKind, Severity, Survey
from tui_fs.model.units import bytes_iec, count
from widgets.bar_list import BarRow, Column

COLUMNS = (
    Column("entries", 13, right=True),
    Column("allocated", 11, right=True),
    Column("share", 14, bar=True),
    Column("name", 0),
)
MORE_KEY = "/more"
"""No name can be this: it holds a slash."""


class Sorting(enum.StrEnum):
    """What the list is sorted by."""

    ENTRIES = "entries"
    ALLOCATED = "allocated"
    NAME = "name"

    @property
    def following(self) -> "Sorting":
        """The next one, in a circle."""
        every = list(Sorting)
        return every[(every.index(self) + 1) % len(every)]


def rows_of(survey: Survey, sorting: Sorting, search: str) -> list[BarRow]:
    """Return the rows, sorted; names that do not contain `search` are left out."""
    children = matching(survey, search)
    match sorting:
        case Sorting.ENTRIES:
            children.sort(key=lambda c: (-c.totals.entries, -c.totals.allocated_bytes, c.name))
        case Sorting.ALLOCATED:
            children.sort(key=lambda c: (-c.totals.allocated_bytes, c.name))
        case Sorting.NAME:
            children.sort(key=lambda c: c.name)
    by_bytes = sorting is Sorting.ALLOCATED
    whole = survey.totals.allocated_bytes if by_bytes else survey.totals.entries
    flags = _flags(survey)
    rows = [_row(child, by_bytes, whole, flags.get(child.name, "")) for child in children]
    if survey.children_not_listed and not search:
        more = f"… {count(survey.children_not_listed)} more files, not listed one by one"
        cells = (count(survey.children_not_listed), "", "", more)
        rows.append(BarRow(MORE_KEY, cells, tone="muted"))
    return rows


def matching(survey: Survey, search: str) -> list[Child]:
    """Return the entries whose displayed name contains `search`, whatever the case."""
    wanted = search.casefold()
    return [c for c in survey.children if wanted in displayable(c.name).casefold()]


def _row(child: Child, by_bytes: bool, whole: int, flag: str) -> BarRow:
    totals = child.totals
    name = displayable(child.name)
    is_directory = child.kind is EntryKind.DIRECTORY
    if is_directory:
        name += "/"
    elif child.kind is EntryKind.SYMLINK:
        name += f" → {displayable(child.link_target or '?')}"
        flag = "symlink"
    elif child.kind is EntryKind.OTHER:
        flag = "special file"
    growing = "~" if is_directory and not child.complete else ""
    part = totals.allocated_bytes if by_bytes else totals.entries
    return BarRow(
        key=child.name,
        cells=(
            f"{growing}{count(totals.entries)}",
            f"{growing}{bytes_iec(totals.allocated_bytes)}",
            "",
            name,
        ),
        fraction=part / whole if whole and is_directory else None,
        flag=flag,
        tone="warning" if flag.startswith("!") else "directory" if is_directory else "muted",
    )


def _flags(survey: Survey) -> dict[str, str]:
    flags: dict[str, str] = {}
    base = survey.path.rstrip("/")
    for finding in survey.findings:
        if finding.severity is Severity.INFO or not is_within(finding.path, base or "/"):
            continue
        name = finding.path[len(base) + 1 :].partition("/")[0]
        if name:
            flags.setdefault(name, f"! {finding.kind}")
    return flags
