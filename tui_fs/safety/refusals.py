"""The rules that forbid a target; each says why and what to do instead.

`check` is asked twice with the same rules: before a person may confirm, and by the
supervisor in the moment before it starts.
"""

import os
import pwd
import stat
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from tui_fs.linux.mounts import (
    MOUNTINFO,
    Mount,
    mount_of,
    mounts_below,
    read_mounts,
    silent_places,
)
from tui_fs.linux.pins import pin_of, take_pin
from tui_fs.linux.ways import canonical, lies_in, open_canonical, resolve
from tui_fs.model.errors import BadInput, Refused, cannot_examine
from tui_fs.model.paths import (
    PathStr,
    displayable,
    is_encodable,
    is_within,
    shell_quoted,
    upwards,
)
from tui_fs.model.target import Pin, Target

SYSTEM_DIRECTORIES = frozenset(
    [
        "/bin",
        "/boot",
        "/dev",
        "/dev/pts",
        "/dev/shm",
        "/efi",
        "/etc",
        "/home",
        "/lib",
        "/lib32",
        "/lib64",
        "/libx32",
        "/lost+found",
        "/media",
        "/mnt",
        "/nix",
        "/nix/store",
        "/opt",
        "/proc",
        "/root",
        "/run",
        "/run/user",
        "/sbin",
        "/snap",
        "/srv",
        "/sys",
        "/tmp",
        "/usr",
        "/usr/bin",
        "/usr/include",
        "/usr/lib",
        "/usr/lib32",
        "/usr/lib64",
        "/usr/libexec",
        "/usr/local",
        "/usr/local/bin",
        "/usr/local/lib",
        "/usr/local/sbin",
        "/usr/local/share",
        "/usr/sbin",
        "/usr/share",
        "/usr/src",
        "/var",
        "/var/backups",
        "/var/cache",
        "/var/db",
        "/var/empty",
        "/var/lib",
        "/var/lib/docker",
        "/var/lib/dpkg",
        "/var/lib/rpm",
        "/var/local",
        "/var/lock",
        "/var/log",
        "/var/mail",
        "/var/opt",
        "/var/run",
        "/var/spool",
        "/var/tmp",
        "/var/www",
    ]
)
"""Directories of the Filesystem Hierarchy Standard and its common additions, themselves."""

PROJECT_MARKS = frozenset(
    [
        ".git",
        ".hg",
        ".svn",
        ".bzr",
        "pyproject.toml",
        "setup.py",
        "package.json",
        "Cargo.toml",
        "go.mod",
        "pom.xml",
        "build.gradle",
        "CMakeLists.txt",
        "Makefile",
        "composer.json",
        "Gemfile",
    ]
)
"""A directory that holds one of these names is somebody's work."""

_Places = Collection[str]
"""Directories at which nothing is looked (see ``silent_places``)."""

NAME_TYPED_ABOVE_ENTRIES = 10_000
"""Larger targets are confirmed by typing their name."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What must survive the deletion because somebody stands on it.

    Attributes:
        standing_in: the current directory of the person.
        program: directories of this program and its interpreter; nothing in them may go.
        interpreter: directories that are needed, but may hold other things besides.
        state, further_state: where jobs are kept; nothing in it may go.
    """

    standing_in: PathStr
    program: tuple[PathStr, ...]
    interpreter: tuple[PathStr, ...]
    state: PathStr
    mountinfo: str = MOUNTINFO
    further_state: tuple[PathStr, ...] = ()


def check(path: str, surroundings: Surroundings) -> Target:
    """Return the pinned target at `path`.

    Raises:
        BadInput: nothing is there, or it cannot be looked at.
        Refused: a rule forbids it; nothing was touched.
    """
    _check_spelling(path)
    stripped = path.rstrip("/")
    _check_kind(stripped)
    # Never os.path.abspath: it takes ".." out of the text, where the kernel follows links first.
    parent, name = os.path.split(stripped)
    try:
        where, descriptor = open_canonical(stripped, os.path.join(resolve(parent or "."), name))
    except OSError as error:
        raise cannot_examine(stripped, error) from error
    try:
        pin = pin_of(descriptor)
    finally:
        os.close(descriptor)
    mounts = read_mounts(surroundings.mountinfo)
    silent = silent_places(where, mounts)
    _check_place(where, surroundings, silent)
    _check_mounts(where, mounts)
    try:
        _check_identity(where, pin, surroundings, silent)
        parent_pin = take_pin(os.path.dirname(where))
    except OSError as error:
        raise cannot_examine(where, error) from error
    if (pin.device, pin.mount_id) != (parent_pin.device, parent_pin.mount_id):
        raise _mount_point(where)
    return Target(where, pin)


