"""Determine the figures this machine does not report: containers hide parts of /proc (proc(5))."""

import errno
import os
import re
from collections.abc import Collection, Iterator

from tui_fs.linux.kernel_files import content_of
from tui_fs.linux.memory import memory_room
from tui_fs.linux.pressure import io_pressure_percent
from tui_fs.model.figures import Figure, MissingFigure

_FIRST_BYTES = 4096
_DISK_BYTES = re.compile(rb"^read_bytes: \d+$", re.MULTILINE)
_HEADING = b"Filename"  # of /proc/swaps


def missing_figures(
    wanted: Collection[Figure] = frozenset(Figure), proc: str = "/proc"
) -> tuple[MissingFigure, ...]:
    """Return the wanted figures that cannot be measured on this machine."""
    missing = (MissingFigure(figure, reason) for figure, reason in _reasons(proc))
    return tuple(reported for reported in missing if reported.figure in wanted)


def _reasons(proc: str) -> Iterator[tuple[Figure, str]]:
    for name in ("io", "cpu"):
        path = f"{proc}/pressure/{name}"
        if io_pressure_percent(path) is None:
            yield Figure.PRESSURE, _reason(path, proc)
            break
    if _DISK_BYTES.search(content_of(f"{proc}/self/io", _FIRST_BYTES)) is None:
        yield Figure.DISK_BYTES, _reason(f"{proc}/self/io", proc)
    if memory_room(f"{proc}/meminfo", f"{proc}/self/cgroup") is None:
        yield Figure.MEMORY, _reason(f"{proc}/meminfo", proc)
    first = f"{proc}/1/stat"  # the first process of a PID namespace always exists
    if not content_of(first, _FIRST_BYTES):
        yield Figure.PROCESSES, f"{proc} is mounted with hidepid"
    if not content_of(f"{proc}/swaps", _FIRST_BYTES).startswith(_HEADING):
        yield Figure.SWAP, _reason(f"{proc}/swaps", proc)
    boot = f"{proc}/sys/kernel/random/boot_id"
    if not content_of(boot, _FIRST_BYTES).strip():
        yield Figure.BOOT, _reason(boot, proc)


def _reason(path: str, proc: str) -> str:
    """Return why a file lacks the expected content."""
    try:
        with open(path, "rb") as file:
            content = file.read(_FIRST_BYTES)
    except FileNotFoundError:
        if not os.path.lexists(f"{proc}/sys"):
            return f"subset=pid hides {path}"
        return f"{path} is missing"
    except OSError as error:
        if error.errno == errno.EOPNOTSUPP:
            return "the kernel was started without psi=1"
        return f"{path} cannot be read: {os.strerror(error.errno or 0)}"
    return f"{path} has unexpected content" if content else f"{path} is masked"
