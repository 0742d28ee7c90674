"""Exchanging directories by descriptor: renameat2(2), setting aside, recreating.

ext4 never shrinks the index of a directory, so an emptied directory is replaced by a new small one.
"""

import contextlib
import ctypes
import errno
import os
import signal
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from tui_fs.linux.directories import open_directory
from tui_fs.linux.pins import pin_of
from tui_fs.linux.statx import APPEND_ONLY, IMMUTABLE, inode_flags
from tui_fs.maintenance.attributes import Attributes, differences, give, read_attributes
from tui_fs.model.errors import Missing, Refused
from tui_fs.model.paths import PathStr, displayable
from tui_fs.model.target import Pin
from tui_fs.model.units import counted

MAX_NAME_BYTES = 255
"""NAME_MAX, linux/limits.h."""

_NOREPLACE, _EXCHANGE = 1, 2  # linux/fs.h
_NO_FLAG = 1 << 30
_RENAMEAT2_NUMBERS = {"x86_64": 316, "aarch64": 276, "riscv64": 276, "ppc64le": 357, "s390x": 347}
_LIBC = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class DirEntryRef:
    """A name in an open directory."""

    directory: int
    name: str

    def identity(self) -> tuple[int, int] | None:
        """Return device and inode of what has this name, None if nothing has."""
        try:
            status = os.stat(self.name, dir_fd=self.directory, follow_symlinks=False)
        except FileNotFoundError:
            return None
        return status.st_dev, status.st_ino


def entry_ref(parent: int, path: PathStr) -> DirEntryRef:
    """Return the last component of a path, in the open directory that holds it."""
    return DirEntryRef(parent, os.path.basename(path))


def identity_of(descriptor: int) -> tuple[int, int]:
    """Return device and inode of an open directory."""
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


def rename_new(source: DirEntryRef, goal: DirEntryRef) -> None:
    """Rename; FileExistsError if the goal exists, which stays as it is.

    Raises:
        OSError: as rename(2).
        Missing: the C library, the kernel or a seccomp filter takes renameat2 away.
        Refused: the file system cannot do this.
    """
    _renameat2(source, goal, _NOREPLACE, "rename without replacing")


def exchange_names(one: DirEntryRef, other: DirEntryRef) -> None:
    """Exchange what two names stand for, in one step; raises as `rename_new`."""
    _renameat2(one, other, _EXCHANGE, "exchange two names in one step")


def exchange_checked(
    one: DirEntryRef,
    other: DirEntryRef,
    at_one: tuple[int, int],
    at_other: tuple[int, int] | None = None,
) -> None:
    """Exchange two names that must stand for these directories.

    Whatever else was met under them in that very moment is put back.

    Args:
        at_other: None where nobody else can reach the other name, and so exchange what it
            stands for.

    Raises:
        OSError, Missing, Refused: as `rename_new`; nothing was exchanged. Refused with the rule
            "changed": one of the names stood for something else.
    """
    exchange_names(one, other)
    if other.identity() == at_one and (at_other is None or one.identity() == at_other):
        return
    exchange_names(one, other)
    raise _exchanged_meanwhile()


def _exchanged_meanwhile() -> Refused:
    return Refused(
        "Somebody put something else in the directory's place in this very moment.",
        "Look who else renames directories there.",
        rule="changed",
    )


def cut_name(before: str, name: str, after: str) -> str:
    """Return the three joined, the middle one cut so that a file system takes the name."""
    room = MAX_NAME_BYTES - len(os.fsencode(before + after))
    while len(os.fsencode(name)) > room:
        name = name[:-1]
    return f"{before}{name}{after}"


