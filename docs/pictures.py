"""Draw the screens from real sessions in tmux.

    python docs/pictures.py DIRECTORY             records docs/tour.svg
    python docs/pictures.py DIRECTORY --all OUT   draws every screen in every state

The second draws at five sizes and in each look, as OUT/STATE_SIZE_LOOK.svg and .txt, and one page
for each state, OUT/STATE.html, which shows them together. ``--look`` draws only some looks;
``--png`` also makes a PNG of each picture with Chromium.

It makes trees in DIRECTORY/web-application, opens tui-fs on them, presses keys, and confirms
deletions at a limited rate. The pictures are what tmux shows. It needs root, tmux, FUSE and an
installed tui-fs, and about ten minutes for each look.
"""

import argparse
import base64
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.terminal_theme import DEFAULT_TERMINAL_THEME, SVG_EXPORT_THEME, TerminalTheme
from rich.text import Text

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.chromium import running_browser
from tests.fuse.latency import served_late
from tui_fs.widgets.confirm_dialog import IGNORED_BY_ITSELF_S

PLACE = "web-application"
SIZES = ((80, 24), (120, 40), (200, 50), (60, 20), (40, 15))
TOUR_SIZE = (100, 24)
FILES, RATE = 20_000, 400
TOUR_FILES, TOUR_RATE = 120_000, 8_000
"""Files in the directory that is deleted, and how many are deleted each second."""
TOURED = [
    "browser", "findings", "preview", "options", "confirm", "run-1", "run-2", "run-4",
    "run-paused", "report",
]  # fmt: skip
SHOWN_S = {"report": 5.0}
"""How long the tour shows a screen, if not the usual time."""
USUAL_S = 2.6
ANSWER_MS = 60.0
"""Time in which the slow file system answers a request."""


@dataclass(frozen=True, slots=True)
class Look:
    """What a terminal can do, as its environment variables, and how its text is drawn."""

    environment: tuple[str, ...]
    options: tuple[str, ...] = ()
    theme: TerminalTheme = SVG_EXPORT_THEME


_TRUECOLOR = ("TERM=xterm-256color", "COLORTERM=truecolor")
LOOKS = {
    "dark": Look(_TRUECOLOR),
    "light": Look(_TRUECOLOR, ("--theme", "textual-light"), DEFAULT_TERMINAL_THEME),
    "ssh": Look(("TERM=xterm-256color",)),
    "ssh-light": Look(("TERM=xterm-256color",), ("--theme", "ansi-light"), DEFAULT_TERMINAL_THEME),
    "no-color": Look(("TERM=xterm-256color", "NO_COLOR=1")),
    "linux": Look(("TERM=linux",)),
}

Size = tuple[int, int]
"""Columns and lines."""
Frame = tuple[str, str]
"""The name of a screen, and what it shows, with its colours (ANSI)."""


