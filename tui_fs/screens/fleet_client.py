"""Run a fleet in a thread of its own; the screens of the fleet send it requests."""

import io
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from textual.message import Message

from tui_fs.fleet.connections import Ended, Line
from tui_fs.fleet.deletion import FleetDeletion, Phase
from tui_fs.fleet.fleet import Answer, Fleet
from tui_fs.model.paths import displayable
from tui_fs.model.strategy import Argv

_FETCH = "fetch"
"""What a command is for."""

_PATIENCE_S = 8.0
_INTERVAL_S = 1.0
"""Between two messages on a deletion: each redraws the lines of many hosts, and the terminal may be
far away."""

_SWITCH_INTERVAL_S = 0.0005
"""How long a thread keeps the interpreter from the others. The usual 5 ms are felt at each key
while many hosts answer."""


class Heard(Message):
    """A host has answered, or cannot be reached.

    Attributes:
        purpose: the first of the arguments; empty for a host that is not reached.
    """

    def __init__(self, purpose: str, answer: Answer) -> None:
        super().__init__()
        self.purpose, self.answer = purpose, answer


class Asked(Message):
    """All hosts have answered."""

    def __init__(self, purpose: str, answers: Mapping[str, Answer]) -> None:
        super().__init__()
        self.purpose, self.answers = purpose, answers


class Progressed(Message):
    """The deletion continues, or is over."""

    def __init__(self, deletion: FleetDeletion) -> None:
        super().__init__()
        self.deletion = deletion


class Fetched(Message):
    """The survey of a host is in a file, or there is a problem."""

    def __init__(self, host: str, file: str, problem: str) -> None:
        super().__init__()
        self.host, self.file, self.problem = host, file, problem


class _Ask(Struct, frozen=True):
    hosts: tuple[str, ...]
    arguments: Argv


class _Fetch(Struct, frozen=True):
    host: str
    path: str
    file: str


class _Delete(Struct, frozen=True):
    arguments: Mapping[str, Argv]
    job_ids: Mapping[str, str]
    canary: bool


class _Follow(Struct, frozen=True):
    job_ids: Mapping[str, Sequence[str]]


_Request = _Ask | _Fetch | _Delete | _Follow


class _RunningFetch(Struct):
    name: str
    file: io.FileIO
    problem: str = ""


