"""Run a survey in its own process, so that counting never delays a key press.

``python -m tui_fs.survey.worker`` reads requests from standard input, one JSON object a line. The
first one names the directories to survey (see `tui_fs.survey.process`). It writes pickled `Update`
values, or one `TuiFsError`, to standard output. The peer is always the parent process, from the
same installation.
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
"""The maximum number of targets of one job (see job/permission)."""


class Server:
    """Answer requests during a survey and after it."""

    def __init__(self, survey: SurveyRunner | ImportedSurvey) -> None:
        self._survey = survey
        self._last: Survey | None = None
        self._shown: str | None = None
        self._names = Names()
        self._reading: BackgroundCall[Names] | None = None
        self._ranked_by: Ranking | None = None
        self._named: str | None = None
        self._answer: Update | None = None
        self._rebuild_at_s = -math.inf

    def run(self) -> None:
        """Count, and answer requests until standard input ends."""
        for survey in self._survey.run(questions=(0, self._read_request)):
            self._last = survey
            self._send_update()
        while True:
            if self._reading is None or is_readable(0, _READ_AGAIN_S):
                self._read_request()
            elif not self._take_names(0.0):
                continue
            self._rebuild_at_s = -math.inf
            self._send_update()

    def _read_request(self) -> None:
        """Read and apply one request; exit at the end of standard input."""
        line = _read_line()
        if not line:
            os._exit(0)
        request = json.loads(line)
        if "show" in request:
            self._shown = from_base64(request["show"])
            self._read_names(self._shown)
        if "rank" in request:
            self._ranked_by = Ranking(request["rank"])
        if "name" in request:
            self._named = from_base64(request["name"])
        self._rebuild_at_s = -math.inf
        self._survey.flush_progress()

    def _read_names(self, path: str) -> None:
        """Start a read in a thread, so that an unresponsive file system blocks only that."""
        self._names = Names(problem=_NO_ANSWER)
        try:
            self._reading = BackgroundCall(partial(self._survey.names, path))
        except OSError:  # no thread can be started
            self._names = self._survey.names(path)
        self._take_names(_READ_WITHIN_S)

    def _take_names(self, timeout_s: float) -> bool:
        """Store the names if the read has finished; return whether no read is in progress."""
        if self._reading is not None:
            with contextlib.suppress(TimeoutError):
                self._names, self._reading = self._reading.result(timeout_s), None
        return self._reading is None

    def _send_update(self) -> None:
        assert self._last is not None
        now_s = time.monotonic()
        if self._answer is None or self._last.finished or now_s >= self._rebuild_at_s:
            self._answer = self._build_update(self._last)
            # For a table of a million rows this takes seconds; limit its share of the time.
            self._rebuild_at_s = now_s + 10 * (time.monotonic() - now_s)
        pickle.dump(replace(self._answer, survey=self._last), sys.stdout.buffer)
        sys.stdout.buffer.flush()

    def _build_update(self, survey: Survey) -> Update:
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
    """Read a line of standard input unbuffered, because select does not see buffered data."""
    line = bytearray()
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            return b""
        line += byte
    return bytes(line)


def main() -> None:
    """Survey the directories or the file that the first request names."""
    # A stopped process does not notice the end of its input, so the kernel kills it as well.
    with contextlib.suppress(Missing):  # the end of standard input still ends it
        set_pdeathsig()
    request = json.loads(_read_line())
    paths = [from_base64(path) for path in request["paths"]]
    try:
        if request.get("imported") is None:
            Server(SurveyRunner(paths, family=os.getppid())).run()
        else:
            Server(ImportedSurvey(from_base64(request["imported"]))).run()
    except BrokenPipeError:
        os._exit(0)  # the parent has closed the pipe
    except TuiFsError as error:
        pickle.dump(error, sys.stdout.buffer)
    except OSError as error:
        path = error.filename if isinstance(error.filename, str) else common_directory(paths)
        pickle.dump(cannot_examine(path, error), sys.stdout.buffer)


if __name__ == "__main__":
    main()
