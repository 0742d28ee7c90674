"""Draw the screens from real sessions in tmux.

    python docs/pictures.py DIRECTORY             records docs/tour.svg
    python docs/pictures.py DIRECTORY --all OUT   draws every screen as OUT/LOOK-SIZE-SCREEN.svg

It makes trees in DIRECTORY/web-application, opens tui-fs on them, presses keys, and confirms a
deletion at a limited rate. The pictures are what tmux shows. It needs root, tmux and an installed
tui-fs, and about three minutes for the second.
"""

import argparse
import io
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import DEFAULT_TERMINAL_THEME, SVG_EXPORT_THEME, TerminalTheme
from rich.text import Text

SOCKET = "tui-fs-pictures"
PLACE = "web-application"
TARGET = Path(PLACE, "sessions")
SIZES = ((80, 24), (120, 40), (200, 50))
TOUR_SIZE = (100, 24)
RATE = "20000"
FILES = 120_000
TOURED = ["preview", "options", "confirm", "run-1", "run-2", "run-4", "run-paused", "report"]
SHOWN_S = {"report": 5.0}
"""How long the tour shows a screen, if not the usual time."""
USUAL_S = 2.6


@dataclass(frozen=True, slots=True)
class Look:
    """What a terminal can do, as its environment variables, and how its text is drawn."""

    environment: tuple[str, ...]
    options: tuple[str, ...] = ()
    theme: TerminalTheme = SVG_EXPORT_THEME


LOOKS = {
    "dark": Look(("TERM=xterm-256color", "COLORTERM=truecolor")),
    "ssh": Look(("TERM=xterm-256color",)),
    "light": Look(("TERM=xterm-256color",), ("--theme", "ansi-light"), DEFAULT_TERMINAL_THEME),
    "no-color": Look(("TERM=xterm-256color", "NO_COLOR=1")),
    "linux": Look(("TERM=linux",)),
}

Frame = tuple[str, str]
"""The name of a screen, and what it shows, with its colours (ANSI)."""


class Session:
    """tui-fs in a terminal of tmux."""

    def __init__(self, look: Look, size: tuple[int, int], path: Path, state: Path) -> None:
        program = str(Path(sys.executable).with_name("tui-fs"))
        variables = (*look.environment, "LANG=C.UTF-8", f"XDG_STATE_HOME={state}")
        columns, lines = map(str, size)
        self._tmux(
            "-f", "/dev/null", "new-session", "-d", "-x", columns, "-y", lines,
            "env", *variables, program, *look.options, str(path),
        )  # fmt: skip

    def text(self) -> str:
        """Return the screen without colours."""
        return self._tmux("capture-pane", "-p")

    def lines(self) -> list[str]:
        """Return the lines of the screen that are not empty, without colours."""
        return [line for line in self.text().splitlines() if line]

    def frame(self, name: str) -> Frame:
        """Return the screen under a name."""
        return name, self._tmux("capture-pane", "-e", "-N", "-p")

    def press(self, *keys: str) -> None:
        """Press keys, by the names that tmux gives them."""
        for key in keys:
            self._tmux("send-keys", key)
            time.sleep(0.5)  # a field must have the focus, and an escape be over, before the next

    def type(self, text: str) -> None:
        """Type a text as it is."""
        self._tmux("send-keys", "-l", text)
        time.sleep(0.5)

    def wait_for(self, words: str, timeout_s: float = 60.0) -> None:
        """Wait until the screen shows some words."""
        deadline_s = time.monotonic() + timeout_s
        while words not in self.text():
            if time.monotonic() > deadline_s:
                sys.exit(f"not within {timeout_s:.0f} s: {words!r}\n{self.text()}")
            time.sleep(0.1)

    def _tmux(self, *arguments: str) -> str:
        done = subprocess.run(
            ["tmux", "-L", SOCKET, *arguments], capture_output=True, text=True, check=True
        )
        return done.stdout


