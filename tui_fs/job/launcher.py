"""The process between supervisor and tools: it starts each step, and kills it if orphaned.

The supervisor forks the launcher, which is the parent of every tool and never executes anything
itself. The tools form a process group of their own, so that they are paused and killed
together. If the supervisor dies, the socket between the two closes and the launcher kills the
group; if the launcher is stopped then, the kernel continues it. If the launcher dies, the kernel
kills its children, and the supervisor inherits and kills the rest. A step ends when the last
process of its group has ended.
"""

import contextlib
import errno
import fcntl
import itertools
import json
import os
import resource
import select
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from msgspec import Struct, convert, to_builtins

from tui_fs.linux.limits import cause_of, descriptor_limits
from tui_fs.linux.memory import (
    children_of,
    faults_of,
    has_executed,
    peak_bytes_of,
    processor_s_of,
)
from tui_fs.linux.permissions import Capability
from tui_fs.linux.priority import rank_group, rank_process
from tui_fs.linux.processes import set_child_subreaper, set_pdeathsig
from tui_fs.model.errors import Missing, TuiFsError
from tui_fs.model.strategy import IoPriority, Step
from tui_fs.safety.confinement import Enclosure, give_up_confining
from tui_fs.tracing.perf import COUNTERS_PER_PROCESS
from tui_fs.tracing.source import CallSource, Counts

_MESSAGE_BYTES = 1 << 16
ENVIRONMENT = {
    "LC_ALL": "C",
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
}
"""The whole environment of a tool: no variable of the user may change its behaviour."""

_SEND_PATIENCE_S = 1.0
"""How long sending to the launcher is retried while the kernel has no memory for it."""

MAX_OUTPUT_BYTES = 4_096
"""`run_steps` returns at most this much of each output stream."""

_READ_BYTES = 1 << 16
_POLL_INTERVAL_MS = 200

_FEWEST_PROCESSES = 5
"""Descriptors are reserved for the counters of at least this many processes."""

_NOT_STARTED = 127
_NOT_HANDED_ON = signal.SIGCHLD, signal.SIGPIPE, signal.SIGHUP, signal.SIGINT, signal.SIGTERM


class StepEnd(Struct, frozen=True):
    """The result of a step, as in `StepFinished`; wall_s is from its release to its last exit.

    peak_memory_bytes is that of the largest process, 0 if all were too short-lived to sample.
    Page faults are those of all processes since their release.
    """

    statuses: tuple[int, ...]
    wall_s: float
    user_s: float
    system_s: float
    peak_memory_bytes: int
    minor_faults: int
    major_faults: int


