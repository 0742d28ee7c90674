"""A quick estimate: exact where everything is read, honest where it is not."""

import os
import random
import shutil
from collections.abc import Callable
from itertools import count, islice, product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from tests.conftest import open_descriptors
from tests.filesystems import mount_bind, mount_tmpfs, unmount_below
from tests.needs import needs_root
from tests.trees import chain, flat, many_directories
from tests.unit.survey_trees import TREES, Tree, grown, naive
from tui_fs.cli.estimate import quick_words
from tui_fs.linux import directories
from tui_fs.model.quick_estimate import Interval, QuickEstimate
from tui_fs.model.units import bytes_iec
from tui_fs.survey import quick_estimate as module
from tui_fs.survey.quick_estimate import MAX_OPEN_DIRECTORIES, estimates

LONG_S = 30.0


def ticking(step_s: float = 0.001) -> Callable[[], float]:
    """Return a clock that goes on by a step whenever it is asked."""
    ticks = count()
    return lambda: next(ticks) * step_s


def estimate(path: str | bytes | Path, limit_s: float = LONG_S, seed: int = 0) -> QuickEstimate:
    """Estimate with a clock that makes the work take the time, not the machine."""
    return next(estimates([os.fsdecode(path)], limit_s, seed, ticking()))


def contains(interval: Interval, truth: int) -> bool:
    """Return whether the truth is in the interval, which must be one."""
    assert 0 <= interval.low <= interval.expected <= interval.high
    return interval.low <= truth <= interval.high


def exactly(number: int) -> Interval:
    """Return the interval of a number that is known."""
    return Interval(number, number, number)


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(TREES)
@pytest.mark.slow
def test_a_small_tree_is_exact(tree: Tree) -> None:
    with grown(tree) as root:
        result, truth = estimate(root), naive(root)
    assert result.is_complete
    assert result.entries == exactly(truth.totals.entries)
    assert result.directories == exactly(truth.totals.directories)
    assert contains(result.allocated_bytes, truth.totals.allocated_bytes)
    survey = result.survey
    assert survey.totals.non_directories == truth.totals.non_directories
    assert survey.max_entries_in_directory == truth.max_entries
    assert survey.max_depth == truth.max_depth
    assert survey.max_path_bytes == max(truth.max_path_bytes, len(root))
    assert survey.non_empty_directories == truth.non_empty
    assert survey.parent_directories == truth.parents
    assert survey.non_directory_path_bytes == truth.path_bytes
    assert survey.directory_reads == 2 * truth.totals.directories
    assert (survey.finished, survey.complete) == (False, False)


def even(root: Path, rng: random.Random) -> None:
    """Make directories that are all alike."""
    many_directories(root, 1_500, rng.randrange(2, 8))


def one_giant(root: Path, rng: random.Random) -> None:
    """Make one large directory among small ones."""
    many_directories(root, 1_500, 2)
    flat(root / "giant", rng.randrange(8_000, 12_000))


def skewed(root: Path, rng: random.Random) -> None:
    """Make groups of directories of very different size."""
    for group in range(40):
        for number in range(int(rng.paretovariate(1.0) * 10) % 300):
            below = root / f"g{group}/d{number}"
            below.mkdir(parents=True)
            flat(below / "f", int(rng.lognormvariate(1, 1)))


def nested(root: Path, rng: random.Random, depth: int = 0) -> None:
    """Make directories in directories, of random number and depth."""
    root.mkdir()
    for number in range(rng.randrange(20)):
        (root / f"f{number}").touch()
    if depth < 5:
        for number in range(8 if depth == 0 else rng.choice((0, 2, 4, 6))):
            nested(root / f"d{number}", rng, depth + 1)


def one_leaf(root: Path, rng: random.Random) -> None:
    """Make a tree of directories; only one of them has files."""
    for number in range(1_200):
        (root / f"a{number % 12}/b{number}").mkdir(parents=True)
    flat(root / "a3/b3/leaf", rng.randrange(10_000, 15_000))


def hard_links(root: Path, rng: random.Random) -> None:
    """Make backups that share their files."""
    first = root / "day0"
    for number in range(60):
        (first / f"d{number}").mkdir(parents=True)
        for name in range(rng.randrange(1, 20)):
            (first / f"d{number}/f{name}").write_bytes(bytes(5_000))
    for day in range(1, 8):
        shutil.copytree(first, root / f"day{day}", copy_function=os.link)


SHAPES = (even, one_giant, skewed, nested, one_leaf, hard_links)


