"""The engine removes all of its targets and nothing else."""

import os
import random
import re
import stat
import subprocess
from pathlib import Path

import pytest

from tests.conftest import DEADLINE_S
from tests.engine.running import delete, delete_command
from tests.filesystems import mount_overlay
from tests.needs import needs_root, needs_tool
from tests.trees import Sentinel, census, chain, flat, hostile_names, many_directories
from tui_fs.linux.fnmatch import matches_glob
from tui_fs.linux.pins import take_pin

WAYS = ((), ("--threads", "1"), ("--threads", "5"))
FLAT_FILES = 30_000
DEEP_LEVELS = 5_000


@pytest.fixture(params=WAYS, ids=lambda way: "-".join(way) or "itself")
def way(request: pytest.FixtureRequest) -> tuple[str, ...]:
    value: tuple[str, ...] = request.param
    return value


@pytest.mark.parametrize(
    ("way", "keep_root"),
    [((), False), ((), True), *zip(WAYS[1:], (True, False), strict=True)],
    ids=str,
)
@pytest.mark.parametrize("lacking", ["", "openat2"])
def test_all_of_a_tree_and_nothing_beside_it(
    filesystem: Path, way: tuple[str, ...], keep_root: bool, lacking: str
) -> None:
    sentinel = Sentinel(filesystem)
    target = filesystem / "target"
    hostile_names(target)
    sentinel.plant(target)
    many_directories(target / "many", 30, 300)
    counted = census(target)
    options = ("--keep-root",) if keep_root else ()
    ended = delete(*way, *options, "--", target, lacking=lacking).expect(0)
    # It is gone, its siblings are not, and every entry was counted
    kept = int(keep_root)
    sentinel.assert_whole()
    assert sorted(os.listdir(filesystem)) == ["sentinel", "target"][: 1 + kept]
    assert not keep_root or os.listdir(target) == []
    assert ended.counts["removed"] == counted.entries - kept
    assert ended.counts["directories"] == counted.directories - kept
    calls, errors, nanoseconds = ended.counts["calls"]["unlinkat"]
    assert calls - errors == counted.entries - kept
    assert nanoseconds > 0


def test_about_one_removal_in_16_is_timed_alone(tmp_path: Path, way: tuple[str, ...]) -> None:
    target = tmp_path / "target"
    many_directories(target, 80, 100)
    counts = delete(*way, "--", target).expect(0).counts
    limits, numbers = zip(*counts["removal_ns"], strict=True)
    assert list(limits) == sorted(set(limits))
    assert 7_500 < 16 * sum(numbers) < 8_700  # each thread starts with one
    _, _, nanoseconds = counts["calls"]["unlinkat"]
    assert min(limits) < nanoseconds


@pytest.mark.parametrize(
    ("filesystem", "way"),
    [("xfs", ()), ("tmpfs", ()), *(("ext4", way) for way in WAYS)],
    indirect=True,
    ids=str,
)
def test_one_large_directory(filesystem: Path, way: tuple[str, ...]) -> None:
    target = filesystem / "target"
    flat(target, FLAT_FILES)
    many_directories(target / "below", 5, 5)
    ended = delete(*way, "--", target).expect(0)
    assert os.listdir(filesystem) == []
    assert ended.counts["removed"] == FLAT_FILES + 1 + 1 + 5 * 6


def test_the_working_directory_is_emptied_and_kept(ext4: Path) -> None:
    many_directories(ext4 / "a", 3, 3)
    flat(ext4 / "b", 10)
    ended = delete(".", cwd=ext4).expect(0)
    assert os.listdir(ext4) == []
    assert ended.counts["removed"] == 1 + 3 * 4 + 11


def test_several_targets(ext4: Path) -> None:
    for name in ("a", "b", "kept"):
        many_directories(ext4 / name, 3, 3)
    delete("--", ext4 / "a", ext4 / "b").expect(0)
    assert os.listdir(ext4) == ["kept"]
    assert census(ext4 / "kept").entries == 1 + 3 * 4


@pytest.mark.parametrize("limit", [64, 256])
def test_a_deep_chain_with_few_descriptors(filesystem: Path, limit: int) -> None:
    target = filesystem / "target"
    chain(target, DEEP_LEVELS)
    flat(target / "d" / "d" / "files", 100)
    ended = delete("--", target, limits=f"ulimit -n {limit}").expect(0)
    assert os.listdir(filesystem) == []
    assert ended.counts["directories"] == DEEP_LEVELS + 2


