"""Small disks that are full, or of which a part cannot be read."""

import errno
import subprocess
from pathlib import Path

from tests.needs import needs_tool
from tests.trees import flat

_BLOCK_BYTES = 4096
_DISK_BYTES = 16 << 20
_INODES = 1024
# Groups of 8 MiB with 512 inodes each: the inodes after those lie behind all of the data.
_GROUP_BLOCKS = 2048
_MKFS_OPTIONS = (
    *("-q", "-F", "-b", str(_BLOCK_BYTES), "-g", str(_GROUP_BLOCKS), "-N", str(_INODES)),
    *("-m", "0", "-O", "^has_journal,^flex_bg,^resize_inode", "-E", "lazy_itable_init=0"),
)
_DIRECTORIES = 4


def ext4_disk(place: Path, content: Path | None = None) -> Path:
    """Mount a small ext4 in a place, holding a copy of `content`, and return its mount point."""
    mkfs = needs_tool("mkfs.ext4", package="e2fsprogs")
    image, point = _image_of(place), place / "disk"
    with image.open("wb") as file:
        file.truncate(_DISK_BYTES)
    copied = () if content is None else ("-d", str(content))
    subprocess.run([mkfs, *_MKFS_OPTIONS, *copied, str(image)], check=True)
    point.mkdir()
    subprocess.run(["mount", "-o", "loop,errors=continue", image, point], check=True)
    return point


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
        argv = [debugfs, "-R", question, str(_image_of(place))]
        answer = subprocess.run(argv, capture_output=True, check=True).stdout
        numbers += map(int, answer.split())
    return numbers


def _lose_from(place: Path, block: int) -> None:
    """Cut off the file behind the disk: the kernel meets EIO when it reads from there on."""
    with _image_of(place).open("r+b") as file:
        file.truncate(block * _BLOCK_BYTES)


def _image_of(place: Path) -> Path:
    return place / "disk.image"
