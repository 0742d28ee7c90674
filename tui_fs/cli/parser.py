"""Find the command; the module of the command defines its arguments."""

import argparse
import gc
import itertools
import os
import re
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import Any, NoReturn

from tui_fs.cli.output import print_unwrapped
from tui_fs.model.command import COMMANDS
from tui_fs.model.errors import BadInput, did_you_mean, nearest_word
from tui_fs.model.paths import displayable, harmless

COMMAND_MODULES = {
    "survey": "survey",
    "estimate": "estimate",
    "delete": "delete",
    "recreate": "maintenance",
    "aside": "maintenance",
    "jobs": "jobs",
    "attach": "jobs",
    **dict.fromkeys(COMMANDS, "jobs"),
    "lab": "lab",
    "doctor": "doctor",
    "fleet": "fleet",
    "completions": "completions",
}
"""The module of each command."""

COMMAND_HELP = {
    "survey PATH": "count the entries of a directory and report problems",
    "estimate PATH...": "predict the cost of each strategy",
    "delete PATH...": "delete directories in one job (asks for confirmation)",
    "recreate PATH": "replace an emptied directory with a new, small one",
    "aside PATH": "rename a directory at once, to delete it later",
    "jobs": "list running and ended jobs",
    "attach JOB": "follow a job to its end",
    "pause JOB": "pause a job",
    "resume JOB": "continue a paused job, or delete what a dead job left",
    "cancel JOB": "cancel a job",
    "gentle JOB on|off": "let a job yield to other processes",
    "rate JOB N|off": "limit a job to N entries per second",
    "nice JOB N": "change the niceness of a job",
    "ionice JOB PRIORITY": "change the I/O priority of a job",
    "threads JOB N|auto": "change the number of threads of a job",
    "lab ACTION": "repeat published experiments on deletion",
    "doctor": "report which tools and features work on this machine",
    "fleet HOSTS [PATH]": "survey and delete on many hosts over ssh",
    "completions SHELL": "print the completions for bash, zsh or fish",
}
"""Each command with its arguments, and what it does."""

_LISTED = "\n".join(f"  {usage:<20} {words}" for usage, words in COMMAND_HELP.items())

_EPILOG = f"""commands:
{_LISTED}

exit codes: 0 done, 1 some entries failed or the job's record is incomplete, \
2 usage error, 3 refused by a safety rule, 4 a tool or privilege is missing, \
5 the job died, 130 or 143 cancelled, 141 standard output was closed

'tui-fs COMMAND --help' describes a command. Write ./NAME for a path named like a \
command or an option.

example:
  tui-fs delete /var/cache/app --strategy rm --dry-run"""

_NEGATIVE_NUMBER = re.compile(r"-\d+(\.\d+)?")

_ARGPARSE_WORDS = (
    ("^the following arguments are required: (.*, .*)", r"\1 are missing"),
    ("^the following arguments are required: (.*)", r"\1 is missing"),
    (": expected one argument$", ": the value is missing"),
    (r": invalid choice: (.+) \(choose from (.+)\)$", r": \1 is not one of \2"),
)
"""Patterns of argparse's sentences, and what is printed instead."""

_INVALID_CHOICE = re.compile(r": invalid choice: '(.+)' \(choose from (.+)\)$")


