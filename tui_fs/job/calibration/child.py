"""The process that measures what deleting costs: it makes and deletes small trees.

`tui_fs.job.calibration.runner` runs it as ``python -m tui_fs.job.calibration.child TARGET
[--cold]``. This process only waits and removes what is left; a forked one measures. Killing
either leaves nothing behind; what killing both leaves is removed by the next measurement.
"""

import contextlib
import fcntl
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NoReturn

from tui_fs.estimate.calibration import Calibration, fit
from tui_fs.estimate.time import typical
from tui_fs.job.calibration.fixtures import SmallTrees
from tui_fs.job.conflicts import alone, check_conflicts
from tui_fs.job.permission import refuse_scratch
from tui_fs.job.scratch import Scratch, place_beside, remove_left_over
from tui_fs.job.store import made_private, state_directory
from tui_fs.linux.filesystem import DROP_CACHES, FileSystem, file_system_of
from tui_fs.linux.memory import children_of
from tui_fs.linux.mounts import foreign_mount_on_way, read_mounts
from tui_fs.linux.pins import take_pin
from tui_fs.linux.processes import set_child_subreaper
from tui_fs.linux.timeouts import is_readable
from tui_fs.model.codec import encode
from tui_fs.model.errors import Refused, TuiFsError
from tui_fs.model.paths import PathStr, displayable
from tui_fs.model.target import Target
from tui_fs.model.units import bytes_iec, count, counted
from tui_fs.safety.policy import read_policy
from tui_fs.strategies.registry import STRATEGIES
from tui_fs.tracing.perf import allow_more_descriptors

LIMIT_S = 8.0
"""After so long no further tree is timed."""
COLD_LIMIT_S = 10.0
COUNTING_LIMIT_S = 15.0
"""And after so long none is counted."""
_KILL_AFTER_S = LIMIT_S + COLD_LIMIT_S + COUNTING_LIMIT_S + 9.0
_ENDS_WITHIN_S = 2.0
_LOOK_EVERY_S = 0.001
_LEAST_AVAILABLE_BYTES = 512 << 20
_LEAST_FREE_INODES = 20_000
_LEAST_FREE_SHARE = 0.02
_DESCRIPTORS = 2_000
_ANSWER_BYTES = 1 << 16
_ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def why_not(filesystem: FileSystem, place: str | None) -> str | None:
    """Return why nothing can be measured there, None if it can.

    Args:
        place: where the trees would be made, None if no directory suits.
    """
    if filesystem.is_read_only:
        return "the file system is read-only"
    if place is None:
        return "no directory above it is this user's to write in, and nobody else's"
    available, free = filesystem.available_bytes, filesystem.free_inodes
    if available is None:
        return "the file system does not tell its free space"
    needed = _needed(filesystem.total_bytes, _LEAST_AVAILABLE_BYTES)
    if available < needed:
        return f"it needs {bytes_iec(needed)} of free space, and {bytes_iec(available)} are free"
    needed = _needed(filesystem.total_inodes, _LEAST_FREE_INODES)
    if free is not None and free < needed:
        return f"it needs {count(needed)} free inodes, and {counted(free, 'is', 'are')} free"
    return None


def _forbidden_by_policy() -> str | None:
    reason = read_policy(known_strategies=STRATEGIES).read_only
    return None if reason is None else f"{reason} allows no writing"


def _needed(total: int | None, least: int) -> int:
    return max(least, int((total or 0) * _LEAST_FREE_SHARE))


def _measure(
    scratch: Scratch, filesystem: FileSystem, parent: int, *, is_cold: bool
) -> Calibration:
    deadline = time.monotonic() + LIMIT_S
    allow_more_descriptors(_DESCRIPTORS)

    def goes_on() -> bool:
        return time.monotonic() < deadline and os.getppid() == parent

    foreign = foreign_mount_on_way(scratch.path, read_mounts())
    trees = SmallTrees(
        scratch.descriptor, scratch.path, goes_on, is_exchangeable=foreign is not None
    )
    samples = list(trees.samples())
    is_whole = trees.is_whole
    if is_cold:
        deadline += COLD_LIMIT_S
        samples += trees.cold_samples()
    deadline += COUNTING_LIMIT_S
    kind = filesystem.kind
    found = fit(samples, typical(kind), time.time(), os.uname().release, is_whole=is_whole)
    return replace(found, counted=trees.counted())


