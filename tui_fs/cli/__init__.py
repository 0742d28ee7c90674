"""The command line: the only place that parses arguments, prints and chooses exit codes."""

import argparse
import gc
import io
import os
import sys
from importlib import import_module

from tui_fs.cli.exit_codes import CANCELLED_BY_INT, OUTPUT_LOST, SOME_FAILED, exit_code_of
from tui_fs.cli.output import OutputLost
from tui_fs.cli.parser import parse
from tui_fs.model.errors import TuiFsError
from tui_fs.model.paths import displayable
from tui_fs.safety.privileges import refuse_borrowed_privileges

_STREAMS = ("stdin", "r"), ("stdout", "w"), ("stderr", "w")
"""The standard streams by their numbers."""


def entry_point() -> None:
    """Run the command of ``sys.argv`` and exit with its code."""
    _fill_standard_streams()
    sys.exit(main(sys.argv[1:]))


def main(arguments: list[str]) -> int:
    """Run one command; return its exit code."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a poor locale must not end a job's view
    try:
        refuse_borrowed_privileges()
        parsed = parse(arguments)
        code = _run(parsed)
    except TuiFsError as why:
        print(f"tui-fs: {why}", file=sys.stderr)
        return exit_code_of(why)
    except KeyboardInterrupt:
        return CANCELLED_BY_INT
    except BrokenPipeError:
        # Nobody reads on; a job that was started goes on by itself.
        _forget_output()
        return OUTPUT_LOST
    except OutputLost as why:
        _forget_output()
        print(f"tui-fs: {why}", file=sys.stderr)
        return OUTPUT_LOST
    except OSError as why:
        place = f"{displayable(os.fsdecode(why.filename))}: " if why.filename else ""
        print(f"tui-fs: {place}{os.strerror(why.errno or 0)}.", file=sys.stderr)
        return SOME_FAILED
    return code


def _fill_standard_streams() -> None:
    """Open the standard streams that were closed: no file of a job may have their numbers."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) < len(_STREAMS):
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    for number, (name, mode) in enumerate(_STREAMS):
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115


def _forget_output() -> None:
    """Let Python not complain at its exit that it cannot write what it still holds."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(parsed: argparse.Namespace) -> int:
    """Run a command; only its own modules are loaded, because loading all takes longer than it."""
    module, _, function = parsed.run.partition(".")
    gc.disable()  # what is loaded stays: looking through it again and again takes a sixth longer
    loaded = import_module(f"tui_fs.cli.{module}")
    gc.enable()
    code: int = getattr(loaded, function)(parsed)
    return code
