"""The path input: what it completes, accepts and sends."""

from __future__ import annotations

import asyncio
import itertools
import os
import threading
from pathlib import Path

import pytest
from textual.app import App, ComposeResult
from textual.widgets import Button

from tui_fs.widgets.path_input import DirectorySuggester, PathInput, complete_directory


@pytest.fixture
def tree(tmp_path: Path) -> str:
    """A directory with names that are candidates and names that are none."""
    for name in ("spool", "spare", "Spool", ".hidden", "漢字", "[red]"):
        (tmp_path / name).mkdir()
    (tmp_path / "spa").write_text("a file")
    (tmp_path / "spb").symlink_to(tmp_path / "spool")
    (tmp_path / "ctl\x1b[31m").mkdir()
    os.mkdir(os.fsencode(tmp_path) + b"/bad\xff")
    return str(tmp_path)


@pytest.mark.parametrize(
    ("typed", "suggested"),
    [
        ("/sp", "/spare/"),
        ("/spo", "/spool/"),
        ("/spool", "/spool/"),
        ("/Sp", "/Spool/"),
        ("/.h", "/.hidden/"),
        ("/漢", "/漢字/"),
        ("/[r", "/[red]/"),
        ("//spo", "//spool/"),
        ("/spool/", None),
        ("/spa\n", None),
        ("/spb", None),
        ("/ctl", None),
        ("/bad", None),
        ("/none/x", None),
        ("/spa/x", None),
        ("/sp\0", None),
        ("/\udcff", None),
    ],
)
def test_directories_are_completed(tree: str, typed: str, suggested: str | None) -> None:
    expected = None if suggested is None else tree + suggested
    assert complete_directory(tree + typed) == expected


def test_home_and_relative_paths_stay_as_typed(tree: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", tree)
    monkeypatch.chdir(tree)
    assert complete_directory("~/spo") == "~/spool/"
    assert complete_directory("~") == "~/"
    assert complete_directory("spo") == "spool/"
    assert complete_directory("") is None


def test_a_scan_is_bounded_in_names_and_time(tmp_path: Path) -> None:
    for index in range(30):
        (tmp_path / f"d{index:02}").mkdir()
    last_read = [entry.name for entry in os.scandir(tmp_path)][-1]
    typed = f"{tmp_path}/{last_read}"
    ticks = itertools.count()
    assert complete_directory(typed, name_limit=30) == typed + "/"
    assert complete_directory(typed, name_limit=29) is None
    assert complete_directory(typed, time_limit_s=30, clock=lambda: next(ticks)) == typed + "/"
    assert complete_directory(typed, time_limit_s=29, clock=lambda: next(ticks)) is None
    assert complete_directory(f"{tmp_path}/d") == f"{tmp_path}/d00/"


async def test_only_the_latest_value_is_scanned_and_one_at_a_time() -> None:
    scanned: list[str] = []
    started, release = threading.Event(), threading.Event()

    def slow(value: str) -> str:
        scanned.append(value)
        started.set()
        assert release.wait(60)
        return value + "/"

    suggester = DirectorySuggester(slow)
    tasks = [asyncio.create_task(suggester.get_suggestion("/a"))]
    assert await asyncio.to_thread(started.wait, 10)
    tasks += [asyncio.create_task(suggester.get_suggestion(value)) for value in ("/ab", "/abc")]
    await asyncio.sleep(0)
    release.set()
    assert await asyncio.gather(*tasks) == ["/a/", None, "/abc/"]
    assert scanned == ["/a", "/abc"]


class PathApp(App[None]):
    def __init__(self) -> None:
        super().__init__()
        self.messages: list[str] = []

    def compose(self) -> ComposeResult:
        yield PathInput()
        yield Button("next")

    @property
    def path_input(self) -> PathInput:
        return self.query_one(PathInput)

    def on_path_input_chosen(self, event: PathInput.Chosen) -> None:
        self.messages.append(event.path)

    def on_path_input_cancelled(self) -> None:
        self.messages.append("cancelled")


@pytest.mark.parametrize("key", ["tab", "right"])
async def test_a_suggestion_is_accepted(tree: str, key: str) -> None:
    app = PathApp()
    async with app.run_test(size=(80, 24)) as pilot:
        app.path_input.insert_text_at_cursor(f"{tree}/spo")
        await app.workers.wait_for_complete()
        await pilot.pause()
        await pilot.press(key)
        await pilot.pause()
        assert app.path_input.value == f"{tree}/spool/"
        assert app.path_input.cursor_at_end
        assert app.focused is app.path_input


async def test_a_tab_before_the_suggestion_waits_for_it(tree: str) -> None:
    app = PathApp()
    async with app.run_test(size=(80, 24)) as pilot:
        app.path_input.insert_text_at_cursor(f"{tree}/spo")
        app.path_input.action_complete()
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert app.path_input.value == f"{tree}/spool/"
        assert app.focused is app.path_input


@pytest.mark.slow
async def test_tab_stays_when_there_is_nothing_to_complete(tree: str) -> None:
    app = PathApp()
    async with app.run_test(size=(80, 24)) as pilot:
        app.path_input.insert_text_at_cursor(f"{tree}/spool/")
        await pilot.press("tab")
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert app.focused is app.path_input


async def test_a_path_that_is_typed_after_another_one_replaces_it() -> None:
    app = PathApp()
    async with app.run_test(size=(80, 24)) as pilot:
        app.path_input.value = "/somewhere/else/"
        app.path_input.cursor_position = len(app.path_input.value)
        await pilot.press("slash", *"srv")
        assert app.path_input.value == "/srv"
        assert app.path_input.cursor_position == 4


async def test_enter_chooses_what_was_typed_with_home_expanded(
    tree: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", tree)
    app = PathApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("enter")
        app.path_input.insert_text_at_cursor("~/spo[b]")
        await pilot.press("enter", "escape")
        await pilot.pause()
        assert app.messages == [f"{tree}/spo[b]", "cancelled"]


async def test_a_pasted_control_character_is_refused() -> None:
    app = PathApp()
    async with app.run_test(size=(80, 24)):
        app.path_input.insert_text_at_cursor("/\x1b[31m")
        assert app.path_input.value == ""
