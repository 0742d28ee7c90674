"""Runs an experiment: builds its trees, runs its steps in turn, reports events.

Everything happens in a scratch directory that is removed in every case. The tools run in a
directory with nothing but the tree and an empty directory. The trials alternate, round by round;
steps that are counted run once more before that, without being timed.
"""

import contextlib
import math
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator

from tui_fs.job.launcher import StepsEnd, run_steps
from tui_fs.job.scratch import Scratch, empty_directory, remove_left_over
from tui_fs.lab.experiment import PIN, Counting, Place, Step, Trial
from tui_fs.lab.feedback import predictions
from tui_fs.lab.filesystems import Places
from tui_fs.lab.preparing import ALL_NAMES, EMPTY, TREE, Prepared, pipelines
from tui_fs.lab.results import (
    FileState,
    LabEvent,
    Noted,
    Progressed,
    Run,
    StepCounted,
    StepFailed,
    StepLeft,
    StepRan,
)
from tui_fs.linux.descriptors import closing
from tui_fs.linux.extents import extents_of
from tui_fs.linux.filesystem import drop_caches, write_out
from tui_fs.linux.pins import pin_of
from tui_fs.linux.statx import spread_subdirectories
from tui_fs.linux.tools import find_tool
from tui_fs.model.calls import TraceSource
from tui_fs.model.errors import Missing
from tui_fs.model.estimate import Estimate
from tui_fs.model.paths import harmless
from tui_fs.strategies.parallel import pin_argument
from tui_fs.tracing.select_source import open_source
from tui_fs.tracing.source import CallSource

