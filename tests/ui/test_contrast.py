"""Text is readable: its colour differs enough from its background, as the WCAG measure it."""

from collections.abc import Callable

import pytest
from textual.color import Color
from textual.theme import BUILTIN_THEMES

from tests.ui.recorded import Host, settle
from tests.ui.test_browser_pictures import DESCRIBED, a_quiet_moment, choose, post_update
from tests.ui.test_screens import PREVIEWS, Act, a_quiet_machine, keys, preview, then
from tui_fs.app import TuiFsApp
from tui_fs.screens.base import BaseScreen
from tui_fs.widgets.contrast import MINIMUM_CONTRAST, contrast

__all__ = ["a_quiet_machine", "a_quiet_moment"]

FAINT_CONTRAST = 3.0
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


@pytest.mark.parametrize("theme", ["nord", "textual-light"])
@pytest.mark.parametrize("screen", SCREENS)
async def test_no_word_is_too_faint(screen: str, theme: str) -> None:
    make, act = SCREENS[screen]
    assert not await too_faint(make(), act, theme)


async def too_faint(screen: BaseScreen, act: Act, theme: str) -> list[tuple[str, float]]:
    """Return the words of a screen that have too little contrast."""
    app = Host(screen, theme)
    words: dict[str, float] = {}
    async with app.run_test(size=(200, 50)) as pilot:
        await settle(pilot)
        await act(pilot)
        await settle(pilot)
        for strip in app.screen._compositor.render_strips():
            for text, style, _ in strip:
                if style is None or not style.color or not style.bgcolor:
                    continue
                if any(character.isalnum() for character in text):
                    colour, background = map(Color.from_rich_color, (style.color, style.bgcolor))
                    words[text.strip()] = contrast(colour, background)
    return [word for word in words.items() if word[1] < FAINT_CONTRAST]
