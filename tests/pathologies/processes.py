"""Start processes that hold on to something in a tree."""

import shutil
import subprocess
import sys
from pathlib import Path

from tests.needs import needs_tool
from tests.pathologies.case import Scene

_HOLDER = Path(__file__).with_name("holder.py")


def hold(scene: Scene, use: str, path: Path, *, is_own_session: bool = True) -> int:
    """Start a process that uses a path until the scene ends; return its output.

    Args:
        use: one of the words that `holder.py` knows.
        is_own_session: it is not in the session of the surveying process.
    """
    return _start(scene, [sys.executable, "-I", str(_HOLDER), use, str(path)], is_own_session)


def run_from(scene: Scene, directory: Path) -> None:
    """Put a copy of a program into a directory, and let it run until the scene ends."""
    copy = directory / "cat"
    shutil.copy(needs_tool("cat", package="coreutils"), copy)
    _start(scene, [str(copy)], is_own_session=True, stdin=b"0\n")


def run_in_a_container(scene: Scene, directory: Path) -> None:
    """Start a process in /mnt of its own mount namespace, where it sees a directory."""
    script = 'mount --bind "$1" /mnt && cd /mnt && exec cat'
    words = ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh"]
    _start(scene, [*words, str(directory)], is_own_session=True, stdin=b"0\n")


def _start(scene: Scene, command: list[str], is_own_session: bool, stdin: bytes = b"") -> int:
    """Start a command that says a number when it is ready, and lives until its input ends."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=is_own_session,
        cwd="/",
    )
    assert process.stdin is not None
    assert process.stdout is not None
    scene.until_the_end.callback(process.wait)
    scene.until_the_end.callback(process.stdin.close)
    scene.until_the_end.callback(process.stdout.close)
    process.stdin.write(stdin)
    process.stdin.flush()
    return int(process.stdout.readline())
