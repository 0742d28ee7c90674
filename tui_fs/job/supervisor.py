"""The detached process of one job: runs its steps, serves commands, and keeps the journal.

Run as ``python -m tui_fs.job.supervisor [FOLDER]``; see `tui_fs.job.process`.
"""

import contextlib
import os
import selectors
import signal
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from msgspec.structs import replace

from tui_fs.job.conflicts import register_or_refuse
from tui_fs.job.control import ControlServer
from tui_fs.job.freed_space import SpaceWatch
from tui_fs.job.journal import CrashMark
from tui_fs.job.launcher import StepEnd
from tui_fs.job.lock import SupervisorLock
from tui_fs.job.outcome import outcome_of_job, verify
from tui_fs.job.preparation import PreparedJob, job_started, preparation_error, prepare
from tui_fs.job.process import notify_ready, receive_folder, wait_for_go
from tui_fs.job.record import JobRecord
from tui_fs.job.sampling import SAMPLE_EVERY_S, Sampler, SampleSchedule
from tui_fs.job.store import JobFolder, load_plan
from tui_fs.job.target_watch import CheckFailed, TargetWatch
from tui_fs.job.throttle import PressureThrottle, Throttle, disk_pressure
from tui_fs.job.tool_output import ToolPipes
from tui_fs.linux.filesystem import one_of_each, settle
from tui_fs.linux.limits import MemoryReserve, cause_of, is_limit, measured, processors
from tui_fs.linux.mounts import MountWatch
from tui_fs.linux.pressure import ProcessorUse, processor_use
from tui_fs.linux.priority import rank_above_the_tools
from tui_fs.model.calls import TraceSource
from tui_fs.model.command import Command
from tui_fs.model.errors import JobFailed, Missing, Refused, TuiFsError
from tui_fs.model.eta import MIN_CONCLUSIVE_S
from tui_fs.model.events import (
    CancelRequested,
    Event,
    JobFinished,
    MachineUse,
    Paused,
    Resumed,
    Sampled,
    StepFinished,
    StepStarted,
    ToolSaid,
)
from tui_fs.model.outcome import Outcome
from tui_fs.model.paths import displayable
from tui_fs.model.plan import Plan
from tui_fs.model.snapshot import Snapshot
from tui_fs.model.strategy import Mechanism
from tui_fs.model.target import is_file

_Result = TypeVar("_Result")

PATIENCE_S = 10.0
"""How long checks of the targets and the start of processes are retried."""
RETRY_EVERY_S = 0.25


class TerminationFlag:
    """Remembers a SIGTERM instead of dying of it."""

    def __init__(self) -> None:
        self.is_set = False
        signal.signal(signal.SIGTERM, self._set)

    def _set(self, *_: object) -> None:
        self.is_set = True


