"""Mount scratch file systems for tests, and always take them down.

Each session mounts below one directory of its own, named after its process, so that a later
session can take down what a killed one left.
"""

import fcntl
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.needs import needs_root, needs_tool
from tests.trees import flat

FILESYSTEMS = ("ext4", "xfs", "tmpfs")
# One to three seconds of deleting on ext4: time to speak to the job.
CROWDED_FILES = 120_000

PREFIX = "tui-fs-scratch-"
_EXT4_BYTES = 2 << 30
_EXT4_INODES = 400_000
# The kernel thread that fills inode tables lazily would compete with every test.
_EXT4_OPTIONS = "loop,noinit_itable"
_CROWDED_BYTES = 512 << 20
_CROWDED_INODES = CROWDED_FILES + 10_000
# mkfs.xfs refuses less than 300 MiB.
_XFS_BYTES = 1 << 30
_BTRFS_BYTES = 1 << 30
# Names have the same hashes in each run: the estimate of a part of a directory misses 1 seed in 25.
_HASH_SEED = "hash_seed=9f0c2f0e-5a0f-4f6e-8d5b-3f2c1a7e6b10"
# The packages of mkfs, and its options to overwrite an image.
_MKFS = {
    "ext4": ("e2fsprogs", ("-F", "-E", _HASH_SEED)),
    "xfs": ("xfsprogs", ("-f",)),
    "btrfs": ("btrfs-progs", ("-f",)),
}
_TMPFS_OPTIONS = "size=1g,nr_inodes=1m,mode=0755"
_BUSY_DEADLINE_S = 5.0
_POLL_S = 0.05
_OCTAL_ESCAPE = re.compile(rb"\\([0-7]{3})")


def mounts_below(directory: Path) -> list[Path]:
    """List the mount points at or below a directory, the innermost first."""
    prefix = os.fsencode(directory)
    points: list[bytes] = []
    with open("/proc/self/mountinfo", "rb") as table:
        for line in table:
            escaped = line.split(b" ")[4]
            point = _OCTAL_ESCAPE.sub(lambda match: bytes([int(match[1], 8)]), escaped)
            if point == prefix or point.startswith(prefix + b"/"):
                points.append(point)
    return [Path(os.fsdecode(point)) for point in reversed(points)]


def kind_of(directory: Path) -> str:
    """Name the type of the file system that holds a directory."""
    command = ["stat", "--file-system", "--format=%T", "--", str(directory)]
    named = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    return "ext4" if named.startswith("ext2/ext3") else named


def unmount_below(directory: Path) -> None:
    """Take down every mount at or below a directory, lazily where it stays busy."""
    for point in mounts_below(directory):
        # A process that was killed a moment ago may hold it still.
        end = time.monotonic() + _BUSY_DEADLINE_S
        while not _unmounts(point) and time.monotonic() < end:
            time.sleep(_POLL_S)
        if point in mounts_below(point):
            subprocess.run(["umount", "-l", point], capture_output=True, check=False)


def unmount_copies() -> None:
    """In a new mount namespace: take down what other sessions have mounted in the one it copies."""
    for point in mounts_below(Path(tempfile.gettempdir())):
        if any(part.startswith(PREFIX) for part in point.parts):
            subprocess.run(["umount", "-l", point], capture_output=True, check=False)


def _unmounts(point: Path) -> bool:
    return subprocess.run(["umount", point], capture_output=True, check=False).returncode == 0


def remove_tree(directory: Path) -> None:
    """Remove a test's directory however it was left: mounts, immutable files, any depth."""
    if mounts_below(directory):
        unmount_below(directory)
    command = ["rm", "-rf", "--one-file-system", "--", str(directory)]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        thaw = ["chattr", "-R", "-f", "-i", "-a", str(directory)]
        subprocess.run(thaw, capture_output=True, check=False)
        subprocess.run(command, check=True)


