"""Where a path leads: to a target only through links that the user and root alone can make."""

import contextlib
import errno
import os
import stat
from collections import deque
from collections.abc import Collection
from typing import BinaryIO

from tui_fs.linux.limits import is_limit
from tui_fs.linux.mounts import MountTable, read_mounts
from tui_fs.linux.permissions import ROOT, others_may_replace
from tui_fs.linux.pins import open_path_fd, pin_of
from tui_fs.model.errors import BadInput, Refused, cannot_examine
from tui_fs.model.paths import PathStr, displayable, is_within
from tui_fs.model.target import Pin

_MAX_LINKS = 40  # path_resolution(7)


def absolute(path: str) -> str:
    """Return a path that starts at the root; `..` and symbolic links stay in it.

    Raises:
        BadInput: the path is relative, and the current directory has no path any more.
    """
    if path.startswith("/"):
        return path
    try:
        return os.path.join(os.getcwd(), path)
    except FileNotFoundError as error:
        raise BadInput(
            f"{displayable(path)} is relative to the current directory, which was deleted or "
            "cannot be reached from /.",
            "Use an absolute path.",
        ) from error


def open_canonical(path: str, by_text: str) -> tuple[PathStr, int]:
    """Open the directory that the kernel reaches by a path.

    The text of a path can name another directory: links of /proc lead into other mount namespaces,
    and the current directory may be covered by a mount since it was entered.

    Args:
        path: as the user gave it; not followed if it is itself a symbolic link.
        by_text: its canonical form as far as the text shows, without links: it must lead to the
            same directory.

    Returns:
        The canonical path, in the kernel's spelling (which file systems that ignore case may
        spell differently than `path`) unless /proc is not mounted or the path is longer than
        the kernel reports (PATH_MAX), and a descriptor (O_PATH).

    Raises:
        OSError: it cannot be opened, is a symbolic link or no directory.
        Refused: `by_text` does not lead to that directory.
    """
    flags = os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC
    descriptor = os.open(path, flags)
    try:
        pin = pin_of(descriptor)
        # First of all: between the reading of `by_text` and the opening a link may have been
        # exchanged for the directory, and the path of where that leads is canonical, too.
        if not _leads_to(by_text, pin):
            raise Refused(
                f"{displayable(path)} and {displayable(by_text)} are different directories: the "
                "first is in another mount namespace, is covered by a mount, or was replaced.",
                "Use a path that leads to the directory from / in this mount namespace.",
                rule="path",
            )
        with contextlib.suppress(OSError):
            spelled = os.readlink(f"/proc/self/fd/{descriptor}")
            if _leads_to(spelled, pin):
                return PathStr(spelled), descriptor
        return PathStr(by_text), descriptor
    except BaseException:
        os.close(descriptor)
        raise


def _leads_to(path: str, pin: Pin) -> bool:
    if not path.startswith("/"):
        return False
    try:
        descriptor = open_path_fd(path)
    except OSError as error:
        if is_limit(error):
            raise
        return False
    try:
        return pin_of(descriptor) == pin
    finally:
        os.close(descriptor)


def canonical_directory(path: str) -> PathStr:
    """Return the canonical path of a directory that is only going to be read.

    Links on the way are followed, no matter who can change them.

    Raises:
        BadInput: it is a symbolic link, no directory, or cannot be examined.
        Refused: see `open_canonical`.
    """
    shown = displayable(path)
    stripped = path.rstrip("/") or "/"
    try:
        if os.path.islink(stripped):
            raise BadInput(
                f"{shown} is a symbolic link to {displayable(os.readlink(stripped))}.",
                "Links are not followed. Use the path of the directory itself.",
            )
        canonical_path, descriptor = open_canonical(stripped, os.path.realpath(absolute(stripped)))
    except OSError as error:
        raise cannot_examine(path, error) from error
    os.close(descriptor)
    return canonical_path


