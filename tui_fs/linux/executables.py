"""Looking for a program, and asking which one it is."""

import os
import subprocess
from collections.abc import Iterable

_VERSION_TIMEOUT_S = 5.0


def find_executable(name: str, directories: Iterable[str]) -> str | None:
    """Return the first path of a program in the absolute ones of these directories, or None."""
    for directory in directories:
        candidate = os.path.join(directory, name)
        if os.path.isabs(directory) and os.path.isfile(candidate) and os.access(candidate, os.X_OK):
            return candidate
    return None


def version_line(path: str) -> tuple[str, int]:
    """Return the first line of ``--version`` and the exit code; no line if there is no answer."""
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
        return "", -1  # what does not answer has no version that could be relied on
    lines = answer.stdout.decode("utf-8", "replace").splitlines()
    return (lines[0].strip() if lines else ""), answer.returncode
