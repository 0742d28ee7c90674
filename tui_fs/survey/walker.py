"""Count trees in this process with os.scandir, for machines without the native engine."""

import errno
import os
import select
import stat
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from tui_fs.linux.directories import (
    MAX_OPEN_DIRECTORIES,
    Directory,
    Entered,
    Skipped,
    TreeWalk,
)
from tui_fs.linux.filesystem import ROOT_INODE
from tui_fs.linux.limits import descriptor_limits, is_limit
from tui_fs.linux.permissions import may, others_may_write
from tui_fs.linux.statx import APPEND_ONLY, IMMUTABLE, inode_flags
from tui_fs.model.strategy import Share
from tui_fs.survey.histogram import Classes, Labels
from tui_fs.survey.records import NO_PARENT, Batch, DirectoryFlag, DirRecord
from tui_fs.survey.tally import BatchBuilder, DirectoryTally, Predicate

_FURTHER_DESCRIPTORS = 16
"""Standard streams, pipes, the directory being read, and those opened while reopening one."""

BATCH_INTERVAL_S = 0.1
POLL_INTERVAL_S = 0.05
BATCH_PIECES = 4_000
NAMES_AT_ONCE = 4_096
"""A stat_result takes about 800 bytes."""

CHANGE_FROM_ENTRIES = 1_000
"""From this many entries on, the walker checks whether a directory changed while it was read."""

_VANISHED = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
"""The errors of open(2) for a directory that was removed or replaced."""


class OpenRoot(Struct, frozen=True):
    """A surveyed directory."""

    path: bytes
    descriptor: int
    device: int


class _Directory(Directory, eq=False):
    number: int = 0


