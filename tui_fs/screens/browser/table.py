"""The browser's table: a listing as rows, in the order that the user has chosen."""

from collections.abc import Callable, Collection, Mapping, Sequence

from msgspec import Struct

from tui_fs.model.finding import Finding, Severity
from tui_fs.model.paths import PathStr, displayable, is_within
from tui_fs.model.survey import Child, EntryKind, Listing, Order, Sorting
from tui_fs.model.units import bytes_iec, count
from tui_fs.screens.base import age
from tui_fs.screens.browser.details import SEVERITY_SIGNS
from tui_fs.screens.selection import Size
from tui_fs.survey.findings.registry import FINDING_TYPES
from tui_fs.survey.listing import first_children
from tui_fs.widgets.bar_table import BarRow, BarTable, Column, LazyRows
from tui_fs.widgets.cell_drawing import dots

MAX_ROWS = 20_000
"""More rows would not be read; sorting 100,000 takes a third of a second."""

READING = "reading…"

MORE_KEY = "/more"
"""Not the name of any entry, because it contains a slash."""


class Arranged(Struct, frozen=True):
    """A sorted listing.

    Attributes:
        children: the children with a row.
        more: the number of children without a row, and of the directories among them.
        flags: severity and text about children, by name.
        is_growing: incomplete numbers still grow.
        now_s: the reference time of ages, in seconds since the epoch.
        is_filtered: the listing counts only what matches the filter.
    """

    listing: Listing
    order: Order
    children: Sequence[Child]
    keys: Sequence[str]
    more: int
    more_directories: int
    flags: Mapping[str, tuple[Severity, str]]
    is_growing: bool
    now_s: float
    is_filtered: bool = False

    def child(self, key: str) -> Child | None:
        """Return a child by its row's key."""
        try:
            index = self.keys.index(key)
        except ValueError:
            return None
        return self.children[index] if index < len(self.children) else None

    def rows(self, marked: Collection[str]) -> LazyRows:
        """Return the rows; those with a name in `marked` are marked."""
        return LazyRows(self.keys, lambda index: self._row(index, marked))

    def _row(self, index: int, marked: Collection[str]) -> BarRow:
        if index == len(self.children):
            return self._more_row()
        child = self.children[index]
        is_directory = child.kind is EntryKind.DIRECTORY
        severity, flag = self.flags.get(child.name, (Severity.INFO, ""))
        flag = flag or self._state_of(child)
        has_any = not self.is_filtered or child.totals.entries > 0
        fields = _FIELDS[self.order.sorting]
        return BarRow(
            key=child.name,
            cells=(*(self._cell(field, child) for field in fields), _name(child)),
            fraction=self._share(child),
            marked=child.name in marked,
            flag=flag,
            tone="directory" if is_directory and has_any else "muted",
            flag_tone="muted" if severity is Severity.INFO else "warning",
        )

    def _state_of(self, child: Child) -> str:
        if child.kind is EntryKind.SYMLINK:
            return "symlink"
        if child.kind is EntryKind.OTHER:
            return "special file"
        return "" if child.complete or self.is_growing else "not counted"

    def _cell(self, field: Sorting | None, child: Child) -> str:
        if field is None:
            share = self._share(child)
            return ("" if child.complete else "~") + _percent(share) if share else ""
        if not child.complete and not self.is_growing:
            return "?"
        growing = "" if child.complete else "~"
        match field:
            case Sorting.ENTRIES:
                return growing + count(child.totals.entries)
            case Sorting.INODES:
                return growing + count(child.inodes)
            case Sorting.ALLOCATED:
                return growing + bytes_iec(child.totals.allocated_bytes)
            case Sorting.OLDEST:
                return growing + age(child.oldest_s, self.now_s)
            case Sorting.NEWEST:
                return growing + age(child.newest_s, self.now_s)
            case _:
                return ""

    def _share(self, child: Child) -> float | None:
        if not child.complete and not self.is_growing:
            return None
        totals = self.listing.totals
        by_bytes = self.order.sorting not in _BY_ENTRIES
        whole = totals.allocated_bytes if by_bytes else totals.entries
        part = child.totals.allocated_bytes if by_bytes else child.totals.entries
        return part / whole if whole else None

    def _more_row(self) -> BarRow:
        match self.more_directories:
            case 0:
                noun = " file" if self.more == 1 else " files"
            case self.more:
                noun = " directory" if self.more == 1 else " directories"
            case _:
                noun = ""
        text = f"{dots()} {count(self.more)} more{noun}"
        return BarRow(MORE_KEY, ("", "", "", text), flag="not listed", tone="muted")


