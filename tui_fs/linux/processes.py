"""What a tree of processes uses, summed over the living and the ended."""

import contextlib
import os
import time
from collections.abc import Callable

from tui_fs.linux.process_files import ProcessTimes, bytes_moved, state_of, times_of
from tui_fs.model.events import Usage

_CLOCK_TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")


def descendants(root_pid: int) -> tuple[int, ...]:
    """Return the living descendants of a process.

    Raises:
        OSError: /proc cannot be read now.
    """
    children: dict[int, list[int]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        # It has ended meanwhile, or is another user's in a /proc that hides these.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError):
            parent = state_of(f"/proc/{name}").parent_pid
            children.setdefault(parent, []).append(int(name))
    found = children.get(root_pid, [])
    for pid in found:
        found += children.get(pid, [])
    return tuple(found)


def all_stopped(root_pid: int) -> bool:
    """Tell whether every thread of every descendant of a process is stopped, or has ended.

    A thread that is in a system call when the others stop goes on to the end of that call.
    """
    return all(map(_is_stopped, descendants(root_pid)))


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

    It reads the files of the processes alone: in a container the rest of /proc may be hidden.

    CPU time of descendants that have ended is in their parents' ``children`` times, so the
    sums never fall. Bytes read and written by ended processes are kept as last seen.
    """

    def __init__(self, root_pid: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._root_pid = root_pid
        self._clock = clock
        self._io: dict[tuple[int, int], tuple[int, int]] = {}
        self._last: tuple[float, float] | None = None

    def measure(self) -> Usage | None:
        """Return the usage now, None when the processes are gone.

        Raises:
            OSError: the processes cannot be read now.
        """
        try:
            root = times_of(f"/proc/{self._root_pid}")
        except (FileNotFoundError, ProcessLookupError):
            return None
        living: list[tuple[int, ProcessTimes]] = []
        for pid in descendants(self._root_pid):
            # One that ended between listing and reading: its parent has its times.
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                times = times_of(f"/proc/{pid}")
                living.append((pid, times))
                self._note_io(pid, times)
        busiest = max(living, key=lambda one: one[1].user_s + one[1].system_s, default=None)
        system_s = root.children_system_s
        system_s += sum(one.system_s + one.children_system_s for _, one in living)
        user_s = root.children_user_s
        user_s += sum(one.user_s + one.children_user_s for _, one in living)
        return Usage(
            cpu_s=user_s + system_s,
            system_s=system_s,
            cpu_percent=self._percent(user_s + system_s),
            rss_bytes=sum(one.rss_bytes for _, one in living),
            read_bytes=sum(read for read, _ in self._io.values()) if self._io else None,
            written_bytes=sum(written for _, written in self._io.values()) if self._io else None,
            processes=len(living),
            busiest=f"{busiest[1].command} {busiest[0]}" if busiest else "",
        )

    def _note_io(self, pid: int, times: ProcessTimes) -> None:
        with contextlib.suppress(PermissionError):  # another user's: its bytes are not ours to see
            self._io[pid, times.started_ticks] = bytes_moved(f"/proc/{pid}")

    def _percent(self, cpu_s: float) -> float | None:
        now = self._clock()
        last, self._last = self._last, (now, cpu_s)
        if last is None or now - last[0] < _CLOCK_TICK_S:
            return None
        return max(0.0, 100.0 * (cpu_s - last[1]) / (now - last[0]))
