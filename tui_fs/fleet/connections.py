"""Run commands on hosts with ClusterShell: the user's own ssh, many at the same time."""

import os
import queue
import resource
import shlex
import shutil
import signal
import string
import subprocess
import time
from collections import deque
from collections.abc import Callable
from subprocess import PIPE
from typing import Any

from msgspec import Struct, field

from tui_fs.model.errors import BadInput, Missing
from tui_fs.model.paths import displayable, harmless

CONNECTION_FAILED = 255
"""The exit code of ssh when the host was not reached, or the connection broke."""

_LOST_CODES = (CONNECTION_FAILED, 128 + signal.SIGKILL)
"""Of ssh, and what ClusterShell returns for an ssh that was killed."""

_MARK = b"tui-fs begins here"
"""Printed before the command, so that what a login shell prints is not taken for its output."""

_OPTIONS = "-oStrictHostKeyChecking=yes -oServerAliveInterval=10 -oRequestTTY=no"
"""No key is accepted silently, a host that dies is noticed after 30 s, and a terminal would mix
output and errors. ``--ssh 'ssh -o...'`` overrides them, as ssh uses the first value."""

_ASKS_NOTHING = {"SSH_ASKPASS": "false", "SSH_ASKPASS_REQUIRE": "force"}
"""For the ssh of a jump host, which does not get the options, and else asks on the terminal."""

_OF_A_PROXY = ("kex_exchange_identification: ", "Connection closed by UNKNOWN ")
"""What ssh prints after the end of the ssh of a jump host, which has printed the reason."""

_MAX_ERROR_LINES = 20
_MAX_ERROR_BYTES = 4096
_UNLIMITED = 1 << 20
_CLEAN_UP_S = 5.0

_MAX_LINE_BYTES = 32 << 20
_MAX_PENDING_BYTES = 32 << 20
"""Received from one host, and not taken yet."""

_MAX_COMMAND_BYTES = 120_000
"""The kernel limits one argument to 128 KiB (MAX_ARG_STRLEN in linux/binfmts.h)."""

_PLAIN = frozenset(f"{string.ascii_letters}{string.digits} ./_-=:,+".encode())
"""Characters that no shell changes within quotes."""


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
        holds: its standard input stays open until the connections are closed.
        is_long: it does not count as one of those that run at the same time.
        timeout_s: it is ended after this time; 0 for never.
    """

    host: str
    script: str
    purpose: str = ""
    stdin: bytes = b""
    holds: bool = False
    is_long: bool = False
    timeout_s: float = 0.0

    def __repr__(self) -> str:
        """Leave out the standard input, which may have a password."""
        return f"HostCommand({self.host!r}, {self.purpose!r})"


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
        was_cut: it was ended because it printed too much.
    """

    command: HostCommand
    exit_code: int | None
    was_reached: bool
    errors: tuple[str, ...]
    was_cut: bool = False

    @property
    def is_success(self) -> bool:
        """Whether the command, and not another one of a login shell, ended with exit code 0."""
        return self.was_reached and self.exit_code == 0

    @property
    def is_lost(self) -> bool:
        """Whether the connection broke after the command was started."""
        return self.was_reached and self.exit_code in _LOST_CODES

    @property
    def sentence(self) -> str:
        """What went wrong, in the words of the command or of ssh; empty after a success."""
        if self.is_success:
            return ""
        if self.was_cut:
            return "The host prints more than an answer may have."
        if self.exit_code is None:
            return f"No answer within {self.command.timeout_s:.0f} s."
        if self.exit_code == 0:
            return "The login shell did not run the command."
        if self.is_lost:
            return "The connection was lost."
        lines = [line for line in self.errors if line.strip()]
        reasons = [line for line in lines if not line.startswith(_OF_A_PROXY)]
        text = (reasons or lines or [""])[-1].strip().removeprefix("tui-fs: ").removeprefix("ssh: ")
        return harmless(text) or f"The command ended with exit code {self.exit_code}."


class _Running(Struct):
    command: HostCommand
    is_marked: bool = False
    was_cut: bool = False
    received_bytes: int = 0
    taken_bytes: int = 0
    unfinished: dict[str, bytearray] = field(
        default_factory=lambda: {"stdout": bytearray(), "stderr": bytearray()}
    )
    exit_code: int | None = None
    errors: deque[str] = field(default_factory=lambda: deque(maxlen=_MAX_ERROR_LINES))


