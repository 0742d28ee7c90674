"""Run a survey in its own process, so that counting never delays a key press.

``python -m tui_fs.survey.worker`` reads a `SurveyRequest` and then `Query` values from standard
input, one JSON object a line. It writes pickled `Update` values, or one `TuiFsError`, to standard
output. The peer is always the parent process, from the
same installation.
"""

import contextlib
import json
import math
import os
import pickle
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from tui_fs.linux.processes import set_pdeathsig
from tui_fs.linux.timeouts import BackgroundCall, is_readable
from tui_fs.model.codec import decode
from tui_fs.model.errors import Missing, TuiFsError, cannot_examine
from tui_fs.model.paths import PathStr
from tui_fs.model.survey import Details, Order, Survey
from tui_fs.model.target import common_directory
from tui_fs.survey.listing import Names, Publish, listing_of
from tui_fs.survey.process import ListingQuery, Query, SurveyRequest, Update
from tui_fs.survey.runner import SurveyRunner
from tui_fs.survey.same_name_dirs import paths_named
from tui_fs.survey.table import NO_ROW

# Loaded when needed, so that the first counts come earlier.
if TYPE_CHECKING:
    from tui_fs.survey.imported import ImportedSurvey

_READ_WITHIN_S, _READ_AGAIN_S = 0.5, 0.25
_NO_ANSWER = "The file system has not answered yet."

RANKED = 1_000
PAGE_ROWS = 10
"""Rows of each table of a page, as many as `tui-fs survey --report` has."""
FILES_SHOWN = 20
NAMED = 1_000
"""The maximum number of targets of one job (see job/permission)."""


_ReadNames = Callable[[PathStr, Order, str, Publish], Names]


class Reading:
    """A directory that is read in a thread, so that an unresponsive file system blocks only that.

    Attributes:
        names: so far.
    """

    def __init__(self, read_names: _ReadNames, query: ListingQuery) -> None:
        self.names = Names(problem=_NO_ANSWER, order=query.order)
        self._is_abandoned = False

        def read() -> Names:
            return read_names(query.path, query.order, query.required, self._publish)

        self._call: BackgroundCall[Names] | None = None
        try:
            self._call = BackgroundCall(read)
        except OSError:  # no thread can be started
            self.names = read()

    def _publish(self, names: Names) -> bool:
        self.names = names
        return not self._is_abandoned

    def abandon(self) -> None:
        """End the read, because its result is not needed any more."""
        self._is_abandoned = True

    def wait(self, timeout_s: float) -> bool:
        """Return whether the directory is read."""
        if self._call is not None:
            with contextlib.suppress(TimeoutError):
                self.names, self._call = self._call.result(timeout_s), None
        return self._call is None


