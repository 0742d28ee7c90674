"""The Python walker: bounded descriptors, no followed links, changes during the walk."""

import errno
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import open_descriptors
from tests.trees import flat
from tests.unit.survey_trees import comb, naive, refuse_to_open
from tests.unit.walkers import assert_settled, reported_names, walked
from tui_fs.linux.directories import MAX_OPEN_DIRECTORIES
from tui_fs.survey import walker as walker_module
from tui_fs.survey.aggregator import Aggregator
from tui_fs.survey.records import Batch, DirectoryFlag

Act = Callable[[], None]


def once(name: str, act: Act) -> Callable[[Batch], None]:
    """Call a function as soon as a directory of this name is reported."""
    left = [act]

    def meanwhile(batch: Batch) -> None:
        if name.encode() in reported_names(batch) and left:
            left.pop()()

    return meanwhile


def test_each_directory_is_reported_once_with_its_name_above_its_children(tmp_path: Path) -> None:
    comb(tmp_path, 5)
    collector, batches = walked(tmp_path)
    known: set[int] = set()
    for number, parent, name, *_ in (piece for batch in batches for piece in batch.pieces):
        assert bool(name) == (number not in known)
        assert parent in known or not known or not name
        known.add(number)
    assert collector.totals == naive(os.fsencode(tmp_path)).totals
    assert_settled(collector)


def test_a_comb_is_walked_with_few_descriptors(tmp_path: Path) -> None:
    levels = 2 * MAX_OPEN_DIRECTORIES + 20
    root = tmp_path / "t"
    root.mkdir()
    comb(root, levels)
    before = open_descriptors()
    most = 0

    def look(_: Batch) -> None:
        nonlocal most
        most = max(most, len(os.listdir("/proc/self/fd")))

    collector, _ = walked(root, look)
    assert collector.totals.directories == 1 + 3 * levels
    assert most <= before + MAX_OPEN_DIRECTORIES + 6
    assert open_descriptors() == before
    assert_settled(collector)


@pytest.mark.parametrize("limit", [1, 2, 3, 5])
def test_every_number_of_descriptors_gives_the_same_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.setattr(walker_module, "MAX_OPEN_DIRECTORIES", limit)
    comb(tmp_path, 12)
    collector, _ = walked(tmp_path)
    assert collector.totals == naive(os.fsencode(tmp_path)).totals
    assert (collector.vanished, collector.unreadable) == (0, 0)
    assert_settled(collector)


@pytest.mark.parametrize(
    "replace",
    [
        lambda _: None,
        lambda path: path.write_bytes(b"x" * 5000),
        lambda path: path.symlink_to("/"),
        os.mkfifo,
    ],
    ids=["nothing", "file", "symlink", "fifo"],
)
def test_a_directory_that_is_gone_before_its_turn_counts_as_vanished(
    tmp_path: Path, replace: Callable[[Path], object]
) -> None:
    root = tmp_path / "t"
    for name in ("one", "other"):
        (root / name).mkdir(parents=True)

    def both() -> None:
        for path in (root / "one", root / "other"):
            path.rmdir()
            replace(path)

    collector, _ = walked(root, once("t", both))
    assert (collector.totals.directories, collector.totals.non_directories) == (1, 0)
    assert (collector.vanished, collector.unreadable) == (2, 0)
    assert_settled(collector)


class Forks:
    """A tree of directories `l` and `r`, five levels, that is changed at the first leaf."""

    levels = 4
    directories = 2 ** (levels + 1) - 1
    below_second_level = 2 ** (levels - 1) - 1

    def __init__(self, tmp_path: Path) -> None:
        self.root = tmp_path / "t"
        self.elsewhere = tmp_path / "elsewhere"
        self._fork(self.root, self.levels)
        for name in ("l", "r"):  # what ".." leads to after a move; nothing of it is to be counted
            (self.elsewhere / name).mkdir(parents=True)
            (self.elsewhere / name / "trap").touch()

    def _fork(self, path: Path, levels: int) -> None:
        path.mkdir()
        if levels:
            self._fork(path / "l", levels - 1)
            self._fork(path / "r", levels - 1)

    def walk(self, act: Callable[[Path], None]) -> Aggregator:
        """Walk it; call `act` with the path of the first leaf when the walker is there."""
        live, left = Aggregator(filtered=False), [act]

        def follow(batch: Batch) -> None:
            live.take(batch)
            path = Path(live.table.path(len(live.table) - 1))
            if left and len(path.relative_to(self.root).parts) == self.levels:
                left.pop()(path.relative_to(self.root))

        collector, _ = walked(self.root, follow)
        assert not left
        assert collector.totals.files == 0
        assert_settled(collector)
        return collector