class Walker:
    """Count the trees below some roots.

    Args:
        mounts: absolute paths of mount points in the trees; they are not entered.
        matches: returns whether the filters select an entry.
        share: the share of the entries directly in the roots to count; None for all.
        clock: returns seconds.
        classes: of the histograms; None for no histogram.

    Attributes:
        pids: processes that count in addition to this one: none.
    """

    pids: frozenset[int] = frozenset()

    def __init__(
        self,
        roots: Sequence[OpenRoot],
        mounts: Collection[bytes] = (),
        matches: Predicate | None = None,
        clock: Callable[[], float] = time.monotonic,
        share: Share | None = None,
        classes: Classes | None = None,
    ) -> None:
        self._share = share
        self._roots = [replace(root, descriptor=os.dup(root.descriptor)) for root in roots]
        self._root = self._roots[0]
        self._mounts = frozenset(mounts)
        self._matches = matches
        self._clock = clock
        self._sent_s = self._polled_s = clock()
        self._poll = select.poll()
        self._answers: dict[int, Callable[[], None]] = {}
        self._uid = os.geteuid()
        self._device_without_flags: int | None = None
        allowed, _ = descriptor_limits()
        spare = allowed - len(roots) - _FURTHER_DESCRIPTORS
        self._max_open = max(2, min(MAX_OPEN_DIRECTORIES, spare))
        self._numbers = 0
        self._tree = self._tree_of(self._root)
        owner = os.fstat(self._root.descriptor).st_uid
        self._records = BatchBuilder(classes, Labels(owner) if classes else None)
        self._vanished = 0
        self._not_entered: list[tuple[bytes, int]] = []

    def register(self, descriptor: int, answer: Callable[[], None]) -> None:
        """Poll a descriptor while counting; call `answer` when it is readable."""
        self._poll.register(descriptor, select.POLLIN)
        self._answers[descriptor] = answer

    def batches(self, timeout_s: Callable[[], float]) -> Iterator[Batch | None]:
        """Yield batches of records; None whenever `timeout_s` has passed.

        Raises:
            OSError: this process or the machine has reached a limit.
        """
        for root in self._roots:
            self._root = root
            for _ in self._walk():
                if len(self._records) >= BATCH_PIECES or self._is_over(BATCH_INTERVAL_S):
                    yield self._take_batch()
                self._answer()
                if timeout_s() <= 0:
                    yield None
        yield self._take_batch()

    def close(self) -> None:
        """Close all descriptors."""
        self._tree.close()
        while self._roots:
            os.close(self._roots.pop().descriptor)

    def _is_over(self, interval_s: float) -> bool:
        return self._clock() - self._sent_s >= interval_s

    def _answer(self) -> None:
        if not self._answers or self._clock() - self._polled_s < POLL_INTERVAL_S:
            return
        for descriptor, _ in self._poll.poll(0):
            self._answers[descriptor]()
        self._polled_s = self._clock()

    def _tree_of(self, root: OpenRoot) -> TreeWalk[_Directory]:
        def make(name: bytes, status: os.stat_result, descriptor: int) -> _Directory:
            return _Directory(name, status, descriptor, [], self._number())

        return TreeWalk(root.path, root.descriptor, self._mounts, make, self._max_open)

    def _walk(self) -> Iterator[None]:
        """Count one root; yield after each directory and after each part of a large one."""
        self._tree = self._tree_of(self._root)
        for step in self._tree.steps():
            match step:
                case Entered(directory, above):
                    yield from self._read(directory, above.number if above else NO_PARENT)
                case Skipped(above, name, error):
                    if error is not None and is_limit(error):
                        raise error
                    is_gone = error is not None and error.errno in _VANISHED
                    is_above_open = above.descriptor >= 0  # else it may have been removed as well
                    flag = DirectoryFlag.UNREADABLE
                    if is_gone and is_above_open:
                        flag = DirectoryFlag.VANISHED
                    self._report_closed(above, name, flag)
            yield

    def _read(self, directory: _Directory, parent: int) -> Iterator[None]:
        """Count the entries of an open directory; yield after each part of a large one."""
        status, number = directory.status, directory.number
        tally = DirectoryTally(number, status.st_uid, self._records)
        flags = entries_read = pending_before = 0
        name, own = directory.name, (status.st_size, status.st_blocks * 512)
        try:
            if self._uid != 0:
                os.stat(b".", dir_fd=directory.descriptor)  # fails without search permission
            flags |= self._flags_of(directory)
            with os.scandir(directory.descriptor) as entries:
                while part := [os.fsencode(e.name) for e in islice(entries, NAMES_AT_ONCE)]:
                    entries_read += len(part)
                    if self._share is not None and parent == NO_PARENT:
                        part = list(filter(self._share.contains, part))
                    flags |= self._add(directory, tally, part)
                    if self._is_over(BATCH_INTERVAL_S):
                        pending = len(directory.pending) - pending_before + bool(name)
                        tally.report(parent, name, own, pending, flags)
                        pending_before, name, own = len(directory.pending), b"", (0, 0)
                        yield
        except OSError as error:
            if is_limit(error):
                raise
            flags |= DirectoryFlag.UNREADABLE
        if entries_read >= CHANGE_FROM_ENTRIES:
            status_after = os.fstat(directory.descriptor)
            if status_after.st_mtime_ns != status.st_mtime_ns:
                flags |= DirectoryFlag.CHANGED
        # With several records, the first one adds a pending part, and the last one subtracts it.
        pending = len(directory.pending) - pending_before - (not name)
        tally.report(parent, name, own, pending, flags)
        for other_name, other_flags in self._not_entered:
            self._records.add(DirRecord(self._number(), number, other_name, flags=other_flags))
        self._not_entered.clear()

    def _add(self, directory: _Directory, tally: DirectoryTally, names: list[bytes]) -> int:
        """Stat entries of a directory and add them; return their flags."""
        flags = 0
        for name in names:
            try:
                status = os.stat(name, dir_fd=directory.descriptor, follow_symlinks=False)
            except FileNotFoundError:
                self._vanished += 1
                continue
            except OSError:
                flags |= DirectoryFlag.UNREADABLE
                continue
            tally.add(name, status, self._matches)
            if not stat.S_ISDIR(status.st_mode):
                continue
            is_mounted = self._tree.is_mounted(name)
            if status.st_dev == self._root.device and not is_mounted:
                directory.pending.append(name)
                continue
            is_subvolume = status.st_ino == ROOT_INODE and not is_mounted
            subvolume = DirectoryFlag.SUBVOLUME if is_subvolume else 0
            self._not_entered.append((name, DirectoryFlag.ELSEWHERE | subvolume))
        return flags

    def _flags_of(self, directory: _Directory) -> int:
        """Return the flags of a directory itself."""
        descriptor, status = directory.descriptor, directory.status
        flags = 0
        if self._device_without_flags != status.st_dev:
            attributes = inode_flags(descriptor)
            if attributes is None:
                self._device_without_flags = status.st_dev
            else:
                flags |= DirectoryFlag.IMMUTABLE if attributes & IMMUTABLE else 0
                flags |= DirectoryFlag.APPEND_ONLY if attributes & APPEND_ONLY else 0
        if others_may_write(status, self._uid, descriptor):
            flags |= DirectoryFlag.SHARED
        if self._uid != 0:
            if status.st_mode & stat.S_ISVTX and status.st_uid != self._uid:
                flags |= DirectoryFlag.STICKY
            if not may(".", os.W_OK | os.X_OK, dir_fd=descriptor):
                flags |= DirectoryFlag.UNWRITABLE
        return flags

    def _report_closed(self, above: _Directory, name: bytes, flag: int) -> None:
        """Report a directory that was not entered, with its own size if stat succeeds."""
        own_bytes = own_allocated_bytes = 0
        if flag & DirectoryFlag.UNREADABLE and above.descriptor >= 0:
            try:
                status = os.stat(name, dir_fd=above.descriptor, follow_symlinks=False)
            except OSError:
                pass  # report it without its size
            else:
                own_bytes, own_allocated_bytes = status.st_size, status.st_blocks * 512
        self._records.add(
            DirRecord(
                self._number(),
                above.number,
                name,
                own_bytes=own_bytes,
                own_allocated_bytes=own_allocated_bytes,
                flags=flag,
            )
        )

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers - 1

    def _take_batch(self) -> Batch:
        """Return the records since the last batch."""
        batch = self._records.take(self._vanished)
        self._vanished = 0
        self._sent_s = self._clock()
        return batch
