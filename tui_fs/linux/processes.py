"""What a tree of processes uses, summed over the living and the ended."""

import contextlib
import os
import time
from collections.abc import Callable

import psutil

from tui_fs.linux.process_files import state_of
from tui_fs.model.events import Usage

_CLOCK_TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")


def all_stopped(root_pid: int) -> bool:
    """Tell whether every thread of every descendant of a process is stopped, or has ended.

    A thread that is in a system call when the others stop goes on to the end of that call.
    """
    try:
        children = psutil.Process(root_pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return True
    return all(_is_stopped(child.pid) for child in children)


def none_continued(root_pid: int) -> bool:
    """Return whether the descendants of a process that were stopped still are.

    Cheaper than `all_stopped`, which reads the state of every process of the machine. The lists
    of children are exact only while all of them are stopped (proc(5)), which is the case here
    until somebody continues one.

    Raises:
        OSError: the processes cannot be read now.
    """
    waiting, has_lists = [root_pid], False
    while waiting:
        threads = f"/proc/{waiting.pop()}/task"
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            for thread in os.listdir(threads):
                with open(f"{threads}/{thread}/children", "rb") as file:
                    children = [int(word) for word in file.read().split()]
                has_lists = True
                if not all(map(_is_stopped, children)):
                    return False
                waiting += children
    return has_lists or all_stopped(root_pid)  # a kernel without CONFIG_PROC_CHILDREN


def _is_stopped(pid: int) -> bool:
    threads = f"/proc/{pid}/task"
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
        return all(state_of(f"{threads}/{thread}").is_still for thread in os.listdir(threads))
    return True


class UsageMeter:
    """Measures all descendants of one process, that process itself left out.

    CPU time of descendants that have ended is in their parents' ``children`` times, so the
    sums never fall. Bytes read and written by ended processes are kept as last seen.
    """

    def __init__(self, root_pid: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._root_pid = root_pid
        self._root: psutil.Process | None = None
        self._clock = clock
        self._io: dict[tuple[int, float], tuple[int, int]] = {}
        self._last: tuple[float, float] | None = None

    def measure(self) -> Usage | None:
        """Return the usage now, None when the processes are gone.

        Raises:
            OSError: the processes cannot be read now.
        """
        try:
            self._root = self._root or psutil.Process(self._root_pid)
            ended = self._root.cpu_times()
            children = self._root.children(recursive=True)
        except psutil.Error:
            return None
        user, system, rss = ended.children_user, ended.children_system, 0
        busiest, busiest_s = "", -1.0
        for child in children:
            try:
                with child.oneshot():
                    times = child.cpu_times()
                    rss += child.memory_info().rss
                    own = times.user + times.system
                    if own > busiest_s:
                        busiest, busiest_s = f"{child.name()} {child.pid}", own
                    user += times.user + times.children_user
                    system += times.system + times.children_system
                self._note_io(child)
            except psutil.Error:
                continue  # it ended between listing and looking: its parent has its times
        return Usage(
            cpu_s=user + system,
            system_s=system,
            cpu_percent=self._percent(user + system),
            rss_bytes=rss,
            read_bytes=sum(read for read, _ in self._io.values()),
            written_bytes=sum(written for _, written in self._io.values()),
            processes=len(children),
            busiest=busiest,
        )

    def _note_io(self, child: psutil.Process) -> None:
        try:
            counters = child.io_counters()
        except psutil.AccessDenied:
            return  # another user's process: its bytes are not ours to see
        key = (child.pid, child.create_time())
        self._io[key] = (counters.read_bytes, counters.write_bytes)

    def _percent(self, cpu_s: float) -> float | None:
        now = self._clock()
        last, self._last = self._last, (now, cpu_s)
        if last is None or now - last[0] < _CLOCK_TICK_S:
            return None
        return max(0.0, 100.0 * (cpu_s - last[1]) / (now - last[0]))
