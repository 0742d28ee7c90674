"""List one directory of a surveyed tree: subdirectories from the table, the rest from readdir."""

import heapq
import os
import stat
import time
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Generic, TypeVar

from msgspec import Struct

from tui_fs.linux.descriptors import closing
from tui_fs.linux.pins import open_by_path
from tui_fs.model.errors import meaning
from tui_fs.model.paths import PathStr
from tui_fs.model.survey import DEFAULT_ORDER, Child, EntryKind, Listing, Order, Sorting, Totals
from tui_fs.survey.records import BigFile
from tui_fs.survey.table import NO_ROW, DirectoryTable
from tui_fs.survey.tally import Predicate

OTHERS_LISTED = 2_000
"""Entries other than directories in a listing; further ones are only counted."""

PUBLISH_INTERVAL_S = 0.25
READ_LIMIT_S = 30.0
"""A server that needs longer for one directory is not asked for the rest of its entries."""

_LEVELS_INSIDE, _MOST_INSIDE, _LEAST_SHARE = 3, 12, 1 / 40
"""The levels of subdirectories in a listing, their number in each directory, and the share of the
listed directory from which a directory has them: enough for a treemap."""

_KINDS = {
    stat.S_IFDIR: EntryKind.DIRECTORY,
    stat.S_IFREG: EntryKind.FILE,
    stat.S_IFLNK: EntryKind.SYMLINK,
}

SortKey = tuple[int | str, ...]


class Names(Struct, frozen=True):
    """The entries of a directory as readdir returned them.

    Attributes:
        directories: names of subdirectories.
        others: the first of all other entries in `order`, at most `OTHERS_LISTED` and a required
            one.
        problem: why the directory cannot be listed, as a sentence; empty without a problem.
        examined: the number of entries from which `others` were chosen; None for all.
    """

    directories: tuple[bytes, ...] = ()
    others: tuple[Child, ...] = ()
    problem: str = ""
    order: Order = DEFAULT_ORDER
    examined: int | None = None


Publish = Callable[[Names], bool]
"""Takes the names so far; returns whether to read on."""


def key_of(sorting: Sorting) -> tuple[Callable[[Child], SortKey], bool]:
    """Return the sort key, and whether it is a date, which some entries lack."""
    match sorting:
        case Sorting.ENTRIES:
            return lambda c: (-c.totals.entries, -c.totals.allocated_bytes, c.name), False
        case Sorting.INODES:
            return lambda c: (-c.inodes, -c.totals.allocated_bytes, c.name), False
        case Sorting.ALLOCATED:
            return lambda c: (-c.totals.allocated_bytes, c.name), False
        case Sorting.OLDEST:
            return lambda c: (c.oldest_s or 0, c.name), True
        case Sorting.NEWEST:
            return lambda c: (-(c.newest_s or 0), c.name), True
        case Sorting.NAME:
            return lambda c: (c.name,), False


def first_children(children: Sequence[Child], order: Order, number: int) -> list[Child]:
    """Return the first children in an order; those without a date come last."""
    key, is_dated = key_of(order.sorting)
    undated: list[Child] = []
    if is_dated:
        undated = [child for child in children if child.newest_s is None]
        children = [child for child in children if child.newest_s is not None]
    select = heapq.nlargest if order.is_reversed else heapq.nsmallest
    first = select(number, children, key=key)
    return [*first, *undated[: number - len(first)]]


_Item = TypeVar("_Item")


class FirstItems(Generic[_Item]):
    """Keeps the first items by a key, in bounded memory."""

    def __init__(self, number: int, is_reversed: bool) -> None:
        self._number = number
        self._select = heapq.nlargest if is_reversed else heapq.nsmallest
        self._items: list[tuple[SortKey, _Item]] = []

    def add(self, key: SortKey, item: _Item) -> None:
        """Add an item."""
        self._items.append((key, item))
        if len(self._items) >= 4 * self._number:
            self._items = self._first()

    def items(self) -> list[_Item]:
        """Return the first items so far, in order."""
        return [item for _, item in self._first()]

    def _first(self) -> list[tuple[SortKey, _Item]]:
        return self._select(self._number, self._items, key=itemgetter(0))


