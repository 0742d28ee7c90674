"""The program on a terminal, where it asks before it deletes."""

import os
import pty
import subprocess
from contextlib import suppress

from tests.conftest import Cli, wait_until


class Terminal:
    """The program on a pseudo-terminal."""

    def __init__(self, cli: Cli, *arguments: str) -> None:
        self.seen = b""
        self._ours, theirs = pty.openpty()
        self._process = subprocess.Popen(
            [*cli.command, *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, "TERM": "xterm"},
            start_new_session=True,
        )
        os.close(theirs)
        os.set_blocking(self._ours, False)

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._ours)

    def wait_for(self, text: bytes) -> None:
        """Wait until the program has printed a text."""
        wait_until(lambda: text in self._read(), f"{text!r} on the terminal")

    def answer(self, text: bytes) -> None:
        """Type an answer."""
        os.write(self._ours, text)

    def wait(self) -> int:
        """Wait for the program's end, and return its exit code."""
        wait_until(lambda: self._has_ended(), "the program's end")
        return self._process.returncode

    def _has_ended(self) -> bool:
        self._read()
        return self._process.poll() is not None

    def _read(self) -> bytes:
        # EIO says that the other end is closed, EAGAIN that there is nothing yet.
        with suppress(OSError):
            while chunk := os.read(self._ours, 4096):
                self.seen += chunk
        return self.seen
