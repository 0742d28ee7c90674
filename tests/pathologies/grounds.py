"""File systems to make pathologies on: loopback images, tmpfs, and an overlay of two of them."""

import tempfile
from pathlib import Path

from tests.filesystems import mount, mount_image, remove_tree

FILESYSTEMS = ("ext4", "xfs", "btrfs", "tmpfs", "overlay")

_IMAGE_BYTES = 6 << 30
_MOUNT_OPTIONS = {"ext4": "loop,noinit_itable", "xfs": "loop", "btrfs": "loop"}
TMPFS_OPTIONS = "size=4g,nr_inodes=2m,mode=0755"


class Grounds:
    """File systems that are mounted when they are first asked for, below one directory."""

    def __init__(self, root: Path) -> None:
        """Take an empty directory for images and mount points."""
        # In memory, as the contents of the images are of no use after they are taken down.
        self._root = mount(root, "tui-fs-test", "tmpfs", TMPFS_OPTIONS)
        self._points: dict[str, Path] = {}

    def directory_on(self, filesystem: str) -> Path:
        """Make an empty directory on a file system of this kind."""
        point = self._points.get(filesystem)
        if point is None:
            point = self._points[filesystem] = self._mounted(filesystem)
        return Path(tempfile.mkdtemp(dir=point))

    def host_directory(self) -> Path:
        """Make an empty directory for a case that brings a file system of its own."""
        return Path(tempfile.mkdtemp(dir=self._root))

    def _mounted(self, filesystem: str) -> Path:
        place = self._root / filesystem
        place.mkdir()
        match filesystem:
            case "tmpfs":
                return mount(place, "tui-fs-test", "tmpfs", TMPFS_OPTIONS)
            case "overlay":
                return mount_overlay(place, self.directory_on("ext4"), self.directory_on("tmpfs"))
            case _:
                return fresh_image(place, filesystem, _IMAGE_BYTES)

    def take_down(self) -> None:
        """Unmount and remove everything."""
        remove_tree(self._root)


def fresh_image(
    place: Path, filesystem: str, size_bytes: int, mkfs_options: tuple[str, ...] = ()
) -> Path:
    """Make a file system with enough inodes in an image in a directory, and mount it there."""
    if filesystem == "ext4":
        mkfs_options = ("-N", "1000000", *mkfs_options)
    options = _MOUNT_OPTIONS[filesystem]
    return mount_image(place / "disk", filesystem, size_bytes, *mkfs_options, options=options)


def mount_overlay(point: Path, lower: Path, upper: Path) -> Path:
    """Mount an overlay whose lower and upper layers lie on different file systems.

    Each layer's directory gets a file `from-below` and `from-above`, so that both are in use.
    """
    (upper / "data").mkdir()
    (upper / "work").mkdir()
    (lower / "from-below").write_bytes(b"below\n")
    (upper / "data" / "from-above").write_bytes(b"above\n")
    options = f"lowerdir={lower},upperdir={upper / 'data'},workdir={upper / 'work'}"
    return mount(point, "tui-fs-test", "overlay", options)