def make_trees(place: Path) -> None:
    """Create what a server has too much of: sessions, mails, modules, logs."""
    for number in range(1_000):
        directory = place / "sessions" / f"{number:04}"
        directory.mkdir(parents=True)
        for name in range(FILES // 1_000):
            (directory / f"sess_{name:04}").touch()
    (place / "maildrop").mkdir()
    for number in range(30_000):
        (place / "maildrop" / f"{number:06X}").touch()
    for application in ("shop", "intranet", "wiki"):
        for package in range(40):
            directory = place / application / "node_modules" / f"package-{package:02}" / "lib"
            directory.mkdir(parents=True)
            for name in range(12):
                (directory / f"module-{name}.js").write_bytes(b"x" * 3_000)
    (place / "log").mkdir()
    for number in range(60):
        (place / "log" / f"access.{number}.log").write_bytes(b"x" * 400_000)
    (place / "log" / "two\nlines").touch()
    with (place / "log" / "core").open("wb") as core:
        core.truncate(20 << 30)
    deep = place / "backup"
    for _ in range(150):
        deep /= "copy"
    deep.mkdir(parents=True)
    subprocess.run(["sync", "--file-system", str(place)], check=True)


def walk(session: Session) -> Iterator[Frame]:
    """Walk through all screens that delete nothing, from the browser and back to it."""
    session.wait_for("complete")
    yield session.frame("browser")
    session.press("?")
    yield session.frame("browser-help")
    session.press("Escape")
    session.press("Tab")
    yield session.frame("findings")
    session.press("Escape")
    session.press("b")
    session.wait_for("allocated")
    yield session.frame("biggest")
    session.press("Escape")
    session.press("/")
    session.type("node_modules")
    session.press("Enter")
    session.wait_for("complete")
    yield session.frame("search")
    session.press("Escape")
    session.press("Escape")
    session.press("Space", "Space")
    yield session.frame("marked")
    session.press("M")
    yield session.frame("marks")
    session.press("Escape", "u")
    session.press("Up", "Up")
    session.press("f")
    yield session.frame("filter-field")
    session.type("*.log >100k")
    session.press("Enter")
    session.wait_for("matches 60")
    yield session.frame("filter")
    session.press("Escape")
    session.press(":")
    yield session.frame("path-field")
    session.press("Escape")
    for key, name in (
        ("a", "maintenance"),
        ("J", "jobs"),
        ("L", "lab"),
        ("I", "this-machine"),
        ("F", "start"),
    ):
        session.press(key)
        time.sleep(1)
        yield session.frame(name)
        session.press("?")
        yield session.frame(f"{name}-help")
        session.press("Escape", "Escape")
    session.press("Tab", "Enter")
    session.wait_for("complete")
    _go_to(session, TARGET.name)


def deletion(session: Session, target: Path) -> Iterator[Frame]:
    """Delete the directory under the cursor at a limited rate, from its preview to its report."""
    session.press("d")
    session.wait_for(f"Delete {target}")
    session.wait_for("counted")
    yield session.frame("preview")
    session.press("?")
    yield session.frame("preview-help")
    session.press("Escape")
    session.press("m")
    yield session.frame("preview-calls")
    session.press("Escape")
    session.press("o")
    session.wait_for("options")
    session.press(*["Tab"] * 5)
    session.type(RATE)
    yield session.frame("options")
    session.press("Enter")
    session.wait_for("at most")
    session.press("Enter")
    session.wait_for("to confirm")
    time.sleep(1)  # the dialog ignores keys that come too early
    session.type(target.name)
    yield session.frame("confirm")
    session.press("Enter")
    for second in (1, 2, 4):
        session.wait_for(f"elapsed 0:0{second}")
        yield session.frame(f"run-{second}")
    session.press("p")
    session.wait_for("PAUSED")
    yield session.frame("run-paused")
    session.press("?")
    yield session.frame("run-help")
    session.press("Escape")
    session.press("c")
    yield session.frame("run-cancel")
    session.press("Escape")
    session.press("Enter")
    yield session.frame("run-call")
    session.press("Escape")
    session.press("q")
    session.press("J")
    session.wait_for("paused")
    yield session.frame("jobs-paused")
    session.press("Enter")
    session.wait_for("PAUSED")
    session.press("p")
    session.wait_for("DONE")
    yield session.frame("report")
    session.press("?")
    yield session.frame("report-help")


def _go_to(session: Session, name: str) -> None:
    session.press("g")
    while not any(line[:1] in "›>" and f" {name}/" in line for line in session.lines()):
        session.press("Down")


@contextmanager
def opened(scratch: Path, look: str, size: tuple[int, int]) -> Iterator[Session]:
    """Make the trees, open tui-fs with the cursor on the target, remove everything at the end."""
    place, state = scratch / PLACE, scratch / "state"
    place.mkdir()
    try:
        make_trees(place)
        session = Session(LOOKS[look], size, place, state)
        session.wait_for("complete")
        _go_to(session, TARGET.name)
        yield session
    finally:
        subprocess.run(["tmux", "-L", SOCKET, "kill-server"], check=False)
        shutil.rmtree(place)
        shutil.rmtree(state, ignore_errors=True)


def recorded(frame: Frame, size: tuple[int, int]) -> Console:
    """Return a console that has printed a screen."""
    console = Console(record=True, width=size[0], file=io.StringIO())
    console.print(Text.from_ansi(frame[1]), end="")
    return console


def svg(frame: Frame, size: tuple[int, int], look: str) -> str:
    """Return the picture of a screen."""
    theme = LOOKS[look].theme
    return recorded(frame, size).export_svg(title="tui-fs", theme=theme, unique_id=frame[0])


def tour(frames: list[Frame], size: tuple[int, int]) -> str:
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
    with opened(scratch, "dark", TOUR_SIZE) as session:
        frames = [session.frame("browser")]
        session.press("Tab")
        frames.append(session.frame("findings"))
        session.press("Escape")
        frames += [f for f in deletion(session, scratch / TARGET) if f[0] in TOURED]
    Path(__file__).with_name("tour.svg").write_text(tour(frames, TOUR_SIZE))


def draw_all(scratch: Path, place: Path) -> None:
    """Draw every screen at each size and in each look."""
    place.mkdir(exist_ok=True)
    for look in LOOKS:
        for size in SIZES:
            with opened(scratch, look, size) as session:
                for frame in (*walk(session), *deletion(session, scratch / TARGET)):
                    file = place / f"{look}-{size[0]}x{size[1]}-{frame[0]}.svg"
                    file.write_text(svg(frame, size, look))


def main() -> None:
    """Draw what is asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("scratch", metavar="DIRECTORY", type=Path)
    parser.add_argument("--all", metavar="OUT", type=Path)
    parsed = parser.parse_args()
    if parsed.all is None:
        record_tour(parsed.scratch)
    else:
        draw_all(parsed.scratch, parsed.all)


if __name__ == "__main__":
    main()
