"""One directory being read: names that vanish, mounts, subvolumes, and who may write."""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from tests.trees import flat
from tests.unit.walkers import assert_settled, walked
from tui_fs.survey.records import DirectoryFlag

NOBODY = 65534


def after_listing(
    monkeypatch: pytest.MonkeyPatch, act: Callable[[], None], directory: str = ""
) -> None:
    """Do something between listing a directory's names and looking at them."""
    real = os.scandir

    def scandir(descriptor: int) -> AbstractContextManager[Iterator[os.DirEntry[str]]]:
        entries = list(real(descriptor))
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        if directory in ("", os.path.basename(path)):
            act()
        return nullcontext(iter(entries))

    monkeypatch.setattr(os, "scandir", scandir)


def test_a_name_that_vanishes_before_it_is_looked_at_is_no_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("stays", "goes", "goes too"):
        (tmp_path / name).touch()

    def delete() -> None:
        (tmp_path / "goes").unlink()
        (tmp_path / "goes too").unlink()

    after_listing(monkeypatch, delete)
    collector, _ = walked(tmp_path)
    assert (collector.totals.files, collector.vanished, collector.unreadable) == (1, 2, 0)
    assert_settled(collector)


def test_a_directory_whose_names_are_all_gone_is_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "goes").touch()
    after_listing(monkeypatch, (tmp_path / "goes").unlink)
    collector, _ = walked(tmp_path)
    assert (collector.totals.entries, collector.vanished, collector.non_empty) == (1, 1, 0)


def test_a_name_that_cannot_be_looked_at_makes_its_directory_unreadable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("good", "bad"):
        (tmp_path / name).touch()
    real = os.stat

    def failing(path: bytes, **options: Any) -> os.stat_result:
        if path == b"bad":
            raise OSError(errno.EIO, "Input/output error")
        return real(path, **options)

    monkeypatch.setattr(os, "stat", failing)
    collector, _ = walked(tmp_path)
    assert (collector.totals.files, collector.vanished, collector.unreadable) == (1, 0, 1)
    assert_settled(collector)


@pytest.mark.parametrize(("names", "has_changed"), [(1000, True), (999, False)])
def test_a_large_directory_that_changes_while_it_is_read_is_flagged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: int, has_changed: bool
) -> None:
    flat(tmp_path / "d", names)
    after_listing(monkeypatch, lambda: os.utime(tmp_path / "d", (5, 5)), "d")
    collector, _ = walked(tmp_path)
    changed = [str(tmp_path / "d")] if has_changed else []
    assert collector.paths_with(DirectoryFlag.CHANGED) == changed


def test_a_mount_is_known_by_its_whole_path(tmp_path: Path) -> None:
    for above in ("a", "b"):
        (tmp_path / above / "m").mkdir(parents=True)
        (tmp_path / above / "m" / "file").touch()
    collector, _ = walked(tmp_path, mounts=[os.fsencode(tmp_path / "a" / "m")])
    assert (collector.totals.directories, collector.totals.files) == (5, 1)
    assert collector.paths_with(DirectoryFlag.ELSEWHERE) == [str(tmp_path / "a" / "m")]
    assert (collector.unreadable, collector.vanished) == (0, 0)
    assert_settled(collector)


@pytest.mark.parametrize(
    ("inode", "is_mounted", "is_subvolume"),
    [(256, False, True), (256, True, False), (5, False, False)],
)
def test_a_subvolume_is_another_device_that_is_not_mounted(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    inode: int,
    is_mounted: bool,
    is_subvolume: bool,
) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "file").touch()
    real = os.stat

    def changed(path: bytes, **options: Any) -> os.stat_result:
        whole = list(real(path, **options))
        if path == b"s":
            whole[stat.ST_DEV] += 1
            whole[stat.ST_INO] = inode
        return os.stat_result(whole, {"st_blocks": 8})

    monkeypatch.setattr(os, "stat", changed)
    mounts = [os.fsencode(tmp_path / "s")] if is_mounted else []
    collector, _ = walked(tmp_path, mounts=mounts)
    assert (collector.totals.directories, collector.totals.files) == (2, 0)
    assert collector.flag_counts[DirectoryFlag.ELSEWHERE] == 1
    assert collector.flag_counts[DirectoryFlag.SUBVOLUME] == int(is_subvolume)
    assert_settled(collector)


def test_directories_that_others_may_write_are_flagged(tmp_path: Path) -> None:
    for name, mode in (("mine", 0o755), ("everybody", 0o777), ("sticky", 0o1777)):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(mode)
    collector, _ = walked(tmp_path)
    shared = {str(tmp_path / name) for name in ("everybody", "sticky")}
    assert set(collector.paths_with(DirectoryFlag.SHARED)) == shared


@pytest.mark.parametrize("uid", [0, NOBODY])
def test_what_a_user_may_not_do_is_flagged_but_not_for_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uid: int
) -> None:
    for name, mode in (("open", 0o777), ("sticky", 0o1777), ("closed", 0o555)):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(mode)

    def access(path: str, mode: int, *, dir_fd: int, effective_ids: bool) -> bool:
        assert (path, mode, effective_ids) == (".", os.W_OK | os.X_OK, True)
        return not os.readlink(f"/proc/self/fd/{dir_fd}").endswith("/closed")

    monkeypatch.setattr(os, "access", access)
    monkeypatch.setattr(os, "geteuid", lambda: uid)  # not the real one: no other call is asked
    collector, _ = walked(tmp_path)
    sticky, closed = str(tmp_path / "sticky"), str(tmp_path / "closed")
    is_root = uid == 0
    assert collector.paths_with(DirectoryFlag.STICKY) == ([] if is_root else [sticky])
    assert collector.paths_with(DirectoryFlag.UNWRITABLE) == ([] if is_root else [closed])
