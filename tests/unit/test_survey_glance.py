"""A first figure of a tree: exact where all was read, honest where it was not."""

import os
import random
import shutil
from collections.abc import Callable
from itertools import count, islice
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from tests.filesystems import mount_bind, mount_tmpfs, unmount_below
from tests.needs import needs_root
from tests.trees import chain, flat, many_directories
from tests.unit.survey_trees import TREES, Tree, grown, naive
from tui_fs.model.glance import Glance, Interval
from tui_fs.survey import glance_tree
from tui_fs.survey.glance import glance, looks
from tui_fs.survey.glance_looking import give_up
from tui_fs.survey.glance_statistics import Sum, Sums
from tui_fs.survey.glance_tree import HELD_DESCRIPTORS, Node, Root

LONG_S = 30.0


def ticking(step_s: float = 0.001) -> Callable[[], float]:
    """Return a clock that goes on by a step whenever it is asked."""
    ticks = count()
    return lambda: next(ticks) * step_s


def looked(path: str | bytes | Path, limit_s: float = LONG_S, seed: int = 0) -> Glance:
    """Look with a clock that makes the work, not the machine, take the time."""
    return next(looks([os.fsdecode(path)], limit_s, seed, ticking()))


def used_bytes(directory: Path) -> int:
    """Return what the file system of a directory has given out."""
    room = os.statvfs(directory)
    return (room.f_blocks - room.f_bfree) * room.f_frsize


def holds(interval: Interval, true: int) -> bool:
    """Tell whether the interval is one, and the truth in it."""
    assert interval.low <= interval.expected <= interval.high
    return interval.low <= true <= interval.high


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(TREES)
def test_a_small_tree_is_read_to_its_end(tree: Tree) -> None:
    # Given any small tree / When looked at / Then its counts are those of a naive walk
    with grown(tree) as root:
        seen, slow = glance([os.fsdecode(root)], LONG_S), naive(root)
    assert seen.is_all_read
    assert (seen.entries.is_exact, seen.directories.is_exact) == (True, True)
    assert seen.entries.expected == slow.totals.entries
    assert seen.directories.expected == slow.totals.directories
    assert holds(seen.allocated_bytes, slow.totals.allocated_bytes)
    survey = seen.as_survey("/tree")
    assert survey.totals.files == slow.totals.files
    assert survey.totals.symlinks == slow.totals.symlinks
    assert survey.totals.other == slow.totals.other
    assert survey.max_entries_in_directory == slow.max_entries
    assert survey.max_depth == slow.max_depth
    assert survey.max_path_bytes == max(slow.max_path_bytes, len(root))
    assert survey.non_empty_directories == slow.non_empty
    assert survey.parent_directories == slow.parents
    assert survey.non_directory_path_bytes == slow.path_bytes
    assert survey.directory_reads == 2 * slow.totals.directories
    assert (survey.finished, survey.complete) == (False, False)


def test_several_directories_are_one_figure(tmp_path: Path) -> None:
    # Given two trees / When looked at together / Then their sum
    many_directories(tmp_path / "one", 5, 3)
    flat(tmp_path / "two", 7)
    seen = glance([str(tmp_path / "one"), str(tmp_path / "two")], LONG_S)
    assert seen.entries == Interval(29, 29, 29)
    assert seen.largest_directory_entries == 7


def test_a_huge_directory_is_not_read_to_its_end(filesystem: Path) -> None:
    # Given a directory of more names than are needed / When looked at / Then a near figure
    flat(filesystem / "t", 60_000)
    for seed in range(3):
        seen = looked(filesystem / "t", seed=seed)
        assert not seen.is_all_read, seed
        assert holds(seen.entries, 60_001), seed
        assert seen.entries.is_within(0.10), seed
        assert seen.directories == Interval(1, 1, 1), seed
        assert "How far reading has come" in seen.rests_on, seed


