"""The help of a screen explains what the screen shows."""

import ast
from pathlib import Path

import tui_fs.screens
from widgets.call_table import MEANINGS, TITLES

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
