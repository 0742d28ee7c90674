"""Does what an experiment says: builds its trees, runs its steps in turn, tells what came out.

All of it happens in a scratch directory that is removed whatever happens. The tools run in a
directory that holds nothing but the tree and an empty directory; the trials alternate, round for
round, and what is counted runs once more before them, without being timed.
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
from tui_fs.lab.preparing import EMPTY, EVERY_NAME, TREE, Prepared, pipelines
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

_TELL_EVERY_S = 0.25
_LONGEST_OUTPUT, _LONGEST_COMPLAINT = 200, 100
_A_STEP = 2_000
"""So many entries' work is a step at least, for the progress bar."""
_COUNTING = {
    Counting.CALLS: (TraceSource.BPF, TraceSource.STRACE, TraceSource.PERF),
    Counting.TIMES: (TraceSource.BPF, TraceSource.STRACE),
}
"""bpftrace and strace count every call, the kernel's counters those they have names for."""
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class ExperimentRunner:
    """One run of an experiment.

    Args:
        folder: where files are kept that steps make for it.
        tell: takes the events, between the beginning and the end.
        goes_on: asked often; what it raises ends the run, and is raised after the clearing.

    Attributes:
        predicted: what the cost model expects of each strategy, by name, if the experiment is to
            teach it.
    """

    def __init__(
        self,
        prepared: Prepared,
        folder: str,
        tell: Callable[[LabEvent], None],
        goes_on: Callable[[], None],
    ) -> None:
        self._prepared = prepared
        self._folder = folder
        self._tell = tell
        self._goes_on = goes_on
        self._trials = prepared.trials_to_do()
        self._left_out = {one.key for one in prepared.plans if one.why_not}
        self._over: set[int] = set()
        self._unfit: dict[TraceSource, str] = {}
        self.predicted: dict[str, Estimate] = {}
        self._words = ""
        self._told_at_s = -math.inf
        self._work_done = 0.0
        self._work = sum(_work(trial) * ((_counts(trial)) + trial.rounds) for trial in self._trials)

    def run(self) -> None:
        """Do all of it, and clear away.

        Raises:
            OSError, TuiFsError: it cannot be done, or not be cleared away.
        """
        device = os.stat(self._prepared.directory).st_dev
        remove_left_over(device)
        scratch = Scratch(self._prepared.directory, device)
        try:
            with Places(scratch, self._trials) as places:
                self._rounds(places)
        finally:
            scratch.remove()

    def files(self) -> tuple[str, ...]:
        """Return the names of the files that were kept."""
        names = [name for trial in self._trials for step in trial.steps for name in step.keeps]
        return tuple(name for name in dict.fromkeys(names) if os.path.exists(self._kept(name)))

    def _rounds(self, places: Places) -> None:
        for number, trial in enumerate(self._trials):
            if _counts(trial):
                self._trial(places, number, trial, is_counted=True)
        trials = list(enumerate(self._trials))
        for round_number in range(max(trial.rounds for trial in self._trials)):
            # What a trial leaves to be done later, by the disk or the kernel, falls to the next.
            for number, trial in reversed(trials) if round_number % 2 else trials:
                if round_number < trial.rounds:
                    self._trial(places, number, trial, is_counted=False)

    def _trial(self, places: Places, number: int, trial: Trial, *, is_counted: bool) -> None:
        """Make a trial's tree, and do its steps, until one fails."""
        before = self._work_done
        if number not in self._over:
            with _room_for(places, trial.place) as (directory, path):
                self._build(directory, trial)
                if self._prepared.experiment.teaches and not self.predicted:
                    self.predicted = predictions(f"{path}/{TREE}")
                for step in trial.steps:
                    if step.key in self._left_out and trial.is_reading:
                        continue
                    if step.key in self._left_out:
                        break
                    if is_counted:
                        ended_well = self._count(step, directory)
                    else:
                        ended_well = self._time(step, directory, path)
                        if not ended_well and trial.is_reading:
                            self._left_out.add(step.key)
                            continue
                        if not ended_well:
                            self._over.add(number)
                    if not ended_well:
                        break  # the steps after it would not mean the same
                    self._work_done += _A_STEP
        self._work_done = before + _work(trial)

    def _build(self, directory: int, trial: Trial) -> None:
        for name in (TREE, EMPTY):
            os.mkdir(name, 0o755, dir_fd=directory)
        if trial.tree is None:
            return
        self._progress(f"making {trial.tree.words}", is_new=True)
        tree = os.open(TREE, _OPEN, dir_fd=directory)
        try:
            trial.tree.build(tree, self._tick)
        finally:
            os.close(tree)
        if trial.is_settled:
            write_out(directory)

    def _tick(self, entries: int) -> None:
        self._goes_on()
        self._work_done += entries
        self._progress(self._words)

    def _time(self, step: Step, directory: int, path: str) -> bool:
        """Do a step and tell what it took; return whether it ended well."""
        ended = self._measured(step, directory, open_source(TraceSource.OFF))
        why = _why_failed(step, ended)
        if why:
            self._tell(StepFailed(step.key, why))
            return False
        self._tell(StepRan(step.key, _run(ended)))
        if step.leaves:
            self._tell(StepLeft(step.key, _state(f"{path}/{step.leaves}")))
        return True

    def _count(self, step: Step, directory: int) -> bool:
        """Do a step of the round that counts; return whether those after it can be done, too."""
        if step.counting is Counting.NOTHING:
            ended = self._measured(step, directory, open_source(TraceSource.OFF))
            return not _why_failed(step, ended)
        for kind in _COUNTING[step.counting]:
            if kind in self._unfit:
                continue
            try:
                source = open_source(kind, sum(len(pipeline) for pipeline in step.commands))
                ended = self._measured(step, directory, source)
            except Missing as why:
                # bpftrace says so before anything ran; perf may later, but is the last to be tried
                self._unfit[kind] = str(why)
                continue
            why_failed = _why_failed(step, ended)
            if not why_failed and ended.counts.calls:
                self._tell(StepCounted(step.key, source.kind, ended.counts.calls))
            elif why_failed:
                self._note_uncounted(step, why_failed)
            else:
                self._unfit[kind] = f"{kind} has seen nothing of it."
                self._note_uncounted(step, self._unfit[kind])
            return not why_failed
        whys = " ".join(f"{kind}: {why}" for kind, why in self._unfit.items())
        self._note_uncounted(step, whys)
        return False

    def _note_uncounted(self, step: Step, why: str) -> None:
        self._tell(Noted(f"The system calls of {step.title} are not counted: {why}"))

    def _measured(self, step: Step, directory: int, source: CallSource) -> StepsEnd:
        is_off = source.kind is TraceSource.OFF
        doing = "running" if is_off else "counting the calls of"
        self._progress(f"{doing} {step.title}", is_new=True)
        if step.is_cold:
            drop_caches(directory)
        tree = os.open(TREE, _OPEN, dir_fd=directory) if step.is_in_tree else -1
        processors = os.sched_getaffinity(0)
        try:
            names = tuple(sorted(os.listdir(tree))) if _uses(step, EVERY_NAME) else ()
            pin = _tree_pin(directory) if _uses(step, PIN) else ""
            commands = pipelines(step, self._prepared.tools, self._folder, names, pin)
            if step.is_pinned:
                os.sched_setaffinity(0, {min(processors)})
            return run_steps(
                commands, tree if step.is_in_tree else directory, source, self._goes_on
            )
        finally:
            os.sched_setaffinity(0, processors)
            if tree >= 0:
                os.close(tree)

    def _progress(self, words: str, *, is_new: bool = False) -> None:
        self._words = words
        now = time.monotonic()
        if is_new or now >= self._told_at_s + _TELL_EVERY_S:
            self._told_at_s = now
            self._tell(Progressed(words, min(1.0, self._work_done / max(1.0, self._work))))

    def _kept(self, name: str) -> str:
        return os.path.join(self._folder, name)


