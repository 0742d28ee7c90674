"""Have it measured what deleting costs beside a target, and wait for it, but not for ever."""

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from tui_fs.estimate.calibration import Calibration
from tui_fs.job.calibration.store import keep, load_calibration
from tui_fs.linux.filesystem import file_system_of
from tui_fs.linux.timeouts import is_readable
from tui_fs.model.codec import decode
from tui_fs.model.errors import TuiFsError

MEASURED_FROM_ENTRIES = 20_000
"""What is deleted in a quarter of a second is not worth measuring for several."""

_GIVE_UP_AFTER_S = 35.0
"""Later than the process that measures gives up by itself."""
_ENDS_WITHIN_S = 2.0
_LOOK_EVERY_S = 0.1


def needs_measuring(target: str, entries: int, *, is_cold: bool = False) -> bool:
    """Tell whether so many entries are worth it, and nobody has measured there lately.

    Args:
        is_cold: with cold caches, too.
    """
    if entries < MEASURED_FROM_ENTRIES:
        return False
    known = load_calibration(file_system_of(target))
    is_missing = is_cold and known.calibration.cold_name_s is None
    return not known.is_fresh or is_missing


def measure(
    target: str, is_wanted: Callable[[], bool] = lambda: True, *, is_cold: bool = False
) -> str:
    """Measure beside a target and keep what was found; return why it could not be, or nothing.

    Args:
        is_wanted: asked ten times a second; as soon as it says no, measuring ends.
        is_cold: drop the machine's caches and measure that, too.
    """
    try:
        calibrate(target, is_wanted, is_cold=is_cold)
    except TuiFsError as why:
        return why.sentence.rstrip(".")
    return ""


def calibrate(
    target: str, is_wanted: Callable[[], bool] = lambda: True, *, is_cold: bool = False
) -> Calibration:
    """Measure on the file system of a target, keep what was found, and return it.

    Raises:
        TuiFsError: it cannot be measured there; the sentence says why.
    """
    filesystem = file_system_of(target)
    command = [sys.executable, "-P", "-m", "tui_fs.job.calibration.child", target]
    command += ["--cold"] if is_cold else []
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
    found = decode(Calibration, _awaited(process, is_wanted))
    try:
        keep(filesystem, found)
    except OSError as error:
        raise TuiFsError(f"What was measured cannot be kept: {error.strerror}.") from error
    return found


def _awaited(process: subprocess.Popen[bytes], is_wanted: Callable[[], bool]) -> dict[str, Any]:
    """Return what the process tells; it is ended, but not awaited, where a file system hangs."""
    assert process.stdout is not None
    deadline = time.monotonic() + _GIVE_UP_AFTER_S
    try:
        with process.stdout:
            while not is_readable(process.stdout, _LOOK_EVERY_S):
                if not is_wanted():
                    raise TuiFsError("It was interrupted.")
                if time.monotonic() > deadline:
                    raise TuiFsError("The file system does not answer.")
            text = process.stdout.read()
        process.wait(_ENDS_WITHIN_S)
    except (TuiFsError, KeyboardInterrupt):
        process.terminate()  # it clears away
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_ENDS_WITHIN_S)
        raise
    except subprocess.TimeoutExpired:
        raise TuiFsError("What was made to measure is still being removed.") from None
    try:
        told: dict[str, Any] = json.loads(text)
    except ValueError:
        raise TuiFsError(f"Measuring ended with code {process.returncode}.") from None
    if "problem" in told:
        raise TuiFsError(str(told["problem"]))
    return told
