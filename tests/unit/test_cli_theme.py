"""The theme: by the colours of the terminal, or as requested, also the next time."""

from pathlib import Path

import pytest

from tui_fs.app import FEW_COLOURS_THEME, TRUECOLOR_THEME
from tui_fs.cli.start_app import theme_of
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
    with pytest.raises(BadInput, match="no theme nrod"):
        theme_of("nrod")
    (state / "tui-fs").mkdir()
    (state / "tui-fs" / "theme").write_bytes(b"\xff of a later version")
    assert theme_of(None) == FEW_COLOURS_THEME


def test_a_theme_that_cannot_be_stored_is_used(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (state / "tui-fs").write_text("a file in the place of the directory")
    assert theme_of("gruvbox") == "gruvbox"
    assert "cannot be stored: File exists" in capsys.readouterr().err
