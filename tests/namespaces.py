"""Processes in mount namespaces of their own, as containers and services have them."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_SCRIPT = "set -e; {}; echo ready; exec cat"


@contextmanager
def other_namespace(script: str, *arguments: Path | str) -> Iterator[int]:
    """Run shell commands in a new mount namespace, and keep a process in it.

    Args:
        script: what mounts; ``$1`` and so on are the arguments.

    Yields:
        The process.
    """
    command = ["unshare", "--mount", "--propagation", "private", "sh", "-c"]
    with subprocess.Popen(
        [*command, _SCRIPT.format(script), "sh", *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield process.pid
        process.communicate()
