"""Ranked directories as rows."""

from collections.abc import Collection, Sequence

from tui_fs.model.survey import LargeDirectory, Ranking
from tui_fs.model.units import bytes_iec, count
from tui_fs.screens.ages import age
from tui_fs.screens.header import shown_below
from widgets.bar_table import BarRow, Column
from widgets.lazy_rows import LazyRows

TITLES = {
    Ranking.ENTRIES: "most entries first",
    Ranking.INODES: "most inodes first",
    Ranking.ALLOCATED: "most allocated bytes first",
    Ranking.OLDEST: "oldest entry first",
    Ranking.NEWEST: "youngest entry first",
}
_FIELDS: dict[Ranking, tuple[Ranking, Ranking]] = {
    Ranking.ENTRIES: (Ranking.ENTRIES, Ranking.ALLOCATED),
    Ranking.INODES: (Ranking.INODES, Ranking.ALLOCATED),
    Ranking.ALLOCATED: (Ranking.ENTRIES, Ranking.ALLOCATED),
    Ranking.OLDEST: (Ranking.OLDEST, Ranking.ENTRIES),
    Ranking.NEWEST: (Ranking.NEWEST, Ranking.ENTRIES),
}
_UPWARDS = Ranking.NEWEST


def following(by: Ranking) -> Ranking:
    """Return the next criterion, in a circle."""
    every = list(Ranking)
    return every[(every.index(by) + 1) % len(every)]


def columns_of(by: Ranking) -> tuple[Column, ...]:
    """Return the columns; the arrow is at what is ranked by."""
    arrow = " ▲" if by is _UPWARDS else " ▼"
    return (
        *(
            Column(f"{field}{arrow if field is by else ''}", 11, right=True)
            for field in _FIELDS[by]
        ),
        Column("", 12, bar=True),
        Column("directory", 0, keep_end=True),
    )


def rows_of(
    ranking: Sequence[LargeDirectory],
    by: Ranking,
    root: str,
    marked: Collection[str],
    now_s: float,
) -> LazyRows:
    """Return the rows.

    Args:
        root: the surveyed directory; paths are shown from there.
        now_s: the moment that ages refer to, in seconds since the epoch.
    """
    largest = max((_amount(one, by, now_s) for one in ranking), default=0.0)

    def make(index: int) -> BarRow:
        one = ranking[index]
        return BarRow(
            key=one.path,
            cells=(*(_cell(one, field, now_s) for field in _FIELDS[by]), "", _place(one, root)),
            fraction=_amount(one, by, now_s) / largest if largest > 0 else None,
            marked=one.path in marked,
            tone="directory",
        )

    return LazyRows([one.path for one in ranking], make)


def _cell(one: LargeDirectory, field: Ranking, now_s: float) -> str:
    match field:
        case Ranking.ENTRIES:
            return count(one.entries)
        case Ranking.INODES:
            return count(one.inodes)
        case Ranking.ALLOCATED:
            return bytes_iec(one.allocated_bytes)
        case Ranking.OLDEST:
            return age(one.oldest_s, now_s)
        case Ranking.NEWEST:
            return age(one.newest_s, now_s)


def _amount(one: LargeDirectory, by: Ranking, now_s: float) -> float:
    match by:
        case Ranking.ENTRIES:
            return one.entries
        case Ranking.INODES:
            return one.inodes
        case Ranking.ALLOCATED:
            return one.allocated_bytes
        case Ranking.OLDEST:
            return max(0.0, now_s - one.oldest_s) if one.oldest_s is not None else 0.0
        case Ranking.NEWEST:
            return max(0.0, now_s - one.newest_s) if one.newest_s is not None else 0.0


def _place(one: LargeDirectory, root: str) -> str:
    shown = shown_below(one.path, root)
    return shown if shown.endswith("/") else shown + "/"