def _renameat2(source: DirEntryRef, goal: DirEntryRef, flag: int, what: str) -> None:
    function = getattr(_LIBC, "renameat2", None)
    if function is None:
        raise Missing(
            "The C library of this system lacks renameat2.", "glibc has it since version 2.28."
        )
    names = os.fsencode(source.name), os.fsencode(goal.name)
    if function(source.directory, names[0], goal.directory, names[1], flag) == 0:
        return
    number = ctypes.get_errno()
    refusal = _refusal_of_call()
    if refusal is not None:
        raise Missing(
            f"The kernel or a seccomp filter refuses renameat2 ({os.strerror(refusal)}).",
            "Run tui-fs outside the container, or allow renameat2 in its seccomp profile.",
        )
    if number in (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
        raise Refused(f"The file system cannot {what} (renameat2).", rule="no-exchange")
    raise OSError(number, os.strerror(number))


def _refusal_of_call() -> int | None:
    """Return the errno with which the call itself is refused, whatever it is to rename.

    The kernel rejects a flag that does not exist, and nothing else does. The C library's function
    is of no use here: glibc reports a missing renameat2 as EINVAL, too. On a machine whose number
    of the call is not known it is taken to be there.
    """
    number = _RENAMEAT2_NUMBERS.get(os.uname().machine)
    if number is None:
        return None
    nowhere = ctypes.c_long(-1)
    call, flag = ctypes.c_long(number), ctypes.c_long(_NO_FLAG)
    _LIBC.syscall(call, nowhere, b"", nowhere, b"", flag)
    answer = ctypes.get_errno()
    return None if answer == errno.EINVAL else answer


DEADLINE_S = 10.0
"""So long somebody may be faster than the moving and rmdir."""

LAST_DEADLINE_S = 600.0
"""So long it may take where giving up would leave entries in two directories."""

_TOKEN_BYTES = 4


def move_entries_and_remove(
    entry: DirEntryRef, old: int, new: int, deadline_s: float = LAST_DEADLINE_S
) -> "MovedEntries":
    """Remove a directory; what is in it moves into another one of the same file system first.

    rmdir(2) removes only what is empty, and from then on nobody can make an entry in it: so every
    entry that could be made was moved, or its maker was told that it failed.

    Args:
        entry: the name of the old one; if it is another directory's by now, that stays.
        old, new: both open for reading.

    A blocked signal that arrives while another process still writes ends it as the deadline
    does.

    Raises:
        OSError: an entry cannot be moved (ENOSPC, EPERM of an immutable one, …), or somebody
            still writes into the old one after the deadline (ENOTEMPTY) or a signal (EINTR).
            The entries are in the two directories, and the old one stands where it stood.
    """
    moved_entries = MovedEntries()
    deadline = time.monotonic() + deadline_s
    pending = signal.sigpending()
    while True:
        if entry.identity() != identity_of(old):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        try:
            os.rmdir(entry.name, dir_fd=entry.directory)
        except OSError as error:
            is_late = time.monotonic() > deadline
            if is_late or error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            if signal.sigpending() - pending:
                raise InterruptedError(errno.EINTR, os.strerror(errno.EINTR)) from error
            moved_entries.move_all(old, new, deadline)
        else:
            return moved_entries


class MovedEntries:
    """What was moved.

    Attributes:
        moved: the number of entries.
        kept: pairs of a name that both directories had, and the name that the entry of the old
            one got.
    """

    def __init__(self) -> None:
        self.moved = 0
        self.kept: list[tuple[PathStr, PathStr]] = []

    def move_all(self, old: int, new: int, deadline: float) -> None:
        """Move the entries that are there until a time of the clock; OSError as rename(2)."""
        with os.scandir(old) as entries:
            for entry in entries:
                self._move(PathStr(entry.name), old, new)
                if time.monotonic() > deadline:
                    return

    def _move(self, name: PathStr, old: int, new: int) -> None:
        goal = name
        while True:
            try:
                rename_new(DirEntryRef(old, name), DirEntryRef(new, goal))
            except FileExistsError:
                goal = PathStr(cut_name("", name, f".tui-fs-kept-{os.urandom(_TOKEN_BYTES).hex()}"))
            except FileNotFoundError:
                return  # its maker has removed or renamed it meanwhile
            else:
                break
        self.moved += 1
        if goal != name:
            self.kept.append((name, goal))


def is_empty(descriptor: int) -> bool:
    """Tell whether an open directory has no entry; reads all of a long index (seconds)."""
    with os.scandir(descriptor) as entries:
        return next(iter(entries), None) is None


INSIDE = "twin"
"""The only name in the staging directory."""

_OTHERS = 0o077


@dataclass(frozen=True, slots=True)
class ReplacementDir:
    """An empty directory with the owner, mode, ACL, attributes, flags and times of another one.

    It is made in a staging directory of mode 0700 beside the original. No other user can reach a
    name in there, so no other user can replace it while it still belongs to this user.

    Attributes:
        entry: its name in the staging directory.
        descriptor: the open directory.
    """

    entry: DirEntryRef
    descriptor: int

    @property
    def identity(self) -> tuple[int, int]:
        """Device and inode."""
        return identity_of(self.descriptor)


@contextlib.contextmanager
def open_directory_at(entry: DirEntryRef) -> Iterator[int]:
    """Open the directory that has a name; OSError if it is none, ELOOP if it is a link."""
    descriptor = open_directory(entry.name, entry.directory)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def staging_dir(staging: DirEntryRef) -> Iterator[int]:
    """Make the private directory, give its descriptor, and remove it at the end if it is empty.

    Raises:
        OSError: it cannot be made.
        Refused: somebody put another directory in its place.
    """
    os.mkdir(staging.name, 0o700, dir_fd=staging.directory)
    try:
        with open_staging_dir(staging) as descriptor:
            yield descriptor
    finally:
        remove_if_empty(staging)


@contextlib.contextmanager
def open_staging_dir(staging: DirEntryRef) -> Iterator[int]:
    """Open a staging directory; Refused if it is not this user's alone."""
    with open_directory_at(staging) as descriptor:
        status = os.fstat(descriptor)
        if status.st_uid != os.geteuid() or status.st_mode & _OTHERS:
            raise Refused(
                "Somebody put another directory in the place of the new one in this very moment.",
                "Look who else writes there.",
                rule="changed",
            )
        yield descriptor


@contextlib.contextmanager
def make_replacement(staging: int, wanted: Attributes) -> Iterator[ReplacementDir]:
    """Make a twin with these attributes; it is removed at the end if it is still here and empty.

    Raises:
        OSError: it cannot be made.
        Refused: it cannot be given one of the attributes.
    """
    entry = DirEntryRef(staging, INSIDE)
    os.mkdir(INSIDE, 0o700, dir_fd=staging)
    with open_directory_at(entry) as descriptor:
        twin = ReplacementDir(entry, descriptor)
        try:
            give(descriptor, wanted)
            yield twin
        finally:
            if entry.identity() == twin.identity:
                remove_if_empty(entry)


def remove_if_empty(entry: DirEntryRef) -> bool:
    """Remove an empty directory; return whether nothing has that name now."""
    try:
        os.rmdir(entry.name, dir_fd=entry.directory)
    except FileNotFoundError:
        return True
    except OSError:
        return entry.identity() is None  # not empty: it stays, and the caller tells of it
    return True


@dataclass(frozen=True, slots=True)
class Recreated:
    """What recreating did.

    Attributes:
        index_bytes_before, index_bytes_after: the size of the directory itself.
        moved: entries that somebody made meanwhile, and that were moved over.
        kept: for names made in both directories: the name, and the one that the entry of the
            old directory has now.
    """

    index_bytes_before: int
    index_bytes_after: int
    moved: int
    kept: tuple[tuple[PathStr, PathStr], ...]


def index_bytes(descriptor: int) -> int:
    """Return the size of an open directory itself; on ext4 that is its index."""
    return os.fstat(descriptor).st_size


def refuse_full(descriptor: int) -> None:
    """Raise Refused if an open directory has entries; reads all of a long index (seconds)."""
    if not is_empty(descriptor):
        raise Refused(
            "The directory is not empty.",
            "Empty it first: tui-fs delete PATH --strategy rm --keep-root.",
            rule="not-empty",
        )


def refuse_locked(descriptor: int) -> None:
    """Raise Refused if an open directory is immutable or append-only."""
    if (inode_flags(descriptor) or 0) & (IMMUTABLE | APPEND_ONLY):
        raise Refused(
            "The directory, or the one that holds it, is immutable or append-only.",
            "Take the flag off first: chattr -i -a.",
            rule="locked",
        )


def recreate(
    place: DirEntryRef, old: int, staging: DirEntryRef, made: Callable[[ReplacementDir], None]
) -> Recreated:
    """Put an empty twin in the place of an empty directory, and remove that.

    The name stands for a directory at every moment. Somebody who writes meanwhile loses nothing:
    see `move_entries_and_remove`.

    Args:
        place: the directory's name in the open directory that holds it.
        old: the directory, open for reading.
        staging: a name beside it for the private directory in which the twin is made.
        made: called with the twin, before anything is exchanged.

    Raises:
        OSError, Refused, Missing: everything is as it was; or, if the staging directory is still
            there, some entries that somebody made meanwhile are in it (see `finish_staging_dir`).
    """
    refuse_locked(old)
    wanted = read_attributes(old)
    before = index_bytes(old)
    with staging_dir(staging) as inside, make_replacement(inside, wanted) as twin:
        refuse_full(old)
        made(twin)
        exchange_checked(place, twin.entry, identity_of(old))
        try:
            refuse_changed(old, wanted)
            if is_empty(twin.descriptor):  # xfs takes the exchange for a change of the directory
                os.utime(twin.descriptor, ns=(wanted.accessed_ns, wanted.modified_ns))
            moved_entries = move_entries_and_remove(twin.entry, old, twin.descriptor, DEADLINE_S)
        except (OSError, Refused) as why:
            undo_exchange(place, twin.entry, old, twin, why)
            raise
        return Recreated(
            before, index_bytes(twin.descriptor), moved_entries.moved, tuple(moved_entries.kept)
        )


def finish_staging_dir(
    place: DirEntryRef, staging: DirEntryRef, known: Collection[Pin]
) -> MovedEntries:
    """Finish what a killed run has left in its staging directory: its entries go to the directory.

    Raises:
        OSError, Refused: as `finish`, or the staging directory is not this user's alone.
    """
    moved_entries = MovedEntries()
    with open_staging_dir(staging) as inside:
        left = DirEntryRef(inside, INSIDE)
        if not remove_if_empty(left):
            moved_entries = finish(left, place, known)
    os.rmdir(staging.name, dir_fd=staging.directory)
    return moved_entries


def refuse_changed(target_fd: int, wanted: Attributes) -> None:
    """Raise Refused unless a directory still has the attributes that its twin got."""
    changed = differences(read_attributes(target_fd), wanted)
    if changed:
        raise Refused(
            f"Somebody has changed the directory's {displayable(changed[0])} in this very moment.",
            "Try again.",
            rule="changed",
        )


def undo_exchange(
    place: DirEntryRef,
    other: DirEntryRef,
    target_fd: int,
    twin: ReplacementDir,
    why: OSError | Refused,
) -> None:
    """Put a directory back, and with it what has come into its twin meanwhile; remove that.

    Args:
        place, other: the names of the twin and of the directory now.
        target_fd: the directory, open for reading.
        why: what the caller is going to raise.

    Raises:
        OSError, Missing, Refused: it could not be put back or not all entries could be moved; or
            both had an entry of one name (rule "clash").
    """
    exchange_checked(place, other, twin.identity, identity_of(target_fd))
    kept = move_entries_and_remove(other, twin.descriptor, target_fd).kept
    if kept:
        name, new_name = kept[0]
        raise Refused(
            f"{why} Somebody made {counted(len(kept), 'name', 'names')} twice meanwhile.",
            f"Both entries are there: beside {displayable(name)} stands {displayable(new_name)}.",
            rule="clash",
        ) from why


def finish(left: DirEntryRef, place: DirEntryRef, known: Collection[Pin]) -> MovedEntries:
    """Remove the directory that a killed run has left; its entries go to the one at the place.

    Args:
        known: the two directories that were to be exchanged; others are not touched.

    Raises:
        OSError: an entry cannot be moved.
        Refused: other directories stand there; nothing was changed.
    """
    with open_directory_at(left) as old, open_directory_at(place) as new:
        pins = pin_of(old), pin_of(new)
        are_known = all(any(pin.is_same_later(recorded) for recorded in known) for pin in pins)
        if pins[0] == pins[1] or not are_known:
            raise Refused(
                "Other directories stand there than those that were to be exchanged.",
                "Look at both, and move what you need yourself.",
                rule="changed",
            )
        return move_entries_and_remove(left, old, new)


def put_aside(place: DirEntryRef, target_fd: int, goal: DirEntryRef) -> None:
    """Rename a directory to a name that nothing has; nothing has its old name then.

    Args:
        target_fd: a descriptor of the directory.

    Raises:
        OSError, Missing, Refused: everything is as it was. Refused with the rule "changed":
            another directory had the name.
    """
    rename_new(place, goal)
    if goal.identity() != identity_of(target_fd):
        rename_new(goal, place)
        raise _exchanged_meanwhile()


def put_aside_with_replacement(
    place: DirEntryRef,
    target_fd: int,
    goal: DirEntryRef,
    staging: DirEntryRef,
    made: Callable[[ReplacementDir], None],
) -> None:
    """Rename a directory to a name that nothing has; an empty twin takes its name in that step.

    Args:
        target_fd: the directory, open for reading.
        staging: a name beside it for the private directory in which the twin is made.
        made: called with the twin, before anything is renamed.

    Raises:
        OSError, Missing, Refused: as `put_aside`, or no twin could be made, or what `undo_exchange`
            tells. Refused with the rule "changed" also if somebody changed its attributes.
    """
    wanted = read_attributes(target_fd)
    with staging_dir(staging) as inside, make_replacement(inside, wanted) as twin:
        made(twin)
        rename_new(twin.entry, goal)
        try:
            exchange_checked(place, goal, identity_of(target_fd), twin.identity)
        except (OSError, Refused):
            if goal.identity() == twin.identity:
                rename_new(goal, twin.entry)
            raise
        try:
            refuse_changed(target_fd, wanted)
        except (OSError, Refused) as why:
            undo_exchange(place, goal, target_fd, twin, why)
            raise


def put_back(place: DirEntryRef, target_fd: int, aside: DirEntryRef) -> None:
    """Rename a directory back; FileExistsError if anything has its old name by now."""
    put_aside(aside, target_fd, place)


def refuse_changed_replacement(twin: int, original: int) -> None:
    """Raise Refused unless a twin is empty and as it was made; both are open for reading."""
    if not is_empty(twin):
        raise Refused(
            "The directory that took its place is not empty any more.",
            "Move its entries away first, or into the one that was put aside.",
            rule="not-empty",
        )
    changed = differences(read_attributes(twin), read_attributes(original))
    if changed:
        raise Refused(
            f"Somebody has changed the {changed[0]} of the directory that took its place.",
            "Remove that with rmdir if it is not needed, and try again.",
            rule="changed",
        )


def exchange_back(place: DirEntryRef, target_fd: int, aside: DirEntryRef, twin: int) -> None:
    """Exchange a directory with its twin, which has the other name then.

    Raises:
        OSError, Missing, Refused: everything is as it was.
    """
    exchange_checked(place, aside, identity_of(twin), identity_of(target_fd))


def reopened(target_fd: int) -> int:
    """Return a descriptor for reading of a directory that is open by O_PATH.

    Raises:
        OSError: this user may not read or search it.
    """
    return os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=target_fd)
