"""Write a tree in the export format of ncdu: https://dev.yorhel.nl/ncdu/jsonfmt

The format nests like the tree and names every file, unlike the records of a survey. Files are
written as they are read, and only names of directories are kept, so memory is bounded.
"""

import json
import os
import stat
import time
from collections.abc import Callable
from itertools import islice
from typing import BinaryIO

from msgspec import Struct

from tui_fs import __version__
from tui_fs.linux.descriptors import closing
from tui_fs.linux.directories import Directory, Entered, Left, Skipped, TreeWalk, open_directory
from tui_fs.linux.filesystem import file_system_of
from tui_fs.linux.mounts import MOUNTINFO, mounts_below, read_mounts
from tui_fs.survey.walker import NAMES_AT_ONCE

_READ_ERROR = b',"read_error":true'

_in_json = json.JSONEncoder(ensure_ascii=False).encode


class ExportHeader(Struct, frozen=True):
    """What an export says about itself, besides the program that wrote it.

    ncdu ignores the fields of the file system, which only tui-fs writes. A figure is None if it is
    not known.

    Attributes:
        counted_at_s: seconds since the epoch.
        available_bytes: without what is reserved for root (f_bavail).
    """

    counted_at_s: int | None
    total_bytes: int | None = None
    available_bytes: int | None = None
    total_inodes: int | None = None
    free_inodes: int | None = None

    def fields(self) -> dict[str, object]:
        """Return the fields of the JSON object."""
        known = {name: getattr(self, own) for name, own in HEADER_FIELDS.items()}
        program = {"progname": "tui-fs", "progver": __version__}
        return program | {name: value for name, value in known.items() if value is not None}


HEADER_FIELDS = {
    "timestamp": "counted_at_s",
    "fs_bytes": "total_bytes",
    "fs_available_bytes": "available_bytes",
    "fs_inodes": "total_inodes",
    "fs_free_inodes": "free_inodes",
}
"""The names in the file, with the attributes of `ExportHeader`."""


def header_of(path: str) -> ExportHeader:
    """Return the header of an export of a directory that begins now."""
    room = file_system_of(path)
    return ExportHeader(
        int(time.time()),
        room.total_bytes,
        room.available_bytes,
        room.total_inodes,
        room.free_inodes,
    )


class Written(Struct):
    """Counts of what an export has written.

    Attributes:
        unreadable: directories and names that could not be read; marked so in the file.
    """

    entries: int = 0
    directories: int = 0
    unreadable: int = 0


