"""File systems of their own for measurements, in an image or in memory."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def mounted(place: str, filesystem: str, size_bytes: int, inodes: int) -> Iterator[Path]:
    """Mount a new file system below a directory, and take it down again.

    Args:
        filesystem: ext4, xfs, btrfs or tmpfs; "ext4+FEATURE" has a feature besides the usual ones.
        inodes: that it must have room for where their number is fixed.
    """
    kind, _, feature = filesystem.partition("+")
    point = Path(place) / kind
    point.mkdir()
    image = Path(place) / f"{kind}.img"
    if kind == "tmpfs":
        options, source = f"size={size_bytes},nr_inodes={inodes},mode=0755", "tui-fs-bench"
    else:
        with open(image, "wb") as file:
            file.truncate(size_bytes)
        how = ["-F", "-N", str(inodes)] if kind == "ext4" else ["-f"]
        further = ["-O", feature] if feature else []
        subprocess.run([f"mkfs.{kind}", "-q", *how, *further, str(image)], check=True)
        options, source = "loop,noinit_itable" if kind == "ext4" else "loop", str(image)
    command = ["mount", "-t", kind, "-o", options, source, str(point)]
    subprocess.run(command, check=True)
    try:
        yield point
    finally:
        subprocess.run(["umount", str(point)], check=True)
        image.unlink(missing_ok=True)
