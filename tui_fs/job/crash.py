"""The mark of a supervisor that ended by an error of its own, which a killed one cannot leave."""

import contextlib
import os

from tui_fs.job.store import JobFolder
from tui_fs.linux.limits import cause_of
from tui_fs.linux.resolve_path import open_regular
from tui_fs.model.errors import TuiFsError
from tui_fs.model.paths import harmless

_MARK_BYTES = 512


class CrashMark:
    """A file of blanks, made before it is needed: at a crash there may be no room or descriptor."""

    def __init__(self, folder: JobFolder) -> None:
        self._descriptor = -1
        with contextlib.suppress(OSError):  # then a crash is not told from a kill, but logged
            flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
            self._descriptor = os.open(folder.crash, flags, 0o600)
            os.pwrite(self._descriptor, b" " * _MARK_BYTES, 0)

    def leave(self, error: BaseException) -> None:
        """Write down what has ended this process."""
        sentence = _sentence(error).encode("utf-8", "replace")[: _MARK_BYTES - 1]
        with contextlib.suppress(OSError):  # the log has it too
            os.pwrite(self._descriptor, sentence + b"\n", 0)


def read_crash(folder: JobFolder) -> str:
    """Return what ended the supervisor of a job, in words; empty if it left no mark."""
    try:
        with open_regular(folder.crash) as file:
            mark = file.read(_MARK_BYTES)
    except OSError:
        return ""
    return harmless(mark.decode("utf-8", "replace").partition("\n")[0].strip())


def _sentence(error: BaseException) -> str:
    if isinstance(error, OSError | MemoryError | TuiFsError):
        return cause_of(error)[0].rstrip(".")
    return f"{type(error).__name__}: {error}".partition("\n")[0].rstrip(": .")
