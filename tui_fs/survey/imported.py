"""Read a survey from a file in ncdu's export format: https://dev.yorhel.nl/ncdu/jsonfmt

The file is untrusted and may have any size and depth. ijson parses it piece by piece. Only
directories are kept in memory, each with the start and end offset of its description. Listing a
directory reads its entries from the file again. No path that the file names is opened.
"""

import codecs
import gzip
import io
import math
import os
import re
import stat
import time
import zlib
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from itertools import islice
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

_CHUNK_BYTES = 128 << 10
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
                for kind, item in islice(
                    reader.values(), 2, None
                ):  # skips its bracket and its own item
                    if kind == "end_map":
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
                    elif kind == "start_array" and (end := ends.get(reader.offset - 1)):
                        reader.skip_array(end)
                    else:
                        break  # at its end, or at the first unread byte
                    if time.monotonic() - published_s >= PUBLISH_INTERVAL_S:
                        so_far = Names((), others(), order=order, examined=examined)
                        if not publish(so_far):
                            return so_far
                        published_s = time.monotonic()
                else:
                    reader.fail()
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
        opening: int | None = reader.offset - 1
        for kind, item in reader.values():
            if kind == "end_map":
                if opening is None:
                    self._add(item)
                else:
                    self._open(opening, item)
                    opening = None
            elif opening is None and kind == "start_array":
                opening = reader.offset - 1
            elif opening is None and kind == "end_array":
                self._close(reader.offset)
                if not self._stack:
                    break
            else:
                reader.fail()
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
        kind, item = next(reader.values(), ("", {}))
        if kind != "end_map":
            reader.fail()
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


_PIECE = re.compile(rb"[^\[\]]*[\[\]]|.*,", re.DOTALL)
"""A piece ends at a bracket, so that the offset of each bracket is known, else at the last comma.
No piece ends inside an escape sequence."""

_SURROGATE = re.compile(
    rb"\\\\|\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}|\\ud(?:c([89a-f][0-9a-f])|[89a-f][0-9a-f]{2})",
    re.IGNORECASE,
)
_RAW_BYTE = 0x10FF00
"""The parser receives bytes from 0x80 on as these private use characters."""
_DECODED = "".join(chr(byte if byte < 0x80 else _RAW_BYTE + byte) for byte in range(256))
_ESCAPED_BYTES = {_RAW_BYTE + byte: 0xDC00 + byte for byte in range(0x80, 0x100)}
"""Private use characters to the surrogates of the error handler surrogateescape."""

_FIELDS = frozenset(
    [
        "name",
        "asize",
        "dsize",
        "dev",
        "ino",
        "nlink",
        "hlnkc",
        "mode",
        "mtime",
        "uid",
        "notreg",
        "excluded",
        "read_error",
    ]
)
_STARTS, _ENDS = ("start_map", "start_array"), ("end_map", "end_array")


def _to_utf8(piece: bytes) -> bytes:
    r"""Return JSON in UTF-8 that the parser accepts.

    ncdu writes the bytes of names unchanged, valid UTF-8 or not. Python programs write an invalid
    byte as a lone surrogate such as ``\udc80``. `_text_bytes` reverses this.
    """
    if b"\\u" in piece:
        piece = _SURROGATE.sub(_replace_surrogate, piece)
    return (
        piece if piece.isascii() else codecs.charmap_decode(piece, "strict", _DECODED)[0].encode()
    )


def _replace_surrogate(match: re.Match[bytes]) -> bytes:
    if match[1]:
        return bytes.fromhex(match[1].decode())
    return match[0] if len(match[0]) != len(rb"\uXXXX") else b"?"


def _text_bytes(text: object) -> bytes:
    if not isinstance(text, str):
        return b""
    if text.isascii():
        return text.encode()
    return text.translate(_ESCAPED_BYTES).encode("utf-8", "surrogateescape")


