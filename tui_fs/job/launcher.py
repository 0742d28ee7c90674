"""The process between supervisor and tools: it starts each step, and kills it when left alone.

It is forked from the supervisor, is the parent of every tool, and never executes anything
itself. The tools form a process group of their own, so that they are paused and killed
together. If the supervisor dies, the socket between them closes and the group is killed; a
launcher that is stopped then is continued by the kernel, so that it can do this. If the launcher
dies, the kernel kills its children, and the supervisor, which inherits the rest,
kills those. A step has ended only when the last process of its group has.
"""

import contextlib
import errno
import json
import os
import resource
import select
import selectors
import signal
import socket
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

from tui_fs.linux.limits import cause_of
from tui_fs.linux.memory import children_of, faults_of, has_executed, peak_bytes_of
from tui_fs.linux.priority import rank_group, rank_process
from tui_fs.linux.processes import (
    continue_when_parent_ends,
    set_child_subreaper,
    set_pdeathsig,
)
from tui_fs.model.errors import TuiFsError
from tui_fs.model.strategy import IoPriority, Step
from tui_fs.tracing.perf import above_the_counters
from tui_fs.tracing.source import CallSource, Counts

_MESSAGE_BYTES = 1 << 16
ENVIRONMENT = {
    "LC_ALL": "C",
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
}
"""All that a tool sees: no variable of the person's may change what it does."""

_SEND_PATIENCE_S = 1.0
"""How long a message to the launcher waits for memory of the kernel."""

MAX_OUTPUT_BYTES = 4_096
"""Kept of what the tools of `run_steps` print."""

_READ_BYTES = 1 << 16
_POLL_INTERVAL_MS = 200

_NOT_STARTED = 127
_NOT_HANDED_ON = signal.SIGCHLD, signal.SIGPIPE, signal.SIGHUP, signal.SIGINT, signal.SIGTERM


@dataclass(frozen=True, slots=True)
class StepEnd:
    """How a step went: see `StepFinished`; wall_s is from its release to its last exit.

    peak_memory_bytes is of the largest process, 0 if none was seen in its short life. Page faults
    are those of all processes since their release.
    """

    statuses: tuple[int, ...]
    wall_s: float
    user_s: float
    system_s: float
    peak_memory_bytes: int
    minor_faults: int
    major_faults: int


