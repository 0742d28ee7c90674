"""Count the key presses of eleven tasks in tui-fs, dua, gdu and ncdu.

    python -m tests.bench.tasks --dir DIR [--task NAME] [--tool NAME] [--columns C --lines L]

Makes a tree of 204,000 entries in DIR/tree, and again what a task has deleted. Opens each program
on it in tmux, presses the keys and checks the result: what the screen shows, or what is left of the
tree. Prints the table of docs/explanation/tasks.md. It needs root (it mounts a small tmpfs at
DIR/full), tmux, and the programs in PATH; about ten minutes. DIR must be empty and on a disk.

A program counts from its start with the directory as its argument, or from the start of a deletion.
Letters of typed words are listed apart.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

SOCKET = "tui-fs-tasks"
SIZES = ((80, 24), (120, 40))
TOOLS = ("tui-fs", "dua", "gdu", "ncdu")
FILES = 200_000
READY = {
    "tui-fs": "complete",
    "dua": "4 visible, 203",
    "gdu": "Sorting by",
    "ncdu": "Apparent",
}
VERSION = {"tui-fs": "--version", "dua": "--version", "gdu": "--version", "ncdu": "--version"}
DEADLINE_S = 60.0
DAY_S = 86_400

SESSIONS = Path("srv/php/sessions")
BACKUPS = Path("var/backup")
KEPT, KEPT_BY_DUA = ["2022", "2023"], ["2019", "2023"]
"""dua sorts equal sizes in another order."""


class Terminal:
    """A program in tmux."""

    def __init__(self, command: tuple[str, ...], size: tuple[int, int], state: Path) -> None:
        self._command, self._size, self._state = command, size, state
        self.start()

    def start(self) -> None:
        """Start the program."""
        columns, lines = map(str, self._size)
        variables = ("TERM=xterm-256color", "LANG=C.UTF-8", f"XDG_STATE_HOME={self._state}")
        arguments = (
            "-f", "/dev/null", "new-session", "-d", "-x", columns, "-y", lines,
            "env", *variables, *self._command,
        )  # fmt: skip
        while self._run(arguments).returncode:
            time.sleep(0.1)  # the server of the program before is still ending

    def text(self) -> str:
        """Return the screen."""
        return self._run(("capture-pane", "-p")).stdout

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for a condition."""
        deadline_s = time.monotonic() + DEADLINE_S
        while not condition():
            if time.monotonic() > deadline_s:
                raise TimeoutError(f"{self._command[0]}: not seen: {what}\n{self.text()}")
            time.sleep(0.05)

    def press(self, step: str) -> None:
        """Press a key, type ``'text``, wait for ``@words``, or start the program again (!)."""
        if step == "!":
            self.close()
            self.start()
        elif step.startswith("@"):
            self.wait(lambda: step[1:] in self.text(), step[1:])
        else:
            typed = step.startswith("'")
            self._run(("send-keys", *(("-l", step[1:]) if typed else (step,))))
            time.sleep(0.4)  # as long as a person needs for a key

    def close(self) -> None:
        """End the program."""
        self._run(("kill-server",))

    def _run(self, arguments: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
        command = ["tmux", "-L", SOCKET, *arguments]
        return subprocess.run(command, capture_output=True, text=True)


class Way(NamedTuple):
    """How a program does a task; without steps, why it cannot.

    Attributes:
        before: steps that do not count.
    """

    steps: tuple[str, ...] = ()
    note: str = ""
    before: tuple[str, ...] = ()


class Task(NamedTuple):
    """A task, how each program does it, and what shows that it is done."""

    name: str
    ways: dict[str, Way]
    is_done: Callable[[Path, str], bool]
    place: str = "tree"


def way(*steps: str, note: str = "") -> Way:
    """Return a way; steps are as in `Terminal.press`."""
    return Way(steps, note)


def cannot(note: str) -> Way:
    """Return that a program cannot do a task, and why."""
    return Way((), note)


def shows(*words: str) -> Callable[[Path, str], bool]:
    """Return a check of the screen."""
    return lambda _, screen: all(word in screen for word in words)


def removed(*paths: Path) -> Callable[[Path, str], bool]:
    """Return a check that directories are gone."""
    return lambda tree, _: not any((tree / path).exists() for path in paths)


def no_node_modules(tree: Path, _: str) -> bool:
    """Return whether none of these directories is left."""
    return not any("node_modules" in names for _, names, _ in os.walk(tree))


def no_old_logs(tree: Path, _: str) -> bool:
    """Return whether only the new half of the logs is left."""
    logs = list((tree / "var/log").rglob("*.log"))
    return len(logs) == 20 and all(log.stat().st_mtime > time.time() - 30 * DAY_S for log in logs)


def stopped(tree: Path, _: str) -> bool:
    """Return whether a deletion has removed a part of the files, and goes on no more."""
    left = len(os.listdir(tree / SESSIONS))
    time.sleep(1)
    return 0 < left < FILES and len(os.listdir(tree / SESSIONS)) == left


# The cursor of gdu and ncdu begins on "/.." in every directory but the first, and stays on its
# row's entry when the order changes.
TO_SESSIONS = {
    "tui-fs": ("Tab",),
    "dua": ("c", "k", "Enter", "Enter"),
    "gdu": ("C", "C", "Enter", "j", "Enter", "j"),
    "ncdu": ("C", "k", "Enter", "j", "Enter", "j"),
}
START_DELETION = {
    "tui-fs": ("d", "@counted\n", "Enter", "@to confirm", "'sessions", "Enter"),
    "dua": ("d", "Tab", "C-r"),
    "gdu": ("d", "Enter"),
    "ncdu": ("d", "h", "Enter"),
}
RUNNING = {
    "tui-fs": (*TO_SESSIONS["tui-fs"], *START_DELETION["tui-fs"], "@ of 200,001"),
    **{tool: (*TO_SESSIONS[tool], *START_DELETION[tool]) for tool in ("dua", "gdu", "ncdu")},
}
NO_MARKS = cannot("no marks; each on its own")
YES = ("@counted\n", "Enter", "@Delete permanently", "l", "Enter", "@DONE")

TASKS = (
    Task(
        "find the directory with most files",
        {tool: way(*steps) for tool, steps in TO_SESSIONS.items()},
        shows("sessions"),
    ),
    Task(
        "find the biggest directory by bytes",
        {
            "tui-fs": way("b", "@300.0 MiB"),
            "dua": way("Enter", "Enter"),
            "gdu": way("Enter", "j", "Enter", "j"),
            "ncdu": way("Enter", "j", "Enter", "j"),
        },
        shows("video"),
    ),
    Task(
        "delete 200,000 files in one directory",
        {tool: way(*TO_SESSIONS[tool], *START_DELETION[tool]) for tool in TOOLS},
        removed(SESSIONS),
    ),
    Task(
        "delete all 20 directories `node_modules`",
        {
            "tui-fs": way("/", "'node_modules", "Enter", "@20 matches", "A", "d", *YES),
            "dua": way("/", "'node_modules", "Enter", "a", "Tab", "C-r"),
            "gdu": NO_MARKS,
            "ncdu": NO_MARKS,
        },
        no_node_modules,
    ),
    Task(
        "delete `*.log` older than 30 days",
        {
            "tui-fs": way("f", "'*.log >30d", "Enter", "@matches 20", "D", *YES),
            "dua": cannot("no filter by age"),
            "gdu": cannot("no filter by age"),
            "ncdu": cannot("no filter by age"),
        },
        no_old_logs,
    ),
    Task(
        "delete three marked directories",
        {
            "tui-fs": way("j", "Enter", "Enter", "@2019", "j", *["Space"] * 3, "d", *YES),
            "dua": way("j", "Enter", "Enter", "j", "d", "d", "d", "Tab", "C-r"),
            "gdu": NO_MARKS,
            "ncdu": NO_MARKS,
        },
        lambda tree, _: sorted(os.listdir(tree / BACKUPS)) in (KEPT, KEPT_BY_DUA),
    ),
    Task(
        "cancel a running deletion",
        {
            "tui-fs": Way(("c", "@Cancel job", "l", "Enter"), "", RUNNING["tui-fs"]),
            "dua": Way(("C-c",), "ends dua", RUNNING["dua"]),
            "gdu": Way(("C-c",), "ends gdu", RUNNING["gdu"]),
            "ncdu": Way(("q",), "", RUNNING["ncdu"]),
        },
        stopped,
    ),
    Task(
        "leave a running deletion and come back",
        {
            "tui-fs": Way(
                ("q", "@The job continues", "q", "!", "@▶", "w", "@ of 200,001", "@DONE"),
                "starts it again",
                RUNNING["tui-fs"],
            ),
            **dict.fromkeys(("dua", "gdu", "ncdu"), cannot("ends with the program")),
        },
        removed(SESSIONS),
    ),
    Task(
        "search a name in the whole tree",
        {
            "tui-fs": way("/", "'holiday", "Enter"),
            "dua": way("/", "'holiday*", "Enter", note="a pattern of whole names"),
            "gdu": cannot("searches one directory"),
            "ncdu": cannot("no search"),
        },
        shows("video/holiday.mp4"),
    ),
    Task(
        "say why `df` has no space: deleted file held open",
        {
            "tui-fs": way("Tab", "@deleted but open", "j", "j"),
            **dict.fromkeys(("dua", "gdu", "ncdu"), cannot("does not look for it")),
        },
        shows("deleted but open", "40.0 MiB"),
        place="full",
    ),
    Task(
        "say why `df` has no space: inodes used up",
        {
            "tui-fs": way(note="in the first line"),
            **dict.fromkeys(("dua", "gdu", "ncdu"), cannot("does not look for it")),
        },
        shows("0 inodes free !"),
        place="full",
    ),
)  # fmt: skip


def _fill(directory: Path, number: int) -> None:
    if directory.exists() and len(os.listdir(directory)) == number:
        return
    directory.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(directory, os.O_RDONLY)
    for index in range(number):
        os.close(os.open(f"f{index:06}", os.O_CREAT | os.O_WRONLY, dir_fd=descriptor))
    os.close(descriptor)


def _write(path: Path, size_bytes: int) -> None:
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, size_bytes)