class Launcher:
    """The supervisor's side: forks the launcher process and exchanges messages with it.

    Args:
        steps: the steps of the job; no tool runs before `release`.
        directories: for each step a descriptor of the directory in which its tools run.
        nice, io_priority: of the tools.
        takes_commands: the tools read what `send_command` writes; else their input is empty.
        enclosures: for each step how its tools are confined, None if they are not.
        kept: what it keeps of its capabilities once no confined step is left; None for all.
    """

    def __init__(
        self,
        steps: tuple[Step, ...],
        directories: tuple[int, ...],
        nice: int,
        io_priority: IoPriority,
        *,
        takes_commands: bool = False,
        enclosures: tuple[Enclosure | None, ...] = (),
        kept: tuple[Capability, ...] | None = None,
    ) -> None:
        self.out, out_end = os.pipe()
        self.err, err_end = os.pipe()
        if takes_commands:
            commands, self._commands = os.pipe()
            os.set_blocking(self._commands, False)
        else:
            commands, self._commands = _open_empty_input(), -1
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours = _above_the_counters(ours, sum(len(step) for step in steps))
        set_child_subreaper()
        self._leader = 0
        self._unread = b""
        confined = [number for number, enclosure in enumerate(enclosures) if enclosure]
        self._last_confined = max(confined, default=0)
        self._kept = kept
        supervisor = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                set_pdeathsig(signal.SIGCONT)  # a stopped launcher must see that it is orphaned
                if os.getppid() == supervisor:
                    ours.close()
                    os.close(self.out)
                    os.close(self.err)
                    if takes_commands:
                        os.close(self._commands)
                    ranks = (nice, io_priority)
                    channels = commands, out_end, err_end
                    places = tuple(
                        _Place(directory, enclosure)
                        for directory, enclosure in itertools.zip_longest(directories, enclosures)
                    )
                    rights = self._last_confined, kept
                    _Process(theirs, steps, places, ranks, channels, rights).run()
            except BaseException as error:  # noqa: BLE001  it ends the job, and is in its log
                sys.excepthook(type(error), error, error.__traceback__)
            finally:
                os._exit(1)  # this process is a copy of the caller and must not return into it
        theirs.close()
        for launcher_end in (commands, out_end, err_end):
            os.close(launcher_end)
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

    def give_up_rights(self, step: int) -> str:
        """Give up, in this process, what no step after this one needs; the launcher does the same.

        Returns:
            Why that failed; empty if it did not.
        """
        if step == self._last_confined and self._kept is not None:
            return give_up_confining(self._kept)
        return ""

    def ended(self) -> StepEnd:
        """Return the result of the step; call this when `fileno` is readable.

        Raises:
            EOFError: the launcher itself has died.
        """
        answer = self._receive()
        self._leader = 0
        return convert(answer, StepEnd)

    def signal_tools(self, number: signal.Signals) -> None:
        """Send a signal to every process of the running step, if one is running."""
        self._send({"signal": int(number)})

    @property
    def takes_commands(self) -> bool:
        """Whether the tools read what `send_command` writes."""
        return self._commands >= 0

    def send_command(self, line: str) -> None:
        """Write a line to the standard input of the running tool, or of the next one.

        Raises:
            OSError: the pipe is full because the tools do not read, or the launcher has died.
        """
        os.write(self._commands, f"{line}\n".encode("ascii"))

    def rank(self, nice: int, io_priority: IoPriority) -> None:
        """Change the priorities of the tools, later steps included; OSError if not permitted."""
        if self._leader:
            rank_group(self._leader, nice, io_priority)
        self._send({"nice": nice, "io_priority": io_priority})

    def has_failed(self) -> bool:
        """Return whether the launcher, which has ended, ended by an error of its own."""
        end = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        return end is not None and end.si_code == os.CLD_EXITED and end.si_status != 0

    def close(self) -> None:
        """End the launcher and all its tools; return when all have ended."""
        self._socket.close()
        if self.takes_commands:
            os.close(self._commands)
            self._commands = -1
        os.waitpid(self.pid, 0)
        if self._leader and _has_child_in(self._leader):
            # The launcher was killed, and its tools are children of this process now. The kernel
            # reuses their pids only after this process has waited for them.
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
        # kept until it is decoded: lack of memory may make that fail, and the caller tries again
        self._unread = self._unread or self._socket.recv(_MESSAGE_BYTES)
        if not self._unread:
            raise EOFError("the launcher has died")
        answer: dict[str, Any] = json.loads(self._unread)
        self._unread = b""
        return answer


def _above_the_counters(connection: socket.socket, processes: int) -> socket.socket:
    """Move a socket above the descriptors of all counters of `processes` processes.

    The kernel releases the highest descriptors of a dying process first, and some ten
    milliseconds pass for each perf counter. With the socket below the counters, the tools would
    continue for seconds.
    """
    soft, hard = descriptor_limits()
    lowest = len(os.listdir("/proc/self/fd")) + (
        max(_FEWEST_PROCESSES, processes) * COUNTERS_PER_PROCESS
    )
    wanted = lowest + 2 if hard == resource.RLIM_INFINITY else min(lowest + 2, hard)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    moved = fcntl.fcntl(connection.fileno(), fcntl.F_DUPFD_CLOEXEC, min(lowest, soft - 2))
    connection.close()
    return socket.socket(fileno=moved)


