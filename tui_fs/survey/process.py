"""Start, query and read a survey or a search that runs in its own process."""

import contextlib
import json
import os
import pickle
import signal
import subprocess
import threading
from collections.abc import Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from tui_fs.linux.interpreter import module_command
from tui_fs.model.codec import encode
from tui_fs.model.errors import TuiFsError
from tui_fs.model.paths import PathStr
from tui_fs.model.strategy import Filters
from tui_fs.model.survey import (
    Details,
    LargeDirectory,
    Listing,
    Match,
    Order,
    Ranking,
    Survey,
    Totals,
)

_ENDS_WITHIN_S = 0.2


class SurveyRequest(Struct, frozen=True):
    """What a survey process counts.

    Attributes:
        paths: absolute paths of directories, none inside another.
        imported: an ncdu export file to read instead of directories.
        filters: entries to count separately; the answers count only these.
    """

    paths: tuple[PathStr, ...]
    imported: PathStr | None = None
    filters: Filters = Filters()


class SearchRequest(Struct, frozen=True):
    """What a search process searches.

    Attributes:
        root: the absolute path of a directory; its tree is searched.
        text: a pattern as of find -name, or a part of the names.
        imported: the ncdu export file to search instead of the directory.
    """

    root: PathStr
    text: str
    imported: PathStr | None = None


class ListingQuery(Struct, frozen=True):
    """The listing of a directory; `required` is the name of an entry that is listed in any case."""

    path: PathStr
    order: Order
    required: str = ""


class Query(Struct, frozen=True):
    """Questions to a survey; None for those that are not asked.

    Attributes:
        listing: a directory to list.
        ranking: the value to rank all directories by.
        name: the name of directories to find.
        measured: paths of directories whose sizes are wanted.
        described: the path of a directory whose details are wanted.
        page: make a page (HTML) of the survey so far, once.
        everything: from now on the answers count all entries, despite the filters.
    """

    listing: ListingQuery | None = None
    ranking: Ranking | None = None
    name: PathStr | None = None
    measured: tuple[PathStr, ...] | None = None
    described: PathStr | None = None
    page: bool | None = None
    everything: bool | None = None

    def merged(self, newer: "Query") -> "Query":
        """Return the questions with others, which replace those of their kind."""
        asked = {name: value for name, value in asdict(newer).items() if value is not None}
        return replace(self, **asked)


class Update(Struct, frozen=True):
    """One message of a survey process.

    Attributes:
        query: the last questions of each kind, which the other fields answer.
        ranking: the first directories of the ranking.
        paths_named: the directories of the name.
        sizes: of those of the measured directories that the survey has met: path, totals of
            everything in it, and whether these are complete.
        page: the survey as a page (HTML), in one update after the question.
        details: of the described directory; None before the survey has met it.
        is_filtered: listing, ranking and sizes count only entries that match the filters.
    """

    survey: Survey
    listing: Listing | None = None
    ranking: tuple[LargeDirectory, ...] = ()
    paths_named: tuple[PathStr, ...] = ()
    sizes: tuple[tuple[PathStr, Totals, bool], ...] = ()
    is_filtered: bool = False
    details: Details | None = None
    page: bytes | None = None
    query: Query = Query()

    def answers(self, query: Query) -> bool:
        """Return whether this update answers all of some questions."""
        return self.query.merged(query) == self.query


class SearchUpdate(Struct, frozen=True):
    """One message of a search.

    Attributes:
        matches: those to list since the previous message.
        matched: the number of all matches so far, listed or not.
        entries: the number of names compared so far.
        unreadable: the number of directories that could not be read.
    """

    matches: tuple[Match, ...] = ()
    matched: int = 0
    entries: int = 0
    unreadable: int = 0
    is_finished: bool = False


class WorkerProcess:
    """A Python module that runs in its own process, takes requests and returns pickled messages.

    Args:
        module: its name.
        request: its first request.
    """

    def __init__(self, module: str, request: Struct) -> None:
        self._process = subprocess.Popen(
            module_command(module),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._is_stopped = False
        self._send(request)

    def messages(self) -> Iterator[Any]:
        """Yield the messages until the process ends.

        Raises:
            TuiFsError: the process has sent one.
        """
        assert self._process.stdout is not None
        while True:
            try:
                message = pickle.load(self._process.stdout)
            except (EOFError, pickle.UnpicklingError):
                break
            if isinstance(message, TuiFsError):
                raise message
            yield message
        self._process.wait()

    def stop(self) -> None:
        """Kill the process; has no effect if it has ended.

        A process blocked on an unresponsive file system ends when the file system answers.
        """
        self._is_stopped = True
        self._signal(signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_ENDS_WITHIN_S)
        with contextlib.suppress(BrokenPipeError):  # unsent requests no longer matter
            if self._process.stdin is not None:
                self._process.stdin.close()

    def _signal(self, number: signal.Signals) -> None:
        if self._process.poll() is None:  # after that, another process may have its pid
            with contextlib.suppress(ProcessLookupError):  # another thread just waited for it
                os.killpg(self._process.pid, number)

    def _send(self, request: Struct) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # the end of the messages reports its end
            self._process.stdin.write(json.dumps(encode(request)).encode() + b"\n")
            self._process.stdin.flush()


class SurveyProcess(WorkerProcess):
    """A running survey. It answers questions until it is stopped, also after it has finished."""

    def __init__(self, request: SurveyRequest) -> None:
        super().__init__("tui_fs.survey.worker", request)
        self._signalling = threading.Lock()  # a SIGCONT of `updates` must not undo a pause
        self._is_paused = self._was_paused = False

    def updates(self) -> Iterator[Update]:
        """Yield the messages of the survey until it is stopped.

        Raises:
            TuiFsError: the directory cannot be read, or the survey process ended unexpectedly.
        """
        for message in self.messages():
            with self._signalling:
                if self._was_paused and not self._is_paused:
                    self._signal(
                        signal.SIGCONT
                    )  # again: a fork may have left a SIGSTOP pending for a child
            yield message
        if not self._is_stopped:
            raise TuiFsError("The survey ended without a result.", "Try again.")

    def ask(self, query: Query) -> None:
        """Ask for answers with every update, and for one update immediately."""
        self._send(query)

    @property
    def is_paused(self) -> bool:
        """Whether the survey is paused."""
        return self._is_paused

    def pause(self) -> None:
        """Stop the processes of the survey (SIGSTOP)."""
        with self._signalling:
            self._is_paused = self._was_paused = True
            self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Continue the processes of the survey (SIGCONT)."""
        with self._signalling:
            self._is_paused = False
            self._signal(signal.SIGCONT)


class SearchProcess(WorkerProcess):
    """A running search for names."""

    def __init__(self, request: SearchRequest) -> None:
        super().__init__("tui_fs.survey.search", request)

    def updates(self) -> Iterator[SearchUpdate]:
        """Yield the results until the search has finished or is stopped.

        Raises:
            TuiFsError: the directory cannot be read, or the process ended unexpectedly.
        """
        is_finished = False
        for update in self.messages():
            is_finished = update.is_finished
            yield update
        if not is_finished and not self._is_stopped:
            raise TuiFsError("The search ended without a result.", "Try again.")