@pytest.fixture
def forks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Forks:
    """Return the tree, with a walker that keeps few descriptors: it mostly ascends by `..`."""
    monkeypatch.setattr(walker_module, "MAX_OPEN_DIRECTORIES", 1)
    return Forks(tmp_path)


@pytest.mark.parametrize("level", [1, 2, 3])
def test_a_directory_moved_while_its_children_wait_is_counted_whole(
    forks: Forks, level: int
) -> None:
    def move(leaf: Path) -> None:
        forks.root.joinpath(*leaf.parts[:level]).rename(forks.elsewhere / "moved")

    collector = forks.walk(move)
    assert collector.totals.directories == forks.directories
    assert (collector.vanished, collector.unreadable) == (0, 0)


def _cut_off(forks: Forks, leaf: Path) -> Path:
    """Move the walker's current directory and its parent to other places."""
    first, second = leaf.parts[:2]
    (forks.root / first / second).rename(forks.elsewhere / "moved")
    (forks.root / first).rename(forks.elsewhere / "first")
    return forks.root / first


@pytest.mark.parametrize("replacement", ["a directory", "a symlink", "nothing"])
def test_what_replaces_a_directory_is_not_walked(forks: Forks, replacement: str) -> None:
    def replace(leaf: Path) -> None:
        first = _cut_off(forks, leaf)
        match replacement:
            case "a directory":
                for name in ("l", "r"):
                    (first / name).mkdir(parents=True)
                    (first / name / "trap").touch()
            case "a symlink":
                first.symlink_to(forks.elsewhere / "first")

    collector = forks.walk(replace)
    assert (collector.vanished, collector.unreadable) == (0, 1)
    assert collector.totals.directories == forks.directories - forks.below_second_level + 1


def test_a_file_system_mounted_meanwhile_is_not_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "point").mkdir()
    (tmp_path / "point" / "not ours").touch()
    real = os.fstat

    def fstat(descriptor: int) -> os.stat_result:
        status = real(descriptor)
        if os.readlink(f"/proc/self/fd/{descriptor}").endswith("/point"):
            changed = list(status)
            changed[stat.ST_DEV] += 1
            return os.stat_result(changed, {"st_blocks": 8})
        return status

    monkeypatch.setattr(os, "fstat", fstat)
    collector, _ = walked(tmp_path)
    assert (collector.totals.files, collector.unreadable) == (0, 1)
    assert_settled(collector)


def test_an_unreadable_directory_is_reported_with_its_own_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A directory that may not be opened (said by os.open, so that root is refused too)
    for name in ("secret", "open"):
        (tmp_path / name / "below").mkdir(parents=True)
    refuse_to_open(b"secret", monkeypatch)
    collector, _ = walked(tmp_path)
    shutil.rmtree(tmp_path / "secret" / "below")
    assert collector.totals == naive(os.fsencode(tmp_path)).totals
    assert collector.paths_with(DirectoryFlag.UNREADABLE) == [str(tmp_path / "secret")]
    assert_settled(collector)


def test_what_was_read_before_an_error_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "x").touch()
    real = os.scandir

    def failing(directory: int) -> AbstractContextManager[Iterator[os.DirEntry[str]]]:
        def entries() -> Iterator[os.DirEntry[str]]:
            yield from real(directory)
            raise OSError(errno.EIO, "Input/output error")

        return nullcontext(entries())

    monkeypatch.setattr(os, "scandir", failing)
    monkeypatch.setattr(walker_module, "NAMES_AT_ONCE", 1)
    collector, _ = walked(tmp_path)
    assert (collector.totals.entries, collector.unreadable) == (3, 2)
    assert_settled(collector)


NOBODY = 65534


def after_listing(
    monkeypatch: pytest.MonkeyPatch, act: Callable[[], None], directory: str = ""
) -> None:
    """Call a function between listing a directory's names and their stat."""
    real = os.scandir

    def scandir(descriptor: int) -> AbstractContextManager[Iterator[os.DirEntry[str]]]:
        entries = list(real(descriptor))
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        if directory in ("", os.path.basename(path)):
            act()
        return nullcontext(iter(entries))

    monkeypatch.setattr(os, "scandir", scandir)


def test_a_name_that_vanishes_before_its_stat_is_no_entry(
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


@pytest.mark.parametrize("error", [errno.EIO, errno.EACCES])
def test_a_name_whose_stat_fails_makes_its_directory_unreadable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    for name in ("good", "bad"):
        (tmp_path / name).touch()
    real = os.stat

    def failing(path: bytes, **options: Any) -> os.stat_result:
        if path == b"bad":
            raise OSError(error, os.strerror(error))
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
