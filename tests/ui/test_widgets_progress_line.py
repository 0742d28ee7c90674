"""The progress line as text and on the screen."""

from __future__ import annotations

import pytest
from rich.cells import cell_len
from textual.app import App, ComposeResult

from tui_fs.widgets.cell_drawing import fit_cells, fit_end
from tui_fs.widgets.progress_line import ProgressLine, draw_bar, percentage, progress_parts


@pytest.mark.parametrize(
    ("fraction", "bar"),
    [
        (-1.0, "░░░░░░░░░░"),
        (0.0, "░░░░░░░░░░"),
        (1e-12, "▏░░░░░░░░░"),
        (0.05, "▌░░░░░░░░░"),
        (0.458, "████▌░░░░░"),
        (0.5, "█████░░░░░"),
        (0.9999, "█████████▉"),
        (1.0, "██████████"),
        (2.0, "██████████"),
        (float("nan"), "░░░░░░░░░░"),
    ],
)
def test_the_bar_is_exact_to_an_eighth(fraction: float, bar: str) -> None:
    assert draw_bar(fraction, 10) == bar


@pytest.mark.parametrize(
    ("fraction", "text"),
    [
        (0.0, "0.0 %"),
        (1e-9, "<0.1 %"),
        (0.00099, "<0.1 %"),
        (0.001, "0.1 %"),
        (0.29, "29.0 %"),
        (0.5829, "58.2 %"),
        (0.9999999999999999, "99.9 %"),
        (1.0, "100.0 %"),
        (3.0, "100.0 %"),
    ],
)
def test_a_percentage_is_rounded_down(fraction: float, text: str) -> None:
    assert percentage(fraction) == text


def test_the_line_is_bar_percentage_caption() -> None:
    assert progress_parts(0.582, "7 of 12", 40, 7) == (
        "████████████▏░░░░░░░░",
        "    58.2 %",
        "  7 of 12",
    )
    assert progress_parts(None, "reading", 20, 7) == ("░" * 11, "", "  reading")
    assert progress_parts(0.5, "far too long", 24, 12) == ("███░░░", "    50.0 %", "  far t…")
    caption = "1 of 3 hosts done, 4,093 deleted, 1,489 /s"
    assert progress_parts(0.5, caption, 58, len(caption))[2].rstrip() == (
        "  1 of 3 hosts done, 4,093 deleted"
    )


def test_a_cut_text_fills_its_cells() -> None:
    assert [fit_cells("漢字漢", width) for width in range(7)] == [
        "",
        "…",
        "… ",
        "漢…",
        "漢… ",
        "漢字…",
        "漢字漢",
    ]
    assert fit_cells("12", 4, right=True) == "  12"


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        ("/srv/spool", 10, "/srv/spool"),
        ("/srv/spool", 6, "…spool"),
        ("/srv/spool", 1, "…"),
        ("/srv/日本", 4, "…本"),
        ("matches in /srv/spool", 17, "matches in …spool"),
        ("matches in /srv/spool", 11, "matches in"),
        ("300 directories in /srv/spool", 9, "300 dire…"),
        ("share 1/3 of /srv/spool", 19, "share 1/3 of …spool"),
        ("/srv/found in /spool", 7, "…/spool"),
    ],
)
def test_the_beginning_gives_way(text: str, width: int, shown: str) -> None:
    assert fit_end(text, width) == shown
    assert cell_len(fit_end(text, width)) <= width


class LineApp(App[None]):
    def compose(self) -> ComposeResult:
        yield ProgressLine()

    def line(self) -> str:
        return self.query_one(ProgressLine).render().plain


async def test_the_widget_fills_its_line_and_a_caption_is_no_markup() -> None:
    app = LineApp()
    async with app.run_test(size=(80, 24)) as pilot:
        line = app.query_one(ProgressLine)
        assert app.line() == "░" * 80
        line.fraction = 1.5
        line.caption = "[red]漢a[/b]"
        await pilot.pause()
        assert line.fraction == 1.0
        assert app.line().endswith("█  " + " 100.0 %  [red]漢a[/b]")
        assert cell_len(app.line()) == 80


async def test_the_bar_keeps_its_length_when_the_caption_shrinks() -> None:
    app = LineApp()
    async with app.run_test(size=(80, 24)) as pilot:
        line = app.query_one(ProgressLine)
        line.fraction = 0.0
        line.caption = "1,000 of 1,000"
        await pilot.pause()
        before = app.line().count("░")
        line.caption = "9 of 1,000"
        await pilot.pause()
        assert app.line().count("░") == before
