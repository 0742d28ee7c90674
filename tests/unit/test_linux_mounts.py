"""The mount table, from samples of /proc/self/mountinfo."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from tui_fs.linux.mounts import (
    MOUNTINFO,
    Mount,
    MountTable,
    mount_of,
    mounts_below,
    read_mounts,
    unresponsive_mounts,
)
from tui_fs.model.paths import PathStr

ROOT = b"22 1 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw,errors=remount-ro\n"


def table(directory: Path, *lines: bytes) -> str:
    """Write a mount table and return its path."""
    path = directory / "mountinfo"
    path.write_bytes(b"".join(lines))
    return str(path)


def mounted_at(directory: Path, point: bytes) -> str:
    """Read the mount point of a table of one line."""
    (mount,) = read_mounts(table(directory, b"30 22 0:5 / " + point + b" rw - tmpfs tmpfs rw\n"))
    return mount.mount_point


def test_a_table_is_read_again_when_it_has_changed(tmp_path: Path) -> None:
    first = read_mounts(table(tmp_path, ROOT))
    assert read_mounts(table(tmp_path, ROOT)) is first
    changed = read_mounts(table(tmp_path, ROOT, b"30 22 0:5 / /mnt rw - tmpfs tmpfs rw\n"))
    assert [mount.mount_point for mount in changed] == ["/", "/mnt"]


def test_a_line_is_read_into_its_fields(tmp_path: Path) -> None:
    (mount,) = read_mounts(table(tmp_path, ROOT))
    assert mount == Mount(
        mount_id=22,
        parent_id=1,
        device="259:2",
        root=mount.root,
        mount_point=mount.mount_point,
        options=frozenset({"rw", "relatime", "errors=remount-ro"}),
        filesystem="ext4",
        source=mount.source,
    )
    assert (mount.root, mount.mount_point, mount.source) == ("/", "/", "/dev/nvme0n1p2")


@pytest.mark.parametrize(
    ("escaped", "meant"),
    [
        (b"/mnt/a\\040b", "/mnt/a b"),
        (b"/mnt/a\\011b", "/mnt/a\tb"),
        (b"/mnt/a\\012b", "/mnt/a\nb"),
        (b"/mnt/a\\134b", "/mnt/a\\b"),
        (b"/mnt/a\\134040b", "/mnt/a\\040b"),
        (b"/mnt/\\043x", "/mnt/#x"),
        (b"/mnt/gr\xc3\xb6\xc3\x9fe", "/mnt/größe"),
        (b"/mnt/\xff", "/mnt/\udcff"),
        (b"/mnt/-", "/mnt/-"),
    ],
)
def test_octal_escapes_in_mount_points_are_undone(
    tmp_path: Path, escaped: bytes, meant: str
) -> None:
    assert mounted_at(tmp_path, escaped) == meant


@pytest.mark.parametrize(
    "character",
    [
        b"\r",
        b"\x0b",
        b"\x1c",
        b"\xc2\x85",
        b"\xe2\x80\xa8",
    ],
)
def test_only_newlines_end_a_line(tmp_path: Path, character: bytes) -> None:
    assert mounted_at(tmp_path, b"/mnt/a" + character + b"b").encode() == b"/mnt/a%sb" % character


@pytest.mark.parametrize(
    ("line", "root", "kind", "source"),
    [
        (b"/ /m rw - xfs /dev/sdb1 rw", "/", "xfs", "/dev/sdb1"),
        (b"/ /m rw shared:1 - xfs /dev/sdb1 rw", "/", "xfs", "/dev/sdb1"),
        (b"/ /m rw shared:1 master:2 - xfs /dev/sdb1 rw", "/", "xfs", "/dev/sdb1"),
        (b"/ /m rw unbindable - xfs /dev/sdb1 rw", "/", "xfs", "/dev/sdb1"),
        (b"/ /m rw - tmpfs  rw", "/", "tmpfs", ""),
        (b"/ /m rw - cifs //nas/my\\040files rw", "/", "cifs", "//nas/my files"),
        (b"/srv/d\\040x /m rw - ext4 /dev/sda1 rw", "/srv/d x", "ext4", "/dev/sda1"),
    ],
)
def test_optional_fields_empty_fields_and_escapes_are_read(
    tmp_path: Path, line: bytes, root: str, kind: str, source: str
) -> None:
    (mount,) = read_mounts(table(tmp_path, b"30 22 0:5 %s\n" % line))
    assert (mount.root, mount.filesystem, mount.source) == (root, kind, source)


@pytest.mark.parametrize(
    ("options", "super_options", "read_only"),
    [
        (b"rw", b"rw", False),
        (b"ro,nosuid", b"rw", True),
        (b"rw", b"ro", True),
        (b"rw", b"rw,errors=remount-ro", False),
        (b"rw", b"rw,errors=remount-ro,emergency_ro", True),
        (b"rw", b"rw,shutdown", True),
    ],
)
def test_read_only_is_said_by_the_mount_or_its_file_system(
    tmp_path: Path, options: bytes, super_options: bytes, read_only: bool
) -> None:
    line = b"30 22 8:1 / /m %s - ext4 /dev/sda1 %s\n" % (options, super_options)
    (mount,) = read_mounts(table(tmp_path, line))
    assert mount.is_read_only is read_only


@pytest.mark.parametrize(
    ("kind", "pseudo"), [(b"proc", True), (b"cgroup2", True), (b"tmpfs", False), (b"ext4", False)]
)
def test_pseudo_file_systems_are_recognised(tmp_path: Path, kind: bytes, pseudo: bool) -> None:
    (mount,) = read_mounts(table(tmp_path, b"30 22 0:5 / /m rw - %s none rw\n" % kind))
    assert mount.is_pseudo is pseudo


def _points(*points: str) -> MountTable:
    """Mount at one path after the other: each on the mount that its path leads to then."""
    table = MountTable(())
    for number, point in enumerate(points, start=100):
        parent = mount_of(point, table)
        mount = Mount(
            number,
            1 if parent is None else parent.mount_id,
            "0:1",
            PathStr("/"),
            PathStr(point),
            frozenset({"rw"}),
            "ext4",
            PathStr("x"),
        )
        table = MountTable((*table, mount))
    return table


def test_a_mount_that_a_later_one_hides_holds_nothing() -> None:
    table = _points("/", "/a/b", "/a")
    mount = mount_of("/a/b/c", table)
    assert mount is not None
    assert mount.mount_point == "/a"
    # And nothing is seen to be mounted in /a
    assert mounts_below("/a", table) == ()
    assert table.visible_at("/a/b") is None


def test_what_is_mounted_on_a_later_mount_is_seen() -> None:
    table = _points("/", "/a/b", "/a", "/a/b")
    mount = mount_of("/a/b/c", table)
    assert mount is not None
    assert mount.mount_id == 103
    assert [mount.mount_id for mount in mounts_below("/", table)] == [102, 103]


def test_a_mount_whose_parent_is_not_listed_is_not_missed() -> None:
    table = MountTable(replace(mount, parent_id=7) for mount in _points("/", "/a/b"))
    assert [mount.mount_point for mount in mounts_below("/a", table)] == ["/a/b"]


def test_a_place_in_the_file_system_is_found_through_a_bind_mount() -> None:
    (mount,) = _points("/m")
    mount = replace(mount, root=PathStr("/srv/d"))
    assert mount.inner_path("/m/x/y") == "/srv/d/x/y"
    assert mount.inner_path("/m") == "/srv/d"
    assert mount.inner_path("/mx") is None


@pytest.mark.parametrize(
    ("path", "points", "mount_id"),
    [
        pytest.param("/a/b/c", ("/", "/a", "/a/b"), 102, id="the deepest"),
        pytest.param("/a/bc", ("/", "/a/b"), 100, id="not one of a shorter name"),
        pytest.param("/a/x", ("/", "/a", "/a"), 102, id="the last of a stack"),
        pytest.param("/x", ("/a",), None, id="none in a table without the root"),
    ],
)
def test_one_mount_holds_a_path(path: str, points: tuple[str, ...], mount_id: int | None) -> None:
    mount = mount_of(path, _points(*points))
    assert (None if mount is None else mount.mount_id) == mount_id


@pytest.mark.parametrize(
    ("path", "below"),
    [
        ("/a/b", ["/a/b/x", "/a/b/x/y"]),
        ("/", ["/a", "/a/b", "/a/b/x", "/a/b/x/y", "/a/bc"]),
    ],
)
def test_mounts_below_are_only_those_strictly_inside(path: str, below: list[str]) -> None:
    mounts = _points("/", "/a", "/a/b", "/a/b/x", "/a/b/x/y", "/a/bc")
    assert [mount.mount_point for mount in mounts_below(path, mounts)] == below


def test_the_table_of_this_machine_can_be_read() -> None:
    assert mount_of("/", read_mounts(MOUNTINFO)) is not None


def test_mounts_under_others_may_not_answer_unless_requested(tmp_path: Path) -> None:
    lines = [
        b"22 1 0:49 / / rw - nfs4 server:/root rw\n",
        b"30 22 0:50 / /home rw - nfs4 server:/home rw\n",
        b"31 22 0:51 / /media/phone rw - fuse.sshfs phone: rw\n",
        b"32 22 8:17 / /srv rw - xfs /dev/sdb1 rw\n",
        b"33 22 0:52 / /opt rw - cifs //server/opt rw\n",
        b"34 33 8:18 / /opt rw - ext4 /dev/sdc1 rw\n",
        b"35 22 0:50 / /var/mail rw - nfs4 server:/home rw\n",
    ]
    mounts = read_mounts(table(tmp_path, *lines))
    assert unresponsive_mounts("/srv/x", mounts) == ("/home", "/media/phone", "/var/mail")
    assert unresponsive_mounts("/home/ada", mounts) == ("/media/phone",)