_PROGRESS_INTERVAL_S = 0.25
_MAX_OUTPUT, _MAX_MESSAGE = 200, 100
_STEP_WORK = 2_000
"""A step counts as at least this many entries in the progress bar."""
_SOURCES = {
    Counting.CALLS: (TraceSource.BPF, TraceSource.STRACE, TraceSource.PERF),
    Counting.TIMES: (TraceSource.BPF, TraceSource.STRACE),
}
"""bpftrace and strace count every call, the kernel's counters those they have names for."""
_MAX_STRACE_ENTRIES = 1_000
"""bpftrace takes a second to start; strace counts the calls for this many names in that time."""
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class ExperimentRunner:
    """One run of an experiment.

    Args:
        folder: holds the files that steps keep.
        emit: takes the events between the beginning and the end.
        check_cancelled: called often; its exception ends the run, and is raised again after the
            scratch directory is removed.

    Attributes:
        predicted: the estimates of the strategies by name, if the experiment refines them.
    """

    def __init__(
        self,
        prepared: Prepared,
        folder: str,
        emit: Callable[[LabEvent], None],
        check_cancelled: Callable[[], None],
    ) -> None:
        self._prepared = prepared
        self._folder = folder
        self._emit = emit
        self._check_cancelled = check_cancelled
        self._trials = prepared.trials_to_do()
        self._left_out = {plan.key for plan in prepared.plans if plan.why_not}
        self._failed: set[int] = set()
        self._unusable: dict[TraceSource, str] = {}
        self.predicted: dict[str, Estimate] = {}
        self._activity = ""
        self._progress_at_s = -math.inf
        self._work_done = 0.0
        self._work = sum(_work(trial) * (_counts(trial) + trial.rounds) for trial in self._trials)

    def run(self) -> None:
        """Run all trials, and remove their trees and file systems.

        Raises:
            OSError, TuiFsError: a tree cannot be made, or something cannot be removed.
        """
        device = os.stat(self._prepared.directory).st_dev
        remove_left_over(device)
        scratch = Scratch(self._prepared.directory, device)
        try:
            with Places(scratch, self._trials) as places:
                self._run_rounds(places)
        finally:
            scratch.remove()

    def files(self) -> tuple[str, ...]:
        """Return the names of the files that steps have kept."""
        names = [name for trial in self._trials for step in trial.steps for name in step.keeps]
        return tuple(
            name
            for name in dict.fromkeys(names)
            if os.path.exists(os.path.join(self._folder, name))
        )

    def _run_rounds(self, places: Places) -> None:
        trials = list(enumerate(self._trials))
        for number, trial in trials:
            if _counts(trial):
                self._run_trial(places, number, trial, is_counted=True)
        for round_number in range(max(trial.rounds for trial in self._trials)):
            # Alternate, because the next trial pays for work left to the disk or the kernel.
            for number, trial in reversed(trials) if round_number % 2 else trials:
                if round_number < trial.rounds:
                    self._run_trial(places, number, trial, is_counted=False)

    def _run_trial(self, places: Places, number: int, trial: Trial, *, is_counted: bool) -> None:
        """Build the tree of a trial and run its steps, until one fails."""
        work_before = self._work_done
        if number not in self._failed:
            with _trial_directory(places, trial.place) as (directory, path):
                self._build(directory, trial)
                if self._prepared.experiment.refines_estimates and not self.predicted:
                    self.predicted = predictions(f"{path}/{TREE}")
                for step in trial.steps:
                    if step.key in self._left_out:
                        has_succeeded = False
                    elif is_counted:
                        has_succeeded = self._count(step, trial, directory)
                    else:
                        has_succeeded = self._time(step, directory, path)
                        if not has_succeeded and trial.is_reading:
                            self._left_out.add(step.key)
                        elif not has_succeeded:
                            self._failed.add(number)
                    if has_succeeded:
                        self._work_done += _STEP_WORK
                    elif not trial.is_reading:
                        break  # the steps after it depend on it
        self._work_done = work_before + _work(trial)

    def _build(self, directory: int, trial: Trial) -> None:
        for name in (TREE, EMPTY):
            os.mkdir(name, 0o755, dir_fd=directory)
        if trial.tree is None:
            return
        self._report_progress(f"making {trial.tree.words}", is_new=True)
        with closing(os.open(TREE, _OPEN, dir_fd=directory)) as tree:
            trial.tree.build(tree, self._tick)
        if trial.is_settled:
            write_out(directory)

    def _tick(self, entries: int) -> None:
        self._check_cancelled()
        self._work_done += entries
        self._report_progress(self._activity)

    def _time(self, step: Step, directory: int, path: str) -> bool:
        """Run a step and report its figures; return whether it succeeded."""
        ended = self._run_step(step, directory, open_source(TraceSource.OFF))
        failure = _failure(step, ended)
        if failure:
            self._emit(StepFailed(step.key, failure))
            return False
        self._emit(StepRan(step.key, _figures(ended)))
        if step.leaves:
            self._emit(StepLeft(step.key, _state(f"{path}/{step.leaves}")))
        return True

    def _count(self, step: Step, trial: Trial, directory: int) -> bool:
        """Run a step of the counting round; return whether the next steps can run."""
        if step.counting is Counting.NOTHING:
            ended = self._run_step(step, directory, open_source(TraceSource.OFF))
            return not _failure(step, ended)
        sources = _SOURCES[step.counting]
        is_small = trial.tree is not None and trial.tree.entries <= _MAX_STRACE_ENTRIES
        if is_small and step.counting is Counting.CALLS:
            sources = (TraceSource.STRACE, *sources)
        for kind in sources:
            if kind in self._unusable:
                continue
            try:
                source = open_source(kind, sum(len(pipeline) for pipeline in step.commands))
                ended = self._run_step(step, directory, source)
            except Missing as error:
                # bpftrace and strace raise it before anything has run; perf comes last
                self._unusable[kind] = str(error)
                continue
            failure = _failure(step, ended)
            if not failure and ended.counts.calls:
                self._emit(StepCounted(step.key, source.kind, ended.counts.calls))
            elif failure:
                self._note_uncounted(step, failure)
            else:
                self._unusable[kind] = f"{kind} recorded nothing."
                self._note_uncounted(step, self._unusable[kind])
            return not failure
        self._note_uncounted(
            step, " ".join(f"{kind}: {reason}" for kind, reason in self._unusable.items())
        )
        return False

    def _note_uncounted(self, step: Step, reason: str) -> None:
        self._emit(Noted(f"The system calls of {step.title} are not counted: {reason}"))

    def _run_step(self, step: Step, directory: int, source: CallSource) -> StepsEnd:
        is_off = source.kind is TraceSource.OFF
        activity = "running" if is_off else "counting the calls of"
        self._report_progress(f"{activity} {step.title}", step.key, is_new=True)
        if step.is_cold:
            drop_caches(directory)
        tree = os.open(TREE, _OPEN, dir_fd=directory) if step.is_in_tree else -1
        processors = os.sched_getaffinity(0)
        try:
            names = tuple(sorted(os.listdir(tree))) if _uses(step, ALL_NAMES) else ()
            pin = _tree_pin(directory) if _uses(step, PIN) else ""
            commands = pipelines(step, self._prepared.tools, self._folder, names, pin)
            if step.is_pinned:
                os.sched_setaffinity(0, {min(processors)})
            return run_steps(
                commands, tree if step.is_in_tree else directory, source, self._check_cancelled
            )
        finally:
            os.sched_setaffinity(0, processors)
            if tree >= 0:
                os.close(tree)

    def _report_progress(self, activity: str, key: str = "", *, is_new: bool = False) -> None:
        self._activity = activity
        now = time.monotonic()
        if is_new or now >= self._progress_at_s + _PROGRESS_INTERVAL_S:
            self._progress_at_s = now
            done = min(1.0, self._work_done / max(1.0, self._work))
            self._emit(Progressed(activity, done, key))


