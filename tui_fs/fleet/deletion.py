"""Delete on many hosts: what each one would do, the jobs, and their ends."""

import json
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct, field

from tui_fs.fleet.answers import ListedJob, live_jobs
from tui_fs.fleet.connections import CONNECTION_FAILED, Ended, Line
from tui_fs.fleet.fleet import Fleet
from tui_fs.model.codec import Json
from tui_fs.model.compat import StrEnum
from tui_fs.model.errors import BadInput
from tui_fs.model.events import JobStarted, event_from_json
from tui_fs.model.outcome import JobState
from tui_fs.model.snapshot import Snapshot, fold
from tui_fs.model.strategy import Argv

_ATTEMPTS = 3
"""To find a job again after its connection was lost."""

_ATTEMPT_INTERVAL_S = 5.0

_FOLLOW, _FIND, _CANCEL = "follow", "find", "cancel"
"""What a command is for."""


class Phase(StrEnum):
    """How far the deletion on one host is."""

    WAITING = "waiting"
    STARTING = "starting"
    RUNNING = "running"
    LOST = "connection lost"
    OVER = "over"
    SKIPPED = "skipped"


class HostJob(Struct):
    """The deletion on one host.

    Attributes:
        report: of the job; None while it runs, or if it is not known how it ended.
        exit_code: of the deletion; None while it runs, or if it was skipped.
        problem: one sentence; empty if all went well.
    """

    host: str
    phase: Phase = Phase.WAITING
    snapshot: Snapshot = field(default_factory=Snapshot)
    job_id: str = ""
    report: dict[str, Any] | None = None
    exit_code: int | None = None
    problem: str = ""
    attempts: int = 0
    retry_at_s: float = 0.0

    @property
    def is_over(self) -> bool:
        """Whether nothing more is heard of it."""
        return self.phase in (Phase.OVER, Phase.SKIPPED)

    @property
    def has_failed(self) -> bool:
        """Whether it ended otherwise than completely done."""
        return self.phase is Phase.OVER and self.exit_code != 0


