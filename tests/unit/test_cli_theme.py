"""The theme: by the colours of the terminal, or as requested, also the next time."""

import argparse
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tui_fs.app import FEW_COLOURS_THEME, TRUECOLOR_THEME
from tui_fs.cli import fleet
from tui_fs.cli.parser import parse
from tui_fs.cli.start_app import theme_of
from tui_fs.fleet.fleet import Fleet
from tui_fs.model.errors import BadInput


@pytest.fixture(autouse=True)
def state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    for name in ("COLORTERM", "NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.mark.parametrize(
    ("environment", "theme"),
    [
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, TRUECOLOR_THEME),
        ({"TERM": "xterm-256color"}, FEW_COLOURS_THEME),  # as over SSH
        ({"TERM": "screen-256color"}, FEW_COLOURS_THEME),
        ({"TERM": "linux"}, FEW_COLOURS_THEME),
        ({"TERM": "vt100"}, FEW_COLOURS_THEME),
        (
            {"TERM": "xterm-256color", "COLORTERM": "truecolor", "NO_COLOR": "1"},
            FEW_COLOURS_THEME,
        ),
    ],
)
def test_colours_of_the_terminal_decide(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], theme: str
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert theme_of(None) == theme


def test_a_requested_theme_is_used_the_next_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "linux")
    assert theme_of("gruvbox") == "gruvbox"
    assert theme_of(None) == "gruvbox"
    assert theme_of("auto") == FEW_COLOURS_THEME
    assert theme_of(None) == FEW_COLOURS_THEME


def test_an_unknown_theme_is_refused_and_a_stored_one_ignored(state: Path) -> None:
    with pytest.raises(BadInput, match=r"no theme nrod\. Did you mean nord\?"):
        theme_of("nrod")
    theme_of("gruvbox")
    stored = state / "tui-fs" / "screens" / "theme.json"
    stored.write_text('{"theme": "of a later version"}')
    assert theme_of(None) == FEW_COLOURS_THEME


def test_a_stored_theme_that_cannot_be_read_is_reported(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    theme_of("gruvbox")
    (state / "tui-fs" / "screens" / "theme.json").write_bytes(b"\xff")
    assert theme_of(None) == FEW_COLOURS_THEME
    assert "theme.json cannot be read" in capsys.readouterr().err


@pytest.mark.parametrize("place", ["tui-fs", "tui-fs/screens"])
def test_nothing_is_stored_where_another_user_can_write(
    state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    """Else root would write where a link of that user leads."""
    (state / "tui-fs" / "screens").mkdir(parents=True, mode=0o700)
    (state / "tui-fs").chmod(0o700)
    victim = tmp_path / "victim"
    victim.write_text("kept")
    for name in ("theme", "theme.json", "screens/theme.json"):
        (state / "tui-fs" / name).symlink_to(victim)
    (state / place).chmod(0o777)
    assert theme_of("gruvbox") == "gruvbox"
    assert victim.read_text() == "kept"
    assert "not private" in capsys.readouterr().err
    assert theme_of(None) == FEW_COLOURS_THEME


def test_a_theme_that_cannot_be_stored_is_used(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (state / "tui-fs").write_text("a file in the place of the directory")
    assert theme_of("gruvbox") == "gruvbox"
    assert "cannot be stored" in capsys.readouterr().err


@pytest.fixture
def closed_fleets(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Close the connections that only the end of the process would close."""
    make, fleets = fleet._fleet_of, list[Fleet]()

    def remember(parsed: argparse.Namespace) -> Fleet:
        fleets.append(make(parsed))
        return fleets[-1]

    monkeypatch.setattr(fleet, "_fleet_of", remember)
    yield
    for made in fleets:
        made.close()


@pytest.mark.usefixtures("closed_fleets")
def test_screens_of_many_hosts_have_the_same_options(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[dict[str, Any]] = []

    def open_app(path: str, **settings: Any) -> int:
        opened.append(settings | {"path": path})
        return 0

    monkeypatch.setattr(fleet, "require_screen", lambda _: None)
    monkeypatch.setattr(fleet, "open_app", open_app)
    monkeypatch.setenv("TUI_FS_READ_ONLY", "")
    arguments = ("fleet", "web[1-2]", "/d", "--theme", "gruvbox", "--slow-link", "--read-only")
    parsed = parse(arguments)
    assert parsed.run(parsed) == 0
    (settings,) = opened
    assert (settings["path"], settings["theme"]) == ("/d", "gruvbox")
    assert settings["slow_link"] and settings["read_only"]
    assert os.environ["TUI_FS_READ_ONLY"] == "1"
    unknown = parse(("fleet", "web1", "--theme", "nrod"))
    with pytest.raises(BadInput, match="Did you mean nord"):
        unknown.run(unknown)
