"""Read a survey from a file in ncdu's export format: https://dev.yorhel.nl/ncdu/jsonfmt

The file is untrusted and may have any size and depth. It is read entry by entry. Only directories
are kept in memory, each with the start and end offset of its description. Listing a directory
reads its entries from the file again. No path that the file names is opened.
"""

import enum
import gzip
import io
import json
import math
import os
import re
import stat
import time
import zlib
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from msgspec import Struct
from msgspec.structs import replace

from tui_fs.linux.timeouts import is_readable
from tui_fs.model.errors import BadInput, TuiFsError
from tui_fs.model.paths import PathStr, displayable, shell_quoted
from tui_fs.model.strategy import Filters
from tui_fs.model.survey import DEFAULT_ORDER, Child, Order, Survey
from tui_fs.survey.aggregator import ROWS_LIMIT, Aggregator
from tui_fs.survey.findings.base import Evidence
from tui_fs.survey.histogram import Classes, Labels
from tui_fs.survey.listing import (
    OTHERS_LISTED,
    PUBLISH_INTERVAL_S,
    FirstItems,
    Names,
    Publish,
    child_of,
    key_of,
)
from tui_fs.survey.ncdu_export import HEADER_FIELDS, ExportHeader
from tui_fs.survey.progress_timer import ProgressTimer
from tui_fs.survey.records import NO_PARENT, DirectoryFlag, DirRecord
from tui_fs.survey.result import survey_of
from tui_fs.survey.table import NO_ROW
from tui_fs.survey.tally import BatchBuilder, DirectoryTally, Predicate, predicate_of

BACKEND = "ncdu-import"

MAX_ENTRY_BYTES = 64 << 10
"""A name has at most 255 bytes, the path of the top directory a few thousand."""

MAX_NAME_BYTES = 4_096
"""Linux allows 255; other systems allow more."""

MAX_SIZE = (1 << 63) - 1
"""The largest file (loff_t); no sum of sizes on one machine exceeds it either."""

BLOCK_BYTES = 512
"""The unit of st_blocks; a dsize is rounded up to a multiple of it."""

_CHUNK_BYTES = 256 << 10
_REPORTED_ENTRIES = 4_096
_OTHER_FILE_SYSTEM = ("otherfs", "othfs", "kernfs")
"""Values of `excluded` for a mount point."""

_UNKNOWN_LINKS = (1 << 31) - 1
"""The link count of a hard link for which the file has no count (ncdu before 1.16)."""

_TYPE_BITS = 0o170000
"""S_IFMT of inode(7); stat.S_IFMT raises OverflowError for numbers beyond 32 bits."""

Item = dict[str, Any]
"""The known fields of an entry, of any type."""


class _Directory(Struct):
    """A directory whose end has not been read, with its entries that are not in a batch yet."""

    number: int
    device: int
    owner: int
    tally: DirectoryTally
    pending: int = 0
    flags: int = 0


