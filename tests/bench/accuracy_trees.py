"""The trees that estimates are measured with: each of a shape, of as many entries as asked."""

import os
import random
from collections.abc import Callable
from pathlib import Path


def flat(root: Path, entries: int, seed: int) -> None:
    """One directory."""
    del seed
    _files(root, entries)


def hundred(root: Path, entries: int, seed: int) -> None:
    """100 directories of 1,000 files, for 100,000 entries."""
    del seed
    for number in range(100):
        _files(root / f"d{number:03}", entries // 100)


def small_directories(root: Path, entries: int, seed: int) -> None:
    """Directories of 20 files."""
    del seed
    for number in range(entries // 20):
        _files(root / f"d{number:06}", 20)


def chain(root: Path, entries: int, seed: int, levels: int = 1900) -> None:
    """Directories inside each other, files in each; its paths end below PATH_MAX."""
    del seed
    directory_fd = os.open(root, os.O_RDONLY)
    for _ in range(levels):
        _files_at(directory_fd, entries // levels, "f{:05}")
        os.mkdir("d", dir_fd=directory_fd)
        below = os.open("d", os.O_RDONLY, dir_fd=directory_fd)
        os.close(directory_fd)
        directory_fd = below
    os.close(directory_fd)


def long_names(root: Path, entries: int, seed: int) -> None:
    """Names of 200 bytes."""
    del seed
    for number in range(10):
        _files(root / f"d{number}", entries // 10, "n" * 192 + "{:08}")


def hard_links(root: Path, entries: int, seed: int) -> None:
    """As rsnapshot: four generations of the same files."""
    del seed
    each = entries // 40
    for number in range(10):
        first = root / "daily.0" / f"d{number}"
        _files(first, each, content=b"x" * 100)
        for generation in range(1, 4):
            second = root / f"daily.{generation}" / f"d{number}"
            second.mkdir(parents=True)
            directory_fd, other_fd = os.open(first, os.O_RDONLY), os.open(second, os.O_RDONLY)
            for name in os.listdir(directory_fd):
                os.link(name, name, src_dir_fd=directory_fd, dst_dir_fd=other_fd)
            os.close(directory_fd)
            os.close(other_fd)


def mixed_sizes(root: Path, entries: int, seed: int) -> None:
    """Most files small, some up to 100 MB, 2 GB together."""
    chance = random.Random(seed)
    left, written = entries, 0
    chunk = bytes(1 << 20)
    for number in range(entries // 200):
        directory = root / f"d{number:05}"
        directory.mkdir(parents=True)
        for name in range(200):
            size = int(10 ** chance.uniform(1, 4.6))
            if written < 1 << 30 and chance.random() < 0.002:
                size = int(10 ** chance.uniform(6, 8))
            written += size
            with open(directory / f"{name:04}", "wb", buffering=0) as file:
                for at in range(0, size, len(chunk)):
                    file.write(chunk[: min(len(chunk), size - at)])
            left -= 1


def seeded(root: Path, entries: int, seed: int) -> None:
    """A random tree: directories anywhere, of any number of files, symbolic links, long names."""
    chance = random.Random(seed)
    directories = [root]
    left = entries
    while left > 0:
        directory = chance.choice(directories[-50:]) / f"{chance.randrange(10**9)}"
        number = min(left, int(chance.lognormvariate(4, 1.8)) + 1)
        _files(directory, number, "a" * chance.randrange(60) + "{:06}")
        for link in range(number // 20):
            os.symlink("nowhere", directory / f"link-{link}")
        directories.append(directory)
        left -= number + 1


SHAPES: dict[str, Callable[[Path, int, int], None]] = {
    "flat": flat,
    "100 x 1000": hundred,
    "n x 20": small_directories,
    "chain 1900": chain,
    "long names": long_names,
    "hard links": hard_links,
    "mixed sizes": mixed_sizes,
    "seeded": seeded,
}


def _files(directory: Path, number: int, name: str = "file-{:06}", content: bytes = b"") -> None:
    directory.mkdir(parents=True, exist_ok=True)
    directory_fd = os.open(directory, os.O_RDONLY)
    _files_at(directory_fd, number, name, content)
    os.close(directory_fd)


def _files_at(directory_fd: int, number: int, name: str, content: bytes = b"") -> None:
    for which in range(number):
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        descriptor = os.open(name.format(which), flags, 0o644, dir_fd=directory_fd)
        if content:
            os.write(descriptor, content)
        os.close(descriptor)
