"""The preview answers keys while a file system does not answer what the preview asks it."""

import threading
from collections.abc import Iterator

import pytest

from tests.ui.recorded import MAILDROP, Host
from tests.ui.test_confirmation_stays import SURVEY, a_quiet_machine, alive, found
from tests.ui.test_screens import SMALL, post_forecast, settle
from tests.ui.test_screens_starting import until
from tui_fs.screens.base import Settings
from tui_fs.screens.options import OptionsDialog
from tui_fs.screens.preview import CallsScreen, PreviewScreen

__all__ = ["a_quiet_machine", "alive"]

pytestmark = pytest.mark.usefixtures("alive")


class Silence:
    """A function that returns when it is released."""

    def __init__(self) -> None:
        self.entered, self.released = threading.Event(), threading.Event()

    def __call__(self, *_: object, **__: object) -> None:
        assert threading.current_thread() is not threading.main_thread()
        self.entered.set()
        assert self.released.wait(60)


@pytest.fixture
def silence() -> Iterator[Silence]:
    """Give such a function, which is released at the end."""
    silence = Silence()
    yield silence
    silence.released.set()


async def test_what_the_confirmation_needs_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, silence: Silence
) -> None:
    monkeypatch.setattr("tui_fs.screens.preview.why_type_name", silence)
    preview = PreviewScreen((MAILDROP,), Settings())
    async with Host(preview).run_test(size=SMALL) as pilot:
        await settle(pilot)
        post_forecast(preview, SURVEY, found())
        await settle(pilot)
        await pilot.press("enter")
        await until(pilot, silence.entered.is_set)
        await pilot.press("c")
        await until(pilot, lambda: isinstance(pilot.app.screen, CallsScreen))
        # And the question is not asked any more over what is shown by then
        silence.released.set()
        await settle(pilot)
        assert isinstance(pilot.app.screen, CallsScreen)


async def test_the_prediction_for_other_options_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, silence: Silence
) -> None:
    preview = PreviewScreen((MAILDROP,), Settings())
    async with Host(preview).run_test(size=SMALL) as pilot:
        await settle(pilot)
        post_forecast(preview, SURVEY, found())
        await settle(pilot)
        monkeypatch.setattr("tui_fs.screens.preview.forecast", silence)
        await pilot.press("o")
        await until(pilot, lambda: isinstance(pilot.app.screen, OptionsDialog))
        await pilot.press("enter")
        await until(pilot, silence.entered.is_set)
        # And nothing is confirmed by what was predicted for the options before
        await pilot.press("enter")
        await pilot.pause(0.2)
        assert pilot.app.screen is preview
        await pilot.press("escape")
        await until(pilot, lambda: pilot.app.screen is not preview)
        silence.released.set()