class NcduExport:
    """One export of one directory.

    Args:
        path: absolute path of the directory.
        output: receives the bytes; it is never read.
        is_patchable: `output` is a seekable file that holds only this export, so bytes already
            written can be overwritten with a mark.
        report: called regularly with the progress.
    """

    def __init__(
        self,
        path: str,
        output: BinaryIO,
        *,
        is_patchable: bool = False,
        report: Callable[[Written], None] | None = None,
        mountinfo: str = MOUNTINFO,
    ) -> None:
        self._path = path
        self._output = output
        self._is_patchable = is_patchable
        self._report = report
        mounts = mounts_below(path, read_mounts(mountinfo))
        self._mounts = {os.fsencode(mount.mount_point) for mount in mounts}
        self._tree: TreeWalk[Directory]
        self._own: tuple[int, int] | None = None
        self.written = Written()

    def run(self, header: ExportHeader) -> Written:
        """Write the whole export.

        Raises:
            OSError: the directory cannot be opened, or writing the output failed.
        """
        if self._is_patchable:
            status = os.fstat(self._output.fileno())
            self._own = (status.st_dev, status.st_ino)
        with closing(open_directory(self._path)) as root:
            self._tree = TreeWalk(os.fsencode(self._path), root, self._mounts, Directory)
            self._write(b"[1,2,%s,\n" % json.dumps(header.fields(), separators=(",", ":")).encode())
            for step in self._tree.steps():
                match step:
                    case Entered(directory, above):
                        self._write(b",\n" if above else b"")
                        self._write_directory(directory, above.status.st_dev if above else -1)
                    case Skipped(above, name, _):
                        self._write_skipped(name, above)
                    case Left():
                        self._write(b"]")
                if self._report is not None:
                    self._report(self.written)
            self._write(b"]\n")
        return self.written

    def _write_directory(self, directory: Directory, device_above: int) -> None:
        """Write the beginning of an open directory: its item and its entries but directories."""
        self.written.entries += 1
        self.written.directories += 1
        info = _info(directory.name, directory.status, device_above)
        patched_at = -1
        is_begun = False
        try:
            with os.scandir(directory.descriptor) as entries:
                while some := list(islice(entries, NAMES_AT_ONCE)):
                    if not is_begun:
                        is_begun = True
                        is_long = len(some) == NAMES_AT_ONCE and self._is_patchable
                        if is_long:
                            patched_at = self._output.tell() + 1 + len(info)
                        room = b" " * len(_READ_ERROR) if is_long else b""
                        self._write(b"[" + info + room + b"}")
                    self._write_names([os.fsencode(entry.name) for entry in some], directory)
            if not is_begun:
                self._write(b"[" + info + b"}")
        except OSError:
            self.written.unreadable += 1
            if not is_begun:
                self._write(b"[" + info + _READ_ERROR + b"}")
            elif patched_at >= 0:
                self._output.flush()
                os.pwrite(self._output.fileno(), _READ_ERROR, patched_at)

    def _write_names(self, names: list[bytes], directory: Directory) -> None:
        """Write the entries other than directories of this file system; keep the names of those."""
        lines: list[bytes] = []
        written = self.written
        for name in names:
            try:
                status = os.stat(name, dir_fd=directory.descriptor, follow_symlinks=False)
            except FileNotFoundError:
                continue
            except OSError:
                written.entries += 1
                written.unreadable += 1
                lines.append(b",\n" + _info(name) + _READ_ERROR + b"}")
                continue
            if not stat.S_ISDIR(status.st_mode):
                if (status.st_dev, status.st_ino) != self._own:
                    written.entries += 1
                    lines.append(b",\n" + _info(name, status, directory.status.st_dev) + b"}")
            elif self._is_elsewhere(name, status):
                lines.append(self._closed(name, status, directory))
            else:
                directory.pending.append(name)
        self._write(b"".join(lines))
        if self._report is not None:
            self._report(written)

    def _write_skipped(self, name: bytes, above: Directory) -> None:
        """Write a directory that could not be opened, or that has become a mount point."""
        status = None
        if above.descriptor >= 0:  # else that one could not be opened again
            try:
                status = os.stat(name, dir_fd=above.descriptor, follow_symlinks=False)
            except OSError:
                return
            if not stat.S_ISDIR(status.st_mode):
                return
        self._write(self._closed(name, status, above))

    def _closed(self, name: bytes, status: os.stat_result | None, above: Directory) -> bytes:
        """Count a directory that is not entered, and return its line."""
        self.written.entries += 1
        self.written.directories += 1
        if status is not None and self._is_elsewhere(name, status):
            where = _quoted(name), status.st_dev
            return b',\n[{"name":%s,"dev":%d,"excluded":"otherfs"}]' % where
        self.written.unreadable += 1
        return b",\n[" + _info(name, status, above.status.st_dev) + _READ_ERROR + b"}]"

    def _is_elsewhere(self, name: bytes, status: os.stat_result) -> bool:
        return status.st_dev != self._tree.device or self._tree.is_mounted(name)

    def _write(self, data: bytes) -> None:
        self._output.write(data)


def _info(name: bytes, status: os.stat_result | None = None, device_above: int = -1) -> bytes:
    """Return the object of an entry without its closing brace."""
    info = b'{"name":%s' % _quoted(name)
    if status is None:
        return info
    if status.st_size:
        info += b',"asize":%d' % status.st_size
    if status.st_blocks:
        info += b',"dsize":%d' % (status.st_blocks * 512)
    if status.st_dev != device_above:
        info += b',"dev":%d' % status.st_dev
    info += b',"uid":%d,"gid":%d,"mode":%d,"mtime":%d' % (
        status.st_uid,
        status.st_gid,
        status.st_mode,
        max(0, int(status.st_mtime)),  # ncdu reads no negative numbers
    )
    if not stat.S_ISDIR(status.st_mode):
        if status.st_nlink > 1:
            info += b',"ino":%d,"hlnkc":true,"nlink":%d' % (status.st_ino, status.st_nlink)
        if not stat.S_ISREG(status.st_mode):
            info += b',"notreg":true'
    return info


def _quoted(name: bytes) -> bytes:
    """Return a name as ncdu writes it: bytes beyond ASCII are unchanged, valid UTF-8 or not."""
    text = _in_json(name.decode("utf-8", "surrogateescape"))
    return text.encode("utf-8", "surrogateescape").replace(b"\x7f", b"\\u007f")
