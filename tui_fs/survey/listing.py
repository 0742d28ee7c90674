"""List one directory of a surveyed tree: subdirectories from the table, the rest from readdir."""

import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass

from tui_fs.linux.pins import open_path_fd
from tui_fs.model.errors import meaning
from tui_fs.model.paths import PathStr
from tui_fs.model.survey import Child, EntryKind, Listing, Totals
from tui_fs.survey.records import BigFile
from tui_fs.survey.table import NO_ROW, DirectoryTable

OTHERS_LISTED = 2_000
"""Entries other than directories in a listing; further ones are only counted."""

_KINDS = {stat.S_IFREG: EntryKind.FILE, stat.S_IFLNK: EntryKind.SYMLINK}


@dataclass(frozen=True, slots=True)
class Names:
    """The entries of a directory as readdir returned them.

    Attributes:
        directories: names of subdirectories.
        others: all other entries, at most `OTHERS_LISTED`.
        problem: why the directory cannot be listed, as a sentence; empty without a problem.
    """

    directories: tuple[bytes, ...] = ()
    others: tuple[Child, ...] = ()
    problem: str = ""


def read_names(path: str) -> Names:
    """Read a directory until `OTHERS_LISTED` entries other than directories are found.

    Args:
        path: canonical and absolute, of any length. No symbolic link in it is followed.
    """
    directories: list[bytes] = []
    others: list[Child] = []
    try:
        directory = _opened(path)
        try:
            with os.scandir(directory) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        directories.append(os.fsencode(entry.name))
                    elif (child := _child(entry, directory)) is not None:
                        others.append(child)
                    if len(others) >= OTHERS_LISTED:
                        break
        finally:
            os.close(directory)
    except OSError as error:
        return Names(problem=f"This directory cannot be read: {meaning(error.errno or 0)}.")
    return Names(tuple(directories), tuple(others))


def _opened(path: str) -> int:
    """Open a directory for reading by a path of any length."""
    place = open_path_fd(path)
    try:
        return os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=place)
    finally:
        os.close(place)


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
        uncounted = (_uncounted(name) for name in names.directories)
        return Listing(PathStr(path), Totals(), (*uncounted, *names.others), problem=names.problem)
    counted_rows = {table.name(child): child for child in table.children(row)}
    children = [_directory(table, name, child) for name, child in counted_rows.items()]
    children += [_uncounted(name) for name in names.directories if name not in counted_rows]
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
    )


def _uncounted(name: bytes) -> Child:
    return Child(PathStr(os.fsdecode(name)), EntryKind.DIRECTORY, Totals(directories=1), False)


def _directory(table: DirectoryTable, name: bytes, row: int) -> Child:
    subtree = table.subtree(row)
    return Child(
        PathStr(os.fsdecode(name)),
        EntryKind.DIRECTORY,
        subtree.totals,
        subtree.is_complete,
        inodes=subtree.totals.entries - subtree.repeats,
        oldest_s=subtree.oldest_s if subtree.newest_s else None,
        newest_s=subtree.newest_s if subtree.newest_s else None,
    )


def _child(entry: "os.DirEntry[str]", directory: int) -> Child | None:
    try:
        status = entry.stat(follow_symlinks=False)
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), EntryKind.OTHER)
        is_link = kind is EntryKind.SYMLINK
        link_target = os.readlink(entry.name, dir_fd=directory) if is_link else None
    except OSError:
        return None  # removed between readdir and stat
    totals = Totals(
        files=int(kind is EntryKind.FILE),
        symlinks=int(kind is EntryKind.SYMLINK),
        other=int(kind is EntryKind.OTHER),
        apparent_bytes=status.st_size,
        allocated_bytes=status.st_blocks * 512,
    )
    modified_s = int(status.st_mtime)
    return Child(
        PathStr(entry.name),
        kind,
        totals,
        True,
        None if link_target is None else PathStr(link_target),
        oldest_s=modified_s,
        newest_s=modified_s,
    )


def _big(file: BigFile) -> Child:
    return Child(
        PathStr(os.fsdecode(file.name)),
        EntryKind.FILE,
        Totals(files=1, apparent_bytes=file.apparent_bytes, allocated_bytes=file.allocated_bytes),
        True,
        oldest_s=file.modified_s,
        newest_s=file.modified_s,
    )