def _has_child_in(group: int) -> bool:
    """Return whether a child of this process is in a process group.

    If not, the launcher has reaped the whole group, and the kernel may have reused its number.
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
    """Further write ends of the pipes between the tools of a step, open in the launcher.

    The output of a killed tool may end in the middle of a name. Its reader (xargs -0) would take
    the fragment for the name of another file. The further end keeps the pipe open until the
    reader is killed.
    """

    def __init__(self) -> None:
        self._ends: dict[int, int] = {}

    def add(self, writer: int, end: int) -> None:
        """Add the write end of a writer; the writer must stay unreaped until `close_ended`."""
        self._ends[writer] = end

    def is_open_for(self, writer: int) -> bool:
        """Return whether the write end of a writer is still open here."""
        return writer in self._ends

    def close_all(self) -> None:
        """Close all ends, because their writers were never released."""
        for end in self._ends.values():
            os.close(end)
        self._ends.clear()

    def close_ended(self, kill_readers: Callable[[], None]) -> None:
        """Close the pipes of ended writers; kill the readers if a writer was killed."""
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


class _Place(Struct, frozen=True):
    """Where the tools of a step run: in an open directory, perhaps confined."""

    directory: int
    enclosure: Enclosure | None


class _Process:
    """The launcher's side."""

    def __init__(
        self,
        connection: socket.socket,
        steps: tuple[Step, ...],
        places: tuple[_Place, ...],
        ranks: tuple[int, IoPriority],
        channels: tuple[int, int, int],
        rights: tuple[int, tuple[Capability, ...] | None],
    ) -> None:
        self._socket = connection
        self._last_confined, self._kept = rights
        self._steps = steps
        self._places = places
        self._ranks = ranks
        self._commands, self._out, self._err = channels
        self._gate = -1
        self._number = 0
        self._waiting: list[int] = []
        self._pipes = _StepPipes()
        self._statuses: dict[int, int] = {}
        self._user_s = self._system_s = 0.0
        self._minor_faults = self._major_faults = 0
        self._peak = PeakMemory((), 0)
        self._released_at_s = 0.0
        self._wakeup, wakeup_end = os.pipe()
        os.set_blocking(wakeup_end, False)
        set_child_subreaper()  # adopts an rm whose xargs was killed
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wakeup_end, warn_on_full_buffer=False)

    def run(self) -> NoReturn:
        """Serve until the supervisor closes the connection; then kill the running tools."""
        status = 0
        try:
            self._serve()
        except ConnectionError:  # the supervisor has died
            pass
        except BaseException as error:  # noqa: BLE001  it ends the job, and is in its log
            status = 1
            sys.excepthook(type(error), error, error.__traceback__)
        finally:
            self._signal(signal.SIGKILL)
            if self._gate >= 0:
                os.close(self._gate)  # tools that wait at their gate exit
            # This process outlives all tools, so that it keeps the descriptors and locks inherited
            # from the supervisor.
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
        """Fork a step; if that fails, undo it and answer with the errno."""
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
            opened, pids: receive the descriptors and processes created so far, to be undone.
        """

        def opened_pipe() -> tuple[int, int]:
            ends = os.pipe()
            opened.extend(ends)
            return ends

        def close(descriptor: int) -> None:
            opened.remove(descriptor)
            os.close(descriptor)

        step, place = self._steps[number], self._places[number]
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
                _become(argv, group, gates, channels, place, self._ranks, launcher)
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
        # Page faults and system calls of the children before the gate must not count.
        os.read(at_gate, 1)  # returns at end of file: all children have closed it at their gate
        close(at_gate)
        self._waiting = pids
        self._number = number
        self._peak = PeakMemory(pids, own_peak_bytes)
        self._socket.send(json.dumps({"forked": pids}).encode())

    def _release(self) -> None:
        for pid in self._waiting:  # exclude the page faults of the forked interpreter
            minor, major = faults_of(pid)
            self._minor_faults -= minor
            self._major_faults -= major
        self._released_at_s = time.monotonic()
        os.write(self._gate, b"g" * len(self._waiting))
        os.close(self._gate)
        self._gate = -1
        self._peak.released()
        if self._number == self._last_confined and self._kept is not None:
            problem = give_up_confining(self._kept)
            if problem:
                print(problem, file=sys.stderr)

    def _reap(self) -> None:
        """Reap ended tools, the group leader last: its pid reserves the number of the group."""
        if not self._waiting:
            return
        self._pipes.close_ended(lambda: self._signal(signal.SIGKILL))
        leader, *followers = self._waiting
        for pid in followers:
            if pid not in self._statuses and not self._pipes.is_open_for(pid):
                self._collect(pid)
        if any(pid not in self._statuses for pid in followers):
            return
        if os.waitid(os.P_PID, leader, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            return
        self._signal(signal.SIGKILL)  # children of a killed tool must not run on
        self._collect(leader)
        self._collect_orphans()
        end = StepEnd(
            statuses=tuple(self._statuses[pid] for pid in self._waiting),
            wall_s=time.monotonic() - self._released_at_s,
            user_s=self._user_s,
            system_s=self._system_s,
            peak_memory_bytes=self._peak.bytes,
            minor_faults=max(0, self._minor_faults),
            major_faults=max(0, self._major_faults),
        )
        self._waiting = []
        self._socket.send(json.dumps(to_builtins(end)).encode())

    def _collect(self, pid: int) -> None:
        ended, status, used = os.wait4(pid, os.WNOHANG)
        if ended == 0:
            return
        self._statuses[pid] = os.waitstatus_to_exitcode(status)
        self._use(used)
        self._peak.ended(pid, used.ru_maxrss * 1024)

    def _collect_orphans(self) -> None:
        """Wait for the rest of the killed group; a long unlink delays that."""
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
            with contextlib.suppress(ProcessLookupError):  # the group has just ended
                os.killpg(self._waiting[0], number)


def _become(
    argv: tuple[str, ...],
    group: int,
    gates: tuple[int, int],
    channels: tuple[int, int, int],
    place: _Place,
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
        os.fchdir(place.directory)
        if place.enclosure is not None:
            _confine(place.enclosure, argv[0])
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


def _confine(enclosure: Enclosure, tool: str) -> None:
    """Confine this process, or exit: a tool never runs without the planned confinement."""
    try:
        enclosure.enter()
    except (OSError, Missing) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        os.write(2, f"tui-fs: cannot confine {tool}, so it was not run: {reason}\n".encode())
        os._exit(_NOT_STARTED)


class StepsEnd(Struct, frozen=True):
    """The results of all steps.

    Attributes:
        counts: of their system calls, if the source counts them.
        output, errors: the first `MAX_OUTPUT_BYTES` of what the tools printed.
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
    enclosure: Enclosure | None = None,
) -> StepsEnd:
    """Run the steps one after the other, as nice as this process; close the source at the end.

    Args:
        directory: open; the tools run in it.
        goes_on: called several times a second; if it raises, the tools end and the error
            propagates.
        enclosure: how the tools are confined; None if they are not.

    Raises:
        TuiFsError: the launcher has died, or the source cannot count.
    """
    wrapped = tuple(tuple(source.wrap(argv) for argv in step) for step in steps)
    launcher = Launcher(
        wrapped,
        (directory,) * len(wrapped),
        os.getpriority(os.PRIO_PROCESS, 0),
        IoPriority.NORMAL,
        enclosures=(enclosure,) * len(wrapped),
    )
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
        launcher.close()  # the launcher is the last holder of the pipes of strace
        source.close()
        for pipe in pipes:
            os.close(pipe)
    counts = source.read()
    output, errors = pipes.values()
    return StepsEnd(tuple(ended), counts, bytes(output), bytes(errors))


