"""The screens have the size of their terminal, even if LINES and COLUMNS differ."""

from pathlib import Path

from tests.conftest import Cli, wait_until
from tests.e2e.conftest import Open
from tests.e2e.terminal import Terminal


def widest_line(terminal: Terminal) -> int:
    """Return the columns that are used."""
    return max(len(line.rstrip()) for line in terminal.text().splitlines())


def table_and_details(text: str) -> list[str]:
    """Return the lines that do not depend on what the machine does: no free space, no findings."""
    return text.splitlines()[1:-3]


def test_columns_and_lines_of_the_environment_do_not_matter(
    cli: Cli, open_command: Open, tmp_path: Path
) -> None:
    (tmp_path / "place" / "inner").mkdir(parents=True)
    exported = ("env", "COLUMNS=40", "LINES=10")
    terminal = open_command(*exported, cli.program, str(tmp_path / "place"), columns=100, lines=30)
    terminal.wait_for("complete")
    assert terminal.text().rstrip("\n").count("\n") == 29
    assert widest_line(terminal) > 60
    # And a new size is followed
    terminal.resize(70, 20)
    terminal.wait_until(lambda _: widest_line(terminal) <= 70, "the new width")
    terminal.wait_until(lambda text: "? help" in text.splitlines()[-1], "the new height")


def test_a_terminal_of_20_columns_is_usable(open_on: Open, tmp_path: Path) -> None:
    (tmp_path / "place" / "inner").mkdir(parents=True)
    terminal = open_on(tmp_path / "place", columns=20, lines=10)
    terminal.wait_for("›")
    for key, words in (("d", "strategy"), ("?", "─ help ─")):
        terminal.press(key)
        terminal.wait_for(words)
        terminal.answer(words, "Escape")
    terminal.wait_for("space mark")
    terminal.press("q")
    wait_until(lambda: not terminal.is_open(), "the end of the program")


def test_nothing_of_another_size_is_left(open_on: Open, tmp_path: Path) -> None:
    for name in ("one", "two", "three"):
        (tmp_path / "place" / name).mkdir(parents=True)
        (tmp_path / "place" / name / "file").touch()
    terminal = open_on(tmp_path / "place", columns=120, lines=40)
    for words in ("complete", "≥ 1 GiB"):
        terminal.wait_for(words)
    before = table_and_details(terminal.text())
    for columns, lines in ((60, 15), (120, 40), (80, 24)):
        terminal.resize(columns, lines)
        terminal.wait_until(lambda text: "? help" in text.splitlines()[-1], "the new height")
    terminal.resize(120, 40)
    terminal.wait_until(lambda text: table_and_details(text) == before, "the first screen")


def test_names_that_the_font_of_the_console_lacks_differ(
    cli: Cli, open_command: Open, tmp_path: Path
) -> None:
    for name in ("中", "文"):
        (tmp_path / "place" / name).mkdir(parents=True)
    terminal = open_command("env", "TERM=linux", cli.program, str(tmp_path / "place"))
    terminal.wait_for("\\u4e2d/")
    terminal.wait_for("\\u6587/")
