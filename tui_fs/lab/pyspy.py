"""py-spy, which samples the stacks of Python processes: where it is installed, and a profile.

It pauses the process a hundred times a second, so nothing may be timed meanwhile.
"""

import contextlib
import ctypes
import importlib.metadata
import os
import signal
import subprocess
import sysconfig
import time
from collections.abc import Callable, Iterator

from msgspec import Struct

from tui_fs.job.store import require_private, state_directory
from tui_fs.linux.timeouts import is_readable
from tui_fs.linux.tools import find_tool
from tui_fs.model.errors import Missing, TuiFsError
from tui_fs.model.paths import displayable, harmless

TOOL = "py-spy"
RATE_PER_S = 100
PTRACE_SCOPE = "/proc/sys/kernel/yama/ptrace_scope"

_PR_SET_PTRACER = 0x5961_6D61  # linux/prctl.h
_START_AND_WRITE_S = 20.0
_POLL_INTERVAL_S = 0.25
_EXIT_LIMIT_S = 5.0
_NOTHING_SEEN = "no stack counts found"
_READ_BYTES = 4_096


class Profile(Struct, frozen=True):
    """Samples of a process.

    Attributes:
        raw: stacks with their numbers of samples, as ``py-spy record -f raw`` writes them.
        folder: holds the same stacks as a file, which speedscope reads.
    """

    raw: str
    folder: str


def py_spy_path() -> str | None:
    """Return the absolute path of py-spy: among this Python's scripts, or else on PATH."""
    script = os.path.join(sysconfig.get_path("scripts"), TOOL)
    if os.path.isfile(script) and os.access(script, os.X_OK):
        return script
    tool = find_tool(TOOL)
    return None if tool is None else tool.path


def py_spy_version() -> str:
    """Return the version of the installed package; empty where py-spy is from elsewhere."""
    try:
        return f"{TOOL} {importlib.metadata.version(TOOL)}"
    except importlib.metadata.PackageNotFoundError:
        return ""


def profile_itself(seconds: int, is_wanted: Callable[[], bool]) -> Profile:
    """Sample this process for some seconds and keep the stacks.

    Args:
        is_wanted: called four times a second; False ends the sampling.

    Raises:
        TuiFsError: py-spy may not trace it, or it is no longer wanted.
    """
    program = py_spy_path()
    if program is None:
        raise Missing("py-spy is not installed.", "It is part of tui-fs: reinstall tui-fs.")
    folder = _new_folder()
    path = os.path.join(folder, "tui-fs.raw")
    try:
        _record(program, seconds, path, is_wanted)
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return Profile(file.read(), folder)
    except (OSError, TuiFsError) as error:
        _remove_folder(folder)
        if isinstance(error, OSError):
            raise TuiFsError(f"The profile cannot be saved: {error.strerror}.") from error
        raise


def not_permitted(message: str, scope_path: str = PTRACE_SCOPE) -> TuiFsError:
    """Return an error that names how to permit py-spy to trace a process.

    Args:
        message: of py-spy.
    """
    try:
        with open(scope_path, encoding="ascii") as file:
            scope = int(file.read())
    except (OSError, ValueError):
        scope = 0  # a kernel without Yama
    advice = "Start tui-fs as root to profile it; in a container, with the capability SYS_PTRACE."
    if scope:
        advice += f" Or, as root, set kernel.yama.ptrace_scope to 0 (it is {scope})."
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    answer = harmless(lines[0].removeprefix("Error: ").rstrip(".")) if lines else "no reason given"
    return TuiFsError(f"py-spy is not permitted to profile tui-fs: {answer}.", advice)


def _record(program: str, seconds: int, path: str, is_wanted: Callable[[], bool]) -> None:
    command = [
        *(program, "record", "--pid", str(os.getpid()), "--duration", str(seconds)),
        *("--rate", str(RATE_PER_S), "--format", "raw", "--output", path),
    ]
    with _traceable_by_descendants():
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        message = _wait_for(process, time.monotonic() + seconds + _START_AND_WRITE_S, is_wanted)
    if process.returncode and _NOTHING_SEEN in message.lower():
        raise TuiFsError(f"tui-fs was idle for all {seconds} seconds: there is nothing to profile.")
    if process.returncode or not os.path.exists(path):
        raise not_permitted(message)


def _wait_for(
    process: "subprocess.Popen[bytes]", deadline: float, is_wanted: Callable[[], bool]
) -> str:
    """Return the standard error of the process, when it has ended."""
    assert process.stderr is not None
    message = b""
    with process.stderr:
        while True:
            if is_readable(process.stderr, _POLL_INTERVAL_S):
                chunk = os.read(process.stderr.fileno(), _READ_BYTES)
                if not chunk:
                    break
                message += chunk
            is_late = time.monotonic() > deadline
            if is_late or not is_wanted():
                _stop(process)
                raise TuiFsError(
                    "py-spy did not end in time and was stopped."
                    if is_late
                    else "The profile was interrupted."
                )
    process.wait()
    return message.decode("utf-8", "replace")


def _stop(process: "subprocess.Popen[bytes]") -> None:
    """Stop py-spy; on SIGINT it resumes the process that it has paused."""
    process.send_signal(signal.SIGINT)
    try:
        process.wait(_EXIT_LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextlib.contextmanager
def _traceable_by_descendants() -> Iterator[None]:
    """Permit the processes that this one starts to trace it, where Yama requires it.

    Yama accepts a declared tracer and its descendants (security/yama/yama_lsm.c), and a process
    may declare itself. A kernel without Yama refuses the call and does not require it.
    """
    prctl = ctypes.CDLL(None).prctl
    prctl(_PR_SET_PTRACER, ctypes.c_ulong(os.getpid()), 0, 0, 0)
    try:
        yield
    finally:
        prctl(_PR_SET_PTRACER, ctypes.c_ulong(0), 0, 0, 0)


def _new_folder() -> str:
    """Make a folder for a profile in the state directory, this user's alone."""
    lab = os.path.join(state_directory(), "lab")
    name = f"{time.strftime('%Y-%m-%d-%H%M%S')}-{os.urandom(2).hex()}"
    folder = os.path.join(lab, "self-profiles", name)
    try:
        require_private(lab)
        os.makedirs(folder, mode=0o700)
    except OSError as error:
        raise TuiFsError(f"{displayable(lab)} cannot be created: {error.strerror}.") from error
    return folder


def _remove_folder(folder: str) -> None:
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            os.unlink(os.path.join(folder, name))
        os.rmdir(folder)
