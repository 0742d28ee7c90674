"""Find the command; the module of the command defines its arguments."""

import argparse
import gc
import itertools
import os
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import Any, NoReturn

from tui_fs.model.command import COMMANDS
from tui_fs.model.errors import BadInput
from tui_fs.model.paths import displayable, harmless

_MODULES = {
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
}
"""The module of each command."""

_EPILOG = """commands:
  survey PATH      what is in a directory
  estimate PATH... what each strategy would cost
  delete PATH...   delete directories in one job (asks first)
  recreate PATH    give an emptied directory a new, small index
  aside PATH       rename a directory aside at once, to be deleted later
  jobs             what runs and what ran
  attach JOB       follow a job again
  pause, resume, cancel JOB
  gentle, rate, nice, ionice, threads JOB VALUE    how fast it may go
  lab ...          repeat published experiments on deleting
  doctor           what works here, and what would make the rest work

exit codes: 0 done, 1 some entries failed or the job's record is incomplete, 2 usage,
3 refused by a safety rule, 4 a tool or privilege is missing, 5 the job died,
130 or 143 cancelled
'tui-fs COMMAND --help' tells more; a directory named like a command is ./COMMAND
options are not abbreviated; paths that begin with - go after --, or are written ./-PATH"""


class _Parser(argparse.ArgumentParser):
    """Reports an error in one sentence; options are not abbreviated."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(allow_abbrev=False, **settings)

    def error(self, message: str) -> NoReturn:
        shown = harmless(message)
        raise BadInput(f"{shown[:1].upper()}{shown[1:]}.", f"See {self.prog} --help.")


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the parsed arguments; ``run`` is the command's function."""
    _refuse_ambiguous(arguments)
    if arguments and arguments[0] in _MODULES:
        command = arguments[0]
        parser = _Parser(prog=f"tui-fs {command}")
        parser.set_defaults(needs_proc=True)
        _load(_MODULES[command]).add_arguments(parser, command)
        return parser.parse_args(arguments[1:])
    return _app_parser().parse_args(arguments)


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


def _app_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="tui-fs",
        usage="tui-fs [PATH] | tui-fs COMMAND ...",
        description="Look into large directories and delete them well. Without a command: "
        "the interactive screens, opened on PATH (else on the current directory).",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _load("start_app").add_arguments(parser)
    parser.set_defaults(needs_proc=True)
    return parser