@pytest.fixture(scope="session")
def mount_root() -> Iterator[Path]:
    """Yield the directory below which this session mounts."""
    take_down_leftovers()
    root = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-"))
    lock = os.open(root, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    yield root
    unmount_below(root)
    shutil.rmtree(root)
    os.close(lock)


@pytest.fixture(scope="session")
def ext4_root(mount_root: Path) -> Path:
    """Mount a fresh ext4 with room for 400,000 inodes."""
    inodes = ("-N", str(_EXT4_INODES))
    return mount_image(mount_root / "ext4", "ext4", _EXT4_BYTES, *inodes, options=_EXT4_OPTIONS)


@pytest.fixture(scope="session")
def xfs_root(mount_root: Path) -> Path:
    """Mount a fresh xfs."""
    return mount_image(mount_root / "xfs", "xfs", _XFS_BYTES)


@pytest.fixture(scope="session")
def btrfs_root(mount_root: Path) -> Path:
    """Mount a fresh btrfs."""
    return mount_image(mount_root / "btrfs", "btrfs", _BTRFS_BYTES)


@pytest.fixture(scope="session")
def ramfs_root(mount_root: Path) -> Path:
    """Mount a fresh ramfs, a file system that the program has no data about."""
    return mount(mount_root / "ramfs", "tui-fs-test", "ramfs", "mode=0755")


@pytest.fixture(scope="session")
def tmpfs_root(mount_root: Path) -> Iterator[Path]:
    """Mount a fresh tmpfs, or use /dev/shm where mounting is not allowed."""
    if os.geteuid() == 0:
        yield mount(mount_root / "tmpfs", "tui-fs-test", "tmpfs", _TMPFS_OPTIONS)
        return
    if not os.access("/dev/shm", os.W_OK):
        needs_root("mounting tmpfs, as /dev/shm is not writable,")
    root = Path(tempfile.mkdtemp(prefix=PREFIX, dir="/dev/shm"))
    yield root
    remove_tree(root)


@pytest.fixture(params=FILESYSTEMS)
def filesystem(request: pytest.FixtureRequest) -> Iterator[Path]:
    """Yield an empty directory on each file system in turn."""
    root = request.getfixturevalue(f"{request.param}_root")
    assert isinstance(root, Path)
    yield from _own_directory(root)


@pytest.fixture
def ext4(ext4_root: Path) -> Iterator[Path]:
    """Yield an empty directory on ext4."""
    yield from _own_directory(ext4_root)


@pytest.fixture(scope="session")
def crowded_image(mount_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build one directory of 120,000 files in an ext4 image, which takes seconds, once."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent  # of all workers
    image = shared / "crowded.image"
    with open(shared / "crowded.lock", "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not image.exists():
            point, inodes = mount_root / "crowded", ("-N", str(_CROWDED_INODES))
            mount_image(point, "ext4", _CROWDED_BYTES, *inodes, options=_EXT4_OPTIONS)
            flat(point / "target", CROWDED_FILES)
            # A mount namespace of another test may keep it mounted for a while.
            subprocess.run(["sync", "--file-system", point], check=True)
            unmount_below(point)
            _copy_image(image_of(point), image.with_suffix(".new")).rename(image)
    return image


def _copy_image(image: Path, copy: Path) -> Path:
    subprocess.run(["cp", "--sparse=always", image, copy], check=True)
    return copy


@pytest.fixture
def crowded(crowded_image: Path, mount_root: Path) -> Iterator[Path]:
    """Yield an ext4 of its own that holds the directory `target` of 120,000 files."""
    image = _copy_image(crowded_image, mount_root / "copy.image")
    point = mount(mount_root / "copy", str(image), "ext4", _EXT4_OPTIONS)
    yield point
    unmount_below(point)
    image.unlink()


@pytest.fixture
def tmpfs(tmpfs_root: Path) -> Iterator[Path]:
    """Yield an empty directory on tmpfs."""
    yield from _own_directory(tmpfs_root)


@pytest.fixture
def xfs(xfs_root: Path) -> Iterator[Path]:
    """Yield an empty directory on xfs."""
    yield from _own_directory(xfs_root)


@pytest.fixture
def btrfs(btrfs_root: Path) -> Iterator[Path]:
    """Yield an empty directory on btrfs."""
    yield from _own_directory(btrfs_root)


@pytest.fixture
def ramfs(ramfs_root: Path) -> Iterator[Path]:
    """Yield an empty directory on ramfs."""
    yield from _own_directory(ramfs_root)


def mount_tmpfs(point: Path) -> Path:
    """Mount an empty tmpfs on a directory; the owner of the directory takes it down."""
    return mount(point, "tui-fs-test", "tmpfs", _TMPFS_OPTIONS)


def mount_bind(source: Path, point: Path) -> Path:
    """Show a directory a second time, at another place of the same file system."""
    point.mkdir(exist_ok=True)
    subprocess.run(["mount", "--bind", source, point], check=True)
    return point


def mount_overlay(place: Path, fill: Callable[[Path], None]) -> Path:
    """Mount an overlay in an empty directory and return its mount point.

    Args:
        fill: makes the entries of the lower layer in the directory that it is given.
    """
    merged, options = layer_directories(place, fill)
    return mount(merged, "tui-fs-test", "overlay", options)


def layer_directories(place: Path, fill: Callable[[Path], None]) -> tuple[Path, str]:
    """Make the layers of an overlay; return its mount point, to be made, and its options.

    Args:
        fill: makes the entries of the lower layer in the directory that it is given.
    """
    lower, upper, work, merged = (place / name for name in ("lower", "upper", "work", "merged"))
    for directory in (lower, upper, work):
        directory.mkdir()
    fill(lower)
    return merged, f"lowerdir={lower},upperdir={upper},workdir={work}"


def _own_directory(root: Path) -> Iterator[Path]:
    directory = Path(tempfile.mkdtemp(dir=root))
    yield directory
    remove_tree(directory)


def mount_image(
    point: Path, kind: str, size_bytes: int, *mkfs_options: str, options: str = "loop"
) -> Path:
    """Make a file system in a sparse image next to the mount point, and mount it.

    Args:
        options: those of mount(8). With "loop" the kernel detaches the loop device by itself.
    """
    needs_root(f"mounting {kind}")
    package, usual_options = _MKFS[kind]
    mkfs = needs_tool(f"mkfs.{kind}", package)
    with image_of(point).open("wb") as image:
        image.truncate(size_bytes)
    subprocess.run([mkfs, "-q", *usual_options, *mkfs_options, image.name], check=True)
    return mount(point, image.name, kind, options)


def image_of(point: Path) -> Path:
    """Return where mount_image makes the image of a mount point."""
    return point.with_name(f"{point.name}.image")


def mount(point: Path, source: str, kind: str, options: str) -> Path:
    """Mount a file system on a directory, made if it does not exist, or on a file."""
    needs_root(f"mounting {kind}")
    if not point.exists():
        point.mkdir()
    command = ["mount", "-t", kind, "-o", options, source, str(point)]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, f"{' '.join(command)}: {finished.stderr}"
    return point


def take_down_leftovers() -> None:
    """Remove what killed sessions left in the directory for temporary files."""
    for name in os.listdir(tempfile.gettempdir()):
        owner = re.match(rf"{PREFIX}(\d+)-", name)
        leftover = Path(tempfile.gettempdir(), name)
        if owner is None or Path("/proc", owner[1]).exists() or _is_locked(leftover):
            continue
        unmount_below(leftover)
        shutil.rmtree(leftover, ignore_errors=True)


def _is_locked(root: Path) -> bool:
    """Return whether the owner lives, in a PID namespace that need not be ours."""
    try:
        descriptor = os.open(root, os.O_RDONLY)
    except FileNotFoundError:
        return False  # another session has removed it
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
