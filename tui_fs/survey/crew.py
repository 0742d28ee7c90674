"""Walkers in processes of their own, and the one that distributes the work among them."""

import contextlib
import gc
import marshal
import mmap
import os
import selectors
import signal
import sys
import traceback
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from tui_fs.linux.limits import processors
from tui_fs.linux.prctl import set_pdeathsig
from tui_fs.model.errors import Missing, TuiFsError
from tui_fs.survey.messages import LENGTH, Inbox
from tui_fs.survey.records import Batch, Task
from tui_fs.survey.tally import Predicate
from tui_fs.survey.walker import Hunger, OpenRoot, Walker

WALKERS_AT_MOST = 8

_ENDED = "One of the processes that count has ended unexpectedly; the counts are not complete."


class _Member:
    """One walker's process, and the pipes to and from it."""

    def __init__(self, pid: int, tasks: int, batches: int) -> None:
        self.pid = pid
        self.tasks = tasks
        self.batches = batches
        self.is_idle = True
        self._inbox = Inbox(batches)

    def read(self) -> Iterator[Batch]:
        """Yield the messages that have arrived whole.

        Raises:
            TuiFsError: the process has ended.
        """
        try:
            yield from map(Batch._make, self._inbox.read())
        except EOFError as why:
            raise TuiFsError(_ENDED, "Count again.") from why


class Crew:
    """As many walkers as there are processors.

    Args:
        number: of walkers; None for one a processor.

    Raises:
        OSError: no process can be started.
    """

    def __init__(
        self,
        roots: Sequence[OpenRoot],
        mounts: Collection[bytes] = (),
        matches: Predicate | None = None,
        number: int | None = None,
    ) -> None:
        self._selector = selectors.DefaultSelector()
        self._members: list[_Member] = []
        self._tasks = [Task(index) for index in range(len(roots))]
        self._shared = mmap.mmap(-1, mmap.PAGESIZE)
        wanted = number or min(WALKERS_AT_MOST, processors())
        asked = _Asked(roots, mounts, matches)
        try:
            for index in range(wanted):
                try:
                    member = _fork(partial(_walk, asked, self._shared, index, wanted), roots)
                except OSError:
                    if not self._members:
                        raise
                    break  # as many as the limits of this user allow
                self._members.append(member)
                self._selector.register(member.batches, selectors.EVENT_READ, member)
            self._distribute()
        except BaseException:
            self.close()
            raise

    @property
    def pids(self) -> frozenset[int]:
        """The walkers' processes."""
        return frozenset(member.pid for member in self._members)

    def register(self, descriptor: int, answer: Callable[[], None]) -> None:
        """Have a descriptor watched too; `answer` is called when it can be read."""
        self._selector.register(descriptor, selectors.EVENT_READ, answer)

    def batches(self, timeout_s: Callable[[], float]) -> Iterator[Batch | None]:
        """Yield what the walkers tell until all is told; None where it is time to look around."""
        while any(not member.is_idle for member in self._members):
            events = self._selector.select(max(0.0, timeout_s()))
            for key, _ in events:
                if not isinstance(key.data, _Member):
                    key.data()
                    continue
                for batch in key.data.read():
                    if batch.give is not None:
                        self._tasks.append(Task._make(batch.give))
                    if batch.is_idle:
                        key.data.is_idle = True
                    yield batch
            self._distribute()
            yield None

    def _distribute(self) -> None:
        idle = [member for member in self._members if member.is_idle]
        while idle and self._tasks:
            member = idle.pop()
            member.is_idle = False
            try:
                _send(member.tasks, self._tasks.pop(0))
            except BrokenPipeError as why:
                raise TuiFsError(_ENDED, "Count again.") from why
        hungry = min(len(idle), 255)
        if hungry > self._shared[0] or (hungry and not self._tasks):
            self._shared[1] = (self._shared[1] + 1) % 256
        self._shared[0] = hungry

    def close(self) -> None:
        """End the walkers."""
        self._selector.close()
        for member in self._members:
            with contextlib.suppress(ProcessLookupError):
                os.kill(member.pid, signal.SIGKILL)
        for member in self._members:
            os.close(member.tasks)
            os.close(member.batches)
            with contextlib.suppress(ChildProcessError):  # whoever started us ignores SIGCHLD
                os.waitpid(member.pid, 0)
        self._members.clear()
        self._shared.close()


@dataclass(frozen=True, slots=True)
class _Asked:
    """What all walkers are to do."""

    roots: Sequence[OpenRoot]
    mounts: Collection[bytes]
    matches: Predicate | None


def _walk(
    asked: _Asked, hunger: Hunger, index: int, walkers: int, tasks: int, batches: int
) -> None:
    """Do what is asked until nobody asks any more."""

    def send(batch: Batch) -> None:
        _send(batches, batch)

    walker = Walker(
        asked.roots,
        send,
        hunger,
        index,
        walkers,
        asked.mounts,
        asked.matches,
    )
    while (task := _receive(tasks)) is not None:
        walker.work(Task._make(task))


def _fork(work: Callable[[int, int], None], roots: Sequence[OpenRoot]) -> _Member:
    tasks_read, tasks_write = os.pipe()
    batches_read, batches_write = os.pipe()
    parent = os.getpid()
    try:
        pid = os.fork()
    except OSError:
        for descriptor in (tasks_read, tasks_write, batches_read, batches_write):
            os.close(descriptor)
        raise
    if pid == 0:
        status = 1
        try:
            _become_walker(parent, (tasks_read, batches_write, *(r.descriptor for r in roots)))
            work(tasks_read, batches_write)
            status = 0
        except BaseException:  # noqa: BLE001  told on standard error; the parent sees the end
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(status)
    os.close(tasks_read)
    os.close(batches_write)
    return _Member(pid, tasks_write, batches_read)


def _become_walker(parent: int, kept: Collection[int]) -> None:
    """Let go of everything that belongs to the parent, and end with it."""
    with contextlib.suppress(Missing):  # it ends when it next writes to its pipe
        set_pdeathsig()
    if os.getppid() != parent:
        os._exit(1)  # it had ended before the kernel was asked
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    # A walker that waits in the kernel must not keep the reader of a pipe waiting for its end.
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    low = 3  # standard error stays, for a traceback
    for descriptor in sorted(kept):
        os.closerange(low, descriptor)
        low = descriptor + 1
    os.closerange(low, max(os.sysconf("SC_OPEN_MAX"), 1 << 16))
    gc.disable()  # nothing here is cyclic, and looking for cycles takes a tenth of the time


def _send(descriptor: int, message: tuple[Any, ...]) -> None:
    payload = marshal.dumps(tuple(message))
    data = memoryview(LENGTH.pack(len(payload)) + payload)
    while data:
        data = data[os.write(descriptor, data) :]


def _receive(descriptor: int) -> Any:
    """Return the next message, a tuple; None if the writer has closed."""
    header = _read_exactly(descriptor, LENGTH.size)
    if header is None:
        return None
    (length,) = LENGTH.unpack(header)
    payload = _read_exactly(descriptor, length)
    return None if payload is None else marshal.loads(payload)


def _read_exactly(descriptor: int, length: int) -> bytes | None:
    data = bytearray()
    while len(data) < length:
        chunk = os.read(descriptor, length - len(data))
        if not chunk:
            return None
        data += chunk
    return bytes(data)
