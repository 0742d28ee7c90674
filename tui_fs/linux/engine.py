"""Finding the native engine, which is there only if it was built when tui-fs was installed."""

import os
import subprocess
import sysconfig
from functools import lru_cache

NAME = "tui-fs-engine"

_VERSION_TIMEOUT_S = 5.0


def find_engine() -> str | None:
    """Return the absolute path of the engine, None if there is none.

    It is looked for beside the scripts of this installation first, for PATH may name another
    one's, and then in the absolute directories of PATH.
    """
    return _find(sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath))


@lru_cache(maxsize=16)
def _find(scripts: str, search_path: str) -> str | None:
    for directory in (scripts, *search_path.split(os.pathsep)):
        candidate = os.path.join(directory, NAME)
        if os.path.isabs(directory) and os.path.isfile(candidate) and os.access(candidate, os.X_OK):
            return candidate
    return None


def engine_version(path: str) -> str:
    """Return what an engine says about itself, ``tui-fs-engine 0.1.0``; empty if nothing."""
    try:
        answer = subprocess.run(
            [path, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_VERSION_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""  # an engine that does not answer has no version that could be relied on
    lines = answer.stdout.decode("utf-8", "replace").splitlines()
    return lines[0].strip() if lines and answer.returncode == 0 else ""