_FIELDS: dict[Sorting, tuple[Sorting | None, ...]] = {
    Sorting.ENTRIES: (Sorting.ENTRIES, Sorting.ALLOCATED, None),
    Sorting.INODES: (Sorting.INODES, Sorting.ALLOCATED, None),
    Sorting.ALLOCATED: (Sorting.ENTRIES, Sorting.ALLOCATED, None),
    Sorting.OLDEST: (Sorting.OLDEST, Sorting.ENTRIES, Sorting.ALLOCATED),
    Sorting.NEWEST: (Sorting.NEWEST, Sorting.ENTRIES, Sorting.ALLOCATED),
    Sorting.NAME: (Sorting.ENTRIES, Sorting.ALLOCATED, None),
}
_WIDTHS = {
    Sorting.ENTRIES: 13,
    Sorting.INODES: 13,
    Sorting.ALLOCATED: 11,
    Sorting.OLDEST: 9,
    Sorting.NEWEST: 9,
}
_MEANINGS = {
    Sorting.ENTRIES: "the names in it and everywhere below it",
    Sorting.INODES: "the files and directories; a file with several names counts once",
    Sorting.ALLOCATED: "the disk space, as du shows it",
    Sorting.OLDEST: "how long ago the oldest file below it was last modified",
    Sorting.NEWEST: "how long ago the newest file below it was last modified",
}
_BY_ENTRIES = (Sorting.ENTRIES, Sorting.INODES)
"""The orders in which the share is of the entries."""
_SHARE_MEANING = "its part of the disk space; sorted by entries or inodes, of the entries"
_GROWING = (Sorting.NEWEST, Sorting.NAME)
"""The criteria with ascending default: the youngest, or A, comes first."""


def _percent(share: float) -> str:
    """Return a share as text; 100 % is the whole."""
    return "<1 %" if share < 0.01 else f"{100 if share >= 1 else min(99, round(100 * share))} %"


def columns_of(order: Order, *, is_filtered: bool = False) -> tuple[Column, ...]:
    """Return the columns; an arrow in a title marks the criterion."""
    upwards = (order.sorting in _GROWING) is not order.is_reversed
    arrow = " ▲" if upwards else " ▼"

    def title(field: Sorting) -> str:
        text = "matches" if is_filtered and field is Sorting.ENTRIES else str(field)
        return f"{text}{arrow}" if field is order.sorting else text

    return (
        *(
            Column("share", 16, bar=True, meaning=_SHARE_MEANING)
            if field is None
            else Column(
                title(field),
                _WIDTHS[field],
                right=True,
                is_optional=field is not order.sorting,
                meaning=_MEANINGS[field],
                action=f"sort_by('{field}')",
            )
            for field in _FIELDS[order.sorting]
        ),
        Column(
            title(Sorting.NAME),
            0,
            keep_ends=True,
            meaning="a directory, a file or a symbolic link",
            action=f"sort_by('{Sorting.NAME}')",
        ),
    )