def check_again(target: Target, surroundings: Surroundings) -> None:
    """Check a confirmed target once more and compare its pin; Refused if anything changed."""
    now = check(target.path, surroundings)
    if now.path != target.path or now.pin != target.pin:
        raise Refused(
            f"{displayable(target.path)} is not the directory that was confirmed: "
            "it was replaced, renamed or mounted over in the meantime.",
            "Look at it again and confirm anew.",
            rule="changed",
        )


def name_must_be_typed(path: str, entries: int, mountinfo: str = MOUNTINFO) -> str | None:
    """Return why this target is confirmed by typing its name, None if yes or no is enough."""
    if entries > NAME_TYPED_ABOVE_ENTRIES:
        return f"it has more than {NAME_TYPED_ABOVE_ENTRIES:,} entries"
    for account in _accounts_at_home_in(path, silent_places(path, read_mounts(mountinfo))):
        return f"it is the home of {account}"
    try:
        names = set(os.listdir(path)) if entries <= NAME_TYPED_ABOVE_ENTRIES else set()
    except OSError:
        return "it cannot be looked into"
    for mark in sorted(PROJECT_MARKS & names):
        return f"it looks like a project (it holds {mark})"
    return None


def _check_spelling(path: str) -> None:
    if not path:
        raise BadInput("The target is empty.", "Name the directory to delete.")
    if "\0" in path:
        raise BadInput("The target holds a NUL byte, which no path can.")
    if not is_encodable(path):
        raise BadInput("The target holds half a character, which no path can.")
    last = path.rstrip("/").rsplit("/", 1)[-1]
    if last in (".", ".."):
        raise Refused(
            f"{displayable(path)} ends in {last}, which names a directory by where you stand.",
            "Write the directory's own name.",
            rule="dot",
        )


def _check_kind(path: str) -> None:
    if not path:
        raise Refused(
            "/ is the root of this system.", "Choose a directory below it.", rule="system"
        )
    points_to = ""
    try:
        mode = os.lstat(path).st_mode
        if stat.S_ISLNK(mode):
            points_to = displayable(os.readlink(path))
    except OSError as error:
        raise cannot_examine(path, error) from error
    if points_to:
        raise Refused(
            f"{displayable(path)} is a symbolic link to {points_to}.",
            "Name the directory it points to if that is what shall go, or remove the link "
            "itself with rm.",
            rule="symlink",
        )
    if not stat.S_ISDIR(mode):
        raise Refused(
            f"{displayable(path)} is not a directory.", "Remove it with rm.", rule="not-directory"
        )


def _check_place(path: PathStr, surroundings: Surroundings, silent: _Places) -> None:
    shown = displayable(path)
    if path == "/":
        raise Refused(
            "/ is the root of this system.", "Choose a directory below it.", rule="system"
        )
    if path in SYSTEM_DIRECTORIES or path in _system_directories(silent):
        raise Refused(
            f"{shown} is a directory the system itself needs.",
            "Choose a directory inside it.",
            rule="system",
        )
    for place, what, advice, inside_too in _held(surroundings):
        if is_within(place, path) or (inside_too and is_within(path, place)):
            relation = "holds" if is_within(place, path) else "is part of"
            raise Refused(
                f"{shown} {relation} {what} ({displayable(place)}).", advice, rule="in-use"
            )


