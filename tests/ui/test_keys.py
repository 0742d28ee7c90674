"""A key means the same on every screen on which it does something."""

from collections.abc import Iterable

from textual.binding import Binding

from tui_fs.app import TuiFsApp
from tui_fs.screens.base import BaseScreen
from tui_fs.screens.browser.screen import BrowserScreen
from tui_fs.screens.browser.search import SearchScreen
from tui_fs.screens.browser.side_screens import FindingsScreen, MarksScreen, RankingScreen
from tui_fs.screens.preview import PreviewScreen
from tui_fs.screens.report import ReportScreen
from tui_fs.screens.run import RunScreen
from widgets.bar_table import BarTable

LISTS = (BrowserScreen, FindingsScreen, RankingScreen, MarksScreen, SearchScreen)
ELSEWHERE = (PreviewScreen, RunScreen, ReportScreen)
BACK = {"escape", "q", "left", "h", "backspace"}
SAME = {"p", "question_mark"}
"""Pause; help."""
AGAIN = {"r"}
"""Count again; continue a dead job, which asks first."""


def actions(*classes: type) -> dict[str, set[str]]:
    """Return the actions of each key, those of the bases of the classes included."""
    keys: dict[str, set[str]] = {}
    for cls in {base for listed in classes for base in listed.__mro__}:
        is_own = cls.__module__.startswith(("tui_fs.", "widgets."))
        for binding in _bindings(vars(cls).get("BINDINGS", ()) if is_own else ()):
            keys.setdefault(binding.key, set()).add(binding.action)
    return keys


def _bindings(declared: Iterable[object]) -> list[Binding]:
    own = [binding for binding in declared if isinstance(binding, Binding)]
    return list(Binding.make_bindings(own))


def test_a_key_has_one_meaning_in_the_browser_and_the_lists_over_it() -> None:
    keys = actions(*LISTS, BarTable, TuiFsApp)
    # The key that opens a list closes it, and a digit selects the same criterion.
    toggles = {"tab": "findings", "b": "ranking", "M": "marks", "s": "sort"}
    for key, its_actions in keys.items():
        if key in BACK or key.isdigit():
            continue
        its_actions -= {"app.pop_screen", "next", "focus_next", "app.focus_next"}
        assert len(its_actions) <= 1, (key, its_actions)
        assert key not in toggles or its_actions == {toggles[key]}


def test_a_digit_selects_the_same_criterion_in_the_browser_and_the_ranking() -> None:
    for key, its_actions in actions(BrowserScreen, RankingScreen).items():
        if key.isdigit():
            criteria = {action.partition("(")[2] for action in its_actions}
            assert len(criteria) == 1, (key, its_actions)


def test_no_key_of_the_browser_means_something_else_elsewhere() -> None:
    bases = set(BaseScreen.__mro__)
    browser = {
        key
        for screen in LISTS
        for cls in screen.__mro__
        if cls not in bases
        for key in actions_of_class(cls)
    }
    others = {
        key
        for screen in ELSEWHERE
        for cls in screen.__mro__
        if cls not in bases
        for key in actions_of_class(cls)
    }
    assert browser & others <= BACK | SAME | AGAIN


def actions_of_class(cls: type) -> set[str]:
    """Return the keys that one class declares."""
    return {binding.key for binding in _bindings(vars(cls).get("BINDINGS", ()))}
