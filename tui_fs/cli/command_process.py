"""A command runs in a child process; the process that the shell waits for only watches it.

A thread that waits in the kernel for a file system which does not answer may be unkillable, and its
process cannot exit. So the command process makes all calls on file systems. The watching process
makes none and can exit at any time: when the command has reported its exit code, or when the
command does not react to a signal because it waits in the kernel.
"""

import contextlib
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from enum import Enum
from typing import NoReturn

from tui_fs.cli.exit_codes import CANCELLED_BY_INT, CANCELLED_BY_TERM, OUTPUT_LOST, SOME_FAILED
from tui_fs.cli.output import print_over_status
from tui_fs.linux.processes import (
    StalledCall,
    StalledCalls,
    blocks_signal,
    processes_in_session,
    set_pdeathsig,
    state_of,
)
from tui_fs.linux.timeouts import is_readable
from tui_fs.model.errors import Missing
from tui_fs.model.paths import displayable

_ENDING = {
    signal.SIGINT: CANCELLED_BY_INT,
    signal.SIGTERM: CANCELLED_BY_TERM,
    signal.SIGHUP: 128 + signal.SIGHUP,
}
_SI_USER = 0  # asm-generic/siginfo.h: kill(2) and its like; greater: the kernel, as for a key
_POLL_S = 0.2
_CALLS_INTERVAL_S = 0.5
_REPORT_AFTER_S = 3.0
_GIVE_UP_AFTER_S = 2.0
_NO_REACTION_S = 1.0
_NO_REACTION_AT_ALL_S = 10.0
"""After a signal, for a process that does not seem to wait for a file system."""
_REAP_WITHIN_S = 0.3
_CLOSE_WITHIN_S = 0.5


class Notice(Enum):
    """What a command process says to its watcher: a line with the word and a text."""

    EXIT = "exit"
    """The command has ended with this exit code."""
    REACTED = "reacted"
    """The command has received a signal and exits by itself."""
    SESSION = "session"
    """Watch the processes of this session as well, for calls that do not return."""
    HINT = "hint"
    """This sentence follows the one about a file system that does not answer."""
    LEFT = "left"
    """Print this sentence on abandoning a command that ignores a signal."""
    GIVE_UP = "give-up"
    """From now on, abandon the command (exit 1) if a file system does not answer; print this."""
    SCREEN = "screen"
    """Print nothing from now on: the command draws on the whole terminal."""


_watcher_pipe = -1
"""In a command process, the pipe to its watcher; else -1."""


def notify_watcher(notice: Notice, text: str = "") -> None:
    """Send a notice to the watching process, if there is one."""
    if _watcher_pipe >= 0:
        with contextlib.suppress(BrokenPipeError):  # the watcher was killed; see set_pdeathsig
            os.write(_watcher_pipe, f"{notice.value} {text}\n".encode())


def run_command(command: Callable[[], int]) -> int:
    """Run a command in a child process; return its exit code.

    If no child process can be started, the command runs in this process.
    """
    signals = {number for number in _ENDING if signal.getsignal(number) is not signal.SIG_IGN}
    if signal.getsignal(signal.SIGTSTP) is not signal.SIG_IGN:
        signals.add(signal.SIGTSTP)
    signals.add(signal.SIGCHLD)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # SIG_IGN would discard the exit status
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    parent = os.getpid()
    descriptors: list[int] = []
    try:
        descriptors += os.pipe()
        descriptors += os.pipe()
        pid = os.fork()
    except OSError:  # limit of processes or descriptors
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for descriptor in descriptors:
            os.close(descriptor)
        return command()
    reports, report, close_request, close_now = descriptors
    if pid == 0:
        code = SOME_FAILED
        try:
            with contextlib.suppress(Missing):  # without prctl the child may outlive this process
                set_pdeathsig()
            if os.getppid() == parent:
                os.close(reports)
                os.close(close_now)
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
                code = _run_here(command, report, close_request)
        finally:
            os._exit(code)  # does not wait for threads
    os.close(report)
    os.close(close_request)
    os.set_blocking(reports, False)
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # printing must not stop the watcher
    with contextlib.suppress(OSError):
        os.chdir("/")  # so that the user can unmount the working directory
    return _Watcher(pid, signals, reports, close_now).wait()