class FleetDeletion:
    """Deletions on many hosts, at most some of them at the same time.

    A lost connection changes nothing on its host: the job is found and followed again.

    Args:
        arguments: of ``tui-fs delete`` for each host, in the order in which they start.
        targets: the paths on each host, to recognise a job whose beginning was not heard.
        at_once: jobs that run at the same time.
        max_failures: no further job starts after this many have failed; 0 for no limit.
        canary: the others wait until the first job is over and `go_on` is called.
    """

    def __init__(
        self,
        fleet: Fleet,
        arguments: Mapping[str, Argv],
        targets: Mapping[str, Sequence[str]],
        *,
        at_once: int,
        max_failures: int = 0,
        canary: bool = False,
    ) -> None:
        self.jobs = {host: HostJob(host) for host in arguments}
        self.is_cancelled = False
        self._fleet, self._arguments, self._targets = fleet, arguments, targets
        self._at_once, self._max_failures = at_once, max_failures
        self._waiting = deque(arguments)
        self._is_canary_out = canary and len(arguments) > 1
        self._listings: dict[str, list[bytes]] = {}

    @property
    def is_over(self) -> bool:
        """Whether all jobs are over."""
        return all(job.is_over for job in self.jobs.values())

    @property
    def failures(self) -> int:
        """The number of hosts on which the deletion was not completely done."""
        return sum(job.has_failed for job in self.jobs.values())

    @property
    def canary(self) -> HostJob | None:
        """The first job, if it is over and the others wait for `go_on`."""
        first = next(iter(self.jobs.values()))
        return first if self._is_canary_out and self._waiting and first.is_over else None

    def go_on(self) -> None:
        """Start the jobs that wait for the first one."""
        self._is_canary_out = False

    def cancel(self) -> None:
        """Start no further job; cancel those that run, also those not heard of yet."""
        self.is_cancelled = True
        self.skip_waiting("It was cancelled before it began.")
        for job in self.jobs.values():
            if job.job_id and not job.is_over:
                self._send_cancel(job)

    def step(self) -> tuple[HostJob, dict[str, Json] | None] | None:
        """Start what may start, and handle what happens within a tenth of a second.

        Returns:
            The job concerned, and the JSON object that was received, if any.
        """
        self._start_more()
        for job in self.jobs.values():
            if job.phase is Phase.LOST and time.monotonic() >= job.retry_at_s:
                self._look_again(job)
        event = self._fleet.next_event()
        if event is None or event.command.purpose not in (_FOLLOW, _FIND):
            return None
        job = self.jobs[event.command.host]
        match event:
            case Line() if event.command.purpose == _FOLLOW:
                return job, self._hear(job, event.text)
            case Line():
                self._listings[job.host].append(event.text)
            case Ended() if event.command.purpose == _FOLLOW:
                self._end(job, event)
                return job, None
            case Ended():
                self._find(job, event)
                return job, None
        return None

    def _start_more(self) -> None:
        live = sum(
            job.phase not in (Phase.WAITING, Phase.OVER, Phase.SKIPPED)
            for job in self.jobs.values()
        )
        at_once = 1 if self._is_canary_out else self._at_once
        if self._is_canary_out and len(self._waiting) < len(self.jobs):
            return
        while self._waiting and live < at_once:
            if self._max_failures and self.failures >= self._max_failures:
                self.skip_waiting(f"Not started: {self.failures} other hosts have failed.")
                return
            host = self._waiting.popleft()
            self.jobs[host].phase = Phase.STARTING
            self._fleet.start(host, self._arguments[host], _FOLLOW)
            live += 1

    def skip_waiting(self, problem: str) -> None:
        """Do not start the jobs that have not begun.

        Args:
            problem: why, in one sentence.
        """
        for host in self._waiting:
            self.jobs[host].phase, self.jobs[host].problem = Phase.SKIPPED, problem
        self._waiting.clear()

    def _hear(self, job: HostJob, text: bytes) -> dict[str, Json] | None:
        try:
            value = json.loads(text)
            if value["type"] == "report":
                job.report, job.job_id = value, value.get("id", job.job_id)
                return dict(value)
            event = event_from_json(value)
        except (ValueError, KeyError, TypeError, BadInput):
            return None  # no line of a job; without a report, the end is an error
        job.snapshot = fold(job.snapshot, event)
        if isinstance(event, JobStarted):
            job.job_id, job.phase, job.attempts = event.job_id, Phase.RUNNING, 0
            if self.is_cancelled:
                self._send_cancel(job)
        return dict(value)

    def _send_cancel(self, job: HostJob) -> None:
        self._fleet.start(job.host, ("cancel", job.job_id), _CANCEL)

    def _end(self, job: HostJob, ended: Ended) -> None:
        if job.report is None and ended.is_lost:
            job.phase, job.problem = Phase.LOST, "The connection was lost; the job goes on there."
            job.retry_at_s = time.monotonic() + _ATTEMPT_INTERVAL_S
            return
        job.phase, job.exit_code, job.problem = Phase.OVER, ended.exit_code, ended.sentence
        if job.report is not None:
            outcome = JobState(job.report["outcome"])
            job.problem = "" if outcome is JobState.DONE else str(job.report["explanation"])

    def _look_again(self, job: HostJob) -> None:
        job.attempts += 1
        if job.attempts > _ATTEMPTS or job.host not in self._fleet.programs:
            where = f"attach {job.host}" if job.job_id else f"jobs {job.host}"
            job.phase, job.exit_code = Phase.OVER, CONNECTION_FAILED
            job.problem = f"The connection was lost. What became of the job: tui-fs fleet {where}"
            return
        job.phase = Phase.STARTING
        if job.job_id:
            job.snapshot = Snapshot()  # all events are sent again
            self._fleet.start(job.host, ("attach", "--json", job.job_id), _FOLLOW)
        else:
            self._listings[job.host] = []
            self._fleet.start(job.host, ("jobs", "--json"), _FIND)

    def _find(self, job: HostJob, ended: Ended) -> None:
        """Recognise the job that was started before the connection was lost."""
        listing = b"".join(self._listings.pop(job.host))
        try:
            listed = (
                msgspec.json.decode(listing, type=list[ListedJob]) if not ended.exit_code else []
            )
        except msgspec.DecodeError:
            listed = []
        live = live_jobs(listed, self._targets[job.host])
        job.job_id = live[0].id if live else ""
        job.phase = Phase.LOST
        job.retry_at_s = time.monotonic() + (0 if live else _ATTEMPT_INTERVAL_S)
