"""Finding the native engine, which is there only if it was built when tui-fs was installed."""

import os
import sysconfig
from functools import lru_cache

from tui_fs.linux.executables import Search, find_executable, version_line

NAME = "tui-fs-engine"


def find_engine() -> str | None:
    """Return the absolute path of the engine, None if there is none.

    It is looked for beside the scripts of this installation first, for PATH may name another
    one's, and then in the absolute directories of PATH.
    """
    return search_engine().path


def search_engine() -> Search:
    """Look for the engine as `find_engine` does; the result says what was rejected."""
    return _search(sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath))


@lru_cache(maxsize=16)
def _search(scripts: str, search_path: str) -> Search:
    return find_executable(NAME, (scripts, *search_path.split(os.pathsep)))


def engine_version(path: str) -> str:
    """Return what an engine says about itself, ``tui-fs-engine 0.1.0``; empty if nothing."""
    line, code = version_line(path)
    return line if code == 0 else ""