class Supervisor:
    """Runs the steps of a prepared job, and takes commands meanwhile.

    Args:
        own_nice: niceness of this process.
        memory: released when memory runs short.

    Raises:
        OSError, MemoryError: a watched file or the control socket cannot be opened.
    """

    def __init__(
        self,
        folder: JobFolder,
        plan: Plan,
        prepared: PreparedJob,
        record: JobRecord,
        own_nice: int,
        termination: TerminationFlag,
        memory: MemoryReserve,
    ) -> None:
        self._plan = plan
        self._record = record
        self._termination = termination
        self._memory = memory
        self._log = folder.log
        self._launcher, self._source = prepared.launcher, prepared.source
        self._steps = prepared.steps
        self._target_fds = prepared.target_fds
        self._output = prepared.output
        self._selector = selectors.DefaultSelector()
        self._schedule = SampleSchedule()
        self._sampled: Sampled | None = None
        self._is_cancelled = False
        self._unchecked_since: float | None = None
        self._next_check_s = 0.0
        self._has_uncounted = False
        self._wall_s = 0.0
        self._step_began: float | None = None
        self._ends: list[StepEnd] = []
        self._has_begun = False
        self._use_before: ProcessorUse | None = None
        note, now_s = record.note, record.now_s
        self._server = ControlServer(folder, self._obey, self._selector, self._answer_sample)
        self._targets = TargetWatch(plan, self._steps, self._target_fds)
        mounts = MountWatch()
        self._selector.register(mounts, selectors.EVENT_READ, lambda: self._mounts_changed(mounts))
        pipes = self._launcher.out, self._launcher.err
        self._pipes = ToolPipes(*pipes, self._output, self._selector, note, now_s)
        # a target's parent is on the same file system: no target is a mount point
        places = {target.pin.device: os.path.dirname(target.path) for target in plan.targets}
        watched = one_of_each(places.values())
        self._sampler = Sampler(self._source, self._output, watched, self._launcher.pid)
        self._throttle = Throttle(
            self._launcher,
            plan.options.pace,
            own_nice,
            PressureThrottle(disk_pressure(places)),
            note,
            now_s,
            counts=self._source.kind is not TraceSource.OFF,
        )
        self._space_watch = SpaceWatch(plan, places, watched)
        self._started = job_started(plan, prepared, self._sampler.space, now_s())

    def run(self) -> None:
        """Run the job from its first event to its report."""
        try:
            self._record.begin(self._started)
        except OSError:
            self._launcher.close()
            raise
        notify_ready()
        problem: TuiFsError | None = None
        if not wait_for_go():
            problem = Refused(
                "The starting process exited before the job began; nothing was deleted.",
                rule="abandoned",
            )
        for number in range(len(self._steps)):
            problem = problem or self._run_step(number)
            if problem is not None or self._is_cancelled:
                break
        if problem is not None and not self._has_begun:
            self._launcher.close()
            self._record.refuse(problem)
        else:
            self._finish(problem)
        self._server.close()

    def _run_step(self, number: int) -> TuiFsError | None:
        """Run one step to its end; return the error that forbids it and later steps, or None."""
        waiting_since = time.monotonic()
        try:
            while self._throttle.is_paused and not self._is_cancelled:
                self._wait(SAMPLE_EVERY_S)
        except ConnectionError:
            return self._launcher_error()
        self._wall_s += time.monotonic() - waiting_since if number else 0.0
        if self._is_cancelled:
            return None
        step = self._steps[number]
        try:
            pids = self._when_possible(lambda: self._launcher.fork_step(number))
            for pid in pids or ():
                self._attach(pid)
            # as late as possible, while the tools wait at their gate
            self._when_possible(lambda: self._targets.check_before(step, pids or ()))
        except (EOFError, ConnectionError):
            return self._launcher_error()
        except CheckFailed as error:
            return TuiFsError(f"The targets could not be re-checked: {error}.", error.advice)
        except OSError as error:
            cause, advice = cause_of(error)
            kind = Missing if is_limit(error) else TuiFsError
            return kind(f"The tools could not be started: {cause}.", advice)
        except TuiFsError as error:
            return error
        if pids is None or self._is_cancelled:
            return None
        self._note(StepStarted(self._now(), number, pids))
        self._step_began = time.monotonic()
        self._selector.register(self._launcher, selectors.EVENT_READ, self._step_ended)
        if not self._has_begun:
            self._has_begun, self._use_before = True, processor_use()
        self._output.step_begins(self._plan.paths[step.targets[0]])
        next_sample = time.monotonic() + SAMPLE_EVERY_S
        try:
            self._throttle.step_begins()
            self._launcher.release()
            problem = self._launcher.give_up_rights(number)
            if problem:
                self._note(ToolSaid(self._now(), f"tui-fs: {problem}"))
            while len(self._ends) <= number:
                poll_interval_s = self._throttle.look(self._sampler.removed)
                self._wait(max(0.0, min(next_sample - time.monotonic(), poll_interval_s)))
                if time.monotonic() >= next_sample and len(self._ends) <= number:
                    self._cancel_if(self._targets.exchanged_reason(number))
                    self._measure()
                    if not self._throttle.is_paused and self._schedule.is_due(self._now()):
                        self._record_sample()
                    next_sample = time.monotonic() + SAMPLE_EVERY_S
        except (EOFError, ConnectionError):
            self._wall_s, self._step_began = self._strategy_s(), None
            return self._launcher_error()
        finally:
            self._selector.unregister(self._launcher)
        end = self._ends[number]
        self._targets.step_ended()
        self._unchecked_since = None
        self._pipes.read_all()
        self._output.step_ended(step.step, end.statuses)
        self._source.step_ended()
        self._wall_s += end.wall_s
        self._step_began = None
        self._sample()
        used = end.user_s, end.system_s, end.peak_memory_bytes
        self._note(StepFinished(self._now(), number, end.statuses, *used))
        return None

    def _when_possible(self, action: Callable[[], _Result]) -> _Result | None:
        """Return the result of an action, retried while a limit prevents it; None if cancelled.

        Raises:
            CheckFailed, OSError, TuiFsError: it fails for another reason, or for too long.
        """
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                return action()
            except (CheckFailed, OSError, TuiFsError) as error:
                is_passing = isinstance(error, CheckFailed) or is_limit(
                    error.__cause__ if isinstance(error, TuiFsError) else error
                )
                if not is_passing or time.monotonic() > deadline:
                    raise
            self._wait(RETRY_EVERY_S)
            if self._is_cancelled:
                return None

    def _attach(self, pid: int) -> None:
        """Count a process; once the job has begun, a failure is only noted."""
        try:
            self._when_possible(lambda: self._source.attach(pid))
        except TuiFsError as error:
            if not self._has_begun:
                raise
            self._has_uncounted = True
            self._note(
                ToolSaid(
                    self._now(), (f"tui-fs: the system calls of a tool cannot be counted: {error}")
                )
            )

    def _launcher_error(self) -> TuiFsError:
        if self._launcher.has_failed():
            log = displayable(self._log)
            return TuiFsError(
                "tui-fs itself failed: the process that runs the tools ended with an error, and "
                f"the tools were killed with it; see {log}."
            )
        return TuiFsError("The process that ran the tools was killed, and the tools with it.")

    def _wait(self, timeout_s: float) -> None:
        self._memory.check()
        is_check_due = self._targets.has_doubts and self._unchecked_since is None
        for key, _ in self._selector.select(0 if is_check_due else timeout_s):
            key.data()
        self._check_doubtful_targets()
        if self._throttle.pace.rate_per_s and not self._can_keep_rate():
            self._cancel("the system call counter was killed; the rate limit cannot be enforced")
        if self._termination.is_set:
            self._cancel("the supervisor received a termination signal")
        if self._record.is_lost:
            self._cancel(f"the journal could not be written: {self._record.problem}")

    def _can_keep_rate(self) -> bool:
        is_counted = self._source.is_whole and not self._has_uncounted
        return is_counted or self._launcher.takes_commands

    def _check_doubtful_targets(self) -> None:
        """Check doubtful targets; while that fails stop the tools, after `PATIENCE_S` cancel."""
        now_s = time.monotonic()
        if self._unchecked_since is not None and now_s < self._next_check_s:
            return
        try:
            self._cancel_if(self._targets.reason_to_end())
        except CheckFailed as error:
            self._next_check_s = now_s + RETRY_EVERY_S
            if self._unchecked_since is None:
                self._unchecked_since = now_s
                self._throttle.stop_for_check()
                text = f"tui-fs: the tools are stopped until the targets can be checked: {error}."
                self._note(ToolSaid(self._now(), text))
            elif now_s - self._unchecked_since > PATIENCE_S:
                advice = f" ({error.advice})" if error.advice else ""
                self._cancel(f"the targets could not be checked: {error}{advice}")
            return
        if self._unchecked_since is not None and not self._targets.has_doubts:
            self._unchecked_since = None
            self._throttle.continue_after_check()

    def _mounts_changed(self, mounts: MountWatch) -> None:
        """Mark targets for a check: the tools might descend into a new mount."""
        mounts.seen()
        if self._throttle.is_paused:
            return  # no tool runs, and `resume` checks again
        self._targets.mounts_changed(len(self._ends))

    def _step_ended(self) -> None:
        self._ends.append(self._launcher.ended())

    def _obey(self, command: Command, uid: int) -> str | None:
        if command.name == "cancel":
            self._cancel(f"cancelled by UID {uid}")
            return None
        if self._is_cancelled:
            return "The job is being cancelled."
        match command.name:
            case "pause":
                return self._pause()
            case "resume":
                return self._resume()
        return self._throttle.change(command)

    def _pause(self) -> str | None:
        if self._throttle.is_paused:
            return "The job is already paused."
        asked_at_s = self._now()
        all_stopped = self._throttle.pause()
        self._pipes.read_output()  # output from before the stop
        self._sample()
        self._note(Paused(self._now(), asked_at_s, all_stopped))
        return None

    def _resume(self) -> str | None:
        if not self._throttle.is_paused:
            return "The job is not paused."
        try:
            self._targets.check_ahead(len(self._ends))
        except CheckFailed as error:
            return f"The targets cannot be checked now: {error}. The job stays paused; try again."
        except TuiFsError as error:
            return f"{error} The job stays paused; cancel it."
        self._throttle.resume()
        self._note(Resumed(self._now()))
        return None

    def _cancel(self, reason: str) -> None:
        if not self._is_cancelled:
            self._is_cancelled = True
            with contextlib.suppress(ConnectionError):  # the launcher and its tools have died
                self._launcher.signal_tools(signal.SIGKILL)
            self._note(CancelRequested(self._now(), reason))

    def _cancel_if(self, reason: str | None) -> None:
        if reason is not None:
            self._cancel(reason)

    def _sample(self) -> None:
        self._measure()
        self._record_sample()

    def _measure(self) -> Sampled:
        sampled = self._sampler.whole_sample(self._now(), self._strategy_s())
        self._sampled = self._with_held_s(sampled)
        return self._sampled

    def _record_sample(self) -> None:
        for event in self._output.counted_failures(self._now()):
            self._note(event)
        sampled = self._sampled or self._measure()
        self._note(self._sampler.changes(replace(sampled, at_s=self._now())))
        self._schedule.recorded(sampled.at_s)

    def _answer_sample(self) -> Sequence[Event]:
        """Return events that a view needs and the journal lacks: counts, failures, a hold."""
        sampled = self._sampled
        if sampled is None or self._now() - sampled.at_s > SAMPLE_EVERY_S:
            sampled = self._measure()  # paused between two steps
        hold = self._throttle.hold
        # A view ignores a sample that is older than the last event of the journal.
        sampled = replace(sampled, at_s=self._now())
        failures = self._output.pending_failures(sampled.at_s)
        return (sampled, *failures) if hold is None else (hold, sampled, *failures)

    def _with_held_s(self, sampled: Sampled) -> Sampled:
        return replace(sampled, held_s=round(self._throttle.held_s, 3))

    def _strategy_s(self) -> float:
        began = self._step_began
        return self._wall_s + (time.monotonic() - began if began is not None else 0.0)

    def _finish(self, problem: TuiFsError | None) -> None:
        self._launcher.close()  # first: the targets must not change during verification
        machine = self._machine_use()
        self._pipes.read_all()
        self._memory.check()
        verification = verify(
            self._plan,
            self._target_fds,
            is_share_deleted=self._is_share_deleted(),
            tool_status=self._ends[-1].statuses[-1] if self._ends else None,
        )
        for event in self._output.withheld_failures(verification.left, self._now()):
            self._note(event)
        closing_since = time.monotonic()
        for target_fd in self._target_fds:
            os.close(target_fd)  # frees the space of a file
        self._wall_s += time.monotonic() - closing_since
        for place in self._sampler.places:
            measured(partial(settle, place))
        if self._source.kind in (TraceSource.STRACE, TraceSource.BPF):
            self._source.close()  # their tracers print the last counts when they end
        for event in self._output.counted_failures(self._now()):
            self._note(event)
        awaited = self._awaited_inodes()
        # Of a small job no difference is reported, so the space of late directories does not count.
        late = len(self._plan.targets) if self._space_watch.is_small else None
        last = self._sampler.last_sample(self._now(), self._wall_s, awaited, late)
        self._note(self._with_held_s(last))
        snapshot, after = self._record.snapshot, self._sampler.space
        is_counted = (
            self._source.is_whole and not self._has_uncounted and self._sampler.has_last_counts
        )
        end = outcome_of_job(
            self._plan, snapshot, verification, str(problem or ""), is_counted=is_counted
        )
        survivors = verification.survivors
        finished = JobFinished(
            at_s=self._now(),
            outcome=end.outcome,
            explanation=end.explanation,
            strategy_wall_s=self._wall_s,
            deleted_files=end.deleted_files,
            deleted_directories=end.deleted_directories,
            split_is_exact=end.split_is_exact,
            calls_are_whole=end.calls_are_whole,
            surviving_entries=survivors.entries if survivors else None,
            space=after,
            left=verification.left,
            unknown=verification.unknown,
            vanished=verification.vanished,
            shared=verification.shared,
            failed=snapshot.failed,
            deleted_entries=snapshot.removed.entries if snapshot.removed else None,
            machine=machine,
        )
        causes = measured(
            lambda: self._space_watch.causes(
                self._started.space,
                after,
                finished.reported_entries,
                is_finished=end.outcome is Outcome.DONE,
            )
        )
        self._record.finish(replace(finished, at_s=self._now(), space_causes=causes or ()))

    def _machine_use(self) -> MachineUse | None:
        before, after = self._use_before, processor_use()
        if before is None or after is None:
            return None
        busy_s, stolen_s = after.busy_s - before.busy_s, after.stolen_s - before.stolen_s
        return MachineUse(processors(), round(busy_s, 2), round(stolen_s, 2))

    def _is_share_deleted(self) -> bool:
        """Return whether all tools that delete a share have ended with success."""
        deleting = [number for number, step in enumerate(self._steps) if not step.is_rmdir]
        has_ended = all(number < len(self._ends) for number in deleting)
        is_share = self._plan.options.filters.share is not None
        return is_share and has_ended and not any(any(self._ends[n].statuses) for n in deleting)

    def _awaited_inodes(self) -> int | None:
        """Return the free inodes that are due at the end; None if Landlock does not delay them."""
        before = self._started.space
        if Mechanism.LANDLOCK not in self._plan.confined_by or before is None:
            return None
        removed = self._sampler.removed()
        number = self._plan.expected.totals.entries if removed is None else removed
        return (before.free_inodes or 0) + number

    def _note(self, event: Event) -> None:
        self._record.note(event)

    def _now(self) -> float:
        return self._record.now_s()


