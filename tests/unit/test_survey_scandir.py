"""The scandir survey against a naive walk, and in the trees that break naive walks."""

import errno
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.trees import chain, hostile_names
from tui_fs.model.paths import PathStr
from tui_fs.model.survey import EntryKind, Severity, Survey, Totals
from tui_fs.survey import findings
from tui_fs.survey.scandir import CHILDREN_LISTED, LARGEST_KEPT, OPEN_LIMIT, ScandirSurvey

Tree = dict[bytes, Any]
"""A name's subtree, its size as a file, or what it is."""

SLASH, NUL = b"/", b"\0"
NAMES = (
    st.one_of(st.binary(min_size=1, max_size=12), st.text(min_size=1, max_size=6).map(str.encode))
    .map(lambda name: name.replace(SLASH, b"-").replace(NUL, b"-"))
    .filter(lambda name: name not in (b".", b".."))
)
LEAVES = st.one_of(
    st.sampled_from([0, 1, 4095, 4096, 100_000]), st.sampled_from(["symlink", "fifo", "link"])
)
TREES: st.SearchStrategy[Tree] = st.dictionaries(
    NAMES,
    st.recursive(LEAVES, lambda below: st.dictionaries(NAMES, below, max_size=5), max_leaves=12),
    max_size=6,
)


def grow(directory: bytes, tree: Tree, outside: bytes) -> None:
    """Make a tree; "link" is a second name of the first file, or of the one outside."""
    for name, what in tree.items():
        path = os.path.join(directory, name)
        match what:
            case dict():
                os.mkdir(path)
                grow(path, what, outside)
            case int():
                with open(path, "wb") as file:
                    file.write(b"x" * what)
            case "symlink":
                os.symlink(directory, path)
            case "fifo":
                os.mkfifo(path)
            case "link":
                os.link(outside, path)


@dataclass
class Naive:
    """What os.walk and lstat say."""

    totals: Totals
    freed_min: int
    max_depth: int
    max_path_bytes: int
    max_entries: int
    non_empty: int
    parents: int
    path_bytes: int


def naive(root: bytes) -> Naive:
    """Count a tree the slow and obvious way."""
    kinds = {"files": 0, "directories": 0, "symlinks": 0, "other": 0}
    links: dict[int, list[os.stat_result]] = {}
    depth = longest = entries = full = parents = path_bytes = 0
    for path, below, others in os.walk(root):
        kinds["directories"] += 1
        status = os.lstat(path)
        links.setdefault(status.st_ino, []).append(status)
        names = below + others
        entries = max(entries, len(names))
        full += bool(names)
        real = [name for name in below if not os.path.islink(os.path.join(path, name))]
        parents += bool(real)
        for name in names:
            whole = os.path.join(path, name)
            longest = max(longest, len(whole))
            depth = max(depth, whole.count(b"/") - root.count(b"/"))
            status = os.lstat(whole)
            if stat.S_ISDIR(status.st_mode):
                continue
            path_bytes += len(whole)
            links.setdefault(status.st_ino, []).append(status)
            regular, link = stat.S_ISREG(status.st_mode), stat.S_ISLNK(status.st_mode)
            kinds["files" if regular else "symlinks" if link else "other"] += 1
    first = [statuses[0] for statuses in links.values()]
    whole_links = [
        statuses[0]
        for statuses in links.values()
        if stat.S_ISDIR(statuses[0].st_mode) or statuses[0].st_nlink == len(statuses)
    ]
    return Naive(
        Totals(
            **kinds,
            apparent_bytes=sum(status.st_size for status in first),
            allocated_bytes=sum(status.st_blocks * 512 for status in first),
        ),
        sum(status.st_blocks * 512 for status in whole_links),
        depth,
        longest,
        entries,
        full,
        parents,
        path_bytes,
    )


def surveyed(path: str | bytes | Path, **options: Any) -> Survey:
    """Survey a directory to its end."""
    *_, last = ScandirSurvey([os.fsdecode(path)], **options).run()
    return last


