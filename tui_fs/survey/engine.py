"""The native engine as what counts: one process with as many threads as there are processors."""

import contextlib
import grp
import marshal
import os
import pwd
import selectors
import struct
import subprocess
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tui_fs.linux.permissions import is_private_group
from tui_fs.linux.tools import remedy_for_start
from tui_fs.model.errors import Missing, TuiFsError
from tui_fs.model.paths import displayable, harmless
from tui_fs.model.strategy import Filters
from tui_fs.model.survey import Root
from tui_fs.survey.records import Batch

FORMAT = 3
"""The engine's first message; engine/src/survey/records.rs has the same number."""

_AGAIN = "Install tui-fs again, so that both are of one version."
_SHOWN = 300
"""Bytes of what the engine complains about."""
_ENDING_S = 0.5
"""From closing its output until a process has ended."""


_LENGTH = struct.Struct("<I")
_READ_BYTES = 1 << 20


class EngineScan:
    """The engine, counting for this process; it ends with it.

    Args:
        program: its absolute path.
        roots: what is to be surveyed, and what stood there when it was opened.
        filters: what to count besides.
        threads: of the engine; None for one a processor.

    Raises:
        TuiFsError: it cannot be started; Missing where a limit of this process is the reason.
    """

    def __init__(
        self,
        program: str,
        roots: Sequence[Root],
        filters: Filters | None = None,
        threads: int | None = None,
    ) -> None:
        self._program = program
        try:
            self._process = subprocess.Popen(
                _command(program, roots, filters, threads),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
            )
        except OSError as why:
            reason = os.strerror(why.errno or 0)
            sentence = f"The engine {displayable(program)} cannot be started: {reason}."
            if (advice := remedy_for_start(why)) is not None:
                raise Missing(sentence, advice) from why
            raise TuiFsError(sentence, _AGAIN) from why
        assert self._process.stdout is not None
        self._frames = _FrameReader(self._process.stdout.fileno())
        self._has_greeted = self._has_ended = False
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._process.stdout, selectors.EVENT_READ)

    @property
    def pids(self) -> frozenset[int]:
        """Its process."""
        return frozenset((self._process.pid,))

    def register(self, descriptor: int, answer: Callable[[], None]) -> None:
        """Have a descriptor watched too; `answer` is called when it can be read."""
        self._selector.register(descriptor, selectors.EVENT_READ, answer)

    def batches(self, timeout_s: Callable[[], float]) -> Iterator[Batch | None]:
        """Yield what is told until all is; None where it is time to look around.

        Raises:
            TuiFsError: the engine is another one than is needed, or has ended too early.
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
            for message in self._frames.read():
                if not self._has_greeted:
                    self._greet(message)
                    continue
                *fields, _, self._has_ended = message
                yield Batch._make(fields)
        except EOFError as why:
            raise self._died() from why
        except (TypeError, ValueError) as why:  # as marshal says that it cannot read something
            raise self._is_another() from why

    def _greet(self, message: Any) -> None:
        if message != FORMAT:
            raise self._is_another()
        self._has_greeted = True

    def _is_another(self) -> TuiFsError:
        sentence = f"The engine {displayable(self._program)} is not the one that tui-fs needs."
        return TuiFsError(sentence, _AGAIN)

    def _died(self) -> TuiFsError:
        assert self._process.stderr is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_ENDING_S)
        was_killed = (self._process.poll() or 0) < 0
        self._process.kill()  # if it lives it has sent what nobody can read
        complaint = self._process.stderr.read(_SHOWN) or b""
        why = harmless(complaint.decode("utf-8", "replace").strip().removeprefix("tui-fs-engine: "))
        if not (self._has_greeted or was_killed):
            sentence = f"The engine {displayable(self._program)} cannot count"
            return TuiFsError(f"{sentence}: {why}" if why else f"{sentence}.", _AGAIN)
        sentence = "The engine has ended unexpectedly; the counts are not complete"
        return TuiFsError(f"{sentence}: {why}" if why else f"{sentence}.", "Count again.")

    def close(self) -> None:
        """End it."""
        self._selector.close()
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()


def _command(
    program: str,
    roots: Sequence[Root],
    filters: Filters | None,
    threads: int | None,
) -> list[str]:
    command = [program, "survey", "--parent", str(os.getpid())]
    if threads is not None:
        command += ["--threads", str(threads)]
    for gid in _private_groups(os.geteuid()):
        command += ["--private-group", str(gid)]
    if filters is not None:
        if filters.name_glob is not None:
            command += [f"--name={filters.name_glob}"]
        if filters.min_size_bytes is not None:
            command += [f"--min-size={filters.min_size_bytes}"]
        if filters.modified_before_s is not None:
            command += [f"--modified-before={filters.modified_before_s}"]
    for root in roots:
        command += ["--pin", f"{root.device}:{root.inode}"]
    return [*command, "--", *(root.path for root in roots)]


def _private_groups(uid: int) -> list[int]:
    """Return the groups whose only members are a user and root.

    Only groups that are named after one of the two can be private (see `is_private_group`).
    """
    gids: set[int] = set()
    with contextlib.suppress(KeyError):
        gids.add(grp.getgrnam("root").gr_gid)
    with contextlib.suppress(KeyError):
        gids.add(grp.getgrnam(pwd.getpwuid(uid).pw_name).gr_gid)
    return [gid for gid in sorted(gids) if is_private_group(gid, uid)]


class _FrameReader:
    """Reads frames from a pipe: a length of four bytes, then what marshal has written."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._buffer = bytearray()

    def read(self) -> Iterator[Any]:
        """Wait for something to arrive, and yield the complete messages.

        Raises:
            EOFError: the pipe has no writer.
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
            message = marshal.loads(memoryview(self._buffer)[_LENGTH.size : end])
            del self._buffer[:end]
            yield message