def _run_here(command: Callable[[], int], report: int, close_request: int) -> int:
    """Run the command in the child; report its exit code."""
    global _watcher_pipe
    _watcher_pipe = report
    with contextlib.suppress(RuntimeError):  # without the thread, readers of pipes may wait
        threading.Thread(target=_close_on_request, args=(close_request,), daemon=True).start()
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt_once)
    try:
        code = command()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(bool(end.code))
    except BaseException as error:  # noqa: BLE001  prints it as the interpreter would
        sys.excepthook(type(error), error, error.__traceback__)
        code = SOME_FAILED
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = OUTPUT_LOST
    except OSError as error:
        print(f"tui-fs: {os.strerror(error.errno or 0)}.", file=sys.stderr)
        code = OUTPUT_LOST
    with contextlib.suppress(MemoryError):  # the watcher reads the code from the exit as well
        _close_streams()
        notify_watcher(Notice.EXIT, str(code))
    return code


def _interrupt_once(number: int, _: object) -> NoReturn:
    """End the command; ignore further signals."""
    signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def _close_on_request(close_request: int) -> None:
    """Close the standard streams on request, so that readers of pipes get EOF."""
    os.read(close_request, 1)
    _close_streams()
    os.close(_watcher_pipe)


def _close_streams() -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nothing, number)


