"""The program in a real terminal: keys in, screen out."""

import os
import subprocess
import time
import uuid
from collections.abc import Callable
from pathlib import Path

from tests.conftest import DEADLINE_S, wait_until
from tui_fs.widgets.confirm_dialog import IGNORED_BY_ITSELF_S, IGNORED_KEYS_S

_LOOK_EVERY_S = 0.05
"""Each poll starts a process: more of them take CPU time from the observed program."""


class Terminal:
    """A detached tmux session that runs one command."""

    def __init__(self, command: list[str], home: Path, columns: int = 80, lines: int = 24) -> None:
        self._server = f"tui-fs-test-{uuid.uuid4().hex[:8]}"
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "XDG_STATE_HOME": os.environ["XDG_STATE_HOME"],
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
        }
        size = ("-x", str(columns), "-y", str(lines))
        settings = [f"{name}={value}" for name, value in environment.items()]
        # without a configuration file, and gone as soon as the command ends
        self._tmux("-f", os.devnull, "new-session", "-d", *size, "env", "-i", *settings, *command)

    def press(self, *keys: str) -> None:
        """Press keys by tmux's names (``Enter``, ``Escape``, ``d``)."""
        self._tmux("send-keys", *keys)

    def type(self, text: str) -> None:
        """Type a text as it is."""
        self._tmux("send-keys", "-l", text)

    def text(self) -> str:
        """Return what the screen shows; nothing if the session has ended."""
        shown = self._run("capture-pane", "-p")
        return shown.stdout if shown.returncode == 0 else ""

    def wait_for(self, words: str, deadline_s: float = DEADLINE_S) -> str:
        """Wait until the screen shows some words; return all of it."""
        self.wait_until(lambda text: words in text, repr(words), deadline_s)
        return self.text()

    def wait_until(
        self, condition: Callable[[str], bool], what: str, deadline_s: float = DEADLINE_S
    ) -> None:
        """Wait until the screen is as wanted."""
        try:
            wait_until(lambda: condition(self.text()), what, deadline_s, _LOOK_EVERY_S)
        except AssertionError as error:
            raise AssertionError(f"{error}; the screen shows:\n{self.text()}") from None

    def answer(self, question: str, *keys: str, opens_by_itself: bool = False) -> None:
        """Press keys one by one when a dialog no longer ignores them; wait until it is closed."""
        self.wait_for(question)
        time.sleep(IGNORED_BY_ITSELF_S if opens_by_itself else 0)
        for key in keys:
            time.sleep(2 * IGNORED_KEYS_S)  # after the last key that was typed
            self.press(key)
        self.wait_until(lambda text: question not in text, f"{question!r} gone")

    def pid(self) -> int:
        """Return the process of the command."""
        return int(self._tmux("display-message", "-p", "#{pane_pid}").stdout)

    def resize(self, columns: int, lines: int) -> None:
        """Change the size of the terminal."""
        self._tmux("resize-window", "-x", str(columns), "-y", str(lines))

    def close(self) -> None:
        """Close the terminal; its processes get SIGHUP."""
        self._run("kill-server")
        directory = os.environ.get("TMUX_TMPDIR", "/tmp")  # tmux leaves its socket there
        Path(directory, f"tmux-{os.getuid()}", self._server).unlink(missing_ok=True)

    def is_open(self) -> bool:
        """Return whether the command still runs."""
        return self._run("has-session").returncode == 0

    def _tmux(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        done = self._run(*arguments)
        assert done.returncode == 0, done.stderr
        return done

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["tmux", "-L", self._server, *arguments],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
