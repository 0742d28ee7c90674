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
        purpose: the first of the arguments.
    """

    def __init__(self, purpose: str, answer: Answer) -> None:
        super().__init__()
        self.purpose, self.answer = purpose, answer


class Asked(Message):
    """All hosts have answered."""

    def __init__(self, arguments: Argv, answers: Mapping[str, Answer]) -> None:
        super().__init__()
        self.arguments, self.answers = arguments, answers


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


class _RunningFetch(Struct):
    name: str
    file: io.FileIO
    problem: str = ""


class FleetClient:
    """Hosts, reached and asked in a thread; what they answer is posted as messages.

    Args:
        fleet: not yet reached, or reached already.
        at_once: deletions that run at the same time.
        max_failures: no further deletion starts after this many have failed; 0 for no limit.

    Attributes:
        options: of the command line, which say how the hosts are reached.
    """

    def __init__(self, fleet: Fleet, at_once: int, max_failures: int = 0) -> None:
        self.hosts, self.options = fleet.hosts, fleet.options
        self.at_once, self.max_failures = at_once, max_failures
        self._fleet = fleet
        self._requests: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._fetches: dict[str, _RunningFetch] = {}
        self._post: Callable[[Message], Any] = lambda _: None
        self._deletion: FleetDeletion | None = None
        self._is_watching = self._had_canary = False
        self._posted_at_s = 0.0
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def brought_to(self) -> Sequence[str]:
        """The hosts that have got tui-fs into their memory."""
        return self._fleet.brought_to

    def start(self, post: Callable[[Message], Any]) -> None:
        """Begin; messages go to `post`, which must be safe to call from a thread."""
        self._post = post
        sys.setswitchinterval(_SWITCH_INTERVAL_S)
        self._thread.start()

    def ask(self, hosts: Sequence[str], arguments: Argv) -> None:
        """Run a command on hosts; `Heard` for each of them, then `Asked`."""
        self._requests.put(lambda: self._ask(hosts, arguments))

    def fetch(self, host: str, path: str, file: str) -> None:
        """Write the survey of a directory on a host to a file; `Fetched`."""
        self._requests.put(lambda: self._fetch(host, path, file))

    def delete(
        self,
        arguments: Mapping[str, Argv],
        job_ids: Mapping[str, str],
        *,
        canary: bool,
    ) -> None:
        """Delete on hosts; `Progressed` until it is over."""

        def begin() -> None:
            self._watch(
                FleetDeletion(
                    self._fleet,
                    arguments,
                    job_ids,
                    at_once=self.at_once,
                    max_failures=self.max_failures,
                    canary=canary,
                    other=self._hear_fetched,
                )
            )

        self._requests.put(begin)

    def follow(self, job_ids: Mapping[str, Sequence[str]]) -> None:
        """Follow jobs on some hosts; `Progressed` until all are over."""
        self._requests.put(
            lambda: self._watch(FleetDeletion.following(self._fleet, job_ids, self._hear_fetched))
        )

    def order(self, order: Callable[[FleetDeletion], None]) -> None:
        """Call a method of the present deletion in its thread."""
        self._requests.put(lambda: order(self._deletion) if self._deletion else None)

    def close(self) -> None:
        """End the connections; jobs continue on their hosts."""
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
                fleet.start_reaching()
            while self._take_requests():
                if self._deletion is not None and self._is_watching:
                    self._step(self._deletion)
                elif (event := fleet.next_event()) is not None:
                    self._hear_fetched(event)
        finally:
            fleet.close()

    def _take_requests(self) -> bool:
        """Begin what is asked for, and wait for a request if nothing else can happen.

        Returns:
            False at the end.
        """
        is_idle = not (self._fleet.is_busy or self._fetches or self._is_watching)
        while is_idle or not self._requests.empty():
            is_idle = False
            request = self._requests.get()
            if request is None:
                return False
            request()
        return True

    def _ask(self, hosts: Sequence[str], arguments: Argv) -> None:
        answers: dict[str, Answer] = {}

        def hear(answer: Answer) -> None:
            answers[answer.host] = answer
            self._post(Heard(arguments[0], answer))
            if len(answers) == len(hosts):
                self._post(Asked(arguments, {host: answers[host] for host in hosts}))

        for host in hosts:
            self._fleet.send(host, arguments, hear)

    def _fetch(self, host: str, path: str, name: str) -> None:
        if host in self._fetches:
            return
        if not self._fleet.is_reached(host):
            self._post(Fetched(host, name, "It cannot be reached any more."))
            return
        try:
            file = open(name, "wb", buffering=0)  # noqa: SIM115
        except OSError as error:
            self._post(Fetched(host, name, _why_not_written(name, error)))
            return
        self._fetches[host] = _RunningFetch(name, file)
        words = ("survey", "--export", "-", "--format", "ncdu", "--", path)
        self._fleet.start(host, words, _FETCH)

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
        self._deletion, self._is_watching = deletion, True
        self._posted_at_s, self._had_canary = 0.0, False

    def _step(self, deletion: FleetDeletion) -> None:
        deletion.step()
        self._is_watching = not deletion.is_over
        has_canary = deletion.canary is not None
        is_due = time.monotonic() >= self._posted_at_s + _INTERVAL_S
        if is_due or not self._is_watching or has_canary > self._had_canary:
            self._posted_at_s = time.monotonic()
            self._post(Progressed(deletion))
        self._had_canary = has_canary


def _why_not_written(file: str, error: OSError) -> str:
    return f"{displayable(file)} cannot be written: {os.strerror(error.errno or 0)}."