def run_job(folder: JobFolder, plan: Plan, record: JobRecord, forbidden: TuiFsError | None) -> None:
    """Prepare and run a plan.

    Args:
        forbidden: the error that forbids the whole job.
    """
    termination, memory = TerminationFlag(), MemoryReserve()
    own_nice = rank_above_the_tools()
    try:
        if forbidden is not None:
            raise forbidden
        prepared = prepare(plan, folder.empty_directory, own_nice)
        try:
            supervisor = Supervisor(folder, plan, prepared, record, own_nice, termination, memory)
        except (OSError, MemoryError) as error:
            prepared.launcher.close()
            raise preparation_error(error) from error
    except TuiFsError as error:
        record.refuse(error)
        notify_ready()
        return
    supervisor.run()


def _learn(plan: Plan, snapshot: Snapshot) -> None:
    """Refine the calibration by the time the job took."""
    finished = snapshot.finished
    is_short = finished is None or finished.strategy_wall_s < MIN_CONCLUSIVE_S
    if is_short or is_file(plan.targets):
        return  # importing the module would take longer than such a job
    try:
        from tui_fs.job.calibration.store import learn

        learn(plan, snapshot)
    except (OSError, MemoryError, ImportError, TuiFsError) as error:
        print(
            f"The measured time of the job could not be saved for estimates: {error}",
            file=sys.stderr,
        )  # in its log


