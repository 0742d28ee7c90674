"""What has grown and shrunk between two surveys of one directory, and when its disk is full."""

import statistics
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from tui_fs.model.paths import PathStr
from tui_fs.survey.listing import FirstItems
from tui_fs.survey.ncdu_export import ExportHeader
from tui_fs.survey.table import DirectoryTable

_DAY_S = 86_400.0
_T_80 = (3.08, 1.89, 1.64, 1.53, 1.48, 1.44, 1.41, 1.40, 1.38, 1.37)
"""Standard errors on each side that hold 80 % (Student's t), for 1, 2, … degrees of freedom."""


class Change(Struct, frozen=True):
    """The difference of a directory between two surveys.

    A directory in both surveys counts without its subdirectories, which have changes of their own.
    A new or removed directory counts with everything in it. So changes add up to the difference of
    the whole tree.

    Attributes:
        allocated_bytes: negative for less.
        entries: names; negative for less.
    """

    path: PathStr
    allocated_bytes: int
    entries: int
    is_new: bool = False
    is_removed: bool = False


class Forecast(Struct, frozen=True):
    """When a file system is full if it continues to fill as between the surveys.

    Attributes:
        per_day: used bytes or inodes a day; negative if it empties.
        days: from the last survey on; None if it does not fill.
        days_low, days_high: an interval of 80 %; None with fewer than three surveys, and
            `days_high` also if the growth may be none.
    """

    per_day: float
    days: float | None
    days_low: float | None = None
    days_high: float | None = None


class Comparison(Struct, frozen=True):
    """The most important differences between two surveys.

    Attributes:
        allocated_bytes, entries: differences of the whole tree.
        grown, shrunk: the largest changes by bytes, and by entries where bytes are equal.
        changed: how many directories differ.
    """

    allocated_bytes: int
    entries: int
    grown: tuple[Change, ...]
    shrunk: tuple[Change, ...]
    changed: int


def compare(before: DirectoryTable, now: DirectoryTable, top: int) -> Comparison:
    """Compare two surveys of one directory, each with one root.

    Args:
        top: changes that are returned at most in each direction.
    """
    changed = 0
    grown: FirstItems[Change] = FirstItems(top, is_reversed=True)
    shrunk: FirstItems[Change] = FirstItems(top, is_reversed=False)
    for change in _changes(before, now):
        changed += 1
        size = (change.allocated_bytes, change.entries)
        (grown if size > (0, 0) else shrunk).add(size, change)
    then, today = before.subtree(0).totals, now.subtree(0).totals
    return Comparison(
        today.allocated_bytes - then.allocated_bytes,
        today.entries - then.entries,
        tuple(grown.items()),
        tuple(shrunk.items()),
        changed,
    )


def _changes(before: DirectoryTable, now: DirectoryTable) -> Iterator[Change]:
    waiting = [(0, 0)]
    while waiting:
        old, new = waiting.pop()
        old_children = {before.name(child): child for child in before.children(old)}
        for child in now.children(new):
            other = old_children.pop(now.name(child), None)
            if other is None:
                totals = now.subtree(child).totals
                yield Change(now.path(child), totals.allocated_bytes, totals.entries, is_new=True)
            else:
                waiting.append((other, child))
        for child in old_children.values():
            totals = before.subtree(child).totals
            yield Change(
                before.path(child), -totals.allocated_bytes, -totals.entries, is_removed=True
            )
        grown_bytes = _own_bytes(now, new) - _own_bytes(before, old)
        grown_entries = _own_entries(now, new) - _own_entries(before, old)
        if grown_bytes or grown_entries:
            yield Change(now.path(new), grown_bytes, grown_entries)


def _own_bytes(table: DirectoryTable, row: int) -> int:
    return table.allocated[row] + table.index_allocated[row]


def _own_entries(table: DirectoryTable, row: int) -> int:
    return table.entries(row) - table.subdirectories[row]


def forecasts(headers: Sequence[ExportHeader]) -> dict[str, Forecast]:
    """Return when bytes and inodes run out; what the headers do not say is missing.

    Args:
        headers: of surveys of one directory, the last one of the present.
    """
    figures: dict[str, Callable[[ExportHeader], tuple[int | None, int | None]]] = {
        "bytes": lambda header: (header.total_bytes, header.available_bytes),
        "inodes": lambda header: (header.total_inodes, header.free_inodes),
    }
    forecasts: dict[str, Forecast] = {}
    for name, of in figures.items():
        points = [
            (header.counted_at_s / _DAY_S, total - free, free)
            for header in headers
            for total, free in [of(header)]
            if header.counted_at_s is not None and total is not None and free is not None
        ]
        if len({day for day, _, _ in points}) >= 2:
            forecasts[name] = _forecast(points)
    return forecasts


def _forecast(points: Sequence[tuple[float, int, int]]) -> Forecast:
    """Fit a line through used bytes or inodes by day, and extend it to where nothing is free."""
    days = [day for day, _, _ in points]
    used = [float(value) for _, value, _ in points]
    free = max(points)[2]
    slope, intercept = statistics.linear_regression(days, used)
    until_full = free / slope if slope > 0 else None
    if len(points) < 3:
        return Forecast(slope, until_full)
    mean = statistics.fmean(days)
    residuals = [value - intercept - slope * day for day, value in zip(days, used, strict=True)]
    variance = sum(residual**2 for residual in residuals) / (len(points) - 2)
    spread = _T_80[min(len(points) - 2, len(_T_80)) - 1]
    error = spread * (variance / sum((day - mean) ** 2 for day in days)) ** 0.5
    fastest, slowest = slope + error, slope - error
    return Forecast(
        slope,
        until_full,
        free / fastest if fastest > 0 else None,
        free / slowest if slowest > 0 else None,
    )