class _Watcher:
    """Waits for a command process in its parent process."""

    def __init__(
        self, pid: int, signals: set[signal.Signals], reports: int, close_now: int
    ) -> None:
        self._pid = pid
        self._signals = signals
        self._reports = reports
        self._close_now = close_now
        self._text = b""
        self._calls = StalledCalls()
        self._calls_at_s = time.monotonic()
        self._stalled: StalledCall | None = None
        self._code: int | None = None
        self._code_since_s = 0.0
        self._signalled: signal.Signals | None = None
        self._signalled_at_s = 0.0
        self._stop_at_s: float | None = None
        self._session_pids: list[int] = []
        self._texts = {Notice.HINT: "Ctrl-C ends this command."}
        self._has_reported = False

    def wait(self) -> int:
        """Return the exit code; if a signal killed the command, end by that signal."""
        while True:
            received = signal.sigtimedwait(self._signals, _POLL_S)
            if received is not None and received.si_signo == signal.SIGCHLD:
                ended = self._collect()
                if ended is not None:
                    return ended
            elif received is not None:
                self._pass_on(signal.Signals(received.si_signo), received.si_code <= _SI_USER)
            self._read_reports()
            now_s = time.monotonic()
            if self._code is not None:
                if now_s - self._code_since_s > _REAP_WITHIN_S:
                    return self._code
                continue
            if self._stop_at_s is not None and now_s >= self._stop_at_s:
                self._stop()
            has_signal = self._signalled is not None
            if Notice.SCREEN in self._texts and not has_signal and _is_terminal_gone():
                return self._end_without_command(_ENDING[signal.SIGHUP], "")
            if now_s - self._calls_at_s >= _CALLS_INTERVAL_S:
                self._calls_at_s = now_s
                self._stalled = self._calls.longest(self._watched())
            if self._signalled is not None and self._is_without_reaction(now_s):
                left = self._texts.get(Notice.LEFT, "")
                return self._end_without_command(_ENDING[self._signalled], left)
            if self._stalled is None:
                self._has_reported = False
            else:
                last = self._texts.get(Notice.GIVE_UP)
                if last and self._stalled.seconds >= _GIVE_UP_AFTER_S:
                    sentence = f"{_has_not_answered(self._stalled)}. {last}"
                    return self._end_without_command(SOME_FAILED, sentence)
                self._report(self._stalled)

    def _collect(self) -> int | None:
        """Return the exit code of the child if it has exited; stop if the child has stopped."""
        pid, status = os.waitpid(self._pid, os.WNOHANG | os.WUNTRACED)
        if pid == 0:
            return None
        if os.WIFSTOPPED(status):
            self._stop()
            return None
        code = os.waitstatus_to_exitcode(status)
        if code >= 0:
            return code
        number = signal.Signals(-code)
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
        os.kill(os.getpid(), number)
        return 128 + number

    def _stop(self) -> None:
        """Stop this process, so that the shell gets control; then continue the child as well.

        In an orphaned process group, which no shell could continue, the kernel ignores SIGTSTP.
        """
        self._stop_at_s = None
        is_pending = signal.SIGTSTP in signal.sigpending()  # from a key; unblocking delivers it
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTSTP})
        if not is_pending:
            os.kill(os.getpid(), signal.SIGTSTP)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTSTP})
        with contextlib.suppress(ProcessLookupError, FileNotFoundError):
            # The shell continues both processes, kill -CONT only this one.
            if state_of(f"/proc/{self._pid}").is_still:
                os.kill(self._pid, signal.SIGCONT)

    def _pass_on(self, number: signal.Signals, is_for_this_process: bool) -> None:
        """Forward a signal; one from a key has already reached all foreground processes.

        When a terminal is gone, the kernel sends SIGHUP only to the leader of its session.
        """
        is_leader = os.getpid() == os.getsid(0)
        if is_for_this_process or (number is signal.SIGHUP and is_leader):
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, number)
        if number is signal.SIGTSTP:
            self._stop_at_s = time.monotonic() + _NO_REACTION_S
        elif self._signalled is None:
            self._signalled, self._signalled_at_s = number, time.monotonic()

    def _read_reports(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while read := os.read(self._reports, 4096):
                self._text += read
        *lines, self._text = self._text.split(b"\n")
        for line in lines:
            word, _, text = line.decode().partition(" ")
            match Notice(word):
                case Notice.EXIT:
                    self._code, self._code_since_s = int(text), time.monotonic()
                case Notice.REACTED:
                    self._signalled = None
                case other:
                    self._texts[other] = text

    def _watched(self) -> set[int]:
        session = self._texts.get(Notice.SESSION)
        if session and not any(map(_is_running, self._session_pids)):
            self._session_pids = processes_in_session(int(session))
        return {self._pid, *self._session_pids}

    def _is_without_reaction(self, now_s: float) -> bool:
        assert self._signalled is not None
        if blocks_signal(self._pid, self._signalled):
            self._signalled_at_s = now_s  # the command is in a step that must not be interrupted
        passed_s = now_s - self._signalled_at_s
        limit_s = _NO_REACTION_AT_ALL_S if self._stalled is None else _NO_REACTION_S
        return passed_s > limit_s

    def _report(self, stalled: StalledCall) -> None:
        has_screen = Notice.SCREEN in self._texts
        if has_screen or self._has_reported or stalled.seconds < _REPORT_AFTER_S:
            return
        self._has_reported = True
        is_shielded = blocks_signal(self._pid, signal.SIGINT)
        hint = "This step cannot be interrupted." if is_shielded else self._texts[Notice.HINT]
        self._print(f"{_has_not_answered(stalled)}; still waiting. {hint}")

    def _end_without_command(self, code: int, sentence: str) -> int:
        """Kill the command process without waiting for its exit; return the exit code."""
        os.close(self._close_now)
        is_readable(self._reports, _CLOSE_WITHIN_S)  # until the command has closed its end
        os.kill(self._pid, signal.SIGKILL)
        if sentence:
            self._print(sentence)
        return code

    def _print(self, sentence: str) -> None:
        with contextlib.suppress(OSError):  # no reader
            print_over_status(f"tui-fs: {sentence}")


def _is_terminal_gone() -> bool:
    """Return whether the terminal of the screens was closed; SIGHUP may be ignored.

    Standard output is always this terminal; standard input may be a list of hosts.
    """
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return any(event & select.POLLHUP for _, event in poll.poll(0))


def _has_not_answered(stalled: StalledCall) -> str:
    seconds = f"for {int(stalled.seconds)} s"
    if stalled.path is None:
        return f"A file system has not answered {seconds}, or the machine is very busy"
    return f"The file system at {displayable(stalled.path)} has not answered {seconds}"


def _is_running(pid: int) -> bool:
    try:
        return not state_of(f"/proc/{pid}").is_zombie
    except (FileNotFoundError, ProcessLookupError):
        return False