def test_deep_chain_of_a_lower_layer_is_removed_though_deleting_changes_birth_times(
    tmpfs: Path,
) -> None:
    def fill(lower: Path) -> None:
        chain(lower / "target", DEEP_LEVELS)

    merged = mount_overlay(tmpfs, fill)
    delete("--", merged / "target", limits="ulimit -n 64").expect(0)
    assert os.listdir(merged) == []


@pytest.fixture(params=("tmpfs", "xfs"))
def either_end(request: pytest.FixtureRequest) -> Path:
    """Return a place where names are taken from one end, and one where from both ends."""
    place: Path = request.getfixturevalue(request.param)
    return place


def test_bushes_along_a_deep_chain(either_end: Path, way: tuple[str, ...]) -> None:
    target = either_end / "target"
    place = target
    target.mkdir()
    for _ in range(60):
        many_directories(place, 4, 6)
        place = place / "directory-00002"
    entries = census(target).entries
    ended = delete(*way, "--", target, limits="ulimit -n 80").expect(0)
    assert os.listdir(either_end) == []
    assert ended.counts["removed"] == entries


@pytest.mark.parametrize("seed", range(2))
def test_random_trees(either_end: Path, seed: int, way: tuple[str, ...]) -> None:
    target = either_end / "target"
    target.mkdir()
    chance = random.Random(2 * WAYS.index(way) + seed)
    places = [target]
    for number in range(chance.randrange(300, 1_500)):
        place = chance.choice(places)
        if chance.random() < 0.4:
            (place / f"d{number}").mkdir()
            places.append(place / f"d{number}")
        else:
            for copy in range(chance.choice((1, 1, 1, 40))):
                (place / f"f{number}-{copy}").touch()
    entries = census(target).entries
    ended = delete(*way, "--", target).expect(0)
    assert os.listdir(either_end) == []
    assert ended.counts["removed"] == entries


FILTERS: tuple[tuple[str, ...], ...] = (
    ("--name", "*.log"),
    ("--name", "[!a-m]*"),
    ("--min-size", "100"),
    ("--min-size", "0"),
    ("--modified-before", "1000000000"),
    ("--name", "*.log", "--min-size", "100", "--modified-before", "1000000000"),
)


@pytest.mark.parametrize("filters", FILTERS, ids=" ".join)
def test_filters_choose_as_find_does(ext4: Path, filters: tuple[str, ...]) -> None:
    target = ext4 / "target"
    for directory in (target, target / "below", target / "x.log"):
        directory.mkdir()
        (directory / "link.log").symlink_to("nowhere")
        os.mkfifo(directory / "pipe.log")
        for name in ("a.log", "z.log", "other", "-rf", "w\n.log"):
            for size in (0, 99, 100, 101):
                for time_ns in (999_999_999_999_999_999, 1_000_000_000 * 10**9, 10**18 + 1):
                    file = directory / f"{size}-{time_ns}-{name}"
                    file.write_bytes(b"x" * size)
                    os.utime(file, ns=(0, time_ns))
    chosen = dict(zip(filters[::2], filters[1::2], strict=True))

    def is_chosen(path: Path) -> bool:
        status = path.lstat()
        glob = chosen.get("--name")
        least = chosen.get("--min-size")
        before = chosen.get("--modified-before")
        return (
            not stat.S_ISDIR(status.st_mode)
            and (glob is None or matches_glob(glob.encode(), os.fsencode(path.name)))
            and (least is None or (path.is_file() and not path.is_symlink()))
            and (least is None or status.st_size >= int(least))
            and (before is None or status.st_mtime_ns <= int(before) * 10**9)
        )

    everything = set(target.rglob("*"))
    expected = {path for path in everything if not is_chosen(path)}
    assert len(expected) < len(everything)
    ended = delete(*filters, "--", target).expect(0)
    assert set(target.rglob("*")) == expected
    assert ended.counts["removed"] == len(everything) - len(expected)
    assert ended.counts["directories"] == 0


def test_another_directory_than_the_pinned_one_is_not_touched(ext4: Path) -> None:
    # Two targets; the second is not the confirmed directory
    first, second = ext4 / "first", ext4 / "second"
    flat(first, 3)
    flat(second, 3)
    pins = [f"{(s := path.stat()).st_dev}:{s.st_ino}:0" for path in (first, second)]
    second.rename(ext4 / "moved")
    flat(second, 3)
    ended = delete("--pin", pins[0], "--pin", pins[1], "--", first, second).expect(1)
    assert "second" in ended.messages[0]
    assert len(os.listdir(first)) == len(os.listdir(second)) == 3