class Session:
    """tui-fs in a terminal of tmux.

    Attributes:
        state: the directory with its jobs.

    Args:
        sizes: those of each picture; the terminal has the first.
        save: takes the size and the screen of each picture.
        options: arguments of tui-fs.
    """

    def __init__(
        self,
        look: str,
        sizes: Sequence[Size],
        save: Callable[[Size, Frame], None],
        state: Path,
        *options: str | Path,
    ) -> None:
        self._socket = f"tui-fs-pictures-{time.monotonic_ns()}"
        self._sizes = sizes
        self.state = state
        self._save = save
        program = str(Path(sys.executable).with_name("tui-fs"))
        variables = (
            *LOOKS[look].environment, "LANG=C.UTF-8", "ESCDELAY=1", f"XDG_STATE_HOME={state}",
        )  # fmt: skip
        columns, lines = map(str, sizes[0])
        self._tmux(
            "-f", "/dev/null", "new-session", "-d", "-x", columns, "-y", lines,
            "env", *variables, program, *(LOOKS[look].options if "fleet" not in options else ()),
            *map(str, options),
        )  # fmt: skip

    def close(self) -> None:
        """End the program and its terminal."""
        subprocess.run(["tmux", "-L", self._socket, "kill-server"], check=False)
        directory = os.environ.get("TMUX_TMPDIR", "/tmp")  # tmux leaves its socket there
        Path(directory, f"tmux-{os.getuid()}", self._socket).unlink(missing_ok=True)

    def text(self) -> str:
        """Return the screen without colours."""
        return self._tmux("capture-pane", "-p")

    def lines(self) -> list[str]:
        """Return the lines of the screen that are not empty, without colours."""
        return [line for line in self.text().splitlines() if line]

    def draw(self, name: str) -> None:
        """Take a picture at each size."""
        for size in self._sizes:
            if len(self._sizes) > 1:
                self._resize(size)
            self._settle(0.4)
            self._save(size, (name, self._tmux("capture-pane", "-e", "-N", "-p")))
        if len(self._sizes) > 1:
            self._resize(self._sizes[0])

    def _resize(self, size: Size) -> None:
        self._tmux("resize-window", "-x", str(size[0]), "-y", str(size[1]))

    def _settle(self, quiet_s: float) -> None:
        """Wait until the program has drawn nothing for a time; a running job is always drawn."""
        deadline_s = time.monotonic() + 3.0
        before, now = "", self._activity()
        while before != now and time.monotonic() < deadline_s:
            time.sleep(quiet_s)
            before, now = now, self._activity()

    def _activity(self) -> str:
        """Return what changes as long as the program draws: its screen, state and CPU time."""
        shell = int(self._tmux("display-message", "-p", "#{pane_pid}"))
        (program,) = Path(f"/proc/{shell}/task/{shell}/children").read_text().split()[:1]
        fields = Path(f"/proc/{program}/stat").read_text().rpartition(")")[2].split()
        is_running = f"{time.monotonic()}" if fields[0] == "R" else ""
        return f"{self.text()} {fields[11:13]} {is_running}"

    def press(self, *keys: str) -> None:
        """Press keys, by the names that tmux gives them."""
        for key in keys:
            self._tmux("send-keys", key)
            self._settle(0.1)  # a field must have the focus before the next

    def press_until(self, is_over: Callable[[str], bool], *keys: str) -> None:
        """Press keys, and the last one again while a dialog ignores it as too early."""
        self.press(*keys)
        while not is_over(self.text()):
            self.press(keys[-1])

    def type(self, text: str) -> None:
        """Type a text as it is."""
        self._tmux("send-keys", "-l", text)
        self._settle(0.1)

    def wait_for(self, words: str | tuple[str, ...], timeout_s: float = 60.0) -> None:
        """Wait until the screen shows some words, or one of several."""
        several = (words,) if isinstance(words, str) else words
        deadline_s = time.monotonic() + timeout_s
        while not any(each in self.text() for each in several):
            if time.monotonic() > deadline_s:
                sys.exit(f"not within {timeout_s:.0f} s: {words!r}\n{self.text()}")
            time.sleep(0.1)

    def go_to(self, name: str) -> None:
        """Move the cursor to a row that contains a name."""
        self.press("g")
        before = ""
        while not any(line[:1] in "›►" and f" {name}" in line for line in self.lines()):
            at_end, before = self.text() == before, self.text()  # or passed in a slow redraw
            self.press("g" if at_end else "Down")

    def newest_supervisor(self) -> int:
        """Return the process of the job that was started last."""
        folders = list((self.state / "tui-fs" / "jobs").iterdir())
        newest = max(folders, key=lambda folder: (folder / "plan.json").stat().st_mtime)
        with (newest / "events.jsonl").open() as journal:
            return int(json.loads(journal.readline())["supervisor_pid"])

    def _tmux(self, *arguments: str) -> str:
        done = subprocess.run(
            ["tmux", "-L", self._socket, *arguments], capture_output=True, text=True, check=True
        )
        return done.stdout


