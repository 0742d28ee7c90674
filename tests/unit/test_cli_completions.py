"""The scripts of the shells and the man page name everything that the parser accepts."""

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.needs import needs_tool
from tui_fs.cli import exit_codes
from tui_fs.cli.completions import SHELLS, completion_script, whole_parser
from tui_fs.cli.parser import COMMAND_HELP, COMMAND_MODULES
from tui_fs.safety.policy import READ_ONLY_VARIABLE

_SCRIPT = Path(__file__).parents[2] / "scripts/build-shell-files"


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for subparser in action.choices.values():
                yield from _options(subparser)
        elif action.help != argparse.SUPPRESS:
            yield from action.option_strings


def test_the_help_lists_every_command() -> None:
    assert [usage.split()[0] for usage in COMMAND_HELP] == list(COMMAND_MODULES)


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_names_every_command_and_option_of_the_parser(shell: str) -> None:
    words = set(re.findall(r"[\w-]+", completion_script(shell)))
    options = set(_options(whole_parser()))
    if shell == "fish":
        options = {option.lstrip("-") for option in options}
    assert {*options, *COMMAND_MODULES} - words == set()


def test_no_script_names_a_hidden_option() -> None:
    assert not [shell for shell in SHELLS if "max-rounds" in completion_script(shell)]


def test_a_path_on_other_hosts_is_not_completed_with_local_files() -> None:
    script = completion_script("bash")
    completed = re.findall(r"^_shtab_tui_fs_(\w+_pos_\d)_COMPGEN=", script, re.MULTILINE)
    assert "delete_pos_0" in completed
    assert [position for position in completed if position.startswith("fleet")] == []


def test_a_command_does_not_load_the_generator_of_the_scripts() -> None:
    program = (
        "from tui_fs.cli.parser import parse; parse(['jobs']); import sys; print(*sys.modules)"
    )
    loaded = subprocess.check_output([sys.executable, "-c", program], text=True).split()
    assert "tui_fs.cli.jobs" in loaded
    assert "shtab" not in loaded


@pytest.fixture(scope="module")
def man_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the man page."""
    directory = tmp_path_factory.mktemp("shell-files")
    subprocess.run([sys.executable, _SCRIPT, directory], check=True)
    return directory / "share/man/man1/tui-fs.1"


def test_the_man_page_has_no_warnings(man_page: Path) -> None:
    groff = [needs_tool("groff", "groff"), "-man", "-ww", "-Tutf8", "-z", str(man_page)]
    assert subprocess.run(groff, capture_output=True, check=True).stderr == b""
    lint = [needs_tool("mandoc", "mandoc"), "-T", "lint", str(man_page)]
    done = subprocess.run(lint, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("", 0)


def test_the_man_page_explains_commands_options_exit_codes_and_variables(man_page: Path) -> None:
    text = man_page.read_text().replace("\\-", "-")
    missing = [option for option in _options(whole_parser()) if f"\\fB{option}\\fR" not in text]
    assert set(missing) == {"-h", "--help"}
    assert [
        command for command in COMMAND_MODULES if f".SS \\fBtui-fs {command}\\fR" not in text
    ] == []
    codes = {value for value in vars(exit_codes).values() if isinstance(value, int)}
    assert {int(code) for code in re.findall(r"^\.B (\d+)$", text, re.MULTILINE)} == codes
    variables = re.findall(r"^\.B ([A-Z_]{4,})$", text, re.MULTILINE)
    assert READ_ONLY_VARIABLE in variables
    assert len(set(variables)) == len(variables)


def test_a_deletion_on_many_hosts_is_completed_with_the_options_of_one_host() -> None:
    script = completion_script("bash")
    one, many = (
        set(
            re.findall(rf"^_shtab_tui_fs_{command}_option_strings=\((.*)\)$", script, re.M)[
                0
            ].split()
        )
        for command in ("delete", "fleet_delete")
    )
    assert one - many == {"--directory-id", "--detach", "--trace"}