def for_any_shell(script: str) -> str:
    """Return a line that runs a script in the POSIX shell; sh, csh and fish read it alike.

    Raises:
        BadInput: it is too long for a command line.
    """
    encoded = "".join(chr(c) if c in _PLAIN else f"\\0{c:03o}" for c in os.fsencode(script))
    if len(encoded) > _MAX_COMMAND_BYTES:
        raise BadInput("The paths are too long together for one command over ssh.")
    return f"""exec /bin/sh -c 'eval "$(printf %b "{encoded}")"'"""


def check_ssh(ssh: Ssh) -> None:
    """Raise BadInput or Missing unless the program of ssh can be run."""
    try:
        program = os.path.expanduser(shlex.split(ssh.program)[0])
    except (ValueError, IndexError) as error:
        raise BadInput(f"'{displayable(ssh.program)}' is not a command.") from error
    if shutil.which(program) is None:
        raise Missing(f"{displayable(program)} is not installed.")


class Connections:
    """Commands on hosts. They run in a thread of ClusterShell; all methods are for one thread.

    Raises:
        BadInput: the command of ssh is none.
        Missing: it is not installed.
    """

    def __init__(self, ssh: Ssh) -> None:
        from ClusterShell.Event import EventHandler
        from ClusterShell.Task import Task
        from ClusterShell.Worker.EngineClient import E_READ, E_WRITE
        from ClusterShell.Worker.Ssh import SshClient, WorkerSsh

        check_ssh(ssh)
        _, most_files = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))  # three for each host
        # Of (worker, kind, content); the thread of ClusterShell puts, the other one gets.
        raw: queue.SimpleQueue[tuple[Any, str, Any]] = queue.SimpleQueue()
        running_of: dict[Any, _Running] = {}
        self._raw = raw

        class Handler(EventHandler):  # type: ignore[misc]
            def ev_hup(_, worker: Any, __: Any, rc: int) -> None:  # noqa: N805
                raw.put((worker, "exit", rc))

            def ev_close(_, worker: Any, timedout: bool) -> None:  # noqa: N805
                raw.put((worker, "close", timedout))

            def ev_msg(_, __: Any, action: Callable[[], None]) -> None:  # noqa: N805
                action()

        class Client(SshClient):  # type: ignore[misc]
            # Lines are split in the other thread: the one of ClusterShell takes 50 µs for a line,
            # and a time that grows with the square for a long one.
            def _exec_nonblock(
                self, words: list[str], shell: bool = False, env: Any = None
            ) -> "subprocess.Popen[bytes]":
                # The one of ClusterShell calls fork(2), which copies the page tables of this
                # process and stops all of its threads meanwhile; this one calls vfork(2).
                # Else Ctrl-C would end all connections, too, through which the jobs are cancelled.
                signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))
                environment = {**os.environ, **(env or {}), **_ASKS_NOTHING}
                process = subprocess.Popen(
                    words, 0, None, PIPE, PIPE, PIPE, shell=shell, env=environment
                )
                for name, file, events in (
                    ("stdin", process.stdin, E_WRITE),
                    ("stdout", process.stdout, E_READ),
                    ("stderr", process.stderr, E_READ),
                ):
                    assert file is not None
                    os.set_blocking(file.fileno(), False)
                    descriptor = os.dup(file.fileno())
                    file.close()
                    self.streams.set_stream(name, descriptor, events, retain=name != "stdin")
                return process

            def _handle_read(self, sname: str) -> None:
                data, worker = self._read(sname), self.worker
                running = running_of[worker]
                running.received_bytes += len(data)
                raw.put((worker, sname, data))
                if running.received_bytes - running.taken_bytes > _MAX_PENDING_BYTES:
                    running.was_cut = True
                    worker.abort()

        class Worker(WorkerSsh):  # type: ignore[misc]
            SHELL_CLASS = Client

        self._handler, self._worker_class = Handler(), Worker
        self._waiting: deque[HostCommand] = deque()
        self._running = running_of
        self._ready: deque[Line | Ended] = deque()
        self._at_once = ssh.at_once
        self._task = Task()
        self._task.set_info("ssh_path", ssh.program)
        self._task.set_info("ssh_options", _OPTIONS)
        self._task.set_info("connect_timeout", ssh.connect_timeout_s)
        self._task.set_info("fanout", _UNLIMITED)  # which counts the commands that hold, too
        for stream in ("stdout_msgtree", "stderr_msgtree"):
            self._task.set_default(stream, False)  # else all output stays in memory
        # Workers are not safe for other threads; the port also keeps the thread running.
        self._port = self._task.port(self._handler)
        self._task.resume()

    def start(self, command: HostCommand) -> None:
        """Run a command, at once or when another one has ended."""
        if command.holds or command.is_long:
            self._begin(command)
        else:
            self._waiting.append(command)
            self._begin_waiting()

    def abandon(self, host: str, purpose: str = "") -> None:
        """End the local side of a host's commands for a purpose; what runs there continues."""
        for worker, running in self._running.items():
            if (running.command.host, running.command.purpose) == (host, purpose):
                self._call(worker.abort)

    def release(self, host: str) -> None:
        """End the input of the command that holds a connection, so that it cleans up."""
        for worker, running in self._running.items():
            if running.command.host == host and running.command.holds:
                self._call(worker.set_write_eof)

    def next_event(self, timeout_s: float) -> Line | Ended | None:
        """Return what has happened next; None if nothing did within the time."""
        until = time.monotonic() + timeout_s
        while not self._ready:
            try:
                left_s = max(0.0, until - time.monotonic())
                worker, kind, content = self._raw.get(timeout=left_s)
            except queue.Empty:
                return None
            self._take(self._running[worker], worker, kind, content)
        return self._ready.popleft()

    def close(self) -> None:
        """Close all connections; what runs on the hosts continues.

        A command that holds its connection may take some seconds to clean up.
        """
        for worker, running in self._running.items():
            if running.command.holds:
                self._call(worker.set_write_eof)
        until = time.monotonic() + _CLEAN_UP_S
        while any(running.command.holds for running in self._running.values()):
            if self.next_event(0.1) is None and time.monotonic() >= until:
                break
        self._task.abort(kill=True)
        self._task.join()

    def _call(self, action: Callable[[], None]) -> None:
        """Run it in the thread of ClusterShell."""
        self._port.msg(action, send_once=True)

    def _begin_waiting(self) -> None:
        commands = [running.command for running in self._running.values()]
        busy = sum(not (command.holds or command.is_long) for command in commands)
        while self._waiting and busy < self._at_once:
            self._begin(self._waiting.popleft())
            busy += 1

    def _begin(self, command: HostCommand) -> None:
        mark = _MARK.decode()
        # What a login shell prints may lack a newline at its end.
        script = f"printf '\\n%s\\n' '{mark}'; printf '\\n%s\\n' '{mark}' >&2; {command.script}"
        worker = self._worker_class(
            command.host,
            self._handler,
            timeout=command.timeout_s or None,
            command=for_any_shell(script),
            stderr=True,
        )
        self._running[worker] = _Running(command)
        if command.stdin:
            worker.write(command.stdin)
        if not command.holds:
            worker.set_write_eof()
        self._task.schedule(worker)

    def _take(self, running: _Running, worker: Any, kind: str, content: Any) -> None:
        match kind:
            case "exit":
                running.exit_code = content
            case "close":
                for stream, rest in running.unfinished.items():
                    if rest and not running.was_cut:
                        self._take_line(running, stream, bytes(rest))
                del self._running[worker]
                self._begin_waiting()
                exit_code = None if content else running.exit_code
                if exit_code is None and not content:
                    exit_code = CONNECTION_FAILED  # abandoned
                errors = tuple(running.errors)
                self._ready.append(
                    Ended(running.command, exit_code, running.is_marked, errors, running.was_cut)
                )
            case _ if not running.was_cut:
                running.taken_bytes += len(content)
                rest = running.unfinished[kind]
                *lines, end = content.split(b"\n")
                for line in lines:
                    self._take_line(running, kind, bytes(rest) + line)
                    rest.clear()
                rest += end
                if len(rest) > _MAX_LINE_BYTES:
                    rest.clear()
                    running.was_cut = True
                    self._call(worker.abort)

    def _take_line(self, running: _Running, stream: str, line: bytes) -> None:
        if stream == "stdout" and line == _MARK:
            running.is_marked = True
        elif stream == "stdout" and running.is_marked:
            self._ready.append(Line(running.command, line))
        elif stream == "stderr" and line == _MARK:
            running.errors.clear()  # a banner
        elif stream == "stderr":
            running.errors.append(line[:_MAX_ERROR_BYTES].decode(errors="surrogateescape"))
