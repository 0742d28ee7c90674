"""Trees whose space or inodes are not what their names and sizes say."""

import os
import subprocess
from functools import partial
from pathlib import Path

from tests.filesystems import mount
from tests.pathologies.case import CRITICAL, INFO, WARNING, Made, Pathology, Scene, exactly
from tests.pathologies.grounds import fresh_image
from tests.trees import flat

MIB = 1 << 20
_BLOCK_BYTES = 4096
_SMALL_FILES = 20_000
_SPARSE_BYTES = 100 * MIB
_PREALLOCATED_BYTES = 1 << 30
_FRAGMENTS = 12_800
_LINKED_INODES = 1_200
_LINKED_BYTES = 64 * 1024


def _own_filesystem(scene: Scene, size_bytes: int, inodes: int) -> Path:
    """Mount a small file system of the scene's kind in its place."""
    place = scene.place
    if scene.filesystem == "tmpfs":
        point = place / "disk"
        point.mkdir()
        options = f"size={size_bytes},nr_inodes={inodes},mode=0755"
        return mount(point, "tui-fs-test", "tmpfs", options)
    counted = ("-N", str(inodes)) if scene.filesystem == "ext4" else ()
    return fresh_image(place, scene.filesystem, size_bytes, counted)


def inodes_low(scene: Scene, *, left_percent: float) -> Made:
    """Make a file system with 4,000 inodes and this share of them free."""
    point = _own_filesystem(scene, 64 * MIB, 4_000)
    tree = point / "tree"
    (tree / "crowd").mkdir(parents=True)
    wanted = int(os.statvfs(point).f_files * left_percent / 100)
    flat(tree / "crowd", os.statvfs(point).f_favail - wanted)
    free = os.statvfs(point)
    assert free.f_favail == wanted
    numbers = {"free_inodes": exactly(free.f_favail), "total_inodes": exactly(free.f_files)}
    return Made(tree, None, numbers)


def space_low(scene: Scene, *, left_percent: float) -> Made:
    """Make a file system with this share of it available to users."""
    size_bytes = 400 * MIB if scene.filesystem == "xfs" else 64 * MIB
    point = _own_filesystem(scene, size_bytes, 4_000)
    tree = point / "tree"
    tree.mkdir()
    with (tree / "ballast").open("wb") as ballast:
        while True:
            os.fsync(ballast.fileno())
            free = os.statvfs(point)
            # Extents and reserves take space too, so the last of it is taken in small steps.
            excess = free.f_bavail - free.f_blocks * left_percent / 100
            if excess <= 0:
                break
            length = max(1, int(excess * 0.9)) * free.f_frsize
            os.posix_fallocate(ballast.fileno(), ballast.seek(0, os.SEEK_END), length)
    # What the file system puts aside for itself may change a little afterwards.
    available = free.f_bavail * free.f_frsize
    return Made(tree, None, {"available_bytes": range(max(0, available - MIB), available + MIB)})


def _small_files(scene: Scene) -> Made:
    """Make 20,000 files of one byte."""
    tree = scene.tree()
    (tree / "cache").mkdir()
    descriptor = os.open(tree / "cache", os.O_RDONLY | os.O_DIRECTORY)
    for number in range(_SMALL_FILES):
        file = os.open(f"file-{number:05}", os.O_CREAT | os.O_WRONLY, dir_fd=descriptor)
        os.write(file, b"x")
        os.close(file)
    os.close(descriptor)
    _settle(tree)
    wasted = _SMALL_FILES * (_BLOCK_BYTES - 1)
    return Made(tree, None, {"waste_bytes": range(wasted - MIB, wasted + MIB)})


def _preallocated(scene: Scene) -> Made:
    """Make empty files with blocks behind their end: slack without the small files."""
    tree = scene.tree()
    for number in range(16):
        file = tree / f"file-{number:02}"
        file.touch()
        length = str(_PREALLOCATED_BYTES // 16)
        subprocess.run(["fallocate", "--keep-size", "-l", length, file], check=True)
    return Made(tree, None, {"waste_bytes": range(_PREALLOCATED_BYTES, _PREALLOCATED_BYTES + MIB)})


def _sparse(scene: Scene) -> Made:
    """Make a file with a large hole."""
    tree = scene.tree()
    (tree / "images").mkdir()
    file = tree / "images" / "disk.img"
    file.write_bytes(b"x" * _BLOCK_BYTES)
    os.truncate(file, _SPARSE_BYTES)
    return Made(tree, None, {"apparent_bytes": exactly(_SPARSE_BYTES)})


def fragmented(scene: Scene, fragments: int = _FRAGMENTS) -> Made:
    """Make a file of 100 MiB in pieces with a hole after each, half of it holes."""
    tree = scene.tree()
    file = tree / "database"
    piece_bytes = 50 * MIB // fragments // _BLOCK_BYTES * _BLOCK_BYTES
    with file.open("wb") as database:
        # Beyond the end, xfs would allocate more than it is asked for.
        database.truncate(2 * fragments * piece_bytes)
        for number in range(fragments):
            os.pwrite(database.fileno(), b"x" * piece_bytes, 2 * number * piece_bytes)
        os.fsync(database.fileno())
    return Made(tree, file, {"extents": exactly(fragments)})


def _linked(scene: Scene) -> Path:
    tree = scene.tree()
    originals = tree / "daily.0"
    originals.mkdir()
    for number in range(_LINKED_INODES):
        with (originals / f"file-{number:05}").open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, _LINKED_BYTES)
    return tree


