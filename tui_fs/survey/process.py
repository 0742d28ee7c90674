"""Start, query and read a survey or a search that runs in its own process."""

import contextlib
import json
import os
import pickle
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from tui_fs.linux.interpreter import module_command
from tui_fs.model.codec import encode
from tui_fs.model.errors import TuiFsError
from tui_fs.model.paths import PathStr, to_base64
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


class Update(Struct, frozen=True):
    """One message of a survey process.

    Attributes:
        listing: of the directory requested last; None without a request.
        ranked_by, ranking: the directories by the ranking requested last; `ranked_by` is None
            without a request.
        named, paths_named: the directories of the name requested last; `named` is None without
            a request.
        measured, sizes: the directories measured last; and of those that the survey has met: path,
            totals of everything in it, and whether these are complete.
        page: the survey as a page (HTML), in one update after a request.
        described, details: the directory described last; `details` is None before the survey has
            met it.
        is_filtered: listing, ranking and sizes count only entries that match the filters.
    """

    survey: Survey
    listing: Listing | None = None
    ranked_by: Ranking | None = None
    ranking: tuple[LargeDirectory, ...] = ()
    named: PathStr | None = None
    paths_named: tuple[PathStr, ...] = ()
    measured: tuple[PathStr, ...] = ()
    sizes: tuple[tuple[PathStr, Totals, bool], ...] = ()
    is_filtered: bool = False
    described: PathStr | None = None
    details: Details | None = None
    page: bytes | None = None


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
    """

    def __init__(self, module: str) -> None:
        self._process = subprocess.Popen(
            module_command(module),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._is_stopped = False

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
            os.killpg(self._process.pid, number)

    def _ask(self, question: dict[str, object]) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # the end of the messages reports its end
            self._process.stdin.write(json.dumps(question).encode() + b"\n")
            self._process.stdin.flush()


class SurveyProcess(WorkerProcess):
    """A running survey. It answers requests until it is stopped, also after it has finished.

    Args:
        paths: absolute paths of directories, none inside another.
        imported: an ncdu export file to read instead of directories.
        filters: entries to count separately; the answers count only these.
    """

    def __init__(
        self, paths: Sequence[str], imported: str | None = None, filters: Filters | None = None
    ) -> None:
        super().__init__("tui_fs.survey.worker")
        self._signalling = threading.Lock()  # a SIGCONT of `updates` must not undo a pause
        self._is_paused = self._was_paused = False
        self._ask(
            {
                "paths": [to_base64(path) for path in paths],
                "imported": None if imported is None else to_base64(imported),
                "filters": encode(filters or Filters()),
            }
        )

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

    def show(self, path: str, order: Order, required: str = "") -> None:
        """Request the listing of a directory with every update, and one update immediately.

        Args:
            required: the name of an entry that is listed in any case.
        """
        self._ask(
            {
                "show": to_base64(path),
                "sorting": order.sorting.value,
                "is_reversed": order.is_reversed,
                "required": to_base64(required),
            }
        )

    def count_everything(self) -> None:
        """Let the answers to the following requests count all entries, despite the filters."""
        self._ask({"everything": True})

    def rank(self, by: Ranking) -> None:
        """Request the first directories of a ranking, likewise."""
        self._ask({"rank": by.value})

    def name(self, name: str) -> None:
        """Request all directories of a name, likewise."""
        self._ask({"name": to_base64(name)})

    def measure(self, paths: Sequence[str]) -> None:
        """Request the sizes of some directories, likewise."""
        self._ask({"measure": [to_base64(path) for path in paths]})

    def describe(self, path: str) -> None:
        """Request the details of a directory, likewise."""
        self._ask({"describe": to_base64(path)})

    def make_page(self) -> None:
        """Request a page (HTML) of the survey so far, with one update immediately."""
        self._ask({"page": True})

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
    """A running search for names.

    Args:
        root: the absolute path of a directory; its tree is searched.
        text: a pattern as of find -name, or a part of the names.
        imported: the ncdu export file to search instead of the directory.
    """

    def __init__(self, root: str, text: str, imported: str | None = None) -> None:
        super().__init__("tui_fs.survey.search")
        self._ask(
            {
                "root": to_base64(root),
                "text": to_base64(text),
                "imported": None if imported is None else to_base64(imported),
            }
        )

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
