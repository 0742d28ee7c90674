"""The program of the rmtree strategy: Python's shutil.rmtree, with every failure reported.

Run as ``python -I -S rmtree_child.py [--keep-root] [--tell] -- TARGETS``; it imports nothing but
the standard library, because it runs without the program's environment.
"""

import errno
import os
import shutil
import sys
from collections.abc import Callable
from typing import Any


def delete(targets: list[str], *, keep_root: bool) -> int:
    """Delete the directories, continue after failures; return 1 if there was one."""
    failed = False
    device = 0

    def fail(path: str, operation: str, error: int) -> None:
        nonlocal failed
        failed = True
        shown = os.fsencode(path).replace(b"\\", b"\\\\").replace(b"\n", b"\\n")
        os.write(2, b"rmtree: %s: %d: %s\n" % (operation.encode(), error, shown))

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

    def whole(name: str) -> str:
        return os.path.join(target, name)

    with os.scandir(top) as scan:
        entries = list(scan)
    for entry in entries:
        try:
            if entry.is_dir(follow_symlinks=False):
                _rmtree(entry.name, fail, whole, dir_fd=top)
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
    if "--tell" in options:
        _report_removals()
    return delete(targets, keep_root="--keep-root" in options)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
