"""Trees for the tests of the survey, and what a naive walk says about them."""

import errno
import os
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from tui_fs.model.survey import Survey, Totals
from tui_fs.survey.runner import SurveyRunner

Tree = dict[bytes, Any]
"""A name's subtree, its size as a file, or what it is."""

SLASH, NUL = b"/", b"\0"
NAMES = (
    st.one_of(st.binary(min_size=1, max_size=12), st.text(min_size=1, max_size=6).map(str.encode))
    .map(lambda name: name.replace(SLASH, b"-").replace(NUL, b"-"))
    .filter(lambda name: name not in (b".", b".."))
)
LEAVES = st.one_of(
    st.sampled_from([0, 1, 4095, 4096, 100_000]),
    st.sampled_from(["symlink", "fifo", "link", "inside"]),
)
TREES: st.SearchStrategy[Tree] = st.dictionaries(
    NAMES,
    st.recursive(LEAVES, lambda below: st.dictionaries(NAMES, below, max_size=5), max_leaves=12),
    max_size=6,
)


@contextmanager
def grown(tree: Tree) -> Iterator[bytes]:
    """Make a tree; "link" is a name of one file outside the tree, "inside" of one in it."""
    with tempfile.TemporaryDirectory() as directory:
        above = os.fsencode(directory)
        links = {"link": os.path.join(above, b"outside")}
        Path(directory, "outside").write_bytes(b"x" * 9000)
        _grow(os.path.join(above, b"root"), tree, links)
        yield os.path.join(above, b"root")


def _grow(directory: bytes, tree: Tree, links: dict[str, bytes]) -> None:
    os.mkdir(directory)
    for name, content in tree.items():
        path = os.path.join(directory, name)
        match content:
            case dict():
                _grow(path, content, links)
            case int():
                with open(path, "wb") as file:
                    file.write(b"x" * content)
                os.utime(path, (1_600_000_000 + content, 1_600_000_000 + content))
            case "symlink":
                os.symlink(directory, path)
            case "fifo":
                os.mkfifo(path)
            case "inside" if "inside" not in links:
                Path(os.fsdecode(path)).write_bytes(b"y" * 5000)
                links["inside"] = path
            case _:
                os.link(links[content], path)


@dataclass
class Naive:
    """The counts by os.walk and lstat."""

    totals: Totals
    inodes: int
    freed_min: int
    max_depth: int
    max_path_bytes: int
    max_entries: int
    non_empty: int
    parents: int
    path_bytes: int
    name_bytes: int
    non_empty_levels: int
    top_directories: int
    top_non_directories: int


def naive(root: bytes) -> Naive:
    """Count a tree by a slow, naive walk."""
    kinds = {"files": 0, "directories": 0, "symlinks": 0, "other": 0}
    links: dict[int, list[os.stat_result]] = {}
    depth = longest = entries = full = parents = path_bytes = name_bytes = levels = 0
    top_directories = sum(entry.is_dir(follow_symlinks=False) for entry in os.scandir(root))
    for path, below, others in os.walk(root):
        kinds["directories"] += 1
        status = os.lstat(path)
        links.setdefault(status.st_ino, []).append(status)
        names = below + others
        entries = max(entries, len(names))
        full += bool(names)
        levels += bool(names) * (path.count(b"/") - root.count(b"/"))
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
            name_bytes += len(name)
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
        len(links),
        sum(status.st_blocks * 512 for status in whole_links),
        depth,
        longest,
        entries,
        full,
        parents,
        path_bytes,
        name_bytes,
        levels,
        top_directories,
        len(os.listdir(root)) - top_directories,
    )


def assert_counts(survey: Survey, slow: Naive) -> None:
    """Compare every count of a finished survey with those of a naive walk."""
    assert survey.totals == slow.totals
    assert survey.inodes == slow.inodes
    assert survey.freed_bytes_max == slow.totals.allocated_bytes
    assert survey.freed_bytes_min == slow.freed_min
    assert survey.max_depth == slow.max_depth
    assert survey.max_path_bytes == slow.max_path_bytes
    assert survey.max_entries_in_directory == slow.max_entries
    assert survey.non_empty_directories == slow.non_empty
    assert survey.parent_directories == slow.parents
    assert survey.non_directory_path_bytes == slow.path_bytes
    assert survey.non_directory_name_bytes == slow.name_bytes
    assert survey.non_empty_levels == slow.non_empty_levels
    assert survey.top_directories == slow.top_directories
    assert survey.top_non_directories == slow.top_non_directories
    assert (survey.finished, survey.complete) == (True, True)
    assert (survey.vanished, survey.unreadable) == (0, 0)


def surveyed(*paths: str | bytes | Path, **options: Any) -> Survey:
    """Survey directories to their end, by the walkers in Python."""
    options = {"checks_surroundings": False, "backend": "scandir", **options}
    *_, last = SurveyRunner([os.fsdecode(path) for path in paths], **options).run()
    return last


def still() -> float:
    """Return a constant time: with no interval a survey then reports after every batch."""
    return 0.0


def comb(root: Path, levels: int) -> None:
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


def children_of(pid: int) -> set[int]:
    """Return the descendants of a process, including zombies."""
    parents: dict[int, int] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            status = Path("/proc", name, "stat").read_text(errors="replace")
        except OSError:
            continue
        parents[int(name)] = int(status.rpartition(")")[2].split()[1])
    descendants: set[int] = set()
    while (
        more := {child for child, above in parents.items() if above in {pid, *descendants}}
        - descendants
    ):
        descendants |= more
    return descendants


@pytest.fixture
def deep(tmp_path: Path) -> Iterator[Path]:
    """Yield a directory that rm takes down, as pytest cannot with deep chains."""
    path = tmp_path / "deep"
    path.mkdir()
    yield path
    subprocess.run(["rm", "-rf", "--", str(path)], check=True)


def refuse_to_open(name: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make os.open fail for a name with EACCES, for root too."""
    real = os.open

    def refusing(path: bytes, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if path == name:
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", refusing)
