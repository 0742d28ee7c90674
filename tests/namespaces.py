"""Processes in mount namespaces of their own, as containers and services have them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.needs import needs_root
from tests.waiting_process import waiting_process

_UNSHARE = ("unshare", "--mount", "--propagation", "private")
_SCRIPT = "set -e; {}; echo ready; exec cat"


def after_shell(script: str) -> list[str]:
    """Return the words before a command that run it in a process that a shell has prepared."""
    return ["sh", "-c", f'set -e; {script}; exec "$0" "$@"']


def in_mount_namespace(script: str) -> list[str]:
    """Return the words before a command that run it in mounts that a shell has changed."""
    needs_root("a mount namespace")
    return [*_UNSHARE, *after_shell(script)]


@contextmanager
def other_namespace(script: str, *arguments: Path | str) -> Iterator[int]:
    """Run shell commands in a new mount namespace, and keep a process in it.

    Args:
        script: what mounts; ``$1`` and so on are the arguments.

    Yields:
        The process.
    """
    command = [*_UNSHARE, "sh", "-c", _SCRIPT.format(script), "sh", *arguments]
    with waiting_process(command) as process:
        yield process.pid
