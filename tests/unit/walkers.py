"""Trees counted by the walker, with every batch kept."""

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tui_fs.linux.directories import open_directory
from tui_fs.survey.aggregator import Aggregator
from tui_fs.survey.records import Batch
from tui_fs.survey.walker import OpenRoot, Walker


@contextmanager
def opened(*paths: Path | bytes) -> Iterator[list[OpenRoot]]:
    """Open roots."""
    roots: list[OpenRoot] = []
    try:
        for path in paths:
            descriptor = open_directory(os.fsencode(path))
            roots.append(OpenRoot(os.fsencode(path), descriptor, os.fstat(descriptor).st_dev))
        yield roots
    finally:
        for root in roots:
            os.close(root.descriptor)


class Ticking:
    """A clock that advances so far for every directory that the walker reports its progress."""

    def __init__(self) -> None:
        self._now_s = 0.0

    def __call__(self) -> float:
        """Return the next second."""
        self._now_s += 1.0
        return self._now_s


def walked(
    root: Path,
    meanwhile: Callable[[Batch], None] | None = None,
    mounts: Collection[bytes] = (),
) -> tuple[Aggregator, list[Batch]]:
    """Count a tree with a walker that reports each directory at once.

    Args:
        meanwhile: called with every batch during the walk.
    """
    batches: list[Batch] = []
    with opened(root) as roots:
        walker = Walker(roots, mounts, clock=Ticking())
        for batch in walker.batches(lambda: 1.0):
            assert batch is not None
            batches.append(batch)
            if meanwhile is not None:
                meanwhile(batch)
        walker.close()
    return collected(batches), batches


def collected(batches: Sequence[Batch]) -> Aggregator:
    """Aggregate the reported batches."""
    collector = Aggregator(filtered=False)
    for batch in batches:
        collector.take(batch)
    return collector


def reported_names(batch: Batch) -> set[bytes]:
    """Return the names of the directories whose first piece is in a batch."""
    return {os.path.basename(piece[2]) for piece in batch.pieces if piece[2]}


def assert_settled(collector: Aggregator) -> None:
    """Fail unless every directory knows that nothing of it is still to come."""
    table = collector.table
    pending = {table.path(row): number for row, number in enumerate(table.pending) if number}
    assert pending == {}
    assert all(table.subtree(root).is_complete for root in table.roots())
