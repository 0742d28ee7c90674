"""A mount point, a mount inside and a read-only mount are refused; nothing is touched."""

import os
import subprocess
from pathlib import Path

import pytest

import tui_fs
from tests.conftest import Cli
from tests.filesystems import mount_bind, mount_image, mount_tmpfs, unmount_below
from tests.needs import needs_root
from tests.trees import Sentinel, manifest, many_directories


def hidden_below(place: Path, *, options: str = "mode=0755") -> Path:
    """Mount a new tmpfs over a directory, with a directory of the same path as below it."""
    point = mount_tmpfs(place / "above")
    target = point / "level" / "target"
    many_directories_below(target)
    subprocess.run(["mount", "-o", f"remount,{options}", point], check=True)
    return target


def many_directories_below(target: Path) -> None:
    """Make a small tree with all directories above it."""
    target.parent.mkdir(parents=True)
    many_directories(target, 2, 2)


def test_refuses_a_mount_point(cli: Cli, tmpfs: Path, strategy: str) -> None:
    needs_root("mounting")
    point = mount_tmpfs(tmpfs / "point")
    many_directories(point, 2, 2)
    before = manifest(point)
    for options in ((), ("--keep-root",)):
        cli.delete(point, strategy, *options).expect(3).assert_one_sentence()
    assert manifest(point) == before


@pytest.mark.parametrize("kind", ("tmpfs", "bind", "bind-of-itself", "file-bind"))
def test_refuses_a_tree_with_a_mount_inside(cli: Cli, ext4: Path, strategy: str, kind: str) -> None:
    # A target in which something else is mounted, some levels down
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
    finished = cli.delete(target, strategy).expect(3)
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
    needs_root("mounting")
    sentinel = Sentinel(ext4)
    target = ext4 / "target"
    target.mkdir()
    mount_bind(sentinel.root, Path(os.fsdecode(os.path.join(os.fsencode(target), name))))
    before = manifest(target)
    cli.delete(target, "rm").expect(3).assert_one_sentence()
    assert manifest(target) == before
    sentinel.assert_whole()


def test_refuses_a_mount_in_a_target_reached_by_another_path(cli: Cli, ext4: Path) -> None:
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
    cli.delete(second / "target", "find").expect(3).assert_one_sentence()
    sentinel.assert_whole()


def test_refuses_a_read_only_mount(cli: Cli, tmpfs: Path, strategy: str) -> None:
    # A tree on a file system that is then mounted read-only
    needs_root("mounting")
    point = mount_tmpfs(tmpfs / "point")
    many_directories(point / "target", 2, 2)
    subprocess.run(["mount", "-o", "remount,ro", point], check=True)
    finished = cli.delete(point / "target", strategy).expect(3)
    finished.assert_one_sentence()
    assert "read-only" in finished.stderr


def test_a_hidden_mount_inside_forbids_nothing(cli: Cli, ext4: Path, strategy: str) -> None:
    needs_root("mounting")
    many_directories_below(ext4 / "above" / "level" / "target")
    sentinel = Sentinel(mount_tmpfs(ext4 / "above" / "level" / "target" / "point"))
    target = hidden_below(ext4)
    cli.delete(target, strategy).expect(0)
    assert not target.exists()
    subprocess.run(["umount", ext4 / "above"], check=True)
    sentinel.assert_whole()


def test_a_hidden_read_only_mount_around_forbids_nothing(cli: Cli, ext4: Path) -> None:
    # A target whose path leads below a read-only mount that another mount hides
    needs_root("mounting")
    level = ext4 / "above" / "level"
    level.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "none", level], check=True)
    target = hidden_below(ext4)
    cli.delete(target, "rm").expect(0)
    assert not target.exists()


