"""Reading the export format of ncdu piece by piece: https://dev.yorhel.nl/ncdu/jsonfmt

A file may come from anywhere and be of any size and depth. Regular expressions find whole
entries, the json module reads hundreds of them in one call, and nesting is only a number.
"""

import gzip
import io
import json
import os
import re
import stat
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple, NoReturn

from tui_fs.model.errors import BadInput
from tui_fs.model.paths import displayable, shell_quoted

ENTRY_BYTES = 64 << 10
"""One entry may be this long; a name is at most 255 bytes, the path of the top a few thousand."""

_CHUNK_BYTES = 128 << 10
"""A damaged entry can make `re` need 300 bytes for each byte that it looks at."""

_ENTRIES_AT_ONCE = 512
_GZIP_MAGIC = b"\x1f\x8b"


class _OtherFormat(NamedTuple):
    """A format in which an export may be, and which is not read.

    Attributes:
        magic: how it begins.
        what: of the sentence "FILE is …".
        convert: the command that makes NEW.json of it; ``{}`` is the file.
    """

    magic: bytes
    what: str
    convert: str


_OTHER_FORMATS = (
    _OtherFormat(b"\xbfncduEX1", "in ncdu's binary format", "ncdu -f {} -o NEW.json"),
    _OtherFormat(b"\x28\xb5\x2f\xfd", "compressed by zstd", "zstd -d -o NEW.json {}"),
    _OtherFormat(b"\xfd7zXZ\0", "compressed by xz", "xz -dc {} > NEW.json"),
    _OtherFormat(b"BZh", "compressed by bzip2", "bzip2 -dc {} > NEW.json"),
    _OtherFormat(b"\x04\x22\x4d\x18", "compressed by lz4", "lz4 -dc {} > NEW.json"),
    _OtherFormat(b"PK\x03\x04", "a zip archive", "unzip -p {} > NEW.json"),
    _OtherFormat(b"\xff\xfe", "in UTF-16", "iconv -f UTF-16 -t UTF-8 {} > NEW.json"),
    _OtherFormat(b"\xfe\xff", "in UTF-16", "iconv -f UTF-16 -t UTF-8 {} > NEW.json"),
    _OtherFormat(b"\xef\xbb\xbf", "preceded by a byte order mark", "tail -c +4 {} > NEW.json"),
)
_MAGIC_BYTES = max(len(one.magic) for one in _OTHER_FORMATS)

_SPACE = rb"[ \t\r\n]*"
_STRING = rb'"[^"\\]*(?:\\.[^"\\]*)*"'
_PLAIN = rb'[^"{}\[\]]*'
_INSIDE = rb"%s(?:%s%s)*" % (_PLAIN, _STRING, _PLAIN)
for _ in range(3):  # metadata and fields that are not known may nest a little
    _INSIDE = rb"%s(?:(?:%s|[{\[]%s[}\]])%s)*" % (_PLAIN, _STRING, _INSIDE, _PLAIN)
_OBJECT = rb"\{" + _INSIDE + rb"\}"
"""Every character can be matched in one way only, so a failure takes no longer than a match."""

_MORE = rb"(?:%s,%s%s){0,%d}" % (_SPACE, _SPACE, _OBJECT, _ENTRIES_AT_ONCE - 1)

_PARTS = {b"s": _SPACE, b"object": _OBJECT, b"more": _MORE}
_HEADER = re.compile(
    rb"%(s)b\[%(s)b(\d{1,5})%(s)b,%(s)b(\d{1,5})%(s)b,%(s)b%(object)b%(s)b,%(s)b(?=\[)" % _PARTS,
    re.DOTALL,
)
_VALUE = re.compile(rb"%(s)b(?:(\[)%(s)b(%(object)b)|(%(object)b%(more)b))" % _PARTS, re.DOTALL)
_NEXT = re.compile(_SPACE + rb"([,\]])")
_END = re.compile(_SPACE + rb"\]" + _SPACE)

Item = dict[str, Any]
"""The object of an entry; whoever takes a field of it checks it."""


class Opened(NamedTuple):
    """A directory begins at `offset` of the (uncompressed) file."""

    offset: int
    item: Item


class Entries(NamedTuple):
    """Entries of the directory that began last and has not ended, other than directories."""

    items: list[Item]


class Closed(NamedTuple):
    """That directory ends before `offset`."""

    offset: int


