"""Walkers that work in the test's own process, one after the other."""

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tui_fs.survey.collector import Collector
from tui_fs.survey.records import Batch, Task
from tui_fs.survey.walker import OPEN_FLAGS, OpenRoot, Walker


@contextmanager
def opened(*paths: Path | bytes) -> Iterator[list[OpenRoot]]:
    """Open roots, and come back to the working directory, which walkers change."""
    before = os.open(".", os.O_PATH | os.O_DIRECTORY)
    roots: list[OpenRoot] = []
    try:
        for path in paths:
            descriptor = os.open(path, OPEN_FLAGS)
            roots.append(OpenRoot(os.fsencode(path), descriptor, os.fstat(descriptor).st_dev))
        yield roots
    finally:
        for root in roots:
            os.close(root.descriptor)
        os.fchdir(before)
        os.close(before)


class Ticking:
    """A clock by which every directory takes so long that what is known is told."""

    def __init__(self) -> None:
        self._now_s = 0.0

    def __call__(self) -> float:
        """Return the next second."""
        self._now_s += 1.0
        return self._now_s


def told_by_one(
    root: Path,
    meanwhile: Callable[[Batch], None] | None = None,
    mounts: Collection[bytes] = (),
) -> tuple[Collector, list[Batch]]:
    """Walk a tree with one walker that tells each directory at once.

    Args:
        meanwhile: called with every batch, while the walk is under way.
    """
    batches: list[Batch] = []

    def send(batch: Batch) -> None:
        batches.append(batch)
        if meanwhile is not None:
            meanwhile(batch)

    with opened(root) as roots:
        Walker(roots, send, [0, 0], 0, 1, mounts, clock=Ticking()).work(Task(0))
    return collected(batches), batches


def collected(batches: Sequence[Batch]) -> Collector:
    """Add up what was told."""
    collector = Collector(filtered=False)
    for batch in batches:
        collector.take(batch)
    return collector


def names_told(batch: Batch) -> set[bytes]:
    """Return the names of the directories whose first piece is in a batch."""
    return {os.path.basename(piece[2]) for piece in batch.pieces if piece[2]}


def assert_settled(collector: Collector) -> None:
    """Fail unless every directory knows that nothing of it is still to come."""
    table = collector.table
    pending = {table.path(row): number for row, number in enumerate(table.pending) if number}
    assert pending == {}
    assert all(table.subtree(root).is_complete for root in table.roots())