@contextlib.contextmanager
def _room_for(places: Places, place: Place) -> Iterator[tuple[int, str]]:
    """Make a directory for a trial; give it open, with its path; remove it with all in it."""
    above = places.directory(place)
    spread_subdirectories(above)
    name = f"trial-{os.urandom(4).hex()}"  # ext4 chooses the place by the name
    os.mkdir(name, 0o700, dir_fd=above)
    directory = os.open(name, _OPEN, dir_fd=above)
    try:
        yield directory, f"{places.path(place)}/{name}"
    finally:
        try:
            _clear(directory, f"{places.path(place)}/{name}")
        finally:
            os.close(directory)
            os.rmdir(name, dir_fd=above)


def _uses(step: Step, word: str) -> bool:
    return any(word in argv for pipeline in step.commands for argv in pipeline)


def _tree_pin(directory: int) -> str:
    tree = os.open(TREE, _OPEN, dir_fd=directory)
    try:
        return pin_argument(pin_of(tree))
    finally:
        os.close(tree)


def _clear(directory: int, path: str) -> None:
    """Remove all that a trial has left: rm is quick at it, and what it leaves goes, too."""
    try:
        rm = find_tool("rm")
    except Missing:
        rm = None  # nothing can be started now; what follows needs no process
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


def _why_failed(step: Step, ended: StepsEnd) -> str:
    for pipeline, one in zip(step.commands, ended.steps, strict=True):
        for argv, status in zip(pipeline, one.statuses, strict=True):
            # Whoever writes to one that has read enough ends by this signal.
            allowed = step.expects if argv is pipeline[-1] else (0, -signal.SIGPIPE)
            if status in allowed:
                continue
            said = ended.errors.decode("utf-8", "replace").strip().splitlines()
            tool = argv[0]
            ended_so = f"with status {status}" if status >= 0 else f"by signal {-status}"
            about = f": {_beginning(said[0], _LONGEST_COMPLAINT)}" if said else ""
            return f"{tool} ended {ended_so}{about}"
    return ""


def _run(ended: StepsEnd) -> Run:
    lines = ended.output.decode("utf-8", "replace").strip().splitlines()
    return Run(
        seconds=sum(one.wall_s for one in ended.steps),
        user_s=sum(one.user_s for one in ended.steps),
        system_s=sum(one.system_s for one in ended.steps),
        peak_memory_bytes=max(one.peak_memory_bytes for one in ended.steps),
        minor_faults=sum(one.minor_faults for one in ended.steps),
        major_faults=sum(one.major_faults for one in ended.steps),
        output=_beginning(lines[0], _LONGEST_OUTPUT) if lines else "",
    )


def _beginning(line: str, longest: int) -> str:
    shown = harmless(line)
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}…"


def _state(path: str) -> FileState:
    status = os.lstat(path)
    return FileState(status.st_size, status.st_blocks * 512, extents_of(path))


def _counts(trial: Trial) -> bool:
    return any(step.counting is not Counting.NOTHING for step in trial.steps)


def _work(trial: Trial) -> float:
    """Return how much there is to do in a round, in entries made."""
    entries = 0 if trial.tree is None else trial.tree.entries
    return entries + len(trial.steps) * (_A_STEP + entries / 2)
