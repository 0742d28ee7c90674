"""``tui-fs completions``, and the parser of all commands that it is derived from."""

import argparse
from collections.abc import Mapping
from typing import Any

from tui_fs.cli import arguments
from tui_fs.cli.arguments import add_output_options
from tui_fs.cli.exit_codes import DONE
from tui_fs.cli.output import print_unwrapped
from tui_fs.cli.parser import COMMAND_HELP, add_command_arguments, app_parser
from tui_fs.lab.experiments import experiments
from tui_fs.model.strategy import IoPriority
from tui_fs.strategies.registry import STRATEGIES

SHELLS = ("bash", "zsh", "fish")

_BY_TYPE: Mapping[Any, Any] = {
    arguments.strategy: STRATEGIES,
    arguments.io_priority: IoPriority,
    arguments.trace_source: arguments.TRACE_SOURCES,
    arguments.export_format: arguments.EXPORT_FORMATS,
}
"""The words that an option of this type accepts."""

_BY_COMMAND = {
    "gentle": ("on", "off"),
    "rate": ("off",),
    "ionice": tuple(IoPriority),
    "threads": ("auto",),
}
"""The words that a command accepts as VALUE."""

_ADDED = {
    "bash": """\
# shtab's own functions split a name at its spaces.
_tui_fs_files() { local word=${1#[\\"\\']}; compgen -f -- "${word//\\\\/}"; }
_tui_fs_dirs() { local word=${1#[\\"\\']}; compgen -d -- "${word//\\\\/}"; }
_tui_fs_jobs() {
  local place memory=/run/user/$UID
  [ "$UID" != 0 ] || memory=/run
  for place in "${XDG_STATE_HOME:-$HOME/.local/state}" "${XDG_RUNTIME_DIR:-$memory}"; do
    (cd -- "$place/tui-fs/jobs" 2>/dev/null && compgen -d -X '.*' -- "$1")
  done
}
# The first word is a command or a directory.
_shtab_tui_fs_pos_0_choices=("${_shtab_tui_fs_subparsers[@]}")
_shtab_tui_fs_pos_0_COMPGEN=_tui_fs_dirs""",
    "zsh": """\
_tui_fs_jobs() {
  local memory=/run/user/$UID
  [[ $UID != 0 ]] || memory=/run
  local ids=("${XDG_STATE_HOME:-$HOME/.local/state}"/tui-fs/jobs/*(N/:t))
  ids+=("${XDG_RUNTIME_DIR:-$memory}"/tui-fs/jobs/*(N/:t))
  compadd -a ids
}
# The first word is a command or a directory.
functions[_tui_fs_commands]=$functions[_shtab_tui_fs_commands]
_shtab_tui_fs_commands() { _tui_fs_commands; _files -/ }""",
    "fish": """\
function _tui_fs_jobs
  set -l state $XDG_STATE_HOME
  test -n "$state"; or set state ~/.local/state
  set -l memory $XDG_RUNTIME_DIR
  test -n "$memory"; or set memory (string replace -r '/user/0$' '' /run/user/(id -u))
  for folder in $state/tui-fs/jobs/*/ $memory/tui-fs/jobs/*/
    string split / $folder | tail -n 2 | head -n 1
  end
end
# The first word is a command or a directory.
complete -c tui-fs -n '_shtab_tui_fs_using; and test $_shtab_tui_fs_npos -eq 0' \\
  -ka '(__fish_complete_directories)'""",
}


def add_arguments(parser: argparse.ArgumentParser, _: str) -> None:
    parser.usage = "tui-fs completions SHELL"
    parser.description = (
        "Print a script with which a shell completes commands, options, directories and job ids. "
        "Write it to ~/.local/share/bash-completion/completions/tui-fs, to _tui-fs in a directory "
        "of zsh's fpath, or to ~/.config/fish/completions/tui-fs.fish. Packages install it."
    )
    parser.epilog = "example:\n  tui-fs completions bash"
    parser.add_argument_group("which shell").add_argument(
        "shell", choices=SHELLS, metavar="SHELL", help="bash, zsh or fish"
    )
    add_output_options(parser, has_json=False)
    parser.set_defaults(run=run, needs_proc=False)


def run(parsed: argparse.Namespace) -> int:
    """Print the script of one shell."""
    print_unwrapped(completion_script(parsed.shell))
    return DONE


def completion_script(shell: str) -> str:
    """Return the script of one of `SHELLS`."""
    import shtab  # only this function needs it

    files = {**shtab.FILE, "bash": "_tui_fs_files"}
    directories = {**shtab.DIRECTORY, "bash": "_tui_fs_dirs"}
    jobs = {"bash": "_tui_fs_jobs", "zsh": "_tui_fs_jobs", "fish": "(_tui_fs_jobs)"}
    by_metavar = {
        "PATH": directories, "DIRECTORY": directories, "JOB": jobs,
        "FILE": files, "FILE.html": files, "OLD.json": files,
    }  # fmt: skip

    described: dict[str, str | None] = {}

    def annotate(parser: argparse.ArgumentParser, command: str) -> None:
        for action in parser._actions:
            for option in action.option_strings:
                if action.help == argparse.SUPPRESS:  # fleet leaves out what delete describes
                    action.help = described.get(option, argparse.SUPPRESS)
                described.setdefault(option, action.help)
            if isinstance(action, argparse._SubParsersAction):
                for name, subparser in action.choices.items():
                    subparser.description = None  # the words of the help are shorter
                    annotate(subparser, name)
            elif words := _words(action, command):
                action.choices = tuple(words)
            elif action.metavar == "PATH" and parser.prog.startswith("tui-fs fleet "):
                continue  # a path on other hosts
            elif isinstance(action.metavar, str) and (completer := by_metavar.get(action.metavar)):
                is_any_file = action.dest == "paths"  # delete and estimate accept a single file
                action.complete = files if is_any_file else completer  # type: ignore[attr-defined]

    parser = whole_parser()
    parser._actions[0].help = argparse.SUPPRESS  # PATH; _ADDED completes it with the commands
    annotate(parser, "")
    if shell == "fish":  # shtab's script begins with the removal of all completions
        return f"{shtab.complete(parser, shell)}\n{_ADDED[shell]}"
    script: str = shtab.complete(parser, shell, preamble=_ADDED[shell])
    if shell == "zsh":  # else only the first PATH is completed, and none after --
        script = script.replace('"(*):', '"*:').replace("_arguments -C -s", "_arguments -C -s -S")
    return script


def _words(action: argparse.Action, command: str) -> Any:
    match command, action.dest:
        case "run", "name":
            return [experiment.name for experiment in experiments()]
        case _, "value":
            return _BY_COMMAND.get(command)
    return _BY_TYPE.get(action.type)


def whole_parser() -> argparse.ArgumentParser:
    """Return the parser without a command, with the commands as its subparsers."""
    parser = app_parser()
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", prog=parser.prog)
    for usage, words in COMMAND_HELP.items():
        command = usage.split()[0]
        add_command_arguments(commands.add_parser(command, help=words), command)
    return parser
