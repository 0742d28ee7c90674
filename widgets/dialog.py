"""A screen over another one that asks or explains, and closes itself."""

from __future__ import annotations

from textual.await_complete import AwaitComplete
from textual.screen import ModalScreen, ScreenResultType


class Dialog(ModalScreen[ScreenResultType]):
    """A dialog that closes only once, and no other screen.

    Several keys at the same time all reach it before the first of them has closed it.
    """

    def dismiss(self, result: ScreenResultType | None = None) -> AwaitComplete:
        """Close the dialog with a result, if it is still open."""
        return super().dismiss(result) if self.app.screen is self else AwaitComplete()
