"""The runs that are kept: a folder each, with the events and the files of the run."""

import contextlib
import json
import os
import stat
import time

from msgspec import Struct

from tui_fs.job.journal import LineWriter
from tui_fs.job.store import is_private, require_private, state_directory
from tui_fs.lab.experiment import Scale
from tui_fs.lab.results import (
    Ending,
    LabEvent,
    Progressed,
    Results,
    event_from_json,
    fold,
)
from tui_fs.model.codec import encode
from tui_fs.model.errors import BadInput
from tui_fs.model.paths import displayable

_EVENTS = "events.jsonl"
LOG = "log"
_LONGEST_BYTES = 64 << 20
"""More than any run writes; a longer file is not a record."""


class StoredRun(Struct, frozen=True):
    """A run that is kept.

    Attributes:
        run_id: the experiment's name and when it began: ``rsync-vs-rm-20260131-154500``.
        started_at: seconds since the epoch.
        ending: None while it runs, or if it was killed.
    """

    run_id: str
    folder: str
    experiment: str
    scale: Scale
    started_at: float
    ending: Ending | None


def new_folder(experiment: str) -> str:
    """Make a folder for a run and return its path.

    Raises:
        OSError: it cannot be made.
        Refused: another user could write there.
    """
    place = _place()
    require_private(place)
    began = time.strftime("%Y%m%d-%H%M%S")
    number = 1
    while True:
        name = f"{experiment}-{began}" + (f"-{number}" if number > 1 else "")
        with contextlib.suppress(FileExistsError):
            os.mkdir(os.path.join(place, name), 0o700)
            return os.path.join(place, name)
        number += 1


class Recorder(LineWriter):
    """Appends events to the record of a run, except for progress."""

    def __init__(self, folder: str) -> None:
        super().__init__(os.path.join(folder, _EVENTS))

    def write(self, event: LabEvent) -> None:
        """Append an event."""
        if not isinstance(event, Progressed):
            self.write_line(encode(event))


def stored_runs() -> list[StoredRun]:
    """Return the runs that are kept and can be read, the newest first."""
    place = _place()
    if not is_private(place):
        return []
    runs: list[StoredRun] = []
    for name in os.listdir(place):
        folder = os.path.join(place, name)
        try:
            results = load(folder)
        except BadInput:
            continue  # `load` reports the error when the user names this run
        began = results.began
        ending = None if results.ended is None else results.ended.ending
        scale = Scale(began.scale)
        runs.append(StoredRun(name, folder, began.experiment, scale, began.started_at, ending))
    return sorted(runs, key=lambda run: run.started_at, reverse=True)


def load(folder: str) -> Results:
    """Return the results of a run; BadInput if its record cannot be read."""
    path = os.path.join(folder, _EVENTS)
    try:
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size > _LONGEST_BYTES:
                raise BadInput(f"{displayable(path)} is not a record of a run.")
            content = file.read()
    except OSError as error:
        raise BadInput(f"{displayable(path)} cannot be read: {error.strerror}.") from error
    whole = content.split(b"\n")[:-1]  # a last line without a newline is incomplete
    try:
        results = fold(event_from_json(json.loads(line)) for line in whole)
    except (ValueError, RecursionError, BadInput) as error:
        reason = str(error).rstrip(".")
        raise BadInput(f"{displayable(path)} is damaged: {reason}.") from error
    if results.began.scale not in list(Scale):
        raise BadInput(f"{displayable(path)} has an unknown scale.")
    return results


def find_run(run_id: str) -> str:
    """Return the folder of a run, named by its whole name or the unique beginning of one."""
    place = _place()
    names = sorted(os.listdir(place)) if is_private(place) else []
    alike = [name for name in names if name.startswith(run_id)] if run_id else []
    if run_id in names:
        alike = [run_id]
    if len(alike) == 1:
        return os.path.join(place, alike[0])
    shown = f"'{displayable(run_id)}'"
    if alike:
        raise BadInput(
            f"{len(alike)} runs begin with {shown}.", "'tui-fs lab runs' lists all runs."
        )
    raise BadInput(f"There is no run {shown}.", "'tui-fs lab runs' lists all runs.")


def _place() -> str:
    return os.path.join(state_directory(), "lab")
