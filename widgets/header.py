"""A line with the present action, its path and a note."""

from __future__ import annotations

from typing import ClassVar

from rich.cells import cell_len
from rich.text import Text
from textual.app import RenderResult
from textual.reactive import reactive
from textual.widget import Widget

from tui_fs.widgets.cell_drawing import fit_end

GAP = 2
SEPARATOR = " · "


class Header(Widget):
    """Draws a verb, a path, and a note at the right; a long path loses its beginning."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"place-line--place", "place-line--note"}

    DEFAULT_CSS = """
    Header {
        height: 1;
        padding: 0 1;

        & > .place-line--place { text-style: bold; }
        & > .place-line--note { color: $text-muted; }
    }
    """

    verb: reactive[str] = reactive("")
    """The present action; displayable."""

    place: reactive[str] = reactive("")
    """Displayable; its beginning is cut when the line is too narrow."""

    note: reactive[Text] = reactive(Text)
    """At the right; of a line too narrow for the place, it takes at most half.

    Then its first parts, as ` · ` separates them, are left out.
    """

    def render(self) -> RenderResult:
        """Draw the line."""
        width = self.size.width
        verb = f"{self.verb} " if self.verb else ""
        limit = max(width // 2, width - cell_len(verb) - cell_len(self.place) - GAP)
        note = self.note.copy()
        while note.cell_len > limit and SEPARATOR in note.plain:
            note = note[note.plain.index(SEPARATOR) + len(SEPARATOR) :]
        note.truncate(limit, overflow="ellipsis")
        room = width - cell_len(verb) - (note.cell_len + GAP if note else 0)
        place = fit_end(self.place, max(1, room))
        line = Text(no_wrap=True, overflow="crop")
        line.append(verb)
        line.append(place, self.get_component_rich_style("place-line--place"))
        line.append(" " * max(0, width - line.cell_len - note.cell_len))
        if note.cell_len > width - line.cell_len:
            note = Text()
        line.truncate(width, overflow="ellipsis")
        note.stylize_before(self.get_component_rich_style("place-line--note"))
        return line.append_text(note)
