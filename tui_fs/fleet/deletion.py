"""Delete on many hosts: what each one would do, the jobs, and their ends."""

import json
import secrets
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec import Struct, field

from tui_fs.fleet.answers import HostPlan
from tui_fs.fleet.connections import CONNECTION_FAILED, Ended, Line
from tui_fs.fleet.fleet import Fleet, ignore
from tui_fs.model.codec import Json
from tui_fs.model.compat import StrEnum
from tui_fs.model.errors import BadInput
from tui_fs.model.events import JobStarted, event_from_json
from tui_fs.model.outcome import JobState
from tui_fs.model.paths import harmless
from tui_fs.model.snapshot import Snapshot, fold
from tui_fs.model.strategy import Argv
from tui_fs.model.units import count, counted

_ATTEMPTS = 3
"""To find a job again after its connection was lost."""

_FAILED = 1
_UNKNOWN_JOB = 2
"""Of ``tui-fs attach``, also for a job that has not begun yet."""

_JOB_ID_BYTES = 4
_EXIT_CODES = {JobState.DONE: 0, JobState.REFUSED: 3, JobState.DIED: 5, JobState.CANCELLED: 130}
"""Of outcomes, where the connection was lost after the report."""

_ENDINGS = ("", "failed", "cancelled", "not started", "done")
"""The worst first; the first one is that of a job which is not over."""

_FOLLOW, _CANCEL = "follow", "cancel"
"""What a command is for."""


class Phase(StrEnum):
    """How far the deletion on one host is."""

    WAITING = "waiting"
    STARTING = "starting"
    RUNNING = "running"
    LOST = "connection lost"
    OVER = "over"
    SKIPPED = "skipped"


class ReportedTarget(Struct, frozen=True):
    """What became of a target."""

    gone: bool = False


class ReportSummary(Struct, frozen=True):
    """The fields of a report that the fleet needs; a refused job lacks the numbers."""

    outcome: JobState
    explanation: str
    id: str = ""
    deleted_files: int = 0
    deleted_directories: int = 0
    failed: int = 0
    freed_bytes: int | None = None
    elapsed_s: float | None = None
    targets: tuple[ReportedTarget, ...] = ()

    @property
    def deleted_entries(self) -> int:
        """Files and directories."""
        return self.deleted_files + self.deleted_directories


