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
    at_once: int
    canary: bool


class FleetClient:
    """Hosts, reached and asked in a thread; what they answer is posted as messages.

    Args:
        fleet: not yet reached, or reached already.
        at_once: deletions that run at the same time.
        options: of the command line, which say how the hosts are reached.
    """

    def __init__(self, fleet: Fleet, at_once: int, options: Argv = ()) -> None:
        self.hosts, self.at_once, self.options = fleet.hosts, at_once, options
        self._fleet = fleet
        self._requests: queue.SimpleQueue[_Ask | _Fetch | _Delete | None] = queue.SimpleQueue()
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
        self._requests.put(_Delete(arguments, job_ids, self.at_once, canary))

    def follow(self, job_ids: Mapping[str, str]) -> None:
        """Follow a job on each of some hosts; `Progressed` until all are over."""
        arguments = {host: ("attach", "--json", job_id) for host, job_id in job_ids.items()}
        self._requests.put(_Delete(arguments, job_ids, len(job_ids), canary=False))

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
                        self._fetch(fleet, request)
                    case _Delete():
                        self._delete(fleet, request)
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

    def _fetch(self, fleet: Fleet, request: _Fetch) -> None:
        words = ("survey", "--export", "-", "--format", "ncdu", "--", request.path)
        try:
            with open(request.file, "wb", buffering=0) as file:
                fleet.start(request.host, words)
                problem = _write_lines(fleet, request.host, file)
        except OSError as error:
            reason = os.strerror(error.errno or 0)
            problem = f"{displayable(request.file)} cannot be written: {reason}."
        self._post(Fetched(request.host, request.file, problem))

    def _delete(self, fleet: Fleet, request: _Delete) -> None:
        self._deletion = deletion = FleetDeletion(
            fleet,
            request.arguments,
            request.job_ids,
            at_once=request.at_once,
            canary=request.canary,
        )
        posted_at_s, had_canary = 0.0, False
        while not (deletion.is_over or self._is_closing):
            deletion.step()
            while not self._orders.empty():
                self._orders.get()(deletion)
            has_canary = deletion.canary is not None
            if time.monotonic() >= posted_at_s + _INTERVAL_S or has_canary > had_canary:
                posted_at_s = time.monotonic()
                self._post(Progressed(deletion))
            had_canary = has_canary
        self._post(Progressed(deletion))


def _write_lines(fleet: Fleet, host: str, file: io.FileIO) -> str:
    """Write what the only running command prints; return the problem with which it ended.

    Raises:
        OSError: of the file, after the end of the command.
    """
    failed: OSError | None = None
    while True:
        match fleet.next_event():
            case Line(text=text) if failed is None:
                left = memoryview(text + b"\n")
                try:
                    while left:
                        left = left[file.write(left) :]
                except OSError as error:
                    failed = error
                    fleet.abandon(host)
            case Ended() as ended:
                if failed is not None:
                    raise failed
                return ended.sentence
