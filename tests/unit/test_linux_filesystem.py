"""Type and room of a file system."""

import os
import threading
from pathlib import Path

import pytest

from tests.unit.test_linux_mounts import ROOT, table
from tui_fs.linux import filesystem
from tui_fs.linux.filesystem import (
    file_system_of,
    mounted_file_systems,
    one_of_each,
    space_of,
)
from tui_fs.linux.mounts import read_mounts
from tui_fs.model.space import Space


def statvfs(blocks: int, free: int, available: int, files: int, free_files: int) -> object:
    """Return an answer of statvfs with blocks of 512 bytes."""
    return os.statvfs_result((4096, 512, blocks, free, available, files, free_files, 0, 0, 255))


def test_type_source_and_mount_point_come_from_the_mount_table(tmp_path: Path) -> None:
    line = f"40 22 8:1 / {tmp_path} ro - xfs /dev/sdb1 rw\n".encode()
    file_system = file_system_of(str(tmp_path / "x"), table(tmp_path, ROOT, line))
    assert (file_system.kind, file_system.source, file_system.mount_point) == (
        "xfs",
        "/dev/sdb1",
        str(tmp_path),
    )
    assert file_system.is_read_only


@pytest.mark.parametrize(
    ("files", "free_files", "inodes"),
    [
        (10, 7, (10, 7)),
        (0, 0, (None, None)),
        # Numbers that mean "any"
        (2**64 - 1, 2**64 - 1, (None, None)),
        (2**63 - 1, 2**63 - 100, (None, None)),
        (2**64 - 1, 0, (None, None)),
    ],
)
def test_room_and_inodes_come_from_statvfs(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    files: int,
    free_files: int,
    inodes: tuple[int | None, int | None],
) -> None:
    monkeypatch.setattr(os, "statvfs", lambda _: statvfs(100, 50, 40, files, free_files))
    file_system = file_system_of("/", table(tmp_path, ROOT))
    assert (file_system.total_bytes, file_system.free_bytes, file_system.available_bytes) == (
        51200,
        25600,
        20480,
    )
    assert (file_system.total_inodes, file_system.free_inodes) == inodes
    assert space_of("/") == Space(20480, inodes[1], 5120)


def test_a_path_that_is_not_there_has_no_room(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    file_system = file_system_of(missing, table(tmp_path, ROOT))
    assert (file_system.kind, file_system.total_bytes) == ("ext4", None)
    assert space_of(missing) is None


def test_a_path_outside_the_table_is_unknown(tmp_path: Path) -> None:
    file_system = file_system_of("/", table(tmp_path))
    assert (file_system.kind, file_system.mount_point, file_system.is_read_only) == (
        "unknown",
        "",
        False,
    )


def test_a_file_system_that_hangs_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A dead network mount, whose statvfs does not return
    dead = threading.Event()
    monkeypatch.setattr(filesystem, "STATVFS_TIMEOUT_S", 0.01)
    monkeypatch.setattr(os, "statvfs", lambda _: dead.wait() and None)
    try:
        assert file_system_of("/", table(tmp_path, ROOT)).free_bytes is None
    finally:
        dead.set()


def test_the_file_system_of_this_test_is_known(tmp_path: Path) -> None:
    file_system = file_system_of(str(tmp_path))
    assert file_system.kind != "unknown"
    assert file_system.free_bytes is not None


def test_subvolumes_of_one_file_system_are_watched_once(tmp_path: Path) -> None:
    mountinfo = tmp_path / "mountinfo"
    mountinfo.write_text(
        "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"
        "2 1 0:40 /one /one rw - btrfs /dev/sdb rw\n"
        "3 1 0:40 /two /two rw - btrfs /dev/sdb rw\n"
        "4 1 0:50 / /tank rw - zfs tank/a rw\n"
        "5 1 0:51 / /pool rw - zfs tank/b rw\n"
    )
    places = ["/one/x", "/two/y", "/tank", "/pool/z", "/home"]
    assert one_of_each(places, str(mountinfo)) == ("/one/x", "/tank", "/home")


def test_a_place_that_was_moved_away_settles_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = f"40 22 0:40 / {tmp_path} rw - btrfs /dev/sdb1 rw\n".encode()
    mounts = read_mounts(table(tmp_path, ROOT, line))
    monkeypatch.setattr(filesystem, "read_mounts", lambda: mounts)
    filesystem.settle(str(tmp_path / "gone"))


def _mounts(tmp_path: Path, *lines: str) -> tuple[list[Path], str]:
    """Return four existing directories and a table; a line says what is mounted on one of them."""
    places = [tmp_path / name for name in "abcd"]
    for place in places:
        place.mkdir()
    shown = [line.format(*places).encode() + b"\n" for line in lines]
    return places, table(tmp_path, ROOT, *shown)


def test_the_fullest_file_system_by_bytes_or_inodes_is_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places, mountinfo = _mounts(
        tmp_path,
        "40 22 8:1 / {0} rw - ext4 /dev/a rw",
        "41 22 8:2 / {1} rw - xfs /dev/b rw",
        "42 22 8:3 / {2} rw - ext4 /dev/c rw",
        "43 22 8:4 / {3} rw - ext4 /dev/d rw",
    )
    answers = {
        str(places[0]): statvfs(100, 50, 50, 100, 90),
        str(places[1]): statvfs(100, 90, 90, 100, 1),
        str(places[2]): statvfs(100, 20, 10, 100, 90),
        str(places[3]): statvfs(100, 80, 80, 100, 1),  # of equal inodes, more bytes
    }
    monkeypatch.setattr(os, "statvfs", lambda path: answers.get(path, statvfs(9, 9, 9, 9, 9)))
    found = mounted_file_systems(mountinfo)
    assert [each.source for each in found[:4]] == ["/dev/d", "/dev/b", "/dev/c", "/dev/a"]
    assert found[2].used_share == pytest.approx(80 / 90)  # 10 of 100 are for root only
    assert found[0].used_inodes_share == pytest.approx(0.99)


def test_only_file_systems_that_store_files_are_listed_and_each_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "resolv.conf"
    file.touch()
    _, mountinfo = _mounts(
        tmp_path,
        "40 22 8:1 / {0} rw - ext4 /dev/a rw",
        "41 22 8:1 /x {1} rw - ext4 /dev/a rw",
        "42 22 0:5 / {2} rw - proc proc rw",
        "43 22 7:1 / {3} ro - squashfs /dev/loop1 ro",
        f"44 22 8:9 /f {file} rw - ext4 /dev/f rw",
        "45 42 8:7 / {2} rw - xfs /dev/over rw",
    )
    monkeypatch.setattr(os, "statvfs", lambda _: statvfs(100, 50, 50, 10, 5))
    sources = [each.source for each in mounted_file_systems(mountinfo)]
    assert sorted(sources) == sorted(["/dev/a", "/dev/over", file_system_of("/", mountinfo).source])


def test_a_file_system_without_limits_has_no_shares(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "statvfs", lambda _: statvfs(0, 0, 0, 0, 0))
    file_system = file_system_of("/", table(tmp_path, ROOT))
    assert (file_system.used_share, file_system.used_inodes_share) == (None, None)
    assert mounted_file_systems(table(tmp_path, ROOT)) == []
