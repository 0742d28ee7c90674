"""The record of what was set aside or begun: one file each, readable by its owner only."""

import enum
import errno
import os
import secrets
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tui_fs.cures.renames import cut_name
from tui_fs.job.races import is_firm
from tui_fs.job.store import emergency_directory, read_json, state_directory, write_json
from tui_fs.linux.ways import resolve
from tui_fs.model.codec import decode, encode
from tui_fs.model.errors import BadInput, Refused
from tui_fs.model.paths import PathStr, displayable
from tui_fs.model.target import Pin, Target

_ID_BYTES = 4
_SCHEMA = 1
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO)
_OTHERS = 0o077


class Action(enum.StrEnum):
    """What was begun."""

    ASIDE = "aside"
    RECREATE = "recreate"


class Stage(enum.StrEnum):
    """How far it had come when the record was written; what is there now may be further."""

    BEGUN = "begun"
    ASIDE = "aside"


@dataclass(frozen=True, slots=True)
class Record:
    """A directory that was set aside, or was about to be.

    Attributes:
        path: where it stood.
        aside: where it is now; for `RECREATE` the private directory in which its twin is made
            and, later, it waits for its removal.
        pin: its identity; after a restart of the machine only the inode is the same.
        twin: the identity of the empty directory that takes its place; None without one.
        at: seconds since the epoch.
    """

    id: str
    action: Action
    stage: Stage
    path: PathStr
    aside: PathStr
    pin: Pin
    twin: Pin | None
    at: float

    @property
    def room(self) -> PathStr:
        """The private directory in which the twin is made."""
        above, name = os.path.split(self.path)
        return PathStr(os.path.join(above, cut_name(".", name, f".tui-fs-new-{self.id}")))


def new_record(action: Action, target: Target) -> Record:
    """Return the record of something that is about to begin."""
    record_id = secrets.token_hex(_ID_BYTES)
    above, name = os.path.split(target.path)
    aside = os.path.join(above, cut_name(".", name, f".tui-fs-aside-{record_id}"))
    record = Record(
        record_id, action, Stage.BEGUN, target.path, PathStr(aside), target.pin, None, time.time()
    )
    return replace(record, aside=record.room) if action is Action.RECREATE else record


def delete_command(record: Record) -> tuple[str, ...]:
    """Return the command that deletes what was put aside."""
    return ("tui-fs", "delete", record.aside, "--strategy", "rm", "--gentle")


def undo_command(record: Record) -> tuple[str, ...]:
    """Return the command that puts back what was put aside, or finishes what was interrupted."""
    return ("tui-fs", "aside", "--undo", record.id)


def keep(record: Record) -> str:
    """Write a new record so that it survives a power failure, and return its file.

    Raises:
        Refused: neither the state directory nor the one in memory can hold it, or somebody
            else could write in them.
    """
    first: OSError | None = None
    for place in _places():
        try:
            _make_private(place)
            file = os.path.join(place, f"{record.id}.json")
            rewrite(file, record)
        except OSError as error:
            first = first or error
            if error.errno not in _NO_ROOM:
                break
        else:
            return file
    assert first is not None
    raise Refused(
        f"The record of it cannot be written to {displayable(_places()[0])}: "
        f"{os.strerror(first.errno or 0)}.",
        "Make room there, or set XDG_STATE_HOME to another place. Nothing was changed.",
        rule="record",
    ) from first


def rewrite(file: str, record: Record) -> None:
    """Write a record over itself, whole and lasting; OSError if that fails."""
    write_json(file, {"schema": _SCHEMA, **encode(record)})
    _sync(os.path.dirname(file))


def forget(file: str) -> None:
    """Remove a record; OSError if it cannot be removed."""
    os.unlink(file)
    _sync(os.path.dirname(file))


def find(record_id: str) -> tuple[str, Record]:
    """Return a record and its file; BadInput if there is none of that name."""
    for file, record in all_records():
        if record.id == record_id:
            return file, record
    raise BadInput(
        f"Nothing was put aside as {displayable(record_id)}.", "tui-fs aside --list tells what was."
    )


def all_records() -> Iterator[tuple[str, Record]]:
    """Yield all records with their files, the newest first; BadInput if one is damaged."""
    found: list[tuple[str, Record]] = []
    for place in _places():
        if not _is_own(place):
            continue  # a record from somebody else is not to be obeyed
        for name in os.listdir(place):
            if name.endswith(".json"):
                file = os.path.join(place, name)
                found.append((file, _read(file)))
    yield from sorted(found, key=lambda pair: pair[1].at, reverse=True)


def _read(file: str) -> Record:
    value = read_json(file)
    if value.get("schema") != _SCHEMA:
        raise BadInput(f"{displayable(file)} was written by another version of tui-fs.")
    return decode(Record, value)


def _places() -> tuple[str, ...]:
    memory = emergency_directory()
    above = (state_directory(),) if memory is None else (state_directory(), os.path.dirname(memory))
    return tuple(os.path.join(place, "aside") for place in above)


def _is_own(place: str) -> bool:
    try:
        status = os.lstat(place)
    except OSError:
        return False  # nothing was ever kept there
    is_ours = status.st_uid == os.geteuid() and not status.st_mode & _OTHERS
    return stat.S_ISDIR(status.st_mode) and is_ours


def _make_private(place: str) -> None:
    """Make the directory of the records; Refused if anybody else can write there."""
    above = os.path.dirname(place)
    os.makedirs(os.path.dirname(above), mode=0o755, exist_ok=True)
    for directory in (above, place):
        if not os.path.isdir(directory):
            os.mkdir(directory, 0o700)
    if not _is_own(place) or not is_firm(resolve(place)):
        raise Refused(
            f"{displayable(place)} is not this user's alone: somebody else could change the "
            "records.",
            "Give it to this user with mode 0700, or set XDG_STATE_HOME to a directory that "
            "only this user can write. Nothing was changed.",
            rule="record",
        )


def _sync(directory: str) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
