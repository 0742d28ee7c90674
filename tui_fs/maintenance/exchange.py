"""Exchange directories by descriptor with renameat2(2): set aside, recreate.

ext4 never shrinks the index of a directory. Recreating replaces an emptied directory by a new small
one.
"""

import contextlib
import ctypes
import errno
import os
import signal
import time
from collections.abc import Callable, Collection, Iterator

from msgspec import Struct

from tui_fs.linux.descriptors import closing
from tui_fs.linux.directories import open_directory
from tui_fs.linux.libc import LIBC
from tui_fs.linux.pins import pin_of
from tui_fs.linux.statx import APPEND_ONLY, IMMUTABLE, inode_flags
from tui_fs.maintenance.attributes import Attributes, differences, give, read_attributes
from tui_fs.model.errors import Missing, Refused
from tui_fs.model.paths import PathStr, displayable, shell_quoted
from tui_fs.model.target import Pin
from tui_fs.model.units import counted

MAX_NAME_BYTES = 255
"""NAME_MAX, linux/limits.h."""

_NOREPLACE, _EXCHANGE = 1, 2  # linux/fs.h
_NO_FLAG = 1 << 30
_RENAMEAT2_NUMBERS = {"x86_64": 316, "aarch64": 276, "riscv64": 276, "ppc64le": 357, "s390x": 347}


class DirEntryRef(Struct, frozen=True):
    """A name in an open directory."""

    directory: int
    name: str

    def identity(self) -> tuple[int, int] | None:
        """Return device and inode of the entry with this name; None if it does not exist."""
        try:
            status = os.stat(self.name, dir_fd=self.directory, follow_symlinks=False)
        except FileNotFoundError:
            return None
        return status.st_dev, status.st_ino


def entry_ref(parent: int, path: PathStr) -> DirEntryRef:
    """Return the last component of a path as an entry of its open parent directory."""
    return DirEntryRef(parent, os.path.basename(path))


def identity_of(descriptor: int) -> tuple[int, int]:
    """Return device and inode of an open directory."""
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


def rename_new(source: DirEntryRef, goal: DirEntryRef) -> None:
    """Rename without replacing; FileExistsError if the goal exists.

    Raises:
        OSError: as rename(2).
        Missing: the C library, the kernel or a seccomp filter does not provide renameat2.
        Refused: the file system does not support RENAME_NOREPLACE.
    """
    _renameat2(source, goal, _NOREPLACE, "rename without replacing")


def exchange_names(first: DirEntryRef, second: DirEntryRef) -> None:
    """Exchange two names atomically; raises as `rename_new`."""
    _renameat2(first, second, _EXCHANGE, "exchange two names in one step")


def exchange_checked(
    first: DirEntryRef,
    second: DirEntryRef,
    first_identity: tuple[int, int],
    second_identity: tuple[int, int] | None = None,
) -> None:
    """Exchange two names if they refer to these directories.

    The check follows the exchange. If another process replaced one of the directories, a second
    exchange restores the names.

    Args:
        second_identity: None if no other user can reach the second name, and thus replace its
            directory.

    Raises:
        OSError, Missing, Refused: as `rename_new`; nothing was exchanged. Refused with the rule
            "changed": one of the names referred to another directory.
    """
    exchange_names(first, second)
    if second.identity() == first_identity and (
        second_identity is None or first.identity() == second_identity
    ):
        return
    exchange_names(first, second)
    raise _exchanged_meanwhile()


def _exchanged_meanwhile() -> Refused:
    return Refused(
        "Another process just replaced the directory.",
        "Check which process renames directories there.",
        rule="changed",
    )


def cut_name(before: str, name: str, after: str) -> str:
    """Join the three parts; cut the middle one so that the name fits into NAME_MAX."""
    max_bytes = MAX_NAME_BYTES - len(os.fsencode(before + after))
    while len(os.fsencode(name)) > max_bytes:
        name = name[:-1]
    return f"{before}{name}{after}"


