"""Run the engine's binary and read its output."""

import json
import os
import re
import resource
import select
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tests.conftest import DEADLINE_S
from tests.needs import needs_engine
from tests.seccomp import under_filter
from tui_fs.linux.pins import take_pin
from tui_fs.linux.tools import find_engine
from tui_fs.strategies.parallel import pin_argument

Json = dict[str, Any]


def engine() -> str:
    """Return the engine's path; without one the test cannot be run here."""
    needs_engine()
    path = find_engine()
    assert path is not None
    return path


def delete_command(
    *arguments: str | bytes | Path, cwd: Path | None = None
) -> list[str | bytes | Path]:
    """Return ``tui-fs-engine delete ARGUMENTS`` with the pins that it requires.

    Targets are what follows ``--``, or a last ``.``; a target that does not exist gets a pin that
    fits no directory. Arguments that hold pins stay as they are.
    """
    if "--" in arguments:
        targets = arguments[arguments.index("--") + 1 :]
    else:
        targets = tuple(argument for argument in arguments[-1:] if argument == ".")
    words: list[str] = []
    for target in targets if "--pin" not in arguments else ():
        try:
            pin = pin_argument(take_pin(os.path.join(cwd or os.getcwd(), os.fsdecode(target))))
        except (OSError, ValueError):
            pin = "0:0:0"
        words += ["--pin", pin]
    return [engine(), "delete", *words, *arguments]


@dataclass(frozen=True, slots=True)
class Ended:
    """The result of a run of the engine.

    Attributes:
        counts: the last counts that it printed.
        messages: lines of standard error.
    """

    code: int
    counts: Json
    messages: tuple[str, ...]
    progress: tuple[Json, ...] = ()

    def expect(self, code: int) -> "Ended":
        """Compare the exit code, and that no success hides a message."""
        assert self.code == code, (self.code, self.messages)
        assert code != 0 or not self.messages, self.messages
        return self


def delete(
    *arguments: str | bytes | Path,
    cwd: Path | None = None,
    limits: str = "",
    uid: int | None = None,
    lacking: str = "",
) -> Ended:
    """Run ``tui-fs-engine delete``.

    Args:
        limits: ulimit commands of a shell, for its process alone.
        uid: whose rights it has.
        lacking: a system call that the kernel does not know.
    """
    argv = delete_command(*arguments, cwd=cwd)
    if limits:
        argv = ["sh", "-c", f'{limits}; exec "$0" "$@"', *argv]
    if lacking:
        argv = [*under_filter("ENOSYS", lacking), *argv]
    finished = subprocess.run(
        argv,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        cwd=cwd,
        timeout=DEADLINE_S,
        check=False,
        user=uid,
        group=uid,
        extra_groups=None if uid is None else (),
    )
    lines = [json.loads(line) for line in finished.stdout.splitlines()]
    counts = [line for line in lines if line["type"] == "counts"]
    messages = tuple(finished.stderr.decode().splitlines())
    return Ended(finished.returncode, counts[-1] if counts else {}, messages, tuple(counts))


class Conversation:
    """A running engine that is spoken to."""

    def __init__(
        self, *arguments: str | Path, first: str = "", descriptors: int | None = None
    ) -> None:
        """Start it with at most this many descriptors; the command `first` is queued before."""
        heard, writer = os.pipe()
        self._commands = os.fdopen(writer, "wb", buffering=0)
        self._commands.write(first.encode())
        self._process = subprocess.Popen(
            delete_command("--every", "20", *arguments),
            stdin=heard,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=None if descriptors is None else partial(_bound_descriptors, descriptors),
        )
        os.close(heard)
        self._rest = b""
        self.counts: Json = {"removed": 0}

    def say(self, command: str) -> Json:
        """Send a command and return its answer."""
        self._commands.write(command.encode() + b"\n")
        return self.next_answer()

    def next_answer(self) -> Json:
        """Wait for the answer to a command."""
        return self._until(lambda line: line["type"] == "answer")

    def next_counts(self) -> Json:
        """Wait for the next counts."""
        return self._until(lambda line: line["type"] == "counts")

    def descriptors(self) -> int:
        """Return how many files it has open."""
        return len(os.listdir(f"/proc/{self._process.pid}/fd"))

    def end(self) -> Ended:
        """Wait for its end."""
        self._commands.close()
        out, errors = self._process.communicate(timeout=DEADLINE_S)
        for line in (self._rest + out).splitlines():
            message = json.loads(line)
            if message["type"] == "counts":
                self.counts = message
        return Ended(self._process.returncode, self.counts, tuple(errors.decode().splitlines()))

    def _until(self, wanted: Any) -> Json:
        assert self._process.stdout is not None
        deadline = time.monotonic() + DEADLINE_S
        while True:
            line, separator, rest = self._rest.partition(b"\n")
            if separator:
                self._rest = rest
                message: Json = json.loads(line)
                if message["type"] == "counts":
                    self.counts = message
                if wanted(message):
                    return message
                continue
            left_s = deadline - time.monotonic()
            assert left_s > 0, "it has said nothing in time"
            select.select([self._process.stdout], [], [], left_s)
            chunk = os.read(self._process.stdout.fileno(), 1 << 16)
            assert chunk, "it has ended"
            self._rest += chunk


def _bound_descriptors(most: int) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def peak_memory_kib(command: Sequence[str | bytes | Path]) -> tuple[int, int]:
    """Run a command of ``tui-fs-engine``; return its exit code and its largest memory.

    The kernel's sums after the end (wait4) would count what was forked before the engine was
    executed; so its own high-water mark is read as long as there is one (proc(5), VmHWM).
    """
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    peak_kib = 0
    with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
        while process.poll() is None:
            status.seek(0)
            mark = re.search(r"VmHWM:\s+(\d+) kB", status.read())
            peak_kib = max(peak_kib, int(mark[1]) if mark else 0)
            select.select([], [], [], 0.005)
    assert peak_kib > 0
    return process.returncode, peak_kib


FAILURE = re.compile(r"tui-fs-engine: cannot ([a-z ]+) '(.*)': ([^:]+)")