def make_tree(tree: Path) -> None:
    """Create what is missing: what the tasks look for, odd names, and a deep path."""
    _fill(tree / SESSIONS, FILES)
    _write(tree / "home/anna/video/holiday.mp4", 300 << 20)
    _write(tree / "home/anna/mail/box", 20 << 20)
    for number in range(20):
        place = tree / ("home/anna/src", "srv/www", "opt")[number % 3] / f"app-{number:02}"
        for package in range(5):
            _fill(place / "node_modules" / f"package-{package}", 20)
        _write(place / "index.js", 4_096)
    old_s = time.time() - 40 * DAY_S
    for number in range(40):
        log = tree / "var/log" / ("nginx", "app", "db")[number % 3] / f"{number:02}.log"
        _write(log, 200_000)
        if number % 2:
            os.utime(log, (old_s, old_s))
    for year in range(2019, 2024):
        _fill(tree / BACKUPS / str(year), 100)
    _write(tree / BACKUPS / "2023/full.tar", 50 << 20)
    for name in (b"a\nb", b"\x1b[31mred", b" leading", b"caf\xe9"):
        os.makedirs(os.fsencode(tree / "home/anna") + b"/" + name, exist_ok=True)
    (tree / "home/deep" / "/".join(["copy"] * 60)).mkdir(parents=True, exist_ok=True)


@contextmanager
def full_file_system(place: Path) -> Iterator[None]:
    """Mount a file system without free inodes, with a deleted file that is held open."""
    place.mkdir()
    options = "size=64m,nr_inodes=200"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)], check=True)
    try:
        held = place / "access.log"
        with held.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, 40 << 20)
            held.unlink()
            with suppress(OSError):
                for number in range(200):
                    (place / f"f{number}").touch()
            yield
    finally:
        subprocess.run(["umount", str(place)], check=True)
        place.rmdir()


def keys(steps: tuple[str, ...]) -> str:
    """Return the number of keys, and of typed letters."""
    pressed = sum(step[0] not in "@'!" for step in steps)
    letters = sum(len(step) - 1 for step in steps if step[0] == "'")
    return f"{pressed} + {letters} letters" if letters else str(pressed)


def perform(task: Task, tool: str, size: tuple[int, int], scratch: Path) -> str:
    """Do a task in a program; return its keys, and fail if the result is another."""
    ready, (steps, note, before) = READY[tool], task.ways[tool]
    place, state = scratch / task.place, scratch / "state"
    if not steps and note != "in the first line":
        return f"– ({note})"
    if task.place == "tree":
        make_tree(place)
    command = (program(tool), *(("i",) if tool == "dua" else ()), str(place))
    terminal = Terminal(command, size, state)
    try:
        terminal.press(f"@{ready}")
        for step in before:
            terminal.press(step)
        if before:
            terminal.wait(lambda: len(os.listdir(place / SESSIONS)) < FILES, "a removed file")
        for step in steps:
            terminal.press(step)
        terminal.wait(lambda: task.is_done(place, terminal.text()), task.name)
    finally:
        terminal.close()
        shutil.rmtree(state, ignore_errors=True)
    return keys(steps) + (f" ({note})" if note else "")


def program(tool: str) -> str:
    """Return the command of a program; of tui-fs, the one of this Python."""
    return f"{sysconfig.get_path('scripts')}/tui-fs" if tool == "tui-fs" else tool


def version(tool: str) -> str:
    """Return the version of a program."""
    printed = subprocess.run([program(tool), VERSION[tool]], capture_output=True, text=True).stdout
    found = re.search(r"\d+\.\d+[.\d]*", printed)
    return f"{tool} {found[0]}" if found else tool


def main() -> None:
    """Do the tasks and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dir", required=True, type=Path)
    parser.add_argument("--task", default="", help="only tasks with these words")
    parser.add_argument("--tool", choices=TOOLS)
    parser.add_argument("--columns", type=int)
    parser.add_argument("--lines", type=int)
    asked = parser.parse_args()
    sizes = SIZES if asked.columns is None else ((asked.columns, asked.lines),)
    if any(asked.dir.iterdir()):
        sys.exit(f"{asked.dir} is not empty")
    tools = TOOLS if asked.tool is None else (asked.tool,)
    print("| task |", " | ".join(map(version, tools)), "|")
    print("|---|" + "---|" * len(tools))
    make_tree(asked.dir / "tree")
    with full_file_system(asked.dir / "full"):
        for task in TASKS:
            if asked.task not in task.name:
                continue
            cells = []
            for tool in tools:
                found = {perform(task, tool, size, asked.dir) for size in sizes}
                cells.append(" / ".join(sorted(found)))
            print(f"| {task.name} |", " | ".join(cells), "|", flush=True)
    shutil.rmtree(asked.dir / "tree")


if __name__ == "__main__":
    main()
