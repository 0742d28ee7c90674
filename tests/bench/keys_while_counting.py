"""Measure the browser's latency for a key while it counts.

    python -m tests.bench.keys_while_counting --dir DIR --build
    python -m tests.bench.keys_while_counting --dir DIR [--keys N] [--columns C] [--lines L]

The first makes the tree in DIR, which must be empty, and ends: 100,000 subdirectories in `many`,
and 900 directories of 1,000 files each. It needs about 1,000,000 inodes.

The second opens the real program on DIR in a pseudo-terminal, sorts by name (so that rows stay
where they are), and presses down and up while the program counts and, if it finishes first,
afterwards. Prints the time from the key to the cursor being drawn on another line: median, 95th
percentile and longest, for both. --inside NAME enters that directory first; `many` is one.
"""

import argparse
import fcntl
import os
import pty
import re
import select
import signal
import statistics
import struct
import sys
import sysconfig
import tempfile
import termios
import time
from pathlib import Path

CURSOR = "›"
DEADLINE_S = 60.0
SUBDIRECTORIES = 100_000
DIRECTORIES, FILES_EACH = 900, 1_000
_TOKEN = re.compile(r"\x1b\[(\d+);(\d+)H|\x1b\[[0-9;?<>=]*[a-zA-Z]|\x1b[^\[]|[^\x1b]+")


class Screen:
    """The part of the drawn screen that matters here."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._rest = b""
        self._line = 0
        self.cursor_line = -1
        self.bytes_read = 0
        self.text = ""

    def read(self, timeout_s: float) -> bool:
        """Read what was drawn; return whether there was anything."""
        ready, _, _ = select.select([self._descriptor], [], [], timeout_s)
        if not ready:
            return False
        drawn = os.read(self._descriptor, 1 << 16)
        self.bytes_read += len(drawn)
        data = self._rest + drawn
        cut = data.rfind(b"\x1b")  # a sequence may have come in part
        whole, self._rest = (data[:cut], data[cut:]) if cut > len(data) - 16 else (data, b"")
        for token in _TOKEN.finditer(whole.decode("utf-8", "ignore")):
            if token[1]:
                self._line = int(token[1])
            elif not token[0].startswith("\x1b"):
                self.text = (self.text + token[0])[-20_000:]
                if CURSOR in token[0]:
                    self.cursor_line = self._line
        return True

    def wait_for(self, words: str) -> None:
        """Read until some words were drawn."""
        end = time.monotonic() + DEADLINE_S
        while words not in self.text:
            assert time.monotonic() < end, f"{words!r} never appeared"
            self.read(0.1)

    def forget(self) -> None:
        """Forget what was drawn."""
        self.text = ""


def build(place: Path) -> None:
    """Make the tree to count in an empty directory."""
    if any(place.iterdir()):
        sys.exit(f"{place} is not empty; the tree is made only in an empty directory")
    for number in range(SUBDIRECTORIES):
        (place / "many" / f"sub-{number:06}").mkdir(parents=number == 0)
    for directory in range(DIRECTORIES):
        path = place / f"dir-{directory:03}"
        path.mkdir()
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        for number in range(FILES_EACH):
            os.close(os.open(f"file-{number}", os.O_CREAT | os.O_WRONLY, dir_fd=descriptor))
        os.close(descriptor)
    os.sync()


def start(
    arguments: tuple[str, ...], columns: int, lines: int, state: str, colours: str = ""
) -> tuple[int, int]:
    """Start the program in a terminal; return its process and the terminal."""
    program = Path(sysconfig.get_path("scripts")) / "tui-fs"
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm-256color", LANG="C.UTF-8", XDG_STATE_HOME=state)
        os.environ["COLORTERM"] = colours
        time.sleep(0.2)  # until the terminal has its size
        os.execv(program, [str(program), *arguments])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    return pid, terminal


def press(screen: Screen, terminal: int, key: bytes) -> float | None:
    """Press a key; return the seconds until the cursor is on another line, None if never."""
    while screen.read(0):
        pass
    before = screen.cursor_line
    began = time.monotonic()
    os.write(terminal, key)
    while time.monotonic() < began + DEADLINE_S:
        screen.read(0.05)
        if screen.cursor_line != before:
            return time.monotonic() - began
    return None


def summary(moment: str, delays_s: list[float]) -> str:
    """Return the figures in words."""
    if not delays_s:
        return f"{moment}: no key was pressed"
    ordered = sorted(delays_s)
    high = ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]
    return (
        f"{moment}: {len(delays_s)} keys, median {statistics.median(delays_s) * 1e3:.0f} ms, "
        f"95 % {high * 1e3:.0f} ms, longest {ordered[-1] * 1e3:.0f} ms"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dir", required=True, help="the directory to open")
    parser.add_argument("--keys", type=int, default=300)
    parser.add_argument("--columns", type=int, default=80)
    parser.add_argument("--lines", type=int, default=24)
    parser.add_argument("--inside", default="")
    parser.add_argument("--pace", type=float, default=0.05, help="seconds between two keys")
    parser.add_argument("--build", action="store_true", help="make the tree, then end")
    asked = parser.parse_args()
    if asked.build:
        build(Path(asked.dir))
        return
    with tempfile.TemporaryDirectory() as state:
        pid, terminal = start((asked.dir,), asked.columns, asked.lines, state)
        try:
            measure(Screen(terminal), terminal, asked)
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def measure(screen: Screen, terminal: int, asked: argparse.Namespace) -> None:
    """Press the keys and print how long each took."""
    began = time.monotonic()
    screen.wait_for(CURSOR)
    print(f"first rows after {time.monotonic() - began:.2f} s")
    if asked.inside:
        inside = os.path.join(asked.dir, asked.inside)
        begin_of_names = os.listdir(inside)[0][:3]
        entered = time.monotonic()
        os.write(terminal, b":" + os.fsencode(inside) + b"\r")
        screen.wait_for(f"/{asked.inside} ")
        screen.forget()
        screen.wait_for(begin_of_names)
        print(f"rows of {asked.inside} {time.monotonic() - entered:.2f} s after entering it")
    screen.forget()
    os.write(terminal, b"6")  # by name
    screen.wait_for("▲")
    while_counting: list[float] = []
    afterwards: list[float] = []
    for number in range(asked.keys):
        delays = afterwards if "complete" in screen.text else while_counting
        delay = press(screen, terminal, b"j" if number % 2 == 0 else b"k")
        assert delay is not None, "a key was never answered"
        delays.append(delay)
        end = time.monotonic() + asked.pace
        while (left := end - time.monotonic()) > 0:
            screen.read(left)
    print(summary("while counting", while_counting))
    print(summary("when counted", afterwards))


if __name__ == "__main__":
    main()