def resolve(path: str, mounts: MountTable | None = None) -> PathStr:
    """Return the canonical path of an existing directory, as its text and its links give it.

    The way is walked by descriptors, and each link is judged as it is read: whoever can exchange
    a link decides what is at its end.

    Args:
        mounts: the mount table; None to read it if there is a link on the way.

    Raises:
        OSError: a part of the way is not there or no directory.
        BadInput: see `absolute`.
        Refused: it leads through a link that a user other than this one and root can change.
    """
    uid = os.geteuid()
    flags = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
    path_fds = [os.open("/", flags)]
    names: list[str] = []
    waiting = deque(absolute(path).split("/"))
    links = 0
    try:
        while waiting:
            name = waiting.popleft()
            if name in ("", "."):
                continue
            if name == "..":
                if names:
                    names.pop()
                    os.close(path_fds.pop())
                continue
            child = os.open(name, flags, dir_fd=path_fds[-1])
            status = os.fstat(child)
            if not stat.S_ISLNK(status.st_mode):
                names.append(name)
                path_fds.append(child)
                continue
            text = os.readlink("", dir_fd=child)
            os.close(child)
            links += 1
            shown = displayable("/" + "/".join([*names, name]))
            if links > _MAX_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), shown)
            mounts = mounts or read_mounts()
            if _is_changeable(status, path_fds[-1], uid, mounts):
                raise Refused(
                    f"{shown} is a symbolic link that somebody other than you and root can change.",
                    "Name the directory by the path it really has.",
                    rule="symlink",
                )
            if text.startswith("/"):
                names.clear()
                while len(path_fds) > 1:
                    os.close(path_fds.pop())
            waiting.extendleft(reversed(text.split("/")))
    finally:
        for descriptor in path_fds:
            os.close(descriptor)
    return PathStr("/" + "/".join(names))


def _is_changeable(link: os.stat_result, directory: int, uid: int, mounts: MountTable) -> bool:
    """Return whether a user other than `uid` and root can change where a link leads.

    Args:
        directory: a descriptor (O_PATH) of the directory that holds it.
    """
    if link.st_uid not in (ROOT, uid):
        return True
    # The kernel reads no attribute of a descriptor of O_PATH itself (open(2)).
    location = f"/proc/self/fd/{directory}/."
    if others_may_replace(os.fstat(directory), link, uid, location):
        return True
    mount = mounts.by_id.get(pin_of(directory).mount_id)
    return mount is not None and mount.is_served_by_other(uid)


def canonical(path: str, silent: Collection[str]) -> PathStr:
    """Return the canonical path of what need not exist, as ``os.path.realpath`` does.

    Args:
        silent: directories that are not read, nor anything in them: such a path is taken as
            it is written.
    """
    path = absolute(path)
    if not silent:
        return PathStr(os.path.realpath(path))
    names: list[str] = []
    waiting = deque(path.split("/"))
    links = 0
    while waiting:
        name = waiting.popleft()
        if name in ("", "."):
            continue
        if name == "..":
            del names[-1:]
            continue
        names.append(name)
        here = "/" + "/".join(names)
        if lies_in(here, silent) or links > _MAX_LINKS:
            return PathStr(os.path.normpath("/".join([here, *waiting])))
        try:
            text = os.readlink(here)
        except OSError:
            continue  # no link, or nothing there
        links += 1
        if text.startswith("/"):
            names.clear()
        else:
            names.pop()
        waiting.extendleft(reversed(text.split("/")))
    return PathStr("/" + "/".join(names))


def lies_in(path: str, places: Collection[str]) -> bool:
    """Whether a path is one of some directories or in one of them, as they are written."""
    return any(is_within(path, place) for place in places)


def open_regular(path: str) -> BinaryIO:
    """Open a regular file for reading; never wait for another process, as a FIFO would.

    Raises:
        OSError: it cannot be opened, is a symbolic link (ELOOP), or is not regular (EINVAL).
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags)
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "Not a regular file", path)
        return open(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise
