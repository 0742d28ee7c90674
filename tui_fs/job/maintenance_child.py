"""Maintenance in a child process: a closed connection or terminal does not end it half-way."""

import json
import subprocess
import sys
from typing import Any

from tui_fs.model.codec import shown_path
from tui_fs.model.errors import BadInput, JobFailed, TuiFsError
from tui_fs.model.units import bytes_iec, counted

_PREFIX = "tui-fs: "


def run_maintenance(*arguments: str) -> str:
    """Run a command of tui-fs, already confirmed, and return what it did, in sentences.

    Args:
        arguments: as for the command line, without --yes and --json; a path comes last.

    Raises:
        TuiFsError: it was refused or failed; its own sentence.
    """
    command, *others = arguments
    started = [sys.executable, "-P", "-m", "tui_fs.cli", command, "--yes", "--json", *others]
    try:
        ended = subprocess.run(
            started,
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            start_new_session=True,
            check=False,
        )
    except OSError as error:
        raise JobFailed(f"tui-fs could not be started: {error.strerror}.") from error
    lines = ended.stderr.decode(errors="backslashreplace").splitlines()
    said = [line.removeprefix(_PREFIX) for line in lines if line.startswith(_PREFIX)]
    if ended.returncode != 0:
        raise TuiFsError(said[-1] if said else f"It ended with code {ended.returncode}.")
    try:
        told = json.loads(ended.stdout)
    except ValueError as error:
        raise BadInput("What it did cannot be read.", "See tui-fs aside --list.") from error
    return "\n".join([_sentence(told), *_moved(told), *said])


def _sentence(told: dict[str, Any]) -> str:
    match told["type"]:
        case "recreate":
            before, after = told["index_bytes_before"], told["index_bytes_after"]
            return f"It is made anew: {bytes_iec(before)} before, {bytes_iec(after)} now."
        case "aside":
            return f"It stands aside as {shown_path(told, 'aside')}."
        case _:
            state = "back" if told["was"] == "aside" else "in order"
            return f"{shown_path(told, 'path')} is {state}."


def _moved(told: dict[str, Any]) -> list[str]:
    """Return what was made meanwhile, in sentences."""
    lines: list[str] = []
    if moved := told.get("moved_entries", 0):
        entries = counted(moved, "entry", "entries")
        lines.append(f"{entries} made meanwhile: moved over.")
    for pair in told.get("kept", ()):
        name, new_name = shown_path(pair, "name"), shown_path(pair, "kept_as")
        lines.append(f"{name} was made twice; the other one is {new_name}.")
    return lines