def _measure_in_child(
    scratch: Scratch, filesystem: FileSystem, answer: int, parent: int, *, is_cold: bool
) -> NoReturn:
    """In the forked child: tell what was found, or what prevented it."""
    code = 1
    try:
        for number in _ENDING:
            signal.signal(number, signal.SIG_DFL)
        try:
            told = encode(_measure(scratch, filesystem, parent, is_cold=is_cold))
        except (OSError, EOFError, TuiFsError) as error:
            told = _problem(error)
        os.write(answer, json.dumps(told).encode())
        code = 0
    except BaseException:  # noqa: BLE001  nothing may run on in a copy of the parent
        traceback.print_exc()
    finally:
        try:
            if os.getppid() != parent:
                scratch.remove()
        finally:
            os._exit(code)


def _told(target: str, *, is_cold: bool) -> dict[str, Any]:
    """Have a child measure, and clear away after it."""
    filesystem, place = file_system_of(target), place_beside(target)
    why = why_not(filesystem, place)
    why = why or _forbidden_by_policy()
    if is_cold and not os.access(DROP_CACHES, os.W_OK):
        why = why or "only root can drop the caches"
    if why is not None or place is None:
        return {"problem": f"{why}."}
    refuse_scratch(PathStr(place))
    set_child_subreaper()
    device = os.lstat(target).st_dev
    with _only_one(), alone():
        check_conflicts((Target(place, take_pin(place)),))
        remove_left_over(device)
        scratch = Scratch(place, device)
    child, parent = 0, os.getpid()
    try:
        answers, answer = os.pipe()
        child = os.fork()
        if child == 0:
            _measure_in_child(scratch, filesystem, answer, parent, is_cold=is_cold)
        os.close(answer)
        if not is_readable(answers, _KILL_AFTER_S):
            return {"problem": "the file system is too slow to be measured"}
        text = os.read(answers, _ANSWER_BYTES)
        return json.loads(text) if text else {"problem": "measuring was ended"}
    finally:
        for number in _ENDING:
            signal.signal(number, signal.SIG_IGN)  # nothing may disturb the clearing
        if not child or _end_children(child):
            scratch.remove()


def _end_children(child: int) -> bool:
    """Kill the child and what it has started; tell whether all have ended."""
    deadline = time.monotonic() + _ENDS_WITHIN_S
    os.kill(child, signal.SIGKILL)
    while time.monotonic() < deadline:
        try:
            ended, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return True
        if not ended:
            for orphan in children_of(os.getpid()):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(orphan, signal.SIGKILL)
            time.sleep(_LOOK_EVERY_S)
    return False


@contextlib.contextmanager
def _only_one() -> Iterator[None]:
    """Let no second measurement of this user's begin; Refused if one is under way."""
    state = state_directory()
    if not made_private(os.path.join(state, "calibrations")):
        raise Refused(f"{displayable(state)} is not this user's alone.")
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    lock = os.open(os.path.join(state, "measuring"), flags, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise Refused("Another measurement is under way.") from None
    yield  # held until this process ends: while it measures, and while it clears away


def _problem(error: OSError | EOFError | TuiFsError) -> dict[str, Any]:
    if isinstance(error, TuiFsError):
        return {"problem": error.sentence}
    return {"problem": getattr(error, "strerror", None) or str(error) or "a process was killed"}


def _end(*_: object) -> NoReturn:
    for number in _ENDING:
        signal.signal(number, signal.SIG_IGN)
    raise SystemExit(1)


def main() -> None:
    """Measure beside the target named on the command line, and print what was found."""
    for number in _ENDING:
        signal.signal(number, _end)
    try:
        told = _told(sys.argv[1], is_cold="--cold" in sys.argv[2:])
    except (OSError, TuiFsError) as error:
        told = _problem(error)
    print(json.dumps(told))


if __name__ == "__main__":
    main()
