"""A survey in a process of its own, so that counting never delays a key press.

Run as ``python -m tui_fs.survey.worker``: reads questions as JSON from standard input, a line
each, the first one naming what to survey (see `tui_fs.survey.process`), and writes pickled
`Update` values (or one `TuiFsError`) to standard output. The other end is always the parent
process of the same installation.
"""

import contextlib
import json
import math
import os
import pickle
import sys
import time
from dataclasses import replace
from functools import partial

from tui_fs.linux.processes import set_pdeathsig
from tui_fs.linux.timeouts import BackgroundCall, is_readable
from tui_fs.model.errors import Missing, TuiFsError, cannot_examine
from tui_fs.model.paths import PathStr, from_base64
from tui_fs.model.survey import LargeDirectory, Ranking, Survey
from tui_fs.model.target import common_directory
from tui_fs.survey.imported import ImportedSurvey
from tui_fs.survey.listing import Names, listing_of
from tui_fs.survey.process import Update
from tui_fs.survey.runner import SurveyRunner
from tui_fs.survey.same_name_dirs import paths_named

_READ_WITHIN_S, _READ_AGAIN_S = 0.5, 0.25
_NO_ANSWER = "The file system has not answered yet."

RANKED = 1_000
NAMED = 1_000
"""As many as one job takes (see job/permission)."""


class Server:
    """A survey that answers questions while it counts and afterwards."""

    def __init__(self, survey: SurveyRunner | ImportedSurvey) -> None:
        self._survey = survey
        self._last: Survey | None = None
        self._shown: str | None = None
        self._names = Names()
        self._reading: BackgroundCall[Names] | None = None
        self._ranked_by: Ranking | None = None
        self._named: str | None = None
        self._answer: Update | None = None
        self._answer_again_s = -math.inf

    def run(self) -> None:
        """Count, and answer until nobody asks any more."""
        for survey in self._survey.run(questions=(0, self._hear)):
            self._last = survey
            self._tell()
        while True:
            if self._reading is None or is_readable(0, _READ_AGAIN_S):
                self._hear()
            elif not self._take_names(0.0):
                continue
            self._answer_again_s = -math.inf
            self._tell()

    def _hear(self) -> None:
        """Take one question; ends the process if there will be none."""
        line = _read_line()
        if not line:
            os._exit(0)
        question = json.loads(line)
        if "show" in question:
            self._shown = from_base64(question["show"])
            self._read_names(self._shown)
        if "rank" in question:
            self._ranked_by = Ranking(question["rank"])
        if "name" in question:
            self._named = from_base64(question["name"])
        self._answer_again_s = -math.inf
        self._survey.flush_progress()

    def _read_names(self, path: str) -> None:
        """Begin to read a directory; a file system that does not answer keeps nothing else back."""
        self._names = Names(problem=_NO_ANSWER)
        try:
            self._reading = BackgroundCall(partial(self._survey.names, path))
        except OSError:  # no thread can be started
            self._names = self._survey.names(path)
        self._take_names(_READ_WITHIN_S)

    def _take_names(self, timeout_s: float) -> bool:
        """Take what was read, if it was; return whether nothing is being read any more."""
        if self._reading is not None:
            with contextlib.suppress(TimeoutError):
                self._names, self._reading = self._reading.result(timeout_s), None
        return self._reading is None

    def _tell(self) -> None:
        assert self._last is not None
        now_s = time.monotonic()
        if self._answer is None or self._last.finished or now_s >= self._answer_again_s:
            self._answer = self._answered(self._last)
            # In a table of a million rows this takes seconds; counting shall get on.
            self._answer_again_s = now_s + 10 * (time.monotonic() - now_s)
        pickle.dump(replace(self._answer, survey=self._last), sys.stdout.buffer)
        sys.stdout.buffer.flush()

    def _answered(self, survey: Survey) -> Update:
        self._take_names(0.0)
        counted = self._survey.collector
        table, listing = counted.table, None
        ranking: tuple[LargeDirectory, ...] = ()
        named: tuple[PathStr, ...] = ()
        if self._shown is not None:
            big = counted.big_files_in(table.find(self._shown))
            listing = listing_of(table, self._shown, self._names, big)
        if self._ranked_by is not None:
            ranking = counted.table.ranked(self._ranked_by, RANKED)
        if self._named is not None:
            named = paths_named(table, os.fsencode(self._named), NAMED)
        name = None if self._named is None else PathStr(self._named)
        return Update(survey, listing, self._ranked_by, ranking, name, named)


def _read_line() -> bytes:
    """Return a line of standard input read without a buffer, which select would not see."""
    line = bytearray()
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            return b""
        line += byte
    return bytes(line)


def main() -> None:
    """Survey what the first question names."""
    # Paused it would not even notice that nobody asks any more; so the kernel ends it too.
    with contextlib.suppress(Missing):  # it ends when its input does
        set_pdeathsig()
    asked = json.loads(_read_line())
    paths = [from_base64(path) for path in asked["paths"]]
    try:
        if asked.get("imported") is None:
            Server(SurveyRunner(paths, family=os.getppid())).run()
        else:
            Server(ImportedSurvey(from_base64(asked["imported"]))).run()
    except BrokenPipeError:
        os._exit(0)  # the reader has closed: nobody wants the rest
    except TuiFsError as why:
        pickle.dump(why, sys.stdout.buffer)
    except OSError as why:
        path = why.filename if isinstance(why.filename, str) else common_directory(paths)
        pickle.dump(cannot_examine(path, why), sys.stdout.buffer)


if __name__ == "__main__":
    main()
