"""Rules that forbid the deletion of a single file, in addition to those for all targets."""

import os
import stat
from collections.abc import Collection

from tui_fs.linux.descriptors import closing
from tui_fs.linux.external_uses import loop_file_identity, loop_files
from tui_fs.linux.mounts import MountTable, mount_of
from tui_fs.linux.pins import open_path_fd
from tui_fs.linux.statx import APPEND_ONLY, IMMUTABLE, attributes_at
from tui_fs.model.errors import Refused
from tui_fs.model.paths import PathStr, displayable, is_within, shell_quoted
from tui_fs.model.target import Pin

_SYSTEM_FILES_IN = frozenset(
    os.path.realpath(directory)
    for directory in (
        *("/bin", "/boot", "/dev", "/efi", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/sbin"),
        *("/usr/bin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec", "/usr/sbin"),
        *("/var/lib/dpkg", "/var/lib/rpm"),
    )
)
"""Directories whose own files a system needs to boot, to log in or to update."""


def check_file(
    path: PathStr,
    pin: Pin,
    mounts: MountTable,
    program_directories: Collection[str],
    needed: Collection[str],
) -> None:
    """Raise Refused if a rule forbids the deletion of a file.

    Args:
        path: canonical.
        program_directories: directories whose own files this program needs.
        needed: paths that this program uses; a symbolic link in one of them is needed, too.

    Raises:
        OSError: the file or its directory cannot be examined.
    """
    shown, above = displayable(path), os.path.dirname(path)
    if above in _SYSTEM_FILES_IN or above in map(os.path.realpath, program_directories):
        raise Refused(
            f"{shown} is directly in {displayable(above)}, whose files the system or tui-fs needs.",
            "To remove it, use your package manager.",
            rule="system",
        )
    for place in (*program_directories, *needed):
        if is_within(place, path):
            raise Refused(
                f"{shown} is part of the path {displayable(place)}, which tui-fs uses.",
                "Choose another file.",
                rule="in-use",
            )
    holder = mounts.by_id.get(pin.mount_id) or mount_of(path, mounts)
    if holder is not None and holder.may_not_answer:
        raise Refused(
            f"{shown} is on {displayable(holder.filesystem)}, where this machine cannot prove that "
            "the file it compares is the one that the server removes.",
            "Delete single files on the server itself, or with rm.",
            rule="served-file",
        )
    with closing(open_path_fd(above)) as parent:
        name = os.path.basename(path)
        is_regular = stat.S_ISREG(os.lstat(name, dir_fd=parent).st_mode)
        _check_attributes(path, attributes_at(parent, name))
        _check_attributes(above, attributes_at(parent, ""))
    # The kernel refuses to unlink an active swap file. The file behind a loop device may have
    # been attached by another of its names.
    for device in loop_files() if is_regular else ():
        if loop_file_identity(device) == (pin.device, pin.inode):
            raise Refused(
                f"{shown} is the file behind the loop device {displayable(device)}.",
                "Unmount the file system on it, then detach it: "
                f"{shell_quoted(('losetup', '--detach', device))}",
                rule="loop-file",
            )


def _check_attributes(place: str, attributes: int) -> None:
    for bit, word, letter in ((IMMUTABLE, "immutable", "i"), (APPEND_ONLY, "append-only", "a")):
        if attributes & bit:
            raise Refused(
                f"{displayable(place)} is {word}, so the kernel refuses the deletion.",
                f"To delete it, run as root: {shell_quoted(('chattr', f'-{letter}', place))}",
                rule="attributes",
            )
