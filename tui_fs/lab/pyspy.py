"""py-spy, which looks into Python processes: where it is installed, and a profile of one process.

It pauses what it looks at, a hundred times a second, so nothing is timed meanwhile.
"""

import contextlib
import ctypes
import importlib.metadata
import json
import os
import signal
import subprocess
import sysconfig
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tui_fs.job.store import made_private, state_directory
from tui_fs.linux.timeouts import is_readable
from tui_fs.linux.tools import find_tool
from tui_fs.model.codec import Json
from tui_fs.model.errors import BadInput, Missing, TuiFsError
from tui_fs.model.paths import displayable, harmless

TOOL = "py-spy"
RATE_PER_S = 100
PTRACE_SCOPE = "/proc/sys/kernel/yama/ptrace_scope"

_PR_SET_PTRACER = 0x5961_6D61  # linux/prctl.h
_GRACE_S = 20.0
"""To start, and to write what was seen."""
_LOOK_EVERY_S = 0.25
_ENDS_WITHIN_S = 5.0
_NOTHING_SEEN = "no stack counts found"
_PIECE_BYTES = 4_096


@dataclass(frozen=True, slots=True)
class Profile:
    """What was seen of a process.

    Attributes:
        raw: stacks with how often each was seen, as ``py-spy record -f raw`` writes them.
        folder: holds this as a file, and the speedscope file.
    """

    raw: str
    folder: str


def py_spy_path() -> str | None:
    """Return the absolute path of py-spy: beside this Python's scripts, or else on PATH."""
    beside = os.path.join(sysconfig.get_path("scripts"), TOOL)
    if os.path.isfile(beside) and os.access(beside, os.X_OK):
        return beside
    tool = find_tool(TOOL)
    return None if tool is None else tool.path


def py_spy_version() -> str:
    """Return the version of the installed package; empty where py-spy is from elsewhere."""
    try:
        return f"{TOOL} {importlib.metadata.version(TOOL)}"
    except importlib.metadata.PackageNotFoundError:
        return ""


def profile_itself(seconds: int, is_wanted: Callable[[], bool]) -> Profile:
    """Look at this process for some seconds and keep what was seen.

    Args:
        is_wanted: asked four times a second; as soon as it says no, looking ends.

    Raises:
        TuiFsError: it cannot be looked at, or is no longer wanted; says what would help.
    """
    program = py_spy_path()
    if program is None:
        raise Missing("py-spy is not installed.", "It comes with tui-fs: install tui-fs anew.")
    folder = _new_folder()
    file = os.path.join(folder, "tui-fs.speedscope.json")
    try:
        _record(program, seconds, file, is_wanted)
        raw = raw_of(_read(file), RATE_PER_S)
        with open(os.path.join(folder, "tui-fs.raw"), "x", encoding="utf-8") as kept:
            kept.write(raw)
    except OSError as error:
        _take_back(folder)
        raise TuiFsError(f"The profile cannot be kept: {error.strerror}.") from error
    except TuiFsError:
        _take_back(folder)
        raise
    return Profile(raw, folder)


def raw_of(speedscope: Json, rate_per_s: int) -> str:
    """Return the stacks of a speedscope file as ``py-spy record -f raw`` writes them.

    py-spy writes one of both at a time, and only speedscope keeps the order in time.

    Raises:
        BadInput: it is no such file.
    """
    seen: Counter[str] = Counter()
    try:
        frames = [_frame(one) for one in speedscope["shared"]["frames"]]
        for thread in speedscope["profiles"]:
            for stack, weight in zip(thread["samples"], thread["weights"], strict=True):
                times = max(1, round(weight * rate_per_s))
                seen[";".join(frames[number] for number in stack)] += times
    except (KeyError, TypeError, IndexError, ValueError) as error:
        raise BadInput("This is no speedscope file of sampled stacks.") from error
    return "".join(f"{stack} {times}\n" for stack, times in sorted(seen.items()) if stack)


