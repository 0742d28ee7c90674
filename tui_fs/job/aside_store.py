"""Records of directories set aside or recreated: one private file each, and their state."""

import contextlib
import os
import stat
import time
from collections.abc import Iterator

from msgspec import Struct, field
from msgspec.structs import replace

from tui_fs.job.store import (
    NO_ROOM,
    PRIVATE_ADVICE,
    made_private,
    read_json,
    state_directories,
    sync_directory,
    write_json,
)
from tui_fs.linux.descriptors import closing
from tui_fs.linux.host import current_host
from tui_fs.linux.pins import open_by_path, pin_of
from tui_fs.maintenance.exchange import DirEntryRef, cut_name, entry_ref
from tui_fs.model.codec import decode, encode
from tui_fs.model.compat import StrEnum
from tui_fs.model.errors import BadInput, Refused, cannot_examine
from tui_fs.model.host import Host, Locality, locality_of
from tui_fs.model.paths import PathStr, displayable
from tui_fs.model.target import Pin, Target

_ID_BYTES = 4
_SCHEMA = 1
_OTHERS = 0o077


class Action(StrEnum):
    """The kind of action that a record describes."""

    ASIDE = "aside"
    RECREATE = "recreate"


class AsideRecord(Struct, frozen=True):
    """A directory that was set aside, or was about to be.

    Attributes:
        path: the original path of the directory.
        aside: its current path. For `RECREATE` the private directory in which its twin is created
            and in which, later, the old directory waits for its removal.
        pin: its identity; after a restart of the machine only the inode is the same.
        twin: the identity of the empty directory that takes its place; None without a twin.
        at: seconds since the epoch.
        host: the host that made the record; the path is valid only there.
    """

    id: str
    action: Action
    path: PathStr
    aside: PathStr
    pin: Pin
    twin: Pin | None
    at: float
    host: Host = field(default_factory=Host)

    @property
    def is_of_other_host(self) -> bool:
        """Whether another host that shares the state directory made the record."""
        return locality_of(self.host, current_host()) is Locality.OTHER_HOST

    @property
    def staging_dir(self) -> PathStr:
        """The private directory in which the twin is created."""
        above, name = os.path.split(self.path)
        return PathStr(os.path.join(above, cut_name(".", name, f".tui-fs-new-{self.id}")))


class Damaged(Struct, frozen=True):
    """An unreadable record: its name, and the reason as a sentence."""

    id: str
    reason: str


def new_record(action: Action, target: Target) -> AsideRecord:
    """Return the record of an action that is about to begin."""
    record_id = os.urandom(_ID_BYTES).hex()
    above, name = os.path.split(target.path)
    aside = os.path.join(above, cut_name(".", name, f".tui-fs-aside-{record_id}"))
    record = AsideRecord(
        record_id,
        action,
        target.path,
        PathStr(aside),
        target.pin,
        None,
        time.time(),
        current_host(),
    )
    return replace(record, aside=record.staging_dir) if action is Action.RECREATE else record


def delete_command(record: AsideRecord) -> tuple[str, ...]:
    """Return the command that deletes the directory set aside."""
    return ("tui-fs", "delete", record.aside, "--strategy", "rm", "--gentle")


def undo_command(record: AsideRecord) -> tuple[str, ...]:
    """Return the command that puts the directory back, or finishes an interrupted action."""
    return ("tui-fs", "aside", "--undo", record.id)


def keep(record: AsideRecord) -> str:
    """Write a new record so that it survives a power failure, and return its file.

    Raises:
        Refused: neither the state directory nor the one in memory has room for it, or another
            user could write in them.
    """
    first: OSError | None = None
    for place in _places():
        try:
            _make_private(place)
            file = os.path.join(place, f"{record.id}.json")
            rewrite(file, record)
        except OSError as error:
            first = first or error
            if error.errno not in NO_ROOM:
                break
        else:
            return file
    assert first is not None
    raise Refused(
        f"The record of this change cannot be written to {displayable(_places()[0])}: "
        f"{os.strerror(first.errno or 0)}.",
        (
            "Make it writable and free space there, or set XDG_STATE_HOME to another directory. "
            "Nothing was changed."
        ),
        rule="record",
    ) from first


def rewrite(file: str, record: AsideRecord) -> None:
    """Replace a record's file atomically and durably; OSError if that fails."""
    write_json(file, {"schema": _SCHEMA, **encode(record)})
    sync_directory(os.path.dirname(file))


