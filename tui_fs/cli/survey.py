"""``tui-fs survey``."""

import argparse
import os
import sys
import time
from collections.abc import Callable
from typing import BinaryIO, cast

from tui_fs import __version__
from tui_fs.cli.arguments import (
    EXPORT_FORMATS,
    add_output_options,
    directory_argument,
    export_format,
    natural,
)
from tui_fs.cli.counting import progress, watched
from tui_fs.cli.exit_codes import DONE, SOME_FAILED
from tui_fs.cli.output import SCHEMA, DataOutput, StatusLine, columns, note, print_json, print_text
from tui_fs.estimate.space import metadata_bytes_max
from tui_fs.linux.missing_figures import missing_figures
from tui_fs.model.codec import encode, path_fields
from tui_fs.model.errors import BadInput
from tui_fs.model.figures import FOR_SURVEY
from tui_fs.model.paths import displayable
from tui_fs.model.space import freed_in_words
from tui_fs.model.survey import LargeDirectory, Ranking, Survey
from tui_fs.model.units import bytes_iec, count, counted
from tui_fs.survey.aggregator import Aggregator
from tui_fs.survey.export_file import new_file, refuse_taken
from tui_fs.survey.findings.listed_only import LISTED_ONLY
from tui_fs.survey.imported import BACKEND as IMPORTED
from tui_fs.survey.imported import ImportedSurvey
from tui_fs.survey.ncdu_export import NcduExport, Written
from tui_fs.survey.runner import SurveyRunner
from tui_fs.survey.table_export import write_csv, write_json

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
    """Return a survey as text."""
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
        ranked = [directory for directory in collector.table.ranked(by, top) if directory.entries]
        if ranked not in shown:  # most often equal to the number of entries
            shown.append(ranked)
            lines += ["", f"{_TITLES[by]} (in the directory itself)", _ranking(ranked)]
    if survey.groups:
        lines += ["", "directories of the same name", _groups(survey)]
    if not survey.complete:
        lines += ["", "~ incomplete: see the findings above"]
    return "\n".join(lines)


def _ranking(ranked: list[LargeDirectory]) -> str:
    rows: list[tuple[str, ...]] = [
        ("entries", "inodes", "allocated", "oldest", "newest", "directory")
    ]
    rows += [
        (
            count(directory.entries),
            count(directory.inodes),
            bytes_iec(directory.allocated_bytes),
            _day(directory.oldest_s),
            _day(directory.newest_s),
            displayable(directory.path),
        )
        for directory in ranked
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
        _metadata_bytes_max(survey),
        survey.shared_bytes,
        is_on_overlay=survey.is_on_overlay,
    )


def _metadata_bytes_max(survey: Survey) -> int:
    return metadata_bytes_max(survey.filesystem, survey.totals.entries)


_STANDARD_OUTPUT = "-"
_STATUS_INTERVAL_S = 0.25
_Result = tuple[Survey, Aggregator]


def add_arguments(parser: argparse.ArgumentParser, _: str) -> None:
    """Add the arguments of the command."""
    parser.usage = "tui-fs survey PATH [OPTION...] | tui-fs survey --import FILE [OPTION...]"
    parser.description = (
        "Count the entries of a directory, rank its largest directories and report "
        "problems. Nothing is changed."
    )
    parser.epilog = "example:\n  tui-fs survey /var --top 20"
    group = parser.add_argument_group("input")
    group.add_argument("path", nargs="?", metavar="PATH", help="a directory")
    group.add_argument(
        "--import", dest="imported", metavar="FILE",
        help="read an export of ncdu or tui-fs instead (.json or .json.gz)",
    )  # fmt: skip
    group = add_output_options(parser)
    group.add_argument(
        "--top", type=natural, default=10, metavar="N",
        help="show N directories in each ranking (default: 10)",
    )  # fmt: skip
    group.add_argument(
        "--export", metavar="FILE",
        help="write the survey to a new file instead of showing it; - is standard output",
    )  # fmt: skip
    group.add_argument(
        "--format", type=export_format, metavar="FORMAT",
        help="format of the exported file: ncdu (every entry; default for .json), csv (a line for "
        "each directory; default for .csv) or json (the fields of --json and every directory)",
    )  # fmt: skip
    group.add_argument("--force", action="store_true", help="let --export replace an existing file")
    parser.set_defaults(run=run)