class Launcher:
    """The supervisor's side: forks the launcher process and speaks with it.

    Args:
        steps: what will run; nothing runs before `release`.
        directories: for each step a descriptor of the directory its tools run in.
        nice, io_priority: the tools' ranks.
        takes_commands: the tools read what `send_command` writes; else they read nothing.
    """

    def __init__(
        self,
        steps: tuple[Step, ...],
        directories: tuple[int, ...],
        nice: int,
        io_priority: IoPriority,
        *,
        takes_commands: bool = False,
    ) -> None:
        self.out, out_end = os.pipe()
        self.err, err_end = os.pipe()
        if takes_commands:
            commands, self._commands = os.pipe()
            os.set_blocking(self._commands, False)
        else:
            commands, self._commands = _open_empty_input(), -1
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours = above_the_counters(ours, sum(len(step) for step in steps))
        set_child_subreaper()
        self._leader = 0
        self._unread = b""
        supervisor = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                continue_when_parent_ends()
                if os.getppid() == supervisor:
                    ours.close()
                    os.close(self.out)
                    os.close(self.err)
                    if takes_commands:
                        os.close(self._commands)
                    ranks = (nice, io_priority)
                    channels = commands, out_end, err_end
                    _Process(theirs, steps, directories, ranks, channels).run()
            except BaseException:  # noqa: BLE001  it ends the job, and is in the job's log
                traceback.print_exc()
            finally:
                os._exit(1)  # never back into the caller, of which this process is a copy
        theirs.close()
        for theirs_alone in (commands, out_end, err_end):
            os.close(theirs_alone)
        os.set_blocking(self.out, False)
        os.set_blocking(self.err, False)
        self._socket = ours

    def fileno(self) -> int:
        """Return the descriptor that becomes readable when a step has ended."""
        return self._socket.fileno()

    def fork_step(self, step: int) -> tuple[int, ...]:
        """Fork the processes of a step; they wait before they execute their tools.

        Raises:
            OSError: they cannot be forked; nothing of the step runs.
            EOFError: the launcher itself has died.
        """
        self._send({"fork": step})
        answer = self._receive()
        if "errno" in answer:
            number = int(answer["errno"])
            raise OSError(number, os.strerror(number))
        pids = tuple(int(pid) for pid in answer["forked"])
        self._leader = pids[0]
        return pids

    def release(self) -> None:
        """Let the forked processes execute their tools."""
        self._send({"go": True})

    def ended(self) -> StepEnd:
        """Return how the step ended; call it when `fileno` is readable.

        Raises:
            EOFError: the launcher itself has died.
        """
        answer = self._receive()
        self._leader = 0
        return StepEnd(
            statuses=tuple(int(status) for status in answer["statuses"]),
            wall_s=float(answer["wall_s"]),
            user_s=float(answer["user_s"]),
            system_s=float(answer["system_s"]),
            peak_memory_bytes=int(answer["peak_memory_bytes"]),
            minor_faults=int(answer["minor_faults"]),
            major_faults=int(answer["major_faults"]),
        )

    def signal_tools(self, number: signal.Signals) -> None:
        """Send a signal to every process of the running step, if one is running."""
        self._send({"signal": int(number)})

    @property
    def takes_commands(self) -> bool:
        """Whether the tools read what `send_command` writes."""
        return self._commands >= 0

    def send_command(self, line: str) -> None:
        """Write a line to the standard input of the running step's tool, or of the next one's.

        Raises:
            OSError: the tools have not read for long, or the launcher has died.
        """
        os.write(self._commands, f"{line}\n".encode("ascii"))

    def rank(self, nice: int, io_priority: IoPriority) -> None:
        """Give the tools, those of later steps too, other ranks; OSError if not permitted."""
        if self._leader:
            rank_group(self._leader, nice, io_priority)
        self._send({"nice": nice, "io_priority": io_priority})

    def has_failed(self) -> bool:
        """Return whether the launcher, which has ended, did so by an error of its own."""
        end = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        return end is not None and end.si_code == os.CLD_EXITED and end.si_status != 0

    def close(self) -> None:
        """End the launcher and whatever it still runs; return when all of it has ended."""
        self._socket.close()
        if self.takes_commands:
            os.close(self._commands)
            self._commands = -1
        os.waitpid(self.pid, 0)
        if self._leader and _has_child_in(self._leader):
            # The launcher was killed. Its tools are now this process's children, and until
            # they are waited for nobody else can have their numbers.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._leader, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                while True:
                    os.waitpid(-self._leader, 0)

    def _send(self, message: dict[str, Any]) -> None:
        encoded = json.dumps(message).encode()
        deadline = time.monotonic() + _SEND_PATIENCE_S
        while True:
            try:
                self._socket.send(encoded)
                return
            except OSError as error:
                is_short = error.errno in (errno.ENOBUFS, errno.ENOMEM)
                if not is_short or time.monotonic() > deadline:
                    raise
            time.sleep(0.01)

    def _receive(self) -> dict[str, Any]:
        # kept until it is understood: for lack of memory that may fail, and is tried again
        self._unread = self._unread or self._socket.recv(_MESSAGE_BYTES)
        if not self._unread:
            raise EOFError("the launcher has died")
        answer: dict[str, Any] = json.loads(self._unread)
        self._unread = b""
        return answer


