"""The mount tables of containers and services, which have mount namespaces of their own."""

import errno
import os
from dataclasses import dataclass

from tui_fs.linux.mounts import KnownMounts, MountTable
from tui_fs.linux.process_files import name_and_user


@dataclass(frozen=True, slots=True)
class OtherNamespace:
    """A mount namespace, as one of its processes sees it.

    Attributes:
        command: as the process named itself: show it through `displayable` only.
        root: the path of its root directory for this process.
        mounts: those that our own namespace lacks, with those that they are on.
    """

    pid: int
    command: str
    root: str
    mounts: MountTable


def other_namespaces(
    own_mounts: MountTable, proc: str = "/proc"
) -> tuple[tuple[OtherNamespace, ...], int]:
    """Return the mount namespaces of running processes, and how many processes are out of reach.

    A process sees only the mounts below its root directory, so each pair of a namespace and a root
    directory is read once.

    Raises:
        BadInput: a mount table has a line that cannot be understood.
    """
    own, known = os.readlink(f"{proc}/self/ns/mnt"), KnownMounts(own_mounts)
    found: dict[tuple[str, str], OtherNamespace] = {}
    unseen = 0
    for pid in sorted(int(name) for name in os.listdir(proc) if name.isdigit()):
        folder = f"{proc}/{pid}"
        try:
            namespace = os.readlink(f"{folder}/ns/mnt")
            if namespace == own:
                continue
            key = namespace, _root_of(folder)
            if key not in found:
                mounts = known.read_others(f"{folder}/mountinfo")
                command, _ = name_and_user(folder)
                found[key] = OtherNamespace(pid, command, f"{folder}/root", mounts)
        except PermissionError:
            unseen += 1
        except OSError as error:
            # EINVAL: a process that ends has left its namespace, and keeps its folder for a moment.
            if error.errno not in (errno.ENOENT, errno.ESRCH, errno.EINVAL):
                raise
    return tuple(found.values()), unseen


def _root_of(folder: str) -> str:
    try:
        return os.readlink(f"{folder}/root")
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:  # longer than a page (fs/proc/base.c)
            raise
        return folder
