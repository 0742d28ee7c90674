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
from collections.abc import Callable

from msgspec.structs import replace

from tui_fs.linux.processes import set_pdeathsig
from tui_fs.linux.timeouts import BackgroundCall, is_readable
from tui_fs.model.codec import decode
from tui_fs.model.errors import Missing, TuiFsError, cannot_examine
from tui_fs.model.paths import PathStr, from_base64
from tui_fs.model.strategy import Filters
from tui_fs.model.survey import Details, LargeDirectory, Order, Ranking, Sorting, Survey
from tui_fs.model.target import common_directory
from tui_fs.survey.imported import ImportedSurvey
from tui_fs.survey.listing import Names, Publish, listing_of
from tui_fs.survey.process import Update
from tui_fs.survey.report.page import circumstances, page
from tui_fs.survey.runner import SurveyRunner
from tui_fs.survey.same_name_dirs import paths_named
from tui_fs.survey.table import NO_ROW

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

    def __init__(self, read_names: _ReadNames, path: PathStr, order: Order, required: str) -> None:
        self.path = path
        self.names = Names(problem=_NO_ANSWER, order=order)
        self._is_abandoned = False

        def read() -> Names:
            return read_names(path, order, required, self._publish)

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

    def __init__(self, survey: SurveyRunner | ImportedSurvey, *, is_filtered: bool = False) -> None:
        self._survey = survey
        self._is_filtered = is_filtered
        self._last: Survey | None = None
        self._reading: Reading | None = None
        self._sent_names: Names | None = None
        self._ranked_by: Ranking | None = None
        self._named: str | None = None
        self._measured: tuple[PathStr, ...] = ()
        self._described: PathStr | None = None
        self._detailed: tuple[tuple[object, ...], Details | None] | None = None
        self._answer: Update | None = None
        self._rebuild_at_s = -math.inf
        self._is_page_requested = False
        self._finished_at_s: float | None = None

    def run(self) -> None:
        """Count, and answer requests until standard input ends."""
        for survey in self._survey.run(questions=(0, self._read_request)):
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
                self._read_request()
            self._rebuild_at_s = -math.inf
            self._send_update()

    def _read_request(self) -> None:
        """Read and apply one request; exit at the end of standard input."""
        line = _read_line()
        if not line:
            os._exit(0)
        request = json.loads(line)
        if "everything" in request:
            self._is_filtered = False
        if "show" in request:
            if self._reading is not None:
                self._reading.abandon()
            order = Order(Sorting(request["sorting"]), request["is_reversed"])
            read_names: _ReadNames = self._survey.names
            if self._is_filtered:
                read_names = self._survey.matching_names
            self._reading = Reading(
                read_names, from_base64(request["show"]), order, from_base64(request["required"])
            )
            self._reading.wait(_READ_WITHIN_S)
        if "rank" in request:
            self._ranked_by = Ranking(request["rank"])
        if "name" in request:
            self._named = from_base64(request["name"])
        if "measure" in request:
            self._measured = tuple(map(from_base64, request["measure"]))
        if "describe" in request:
            self._described = PathStr(from_base64(request["describe"]))
        self._is_page_requested |= "page" in request
        self._rebuild_at_s = -math.inf
        self._survey.flush_progress()

    def _send_update(self) -> None:
        assert self._last is not None
        now_s = time.monotonic()
        if self._answer is None or self._last.finished or now_s >= self._rebuild_at_s:
            self._answer = self._build_update(self._last)
            # For a table of a million rows this takes seconds; limit its share of the time.
            self._rebuild_at_s = now_s + 10 * (time.monotonic() - now_s)
        content = None
        if self._is_page_requested:
            self._is_page_requested, content = False, self._page(self._last)
        answer = replace(self._answer, survey=self._last, page=content)
        pickle.dump(answer, sys.stdout.buffer)
        sys.stdout.buffer.flush()

    def _page(self, survey: Survey) -> bytes:
        facts = circumstances(is_here=isinstance(self._survey, SurveyRunner))
        if facts.moment_s is not None and self._finished_at_s is not None:
            facts = replace(facts, moment_s=self._finished_at_s)
        return page(survey, self._survey.collector, facts, PAGE_ROWS).encode()

    def _build_update(self, survey: Survey) -> Update:
        counted, listing = self._survey.collector, None
        table = counted.table
        if self._is_filtered and table.matches is not None:
            table = table.matches
        ranking: tuple[LargeDirectory, ...] = ()
        named: tuple[PathStr, ...] = ()
        if (reading := self._reading) is not None:
            reading.wait(0.0)
            self._sent_names = names = reading.names
            big = [] if self._is_filtered else counted.big_files_in(table.find(reading.path))
            listing = listing_of(table, reading.path, names, big)
        if self._ranked_by is not None:
            ranking = table.ranked(self._ranked_by, RANKED)
        if self._named is not None:
            named = paths_named(table, os.fsencode(self._named), NAMED)
        name = None if self._named is None else PathStr(self._named)
        sizes = tuple(
            (path, subtree.totals, subtree.is_complete)
            for path, row in table.find_all(self._measured).items()
            for subtree in (table.subtree(row),)
        )
        return Update(
            survey,
            listing,
            self._ranked_by,
            ranking,
            name,
            named,
            self._measured,
            sizes,
            self._is_filtered,
            self._described,
            self._details(is_finished=survey.finished),
        )

    def _details(self, *, is_finished: bool) -> Details | None:
        """Return the details of the directory; for a million of them this takes 0.3 s."""
        question = self._described, self._is_filtered, is_finished
        if not is_finished or self._detailed is None or self._detailed[0] != question:
            self._detailed = question, self._read_details()
        return self._detailed[1]

    def _read_details(self) -> Details | None:
        counted = self._survey.collector
        row = NO_ROW if self._described is None else counted.table.find(self._described)
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


def main() -> None:
    """Survey the directories or the file that the first request names."""
    # A stopped process does not notice the end of its input, so the kernel kills it as well.
    with contextlib.suppress(Missing):  # the end of standard input still ends it
        set_pdeathsig()
    request = json.loads(_read_line())
    paths = [from_base64(path) for path in request["paths"]]
    try:
        filters = decode(Filters, request["filters"])
        if request.get("imported") is None:
            runner: SurveyRunner | ImportedSurvey = SurveyRunner(
                paths,
                filters,
                family=os.getppid(),
                matches_by_directory=True,
                has_histograms=True,
            )
        else:
            runner = ImportedSurvey(from_base64(request["imported"]), filters=filters)
        Server(runner, is_filtered=filters.active).run()
    except BrokenPipeError:
        os._exit(0)  # the parent has closed the pipe
    except TuiFsError as error:
        pickle.dump(error, sys.stdout.buffer)
    except OSError as error:
        path = error.filename if isinstance(error.filename, str) else common_directory(paths)
        pickle.dump(cannot_examine(path, error), sys.stdout.buffer)


if __name__ == "__main__":
    main()