def forgotten(file: str) -> str:
    """Remove an obsolete record; return why that failed as a sentence, empty if it did not."""
    try:
        os.unlink(file)
        sync_directory(os.path.dirname(file))
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        return f"Its record {displayable(file)} cannot be removed: {reason}."
    return ""


def find(record_id: str) -> tuple[str, AsideRecord]:
    """Return a record and its file; BadInput if it does not exist or is damaged."""
    for file in _files():
        if os.path.basename(file) == f"{record_id}.json":
            return file, _read(file)
    raise BadInput(
        f"There is no record '{displayable(record_id)}'.", "tui-fs aside --list lists all records."
    )


def all_records() -> tuple[list[AsideRecord], list[Damaged]]:
    """Return all records, the newest first, and those that cannot be read."""
    readable: list[AsideRecord] = []
    damaged: list[Damaged] = []
    for file in _files():
        try:
            readable.append(_read(file))
        except BadInput as error:
            if os.path.lexists(file):  # else another process has just removed it
                damaged.append(Damaged(os.path.basename(file).removesuffix(".json"), str(error)))
    return sorted(readable, key=lambda record: record.at, reverse=True), damaged


def _files() -> Iterator[str]:
    for place in _places():
        if _is_own(place):  # do not trust records of another user
            for name in os.listdir(place):
                if name.endswith(".json"):
                    yield os.path.join(place, name)


def _read(file: str) -> AsideRecord:
    value = read_json(file)
    if value.get("schema") != _SCHEMA:
        raise BadInput(
            f"{displayable(file)} was written by another version of tui-fs; use that version."
        )
    record = decode(AsideRecord, value)
    if os.path.basename(file) != f"{record.id}.json":
        raise BadInput(f"{displayable(file)} contains the record of another id.")
    return record


def _places() -> tuple[str, ...]:
    return tuple(os.path.join(state, "aside") for state in state_directories())


def _is_own(place: str) -> bool:
    try:
        status = os.lstat(place)
    except OSError:
        return False  # no record was ever stored there
    is_ours = status.st_uid == os.geteuid() and not status.st_mode & _OTHERS
    return stat.S_ISDIR(status.st_mode) and is_ours


def _make_private(place: str) -> None:
    """Create the directory of the records; Refused if another user can write there."""
    if not made_private(place):
        raise Refused(
            f"{displayable(place)} is not private: another user could change the records.",
            f"{PRIVATE_ADVICE} Nothing was changed.",
            rule="record",
        )


class AsideState(StrEnum):
    """What is left of an action now."""

    ASIDE = "aside"
    INTERRUPTED = "interrupted"
    GONE = "gone"
    ELSEWHERE = "elsewhere"
    """Another host made the record, so the state is unknown here."""


def records() -> tuple[list[tuple[AsideRecord, AsideState | None]], list[Damaged]]:
    """Return all records with their states, the newest first, and the damaged records.

    The state is None if the directory cannot be reached.
    """
    listed: list[tuple[AsideRecord, AsideState | None]] = []
    readable, damaged = all_records()
    for record in readable:
        try:
            listed.append((record, state_of_record(record)))
        except BadInput:
            listed.append((record, None))
    return listed, damaged


def state_of_record(record: AsideRecord) -> AsideState:
    """Return the state of a record; BadInput if its directory cannot be examined."""
    if record.is_of_other_host:
        return AsideState.ELSEWHERE
    with opened_parent(record) as parent:
        return state_in(record, parent)


def state_in(record: AsideRecord, parent: int) -> AsideState:
    aside_entry = entry_ref(parent, record.aside)
    if record.action is Action.ASIDE and is_recorded(aside_entry, record.pin):
        return AsideState.ASIDE
    has_staging_dir = entry_ref(parent, record.staging_dir).identity() is not None
    is_gone = aside_entry.identity() is None and not has_staging_dir
    return AsideState.GONE if is_gone else AsideState.INTERRUPTED


def is_recorded(place: DirEntryRef, recorded: Pin) -> bool:
    """Return whether a name refers to the recorded directory, also after a restart.

    Raises:
        OSError: it cannot be opened.
    """
    flags = os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC
    try:
        descriptor = os.open(place.name, flags, dir_fd=place.directory)
    except (FileNotFoundError, NotADirectoryError):
        return False
    with closing(descriptor):
        return pin_of(descriptor).is_same_later(recorded)


def opened_parent(record: AsideRecord) -> contextlib.AbstractContextManager[int]:
    """Open the parent of the directory that was set aside for reading; BadInput if that fails."""
    directory = os.path.dirname(record.path)
    try:
        return closing(open_by_path(directory))
    except OSError as error:
        raise cannot_examine(directory, error) from error
