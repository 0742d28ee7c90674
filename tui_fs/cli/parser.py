"""The arguments of every command."""

import argparse
import itertools
import os
from collections.abc import Sequence
from typing import Any, NoReturn

from tui_fs import __version__
from tui_fs.cli.arguments import (
    EXPORT_FORMATS,
    age,
    glob,
    io_priority,
    natural,
    nice,
    pin,
    positive,
    size,
    strategy,
    threads,
)
from tui_fs.model.calls import TraceSource
from tui_fs.model.command import COMMANDS
from tui_fs.model.errors import BadInput
from tui_fs.model.paths import displayable, harmless
from tui_fs.model.strategy import IoPriority
from tui_fs.strategies.registry import STRATEGIES

_COMMANDS = (
    "survey", "estimate", "delete", "recreate", "aside", "jobs", "attach", *COMMANDS, "lab",
    "doctor",
)  # fmt: skip
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
    """Says what is wrong in one sentence, and knows options by their whole names only."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(allow_abbrev=False, **settings)

    def error(self, message: str) -> NoReturn:
        shown = harmless(message)
        raise BadInput(f"{shown[:1].upper()}{shown[1:]}.", f"See {self.prog} --help.")


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the parsed arguments; ``run`` names the command's module and function."""
    _refuse_ambiguous(arguments)
    if arguments and arguments[0] in _COMMANDS:
        return _command_parser(arguments[0]).parse_args(arguments[1:])
    return _app_parser().parse_args(arguments)


