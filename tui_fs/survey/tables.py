"""The figures of a survey as tables of text, for the terminal and for pages."""

import time
from collections.abc import Iterable

from msgspec import Struct

from tui_fs.model.paths import displayable
from tui_fs.model.space import freed_in_words, metadata_bytes_max
from tui_fs.model.survey import (
    Bin,
    Histograms,
    LargeDirectory,
    OwnerSum,
    Ranking,
    SuffixSum,
    Survey,
)
from tui_fs.model.units import bytes_iec, count, counted
from tui_fs.survey.aggregator import Aggregator
from tui_fs.survey.histogram import AGE_LABELS, OLD_DAYS, SIZE_LABELS

_TITLES = {
    Ranking.ENTRIES: "most entries",
    Ranking.INODES: "most inodes",
    Ranking.ALLOCATED: "most allocated",
    Ranking.OLDEST: "oldest entry",
    Ranking.NEWEST: "newest entry",
}


class Table(Struct, frozen=True):
    """Rows of text, safe to show. All columns but the last are numbers or dates."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def key_figures(survey: Survey) -> tuple[tuple[str, str], ...]:
    """Return the totals of a survey with their names."""
    totals = survey.totals
    return (
        ("entries", count(totals.entries)),
        ("files", count(totals.files)),
        ("directories", count(totals.directories)),
        ("symlinks", count(totals.symlinks)),
        ("other", count(totals.other)),
        ("inodes", count(survey.inodes)),
        ("apparent size", bytes_iec(totals.apparent_bytes)),
        ("allocated", bytes_iec(totals.allocated_bytes)),
        ("freed when deleted", _freed(survey)),
        ("deepest level", count(survey.max_depth)),
        ("largest directory", counted(survey.max_entries_in_directory, "entry", "entries")),
    )


def old_entries(histograms: Histograms) -> tuple[tuple[str, str], ...]:
    """Return how much has not changed for long, as a figure with its name; nothing if unknown."""
    if not histograms.ages:
        return ()
    entries, allocated_bytes = histograms.older_than(OLD_DAYS)
    return ((f"older than {OLD_DAYS} days", _amount(entries, allocated_bytes)),)


def _amount(entries: int, allocated_bytes: int) -> str:
    return f"{counted(entries, 'entry', 'entries')}, {bytes_iec(allocated_bytes)}"


def histograms_table(histograms: Histograms) -> Table | None:
    """Return the classes of age and of size that have entries; None without entries."""
    title = "all entries but directories, by age and by size"
    sums = [(label, each) for label, each in labelled_bins(histograms) if each.entries]
    return _sums_table(title, "last changed, or apparent size", sums) if sums else None


def suffixes_table(histograms: Histograms) -> Table | None:
    """Return the suffixes with most bytes; None without any."""
    sums = [(f".{each.suffix}", each) for each in histograms.suffixes]
    return _sums_table("suffixes of names", "suffix", sums) if sums else None


def owners_table(histograms: Histograms) -> Table | None:
    """Return the owners; None unless there are several."""
    sums = [(displayable(each.name), each) for each in histograms.owners]
    return _sums_table("owners", "owner", sums) if len(sums) > 1 else None


def _sums_table(
    title: str, heading: str, sums: Iterable[tuple[str, Bin | SuffixSum | OwnerSum]]
) -> Table:
    rows = [(count(e.entries), bytes_iec(e.allocated_bytes), label) for label, e in sums]
    return Table(title, ("entries", "allocated", heading), tuple(rows))


def labelled_bins(histograms: Histograms) -> list[tuple[str, Bin]]:
    """Return the classes of age, then those of size."""
    ages = zip(AGE_LABELS, histograms.ages, strict=False)
    return [*ages, *zip(SIZE_LABELS, histograms.sizes, strict=True)]


def ranking_tables(collector: Aggregator, top: int) -> list[Table]:
    """Return the first `top` directories of each ranking; a ranking equal to another one once."""
    tables: list[Table] = []
    for by in Ranking:
        ranked = [directory for directory in collector.table.ranked(by, top) if directory.entries]
        rows = _ranking_rows(ranked)
        if rows and rows not in [table.rows for table in tables]:
            columns = ("entries", "inodes", "allocated", "oldest", "newest", "directory")
            tables.append(Table(f"{_TITLES[by]} (in the directory itself)", columns, rows))
    return tables


def groups_table(survey: Survey) -> Table | None:
    """Return the directories of the same name; None without such a group."""
    if not survey.groups:
        return None
    rows = tuple(
        (
            count(group.directories),
            count(group.totals.entries),
            bytes_iec(group.totals.allocated_bytes),
            displayable(group.name),
        )
        for group in survey.groups
    )
    columns = ("directories", "entries", "allocated", "name")
    return Table("directories of the same name", columns, rows)


def largest_files_table(collector: Aggregator, top: int) -> Table | None:
    """Return the largest files that have a record of their own; None without such a file."""
    largest = sorted(collector.big_files, reverse=True)[:top]
    if not largest:
        return None
    rows = tuple(
        (
            bytes_iec(file.apparent_bytes),
            bytes_iec(file.allocated_bytes),
            _day(file.modified_s),
            displayable(collector.path_of_file(row, name)),
        )
        for _, row, name, file in largest
    )
    return Table("largest files", ("apparent size", "allocated", "modified", "file"), rows)


def metadata_bytes_of(survey: Survey) -> int:
    """Return the most bytes that the metadata of all entries may free."""
    return metadata_bytes_max(survey.filesystem, survey.totals.entries)


def _ranking_rows(ranked: Iterable[LargeDirectory]) -> tuple[tuple[str, ...], ...]:
    return tuple(
        (
            count(directory.entries),
            count(directory.inodes),
            bytes_iec(directory.allocated_bytes),
            _day(directory.oldest_s),
            _day(directory.newest_s),
            displayable(directory.path),
        )
        for directory in ranked
    )


def _day(moment_s: int | None) -> str:
    """Return a date in local time; the plain seconds if they are out of range."""
    if moment_s is None:
        return "-"
    try:
        return time.strftime("%Y-%m-%d", time.localtime(moment_s))
    except (OverflowError, OSError, ValueError):
        return f"{moment_s:,} s"


def _freed(survey: Survey) -> str:
    return freed_in_words(
        survey.freed_bytes_min,
        survey.freed_bytes_max,
        metadata_bytes_of(survey),
        survey.shared_bytes,
        is_on_overlay=survey.is_on_overlay,
    )
