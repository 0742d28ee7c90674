"""The confirmation: No unless one means Yes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from pkgutil import walk_packages

import pytest
from rich.text import Text
from textual import events
from textual.app import App
from textual.pilot import Pilot
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Static

import tui_fs.screens
from tui_fs.widgets.confirm_dialog import (
    IGNORED_BY_ITSELF_S,
    IGNORED_KEYS_S,
    ConfirmDialog,
    visible_spaces,
    word_prompt,
)
from tui_fs.widgets.dialog import Dialog
from tui_fs.widgets.key_question import KeyQuestion


class Clock:
    """Time that moves only when a test moves it."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


class DialogApp(App[None]):
    """An app that shows dialogs, and their answers."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: list[bool | None] = []
        self.clock = Clock()

    def yes_is_disabled(self) -> bool:
        """Whether the dialog can be confirmed by its button."""
        return self.screen.query_one("#confirm-yes", Button).disabled

    def shown(self) -> str:
        """The text on the screen."""
        lines = [
            "".join(segment.text for segment in strip)
            for strip in self.screen._compositor.render_strips()
        ]
        return "\n".join(lines)


class Asked:
    """The app and its pilot."""

    def __init__(self, app: DialogApp, pilot: Pilot[None]) -> None:
        self.app, self.pilot = app, pilot

    async def ask(self, dialog: Dialog[bool]) -> None:
        """Show a dialog."""
        self.app.push_screen(dialog, self.app.answers.append)
        await self.pilot.pause()

    async def press(self, *keys: str) -> list[bool | None]:
        """Press keys; return all answers so far."""
        await self.pilot.press(*keys)
        await self.pilot.pause()
        return self.app.answers


@asynccontextmanager
async def asked(word: str | None = None, *, is_early: bool = False) -> AsyncIterator[Asked]:
    """Ask for a confirmation, and wait until Enter counts."""
    app = DialogApp()
    async with app.run_test(size=(80, 24)) as pilot:
        asked = Asked(app, pilot)
        await asked.ask(dialog(word, app.clock))
        app.clock.now_s += 0.0 if is_early else IGNORED_KEYS_S
        yield asked


def dialog(word: str | None, clock: Clock) -> ConfirmDialog:
    return ConfirmDialog(
        "Delete /var/spool?",
        ["1,204,113 files", Text("1 directory")],
        "This cannot be undone.",
        word,
        clock=clock,
    )


async def test_enter_alone_means_no() -> None:
    async with asked() as asking:
        assert isinstance(asking.app.focused, Button)
        assert asking.app.focused.id == "confirm-no"
        assert await asking.press("enter") == [False]


@pytest.mark.parametrize("key", ["tab", "right", "l", "left", "h", "shift+tab"])
@pytest.mark.slow
async def test_yes_needs_the_focus_moved_and_enter(key: str) -> None:
    async with asked() as asking:
        assert await asking.press(key) == []
        assert await asking.press("enter") == [True]


@pytest.mark.slow
async def test_no_single_key_confirms() -> None:
    async with asked() as asking:
        assert await asking.press("y", "Y", "d", "space", "delete", "up", "down") == []


@pytest.mark.slow
async def test_early_keys_are_ignored_until_they_stop() -> None:
    """As those of a key that is held, of a paste, or of a list below."""
    async with asked(is_early=True) as asking:
        await asking.press("tab", "right", "l", "enter")
        for _ in range(5):
            asking.app.clock.now_s += IGNORED_KEYS_S - 0.01
            assert await asking.press("x", "right", "enter") == []
        asking.app.clock.now_s += IGNORED_KEYS_S
        assert await asking.press("enter") == [False]


async def test_a_question_that_opens_by_itself_waits_longer() -> None:
    async with asked(is_early=True) as asking:
        clock = asking.app.clock
        await asking.ask(ConfirmDialog("Go on?", [], "", None, clock=clock, opens_by_itself=True))
        for key in ("down", "right", "enter"):
            clock.now_s += IGNORED_KEYS_S + 0.05
            assert await asking.press(key) == []
        clock.now_s += IGNORED_BY_ITSELF_S
        assert await asking.press("enter") == [False]


@pytest.mark.parametrize("keys", [("enter",) * 2, ("enter",) * 3])
async def test_keys_at_the_same_time_close_nothing_else(keys: tuple[str, ...]) -> None:
    async with asked() as asking:
        await asking.ask(dialog(None, asking.app.clock))
        asking.app.clock.now_s += IGNORED_KEYS_S
        for key in keys:
            asking.app.post_message(events.Key(key, None))
        assert await asking.press() == [False]
        assert isinstance(asking.app.screen, ConfirmDialog)


async def test_two_keys_answer_a_question_for_one_key_once() -> None:
    app = DialogApp()
    async with app.run_test(size=(80, 24)) as pilot:
        asking, base = Asked(app, pilot), app.screen
        await asking.ask(dialog(None, app.clock))
        below = app.screen
        await asking.ask(KeyQuestion("Count?", (), "y", "counts it"))
        for key in ("y", "n"):
            app.post_message(events.Key(key, None))
        assert await asking.press() == [True]
        assert app.screen is below is not base


def test_all_dialogs_close_only_once() -> None:
    for module in walk_packages(tui_fs.screens.__path__, "tui_fs.screens."):
        import_module(module.name)
    ours = [c for c in ModalScreen.__subclasses__() if c.__module__.startswith("tui_fs")]
    assert ours == [Dialog]


async def test_an_early_enter_after_the_word_is_ignored() -> None:
    async with asked("w", is_early=True) as asking:
        assert await asking.press("w", "enter") == []


@pytest.mark.parametrize("word", [None, "spool"])
@pytest.mark.slow
async def test_escape_means_no_wherever_the_focus_is(word: str | None) -> None:
    async with asked(word) as asking:
        await asking.press("escape")
        for keys in (("tab",), ("tab", "tab")):
            await asking.ask(dialog(word, asking.app.clock))
            await asking.press(*keys, "escape")
        assert asking.app.answers == [False, False, False]


@pytest.mark.slow
async def test_the_word_must_be_exact() -> None:
    async with asked("hljk") as asking:
        app = asking.app
        mismatch = app.screen.query_one("#confirm-mismatch", Static)
        assert isinstance(app.focused, Input)
        await asking.press("h", "l", "j", "enter")
        assert app.yes_is_disabled()
        assert str(mismatch.render()) == "does not match"
        await asking.press("K")
        assert app.yes_is_disabled()
        assert str(mismatch.render()) == ""
        await asking.press("backspace", "k")
        assert not app.yes_is_disabled()
        await asking.press("x")
        assert app.yes_is_disabled()
        assert await asking.press("backspace", "enter") == [True]


async def test_without_the_word_the_focus_cannot_reach_yes() -> None:
    async with asked("spool") as asking:
        app = asking.app
        await asking.press("tab")
        assert app.focused is app.screen.query_one("#confirm-no")
        await asking.pilot.click("#confirm-yes")
        assert await asking.press("right") == []
        assert app.focused is app.screen.query_one("#confirm-word")


@pytest.mark.slow
async def test_the_right_word_frees_the_button() -> None:
    async with asked("ok") as asking:
        assert await asking.press("o", "k", "tab", "right", "enter") == [True]


@pytest.mark.parametrize("word", ["[red]", "a[/b]c", "漢字", "a b", "$x", "\\["])
@pytest.mark.slow
async def test_nothing_is_markup_and_any_word_can_be_typed(word: str) -> None:
    async with asked() as asking:
        labels = (f"title {word}", f"line {word}", f"gone {word}", f"yes {word}", f"no {word}")
        title, line, gone, yes, no = labels
        app = asking.app
        odd = ConfirmDialog(title, [line], gone, word, yes_label=yes, no_label=no, clock=app.clock)
        await asking.ask(odd)
        app.clock.now_s += IGNORED_KEYS_S
        shown = app.shown()
        assert [label for label in labels if label not in shown] == []
        assert f"type {word} to confirm" in shown
        keys = ["space" if key == " " else key for key in word]
        assert await asking.press(*keys, "enter") == [True]


def test_spaces_that_one_would_not_see_are_shown() -> None:
    assert visible_spaces(" a b  c ") == "␣a b␣␣c␣"
    assert visible_spaces("a b") == "a b"
    assert word_prompt("a ").plain == "type a␣ to confirm  (␣ is a space)"


async def test_a_pasted_control_character_is_refused() -> None:
    async with asked("spool") as asking:
        word = asking.app.screen.query_one("#confirm-word", Input)
        word.insert_text_at_cursor("\x1b[31m")
        assert word.value == ""


@pytest.mark.slow
async def test_a_long_path_is_wrapped_and_the_answer_stays_in_view() -> None:
    path = "/" + "/".join(f"part{index:02}-漢字" for index in range(90))
    async with asked() as asking:
        long = ConfirmDialog(path[:300], [path], "This cannot be undone.", "w" * 250)
        await asking.ask(long)
        await asking.pilot.pause()
        shown = asking.app.shown()
        for text in ("This cannot be undone.", "to confirm", "No, go back", "Delete"):
            assert text in shown
        squeezed = "".join(character for character in shown if character not in " \n│")
        assert path[:300] in squeezed
        assert "w" * 250 in squeezed
        await asking.press("tab", "down")
        assert asking.app.screen.query_one("#confirm-text").scroll_offset.y == 1
