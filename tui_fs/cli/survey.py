"""``tui-fs survey``."""

import argparse
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import BinaryIO, cast

from tui_fs.cli.arguments import (
    EXPORT_FORMATS,
    add_output_options,
    directory_argument,
    export_format,
    natural,
)
from tui_fs.cli.counting import known_entries, progress, watched
from tui_fs.cli.exit_codes import DONE, SOME_FAILED
from tui_fs.cli.output import SCHEMA, DataOutput, StatusLine, columns, note, print_json, print_text
from tui_fs.linux.filesystem import file_system_of
from tui_fs.linux.missing_figures import missing_figures
from tui_fs.model.codec import encode, path_fields
from tui_fs.model.errors import BadInput
from tui_fs.model.figures import FOR_SURVEY
from tui_fs.model.paths import displayable
from tui_fs.model.survey import Ranking, Survey
from tui_fs.model.units import bytes_iec, count, counted
from tui_fs.survey.aggregator import Aggregator
from tui_fs.survey.comparison import Change, Comparison, Forecast, compare, forecasts
from tui_fs.survey.export_file import new_file, refuse_taken
from tui_fs.survey.findings.listed_only import LISTED_ONLY
from tui_fs.survey.imported import BACKEND as IMPORTED
from tui_fs.survey.imported import ImportedSurvey
from tui_fs.survey.ncdu_export import ExportHeader, NcduExport, Written, header_of
from tui_fs.survey.report.page import circumstances, page
from tui_fs.survey.runner import SurveyRunner
from tui_fs.survey.table_export import write_csv, write_json
from tui_fs.survey.tables import (
    groups_table,
    histograms_table,
    key_figures,
    metadata_bytes_of,
    old_entries,
    owners_table,
    ranking_tables,
    suffixes_table,
)


def survey_as_json(survey: Survey, collector: Aggregator, top: int) -> dict[str, object]:
    """Return the fields of the CLI contract, `top` directories in each ranking."""
    return {
        "schema": SCHEMA,
        **path_fields("path", survey.path),
        "entries": survey.totals.entries,
        **encode(survey.totals),
        "inodes": survey.inodes,
        "freed_bytes_min": survey.freed_bytes_min,
        "freed_bytes_max": survey.freed_bytes_max,
        "metadata_bytes_max": metadata_bytes_of(survey),
        "max_depth": survey.max_depth,
        "max_path_bytes": survey.max_path_bytes,
        "max_entries_in_directory": survey.max_entries_in_directory,
        "largest": encode(survey.largest[:top]),
        "rankings": {by.value: encode(collector.table.ranked(by, top)) for by in Ranking},
        "groups": encode(survey.groups),
        **encode(collector.histograms.of(collector.table)),
        "pathologies": encode(survey.findings),
        "unreadable": survey.unreadable,
        "vanished": survey.vanished,
        "elapsed_s": round(survey.elapsed_s, 3),
        "complete": survey.complete,
        "backend": survey.backend,
    }


def survey_as_text(survey: Survey, collector: Aggregator, top: int) -> str:
    """Return a survey as text."""
    histograms = collector.histograms.of(collector.table)
    figures = (*key_figures(survey), *old_entries(histograms))
    lines = [displayable(survey.path), columns(figures, frozenset({1}))]
    for finding in survey.findings:
        lines += ["", f"{finding.severity}: {finding.kind}: {displayable(finding.path)}"]
        lines.append(f"  {finding.meaning} {finding.advice}")
    tables = (
        histograms_table(histograms),
        suffixes_table(histograms),
        owners_table(histograms),
        *ranking_tables(collector, top),
        groups_table(survey),
    )
    for table in tables:
        if table is not None:
            numbers = frozenset(range(min(3, len(table.columns) - 1)))
            lines += ["", table.title, columns((table.columns, *table.rows), numbers)]
    if not survey.complete:
        lines += ["", "~ incomplete: see the findings above"]
    return "\n".join(lines)


_STANDARD_OUTPUT = "-"
_STATUS_INTERVAL_S = 0.25
_Result = tuple[Survey, Aggregator]


