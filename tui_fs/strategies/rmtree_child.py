"""The program of the rmtree strategy: Python's shutil.rmtree, with every failure reported.

Run as ``python -I -S rmtree_child.py [--keep-root] [--report] -- TARGETS``, or for a single file in
the working directory as ``… [--report] --file DEVICE:INODE -- NAME``. It imports nothing but the
standard library, because it runs without the program's environment.
"""

import errno
import os
import shutil
import stat
import sys
from collections.abc import Callable
from typing import Any

EXIT_EXCHANGED = 3
"""Another process exchanged the file between the last comparison and its removal."""


def delete(targets: list[str], *, keep_root: bool) -> int:
    """Delete the directories, continue after failures; return 1 if there was one."""
    failed = False
    device = 0

    def fail(path: str, operation: str, error: int) -> None:
        nonlocal failed
        failed = True
        _report_failure(path, operation, error)

    _stay_on_one_file_system(lambda: device)
    for target in targets:
        try:
            device = os.lstat(target).st_dev
            if keep_root:
                _empty(target, fail)
            else:
                _rmtree(target, fail, lambda path: path)
        except OSError as error:
            fail(target, "open", error.errno or 0)
        except RecursionError:
            fail(target, "recursion", 0)
    return int(failed)


def delete_file(name: str, device: int, inode: int) -> int:
    """Remove a name if it is still that of a file; return the exit status.

    The kernel cannot compare and remove in one step. Another process may exchange the name between
    the last two system calls, which follow each other directly. The open file shows that
    afterwards: it has not lost its name.
    """
    lstat, unlink = os.lstat, os.unlink
    try:
        above = os.open(".", os.O_PATH | os.O_DIRECTORY)
        opened = os.open(name, os.O_PATH | os.O_NOFOLLOW, dir_fd=above)
        is_confirmed = _is_file(os.fstat(opened), device, inode)
        before = lstat(name, dir_fd=above)
        if is_confirmed and before.st_ino == inode and before.st_dev == device:
            unlink(name, dir_fd=above)
        else:
            os.write(2, b"rmtree: the name leads to another file now; nothing was deleted\n")
            return 1
    except OSError as error:
        _report_failure(".", "unlink", error.errno or 0)
        return 1
    return 0 if _has_lost_name(opened, before.st_nlink) else EXIT_EXCHANGED


def _is_file(status: os.stat_result, device: int, inode: int) -> bool:
    return (status.st_dev, status.st_ino) == (device, inode) and not stat.S_ISDIR(status.st_mode)


def _has_lost_name(opened: int, links_before: int) -> bool:
    """Return whether an open file has fewer names than before."""
    try:
        if os.fstat(opened).st_nlink < links_before:
            return True
        # An overlay reports the link count of the layer, but the kernel marks the removed name.
        path = os.readlink(f"/proc/self/fd/{opened}")
    except OSError:
        return False
    if not path.endswith(" (deleted)"):
        return False
    try:
        return not os.path.samestat(os.lstat(path), os.fstat(opened))
    except OSError as error:
        return error.errno == errno.ENOENT


def _rmtree(
    path: str, fail: Callable[[str, str, int], None], whole: Callable[[str], str], **at: Any
) -> None:
    def on_error(function: Any, name: str, raised: Any) -> None:
        error = raised[1] if isinstance(raised, tuple) else raised
        if not isinstance(error, OSError):
            raise error
        fail(whole(name), function.__name__, error.errno or errno.ELOOP)

    # Python 3.12 renamed the argument and warns about the old name
    handler = "onexc" if sys.version_info >= (3, 12) else "onerror"
    handlers: dict[str, Any] = {handler: on_error}
    shutil.rmtree(path, **handlers, **at)


def _empty(target: str, fail: Callable[[str, str, int], None]) -> None:
    """Delete the contents of the directory, relative to one descriptor of it."""
    top = os.open(target, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    # Python 3.10 has no dir_fd. This link leads to the open directory, even after a rename.
    has_dir_fd = sys.version_info >= (3, 11)
    at, above = ({"dir_fd": top}, "") if has_dir_fd else ({}, f"/proc/self/fd/{top}/")

    def whole(name: str) -> str:
        return os.path.join(target, name.removeprefix(above))

    with os.scandir(top) as scan:
        entries = list(scan)
    for entry in entries:
        try:
            if entry.is_dir(follow_symlinks=False):
                _rmtree(above + entry.name, fail, whole, **at)
            else:
                os.unlink(entry.name, dir_fd=top)
        except OSError as error:
            fail(whole(entry.name), "unlink", error.errno or 0)


def _stay_on_one_file_system(device: Callable[[], int]) -> None:
    """Make reading a directory of another file system fail; shutil does not check for that."""

    def before(event: str, arguments: tuple[Any, ...]) -> None:
        is_directory = event == "os.scandir" and isinstance(arguments[0], int)
        if is_directory and os.fstat(arguments[0]).st_dev != device():
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    sys.addaudithook(before)


def _report_failure(path: str, operation: str, error: int) -> None:
    shown = os.fsencode(path).replace(b"\\", b"\\\\").replace(b"\n", b"\\n")
    os.write(2, b"rmtree: %s: %d: %s\n" % (operation.encode(), error, shown))


def _report_removals() -> None:
    """Print a line for each removed entry; shutil calls both functions as attributes of os."""
    for name, line in (("unlink", "removed\n"), ("rmdir", "removed directory\n")):
        setattr(os, name, _reporting(getattr(os, name), line))


def _reporting(call: Callable[..., None], line: str) -> Callable[..., None]:
    def call_and_report(*arguments: Any, **at: Any) -> None:
        call(*arguments, **at)
        sys.stdout.write(line)

    call_and_report.__name__ = call.__name__
    return call_and_report


def main(arguments: list[str]) -> int:
    """Delete the targets named after ``--``; return the exit status."""
    end = arguments.index("--")
    options, targets = arguments[:end], arguments[end + 1 :]
    if "--report" in options:
        _report_removals()
    if "--file" in options:
        device, inode = map(int, options[options.index("--file") + 1].split(":"))
        return delete_file(targets[0], device, inode)
    return delete(targets, keep_root="--keep-root" in options)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