def test_a_huge_directory_with_holes_is_estimated_by_windows(xfs_root: Path) -> None:
    # Given an xfs directory of which a part is nearly empty / When looked at / Then it is noticed
    target = xfs_root / "holes"
    flat(target, 100_000)
    names = sorted(os.listdir(target))
    for name in names[30_000:70_000]:
        os.unlink(target / name)
    seen = [looked(target, seed=seed) for seed in range(5)]
    assert sum(holds(one.entries, 60_001) for one in seen) >= 4
    assert all(one.entries.is_within(0.6) for one in seen)
    shutil.rmtree(target)


def even(root: Path) -> int:
    """Make directories all alike."""
    many_directories(root, 1_500, 6)
    return 1 + 1_500 * 7


def giant(root: Path) -> int:
    """Make one large directory among small ones."""
    many_directories(root, 1_500, 2)
    flat(root / "giant", 12_000)
    return 1 + 1_500 * 3 + 12_001


def skewed(root: Path) -> int:
    """Make groups of directories of very different size."""
    dice = random.Random(7)
    root.mkdir()
    entries = 1
    for group in range(40):
        below = int(dice.paretovariate(1.0) * 10) % 400
        for number in range(below):
            files = int(dice.lognormvariate(1, 1))
            (root / f"g{group}/d{number}").mkdir(parents=True)
            flat(root / f"g{group}/d{number}/f", files)
            entries += 2 + files
        entries += below > 0
    return entries


@pytest.mark.parametrize("grow", [even, giant, skewed])
def test_the_truth_lies_inside_nine_times_of_ten(grow: Callable[[Path], int], tmpfs: Path) -> None:
    # Given a tree too large for the time / When looked at often / Then the truth is mostly inside
    entries = grow(tmpfs / "t")
    seen = [looked(tmpfs / "t", 1.5, seed) for seed in range(20)]
    assert not any(one.is_all_read for one in seen)
    assert sum(holds(one.entries, entries) for one in seen) >= 17
    assert sum(one.entries.high < 4 * entries for one in seen) >= 15


def test_it_narrows_while_one_goes_on_looking(tmpfs: Path) -> None:
    # Given a tree that takes several turns / When looked at on / Then figures come, ever better
    skewed(tmpfs / "t")
    seen = list(looks([str(tmpfs / "t")], 0.3, 0, ticking()))
    assert len(seen) > 2
    width = [one.entries.high - one.entries.low for one in seen]
    assert width[-1] < width[0] / 4
    assert seen[-1].is_all_read or seen[-1].entries.is_within(0.05)
    assert [one.samples for one in seen] == sorted(one.samples for one in seen)


def test_a_seed_gives_the_same_figure_again(tmpfs: Path) -> None:
    # Given one tree / When looked at twice with one seed / Then the same, with another not
    skewed(tmpfs / "t")
    first, again, other = (looked(tmpfs / "t", 0.5, seed) for seed in (1, 1, 2))
    assert first == again
    assert first.entries != other.entries


def test_the_limit_is_kept(tmpfs: Path) -> None:
    # Given a clock that makes every step dear / When looked at / Then it ends soon after the limit
    skewed(tmpfs / "t")
    clock = ticking(0.01)
    seen = next(looks([str(tmpfs / "t")], 1.0, 0, clock))
    assert seen.elapsed_s < 1.2
    assert holds(seen.entries, naive(os.fsencode(tmpfs / "t")).totals.entries)


def test_no_symbolic_link_is_followed(tmp_path: Path) -> None:
    # Given links to a full directory / When looked at / Then they are names, and a link no root
    flat(tmp_path / "elsewhere", 50)
    (tmp_path / "t").mkdir()
    (tmp_path / "t/link").symlink_to(tmp_path / "elsewhere")
    assert glance([str(tmp_path / "t")], LONG_S).entries == Interval(2, 2, 2)
    with pytest.raises(NotADirectoryError):
        glance([str(tmp_path / "t/link")])