@pytest.mark.slow
def test_the_truth_is_inside_in_nine_of_ten_cases(tmpfs: Path) -> None:
    # Two trees of each shape, estimated in little time and in more
    trees = []
    for shape, seed in product(SHAPES, range(2)):
        root = tmpfs / f"{shape.__name__}-{seed}"
        shape(root, random.Random(seed))
        truth = naive(os.fsencode(root)).totals
        trees.append((root, truth.entries, truth.directories, truth.allocated_bytes))
    for limit_s in (0.3, 0.8):
        _assert_inside(trees, limit_s)


def _assert_inside(grove: list[tuple[Path, int, int, int]], limit_s: float) -> None:
    inside = [0, 0, 0]
    number = sampled = narrow = 0
    for root, *truths in grove:
        for seed in range(3):
            result = estimate(root, limit_s, seed)
            intervals = (result.entries, result.directories, result.allocated_bytes)
            for which, (interval, truth) in enumerate(zip(intervals, truths, strict=True)):
                inside[which] += contains(interval, truth)
            number += 1
            sampled += not result.is_complete
            narrow += result.entries.high <= 4 * result.entries.low
    assert min(inside) >= 0.9 * number, (limit_s, inside, number)
    assert sampled > number / 3
    # and not because the range is as wide as the world
    assert narrow > number / 2 or limit_s < 0.5, (limit_s, narrow, number)


@pytest.mark.slow
def test_a_huge_directory_is_not_read_to_its_end(filesystem: Path) -> None:
    flat(filesystem / "t", 40_000)
    for seed in range(3):
        result = estimate(filesystem / "t", seed=seed)
        assert not result.is_complete, seed
        assert contains(result.entries, 40_001), seed
        assert result.entries.is_within(0.15), seed
        assert result.directories == exactly(1), seed
        assert result.basis == "Extrapolated from a part of the directory."


@pytest.mark.slow
def test_an_xfs_directory_with_holes_is_estimated_by_windows(xfs_root: Path) -> None:
    target = xfs_root / "holes"
    flat(target, 50_000)
    names = sorted(os.listdir(target))
    for name in names[15_000:35_000]:
        os.unlink(target / name)
    results = [estimate(target, seed=seed) for seed in range(5)]
    assert sum(contains(result.entries, 30_001) for result in results) >= 4
    assert all(result.entries.is_within(0.6) for result in results)
    shutil.rmtree(target)


def test_the_one_large_file_of_a_small_directory_is_not_missed(tmpfs: Path) -> None:
    (tmpfs / "t").mkdir()
    (tmpfs / "t" / "large").write_bytes(b"x" * (3 << 20))
    for number in range(400):
        (tmpfs / "t" / f"empty-{number}").touch()
    for seed in range(5):
        assert estimate(tmpfs / "t", seed=seed).allocated_bytes == exactly(3 << 20)


@pytest.mark.slow
def test_more_time_gives_narrower_ranges(tmpfs: Path) -> None:
    skewed(tmpfs / "t", random.Random(7))
    results = list(islice(estimates([str(tmpfs / "t")], 0.2, 0, ticking()), 5))
    assert len(results) > 2
    widths = [result.entries.high - result.entries.low for result in results]
    assert widths[-1] < widths[0] / 2
    assert results[-1].is_complete or results[-1].entries.is_within(0.4)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_estimate(tmpfs: Path) -> None:
    skewed(tmpfs / "t", random.Random(7))
    first, again, other = (estimate(tmpfs / "t", 0.5, seed) for seed in (1, 1, 2))
    assert first == again
    assert first.entries != other.entries


def test_it_returns_soon_after_its_limit(tmpfs: Path) -> None:
    skewed(tmpfs / "t", random.Random(7))
    truth = naive(os.fsencode(tmpfs / "t")).totals.entries
    result = next(estimates([str(tmpfs / "t")], 1.0, 0, ticking(0.01)))
    assert result.elapsed_s < 1.2
    assert contains(result.entries, truth)


def test_a_tree_of_which_only_the_top_was_read_has_a_wide_range(tmpfs: Path) -> None:
    for number in range(10):
        (tmpfs / f"t/user{number}").mkdir(parents=True)
        many_directories(tmpfs / f"t/user{number}", 50, 3)
    result = estimate(tmpfs / "t", 0.001)
    assert result.survey.max_depth == 1
    assert contains(result.directories, 1 + 10 + 10 * 50)
    assert contains(result.entries, 1 + 10 + 10 * 50 * 4)


