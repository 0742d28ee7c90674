"""A survey read from a file in ncdu's export format.

What the file names is never looked at on this machine. Only directories are kept; what is in
one of them is read from the file again when it is asked for.
"""

import math
import os
import stat
import time
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from tui_fs.linux.readable import is_readable
from tui_fs.model.errors import BadInput, TuiFsError
from tui_fs.model.paths import PathStr, displayable
from tui_fs.model.survey import Child, EntryKind, Survey, Totals
from tui_fs.survey.aggregator import ROWS_LIMIT, Aggregator
from tui_fs.survey.findings.base import Evidence
from tui_fs.survey.listing import OTHERS_LISTED, Names
from tui_fs.survey.ncdu_format import Closed, Entries, Item, NcduFile, Opened
from tui_fs.survey.progress_timer import ProgressTimer
from tui_fs.survey.records import NO_PARENT, Batch, DirectoryFlag, DirRecord
from tui_fs.survey.result import survey_of
from tui_fs.survey.table import NO_ROW
from tui_fs.survey.tally import DirectoryTally

LARGEST_NUMBER = (1 << 63) - 1
"""No file is larger (loff_t); a sum of sizes beyond it is no sum of sizes on one machine."""

NAME_BYTES = 4_096
"""Linux has 255 at most; other systems have more."""

_UNKNOWN_LINKS = (1 << 31) - 1
"""Of a hard link of whose names the file does not tell how many there are (ncdu before 1.16)."""

BLOCK_BYTES = 512
"""The unit of st_blocks; a dsize that is no multiple of it is rounded up."""

_TYPE_BITS = 0o170000
"""S_IFMT of inode(7); stat.S_IFMT raises OverflowError for numbers beyond 32 bits."""

_KINDS = {stat.S_IFREG: EntryKind.FILE, stat.S_IFLNK: EntryKind.SYMLINK}


def root_name_of(item: Item, shown: str) -> bytes:
    """Return the absolute path of the top directory; a relative one is put below /."""
    name = _text_bytes(item.get("name"))
    if not name or b"\0" in name:
        raise BadInput(f"{shown} is damaged: its top directory has no name.", "Export it anew.")
    return os.path.normpath(b"/" + name.lstrip(b"/"))


def name_of(item: Item) -> bytes:
    """Return the name; BadInput if no file can be called so."""
    name = _text_bytes(item.get("name"))
    is_wrong = b"/" in name or b"\0" in name or name in (b"", b".", b"..")
    if is_wrong or len(name) > NAME_BYTES:
        wrong = f"{displayable(name[:100])} is not a valid name" if name else "an entry has no name"
        raise BadInput(f"The imported file is damaged: {wrong}.", "Export it anew.")
    return name


def _text_bytes(text: object) -> bytes:
    if not isinstance(text, str):
        return b""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # half a character, which JSON can spell
        return text.encode("utf-8", "replace")


def number_of(value: object, otherwise: int = 0) -> int:
    """Return a number from 0 to what 63 bits hold; `otherwise` if it is none."""
    if type(value) is int:
        if 0 <= value <= LARGEST_NUMBER:
            return value
        return 0 if value < 0 else LARGEST_NUMBER
    if type(value) is float and math.isfinite(value):
        return min(max(int(value), 0), LARGEST_NUMBER)
    return otherwise


def apparent_of(item: Item) -> int:
    """Return the apparent size; BadInput if it is no size."""
    return _size_of(item, "asize")


