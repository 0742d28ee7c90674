"""A first figure for a tree too large to count quickly, with the range in which it lies."""

import math
import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from tui_fs.linux.mounts import MOUNTINFO, mount_of, mounts_below, read_mounts
from tui_fs.model.glance import Glance, Interval
from tui_fs.model.survey import Totals
from tui_fs.survey.glance_directory import EXT, FAMILIES, OTHER, TMPFS
from tui_fs.survey.glance_looking import Looking
from tui_fs.survey.glance_sampling import Sample
from tui_fs.survey.glance_statistics import Sum, Sums, interval
from tui_fs.survey.glance_tree import Root, open_directory

KNOWN_WELL = 0.05
"""Looking ends when both ends of the interval are that near."""
LOOK_INTERVAL_S = 1.0
_SURE_OF_LINKS = 60
"""Of so many files without a further name, at most a twentieth of all have one (3 / n)."""
_LIKE_NONE_SEEN_BYTES = 64 << 10
"""What a file may hold on the average that is like none of those looked at."""
_WITHOUT_SHARED_BLOCKS = (EXT, TMPFS)
_SIZES_ALIKE = 1.3
_UNSEEN_LARGE = 2
"""Where sizes differ, the truth lay above the interval of a sample in 2 of 24 looks (12 shapes)."""


def glance(paths: Sequence[str], limit_s: float = 1.0, seed: int | None = None) -> Glance:
    """Return what is known of some directories after at most about `limit_s`.

    Args:
        paths: absolute paths of directories, none inside another.
        seed: what is drawn at random is the same for the same seed and time.

    Raises:
        OSError: one of the directories cannot be opened.
        BadInput: the table of mounts cannot be understood.
    """
    return next(looks(paths, limit_s, seed))


def looks(
    paths: Sequence[str],
    limit_s: float = 1.0,
    seed: int | None = None,
    clock: Callable[[], float] = time.monotonic,
    mountinfo: str = MOUNTINFO,
) -> Iterator[Glance]:
    """Yield what is known after `limit_s`, and then better figures about once a second.

    Each one rests on everything seen before. It ends when all was read or the entries are known
    to five per cent. Nothing is changed, no symbolic link followed, no other mount entered.

    Raises:
        OSError: one of the directories cannot be opened.
        BadInput: the table of mounts cannot be understood.
    """
    began_s = clock()
    roots = _opened(paths, mountinfo)
    sample = Sample(roots, random.Random(seed), clock)
    try:
        deadline_s = began_s + limit_s
        while True:
            is_more = sample.work_until(deadline_s)
            seen = _glance(sample, roots, clock() - began_s)
            yield seen
            if not is_more or seen.is_all_read or seen.entries.is_within(KNOWN_WELL):
                return
            deadline_s = clock() + LOOK_INTERVAL_S
    finally:
        sample.looking.close()


def _opened(paths: Sequence[str], mountinfo: str) -> list[Root]:
    table = read_mounts(mountinfo)
    roots: list[Root] = []
    try:
        for path in paths:
            descriptor = open_directory(os.fsencode(path))
            mount = mount_of(path, table)
            family = FAMILIES.get(mount.filesystem, OTHER) if mount else OTHER
            below = frozenset(os.fsencode(one.mount_point) for one in mounts_below(path, table))
            device = os.fstat(descriptor).st_dev
            roots.append(Root(os.fsencode(path), descriptor, device, family, below))
    except OSError:
        for root in roots:
            os.close(root.descriptor)
        raise
    return roots