class NcduFile:
    """A file in ncdu's format, possibly compressed by gzip, open for reading.

    Attributes:
        shown: the file's name, safe to show.

    Raises:
        BadInput: it cannot be read, or begins like no such file.
    """

    def __init__(self, path: str) -> None:
        self.shown = displayable(path)
        self._descriptor = -1
        try:
            flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
            self._descriptor = os.open(path, flags)
            status = os.fstat(self._descriptor)
        except OSError as why:
            reason = os.strerror(why.errno or 0)
            raise BadInput(f"{self.shown} cannot be read: {reason}.") from why
        except ValueError as why:
            raise BadInput(f"{self.shown} is not a path.") from why
        if stat.S_ISDIR(status.st_mode):
            raise BadInput(
                f"{self.shown} is a directory, not a file in ncdu's format.",
                f"To count it: tui-fs survey {shell_quoted((path,))}",
            )
        if not stat.S_ISREG(status.st_mode):
            raise BadInput(
                f"{self.shown} is not a regular file.", "Write the export to a file first."
            )
        magic = os.pread(self._descriptor, _MAGIC_BYTES, 0)
        self._is_compressed = magic.startswith(_GZIP_MAGIC)
        if not magic:
            raise BadInput(
                f"{self.shown} is empty.",
                f"Export it anew: ncdu -o {shell_quoted((path,))} DIRECTORY",
            )
        for other in _OTHER_FORMATS:
            if magic.startswith(other.magic):
                raise BadInput(
                    f"{self.shown} is {other.what}, which is not read.",
                    f"Convert it: {other.convert.format(shell_quoted((path,)))}",
                )

    def __del__(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)

    def entries(self) -> "NcduReader":
        """Read from the beginning."""
        reader = self._reader()
        reader.read_header()
        return reader

    def entries_from(self, offset: int) -> "NcduReader":
        """Read one directory, which begins at `offset`."""
        reader = self._reader()
        reader.go_to(offset)
        return reader

    def _reader(self) -> "NcduReader":
        raw = io.BufferedReader(_Positioned(self._descriptor), _CHUNK_BYTES)
        if self._is_compressed:
            return NcduReader(gzip.GzipFile(fileobj=raw), self.shown)  # type: ignore[arg-type]
        return NcduReader(raw, self.shown)


class _Positioned(io.RawIOBase):
    """A descriptor read at a place of its own, so that several can read it at once."""

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._offset = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        if whence == os.SEEK_END:
            offset += os.fstat(self._descriptor).st_size
        elif whence == os.SEEK_CUR:
            offset += self._offset
        self._offset = offset
        return offset

    def readinto(self, buffer: Any, /) -> int:
        number = os.preadv(self._descriptor, [buffer], self._offset)
        self._offset += number
        return number


class NcduReader:
    """Reads entries one after the other.

    Everything raises BadInput where the file is damaged or not what it should be.
    """

    def __init__(self, stream: BinaryIO, shown: str) -> None:
        self._stream = stream
        self._shown = shown
        self._buffer = b""
        self._position = 0
        self._base = 0
        self._levels = 0
        self._is_at_end = False

    def read_header(self) -> None:
        """Read up to the first directory."""
        match = self._match(_HEADER, f"{self._shown} is not in the export format of ncdu.")
        if int(match[1]) != 1:
            raise BadInput(f"{self._shown} has a version of ncdu's format that is not known.")

    def go_to(self, offset: int) -> None:
        """Go on at a place further on."""
        if offset <= self._base + len(self._buffer):
            self._position = offset - self._base
            return
        try:
            self._stream.seek(offset)
        except (OSError, EOFError, zlib.error) as why:
            self._damaged(why)
        self._buffer, self._position, self._base = b"", 0, offset
        self._is_at_end = False

    def skip_directory(self, end: int) -> None:
        """Go past the directory that was told last, as far as its `Closed` has told."""
        self._levels -= 1
        self.go_to(end)

    def events(self) -> Iterator[Opened | Entries | Closed]:
        """Yield what comes until the directory ends with which it begins."""
        while True:
            value = self._match(_VALUE)
            if value[1] is not None:
                self._levels += 1
                (item,) = self._read(value[2])
                yield Opened(self._base + value.start(1), item)
            elif self._levels == 0:
                self._damaged()
            else:
                yield Entries(self._read(value[3]))
            while self._match(_NEXT)[1] == b"]":
                self._levels -= 1
                yield Closed(self._base + self._position)
                if self._levels == 0:
                    return

    def read_end(self) -> None:
        """Read what comes after the last directory, and that nothing else does."""
        self._match(_END)
        if self._position < len(self._buffer) or self._fill():
            self._damaged()

    def _match(self, pattern: re.Pattern[bytes], otherwise: str = "") -> re.Match[bytes]:
        """Go past what matches here, with as much more of the file as that takes."""
        while True:
            match = pattern.match(self._buffer, self._position)
            if match is not None:
                self._position = match.end()
                return match
            if len(self._buffer) - self._position > ENTRY_BYTES or not self._fill():
                if otherwise:
                    raise BadInput(otherwise, "ncdu -o FILE and tui-fs survey --export write it.")
                self._damaged()

    def _fill(self) -> bool:
        """Read on; False at the end of the file."""
        try:
            chunk = self._stream.read(_CHUNK_BYTES)
        except (OSError, EOFError, zlib.error) as why:
            self._damaged(why)
        self._buffer = self._buffer[self._position :] + chunk
        self._base += self._position
        self._position = 0
        self._is_at_end = not chunk
        return bool(chunk)

    def _read(self, entries: bytes) -> list[Item]:
        try:
            text = entries.decode("utf-8", "surrogateescape")
            items: list[Item] = _DECODER.decode(f"[{text}]")
        except (ValueError, RecursionError) as why:
            self._damaged(why)
        return items

    def _damaged(self, why: Exception | None = None) -> NoReturn:
        what = "breaks off, or is damaged," if self._is_at_end else "is damaged"
        place = f"byte {self._base + self._position:,}"
        raise BadInput(f"{self._shown} {what} at {place}.", "Export it anew.") from why


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)  # NaN and Infinity are not JSON


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)
