"""Text is readable: its colour differs enough from its background, as the WCAG measure it."""

from collections.abc import Callable

import pytest
from textual.app import ComposeResult
from textual.color import Color
from textual.screen import Screen
from textual.theme import BUILTIN_THEMES

from tests.ui.recorded import Host, settle, wait_for
from tests.ui.test_browser_pictures import DESCRIBED, a_quiet_moment, choose, post_update
from tests.ui.test_screens import PREVIEWS, Act, a_quiet_machine, keys, preview, then
from tui_fs.app import TuiFsApp
from tui_fs.screens.base import BaseScreen
from tui_fs.widgets.bar_table import BarRow, BarTable
from tui_fs.widgets.contrast import MINIMUM_CONTRAST, contrast

__all__ = ["a_quiet_machine", "a_quiet_moment"]

FAINT_CONTRAST = 3.0
SHOWN = ["nord", "textual-light"]
COLOURED = sorted(name for name, theme in BUILTIN_THEMES.items() if not theme.ansi)
SCREENS: dict[str, tuple[Callable[[], BaseScreen], Act]] = {
    "browser": (choose, post_update(DESCRIBED)),
    "filter": (choose, then(post_update(DESCRIBED), keys("f"))),
    "preview": (preview, PREVIEWS["complete"]),
}


def test_black_on_white_has_the_greatest_contrast() -> None:
    black, white = Color.parse("#000000"), Color.parse("#ffffff")
    assert contrast(black, white) == contrast(white, black) == pytest.approx(21.0)
    assert contrast(white, white) == 1.0
    assert contrast(Color.parse("#767676"), white) == pytest.approx(4.54, abs=0.01)


@pytest.mark.parametrize("theme", COLOURED)
def test_coloured_text_is_readable_in_each_theme(theme: str) -> None:
    variables = TuiFsApp("/", theme=theme).theme_variables
    for text in ("primary", "warning", "error", "success", "accent"):
        for background in ("background", "surface"):
            first, second = variables[f"text-{text}"], variables[background]
            assert contrast(Color.parse(first), Color.parse(second)) >= MINIMUM_CONTRAST


@pytest.mark.parametrize("theme", SHOWN)
@pytest.mark.parametrize("screen", SCREENS)
async def test_no_word_is_too_faint(screen: str, theme: str) -> None:
    make, act = SCREENS[screen]
    app = Host(make(), theme)
    async with app.run_test(size=(200, 50)) as pilot:
        await settle(pilot)
        await act(pilot)
        await settle(pilot)
        assert not words_below(FAINT_CONTRAST, app)


class Listed(Screen[None]):
    def compose(self) -> ComposeResult:
        yield BarTable()


@pytest.mark.parametrize("theme", SHOWN)
async def test_a_muted_row_is_readable_under_the_cursor(theme: str) -> None:
    app = Host(Listed(), theme)
    async with app.run_test(size=(60, 20)) as pilot:
        app.screen.query_one(BarTable).set_rows([BarRow("k", ("access.log",), tone="muted")])
        await wait_for(pilot, "access.log")
        assert not words_below(MINIMUM_CONTRAST, app, "access")


def words_below(minimum: float, app: Host, part: str = "") -> dict[str, float]:
    """Return the contrast of the words with less than the minimum, of those with some part."""
    words: dict[str, float] = {}
    for strip in app.screen._compositor.render_strips():
        for text, style, _ in strip:
            if style is None or not style.color or not style.bgcolor or part not in text:
                continue
            if any(character.isalnum() for character in text):
                colour, background = map(Color.from_rich_color, (style.color, style.bgcolor))
                words[text.strip()] = contrast(colour, background)
    return {word: shown for word, shown in words.items() if shown < minimum}
