"""The line of place keeps the end of a path."""

import pytest
from rich.cells import cell_len

from widgets.cell_drawing import fit_end


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        ("/srv/spool", 10, "/srv/spool"),
        ("/srv/spool", 6, "…spool"),
        ("/srv/spool", 1, "…"),
        ("/srv/日本", 4, "…本"),
    ],
)
def test_the_beginning_gives_way(text: str, width: int, shown: str) -> None:
    assert fit_end(text, width) == shown
    assert cell_len(fit_end(text, width)) <= width
