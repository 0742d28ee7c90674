"""The pure-Python survey backend: one pass by directory descriptors, symlinks never followed.

A directory's descriptor stays open while its subdirectories wait, up to `OPEN_LIMIT`, so
chains deeper than PATH_MAX are counted like any other tree.
"""

import errno
import heapq
import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence

from tui_fs.linux.accounts import others_may_write
from tui_fs.linux.fnmatch import matches_glob
from tui_fs.linux.inode_flags import is_locked
from tui_fs.linux.mounts import MOUNTINFO, mounts_below, read_mounts
from tui_fs.model.paths import PathStr
from tui_fs.model.strategy import Filters
from tui_fs.model.survey import Child, EntryKind, LargeDirectory, Root, Survey, Totals
from tui_fs.survey.findings import Evidence, findings_of

OPEN_LIMIT = 128
"""Descriptors kept at once; the common soft limit of a process is 1,024."""

CHILDREN_LISTED = 2_000
LARGEST_KEPT = 20
_LOOK_AT_CLOCK_EVERY = 512
_GETDENTS_BUFFER_BYTES = 32_768
"""glibc reads directories through a buffer of this size (sysdeps/unix/sysv/linux/opendir.c)."""
_DOT_RECORDS_BYTES = 48
"""The records of . and .. in every directory."""
_DIRENT_HEADER_BYTES = 19 + 1
"""struct linux_dirent64 before the name, and the name's closing NUL; padded to 8."""


class _Count:
    """Running totals of a subtree."""

    __slots__ = ("allocated", "apparent", "directories", "files", "other", "symlinks", "waiting")

    def __init__(self) -> None:
        self.files = self.directories = self.symlinks = self.other = 0
        self.apparent = self.allocated = self.waiting = 0

    def add(self, files: int, symlinks: int, other: int, apparent: int, allocated: int) -> None:
        self.files += files
        self.symlinks += symlinks
        self.other += other
        self.apparent += apparent
        self.allocated += allocated

    def entries(self) -> int:
        return self.files + self.symlinks + self.other + self.directories

    def totals(self) -> Totals:
        return Totals(
            self.files,
            self.directories,
            self.symlinks,
            self.other,
            self.apparent,
            self.allocated,
        )


class _Directory:
    """A directory whose subdirectories are being counted."""

    __slots__ = ("child", "depth", "descriptor", "name", "parent", "path_bytes", "waiting")

    def __init__(self, parent: "_Directory | None", name: str, child: _Count | None) -> None:
        self.parent = parent
        self.name = name
        self.child = child
        self.descriptor = -1
        self.waiting: list[str] = []
        self.depth: int = parent.depth + 1 if parent else 0
        length = len(os.fsencode(name))
        self.path_bytes: int = parent.path_bytes + 1 + length if parent else length

    def path(self) -> str:
        names: list[str] = []
        node: _Directory | None = self
        while node is not None:
            names.append(node.name)
            node = node.parent
        return "/".join(reversed(names))