class Server:
    """Answer requests during a survey and after it.

    Args:
        is_filtered: the survey has filters. The answers count only what matches, until a request
            for everything.
    """

    def __init__(
        self, survey: "SurveyRunner | ImportedSurvey", *, is_filtered: bool = False
    ) -> None:
        self._survey = survey
        self._is_filtered = is_filtered
        self._last: Survey | None = None
        self._reading: Reading | None = None
        self._sent_names: Names | None = None
        self._query = Query()
        self._detailed: tuple[tuple[object, ...], Details | None] | None = None
        self._answer: Update | None = None
        self._rebuild_at_s = -math.inf
        self._finished_at_s: float | None = None

    def run(self) -> None:
        """Count, and answer requests until standard input ends."""
        for survey in self._survey.run(questions=(0, self._read_query)):
            self._last = survey
            if survey.finished:
                self._finished_at_s = time.time()
            self._send_update()
        while True:
            reading = self._reading
            is_read = reading is None or reading.wait(0.0)
            if reading is None or reading.names is self._sent_names:
                if not is_read and not is_readable(0, _READ_AGAIN_S):
                    continue
                self._read_query()
            self._rebuild_at_s = -math.inf
            self._send_update()

    def _read_query(self) -> None:
        """Read questions; exit at the end of standard input."""
        line = _read_line()
        if not line:
            os._exit(0)
        query = decode(Query, json.loads(line))
        self._query = self._query.merged(query)
        if query.everything:
            self._is_filtered = False
        if query.listing is not None:
            if self._reading is not None:
                self._reading.abandon()
            is_filtered, survey = self._is_filtered, self._survey
            read_names: _ReadNames = survey.matching_names if is_filtered else survey.names
            self._reading = Reading(read_names, query.listing)
            self._reading.wait(_READ_WITHIN_S)
        self._rebuild_at_s = -math.inf
        self._survey.flush_progress()

    def _send_update(self) -> None:
        assert self._last is not None
        now_s = time.monotonic()
        if self._answer is None or self._last.finished or now_s >= self._rebuild_at_s:
            self._answer = self._build_update(self._last)
            # For a table of a million rows this takes seconds; limit its share of the time.
            self._rebuild_at_s = now_s + 10 * (time.monotonic() - now_s)
        content = self._page(self._last) if self._query.page else None
        answer = replace(self._answer, survey=self._last, page=content, query=self._query)
        self._query = replace(self._query, page=None)
        pickle.dump(answer, sys.stdout.buffer)
        sys.stdout.buffer.flush()

    def _page(self, survey: Survey) -> bytes:
        from tui_fs.survey.report.page import circumstances, page

        facts = circumstances(is_here=isinstance(self._survey, SurveyRunner))
        if facts.moment_s is not None and self._finished_at_s is not None:
            facts = replace(facts, moment_s=self._finished_at_s)
        return page(survey, self._survey.collector, facts, PAGE_ROWS).encode()

    def _build_update(self, survey: Survey) -> Update:
        query, counted, listing = self._query, self._survey.collector, None
        table = counted.table
        if self._is_filtered and table.matches is not None:
            table = table.matches
        if query.listing is not None and (reading := self._reading) is not None:
            reading.wait(0.0)
            self._sent_names = names = reading.names
            path = query.listing.path
            big = [] if self._is_filtered else counted.big_files_in(table.find(path))
            listing = listing_of(table, path, names, big)
        sizes = (
            (path, subtree.totals, subtree.is_complete)
            for path, row in table.find_all(query.measured or ()).items()
            for subtree in (table.subtree(row),)
        )
        return Update(
            survey,
            listing,
            () if query.ranking is None else table.ranked(query.ranking, RANKED),
            () if query.name is None else paths_named(table, os.fsencode(query.name), NAMED),
            tuple(sizes),
            self._is_filtered,
            self._details(is_finished=survey.finished),
        )

    def _details(self, *, is_finished: bool) -> Details | None:
        """Return the details of the directory; for a million of them this takes 0.3 s."""
        question = self._query.described, self._is_filtered, is_finished
        if not is_finished or self._detailed is None or self._detailed[0] != question:
            self._detailed = question, self._read_details()
        return self._detailed[1]

    def _read_details(self) -> Details | None:
        counted, path = self._survey.collector, self._query.described
        row = NO_ROW if path is None else counted.table.find(path)
        if row == NO_ROW:
            return None
        # A survey with filters has counted only what matches.
        is_counted = self._is_filtered == (counted.table.matches is not None)
        histograms = counted.histograms.of(counted.table, row) if is_counted else None
        files = () if self._is_filtered else counted.largest_files_below(row, FILES_SHOWN)
        return Details(histograms, tuple(files))


def _read_line() -> bytes:
    """Read a line of standard input unbuffered, because select does not see buffered data."""
    line = bytearray()
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            return b""
        line += byte
    return bytes(line)


def _survey_of(request: SurveyRequest) -> "SurveyRunner | ImportedSurvey":
    if request.imported is not None:
        from tui_fs.survey.imported import ImportedSurvey

        return ImportedSurvey(request.imported, filters=request.filters)
    return SurveyRunner(
        request.paths,
        request.filters,
        family=os.getppid(),
        matches_by_directory=True,
        has_histograms=True,
    )


def main() -> None:
    """Survey the directories or the file that the first request names."""
    # A stopped process does not notice the end of its input, so the kernel kills it as well.
    with contextlib.suppress(Missing):  # the end of standard input still ends it
        set_pdeathsig()
    request = decode(SurveyRequest, json.loads(_read_line()))
    try:
        Server(_survey_of(request), is_filtered=request.filters.active).run()
    except BrokenPipeError:
        os._exit(0)  # the parent has closed the pipe
    except TuiFsError as error:
        pickle.dump(error, sys.stdout.buffer)
    except OSError as error:
        path = error.filename if isinstance(error.filename, str) else ""
        path = path or common_directory(request.paths)
        pickle.dump(cannot_examine(path, error), sys.stdout.buffer)


if __name__ == "__main__":
    main()
