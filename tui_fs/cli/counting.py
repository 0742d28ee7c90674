"""Survey a tree to its end, for the commands that need complete counts."""

import sys
from collections.abc import Iterator, Sequence

from tui_fs.cli.output import StatusLine, moves_cursor
from tui_fs.linux.filesystem import whole_file_system_entries
from tui_fs.model.errors import cannot_examine
from tui_fs.model.paths import PathStr
from tui_fs.model.strategy import Filters
from tui_fs.model.survey import Survey
from tui_fs.model.target import Target, common_directory, is_file
from tui_fs.model.units import clock, count, counted, duration
from tui_fs.survey.runner import SurveyRunner
from tui_fs.survey.single_file import survey_file


def count_tree(
    paths: Sequence[str], filters: Filters | None = None, *, finds_users: bool = True
) -> Survey:
    """Return the finished survey of directories, with a line on the terminal while it runs."""
    total = known_entries(paths[0]) if len(paths) == 1 else None
    runner = SurveyRunner(paths, filters, finds_users=finds_users)
    return watched(runner.run(), common_directory(paths), total)


def known_entries(path: str) -> int | None:
    """Return about how many entries a tree has, for a line on the terminal; None if unknown."""
    return whole_file_system_entries(path) if moves_cursor(sys.stderr) else None


def count_targets(targets: Sequence[Target], filters: Filters, *, finds_users: bool) -> Survey:
    """Return what a deletion needs: a finished survey, or the examination of a single file.

    Args:
        finds_users: also find the processes that use directories other than by an open file.
    """
    if is_file(targets):
        return count_file(targets[0].path)
    return count_tree([target.path for target in targets], filters, finds_users=finds_users)


def count_file(path: PathStr) -> Survey:
    """Return the examination of a single file; BadInput if it cannot be examined."""
    try:
        return survey_file(path)
    except OSError as error:
        raise cannot_examine(path, error) from error


def watched(counting: Iterator[Survey], place: str, total: int | None = None) -> Survey:
    """Return the finished survey, with a line on the terminal while it runs.

    Args:
        counting: yields the counts so far; the last ones are complete.
        place: the counted path, for errors without a path.
        total: about how many entries there are; None if unknown.

    Raises:
        BadInput: the tree cannot be read.
    """
    line = StatusLine()
    survey: Survey | None = None
    try:
        for survey in counting:
            totals, elapsed_s = survey.totals, survey.elapsed_s
            fraction = totals.entries / total if total and totals.entries < total else None
            line.show(progress(totals.entries, totals.directories, elapsed_s, total), fraction)
    except OSError as error:
        path = error.filename if isinstance(error.filename, str) else place
        raise cannot_examine(path, error) from error
    finally:
        line.clear()
    assert survey is not None  # a survey always yields its last counts
    return survey


def progress(
    entries: int, directories: int, elapsed_s: float = 0.0, total: int | None = None
) -> str:
    """Return the progress in words, with rate and time left once a second has passed.

    Args:
        total: about how many entries there are; None if unknown.
    """
    text = "counting"
    if total and entries < total:  # else it was wrong
        text += f"  ~{100 * entries / total:.0f} %"
        if elapsed_s >= 1 and entries:
            text += f"  left about {duration(elapsed_s * (total - entries) / entries)}"
    text += f"  {counted(entries, 'entry', 'entries')}"
    if elapsed_s >= 1:
        text += f"  {count(round(entries / elapsed_s))} /s"
    text += f"  {counted(directories, 'directory', 'directories')}"
    if elapsed_s >= 1:
        text += f"  elapsed {clock(elapsed_s)}"
    return text
