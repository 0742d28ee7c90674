"""The snapshots of screens, the styles of all apps, and the end of their threads."""

import time
from collections.abc import AsyncIterator, Iterator
from threading import Event
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet


class _TextFile(SingleFileSnapshotExtension):
    """One readable file for each screen."""

    _write_mode = WriteMode.TEXT
    _file_extension = file_extension = "txt"  # syrupy 4 and 5 name it differently


@pytest.fixture
def picture(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    """Return what a screen's text is compared with."""
    return snapshot.use_extension(_TextFile)


@pytest.fixture(scope="session", autouse=True)
def styles_are_parsed_once() -> Iterator[None]:
    """Let hundreds of apps share the parsed styles, which no app changes."""
    parse = Stylesheet._parse_rules
    parsed: dict[object, list[RuleSet]] = {}

    def parse_once(stylesheet: Stylesheet, *arguments: Any, **options: Any) -> list[RuleSet]:
        variables = frozenset(stylesheet._variables.items())
        key = variables, arguments, frozenset(options.items())
        if key not in parsed:
            parsed[key] = parse(stylesheet, *arguments, **options)
        return parsed[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stylesheet, "_parse_rules", parse_once)
        yield


@pytest.fixture(autouse=True)
def usual_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw for the same terminal wherever the tests run."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


@pytest.fixture(autouse=True)
async def end_of_polling(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """Wake the threads that poll, for which the event loop waits at its end."""
    is_over = Event()
    # To wait for 0 s would let no other thread run
    monkeypatch.setattr(time, "sleep", lambda seconds: is_over.wait(max(seconds, 0.001)))
    yield
    is_over.set()