def test_a_directory_exchanged_for_a_link_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a directory that becomes a link to elsewhere after it was met / Then nothing of it
    flat(tmp_path / "elsewhere", 50)
    (tmp_path / "t/met").mkdir(parents=True)
    exchange = [True]
    opened = glance_tree.open_directory

    def opening(name: bytes, directory: int | None = None) -> int:
        if name == b"met" and exchange.pop():
            (tmp_path / "t/met").rmdir()
            (tmp_path / "t/met").symlink_to(tmp_path / "elsewhere")
        return opened(name, directory)

    monkeypatch.setattr(glance_tree, "open_directory", opening)
    assert glance([str(tmp_path / "t")], LONG_S).entries.high <= 2


def test_a_directory_that_vanishes_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given directories that are gone when they are to be read / Then the rest is counted
    many_directories(tmp_path / "t", 10, 2)
    opened = glance_tree.open_directory

    def opening(name: bytes, directory: int | None = None) -> int:
        if directory is not None and (tmp_path / "t" / os.fsdecode(name)).exists():
            gone = sorted(os.listdir(tmp_path / "t"))
            if len(gone) > 6:
                shutil.rmtree(tmp_path / "t" / os.fsdecode(name))
        return opened(name, directory)

    monkeypatch.setattr(glance_tree, "open_directory", opening)
    seen = glance([str(tmp_path / "t")], LONG_S)
    assert seen.entries == Interval(1 + 6 * 3, 1 + 6 * 3, 1 + 6 * 3)
    assert seen.unreadable == 0


def test_an_unreadable_directory_is_counted_but_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a directory that may not be opened / When looked at / Then it is one name
    (tmp_path / "t").mkdir()
    flat(tmp_path / "t/closed", 5)
    opened = glance_tree.open_directory

    def opening(name: bytes, directory: int | None = None) -> int:
        if name == b"closed":
            raise PermissionError(13, "Permission denied")
        return opened(name, directory)

    monkeypatch.setattr(glance_tree, "open_directory", opening)
    seen = glance([str(tmp_path / "t")], LONG_S)
    assert (seen.entries.expected, seen.unreadable) == (2, 1)


def test_no_other_mount_is_entered(tmp_path: Path) -> None:
    # Given a tmpfs and a part of the same file system mounted inside / Then they are two names
    needs_root("mounting")
    flat(tmp_path / "elsewhere", 50)
    target = tmp_path / "t"
    for name in ("plain", "other", "same"):
        (target / name).mkdir(parents=True)
    try:
        flat(mount_tmpfs(target / "other") / "inside", 50)
        mount_bind(tmp_path / "elsewhere", target / "same")
        seen = glance([str(target)], LONG_S)
        assert seen.entries == Interval(4, 4, 4)
        assert seen.directories == Interval(4, 4, 4)
        # and the same where the table of mounts came too late
        (tmp_path / "mountinfo").write_text("")
        *_, late = looks([str(target)], LONG_S, mountinfo=str(tmp_path / "mountinfo"))
        assert late.entries == Interval(54, 54, 54)
    finally:
        unmount_below(target)


def test_a_very_deep_chain_takes_few_descriptors(tmpfs: Path) -> None:
    # Given a chain far below PATH_MAX / When looked at / Then it is read, few descriptors open
    chain(tmpfs / "t", 20_000)
    before = len(os.listdir("/proc/self/fd"))
    figures = looks([str(tmpfs / "t")], 1.0)
    first = next(figures)
    assert len(os.listdir("/proc/self/fd")) - before <= HELD_DESCRIPTORS + 1
    truth = first.max_depth if first.is_all_read else 20_000
    assert first.entries.low <= truth + 2
    assert first.entries.high >= 20_000
    del figures
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("looks_at_the_clock", range(500, 15_001, 1_450))
def test_a_way_whose_end_was_not_seen_may_go_on(tmpfs: Path, looks_at_the_clock: int) -> None:
    # Given a chain, and time for some part of it, however the look comes to its end
    chain(tmpfs / "t", 4_000)
    # When looked at
    first = next(looks([str(tmpfs / "t")], 1.0, 1, ticking(1 / looks_at_the_clock)))
    # Then no level that was seen is missing, and nobody claims that it ends soon
    assert first.max_depth < first.entries.low <= 4_001 <= first.entries.high
    assert first.max_depth <= first.directories.low <= 4_001 <= first.directories.high