@given(TREES)
@example({b"a": {b"x": "link", b"y": "link"}, b"b": "link"})
@example({b"\xff": {b"\n": {b"-rf": 1}}})
@settings(deadline=None, max_examples=120)
def test_every_count_is_that_of_a_naive_walk(tree: Tree) -> None:
    # Given a random tree, with names of any bytes, links and special files
    with tempfile.TemporaryDirectory() as directory:
        beside = os.fsencode(directory)
        outside = os.path.join(beside, b"outside")
        Path(directory, "outside").write_bytes(b"x" * 9000)
        root = os.path.join(beside, b"root")
        os.mkdir(root)
        grow(root, tree, outside)
        # When surveyed / Then each count is what os.walk and lstat say
        survey, slow = surveyed(root), naive(root)
        assert survey.totals == slow.totals
        assert survey.freed_bytes_max == slow.totals.allocated_bytes
        assert survey.freed_bytes_min == slow.freed_min
        assert survey.max_depth == slow.max_depth
        assert survey.max_path_bytes == slow.max_path_bytes
        assert survey.max_entries_in_directory == slow.max_entries
        assert survey.non_empty_directories == slow.non_empty
        assert survey.parent_directories == slow.parents
        assert survey.non_directory_path_bytes == slow.path_bytes
        assert (survey.finished, survey.complete) == (True, True)
        assert (survey.vanished, survey.unreadable) == (0, 0)


@given(TREES)
@settings(deadline=None, max_examples=40)
def test_the_children_add_up_to_the_whole(tree: Tree) -> None:
    # Given a random tree without second names
    with tempfile.TemporaryDirectory() as directory:
        root = os.path.join(os.fsencode(directory), b"root")
        os.mkdir(root)
        alone = os.path.join(os.fsencode(directory), b"alone")
        grow(root, _without_links(tree), alone)
        # When surveyed / Then the target itself and its children are all there is
        survey = surveyed(root)
        assert {os.fsencode(child.name) for child in survey.children} == set(tree)
        assert 1 + sum(child.totals.entries for child in survey.children) == survey.totals.entries
        own = os.lstat(root)
        parts = sum(child.totals.allocated_bytes for child in survey.children)
        assert own.st_blocks * 512 + parts == survey.totals.allocated_bytes
        assert all(child.complete for child in survey.children)


def _without_links(tree: Tree) -> Tree:
    return {
        name: _without_links(what) if isinstance(what, dict) else 0 if what == "link" else what
        for name, what in tree.items()
    }


def test_hostile_names_are_counted(tmp_path: Path) -> None:
    # Given names made to break something / When surveyed / Then all are counted
    hostile_names(tmp_path / "t")
    assert surveyed(tmp_path / "t").totals == naive(os.fsencode(tmp_path / "t")).totals


def test_an_empty_directory_is_one_entry(tmp_path: Path) -> None:
    # Given an empty directory / When surveyed / Then only itself counts
    survey = surveyed(tmp_path)
    assert (survey.totals.entries, survey.totals.directories, survey.max_depth) == (1, 1, 0)


def test_a_symlink_to_a_directory_is_not_entered(tmp_path: Path) -> None:
    # Given a symlink to a full directory / When surveyed / Then it is one name with its target
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "link").symlink_to(tmp_path / "full")
    survey = surveyed(tmp_path / "t")
    assert (survey.totals.entries, survey.totals.symlinks) == (2, 1)
    (child,) = survey.children
    assert (child.kind, child.link_target) == (EntryKind.SYMLINK, str(tmp_path / "full"))


def test_the_target_itself_is_not_followed_as_a_symlink(tmp_path: Path) -> None:
    # Given a symlink as the target / When surveyed / Then OSError
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(OSError):
        surveyed(tmp_path / "link")


def test_a_missing_target_is_an_error(tmp_path: Path) -> None:
    # Given nothing / When surveyed / Then OSError
    with pytest.raises(FileNotFoundError):
        surveyed(tmp_path / "missing")


def test_links_that_all_lie_inside_are_freed_for_certain(tmp_path: Path) -> None:
    # Given a file with both of its names in the tree / When surveyed / Then its bytes come back
    (tmp_path / "a").write_bytes(b"x" * 8192)
    os.link(tmp_path / "a", tmp_path / "b")
    survey = surveyed(tmp_path)
    assert survey.totals.files == 2
    assert survey.freed_bytes_min == survey.freed_bytes_max == survey.totals.allocated_bytes


def test_links_outside_may_keep_their_bytes(tmp_path: Path) -> None:
    # Given a file with a second name beside the tree / When surveyed / Then a lower bound says so
    (tmp_path / "t").mkdir()
    (tmp_path / "outside").write_bytes(b"x" * 8192)
    os.link(tmp_path / "outside", tmp_path / "t" / "inside")
    survey = surveyed(tmp_path / "t")
    blocks = (tmp_path / "outside").stat().st_blocks * 512
    assert blocks > 0
    assert survey.freed_bytes_max - survey.freed_bytes_min == blocks


