"""MkDocs hook: fill the reference pages from the parsers, bindings and registries of tui_fs.

A page contains ``{{ NAME }}`` on a line of its own, where NAME is a key of `GENERATORS`.
"""

import argparse
import inspect
import itertools
import pkgutil
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path

import msgspec
from textual.app import App
from textual.binding import ActiveBinding, Binding

import tui_fs.screens
from tui_fs.app import TuiFsApp
from tui_fs.cli.parser import COMMAND_MODULES, app_parser, command_parser
from tui_fs.model.events import EVENT_TYPES
from tui_fs.model.strategy import Options
from tui_fs.screens.base import BaseScreen, key_actions
from tui_fs.strategies.base import Invocation, Strategy
from tui_fs.strategies.registry import STRATEGIES
from tui_fs.survey.findings.registry import FINDING_TYPES
from tui_fs.widgets.bar_table import BarTable
from tui_fs.widgets.confirm_dialog import ConfirmDialog
from tui_fs.widgets.path_input import PathInput

_PLACEHOLDER = re.compile(r"^\{\{ (\w+) \}\}$", re.MULTILINE)
_PACKAGE_FOLDER = f"{Path(tui_fs.screens.__file__).parents[2]}/"


def on_page_markdown(markdown: str, **_: object) -> str:
    """Replace the placeholders of a page."""
    return _PLACEHOLDER.sub(lambda match: "\n".join(GENERATORS[match[1]]()), markdown)


def _table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    cells = list(header)
    yield from ("", _row(cells), _row("---" for _ in cells))
    yield from map(_row, rows)
    yield ""


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"


def _code(text: str) -> str:
    return f"<code>{text.replace('<', '&lt;')}</code>"


def describe_commands() -> Iterator[str]:
    """Yield a section for each command: usage, and the arguments that have a help text."""
    yield from _describe_parser(app_parser())
    for command in COMMAND_MODULES:
        yield from _describe_parser(command_parser(command))


def _describe_parser(parser: argparse.ArgumentParser) -> Iterator[str]:
    yield from (f"## {parser.prog}", "", parser.description or "", "")
    usage = " ".join(parser.format_usage().removeprefix("usage: ").split())
    yield from (f"    {usage}", "")
    rows = [
        (_invocation(action), action.help.replace("%%", "%"))
        for action in parser._actions
        if action.help
        and action.help != argparse.SUPPRESS
        and not isinstance(action, argparse._SubParsersAction | argparse._HelpAction)
    ]
    if rows:
        yield from _table(("argument", "meaning"), rows)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for subparser in action.choices.values():
                yield from _describe_parser(subparser)


def _invocation(action: argparse.Action) -> str:
    value = "" if action.nargs == 0 else str(action.metavar or "")
    if not value and action.choices:
        value = "{" + ",".join(map(str, action.choices)) + "}"
    names = ", ".join(action.option_strings)
    return _code(" ".join(filter(None, (names, value))))


def describe_keys() -> Iterator[str]:
    """Yield a section for each screen: its explanation and its keys."""
    yield from _keys_section("On every screen", "", (TuiFsApp, BaseScreen))
    yield from _keys_section("In every list", "", (BarTable,))
    for screen in _screens():
        classes = tuple(cls for cls in screen.__mro__ if cls is not BaseScreen)
        yield from _keys_section(_title(screen), screen.EXPLANATION, classes)
    yield from _keys_section("Questions", "The default answer is No.", (ConfirmDialog,))
    yield from _keys_section("The path field", "", (PathInput,))


def _screens() -> list[type[BaseScreen]]:
    """Return all screens with an explanation, by title."""
    package = tui_fs.screens
    modules = [
        import_module(info.name)
        for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    ]
    values = itertools.chain.from_iterable(vars(module).values() for module in modules)
    screens = {
        value
        for value in values
        if inspect.isclass(value) and issubclass(value, BaseScreen) and value.EXPLANATION
    }
    return sorted(screens, key=_title)


def _title(screen: type) -> str:
    words = re.findall(r"[A-Z][a-z]+", screen.__name__.removesuffix("Screen"))
    return " ".join(words).capitalize()


def _keys_section(title: str, explanation: str, classes: Iterable[type]) -> Iterator[str]:
    bindings = [
        binding
        for cls in classes
        for declared in vars(cls).get("BINDINGS", ())
        if cls.__module__.startswith("tui_fs.")
        for binding in Binding.make_bindings([declared])
    ]
    yield from (f"## {title}", "", explanation, "")
    active = [ActiveBinding(App(), binding, True) for binding in bindings]
    rows = (
        (", ".join(map(_code, action.keys)), action.text)
        for action in key_actions(active, "Open the row under the cursor")
    )
    yield from _table(("key", "action"), rows)


def describe_strategies() -> Iterator[str]:
    """Yield the table of strategies and their command lines."""
    yield from _table(
        ("name", "race-safe", "depth", "filters", "disadvantage"),
        (
            (
                _code(strategy.name),
                "yes" if strategy.guarantees.race_safe else "confined",
                _depth(strategy),
                "yes" if strategy.guarantees.takes_filters else "no",
                strategy.trade_off,
            )
            for strategy in STRATEGIES.values()
        ),
    )


def _depth(strategy: Strategy) -> str:
    guarantees = strategy.guarantees
    if guarantees.max_levels is not None:
        return f"{guarantees.max_levels} levels"
    return "any" if guarantees.any_depth else "paths of 4,096 bytes"


def describe_strategy_commands() -> Iterator[str]:
    """Yield the command lines of each strategy."""
    for strategy in STRATEGIES.values():
        tools = {tool: tool for tool in strategy.tools}
        steps = strategy.steps(Invocation(("TARGET",), Options(), tools, "EMPTY"))
        lines = (" | ".join(map(shlex.join, step)) for step in steps)
        yield from (f"### {strategy.name}", "")
        yield from (f"    {line.replace(_PACKAGE_FOLDER, '')}" for line in lines)
        yield ""


def describe_findings() -> Iterator[str]:
    """Yield the table of the kinds of findings."""
    yield from _table(
        ("kind in JSON", "label on the screen"),
        ((_code(kind), entry.label) for kind, entry in FINDING_TYPES.items()),
    )


def describe_events() -> Iterator[str]:
    """Yield the table of the events of a job."""
    yield from _table(
        ("type", "meaning", "fields"),
        (
            (
                _code(name),
                (inspect.getdoc(event) or "").splitlines()[0],
                ", ".join(_code(field.name) for field in msgspec.structs.fields(event)),
            )
            for name, event in EVENT_TYPES.items()
        ),
    )


GENERATORS: Mapping[str, Callable[[], Iterator[str]]] = {
    "commands": describe_commands,
    "keys": describe_keys,
    "strategies": describe_strategies,
    "strategy_commands": describe_strategy_commands,
    "findings": describe_findings,
    "events": describe_events,
}
