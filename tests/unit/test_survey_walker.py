"""The walker that counts without the engine, in trees that others change meanwhile."""

import errno
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from tests.unit.survey_trees import comb, naive, refuse_to_open
from tests.unit.walkers import assert_settled, names_told, walked
from tui_fs.linux.directories import MAX_OPEN_DIRECTORIES
from tui_fs.survey import walker as walker_module
from tui_fs.survey.aggregator import Aggregator
from tui_fs.survey.records import Batch, DirectoryFlag

Act = Callable[[], None]


def once(name: str, act: Act) -> Callable[[Batch], None]:
    """Do something as soon as a directory of this name is told."""
    left = [act]

    def meanwhile(batch: Batch) -> None:
        if name.encode() in names_told(batch) and left:
            left.pop()()

    return meanwhile


def test_each_directory_is_told_once_with_its_name_above_its_children(tmp_path: Path) -> None:
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
    before = len(os.listdir("/proc/self/fd"))
    most = 0

    def look(_: Batch) -> None:
        nonlocal most
        most = max(most, len(os.listdir("/proc/self/fd")))

    collector, _ = walked(root, look)
    assert collector.totals.directories == 1 + 3 * levels
    assert most <= before + MAX_OPEN_DIRECTORIES + 6
    assert len(os.listdir("/proc/self/fd")) == before
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


def _remove(path: Path) -> None:
    path.rmdir()


def _replace_by_file(path: Path) -> None:
    path.rmdir()
    path.write_bytes(b"x" * 5000)


def _replace_by_symlink(path: Path) -> None:
    path.rmdir()
    path.symlink_to("/")


def _replace_by_fifo(path: Path) -> None:
    path.rmdir()
    os.mkfifo(path)


@pytest.mark.parametrize(
    "replace", [_remove, _replace_by_file, _replace_by_symlink, _replace_by_fifo]
)
def test_a_directory_that_is_gone_before_its_turn_is_told_apart(
    tmp_path: Path, replace: Callable[[Path], None]
) -> None:
    root = tmp_path / "t"
    for name in ("one", "other"):
        (root / name).mkdir(parents=True)

    def both() -> None:
        replace(root / "one")
        replace(root / "other")

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
        """Walk it; `act` gets the way to the first leaf when the walker stands there."""
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
    """Give the tree, and a walker that keeps few descriptors: most ways back are climbed."""
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
    """Move the directory in which the walker stands, and the one above it, to other places."""
    first, second = leaf.parts[:2]
    (forks.root / first / second).rename(forks.elsewhere / "moved")
    (forks.root / first).rename(forks.elsewhere / "first")
    return forks.root / first


def test_another_directory_in_the_place_is_not_walked(forks: Forks) -> None:
    def replace(leaf: Path) -> None:
        first = _cut_off(forks, leaf)
        for name in ("l", "r"):
            (first / name).mkdir(parents=True)
            (first / name / "trap").touch()

    collector = forks.walk(replace)
    assert (collector.vanished, collector.unreadable) == (0, 1)
    assert collector.totals.directories == forks.directories - forks.below_second_level + 1


def test_a_symlink_in_the_place_is_not_followed(forks: Forks) -> None:
    def link(leaf: Path) -> None:
        _cut_off(forks, leaf).symlink_to(forks.elsewhere / "first")

    collector = forks.walk(link)
    assert (collector.vanished, collector.unreadable) == (0, 1)
    assert collector.totals.directories == forks.directories - forks.below_second_level + 1


def test_a_way_that_is_gone_is_told(forks: Forks) -> None:
    def move(leaf: Path) -> None:
        _cut_off(forks, leaf)

    collector = forks.walk(move)
    assert (collector.vanished, collector.unreadable) == (0, 1)


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


def test_an_unreadable_directory_is_told_with_its_own_size(
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


def test_a_directory_that_may_not_be_searched_is_unreadable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A directory that can be listed, but whose entries may not be examined
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "x").touch()
    real = os.stat

    def refusing(path: bytes, **options: Any) -> os.stat_result:
        if path == b"x":
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(path, **options)

    monkeypatch.setattr(os, "stat", refusing)
    collector, _ = walked(tmp_path)
    assert (collector.totals.entries, collector.unreadable) == (2, 1)
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