def test_a_sparse_file_has_apparent_and_allocated_bytes(tmp_path: Path) -> None:
    # Given a hole of a terabyte / When surveyed / Then both sizes are told apart
    with (tmp_path / "hole").open("wb") as file:
        file.truncate(1 << 40)
    survey = surveyed(tmp_path)
    assert survey.totals.apparent_bytes >= 1 << 40
    assert survey.totals.allocated_bytes < 1 << 20


def _still() -> float:
    """Stand still: with no interval a survey then tells its counts after every directory."""
    return 0.0


def _comb(root: Path, levels: int) -> None:
    """Make a chain in which every directory has two siblings that wait for their turn."""
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(levels):
        for name in ("a", "m", "z"):
            os.mkdir(name, dir_fd=descriptor)
            os.close(os.open(f"{name}/file", os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=descriptor))
        below = os.open("m", os.O_RDONLY | os.O_DIRECTORY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
    os.close(descriptor)


@pytest.fixture
def deep(tmp_path: Path) -> Iterator[Path]:
    """Give a directory that rm takes down, as pytest cannot with deep chains."""
    path = tmp_path / "deep"
    path.mkdir()
    yield path
    subprocess.run(["rm", "-rf", "--", str(path)], check=True)


def test_more_waiting_directories_than_descriptors_are_counted(deep: Path) -> None:
    # Given a chain with waiting siblings at more levels than descriptors are kept
    levels = 2 * OPEN_LIMIT + 20
    _comb(deep, levels)
    before = len(os.listdir("/proc/self/fd"))
    # When surveyed, looking at the descriptors all the while
    most = 0
    last: Survey | None = None
    for survey in ScandirSurvey([str(deep)], interval_s=0, clock=_still).run():
        most = max(most, len(os.listdir("/proc/self/fd")))
        last = survey
    # Then everything is counted, and no more descriptors were open than promised
    assert last is not None
    assert (last.totals.directories, last.totals.files) == (1 + 3 * levels, 3 * levels)
    assert last.complete
    assert most <= before + OPEN_LIMIT + 3
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_chain_deeper_than_any_path_is_counted(deep: Path) -> None:
    # Given 3,000 directories inside each other, names of two bytes
    levels = 3000
    descriptor = os.open(deep, os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(levels):
        os.mkdir("dd", dir_fd=descriptor)
        below = os.open("dd", os.O_RDONLY | os.O_DIRECTORY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
    os.close(descriptor)
    # When surveyed / Then every level is counted and the finding says what it means
    survey = surveyed(deep)
    assert (survey.totals.directories, survey.max_depth) == (levels + 1, levels)
    assert survey.max_path_bytes == len(str(deep)) + 3 * levels
    assert survey.complete
    assert [finding.kind for finding in survey.findings] == ["deep"]


def test_stopping_early_leaves_no_descriptor(deep: Path) -> None:
    # Given a survey under way
    chain(deep / "t", 50)
    before = len(os.listdir("/proc/self/fd"))
    running = ScandirSurvey([str(deep)], interval_s=0, clock=_still).run()
    for _ in range(20):
        next(running)
    assert len(os.listdir("/proc/self/fd")) > before
    # When its reader loses interest / Then every descriptor is closed
    running.close()  # type: ignore[attr-defined]  # a generator behind the Iterator
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_name_that_vanishes_before_it_is_looked_at_is_no_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a name that is gone between listing and looking
    for name in ("stays", "goes"):
        (tmp_path / name).touch()
    real = os.scandir

    def scandir_while_somebody_deletes(descriptor: int) -> Iterator[os.DirEntry[str]]:
        for entry in real(descriptor):
            if entry.name == "goes":
                (tmp_path / "goes").unlink()
            yield entry

    monkeypatch.setattr(os, "scandir", scandir_while_somebody_deletes)
    # When surveyed / Then it is told apart, and the survey is complete
    survey = surveyed(tmp_path)
    assert (survey.totals.files, survey.vanished, survey.complete) == (1, 1, True)


def test_a_directory_that_vanishes_before_it_is_entered_is_told_apart(tmp_path: Path) -> None:
    # Given a directory that was seen
    (tmp_path / "d").mkdir()
    running = ScandirSurvey([str(tmp_path)], interval_s=0, clock=_still).run()
    next(running)
    # When it is removed before its turn comes
    (tmp_path / "d").rmdir()
    *_, survey = running
    # Then that is no error
    assert (survey.vanished, survey.unreadable, survey.complete) == (1, 0, True)


def test_a_directory_replaced_by_a_symlink_is_not_followed(tmp_path: Path) -> None:
    # Given a directory that was seen, and a full one elsewhere
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    (tmp_path / "t" / "d").mkdir(parents=True)
    target = str(tmp_path / "t")
    running = ScandirSurvey([target], interval_s=0, clock=_still).run()
    next(running)
    # When a symlink takes its place before its turn comes
    (tmp_path / "t" / "d").rmdir()
    (tmp_path / "t" / "d").symlink_to(tmp_path / "full")
    *_, survey = running
    # Then what it points to is not counted
    assert survey.totals.files == 0
    assert (survey.unreadable, survey.complete) == (1, False)


def test_an_unreadable_directory_makes_the_survey_incomplete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a directory that may not be opened (said by os.open, so that root is refused too)
    (tmp_path / "open").mkdir()
    (tmp_path / "secret").mkdir()
    (tmp_path / "open" / "x").touch()
    real = os.open

    def refusing(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if path == "secret":
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", refusing)
    # When surveyed / Then the rest is counted, and the survey says what is missing
    survey = surveyed(tmp_path)
    assert (survey.totals.entries, survey.unreadable) == (4, 1)
    assert (survey.finished, survey.complete) == (True, False)
    (finding,) = survey.findings
    assert (finding.kind, finding.path) == ("unreadable", str(tmp_path / "secret"))


def test_a_directory_that_fails_while_it_is_read_is_incomplete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a directory whose disk reports an error after the first name
    (tmp_path / "x").touch()
    real = os.scandir

    def failing(descriptor: int) -> Iterator[os.DirEntry[str]]:
        yield from real(descriptor)
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "scandir", failing)
    # When surveyed / Then what was read counts, and the survey is not complete
    survey = surveyed(tmp_path)
    assert (survey.totals.files, survey.unreadable, survey.complete) == (1, 1, False)


def test_only_some_unreadable_directories_are_named() -> None:
    # Given more unreadable directories than are named
    evidence = findings.Evidence()
    for number in range(findings.PATHS_NAMED + 5):
        evidence.unreadable_directory(PathStr(f"/t/{number}"))
    # When told / Then all are counted
    found = findings.findings_of(evidence, (), 0, PathStr("/t"))
    assert len(found) == findings.PATHS_NAMED
    assert found[0].numbers == {"directories": findings.PATHS_NAMED + 5}


def _with_mounts(tmp_path: Path, *points: Path) -> str:
    table = tmp_path / "mountinfo"
    escaped = [os.fsencode(point).replace(b" ", b"\\040") for point in points]
    table.write_bytes(b"".join(b"50 1 0:50 / %s rw - tmpfs none rw\n" % point for point in escaped))
    return str(table)


def test_a_mount_point_is_counted_but_not_entered(tmp_path: Path) -> None:
    # Given a bind mount inside (the same st_dev), as only the mount table can tell
    inside = tmp_path / "t" / "sub" / "a mount"
    inside.mkdir(parents=True)
    (inside / "must not be counted").touch()
    (tmp_path / "t" / "a mount").mkdir()
    (tmp_path / "t" / "a mount" / "not mounted").touch()
    # When surveyed / Then the directory is one entry, and a critical finding names it
    survey = surveyed(tmp_path / "t", mountinfo=_with_mounts(tmp_path, inside))
    assert (survey.totals.directories, survey.totals.files) == (4, 1)
    (finding,) = survey.findings
    assert (finding.kind, finding.severity) == ("mount-inside", Severity.CRITICAL)
    assert finding.path == str(inside)


def test_a_mount_beside_the_target_does_not_matter(tmp_path: Path) -> None:
    # Given a mount on a longer name beside the target / When surveyed / Then nothing is left out
    (tmp_path / "t" / "d").mkdir(parents=True)
    (tmp_path / "t" / "d" / "x").touch()
    survey = surveyed(tmp_path / "t", mountinfo=_with_mounts(tmp_path, tmp_path / "tt"))
    assert (survey.totals.files, survey.findings) == (1, ())


def test_another_file_system_is_not_entered() -> None:
    # Given a real mount point, /proc below the root directory / When the root is listed
    running = ScandirSurvey(["/"], interval_s=0, clock=_still).run()
    first = next(running)
    running.close()  # type: ignore[attr-defined]  # a generator behind the Iterator
    # Then it is found among the mounts inside
    assert "/proc" in {finding.path for finding in first.findings}


def test_only_so_many_files_are_listed_as_children(tmp_path: Path) -> None:
    # Given more files than are listed, and a directory among them
    for number in range(CHILDREN_LISTED + 10):
        (tmp_path / f"file-{number}").touch()
    (tmp_path / "directory").mkdir()
    (tmp_path / "directory" / "x").touch()
    # When surveyed / Then all are counted, the rest is a number, and no directory is left out
    survey = surveyed(tmp_path)
    assert survey.totals.files == CHILDREN_LISTED + 11
    listed = len(survey.children)
    assert listed + survey.children_not_listed == CHILDREN_LISTED + 11
    assert CHILDREN_LISTED <= listed <= CHILDREN_LISTED + 1
    (directory,) = [one for one in survey.children if one.kind is EntryKind.DIRECTORY]
    assert directory.totals.entries == 2


def test_the_largest_directories_are_kept_in_order(tmp_path: Path) -> None:
    # Given directories of 0 to 24 files / When surveyed / Then the fullest are kept, in order
    for number in range(LARGEST_KEPT + 5):
        (tmp_path / f"d{number}").mkdir()
        for file in range(number):
            (tmp_path / f"d{number}" / str(file)).touch()
    survey = surveyed(tmp_path)
    sizes = [one.entries for one in survey.largest]
    assert sizes == [LARGEST_KEPT + 5, *range(LARGEST_KEPT + 4, 5, -1)]
    assert survey.largest[1].path == str(tmp_path / f"d{LARGEST_KEPT + 4}")


def test_a_flat_directory_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a limit of three names / When a directory has three / Then it is called flat
    monkeypatch.setattr(findings, "FLAT_ENTRIES", 3)
    (tmp_path / "d").mkdir()
    for number in range(3):
        (tmp_path / "d" / str(number)).touch()
    (finding,) = surveyed(tmp_path).findings
    assert (finding.kind, finding.path) == ("flat", str(tmp_path / "d"))
    assert finding.numbers["entries"] == 3


def test_counts_so_far_only_grow(tmp_path: Path) -> None:
    # Given a survey that tells its counts after every directory
    for number in range(5):
        (tmp_path / f"d{number}" / "e").mkdir(parents=True)
        (tmp_path / f"d{number}" / "e" / "f").write_bytes(b"x")
    seen = list(ScandirSurvey([str(tmp_path)], interval_s=0, clock=_still).run())
    # When looked at in order / Then no count falls, and only the last is finished
    assert len(seen) > 5
    entries = [survey.totals.entries for survey in seen]
    assert entries == sorted(entries)
    assert [survey.finished for survey in seen] == [False] * (len(seen) - 1) + [True]
    assert not any(survey.complete for survey in seen[:-1])


def test_a_child_is_complete_as_soon_as_nothing_of_it_waits(tmp_path: Path) -> None:
    # Given two directories with directories in them
    for name in ("a", "b"):
        (tmp_path / name / "below").mkdir(parents=True)
    complete = [
        sum(child.complete for child in survey.children)
        for survey in ScandirSurvey([str(tmp_path)], interval_s=0, clock=_still).run()
    ]
    # When counted / Then first none, then one, then both are complete
    assert complete[0] == 0
    assert 1 in complete
    assert complete[-1] == 2


@pytest.mark.parametrize(
    ("files", "reads"),
    [
        (0, 2),
        (1, 2),
        (1000, 2),
        (1022, 2),
        (1023, 3),
        (1024, 3),
        (5000, 6),
    ],
)
def test_reads_of_a_directory_are_those_that_find_needs(
    tmp_path: Path, files: int, reads: int
) -> None:
    # Given one directory of names of seven bytes: records of 32 bytes in a buffer of 32 KiB
    target = tmp_path / "t"
    target.mkdir()
    for number in range(files):
        (target / f"{number:07}").touch()
    # When surveyed / Then it is as many as strace has counted for find in such a directory
    assert surveyed(target).directory_reads == reads
    shutil.rmtree(target)