@pytest.mark.parametrize("limit_s", [0.01, 0.03, 0.1])
def test_files_nobody_has_looked_at_may_hold_something(tmpfs: Path, limit_s: float) -> None:
    # Given files of which one in 500 has content, and time to look at 128, 256 or 3,000
    flat(tmpfs / "t", 20_000)
    for name in sorted(os.listdir(tmpfs / "t"))[::500]:
        (tmpfs / "t" / name).write_bytes(bytes(20_000))
    truth = naive(os.fsencode(tmpfs / "t")).totals.allocated_bytes
    # When looked at / Then the true bytes are inside, even where none that was seen had any
    seen = [looked(tmpfs / "t", limit_s, seed).allocated_bytes for seed in range(10)]
    assert sum(holds(one, truth) for one in seen) >= 9
    assert any(one.expected == 0 for one in seen)
    # and no more than the file system has given out
    assert all(one.high <= used_bytes(tmpfs) for one in seen)


def test_bytes_are_known_where_every_file_was_looked_at(tmpfs: Path) -> None:
    # Given a small tree / When looked at / Then its bytes are known to a hundredth
    many_directories(tmpfs / "t", 5, 20)
    (tmpfs / "t" / "full").write_bytes(bytes(20_000))
    seen = glance([str(tmpfs / "t")], LONG_S).allocated_bytes
    assert (seen.expected, seen.is_within(0.01)) == (20_480, True)


def test_only_a_single_way_from_the_top_is_thought_to_go_on_as_far_again() -> None:
    # Given a directory 300 levels down, of which there is one, or which stands for ten
    root = Root(b"/t", -1, 0, "ext")
    node = Node(root, b"d", None, 300, 4)
    told = []
    for nodes in ([(node, 1.0)], [(node, 10.0)], [(node, 1.0), (node, 1.0)]):
        whole = Sums()
        # When there is no time for it / Then it may go on as far again only if it is the only way
        give_up(whole, nodes)
        told.append(whole.values[Sum.DIRECTORIES])
    assert told == [300.0, 10.0, 2.0]


def test_names_of_any_bytes_are_read(tmp_path: Path) -> None:
    # Given directories with names that are no text / When looked at / Then they are entered
    for name in (b"\xff\xfe", b"a\nb", b"-rf", "ü".encode()):
        path = os.path.join(os.fsencode(tmp_path), b"t", name)
        os.makedirs(path)
        os.close(os.open(path + b"/\x80", os.O_CREAT))
    assert glance([str(tmp_path / "t")], LONG_S).entries == Interval(9, 9, 9)


def test_what_cannot_be_opened_is_an_error(tmp_path: Path) -> None:
    # Given no directory / When looked at / Then the kernel's error, and no descriptor is left open
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(FileNotFoundError):
        glance([str(tmp_path), str(tmp_path / "none")])
    assert len(os.listdir("/proc/self/fd")) == before


def test_looking_changes_nothing(tmp_path: Path) -> None:
    # Given a tree / When looked at / Then times of access and modification are what they were
    many_directories(tmp_path / "t", 3, 3)
    os.utime(tmp_path / "t", (1, 1))
    before = os.stat(tmp_path / "t")
    list(islice(looks([str(tmp_path / "t")], 1.0), 2))
    after = os.stat(tmp_path / "t")
    assert (after.st_atime_ns, after.st_mtime_ns) == (before.st_atime_ns, before.st_mtime_ns)
