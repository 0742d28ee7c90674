"""The listing of one surveyed directory: its current names, and the counts below them."""

import os
from pathlib import Path

import pytest

from tests.conftest import open_descriptors
from tests.trees import hostile_names
from tests.unit.survey_trees import deep, naive
from tests.unit.walkers import collected, walked
from tui_fs.model.paths import PathStr
from tui_fs.model.survey import Child, EntryKind, Listing, Order, Sorting, Totals
from tui_fs.survey import listing as listing_module
from tui_fs.survey.aggregator import Aggregator
from tui_fs.survey.listing import Names, first_children, listing_of, read_names

__all__ = ["deep"]


def shown(counted: Aggregator, path: Path) -> Listing:
    """List a directory as a reader of the survey would."""
    big = counted.big_files_in(counted.table.find(str(path)))
    return listing_of(counted.table, str(path), read_names(str(path)), big)


def by_name(listing: Listing) -> dict[str, Child]:
    """Sort children by name; each name is there once."""
    assert len({child.name for child in listing.children}) == len(listing.children)
    return {child.name: child for child in listing.children}


def test_children_add_up_to_the_whole_at_every_level(tmp_path: Path) -> None:
    hostile_names(tmp_path / "t")
    counted, _ = walked(tmp_path / "t")
    for path, below, others in os.walk(tmp_path / "t"):
        listing = shown(counted, Path(path))
        assert set(by_name(listing)) == {*below, *others}
        assert (listing.complete, listing.not_listed, listing.problem) == (True, 0, "")
        assert listing.totals == naive(os.fsencode(path)).totals
        own = os.lstat(path)
        parts = [child.totals for child in listing.children]
        assert 1 + sum(part.entries for part in parts) == listing.totals.entries
        allocated = own.st_blocks * 512 + sum(part.allocated_bytes for part in parts)
        assert allocated == listing.totals.allocated_bytes


def test_a_directory_shows_the_times_and_inodes_below_it(tmp_path: Path) -> None:
    (tmp_path / "d" / "e").mkdir(parents=True)
    (tmp_path / "empty").mkdir()
    (tmp_path / "d" / "old").touch()
    (tmp_path / "d" / "e" / "new").touch()
    os.utime(tmp_path / "d" / "old", (100, 100))
    os.utime(tmp_path / "d" / "e" / "new", (200, 200))
    os.link(tmp_path / "d" / "old", tmp_path / "d" / "e" / "link")
    counted, _ = walked(tmp_path)
    children = by_name(shown(counted, tmp_path))
    assert (children["d"].oldest_s, children["d"].newest_s) == (100, 200)
    assert (children["d"].totals.entries, children["d"].inodes) == (5, 4)
    assert (children["empty"].oldest_s, children["empty"].newest_s) == (None, None)
    assert children["empty"].inodes == 1


def test_a_large_directory_has_its_largest_subdirectories_inside(tmp_path: Path) -> None:
    for name in ("large/a/b/c/d", *(f"large/many/{n}" for n in range(30)), "small/e"):
        (tmp_path / name).mkdir(parents=True)
    for number in range(2_000):
        (tmp_path / "large" / "a" / "b" / "c" / f"{number}").touch()
    (tmp_path / "large" / "data").write_bytes(bytes(4 << 20))
    children = by_name(shown(walked(tmp_path)[0], tmp_path))
    large = children["large"]
    assert [child.name for child in large.inside] == ["a", "many"]
    levels = [large.inside[0], large.inside[0].inside[0], large.inside[0].inside[0].inside[0]]
    assert [child.name for child in levels] == ["a", "b", "c"]
    assert [child.totals.files for child in levels] == [2_000] * 3
    assert levels[-1].inside == ()  # deeper levels have no room
    assert children["small"].inside == ()


def test_the_oldest_times_of_all_are_times(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    for name, moment in (("epoch", 0), ("before", -5), ("later", 500)):
        (tmp_path / "d" / name).touch()
        os.utime(tmp_path / "d" / name, (moment, moment))
    counted, _ = walked(tmp_path)
    child = by_name(shown(counted, tmp_path))["d"]
    assert (child.oldest_s, child.newest_s) == (1, 500)


def test_entries_are_reported_by_kind_with_link_targets(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 5000)
    os.utime(tmp_path / "file", (77, 77))
    (tmp_path / "link").symlink_to("/")
    os.mkfifo(tmp_path / "fifo")
    counted, _ = walked(tmp_path)
    children = by_name(shown(counted, tmp_path))
    status = os.lstat(tmp_path / "file")
    assert children["file"] == Child(
        PathStr("file"),
        EntryKind.FILE,
        Totals(files=1, apparent_bytes=5000, allocated_bytes=status.st_blocks * 512),
        True,
        oldest_s=77,
        newest_s=77,
    )
    assert (children["link"].kind, children["link"].link_target) == (EntryKind.SYMLINK, "/")
    assert children["link"].totals.symlinks == 1
    assert (children["fifo"].kind, children["fifo"].totals.other) == (EntryKind.OTHER, 1)


def test_more_entries_than_are_listed_are_a_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing_module, "OTHERS_LISTED", 10)
    for number in range(50):
        (tmp_path / f"file-{number}").touch()
    (tmp_path / "directory" / "x").mkdir(parents=True)
    with (tmp_path / "large").open("wb") as file:
        file.truncate(1 << 30)
    counted, _ = walked(tmp_path)
    listing = shown(counted, tmp_path)
    children = by_name(listing)
    others = [child for child in listing.children if child.kind is not EntryKind.DIRECTORY]
    assert len(others) in (10, 11)
    assert len(others) + listing.not_listed == 51
    assert children["directory"].totals.directories == 2
    assert children["large"].totals.apparent_bytes == 1 << 30


