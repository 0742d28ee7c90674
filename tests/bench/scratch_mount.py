"""File systems of their own for measurements, in an image or in memory."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def mounted(place: str, filesystem: str, size_bytes: int, inodes: int) -> Iterator[Path]:
    """Mount a new file system below a directory, and take it down again.

    Args:
        filesystem: ext4, xfs, btrfs or tmpfs.
        inodes: that it must have room for where their number is fixed.
    """
    point = Path(place) / filesystem
    point.mkdir()
    image = Path(place) / f"{filesystem}.img"
    if filesystem == "tmpfs":
        options, source = f"size={size_bytes},nr_inodes={inodes},mode=0755", "tui-fs-bench"
    else:
        with open(image, "wb") as file:
            file.truncate(size_bytes)
        how = ["-F", "-N", str(inodes)] if filesystem == "ext4" else ["-f"]
        subprocess.run([f"mkfs.{filesystem}", "-q", *how, str(image)], check=True)
        options, source = "loop,noinit_itable" if filesystem == "ext4" else "loop", str(image)
    command = ["mount", "-t", filesystem, "-o", options, source, str(point)]
    subprocess.run(command, check=True)
    try:
        yield point
    finally:
        subprocess.run(["umount", str(point)], check=True)
        image.unlink(missing_ok=True)