def _has_child_in(group: int) -> bool:
    """Return whether a child of this process is in a process group.

    Otherwise the launcher has collected the whole group, and its number can be that of another.
    """
    try:
        os.waitid(os.P_PGID, group, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _open_empty_input() -> int:
    """Return a descriptor that reads nothing: /dev/null, or a pipe where that does not exist."""
    try:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        reading, writing = os.pipe()
        os.close(writing)
        return reading


class _StepPipes:
    """Ends of pipes to write to, open besides those that the writing tools have.

    What a tool that was killed has written may end in the middle of a name, and its reader
    (xargs -0) takes that for a whole one: of another file. So its reader is killed before it can
    see the end.
    """

    def __init__(self) -> None:
        self._ends: dict[int, int] = {}

    def add(self, writer: int, end: int) -> None:
        """Add what a process writes to; until `close_ended` the process may not be waited for."""
        self._ends[writer] = end

    def is_open_for(self, writer: int) -> bool:
        """Return whether the pipe of a process is still open here."""
        return writer in self._ends

    def close_all(self) -> None:
        """Close all ends: what was to write into them was never released."""
        for end in self._ends.values():
            os.close(end)
        self._ends.clear()

    def close_ended(self, kill_readers: Callable[[], None]) -> None:
        """Close the pipes of ended processes; kill the readers if one of these was killed."""
        for writer, end in tuple(self._ends.items()):
            ended = os.waitid(os.P_PID, writer, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is None:
                continue
            if ended.si_code != os.CLD_EXITED and _has_reader(end):
                kill_readers()
            os.close(end)
            del self._ends[writer]


def _has_reader(pipe: int) -> bool:
    poll = select.poll()
    poll.register(pipe, 0)
    return not any(events & select.POLLERR for _, events in poll.poll(0))


class _Process:
    """The launcher's side."""

    def __init__(
        self,
        connection: socket.socket,
        steps: tuple[Step, ...],
        directories: tuple[int, ...],
        ranks: tuple[int, IoPriority],
        channels: tuple[int, int, int],
    ) -> None:
        self._socket = connection
        self._steps = steps
        self._directories = directories
        self._ranks = ranks
        self._commands, self._out, self._err = channels
        self._gate = -1
        self._waiting: list[int] = []
        self._pipes = _StepPipes()
        self._statuses: dict[int, int] = {}
        self._user_s = self._system_s = 0.0
        self._minor_faults = self._major_faults = 0
        self._peak = PeakMemory((), 0)
        self._released_at_s = 0.0
        self._wakeup, wakeup_end = os.pipe()
        os.set_blocking(wakeup_end, False)
        set_child_subreaper()  # an rm whose xargs was killed is waited for here
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wakeup_end, warn_on_full_buffer=False)

    def run(self) -> NoReturn:
        """Serve until the supervisor closes the connection; then kill what still runs."""
        status = 0
        try:
            self._serve()
        except ConnectionError:  # the supervisor has died: what runs is killed
            pass
        except BaseException:  # noqa: BLE001  it ends the job, and is in the job's log
            status = 1
            traceback.print_exc()
        finally:
            self._signal(signal.SIGKILL)
            if self._gate >= 0:
                os.close(self._gate)  # tools that were not released end at their gate
            # Until all tools have ended this process lives, and has what it inherited from the
            # supervisor: descriptors, and the locks that belong to them.
            self._collect_orphans()
            os._exit(status)

    def _serve(self) -> None:
        # select(2) knows no descriptor above 1,023
        selector = selectors.PollSelector()
        selector.register(self._socket, selectors.EVENT_READ)
        selector.register(self._wakeup, selectors.EVENT_READ)
        while True:
            readable = {key.fd for key, _ in selector.select(self._peak.wait_s())}
            if self._wakeup in readable:
                os.read(self._wakeup, 4096)
                self._reap()
            if self._socket.fileno() in readable:
                message = self._socket.recv(_MESSAGE_BYTES)
                if not message:
                    return
                request = json.loads(message)
                if "fork" in request:
                    self._try_to_fork(request["fork"])
                elif "signal" in request:
                    self._signal(request["signal"])
                elif "nice" in request:
                    self._ranks = request["nice"], IoPriority(request["io_priority"])
                else:
                    self._release()
            self._peak.look()

    def _try_to_fork(self, step: int) -> None:
        """Fork a step, or answer why that is not possible, with nothing left of it."""
        opened: list[int] = []
        pids: list[int] = []
        try:
            self._fork(step, opened, pids)
        except (OSError, MemoryError) as error:
            for descriptor in opened:
                os.close(descriptor)
            self._gate = -1
            self._pipes.close_all()
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            number = error.errno if isinstance(error, OSError) else errno.ENOMEM
            self._socket.send(json.dumps({"errno": number}).encode())

    def _fork(self, number: int, opened: list[int], pids: list[int]) -> None:
        """Fork a step.

        Args:
            opened, pids: what was opened and forked so far, so that it can be undone.
        """

        def opened_pipe() -> tuple[int, int]:
            ends = os.pipe()
            opened.extend(ends)
            return ends

        def close(descriptor: int) -> None:
            opened.remove(descriptor)
            os.close(descriptor)

        step, directory = self._steps[number], self._directories[number]
        gate, self._gate = opened_pipe()
        self._statuses = {}
        self._user_s = self._system_s = 0.0
        self._minor_faults = self._major_faults = 0
        own_peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        source = os.dup(self._commands)
        opened.append(source)
        launcher = os.getpid()
        at_gate, at_gate_end = opened_pipe()
        for position, argv in enumerate(step):
            following, sink = (-1, self._out) if position == len(step) - 1 else opened_pipe()
            pid = os.fork()
            if pid == 0:
                os.close(self._gate)
                group, gates = pids[0] if pids else 0, (at_gate_end, gate)
                channels = source, sink, self._err
                _become(argv, group, gates, channels, directory, self._ranks, launcher)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.setpgid(pid, pids[0] if pids else pid)
            pids.append(pid)
            close(source)
            if sink != self._out:
                opened.remove(sink)
                self._pipes.add(pid, sink)
            source = following
        close(gate)
        close(at_gate_end)
        # What they touch and call on their way to the gate is not the tools'.
        os.read(at_gate, 1)  # its end comes when all have let go of it
        close(at_gate)
        self._waiting = pids
        self._peak = PeakMemory(pids, own_peak_bytes)
        self._socket.send(json.dumps({"forked": pids}).encode())

    def _release(self) -> None:
        for pid in self._waiting:  # what a fork of the interpreter has touched is not the tool's
            minor, major = faults_of(pid)
            self._minor_faults -= minor
            self._major_faults -= major
        self._released_at_s = time.monotonic()
        os.write(self._gate, b"g" * len(self._waiting))
        os.close(self._gate)
        self._gate = -1
        self._peak.released()

    def _reap(self) -> None:
        """Collect ended tools, the group's first process last: until then its number is ours."""
        if not self._waiting:
            return
        self._pipes.close_ended(lambda: self._signal(signal.SIGKILL))
        leader, *others = self._waiting
        for pid in others:
            if pid not in self._statuses and not self._pipes.is_open_for(pid):
                self._collect(pid)
        if any(pid not in self._statuses for pid in others):
            return
        if os.waitid(os.P_PID, leader, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            return
        self._signal(signal.SIGKILL)  # what a killed tool has left behind must not run on
        self._collect(leader)
        self._collect_orphans()
        answer = {
            "statuses": [self._statuses[pid] for pid in self._waiting],
            "wall_s": time.monotonic() - self._released_at_s,
            "user_s": self._user_s,
            "system_s": self._system_s,
            "peak_memory_bytes": self._peak.bytes,
            "minor_faults": max(0, self._minor_faults),
            "major_faults": max(0, self._major_faults),
        }
        self._waiting = []
        self._socket.send(json.dumps(answer).encode())

    def _collect(self, pid: int) -> None:
        ended, status, used = os.wait4(pid, os.WNOHANG)
        if ended == 0:
            return
        self._statuses[pid] = os.waitstatus_to_exitcode(status)
        self._use(used)
        self._peak.ended(pid, used.ru_maxrss * 1024)

    def _collect_orphans(self) -> None:
        """Wait for the rest of the group, which was killed: a long unlink ends by itself."""
        with contextlib.suppress(ChildProcessError):
            while True:
                _, _, used = os.wait4(-1, 0)
                self._use(used)

    def _use(self, used: resource.struct_rusage) -> None:
        self._user_s += used.ru_utime
        self._system_s += used.ru_stime
        self._minor_faults += used.ru_minflt
        self._major_faults += used.ru_majflt

    def _signal(self, number: int) -> None:
        if self._waiting:
            with contextlib.suppress(ProcessLookupError):  # they have just ended
                os.killpg(self._waiting[0], number)


def _become(
    argv: tuple[str, ...],
    group: int,
    gates: tuple[int, int],
    channels: tuple[int, int, int],
    directory: int,
    ranks: tuple[int, IoPriority],
    launcher: int,
) -> NoReturn:
    """In the forked child: wait at the gate, then execute the tool."""
    try:
        signal.set_wakeup_fd(-1)
        set_pdeathsig()
        if os.getppid() != launcher:
            os._exit(_NOT_STARTED)
        os.setpgid(0, group)
        for number in _NOT_HANDED_ON:
            signal.signal(number, signal.SIG_DFL)
        for target, channel in enumerate(channels):
            os.dup2(channel, target, inheritable=True)
        rank_process(*ranks)
        os.fchdir(directory)
        at_gate, gate = gates
        os.close(at_gate)
        if os.read(gate, 1) != b"g":
            os._exit(_NOT_STARTED)
        os.execve(argv[0], argv, ENVIRONMENT)
    except OSError as error:
        cause, advice = cause_of(error)
        os.write(
            2, f"tui-fs: cannot execute {argv[0]}: {cause}. {advice}".rstrip().encode() + b"\n"
        )
    finally:
        os._exit(_NOT_STARTED)


@dataclass(frozen=True, slots=True)
class StepsEnd:
    """How steps went.

    Attributes:
        steps: one for each.
        counts: of their system calls, if the source counts them.
        output, errors: the beginnings of what they printed.
    """

    steps: tuple[StepEnd, ...]
    counts: Counts
    output: bytes
    errors: bytes


def run_steps(
    steps: tuple[Step, ...],
    directory: int,
    source: CallSource,
    goes_on: Callable[[], None] = lambda: None,
) -> StepsEnd:
    """Run the steps one after the other; the source is closed at the end.

    Args:
        directory: open; the tools run in it.
        goes_on: asked several times a second; what it raises ends the tools, and is raised.

    Raises:
        TuiFsError: the process between has died, or the source cannot count.
    """
    wrapped = tuple(tuple(source.wrap(argv) for argv in step) for step in steps)
    launcher = Launcher(wrapped, (directory,) * len(wrapped), 0, IoPriority.NORMAL)
    pipes = {launcher.out: bytearray(), launcher.err: bytearray()}
    ended: list[StepEnd] = []
    try:
        source.prepare(launcher.pid)
        for number in range(len(wrapped)):
            for pid in launcher.fork_step(number):
                source.attach(pid)
            launcher.release()
            _wait(launcher, pipes, goes_on)
            source.step_ended()
            ended.append(launcher.ended())
    finally:
        launcher.close()  # the last that holds the pipes of strace
        source.close()
        for pipe in pipes:
            os.close(pipe)
    counts = source.read()
    output, errors = pipes.values()
    return StepsEnd(tuple(ended), counts, bytes(output), bytes(errors))


def _wait(launcher: Launcher, pipes: dict[int, bytearray], goes_on: Callable[[], None]) -> None:
    """Wait for the step's end, and take what it prints before that."""
    poll = select.poll()  # select(2) knows no descriptor above 1,023
    for descriptor in (launcher.fileno(), *pipes):
        poll.register(descriptor, select.POLLIN)
    while True:
        ready = {descriptor for descriptor, _ in poll.poll(_POLL_INTERVAL_MS)}
        for pipe, kept in pipes.items():
            if pipe in ready:
                chunk = os.read(pipe, _READ_BYTES)
                if not chunk:
                    raise TuiFsError("The process that runs the tools has ended.")
                kept += chunk[: MAX_OUTPUT_BYTES - len(kept)]
        if launcher.fileno() in ready and not any(pipe in ready for pipe in pipes):
            return
        goes_on()


FIRST_LOOK_S = 0.001
LAST_LOOK_S = 0.05
"""A tool is looked at after a thousandth of a second, and then after ever longer times. What the
first look finds is not counted: the tool may still be loading its libraries."""

FORKED_EXTRA_BYTES = 1 << 20
"""What a fork of the interpreter may touch before it executes its tool."""


class PeakMemory:
    """The largest process among the tools of one step, from what the kernel records of each.

    ru_maxrss is not enough: exec(2) hands the old program's high-water mark on (fs/exec.c,
    setmax_mm_hiwater_rss), so every tool begins with that of the forked interpreter. Below it only
    VmHWM shows the peak, and only while the process lives: a process that ends within
    milliseconds is not seen.

    Args:
        pids: processes that are forked from this one and not waited for; they have not yet
            executed their tools.
        forked_bytes: the peak of the process they were forked from, at that moment.
    """

    def __init__(
        self,
        pids: Iterable[int],
        forked_bytes: int,
        proc: str = "/proc",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._pids = dict.fromkeys(pids, False)
        self._inherited_bytes = forked_bytes + FORKED_EXTRA_BYTES
        self._proc = proc
        self._pause_s = FIRST_LOOK_S
        self._next_look: float | None = None
        self.bytes = 0
        """The largest so far; 0 if none was seen."""

    def released(self) -> None:
        """Begin to look: the processes are about to execute their tools."""
        self._next_look = self._clock() + FIRST_LOOK_S

    def wait_s(self) -> float | None:
        """Return how long to wait until the next `look`, None if nothing is to be looked at."""
        if self._next_look is None or not self._pids:
            return None
        return max(0.0, self._next_look - self._clock())

    def look(self) -> None:
        """Look at what runs, if it is time; nothing that was waited for is looked at."""
        now = self._clock()
        if self._next_look is None or now < self._next_look:
            return
        for pid, was_seen in self._pids.items():
            if not was_seen:
                self._pids[pid] = has_executed(pid, self._proc)
                continue
            seen = [peak_bytes_of(pid, self._proc)]
            seen += [
                peak_bytes_of(child, self._proc, pid) for child in children_of(pid, self._proc)
            ]
            self.bytes = max(self.bytes, *seen)
        self._pause_s = min(2 * self._pause_s, LAST_LOOK_S)
        self._next_look = now + self._pause_s

    def ended(self, pid: int, ru_maxrss_bytes: int) -> None:
        """Take what wait4(2) tells of a process, its own children included."""
        self._pids.pop(pid, None)
        if ru_maxrss_bytes > self._inherited_bytes:
            self.bytes = max(self.bytes, ru_maxrss_bytes)