class NcduReader:
    """Read JSON values one after the other.

    Every method raises BadInput if the file is damaged.

    Attributes:
        offset: in the file, after the last bracket that was returned.
    """

    def __init__(self, stream: io.BufferedIOBase, shown: str, offset: int) -> None:
        import ijson  # not loaded for the survey of a directory

        try:
            from ijson.backends import yajl2_c as backend
        except ImportError:
            from ijson.backends import python as backend
        self._tokens = ijson.sendable_list()
        self._parser = backend.basic_parse_coro(self._tokens)
        # yajl2_c raises SystemError for an integer of 5,000 digits.
        self._errors = (ijson.JSONError, ValueError, SystemError)
        self._stream = stream
        self._shown = shown
        self._buffer = b""
        self._position = 0
        self._base = 0
        self._is_header = self._is_at_end = False
        self._go_to(offset)

    @property
    def offset(self) -> int:
        return self._base + self._position

    def read_header(self) -> ExportHeader:
        """Read to the opening bracket of the top directory."""
        self._is_header = True
        header = list(islice(self.values(), 5))
        kinds = [kind for kind, _ in header]
        if kinds != ["start_array", "number", "number", "end_map", "start_array"]:
            self.fail()
        if header[1][1] != 1:
            raise BadInput(
                f"{self._shown} has an unknown version of ncdu's format.",
                "Export it again with tui-fs survey --export, ncdu 1 or ncdu 2.",
            )
        self._is_header = False
        fields = header[3][1]
        return ExportHeader(
            **{
                own: number_of(fields[name]) if name in fields else None
                for name, own in HEADER_FIELDS.items()
            }
        )

    def values(self) -> Iterator[tuple[str, Any]]:
        """Yield ijson event names with their values; an ``end_map`` comes with all known fields.

        After a bracket the caller may abandon the iterator and call this again.
        """
        item: Item | None = None
        key = ""
        nested = unfinished_bytes = 0
        while (piece := self._next_piece()) is not None:
            unfinished_bytes += len(piece)
            for kind, value in self._parse(piece):
                if nested:  # in the value of a field
                    nested += (kind in _STARTS) - (kind in _ENDS)
                elif item is None:
                    unfinished_bytes = 0
                    if kind == "start_map":
                        item = {}
                    else:
                        yield kind, value
                elif kind == "map_key":
                    key = value
                elif kind == "end_map":
                    unfinished_bytes = 0
                    yield kind, item
                    item = None
                else:
                    nested = int(kind in _STARTS)
                    if key in _FIELDS or (self._is_header and key in HEADER_FIELDS):
                        item[key] = float(value) if type(value) is Decimal else value
            if unfinished_bytes > MAX_ENTRY_BYTES:
                self.fail()

    def skip_array(self, end: int) -> None:
        """Skip from behind an opening bracket to behind its closing bracket."""
        self._parser.send(b"]")
        self._tokens.clear()
        self._go_to(end)

    def read_end(self) -> None:
        """Read the final bracket and the end of the file."""
        if [kind for kind, _ in self.values()] != ["end_array"]:
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

    def _next_piece(self) -> bytes | None:
        while (match := _PIECE.match(self._buffer, self._position)) is None:
            if len(self._buffer) - self._position > MAX_ENTRY_BYTES:
                self.fail()
            if not self._fill():
                rest = self._buffer[self._position :]
                self._position = len(self._buffer)
                return rest or None
        self._position = match.end()
        return match[0]

    def _parse(self, piece: bytes) -> list[tuple[str, Any]]:
        try:
            self._parser.send(_to_utf8(piece))
        except self._errors as error:
            self.fail(error)
        tokens = list(self._tokens)
        self._tokens.clear()
        return tokens

    def _fill(self) -> bool:
        """Read the next block; return False at the end of the file."""
        try:
            chunk = self._stream.read(_CHUNK_BYTES)
        except _READ_ERRORS as error:
            self.fail(error)
        self._buffer = self._buffer[self._position :] + chunk
        self._base += self._position
        self._position = 0
        self._is_at_end = not chunk
        return bool(chunk)

    def _go_to(self, offset: int) -> None:
        if offset <= self._base + len(self._buffer):
            self._position = offset - self._base
            return
        try:
            self._stream.seek(offset)
        except _READ_ERRORS as error:
            self.fail(error)
        self._buffer, self._position, self._base = b"", 0, offset
        self._is_at_end = False
