"""The panes beside the browser's table: they follow the cursor and the width of the terminal."""

import pytest
from msgspec.structs import replace

from tests.ui.recorded import MAILDROP, SPOOL, screen_text, settle, until
from tests.ui.recorded_tree import DETAILS, NOW_S, SESSIONS, bins, directory, spool_listing
from tests.ui.test_browser import Browsing, answering, browsing
from tests.ui.test_screens import a_quiet_machine
from tui_fs.model.finding import Finding, FindingKind, Severity
from tui_fs.model.paths import PathStr
from tui_fs.model.survey import (
    Details,
    Histograms,
    Order,
    OwnerSum,
    Sorting,
    SuffixSum,
    Totals,
)
from tui_fs.screens.browser.panes import details_lines, treemap_parts
from tui_fs.screens.browser.screen import BrowserScreen
from tui_fs.survey.histogram import AGES_DAYS, SIZES_BYTES
from tui_fs.widgets.bar_table import BarTable
from tui_fs.widgets.treemap import Treemap

__all__ = ["a_quiet_machine", "answering"]

pytestmark = pytest.mark.usefixtures("answering")


def described(browser: Browsing) -> list[str]:
    return [q.partition(" ")[2] for q in browser.survey.asked if q.startswith("describe")]


async def resize(browser: Browsing, width: int, height: int) -> str:
    await browser.pilot.resize_terminal(width, height)
    await settle(browser.pilot)
    return screen_text(browser.pilot.app)


@pytest.mark.slow
async def test_a_wider_terminal_gets_panes_and_keeps_the_cursor() -> None:
    async with browsing() as browser:
        await browser.press("j", "j", "j", "j")
        table = browser.screen.query_one(BarTable)
        row = table.cursor_row
        assert described(browser) == []
        await resize(browser, 120, 40)
        await browser.sees("4.4 GiB (91 %), 1.10 M files")
        assert "area" not in screen_text(browser.pilot.app)
        await resize(browser, 200, 50)
        await until(browser.pilot, lambda: bool(browser.screen.query_one(Treemap).parts))
        for size in ((40, 15), (110, 24), (80, 24)):
            text = await resize(browser, *size)
            assert ("last change" in text) == (size[0] >= 110)
            assert table.cursor_row is not None
            assert row is not None
            assert table.cursor_row.key == row.key
            assert row.cells[-1][:3] in text  # the row with the cursor is in view


@pytest.mark.slow
async def test_the_panes_describe_the_directory_under_the_cursor() -> None:
    async with browsing() as browser:
        await resize(browser, 200, 50)
        assert described(browser) == [MAILDROP]
        await browser.press("j")
        assert described(browser) == [MAILDROP, SESSIONS]
        assert browser.screen.query_one("#treemap").highlighted == "sessions"  # type: ignore[attr-defined]
        await browser.press("G")  # a file: the shown directory
        assert described(browser)[-1] == SPOOL
        await browser.press("enter", "g", "r")  # counting again asks again
        assert described(browser)[-1] == MAILDROP


async def test_a_key_draws_the_cursor_without_a_new_layout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with browsing() as browser:
        await resize(browser, 120, 40)
        await browser.press("j")
        layouts: list[object] = []
        monkeypatch.setattr(BrowserScreen, "_refresh_layout", lambda *_, **__: layouts.append(1))
        await browser.press("j", "j", "k")
        browser.survey.count_on(finished=False)
        await browser.sees("counting")
        assert layouts == []


async def test_a_treemap_without_room_costs_nothing() -> None:
    async with browsing() as browser:
        treemap = browser.screen.query_one("#treemap", Treemap)
        await resize(browser, 120, 40)
        assert treemap.parts == ()
        await browser.press("T")
        await until(browser.pilot, lambda: treemap.parts != ())


def plain(lines: list[tuple[tuple[str, str], ...]]) -> list[str]:
    return ["".join(text for _, text in line) for line in lines]


@pytest.mark.parametrize("width", [37, 44])
@pytest.mark.parametrize("height", [3, 11, 17, 40])
def test_sections_that_do_not_fit_are_left_out(width: int, height: int) -> None:
    totals = spool_listing().totals
    lines = plain(
        details_lines(
            MAILDROP, totals, DETAILS, (), width, height, is_complete=False, is_filtered=False
        )
    )
    assert len(lines) <= height
    assert lines[0] == "maildrop/"
    assert ("last change" in "".join(lines)) == (height >= 14)
    assert all(len(line) <= width for line in lines)


def test_no_number_is_cut() -> None:
    most = 1_023 * (1 << 20) + 900_000
    histograms = Histograms(
        bins(AGES_DAYS, *[(0, 0)] * 5, (123_456_789, most)),
        bins(SIZES_BYTES, (123_456_789, most), *[(0, 0)] * 6),
        (SuffixSum("abcdefgh", 123_456_789, most),),
        (OwnerSum(0, "root", 123_456_789, most), OwnerSum(1, "long-name", 0, 0)),
    )
    totals = Totals(123_456_789, 12_345_678, 9_999_999, 1_234_567, most, most)
    details = Details(histograms, ((most, PathStr(MAILDROP + "/" + 100 * "x")),))
    lines = plain(
        details_lines(MAILDROP, totals, details, (), 37, 60, is_complete=False, is_filtered=False)
    )
    assert all(len(line) <= 37 for line in lines)
    assert [line for line in lines if "…" in line and "xxx" not in line] == []
    assert sum("1,023.9 MiB" in line for line in lines) == 8