def run(parsed: argparse.Namespace) -> int:
    """Count a tree or read an exported one; print or export the result."""
    if parsed.path is None and parsed.imported is None:
        raise BadInput("PATH is missing.", "See tui-fs survey --help.")
    if parsed.path is not None and parsed.imported is not None:
        raise BadInput("PATH and --import are mutually exclusive.", "Use one of them.")
    if parsed.export is not None:
        return _export(parsed)
    if parsed.format is not None or parsed.force:
        raise BadInput("--format and --force are only allowed with --export FILE.")
    survey, collector = _counted(parsed)
    missing = missing_figures(FOR_SURVEY) if survey.backend != IMPORTED else ()
    if parsed.json:
        shape = survey_as_json(survey, collector, parsed.top)
        print_json({**shape, "missing_figures": encode(missing)})
    else:
        print_text(survey_as_text(survey, collector, parsed.top))
        for figure in missing:
            note(f"tui-fs: {figure.sentence}")
    listed = sum(finding.kind == LISTED_ONLY.kind for finding in survey.findings)
    if listed:
        names = counted(listed, "name is", "names are")
        note(f"tui-fs: {names} listed but cannot be examined or counted.")
    return _end(survey.unreadable, survey.backend) or (SOME_FAILED if listed else DONE)


def _counted(parsed: argparse.Namespace) -> tuple[Survey, Aggregator]:
    if parsed.imported is not None:
        imported = ImportedSurvey(parsed.imported)
        return watched(imported, parsed.imported), imported.collector
    path = directory_argument(parsed.path)
    counting = SurveyRunner([path])
    return watched(counting, path), counting.collector


def _export(parsed: argparse.Namespace) -> int:
    path = parsed.export
    if path == _STANDARD_OUTPUT and parsed.json:
        raise BadInput("--json and --export - both write to standard output.", "Use one of them.")
    kind = _format_of(parsed)
    result: _Result | None = None
    if kind == "ncdu" and parsed.imported is not None:
        raise BadInput("The imported file is in ncdu's format already.", "Copy the file.")
    if path == _STANDARD_OUTPUT:
        if kind == "ncdu" and sys.stdout.isatty():
            raise BadInput(
                "ncdu's format contains unescaped names, which could control this terminal.",
                "Redirect standard output to a file or a pipe.",
            )
        if kind != "ncdu":
            result = _counted(parsed)
        output = cast(BinaryIO, DataOutput())
        _, unreadable, backend = _write(parsed, kind, output, result, is_patchable=False)
        return _end(unreadable, backend)
    refuse_taken(path, overwrites=parsed.force)  # fail before minutes of counting
    if kind != "ncdu":
        result = _counted(parsed)  # before the file exists, which may be in the tree
    with new_file(path, overwrites=parsed.force) as file:
        entries, unreadable, backend = _write(parsed, kind, file, result, is_patchable=True)
    if parsed.json:
        fields = {"format": kind, "entries": entries, "unreadable": unreadable}
        print_json({"schema": SCHEMA, **path_fields("file", os.path.abspath(path)), **fields})
    else:
        note(f"tui-fs: {counted(entries, 'entry', 'entries')} written to {displayable(path)}.")
    return _end(unreadable, backend)


def _format_of(parsed: argparse.Namespace) -> str:
    if parsed.format is not None:
        return str(parsed.format)
    for ending, kind in ((".json", "ncdu"), (".csv", "csv")):
        if parsed.export.endswith(ending):
            return kind
    raise BadInput(
        f"The format cannot be derived from the name {displayable(parsed.export)}.",
        f"Add --format {', '.join(EXPORT_FORMATS[:-1])} or {EXPORT_FORMATS[-1]}.",
    )


def _write(
    parsed: argparse.Namespace,
    kind: str,
    output: BinaryIO,
    result: _Result | None,
    *,
    is_patchable: bool,
) -> tuple[int, int, str]:
    """Export; return the numbers of entries and of read errors, and the backend that counted.

    Args:
        result: the finished survey; None to count while writing (ncdu's format).
    """
    if result is None:
        path = directory_argument(parsed.path)
        line = StatusLine()
        export = NcduExport(path, output, is_patchable=is_patchable, report=_now_and_then(line))
        try:
            written = export.run("tui-fs", __version__, int(time.time()))
        finally:
            line.clear()
        output.flush()
        return written.entries, written.unreadable, "scandir"
    survey, collector = result
    if kind == "csv":
        write_csv(collector, output)
    else:
        write_json(survey_as_json(survey, collector, parsed.top), collector, output)
    output.flush()
    return survey.totals.entries, survey.unreadable, survey.backend


def _now_and_then(line: StatusLine) -> Callable[[Written], None]:
    shown_at_s = 0.0

    def show_progress(written: Written) -> None:
        nonlocal shown_at_s
        if time.monotonic() - shown_at_s >= _STATUS_INTERVAL_S:
            shown_at_s = time.monotonic()
            line.show(progress(written.entries, written.directories))

    return show_progress


def _end(unreadable: int, backend: str) -> int:
    if not unreadable:
        return DONE
    which = "could not be read when exported" if backend == IMPORTED else "could not be read"
    directories = counted(unreadable, "directory", "directories")
    verb = "is" if unreadable == 1 else "are"
    note(f"tui-fs: {directories} {which} and {verb} not counted.")
    return SOME_FAILED
