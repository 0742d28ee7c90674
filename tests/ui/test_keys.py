"""A key means the same on every screen on which it does something."""

from collections import defaultdict
from collections.abc import Iterator
from importlib import import_module
from pkgutil import walk_packages

import pytest
from textual.binding import Binding

import tui_fs.screens
import tui_fs.widgets
from tui_fs.app import TuiFsApp
from tui_fs.screens.base import HELP_TASKS, BaseScreen
from tui_fs.widgets.bar_table import BarTable

LEAVE = {"app.pop_screen", "app.quit", "leave", "up", "dismiss", "close", "refuse", "cancel"}
"""Back: out of a list, a directory, a question, the view of a running job, or the program."""
SHARED = {
    "escape": LEAVE | {"remove_filter", "screen.close_field"},
    "q": LEAVE,
    "left": LEAVE | {"turn", "choose_previous"},
    "h": LEAVE | {"turn", "choose_previous"},
    "right": {"open", "result", "turn", "choose_next"},
    "l": {"open", "result", "turn", "choose_next"},
    "j": {"move", "scroll", "scroll_down", "scroll_text"},
    "k": {"move", "scroll", "scroll_up", "scroll_text"},
    "g": {"top", "to_end"},
    "G": {"bottom", "to_end"},
    "enter": {"open", "explain", "screen.accept", "dismiss"},
    "space": {"toggle_mark", "scroll", "toggle_button"},
    "question_mark": {"help", "dismiss"},
    "s": {"sort", "next"},
    "equals_sign": {"compare", "app.pop_screen"},
}
"""The one meaning of each of these keys, as the actions that have it."""

EXCEPTIONS = {
    # What each screen announces by this letter; neither changes anything.
    "r": {"recount", "recommended"},
}


def screen_classes() -> Iterator[type]:
    """Yield all classes of screens and widgets, and the app."""
    for package in (tui_fs.screens, tui_fs.widgets):
        for info in walk_packages(package.__path__, f"{package.__name__}."):
            for cls in vars(import_module(info.name)).values():
                if isinstance(cls, type) and cls.__module__ == info.name:
                    yield cls
    yield TuiFsApp


def meanings() -> dict[str, set[str]]:
    """Return the actions of each key that is a letter or shared, on all screens."""
    keys: dict[str, set[str]] = defaultdict(set)
    for cls in screen_classes():
        _add(keys, cls)
    return keys


def _add(keys: dict[str, set[str]], cls: type) -> None:
    for binding in Binding.make_bindings(vars(cls).get("BINDINGS", ())):
        if (len(binding.key) == 1 and binding.key.isalpha()) or binding.key in SHARED:
            keys[binding.key].add(binding.action.partition("(")[0])


MEANINGS = meanings()


def test_the_table_of_keys_covers_the_screens() -> None:
    assert {"d", "f", "m", "p", "x", "z", "F", "J"} <= MEANINGS.keys()


@pytest.mark.parametrize("key", sorted(MEANINGS))
def test_a_key_has_one_meaning_on_all_screens(key: str) -> None:
    actions = MEANINGS[key]
    toggled = actions - {"app.pop_screen"}  # the key that opens a screen closes it
    if key in SHARED:
        assert actions <= SHARED[key]
    elif key in EXCEPTIONS:
        assert actions == EXCEPTIONS[key]
    else:
        assert len(toggled) == 1, actions


def test_every_action_that_the_help_lists_belongs_to_one_task() -> None:
    listed = [cls for cls in screen_classes() if issubclass(cls, BaseScreen | BarTable | TuiFsApp)]
    actions = {
        binding.action.partition("(")[0].rpartition(".")[2]
        for cls in listed
        for binding in Binding.make_bindings(vars(cls).get("BINDINGS", ()))
    }
    named = [name for names in HELP_TASKS.values() for name in names]
    assert actions == set(named)
    assert len(named) == len(set(named))
