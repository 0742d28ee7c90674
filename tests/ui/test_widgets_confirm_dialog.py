"""The confirmation: No unless one means Yes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from rich.text import Text
from textual.app import App
from textual.pilot import Pilot
from textual.widgets import Button, Input, Static

from widgets.confirm_dialog import IGNORED_ENTER_S, ConfirmDialog, visible_spaces, word_prompt


class Clock:
    """Time that moves only when a test moves it."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


class DialogApp(App[None]):
    def __init__(self) -> None:
        super().__init__()
        self.answers: list[bool | None] = []

    async def ask(
        self, pilot: Pilot[None], dialog: ConfirmDialog, clock: Clock | None = None
    ) -> None:
        """Show a dialog, and with its clock wait until Enter counts."""
        self.push_screen(dialog, self.answers.append)
        await pilot.pause()
        if clock is not None:
            clock.now_s += IGNORED_ENTER_S

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


def dialog(word: str | None = None, clock: Callable[[], float] | None = None) -> ConfirmDialog:
    return ConfirmDialog(
        "Delete /var/spool?",
        ["1,204,113 files", Text("1 directory")],
        "This cannot be undone.",
        word,
        clock=clock or Clock(),
    )


async def test_enter_alone_means_no() -> None:
    app, clock = DialogApp(), Clock()
    async with app.run_test(size=(80, 24)) as pilot:
        await app.ask(pilot, dialog(clock=clock), clock)
        assert isinstance(app.focused, Button)
        assert app.focused.id == "confirm-no"
        await pilot.press("enter")
        await pilot.pause()
        assert app.answers == [False]


@pytest.mark.parametrize("key", ["tab", "right", "l", "left", "h", "shift+tab"])
@pytest.mark.slow
async def test_yes_needs_the_focus_moved_and_enter(key: str) -> None:
    app, clock = DialogApp(), Clock()
    async with app.run_test(size=(80, 24)) as pilot:
        await app.ask(pilot, dialog(clock=clock), clock)
        await pilot.press(key)
        assert app.answers == []
        await pilot.press("enter")
        await pilot.pause()
        assert app.answers == [True]


@pytest.mark.slow
async def test_no_single_key_confirms() -> None:
    app, clock = DialogApp(), Clock()
    async with app.run_test(size=(80, 24)) as pilot:
        await app.ask(pilot, dialog(clock=clock), clock)
        await pilot.press("y", "Y", "d", "space", "delete", "up", "down")
        await pilot.pause()
        assert app.answers == []


@pytest.mark.slow
async def test_an_early_enter_is_ignored() -> None:
    app, clock = DialogApp(), Clock()
    async with app.run_test(size=(80, 24)) as pilot:
        await app.ask(pilot, dialog(clock=clock))
        await pilot.press("tab", "enter", "enter")
        clock.now_s += IGNORED_ENTER_S - 0.01
        await pilot.press("enter")
        await pilot.pause()
        assert app.answers == []
        clock.now_s += 0.02
        await pilot.press("enter")
        await pilot.pause()
        assert app.answers == [True]


async def test_an_early_enter_after_the_word_is_ignored() -> None:
    app, clock = DialogApp(), Clock()
    async with app.run_test(size=(80, 24)) as pilot:
        await app.ask(pilot, dialog("w", clock))
        await pilot.press("w", "enter")
        await pilot.pause()
        assert app.answers == []


@pytest.mark.parametrize("word", [None, "spool"])
@pytest.mark.slow
async def test_escape_means_no_wherever_the_focus_is(word: str | None) -> None:
    app = DialogApp()
    async with app.run_test(size=(80, 24)) as pilot:
        for keys in ((), ("tab",), ("tab", "tab")):
            await app.ask(pilot, dialog(word))
            await pilot.press(*keys, "escape")
            await pilot.pause()
        assert app.answers == [False, False, False]