class FleetClient:
    """Hosts, reached and asked in a thread; what they answer is posted as messages.

    Args:
        fleet: not yet reached, or reached already.
        at_once: deletions that run at the same time.

    Attributes:
        options: of the command line, which say how the hosts are reached.
        brought_to: the hosts that have got tui-fs into their memory.
    """

    def __init__(self, fleet: Fleet, at_once: int) -> None:
        self.hosts, self.at_once, self.options = fleet.hosts, at_once, fleet.options
        self.brought_to: Sequence[str] = fleet.brought_to
        self._fleet = fleet
        self._requests: queue.SimpleQueue[_Request | None] = queue.SimpleQueue()
        self._fetches: dict[str, _RunningFetch] = {}
        self._post: Callable[[Message], Any] = lambda _: None
        self._deletion: FleetDeletion | None = None
        self._orders: queue.SimpleQueue[Callable[[FleetDeletion], None]] = queue.SimpleQueue()
        self._is_closing = False
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self, post: Callable[[Message], Any]) -> None:
        """Begin; messages go to `post`, which must be safe to call from a thread."""
        self._post = post
        sys.setswitchinterval(_SWITCH_INTERVAL_S)
        self._thread.start()

    def ask(self, hosts: Sequence[str], arguments: Argv) -> None:
        """Run a command on hosts; `Heard` for each of them, then `Asked`."""
        self._requests.put(_Ask(tuple(hosts), arguments))

    def fetch(self, host: str, path: str, file: str) -> None:
        """Write the survey of a directory on a host to a file; `Fetched`."""
        self._requests.put(_Fetch(host, path, file))

    def delete(
        self,
        arguments: Mapping[str, Argv],
        job_ids: Mapping[str, str],
        *,
        canary: bool,
    ) -> None:
        """Delete on hosts; `Progressed` until it is over."""
        self._requests.put(_Delete(arguments, job_ids, canary))

    def follow(self, job_ids: Mapping[str, Sequence[str]]) -> None:
        """Follow jobs on some hosts; `Progressed` until all are over."""
        self._requests.put(_Follow(job_ids))

    def order(self, order: Callable[[FleetDeletion], None]) -> None:
        """Call a method of the present deletion in its thread."""
        self._orders.put(order)

    def close(self) -> None:
        """End the connections; jobs continue on their hosts."""
        self._is_closing = True
        self._requests.put(None)
        if self._thread.ident is not None:
            self._thread.join(_PATIENCE_S)  # the end of the process closes what is left

    def jobs_in(self, *phases: Phase) -> list[str]:
        """Return the hosts whose jobs are in one of these phases after `close`."""
        jobs = self._deletion.jobs.values() if self._deletion is not None else ()
        return [job.host for job in jobs if job.phase in phases]

    def _run(self) -> None:
        fleet = self._fleet
        try:
            if not (fleet.programs or fleet.problems):
                fleet.reach(lambda answer: self._post(Heard("", answer)))
            else:
                for host, problem in fleet.problems.items():
                    self._post(Heard("", Answer(host, None, problem=problem)))
            while (request := self._requests.get()) is not None:
                match request:
                    case _Ask():
                        self._ask(fleet, request)
                    case _Fetch():
                        self._begin_fetch(request)
                    case _Delete():
                        self._watch(
                            FleetDeletion(
                                fleet,
                                request.arguments,
                                request.job_ids,
                                at_once=self.at_once,
                                canary=request.canary,
                                other=self._hear_fetched,
                            )
                        )
                    case _Follow():
                        follow = FleetDeletion.following
                        self._watch(follow(fleet, request.job_ids, self._hear_fetched))
                while self._fetches and not self._is_closing:
                    if (event := fleet.next_event()) is not None:
                        self._hear_fetched(event)
        finally:
            fleet.close()

    def _ask(self, fleet: Fleet, request: _Ask) -> None:
        purpose = request.arguments[0]
        hosts = [host for host in request.hosts if host in fleet.programs]
        answers = fleet.ask(
            dict.fromkeys(hosts, request.arguments),
            lambda answer: self._post(Heard(purpose, answer)),
        )
        self._post(Asked(purpose, answers))

    def _begin_fetches(self) -> None:
        """Begin those that are asked for while jobs are watched; other requests wait."""
        for _ in range(self._requests.qsize()):
            request = self._requests.get()
            if isinstance(request, _Fetch):
                self._begin_fetch(request)
            else:
                self._requests.put(request)

    def _begin_fetch(self, request: _Fetch) -> None:
        if request.host in self._fetches:
            return
        try:
            file = open(request.file, "wb", buffering=0)  # noqa: SIM115
        except OSError as error:
            self._post(Fetched(request.host, request.file, _why_not_written(request.file, error)))
            return
        self._fetches[request.host] = _RunningFetch(request.file, file)
        words = ("survey", "--export", "-", "--format", "ncdu", "--", request.path)
        self._fleet.start(request.host, words, _FETCH)

    def _hear_fetched(self, event: Line | Ended) -> None:
        """Write the next line of a survey, or close its file."""
        if event.command.purpose != _FETCH:
            return
        host = event.command.host
        fetch = self._fetches[host]
        match event:
            case Line(text=text) if not fetch.problem:
                left = memoryview(text + b"\n")
                try:
                    while left:
                        left = left[fetch.file.write(left) :]
                except OSError as error:
                    fetch.problem = _why_not_written(fetch.name, error)
                    self._fleet.abandon(host, _FETCH)
            case Ended():
                del self._fetches[host]
                fetch.file.close()
                self._post(Fetched(host, fetch.name, fetch.problem or event.sentence))

    def _watch(self, deletion: FleetDeletion) -> None:
        self._deletion = deletion
        posted_at_s, had_canary = 0.0, False
        while not (deletion.is_over or self._is_closing):
            deletion.step()
            self._begin_fetches()
            while not self._orders.empty():
                self._orders.get()(deletion)
            has_canary = deletion.canary is not None
            if time.monotonic() >= posted_at_s + _INTERVAL_S or has_canary > had_canary:
                posted_at_s = time.monotonic()
                self._post(Progressed(deletion))
            had_canary = has_canary
        self._post(Progressed(deletion))


def _why_not_written(file: str, error: OSError) -> str:
    return f"{displayable(file)} cannot be written: {os.strerror(error.errno or 0)}."
