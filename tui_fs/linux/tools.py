"""Finding the command line tools and telling which build of them is installed."""

import os
import platform
import subprocess
import sys
from dataclasses import dataclass
from functools import lru_cache

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

    ``python`` is the interpreter that runs this program, wherever it is.
    """
    if name == "python":
        version = f"Python {platform.python_version()}"
        return Tool(name, sys.executable, version) if sys.executable else None
    return _find_tool(name, os.environ.get("PATH", os.defpath))


@lru_cache(maxsize=256)
def _find_tool(name: str, search_path: str) -> Tool | None:
    for directory in search_path.split(os.pathsep):
        candidate = os.path.join(directory, name)
        if os.path.isabs(directory) and os.path.isfile(candidate) and os.access(candidate, os.X_OK):
            return Tool(name, candidate, _version(candidate))
    return None


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
