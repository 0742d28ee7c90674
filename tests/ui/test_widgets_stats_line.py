"""The line of figures as text."""

from __future__ import annotations

import pytest
from textual.app import App, ComposeResult

from tui_fs.widgets.stats_line import Figure, StatsLine, figure_parts, line_parts

FIGURES = (
    Figure("/s", "81,204"),
    Figure("elapsed", "0:08", label_first=True),
    Figure("failed", "3", tone="danger", label_first=True),
)


def drawn(width: int) -> str:
    return "".join(text for _, text in line_parts(FIGURES, width))


def test_figures_are_dropped_whole() -> None:
    assert drawn(80) == "81,204 /s · elapsed 0:08 · failed 3 !"
    assert drawn(37) == drawn(80)
    assert drawn(36) == "81,204 /s · elapsed 0:08 · …"
    assert drawn(28) == drawn(36)
    assert drawn(27) == "81,204 /s · …"
    assert drawn(12) == "…"
    assert drawn(0) == ""


def test_a_warning_is_seen_without_colour_and_only_once() -> None:
    assert figure_parts(Figure("full", "97 %", "warning")) == [
        ("warning", "97 %"),
        ("", " full"),
        ("warning", " !"),
    ]
    assert figure_parts(Figure("", "97 % !", "danger")) == [("danger", "97 % !")]


@pytest.mark.parametrize("width", range(40))
def test_the_line_is_never_wider_than_its_cells(width: int) -> None:
    assert len(drawn(width)) <= width


class LineApp(App[None]):
    def compose(self) -> ComposeResult:
        yield StatsLine()


async def test_the_widget_draws_its_figures_as_they_are() -> None:
    app = LineApp()
    async with app.run_test(size=(80, 24)) as pilot:
        line = app.query_one(StatsLine)
        line.figures = (Figure("[/b]", "[red]"), Figure("漢", "1"), Figure("", ""))
        await pilot.pause()
        assert line.render().plain == "[red] [/b] · 1 漢"
