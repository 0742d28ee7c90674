"""What the screens beside the browser ask of it."""

from typing import Protocol

from tui_fs.model.paths import PathStr
from tui_fs.model.survey import Ranking
from tui_fs.screens.selection import Selection, Size


class BrowserAccess(Protocol):
    """The browser as the ranking and the findings see it."""

    @property
    def marks(self) -> Selection:
        """What is marked."""

    @property
    def why_no_marks(self) -> str:
        """Why nothing may be marked here, in a sentence; empty if it may."""

    def jump_to(self, path: PathStr) -> None:
        """Show the place, the cursor on it."""

    def rank(self, by: Ranking) -> None:
        """Ask the survey for a ranking."""

    def toggle_mark(self, path: PathStr, size: Size) -> None:
        """Mark a directory or remove its mark; says why if it cannot be."""

    def mark_named(self, name: str) -> None:
        """Mark all directories of a name."""