def test_bars_show_entries_where_nothing_has_bytes() -> None:
    sizes = bins(SIZES_BYTES, (30, 0), (10, 0), *[(0, 0)] * 5)
    details = Details(Histograms((), sizes, (SuffixSum("log", 20, 0),)), ())
    totals = Totals(40)
    lines = plain(
        details_lines(MAILDROP, totals, details, (), 60, 60, is_complete=True, is_filtered=False)
    )
    full = 60 - 9 - 11 - 6 - 4  # without label and numbers
    drawn = {line.split()[0]: line.count("█") / full for line in lines if "█" in line}
    assert drawn == {
        "empty": pytest.approx(0.75, abs=0.05),
        "<": pytest.approx(0.25, abs=0.05),
        ".log": pytest.approx(0.5, abs=0.05),
    }


def test_details_say_what_they_do_not_know() -> None:
    totals = spool_listing().totals

    def text(details: Details | None, *, is_filtered: bool = False) -> str:
        lines = details_lines(
            MAILDROP,
            totals,
            details,
            (),
            40,
            40,
            is_complete=True,
            is_filtered=is_filtered,
        )
        return "\n".join(plain(lines))

    assert "not counted yet" in text(None)
    assert "r counts ages and sizes" in text(replace(DETAILS, histograms=None))
    assert "only what matches the filter" in text(DETAILS, is_filtered=True)
    assert "directories" not in text(DETAILS, is_filtered=True)
    assert DETAILS.histograms is not None
    without = replace(DETAILS, histograms=Histograms((), DETAILS.histograms.sizes))
    assert "older" not in text(without)
    assert "< 4 KiB" in text(without)


def test_findings_of_one_kind_are_distinguished() -> None:
    findings = [
        Finding(FindingKind("weird-names"), Severity.WARNING, MAILDROP, {key: 1}, "", "")
        for key in ("directories_control", "directories_dash")
    ]
    lines = plain(
        details_lines(
            MAILDROP, Totals(9), None, findings, 60, 60, is_complete=True, is_filtered=False
        )
    )
    assert [line for line in lines if line[:1] == "!"] == [
        "! control characters ./",
        "! leading dashes ./",
    ]


def test_the_treemap_has_all_bytes_or_entries_of_the_directory() -> None:
    listing = spool_listing()
    for sorting, whole in (
        (Sorting.NAME, listing.totals.allocated_bytes),
        (Sorting.INODES, listing.totals.entries - 1),  # without the directory itself
    ):
        parts = treemap_parts(listing, Order(sorting), NOW_S)
        assert sum(part.value for part in parts) == whole
        tones = {part.key: part.tone for part in parts}
        assert tones["maildrop"] == "recent"
    filtered = replace(listing, totals=Totals(files=9), children=(directory("a", Totals(files=7)),))
    parts = treemap_parts(filtered, Order(Sorting.ENTRIES), NOW_S)
    assert [(part.label, part.value) for part in parts] == [("a/", 7), ("the rest", 2)]
    old = replace(listing.children[0], newest_s=NOW_S - 90 * 86_400, name=PathStr("old"))
    (part, *_) = treemap_parts(replace(listing, children=(old,)), Order(), NOW_S)
    assert (part.key, part.tone) == ("old", "old")


@pytest.mark.slow
@pytest.mark.parametrize("size", [(40, 15), (80, 24), (200, 50)])
async def test_the_treemap_has_a_key_in_any_terminal_and_keeps_the_cursor(
    size: tuple[int, int],
) -> None:
    async with browsing() as browser:
        await resize(browser, *size)
        await browser.press("j")
        treemap = browser.screen.query_one(Treemap)
        was_wide = treemap.region.width
        shown = await browser.press("T")
        assert "last change" not in shown and "maildrop/" in shown
        assert treemap.region.width == size[0] - 2
        assert treemap.highlighted == "sessions"
        await browser.press("enter")
        await browser.sees("two/")
        assert [part.key for part in treemap.parts] == ["one", "two", "/rest"]
        await browser.press("h")
        await browser.sees("maildrop/")
        assert treemap.highlighted == "sessions"
        await browser.press("T")
        assert treemap.region.width == was_wide


@pytest.mark.slow
async def test_a_click_on_the_treemap_moves_the_cursor_and_a_second_one_opens() -> None:
    async with browsing() as browser:
        await browser.press("2", "T", "j")
        treemap = browser.screen.query_one(Treemap)
        assert treemap.highlighted == "sessions"
        await browser.pilot.click(Treemap, offset=(1, 1))
        await settle(browser.pilot)
        assert treemap.highlighted == "maildrop"
        await browser.pilot.click(Treemap, offset=(1, 1))
        await browser.sees("/srv/spool/maildrop")
        assert browser.screen.path == MAILDROP
