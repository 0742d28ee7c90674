"""Targets that allow no changes, and subvolumes: refused and predicted with the true reason."""

import fcntl
import os
import struct
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import Cli
from tests.filesystems import mount_image, unmount_below
from tests.needs import needs_tool
from tests.trees import manifest, many_directories

MIB = 1 << 20
_EXT4_IOC_SHUTDOWN = 0x8004587D  # fs/ext4/ext4.h


@pytest.fixture
def own_ext4(mount_root: Path) -> Iterator[Path]:
    """Yield an ext4 that may be damaged."""
    options = "loop,noinit_itable,errors=remount-ro"
    # A name of its own: the loop device of an image that was just unmounted would be used again.
    name = f"damaged-{os.urandom(3).hex()}"
    point = mount_image(mount_root / name, "ext4", 64 * MIB, options=options)
    yield point
    unmount_below(point)


def _report_error(point: Path) -> None:
    source = subprocess.check_output(["findmnt", "-no", "SOURCE", point], text=True).strip()
    Path(f"/sys/fs/ext4/{Path(source).name}/trigger_fs_error").write_text("a test")


def _shut_down(point: Path) -> None:
    with open(point / "file", "wb") as file:
        fcntl.ioctl(file, _EXT4_IOC_SHUTDOWN, struct.pack("=I", 1))


@pytest.mark.parametrize("stop", [_report_error, _shut_down])
def test_ext4_that_an_error_has_stopped_is_refused(
    cli: Cli, own_ext4: Path, stop: Callable[[Path], None]
) -> None:
    target = own_ext4 / "target"
    many_directories(target, 2, 2)
    before = sorted(target.rglob("*"))
    # What a stopped journal has not written is lost as soon as the kernel needs its memory.
    subprocess.run(["sync", "--file-system", target], check=True)
    stop(own_ext4)
    finished = cli.delete(target, "rm").expect(3)
    finished.assert_one_sentence()
    assert "kernel log (dmesg)" in finished.stderr
    estimated = cli.run("estimate", "--json", target).expect(0).object()
    assert "kernel log (dmesg)" in estimated["refused"]
    assert not any(strategy["feasible"] for strategy in estimated["strategies"])
    assert sorted(target.rglob("*")) == before


def _btrfs(*arguments: str | Path) -> None:
    program = needs_tool("btrfs", package="btrfs-progs")
    subprocess.run([program, *arguments], check=True, capture_output=True)


@pytest.fixture
def volume(btrfs: Path) -> Iterator[Path]:
    """Yield a subvolume with a directory in it, and a sibling read-only snapshot of it."""
    volume = btrfs / "volume"
    _btrfs("subvolume", "create", volume)
    many_directories(volume / "target", 2, 2)
    _btrfs("subvolume", "snapshot", "-r", volume, btrfs / "snapshot")
    yield volume
    for place in (btrfs / "snapshot", volume):
        _btrfs("subvolume", "delete", place)


@pytest.mark.parametrize("name", ["volume", "snapshot"])
def test_subvolume_is_not_called_a_mount_point(cli: Cli, volume: Path, name: str) -> None:
    target = volume.parent / name
    for finished in (cli.delete(target, "rm"), cli.run("aside", "--yes", target)):
        finished.expect(3).assert_one_sentence()
        assert "is a btrfs subvolume" in finished.stderr
        assert f"btrfs subvolume delete {target}" in finished.stderr
        assert "mount" not in finished.stderr.replace(str(target), "")
    assert (target / "target").is_dir()


def test_directory_in_a_read_only_snapshot_is_refused(cli: Cli, volume: Path) -> None:
    snapshot = volume.parent / "snapshot"
    target = snapshot / "target"
    before = manifest(target)
    finished = cli.delete(target, "rm").expect(3)
    finished.assert_one_sentence()
    assert f"read-only subvolume or snapshot {snapshot}" in finished.stderr
    advised = finished.stderr.strip().rpartition(": ")[2]
    assert advised == f"btrfs property set -ts {snapshot} ro false"
    estimated = cli.run("estimate", "--json", target).expect(0).object()
    assert str(snapshot) in estimated["refused"]
    assert not any(strategy["feasible"] for strategy in estimated["strategies"])
    assert manifest(target) == before
    subprocess.run(advised.split(), check=True)
    cli.delete(target, "rm").expect(0)
    assert not target.exists()
