"""A finished survey as JSON and as text."""

import time

from tui_fs.cli.output import SCHEMA, columns
from tui_fs.estimate.space import metadata_bytes_max
from tui_fs.model.codec import encode, path_fields
from tui_fs.model.paths import displayable
from tui_fs.model.space import freed_in_words
from tui_fs.model.survey import LargeDirectory, Ranking, Survey
from tui_fs.model.units import bytes_iec, count, counted
from tui_fs.survey.aggregator import Aggregator

_TITLES = {
    Ranking.ENTRIES: "most entries",
    Ranking.INODES: "most inodes",
    Ranking.ALLOCATED: "most allocated",
    Ranking.OLDEST: "oldest entry",
    Ranking.NEWEST: "newest entry",
}


def survey_as_json(survey: Survey, collector: Aggregator, top: int) -> dict[str, object]:
    """Return the fields of the CLI contract, `top` directories in each ranking."""
    totals = survey.totals
    return {
        "schema": SCHEMA,
        **path_fields("path", survey.path),
        "entries": totals.entries,
        "files": totals.files,
        "directories": totals.directories,
        "symlinks": totals.symlinks,
        "other": totals.other,
        "inodes": survey.inodes,
        "apparent_bytes": totals.apparent_bytes,
        "allocated_bytes": totals.allocated_bytes,
        "freed_bytes_min": survey.freed_bytes_min,
        "freed_bytes_max": survey.freed_bytes_max,
        "metadata_bytes_max": _metadata_bytes_max(survey),
        "max_depth": survey.max_depth,
        "max_path_bytes": survey.max_path_bytes,
        "max_entries_in_directory": survey.max_entries_in_directory,
        "largest": encode(survey.largest[:top]),
        "rankings": {by.value: encode(collector.table.ranked(by, top)) for by in Ranking},
        "groups": encode(survey.groups),
        "pathologies": encode(survey.findings),
        "unreadable": survey.unreadable,
        "vanished": survey.vanished,
        "elapsed_s": round(survey.elapsed_s, 3),
        "complete": survey.complete,
        "backend": survey.backend,
    }


def survey_as_text(survey: Survey, collector: Aggregator, top: int) -> str:
    """Return the same for a person."""
    totals = survey.totals
    rows: list[tuple[str, ...]] = [
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
    ]
    lines = [displayable(survey.path), columns(rows, frozenset({1}))]
    for finding in survey.findings:
        lines += ["", f"{finding.severity}: {finding.kind}: {displayable(finding.path)}"]
        lines.append(f"  {finding.meaning} {finding.advice}")
    shown: list[list[LargeDirectory]] = [[]]
    for by in Ranking:
        ranked = [one for one in collector.table.ranked(by, top) if one.entries]
        if ranked not in shown:  # most often as many inodes as entries
            shown.append(ranked)
            lines += ["", f"{_TITLES[by]} (in the directory itself)", _ranking(ranked)]
    if survey.groups:
        lines += ["", "directories of the same name", _groups(survey)]
    if not survey.complete:
        lines += ["", "~ not complete: see above"]
    return "\n".join(lines)


def _ranking(ranked: list[LargeDirectory]) -> str:
    rows: list[tuple[str, ...]] = [
        ("entries", "inodes", "allocated", "oldest", "newest", "directory")
    ]
    rows += [
        (
            count(one.entries),
            count(one.inodes),
            bytes_iec(one.allocated_bytes),
            _day(one.oldest_s),
            _day(one.newest_s),
            displayable(one.path),
        )
        for one in ranked
    ]
    return columns(rows, frozenset({0, 1, 2}))


def _groups(survey: Survey) -> str:
    rows: list[tuple[str, ...]] = [("directories", "entries", "allocated", "name")]
    rows += [
        (
            count(group.directories),
            count(group.totals.entries),
            bytes_iec(group.totals.allocated_bytes),
            displayable(group.name),
        )
        for group in survey.groups
    ]
    return columns(rows, frozenset({0, 1, 2}))


def _day(moment_s: int | None) -> str:
    """Return a date of the local calendar; the seconds where no calendar has it."""
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
        _metadata_bytes_max(survey),
        survey.shared_bytes,
        is_on_overlay=survey.is_on_overlay,
    )


def _metadata_bytes_max(survey: Survey) -> int:
    return metadata_bytes_max(survey.filesystem, survey.totals.entries)