class ImportedSurvey:
    """A survey read from an export file.

    Attributes:
        header: what the file says about itself; empty until it is read.

    Args:
        path: of the file.
        interval_s: time between the intermediate results of `run`.
        filters: entries to count separately, also in each directory.

    Raises:
        BadInput: the file cannot be read, or has another format.
    """

    def __init__(
        self,
        path: str,
        interval_s: float = 0.25,
        clock: Callable[[], float] = time.monotonic,
        filters: Filters | None = None,
    ) -> None:
        filters = filters or Filters()
        self.collector = Aggregator(filters.active, matches_by_directory=True)
        self._matches = _predicate(filters) if filters.active else None
        self._needs_times = (filters.modified_before_s, filters.modified_after_s) != (None, None)
        self.header = ExportHeader(None)
        self._file = NcduFile(path)
        self._timer = ProgressTimer(interval_s, clock)
        self._starts, self._ends = array("Q"), array("Q")
        self._stack: list[_Directory] = []
        self._unreported: dict[int, _Directory] = {}
        self._unreported_entries = 0
        self._records = BatchBuilder()
        self._directories = self._excluded = 0
        self._apparent = self._allocated = 0
        self._mounts: list[int] = []
        self._root = b"/"

    def flush_progress(self) -> None:
        """Let `run` yield without waiting for the next interval."""
        self._timer.at_once()

    def run(self, questions: tuple[int, Callable[[], None]] | None = None) -> Iterator[Survey]:
        """Yield the counts so far every `interval_s`, and the complete ones at the end.

        Args:
            questions: a descriptor to poll while reading, and a function to call when it is
                readable.

        Raises:
            BadInput: the file is damaged.
        """
        with self._file.reader() as reader:
            yield from self._read(reader, questions)
        self._report()
        self.collector.free_numbers()
        yield self._result(finished=True)

    def names(
        self,
        path: str,
        order: Order = DEFAULT_ORDER,
        required: str = "",
        publish: Publish = lambda _: True,
        matches: Predicate | None = None,
    ) -> Names:
        """Return the first entries of a directory other than directories; see `read_names`."""
        table = self.collector.table
        row = table.find(path)
        if row == NO_ROW or row >= len(self._starts):
            return Names(order=order)
        first: FirstItems[Child] = FirstItems(OTHERS_LISTED, order.is_reversed)
        wanted: list[Child] = []
        key, is_dated = key_of(order.sorting)
        examined = 0

        def others() -> tuple[Child, ...]:
            return (*first.items(), *(child for child in wanted if child not in first.items()))

        known = [child for child in table.children(row) if child < len(self._starts)]
        ends = {self._starts[child]: self._ends[child] for child in known}
        published_s = time.monotonic()
        try:
            with self._file.reader(self._starts[row]) as reader:
                for kind, item in reader.steps():
                    if kind is NcduStep.ENTRY:
                        child = child_of_item(item)
                        examined += 1
                        if matches is not None and not matches(
                            os.fsencode(child.name), status_of(mode_of(item), item, 0, 0)
                        ):
                            continue
                        is_last = is_dated and child.newest_s is None
                        # Those without a date come last, in both directions.
                        first.add((is_last is not order.is_reversed, *key(child)), child)
                        if child.name == required:
                            wanted.append(child)
                    elif kind is NcduStep.OPENED and reader.opened_at != self._starts[row]:
                        if not (end := ends.get(reader.opened_at)):
                            break  # the first directory that has not been read to its end
                        reader.skip_to(end)
                    if time.monotonic() - published_s >= PUBLISH_INTERVAL_S:
                        so_far = Names((), others(), order=order, examined=examined)
                        if not publish(so_far):
                            return so_far
                        published_s = time.monotonic()
        except TuiFsError:
            return Names(
                (),
                others(),
                f"{self._file.shown} has changed since it was read; import it again.",
                order,
                examined,
            )
        return Names((), others(), order=order)

    def matching_names(self, path: str, order: Order, required: str, publish: Publish) -> Names:
        """Return the first entries that the filters select; see `names`."""
        return self.names(path, order, required, publish, self._matches)

    def _read(
        self, reader: "NcduReader", questions: tuple[int, Callable[[], None]] | None
    ) -> Iterator[Survey]:
        """Read the file to its end; yield the intermediate results."""
        self.header = reader.read_header()
        self.collector.classes = self._records.classes = Classes.at(self.header.counted_at_s or 0)
        self.collector.histograms.has_ages = self.header.counted_at_s is not None
        for kind, item in reader.steps():
            match kind:
                case NcduStep.OPENED:
                    self._open(reader.opened_at, item)
                case NcduStep.ENTRY:
                    self._add(item)
                case NcduStep.CLOSED:
                    self._close(reader.offset)
            if self._unreported_entries < _REPORTED_ENTRIES:
                continue
            self._report()
            if questions is not None and is_readable(questions[0], 0):
                questions[1]()
            if self._timer.until_due_s() <= 0:
                with self._timer.turn():
                    yield self._result(finished=False)
        reader.read_end()

    def _open(self, offset: int, item: Item) -> None:
        above = self._stack[-1] if self._stack else None
        if above is None:
            name = self._root = root_name_of(item, self._file.shown)
        else:
            name = name_of(item)
        device = number_of(item.get("dev"), above.device if above else 0)
        owner = number_of(item.get("uid"), above.owner if above else 0)
        if above is None:
            self._records.labels = Labels(owner)
            self.collector.histograms.has_owners = "uid" in item
            self.collector.histograms.has_accounts = False
        tally = DirectoryTally(self._directories, owner, self._records)
        directory = _Directory(self._directories, device, owner, tally)
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
            above.tally.add(name, status_of(stat.S_IFDIR, item, device, owner))
            above.pending += not flags & DirectoryFlag.ELSEWHERE
            self._unreported[above.number] = above
        self._records.add(
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
        self._unreported_entries += 1
        self._stack.append(directory)

    def _add(self, item: Item) -> None:
        directory, name = self._stack[-1], name_of(item)
        status = status_of(
            mode_of(item),
            item,
            number_of(item.get("dev"), directory.device),
            number_of(item.get("uid"), directory.owner),
        )
        directory.tally.add(name, status, self._matches)
        self._count_bytes(status.st_size, status.st_blocks * BLOCK_BYTES)
        if item.get("read_error") is True:
            directory.flags |= DirectoryFlag.UNREADABLE
        if item.get("excluded"):
            self._note_excluded(item, NO_ROW)
        if "mtime" not in item:
            self.collector.histograms.has_ages = False
            if self._needs_times and _is_known(item):
                raise BadInput(
                    f"{self._file.shown} has no modification times: it cannot be filtered by age.",
                    "Filter by name and size, or export it with times: tui-fs survey --export, "
                    "ncdu -e.",
                )
        self._unreported[directory.number] = directory
        self._unreported_entries += 1

    def _close(self, offset: int) -> None:
        directory = self._stack.pop()
        if directory.number < ROWS_LIMIT:
            self._ends[directory.number] = offset
        directory.pending -= 1
        self._report_directory(directory)
        self._unreported.pop(directory.number, None)

    def _note_excluded(self, item: Item, row: int) -> None:
        """Record an excluded entry; a mount point by its row."""
        if item["excluded"] in _OTHER_FILE_SYSTEM and row != NO_ROW:
            self._mounts.append(row)
        else:
            self._excluded += 1

    def _count_bytes(self, apparent: int, allocated: int) -> None:
        self._apparent += apparent
        self._allocated += allocated
        if max(self._apparent, self._allocated) > MAX_SIZE:
            raise BadInput(
                f"{self._file.shown} is damaged: its sizes add up to more than can be stored.",
                "Export it again.",
            )

    def _report_directory(self, directory: _Directory) -> None:
        """Add the new entries of a directory to the next batch."""
        directory.tally.report(pending=directory.pending, flags=directory.flags)
        directory.pending = 0

    def _report(self) -> None:
        """Pass the batch to the aggregator."""
        for directory in self._unreported.values():
            self._report_directory(directory)
        self._unreported.clear()
        self.collector.take(self._records.take())
        self._unreported_entries = 0

    def _result(self, finished: bool) -> Survey:
        table = self.collector.table
        evidence = Evidence(
            self.collector,
            PathStr(os.fsdecode(self._root)),
            [table.path(row) for row in self._mounts[:100] if row < len(table)],
            is_finished=finished,
            excluded_names=self._excluded,
        )
        survey = survey_of(evidence, self._timer.elapsed_s)
        is_complete = survey.complete and not self._excluded
        return replace(survey, complete=is_complete, backend=BACKEND)


def root_of(path: str) -> PathStr:
    """Return the top directory that a file in ncdu's format names.

    Raises:
        BadInput: the file cannot be read, or has another format.
    """
    file = NcduFile(path)
    with file.reader() as reader:
        reader.read_header()
        _, item = next(reader.steps())
    return PathStr(os.fsdecode(root_name_of(item, file.shown)))


def root_name_of(item: Item, shown: str) -> bytes:
    """Return the absolute path of the top directory; a relative path is taken relative to /."""
    name = _text_bytes(item.get("name"))
    if not name or b"\0" in name:
        raise BadInput(f"{shown} is damaged: its top directory has no name.", "Export it again.")
    return os.path.normpath(b"/" + name.lstrip(b"/"))


def name_of(item: Item) -> bytes:
    """Return the name; BadInput if it is not a valid file name."""
    name = _text_bytes(item.get("name"))
    is_wrong = b"/" in name or b"\0" in name or name in (b"", b".", b"..")
    if is_wrong or len(name) > MAX_NAME_BYTES:
        wrong = f"{displayable(name[:100])} is not a valid name" if name else "an entry has no name"
        raise BadInput(f"The imported file is damaged: {wrong}.", "Export it again.")
    return name


def number_of(value: object, default: int = 0) -> int:
    """Return a number from 0 to 2^63 - 1; `default` if `value` is not one."""
    if type(value) is int:
        return min(max(value, 0), MAX_SIZE)
    if type(value) is float and math.isfinite(value):
        return min(max(int(value), 0), MAX_SIZE)
    return default


def apparent_of(item: Item) -> int:
    """Return the apparent size in bytes; BadInput if it is invalid."""
    return _size_of(item, "asize")


def blocks_of(item: Item) -> int:
    """Return the allocated size in blocks of `BLOCK_BYTES`; BadInput if it is invalid."""
    return -(-_size_of(item, "dsize") // BLOCK_BYTES)


def _size_of(item: Item, field: str) -> int:
    """Return a size, 0 if it is missing; BadInput if it is invalid, as it would spoil the sums."""
    size = item.get(field, 0)
    is_finite = type(size) is int or (type(size) is float and math.isfinite(size))
    if is_finite and 0 <= size <= MAX_SIZE:
        return int(size)
    name = displayable(_text_bytes(item.get("name"))[:100])
    raise BadInput(
        f"The imported file is damaged: the {field} of {name} is not a size in bytes.",
        "Export it again.",
    )


def _predicate(filters: Filters) -> Predicate:
    """Return the predicate of the filters; by age they select no entry without a time."""
    selects = predicate_of(filters)
    if filters.modified_before_s is None and filters.modified_after_s is None:
        return selects
    return lambda name, status: status.st_mtime_ns >= 0 and selects(name, status)


def _is_known(item: Item) -> bool:
    """Return whether the export has examined an entry."""
    return not item.get("excluded") and item.get("read_error") is not True


def mode_of(item: Item) -> int:
    """Return the file type bits of an entry other than a directory, as the file states them."""
    kind = number_of(item.get("mode")) & _TYPE_BITS
    if kind in (stat.S_IFREG, stat.S_IFLNK):
        return kind
    is_plain = kind == 0 and item.get("notreg") is not True
    return stat.S_IFREG if _is_known(item) and is_plain else stat.S_IFIFO


def status_of(mode: int, item: Item, device: int, owner: int) -> os.stat_result:
    """Return the stat result that the machine of the export had; st_mtime_ns is -1 if unknown."""
    links, inode = 1, number_of(item.get("ino"))
    if inode and mode != stat.S_IFDIR:
        links = max(1, number_of(item.get("nlink")))
        if links == 1 and item.get("hlnkc") is True:
            links = _UNKNOWN_LINKS
    modified_s = number_of(item.get("mtime"))
    return os.stat_result(
        (mode, inode, device, links, owner, 0, apparent_of(item), 0, modified_s, 0),
        {
            "st_blocks": blocks_of(item),
            "st_mtime_ns": modified_s * 1_000_000_000 if "mtime" in item else -1,
        },
    )


def child_of_item(item: Item) -> Child:
    """Return the listing row of an entry other than a directory."""
    status = status_of(mode_of(item), item, 0, 0)
    modified_s = number_of(item.get("mtime")) or None
    return child_of(PathStr(os.fsdecode(name_of(item))), status, modified_s)


_GZIP_MAGIC = b"\x1f\x8b"
_READ_ERRORS = (OSError, EOFError, zlib.error)


class NcduFile:
    """An open file in ncdu's format, plain or compressed with gzip.

    Attributes:
        shown: the file's name, safe to show.

    Raises:
        BadInput: it cannot be read.
    """

    def __init__(self, path: str) -> None:
        self.shown = displayable(path)
        self._descriptor = -1
        try:
            flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
            self._descriptor = os.open(path, flags)
            status = os.fstat(self._descriptor)
        except OSError as error:
            reason = os.strerror(error.errno or 0)
            raise BadInput(f"{self.shown} cannot be read: {reason}.") from error
        except ValueError as error:
            raise BadInput(f"{self.shown} is not a valid path.") from error
        if stat.S_ISDIR(status.st_mode):
            raise BadInput(
                f"{self.shown} is a directory, not a file in ncdu's format.",
                f"To count it: tui-fs survey {shell_quoted((path,))}",
            )
        if not stat.S_ISREG(status.st_mode):
            raise BadInput(
                f"{self.shown} is not a regular file.", "Write the export to a file first."
            )
        magic = os.pread(self._descriptor, len(_GZIP_MAGIC), 0)
        self._is_compressed = magic == _GZIP_MAGIC
        if not magic:
            raise BadInput(
                f"{self.shown} is empty.",
                f"Export it again: ncdu -o {shell_quoted((path,))} DIRECTORY",
            )

    def __del__(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)

    @contextmanager
    def reader(self, offset: int = 0) -> Iterator["NcduReader"]:
        """Yield a reader that starts at `offset` of the uncompressed content."""
        # A second open file description, because each reader needs its own position.
        path = f"/proc/self/fd/{self._descriptor}"
        with gzip.open(path) if self._is_compressed else open(path, "rb") as stream:
            yield NcduReader(stream, self.shown, offset)


_SPACE = r"[ \t\r\n]*"
_HEADER = re.compile(rf"{_SPACE}\[{_SPACE}(\d+){_SPACE},{_SPACE}\d+{_SPACE},{_SPACE}(?=\{{)")
_SIGN = re.compile(rf"{_SPACE}(,{_SPACE})?([\[\]{{])")
"""The beginning or the end of a directory, or the beginning of an entry's object."""
_END = re.compile(_SPACE)

_NOT_A_BYTE = re.compile("[\ud800-\udc7f\udd00-\udfff]")
"""Surrogates that stand for no byte (see the error handler surrogateescape)."""


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_number)


def _text_bytes(text: object) -> bytes:
    """Return the bytes of a name, which ncdu writes unchanged, valid UTF-8 or not.

    Python programs write an invalid byte as a lone surrogate such as ``\\udc80``.
    """
    if not isinstance(text, str):
        return b""
    return _NOT_A_BYTE.sub("?", text).encode("utf-8", "surrogateescape")


class NcduStep(enum.Enum):
    """What a reader has met: a directory begins, another entry, the directory ends."""

    OPENED = enum.auto()
    ENTRY = enum.auto()
    CLOSED = enum.auto()


class NcduReader:
    """Read the entries of a tree one after the other.

    Every method raises BadInput if the file is damaged.

    Attributes:
        opened_at: where in the file the description of the last opened directory begins.
    """

    def __init__(self, stream: io.BufferedIOBase, shown: str, offset: int) -> None:
        self._stream = stream
        self._shown = shown
        self._text = ""  # each byte is one character, so that offsets are those of the file
        self._position = 0
        self._base = 0
        self._depth = 0
        self._needs_comma = self._is_header = self._is_at_end = False
        self.opened_at = -1
        self._go_to(offset)

    @property
    def offset(self) -> int:
        """Where the unread rest of the file begins."""
        return self._base + self._position

    def read_header(self) -> ExportHeader:
        """Read up to the top directory."""
        self._is_header = True
        if self._take(_HEADER)[1] != "1":
            raise BadInput(
                f"{self._shown} has an unknown version of ncdu's format.",
                "Export it again with tui-fs survey --export, ncdu 1 or ncdu 2.",
            )
        fields = self._item()
        self._needs_comma = True
        return ExportHeader(
            **{
                own: number_of(fields[name]) if name in fields else None
                for name, own in HEADER_FIELDS.items()
            }
        )

    def steps(self) -> Iterator[tuple[NcduStep, Item]]:
        """Yield each entry of the directory at this place, itself included, in their order."""
        is_opening = False
        while True:
            comma, sign = self._take(_SIGN).groups()
            if bool(comma) is not (self._needs_comma and sign != "]"):
                self.fail()
            self._needs_comma = sign != "["
            match sign:
                case "[" if not is_opening:
                    is_opening = True
                    self._is_header = False
                    self.opened_at = self.offset - 1
                case "{" if is_opening or self._depth:
                    self._position -= 1
                    item = self._item()
                    self._depth += is_opening
                    yield (NcduStep.OPENED if is_opening else NcduStep.ENTRY), item
                    is_opening = False
                case "]" if self._depth and not is_opening:
                    self._depth -= 1
                    yield NcduStep.CLOSED, {}
                    if not self._depth:
                        return
                case _:
                    self.fail()

    def skip_to(self, end: int) -> None:
        """Skip the rest of the directory that was opened last; it is closed before `end`."""
        self._depth -= 1
        self._go_to(end)

    def read_end(self) -> None:
        """Read the final bracket and the end of the file."""
        if self._take(_SIGN)[0].strip() != "]":
            self.fail()
        self._take(_END)
        if self._position < len(self._text):
            self.fail()

    def fail(self, error: Exception | None = None) -> NoReturn:
        """Raise BadInput."""
        if self._is_header and not isinstance(error, _READ_ERRORS):
            raise BadInput(
                f"{self._shown} is not an export of ncdu or tui-fs, as JSON or compressed by gzip.",
                "Create one: ncdu -o FILE DIRECTORY, or tui-fs survey DIRECTORY --export FILE. To "
                "convert ncdu's binary format: ncdu -f FILE -o NEW.json",
            ) from error
        damage = "is incomplete or damaged" if self._is_at_end else "is damaged"
        raise BadInput(
            f"{self._shown} {damage} at byte {self.offset:,}.", "Export it again."
        ) from error

    def _take(self, pattern: re.Pattern[str]) -> re.Match[str]:
        self._fill()
        match = pattern.match(self._text, self._position)
        if match is None:
            self.fail()
        self._position = match.end()
        return match

    def _item(self) -> Item:
        self._fill()
        item: Item
        try:
            item, end = _DECODER.raw_decode(self._text, self._position)
        except (ValueError, RecursionError) as error:
            self.fail(error)
        if end - self._position > MAX_ENTRY_BYTES:
            self.fail()
        self._position = end
        return item

    def _fill(self) -> None:
        """Read on if the text may end within the next entry."""
        while len(self._text) - self._position <= MAX_ENTRY_BYTES and not self._is_at_end:
            try:
                chunk = self._stream.read(_CHUNK_BYTES)
            except _READ_ERRORS as error:
                self.fail(error)
            self._text = self._text[self._position :] + chunk.decode("ascii", "surrogateescape")
            self._base += self._position
            self._position = 0
            self._is_at_end = not chunk

    def _go_to(self, offset: int) -> None:
        if offset <= self._base + len(self._text):
            self._position = offset - self._base
            return
        try:
            self._stream.seek(offset)
        except _READ_ERRORS as error:
            self.fail(error)
        self._text, self._position, self._base = "", 0, offset
        self._is_at_end = False
