"""Trees that experiments are made on: flat, wide, deep, and like a home with its backups.

All of them are made by open directories, the same in every round, with two descriptors at a time.
"""

import functools
import math
import os
import random
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tui_fs.linux.directories import open_directory
from tui_fs.model.errors import TuiFsError
from tui_fs.model.units import bytes_iec, count, counted

Tick = Callable[[int], None]

BLOCK_BYTES = 4096
"""ext4, xfs and btrfs give out blocks of this size, as mkfs makes them."""

GETDENTS_BUFFER_BYTES = 32_768
_TICK_ENTRIES = 500
_CHUNK_BYTES = 1 << 20
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def blocks_bytes(file_bytes: int) -> int:
    """Return what a file of this size occupies, in whole blocks."""
    return -(-file_bytes // BLOCK_BYTES) * BLOCK_BYTES


def directory_reads(files: int, prefix: str = "") -> int:
    """Return the getdents64 calls that read a directory of `Flat` names to its end.

    A record has 19 bytes of header, the name and a NUL, in steps of 8; readdir(3) reads 32 KiB at
    once (glibc, sysdeps/unix/sysv/linux/opendir.c); the last call finds nothing.
    """
    record_bytes = 2 * 24  # . and ..
    for digits in range(1, len(str(files)) + 1):
        names = min(files, 10**digits - 1) - (10 ** (digits - 1) - 1)
        record_bytes += names * (-(-(20 + len(prefix) + digits) // 8) * 8)
    return math.ceil(record_bytes / GETDENTS_BUFFER_BYTES) + 1


class Builder:
    """Makes entries in one directory after another, on the way down and up again.

    Args:
        directory: open; it stays open and is not used after the first step.
        tick: see `Recipe.build`; the tree's own name is told first.
    """

    def __init__(self, directory: int, tick: Tick) -> None:
        self._here = open_directory(".", directory)
        self._above: list[int] = []
        self._tick = tick
        self._untold = 1

    def __enter__(self) -> "Builder":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._here)

    def file(self, name: str, file_bytes: int = 0, *, is_written: bool = True) -> None:
        """Make a file; its blocks are written with something, or only reserved."""
        if file_bytes == 0:
            os.mknod(name, stat.S_IFREG | 0o644, dir_fd=self._here)
        else:
            descriptor = os.open(name, _NEW_FILE, 0o644, dir_fd=self._here)
            try:
                if is_written:
                    _write(descriptor, file_bytes)
                else:
                    os.posix_fallocate(descriptor, 0, file_bytes)
            finally:
                os.close(descriptor)
        self._made()

    def down(self, name: str) -> None:
        """Make a directory and go there; the way back is kept."""
        self._above.append(os.fstat(self._here).st_ino)
        self.down_for_good(name)

    def down_for_good(self, name: str) -> None:
        """Make a directory and go there; nothing is kept of those above it."""
        os.mkdir(name, 0o755, dir_fd=self._here)
        below = open_directory(name, self._here)
        os.close(self._here)
        self._here = below
        self._made()

    def up(self) -> None:
        """Go back to the directory above; TuiFsError if another one stands there by now."""
        above = open_directory("..", self._here)
        os.close(self._here)
        self._here = above
        if os.fstat(above).st_ino != self._above.pop():
            raise TuiFsError("Somebody has moved the tree while it was made.")

    def done(self) -> None:
        """Tell the entries that are not told yet."""
        self._tick(self._untold)
        self._untold = 0

    def _made(self) -> None:
        self._untold += 1
        if self._untold >= _TICK_ENTRIES:
            self.done()


@dataclass(frozen=True, slots=True)
class Flat:
    """Files in one directory: ``file_1``, ``file_2`` and so on, as a shell counts.

    Attributes:
        suffixes: the names end with these in turn: ``(".log", ".txt")``.
        is_spaced: there are spaces in the names: ``file_ 1 of 20``.
    """

    files: int
    file_bytes: int = 0
    prefix: str = "file_"
    suffixes: tuple[str, ...] = ("",)
    is_spaced: bool = False

    @property
    def entries(self) -> int:
        """All names in it, its own included."""
        return self.files + 1

    @property
    def contents_bytes(self) -> int:
        """What its files will occupy."""
        return self.files * blocks_bytes(self.file_bytes)

    @property
    def words(self) -> str:
        """What it is."""
        spaced = ", names with spaces" if self.is_spaced else ""
        return f"{_files_in_words(self.files, self.file_bytes)} in one directory{spaced}"

    def name(self, number: int) -> str:
        """Return the name of a file, counted from 1."""
        suffix = self.suffixes[(number - 1) % len(self.suffixes)]
        counted_so = f" {number} of {self.files}" if self.is_spaced else f"{number}"
        return f"{self.prefix}{counted_so}{suffix}"

    def build(self, directory: int, tick: Tick) -> None:
        """Fill an open, empty directory."""
        with Builder(directory, tick) as builder:
            for number in range(1, self.files + 1):
                builder.file(self.name(number), self.file_bytes)
            builder.done()


@dataclass(frozen=True, slots=True)
class Wide:
    """Directories of directories, as many in each, with files in the lowest; names are numbers.

    Attributes:
        breadth: directories in each directory, but in the lowest.
        files: in each of the lowest directories.
        depth: levels of names below the tree; the last one is the files'.
    """

    breadth: int
    files: int
    depth: int = 2

    @property
    def directories(self) -> int:
        """The tree itself and all directories in it."""
        return sum(self.breadth**level for level in range(self.depth))

    @property
    def entries(self) -> int:
        """All names in it, its own included."""
        return self.directories + self.files * self._lowest

    @property
    def contents_bytes(self) -> int:
        """What its files will occupy: they are empty."""
        return 0

    @property
    def words(self) -> str:
        """What it is."""
        lowest = counted(self._lowest, "directory", "directories")
        return f"{lowest} with {_files_in_words(self.files, 0)} in each"

    @property
    def _lowest(self) -> int:
        return math.prod([self.breadth] * (self.depth - 1))

    def build(self, directory: int, tick: Tick) -> None:
        """Fill an open, empty directory."""
        made = [0]  # directories made so far, in each directory on the way down
        with Builder(directory, tick) as builder:
            while made:
                if len(made) == self.depth:
                    for number in range(1, self.files + 1):
                        builder.file(f"{number}")
                elif made[-1] < self.breadth:
                    made[-1] += 1
                    builder.down(f"{made[-1]}")
                    made.append(0)
                    continue
                made.pop()
                if made:
                    builder.up()
            builder.done()


@dataclass(frozen=True, slots=True)
class Chain:
    """Empty directories inside each other."""

    levels: int

    NAME = "d"

    @property
    def entries(self) -> int:
        """All names in it, its own included."""
        return self.levels + 1

    @property
    def contents_bytes(self) -> int:
        """What its files will occupy: there are none."""
        return 0

    @property
    def words(self) -> str:
        """What it is."""
        return f"{count(self.levels)} directories, each inside the one before"

    def build(self, directory: int, tick: Tick) -> None:
        """Fill an open, empty directory."""
        with Builder(directory, tick) as builder:
            for _ in range(self.levels):
                builder.down_for_good(self.NAME)
            builder.done()


_WORDS = (
    "archive", "build", "cache", "data", "docs", "images", "include", "lib", "mail", "music",
    "notes", "photos", "project", "reports", "src", "test", "tmp", "web", "work", "year",
)  # fmt: skip
_ENDINGS = ("", ".c", ".css", ".gz", ".html", ".jpg", ".log", ".md", ".pdf", ".py", ".txt")
_BACKUP = "backup"
_SPREAD = 1.8
"""Of the logarithm of the sizes: many are small, and a few hold most of the bytes."""


@dataclass(frozen=True, slots=True)
class Realistic:
    """A tree like a home with its backups; the same for the same seed.

    The directories hang below each other as they come, some hold most of the files and some none;
    the sizes are log-normal, and together at most twice what the mean gives.

    Attributes:
        mean_bytes: about the mean size of a file.
        files_each: files in a directory, on the average.
        backup_every: so many directories have one called ``backup`` among them.
        largest: a file is at most so many times as large as the mean.
    """

    seed: int
    files: int
    mean_bytes: int
    files_each: int = 12
    backup_every: int = 20
    largest: int = 64

    @property
    def directories(self) -> int:
        """The tree itself and all directories in it."""
        return 1 + max(1, self.files // self.files_each)

    @property
    def backups(self) -> int:
        """How many directories are called ``backup``."""
        return (self.directories - 1) // self.backup_every

    @property
    def entries(self) -> int:
        """All names in it, its own included."""
        return self.directories + self.files

    @property
    def contents_bytes(self) -> int:
        """What its files will occupy, in whole blocks."""
        return _contents_bytes(self)

    @property
    def words(self) -> str:
        """What it is."""
        return (
            f"{count(self.files)} files of {bytes_iec(self.contents_bytes)} in "
            f"{count(self.directories)} directories, {count(self.backups)} called {_BACKUP}"
        )

    def build(self, directory: int, tick: Tick) -> None:
        """Fill an open, empty directory."""
        chance = random.Random(self.seed)
        below, files_in = self._directories(chance)
        sizes = self._sizes()
        ways = [iter(below[0])]
        with Builder(directory, tick) as builder:
            self._fill(builder, files_in[0], sizes, chance)
            while ways:
                number = next(ways[-1], None)
                if number is None:
                    ways.pop()
                    if ways:
                        builder.up()
                    continue
                builder.down(self._name(number, chance))
                self._fill(builder, files_in[number], sizes, chance)
                ways.append(iter(below[number]))
            builder.done()

    def _name(self, number: int, chance: random.Random) -> str:
        is_backup = number % self.backup_every == 0
        return _BACKUP if is_backup else f"{chance.choice(_WORDS)}-{number}"

    def _fill(
        self, builder: Builder, files: int, sizes: Iterator[int], chance: random.Random
    ) -> None:
        for number in range(1, files + 1):
            word, ending = chance.choice(_WORDS), chance.choice(_ENDINGS)
            builder.file(f"{word}_{number}{ending}", next(sizes))

    def _directories(self, chance: random.Random) -> tuple[list[list[int]], list[int]]:
        """Return for each directory the numbers of those in it, and how many files."""
        below: list[list[int]] = [[] for _ in range(self.directories)]
        has_backup: set[int] = set()
        for number in range(1, self.directories):
            # half of them near the last ones, which gives depth, the others anywhere
            lowest = max(0, number - 10) if chance.random() < 0.5 else 0
            above = chance.randrange(lowest, number)
            if number % self.backup_every == 0:
                while above in has_backup:
                    above = chance.randrange(number)
                has_backup.add(above)
            below[above].append(number)
        weights = [chance.paretovariate(1.2) for _ in below]
        files_in = [0] * self.directories
        for number in chance.choices(range(self.directories), weights, k=self.files):
            files_in[number] += 1
        return below, files_in

    def _sizes(self) -> Iterator[int]:
        """Yield the sizes of all files, in the order in which they are made."""
        chance = random.Random(self.seed + 1)
        left = 2 * self.files * self.mean_bytes
        middle = math.log(max(1, self.mean_bytes)) - _SPREAD**2 / 2
        for _ in range(self.files):
            size = int(chance.lognormvariate(middle, _SPREAD))
            size = min(size, self.largest * self.mean_bytes, left)
            left -= size
            yield size


@functools.lru_cache(maxsize=16)
def _contents_bytes(recipe: Realistic) -> int:
    return sum(blocks_bytes(size) for size in recipe._sizes())


def _files_in_words(files: int, file_bytes: int) -> str:
    if file_bytes:
        return f"{counted(files, 'file', 'files')} of {bytes_iec(file_bytes)}"
    return counted(files, "empty file", "empty files")


@functools.cache
def _content() -> bytes:
    """Return bytes that no file system can make smaller, always the same."""
    return random.Random(_CHUNK_BYTES).randbytes(_CHUNK_BYTES)


def _write(descriptor: int, file_bytes: int) -> None:
    content = memoryview(_content())
    while file_bytes > 0:
        file_bytes -= os.write(descriptor, content[: min(file_bytes, _CHUNK_BYTES)])
