"""Search a tree for names in a process of its own: ``python -m tui_fs.survey.search``.

It reads a `SearchRequest` from standard input, and writes pickled `SearchUpdate` values, or one
`TuiFsError`, to standard output (see `tui_fs.survey.process`).
"""

import contextlib
import errno
import json
import os
import pickle
import stat
import sys
import time
from collections.abc import Callable, Collection, Iterator

from tui_fs.linux.descriptors import closing
from tui_fs.linux.directories import (
    DT_DIR,
    DT_UNKNOWN,
    Directory,
    DirentReader,
    Entered,
    Skipped,
    TreeWalk,
    open_directory,
)
from tui_fs.linux.fnmatch import is_pattern, name_matcher
from tui_fs.linux.mounts import mounts_below, read_mounts
from tui_fs.linux.processes import set_pdeathsig
from tui_fs.model.codec import decode
from tui_fs.model.errors import Missing, TuiFsError, cannot_examine
from tui_fs.model.paths import PathStr, displayable
from tui_fs.model.survey import EntryKind, Match
from tui_fs.survey.imported import NcduFile, child_of_item, name_of, root_name_of
from tui_fs.survey.listing import kind_of
from tui_fs.survey.process import SearchRequest, SearchUpdate

LISTED = 10_000
LISTED_BYTES = 16 << 20
"""Of the paths of all listed matches; a single one may be longer than any system call takes."""

_INTERVAL_S = 0.25
_VANISHED = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


def name_predicate(text: str) -> Callable[[bytes], bool]:
    """Return a function that compares names with a search text.

    A pattern has to match the whole name, as in find -name. Any other text has to be a part of the
    name, or of the name as it is shown; upper and lower case are alike.
    """
    if is_pattern(text):
        return name_matcher(text)
    if "\\" in text or not text.isascii():
        part = text.casefold()
        return lambda name: (
            part in displayable(name).casefold() or part in os.fsdecode(name).casefold()
        )
    needle = text.lower().encode()
    return lambda name: needle in name.lower()


class Matches:
    """The matches of a search; the first ones are listed, all are counted."""

    def __init__(self) -> None:
        self.entries = self.matched = self.unreadable = 0
        self._new: list[Match] = []
        self._listed = self._listed_bytes = 0

    @property
    def has_room(self) -> bool:
        """Whether a further match is listed."""
        return self._listed < LISTED and self._listed_bytes < LISTED_BYTES

    def add(self, match: Match) -> None:
        """Add a match to the list."""
        self._listed += 1
        self._listed_bytes += len(match.path)
        self._new.append(match)

    def update(self, *, is_finished: bool) -> SearchUpdate:
        """Return the counts, and the matches listed since the last call."""
        new, self._new = tuple(self._new), []
        return SearchUpdate(new, self.matched, self.entries, self.unreadable, is_finished)


class TreeSearch:
    """Search the names below a directory, as a survey would count them.

    Args:
        root: absolute path.
        mounts: absolute paths of mount points in the tree; they are not entered.

    Raises:
        OSError: the root cannot be opened, when `run` begins.
    """

    def __init__(
        self, root: str, has_name: Callable[[bytes], bool], mounts: Collection[bytes] = ()
    ) -> None:
        self.matches = Matches()
        self._root = os.fsencode(root)
        self._has_name = has_name
        self._mounts = mounts
        self._reader = DirentReader()

    def run(self) -> Iterator[None]:
        """Search the tree; yield after each buffer of names."""
        with closing(open_directory(self._root)) as root:
            tree = TreeWalk(self._root, root, self._mounts, Directory)
            for step in tree.steps():
                match step:
                    case Entered(directory, _):
                        yield from self._read(tree, directory)
                    case Skipped(above, _, error):
                        is_gone = error is None or error.errno in _VANISHED
                        self.matches.unreadable += above.descriptor < 0 or not is_gone

    def _read(self, tree: TreeWalk[Directory], directory: Directory) -> Iterator[None]:
        has_name, matches = self._has_name, self.matches
        try:
            while (records := self._reader.read(directory.descriptor)) is not None:
                matches.entries += len(records)
                for name, kind, _, _ in records:
                    if has_name(name):
                        self._add(tree, directory, name)
                    is_directory = kind == DT_DIR or (
                        kind == DT_UNKNOWN and _is_directory(name, directory)
                    )
                    if is_directory and not tree.is_mounted(name):
                        directory.pending.append(name)
                yield
        except OSError:
            matches.unreadable += 1

    def _add(self, tree: TreeWalk[Directory], directory: Directory, name: bytes) -> None:
        matches = self.matches
        if matches.has_room:
            try:
                status = os.stat(name, dir_fd=directory.descriptor, follow_symlinks=False)
            except OSError as error:
                # Without search permission for the directory, the name is all that is known.
                matches.matched += error.errno not in _VANISHED
                return
            matches.add(
                Match(
                    PathStr(os.fsdecode(tree.path_of(name))),
                    kind_of(status.st_mode),
                    status.st_blocks * 512,
                    int(status.st_mtime),
                )
            )
        matches.matched += 1