class HostJob(Struct):
    """The deletion on one host.

    Attributes:
        job_id: empty until it is heard that the job has begun.
        report: of the job; None while it runs, or if it is not known how it ended.
        summary: what the fleet needs of the report.
        exit_code: of the deletion; None while it runs, or if it was skipped.
        problem: one sentence; empty if all went well.
        key: its name among the jobs of a deletion: the host, if that has no other job.
        given_id: the id that the fleet has chosen for the job or was asked to follow.
    """

    host: str
    phase: Phase = Phase.WAITING
    snapshot: Snapshot = field(default_factory=Snapshot)
    job_id: str = ""
    report: dict[str, Any] | None = None
    summary: ReportSummary | None = None
    exit_code: int | None = None
    problem: str = ""
    key: str = ""
    given_id: str = ""
    attempts: int = 0
    retry_at_s: float = 0.0
    cancel_at_s: float | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing more is heard of it."""
        return self.phase in (Phase.OVER, Phase.SKIPPED)

    @property
    def deleted_entries(self) -> int:
        """By its report, or as far as it was heard."""
        if self.summary is not None:
            return self.summary.deleted_entries
        return self.snapshot.removed.entries if self.snapshot.removed else 0

    @property
    def has_failed(self) -> bool:
        """Whether it ended otherwise than completely done."""
        return self.phase is Phase.OVER and self.exit_code != 0

    @property
    def ending(self) -> str:
        """How it ended: ``done``, ``failed``, ``cancelled``, ``not started``; empty before."""
        if self.phase is Phase.SKIPPED:
            return "not started"
        if self.summary is not None and self.summary.outcome is JobState.CANCELLED:
            return "cancelled" if self.is_over else ""
        if self.has_failed:
            return "failed"
        return "done" if self.is_over else ""


def new_job_ids(hosts: Iterable[str]) -> dict[str, str]:
    """Return the id of a new job for each host, by which it is found after a lost connection."""
    return {host: secrets.token_hex(_JOB_ID_BYTES) for host in hosts}


def deletion_argv(
    plan: HostPlan, job_id: str, paths: Sequence[str], word: str | None, options: Argv
) -> Argv:
    """Return the arguments that delete what a host has previewed, and nothing else.

    Args:
        paths: as the host was asked to preview them.
        word: what the user has typed to confirm; None if nothing.
    """
    confirm = () if word is None else (f"--confirm={word}",)
    ids = tuple(f"--directory-id={each}" for each in plan.directory_ids)
    known = ("--yes", "--json", f"--job-id={job_id}", f"--strategy={plan.strategy}")
    return ("delete", *known, *confirm, *ids, *options, "--", *paths)


class FleetDeletion:
    """Deletions on many hosts, at most some of them at the same time.

    A lost connection changes nothing on its host: the job is found and followed again.

    Args:
        arguments: of ``tui-fs delete`` or ``attach``, for each host or other key, in the order
            in which they start.
        job_ids: of the job that they start or follow, for each key.
        at_once: jobs that run at the same time.
        max_failures: no further job starts after this many have failed; 0 for no limit.
        canary: the others wait until the first job is over and `go_on` is called.
        retry_interval_s: between two attempts to find a lost job or to cancel a job.
        host_of: the host of each key that is none.
        other: gets the events of other commands on the hosts.
    """

    def __init__(
        self,
        fleet: Fleet,
        arguments: Mapping[str, Argv],
        job_ids: Mapping[str, str],
        *,
        at_once: int,
        max_failures: int = 0,
        canary: bool = False,
        retry_interval_s: float = 5.0,
        host_of: Mapping[str, str] = MappingProxyType({}),
        other: Callable[[Line | Ended], None] = ignore,
    ) -> None:
        self.jobs = {
            key: HostJob(host_of.get(key, key), key=key, given_id=job_ids[key]) for key in arguments
        }
        self.is_cancelled = False
        self._fleet, self._arguments, self._other = fleet, arguments, other
        self._at_once, self._max_failures = at_once, max_failures
        self._retry_interval_s = retry_interval_s
        self._waiting = deque(arguments)
        self._is_canary_out = canary and len(arguments) > 1

    @classmethod
    def following(
        cls,
        fleet: Fleet,
        job_ids: Mapping[str, Sequence[str]],
        other: Callable[[Line | Ended], None] = ignore,
    ) -> "FleetDeletion":
        """Return the jobs with these ids on hosts, which run already and are only followed."""
        host_of = {f"{host} {each}": host for host, ids in job_ids.items() for each in ids}
        ids = {key: key.partition(" ")[2] for key in host_of}
        arguments = {key: ("attach", "--json", job_id) for key, job_id in ids.items()}
        return cls(fleet, arguments, ids, at_once=len(ids), host_of=host_of, other=other)

    @property
    def is_over(self) -> bool:
        """Whether all jobs are over."""
        return all(job.is_over for job in self.jobs.values())

    @property
    def failures(self) -> int:
        """The number of jobs that were not completely done."""
        return sum(job.has_failed for job in self.jobs.values())

    @property
    def canary(self) -> HostJob | None:
        """The first job, if it is over and the others wait for `go_on`."""
        first = next(iter(self.jobs.values()))
        return first if self._is_canary_out and self._waiting and first.is_over else None

    @property
    def progress(self) -> str:
        """The number of hosts on which all jobs are done, and of those with another end."""
        worst: dict[str, str] = {}
        for job in self.jobs.values():
            worst[job.host] = min(job.ending, worst.get(job.host, "done"), key=_ENDINGS.index)
        hosts = Counter(worst.values())
        words = [f"{count(hosts['done'])} of {counted(len(worst), 'host', 'hosts')} done"]
        for ending, sign in (("failed", " !"), ("cancelled", ""), ("not started", "")):
            if hosts[ending]:
                words.append(f"{count(hosts[ending])} {ending}{sign}")
        return ", ".join(words)

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
            if job.cancel_at_s is not None and time.monotonic() >= job.cancel_at_s:
                self._send_cancel(job)
        event = self._fleet.next_event()
        if event is None:
            return None
        purpose, _, key = event.command.purpose.partition(" ")
        if purpose not in (_FOLLOW, _CANCEL):
            self._other(event)
            return None
        job = self.jobs[key]
        match event:
            case Line() if purpose == _FOLLOW:
                return job, self._hear(job, event.text)
            case Ended() if purpose == _CANCEL:
                if not event.is_success and not job.is_over:
                    job.problem = f"It is not cancelled yet: {event.sentence}"
                    job.cancel_at_s = time.monotonic() + self._retry_interval_s
                return job, None
            case Ended():
                self._end(job, event)
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
                others = counted(self.failures, "other host has", "other hosts have")
                self.skip_waiting(f"Not started: {others} failed.")
                return
            job = self.jobs[self._waiting.popleft()]
            if not self._fleet.is_reached(job.host):
                self._give_up(job, "The connection that brought tui-fs was lost; nothing began.")
                continue
            job.phase = Phase.STARTING
            self._start(job, self._arguments[job.key], _FOLLOW)
            live += 1

    def _start(self, job: HostJob, arguments: Argv, purpose: str) -> None:
        self._fleet.start(job.host, arguments, f"{purpose} {job.key}", is_long=True)

    def skip_waiting(self, problem: str) -> None:
        """Do not start the jobs that have not begun.

        Args:
            problem: why, in one sentence.
        """
        for key in self._waiting:
            self.jobs[key].phase, self.jobs[key].problem = Phase.SKIPPED, problem
        self._waiting.clear()

    def _hear(self, job: HostJob, text: bytes) -> dict[str, Json] | None:
        job_id = job.given_id
        try:
            value = json.loads(text)
            if value["type"] == "report":
                summary = msgspec.convert(value, ReportSummary)
                if summary.id not in ("", job_id):
                    return None
                job.summary, job.report, job.job_id = summary, value, summary.id or job.job_id
                return dict(value)
            event = event_from_json(value)
            if isinstance(event, JobStarted):
                if event.job_id != job_id:
                    return None
                job.snapshot = Snapshot()  # an attachment sends all events again
            job.snapshot = fold(job.snapshot, event)
        except (ValueError, KeyError, TypeError, RecursionError, BadInput):
            return None  # no line of a job; without a report, the end is an error
        if isinstance(event, JobStarted):
            job.job_id, job.phase, job.attempts, job.problem = job_id, Phase.RUNNING, 0, ""
            if self.is_cancelled:
                job.cancel_at_s = 0.0
        return dict(value)

    def _send_cancel(self, job: HostJob) -> None:
        job.cancel_at_s = None
        if not job.is_over and self._fleet.is_reached(job.host):
            self._start(job, ("cancel", job.job_id), _CANCEL)

    def _end(self, job: HostJob, ended: Ended) -> None:
        code = ended.exit_code
        has_no_end = code is None or ended.is_lost or not ended.was_reached
        if (summary := job.summary) is not None:
            job.phase = Phase.OVER
            expected = _EXIT_CODES.get(summary.outcome, _FAILED)
            job.exit_code = expected if has_no_end or not code else code
            job.problem = "" if summary.outcome is JobState.DONE else harmless(summary.explanation)
        elif has_no_end or self._may_begin(job, code):  # if nothing was heard, it may have begun
            job.phase = Phase.LOST
            job.problem = "The connection was lost. tui-fs tries to find the job again."
            if not job.job_id:
                job.problem = "The connection was lost, perhaps before the job began."
            job.retry_at_s = time.monotonic() + self._retry_interval_s
        else:
            self._give_up(job, ended.sentence or "The command ended without a report.", code or 1)

    def _may_begin(self, job: HostJob, code: int | None) -> bool:
        """Whether a host that was asked for a lost job does not know it yet."""
        return code == _UNKNOWN_JOB and not job.job_id and job.attempts > 0

    def _give_up(self, job: HostJob, problem: str, code: int = CONNECTION_FAILED) -> None:
        job.phase, job.exit_code, job.problem = Phase.OVER, code, problem

    def _look_again(self, job: HostJob) -> None:
        job.attempts += 1
        if job.attempts > _ATTEMPTS or not self._fleet.is_reached(job.host):
            command = self._fleet.command("jobs", job.host)
            problem = f"The connection was lost. What became of job {job.given_id}: {command}"
            self._give_up(job, problem)
            return
        job.phase = Phase.STARTING
        self._start(job, ("attach", "--json", job.given_id), _FOLLOW)
