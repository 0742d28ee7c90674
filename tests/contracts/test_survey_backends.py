"""The native engine and the Python walkers report the same for the same trees."""

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import DEADLINE_S
from tests.contracts.backends import FLAGS, assert_same
from tests.filesystems import mount_bind, mount_tmpfs
from tests.matrix.ordinary_user import GID, UID, ordinary_user
from tests.needs import needs_engine, needs_root, needs_tool
from tests.pathologies.counting import totals_of_survey, totals_of_tools
from tests.pathologies.grounds import Grounds
from tests.trees import Sentinel, chain, flat, hostile_names, many_directories
from tests.unit.survey_trees import comb
from tui_fs.linux.tools import find_engine
from tui_fs.model.strategy import Filters
from tui_fs.survey.records import DirectoryFlag

THREADS = (1, 2, 5)


@pytest.fixture(autouse=True)
def engine() -> None:
    """Require the engine."""
    needs_engine()


@pytest.fixture(scope="module")
def grounds(mount_root: Path) -> Iterator[Grounds]:
    """Yield file systems that are mounted when they are asked for."""
    needs_root("mounting file systems")
    place = mount_root / "backends"
    place.mkdir()
    mounted = Grounds(place)
    yield mounted
    mounted.take_down()


def flags_in(rows: dict[str, tuple[int, ...]]) -> int:
    """Return all flags that any directory has."""
    flags = 0
    for row in rows.values():
        flags |= row[FLAGS]
    return flags


def every_sort(root: Path) -> None:
    """Make names of every sort, holes, large files, links inside and to outside."""
    hostile_names(root)
    Sentinel(root.parent).plant(root)
    many_directories(root / "many", 60, 50)
    (root / "data").write_bytes(b"x" * 100_000)
    for number in range(30):
        os.link(root / "data", root / "many" / f"directory-{number:05}" / "data-again")
    for name, size in (("sparse", 1 << 40), ("linked", 70 << 20), ("just", 64 << 20)):
        (root / name).touch()
        os.truncate(root / name, size)
    os.link(root / "linked", root / "places" / "linked-again")
    os.mknod(root / "device", stat.S_IFCHR | 0o600, os.makedev(1, 3))
    os.symlink("x" * 1_000, root / "long")
    os.link(root / "long", root / "long-again", follow_symlinks=False)
    flat(root / "emptied", 3_000)
    for file in list((root / "emptied").iterdir())[5:]:
        file.unlink()
    for date_s in (-(1 << 30), 0, 1 << 33):
        (root / "many" / f"date {date_s}").touch()
        os.utime(root / "many" / f"date {date_s}", (date_s, date_s))
    subprocess.run(["sync", "--file-system", root], check=True)


def test_names_of_every_sort(filesystem: Path) -> None:
    root = filesystem / "root"
    every_sort(root)
    same = assert_same(root, threads=THREADS)
    assert same.names_of_links > 30
    names = DirectoryFlag.CONTROL_NAMES | DirectoryFlag.UNDECODABLE_NAMES
    assert flags_in(same.rows) & names == names


def test_an_empty_directory(tmpfs: Path) -> None:
    root = tmpfs / "root"
    root.mkdir()
    assert assert_same(root, threads=THREADS).survey.totals.entries == 1


def test_a_chain_deeper_than_a_path(ext4: Path) -> None:
    chain(ext4 / "deep", 3_000)
    assert assert_same(ext4 / "deep").survey.max_depth == 3_000
    (ext4 / "comb").mkdir()
    comb(ext4 / "comb", 1_000)
    assert assert_same(ext4 / "comb", threads=THREADS).survey.totals.directories == 3_001


def test_a_directory_of_30_000_files_and_directories(tmpfs: Path) -> None:
    flat(tmpfs / "root", 30_000)
    for number in range(3_000):
        (tmpfs / "root" / f"directory-{number}").mkdir()
        (tmpfs / "root" / f"directory-{number}" / "file").touch()
    same = assert_same(tmpfs / "root", threads=THREADS)
    assert same.survey.max_entries_in_directory == 33_000


def test_modes_owners_and_attributes(ext4: Path) -> None:
    # Directories of all modes, of another user, immutable, append-only
    needs_root("chown, chattr")
    needs_tool("chattr", package="e2fsprogs")
    for mode in (0o700, 0o755, 0o775, 0o777, 0o1777, 0o2770):
        for gid in (0, 4, GID):
            path = ext4 / "root" / f"{mode:o}-{gid}"
            path.mkdir(parents=True)
            os.chown(path, 0, gid)
            path.chmod(mode)
    (ext4 / "root" / "theirs").mkdir()
    os.chown(ext4 / "root" / "theirs", UID, GID)
    for letter in ("i", "a"):
        (ext4 / "root" / letter).mkdir()
        subprocess.run(["chattr", f"+{letter}", ext4 / "root" / letter], check=True)
    wanted = DirectoryFlag.SHARED | DirectoryFlag.IMMUTABLE | DirectoryFlag.APPEND_ONLY
    wanted |= DirectoryFlag.FOREIGN_OWNERS
    assert flags_in(assert_same(ext4 / "root").rows) & wanted == wanted


