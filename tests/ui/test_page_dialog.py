"""The browser writes its survey as a page."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion
from textual.pilot import Pilot
from textual.widgets import Input

from tests.filesystems import mount, unmount_below
from tests.ui.recorded import SPOOL, Host, at_all_sizes, screen_text, until, wait_for
from tests.ui.recorded_tree import TreeSurvey
from tests.ui.test_screens import DISK, SMALL
from tui_fs.screens.base import Settings
from tui_fs.screens.browser.page_dialog import (
    PageDialog,
    PageFile,
    suggested_name,
    write_page,
)
from tui_fs.screens.browser.screen import BrowserScreen

NOON_S = 1_700_000_000.0


@pytest.fixture(autouse=True)
def tree_survey(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tui_fs.screens.survey_client.SurveyProcess", TreeSurvey)
    monkeypatch.setattr(TreeSurvey, "begun", [])


def browser() -> Host:
    return Host(BrowserScreen(SPOOL, Settings()))


async def ask(pilot: Pilot[None], name: str) -> None:
    """Open the dialog and type a file name instead of the suggested one."""
    await wait_for(pilot, "sessions")
    await pilot.press("e")
    await until(pilot, lambda: isinstance(pilot.app.screen, PageDialog))
    pilot.app.screen.query_one(Input).value = name
    await pilot.press("enter")


async def test_the_end_of_a_long_suggested_name_is_seen() -> None:
    async with browser().run_test(size=SMALL) as pilot:
        await pilot.app.push_screen(PageDialog(SPOOL + "/with/a/long/path" * 4, is_whole=True))
        await wait_for(pilot, ".html")
        # And after a change of the width of the terminal
        await pilot.resize_terminal(60, 20)
        await wait_for(pilot, ".html")


async def test_the_page_is_in_the_suggested_file(tmp_path: Path) -> None:
    app = browser()
    async with app.run_test(size=SMALL) as pilot:
        await wait_for(pilot, "sessions")
        await pilot.press("e")
        await wait_for(pilot, "A web page (HTML) of /srv/spool.")
        await pilot.press("enter")
        await wait_for(pilot, "The page is written")
    (file,) = tmp_path.iterdir()
    assert file.read_bytes() == b"<!doctype html>the page"
    assert file.name.startswith("tui-fs-") and "-srv-spool-" in file.name
    assert TreeSurvey.begun[0].asked.count("page") == 1


async def test_the_dialog(picture: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui_fs.screens.browser.screen.file_system_of", lambda _: DISK)
    monkeypatch.setattr("tui_fs.screens.browser.page_dialog._here", lambda: "/root")
    async with browser().run_test(size=SMALL) as pilot:
        await wait_for(pilot, "sessions")
        await pilot.app.push_screen(PageDialog(SPOOL, is_whole=False))
        pilot.app.screen.query_one(Input).value = "tui-fs-web1-srv-spool-2026-11-27.html"
        assert await at_all_sizes(pilot) == picture


async def test_an_existing_file_is_replaced_only_after_a_question(tmp_path: Path) -> None:
    (tmp_path / "kept.html").write_text("old")
    async with browser().run_test(size=SMALL) as pilot:
        await ask(pilot, "kept.html")
        await wait_for(pilot, "Replace the file?")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, PageDialog))
        assert (tmp_path / "kept.html").read_text() == "old"
        await pilot.press("enter")
        await wait_for(pilot, "Replace the file?")
        await pilot.press("y")
        await wait_for(pilot, "The page is written")
    assert (tmp_path / "kept.html").read_text() == "<!doctype html>the page"


async def test_a_file_that_cannot_be_written_leaves_the_dialog_open(tmp_path: Path) -> None:
    async with browser().run_test(size=SMALL) as pilot:
        await ask(pilot, "missing/page.html")
        await wait_for(pilot, "No such file")
        assert isinstance(pilot.app.screen, PageDialog)
        await pilot.press("escape")
        await wait_for(pilot, "sessions")
    assert list(tmp_path.iterdir()) == []


async def test_an_unfinished_survey_is_announced(tmp_path: Path) -> None:
    async with browser().run_test(size=SMALL) as pilot:
        await wait_for(pilot, "sessions")

        def is_counting() -> bool:
            TreeSurvey.begun[0].count_on(finished=False)  # an update soon after another is dropped
            return " counting" in screen_text(pilot.app)

        await until(pilot, is_counting)
        await pilot.press("e")
        await wait_for(pilot, "Counting has not finished")
        await pilot.press("enter")
        # The path before it is as long as it is here, so a line may end anywhere.
        words = "Counting had not finished; the page states it."
        await until(pilot, lambda: words in " ".join(screen_text(pilot.app).split()))
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.slow
async def test_a_filtered_survey_has_no_page(tmp_path: Path) -> None:
    async with browser().run_test(size=SMALL) as pilot:
        await wait_for(pilot, "sessions")
        await pilot.press("f", *"*.log", "enter", "e")
        await wait_for(pilot, "A page has no filter.")
        await pilot.press("escape", "e")  # its survey knows the ages only of what matched
        await wait_for(pilot, "A page has no filter.")
        await pilot.press("r", "e")
        await until(pilot, lambda: isinstance(pilot.app.screen, PageDialog))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("root", "host", "name"),
    [
        ("/var/spool", "web1", "tui-fs-web1-var-spool-"),
        ("/", "web1", "tui-fs-web1-root-"),
        ("/srv/a b\n\x1b[2J\udcff", "web 1", "tui-fs-web_1-srv-a_b_2J_-"),
        ("/" + "x" * 300, "", "tui-fs-host-" + "x" * 60 + "-"),
    ],
)
def test_a_suggested_name_is_typable(root: str, host: str, name: str) -> None:
    suggested = suggested_name(root, host, NOON_S)
    assert suggested.startswith(name)
    assert suggested.endswith("2023-11-14.html")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    point = mount(tmp_path / "disk", "tui-fs-test", "tmpfs", "size=1m")
    yield point
    unmount_below(point)


@pytest.mark.root
def test_a_full_disk_is_one_sentence_and_leaves_no_file(small_disk: Path) -> None:
    file = PageFile(str(small_disk / "page.html"))
    sentence = write_page(file, bytes(2 << 20), is_whole=True)
    assert "cannot be written: No space left on device. Press e" in sentence
    assert os.listdir(small_disk) == []