@pytest.mark.parametrize("is_reversed", [False, True])
@pytest.mark.parametrize("sorting", Sorting)
def test_the_listed_entries_are_the_first_of_all_in_the_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sorting: Sorting, is_reversed: bool
) -> None:
    for number in range(60):
        path = tmp_path / f"file-{number * 37 % 60}"
        path.write_bytes(b"x" * 4096 * (number * 17 % 60))
        os.utime(path, (1000, 1000 + number * 7 % 60))
    order = Order(sorting, is_reversed)
    counted, _ = walked(tmp_path)

    def first(number: int) -> list[str]:
        monkeypatch.setattr(listing_module, "OTHERS_LISTED", number)
        listing = listing_of(counted.table, str(tmp_path), read_names(str(tmp_path), order))
        assert listing.is_sorted(order)
        return [child.name for child in first_children(listing.children, order, 10)]

    assert first(10) == first(100)


def test_a_partly_read_directory_is_published_and_says_how_much_was_examined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing_module, "OTHERS_LISTED", 10)
    for number in range(600):
        (tmp_path / f"{number}").touch()
    counted, _ = walked(tmp_path)
    published: list[Names] = []
    seconds = iter(range(1_000))

    def publish(names: Names) -> bool:
        published.append(names)
        return len(published) < 2

    order = Order(Sorting.NAME)
    names = read_names(str(tmp_path), order, "", publish, lambda: float(next(seconds)))
    # Reading stops when `publish` returns false
    assert [part.examined for part in published] == [256, 512]
    listing = listing_of(counted.table, str(tmp_path), names)
    assert (listing.examined, listing.not_listed, listing.is_sorted(order)) == (512, 590, False)
    # A server that is too slow is not asked for the rest
    hours = iter(range(0, 10_000_000, 3600))
    names = read_names(str(tmp_path), order, clock=lambda: float(next(hours)))
    assert names.examined == 256


def test_a_required_entry_is_listed_in_any_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing_module, "OTHERS_LISTED", 3)
    for number in range(9):
        (tmp_path / f"{number}").touch()
    names = read_names(str(tmp_path), Order(Sorting.NAME), "7")
    assert [child.name for child in names.others] == ["0", "1", "2", "7"]
    names = read_names(str(tmp_path), Order(Sorting.NAME), "1")
    assert [child.name for child in names.others] == ["0", "1", "2"]


def test_what_is_not_counted_yet_is_shown_as_not_complete(tmp_path: Path) -> None:
    # A survey that has read the top only
    (tmp_path / "d" / "e").mkdir(parents=True)
    _, batches = walked(tmp_path)
    seen = []
    for number in range(1, len(batches) + 1):
        listing = listing_of(
            collected(batches[:number]).table, str(tmp_path), read_names(str(tmp_path))
        )
        (child,) = listing.children
        seen.append((child.name, child.totals.directories, child.complete, listing.complete))
    assert seen[0] == ("d", 1, False, False)
    assert seen[-1] == ("d", 2, True, True)
    assert all(complete == (directories == 2) for _, directories, complete, _ in seen)


def test_a_directory_that_was_not_surveyed_shows_its_problem_only(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    counted, _ = walked(tmp_path / "t")
    missing = shown(counted, tmp_path / "missing")
    assert (missing.children, missing.complete, missing.totals) == ((), False, Totals())
    assert "already gone" in missing.problem
    assert listing_of(counted.table, "/else", Names()).problem == ""


def test_a_directory_that_was_counted_and_is_gone_keeps_its_counts(tmp_path: Path) -> None:
    (tmp_path / "d" / "e").mkdir(parents=True)
    counted, _ = walked(tmp_path)
    (tmp_path / "d" / "e").rmdir()
    (tmp_path / "d").rmdir()
    listing = shown(counted, tmp_path / "d")
    assert [child.name for child in listing.children] == ["e"]
    assert listing.problem


@pytest.mark.parametrize("last", [False, True])
def test_no_symbolic_link_is_followed_to_names(tmp_path: Path, last: bool) -> None:
    (tmp_path / "t" / "d" / "e").mkdir(parents=True)
    (tmp_path / "elsewhere" / "e").mkdir(parents=True)
    (tmp_path / "elsewhere" / "e" / "not ours").touch()
    counted, _ = walked(tmp_path / "t")
    moved = tmp_path / "t" / "d" / "e" if last else tmp_path / "t" / "d"
    moved.rename(tmp_path / "moved")
    moved.symlink_to(tmp_path / "elsewhere" / "e" if last else tmp_path / "elsewhere")
    listing = shown(counted, tmp_path / "t" / "d" / "e")
    assert listing.children == ()
    assert listing.problem


def test_a_directory_deeper_than_any_path_is_listed(deep: Path) -> None:
    name, levels = "n" * 250, 20
    descriptor = os.open(deep, os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(levels):
        os.mkdir(name, dir_fd=descriptor)
        below = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
    os.symlink("somewhere", "link", dir_fd=descriptor)
    os.close(descriptor)
    counted, _ = walked(deep)
    path = str(deep) + f"/{name}" * levels
    listing = listing_of(counted.table, path, read_names(path))
    assert [(child.name, child.link_target) for child in listing.children] == [
        ("link", "somewhere")
    ]


def test_listing_leaves_nothing_open(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    before = open_descriptors()
    read_names(str(tmp_path))
    read_names(str(tmp_path / "link"))
    read_names(str(tmp_path / "missing" / "below"))
    assert open_descriptors() == before
