"""Run commands on hosts with ClusterShell: the user's own ssh, many at the same time."""

import queue
import shlex
import time
from collections import deque
from typing import Any

from msgspec import Struct, field

from tui_fs.model.paths import harmless

CONNECTION_FAILED = 255
"""The exit code of ssh when the host was not reached, or the connection broke."""

_MARK = b"tui-fs begins here"
"""Printed before the command, so that what a login shell prints is not taken for its output."""

_MAX_ERROR_LINES = 20
_UNLIMITED = 1 << 20
_CLEAN_UP_S = 5.0


class Ssh(Struct, frozen=True):
    """How hosts are reached.

    Attributes:
        program: the words of the command, for example ``ssh -J gateway``.
        connect_timeout_s: how long a host may take to answer.
        at_once: hosts on which commands run at the same time.
    """

    program: str = "ssh"
    connect_timeout_s: int = 10
    at_once: int = 64


class HostCommand(Struct, frozen=True):
    """A script for the POSIX shell of one host.

    Attributes:
        purpose: distinguishes the commands on one host.
        stdin: what the script reads.
        holds: its standard input stays open until the connections are closed, and it does not
            count as one of those that run at the same time.
        timeout_s: it is ended after this time; 0 for never.
    """

    host: str
    script: str
    purpose: str = ""
    stdin: bytes = b""
    holds: bool = False
    timeout_s: float = 0.0


class Line(Struct, frozen=True):
    """A line of a command's standard output."""

    command: HostCommand
    text: bytes


class Ended(Struct, frozen=True):
    """The end of a command.

    Attributes:
        exit_code: None if it took longer than its time limit.
        was_reached: the command was started on the host.
        errors: the last lines of standard error: of the command, or of ssh if it was not reached.
    """

    command: HostCommand
    exit_code: int | None
    was_reached: bool
    errors: tuple[str, ...]

    @property
    def is_lost(self) -> bool:
        """Whether the connection broke after the command was started."""
        return self.was_reached and self.exit_code == CONNECTION_FAILED

    @property
    def sentence(self) -> str:
        """What went wrong, in the words of the command or of ssh; empty after a success."""
        if self.exit_code == 0:
            return ""
        if self.exit_code is None:
            return f"No answer within {self.command.timeout_s:.0f} s."
        if self.is_lost:
            return "The connection was lost."
        last = next((line for line in reversed(self.errors) if line.strip()), "")
        text = last.strip().removeprefix("tui-fs: ").removeprefix("ssh: ")
        return harmless(text) or f"The command ended with exit code {self.exit_code}."


class _Running(Struct):
    command: HostCommand
    is_marked: bool = False
    are_errors_marked: bool = False
    exit_code: int | None = None
    errors: deque[str] = field(default_factory=lambda: deque(maxlen=_MAX_ERROR_LINES))


class Connections:
    """Commands on hosts. They run in a thread of ClusterShell; all methods are for one thread."""

    def __init__(self, ssh: Ssh) -> None:
        from ClusterShell.Event import EventHandler
        from ClusterShell.Task import Task

        # Of (worker, kind, content); the thread of ClusterShell puts, the other one gets.
        raw: queue.SimpleQueue[tuple[Any, str, Any]] = queue.SimpleQueue()

        class Handler(EventHandler):  # type: ignore[misc]
            def ev_read(self, worker: Any, _: Any, sname: str, msg: bytes) -> None:
                raw.put((worker, sname, msg))

            def ev_hup(self, worker: Any, _: Any, rc: int) -> None:
                raw.put((worker, "exit", rc))

            def ev_close(self, worker: Any, timedout: bool) -> None:
                raw.put((worker, "close", timedout))

        self._raw, self._handler = raw, Handler()
        self._waiting: deque[HostCommand] = deque()
        self._running: dict[Any, _Running] = {}
        self._at_once = ssh.at_once
        self._task = Task()
        self._task.set_info("ssh_path", ssh.program)
        self._task.set_info("connect_timeout", ssh.connect_timeout_s)
        self._task.set_info("fanout", _UNLIMITED)  # which counts the commands that hold, too
        for stream in ("stdout_msgtree", "stderr_msgtree"):
            self._task.set_default(stream, False)  # else all output stays in memory

    def start(self, command: HostCommand) -> None:
        """Run a command, at once or when another one has ended."""
        if command.holds:
            self._begin(command)
        else:
            self._waiting.append(command)
            self._begin_waiting()

    def drop_waiting(self) -> tuple[HostCommand, ...]:
        """Forget the commands that have not begun, and return them."""
        dropped = tuple(self._waiting)
        self._waiting.clear()
        return dropped

    def abandon(self, host: str) -> None:
        """End the local side of all commands on a host; what they started there goes on."""
        for worker, running in self._running.items():
            if running.command.host == host and not running.command.holds:
                worker.abort()

    def next_event(self, timeout_s: float) -> Line | Ended | None:
        """Return what has happened next; None if nothing did within the time."""
        until = time.monotonic() + timeout_s
        while True:
            try:
                left_s = max(0.0, until - time.monotonic())
                worker, kind, content = self._raw.get(timeout=left_s)
            except queue.Empty:
                return None
            event = self._take(self._running[worker], worker, kind, content)
            if event is not None:
                return event

    def close(self) -> None:
        """Close all connections; what runs on the hosts goes on.

        A command that holds its connection may take some seconds to clean up.
        """
        for worker, running in self._running.items():
            if running.command.holds:
                worker.set_write_eof()
        until = time.monotonic() + _CLEAN_UP_S
        while any(running.command.holds for running in self._running.values()):
            if self.next_event(0.1) is None and time.monotonic() >= until:
                break
        self._task.abort(kill=True)
        self._task.join()

    def _begin_waiting(self) -> None:
        busy = sum(not running.command.holds for running in self._running.values())
        while self._waiting and busy < self._at_once:
            self._begin(self._waiting.popleft())
            busy += 1

    def _begin(self, command: HostCommand) -> None:
        mark = _MARK.decode()
        script = f"echo '{mark}'; echo '{mark}' >&2; {command.script}"
        worker = self._task.shell(
            f"exec /bin/sh -c {shlex.quote(script)}",  # the login shell may be another
            nodes=command.host,
            handler=self._handler,
            stderr=True,
            timeout=command.timeout_s or None,
        )
        self._running[worker] = _Running(command)
        if command.stdin:
            worker.write(command.stdin)
        if not command.holds:
            worker.set_write_eof()
        self._task.resume()

    def _take(self, running: _Running, worker: Any, kind: str, content: Any) -> Line | Ended | None:
        if kind == "exit":
            running.exit_code = content
        elif kind == "close":
            del self._running[worker]
            self._begin_waiting()
            exit_code = None if content else running.exit_code
            if exit_code is None and not content:
                exit_code = CONNECTION_FAILED  # abandoned
            return Ended(running.command, exit_code, running.is_marked, tuple(running.errors))
        elif kind == "stdout" and content == _MARK:
            running.is_marked = True
        elif kind == "stdout" and running.is_marked:
            return Line(running.command, content)
        elif kind == "stderr" and content == _MARK:
            running.errors.clear()  # a banner
        elif kind == "stderr":
            running.errors.append(content.decode(errors="surrogateescape"))
        return None