def test_a_read_only_mount_that_hides_a_writable_one_is_refused(cli: Cli, ext4: Path) -> None:
    # A writable mount that a read-only one hides, with the target in the latter
    needs_root("mounting")
    level = ext4 / "above" / "level"
    level.mkdir(parents=True)
    mount_tmpfs(level)
    target = hidden_below(ext4, options="ro")
    finished = cli.delete(target, "rm").expect(3)
    finished.assert_one_sentence()
    assert "read-only" in finished.stderr


def test_a_bind_source_is_known_below_a_mount_that_hides_another(cli: Cli, ext4: Path) -> None:
    needs_root("mounting")
    level = ext4 / "above" / "level"
    level.mkdir(parents=True)
    mount_tmpfs(level)
    target = hidden_below(ext4)
    mount_bind(target / "directory-00000", ext4 / "shown")
    before = manifest(target)
    finished = cli.delete(target, "rm").expect(3)
    finished.assert_one_sentence()
    assert str(ext4 / "shown") in finished.stderr
    assert manifest(target) == before


def test_a_hidden_mount_in_a_target_of_another_path_is_refused(cli: Cli, ext4: Path) -> None:
    needs_root("mounting")
    target = ext4 / "above" / "level" / "target"
    many_directories_below(target)
    subprocess.run(["mount", "--make-private", "--bind", ext4, ext4], check=True)
    second = mount_bind(ext4 / "above", ext4 / "second")
    mount_tmpfs(target / "directory-00000")
    hidden_below(ext4)
    before = manifest(second / "level" / "target")
    finished = cli.delete(second / "level" / "target", "rm").expect(3)
    finished.assert_one_sentence()
    assert f"umount {ext4 / 'above'} && umount {target / 'directory-00000'}" in finished.stderr
    assert manifest(second / "level" / "target") == before


def test_a_mount_is_found_in_a_target_of_another_case(cli: Cli, mount_root: Path) -> None:
    if not Path("/sys/fs/ext4/features/casefold").exists():
        pytest.skip("this kernel does not support CONFIG_UNICODE")
    point = mount_image(mount_root / "casefold", "ext4", 64 << 20, "-O", "casefold")
    try:
        folded = point / "folded"
        folded.mkdir()
        subprocess.run(["chattr", "+F", folded], check=True)
        (folded / "Target" / "part").mkdir(parents=True)
        mount_tmpfs(folded / "Target" / "part")
        cli.delete(folded / "TARGET", "rm").expect(3).assert_one_sentence()
    finally:
        unmount_below(point)


@pytest.mark.parametrize("part", ("jobs", "jobs/{job}", "."))
def test_refuses_what_tui_fs_needs_under_another_name(
    cli: Cli, ext4: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    needs_root("mounting")
    monkeypatch.setenv("XDG_STATE_HOME", str(ext4 / "state"))
    many_directories(ext4 / "t", 2, 2)
    cli.delete(ext4 / "t", "rm").expect(0)
    (jobs,) = (ext4 / "state" / "tui-fs").glob("jobs")
    (job,) = jobs.iterdir()
    alias = mount_bind(jobs.parent / part.format(job=job.name), ext4 / "alias")
    for target in ("tui-fs/jobs/{job}", "jobs/{job}", "{job}", "empty"):
        path = alias / target.format(job=job.name)
        if not path.exists():
            continue
        for command in (("delete", "--strategy", "rm", "--yes"), ("aside", "--yes")):
            finished = cli.run(*command, path).expect(3)
            finished.assert_one_sentence()
            assert "is, under another name, part of the jobs of tui-fs" in finished.stderr
    assert (job / "plan.json").exists() and (job / "empty").exists()


def test_refuses_a_part_of_the_program_under_another_name(cli: Cli, ext4: Path) -> None:
    needs_root("mounting")
    package = Path(tui_fs.__file__).parent
    alias = mount_bind(package / "model", ext4 / "alias")
    (package / "model" / "__pycache__").mkdir(exist_ok=True)
    finished = cli.run("delete", "--strategy", "rm", "--dry-run", alias / "__pycache__").expect(3)
    finished.assert_one_sentence()
    assert "is, under another name, part of the program" in finished.stderr
