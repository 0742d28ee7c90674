"""Several reads at once from a disk whose caches are cold; one after another while they are warm.

A cold inode takes the disk tens of times longer than the interpreter, and a disk answers a dozen
questions in nearly the same time as one.
"""

import os
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from tui_fs.linux.dirents import DirentReader
from tui_fs.survey.glance_tree import open_directory

THREADS = 16
_COLD_S = 60e-6
"""A stat that takes longer has waited for the disk; a warm one takes 2 to 5 microseconds."""
_MEMORY = 0.8
_AT_ONCE = 128
_SLICE = _AT_ONCE // THREADS
_BUFFERS = 4

Looked = tuple[bytes, os.stat_result | None]


class Warming:
    """Asks for many inodes or directories, at once where that helps.

    Args:
        is_over: whether the time is up; what is left then is not asked.
    """

    def __init__(self, is_over: Callable[[], bool]) -> None:
        self._is_over = is_over
        self._each_s = 0.0
        self._threads: ThreadPoolExecutor | None = None

    @property
    def is_cold(self) -> bool:
        """Whether the disk had to be waited for lately."""
        return self._each_s > _COLD_S

    def stat(
        self, descriptor: int, names: Sequence[bytes], is_over: Callable[[], bool] | None = None
    ) -> list[Looked]:
        """Return the status of names in a directory, None for those that have gone.

        Fewer come back than were asked for when the time is up; those asked first come first.
        """
        is_over = is_over or self._is_over
        found: list[Looked] = []
        at = 0
        while at < len(names) and not (found and is_over()):
            part = names[at : at + _AT_ONCE]
            at += _AT_ONCE
            began_s = time.perf_counter()
            if self.is_cold and len(part) > 1:
                slices = [
                    (descriptor, part[start : start + _SLICE])
                    for start in range(0, len(part), _SLICE)
                ]
                for answers in self._pool().map(_stat_all, slices):
                    found += answers
                each_s = THREADS * (time.perf_counter() - began_s) / len(part) / 2
            else:
                found += _stat_all((descriptor, part))
                each_s = (time.perf_counter() - began_s) / len(part)
            self._each_s = _MEMORY * self._each_s + (1 - _MEMORY) * each_s
        return found

    def read_ahead(self, directories: Iterable[tuple[int, bytes]]) -> None:
        """Have the beginnings of directories read, so that the caches hold them.

        Args:
            directories: each with a descriptor of the one above it, which is closed.
        """
        waiting = [self._pool().submit(_read_beginning, *each) for each in directories]
        for each in waiting:
            each.result()

    def close(self) -> None:
        """End the threads."""
        if self._threads is not None:
            self._threads.shutdown()
            self._threads = None

    def _pool(self) -> ThreadPoolExecutor:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="glance")
        return self._threads


def _stat_all(asked: tuple[int, Sequence[bytes]]) -> list[Looked]:
    descriptor, names = asked
    found: list[Looked] = []
    for name in names:
        try:
            found.append((name, os.stat(name, dir_fd=descriptor, follow_symlinks=False)))
        except OSError:
            found.append((name, None))
    return found


def _read_beginning(above: int, name: bytes) -> None:
    try:
        descriptor = open_directory(name, above)
    except OSError:
        return  # whoever reads it in earnest will see why
    finally:
        os.close(above)
    try:
        reader = DirentReader()
        for _ in range(_BUFFERS):
            if reader.read(descriptor) is None:
                break
    except OSError:
        return
    finally:
        os.close(descriptor)