def test_directories_that_were_not_read_cost_calls_too(tmpfs: Path) -> None:
    for number in range(10):
        (tmpfs / f"t/user{number}").mkdir(parents=True)
        many_directories(tmpfs / f"t/user{number}", 50, 3)
    survey = estimate(tmpfs / "t", 0.001).survey
    directories = survey.totals.directories
    assert directories > 11
    assert 2 * directories <= survey.directory_reads < 3 * directories
    assert survey.non_empty_directories == pytest.approx(directories, abs=1)
    assert 1 < survey.parent_directories < directories
    assert survey.non_directory_path_bytes > survey.totals.non_directories


@pytest.mark.parametrize("ticks", range(1_000, 15_001, 1_400))
def test_a_chain_whose_end_was_not_met_may_go_on(tmpfs: Path, ticks: int) -> None:
    chain(tmpfs / "t", 4_000)
    result = next(estimates([str(tmpfs / "t")], 1.0, 1, ticking(1 / ticks)))
    depth = result.survey.max_depth
    assert depth < result.entries.low <= 4_001 <= result.entries.high
    assert depth <= result.directories.low <= 4_001 <= result.directories.high


@pytest.mark.slow
def test_a_chain_deeper_than_path_max_takes_few_descriptors(tmpfs: Path) -> None:
    chain(tmpfs / "t", 6_000)
    before = open_descriptors()
    most = before
    opened = directories.open_unnoticed

    def counting(name: bytes, parent: int | None = None) -> int:
        nonlocal most
        most = max(most, len(os.listdir("/proc/self/fd")))
        return opened(name, parent=parent)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "open_unnoticed", counting)
        result = estimate(tmpfs / "t", 1_000)
    assert most - before <= MAX_OPEN_DIRECTORIES + 2
    assert result.entries == exactly(6_001)
    assert open_descriptors() == before


