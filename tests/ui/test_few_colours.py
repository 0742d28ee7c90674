"""Terminals with few colours or none: the cursor row and the buttons are visible all the same."""

import pytest
from msgspec.structs import replace
from rich.color import Color
from rich.style import Style

from tests.ui.recorded import Host, screen_text, until, wait_for
from tests.ui.test_browser_pictures import DESCRIBED, a_quiet_moment, choose, post_update
from tui_fs.app import FEW_COLOURS_THEME, TRUECOLOR_THEME
from tui_fs.linux.filesystem import FileSystem
from tui_fs.screens.base import Settings
from tui_fs.screens.options import Choices, OptionsDialog
from tui_fs.screens.start import StartScreen
from tui_fs.widgets.bar_table import BarTable
from tui_fs.widgets.confirm_dialog import ConfirmDialog
from tui_fs.widgets.footer import Footer

__all__ = ["a_quiet_moment"]

DISKS = [
    FileSystem("ext4", "/dev/vda1", "/", False, 100, 50, 50),
    FileSystem("ext4", "/dev/vdb1", "/srv", False, 100, 60, 60),
]


def styles_of(app: Host, words: str) -> set[Style]:
    """Return the styles of the line that has some words."""
    (line,) = (
        strip
        for strip in app.screen._compositor.render_strips()
        if words in "".join(segment.text for segment in strip)
    )
    return {segment.style for segment in line if segment.style is not None}


def underlined(app: Host) -> list[str]:
    """Return the underlined words of each line."""
    return [
        "".join(segment.text for segment in strip if segment.style and segment.style.underline)
        for strip in app.screen._compositor.render_strips()
    ]


@pytest.mark.parametrize("without_colours", [False, True])
async def test_the_cursor_row_is_reversed(
    monkeypatch: pytest.MonkeyPatch, without_colours: bool
) -> None:
    if without_colours:
        monkeypatch.setenv("NO_COLOR", "1")
    app = Host(StartScreen("/", Settings(), lambda: list(DISKS)), FEW_COLOURS_THEME)
    async with app.run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "/srv")
        assert any(style.reverse for style in styles_of(app, "50 %"))
        assert not any(style.reverse for style in styles_of(app, "40 %"))
        if without_colours:
            styles = styles_of(app, "40 %")
            assert all(style.color is None or style.color.is_default for style in styles)


async def test_the_palette_shows_the_chosen_row_without_colours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = Host(StartScreen("/", Settings(), lambda: list(DISKS)), FEW_COLOURS_THEME)
    async with app.run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "/srv")
        await pilot.press("ctrl+p")
        await wait_for(pilot, "Last row")
        await pilot.press("down")
        await until(pilot, lambda: any(" (" in words for words in underlined(app)))


async def test_a_form_shows_without_colours_which_field_has_the_focus(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = Host(StartScreen("/", Settings(), lambda: list(DISKS)), FEW_COLOURS_THEME)

    def has(words: str, attribute: str) -> bool:
        return any(getattr(style, attribute) for style in styles_of(app, words))

    async with app.run_test(size=(80, 24)) as pilot:
        await app.push_screen(OptionsDialog(Choices()))
        await wait_for(pilot, "niceness")
        app.screen.query_one("#nice").focus()
        await until(pilot, lambda: has("niceness", "reverse"))
        assert not has("names per rm", "reverse")
        app.screen.query_one("#source").focus()
        await until(pilot, lambda: has("automatic: the engine", "bold"))
        assert not has("automatic: where", "bold")


async def test_a_key_that_asks_first_has_dots_that_the_console_can_draw(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "linux")
    app = Host(StartScreen("/", Settings(), lambda: list(DISKS)), FEW_COLOURS_THEME)
    async with app.run_test(size=(80, 24)) as pilot:
        app.screen.query_one(Footer).keys = (("d", "delete…"), ("?", "help"))
        await wait_for(pilot, "d delete...")


async def test_words_end_with_dots_that_the_console_can_draw(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "linux")
    app = Host(StartScreen("/", Settings(), list))
    async with app.run_test(size=(80, 24)) as pilot:
        app.screen.query_one(BarTable).empty_text = "reading…"
        await wait_for(pilot, "reading...")


async def test_keys_have_the_colours_of_the_terminal() -> None:
    app = Host(StartScreen("/", Settings(), lambda: list(DISKS)), "ansi-light")
    async with app.run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "/srv")
        colours = {style.color for style in styles_of(app, "this directory  :")}
        white = {Color.parse(name) for name in ("white", "bright_white", "#ffffff")}
        assert not colours & white


@pytest.mark.parametrize("word", ["word", None])
async def test_buttons_of_a_dialog_have_their_words(word: str | None) -> None:
    app = Host(StartScreen("/", Settings(), lambda: list(DISKS)), FEW_COLOURS_THEME)
    async with app.run_test(size=(80, 24)) as pilot:
        await app.push_screen(ConfirmDialog("Delete?", ["one"], "It cannot be undone.", word))
        await wait_for(pilot, "No, go back")
        await wait_for(pilot, "Delete  ")
        assert "╭" in screen_text(app)
        unreadable = [
            segment.text
            for strip in app.screen._compositor.render_strips()
            for segment in strip
            if segment.text.strip() and segment.style is not None
            if segment.style.color is not None and not segment.style.color.is_default
            if segment.style.color == segment.style.bgcolor
        ]
        assert not unreadable


async def test_the_legend_of_the_map_has_the_filling_of_the_map(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = Host(choose(), FEW_COLOURS_THEME)
    async with app.run_test(size=(200, 50)) as pilot:
        await post_update(DESCRIBED)(pilot)
        await wait_for(pilot, "███")
        assert "▒▒▒" not in screen_text(app)  # nothing is old
        assert DESCRIBED.listing is not None
        first, *others = DESCRIBED.listing.children
        children = (replace(first, newest_s=0), *others)
        listing = replace(DESCRIBED.listing, children=children)
        await post_update(replace(DESCRIBED, listing=listing))(pilot)
        await wait_for(pilot, "▒▒▒ nothing newer")
        dim = {
            segment.style.dim
            for strip in app.screen._compositor.render_strips()
            for segment in strip
            if segment.style is not None and "▒▒▒" in segment.text
        }
        assert True not in dim


@pytest.mark.parametrize("theme", [TRUECOLOR_THEME, FEW_COLOURS_THEME])
async def test_a_range_of_keys_looks_like_each_other_key(theme: str) -> None:
    app = Host(StartScreen("/", Settings(), lambda: list(DISKS)), theme)
    async with app.run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "/srv")
        app.screen.query_one(Footer).keys = (("1–6", "order"), ("↑↓", "move"), ("e", "page"))
        await wait_for(pilot, "1–6 order")
        (line,) = (
            strip
            for strip in app.screen._compositor.render_strips()
            if "order" in "".join(segment.text for segment in strip)
        )
        shown = [each for each in line if each.text.strip() and each.style is not None]
        assert len({each.style.color for each in shown if each.style}) == 1
