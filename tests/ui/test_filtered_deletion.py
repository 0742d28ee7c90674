"""Real surveys and deletions with a filter, by keys: nothing that does not match goes."""

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest
from textual.widgets import Button

from tests.trees import Manifest, Sentinel, manifest
from tests.ui.recorded import Host, screen_text, until, wait_for
from tests.ui.test_filters import DAY_S, type_filter
from tests.unit.import_files import tree_file
from tui_fs.job.view import JobList
from tui_fs.screens.base import BaseScreen, Settings
from tui_fs.screens.browser.screen import BrowserScreen
from tui_fs.screens.preview import PreviewScreen
from tui_fs.widgets.bar_table import BarTable


def without_sizes_of_directories(facts: Manifest) -> Manifest:
    """Leave out what a deletion of files in a directory changes of it."""
    return {
        name: replace(fact, mtime_ns=0, size=0) if fact.kind == "d" else fact
        for name, fact in facts.items()
    }


def aged_tree(place: Path) -> set[bytes]:
    """Make files on both sides of ``*.log <1M >30d``; return the relative paths that match."""
    now_s = time.time()
    matching = set()
    for directory in ("", "app", "app/deep", "app/old.log"):
        (place / directory).mkdir(exist_ok=True)
        for name in ("a.log", "b.log.gz", "c.LOG", "new\nline.log", "log", ".log"):
            for size, days in ((10, 31), (10, 29), (1 << 20, 31)):
                path = place / directory / f"{size}-{days}-{name}"
                path.write_bytes(b"x" * size)
                os.utime(path, (now_s - days * DAY_S,) * 2)
                if (size, days) == (10, 31) and name.endswith(".log"):
                    matching.add(os.fsencode(path.relative_to(place)))
    (place / "only-others").mkdir()
    (place / "only-others" / "fresh.log").touch()
    return matching


@pytest.mark.parametrize("is_in_preview", [False, True], ids=["in browser", "in preview"])
@pytest.mark.slow
async def test_only_what_matches_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_in_preview: bool
) -> None:
    monkeypatch.setattr("tui_fs.widgets.confirm_dialog.IGNORED_KEYS_S", 0)
    place = tmp_path / "place"
    place.mkdir()
    matching = aged_tree(place)
    sentinel = Sentinel(tmp_path)
    sentinel.plant(place / "app")
    before = without_sizes_of_directories(manifest(place))
    whole = {name: fact for name, fact in before.items() if name not in matching}
    settings = Settings(interval_s=0.05)
    screen: BaseScreen = BrowserScreen(str(place), settings)
    if is_in_preview:
        screen = PreviewScreen((str(place),), settings)
    async with Host(screen).run_test(size=(80, 24)) as pilot:
        if is_in_preview:
            await wait_for(pilot, "counted")
            await pilot.press("f", *"*.log <1M >30d", "enter")
        else:
            await wait_for(pilot, "complete")
            await type_filter(pilot, "*.log <1M >30d")
            await wait_for(pilot, f"matches {len(matching)} files")
            await pilot.press("D")
        await wait_for(pilot, f"{len(matching)} files match *.log, smaller than 1 MiB, not")
        await wait_for(pilot, "counted")
        rows = pilot.app.screen.query_one(BarTable)
        rows.move_to("xargs")
        await pilot.press("enter")
        await wait_for(pilot, f"only {len(matching)} files in it that match:")
        shown = screen_text(pilot.app)
        assert "*.log, smaller than 1 MiB, not modified since" in shown
        assert "all directories stay" in shown
        pilot.app.screen.query_one("#confirm-yes", Button).focus()
        await pilot.press("enter")
        await wait_for(pilot, "DONE")
        shown = screen_text(pilot.app)
        assert "only         *.log, smaller than 1 MiB, not modified since" in shown
        assert "DONE  matches in" in shown
        (job,), _ = JobList().read()
        assert job.place == f"matches in {place}"
        assert f"{len(matching)} of {len(matching)} deleted" in shown
        assert without_sizes_of_directories(manifest(place)) == whole
        sentinel.assert_whole()
        if is_in_preview:
            return
        await pilot.press("escape")
        await wait_for(pilot, "matches 0 files")
        await pilot.press("D")
        await wait_for(pilot, "0 files match")
        await wait_for(pilot, "counted")
        await pilot.press("enter")
        await until(pilot, lambda: pilot.app.screen.query_one("#message").display)
        assert "Delete permanently?" not in screen_text(pilot.app)


@pytest.mark.slow
async def test_an_import_without_times_says_so_and_shows_everything_again(tmp_path: Path) -> None:
    path = tree_file(tmp_path, {"name": "a.log", "asize": 9, "dsize": 512})
    async with Host(BrowserScreen("", Settings(interval_s=0), path)).run_test() as pilot:
        await wait_for(pilot, "a.log")
        await type_filter(pilot, ">30d")
        sentence = "has no modification times: it cannot be filtered by age."
        # A long path breaks the line there
        await until(pilot, lambda: sentence in " ".join(screen_text(pilot.app).split()))
        await pilot.press("escape")
        await wait_for(pilot, "a.log")
