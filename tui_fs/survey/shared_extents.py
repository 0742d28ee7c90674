"""Measure the space that a tree shares with copies or snapshots, which its deletion does not free.

Reflink copies (``cp --reflink``) and snapshots own the same blocks as the files in the tree. Only
FIEMAP reports this, one file at a time. So files are examined for a limited time, in the order of
the directories. Once one of them shares blocks, the unexamined files do not count as certainly
freed.
"""

import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from tui_fs.linux.descriptors import closing
from tui_fs.linux.directories import open_directory, open_unnoticed
from tui_fs.linux.extents import shared_bytes
from tui_fs.linux.mounts import MountTable, mount_of

LIMIT_S = 0.5
"""open and FIEMAP take about 10 microseconds per file with a cached inode."""

_CAN_SHARE = frozenset(("btrfs", "xfs", "bcachefs", "ocfs2"))
_FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class SharedSpace(Struct, frozen=True):
    """Sums of the FIEMAP reports.

    Attributes:
        shared_bytes: bytes of the examined files that other files or snapshots share.
        examined_bytes, examined_files: allocated bytes and number of the examined files.
        is_complete: every regular file was examined.
    """

    shared_bytes: int
    examined_bytes: int
    examined_files: int
    is_complete: bool

    def freed_bytes_at_least(self, allocated_bytes: int) -> int:
        """Return how many of a tree's allocated bytes a deletion frees with certainty.

        Once a shared file was found, files that were not examined count as not freed.
        """
        if not self.shared_bytes:
            return allocated_bytes
        if self.is_complete:
            return max(0, allocated_bytes - self.shared_bytes)
        return max(0, self.examined_bytes - self.shared_bytes)


def can_share(path: str, mounts: MountTable) -> bool:
    """Return whether files on the file system of `path` can share blocks."""
    mount = mount_of(path, mounts)
    return mount is not None and mount.filesystem in _CAN_SHARE


def shared_space(
    paths: Sequence[str],
    limit_s: float = LIMIT_S,
    clock: Callable[[], float] = time.monotonic,
) -> SharedSpace:
    """Return how much of some trees is shared, by the files that can be examined in `limit_s`.

    A file that cannot be opened, for lack of permission or because it is gone, makes the result
    incomplete. Links are not followed, and other devices are not entered.
    """
    shared = examined = files = 0
    is_complete = True
    deadline_s = clock() + limit_s
    for descriptor, status in _regular_files(paths):
        if descriptor is None or status is None:
            is_complete = False
        else:
            shared += min(shared_bytes(descriptor), status.st_blocks * 512)
            examined += status.st_blocks * 512
            files += 1
        if clock() > deadline_s:
            is_complete = False
            break
    return SharedSpace(shared, examined, files, is_complete)


def _regular_files(
    paths: Sequence[str],
) -> Iterator[tuple[int | None, os.stat_result | None]]:
    """Yield a descriptor and the status of each regular file; two Nones if it cannot be opened.

    The descriptor is closed on the next iteration. A file with several names is yielded once.
    """
    linked: set[int] = set()
    for root in paths:
        device = os.lstat(root).st_dev
        waiting = [root]
        while waiting:
            path = waiting.pop()
            try:
                directory = open_directory(path)
            except OSError:
                yield None, None
                continue
            with closing(directory):
                if os.fstat(directory).st_dev != device:
                    continue
                with os.scandir(directory) as entries:
                    for entry in entries:
                        if entry.is_dir(follow_symlinks=False):
                            waiting.append(os.path.join(path, entry.name))
                        elif entry.is_file(follow_symlinks=False):
                            yield from _opened(directory, entry.name, linked)


def _opened(
    directory: int, name: str, linked: set[int]
) -> Iterator[tuple[int | None, os.stat_result | None]]:
    try:
        descriptor = open_unnoticed(name, _FILE_FLAGS, directory)
    except OSError:
        yield None, None
        return
    with closing(descriptor):
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode) and status.st_ino not in linked:
            if status.st_nlink > 1:
                linked.add(status.st_ino)
            yield descriptor, status
