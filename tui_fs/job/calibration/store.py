"""Stores calibrations, one file for each file system; picks and refines them, and remeasures."""

import contextlib
import fcntl
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tui_fs.estimate.calibration import Calibration, LearnedFactor
from tui_fs.estimate.time import typical
from tui_fs.job.store import is_private, read_json, require_private, state_directory, write_json
from tui_fs.job.time_comment import processor_wait_s
from tui_fs.linux.descriptors import closing
from tui_fs.linux.filesystem import FileSystem, file_system_of
from tui_fs.linux.interpreter import module_command
from tui_fs.linux.mounts import is_served
from tui_fs.linux.timeouts import is_readable
from tui_fs.model.calls import TraceSource
from tui_fs.model.codec import decode, encode
from tui_fs.model.errors import BadInput, TuiFsError
from tui_fs.model.estimate import Estimate
from tui_fs.model.eta import MIN_CONCLUSIVE_S
from tui_fs.model.outcome import Outcome
from tui_fs.model.plan import Plan
from tui_fs.model.snapshot import Snapshot
from tui_fs.model.strategy import Pace
from tui_fs.strategies.registry import STRATEGIES

FRESH_S = 30 * 86_400.0
"""A file system is remeasured after 30 days, or under another kernel."""
BRIEFLY_FRESH_S = 3_600.0
NOISE_DOUBTFUL = 1.5
"""A calibration with this much noise, or an incomplete one, is remeasured after an hour, and so is
that of a server, whose answers depend on its load."""

FACTOR_BELIEVED = 5.0
"""A larger deviation has another cause than wrong unit costs."""
MOST_OTHERS_SHARE = 0.05
"""Others may delete or create at most this share of the entries meanwhile."""

MOST_WAIT_SHARE = 0.2
"""A job that waited longer for processors says nothing about the costs on an idle machine."""

MEASURED_FROM_ENTRIES = 20_000
"""A measurement takes seconds; fewer entries are deleted within a quarter of a second."""
SERVED_FROM_ENTRIES = 500
"""Where a server has to answer, an entry may take milliseconds."""

_GIVE_UP_AFTER_S = 25.0
"""Later than the measuring process gives up by itself."""
_ENDS_WITHIN_S = 2.0
_LOOK_EVERY_S = 0.1
MEASURING = "until the running measurement ends"


class Known(Struct, frozen=True):
    """What is known about the cost of deleting on a file system.

    Attributes:
        is_of_this: the calibration was measured on this very file system.
        is_fresh: no measurement is due.
    """

    calibration: Calibration
    is_of_this: bool
    is_fresh: bool

    def rests_on(self, note: str = "") -> str:
        """Return the source of the figures, in words.

        Args:
            note: why nothing was measured now, or `MEASURING`.
        """
        kind, jobs = self.calibration.kind, self._jobs
        day = time.strftime("%Y-%m-%d", time.localtime(self.calibration.measured_at))
        if not self.calibration.measured_at:
            words, lack = f"typical figures for {kind}", ", not measured here"
        elif not self.is_of_this:
            words, lack = f"measurements of another {kind} ({day})", ", not of this one"
        else:
            words = f"small trees deleted on this file system ({day})"
            words += f" and {jobs} finished job{'s' if jobs > 1 else ''}" if jobs else ""
            lack = ", not measured again" if note else ""
        if note == MEASURING:
            return f"{words}, {note}"
        return f"{words}{lack} ({note.rstrip('.')})" if note else words + lack

    @property
    def _jobs(self) -> int:
        return sum(learned.jobs for learned in self.calibration.experience.values())


def load_calibration(filesystem: FileSystem) -> Known:
    """Return the best calibration: of this file system, of another of its type, or typical."""
    is_ours = is_private(_place())  # else another user may have written the files
    own = _load(_file_of(filesystem)) if is_ours else None
    if own is not None:
        is_same_kernel = own.kernel == os.uname().release
        is_sure = own.is_whole and own.noise < NOISE_DOUBTFUL and not is_served(filesystem.kind)
        most_s = FRESH_S if is_sure else BRIEFLY_FRESH_S
        is_young = 0 <= time.time() - own.measured_at < most_s
        return Known(own, True, is_young and is_same_kernel)
    stored = _all() if is_ours else ()
    alike = [calibration for calibration in stored if calibration.kind == filesystem.kind]
    if alike:
        return Known(max(alike, key=lambda calibration: calibration.measured_at), False, False)
    return Known(typical(filesystem.kind), False, False)


def keep(filesystem: FileSystem, calibration: Calibration) -> None:
    """Store the calibration of a file system.

    Raises:
        OSError, TuiFsError: it cannot be written.
    """
    if not filesystem.identity:
        raise TuiFsError("The file system does not answer.")
    with _exclusive_access():
        write_json(_file_of(filesystem), encode(calibration))


def learn(plan: Plan, ended: Snapshot) -> None:
    """Refine the unit costs of a strategy by a job that ran undisturbed to its end.

    Raises:
        OSError, TuiFsError: it cannot be written.
    """
    finished, predicted = ended.finished, plan.predicted
    if finished is None or predicted is None or not _is_informative(plan, ended):
        return
    refine(file_system_of(os.path.dirname(plan.paths[0])), predicted, finished.strategy_wall_s)


