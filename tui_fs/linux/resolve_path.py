"""Resolve paths; to a target only through links that no user but this one and root can change."""

import contextlib
import errno
import os
import stat
from collections import deque
from collections.abc import Collection
from typing import BinaryIO

from tui_fs.linux.descriptors import closing
from tui_fs.linux.limits import is_limit
from tui_fs.linux.mounts import MountTable, read_mounts
from tui_fs.linux.permissions import ROOT, others_may_replace
from tui_fs.linux.pins import open_path_fd, path_flags, pin_of
from tui_fs.model.errors import BadInput, Refused, cannot_examine
from tui_fs.model.paths import PathStr, displayable, is_within
from tui_fs.model.target import Pin

_MAX_LINKS = 40  # path_resolution(7)


def absolute(path: str) -> str:
    """Make a path absolute; keep `..` and symbolic links in it.

    Raises:
        BadInput: the path is relative, and the current directory no longer has a path.
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


def open_canonical(path: str, by_text: str, *, any_kind: bool = False) -> tuple[PathStr, int]:
    """Open the directory that the kernel reaches by a path.

    The text of a path can name another directory: links of /proc lead into other mount namespaces,
    and a later mount may cover the current directory.

    Args:
        path: as the user typed it; not followed if it is itself a symbolic link.
        by_text: its canonical form, resolved by text and without links. It must lead to the same
            directory.
        any_kind: it may be a file or a symbolic link, too.

    Returns:
        The canonical path and a descriptor (O_PATH). The path has the kernel's spelling, which can
        differ from `path` on case-insensitive file systems, unless /proc is not mounted or the
        path exceeds PATH_MAX.

    Raises:
        OSError: it cannot be opened, is a symbolic link, is not a directory, or was removed
            meanwhile.
        Refused: `by_text` does not lead to that directory.
    """
    flags = path_flags(any_kind=any_kind)
    descriptor = os.open(path, flags)
    try:
        pin = pin_of(descriptor)
        # Check this first. A link may have replaced the directory between the resolution of
        # `by_text` and the open, and the path of its target is canonical as well.
        if not _leads_to(by_text, pin):
            os.close(os.open(path, flags))  # fails if the directory has just been removed
            raise Refused(
                f"{displayable(path)} and {displayable(by_text)} are different "
                f"{'files' if pin.is_file else 'directories'}: the first is in another mount "
                "namespace, is covered by a mount, or was replaced.",
                f"Use a path that leads to the {'file' if pin.is_file else 'directory'} from / in "
                "this mount namespace.",
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
        descriptor = open_path_fd(path, any_kind=pin.is_file)
    except OSError as error:
        if is_limit(error):
            raise
        return False
    with closing(descriptor):
        return pin_of(descriptor) == pin


def canonical_directory(path: str) -> PathStr:
    """Return the canonical path of a directory that will only be read.

    Links in the path are followed, no matter who can change them.

    Raises:
        BadInput: it is a symbolic link, is not a directory, or cannot be examined.
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
    """Return the canonical path of an existing directory, by its text and its links.

    The path is walked by descriptors, and each link is checked when it is read: a user who can
    replace a link controls where the path leads.

    Args:
        mounts: the mount table; None to read it at the first link.

    Raises:
        OSError: a component does not exist or is not a directory.
        BadInput: see `absolute`.
        Refused: a user other than this one and root can change a link in the path.
    """
    uid = os.geteuid()
    flags = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
    path_fds = [os.open("/", flags)]
    names: list[str] = []
    components = deque(absolute(path).split("/"))
    links = 0
    try:
        while components:
            name = components.popleft()
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
                    f"{shown} is a symbolic link that a user other than you and root can change.",
                    "Use the real path of the directory.",
                    rule="symlink",
                )
            if text.startswith("/"):
                names.clear()
                while len(path_fds) > 1:
                    os.close(path_fds.pop())
            components.extendleft(reversed(text.split("/")))
    finally:
        for descriptor in path_fds:
            os.close(descriptor)
    return PathStr("/" + "/".join(names))


def _is_changeable(link: os.stat_result, directory: int, uid: int, mounts: MountTable) -> bool:
    """Return whether a user other than `uid` and root can change where a link leads.

    Args:
        directory: a descriptor (O_PATH) of the directory that contains it.
    """
    if link.st_uid not in (ROOT, uid):
        return True
    # The kernel reads no extended attributes through an O_PATH descriptor itself (open(2)).
    location = f"/proc/self/fd/{directory}/."
    if others_may_replace(os.fstat(directory), link, uid, location):
        return True
    mount = mounts.by_id.get(pin_of(directory).mount_id)
    return mount is not None and mount.is_served_by_other(uid)


def canonical(path: str, silent: Collection[str]) -> PathStr:
    """Return the canonical path of a path that need not exist, like ``os.path.realpath``.

    Args:
        silent: directories that may not answer. Neither they nor entries in them are read; the
            rest of such a path is normalized by its text.
    """
    path = absolute(path)
    if not silent:
        return PathStr(os.path.realpath(path))
    names: list[str] = []
    components = deque(path.split("/"))
    links = 0
    while components:
        name = components.popleft()
        if name in ("", "."):
            continue
        if name == "..":
            del names[-1:]
            continue
        names.append(name)
        current = "/" + "/".join(names)
        if lies_in(current, silent) or links > _MAX_LINKS:
            return PathStr(os.path.normpath("/".join([current, *components])))
        try:
            text = os.readlink(current)
        except OSError:
            continue  # not a link, or does not exist
        links += 1
        if text.startswith("/"):
            names.clear()
        else:
            names.pop()
        components.extendleft(reversed(text.split("/")))
    return PathStr("/" + "/".join(names))


def lies_in(path: str, places: Collection[str]) -> bool:
    """Return whether a path is one of some directories or below one, compared by text."""
    return any(is_within(path, place) for place in places)


def open_regular(path: str) -> BinaryIO:
    """Open a regular file for reading, without blocking on a FIFO.

    Raises:
        OSError: it cannot be opened, is a symbolic link (ELOOP), or is not a regular file (EINVAL).
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
