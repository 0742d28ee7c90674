"""The completions in real shells."""

from pathlib import Path

import pytest

from tests.conftest import Cli
from tests.e2e.conftest import Open
from tests.needs import needs_tool

_START = {
    "bash": (("bash", "--norc", "--noprofile", "-i"), "source {script}"),
    "zsh": (("zsh", "-f", "-i"), "fpath=({directory} $fpath); autoload -Uz compinit; compinit -u"),
    "fish": (
        ("fish", "--private", "--no-config"),
        "source {script}; set -g fish_autosuggestion_enabled 0",
    ),
}
_FILES = {"bash": "tui-fs", "zsh": "_tui-fs", "fish": "tui-fs.fish"}

_COMPLETED = {
    "sur": "survey",
    "mydata": "mydata/",
    "delete --strategy rsy": "--strategy rsync",
    "delete --ionice i": "--ionice idle",
    "survey only": "survey only-this/",
    "delete --gentle -- mydata My": "My\\ Dir/",
    "delete only-this/a.l": "only-this/a.log",
    "attach 2b": "attach 2bf88d",
    "attach 3c": "attach 3cf88d",
    "gentle 2bf88d of": "gentle 2bf88d off",
    "lab run zero": "lab run zero-fill",
    "completions fi": "completions fish",
}
"""What is typed, and what the tab key makes of it."""


@pytest.mark.slow
@pytest.mark.parametrize("shell", _START)
def test_a_shell_completes_commands_options_words_paths_and_jobs(
    shell: str, cli: Cli, open_command: Open, tmp_path: Path
) -> None:
    needs_tool(shell, shell)
    script = tmp_path / "completions" / _FILES[shell]
    script.parent.mkdir()
    script.write_bytes(cli.run("completions", shell).expect(0).stdout)
    memory = tmp_path / "memory"  # where a full disk has no room for a job
    for jobs, job in ((cli.jobs_directory, "2bf88d"), (memory / "tui-fs/jobs", "3cf88d")):
        (jobs / job).mkdir(parents=True)
    for name in ("mydata", "My Dir", "only-this"):
        (tmp_path / name).mkdir()
    (tmp_path / "only-that-file").touch()
    (tmp_path / "only-this" / "a.log").touch()
    command, start = _START[shell]
    terminal = open_command(*command, columns=120)
    terminal.type(f"export XDG_RUNTIME_DIR={memory}; cd {tmp_path}")
    terminal.press("Enter")
    terminal.type(f"{start.format(script=script, directory=script.parent)}")
    terminal.press("Enter")
    for typed, completed in _COMPLETED.items():
        terminal.type(f"tui-fs {typed}")
        terminal.press("Tab")
        terminal.wait_for(completed)
        terminal.press("C-u")
