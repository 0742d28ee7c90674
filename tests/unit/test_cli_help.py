"""The help of every command."""

import pytest
from syrupy.assertion import SnapshotAssertion

from tui_fs.cli.parser import parse

_COMMANDS = (
    *("", "survey", "estimate", "delete", "recreate", "aside", "jobs", "attach", "pause", "resume"),
    *("cancel", "gentle", "rate", "nice", "ionice", "threads", "doctor", "completions"),
    *("lab", "lab list", "lab run", "lab runs", "lab show", "lab compare"),
    *("fleet", "fleet survey", "fleet estimate", "fleet delete", "fleet jobs", "fleet doctor"),
)
_MAX_LINES, _MAX_COLUMNS = 46, 80


@pytest.mark.parametrize("command", _COMMANDS)
def test_help_fits_a_terminal_and_has_an_example(
    command: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    snapshot: SnapshotAssertion,
) -> None:
    monkeypatch.setenv("COLUMNS", str(_MAX_COLUMNS))
    with pytest.raises(SystemExit) as end:
        parse([*command.split(), "--help"])
    assert end.value.code == 0
    text = capsys.readouterr().out
    lines = text.splitlines()
    assert len(lines) <= _MAX_LINES
    assert max(map(len, lines)) <= _MAX_COLUMNS
    assert lines[-2] == "example:"
    assert lines[-1].startswith(f"  tui-fs {command}".rstrip())
    assert text == snapshot