def test_directory_with_the_pinned_inode_but_another_birth_time_is_not_touched(ext4: Path) -> None:
    target = ext4 / "target"
    flat(target, 3)
    pin = take_pin(str(target))
    assert pin.birth_ns is not None
    wrong = f"{pin.device}:{pin.inode}:{pin.birth_ns + 1}"
    delete("--pin", wrong, "--", target).expect(1)
    assert len(os.listdir(target)) == 3
    delete("--pin", f"{pin.device}:{pin.inode}:{pin.birth_ns}", "--", target).expect(0)
    assert not target.exists()


def test_a_symbolic_link_on_the_way_is_refused(ext4: Path) -> None:
    flat(ext4 / "real", 3)
    (ext4 / "link").symlink_to("real")
    (ext4 / "place").mkdir()
    flat(ext4 / "place" / "target", 3)
    (ext4 / "way").symlink_to("place")
    ended = delete("--", ext4 / "link", ext4 / "way" / "target").expect(1)
    # They are not
    assert len(ended.messages) == 2
    assert len(os.listdir(ext4 / "real")) == len(os.listdir(ext4 / "place" / "target")) == 3


def test_numbers_of_calls_do_not_depend_on_who_makes_them(ext4: Path) -> None:
    counts = []
    for threads in ("1", "4"):
        target = ext4 / f"target-{threads}"
        many_directories(target, 40, 50)
        ended = delete("--threads", threads, "--", target).expect(0)
        counts.append({name: n for name, (n, _, _) in ended.counts["calls"].items()})
    for name in ("openat2", "unlinkat", "getdents64"):
        assert counts[0][name] == counts[1][name], name


def test_sparse_and_large_files_go_in_steps_where_it_is_gentle(ext4: Path) -> None:
    target = ext4 / "target"
    target.mkdir()
    for name in ("large", "linked"):
        with open(target / name, "wb") as file:
            os.posix_fallocate(file.fileno(), 0, 600 << 20)
    os.link(target / "linked", ext4 / "outside")
    (target / "small").write_bytes(b"small")
    ended = delete("--gentle", "--", target).expect(0)
    assert ended.counts["calls"]["ftruncate"][:2] == [2, 0]
    assert (ext4 / "outside").stat().st_blocks * 512 >= 600 << 20
    assert not target.exists()


def test_room_for_descriptors_is_made_before_there_are_threads(tmp_path: Path) -> None:
    target, trace = tmp_path / "target", tmp_path / "trace"
    chain(target, DEEP_LEVELS)
    watched = "trace=fcntl,clone,clone3,openat2"
    subprocess.run(
        [
            *(needs_tool("strace", "strace"), "-f", "-o", trace, "-e", watched),
            *delete_command("--threads", "2", "--", target),
        ],
        stdout=subprocess.DEVNULL,
        timeout=DEADLINE_S,
        check=True,
    )
    traced = trace.read_text()
    before, after = re.split(r" clone3?\(", traced, maxsplit=1)
    (room,) = re.findall(r" fcntl\(.*F_DUPFD_CLOEXEC, (\d+)\) += \1\n", before)
    opened = [int(number) for number in re.findall(r" openat2.* = (\d+)\n", after)]
    assert 100 < max(opened) <= int(room)


def test_a_file_that_a_process_reads_is_not_truncated(ext4: Path) -> None:
    target = ext4 / "target"
    target.mkdir()
    with open(target / "large", "wb+") as file:
        os.posix_fallocate(file.fileno(), 0, 600 << 20)
        ended = delete("--gentle", "--", target).expect(0)
        assert os.fstat(file.fileno()).st_size == 600 << 20
        assert os.fstat(file.fileno()).st_blocks * 512 >= 600 << 20
    assert "ftruncate" not in ended.counts["calls"]


@pytest.mark.root
@pytest.mark.parametrize("lacking", ["", "openat2"])
def test_nothing_that_is_mounted_is_entered(ext4: Path, way: tuple[str, ...], lacking: str) -> None:
    from tests.filesystems import mount_bind, unmount_below

    needs_root("mounting")
    outside = ext4 / "outside"
    flat(outside, 5)
    target = ext4 / "target"
    many_directories(target, 3, 3)
    mount_bind(outside, target / "directory-00001" / "mounted")
    ended = delete(*way, "--", target, lacking=lacking).expect(1)
    assert len(os.listdir(outside)) == 5
    assert any("mounted" in message for message in ended.messages)
    assert sorted(os.listdir(target)) == ["directory-00001"]
    assert os.listdir(target / "directory-00001") == ["mounted"]
    unmount_below(target)