def _is_directory(name: bytes, above: Directory) -> bool:
    try:
        status = os.stat(name, dir_fd=above.descriptor, follow_symlinks=False)
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode)


class ImportSearch:
    """Search the names in a file in ncdu's format.

    Raises:
        BadInput: the file cannot be read.
    """

    def __init__(self, path: str, has_name: Callable[[bytes], bool]) -> None:
        self.matches = Matches()
        self._file = NcduFile(path)
        self._has_name = has_name

    def run(self) -> Iterator[None]:
        """Search the file; yield after each entry.

        Raises:
            BadInput: the file is damaged.
        """
        names: list[bytes] = []
        matches = self.matches
        with self._file.reader() as reader:
            reader.read_header()
            is_opening = True
            for kind, item in reader.values():
                if kind == "start_array":
                    is_opening = True
                elif kind == "end_array":
                    names.pop()
                    if not names:
                        return
                elif kind != "end_map":
                    reader.fail()
                elif not names:
                    names.append(root_name_of(item, self._file.shown).rstrip(b"/"))
                    is_opening = False
                else:
                    name = name_of(item)
                    matches.entries += 1
                    if self._has_name(name):
                        matches.matched += 1
                        if matches.has_room:
                            matches.add(_imported_match(names, name, item, is_opening))
                    if is_opening:
                        names.append(name)
                        is_opening = False
                yield


def _imported_match(
    names: list[bytes], name: bytes, item: dict[str, object], is_directory: bool
) -> Match:
    path = PathStr(os.fsdecode(b"/".join((*names, name))))
    child = child_of_item(item)
    kind = EntryKind.DIRECTORY if is_directory else child.kind
    return Match(path, kind, child.totals.allocated_bytes, child.newest_s)


Search = TreeSearch | ImportSearch


def search_of(request: SearchRequest) -> Search:
    """Return the search of a directory, or of an import."""
    has_name = name_predicate(request.text)
    if request.imported is not None:
        return ImportSearch(request.imported, has_name)
    mounts = mounts_below(request.root, read_mounts())
    return TreeSearch(request.root, has_name, {os.fsencode(at.mount_point) for at in mounts})


def main() -> None:
    """Search as the request says."""
    with contextlib.suppress(Missing):  # the reader's end then ends it with a broken pipe
        set_pdeathsig()
    request = decode(SearchRequest, json.loads(sys.stdin.buffer.readline()))
    try:
        search = search_of(request)
        sent_s = time.monotonic()
        for _ in search.run():
            if time.monotonic() - sent_s >= _INTERVAL_S:
                _send(search.matches.update(is_finished=False))
                sent_s = time.monotonic()
        _send(search.matches.update(is_finished=True))
    except BrokenPipeError:
        os._exit(0)  # the parent has closed the pipe
    except TuiFsError as error:
        _send(error)
    except OSError as error:
        _send(cannot_examine(request.root, error))


def _send(message: SearchUpdate | TuiFsError) -> None:
    pickle.dump(message, sys.stdout.buffer)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
