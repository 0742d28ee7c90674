"""Rows of a bar list that are made when they are drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import overload

from widgets.bar_row import BarRow


class LazyRows(Sequence[BarRow]):
    """As many rows as there are keys; only those in view are ever made.

    Args:
        keys: The rows' keys, in order.
        make: Makes the row at an index (never negative).
    """

    def __init__(self, keys: Sequence[str], make: Callable[[int], BarRow]) -> None:
        """Create rows of which none is made yet."""
        self.keys = keys
        self._make = make

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.keys)

    @overload
    def __getitem__(self, index: int) -> BarRow: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[BarRow]: ...

    def __getitem__(self, index: int | slice) -> BarRow | Sequence[BarRow]:
        """Make the row at an index, or those of a slice."""
        indexes = range(len(self.keys))[index]
        return self._make(indexes) if isinstance(indexes, int) else [self[i] for i in indexes]


def keys_of(rows: Sequence[BarRow]) -> Sequence[str]:
    """Return the keys of rows, without making any."""
    return rows.keys if isinstance(rows, LazyRows) else [row.key for row in rows]
