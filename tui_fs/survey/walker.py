"""Walking a tree by directory descriptors, symbolic links never followed.

Only directories that still have unread subdirectories stay on the stack, and only some of
those keep their descriptor; the way back up is ``..``, compared by inode. So a tree of any depth
is walked with a bounded number of descriptors and in a time that grows with its directories.
"""

import errno
import os
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import attrgetter
from typing import Any, Protocol
from zlib import crc32

from tui_fs.linux.limits import descriptor_limits
from tui_fs.survey.reading import Directory, Reader, Reading, Steps, closed_piece
from tui_fs.survey.records import NO_PARENT, Batch, DirectoryFlag, Piece, Task
from tui_fs.survey.tally import Predicate

OPEN_LIMIT = 64
"""Descriptors one walker keeps, if its process may have so many and some more."""

_FURTHER_DESCRIPTORS = 16
"""Standard streams, pipes, the directory being read, steps on the way to another."""

TELL_EVERY_S = 0.1
PIECES_A_BATCH = 4_000
NAMES_AT_ONCE = 4_096
"""A stat_result takes about 800 bytes."""

NAMES_GIVEN = 1_000
DEPTH_GIVEN = 500
"""Directories further down are walked by whoever came there: the way would be long."""

SPLIT_FROM_BYTES = 1 << 20
"""A directory of this size (25,000 names and more) is read by two, if one has nothing to do."""

WATCHED_FROM_ENTRIES = 1_000
"""From here on it is looked at whether a directory has changed while it was read."""

OPEN_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK

_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
"""What open says when the directory has vanished or something else stands in its place."""

_name = attrgetter("name")


class Hunger(Protocol):
    """Two numbers: how many have nothing to do; another one whenever one more has not."""

    def __getitem__(self, index: int, /) -> int: ...


@dataclass(frozen=True, slots=True)
class OpenRoot:
    """A surveyed directory."""

    path: bytes
    descriptor: int
    device: int