class _Formatter(argparse.HelpFormatter):
    """Wraps each line of a description or an epilog by itself."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        import textwrap  # only help needs it

        return "\n".join(
            textwrap.fill(line, width, initial_indent=indent, break_on_hyphens=False)
            for line in text.splitlines()
        )


class _Parser(argparse.ArgumentParser):
    """Reports an error in one sentence; options are not abbreviated."""

    def __init__(self, **settings: Any) -> None:
        settings.setdefault("formatter_class", _Formatter)
        super().__init__(allow_abbrev=False, add_help=False, **settings)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        if self._subparsers is None:
            self._refuse_unknown_option(args)  # before a required argument is reported as missing
        parsed, unknown = super().parse_known_args(args, namespace)
        if unknown:
            shown = displayable(unknown[0])
            raise BadInput(f"Unexpected argument '{shown}'.", self._help_hint)
        return parsed, unknown

    def error(self, message: str) -> NoReturn:
        shown = harmless(message).removeprefix("argument ")
        hint = self._help_hint
        if choice := _INVALID_CHOICE.search(shown):
            hint = did_you_mean(choice[1], re.findall(r"[\w-]+", choice[2]), hint)
        for pattern, words in _ARGPARSE_WORDS:
            shown = re.sub(pattern, words, shown)
        end = "" if shown.endswith("?") else "."
        raise BadInput(f"{shown[:1].upper()}{shown[1:]}{end}", hint)

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print a help text; argparse ignores that it cannot be written."""
        del file
        print_unwrapped(message.rstrip("\n"))

    @property
    def _help_hint(self) -> str:
        return f"See {self.prog} --help."

    def _refuse_unknown_option(self, arguments: Sequence[str]) -> None:
        options = self._option_string_actions
        for argument in itertools.takewhile(lambda argument: argument != "--", arguments):
            name = argument.partition("=")[0]
            is_option = name.startswith("-") and len(name) > 1 and " " not in argument
            if not is_option or name in options or _NEGATIVE_NUMBER.fullmatch(argument):
                continue
            words = {option.lstrip("-"): option for option in options}  # all begin alike
            nearest = words.get(nearest_word(name.lstrip("-"), words))
            hint = f"Did you mean {nearest}?" if nearest else self._help_hint
            raise BadInput(f"There is no option {harmless(name)}.", hint)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the parsed arguments; ``run`` is the command's function."""
    _refuse_ambiguous(arguments)
    if arguments and arguments[0] in COMMAND_MODULES:
        command, *words = arguments
        if (
            command == "fleet"
            and words
            and (words[0] == "-" or not words[0].startswith("-"))
            and words[0] not in _load("fleet").ACTIONS
        ):
            words = ["open", *words]
        return command_parser(command).parse_args(words)
    _refuse_misspelled_command(arguments)
    return app_parser().parse_args(arguments)


def command_parser(command: str) -> argparse.ArgumentParser:
    """Return the parser of one of `COMMAND_MODULES`."""
    parser = _Parser(prog=f"tui-fs {command}")
    add_command_arguments(parser, command)
    return parser


def add_command_arguments(parser: argparse.ArgumentParser, command: str) -> None:
    """Add the arguments of a command to its parser."""
    parser.set_defaults(needs_proc=True)
    _load(COMMAND_MODULES[command]).add_arguments(parser, command)


def _load(name: str) -> ModuleType:
    """Import the module of one command; importing all would take longer than most commands."""
    gc.disable()  # modules stay in memory; collecting them makes the import a sixth slower
    module = import_module(f"tui_fs.cli.{name}")
    gc.enable()
    return module


def _refuse_ambiguous(arguments: Sequence[str]) -> None:
    """Raise BadInput for an option that is also an entry of the current directory.

    A shell that expands ``*`` puts such an entry among the arguments: a directory named ``--yes``
    would answer the question. If ``--`` itself is an entry, a single ``--`` may be that entry;
    with two of them, the user typed ``-- *``.
    """
    options = list(itertools.takewhile(lambda argument: argument != "--", arguments))
    for option in options:
        if option.startswith("-") and option != "-" and os.path.lexists(option):
            shown = displayable(option)
            raise BadInput(
                f"{shown} is both an option and an entry of the current directory.",
                f"Write paths after --, or as ./{shown}; to use the option, run tui-fs in another "
                "directory.",
            )
    if arguments.count("--") == 1 and os.path.lexists("--"):
        raise BadInput(
            "-- is both the end of the options and an entry of the current directory.",
            "Write paths as ./NAME or ./*, or run tui-fs in another directory.",
        )


def _refuse_misspelled_command(arguments: Sequence[str]) -> None:
    """Raise BadInput if the first argument is a word, and neither a command nor an entry.

    With --import it may be a directory of the imported file.
    """
    is_import = any(argument.partition("=")[0] == "--import" for argument in arguments)
    word = arguments[0] if arguments else ""
    if word.isalpha() and not is_import and not os.path.lexists(word):
        nearest = nearest_word(word, COMMAND_MODULES)
        raise BadInput(
            f"'{word}' is neither a command nor a directory.",
            f"Did you mean tui-fs {nearest}?" if nearest else "See tui-fs --help.",
        )


def app_parser() -> argparse.ArgumentParser:
    """Return the parser for arguments without a command."""
    parser = _Parser(
        prog="tui-fs",
        usage="tui-fs [OPTION...] [PATH] | tui-fs COMMAND ...",
        description="Inspect large directories, compare the ways to delete them, and delete them.\n"
        "Without a command, tui-fs opens its screens on PATH.",
        epilog=_EPILOG,
    )
    _load("start_app").add_arguments(parser)
    parser.set_defaults(needs_proc=True)
    return parser