def test_an_empty_directory_is_one_entry(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    result = estimate(tmp_path / "t")
    assert (result.entries, result.directories) == (exactly(1), exactly(1))
    size = bytes_iec(os.stat(tmp_path / "t").st_blocks * 512)
    assert quick_words(result) == f"1 entry (all counted), frees about {size}"


def test_several_directories_are_added_up(tmp_path: Path) -> None:
    many_directories(tmp_path / "one", 5, 3)
    flat(tmp_path / "two", 7)
    result = next(estimates([str(tmp_path / "one"), str(tmp_path / "two")], LONG_S))
    assert result.entries == exactly(29)
    assert result.survey.path == str(tmp_path)
    assert result.survey.max_entries_in_directory == 7


@pytest.mark.parametrize("limit_s", [0.01, 0.03, 0.1])
@pytest.mark.slow
def test_bytes_have_room_for_files_that_were_not_examined(tmpfs: Path, limit_s: float) -> None:
    flat(tmpfs / "t", 20_000)
    for name in sorted(os.listdir(tmpfs / "t"))[::500]:
        (tmpfs / "t" / name).write_bytes(bytes(20_000))
    truth = naive(os.fsencode(tmpfs / "t")).totals.allocated_bytes
    room = os.statvfs(tmpfs)
    results = [estimate(tmpfs / "t", limit_s, seed).allocated_bytes for seed in range(10)]
    assert sum(contains(result, truth) for result in results) >= 9
    # and no more than the file system has in use
    assert all(each.high <= (room.f_blocks - room.f_bfree) * room.f_frsize for each in results)


def test_names_of_files_with_several_may_all_be_outside(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    for number in range(4):
        (tmp_path / f"t/f{number}").write_bytes(bytes(100_000))
        for link in range(3):
            os.link(tmp_path / f"t/f{number}", tmp_path / f"outside{number}-{link}")
    result = estimate(tmp_path / "t").allocated_bytes
    assert result.expected < 4 * 100_000 <= result.high


def test_no_symbolic_link_is_followed(tmp_path: Path) -> None:
    flat(tmp_path / "elsewhere", 50)
    (tmp_path / "t").mkdir()
    (tmp_path / "t/link").symlink_to(tmp_path / "elsewhere")
    assert estimate(tmp_path / "t").entries == exactly(2)
    with pytest.raises(NotADirectoryError):
        estimate(tmp_path / "t/link")


def before_opening(monkeypatch: pytest.MonkeyPatch, action: Callable[[bytes], None]) -> None:
    """Do something before each directory below the top is opened."""
    opened = directories.open_unnoticed

    def opening(name: bytes, parent: int | None = None) -> int:
        if parent is not None:
            action(name)
        return opened(name, parent=parent)

    monkeypatch.setattr(module, "open_unnoticed", opening)


def test_a_directory_replaced_by_a_link_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flat(tmp_path / "elsewhere", 50)
    (tmp_path / "t/met").mkdir(parents=True)

    def replace(_: bytes) -> None:
        (tmp_path / "t/met").rmdir()
        (tmp_path / "t/met").symlink_to(tmp_path / "elsewhere")

    before_opening(monkeypatch, replace)
    assert estimate(tmp_path / "t").entries.high <= 2


def test_directories_that_vanish_meanwhile_are_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many_directories(tmp_path / "t", 10, 2)

    def remove(name: bytes) -> None:
        if len(os.listdir(tmp_path / "t")) > 6:
            shutil.rmtree(tmp_path / "t" / os.fsdecode(name))

    before_opening(monkeypatch, remove)
    result = estimate(tmp_path / "t")
    assert result.entries == exactly(1 + 6 * 3)
    assert result.survey.unreadable == 0


def test_a_tree_that_is_deleted_while_it_is_sampled_is_no_error(
    tmpfs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    skewed(tmpfs / "t", random.Random(7))
    opened = count()

    def remove(_: bytes) -> None:
        if next(opened) == 100:
            shutil.rmtree(tmpfs / "t")

    before_opening(monkeypatch, remove)
    result = estimate(tmpfs / "t", 0.5)
    assert next(opened) > 100
    assert contains(result.entries, result.entries.expected)


def test_a_directory_that_must_not_be_read_is_one_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "t").mkdir()
    flat(tmp_path / "t/closed", 5)

    def refuse(_: bytes) -> None:
        raise PermissionError(13, "Permission denied")

    before_opening(monkeypatch, refuse)
    result = estimate(tmp_path / "t")
    assert (result.entries, result.survey.unreadable) == (exactly(2), 1)


def test_names_that_may_be_listed_but_not_examined_are_entries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # a directory that may be read but not searched (mode 0444), as another user than root
    many_directories(tmp_path / "t", 3, 5)
    flat(tmp_path / "t/files", 2)
    plain = os.stat

    def refusing(path: bytes, **how: Any) -> os.stat_result:
        if how.get("dir_fd") is not None:
            raise PermissionError(13, "Permission denied")
        return plain(path, **how)

    monkeypatch.setattr(os, "stat", refusing)
    result = estimate(tmp_path / "t")
    assert (result.entries, result.directories) == (exactly(5), exactly(5))
    assert result.survey.unreadable == 4


def test_no_other_mount_is_entered(tmp_path: Path) -> None:
    needs_root("mounting")
    flat(tmp_path / "elsewhere", 50)
    target = tmp_path / "t"
    for name in ("plain", "other", "same"):
        (target / name).mkdir(parents=True)
    try:
        flat(mount_tmpfs(target / "other") / "inside", 50)
        mount_bind(tmp_path / "elsewhere", target / "same")
        result = estimate(target)
        assert (result.entries, result.directories) == (exactly(4), exactly(4))
        # a file system that is mounted after the mount table was read is not entered either
        (tmp_path / "mountinfo").write_text("")
        late = next(estimates([str(target)], LONG_S, mountinfo=str(tmp_path / "mountinfo")))
        assert late.entries == exactly(54)
    finally:
        unmount_below(target)


def test_names_of_any_bytes_are_read(tmp_path: Path) -> None:
    for name in (b"\xff\xfe", b"a\nb", b"-rf", "ü".encode()):
        path = os.path.join(os.fsencode(tmp_path), b"t", name)
        os.makedirs(path)
        os.close(os.open(path + b"/\x80", os.O_CREAT))
    assert estimate(tmp_path / "t").entries == exactly(9)


def test_a_target_that_cannot_be_opened_is_an_error(tmp_path: Path) -> None:
    before = open_descriptors()
    with pytest.raises(FileNotFoundError):
        next(estimates([str(tmp_path), str(tmp_path / "none")]))
    assert open_descriptors() == before


def test_no_time_of_the_tree_changes(tmp_path: Path) -> None:
    many_directories(tmp_path / "t", 3, 3)
    os.utime(tmp_path / "t", (1, 1))
    before = os.stat(tmp_path / "t")
    estimate(tmp_path / "t")
    after = os.stat(tmp_path / "t")
    assert (after.st_atime_ns, after.st_mtime_ns) == (before.st_atime_ns, before.st_mtime_ns)


@pytest.mark.slow
def test_the_words_say_that_it_is_an_estimate_with_its_range(tmpfs: Path) -> None:
    many_directories(tmpfs / "t", 1_500, 6)
    words = quick_words(estimate(tmpfs / "t", 0.5))
    assert "entries (estimate; 90 % range " in words
    assert words.startswith("about 10,500 entries")