def _prune() -> None:
    """Remove old jobs; ``tui-fs jobs --prune`` lists those that cannot be removed."""
    try:
        from tui_fs.job.retention import prune  # imported late: it would delay the start of the job

        prune()
    except (OSError, MemoryError, ImportError, TuiFsError) as error:
        print(f"Old jobs could not be removed: {error}", file=sys.stderr)  # in its log


def _register(folder: JobFolder, plan: Plan) -> tuple[SupervisorLock | None, TuiFsError | None]:
    """Take the lock of the job; return it, and the error that forbids the job, if any."""
    try:
        return register_or_refuse(folder, plan.targets)
    except BlockingIOError:
        raise  # another supervisor has the lock, and so owns the journal
    except JobFailed as error:
        return None, error
    except OSError as error:
        cause, advice = cause_of(error)
        sentence = f"It is not known whether another job works in the same directory: {cause}."
        return None, Missing(sentence, advice) if is_limit(error) else TuiFsError(sentence, advice)


def _open_log(path: str) -> None:
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    os.dup2(log, 2)
    os.close(log)


def main() -> None:
    """Detach, and run the job whose folder is the argument or sent by the starter."""
    path = sys.argv[1] if len(sys.argv) > 1 else receive_folder()
    if path is None:
        return
    folder = JobFolder(path)
    status = 1
    mark = CrashMark(folder.crash)
    try:
        if len(sys.argv) == 1:
            _open_log(folder.log)
        if os.fork():
            os._exit(0)  # the starter waits only for this process; its child is reparented
        for number in (signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        os.umask(0o077)
        plan = load_plan(folder)
        lock, forbidden = _register(folder, plan)
        record = JobRecord(folder, plan)
        run_job(folder, plan, record, forbidden)
        if lock is not None:
            lock.release()
        _learn(plan, record.snapshot)
        _prune()
        status = 0
    except BaseException as error:  # noqa: BLE001  a bug is logged; no caller may continue
        mark.leave(error)
        sys.excepthook(type(error), error, error.__traceback__)
    finally:
        # Exit without joining threads: the launcher sees its socket close and kills the tools. The
        # kernel closes the counters, 40 ms each, and no process waits for that.
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    main()