def blocks_of(item: Item) -> int:
    """Return the allocated size in blocks of `BLOCK_BYTES`; BadInput if it is no size."""
    return -(-_size_of(item, "dsize") // BLOCK_BYTES)


def _size_of(item: Item, field: str) -> int:
    """Return a size, 0 if it is missing: any other value would make a sum that is not true."""
    size = item.get(field, 0)
    is_finite = type(size) is int or (type(size) is float and math.isfinite(size))
    if is_finite and 0 <= size <= LARGEST_NUMBER:
        return int(size)
    name = displayable(_text_bytes(item.get("name"))[:100])
    raise BadInput(
        f"The imported file is damaged: the {field} of {name} is not a size in bytes.",
        "Export it anew.",
    )


def mode_of(item: Item) -> int:
    """Return the type of an entry that is no directory, as far as the file tells it."""
    kind = number_of(item.get("mode")) & _TYPE_BITS
    if kind in _KINDS:
        return kind
    is_seen = not item.get("excluded") and item.get("read_error") is not True
    is_plain = kind == 0 and item.get("notreg") is not True
    return stat.S_IFREG if is_seen and is_plain else stat.S_IFIFO


def status_of(mode: int, item: Item, device: int, owner: int) -> os.stat_result:
    """Return what stat would have said where this was exported."""
    links, inode = 1, number_of(item.get("ino"))
    if inode and mode != stat.S_IFDIR:
        links = max(1, number_of(item.get("nlink")))
        if links == 1 and item.get("hlnkc") is True:
            links = _UNKNOWN_LINKS
    modified_s = number_of(item.get("mtime"))
    return os.stat_result(
        (mode, inode, device, links, owner, 0, apparent_of(item), 0, modified_s, 0),
        {"st_blocks": blocks_of(item)},
    )


def child_of(item: Item) -> Child:
    """Return an entry that is no directory as it is listed."""
    kind = _KINDS.get(mode_of(item), EntryKind.OTHER)
    modified_s = number_of(item.get("mtime")) or None
    return Child(
        PathStr(os.fsdecode(name_of(item))),
        kind,
        Totals(
            files=int(kind is EntryKind.FILE),
            symlinks=int(kind is EntryKind.SYMLINK),
            other=int(kind is EntryKind.OTHER),
            apparent_bytes=apparent_of(item),
            allocated_bytes=blocks_of(item) * BLOCK_BYTES,
        ),
        True,
        oldest_s=modified_s,
        newest_s=modified_s,
    )


BACKEND = "ncdu-import"

_TOLD_AT_ONCE = 4_096
_FILE_SYSTEMS = ("otherfs", "othfs", "kernfs")


@dataclass(slots=True)
class _Directory:
    """A directory whose end has not been read yet; what of it has not been told."""

    number: int
    device: int
    owner: int
    names: list[bytes] = field(default_factory=list)
    statuses: list[os.stat_result] = field(default_factory=list)
    pending: int = 0
    flags: int = 0


class ImportedSurvey:
    """One survey by a file.

    Args:
        path: of the file.
        interval_s: time between the intermediate results of `run`.

    Raises:
        BadInput: the file cannot be read, or is of another kind.
    """

    def __init__(
        self,
        path: str,
        interval_s: float = 0.25,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.collector = Aggregator(filtered=False)
        self._file = NcduFile(path)
        self._telling = ProgressTimer(interval_s, clock)
        self._starts, self._ends = array("Q"), array("Q")
        self._stack: list[_Directory] = []
        self._untold: dict[int, _Directory] = {}
        self._untold_entries = 0
        self._forget()
        self._directories = self._excluded = 0
        self._apparent = self._allocated = 0
        self._mounts: list[int] = []
        self._root = b"/"

    def flush_progress(self) -> None:
        """Let `run` yield without waiting for the next interval."""
        self._telling.at_once()

    def run(self, questions: tuple[int, Callable[[], None]] | None = None) -> Iterator[Survey]:
        """Yield the counts so far every `interval_s`, and at the end the complete ones.

        Args:
            questions: a descriptor to watch meanwhile, and what to do when it can be read.

        Raises:
            BadInput: the file is damaged, or not what it should be.
        """
        reader = self._file.entries()
        for event in reader.events():
            match event:
                case Opened(offset, item):
                    self._open(offset, item)
                case Entries(items):
                    self._add(items)
                case Closed(offset):
                    self._close(offset)
            if self._untold_entries < _TOLD_AT_ONCE:
                continue
            self._tell()
            if questions is not None and is_readable(questions[0], 0):
                questions[1]()
            if self._telling.until_due_s() <= 0:
                with self._telling.turn():
                    yield self._result(finished=False)
        reader.read_end()
        self._tell()
        self.collector.free_numbers()
        yield self._result(finished=True)

    def names(self, path: str) -> Names:
        """Return what the file says is in a directory, until `OTHERS_LISTED` are found.

        Subdirectories are left out; the collector's table has them.
        """
        table = self.collector.table
        row = table.find(path)
        if row == NO_ROW or row >= len(self._starts):
            return Names()
        known = [child for child in table.children(row) if child < len(self._starts)]
        ends = {self._starts[child]: self._ends[child] for child in known}
        others: list[Child] = []
        try:
            reader = self._file.entries_from(self._starts[row])
            events = reader.events()
            next(events)
            for event in events:
                if isinstance(event, Entries):
                    others += map(child_of, event.items)
                elif isinstance(event, Closed) or not ends.get(event.offset):
                    break  # at its end, or where nothing has been read yet
                else:
                    reader.skip_directory(ends[event.offset])
                if len(others) >= OTHERS_LISTED:
                    break
        except TuiFsError:
            return Names((), tuple(others), f"{self._file.shown} has changed since it was read.")
        return Names((), tuple(others[:OTHERS_LISTED]))

    def _open(self, offset: int, item: Item) -> None:
        above = self._stack[-1] if self._stack else None
        if above is None:
            name = self._root = root_name_of(item, self._file.shown)
        else:
            name = name_of(item)
        device = number_of(item.get("dev"), above.device if above else 0)
        owner = number_of(item.get("uid"), above.owner if above else 0)
        directory = _Directory(self._directories, device, owner)
        self._directories += 1
        if directory.number < ROWS_LIMIT:
            self._starts.append(offset)
            self._ends.append(0)
        flags, size, allocated = 0, apparent_of(item), blocks_of(item) * BLOCK_BYTES
        if item.get("read_error") is True:
            flags |= DirectoryFlag.UNREADABLE
        if item.get("excluded"):
            flags |= DirectoryFlag.ELSEWHERE
            size = allocated = 0
            self._note_excluded(item, directory.number)
        self._count_bytes(size, allocated)
        if above is not None:
            above.names.append(name)
            above.statuses.append(status_of(stat.S_IFDIR, item, device, owner))
            above.pending += not flags & DirectoryFlag.ELSEWHERE
            self._untold[above.number] = above
        self._pieces.append(
            tuple(
                DirRecord(
                    directory.number,
                    above.number if above else NO_PARENT,
                    name,
                    own_bytes=size,
                    own_allocated_bytes=allocated,
                    pending=1,
                    flags=flags,
                )
            )
        )
        self._untold_entries += 1
        self._stack.append(directory)

    def _add(self, items: list[Item]) -> None:
        directory = self._stack[-1]
        for item in items:
            name = name_of(item)
            mode = mode_of(item)
            status = status_of(
                mode,
                item,
                number_of(item.get("dev"), directory.device),
                number_of(item.get("uid"), directory.owner),
            )
            directory.names.append(name)
            directory.statuses.append(status)
            self._apparent += status.st_size
            self._allocated += status.st_blocks * BLOCK_BYTES
            if item.get("read_error") is True:
                directory.flags |= DirectoryFlag.UNREADABLE
            if item.get("excluded"):
                self._note_excluded(item, NO_ROW)
        self._count_bytes(0, 0)
        self._untold[directory.number] = directory
        self._untold_entries += len(items)

    def _close(self, offset: int) -> None:
        directory = self._stack.pop()
        if directory.number < ROWS_LIMIT:
            self._ends[directory.number] = offset
        directory.pending -= 1
        self._tell_directory(directory)
        self._untold.pop(directory.number, None)

    def _note_excluded(self, item: Item, row: int) -> None:
        """Remember what the export left out; what is on another file system by its place."""
        if item["excluded"] in _FILE_SYSTEMS and row != NO_ROW:
            self._mounts.append(row)
        else:
            self._excluded += 1

    def _count_bytes(self, apparent: int, allocated: int) -> None:
        self._apparent += apparent
        self._allocated += allocated
        if max(self._apparent, self._allocated) > LARGEST_NUMBER:
            raise BadInput(
                f"{self._file.shown} is damaged: its sizes add up to more than can be stored.",
                "Export it anew.",
            )

    def _tell_directory(self, directory: _Directory) -> None:
        """Add to the next batch what is new of a directory."""
        tally = DirectoryTally(directory.number, directory.owner)
        if directory.names:
            tally.add(directory.names, directory.statuses, None)
            directory.names, directory.statuses = [], []
        self._pieces.append(
            tuple(
                DirRecord(
                    directory.number,
                    NO_PARENT,
                    b"",
                    tally.subdirectories,
                    tally.files,
                    tally.symlinks,
                    tally.other,
                    tally.apparent,
                    tally.allocated,
                    oldest_s=tally.oldest,
                    newest_s=tally.newest,
                    name_bytes=tally.name_bytes,
                    record_bytes=tally.record_bytes,
                    longest_name=tally.longest,
                    pending=directory.pending,
                    flags=directory.flags | tally.flags,
                )
            )
        )
        directory.pending = 0
        self._links += map(tuple, tally.links)
        self._big_files += map(tuple, tally.big_files)

    def _tell(self) -> None:
        """Have everything counted that has been read."""
        for directory in self._untold.values():
            self._tell_directory(directory)
        self._untold.clear()
        self.collector.take(Batch(self._pieces, self._links, self._big_files, (0, 0, 0, 0, 0), 0))
        self._untold_entries = 0
        self._forget()

    def _forget(self) -> None:
        self._pieces: list[tuple[object, ...]] = []
        self._links: list[tuple[object, ...]] = []
        self._big_files: list[tuple[object, ...]] = []

    def _result(self, finished: bool) -> Survey:
        counted = self.collector
        rows = [row for row in self._mounts[:100] if row < len(counted.table)]
        evidence = Evidence(
            counted,
            PathStr(os.fsdecode(self._root)),
            [counted.table.path(row) for row in rows],
            is_finished=finished,
            excluded_names=self._excluded,
        )
        survey = survey_of(evidence, self._telling.elapsed_s)
        is_complete = survey.complete and not self._excluded
        return replace(survey, complete=is_complete, backend=BACKEND)


def root_of(path: str) -> PathStr:
    """Return the top directory that a file in ncdu's format names.

    Raises:
        BadInput: the file cannot be read, or is of another kind.
    """
    file = NcduFile(path)
    opened = next(file.entries().events())
    assert isinstance(opened, Opened)  # the header ends where a directory begins
    return PathStr(os.fsdecode(root_name_of(opened.item, file.shown)))