class Walker:
    """Reads directories and tells what is in them.

    It changes the working directory of its process: a stat by the bare name is the fastest.

    Args:
        send: takes the batches.
        hunger: of the other walkers, in shared memory.
        first_number, step: the numbers it gives to directories.
        mounts: absolute paths on which something is mounted.
    """

    def __init__(
        self,
        roots: Sequence[OpenRoot],
        send: Callable[[Batch], None],
        hunger: Hunger,
        first_number: int,
        step: int,
        mounts: Collection[bytes] = (),
        matches: Predicate | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._roots = roots
        self._send = send
        self._hunger = hunger
        self._answered_hunger = -1
        self._next_number, self._step = first_number, step
        self._reader = Reader(mounts, matches)
        self._clock = clock
        self._told_s = clock()
        allowed, _ = descriptor_limits()
        spare = allowed - len(roots) - _FURTHER_DESCRIPTORS
        self._open_limit = max(2, min(OPEN_LIMIT, spare))
        self._stack: list[Directory] = []
        self._closed = 0
        self._matched = [0, 0, 0, 0, 0]
        self._forget()

    def work(self, task: Task) -> None:
        """Read what the task names and everything below it that nobody else takes."""
        self._root, self._root_index = self._roots[task.root], task.root
        self._stack, self._closed = [], 0
        try:
            self._begin(task)
            while self._stack:
                self._go_on()
        finally:
            for directory in self._stack:
                directory.close()
        self._tell(is_idle=True)

    def _begin(self, task: Task) -> None:
        steps = Steps()
        for name in task.steps:
            steps = steps.below(name)
        directory = Directory(task.number, steps, task.device, task.inode)
        try:
            directory.descriptor = self._open_way(task)
        except OSError:
            self._tell_lost(directory, task.names)
            if not task.names:
                flags = DirectoryFlag.UNREADABLE
                self._pieces.append(
                    tuple(Piece(task.number, NO_PARENT, b"", pending=-1, flags=flags))
                )
            return
        directory.waiting = list(task.names)
        if not task.names:
            status = os.fstat(directory.descriptor)
            if task.number == NO_PARENT:
                directory.number = self._number()
                directory.device, directory.inode = status.st_dev, status.st_ino
            self._read(directory, NO_PARENT, self._root.path, status, task.part, task.parts)
        self._keep_or_close(directory)

    def _go_on(self) -> None:
        """Read the next subdirectory of the directory on top of the stack, which is open."""
        above = self._stack[-1]
        name = above.waiting.pop()
        if not above.waiting:
            self._stack.pop()
            self._closed = min(self._closed, len(self._stack))
        try:
            descriptor = os.open(name, OPEN_FLAGS, dir_fd=above.descriptor)
        except OSError as why:
            self._tell_closed(above, name, why)
            self._leave(above)
            return
        status = os.fstat(descriptor)
        if status.st_dev != self._root.device:  # mounted since its names were looked at
            os.close(descriptor)
            self._tell_closed(above, name, OSError(errno.EXDEV, os.strerror(errno.EXDEV)))
            self._leave(above)
            return
        directory = Directory(
            self._number(),
            above.steps.below(name),
            status.st_dev,
            status.st_ino,
            [],
            descriptor,
        )
        self._read(directory, above.number, name, status)
        if not above.waiting:
            above.close()
        if directory.waiting:
            self._keep_or_close(directory)
        else:
            self._leave(directory)
        if self._is_wanted():
            self._give_subdirectories()
        if len(self._pieces) >= PIECES_A_BATCH or self._clock() - self._told_s >= TELL_EVERY_S:
            self._tell()

    def _read(
        self,
        directory: Directory,
        parent: int,
        name: bytes,
        status: os.stat_result,
        part: int = 0,
        parts: int = 1,
    ) -> None:
        """Read one directory, or a part of it, and tell it; its subdirectories are kept."""
        reading = Reading(directory, parent, name, status, is_part=parts > 1)
        root = self._root
        entries_read = 0
        try:
            os.fchdir(directory.descriptor)
            if parts == 1:
                reading.flags = self._reader.flags_of(directory.descriptor, status)
                if status.st_size >= SPLIT_FROM_BYTES and self._is_wanted():
                    parts = 2
                    self._pieces.append(reading.piece(is_last=False, given=1))
                    self._give_part(directory)
            with os.scandir(b".") as entries:
                while some := list(islice(entries, NAMES_AT_ONCE)):
                    if parts == 1:
                        names = list(map(_name, some))
                    else:
                        names = [n for n in map(_name, some) if crc32(n) % parts == part]
                    self._reader.add(reading, names, root.path, root.device)
                    entries_read += len(names)
                    if self._clock() - self._told_s >= TELL_EVERY_S:
                        self._take_from(reading)
                        self._pieces.append(reading.piece(is_last=False))
                        self._tell()
        except OSError:
            reading.flags |= DirectoryFlag.UNREADABLE
        if entries_read >= WATCHED_FROM_ENTRIES:
            now = os.fstat(directory.descriptor)
            if now.st_mtime_ns != status.st_mtime_ns:
                reading.flags |= DirectoryFlag.CHANGED
        self._take_from(reading)
        self._pieces.append(reading.piece(is_last=True))
        for number, its_name, flags in self._reader.elsewhere:
            self._pieces.append(tuple(Piece(self._number(), number, its_name, flags=flags)))
        self._reader.elsewhere.clear()

    def _take_from(self, reading: Reading) -> None:
        """Take what is told one by one."""
        tally = reading.tally
        self._links += map(tuple, tally.links)
        self._big_files += map(tuple, tally.big_files)
        if any(tally.matched):
            self._matched = [a + b for a, b in zip(self._matched, tally.matched, strict=True)]
            tally.matched = [0, 0, 0, 0, 0]

    def _keep_or_close(self, directory: Directory) -> None:
        if not directory.waiting:
            directory.close()
            return
        self._stack.append(directory)
        if len(self._stack) - self._closed > self._open_limit:
            self._stack[self._closed].close()
            self._closed += 1

    def _leave(self, directory: Directory) -> None:
        """Go on from a finished directory to the one on top of the stack."""
        while self._stack and self._stack[-1].descriptor < 0:
            top = self._stack[-1]
            try:
                top.descriptor = self._climb(directory, top)
            except OSError:
                self._tell_lost(top, top.waiting)
                self._stack.pop()
            self._closed = max(0, len(self._stack) - 1)
        if not self._stack or directory is not self._stack[-1]:
            directory.close()

    def _climb(self, below: Directory, top: Directory) -> int:
        """Open a directory again: from one below it by ``..``, else by the way from the root."""
        descriptor = os.dup(below.descriptor)
        for _ in range(below.steps.depth - top.steps.depth):
            try:
                upper = os.open(b"..", OPEN_FLAGS, dir_fd=descriptor)
            except OSError:
                break  # so it is not the one that is compared
            os.close(descriptor)
            descriptor = upper
        if _is(descriptor, top.device, top.inode):
            return descriptor
        os.close(descriptor)
        way = Task(self._root_index, 0, top.steps.names(), top.device, top.inode)
        return self._open_way(way)

    def _open_way(self, task: Task) -> int:
        """Open the directory that a task names, step by step from the root.

        Raises:
            OSError: a step cannot be opened, or another directory stands there by now.
        """
        descriptor = os.dup(self._root.descriptor)
        for name in task.steps:
            try:
                lower = os.open(name, OPEN_FLAGS, dir_fd=descriptor)
            finally:
                os.close(descriptor)
            descriptor = lower
        if task.inode and not _is(descriptor, task.device, task.inode):
            os.close(descriptor)
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
        return descriptor

    def _is_wanted(self) -> bool:
        """Tell whether somebody has nothing to do to whom nothing was given yet."""
        return self._hunger[0] > 0 and self._hunger[1] != self._answered_hunger

    def _give_subdirectories(self) -> None:
        """Give half of what waits furthest up, where the trees are largest."""
        lowest = self._stack[0] if self._stack else None
        if lowest is None or lowest.steps.depth > DEPTH_GIVEN:
            return
        number = min(len(lowest.waiting) // 2, NAMES_GIVEN)
        if number == 0 and len(self._stack) == 1:
            return
        number = max(number, 1)
        names, lowest.waiting = tuple(lowest.waiting[:number]), lowest.waiting[number:]
        if not lowest.waiting:  # never the one on top: that is alone on the stack only above
            lowest.close()
            del self._stack[0]
            self._closed = max(0, self._closed - 1)
        self._give(lowest, names=names)

    def _give_part(self, directory: Directory) -> None:
        self._give(directory, part=1, parts=2)

    def _give(
        self, directory: Directory, names: tuple[bytes, ...] = (), part: int = 0, parts: int = 1
    ) -> None:
        self._answered_hunger = self._hunger[1]
        task = Task(
            self._root_index,
            directory.number,
            directory.steps.names(),
            directory.device,
            directory.inode,
            names,
            part,
            parts,
        )
        self._tell(give=task)

    def _tell_closed(self, above: Directory, name: bytes, why: OSError) -> None:
        """Tell a directory that could not be opened."""
        flag = DirectoryFlag.VANISHED if why.errno in _GONE else DirectoryFlag.UNREADABLE
        self._pieces.append(closed_piece(above, self._number(), name, flag))

    def _tell_lost(self, above: Directory, names: Iterable[bytes]) -> None:
        """Tell directories to which the way is lost: nobody knows whether they are gone."""
        for name in names:
            flag = DirectoryFlag.UNREADABLE
            self._pieces.append(closed_piece(above, self._number(), name, flag))

    def _tell(self, *, give: Task | None = None, is_idle: bool = False) -> None:
        """Send what was found since the last time."""
        files, symlinks, other, apparent, allocated = self._matched
        self._send(
            Batch(
                self._pieces,
                self._links,
                self._big_files,
                (files, symlinks, other, apparent, allocated),
                self._reader.vanished,
                None if give is None else tuple(give),
                is_idle,
            )
        )
        self._forget()
        self._told_s = self._clock()

    def _forget(self) -> None:
        self._pieces: list[tuple[Any, ...]] = []
        self._links: list[tuple[Any, ...]] = []
        self._big_files: list[tuple[Any, ...]] = []
        self._matched = [0, 0, 0, 0, 0]
        self._reader.vanished = 0

    def _number(self) -> int:
        number = self._next_number
        self._next_number += self._step
        return number


def _is(descriptor: int, device: int, inode: int) -> bool:
    status = os.fstat(descriptor)
    return (status.st_dev, status.st_ino) == (device, inode)
