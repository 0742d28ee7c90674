"""Survey by the native engine: one process with one thread per processor by default."""

import contextlib
import functools
import grp
import os
import pwd
import selectors
import struct
import subprocess
from collections.abc import Callable, Iterator, Sequence

from msgspec.msgpack import Decoder

from tui_fs.linux.permissions import is_private_group
from tui_fs.linux.tools import engine_filters, remedy_for_start
from tui_fs.model.errors import Missing, TuiFsError
from tui_fs.model.paths import displayable, harmless
from tui_fs.model.strategy import Filters
from tui_fs.model.survey import Root
from tui_fs.survey.histogram import Classes
from tui_fs.survey.records import Batch

RECORD_FORMAT = 7
"""The version of docs/record-format.md that `records` describes."""

_REINSTALL = "Reinstall tui-fs, so that it and its engine have the same version."
_MAX_ERROR_BYTES = 300
_EXIT_TIMEOUT_S = 0.5
"""Time for the process to exit after it has closed its output."""
_LENGTH = struct.Struct("<I")
_READ_BYTES = 1 << 20


class EngineScan:
    """A running engine. It ends when this process ends.

    Args:
        program: absolute path of the engine.
        roots: the directories with their identities at the time of opening.
        filters: entries to count separately, and the share to count.
        threads: of the engine; None: it chooses.
        classes: of the histograms; None for no histogram.

    Raises:
        TuiFsError: the engine cannot be started; Missing if a limit of this process prevents it.
    """

    def __init__(
        self,
        program: str,
        roots: Sequence[Root],
        filters: Filters | None = None,
        threads: int | None = None,
        classes: Classes | None = None,
    ) -> None:
        self._program = program
        try:
            self._process = subprocess.Popen(
                _command(program, roots, filters, threads, classes),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
            )
        except OSError as error:
            reason = os.strerror(error.errno or 0)
            sentence = f"The engine {displayable(program)} cannot be started: {reason}."
            if (advice := remedy_for_start(error)) is not None:
                raise Missing(sentence, advice) from error
            raise TuiFsError(sentence, _REINSTALL) from error
        assert self._process.stdout is not None
        self._frames = _FrameReader(self._process.stdout.fileno())
        self._has_header = self._has_ended = False
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._process.stdout, selectors.EVENT_READ)

    @property
    def pids(self) -> frozenset[int]:
        """The process id of the engine."""
        return frozenset((self._process.pid,))

    def register(self, descriptor: int, answer: Callable[[], None]) -> None:
        """Poll another descriptor as well; call `answer` when it is readable."""
        self._selector.register(descriptor, selectors.EVENT_READ, answer)

    def batches(self, timeout_s: Callable[[], float]) -> Iterator[Batch | None]:
        """Yield all batches; None after each wait.

        Raises:
            TuiFsError: the engine has another record format, or exited before the end.
        """
        while not self._has_ended:
            for key, _ in self._selector.select(max(0.0, timeout_s())):
                if key.data is None:
                    yield from self._read()
                else:
                    key.data()
            yield None

    def _read(self) -> Iterator[Batch]:
        try:
            for frame in self._frames.read():
                if not self._has_header:
                    self._check_format(frame)
                elif (batch := _decoder().decode(frame)) is None:
                    self._has_ended = True
                else:
                    yield batch
        except EOFError as error:
            raise self._died() from error
        except ValueError as error:  # msgspec.DecodeError is one
            raise self._other_format() from error

    def _check_format(self, frame: bytes) -> None:
        # Only the version is decoded: the records of another version may have other fields.
        if frame != bytes((RECORD_FORMAT,)):
            raise self._other_format()
        self._has_header = True

    def _other_format(self) -> TuiFsError:
        sentence = f"The engine {displayable(self._program)} and tui-fs have different versions."
        return TuiFsError(sentence, _REINSTALL)

    def _died(self) -> TuiFsError:
        assert self._process.stderr is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_EXIT_TIMEOUT_S)
        was_killed = (self._process.poll() or 0) < 0
        self._process.kill()  # it may still run with its output closed
        error_output = self._process.stderr.read(_MAX_ERROR_BYTES) or b""
        text = error_output.decode("utf-8", "replace").strip().removeprefix("tui-fs-engine: ")
        reason = harmless(text).rstrip(".")
        if not (self._has_header or was_killed):
            sentence = f"The engine {displayable(self._program)} cannot count"
            return TuiFsError(f"{sentence}: {reason}." if reason else f"{sentence}.", _REINSTALL)
        sentence = "The engine exited unexpectedly; the counts are incomplete"
        return TuiFsError(f"{sentence}: {reason}." if reason else f"{sentence}.", "Count again.")

    def close(self) -> None:
        """Kill the engine if it runs, and close its pipes."""
        self._selector.close()
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()


@functools.cache
def _decoder() -> Decoder[Batch | None]:
    """Return the decoder of a batch; None is the end of the stream."""
    return Decoder(Batch | None)


def _command(
    program: str,
    roots: Sequence[Root],
    filters: Filters | None,
    threads: int | None,
    classes: Classes | None,
) -> list[str]:
    command = [program, "survey", "--parent", str(os.getpid())]
    if threads is not None:
        command += ["--threads", str(threads)]
    if classes is not None:
        command += [f"--classes={classes}"]
    for gid in _private_groups(os.geteuid()):
        command += ["--private-group", str(gid)]
    if filters is not None:
        command += engine_filters(filters)
    for root in roots:
        command += ["--pin", f"{root.device}:{root.inode}"]
    return [*command, "--", *(root.path for root in roots)]


def _private_groups(uid: int) -> list[int]:
    """Return the groups whose only members are `uid` and root.

    Only a group named after one of the two can be private (see `is_private_group`).
    """
    gids: set[int] = set()
    with contextlib.suppress(KeyError):
        gids.add(grp.getgrnam("root").gr_gid)
    with contextlib.suppress(KeyError):
        gids.add(grp.getgrnam(pwd.getpwuid(uid).pw_name).gr_gid)
    return [gid for gid in sorted(gids) if is_private_group(gid, uid)]


class _FrameReader:
    """Read frames from a pipe: a length of four bytes, then that number of bytes."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._buffer = bytearray()

    def read(self) -> Iterator[bytes]:
        """Block for data, and yield the complete frames.

        Raises:
            EOFError: all writers have closed the pipe.
        """
        chunk = os.read(self._descriptor, _READ_BYTES)
        if not chunk:
            raise EOFError
        self._buffer += chunk
        while len(self._buffer) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer)
            end = _LENGTH.size + length
            if len(self._buffer) < end:
                return
            frame = bytes(memoryview(self._buffer)[_LENGTH.size : end])
            del self._buffer[:end]
            yield frame
