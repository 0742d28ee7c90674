"""Files that the kernel itself uses: those behind loop devices, and swap files."""

import fcntl
import os
import struct

from tui_fs.linux.mounts import unescaped
from tui_fs.model.paths import PathStr

_LOOP_GET_STATUS64 = 0x4C05  # linux/loop.h
_LOOP_INFO64_BYTES = 232
_BLOCKS = "/sys/block"
_SWAPS = "/proc/swaps"


def loop_files() -> dict[str, PathStr]:
    """Return the file behind each attached loop device, as the kernel names it."""
    files: dict[str, PathStr] = {}
    try:
        names = os.listdir(_BLOCKS)
    except FileNotFoundError:
        return files  # without sysfs
    for name in names:
        try:
            with open(f"{_BLOCKS}/{name}/loop/backing_file", "rb") as file:
                files[f"/dev/{name}"] = PathStr(os.fsdecode(file.read().removesuffix(b"\n")))
        except (FileNotFoundError, NotADirectoryError):
            continue  # no loop device, or it was detached
    return files


def loop_file_identity(device: str) -> tuple[int, int] | None:
    """Return device and inode of the file behind a loop device, None if this user may not ask."""
    try:
        descriptor = os.open(device, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None  # no permission, or a container without the node
    try:
        status = fcntl.ioctl(descriptor, _LOOP_GET_STATUS64, bytes(_LOOP_INFO64_BYTES))
    except OSError:
        return None  # it was detached
    finally:
        os.close(descriptor)
    device_number, inode = struct.unpack_from("=QQ", status)
    return device_number, inode


def swap_files() -> list[PathStr]:
    """Return the files and devices that the kernel swaps to."""
    try:
        with open(_SWAPS, "rb") as table:
            lines = table.read().split(b"\n")[1:-1]
    except FileNotFoundError:
        return []  # a kernel without swapping
    return [unescaped(line.split(None, 1)[0]) for line in lines]