def _renameat2(source: DirEntryRef, goal: DirEntryRef, flag: int, verb: str) -> None:
    function = getattr(LIBC, "renameat2", None)
    if function is None:
        raise Missing(
            "The C library of this system lacks renameat2.", "It needs glibc 2.28 or later."
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
        raise Refused(
            f"The file system cannot {verb} (renameat2).",
            "Nothing was changed. Choose a directory on another file system.",
            rule="no-exchange",
        )
    raise OSError(number, os.strerror(number))


def _refusal_of_call() -> int | None:
    """Return the errno with which the system refuses every renameat2; None if it is available.

    The probe passes a flag that does not exist: a kernel that has the call answers EINVAL. It
    bypasses the wrapper of glibc, which reports a missing renameat2 as EINVAL, too. On an
    architecture without an entry in the table the call counts as available.
    """
    number = _RENAMEAT2_NUMBERS.get(os.uname().machine)
    if number is None:
        return None
    invalid_fd = ctypes.c_long(-1)
    call, flag = ctypes.c_long(number), ctypes.c_long(_NO_FLAG)
    LIBC.syscall(call, invalid_fd, b"", invalid_fd, b"", flag)
    error_number = ctypes.get_errno()
    return None if error_number == errno.EINVAL else error_number


DEADLINE_S = 10.0
"""Deadline for rmdir while another process keeps adding entries."""

LAST_DEADLINE_S = 600.0
"""Deadline where failure would leave entries in two directories."""

_TOKEN_BYTES = 4


def move_entries_and_remove(
    entry: DirEntryRef, old: int, new: int, deadline_s: float = LAST_DEADLINE_S
) -> "MovedEntries":
    """Move the entries of a directory into another one of the same file system, then remove it.

    rmdir(2) removes only an empty directory, and no process can create an entry in a removed one.
    So no entry is lost: each is moved, or its creation fails.

    A blocked signal that arrives while another process still writes has the effect of the
    deadline.

    Args:
        entry: the name of the old directory; a directory that has replaced it stays.
        old, new: descriptors of the two directories, open for reading.

    Raises:
        OSError: an entry cannot be moved (ENOSPC, EPERM of an immutable one, …), or another
            process still writes into the old directory after the deadline (ENOTEMPTY) or a
            signal (EINTR). Then both directories have entries, and the old one keeps its name.
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
    """Moves entries and records the moves.

    Attributes:
        moved: the number of entries.
        kept: pairs of a name that both directories had, and the new name of the old directory's
            entry.
    """

    def __init__(self) -> None:
        self.moved = 0
        self.kept: list[tuple[PathStr, PathStr]] = []

    def move_all(self, old: int, new: int, deadline: float) -> None:
        """Move the present entries until a time of the monotonic clock; OSError as rename(2)."""
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
                return  # another process has removed or renamed it
            else:
                break
        self.moved += 1
        if goal != name:
            self.kept.append((name, goal))


def is_empty(descriptor: int) -> bool:
    """Return whether an open directory is empty; reading a large index takes seconds."""
    with os.scandir(descriptor) as entries:
        return next(iter(entries), None) is None


INSIDE = "twin"
"""The only name in the staging directory."""

_OTHERS = 0o077


class ReplacementDir(Struct, frozen=True):
    """An empty directory with the owner, mode, ACL, attributes, flags and times of another one.

    It is created in a staging directory of mode 0700 next to the original. No other user can reach
    a name in there, so no other user can replace it while it still belongs to this user.

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


def open_directory_at(entry: DirEntryRef) -> contextlib.AbstractContextManager[int]:
    """Open a directory by name; OSError if it is not a directory, ELOOP if it is a symlink."""
    return closing(open_directory(entry.name, entry.directory))


@contextlib.contextmanager
def staging_dir(staging: DirEntryRef) -> Iterator[int]:
    """Create the private directory, yield its descriptor, and remove it at the end if empty.

    Raises:
        OSError: the directory cannot be created.
        Refused: another process replaced the directory.
    """
    os.mkdir(staging.name, 0o700, dir_fd=staging.directory)
    try:
        with open_staging_dir(staging) as descriptor:
            yield descriptor
    finally:
        remove_if_empty(staging)


@contextlib.contextmanager
def open_staging_dir(staging: DirEntryRef) -> Iterator[int]:
    """Open a staging directory; Refused unless this user owns it and its mode is private."""
    with open_directory_at(staging) as descriptor:
        status = os.fstat(descriptor)
        if status.st_uid != os.geteuid() or status.st_mode & _OTHERS:
            raise Refused(
                "Another process just replaced the new directory.",
                "Check which process writes there.",
                rule="changed",
            )
        yield descriptor


@contextlib.contextmanager
def make_replacement(staging: int, wanted: Attributes) -> Iterator[ReplacementDir]:
    """Create a twin with these attributes; remove it at the end if still in staging and empty.

    Raises:
        OSError: the twin cannot be created.
        Refused: an attribute cannot be set.
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
    """Remove an empty directory; return whether the name is free afterwards."""
    try:
        os.rmdir(entry.name, dir_fd=entry.directory)
    except FileNotFoundError:
        return True
    except OSError:
        return entry.identity() is None  # not empty: it stays, and the caller reports it
    return True


class Recreated(Struct, frozen=True):
    """The result of recreating.

    Attributes:
        index_bytes_before, index_bytes_after: the size of the directory itself.
        moved: entries that other processes created meanwhile and that were moved.
        kept: for names created in both directories: the name, and the new name of the old
            directory's entry.
    """

    index_bytes_before: int
    index_bytes_after: int
    moved: int
    kept: tuple[tuple[PathStr, PathStr], ...]


def index_bytes(descriptor: int) -> int:
    """Return the size of an open directory itself; on ext4 that is its index."""
    return os.fstat(descriptor).st_size


def refuse_full(descriptor: int) -> None:
    """Raise Refused if an open directory has entries; reading a large index takes seconds."""
    if not is_empty(descriptor):
        emptying = "tui-fs", "delete", os.readlink(f"/proc/self/fd/{descriptor}"), "--keep-root"
        raise Refused(
            "The directory is not empty.",
            f"Empty it first: {shell_quoted(emptying)}",
            rule="not-empty",
        )


def refuse_locked(descriptor: int) -> None:
    """Raise Refused if an open directory is immutable or append-only."""
    if (inode_flags(descriptor) or 0) & (IMMUTABLE | APPEND_ONLY):
        raise Refused(
            "The directory or its parent is immutable or append-only.",
            "Remove the flag first: chattr -i -a PATH (lsattr -d shows which has it).",
            rule="locked",
        )


def recreate(
    place: DirEntryRef, old: int, staging: DirEntryRef, made: Callable[[ReplacementDir], None]
) -> Recreated:
    """Replace an empty directory by an empty twin, and remove the old directory.

    The name refers to a directory at every moment. Entries that other processes create meanwhile
    are not lost: see `move_entries_and_remove`.

    Args:
        place: the directory's name in its open parent.
        old: the directory, open for reading.
        staging: the name next to it for the private directory in which the twin is created.
        made: called with the twin, before the exchange.

    Raises:
        OSError, Refused, Missing: nothing has changed; or, if the staging directory still
            exists, it contains entries that other processes created meanwhile (see
            `finish_staging_dir`).
    """
    refuse_locked(old)
    attributes = read_attributes(old)
    before = index_bytes(old)
    with staging_dir(staging) as inside, make_replacement(inside, attributes) as twin:
        refuse_full(old)
        made(twin)
        exchange_checked(place, twin.entry, identity_of(old))
        try:
            refuse_changed(old, attributes)
            if is_empty(twin.descriptor):  # xfs updates the twin's times on the exchange
                os.utime(twin.descriptor, ns=(attributes.accessed_ns, attributes.modified_ns))
            moved_entries = move_entries_and_remove(twin.entry, old, twin.descriptor, DEADLINE_S)
        except (OSError, Refused) as error:
            undo_exchange(place, twin.entry, old, twin, error)
            raise
        return Recreated(
            before, index_bytes(twin.descriptor), moved_entries.moved, tuple(moved_entries.kept)
        )


def finish_staging_dir(
    place: DirEntryRef, staging: DirEntryRef, known: Collection[Pin]
) -> MovedEntries:
    """Move the entries that a killed run left in its staging directory to the directory; remove it.

    Raises:
        OSError, Refused: as `finish`, or as `open_staging_dir`.
    """
    moved_entries = MovedEntries()
    with open_staging_dir(staging) as inside:
        left = DirEntryRef(inside, INSIDE)
        if not remove_if_empty(left):
            moved_entries = finish(left, place, known)
    os.rmdir(staging.name, dir_fd=staging.directory)
    return moved_entries


def refuse_changed(target_fd: int, wanted: Attributes) -> None:
    """Raise Refused unless a directory still has the attributes that its twin received."""
    changed = differences(read_attributes(target_fd), wanted)
    if changed:
        raise Refused(
            f"Another process just changed the directory's {displayable(changed[0])}.",
            "Try again.",
            rule="changed",
        )


def undo_exchange(
    place: DirEntryRef,
    target_entry: DirEntryRef,
    target_fd: int,
    twin: ReplacementDir,
    cause: OSError | Refused,
) -> None:
    """Put a directory back, move the new entries of its twin into it, and remove the twin.

    Args:
        place: the twin's present name.
        target_entry: the directory's present name.
        target_fd: the directory, open for reading.
        cause: the error that the caller raises afterwards.

    Raises:
        OSError, Missing, Refused: the directory could not be put back or not all entries could be
            moved; or both directories had an entry of the same name (rule "clash").
    """
    exchange_checked(place, target_entry, twin.identity, identity_of(target_fd))
    kept = move_entries_and_remove(target_entry, twin.descriptor, target_fd).kept
    if kept:
        name, new_name = kept[0]
        raise Refused(
            f"{cause} Other processes created entries, so both directories have "
            f"{counted(len(kept), 'name', 'names')} in common.",
            (
                f"All entries are kept, for example as {displayable(name)} and "
                f"{displayable(new_name)}."
            ),
            rule="clash",
        ) from cause


def finish(left: DirEntryRef, place: DirEntryRef, known: Collection[Pin]) -> MovedEntries:
    """Move the entries of the directory that a killed run has left to `place`, and remove it.

    Args:
        known: pins of the two directories that the run was to exchange; others are not touched.

    Raises:
        OSError: an entry cannot be moved.
        Refused: the names refer to other directories; nothing was changed.
    """
    with open_directory_at(left) as old, open_directory_at(place) as new:
        pins = pin_of(old), pin_of(new)
        are_known = all(any(pin.is_same_later(recorded) for recorded in known) for pin in pins)
        if pins[0] == pins[1] or not are_known:
            raise Refused(
                f"The directories {displayable(left.name)} and {displayable(place.name)} are not "
                "the ones that were exchanged.",
                "Check both, and move entries by hand.",
                rule="changed",
            )
        return move_entries_and_remove(left, old, new)


def put_aside(place: DirEntryRef, target_fd: int, goal: DirEntryRef) -> None:
    """Rename a directory to a free name; its old name is free afterwards.

    Args:
        target_fd: a descriptor of the directory.

    Raises:
        FileExistsError: the free name is taken.
        OSError, Missing, Refused: nothing was changed. Refused with the rule "changed": the name
            referred to another directory.
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
    """Rename a directory to a free name; an empty twin takes its old name in the same step.

    Args:
        target_fd: the directory, open for reading.
        staging: the name next to it for the private directory in which the twin is created.
        made: called with the twin, before the first rename.

    Raises:
        OSError, Missing, Refused: as `put_aside` or `undo_exchange`, or the twin could not be
            created. Refused with the rule "changed" also if another process changed the
            directory's attributes.
    """
    attributes = read_attributes(target_fd)
    with staging_dir(staging) as inside, make_replacement(inside, attributes) as twin:
        made(twin)
        rename_new(twin.entry, goal)
        try:
            exchange_checked(place, goal, identity_of(target_fd), twin.identity)
        except (OSError, Refused):
            if goal.identity() == twin.identity:
                rename_new(goal, twin.entry)
            raise
        try:
            refuse_changed(target_fd, attributes)
        except (OSError, Refused) as error:
            undo_exchange(place, goal, target_fd, twin, error)
            raise


def refuse_changed_replacement(twin: int, original: int) -> None:
    """Raise Refused unless a twin is empty and unchanged; both descriptors are open for reading."""
    if not is_empty(twin):
        raise Refused(
            "The directory that replaced the set-aside one is no longer empty.",
            "Move its entries away first, or into the directory that was set aside.",
            rule="not-empty",
        )
    changed = differences(read_attributes(twin), read_attributes(original))
    if changed:
        raise Refused(
            (
                f"Another process changed the {changed[0]} of the directory that replaced the "
                "set-aside one."
            ),
            "If you do not need the replacement, remove it with rmdir, and try again.",
            rule="changed",
        )