def _glance(sample: Sample, roots: Sequence[Root], elapsed_s: float) -> Glance:
    sums = sample.estimate()
    looked = sample.looking
    inodes, used_bytes = _used(roots)
    # Every directory is an inode, but a file may have many names. Where none of those looked at
    # had a second one, few have.
    has_links = looked.files_linked or looked.files_looked_at < _SURE_OF_LINKS
    names = math.inf if has_links else inodes / (1 - 3 / looked.files_looked_at)
    entries = interval(sums, Sum.ENTRIES, names)
    directories = interval(sums, Sum.DIRECTORIES, inodes)
    others = entries.high * (1 - directories.expected / max(1, entries.expected))
    shares_blocks = any(root.family not in _WITHOUT_SHARED_BLOCKS for root in roots)
    allocated = _allocated(sums, looked, others, used_bytes, shares_blocks)
    is_all_read = sums.is_exact
    if is_all_read:
        entries = _exactly(sums, Sum.ENTRIES)
        directories = _exactly(sums, Sum.DIRECTORIES)
    values = sums.values
    files, symlinks = round(values[Sum.FILES]), round(values[Sum.SYMLINKS])
    return Glance(
        entries=entries,
        directories=directories,
        allocated_bytes=allocated,
        elapsed_s=elapsed_s,
        is_all_read=is_all_read,
        largest_directory_entries=looked.largest,
        samples=looked.directories_read + looked.files_looked_at,
        rests_on=_rests_on(sums, looked.directories_read, directories),
        totals=Totals(
            files=files,
            directories=directories.expected,
            symlinks=symlinks,
            other=max(0, entries.expected - directories.expected - files - symlinks),
            apparent_bytes=round(values[Sum.APPARENT]),
            allocated_bytes=allocated.expected,
        ),
        non_empty_directories=round(values[Sum.NON_EMPTY]),
        parent_directories=round(values[Sum.PARENTS]),
        directory_reads=round(values[Sum.READS]),
        non_directory_path_bytes=round(values[Sum.PATH_BYTES]),
        max_depth=looked.max_depth,
        max_path_bytes=looked.max_path_bytes,
        unreadable=looked.unreadable,
    )


def _allocated(
    sums: Sums, looked: Looking, files: float, used_bytes: float, shares_blocks: bool
) -> Interval:
    """Return the interval of bytes with room for what no sample meets: few files hold most of them.

    Args:
        files: how many there may be.
        shares_blocks: files that share their blocks may have more together than are used.
    """
    cap = math.inf if shares_blocks else used_bytes
    known = interval(sums, Sum.ALLOCATED, cap)
    high = float(known.high)
    if high > _SIZES_ALIKE * known.low:
        high *= _UNSEEN_LARGE
    if looked.files_linked:
        high = max(high, sums.values[Sum.ALLOCATED_BY_NAME])  # further names may all lie elsewhere
    # of all files at most 3 / n are like none of n
    unseen = min(1.0, 3 / max(1.0, sums.effective_files))
    unseen *= max(0.0, files - looked.files_looked_at)
    high = max(high, min(known.expected + unseen * _LIKE_NONE_SEEN_BYTES, used_bytes))
    return replace(known, high=max(known.expected, math.ceil(min(high, cap))))


def _exactly(sums: Sums, which: Sum) -> Interval:
    value = round(sums.values[which])
    return Interval(value, value, value)


def _used(roots: Sequence[Root]) -> tuple[float, float]:
    """Return inodes and bytes that the file systems have given out, infinity if not told."""
    inodes = bytes_ = 0.0
    for root in {root.device: root for root in roots}.values():
        room = os.fstatvfs(root.descriptor)
        is_told = root.family != OTHER
        inodes += room.f_files - room.f_ffree if room.f_files and is_told else math.inf
        used_blocks = room.f_blocks - room.f_bfree if room.f_blocks and is_told else math.inf
        bytes_ += used_blocks * room.f_frsize
    return inodes, bytes_


def _rests_on(sums: Sums, read: int, directories: Interval) -> str:
    if sums.is_exact:
        return f"Every directory was read to its end ({read:,})."
    if directories.expected <= 1:
        return "How far reading has come in the directory tells how much is left."
    of = f"about {directories.expected:,}"
    if sums.values[Sum.OPEN] > 0.5 * sums.values[Sum.ENTRIES]:
        return f"{read:,} of {of} directories were read; most of the tree is a guess."
    return f"{read:,} of {of} directories were read, drawn at random by size."
