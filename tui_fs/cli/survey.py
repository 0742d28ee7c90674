"""``tui-fs survey``."""

import argparse
import os

from tui_fs.cli.arguments import directory_argument
from tui_fs.cli.exit_codes import DONE, SOME_FAILED
from tui_fs.cli.output import SCHEMA, StatusLine, columns, note, print_json
from tui_fs.model.codec import encode, path_fields
from tui_fs.model.errors import BadInput
from tui_fs.model.paths import displayable
from tui_fs.model.strategy import Filters
from tui_fs.model.survey import Survey
from tui_fs.model.units import bytes_iec, count
from tui_fs.survey.scandir import ScandirSurvey


def run(parsed: argparse.Namespace) -> int:
    """Count the tree and print what is in it."""
    survey = count_tree(directory_argument(parsed.path))
    if parsed.json:
        print_json(_as_json(survey, parsed.top))
    else:
        print(_as_text(survey, parsed.top))
    if survey.unreadable:
        note(f"tui-fs: {survey.unreadable:,} directories could not be read and are not counted.")
        return SOME_FAILED
    return DONE


def count_tree(path: str, filters: Filters | None = None) -> Survey:
    """Return the finished survey, with a line on the terminal while it runs."""
    line = StatusLine()
    survey = Survey(path=path)  # type: ignore[arg-type]  # replaced below at once
    try:
        for survey in ScandirSurvey([path], filters).run():
            totals = survey.totals
            line.show(
                f"counting  {count(totals.entries)} entries "
                f"in {count(totals.directories)} directories"
            )
    except OSError as error:
        why = os.strerror(error.errno or 0)
        raise BadInput(f"{displayable(path)} cannot be read: {why}.") from error
    finally:
        line.clear()
    return survey


def _as_json(survey: Survey, top: int) -> dict[str, object]:
    totals = survey.totals
    return {
        "schema": SCHEMA,
        **path_fields("path", survey.path),
        "entries": totals.entries,
        "files": totals.files,
        "directories": totals.directories,
        "symlinks": totals.symlinks,
        "other": totals.other,
        "apparent_bytes": totals.apparent_bytes,
        "allocated_bytes": totals.allocated_bytes,
        "freed_bytes_min": survey.freed_bytes_min,
        "freed_bytes_max": survey.freed_bytes_max,
        "max_depth": survey.max_depth,
        "max_path_bytes": survey.max_path_bytes,
        "max_entries_in_directory": survey.max_entries_in_directory,
        "largest": encode(survey.largest[:top]),
        "pathologies": encode(survey.findings),
        "unreadable": survey.unreadable,
        "vanished": survey.vanished,
        "elapsed_s": round(survey.elapsed_s, 3),
        "complete": survey.complete,
        "backend": survey.backend,
    }


def _as_text(survey: Survey, top: int) -> str:
    totals = survey.totals
    rows: list[tuple[str, ...]] = [
        ("entries", count(totals.entries)),
        ("files", count(totals.files)),
        ("directories", count(totals.directories)),
        ("symlinks", count(totals.symlinks)),
        ("other", count(totals.other)),
        ("apparent size", bytes_iec(totals.apparent_bytes)),
        ("allocated", bytes_iec(totals.allocated_bytes)),
        ("freed when deleted", _freed(survey)),
        ("deepest level", count(survey.max_depth)),
        ("largest directory", f"{count(survey.max_entries_in_directory)} entries"),
    ]
    lines = [displayable(survey.path), columns(rows, frozenset({1}))]
    largest = [d for d in survey.largest[:top] if d.entries]
    if largest:
        lines += ["", "largest directories (entries of their own)"]
        cells = [(count(d.entries), displayable(d.path)) for d in largest]
        lines.append(columns([*cells], frozenset({0})))
    for finding in survey.findings:
        lines += ["", f"{finding.severity}: {displayable(finding.path)}"]
        lines.append(f"  {finding.meaning} {finding.advice}")
    if not survey.complete:
        lines += ["", "~ not complete: see above"]
    return "\n".join(lines)


def _freed(survey: Survey) -> str:
    low, high = bytes_iec(survey.freed_bytes_min), bytes_iec(survey.freed_bytes_max)
    return high if low == high else f"{low} to {high} (hard links outside)"