def arrange(
    listing: Listing,
    findings: Sequence[Finding],
    order: Order,
    *,
    is_growing: bool,
    now_s: float,
    required: str | None = None,
    is_filtered: bool = False,
) -> Arranged:
    """Sort a listing; takes a third of a second for 100,000 entries.

    Args:
        required: a name that gets a row even after `MAX_ROWS` others.
    """
    children = first_children(listing.children, order, MAX_ROWS)
    if required is not None and len(children) < len(listing.children):
        children += [c for c in listing.children if c.name == required and c not in children]
    more, directories = len(listing.children) - len(children), 0
    if more:
        directories = _directories_in(listing.children) - _directories_in(children)
    more += listing.not_listed
    keys: list[str] = [child.name for child in children]
    return Arranged(
        listing=listing,
        order=order,
        children=children,
        keys=[*keys, MORE_KEY] if more else keys,
        more=more,
        more_directories=directories,
        flags=_flags(listing.path, findings),
        is_growing=is_growing,
        now_s=now_s,
        is_filtered=is_filtered,
    )


def sizes_of(listing: Listing, marked: Collection[str]) -> list[tuple[PathStr, Size]]:
    """Return paths and sizes of the marked directories of a listing."""
    base = listing.path.rstrip("/")
    return [
        (PathStr(f"{base}/{child.name}"), size_of(child))
        for child in listing.children
        if child.name in marked and child.kind is EntryKind.DIRECTORY
    ]


def size_of(child: Child) -> Size:
    """Return the known size of a directory."""
    return Size(child.totals.entries, child.totals.allocated_bytes, child.complete)


def _directories_in(children: Sequence[Child]) -> int:
    return sum(child.kind is EntryKind.DIRECTORY for child in children)


def _name(child: Child) -> str:
    name = displayable(child.name)
    if child.kind is EntryKind.DIRECTORY:
        return name + "/"
    if child.kind is EntryKind.SYMLINK:
        return f"{name} → {displayable(child.link_target or '?')}"
    return name


def _flags(path: str, findings: Sequence[Finding]) -> dict[str, tuple[Severity, str]]:
    """Return the gravest finding at or below each child; `findings` is sorted by gravity."""
    flags: dict[str, tuple[Severity, str]] = {}
    base = path.rstrip("/")
    for finding in findings:
        finding_type = FINDING_TYPES[finding.kind]
        flag = finding_type.flag
        label = finding_type.label_of(finding) if flag is None else flag
        if not label or not is_within(finding.path, base or "/"):
            continue
        name = finding.path[len(base) + 1 :].partition("/")[0]
        if name:
            flags.setdefault(
                name, (finding.severity, f"{SEVERITY_SIGNS[finding.severity]} {label}")
            )
    return flags


class EntryTable(BarTable):
    """The entries of one directory.

    The cursor is on the first row until the user moves it; then it stays on its entry.
    """

    def __init__(self, toggle_mark: Callable[[BarRow], bool]) -> None:
        super().__init__(
            columns_of(Order()), empty_text=READING, toggle_mark=toggle_mark, id="entries"
        )
        self.arranged: Arranged | None = None
        self.sought: str | None = None

    @property
    def highlighted(self) -> Child | None:
        """The entry under the cursor."""
        row = self.cursor_row
        return None if row is None else self.child(row.key)

    def child(self, key: str) -> Child | None:
        """Return the entry of a row."""
        return None if self.arranged is None else self.arranged.child(key)

    def clear_rows(self, empty_text: str = READING, sought: str | None = None) -> None:
        """Show no rows.

        Args:
            sought: the name for the cursor, once it has a row.
        """
        self.arranged, self.sought = None, sought
        self.empty_text = empty_text
        self.set_rows((), keep_cursor=False)

    def show(self, arranged: Arranged, marked: Collection[str], empty_text: str) -> None:
        """Show a listing; the directories with a name in `marked` are marked."""
        self.arranged = arranged
        self.set_columns(columns_of(arranged.order, is_filtered=arranged.is_filtered))
        self.empty_text = empty_text
        self.set_rows(arranged.rows(marked), keep_cursor=self.is_cursor_placed)
        if self.sought is not None and self.sought in arranged.keys:
            self.move_to(self.sought)
            self.sought = None
