"""A mount point, a mount inside and a read-only mount are refused; nothing is touched."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.conftest import Cli
from tests.filesystems import mount_bind, mount_tmpfs
from tests.needs import needs_root
from tests.trees import Sentinel, manifest, many_directories


def test_refuses_a_mount_point(cli: Cli, tmpfs: Path, strategy: str) -> None:
    # Given a mounted file system
    needs_root("mounting")
    point = mount_tmpfs(tmpfs / "point")
    many_directories(point, 2, 2)
    before = manifest(point)
    # When its mount point is to be deleted, or emptied
    for options in ((), ("--keep-root",)):
        cli.delete(point, strategy, *options).expect(3).assert_one_sentence()
    # Then nothing was touched
    assert manifest(point) == before


@pytest.mark.parametrize("kind", ("tmpfs", "bind", "bind-of-itself", "file-bind"))
def test_refuses_a_tree_with_a_mount_inside(cli: Cli, ext4: Path, strategy: str, kind: str) -> None:
    # Given a target in which something else is mounted, some levels down
    needs_root("mounting")
    sentinel = Sentinel(ext4)
    target = ext4 / "target"
    point = target / "a" / "b" / "point"
    many_directories(target, 2, 2)
    point.parent.mkdir(parents=True)
    match kind:
        case "tmpfs":
            many_directories(mount_tmpfs(point), 2, 2)
        case "bind":
            mount_bind(sentinel.root, point)
        case "bind-of-itself":
            point.mkdir()
            mount_bind(point, point)
        case "file-bind":
            point.touch()
            source = sentinel.root / "precious"
            subprocess.run(["mount", "--bind", source, point], check=True)
    before = manifest(target)
    # When the target is to be deleted
    finished = cli.delete(target, strategy).expect(3)
    # Then it is refused, the message names the mount point, and nothing was touched
    finished.assert_one_sentence()
    assert str(point) in finished.stderr
    assert manifest(target) == before
    sentinel.assert_whole()


@pytest.mark.parametrize(
    "name",
    (b"two words", b"new\nline", b"tab\t", b"back\\slash", b"back\\040slash", b"\xff", b"#"),
    ids=lambda name: ascii(name)[2:-1],
)
def test_finds_a_mount_at_a_hostile_name(cli: Cli, ext4: Path, name: bytes) -> None:
    # Given a bind mount of the same file system at a name that mountinfo escapes
    needs_root("mounting")
    sentinel = Sentinel(ext4)
    target = ext4 / "target"
    target.mkdir()
    mount_bind(sentinel.root, Path(os.fsdecode(os.path.join(os.fsencode(target), name))))
    before = manifest(target)
    # When the target is to be deleted
    cli.delete(target, "rm").expect(3).assert_one_sentence()
    # Then nothing was touched
    assert manifest(target) == before
    sentinel.assert_whole()


def test_refuses_a_mount_in_a_target_reached_by_another_path(cli: Cli, ext4: Path) -> None:
    # Given a target with a mount inside, that a bind mount shows at a second path
    needs_root("mounting")
    sentinel = Sentinel(ext4)
    original = ext4 / "original"
    target = original / "target"
    target.mkdir(parents=True)
    subprocess.run(["mount", "--make-private", "--bind", original, original], check=True)
    mount_bind(sentinel.root, target / "point")
    second = ext4 / "second"
    second.mkdir()
    subprocess.run(["mount", "--rbind", original, second], check=True)
    # When it is to be deleted by the second path
    cli.delete(second / "target", "find").expect(3).assert_one_sentence()
    # Then nothing was touched
    sentinel.assert_whole()


def test_refuses_a_read_only_mount(cli: Cli, tmpfs: Path, strategy: str) -> None:
    # Given a tree on a file system that is then mounted read-only
    needs_root("mounting")
    point = mount_tmpfs(tmpfs / "point")
    many_directories(point / "target", 2, 2)
    subprocess.run(["mount", "-o", "remount,ro", point], check=True)
    # When it is to be deleted
    finished = cli.delete(point / "target", strategy).expect(3)
    # Then it is refused, for that reason
    finished.assert_one_sentence()
    assert "read-only" in finished.stderr
