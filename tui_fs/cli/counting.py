"""Survey a tree to its end, for the commands that need complete counts."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from tui_fs.cli.output import StatusLine
from tui_fs.model.errors import cannot_examine
from tui_fs.model.strategy import Filters
from tui_fs.model.survey import Survey
from tui_fs.model.target import common_directory
from tui_fs.model.units import clock, count, counted
from tui_fs.survey.runner import SurveyRunner


class Counting(Protocol):
    """A survey that yields intermediate counts."""

    def run(self) -> Iterator[Survey]:
        """Yield the counts so far; the last ones are complete."""
        ...


def count_tree(paths: Sequence[str], filters: Filters | None = None) -> Survey:
    """Return the finished survey of directories, with a line on the terminal while it runs."""
    return watched(SurveyRunner(paths, filters), common_directory(paths))


def watched(counting: Counting, place: str) -> Survey:
    """Return the finished survey, with a line on the terminal while it runs.

    Args:
        place: the counted path, for errors without a path.

    Raises:
        BadInput: the tree cannot be read.
    """
    line = StatusLine()
    survey: Survey | None = None
    try:
        for survey in counting.run():
            totals = survey.totals
            line.show(progress(totals.entries, totals.directories, survey.elapsed_s))
    except OSError as error:
        path = error.filename if isinstance(error.filename, str) else place
        raise cannot_examine(path, error) from error
    finally:
        line.clear()
    assert survey is not None  # a survey always yields its last counts
    return survey


def progress(entries: int, directories: int, elapsed_s: float = 0.0) -> str:
    """Return the progress in words, with the rate once a second has passed."""
    words = counted(entries, "entry", "entries")
    text = f"counting  {words} in {counted(directories, 'directory', 'directories')}"
    if elapsed_s >= 1:
        text += f"  {count(round(entries / elapsed_s))} /s  elapsed {clock(elapsed_s)}"
    return text