def add_arguments(parser: argparse.ArgumentParser, _: str) -> None:
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
    group.add_argument(
        "--compare", action="append", default=[], metavar="OLD.json",
        help="show what has changed since an export in ncdu's format, and when the file system is "
        "full at that rate; repeat it for further exports, which give that a range",
    )  # fmt: skip
    group.add_argument(
        "--report", metavar="FILE.html",
        help="write the survey as a page for a browser, with a treemap of the directories",
    )  # fmt: skip
    group.add_argument(
        "--force", action="store_true", help="let --export and --report replace an existing file"
    )
    parser.set_defaults(run=run)


def run(parsed: argparse.Namespace) -> int:
    """Count a tree or read an exported one; print or export the result."""
    if parsed.path is None and parsed.imported is None:
        raise BadInput("PATH is missing.", "See tui-fs survey --help.")
    if parsed.path is not None and parsed.imported is not None:
        raise BadInput("PATH and --import are mutually exclusive.", "Use one of them.")
    if parsed.export is not None and parsed.report is not None:
        raise BadInput("--export and --report are mutually exclusive.", "Use one of them.")
    if parsed.export is not None and parsed.compare:
        raise BadInput("--export and --compare are mutually exclusive.", "Use one of them.")
    if parsed.export is not None:
        return _export(parsed)
    if parsed.format is not None:
        raise BadInput("--format is only allowed with --export FILE.")
    if parsed.report is not None:
        if parsed.compare:
            raise BadInput("--report and --compare are mutually exclusive.", "Use one of them.")
        return _report(parsed)
    if parsed.compare:
        return _compare(parsed)
    if parsed.force:
        raise BadInput("--force is only allowed with --export FILE and --report FILE.html.")
    survey, collector = _counted(parsed)
    missing = missing_figures(FOR_SURVEY) if survey.backend != IMPORTED else ()
    if parsed.json:
        shape = survey_as_json(survey, collector, parsed.top)
        room = file_system_of(survey.path) if survey.backend != IMPORTED else None
        shape |= {"file_system": encode(room), "missing_figures": encode(missing)}
        print_json(shape)
    else:
        print_text(survey_as_text(survey, collector, parsed.top))
        for figure in missing:
            note(f"tui-fs: {figure.sentence}")
    listed = sum(finding.kind == LISTED_ONLY.kind for finding in survey.findings)
    if listed:
        names = counted(listed, "name is", "names are")
        note(f"tui-fs: {names} listed but cannot be examined or counted.")
    return _end(survey.unreadable, survey.backend) or (SOME_FAILED if listed else DONE)


def _counted(parsed: argparse.Namespace, total: int | None = None) -> tuple[Survey, Aggregator]:
    """Return the survey that the arguments name.

    Args:
        total: about how many entries there are; None if no earlier survey has counted them.
    """
    if parsed.imported is not None:
        imported = ImportedSurvey(parsed.imported)
        return watched(imported.run(), parsed.imported), imported.collector
    path = directory_argument(parsed.path)
    counting = SurveyRunner([path], has_histograms=True)
    total = total or known_entries(path)
    return watched(counting.run(), path, total), counting.collector


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


def _compare(parsed: argparse.Namespace) -> int:
    earlier = [_read(file) for file in parsed.compare]
    if parsed.imported is None:
        survey, collector = _counted(parsed, earlier[-1][0].totals.entries)
        header = header_of(survey.path)
    else:
        survey, current = _read(parsed.imported)
        collector, header = current.collector, current.header
    for file, (other, _) in zip(parsed.compare, earlier, strict=True):
        if other.path != survey.path:
            raise BadInput(
                f"{displayable(file)} is an export of {displayable(other.path)}, "
                f"not of {displayable(survey.path)}.",
                "Compare surveys of one directory.",
            )
    then, before = earlier[0]
    comparison = compare(before.collector.table, collector.table, parsed.top)
    headers = [*(imported.header for _, imported in earlier), header]
    when_full = forecasts(headers)
    if parsed.json:
        fields = {
            **path_fields("path", survey.path),
            **path_fields("compared_with", os.path.abspath(parsed.compare[0])),
            "counted_at_s": header.counted_at_s,
            "compared_at_s": before.header.counted_at_s,
            **encode(comparison),
            "full": {name: encode(forecast) for name, forecast in when_full.items()},
        }
        print_json({"schema": SCHEMA, **fields})
    else:
        print_text(_comparison_as_text(survey, before.header, parsed.compare[0], comparison))
        print_text(_forecasts_as_text(when_full, len(headers)))
    for name, is_complete in (("earlier", then.complete), ("present", survey.complete)):
        if not is_complete:
            note(
                f"tui-fs: the {name} survey is incomplete, so differences may be missing or wrong."
            )
    return _end(survey.unreadable, survey.backend)


