"""What every maintenance action shares: open the directory, block signals, report errors."""

import contextlib
import errno
import os
import signal
from collections.abc import Iterator

from tui_fs.job.path_safety import open_pinned
from tui_fs.job.permission import check_targets
from tui_fs.linux.external_uses import ExternalUses
from tui_fs.linux.mounts import has_lower_layers, mount_of, read_mounts
from tui_fs.maintenance import aside
from tui_fs.maintenance.open_users import OpenUsers
from tui_fs.maintenance.renames import DirEntryRef
from tui_fs.model.errors import Refused
from tui_fs.model.paths import PathStr, displayable, shell_quoted
from tui_fs.model.target import Target

_KEPT_OFF = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP}


def checked(path: str) -> Target:
    (target,) = check_targets([path])
    return target


@contextlib.contextmanager
def opened(target: Target) -> Iterator[tuple[int, int]]:
    """Give descriptors for reading of the directory that holds the target, and of the target."""
    with contextlib.ExitStack() as stack:
        with told("The directory cannot be opened"):
            pair = open_pinned(target)
            for descriptor in pair:
                stack.callback(os.close, descriptor)
            parent = aside.reopened(pair[0])
            stack.callback(os.close, parent)
            held = aside.reopened(pair[1])
            stack.callback(os.close, held)
        yield parent, held


def refuse_occupied(
    occupants: OpenUsers, *, are_accepted: bool = False, to_undo: bool = False
) -> None:
    """Raise Refused if somebody stands in a directory that is to be removed.

    Args:
        are_accepted: whoever stands in it may be left there.
    """
    if not occupants.found or are_accepted:
        return
    first = occupants.found[0]
    others = len({one.pid for one in occupants.found} - {first.pid})
    more = f" (and {others:,} more)" if others else ""
    raise Refused(
        f"Process {first.pid} ({displayable(first.name)}) {first.how}{more}: it would be left in "
        "a directory that is gone.",
        "Stop it first." if to_undo else "Stop it first, or add --accept-occupants.",
        rule="occupied",
    )


def refuse_used(path: PathStr) -> None:
    """Raise Refused if a directory that is to be removed is used elsewhere.

    The kernel detaches what other mount namespaces have mounted on a directory that is removed.
    """
    mounts = read_mounts()
    mount = mount_of(path, mounts)
    for use in ExternalUses.read(mounts).of(path, mount) if mount is not None else ():
        raise Refused(use.sentence, use.advice, rule=use.kind.value)


def spot(parent: int, path: PathStr) -> DirEntryRef:
    return DirEntryRef(parent, os.path.basename(path))


@contextlib.contextmanager
def told(what: str, path: str = "") -> Iterator[None]:
    """Make a refusal of what the kernel forbids.

    Args:
        path: of the directory that is renamed, if one is.
    """
    try:
        yield
    except OSError as error:
        if error.errno == errno.EXDEV and path:
            raise _cannot_be_renamed(path) from error
        reason = os.strerror(error.errno or 0)
        raise Refused(f"{what}: {reason}.", rule="system-call") from error


def _cannot_be_renamed(path: str) -> Refused:
    """Return the refusal for EXDEV, although the directory stays on its file system."""
    shown = displayable(path)
    if has_lower_layers(path, read_mounts()):
        return Refused(
            f"{shown} is in a lower layer of an overlay, which cannot rename it; nothing was "
            "changed.",
            "Delete it where it is: tui-fs delete. Or copy it with cp -a, and delete the original.",
            rule="system-call",
        )
    compare = shell_quoted(("lsattr", "-pd", os.path.dirname(path), path))
    return Refused(
        f"The file system does not rename {shown} here (EXDEV): most likely its quota project is "
        "not that of the directory that holds it. Nothing was changed.",
        f"Compare the projects: {compare}. Give it the same one: chattr -p NUMBER "
        f"{shell_quoted((path,))}",
        rule="system-call",
    )


def sync(parent: int) -> None:
    try:
        os.fsync(parent)
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise Refused(
            f"It was renamed, but the disk does not confirm it: {reason}.",
            "See the kernel log.",
            rule="sync",
        ) from error


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Hold off the signals that end a program while names are exchanged."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _KEPT_OFF)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