class ScandirSurvey:
    """One survey of one directory, or of several together.

    Args:
        paths: absolute paths of directories, none inside another.
        filters: what to count besides, for a deletion that only takes what matches.
        interval_s: time between the intermediate results of `run`.
    """

    def __init__(
        self,
        paths: Sequence[str],
        filters: Filters | None = None,
        interval_s: float = 0.25,
        clock: Callable[[], float] = time.monotonic,
        mountinfo: str = MOUNTINFO,
    ) -> None:
        self._paths = tuple(paths)
        self._path = paths[0] if len(paths) == 1 else os.path.commonpath(paths)
        self._roots: list[Root] = []
        self._interval_s = interval_s
        self._clock = clock
        self._started = self._reported = clock()
        self._matches = _predicate(filters) if filters is not None and filters.active else None
        self._matched = _Count()
        self._all = _Count()
        self._children: dict[str, tuple[EntryKind, _Count, str | None]] = {}
        self._children_not_listed = 0
        self._open: dict[_Directory, None] = {}
        self._links: dict[tuple[int, int], int] = {}
        self._matched_links: set[tuple[int, int]] = set()
        self._bytes_linked_outside = 0
        mounts = read_mounts(mountinfo)
        self._mounts = {m.mount_point for path in paths for m in mounts_below(path, mounts)}
        self._evidence = Evidence(mounts=sorted(self._mounts))
        self._largest: list[tuple[int, int, int, _Directory]] = []
        self._sequence = 0
        self._max_depth = self._max_path_bytes = self._max_entries = 0
        self._non_empty = self._reads = self._parents = self._path_bytes = 0
        self._vanished = 0
        self._device = self._inode = 0
        self._has_flags = True
        self._uid = os.geteuid()

    def run(self) -> Iterator[Survey]:
        """Yield the counts so far every `interval_s`, and at the end the complete ones.

        Raises:
            OSError: the directory itself cannot be opened.
        """
        for path in self._paths:
            yield from self._run(path)
        yield self._result(finished=True)

    def _run(self, path: str) -> Iterator[Survey]:
        root = _Directory(None, path, None)
        descriptor = os.open(path, _OPEN_FLAGS)
        try:
            status = os.fstat(descriptor)
            self._device, self._inode = status.st_dev, status.st_ino
            self._roots.append(Root(PathStr(path), status.st_dev, status.st_ino))
            if others_may_write(status, self._uid):
                self._evidence.shared_directory(root.path)
            self._all.directories += 1
            self._all.apparent += status.st_size
            self._all.allocated += status.st_blocks * 512
            self._keep_open(root, descriptor)
            yield from self._read(root, descriptor, status.st_size)
            stack = [root] if root.waiting else []
            while stack:
                parent = stack[-1]
                if not parent.waiting:
                    stack.pop()
                    self._close(parent)
                    continue
                node = self._enter(parent, parent.waiting.pop())
                if node is not None:
                    yield from self._read(node, node.descriptor, -1)
                    if node.child is not None:
                        node.child.waiting += len(node.waiting)
                    if node.waiting:
                        stack.append(node)
                    else:
                        self._close(node)
        finally:
            for node in list(self._open):
                self._close(node)

    def _enter(self, parent: _Directory, name: str) -> _Directory | None:
        child = parent.child
        if parent.parent is None:
            child = self._children[name][1] if name in self._children else None
        if child is not None:
            child.waiting -= 1
        node = _Directory(parent, name, child)
        try:
            descriptor = os.open(name, _OPEN_FLAGS, dir_fd=self._descriptor(parent))
        except FileNotFoundError:
            self._vanished += 1
            return None
        except OSError:
            self._evidence.unreadable_directory(PathStr(node.path()))
            return None
        self._keep_open(node, descriptor)
        return node

    def _read(self, node: _Directory, descriptor: int, index_bytes: int) -> Iterator[Survey]:
        files = symlinks = other = apparent = allocated = subdirectories = 0
        entries = name_bytes = longest = 0
        record_bytes = _DOT_RECORDS_BYTES
        matches, links = self._matches, self._links
        is_root = node.parent is None
        if index_bytes < 0:
            index_bytes = os.fstat(descriptor).st_size
        if self._has_flags:
            locked = is_locked(descriptor)
            self._has_flags = locked is not None
            if locked:
                self._evidence.locked_paths.append(PathStr(node.path()))
        until_clock = _LOOK_AT_CLOCK_EVERY
        try:
            for entry in os.scandir(descriptor):  # closed when exhausted or collected
                name = entry.name
                try:
                    status = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    self._vanished += 1
                    continue
                entries += 1
                length = len(name) if name.isascii() else len(os.fsencode(name))
                if length > longest:
                    longest = length
                record_bytes += (_DIRENT_HEADER_BYTES + length + 7) & ~7
                mode = stat.S_IFMT(status.st_mode)
                if mode == stat.S_IFDIR:
                    subdirectories += 1
                    self._note_directory(node, name, status)
                    if is_root:
                        self._list_child(name, EntryKind.DIRECTORY, status, None)
                    elif node.child is not None:
                        node.child.directories += 1
                        node.child.apparent += status.st_size
                        node.child.allocated += status.st_blocks * 512
                else:
                    name_bytes += length
                    size, blocks = status.st_size, status.st_blocks * 512
                    if status.st_nlink > 1:
                        size, blocks = self._count_links(links, status)
                    apparent += size
                    allocated += blocks
                    if mode == stat.S_IFREG:
                        files += 1
                    elif mode == stat.S_IFLNK:
                        symlinks += 1
                    else:
                        other += 1
                    if matches is not None and matches(name, status):
                        self._count_match(mode, status)
                    if is_root:
                        self._list_child(
                            name, _KINDS.get(mode, EntryKind.OTHER), status, descriptor
                        )
                until_clock -= 1
                if until_clock <= 0:
                    until_clock = _LOOK_AT_CLOCK_EVERY
                    if self._clock() - self._reported >= self._interval_s:
                        self._flush(node, files, symlinks, other, apparent, allocated)
                        files = symlinks = other = apparent = allocated = 0
                        yield self._result(finished=False)
        except OSError:
            self._evidence.unreadable_directory(PathStr(node.path()))
        self._flush(node, files, symlinks, other, apparent, allocated)
        self._path_bytes += name_bytes + (node.path_bytes + 1) * (entries - subdirectories)
        self._parents += subdirectories > 0
        self._note_finished(node, entries, index_bytes, record_bytes, longest)
        if self._clock() - self._reported >= self._interval_s:
            yield self._result(finished=False)

    def _flush(
        self, node: _Directory, files: int, symlinks: int, other: int, apparent: int, allocated: int
    ) -> None:
        self._all.add(files, symlinks, other, apparent, allocated)
        if node.child is not None:
            node.child.add(files, symlinks, other, apparent, allocated)

    def _note_directory(self, node: _Directory, name: str, status: os.stat_result) -> None:
        self._all.directories += 1
        self._all.apparent += status.st_size
        self._all.allocated += status.st_blocks * 512
        elsewhere = status.st_dev != self._device
        if not elsewhere and self._mounts:
            elsewhere = f"{node.path().rstrip('/')}/{name}" in self._mounts
        if not elsewhere:
            node.waiting.append(name)
            if others_may_write(status, self._uid):
                self._evidence.shared_directory(lambda: f"{node.path().rstrip('/')}/{name}")

    def _count_links(
        self, links: dict[tuple[int, int], int], status: os.stat_result
    ) -> tuple[int, int]:
        """Count an inode with several names once; remember how many are still to be seen."""
        key = (status.st_dev, status.st_ino)
        blocks = status.st_blocks * 512
        missing = links.get(key)
        if missing is None:
            links[key] = status.st_nlink - 1
            self._bytes_linked_outside += blocks
            return status.st_size, blocks
        links[key] = missing - 1
        if missing == 1:
            del links[key]
            self._bytes_linked_outside -= blocks
        return 0, 0

    def _count_match(self, mode: int, status: os.stat_result) -> None:
        size, blocks = status.st_size, status.st_blocks * 512
        if status.st_nlink > 1:
            key = (status.st_dev, status.st_ino)
            if key in self._matched_links:
                size = blocks = 0
            self._matched_links.add(key)
        is_file, is_link = mode == stat.S_IFREG, mode == stat.S_IFLNK
        self._matched.add(is_file, is_link, not is_file and not is_link, size, blocks)

    def _list_child(
        self, name: str, kind: EntryKind, status: os.stat_result, descriptor: int | None
    ) -> None:
        """List a name of the surveyed directory itself; names of files up to a limit."""
        is_directory = kind is EntryKind.DIRECTORY
        if not is_directory and len(self._children) >= CHILDREN_LISTED:
            self._children_not_listed += 1
            return
        count = _Count()
        count.apparent, count.allocated = status.st_size, status.st_blocks * 512
        count.files = kind is EntryKind.FILE
        count.symlinks = kind is EntryKind.SYMLINK
        count.other = kind is EntryKind.OTHER
        count.directories = is_directory
        count.waiting = int(is_directory and status.st_dev == self._device)
        link_target = None
        if kind is EntryKind.SYMLINK and descriptor is not None:
            try:
                link_target = os.readlink(name, dir_fd=descriptor)
            except OSError:
                link_target = "?"
        self._children[name] = (kind, count, link_target)

    def _note_finished(
        self, node: _Directory, entries: int, index_bytes: int, record_bytes: int, longest: int
    ) -> None:
        if entries:
            self._non_empty += 1
            self._max_depth = max(self._max_depth, node.depth + 1)
            self._max_path_bytes = max(self._max_path_bytes, node.path_bytes + 1 + longest)
        self._reads += 2 + record_bytes // _GETDENTS_BUFFER_BYTES
        self._max_entries = max(self._max_entries, entries)
        self._sequence += 1
        if len(self._largest) < LARGEST_KEPT or entries > self._largest[0][0]:
            heapq.heappush(self._largest, (entries, self._sequence, index_bytes, node))
            if len(self._largest) > LARGEST_KEPT:
                heapq.heappop(self._largest)

    def _descriptor(self, node: _Directory) -> int:
        """Return an open descriptor of `node`, opening it again step by step if need be."""
        missing: list[_Directory] = []
        current = node
        while current.descriptor < 0 and current.parent is not None:
            missing.append(current)
            current = current.parent
        if current.descriptor < 0:
            self._keep_open(current, self._open_root_again(current.name))
        for step in reversed(missing):
            assert step.parent is not None
            self._keep_open(step, os.open(step.name, _OPEN_FLAGS, dir_fd=step.parent.descriptor))
        return node.descriptor

    def _open_root_again(self, path: str) -> int:
        descriptor = os.open(path, _OPEN_FLAGS)
        status = os.fstat(descriptor)
        if (status.st_dev, status.st_ino) != (self._device, self._inode):
            os.close(descriptor)
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), path)
        return descriptor

    def _keep_open(self, node: _Directory, descriptor: int) -> None:
        node.descriptor = descriptor
        self._open[node] = None
        if len(self._open) > OPEN_LIMIT:
            self._close(next(iter(self._open)))

    def _close(self, node: _Directory) -> None:
        if node.descriptor >= 0:
            os.close(node.descriptor)
            node.descriptor = -1
            del self._open[node]

    def _result(self, finished: bool) -> Survey:
        began = self._reported = self._clock()
        largest = tuple(
            LargeDirectory(PathStr(node.path()), entries, index_bytes)
            for entries, _, index_bytes, node in sorted(self._largest, reverse=True)
        )
        totals = self._all.totals()
        shown = self._children
        if len(shown) > CHILDREN_LISTED:
            fullest = heapq.nlargest(
                CHILDREN_LISTED, shown.items(), key=lambda item: item[1][1].entries()
            )
            shown = dict(fullest)
        survey = Survey(
            path=PathStr(self._path),
            totals=totals,
            matched=None if self._matches is None else self._matched.totals(),
            freed_bytes_min=totals.allocated_bytes - self._bytes_linked_outside,
            freed_bytes_max=totals.allocated_bytes,
            max_depth=self._max_depth,
            max_path_bytes=self._max_path_bytes,
            max_entries_in_directory=self._max_entries,
            non_empty_directories=self._non_empty,
            directory_reads=self._reads,
            parent_directories=self._parents,
            non_directory_path_bytes=self._path_bytes,
            largest=largest,
            findings=findings_of(
                self._evidence, largest, self._max_path_bytes, PathStr(self._path)
            ),
            unreadable=self._evidence.unreadable,
            writable_by_others=self._evidence.shared,
            vanished=self._vanished,
            roots=tuple(self._roots),
            elapsed_s=self._reported - self._started,
            finished=finished,
            complete=finished and not self._evidence.unreadable,
            children=tuple(
                Child(
                    PathStr(name),
                    kind,
                    count.totals(),
                    finished or count.waiting == 0,
                    None if link_target is None else PathStr(link_target),
                )
                for name, (kind, count, link_target) in shown.items()
            ),
            children_not_listed=self._children_not_listed + len(self._children) - len(shown),
        )
        # Telling may take one part in ten of the time, not more.
        self._interval_s = max(self._interval_s, 10 * (self._clock() - began))
        return survey


_OPEN_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_KINDS = {stat.S_IFREG: EntryKind.FILE, stat.S_IFLNK: EntryKind.SYMLINK}


def _predicate(filters: Filters) -> Callable[[str, os.stat_result], bool]:
    """Return the same choice that `find` makes with the tests of the strategies."""
    glob = os.fsencode(filters.name_glob) if filters.name_glob is not None else None

    def matches(name: str, status: os.stat_result) -> bool:
        if glob is not None and not matches_glob(glob, os.fsencode(name)):
            return False
        if filters.min_size_bytes is not None and (
            not stat.S_ISREG(status.st_mode) or status.st_size < filters.min_size_bytes
        ):
            return False
        before = filters.modified_before_s
        return before is None or status.st_mtime_ns <= before * 1_000_000_000

    return matches
