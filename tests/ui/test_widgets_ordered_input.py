"""The ordered input: keys that arrive together act in the order in which they were typed."""

from __future__ import annotations

import pytest
from textual.app import App, ComposeResult
from textual.events import Key
from textual.widgets import Input

from tui_fs.widgets.ordered_input import OrderedInput


class InputApp(App[None]):
    """An input with an initial value, and the value that was entered."""

    entered: str | None = None

    def compose(self) -> ComposeResult:
        yield OrderedInput("old", select_on_focus=False)

    def on_input_submitted(self, message: Input.Submitted) -> None:
        self.entered = message.value


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        (("x", "backspace", "y"), "oldy"),
        (("ctrl+u", "n", "e", "w"), "new"),
        (("home", "a", "end", "z"), "aoldz"),
        (("left", "delete", "left", "x", "end"), "oxl"),
    ],
)
async def test_keys_that_arrive_together_act_in_order(keys: tuple[str, ...], value: str) -> None:
    app = InputApp()
    async with app.run_test() as pilot:
        for key in (*keys, "enter", "!"):
            app.post_message(Key(key, key if len(key) == 1 else None))
        await pilot.pause()
        assert (app.entered, app.query_one(Input).value) == (value, f"{value}!")


async def test_a_key_that_the_input_has_no_action_for_reaches_the_app() -> None:
    class WithAppKey(InputApp):
        BINDINGS = [("f2", "note", "note")]
        noted = False

        def action_note(self) -> None:
            self.noted = True

    app = WithAppKey()
    async with app.run_test() as pilot:
        await pilot.press("f2")
        assert app.noted


async def test_the_cursor_of_the_focused_field_is_always_visible() -> None:
    app = InputApp()
    async with app.run_test() as pilot:
        field = app.query_one(Input)
        assert field.has_focus
        await pilot.pause(0.7)
        assert field._cursor_visible and field._blink_timer is not None
        await pilot.pause(0.5)
        assert field._cursor_visible