def _read(file: str) -> tuple[Survey, ImportedSurvey]:
    imported = ImportedSurvey(file)
    return watched(imported.run(), file), imported


def _comparison_as_text(
    survey: Survey, earlier: ExportHeader, file: str, comparison: Comparison
) -> str:
    moment = "at an unknown time"
    if earlier.counted_at_s is not None:
        moment = time.strftime("%Y-%m-%d %H:%M", time.localtime(earlier.counted_at_s))
    rows = (
        (
            "allocated",
            bytes_iec(survey.totals.allocated_bytes),
            _signed_bytes(comparison.allocated_bytes),
        ),
        ("entries", count(survey.totals.entries), f"{comparison.entries:+,}"),
    )
    lines = [
        displayable(survey.path),
        f"compared with {displayable(file)}, counted {moment}",
        "",
        columns(rows, frozenset({1, 2})),
    ]
    for title, changes in (("grown most", comparison.grown), ("shrunk most", comparison.shrunk)):
        if changes:
            lines += ["", title, columns(_change_rows(changes), frozenset({0, 1}))]
    if not comparison.changed:
        lines += ["", "No directory has changed in size or in number of entries."]
    elif (hidden := comparison.changed - len(comparison.grown) - len(comparison.shrunk)) > 0:
        lines += ["", f"{counted(hidden, 'directory', 'directories')} with smaller changes"]
    return "\n".join(lines)


def _change_rows(changes: Sequence[Change]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("allocated", "entries", "directory")]
    for change in changes:
        state = " (new)" if change.is_new else " (removed)" if change.is_removed else ""
        path = displayable(change.path) + state
        rows.append((_signed_bytes(change.allocated_bytes), f"{change.entries:+,}", path))
    return rows


def _forecasts_as_text(when_full: Mapping[str, Forecast], surveys: int) -> str:
    """Return when the file system is full, one line for bytes and one for inodes."""
    lines = [""]
    for name, forecast in when_full.items():
        rate = round(forecast.per_day)
        each = _signed_bytes(rate) if name == "bytes" else f"{rate:+,} inodes"
        lines.append(f"file system: {each} a day, {full_in_words(forecast)}")
    if not when_full:
        lines.append("file system: unknown when it is full, the exports lack its use or their time")
    elif surveys < 3:
        lines.append("Two surveys give no range for these days; compare with more exports.")
    return "\n".join(lines)


def full_in_words(forecast: Forecast) -> str:
    """Return when a file system is full, with the uncertainty."""
    if forecast.days is None:
        return "not filling"
    words = f"full in {'about ' * (forecast.days >= 1)}{_day_count(forecast.days)}"
    if forecast.days_low is None:
        return words
    least = _day_count(forecast.days_low)
    most = "never" if forecast.days_high is None else _day_count(forecast.days_high)
    span = "" if least == most else f"{least} to {most}, "
    return f"{words} ({span}4 of 5 times)"


def _day_count(days: float) -> str:
    return "less than a day" if days < 1 else counted(round(days), "day", "days")


def _signed_bytes(difference: int) -> str:
    return bytes_iec(difference) if difference < 0 else f"+{bytes_iec(difference)}"


def _report(parsed: argparse.Namespace) -> int:
    refuse_taken(parsed.report, overwrites=parsed.force)  # fail before minutes of counting
    survey, collector = _counted(parsed)  # before the file exists, which may be in the tree
    is_here = survey.backend != IMPORTED
    content = page(survey, collector, circumstances(is_here=is_here), parsed.top)
    with new_file(parsed.report, overwrites=parsed.force) as file:
        file.write(content.encode())
    if parsed.json:
        print_json({"schema": SCHEMA, **path_fields("file", os.path.abspath(parsed.report))})
    else:
        note(f"tui-fs: the page {displayable(parsed.report)} is written; open it in a browser.")
    return _end(survey.unreadable, survey.backend)


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
            written = export.run(header_of(path))
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