@pytest.mark.slow
async def test_the_word_must_be_exact() -> None:
    app, clock = DialogApp(), Clock()
    async with app.run_test(size=(80, 24)) as pilot:
        await app.ask(pilot, dialog("hljk", clock), clock)
        mismatch = app.screen.query_one("#confirm-mismatch", Static)
        assert isinstance(app.focused, Input)
        await pilot.press("h", "l", "j", "enter")
        await pilot.pause()
        assert app.yes_is_disabled()
        assert str(mismatch.render()) == "does not match"
        await pilot.press("K")
        await pilot.pause()
        assert app.yes_is_disabled()
        assert str(mismatch.render()) == ""
        await pilot.press("backspace", "k")
        await pilot.pause()
        assert not app.yes_is_disabled()
        await pilot.press("x")
        await pilot.pause()
        assert app.yes_is_disabled()
        await pilot.press("backspace", "enter")
        await pilot.pause()
        assert app.answers == [True]


async def test_without_the_word_the_focus_cannot_reach_yes() -> None:
    app, clock = DialogApp(), Clock()
    async with app.run_test(size=(80, 24)) as pilot:
        await app.ask(pilot, dialog("spool", clock), clock)
        await pilot.press("tab")
        assert app.focused is app.screen.query_one("#confirm-no")
        await pilot.click("#confirm-yes")
        await pilot.press("right")
        assert app.focused is app.screen.query_one("#confirm-word")
        assert app.answers == []


@pytest.mark.slow
async def test_the_right_word_frees_the_button() -> None:
    app, clock = DialogApp(), Clock()
    async with app.run_test(size=(80, 24)) as pilot:
        await app.ask(pilot, dialog("ok", clock), clock)
        await pilot.press("o", "k", "tab", "right", "enter")
        await pilot.pause()
        assert app.answers == [True]


@pytest.mark.parametrize("word", ["[red]", "a[/b]c", "漢字", "a b", "$x", "\\["])
@pytest.mark.slow
async def test_nothing_is_markup_and_any_word_can_be_typed(word: str) -> None:
    app, clock = DialogApp(), Clock()
    async with app.run_test(size=(80, 24)) as pilot:
        odd = ConfirmDialog(
            f"title {word}",
            [f"line {word}"],
            f"gone {word}",
            word,
            yes_label=f"yes {word}",
            no_label=f"no {word}",
            clock=clock,
        )
        await app.ask(pilot, odd, clock)
        shown = app.shown()
        for text in (f"title {word}", f"line {word}", f"gone {word}", f"no {word}", f"yes {word}"):
            assert text in shown
        assert f"type {word} to confirm" in shown
        await pilot.press(*("space" if key == " " else key for key in word), "enter")
        await pilot.pause()
        assert app.answers == [True]


def test_spaces_that_one_would_not_see_are_shown() -> None:
    assert visible_spaces(" a b  c ") == "␣a b␣␣c␣"
    assert visible_spaces("a b") == "a b"
    assert word_prompt("a ").plain == "type a␣ to confirm  (␣ is a space)"


async def test_a_pasted_control_character_is_refused() -> None:
    app = DialogApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await app.ask(pilot, dialog("spool"))
        word = app.screen.query_one("#confirm-word", Input)
        word.insert_text_at_cursor("\x1b[31m")
        assert word.value == ""


@pytest.mark.slow
async def test_a_long_path_is_wrapped_and_the_answer_stays_in_view() -> None:
    app = DialogApp()
    path = "/" + "/".join(f"part{index:02}-漢字" for index in range(90))
    async with app.run_test(size=(80, 24)) as pilot:
        long = ConfirmDialog(path[:300], [path], "This cannot be undone.", "w" * 250)
        await app.ask(pilot, long)
        await pilot.pause()
        shown = app.shown()
        for text in ("This cannot be undone.", "to confirm", "No, go back", "Delete"):
            assert text in shown
        squeezed = "".join(character for character in shown if character not in " \n│")
        assert path[:300] in squeezed
        assert "w" * 250 in squeezed
        await pilot.press("tab", "down")
        await pilot.pause()
        assert app.screen.query_one("#confirm-text").scroll_offset.y == 1
