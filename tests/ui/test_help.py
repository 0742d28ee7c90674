"""The help of a screen explains what the screen shows."""

import ast
from pathlib import Path

import pytest
from textual import events
from textual.app import App
from textual.containers import VerticalScroll
from textual.pilot import Pilot
from textual.widgets import Static

import tui_fs.screens
from tests.ui.recorded import (
    Host,
    screen_text,
    settle,
    until,
    wait_for,
)
from tests.ui.test_screens import SMALL
from tui_fs.app import TuiFsApp
from tui_fs.job.doctor import Row, Section
from tui_fs.screens.base import BaseScreen, HelpScreen, Settings, by_task
from tui_fs.screens.doctor import DoctorScreen
from tui_fs.screens.jobs import JobsScreen
from tui_fs.screens.lab.experiments import LabScreen
from tui_fs.screens.options import Choices, OptionsDialog
from tui_fs.screens.preview import PreviewScreen
from tui_fs.widgets.bar_table import BarTable
from tui_fs.widgets.call_table import MEANINGS, TITLES
from tui_fs.widgets.key_question import KeyQuestion

SCREENS = Path(tui_fs.screens.__file__).parent


def titled_columns() -> list[tuple[str, ast.Call]]:
    """Return every column with a title that a screen defines, and where."""
    columns = []
    for path in sorted(SCREENS.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or ast.unparse(node.func) != "Column":
                continue
            if ast.unparse(node.args[0]) != "''":
                columns.append((f"{path.name}:{node.lineno}", node))
    return columns


def test_every_column_has_a_meaning_for_the_help() -> None:
    columns = titled_columns()
    assert len(columns) > 30
    for place, column in columns:
        assert any(keyword.arg == "meaning" for keyword in column.keywords), place


def test_every_column_of_the_call_table_has_a_meaning() -> None:
    assert list(MEANINGS) == [title.strip() for title in TITLES if title]


async def open_preview(pilot: Pilot[None], path: Path) -> BaseScreen:
    target = path / "target"
    target.mkdir()
    screen = PreviewScreen((str(target),), Settings())
    await pilot.app.push_screen(screen)
    await until(pilot, lambda: isinstance(screen.focused, BarTable))
    return screen


async def test_a_refused_preview_offers_only_keys_that_act(tmp_path: Path) -> None:
    app = TuiFsApp(str(tmp_path))
    async with app.run_test(size=SMALL) as pilot:
        screen = PreviewScreen(("/usr/bin",), Settings())
        await app.push_screen(screen)
        await wait_for(pilot, "Refused")
        tasks = by_task(screen.actions(), screen.OPENS_FOR)
        assert "delete" not in tasks
        assert [text for _, text in tasks["move"]] == [
            "Scroll down", "Scroll up",
            "Scroll the text below the list down", "Scroll the text below the list up",
            "Scroll the text down", "Scroll the text up",
        ]  # fmt: skip
        described = {action.text for action in screen.actions()}
        assert not any(text.startswith(("Scroll Left", "Scroll Home")) for text in described)
        assert not any("Copy" in text or "Filter" in text for text in described)
        assert screen.legend() == {}


async def test_the_help_of_the_lab_begins_with_what_runs_an_experiment(tmp_path: Path) -> None:
    app = TuiFsApp(str(tmp_path))
    async with app.run_test(size=SMALL) as pilot:
        screen = LabScreen(str(tmp_path), Settings())
        await app.push_screen(screen)
        await until(pilot, lambda: isinstance(screen.focused, BarTable))
        first, *_ = by_task(screen.actions(), screen.OPENS_FOR).values()
        assert [keys for keys, _ in first] == ["enter", "P", "right, l", "v"]


@pytest.mark.parametrize("key", ["pagedown", "pageup", "down", "up", "ctrl+end"])
async def test_the_palette_endures_a_key_before_it_is_drawn(key: str) -> None:
    app = Host(JobsScreen(Settings()))
    async with app.run_test(size=SMALL) as pilot:
        for pressed in ("ctrl+p", key):
            app.post_message(events.Key(pressed, None))
        await wait_for(pilot, "a part of what you want to do")


async def test_help_and_palette_list_what_keys_do_on_the_preview(tmp_path: Path) -> None:
    app = TuiFsApp(str(tmp_path))
    async with app.run_test(size=SMALL) as pilot:
        screen = await open_preview(pilot, tmp_path)
        texts = [action.text for action in screen.actions()]
        assert len(texts) == len(set(texts))  # none is offered twice
        described = {action.text: action.keys for action in screen.actions()}
        assert described["Ask for confirmation of the highlighted strategy"] == [
            "enter",
            "right",
            "l",
        ]
        assert described["Search all actions of this screen by name"] == ["ctrl+p"]
        assert not any("Open the row" in text or "Mark the row" in text for text in described)
        palette = {command.title for command in app.get_system_commands(screen)}
        named = {f"{text} ({', '.join(keys)})" for text, keys in described.items()}
        assert named - palette == {"Search all actions of this screen by name (ctrl+p)"}
        assert "Quit; running jobs continue (ctrl+q)" in palette
        assert "Screenshot" not in palette
        (options,) = (
            command
            for command in app.get_system_commands(screen)
            if command.title.startswith("Options")
        )
        await options.callback()
        assert type(app.screen).__name__ == "OptionsDialog"
        # A question offers its answers only.
        await pilot.press("ctrl+p")
        assert type(app.screen).__name__ == "OptionsDialog"


@pytest.mark.slow
async def test_the_help_lists_keys_by_task_and_scrolls_with_the_keys_of_lists(
    tmp_path: Path,
) -> None:
    app = TuiFsApp(str(tmp_path))
    async with app.run_test(size=SMALL) as pilot:
        await pilot.press("question_mark")
        await pilot.pause()
        shown = screen_text(app)
        assert shown.index("FIND") < shown.index("/ ")
        assert "1–6" in shown
        assert "THIS SCREEN" not in shown
        seen = []
        for _ in range(12):
            await pilot.press("space")
            await pilot.pause()
            seen.append(screen_text(app))
        titles = ("CHOOSE", "DELETE", "WHILE IT RUNS", "LEAVE", "COLUMNS", "THIS SCREEN")
        firsts = [next(n for n, text in enumerate(seen) if title in text) for title in titles]
        assert firsts == sorted(firsts)
        await pilot.press(*["pageup"] * 12)
        await pilot.pause()
        assert "FIND" in screen_text(app)


@pytest.mark.slow
async def test_the_help_of_a_narrow_screen_cuts_no_text(tmp_path: Path) -> None:
    app = TuiFsApp(str(tmp_path))
    async with app.run_test(size=(40, 15)) as pilot:
        await pilot.press("question_mark")
        await wait_for(pilot, "FIND")
        inside = [line[3:36] for line in screen_text(app).splitlines()[2:12]]
        assert "Open the directory under the cursor" in " ".join(" ".join(inside).split())


@pytest.mark.slow
async def test_the_help_omits_the_keys_of_textual_itself() -> None:
    app = Host(DoctorScreen(Settings()))
    async with app.run_test(size=SMALL) as pilot:
        await pilot.press("question_mark")
        await pilot.pause()
        assert isinstance(app.screen, HelpScreen)
        assert "Page Left" not in screen_text(app)
        assert "Scroll down" in screen_text(app)


@pytest.mark.slow
async def test_a_sentence_leaves_the_table_and_ends_with_a_key_or_its_screen(
    tmp_path: Path,
) -> None:
    app = TuiFsApp(str(tmp_path))
    async with app.run_test(size=SMALL) as pilot:
        await app.push_screen(DoctorScreen(Settings()))
        app.notify("A [red]sentence.", markup=False)
        await pilot.pause()
        message, body = app.screen.query_one("#message"), app.screen.query_one("#body")
        assert "A [red]sentence." in screen_text(app)
        assert not body.region.overlaps(message.region)
        await pilot.press("j")
        await pilot.pause()
        assert "A [red]sentence." not in screen_text(app)
        app.notify("Another one.")
        await pilot.press("escape")
        await pilot.pause()
        assert "Another one." not in screen_text(app)


async def test_a_click_on_the_key_line_presses_the_key(tmp_path: Path) -> None:
    app = TuiFsApp(str(tmp_path))
    async with app.run_test(size=SMALL) as pilot:
        await pilot.pause()
        browser = app.screen
        for shown in ("? help", "s sort"):
            line = screen_text(app).splitlines()[-1]
            await pilot.click(offset=(line.index(shown) + 3, SMALL[1] - 1))
            await pilot.pause()
            if shown == "? help":
                assert isinstance(app.screen, HelpScreen)
                await pilot.press("escape")
        assert app.screen is browser
        await wait_for(pilot, "entries ▼")


async def test_a_click_on_a_title_sorts_by_it(tmp_path: Path) -> None:
    app = TuiFsApp(str(tmp_path))
    async with app.run_test(size=SMALL) as pilot:
        await wait_for(pilot, "allocated ▼")
        lines = screen_text(app).splitlines()
        (y,) = (n for n, line in enumerate(lines) if "allocated ▼" in line)
        await pilot.click(offset=(lines[y].index("entries") + 1, y))
        await wait_for(pilot, "entries ▼")


async def click(pilot: Pilot[None], words: str) -> None:
    """Click on the first place that shows some words."""
    await wait_for(pilot, words)
    lines = screen_text(pilot.app).splitlines()
    (x, y) = next((line.index(words), y) for y, line in enumerate(lines) if words in line)
    await pilot.click(offset=(x + 1, y))
    await pilot.pause()


async def test_a_click_in_the_help_presses_the_key(tmp_path: Path) -> None:
    app = TuiFsApp(str(tmp_path))
    async with app.run_test(size=SMALL) as pilot:
        browser = app.screen
        await pilot.press("question_mark")
        await click(pilot, "esc close")
        assert app.screen is browser
        await pilot.press("question_mark")
        await click(pilot, "Filter by name")
        await wait_for(pilot, "count only files that match")
        await pilot.press("escape")
        await pilot.click("#place")
        await wait_for(pilot, "Count another directory?")


async def test_clicks_answer_dialogs() -> None:
    answers: list[object] = []
    app = Host(DoctorScreen(Settings()))
    async with app.run_test(size=SMALL) as pilot:
        for words, answer in (("y counts it", True), ("Count?", False)):
            app.push_screen(KeyQuestion("Count?", (), "y", "counts it"), answers.append)
            await click(pilot, words)
            assert answers.pop() is answer
        app.push_screen(OptionsDialog(Choices()), answers.append)
        await click(pilot, "keep the directory")
        await click(pilot, "enter accept")
        await until(pilot, lambda: bool(answers))
        (choices,) = answers
        assert isinstance(choices, Choices)
        assert choices.options.keep_root
        app.push_screen(OptionsDialog(Choices()), answers.append)
        await click(pilot, "esc cancel")
        assert answers.pop() is None


async def test_the_diagnosis_keeps_its_columns_in_a_narrow_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    row = Row("/usr/bin/rm, rm (GNU coreutils) 9.1", "tui-fs-engine", works=True)
    monkeypatch.setattr("tui_fs.screens.doctor.diagnose", object)
    monkeypatch.setattr("tui_fs.screens.doctor.sections", lambda _: (Section("tools", (row,)),))
    app = Host(DoctorScreen(Settings()))
    async with app.run_test(size=(40, 15)) as pilot:
        await wait_for(pilot, "coreutils")
        lines = screen_text(app).splitlines()
        first = next(n for n, line in enumerate(lines) if "tui-fs-engine" in line)
        column = lines[first].index("/usr")
        assert {line[:column].strip() for line in lines[first + 1 : first + 3]} == {""}
        assert lines[first + 1][column:].startswith("(GNU")


async def test_no_text_touches_a_scroll_bar() -> None:
    screen = DoctorScreen(Settings())
    async with Host(screen).run_test(size=(60, 16)) as pilot:
        body = screen.query_one("#body")
        await until(pilot, lambda: body.show_vertical_scrollbar)
        await pilot.app.push_screen(HelpScreen("x" * 4_000, {"move": [("j", "down")]}, {}))
        await settle(pilot)
        (box,) = pilot.app.screen.query(VerticalScroll)
        for scrolled in (body, box):
            shown = scrolled.query(Static).last()
            last_cell = shown.content_region.right
            assert last_cell < scrolled.vertical_scrollbar.region.x


def key_line(app: App[None]) -> str:
    """Return the last line of the screen."""
    return screen_text(app).splitlines()[-1].strip()


async def test_a_dialog_leaves_no_keys_of_the_screen_below_it(tmp_path: Path) -> None:
    app = TuiFsApp(str(tmp_path))
    async with app.run_test(size=SMALL) as pilot:
        await wait_for(pilot, "? help")
        await pilot.press("ctrl+p")
        await wait_for(pilot, "enter do it")
        assert "? help" not in screen_text(app)
        await pilot.press("escape", "question_mark")
        await wait_for(pilot, "esc close")
        assert "? help" not in screen_text(app)
        await pilot.press("escape")
        await wait_for(pilot, "? help")


@pytest.mark.parametrize(("height", "has_scroll"), [(24, True), (60, False)])
async def test_help_and_screens_offer_to_scroll_what_does_not_fit(
    monkeypatch: pytest.MonkeyPatch, height: int, has_scroll: bool
) -> None:
    rows = tuple(Row(f"tool {number}", "works", works=True) for number in range(25))
    monkeypatch.setattr("tui_fs.screens.doctor.diagnose", object)
    monkeypatch.setattr("tui_fs.screens.doctor.sections", lambda _: (Section("tools", rows),))
    app = Host(DoctorScreen(Settings()))
    async with app.run_test(size=(80, height)) as pilot:
        await wait_for(pilot, "tool 9")
        await until(pilot, lambda: ("scroll" in key_line(app)) is has_scroll)
        await pilot.press("question_mark")
        await wait_for(pilot, "esc close")
        await until(pilot, lambda: ("scroll  esc" in screen_text(app)) is has_scroll)


async def test_a_list_without_rows_offers_no_keys_for_a_row(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    app = Host(JobsScreen(Settings()))
    async with app.run_test(size=SMALL) as pilot:
        await wait_for(pilot, "no jobs yet")
        await until(pilot, lambda: key_line(app) == "esc back  ? help")


async def test_the_browser_offers_what_does_something(tmp_path: Path) -> None:
    app = TuiFsApp(str(tmp_path))
    async with app.run_test(size=(200, 24)) as pilot:
        await wait_for(pilot, "complete")
        await wait_for(pilot, "empty directory")
        await until(pilot, lambda: key_line(app).startswith("d delete…  f filter"))
        assert "pause" not in key_line(app)
        assert "marks" not in key_line(app)
        (tmp_path / "target").mkdir()
        await pilot.press("r")
        await wait_for(pilot, "target/")
        await pilot.press("space")
        await until(pilot, lambda: {"space mark", "M marks"} <= set(key_line(app).split("  ")))
