"""A twin has every attribute of its original, or there is none."""

import fcntl
import os
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.needs import needs_root
from tests.unit.scratching import result_of_child
from tests.unit.test_maintenance_exchange import ASIDE, Arena
from tests.unit.test_maintenance_writers import Writers
from tui_fs.maintenance.attributes import Attributes, differences, give, read_attributes
from tui_fs.model.errors import Refused

_NODUMP, _NOATIME = 0x40, 0x80  # linux/fs.h
_SETFLAGS = 0x40086602
# acl(5) as stored: version 2, then tag, rights and id of each line: the owner, user 7 (rw-),
# the group, the mask, others.
_ACL = struct.pack("<I", 2) + b"".join(
    struct.pack("<HHI", *line)
    for line in (
        (0x01, 7, 0xFFFFFFFF),
        (0x02, 6, 7),
        (0x04, 5, 0xFFFFFFFF),
        (0x10, 7, 0xFFFFFFFF),
        (0x20, 0, 0xFFFFFFFF),
    )
)


@pytest.fixture(params=["ext4", "xfs", "tmpfs", "btrfs"])
def arena(request: pytest.FixtureRequest) -> Iterator[Arena]:
    """Yield a directory on each file system in turn."""
    needs_root("giving directories away")
    root = request.getfixturevalue(f"{request.param}_root")
    parent = root / request.node.name.replace("/", "-")
    parent.mkdir()
    arena = Arena(parent)
    yield arena
    arena.close()
    subprocess.run(["rm", "-rf", parent], check=True)


def decorate(arena: Arena) -> None:
    """Set every kind of attribute that this file system supports."""
    path = str(arena.path)
    os.chown(path, 1, 2)
    os.setxattr(path, "system.posix_acl_access", _ACL)
    os.setxattr(path, "system.posix_acl_default", _ACL)
    os.setxattr(path, "user.note", b"\0\xff any bytes")
    os.setxattr(path, "trusted.note", b"for root")
    os.setxattr(path, "security.note", b"for modules")
    os.chmod(path, 0o3771)
    os.utime(path, ns=(1_234_567_890_123_456_789, 1_111_111_111_000_000_000))


def now_at(path: Path) -> Attributes:
    """Read the attributes of what has a name."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOATIME)
    try:
        return read_attributes(descriptor)
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("action", ["recreate", "twin"])
def test_everything_is_the_same_afterwards(arena: Arena, action: str) -> None:
    decorate(arena)
    before = now_at(arena.path)
    assert len(before.extended) >= 5
    if action == "recreate":
        arena.recreate()
    else:
        arena.put_aside()
    assert arena.path.stat().st_ino != arena.inode
    assert now_at(arena.path) == before
    assert set(os.listdir(arena.parent)) == (
        {"spool"} if action == "recreate" else {"spool", ASIDE}
    )


def test_inode_flags_are_not_copied_but_refused(arena: Arena) -> None:
    fcntl.ioctl(arena.old, _SETFLAGS, struct.pack("=I4x", _NODUMP | _NOATIME))
    with pytest.raises(Refused, match="inode flags") as refused:
        arena.recreate()
    assert refused.value.rule == "attribute"
    assert arena.path.stat().st_ino == arena.inode
    assert os.listdir(arena.parent) == ["spool"]


def test_nothing_is_inherited_that_the_old_one_lacked(arena: Arena) -> None:
    os.setxattr(arena.parent, "system.posix_acl_default", _ACL)
    os.chown(arena.parent, 0, 3)
    os.chmod(arena.parent, 0o2777)
    before = now_at(arena.path)
    assert before.extended == {}
    arena.recreate()
    assert now_at(arena.path) == before


def test_busy_writers_lose_nothing_on_btrfs(btrfs: Path, tmp_path: Path) -> None:
    arena = Arena(btrfs)
    writers = Writers(arena, tmp_path, "path", "descriptor")
    try:
        arena.recreate(writers.start)
    finally:
        writers.stop()
    assert len(os.listdir(arena.path)) == writers.made()
    arena.close()


@pytest.mark.parametrize("lock", ["i", "a"])
@pytest.mark.parametrize("where", ["spool", "."])
def test_a_locked_directory_is_reported_or_left(ext4: Path, lock: str, where: str) -> None:
    arena = Arena(ext4)
    locked = arena.parent / where
    subprocess.run(["chattr", f"+{lock}", locked], check=True)
    try:
        with pytest.raises((Refused, PermissionError)):
            arena.recreate()
    finally:
        subprocess.run(["chattr", f"-{lock}", locked], check=True)
        arena.close()
    assert arena.path.stat().st_ino == arena.inode


def test_the_attribute_that_cannot_be_copied_is_named(tmpfs: Path) -> None:
    arena = Arena(tmpfs)
    wanted = read_attributes(arena.old)
    new = tmpfs / "new"
    new.mkdir()
    descriptor = os.open(new, os.O_RDONLY)

    unknown = replace(wanted, extended={"nosuch.namespace": b"1"})
    with pytest.raises(Refused, match="nosuch") as refused:
        give(descriptor, unknown)
    assert refused.value.rule == "attribute"
    os.close(descriptor)
    arena.close()


def test_a_user_cannot_recreate_the_directory_of_another(tmpfs: Path) -> None:
    needs_root("becoming another user")
    arena = Arena(tmpfs)
    os.chown(tmpfs, 65534, 65534)
    arena.path.chmod(0o755)

    def recreate() -> None:
        os.setgroups([])
        os.setresgid(65534, 65534, 65534)
        os.setresuid(65534, 65534, 65534)
        with pytest.raises(Refused, match="owner"):
            arena.recreate()

    result_of_child(recreate)
    assert os.listdir(tmpfs) == ["spool"]
    assert arena.path.stat().st_ino == arena.inode
    arena.close()


def test_differences_leave_the_times_out() -> None:
    attributes = Attributes(1, 2, 0o755, {"user.a": b"1"}, 0, None, 5, 6)

    assert differences(attributes, replace(attributes, accessed_ns=7, modified_ns=8)) == ()
    assert differences(attributes, replace(attributes, gid=9)) == ("group",)
    assert differences(attributes, replace(attributes, extended={})) == ("user.a",)
    assert differences(attributes, replace(attributes, flags=None)) == ("inode flags",)
