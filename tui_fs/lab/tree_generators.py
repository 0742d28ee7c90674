"""Trees that experiments are made on: flat, wide, deep, and like a home with its backups.

A generator describes its directories one after the other. `Tree.build` makes them relative to open
directories, with two descriptors at a time. The tree is the same in every round.
"""

import functools
import math
import os
import random
import stat
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from msgspec import Struct

from tui_fs.linux.directories import open_directory
from tui_fs.model.errors import TuiFsError
from tui_fs.model.units import bytes_iec, count, counted

Tick = Callable[[int], None]

BLOCK_BYTES = 4096
"""ext4, xfs and btrfs allocate blocks of this size, as mkfs makes them."""

GETDENTS_BUFFER_BYTES = 32_768
_TICK_ENTRIES = 500
_CHUNK_BYTES = 1 << 20
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def blocks_bytes(file_bytes: int) -> int:
    """Return the bytes that a file of this size occupies, in whole blocks."""
    return -(-file_bytes // BLOCK_BYTES) * BLOCK_BYTES


def directory_reads(files: int, prefix: str = "") -> int:
    """Return the getdents64 calls that read a directory of `Flat` names to its end.

    A record has 19 bytes of header, the name and a NUL, padded to 8; readdir(3) reads 32 KiB at
    once (glibc, sysdeps/unix/sysv/linux/opendir.c); the last call returns nothing.
    """
    record_bytes = 2 * 24  # . and ..
    for digits in range(1, len(str(files)) + 1):
        names = min(files, 10**digits - 1) - (10 ** (digits - 1) - 1)
        record_bytes += names * (-(-(20 + len(prefix) + digits) // 8) * 8)
    return math.ceil(record_bytes / GETDENTS_BUFFER_BYTES) + 1


class Directory(NamedTuple):
    """A directory to make, `level` levels below the tree, with names and sizes of its files.

    It contains the next directory if that has a higher level. The tree's own name is ignored.
    """

    level: int
    name: str
    files: Iterable[tuple[str, int]] = ()


class Tree(Struct, frozen=True):
    """A tree that can be built again and again."""

    is_written = True
    """The blocks of the files are written; else they are only reserved."""

    @property
    def entries(self) -> int:
        """All names in it, its own included."""
        raise NotImplementedError

    @property
    def contents_bytes(self) -> int:
        """The blocks of its files; 0 if they are empty."""
        return 0

    @property
    def words(self) -> str:
        """A description in a few words."""
        raise NotImplementedError

    def directories(self) -> Iterator[Directory]:
        """Yield the tree itself and its directories, each before those in it."""
        raise NotImplementedError

    def build(self, directory: int, tick: Tick) -> None:
        """Fill an open, empty directory.

        Args:
            tick: called with the number of entries made, at least for every thousand; its
                exception ends the building.

        Raises:
            TuiFsError: a directory was moved away.
        """
        here = open_directory(".", directory)
        path: list[int] = []  # inodes of the directories above
        unreported = 0
        try:
            for level, name, files in self.directories():
                while len(path) >= max(1, level):
                    here = _exchange(here, open_directory("..", here))
                    if os.fstat(here).st_ino != path.pop():
                        raise TuiFsError(
                            "Another process moved the tree while it was being created."
                        )
                if level:
                    path.append(os.fstat(here).st_ino)
                    os.mkdir(name, 0o755, dir_fd=here)
                    here = _exchange(here, open_directory(name, here))
                unreported += 1
                for file_name, file_bytes in files:
                    self._make_file(here, file_name, file_bytes)
                    unreported += 1
                    if unreported >= _TICK_ENTRIES:
                        tick(unreported)
                        unreported = 0
                if unreported >= _TICK_ENTRIES:
                    tick(unreported)
                    unreported = 0
            tick(unreported)
        finally:
            os.close(here)

    def _make_file(self, directory: int, name: str, file_bytes: int) -> None:
        if file_bytes == 0:
            os.mknod(name, stat.S_IFREG | 0o644, dir_fd=directory)
            return
        descriptor = os.open(name, _NEW_FILE, 0o644, dir_fd=directory)
        try:
            if self.is_written:
                _write(descriptor, file_bytes)
            else:
                os.posix_fallocate(descriptor, 0, file_bytes)
        finally:
            os.close(descriptor)


class Flat(Tree, frozen=True):
    """Empty files in one directory: ``file_1``, ``file_2`` and so on, as a shell counts.

    Attributes:
        suffixes: the names end with these in turn: ``(".log", ".txt")``.
        is_spaced: there are spaces in the names: ``file_ 1 of 20``.
    """

    files: int
    prefix: str = "file_"
    suffixes: tuple[str, ...] = ("",)
    is_spaced: bool = False

    @property
    def entries(self) -> int:
        return self.files + 1

    @property
    def words(self) -> str:
        spaced = ", names with spaces" if self.is_spaced else ""
        return f"{counted(self.files, 'empty file', 'empty files')} in one directory{spaced}"

    def name(self, number: int) -> str:
        """Return the name of a file, counted from 1."""
        suffix = self.suffixes[(number - 1) % len(self.suffixes)]
        digits = f" {number} of {self.files}" if self.is_spaced else f"{number}"
        return f"{self.prefix}{digits}{suffix}"

    def directories(self) -> Iterator[Directory]:
        yield Directory(0, "", ((self.name(number), 0) for number in range(1, self.files + 1)))


class Wide(Tree, frozen=True):
    """Directories with empty files in each; all names are numbers."""

    breadth: int
    files: int

    @property
    def entries(self) -> int:
        return 1 + self.breadth * (1 + self.files)

    @property
    def words(self) -> str:
        directories = counted(self.breadth, "directory", "directories")
        return f"{directories} with {counted(self.files, 'empty file', 'empty files')} in each"

    def directories(self) -> Iterator[Directory]:
        yield Directory(0, "")
        for number in range(1, self.breadth + 1):
            yield Directory(1, f"{number}", ((f"{file}", 0) for file in range(1, self.files + 1)))


class Chain(Tree, frozen=True):
    """Empty directories inside each other."""

    levels: int

    @property
    def entries(self) -> int:
        return self.levels + 1

    @property
    def words(self) -> str:
        return f"{count(self.levels)} directories, each inside the one before"

    def directories(self) -> Iterator[Directory]:
        return (Directory(level, "d") for level in range(self.levels + 1))


_WORDS = (
    "archive", "build", "cache", "data", "docs", "images", "include", "lib", "mail", "music",
    "notes", "photos", "project", "reports", "src", "test", "tmp", "web", "work", "year",
)  # fmt: skip
_ENDINGS = ("", ".c", ".css", ".gz", ".html", ".jpg", ".log", ".md", ".pdf", ".py", ".txt")
_BACKUP = "backup"
_FILES_EACH = 12
"""Files in a directory, on average."""
_BACKUP_EVERY = 20
"""One directory in this many is called ``backup``."""
_MAX_SIZE_FACTOR = 64
"""A file is at most this many times as large as the mean."""
_SPREAD = 1.8
"""Standard deviation of the logarithm of the sizes: a few files hold most of the bytes."""


class Realistic(Tree, frozen=True):
    """A tree like a home with its backups; the same for the same seed.

    The directories are nested at random; some hold most of the files and some none. The sizes are
    log-normal, and their sum is at most twice the product of files and mean.

    Attributes:
        mean_bytes: about the mean size of a file.
    """

    seed: int
    files: int
    mean_bytes: int

    @property
    def directory_count(self) -> int:
        """The tree itself and all directories in it."""
        return 1 + max(1, self.files // _FILES_EACH)

    @property
    def backups(self) -> int:
        """How many directories are called ``backup``."""
        return (self.directory_count - 1) // _BACKUP_EVERY

    @property
    def entries(self) -> int:
        return self.directory_count + self.files

    @property
    def contents_bytes(self) -> int:
        return _contents_bytes(self)

    @property
    def words(self) -> str:
        return (
            f"{count(self.files)} files ({bytes_iec(self.contents_bytes)}) in "
            f"{count(self.directory_count)} directories, {count(self.backups)} called {_BACKUP}"
        )

    def directories(self) -> Iterator[Directory]:
        rng = random.Random(self.seed)
        below, files_in = self._layout(rng)
        sizes = self._sizes()
        pending = [(0, 0)]  # level and number
        while pending:
            level, number = pending.pop()
            is_backup = number % _BACKUP_EVERY == 0
            name = _BACKUP if is_backup else f"{rng.choice(_WORDS)}-{number}"
            yield Directory(level, name, self._files(files_in[number], sizes, rng))
            pending += [(level + 1, each) for each in reversed(below[number])]

    def _files(
        self, files: int, sizes: Iterator[int], rng: random.Random
    ) -> Iterator[tuple[str, int]]:
        for number in range(1, files + 1):
            word, ending = rng.choice(_WORDS), rng.choice(_ENDINGS)
            yield f"{word}_{number}{ending}", next(sizes)

    def _layout(self, rng: random.Random) -> tuple[list[list[int]], list[int]]:
        """Return the numbers of each directory's subdirectories, and how many files it holds."""
        below: list[list[int]] = [[] for _ in range(self.directory_count)]
        has_backup: set[int] = set()
        for number in range(1, self.directory_count):
            # half of them below recent ones, which makes the tree deep, the others anywhere
            lowest = max(0, number - 10) if rng.random() < 0.5 else 0
            above = rng.randrange(lowest, number)
            if number % _BACKUP_EVERY == 0:
                while above in has_backup:
                    above = rng.randrange(number)
                has_backup.add(above)
            below[above].append(number)
        weights = [rng.paretovariate(1.2) for _ in below]
        files_in = [0] * self.directory_count
        for number in rng.choices(range(self.directory_count), weights, k=self.files):
            files_in[number] += 1
        return below, files_in

    def _sizes(self) -> Iterator[int]:
        """Yield the sizes of all files, in the order in which they are made."""
        rng = random.Random(self.seed + 1)
        left = 2 * self.files * self.mean_bytes
        middle = math.log(max(1, self.mean_bytes)) - _SPREAD**2 / 2
        for _ in range(self.files):
            size = int(rng.lognormvariate(middle, _SPREAD))
            size = min(size, _MAX_SIZE_FACTOR * self.mean_bytes, left)
            left -= size
            yield size


@functools.lru_cache(maxsize=16)
def _contents_bytes(tree: Realistic) -> int:
    return sum(blocks_bytes(size) for size in tree._sizes())


def _exchange(old: int, new: int) -> int:
    os.close(old)
    return new


@functools.cache
def _content() -> bytes:
    """Return the same incompressible bytes at every call."""
    return random.Random(_CHUNK_BYTES).randbytes(_CHUNK_BYTES)


def _write(descriptor: int, file_bytes: int) -> None:
    content = memoryview(_content())
    while file_bytes > 0:
        file_bytes -= os.write(descriptor, content[: min(file_bytes, _CHUNK_BYTES)])
