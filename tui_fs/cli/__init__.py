"""The command line: the only place that parses arguments, prints and chooses exit codes."""

import contextlib
import errno
import io
import os
import resource
import signal
import sys
from typing import Any, BinaryIO, cast

from tui_fs import __version__
from tui_fs.cli.exit_codes import (
    CANCELLED_BY_INT,
    DONE,
    MISSING,
    OUTPUT_LOST,
    SOME_FAILED,
    USAGE,
    exit_code_of,
)
from tui_fs.cli.output import OutputLost, note, print_text, use_real_terminal_size
from tui_fs.job.process import SupervisorProcess
from tui_fs.linux.limits import is_limit, limit_sentence
from tui_fs.linux.mounts import MOUNTINFO
from tui_fs.model.errors import Missing, TuiFsError
from tui_fs.model.paths import displayable
from tui_fs.safety.privileges import refuse_borrowed_privileges

_STREAMS = ("stdin", "r"), ("stdout", "w"), ("stderr", "w")
"""The standard streams by their numbers."""

_FEW_DESCRIPTORS = 64
"""With a lower limit a command keeps all descriptors for itself."""

_NO_CURRENT_DIRECTORY = (
    "The current directory was deleted, so a relative path has no meaning. Use an absolute path, "
    "or run tui-fs in another directory."
)
_NO_THREAD = (
    "No thread can be started. Either the process limit is reached (raise ulimit -u or "
    "pids.max), or a seccomp filter fails clone3 with an error other than ENOSYS."
)


class _LossyFile(io.FileIO):
    """A file whose writes never fail: it discards the data that cannot be written."""

    def write(self, data: Any) -> int:
        """Write as much as the file accepts; return the length of the data."""
        left = memoryview(data).cast("B")
        with contextlib.suppress(OSError):
            while left and (written := super().write(left)):
                left = left[written:]
        return memoryview(data).nbytes


def entry_point() -> None:
    """Run the command of ``sys.argv`` and exit with its code."""
    # With PYTHONINSPECT, Python would drop the exit code and run standard input as a program.
    if os.environ.pop("PYTHONINSPECT", ""):
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
    _reset_signals()
    try:
        _fill_standard_streams()
    except OSError as error:
        # Every tool has /dev/null as its standard input.
        print(
            f"tui-fs: {os.devnull} cannot be opened: {os.strerror(error.errno or 0)}. Create it: "
            f"mknod -m 666 {os.devnull} c 1 3",
            file=sys.stderr,
        )
        sys.exit(MISSING)
    # A message that cannot be written must change neither the behaviour nor the exit code.
    lossy = cast(BinaryIO, _LossyFile(2, "w", closefd=False))
    sys.stderr = io.TextIOWrapper(lossy, sys.stderr.encoding, write_through=True)
    code = _run_watched(sys.argv[1:])
    try:
        sys.stdout.flush()
    except OSError:
        sys.exit(code)  # the interpreter reports the error
    os._exit(code)  # finalizing the interpreter takes longer than a small command


def _run_watched(arguments: list[str]) -> int:
    """Run a command in a process of its own; return its exit code."""
    try:
        from tui_fs.cli.command_process import run_command  # there may be no memory for it
    except (MemoryError, ImportError, SystemError) as error:
        if not is_limit(error):
            raise
        return _failed(limit_sentence(error), MISSING)
    return run_command(lambda: main(arguments))


def main(arguments: list[str]) -> int:
    """Run one command; return its exit code."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a poor locale must not end a job's view
    use_real_terminal_size()
    waiting: SupervisorProcess | None = None
    try:
        refuse_borrowed_privileges()
        if arguments == ["--version"]:
            print_text(f"tui-fs {__version__}")  # without loading the parser
            return DONE
        waiting = _waiting_supervisor(arguments)
        from tui_fs.cli.parser import parse  # there may be no memory for it

        parsed = parse(arguments)
        parsed.supervisor = waiting
        if parsed.needs_proc and not os.path.exists(MOUNTINFO):
            raise Missing(
                "/proc is not mounted; tui-fs reads mounts and processes from it.",
                "Mount it: mount -t proc proc /proc.",
            )
        code: int = parsed.run(parsed)
    except TuiFsError as error:
        return _failed(error, exit_code_of(error))
    except KeyboardInterrupt:
        return CANCELLED_BY_INT
    except BrokenPipeError:
        # The reader has exited; a started job continues.
        _forget_output()
        return OUTPUT_LOST
    except OutputLost as error:
        _forget_output()
        return _failed(error, OUTPUT_LOST)
    except RuntimeError as error:
        # CPython has no exception class for this; the text is the same since version 3.3.
        if "can't start new thread" not in str(error):
            raise
        return _failed(_NO_THREAD, MISSING)
    except (MemoryError, ImportError, SystemError) as error:
        if not is_limit(error):
            raise
        return _failed(limit_sentence(error), MISSING)
    except OSError as error:
        if is_limit(error) and not isinstance(error, TimeoutError):
            return _failed(limit_sentence(error), MISSING)
        if error.errno == errno.ENOENT and not error.filename and not _has_current_directory():
            return _failed(_NO_CURRENT_DIRECTORY, USAGE)
        place = f"{displayable(os.fsdecode(error.filename))}: " if error.filename else ""
        return _failed(f"{place}{os.strerror(error.errno or 0)}.", SOME_FAILED)
    finally:
        if waiting is not None:
            with contextlib.suppress(KeyboardInterrupt):  # the exit code is that of the command
                waiting.abandon()
    return code


def _failed(reason: object, code: int) -> int:
    note(f"tui-fs: {reason}")
    return code


def _has_current_directory() -> bool:
    try:
        os.getcwd()
    except OSError:
        return False
    return True


def _reset_signals() -> None:
    """Reset the signal dispositions and the mask that this process has inherited.

    While SIGCHLD is ignored, the kernel reports the end of no child process. While it is blocked,
    nothing reports the end of a tool. A blocked SIGINT or SIGTERM ends nothing.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _fill_standard_streams() -> None:
    """Open the standard streams that are closed, so that no file of a job gets their numbers."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) < len(_STREAMS):
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    for number, (name, mode) in enumerate(_STREAMS):
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115


def _forget_output() -> None:
    """Discard the buffered output, so that Python's exit reports no error."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _waiting_supervisor(arguments: list[str]) -> SupervisorProcess | None:
    """Start a supervisor early, so that it loads its modules while the command loads and counts.

    Only a command that asks no question does this; a question could keep the supervisor waiting
    for long. The arguments are not checked yet. Without a job the supervisor exits.
    """
    is_deletion = arguments[:1] == ["delete"] and "--yes" in arguments
    if not is_deletion or "--dry-run" in arguments:
        return None
    try:
        if resource.getrlimit(resource.RLIMIT_NOFILE)[0] < _FEW_DESCRIPTORS:
            return None
        return SupervisorProcess()
    except OSError:
        return None  # tried again, and reported, when the job starts