def _held(surroundings: Surroundings) -> Iterator[tuple[str, str, str, bool]]:
    """Yield each place that must stay, what it is, what to do, and whether all in it must."""
    standing_in = surroundings.standing_in
    if standing_in:
        advice = "Change to another directory first."
        yield os.path.realpath(standing_in), "the current directory", advice, False
    state = os.path.realpath(surroundings.state)
    jobs = os.path.realpath(os.path.join(surroundings.state, "jobs"))
    further = (os.path.realpath(place) for place in surroundings.further_state)
    for place in dict.fromkeys((state, jobs, *further)):
        yield place, "the jobs of tui-fs", "Choose a directory beside it.", True
    for place in surroundings.program:
        yield os.path.realpath(place), "the program that runs this", "Choose another one.", True
    for place in surroundings.interpreter:
        yield os.path.realpath(place), "the program that runs this", "Choose another one.", False


def _check_identity(path: PathStr, pin: Pin, surroundings: Surroundings, silent: _Places) -> None:
    """Refuse what is a place that must stay under another name, through a bind mount or link."""
    places: list[tuple[str, str, _Places]] = [
        (place, "a system directory", silent) for place in sorted(_system_directories(silent))
    ]
    places += [(place, what, ()) for place, what, _, _ in _held(surroundings)]
    for place, what, unseen in places:
        for ancestor in upwards(place):
            if lies_in(ancestor, unseen):
                continue  # on another file system, so it is not this one
            try:
                status = os.stat(ancestor)
            except OSError:
                continue  # this system has no such directory
            if (status.st_dev, status.st_ino) == (pin.device, pin.inode):
                raise Refused(
                    f"{displayable(path)} is {displayable(ancestor)} under another name, which "
                    f"is or holds {what} ({displayable(place)}).",
                    "Choose a directory inside it.",
                    rule="alias",
                )


def _system_directories(silent: _Places) -> frozenset[str]:
    return frozenset(canonical(directory, silent) for directory in SYSTEM_DIRECTORIES)


def _check_mounts(path: PathStr, mounts: tuple[Mount, ...]) -> None:
    if any(mount.mount_point == path for mount in mounts):
        raise _mount_point(path)
    holder = mount_of(path, mounts)
    if holder is not None and holder.is_pseudo:
        raise Refused(
            f"{displayable(path)} lies on {holder.filesystem}, whose entries are the kernel's own.",
            "Choose a directory on a real file system.",
            rule="pseudo",
        )
    if holder is not None and holder.is_read_only:
        raise Refused(
            f"{displayable(path)} lies on {displayable(holder.mount_point)}, "
            "which is mounted read-only.",
            "Remount it writable first.",
            rule="read-only",
        )
    if holder is not None:
        _check_bind_sources(path, holder, mounts)
    inside = mounts_below(path, mounts)
    if inside:
        first = displayable(inside[0].mount_point)
        more = f" (and {len(inside) - 1} more)" if len(inside) > 1 else ""
        raise Refused(
            f"Something else is mounted inside {displayable(path)}: {first}{more}.",
            f"Unmount it first: {shell_quoted(('umount', inside[0].mount_point))}",
            rule="mount-inside",
        )


def _check_bind_sources(path: PathStr, holder: Mount, mounts: tuple[Mount, ...]) -> None:
    """Refuse a target of which a part is mounted elsewhere: it would vanish there too."""
    below = os.path.relpath(path, holder.mount_point)
    in_file_system = os.path.normpath(os.path.join(holder.root, below))
    for mount in mounts:
        if mount.device == holder.device and is_within(mount.root, in_file_system):
            raise Refused(
                f"{displayable(path)} holds what is mounted at {displayable(mount.mount_point)}.",
                f"Unmount it first: {shell_quoted(('umount', mount.mount_point))}",
                rule="mount-source",
            )


def _mount_point(path: str) -> Refused:
    return Refused(
        f"{displayable(path)} is a mount point.",
        "Unmount it first, or choose the directories inside it.",
        rule="mount-point",
    )


def _accounts_at_home_in(path: str, silent: _Places) -> Iterator[str]:
    for account in pwd.getpwall():
        if account.pw_dir.rstrip("/") and canonical(account.pw_dir, silent) == path:
            yield account.pw_name