def _wait(launcher: Launcher, pipes: dict[int, bytearray], goes_on: Callable[[], None]) -> None:
    """Wait for the end of the step, and read its output meanwhile."""
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
"""A tool is sampled after 1 ms, and then at intervals that double up to `LAST_LOOK_S`."""

LOADING_S = 0.001
"""A tool that has run for less, on a processor, may still be loading its libraries: its memory is
not counted. On a busy machine it may have only a page of its stack then (4 KiB)."""

FORKED_EXTRA_BYTES = 1 << 20
"""Memory that a forked interpreter may touch before it executes its tool."""


class PeakMemory:
    """The peak memory of the largest process of one step, as recorded by the kernel.

    ru_maxrss is not enough: exec(2) hands the old program's high-water mark on (fs/exec.c,
    setmax_mm_hiwater_rss), so every tool begins with that of the forked interpreter. A lower peak
    appears only in VmHWM, and only while the process lives: a process that ends within
    milliseconds is missed.

    Args:
        pids: unreaped children that have not yet executed their tools.
        forked_bytes: the peak of their parent at the fork.
    """

    def __init__(
        self,
        pids: Iterable[int],
        forked_bytes: int,
        proc: str = "/proc",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._pids: dict[int, float | None] = dict.fromkeys(pids)
        self._inherited_bytes = forked_bytes + FORKED_EXTRA_BYTES
        self._proc = proc
        self._pause_s = FIRST_LOOK_S
        self._next_look: float | None = None
        self.bytes = 0
        """The highest peak so far; 0 if no process was sampled."""

    def released(self) -> None:
        """Start sampling: the processes are about to execute their tools."""
        self._next_look = self._clock() + FIRST_LOOK_S

    def wait_s(self) -> float | None:
        """Return the seconds until the next `look`, None if no process needs one."""
        if self._next_look is None or not self._pids:
            return None
        return max(0.0, self._next_look - self._clock())

    def look(self) -> None:
        """Sample the processes that have not been reaped, if a sample is due."""
        now = self._clock()
        if self._next_look is None or now < self._next_look:
            return
        for pid, ran_before_s in self._pids.items():
            ran_s = processor_s_of(pid, self._proc)
            if ran_before_s is None:
                if has_executed(pid, self._proc):
                    self._pids[pid] = ran_s or 0.0
                continue
            if ran_s is not None and ran_s - ran_before_s < LOADING_S:
                continue
            seen = [peak_bytes_of(pid, self._proc)]
            seen += [
                peak_bytes_of(child, self._proc, pid) for child in children_of(pid, self._proc)
            ]
            self.bytes = max(self.bytes, *seen)
        self._pause_s = min(2 * self._pause_s, LAST_LOOK_S)
        self._next_look = now + self._pause_s

    def ended(self, pid: int, ru_maxrss_bytes: int) -> None:
        """Add the ru_maxrss that wait4(2) returned for a process; it covers the reaped children."""
        self._pids.pop(pid, None)
        if ru_maxrss_bytes > self._inherited_bytes:
            self.bytes = max(self.bytes, ru_maxrss_bytes)