def _refuse_ambiguous(arguments: Sequence[str]) -> None:
    """Raise BadInput for an option that is also an entry of the current directory.

    A shell that expands ``*`` there writes such an entry among the arguments: a directory named
    ``--yes`` would answer the question. Where ``--`` itself is an entry, the first ``--`` may be
    that one, unless there is another: then ``-- *`` was typed.
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
    parser.add_argument("path", nargs="?", metavar="PATH")
    parser.add_argument(
        "--import", dest="imported", metavar="FILE",
        help="look into a file that ncdu or 'survey --export' has written; nothing can be deleted",
    )  # fmt: skip
    parser.add_argument("--version", action="version", version=f"tui-fs {__version__}")
    parser.add_argument(
        "--slow-link", action="store_true", help="redraw once a second, for slow connections"
    )
    parser.add_argument("--read-only", action="store_true", help="look only; deleting is off")
    parser.set_defaults(run="start_app.run")
    return parser


def _command_parser(command: str) -> argparse.ArgumentParser:
    parser = _Parser(prog=f"tui-fs {command}")
    match command:
        case "survey":
            parser.description = "Count what is in a directory, or export it, or read an export."
            _add_survey(parser)
            parser.set_defaults(run="survey.run")
        case "estimate":
            parser.description = "Predict what each strategy would cost."
            parser.add_argument("paths", metavar="PATH", nargs="+")
            parser.add_argument(
                "--quick",
                action="store_true",
                help="sample for a second instead of counting: estimates with their ranges",
            )
            parser.add_argument(
                "--cold",
                action="store_true",
                help="as if nothing of it were in memory; to measure that, root drops the caches "
                "of the whole machine",
            )
            parser.add_argument(
                "--no-measuring",
                action="store_true",
                help="use what is known: make no small trees beside PATH to measure with",
            )
            _add_options(parser)
            parser.set_defaults(run="estimate.run")
        case "delete":
            parser.description = "Delete directories in one job and follow it."
            parser.add_argument("paths", metavar="PATH", nargs="+")
            _add_delete(parser)
            parser.set_defaults(run="delete.run")
        case "recreate":
            parser.description = "Give an emptied directory a new, small index."
            parser.add_argument("path", metavar="PATH")
            parser.add_argument("--yes", action="store_true", help="do not ask")
            parser.add_argument(
                "--accept-occupants",
                action="store_true",
                help="leave processes that stand in it in a directory that is gone",
            )
            _add_pin(parser)
            parser.set_defaults(run="maintenance.run_recreate")
        case "aside":
            parser.description = "Rename a directory aside at once, to be deleted later."
            _add_aside(parser)
            parser.set_defaults(run="maintenance.run_aside")
        case "jobs":
            parser.description = "List the jobs, the newest first."
            parser.add_argument(
                "--prune",
                action="store_true",
                help="remove ended jobs beyond the newest 500, older than 90 days, or beyond "
                "256 MiB in total, and list what was removed; each job does the same at its end",
            )
            parser.set_defaults(run="jobs.run_list")
        case "attach":
            parser.description = "Follow a job to its end; Ctrl-C leaves it running."
            parser.add_argument("job", metavar="JOB")
            parser.set_defaults(run="jobs.run_attach")
        case "lab":
            parser.description = "Repeat published experiments on deleting, and look at old runs."
            _add_lab(parser)
            return parser
        case "doctor":
            parser.description = "Tell what works here, and what would make the rest work."
            parser.set_defaults(run="doctor.run")
        case _:
            parser.description = f"Send {command} to a running job."
            parser.add_argument("job", metavar="JOB")
            if COMMANDS[command]:
                parser.add_argument("value", metavar="VALUE", help=COMMANDS[command])
            if command == "resume":
                parser.description = "Let a paused job go on, or go on with what a dead job left."
                _add_answers(parser)
            parser.set_defaults(run="jobs.run_control", command=command)
    if command not in COMMANDS or command == "resume":
        parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _add_survey(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", nargs="?", metavar="PATH")
    parser.add_argument(
        "--top", type=natural, default=10, metavar="N", help="directories in each ranking"
    )
    parser.add_argument(
        "--import", dest="imported", metavar="FILE",
        help="read a file in ncdu's export format (also .gz) instead of a directory",
    )  # fmt: skip
    parser.add_argument(
        "--export", metavar="FILE",
        help="write the survey to a new file instead of showing it; - is standard output",
    )  # fmt: skip
    parser.add_argument(
        "--format", choices=EXPORT_FORMATS,
        help="of --export: ncdu (every entry; what a name ending in .json means), csv (a line "
        "for each directory; .csv), json (--json and every directory)",
    )  # fmt: skip
    parser.add_argument("--force", action="store_true", help="let --export replace a file")


def _add_delete(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--strategy", required=True, type=strategy, metavar="S",
        help=f"one of {', '.join(STRATEGIES)}",
    )  # fmt: skip
    _add_answers(parser)
    parser.add_argument("--dry-run", action="store_true", help="show what would run, then stop")
    parser.add_argument("--name", type=glob, metavar="GLOB", help="only entries whose name matches")
    parser.add_argument("--min-size", type=size, metavar="SIZE", help="only files this large (10M)")
    parser.add_argument(
        "--older-than", type=age, metavar="AGE", help="only entries not modified for AGE (30d)"
    )
    parser.add_argument(
        "--trace", choices=["auto", *(s.value for s in TraceSource if s is not TraceSource.OUTPUT)],
        default="auto", metavar="SOURCE",
        help="who counts system calls: auto, perf, engine (parallel counts its own), bpf (5 to "
        "10 %% slower), strace (5 to 7 times slower), off",
    )  # fmt: skip
    parser.add_argument("--nice", type=nice, default=0, metavar="N", help="0 to 19: how nice to be")
    parser.add_argument(
        "--ionice", type=io_priority, default=IoPriority.NORMAL, metavar="RANK",
        help=f"one of {', '.join(IoPriority)}: the tools' rank at the disk",
    )  # fmt: skip
    parser.add_argument(
        "--gentle",
        action="store_true",
        help="hold the deletion back while others wait for the disk or the processors",
    )
    parser.add_argument(
        "--rate", type=positive, default=0, metavar="N", help="delete at most N entries a second"
    )
    parser.add_argument(
        "--threads", type=threads, default=0, metavar="N",
        help="threads of parallel; 0, the default: parallel chooses their number",
    )  # fmt: skip
    _add_options(parser)


def _add_aside(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", nargs="?", metavar="PATH")
    parser.add_argument(
        "--twin",
        action="store_true",
        help="put an empty directory with the same owner, mode and attributes in its place",
    )
    parser.add_argument("--list", action="store_true", help="list what was put aside")
    parser.add_argument("--undo", metavar="ID", help="put it back, or finish what was interrupted")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    _add_pin(parser)


def _add_pin(parser: argparse.ArgumentParser) -> None:
    """Add the pin that the screens pass on with a confirmation; not for people."""
    parser.add_argument("--pin", type=pin, help=argparse.SUPPRESS)


def _add_lab(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(metavar="ACTION", required=True)

    def add(name: str, words: str) -> argparse.ArgumentParser:
        action = actions.add_parser(name, help=words, description=f"{words.capitalize()}.")
        action.set_defaults(run=f"lab.run_{name}")
        action.add_argument("--json", action="store_true", help="print JSON")
        return action

    add("list", "list the experiments")
    run = add("run", "run an experiment and show what it says")
    run.add_argument("name", metavar="NAME")
    run.add_argument(
        "--scale", choices=("small", "published"), default="small",
        help="small (under a minute) or published (as large as in the text)",
    )  # fmt: skip
    run.add_argument(
        "--dir", metavar="D", help="where its trees are made (else below the user's cache)"
    )
    run.add_argument(
        "--target", default="", metavar="PATH",
        help="a directory whose shape is copied; it is only looked at",
    )  # fmt: skip
    add("runs", "list the runs that are kept, the newest first")
    show = add("show", "show a run that is kept")
    show.add_argument("kept", metavar="RUN", help="its name, or the beginning of it")
    compare = add("compare", "compare two runs of one experiment")
    compare.add_argument("kept", metavar="RUN", nargs=2)
    for action in (run, show):
        action.add_argument(
            "--report", metavar="FILE", help="write a page (HTML) that needs no other file, too"
        )
        action.add_argument("--force", action="store_true", help="let --report replace a file")


def _add_answers(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument(
        "--confirm", metavar="NAME",
        help="the directory's name, where a policy wants it typed; delete for several",
    )  # fmt: skip
    parser.add_argument("--detach", action="store_true", help="start the job and return")


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--keep-root", action="store_true", help="empty the directories, but keep them"
    )
    parser.add_argument(
        "--batch-size", type=positive, default=1000, metavar="N", help="names per rm (xargs)"
    )
    parser.add_argument(
        "--accept-races",
        action="store_true",
        help="run xargs or rsync even where somebody else could lead them astray",
    )
    parser.add_argument(
        "--processes", type=positive, default=1, metavar="P", help="rm processes at once (xargs)"
    )