def make_trees(place: Path, files: int) -> None:
    """Create what a server has too much of: sessions, mails, modules, logs."""
    for number in range(200):
        directory = place / "sessions" / f"{number:04}"
        directory.mkdir(parents=True)
        for name in range(files // 200):
            (directory / f"sess_{name:04}").touch()
    (place / "maildrop").mkdir()
    for number in range(files // 4):
        (place / "maildrop" / f"{number:06X}").touch()
    for application in ("shop", "intranet", "wiki"):
        for package in range(40):
            directory = place / application / "node_modules" / f"package-{package:02}" / "lib"
            directory.mkdir(parents=True)
            for name in range(12):
                (directory / f"module-{name}.js").write_bytes(b"x" * 3_000)
    (place / "log").mkdir()
    for number in range(60):
        file = place / "log" / f"access.{number}.log"
        file.write_bytes(b"x" * 400_000)
        written_s = time.time() - 7 * 86_400 * number
        os.utime(file, (written_s, written_s))
    (place / "log" / "two\nlines").touch()
    with (place / "log" / "core").open("wb") as core:
        core.truncate(20 << 30)
    deep = place / "backup"
    for _ in range(150):
        deep /= "copy"
    deep.mkdir(parents=True)
    for name in range(3_000):
        (place / "upload").mkdir(exist_ok=True)
        (place / "upload" / f"part-{name:04}.tmp").touch()
    (place / "empty").mkdir()
    subprocess.run(["sync", "--file-system", str(place)], check=True)


@contextmanager
def obstacles(place: Path) -> Iterator[None]:
    """Add a mount point, and files that even root cannot delete."""
    mount_point = place / "chroot" / "proc"
    mount_point.mkdir(parents=True)
    kept = [str(file) for file in sorted((place / "upload").iterdir())[:1_200:100]]
    subprocess.run(["mount", "-t", "tmpfs", "none", str(mount_point)], check=True)
    subprocess.run(["chattr", "+i", *kept], check=True)
    try:
        yield
    finally:
        subprocess.run(["chattr", "-i", *filter(os.path.exists, kept)], check=True)
        subprocess.run(["umount", str(mount_point)], check=True)


def help_of(session: Session, name: str) -> None:
    """Draw a screen and its help."""
    session.draw(name)
    session.press("?")
    session.draw(f"{name}-help")
    session.press("Escape")


def walk(session: Session) -> None:
    """Walk through the screens that delete nothing, from the browser and back to it."""
    session.go_to("sessions/")
    help_of(session, "browser")
    session.press("C-p")
    session.draw("palette")
    session.press("Escape")
    session.go_to("log/")
    session.draw("browser-ages")
    session.press("Enter")
    session.wait_for("access.0")
    session.draw("browser-files")
    session.press("Left")
    session.go_to("empty/")
    session.press("Enter")
    session.draw("browser-empty")
    session.press("Left", "4")
    session.draw("browser-by-age")
    session.press("2")
    session.draw("browser-by-entries")
    session.press("1", "T")
    help_of(session, "treemap")
    session.press("T", "Tab")
    help_of(session, "findings")
    session.press("Escape", "b")
    session.wait_for("allocated")
    help_of(session, "ranking")
    session.press("Escape", "B")
    session.wait_for("core")
    help_of(session, "largest-files")
    session.press("Escape", "/")
    session.draw("search-field")
    session.type("node_modules")
    session.press("Enter")
    session.wait_for("complete")
    help_of(session, "search")
    session.press("Escape", "/")
    session.type("nothing-like-it")
    session.press("Enter")
    session.wait_for("0 matches")
    session.draw("search-nothing")
    session.press("Escape", "g", "Space", "Space")
    session.draw("marked")
    session.press("M")
    help_of(session, "marks")
    session.press("Escape", "u", ":")
    session.draw("path-field")
    session.press("Escape", "e")
    session.draw("page-dialog")
    session.press("C-u")
    session.type(f"{session.state}.html")
    session.press("Enter")
    session.wait_for("is written")
    session.draw("page-written")
    Path(f"{session.state}.html").unlink()
    for key, name, words in (
        ("a", "maintenance", "what it does"),
        ("J", "jobs-none", "no jobs yet"),
        ("I", "this-machine", "GNU coreutils"),
        ("F", "start", "file system"),
    ):
        session.press(key)
        session.wait_for(words)
        help_of(session, name)
        if key == "a":
            session.press("Down", "Enter")
            session.wait_for("Set aside?")
            session.draw("maintenance-confirm")
            session.press("Escape")
        session.press("Escape")
    session.press("F", "Tab")
    session.draw("start-directories")
    session.press(":")
    session.draw("start-path")


def previews(session: Session) -> None:
    """Preview what has several targets, a filter, or cannot be deleted."""
    session.press("g", "Space", "Space", "d")
    session.wait_for("counted")
    session.draw("preview-targets")
    session.press("Enter")
    session.wait_for("permanently")
    session.draw("confirm-targets")
    session.press("Escape", "Escape", "u", "f")
    session.draw("filter-field")
    session.type("*.log >100k >30d")
    session.press("Enter")
    session.wait_for("matches")
    session.draw("filter")
    session.press("D")
    session.wait_for("Refused")
    session.draw("preview-filter-refused")
    session.press("Escape")
    session.go_to("log/")
    session.press("d")
    session.wait_for("counted")
    session.draw("preview-filter")
    session.press("Escape", "Escape", "f")
    session.type(">z")
    session.press("Enter")
    session.draw("filter-wrong")
    session.press("Escape", "Escape")
    session.go_to("log/")
    session.press("Enter")
    session.wait_for("access.0")
    session.press("d")
    session.wait_for("counted")
    session.draw("preview-file")
    session.press("Escape", "Left")
    session.go_to("chroot/")
    session.press("d")
    session.wait_for("mount")
    session.draw("preview-refused")
    session.press("Escape")
    session.go_to("empty/")
    session.press("d")
    session.wait_for("counted")
    session.draw("preview-empty")
    session.press("Enter")
    session.wait_for("permanently")
    session.draw("confirm-small")


def lab(session: Session) -> None:
    """Run an experiment."""
    session.press("L")
    session.wait_for("experiments")
    help_of(session, "lab")
    session.go_to("zero-fill")
    session.press("Enter")
    session.wait_for("enter runs")
    session.draw("lab-question")
    session.press("Enter")
    session.draw("lab-running")
    session.wait_for("claims", 180)
    for page in range(1, 5):
        session.press(str(page))
        session.draw(f"lab-result-{page}")
    session.press("?")
    session.draw("lab-result-help")
    session.press("Escape", "Escape", "Enter")
    session.wait_for("enter runs")
    session.press_until(lambda screen: "running zero-fill" in screen, "Enter")
    session.press("c")
    session.draw("lab-cancel")
    session.press("Escape")
    session.wait_for("claims", 180)
    session.press("Escape", "v")
    session.wait_for("began")
    help_of(session, "lab-runs")
    session.press("Space", "Space", "=")
    session.wait_for("comparison of")
    session.draw("lab-comparison")


def preview(session: Session, name: str, rate: int) -> None:
    """Open the preview of an entry, and set a rate."""
    session.go_to(f"{name}/")
    session.press("d")
    session.wait_for("counted\n")
    help_of(session, "preview")
    session.press("m")
    session.draw("preview-calls")
    session.press("Escape", "o")
    session.wait_for("options")
    session.press(*["Tab"] * 5)
    session.type(str(rate))
    session.draw("options")
    session.press("Enter")
    session.wait_for(f"limit {rate:,} /s")
    session.draw("preview-throttled")


def confirm(session: Session, name: str) -> None:
    """Confirm a preview; a large directory by its name."""
    session.press("Enter")
    session.wait_for("permanently")
    if "to confirm" in session.text():
        session.type(name)
        session.draw("confirm")
    else:
        session.press("BTab")  # to Delete, even if no answer has the focus yet
        session.draw("confirm-small")
    session.press_until(lambda screen: "permanently" not in screen, "Enter")


def deletion(session: Session, rate: int = RATE) -> None:
    """Delete a directory at a limited rate, from its preview to its report."""
    preview(session, "sessions", rate)
    confirm(session, "sessions")
    if rate == TOUR_RATE:
        for second in (1, 2, 4):
            session.wait_for(tuple(f"elapsed 0:{later:02}" for later in range(second, 60)))
            session.draw(f"run-{second}")
    else:
        session.wait_for("elapsed")
        session.draw("run")
    session.press("p")
    session.wait_for("PAUSED")
    help_of(session, "run-paused")
    session.press("c")
    session.draw("run-cancel")
    session.press("Escape", "Enter")
    session.draw("run-call")
    session.press("Escape", "q")
    session.draw("browser-job")
    session.press("J")
    session.wait_for("paused")
    help_of(session, "jobs-paused")
    session.press("Enter")
    session.wait_for("PAUSED")
    session.press("p")
    session.wait_for("DONE")
    help_of(session, "report")


def engine(session: Session) -> None:
    """Delete with the engine."""
    session.go_to("intranet/")
    session.press("d")
    session.wait_for("counted\n")
    session.go_to("parallel")
    session.draw("preview-parallel")
    session.press("o", *["Tab"] * 5)
    session.type("15")
    session.press("Enter")
    session.wait_for("limit 15 /s")
    confirm(session, "intranet")
    session.wait_for("elapsed")
    session.draw("run-engine")
    session.press("n", "t")
    session.draw("run-pace")
    session.wait_for("DONE")
    session.draw("report-engine")


def refusal(session: Session) -> None:
    """Confirm the deletion of a directory that is replaced meanwhile."""
    session.go_to("empty/")
    session.press("d")
    session.wait_for("counted")
    empty = session.state.with_name(PLACE) / "empty"
    session.press("Enter")
    session.wait_for("permanently")
    empty.rename(f"{empty}.old")
    empty.mkdir()
    session.press("BTab")
    session.press_until(lambda screen: "permanently" not in screen, "Enter")
    session.wait_for("nothing was deleted")
    session.draw("refused")


def failures(session: Session) -> None:
    """Delete what cannot be deleted completely."""
    preview(session, "upload", 60)
    confirm(session, "upload")
    session.wait_for("failed")
    session.draw("run-failing")
    session.press("x")
    session.draw("run-errors")
    session.press("Escape")
    session.wait_for("report")
    help_of(session, "report-failures")
    session.press("x")
    session.draw("report-errors")


def cancellation(session: Session) -> None:
    """Cancel a deletion."""
    preview(session, "maildrop", 100)
    confirm(session, "maildrop")
    session.wait_for("failed")
    session.press("z", "t", "n")
    session.draw("run-gentle")
    supervisor = session.newest_supervisor()
    children = Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()
    for pid in map(int, children):  # else the job ends before a picture is taken
        os.kill(pid, signal.SIGSTOP)
    session.press("c", "BTab", "Enter")
    session.wait_for("cancelling")
    session.draw("run-cancelling")
    for pid in map(int, children):
        os.kill(pid, signal.SIGCONT)
    session.wait_for("CANCELLED")
    session.draw("report-cancelled")


def death(session: Session) -> None:
    """Kill the supervisor of a deletion, and compare two jobs."""
    preview(session, "maildrop", 100)
    confirm(session, "maildrop")
    session.wait_for("failed")
    os.kill(session.newest_supervisor(), signal.SIGKILL)
    session.wait_for("DIED")
    session.draw("report-died")
    session.press("p")
    session.wait_for("counted\n")
    session.draw("preview-resume")
    session.press("Escape", "Escape", "J")
    session.wait_for("ended")
    session.draw("jobs")
    session.press("g", "Space", "Space", "=")
    help_of(session, "comparison")


def slow(session: Session) -> None:
    """Count and preview on a file system that answers late."""
    session.wait_for("counting")
    session.draw("counting")
    session.press("p")
    session.draw("counting-paused")
    session.press("p")
    session.go_to("wiki/")
    session.press("d")
    session.wait_for("counting")
    session.draw("preview-slow-counting")
    session.wait_for("counted", 120)
    session.draw("preview-slow")
    session.press("Escape")
    session.go_to("maildrop/")
    session.press("d")
    session.wait_for("counting")
    session.press_until(lambda screen: "permanently" in screen, "Enter")
    session.type("maildrop")
    session.draw("confirm-uncounted")
    session.press_until(lambda screen: "permanently" not in screen, "Enter")
    session.wait_for("elapsed")
    session.draw("run-starting")
    session.press("c", "BTab", "Enter")
    session.wait_for("CANCELLED", 120)


def many_hosts(session: Session) -> None:
    """Delete on three hosts of six, one of which cannot be reached; the first one alone."""
    session.wait_for("5 counted")
    help_of(session, "fleet")
    session.press("f")
    session.draw("fleet-filter")
    session.press("Escape")
    session.go_to("web2")
    session.press("Enter")
    session.wait_for("read-only")
    session.draw("fleet-browse")
    session.press("Left")
    session.press("Space", "Space", "Space")
    session.draw("fleet-marked")
    session.press("d")
    session.wait_for("3 of 3 hosts answered")
    help_of(session, "fleet-preview")
    session.press("Enter")
    session.wait_for("Delete on 3 hosts?")
    session.type(f"3 {PLACE}")
    session.draw("fleet-confirm")
    session.press("Enter")
    session.wait_for("deleting")
    session.draw("fleet-first")
    session.wait_for("Continue on the 2 other hosts?")
    session.draw("fleet-continue")
    time.sleep(IGNORED_BY_ITSELF_S)
    session.press_until(lambda screen: "2 other hosts?" not in screen, "Right", "Enter")
    session.wait_for("1 of 3 hosts done")
    session.draw("fleet-running")
    session.wait_for(("3 of 3 hosts done", "2 of 3 hosts done, 1 failed"), 120)
    session.draw("fleet-report")


def read_only(session: Session) -> None:
    """Look at what read-only mode says."""
    session.draw("browser-read-only")
    session.go_to("wiki/")
    session.press("d")
    session.wait_for("counted")
    session.draw("preview-read-only")


def slow_link(session: Session) -> None:
    """Watch a deletion that is redrawn once a second."""
    session.go_to("wiki/")
    session.press("d")
    session.wait_for("counted")
    session.press("o", *["Tab"] * 5)
    session.type("8")
    session.press("Enter")
    confirm(session, "wiki")
    session.wait_for("failed")
    session.draw("run-slow-link")
    session.press("q")
    session.go_to("shop/")
    session.press("F")
    session.wait_for("1 job is running")
    session.draw("start-jobs")
    session.press("J")
    session.wait_for("1 running")
    session.press("Enter")
    session.wait_for("elapsed")
    session.press("c", "BTab", "Enter")
    session.wait_for("CANCELLED")


JOURNEYS: dict[str, tuple[Callable[[Session], None], tuple[str, ...]]] = {
    "walk": (walk, ()),
    "previews": (previews, ()),
    "lab": (lab, ()),
    "deletion": (deletion, ()),
    "engine": (engine, ()),
    "refusal": (refusal, ()),
    "failures": (failures, ()),
    "cancellation": (cancellation, ()),
    "death": (death, ()),
    "slow": (slow, ()),
    "fleet": (many_hosts, ()),
    "read-only": (read_only, ("--read-only",)),
    "slow-link": (slow_link, ("--slow-link",)),
}
"""What is done in a session, and the options of the program."""


_SSH = """#!/bin/sh
while case $1 in -*) true ;; *) false ;; esac; do shift; done
[ "$1" != web1 ] || { echo "ssh: connect to host web1 port 22: Connection refused" >&2; exit 255; }
export XDG_STATE_HOME=SCRATCH/state PATH=BIN:"$PATH"
command=$(printf %s "$2" | sed 's/delete --yes/delete --yes --rate=1000/')
exec unshare -m sh -c "mount --bind SCRATCH/hosts/$1 SCRATCH && cd / && $command"
"""
"""Stands in for ssh: each host has a directory of its own in the place of SCRATCH, and deletes
slowly. The program sends a line that any shell reads; most letters in it are as they are."""


@contextmanager
def hosts(scratch: Path) -> Iterator[tuple[str, ...]]:
    """Make six hosts; yield the options that open their screen."""
    directory, script = scratch / "hosts", scratch / "ssh"
    for number in range(1, 7):
        make_hosts_tree(directory / f"web{number}", number)
    binary = str(Path(sys.executable).parent)
    script.write_text(_SSH.replace("SCRATCH", str(scratch)).replace("BIN", binary))
    script.chmod(0o755)
    try:
        yield ("fleet", "open", "--ssh", str(script), "web[1-6]")
    finally:
        shutil.rmtree(directory)


def make_hosts_tree(host: Path, number: int) -> None:
    """Create the directory of a host."""
    for part in range(10):
        directory = host / PLACE / "sessions" / str(part)
        directory.mkdir(parents=True)
        for name in range(120 * number):
            (directory / f"sess_{name:04}").write_bytes(b"x" * 500)


@contextmanager
def scene(scratch: Path, files: int) -> Iterator[Path]:
    """Make the trees; at the end remove them, the jobs and the empty mount point."""
    place = scratch / PLACE
    place.mkdir(parents=True)
    try:
        make_trees(place, files)
        yield place
    finally:
        shutil.rmtree(place)
        shutil.rmtree(scratch / "state", ignore_errors=True)
        if (scratch / "server").exists():
            (scratch / "server").rmdir()


@contextmanager
def opened(
    path: Path,
    look: str,
    sizes: Sequence[Size],
    save: Callable[[Size, Frame], None],
    options: tuple[str, ...] = (),
) -> Iterator[Session]:
    """Open tui-fs on a directory; end it at the end."""
    session = Session(look, sizes, save, path.parent / "state", *options, path)
    try:
        if path.name == PLACE and "fleet" not in options:
            session.wait_for("complete")
        yield session
    finally:
        session.close()


def recorded(frame: Frame, size: Size) -> Console:
    """Return a console that has printed a screen."""
    console = Console(record=True, width=size[0], file=io.StringIO())
    console.print(Text.from_ansi(frame[1]), end="")
    return console


def svg(frame: Frame, size: Size, look: str) -> str:
    """Return the picture of a screen."""
    theme = LOOKS[look].theme
    return recorded(frame, size).export_svg(title="tui-fs", theme=theme, unique_id=frame[0])


def tour(frames: list[Frame], size: Size) -> str:
    """Return one picture that shows some screens in turn, without end.

    Where motion is not wanted, it shows the last of them.
    """
    layout = (
        '<g class="screen" id="{unique_id}" transform="translate({terminal_x}, {terminal_y})">'
        "<style>{styles}</style><defs>{lines}</defs>{backgrounds}"
        '<g class="{unique_id}-matrix">{matrix}</g></g>'
    )
    total_s = sum(SHOWN_S.get(name, USUAL_S) for name, _ in frames)
    groups, rules, begin_s = [], [], 0.0
    for name, screen in frames:
        end_s = begin_s + SHOWN_S.get(name, USUAL_S)
        begin, end = 100 * begin_s / total_s, 100 * end_s / total_s
        rules.append(
            f"@keyframes {name} {{ 0%, {begin:.2f}%, {end:.2f}%, 100% {{ visibility: hidden }} "
            f"{begin + 0.01:.2f}%, {end - 0.01:.2f}% {{ visibility: visible }} }} "
            f"#{name} {{ animation: {name} {total_s:.1f}s step-end infinite }}"
        )
        console = recorded((name, screen), size)
        groups.append(console.export_svg(code_format=layout, unique_id=name))
        begin_s = end_s
    layout = "{width} {height} {char_height} {chrome}"
    whole = recorded(frames[0], size).export_svg(title="tui-fs", code_format=layout)
    width, height, char_height, chrome = whole.split(" ", 3)
    still = f"#{frames[-1][0]} {{ visibility: visible }}"
    return (
        f'<svg class="rich-terminal" viewBox="0 0 {width} {height}" '
        'xmlns="http://www.w3.org/2000/svg"><style>'
        f"text {{ font: {char_height}px/1.2 'Fira Code', 'DejaVu Sans Mono', monospace }}"
        ".screen { visibility: hidden }"
        f"@media (prefers-reduced-motion: reduce) {{ {still} }}"
        f"@media (prefers-reduced-motion: no-preference) {{ {' '.join(rules)} }}"
        f"</style>{chrome}{''.join(groups)}</svg>\n"
    )


def record_tour(scratch: Path) -> None:
    """Record the tour of the documentation."""
    frames: list[Frame] = []

    def save(_: Size, frame: Frame) -> None:
        if frame[0] in TOURED:
            frames.append(frame)

    with (
        scene(scratch, TOUR_FILES) as place,
        opened(place, "dark", (TOUR_SIZE,), save) as session,
    ):
        session.go_to("sessions/")
        session.draw("browser")
        session.press("Tab")
        session.draw("findings")
        session.press("Escape")
        deletion(session, TOUR_RATE)
    Path(__file__).with_name("tour.svg").write_text(tour(frames, TOUR_SIZE))


def draw_look(
    scratch: Path, place: Path, look: str, sizes: Sequence[Size], names: Sequence[str]
) -> None:
    """Draw every screen of some journeys at some sizes in one look."""

    def save(size: Size, frame: Frame) -> None:
        file = place / f"{frame[0]}_{size[0]}x{size[1]}_{look}"
        file.with_suffix(".svg").write_text(svg(frame, size, look))
        file.with_suffix(".txt").write_text(Text.from_ansi(frame[1]).plain)

    with scene(scratch, FILES) as path, obstacles(path):
        for name in names:
            journey, options = JOURNEYS[name]
            if journey is many_hosts and LOOKS[look].options:
                with opened(path, look, sizes, save):
                    pass  # stores the theme, which the command of the hosts does not take
            with ExitStack() as stack:
                if journey is many_hosts:
                    options = stack.enter_context(hosts(path.parent))
                if journey is slow:
                    late = served_late(path, scratch / "server", ANSWER_MS)
                    path_shown = stack.enter_context(late)
                else:
                    path_shown = path
                session = stack.enter_context(opened(path_shown, look, sizes, save, options))
                journey(session)


def draw_sheets(place: Path) -> None:
    """Write a page for each state that shows all its pictures, and a list of these pages."""
    states: dict[str, list[str]] = {}
    for picture in sorted(place.glob("*_*_*.svg")):
        states.setdefault(picture.name.split("_")[0], []).append(picture.stem)
    for state, pictures in states.items():
        figures = "".join(
            f'<figure><figcaption>{name}</figcaption><a href="{name}.svg">'
            f'<img src="{name}.svg" width="{8 * int(name.split("_")[1].partition("x")[0])}">'
            "</a></figure>"
            for name in pictures
        )
        style = "<style>figure { display: inline-block; margin: 4px; vertical-align: top }</style>"
        (place / f"{state}.html").write_text(
            f"<!doctype html><title>{state}</title>{style}{figures}"
        )
    links = "".join(
        f'<p><a href="{state}.html">{state}</a> {len(states[state])}' for state in states
    )
    (place / "index.html").write_text(f"<!doctype html><title>tui-fs</title>{links}")


def draw_png(place: Path) -> None:
    """Draw each picture as PNG, as Chromium shows it."""
    with TemporaryDirectory() as profile, running_browser(Path(profile)) as browser:
        for picture in sorted(place.glob("*_*_*.svg")):
            width, height = picture.read_text().split('viewBox="0 0 ')[1].split('"')[0].split()
            browser.open(picture, round(float(width)), round(float(height)))
            data = browser.ask("Page.captureScreenshot")["data"]
            picture.with_suffix(".png").write_bytes(base64.b64decode(data))


def main() -> None:
    """Draw what is asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("scratch", metavar="DIRECTORY", type=Path)
    parser.add_argument("--all", metavar="OUT", type=Path)
    parser.add_argument("--look", action="append", choices=LOOKS, help="default: every look")
    parser.add_argument("--journey", action="append", choices=JOURNEYS, help="default: all")
    parser.add_argument("--sizes", type=int, default=len(SIZES), help="only the first of them")
    parser.add_argument("--png", action="store_true")
    parsed = parser.parse_args()
    if parsed.all is None:
        record_tour(parsed.scratch)
        return
    parsed.all.mkdir(exist_ok=True)
    for look in parsed.look or LOOKS:
        sizes, names = SIZES[: parsed.sizes], parsed.journey or list(JOURNEYS)
        draw_look(parsed.scratch / look, parsed.all, look, sizes, names)
    draw_sheets(parsed.all)
    if parsed.png:
        draw_png(parsed.all)


if __name__ == "__main__":
    main()