def refine(filesystem: FileSystem, predicted: Estimate, took_s: float) -> str:
    """Refine the unit costs of a strategy by the time it really took.

    Returns:
        The reason why nothing was learnt, as part of a sentence; empty if something was.

    Raises:
        OSError, TuiFsError: it cannot be written.
    """
    factor = took_s * predicted.learned_factor / predicted.seconds
    if not 1 / FACTOR_BELIEVED <= factor <= FACTOR_BELIEVED:
        return "the time deviates too much to be a calibration error"
    if not filesystem.identity:
        return "the file system does not answer"
    if is_served(filesystem.kind) and STRATEGIES[predicted.strategy].has_threads:
        return "behind a server, the gain of threads depends on the shape of the tree"
    with _exclusive_access():
        own = _load(_file_of(filesystem))
        if own is None:
            return "this file system was never measured"
        if own.measured_at != predicted.measured_at:
            return "the prediction used other unit costs"
        strategy = predicted.strategy
        refined = own.experience.get(strategy, LearnedFactor()).refined(factor)
        experience = {**own.experience, strategy: refined}
        write_json(_file_of(filesystem), encode(replace(own, experience=experience)))
    return ""


@contextlib.contextmanager
def _exclusive_access() -> Iterator[None]:
    """Lock the stored calibrations against other processes."""
    place = _place()
    require_private(place)
    with closing(os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)) as directory:
        fcntl.flock(directory, fcntl.LOCK_EX)
        yield


def _is_informative(plan: Plan, ended: Snapshot) -> bool:
    """Return whether the time of a job says something about the unit costs."""
    finished = ended.finished
    assert finished is not None
    is_plain = plan.expected.complete and not plan.options.filters.active
    is_one_device = len({target.pin.device for target in plan.targets}) == 1
    was_free = not (ended.paused_s or ended.held_s or ended.throttled or ended.pace != Pace())
    was_alone = processor_wait_s(ended) <= MOST_WAIT_SHARE * finished.strategy_wall_s
    is_long = finished.strategy_wall_s >= MIN_CONCLUSIVE_S
    free = (None, TraceSource.PERF, TraceSource.ENGINE, TraceSource.OFF)
    is_counted = plan.trace in free
    expected = plan.expected.totals.entries
    deleted = (finished.deleted_files or 0) + (finished.deleted_directories or 0)
    is_as_counted = abs(deleted - expected) <= MOST_OTHERS_SHARE * expected
    is_done = finished.outcome is Outcome.DONE and is_as_counted
    return (
        is_done and is_plain and is_one_device and was_free and was_alone and is_long and is_counted
    )


def _place() -> str:
    return os.path.join(state_directory(), "calibrations")


def _file_of(filesystem: FileSystem) -> str:
    return os.path.join(_place(), f"{filesystem.identity}.json")


def _all() -> Iterator[Calibration]:
    with contextlib.suppress(OSError):  # nothing was ever measured
        for name in sorted(os.listdir(_place())):
            if name.endswith(".json") and (calibration := _load(os.path.join(_place(), name))):
                yield calibration


def _load(path: str) -> Calibration | None:
    """Return a stored calibration; None if there is none, or only one of another version."""
    try:
        calibration = decode(Calibration, read_json(path))
    except BadInput:
        return None
    return calibration if set(calibration.prices) == set(map(str, STRATEGIES)) else None


def needs_measuring(target: str, entries: int) -> bool:
    """Return whether this many entries justify a measurement, and the last one is not fresh."""
    if entries < SERVED_FROM_ENTRIES:
        return False
    filesystem = file_system_of(target)
    if entries < MEASURED_FROM_ENTRIES and not is_served(filesystem.kind):
        return False
    return not load_calibration(filesystem).is_fresh


def measure(target: str, is_wanted: Callable[[], bool] = lambda: True) -> str:
    """Measure next to a target and store the calibration; return why that failed, empty if not.

    Args:
        is_wanted: called ten times a second; measuring ends as soon as it returns False.
    """
    try:
        calibrate(target, is_wanted)
    except TuiFsError as error:
        return error.sentence.rstrip(".")
    return ""


def calibrate(target: str, is_wanted: Callable[[], bool] = lambda: True) -> Calibration:
    """Measure on the file system of a target; store the calibration and return it.

    Raises:
        TuiFsError: the measurement failed; the sentence says why.
    """
    filesystem = file_system_of(target)
    command = module_command("tui_fs.job.calibration.child", target)
    try:
        process = subprocess.Popen(
            command,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        raise TuiFsError(f"tui-fs could not be started: {error.strerror}.") from error
    calibration = decode(Calibration, _awaited(process, is_wanted))
    try:
        keep(filesystem, calibration)
    except OSError as error:
        raise TuiFsError(f"The measurement cannot be stored: {error.strerror}.") from error
    return calibration


def _awaited(process: subprocess.Popen[bytes], is_wanted: Callable[[], bool]) -> dict[str, Any]:
    """Return the process's answer; on timeout terminate it and wait for `_ENDS_WITHIN_S`."""
    assert process.stdout is not None
    deadline = time.monotonic() + _GIVE_UP_AFTER_S
    try:
        with process.stdout:
            while not is_readable(process.stdout, _LOOK_EVERY_S):
                if not is_wanted():
                    raise TuiFsError("The measurement was interrupted.")
                if time.monotonic() > deadline:
                    raise TuiFsError("The file system does not answer.")
            text = process.stdout.read()
        process.wait(_ENDS_WITHIN_S)
    except (TuiFsError, KeyboardInterrupt):
        process.terminate()  # it removes its trees
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_ENDS_WITHIN_S)
        raise
    except subprocess.TimeoutExpired:
        raise TuiFsError("The trees of the measurement are still being removed.") from None
    try:
        answer: dict[str, Any] = json.loads(text)
    except ValueError:
        raise TuiFsError(f"The measurement ended with code {process.returncode}.") from None
    if "problem" in answer:
        raise TuiFsError(str(answer["problem"]))
    return answer