def read_names(
    path: str,
    order: Order = DEFAULT_ORDER,
    required: str = "",
    publish: Publish = lambda _: True,
    clock: Callable[[], float] = time.monotonic,
    matches: Predicate | None = None,
) -> Names:
    """Read a directory, and choose the first `OTHERS_LISTED` entries other than directories.

    Args:
        path: canonical and absolute, of any length. No symbolic link in it is followed.
        required: a name that is chosen in any case, unless it does not match.
        publish: called every `PUBLISH_INTERVAL_S`.
        matches: choose only entries for which this returns True.
    """
    try:
        with closing(open_by_path(path)) as directory:
            return _read(directory, order, required, publish, clock, matches)
    except OSError as error:
        problem = f"This directory cannot be read: {meaning(error.errno or 0)}."
        return Names(problem=problem, order=order)


def _read(
    directory: int,
    order: Order,
    required: str,
    publish: Publish,
    clock: Callable[[], float],
    matches: Predicate | None,
) -> Names:
    directories: list[bytes] = []
    first: FirstItems[str] = FirstItems(OTHERS_LISTED, order.is_reversed)
    examined = 0
    key_of_entry = _entry_key(order.sorting)

    def names(*, is_complete: bool) -> Names:
        chosen = first.items()
        if required and required not in chosen:
            chosen.append(required)  # also before it has been read
        others = [
            child for name in chosen if (child := _child(name, directory, matches)) is not None
        ]
        number = None if is_complete else examined
        return Names(tuple(directories), tuple(others), "", order, number)

    began_s = published_s = clock()
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                directories.append(os.fsencode(entry.name))
                continue
            examined += 1
            try:
                if matches is None or matches(
                    os.fsencode(entry.name), entry.stat(follow_symlinks=False)
                ):
                    first.add(key_of_entry(entry), entry.name)
            except OSError:
                continue  # removed between readdir and stat
            if examined % 256 == 0 and clock() - published_s >= PUBLISH_INTERVAL_S:
                so_far = names(is_complete=False)
                if not publish(so_far) or clock() - began_s >= READ_LIMIT_S:
                    return so_far
                published_s = clock()
    return names(is_complete=True)


def _entry_key(sorting: Sorting) -> Callable[[os.DirEntry[str]], SortKey]:
    """Return the sort key of an entry other than a directory, in the order of `key_of`."""
    match sorting:
        case Sorting.OLDEST:
            return lambda entry: (int(entry.stat(follow_symlinks=False).st_mtime), entry.name)
        case Sorting.NEWEST:
            return lambda entry: (-int(entry.stat(follow_symlinks=False).st_mtime), entry.name)
        case Sorting.NAME:
            return lambda entry: (entry.name,)
        case Sorting.ENTRIES | Sorting.INODES | Sorting.ALLOCATED:
            return lambda entry: (-entry.stat(follow_symlinks=False).st_blocks, entry.name)


def listing_of(
    table: DirectoryTable,
    path: str,
    names: Names,
    big_files: Iterable[BigFile] = (),
) -> Listing:
    """Return a directory's entries with the totals below each.

    Args:
        names: the result of `read_names` for it.
        big_files: large files in this directory, listed even if `names` does not include them.
    """
    row = table.find(path)
    if row == NO_ROW:
        uncounted = (_uncounted(table, name) for name in names.directories)
        return Listing(
            PathStr(path),
            Totals(),
            (*uncounted, *names.others),
            problem=names.problem,
            order=names.order,
            examined=names.examined,
        )
    counted_rows = {table.name(child): child for child in table.children(row)}
    whole = table.subtree(row).totals
    children = [
        _directory(table, name, child, whole, _LEVELS_INSIDE)
        for name, child in counted_rows.items()
    ]
    children += [_uncounted(table, name) for name in names.directories if name not in counted_rows]
    listed = {child.name for child in names.others}
    further = [_big(file) for file in big_files]
    others = [*names.others, *(child for child in further if child.name not in listed)]
    subtree = table.subtree(row)
    here = table.files[row] + table.symlinks[row] + table.other[row]
    return Listing(
        PathStr(path),
        subtree.totals,
        (*children, *others),
        max(0, here - len(others)),
        subtree.is_complete,
        names.problem,
        names.order,
        names.examined,
    )


