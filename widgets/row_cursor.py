"""The arithmetic of a cursor in a list of rows that change and scroll under it."""

from __future__ import annotations

from collections.abc import Sequence

from widgets.bar_row import BarRow
from widgets.lazy_rows import keys_of


class RowCursor:
    """A cursor that stays on its row's key when the rows are sorted again or replaced.

    The rows are the sequence given, not a copy, and must not change afterwards.
    """

    def __init__(self) -> None:
        """Create a cursor without rows."""
        self.rows: Sequence[BarRow] = ()
        self.index = 0

    @property
    def row(self) -> BarRow | None:
        """The row under the cursor; None when there are no rows."""
        return self.rows[self.index] if self.rows else None

    def replace_rows(self, rows: Sequence[BarRow], *, keep: bool) -> None:
        """Replace the rows.

        Args:
            rows: The new rows.
            keep: Stay on the same key, or at the same index when the key has gone; otherwise go
                to the first row.
        """
        before = self.row
        self.rows = rows
        if keep and before is not None:
            self.go_to_key(before.key)
        else:
            self.index = 0

    def go_to_key(self, key: str) -> None:
        """Go to the row with this key; without one stay at the index, or at the last row."""
        # A refresh mostly leaves the row where it was; the search is for a new order.
        if self.index < len(self.rows) and self.rows[self.index].key == key:
            return
        try:
            self.index = keys_of(self.rows).index(key)
        except ValueError:
            self.go_to(self.index)

    def go_to(self, index: int) -> bool:
        """Go to an index, or as near as there are rows, and tell whether the cursor moved."""
        before = self.index
        self.index = max(0, min(index, len(self.rows) - 1))
        return self.index != before

    def is_visible(self, top: int, height: int) -> bool:
        """Whether the cursor is among the `height` rows from `top`."""
        return top <= self.index < top + height

    def revealing_top(self, top: int, height: int) -> int:
        """The first row to show, nearest to `top`, so that the cursor is in view."""
        return self.bounded_top(max(self.index - height + 1, min(top, self.index)), height)

    def bounded_top(self, top: int, height: int) -> int:
        """The first row to show, nearest to `top`, so that the view ends with the last row."""
        return max(0, min(top, len(self.rows) - height))