@contextlib.contextmanager
def _trial_directory(places: Places, place: Place) -> Iterator[tuple[int, str]]:
    """Make a directory for a trial; yield it open, with its path; remove it with all in it."""
    above = places.directory(place)
    spread_subdirectories(above)
    name = f"trial-{os.urandom(4).hex()}"  # ext4 chooses the block group by the name
    path = f"{places.path(place)}/{name}"
    os.mkdir(name, 0o700, dir_fd=above)
    directory = os.open(name, _OPEN, dir_fd=above)
    try:
        yield directory, path
    finally:
        try:
            _clear(directory, path)
        finally:
            os.close(directory)
            os.rmdir(name, dir_fd=above)


def _clear(directory: int, path: str) -> None:
    """Remove everything that a trial has left: first by rm, which is fast, then the rest."""
    try:
        rm = find_tool("rm")
    except Missing:
        rm = None  # no process can be started now; empty_directory needs none
    names = os.listdir(directory)
    if names and rm is not None and rm.is_gnu:
        command = [rm.path, "-rf", "--one-file-system", "--"]
        subprocess.run(
            [*command, *(f"{path}/{name}" for name in names)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    empty_directory(directory)


def _uses(step: Step, word: str) -> bool:
    return any(word in argv for pipeline in step.commands for argv in pipeline)


def _tree_pin(directory: int) -> str:
    with closing(os.open(TREE, _OPEN, dir_fd=directory)) as tree:
        return pin_argument(pin_of(tree))


def _failure(step: Step, ended: StepsEnd) -> str:
    """Return which tool failed and its first message; empty if none did."""
    for pipeline, step_end in zip(step.commands, ended.steps, strict=True):
        for argv, status in zip(pipeline, step_end.statuses, strict=True):
            # A tool whose reader has read enough ends by SIGPIPE.
            allowed = step.expects if argv is pipeline[-1] else (0, -signal.SIGPIPE)
            if status not in allowed:
                ending = f"with status {status}" if status >= 0 else f"by signal {-status}"
                lines = ended.errors.decode("utf-8", "replace").strip().splitlines()
                message = f": {_cut(lines[0], _MAX_MESSAGE)}" if lines else ""
                return f"{argv[0]} ended {ending}{message}"
    return ""


def _figures(ended: StepsEnd) -> Run:
    lines = ended.output.decode("utf-8", "replace").strip().splitlines()
    return Run(
        seconds=sum(step.wall_s for step in ended.steps),
        user_s=sum(step.user_s for step in ended.steps),
        system_s=sum(step.system_s for step in ended.steps),
        peak_memory_bytes=max(step.peak_memory_bytes for step in ended.steps),
        minor_faults=sum(step.minor_faults for step in ended.steps),
        major_faults=sum(step.major_faults for step in ended.steps),
        output=_cut(lines[0], _MAX_OUTPUT) if lines else "",
    )


def _cut(line: str, max_length: int) -> str:
    shown = harmless(line)
    return shown if len(shown) <= max_length else f"{shown[: max_length - 1]}…"


def _state(path: str) -> FileState:
    status = os.lstat(path)
    return FileState(status.st_size, status.st_blocks * 512, extents_of(path))


def _counts(trial: Trial) -> bool:
    return any(step.counting is not Counting.NOTHING for step in trial.steps)


def _work(trial: Trial) -> float:
    """Return the work of a round, in entries made."""
    entries = 0 if trial.tree is None else trial.tree.entries
    return entries + len(trial.steps) * (_STEP_WORK + entries / 2)
