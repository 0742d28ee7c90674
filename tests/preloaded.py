"""Run the program without loading it each time: the tests run it two thousand times.

A process that has loaded only the program's modules forks for every run, and the run forks the
supervisor of its job. Tests for which the difference to a real start matters use `tests/e2e`,
`Cli.start` and `Cli.wrapped`.
"""

import contextlib
import gc
import io
import json
import os
import pkgutil
import selectors
import signal
import socket
import struct
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, NoReturn

_REQUEST_BYTES = 1 << 20
_NUMBER = struct.Struct("=i")
_BEGINS_WITHIN_S = 300.0
_MAX_DESCRIPTORS = 1 << 20
_NO_COMMANDS = {"__main__", "start_app"}
"""The last one loads the screens, which no command needs."""


class Preloaded:
    """The program in a process that waits to be asked.

    It belongs to the process that made it: a fork may have other mounts, rights and limits.
    """

    def __init__(self) -> None:
        self._pid = os.getpid()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self._process = subprocess.Popen(
            # as a script, and safe: it loads the installed package, not the files here
            [sys.executable, "-I", __file__, str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
        )
        theirs.close()
        self._connection = ours

    @property
    def is_ours(self) -> bool:
        """Whether this is the process that made it."""
        return os.getpid() == self._pid

    def close(self) -> None:
        """End it."""
        self._connection.close()
        self._process.wait()

    def run(
        self,
        command: list[str],
        cwd: Path | None,
        timeout_s: float,
        environment: Mapping[str, str] = MappingProxyType({}),
        prepare: str = "",
    ) -> "subprocess.CompletedProcess[bytes]":
        """Run a command as `subprocess.run` does.

        Args:
            environment: what differs from this process's environment.
            prepare: Python statements that the process executes before the program's.

        Raises:
            subprocess.TimeoutExpired: it took too long, and was killed.
        """
        mask = os.umask(0)
        os.umask(mask)
        request = {
            "arguments": command[1:],
            "environment": {**os.environ, **environment},
            "umask": mask,
            "prepare": prepare,
        }
        deadline = time.monotonic() + timeout_s
        place = os.open(cwd or ".", os.O_PATH)
        (out, its_out), (err, its_err) = os.pipe(), os.pipe()
        with open(out, "rb") as stdout, open(err, "rb") as stderr:
            try:
                self._connection.settimeout(_BEGINS_WITHIN_S)
                socket.send_fds(self._connection, [b" "], [place, its_out, its_err])
                self._connection.sendall(json.dumps(request).encode() + b"\n")
            finally:
                for descriptor in (place, its_out, its_err):
                    os.close(descriptor)
            pid = self._answer(time.monotonic() + _BEGINS_WITHIN_S)
            try:
                output = _read_all(stdout, stderr, deadline)
                code = self._answer(deadline)
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                self._answer(time.monotonic() + _BEGINS_WITHIN_S)  # of its end
                raise subprocess.TimeoutExpired(command, timeout_s) from None
        return subprocess.CompletedProcess(command, code, *output)

    def _answer(self, deadline: float) -> int:
        self._connection.settimeout(max(0.001, deadline - time.monotonic()))
        (number,) = _NUMBER.unpack(self._connection.recv(_NUMBER.size, socket.MSG_WAITALL))
        return int(number)


def _read_all(stdout: BinaryIO, stderr: BinaryIO, deadline: float) -> tuple[bytes, bytes]:
    output = {stdout: bytearray(), stderr: bytearray()}
    with selectors.DefaultSelector() as selector:
        for stream in output:
            selector.register(stream, selectors.EVENT_READ, stream)
        while selector.get_map():
            ready = selector.select(max(0.0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError
            for key, _ in ready:
                chunk = os.read(key.fd, 1 << 16)
                output[key.data] += chunk
                if not chunk:
                    selector.unregister(key.fileobj)
    return bytes(output[stdout]), bytes(output[stderr])


def serve(connection: socket.socket) -> None:
    """Fork for every request, until end of file."""
    import tui_fs.cli

    for module in pkgutil.iter_modules(tui_fs.cli.__path__):
        if module.name not in _NO_COMMANDS:
            import_module(f"tui_fs.cli.{module.name}")
    import_module("tui_fs.job.supervisor")
    tui_fs.cli.__dict__["SupervisorProcess"] = _forked_supervisor_class()
    gc.freeze()  # else garbage collection in a child copies all of its pages (copy-on-write)
    while True:
        text, descriptors, _, _ = socket.recv_fds(connection, _REQUEST_BYTES, 3)
        if not text:
            return
        while not text.endswith(b"\n"):
            text += connection.recv(_REQUEST_BYTES)
        pid = os.fork()
        if not pid:
            connection.close()
            _exit_after(partial(_run, json.loads(text), *descriptors))
        for descriptor in descriptors:
            os.close(descriptor)
        connection.sendall(_NUMBER.pack(pid))
        _, status = os.waitpid(pid, 0)
        connection.sendall(_NUMBER.pack(os.waitstatus_to_exitcode(status)))


def _text_to(descriptor: int) -> io.TextIOWrapper:
    """Return a new stream, which has no state of the descriptor's former file."""
    raw = io.BufferedWriter(io.FileIO(descriptor, "w", closefd=False))
    is_err = descriptor == 2
    return io.TextIOWrapper(raw, sys.stdout.encoding, "backslashreplace", line_buffering=is_err)


@dataclass(slots=True)
class _Fork:
    """A forked process, with what the starter of a job uses of `subprocess.Popen`."""

    pid: int
    stdin: BinaryIO
    stdout: BinaryIO
    returncode: int | None = None

    def wait(self) -> int:
        if self.returncode is None:
            _, status = os.waitpid(self.pid, 0)
            self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def kill(self) -> None:
        if self.returncode is None:
            os.kill(self.pid, signal.SIGKILL)


def _forked_supervisor_class() -> type[Any]:
    from tui_fs.job.process import SupervisorProcess

    class ForkedSupervisor(SupervisorProcess):
        """A supervisor that waits for a job, as the command starts it before it does anything."""

        def __init__(self) -> None:
            self.process = _fork_supervisor()  # type: ignore[assignment]
            self._has_job = False

    return ForkedSupervisor


def _fork_supervisor() -> _Fork:
    (its_in, stdin), (stdout, its_out) = os.pipe(), os.pipe()
    pid = os.fork()
    if not pid:
        _exit_after(partial(_supervise, its_in, its_out))
    os.close(its_in)
    os.close(its_out)
    return _Fork(pid, open(stdin, "wb", 0), open(stdout, "rb", 0))


def _supervise(its_in: int, its_out: int) -> None:
    from tui_fs.job.supervisor import main

    os.setsid()
    os.chdir("/")
    null = os.open(os.devnull, os.O_WRONLY)
    for number, descriptor in enumerate((its_in, its_out, null)):
        os.dup2(descriptor, number)
    os.closerange(3, _MAX_DESCRIPTORS)
    sys.argv[1:] = []
    sys.stdout, sys.stderr = _text_to(1), _text_to(2)
    main()


def _exit_after(main: Callable[[], int | None]) -> NoReturn:
    """Exit with the code of a main function, as the interpreter does."""
    code = 1
    try:
        code = main() or 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else bool(end.code)
    except BaseException:  # noqa: BLE001  the interpreter would report it, too
        traceback.print_exc()
    finally:
        with contextlib.suppress(BrokenPipeError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _run(request: dict[str, object], place: int, out: int, err: int) -> int:
    """Do what a process of the program's own would; return its exit code."""
    os.fchdir(place)
    os.dup2(out, 1)
    os.dup2(err, 2)
    for descriptor in (place, out, err):
        os.close(descriptor)
    sys.stdout, sys.stderr = _text_to(1), _text_to(2)
    os.umask(int(str(request["umask"])))
    environment, arguments = request["environment"], request["arguments"]
    assert isinstance(environment, dict) and isinstance(arguments, list)
    os.environ.clear()
    os.environ.update(environment)
    exec(str(request["prepare"]), {})
    from tui_fs.cli import main

    return main(arguments)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
