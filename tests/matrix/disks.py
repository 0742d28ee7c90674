"""Small disks that are full or partly unreadable."""

import errno
import subprocess
from pathlib import Path

from tests.filesystems import image_of, mount_image
from tests.needs import needs_tool
from tests.trees import flat

_BLOCK_BYTES = 4096
_DISK_BYTES = 16 << 20
_INODES = 1024
# Groups of 8 MiB with 512 inodes each: the inodes after those lie behind all of the data.
_GROUP_BLOCKS = 2048
_MKFS_OPTIONS = (
    *("-b", str(_BLOCK_BYTES), "-g", str(_GROUP_BLOCKS), "-N", str(_INODES)),
    *("-m", "0", "-O", "^has_journal,^flex_bg,^resize_inode", "-E", "lazy_itable_init=0"),
)
_DIRECTORIES = 4


def ext4_disk(place: Path, content: Path | None = None) -> Path:
    """Mount a small ext4 in a place, holding a copy of `content`, and return its mount point."""
    copied = () if content is None else ("-d", str(content))
    mkfs_options, options = (*_MKFS_OPTIONS, *copied), "loop,errors=continue"
    return mount_image(place / "disk", "ext4", _DISK_BYTES, *mkfs_options, options=options)


def fill(point: Path) -> None:
    """Write a file until the file system says that it is full."""
    with (point / "ballast").open("wb", buffering=0) as ballast:
        for chunk_bytes in (1 << 16, 512, 1):
            try:
                while ballast.write(b"\xaa" * chunk_bytes):
                    pass
            except OSError as error:
                assert error.errno == errno.ENOSPC, error


def disk_with_an_unreadable_directory(place: Path) -> Path:
    """Mount a disk whose `target` has four directories, the list of one of them unreadable."""
    point = ext4_disk(place, _directories(place, files_each=50))
    _lose_from(place, max(_blocks_of_directories(place)))
    return point


def disk_with_unreadable_inodes(place: Path) -> Path:
    """Mount a disk whose `target` has names in every directory that lead to unreadable inodes."""
    point = ext4_disk(place, _directories(place, files_each=200))
    _lose_from(place, _GROUP_BLOCKS)
    return point


def _directories(place: Path, files_each: int) -> Path:
    source = place / "source"
    (source / "target").mkdir(parents=True)
    for number in range(_DIRECTORIES):
        flat(source / "target" / f"directory-{number}", files_each)
    return source


def _blocks_of_directories(place: Path) -> list[int]:
    debugfs = needs_tool("debugfs", package="e2fsprogs")
    numbers: list[int] = []
    for number in range(_DIRECTORIES):
        question = f"blocks /target/directory-{number}"
        argv = [debugfs, "-R", question, str(image_of(place / "disk"))]
        answer = subprocess.run(argv, capture_output=True, check=True).stdout
        numbers += map(int, answer.split())
    return numbers


def _lose_from(place: Path, block: int) -> None:
    """Cut off the file behind the disk: the kernel meets EIO when it reads from there on."""
    with image_of(place / "disk").open("r+b") as file:
        file.truncate(block * _BLOCK_BYTES)