def why_not_permitted(said: str, scope_path: str = PTRACE_SCOPE) -> TuiFsError:
    """Return what would permit py-spy to look at a process.

    Args:
        said: what py-spy has answered.
    """
    try:
        with open(scope_path, encoding="ascii") as file:
            scope = int(file.read())
    except (OSError, ValueError):
        scope = 0  # a kernel without Yama
    advice = "Start tui-fs as root to look at it; in a container, with the capability SYS_PTRACE."
    if scope:
        advice += f" Or let root set kernel.yama.ptrace_scope, which is {scope}, to 0."
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    answer = harmless(lines[0].removeprefix("Error: ").rstrip(".")) if lines else "no reason"
    return TuiFsError(f"py-spy may not look at tui-fs: {answer}.", advice)


def _record(program: str, seconds: int, file: str, is_wanted: Callable[[], bool]) -> None:
    command = [
        *(program, "record", "--pid", str(os.getpid()), "--duration", str(seconds)),
        *("--rate", str(RATE_PER_S), "--format", "speedscope", "--output", file),
    ]
    with _seen_by_descendants():
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        said = _awaited(process, time.monotonic() + seconds + _GRACE_S, is_wanted)
    if process.returncode and _NOTHING_SEEN in said.lower():
        raise TuiFsError(f"tui-fs did nothing at all in these {seconds} seconds.")
    if process.returncode or not os.path.exists(file):
        raise why_not_permitted(said)


def _awaited(
    process: "subprocess.Popen[bytes]", deadline: float, is_wanted: Callable[[], bool]
) -> str:
    """Return what the process has said, when it has ended."""
    assert process.stderr is not None
    said = b""
    with process.stderr:
        while True:
            if is_readable(process.stderr, _LOOK_EVERY_S):
                piece = os.read(process.stderr.fileno(), _PIECE_BYTES)
                if not piece:
                    break
                said += piece
            is_late = time.monotonic() > deadline
            if is_late or not is_wanted():
                _end(process)
                raise TuiFsError("py-spy does not end." if is_late else "It was interrupted.")
    process.wait()
    return said.decode("utf-8", "replace")


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End py-spy; by this signal it first lets go what it has stopped to look at."""
    process.send_signal(signal.SIGINT)
    try:
        process.wait(_ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextlib.contextmanager
def _seen_by_descendants() -> Iterator[None]:
    """Permit the processes that this one starts to look at it, where Yama asks for that.

    Yama takes a declared tracer and its descendants (security/yama/yama_lsm.c), and a process may
    declare itself. A kernel without Yama refuses the call, and does not ask either.
    """
    prctl = ctypes.CDLL(None).prctl
    prctl(_PR_SET_PTRACER, ctypes.c_ulong(os.getpid()), 0, 0, 0)
    try:
        yield
    finally:
        prctl(_PR_SET_PTRACER, ctypes.c_ulong(0), 0, 0, 0)


def _frame(frame: Json) -> str:
    place = frame.get("file") or ""
    line = frame.get("line")
    where = f"{place}:{line}" if line else place
    name = f"{frame['name']} ({where})" if where else str(frame["name"])
    return name.replace(";", ",")


def _read(path: str) -> Json:
    with open(path, encoding="utf-8") as file:
        try:
            return json.load(file)
        except ValueError as error:
            raise BadInput("py-spy has not written the whole file.") from error


def _new_folder() -> str:
    """Make a folder for a profile in the state directory, this user's alone."""
    lab = os.path.join(state_directory(), "lab")
    name = f"{time.strftime('%Y-%m-%d-%H%M%S')}-{os.urandom(2).hex()}"
    folder = os.path.join(lab, "self-profiles", name)
    try:
        if not made_private(lab):
            raise TuiFsError(f"{displayable(lab)} is not this user's alone.")
        os.makedirs(folder, mode=0o700)
    except OSError as error:
        raise TuiFsError(f"{displayable(lab)} cannot be made: {error.strerror}.") from error
    return folder


def _take_back(folder: str) -> None:
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            os.unlink(os.path.join(folder, name))
        os.rmdir(folder)
