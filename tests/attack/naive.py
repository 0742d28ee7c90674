"""Deletions that a hostile user leads astray: they show that the attack works.

Run as ``python -I naive.py paths|chdir TREE``. Failures are passed over, as ``rm -f`` would.
"""

import contextlib
import os
import sys
from collections.abc import Callable


def by_paths(tree: str) -> None:
    """Walk, and delete by path: any part of it may be a symbolic link by then."""
    for directory, _, names in os.walk(tree, topdown=False):
        for name in names:
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(directory, name))
        with contextlib.suppress(OSError):
            os.rmdir(directory)


def by_chdir(tree: str) -> None:
    """Go into each directory and back by ``..``, which may lead to another one by then."""
    os.chdir(tree)
    _empty()


def _empty() -> None:
    names = os.listdir(".")
    for name in names:
        if os.path.isdir(name) and not os.path.islink(name):
            with contextlib.suppress(OSError):
                os.close(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY))
                os.chdir(name)
                _empty()
                os.chdir("..")
    for name in names:
        with contextlib.suppress(OSError):
            os.unlink(name)


DELETIONS: dict[str, Callable[[str], None]] = {"paths": by_paths, "chdir": by_chdir}

if __name__ == "__main__":
    DELETIONS[sys.argv[1]](sys.argv[2])
