"""Finding the command line tools and telling which build of them is installed."""

import os
import sys
from dataclasses import dataclass
from functools import lru_cache

from tui_fs.linux.engine import NAME as ENGINE
from tui_fs.linux.engine import engine_version, find_engine, search_engine
from tui_fs.linux.executables import find_executable, version_line

__all__ = ["ENGINE", "HOW_TO_GET_THE_ENGINE", "Tool", "find_tool", "why_rejected"]

HOW_TO_GET_THE_ENGINE = "install cargo 1.77 or later, then reinstall tui-fs with pip"


@dataclass(frozen=True, slots=True)
class Tool:
    """An installed tool.

    Attributes:
        path: absolute.
        version: the first line of ``--version``; empty if it has none.
    """

    name: str
    path: str
    version: str

    @property
    def is_gnu(self) -> bool:
        """Whether it is the GNU build, whose options the strategies use."""
        return "GNU" in self.version


def find_tool(name: str) -> Tool | None:
    """Return the tool `name` from the absolute directories of PATH, None if there is none.

    ``python`` is the interpreter that runs this program, wherever it is, and the engine lies
    beside this program.
    """
    if name == "python":
        version = f"Python {sys.version.split()[0]}"
        return Tool(name, sys.executable, version) if sys.executable else None
    if name == ENGINE:
        path = find_engine()
        return None if path is None else _engine(path)
    return _find_tool(name, os.environ.get("PATH", os.defpath))


def why_rejected(name: str) -> str:
    """Return why a tool that is there is not used; empty if there is none of that name."""
    if name == ENGINE:
        return search_engine().rejected
    directories = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return find_executable(name, directories).rejected


@lru_cache(maxsize=256)
def _find_tool(name: str, search_path: str) -> Tool | None:
    path = find_executable(name, search_path.split(os.pathsep)).path
    return None if path is None else Tool(name, path, version_line(path)[0])


@lru_cache(maxsize=16)
def _engine(path: str) -> Tool:
    return Tool(ENGINE, path, engine_version(path))