def _hard_links(scene: Scene) -> Made:
    """Make files with three names each, all of them in the tree."""
    tree = _linked(scene)
    for number in (1, 2):
        copy = ["cp", "-al", str(tree / "daily.0"), str(tree / f"daily.{number}")]
        subprocess.run(copy, check=True)
    numbers = {
        "names": exactly(3 * _LINKED_INODES),
        "inodes": exactly(_LINKED_INODES),
        "linked_outside_bytes": exactly(0),
    }
    return Made(tree, None, numbers)


def _hard_links_outside(scene: Scene) -> Made:
    """Make files of 64 KiB that have a second name outside the tree."""
    tree = _linked(scene)
    subprocess.run(["cp", "-al", str(tree / "daily.0"), str(scene.place / "kept")], check=True)
    return Made(tree, None, {"linked_outside_bytes": exactly(_LINKED_INODES * _LINKED_BYTES)})


def _settle(tree: Path) -> None:
    """Have blocks allocated that wait in memory, so that everybody sees the same numbers."""
    subprocess.run(["sync", "--file-system", tree], check=True)


def _lows(name: str, resource: str, filesystems: tuple[str, ...]) -> tuple[Pathology, ...]:
    make = {"inodes-low": inodes_low, "space-low": space_low}[name]
    bounds = {"inodes-low": (8.0, 1.0), "space-low": (4.0, 0.5)}[name]
    return tuple(
        Pathology(
            name=f"{name}-{severity.value}",
            kind=name,
            severity=severity,
            title=f"{left:g} % of the {resource} available",
            make=partial(make, left_percent=left),
            filesystems=filesystems,
            has_own_filesystem=True,
        )
        for severity, left in zip((WARNING, CRITICAL), bounds, strict=True)
    )


SPACE = (
    *_lows("inodes-low", "inodes", ("ext4", "tmpfs")),
    *_lows("space-low", "space", ("ext4", "xfs", "tmpfs")),
    Pathology(
        name="small-file-waste",
        kind="small-file-waste",
        severity=INFO,
        title="20,000 files of one byte",
        make=_small_files,
        filesystems=("ext4", "xfs", "btrfs", "tmpfs"),
    ),
    Pathology(
        name="small-file-waste-warning",
        kind="small-file-waste",
        severity=WARNING,
        title="1 GiB allocated for files of nothing",
        make=_preallocated,
        filesystems=("ext4", "xfs"),
    ),
    Pathology(
        name="sparse",
        kind="sparse",
        severity=INFO,
        title="a file of 100 MiB with 4 KiB in it",
        make=_sparse,
        filesystems=("ext4", "xfs", "btrfs", "tmpfs"),
    ),
    Pathology(
        name="fragmented",
        kind="fragmented",
        severity=WARNING,
        title="a file of 100 MiB in 12,800 pieces",
        make=fragmented,
        filesystems=("ext4", "xfs", "btrfs"),
        not_on=("tmpfs",),
    ),
    Pathology(
        name="fragmented-info",
        kind="fragmented",
        severity=INFO,
        title="a file of 100 MiB in 1,600 pieces",
        make=partial(fragmented, fragments=1_600),
        filesystems=("ext4",),
    ),
    Pathology(
        name="hard-links",
        kind="hard-links",
        severity=INFO,
        title="1,200 files with three names each in the tree",
        make=_hard_links,
        filesystems=("ext4", "xfs", "btrfs", "tmpfs"),
    ),
    Pathology(
        name="hard-links-outside",
        kind="hard-links",
        severity=WARNING,
        title="1,200 files of 64 KiB with other names outside",
        make=_hard_links_outside,
        filesystems=("ext4", "xfs"),
    ),
)
