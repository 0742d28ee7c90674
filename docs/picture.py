"""Record the picture of the run screen from a real session: `python docs/picture.py DIRECTORY`.

It makes a tree of 121,001 entries in DIRECTORY/web-application, opens tui-fs on it in tmux,
confirms a deletion with the recommended strategy at a limited rate, and writes the screen of the
fourth second to docs/run.svg. It needs root, tmux and an installed tui-fs.
"""

import io
import subprocess
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.text import Text

COLUMNS, LINES = 100, 24
FILES, DIRECTORIES = 120_000, 1_000
SOCKET = "tui-fs-picture"


def tmux(*arguments: str) -> str:
    """Run a tmux command on a server of its own; return its output."""
    done = subprocess.run(
        ["tmux", "-L", SOCKET, *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout


def wait_for(words: str, timeout_s: float = 60.0) -> None:
    """Wait until the screen shows some words."""
    deadline_s = time.monotonic() + timeout_s
    while words not in tmux("capture-pane", "-p"):
        if time.monotonic() > deadline_s:
            sys.exit(f"not within {timeout_s:.0f} s: {words!r}")
        time.sleep(0.1)


def make_tree(tree: Path) -> None:
    """Create the directories and their empty files."""
    for number in range(DIRECTORIES):
        directory = tree / f"session-{number:04}"
        directory.mkdir(parents=True)
        for name in range(FILES // DIRECTORIES):
            (directory / f"{name:04}").touch()


def record(tree: Path) -> str:
    """Delete the tree in a real session; return the run screen with its colours (ANSI)."""
    program = str(Path(sys.executable).with_name("tui-fs"))
    size = ("-x", str(COLUMNS), "-y", str(LINES))
    colours = ("-e", "COLORTERM=truecolor", "-e", "LANG=C.UTF-8")
    tmux("-f", "/dev/null", "new-session", "-d", *size, *colours, program, str(tree.parent))
    wait_for("complete")
    tmux("send-keys", "d")
    wait_for("counted")
    tmux("send-keys", "o")
    wait_for("options")
    for keys in (["Tab"] * 5, ["20000"], ["Enter"]):
        tmux("send-keys", *keys)
        time.sleep(0.5)  # what is typed goes to the field that has the focus when it arrives
    wait_for("at most 20,000 /s")
    tmux("send-keys", "Enter")
    wait_for("to confirm")
    time.sleep(1)  # the dialog ignores keys that come too early
    tmux("send-keys", "-l", tree.name)
    tmux("send-keys", "Enter")
    wait_for("elapsed 0:04")
    screen = tmux("capture-pane", "-e", "-N", "-p")
    wait_for("report of job")  # the job would go on without the session
    return screen


def main() -> None:
    """Make the tree, record the session, write the picture."""
    place = Path(sys.argv[1]) / "web-application"
    place.mkdir()
    try:
        make_tree(place / "sessions")
        screen = record(place / "sessions")
    finally:
        tmux("kill-server")
    place.rmdir()
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    console.print(Text.from_ansi(screen))
    console.save_svg(str(Path(__file__).with_name("run.svg")), title="tui-fs")


if __name__ == "__main__":
    main()
