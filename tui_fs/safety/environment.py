"""Determine the directories of this process and of tui-fs that a deletion must not remove."""

import functools
import os
import sys
import sysconfig
from importlib.util import find_spec

import tui_fs
from tui_fs.model.paths import PathStr
from tui_fs.safety.rules import Environment


def current_environment(
    state: str, standing_in: str | None = None, further_state: tuple[str, ...] = ()
) -> Environment:
    """Return the directories that must survive a deletion requested by this process.

    Args:
        state: the directory of the jobs.
        standing_in: the current directory of the user; None for that of this process, which is
            ignored if it no longer exists.
        further_state: other directories that contain jobs.
    """
    if standing_in is None:
        try:
            standing_in = os.getcwd()
        except FileNotFoundError:
            standing_in = ""
    interpreter = {sys.prefix, sys.base_prefix}
    interpreter |= {os.path.dirname(e) for e in (sys.executable, os.path.realpath(sys.executable))}
    interpreter |= _mapped_directories()
    return Environment(
        standing_in=PathStr(standing_in),
        program=_program(),
        interpreter=tuple(PathStr(place) for place in sorted(interpreter)),
        state=PathStr(state),
        further_state=tuple(PathStr(place) for place in further_state),
    )


@functools.cache  # a job determines its environment before each step, and this takes half of it
def _program() -> tuple[PathStr, ...]:
    package = os.path.dirname(os.path.abspath(tui_fs.__file__))
    program = {package, *_libraries(), sysconfig.get_path("stdlib")}
    return tuple(PathStr(place) for place in sorted(program))


def _mapped_directories() -> set[str]:
    """Return the directories of all files mapped by this process, such as the C library."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as lines:
        paths = {line.rstrip("\n").split(maxsplit=5)[5] for line in lines if " /" in line}
    return {os.path.dirname(path) for path in paths}


def _libraries() -> set[str]:
    """Return the directory of the libraries; find one of them without its slow import."""
    spec = find_spec("textual")
    if spec is None or spec.origin is None:
        return set()
    return {os.path.dirname(os.path.dirname(os.path.abspath(spec.origin)))}
