"""tui-fs profiles itself: from the command palette, without disturbing the screens."""

import threading
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from syrupy.assertion import SnapshotAssertion
from textual.pilot import Pilot

from tests.ui.recorded import Host, screen_text, wait_for
from tests.ui.test_screens import SMALL, picture
from tui_fs.lab.pyspy import Profile
from tui_fs.model.errors import TuiFsError
from tui_fs.screens.base import BaseScreen, Settings
from tui_fs.screens.doctor import DoctorScreen
from tui_fs.screens.profile import ProfileScreen, begin_profile

__all__ = ["picture"]

FOLDER = "/home/ann/.local/state/tui-fs/lab/self-profiles/2026-01-31-154500-7f3a"
RAW = """\
main (tui_fs/app.py:12);run (/usr/lib/python3/textual/app.py:90);layout (_layout.py:7) 50
main (tui_fs/app.py:12);run (/usr/lib/python3/textual/app.py:91);draw (_compositor.py:7) 30
main (tui_fs/app.py:12) 10
_wait (threading.py:3) 10
"""
TITLE = "Profile tui-fs itself for ten seconds"


class Look:
    """Stand-in for py-spy: ends when the test permits it."""

    def __init__(self) -> None:
        self.begun, self.done = threading.Event(), threading.Event()
        self.looks = 0
        self.left = threading.Event()
        self.error: TuiFsError | None = None

    def __call__(self, seconds: int, is_wanted: Callable[[], bool]) -> Profile:
        """Wait, as the real one does."""
        assert seconds == 10
        self.looks += 1
        self.begun.set()
        while not self.done.wait(0.02):
            if not is_wanted():
                self.left.set()
                raise TuiFsError("It was interrupted.")
        if self.error is not None:
            raise self.error
        return Profile(RAW, FOLDER)


@pytest.fixture
def look(monkeypatch: pytest.MonkeyPatch) -> Iterator[Look]:
    """Yield a stand-in for py-spy."""
    observed = Look()
    monkeypatch.setattr("tui_fs.screens.profile.profile_itself", observed)
    yield observed
    observed.done.set()


def command_of(app: Host) -> Callable[[], object]:
    """Return what the command palette does."""
    commands = {command.title: command.callback for command in app.get_system_commands(app.screen)}
    return commands[TITLE]


async def screen_is(pilot: Pilot[None], kind: type[BaseScreen]) -> None:
    """Wait until the screen is of a kind."""
    for _ in range(400):
        await pilot.pause(0.025)
        if isinstance(pilot.app.screen, kind):
            return
    raise AssertionError(f"still {pilot.app.screen}")


async def test_what_was_seen(picture: SnapshotAssertion) -> None:
    app = Host(ProfileScreen(Profile(RAW, FOLDER), Settings()))
    async with app.run_test(size=SMALL) as pilot:
        await pilot.pause()
        assert screen_text(app) == picture


async def test_a_program_that_only_waited_says_so() -> None:
    app = Host(ProfileScreen(Profile("", FOLDER), Settings()))
    async with app.run_test(size=SMALL) as pilot:
        await pilot.pause()
        assert "tui-fs was idle" in screen_text(app)


@pytest.mark.slow
async def test_it_goes_on_in_the_background_and_then_is_shown(look: Look) -> None:
    app = Host(DoctorScreen(Settings()))
    async with app.run_test(size=SMALL, notifications=True) as pilot:
        command_of(app)()
        await wait_for(pilot, "Profiling tui-fs for 10 seconds")
        assert isinstance(app.screen, DoctorScreen)
        await pilot.press("J")
        await wait_for(pilot, "no jobs yet")
        # And when it is over, it shows what was seen, and leads back
        look.done.set()
        await screen_is(pilot, ProfileScreen)
        await wait_for(pilot, "layout")
        await pilot.press("escape")
        await wait_for(pilot, "no jobs yet")


async def test_one_look_at_a_time(look: Look) -> None:
    app = Host(DoctorScreen(Settings()))
    async with app.run_test(size=SMALL, notifications=True) as pilot:
        begin = partial(begin_profile, app, Settings())
        begin()
        await wait_for(pilot, "Profiling tui-fs")
        begin()
        await wait_for(pilot, "being profiled already")
        assert look.looks == 1
        # And after it another one is possible
        look.done.set()
        await screen_is(pilot, ProfileScreen)
        await app.workers.wait_for_complete()
        begin()
        await app.workers.wait_for_complete()
        assert look.looks == 2


@pytest.mark.slow
async def test_a_refusal_is_told_in_words(look: Look) -> None:
    look.error = TuiFsError("py-spy may not profile [tui-fs].", "Start tui-fs as root.")
    look.done.set()
    app = Host(DoctorScreen(Settings()))
    async with app.run_test(size=SMALL, notifications=True) as pilot:
        command_of(app)()
        await wait_for(pilot, "may not profile [tui-fs]")
        await wait_for(pilot, "as root")
        assert isinstance(app.screen, DoctorScreen)


async def test_who_leaves_does_not_wait_for_it(look: Look) -> None:
    app = Host(DoctorScreen(Settings()))
    async with app.run_test(size=SMALL) as pilot:
        command_of(app)()
        await pilot.pause()
        assert look.begun.wait(10)
    assert look.left.wait(10)