def _uncounted(table: DirectoryTable, name: bytes) -> Child:
    totals = Totals(directories=int(table.counts_directories))
    return Child(PathStr(os.fsdecode(name)), EntryKind.DIRECTORY, totals, False)


def _directory(table: DirectoryTable, name: bytes, row: int, whole: Totals, levels: int) -> Child:
    """Return a directory, with some levels of its largest subdirectories if it is large itself.

    Args:
        whole: the totals of the listed directory.
    """
    subtree = table.subtree(row)
    inside: tuple[Child, ...] = ()
    if levels and _share(subtree.totals, whole) >= _LEAST_SHARE:
        rows = heapq.nlargest(
            _MOST_INSIDE,
            table.children(row),
            key=lambda below: _share(table.subtree(below).totals, whole),
        )
        inside = tuple(
            _directory(table, table.name(below), below, whole, levels - 1) for below in rows
        )
    return Child(
        PathStr(os.fsdecode(name)),
        EntryKind.DIRECTORY,
        subtree.totals,
        subtree.is_complete,
        inodes=subtree.totals.entries - subtree.repeats,
        oldest_s=subtree.oldest_s if subtree.newest_s else None,
        newest_s=subtree.newest_s if subtree.newest_s else None,
        inside=inside,
    )


def _share(totals: Totals, whole: Totals) -> float:
    """Return the share of the allocated bytes or of the entries, whichever is larger."""
    return max(
        totals.allocated_bytes / max(1, whole.allocated_bytes),
        totals.entries / max(1, whole.entries),
    )


def _child(name: str, directory: int, matches: Predicate | None) -> Child | None:
    """Return an entry; None for a directory, or for one that was removed or does not match."""
    try:
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
        is_link = stat.S_ISLNK(status.st_mode)
        link_target = PathStr(os.readlink(name, dir_fd=directory)) if is_link else None
    except OSError:
        return None
    if stat.S_ISDIR(status.st_mode):
        return None
    if matches is not None and not matches(os.fsencode(name), status):
        return None
    return child_of(PathStr(name), status, int(status.st_mtime), link_target)


def kind_of(mode: int) -> EntryKind:
    """Return the kind of an entry by its st_mode."""
    return _KINDS.get(stat.S_IFMT(mode), EntryKind.OTHER)


def totals_of(status: os.stat_result) -> Totals:
    """Return what an entry other than a directory adds to the totals."""
    kind = kind_of(status.st_mode)
    return Totals(
        files=int(kind is EntryKind.FILE),
        symlinks=int(kind is EntryKind.SYMLINK),
        other=int(kind is EntryKind.OTHER),
        apparent_bytes=status.st_size,
        allocated_bytes=status.st_blocks * 512,
    )


def child_of(
    name: PathStr,
    status: os.stat_result,
    modified_s: int | None,
    link_target: PathStr | None = None,
) -> Child:
    """Return an entry other than a directory."""
    kind, totals = kind_of(status.st_mode), totals_of(status)
    return Child(name, kind, totals, True, link_target, oldest_s=modified_s, newest_s=modified_s)


def _big(file: BigFile) -> Child:
    return Child(
        PathStr(os.fsdecode(file.name)),
        EntryKind.FILE,
        Totals(files=1, apparent_bytes=file.apparent_bytes, allocated_bytes=file.allocated_bytes),
        True,
        oldest_s=file.modified_s,
        newest_s=file.modified_s,
    )
