"""Tests of the characters that screens are drawn with."""

import ast
from pathlib import Path

import pytest

from tui_fs.widgets.cell_drawing import eighth_blocks, for_terminal, range_bar

SOURCES = sorted(
    file
    for place in ("widgets", "tui_fs")
    for file in (Path(__file__).parents[2] / place).rglob("*.py")
    if file.name != "paths.py"  # it has the characters of names that are escaped
)
CODE_PAGE_437 = set(bytes(range(0x80, 0x100)).decode("cp437")) | set(
    "☺☻♥♦♣♠•◘○◙♂♀♪♫☼►◄↕‼¶§▬↨↑↓→←∟↔▲▼"
)
SAME_GLYPH = set("◆▶×")  # as ♦ ► x, in the kernel's cp437.uni
"""Characters that the console draws with the glyph of another one."""


def drawn_characters() -> set[str]:
    """Return the characters beyond ASCII in the strings of the screens."""
    found: set[str] = set()
    for source in SOURCES:
        for node in ast.walk(ast.parse(source.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found |= {character for character in node.value if not character.isascii()}
    return found


def test_the_font_of_the_console_has_all_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "linux")
    drawn = {for_terminal(character) for character in drawn_characters()}
    assert {each for each in drawn if not each.isascii()} <= CODE_PAGE_437 | SAME_GLYPH


@pytest.mark.parametrize("terminal", ["linux", "vt100", "xterm-256color"])
def test_each_character_keeps_its_cell(monkeypatch: pytest.MonkeyPatch, terminal: str) -> None:
    monkeypatch.setenv("TERM", terminal)
    text = "".join(sorted(drawn_characters()))
    assert len(for_terminal(text)) == len(text)


def test_bars_are_ascii_where_nothing_else_can_be_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "vt100")
    assert for_terminal(eighth_blocks(0.55, 10)) == "#####:"
    assert for_terminal(range_bar(0.1, 0.3, 0.6, 10)) == " --#---   "


def test_names_stay_different(monkeypatch: pytest.MonkeyPatch) -> None:
    for terminal in ("linux", "vt100"):
        monkeypatch.setenv("TERM", terminal)
        names = ("a-b", "a–b", "a—b", "a.", "a…", "a~", "ä", "a")
        assert len({for_terminal(name) for name in names}) == len(names)
