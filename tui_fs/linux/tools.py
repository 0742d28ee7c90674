"""Finding the command line tools and telling which build of them is installed."""

import os
import subprocess
import sys
from dataclasses import dataclass
from functools import lru_cache

from tui_fs.linux.engine import NAME as ENGINE
from tui_fs.linux.engine import engine_version, find_engine

__all__ = ["ENGINE", "HOW_TO_GET_THE_ENGINE", "Tool", "find_tool"]

HOW_TO_GET_THE_ENGINE = "install cargo 1.77 or later, then reinstall tui-fs with pip"

_VERSION_TIMEOUT_S = 5.0


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


@lru_cache(maxsize=256)
def _find_tool(name: str, search_path: str) -> Tool | None:
    for directory in search_path.split(os.pathsep):
        candidate = os.path.join(directory, name)
        if os.path.isabs(directory) and os.path.isfile(candidate) and os.access(candidate, os.X_OK):
            return Tool(name, candidate, _version(candidate))
    return None


@lru_cache(maxsize=16)
def _engine(path: str) -> Tool:
    return Tool(ENGINE, path, engine_version(path))


def _version(path: str) -> str:
    try:
        answer = subprocess.run(
            [path, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_VERSION_TIMEOUT_S,
            env={"LC_ALL": "C", "PATH": os.defpath},
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""  # a tool that does not answer has no version that could be relied on
    lines = answer.stdout.decode("utf-8", "replace").splitlines()
    return lines[0].strip() if lines else ""