def test_mounts_inside(ext4: Path) -> None:
    needs_root("mounting")
    root = ext4 / "root"
    flat(root, 20)
    for name in ("a mount", "bound", "not a mount"):
        (root / "d" / name).mkdir(parents=True)
    flat(mount_tmpfs(root / "d" / "a mount"), 20)
    flat(ext4 / "precious", 20)
    mount_bind(ext4 / "precious", root / "d" / "bound")
    same = assert_same(root, threads=THREADS)
    assert (same.survey.totals.files, same.survey.totals.directories) == (20, 5)
    assert same.survey.complete
    assert [kind for kind, *_ in same.findings].count("mount-inside") >= 1


def test_subvolumes(grounds: Grounds) -> None:
    needs_tool("btrfs", package="btrfs-progs")
    place = grounds.directory_on("btrfs")
    tree = place / "tree"
    for path in (tree, tree / "inner", tree / "inner" / "most"):
        subprocess.run(["btrfs", "-q", "subvolume", "create", path], check=True)
        flat(path / "files", 10)
    subprocess.run(["btrfs", "-q", "subvolume", "snapshot", tree, tree / "snapshot"], check=True)
    mount_bind(tree / "inner" / "most", tree / "mounted")
    same = assert_same(tree, threads=THREADS)
    assert same.survey.totals.files == 10
    assert flags_in(same.rows) & DirectoryFlag.SUBVOLUME
    for root in (tree, tree / "snapshot"):  # with stubs of the subvolumes
        assert_same(root)
        assert totals_of_survey(root) == totals_of_tools(root)


def test_both_layers_of_an_overlay(grounds: Grounds) -> None:
    tree = grounds.directory_on("overlay").parent
    (tree / "from-below").write_bytes(b"changed")
    hostile_names(tree / "hostile")
    assert_same(tree)
    assert totals_of_survey(tree) == totals_of_tools(tree)


def test_sizes_beyond_64_bits(tmpfs: Path) -> None:
    (tmpfs / "root").mkdir()
    for number in range(4):
        (tmpfs / "root" / f"file-{number}").touch()
        os.truncate(tmpfs / "root" / f"file-{number}", (1 << 63) - 1)
    for filters in (None, Filters(min_size_bytes=1)):
        same = assert_same(tmpfs / "root", filters=filters)
        assert same.survey.totals.apparent_bytes > 1 << 64


@pytest.mark.parametrize(
    "filters",
    [
        Filters(name_glob="*file*[05]"),
        Filters(name_glob="[!-]*\\\\*"),
        Filters(min_size_bytes=7),
        Filters(modified_before_s=1_000_000_000),
        Filters(name_glob="date*", modified_before_s=0),
        Filters(name_glob="*-again", min_size_bytes=1),
        Filters(size_below_bytes=7),
        Filters(modified_after_s=1_000_000_000),
    ],
)
def test_filters(tmpfs: Path, filters: Filters) -> None:
    every_sort(tmpfs / "root")
    same = assert_same(tmpfs / "root", filters=filters, threads=THREADS)
    assert same.survey.matched is not None
    assert 0 < same.survey.matched.non_directories < same.survey.totals.non_directories


def test_two_roots(tmpfs: Path) -> None:
    for name in ("one", "two"):
        many_directories(tmpfs / name, 30, 20)
    for number in range(20):
        first = tmpfs / "one" / "directory-00000" / f"file-{number:07}"
        os.link(first, tmpfs / "two" / f"link-{number}")
    same = assert_same(tmpfs / "one", tmpfs / "two", threads=THREADS)
    assert len(same.survey.roots) == 2
    assert same.survey.freed_bytes_min == same.survey.freed_bytes_max


_BOTH = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from tests.contracts.backends import FLAGS, assert_same
for path, row in assert_same(Path(sys.argv[1]), threads=(1, 3)).rows.items():
    print(path.rpartition("/")[2], row[FLAGS])
"""


def test_an_ordinary_user(tmpfs: Path) -> None:
    # A user's tree with directories that may not be read, searched, written; sticky ones
    needs_root("becoming another user")
    root = tmpfs / "root"
    root.mkdir()
    modes = {
        "closed": 0o000,
        "names-only": 0o444,
        "no-names": 0o311,
        "read-only": 0o555,
        "sticky": 0o1777,
        "shared": 0o777,
        "group": 0o770,
    }
    for name, mode in modes.items():
        for owner, prefix in ((0, "roots"), (UID, "own")):
            path = root / f"{prefix}-{name}"
            flat_below(path)
            for entry in (path, path / "below"):
                os.chown(entry, owner, GID)
            path.chmod(mode)
    os.chown(root, UID, GID)
    tmpfs.chmod(0o755)
    repository = Path(__file__).parents[2]
    user = ordinary_user(Path(find_engine() or "/").parent, tmpfs)
    command: list[str | Path] = [*user, sys.executable, "-c", _BOTH, root, repository]
    finished = subprocess.run(
        command, capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )
    assert (finished.returncode, finished.stderr) == (0, "")
    counts = dict(line.rsplit(" ", 1) for line in finished.stdout.splitlines())
    assert int(counts["roots-closed"]) == DirectoryFlag.UNREADABLE
    assert int(counts["roots-names-only"]) == DirectoryFlag.UNREADABLE
    assert int(counts["own-no-names"]) == DirectoryFlag.UNREADABLE
    assert int(counts["own-read-only"]) & DirectoryFlag.UNWRITABLE
    assert int(counts["roots-sticky"]) & DirectoryFlag.STICKY
    assert int(counts["own-shared"]) & DirectoryFlag.SHARED


def flat_below(path: Path) -> None:
    """Make a directory of a few files, and one in it."""
    flat(path, 5)
    flat(path / "below", 5)
