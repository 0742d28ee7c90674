"""The built-in rules that refuse a target; each reports the reason and an alternative.

`check` runs twice with the same rules: before the user may confirm, and in the supervisor just
before it starts.
"""

import contextlib
import functools
import os
import pwd
import stat
from collections.abc import Callable, Collection, Iterator

from msgspec import Struct

from tui_fs.linux.external_uses import ExternalUses
from tui_fs.linux.filesystem import is_read_only
from tui_fs.linux.mounts import MOUNTINFO, read_mounts, unresponsive_mounts
from tui_fs.linux.pins import pin_of, take_pin
from tui_fs.linux.resolve_path import canonical, lies_in, open_canonical, resolve
from tui_fs.model.errors import BadInput, Refused, cannot_examine
from tui_fs.model.paths import (
    PathStr,
    displayable,
    is_encodable,
    is_within,
    upwards,
)
from tui_fs.model.target import Pin, Target
from tui_fs.safety.file_rules import check_file
from tui_fs.safety.mount_rules import check_mounts, mount_point, own_device, read_only
from tui_fs.safety.relation import Place

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
"""Directories of the Filesystem Hierarchy Standard and common additions, without their content."""

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
"""A directory with one of these names in it is probably a project."""

_Places = tuple[PathStr, ...]
"""Directories that are not read (see ``unresponsive_mounts``)."""

NAME_TYPED_ABOVE_ENTRIES = 10_000
"""The user must type the name of targets with more entries."""


class Environment(Struct, frozen=True):
    """The directories in use by tui-fs and its user, which a deletion must not remove.

    Attributes:
        standing_in: the current directory of the user.
        program: directories of this program and its interpreter, protected with their content.
        interpreter: directories that the program needs, but that may contain other files as well.
        state, further_state: directories of the jobs, protected with their content.
    """

    standing_in: PathStr
    program: tuple[PathStr, ...]
    interpreter: tuple[PathStr, ...]
    state: PathStr
    mountinfo: str = MOUNTINFO
    further_state: tuple[PathStr, ...] = ()


class CheckRound:
    """The data that the rules read once for all targets of one check.

    Args:
        is_own_namespace_only: ignore the mount namespaces of other processes.
        own_tools: returns the processes whose private mount namespaces do not count.
    """

    def __init__(
        self,
        environment: Environment,
        *,
        is_own_namespace_only: bool = False,
        own_tools: Callable[[], Collection[int]] = tuple,
    ) -> None:
        self.mounts = read_mounts(environment.mountinfo)
        self._is_own_namespace_only = is_own_namespace_only
        self._own_tools = own_tools
        self.protected = tuple(_protected(environment))
        self._system: dict[_Places, frozenset[str]] = {}
        self._identities: dict[_Places, dict[tuple[int, int], tuple[str, str, str]]] = {}

    @functools.cached_property
    def uses(self) -> ExternalUses:
        """The uses of places in file systems."""
        if self._is_own_namespace_only:
            return ExternalUses(self.mounts)
        return ExternalUses.read(self.mounts, self._own_tools)

    def system_directories(self, silent: _Places) -> frozenset[str]:
        """Return the canonical paths of the system directories."""
        if silent not in self._system:
            self._system[silent] = frozenset(
                canonical(directory, silent) for directory in SYSTEM_DIRECTORIES
            )
        return self._system[silent]

    @functools.cached_property
    def whole_places(self) -> list[tuple[Place, str]]:
        """The directories protected with their content, each with a description."""
        return [
            (Place(PathStr(place), self.mounts), description)
            for place, description, _, with_content in self.protected
            if with_content
        ]

    def identities(self, silent: _Places) -> dict[tuple[int, int], tuple[str, str, str]]:
        """Return protected directories and their ancestors: path, description, protected place."""
        if silent not in self._identities:
            places: list[tuple[str, str, _Places]] = [
                (place, "a system directory", silent)
                for place in sorted(self.system_directories(silent))
            ]
            places += [(place, description, ()) for place, description, _, _ in self.protected]
            identities: dict[tuple[int, int], tuple[str, str, str]] = {}
            examined: set[str] = set()
            for place, description, unread in places:
                for ancestor in upwards(place):
                    if ancestor in examined or lies_in(ancestor, unread):
                        continue  # the latter is on another file system, so it is not the target
                    with contextlib.suppress(OSError):  # it does not exist on this system
                        status = os.stat(ancestor)
                        examined.add(ancestor)
                        key = status.st_dev, status.st_ino
                        identities.setdefault(key, (ancestor, description, place))
            self._identities[silent] = identities
        return self._identities[silent]


def check(
    path: str,
    environment: Environment,
    checks: CheckRound | None = None,
    *,
    allows_file: bool = False,
) -> Target:
    """Return the pinned target at `path`.

    Args:
        checks: data of a check of other targets; None to read it now.
        allows_file: the target may also be a file or a symbolic link, which is not followed.

    Raises:
        BadInput: the path does not exist, or cannot be examined.
        Refused: a rule forbids it; nothing was changed.
    """
    _check_spelling(path)
    stripped = path.rstrip("/")
    # The kernel follows a link before a final slash, so that is the path of a directory.
    allows_file = allows_file and stripped == path
    _check_kind(stripped, allows_file=allows_file)
    # Never os.path.abspath: it removes ".." from the text, but the kernel follows links first.
    parent, name = os.path.split(stripped)
    try:
        directory = resolve(parent or ".", checks.mounts if checks else None)
        by_text = os.path.join(directory, name)
        where, descriptor = open_canonical(stripped, by_text, any_kind=allows_file)
    except OSError as error:
        raise cannot_examine(stripped, error) from error
    try:
        pin = pin_of(descriptor)
        above = os.path.dirname(where)
        cannot_change = is_read_only(above if pin.is_file else descriptor)
    except OSError as error:
        raise cannot_examine(where, error) from error
    finally:
        os.close(descriptor)
    checks = checks or CheckRound(environment)
    silent = unresponsive_mounts(where, checks.mounts)
    _check_place(where, checks, silent)
    try:
        check_mounts(where, pin, checks.mounts, checks.uses)
        _check_identity(where, pin, checks, silent)
        parent_pin = take_pin(above)
        if pin.is_file:
            # On an overlay a file can have another device number than its directory.
            if pin.mount_id != parent_pin.mount_id:
                raise mount_point(where, is_file=True)
            needed = (*environment.program, environment.state, *environment.further_state)
            check_file(where, pin, checks.mounts, environment.interpreter, needed)
    except OSError as error:
        raise cannot_examine(where, error) from error
    if not pin.is_file and (pin.device, pin.mount_id) != (parent_pin.device, parent_pin.mount_id):
        raise own_device(where, pin, checks.mounts)
    if cannot_change:
        raise read_only(where, pin, checks.mounts)
    return Target(where, pin)


def check_again(target: Target, environment: Environment, checks: CheckRound | None = None) -> None:
    """Check a confirmed target once more and compare its pin; Refused if anything changed."""
    current = check(target.path, environment, checks, allows_file=target.pin.is_file)
    if current.path != target.path or current.pin != target.pin:
        raise Refused(
            f"{displayable(target.path)} is not the {target.noun} that was confirmed: "
            "it was replaced, renamed or mounted over in the meantime.",
            "Check it and confirm again.",
            rule="changed",
        )


class Homes:
    """The home directories of all accounts, read once for many targets."""

    def __init__(self, mountinfo: str = MOUNTINFO) -> None:
        self._mounts = read_mounts(mountinfo)
        self._by_silent: dict[_Places, dict[str, str]] = {}

    def account_at(self, path: str) -> str | None:
        """Return the account whose home is at a canonical path."""
        silent = unresponsive_mounts(path, self._mounts)
        if silent not in self._by_silent:
            homes: dict[str, str] = {}
            for account in pwd.getpwall():
                if account.pw_dir.rstrip("/"):
                    homes.setdefault(canonical(account.pw_dir, silent), account.pw_name)
            self._by_silent[silent] = homes
        return self._by_silent[silent].get(path)


def name_must_be_typed(path: str, entries: int, homes: Homes | None = None) -> str | None:
    """Return why the user must type the name of this target, None if yes or no suffices.

    Args:
        homes: the homes of all accounts; None to read them now.
    """
    if entries > NAME_TYPED_ABOVE_ENTRIES:
        return f"it has more than {NAME_TYPED_ABOVE_ENTRIES:,} entries"
    if (account := (homes or Homes()).account_at(path)) is not None:
        return f"it is the home of {account}"
    try:
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            return None
        names = set(os.listdir(path)) if entries <= NAME_TYPED_ABOVE_ENTRIES else set()
    except OSError:
        return "it cannot be read"
    for mark in sorted(PROJECT_MARKS & names):
        return f"it looks like a project (it contains {mark})"
    return None


def _check_spelling(path: str) -> None:
    if not path:
        raise BadInput("The target path is empty.", "Name the directory or file to delete.")
    if "\0" in path:
        raise BadInput("The target path contains a NUL byte, which is not allowed.")
    if not is_encodable(path):
        raise BadInput("The target is not a valid path (unpaired surrogate).")
    last = path.rstrip("/").rsplit("/", 1)[-1]
    if last in (".", ".."):
        raise Refused(
            f"{displayable(path)} ends in '{last}'.",
            "Name the directory itself.",
            rule="dot",
        )


def _check_kind(path: str, *, allows_file: bool) -> None:
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
    if stat.S_ISDIR(mode) or allows_file:
        return
    if points_to:
        raise Refused(
            f"{displayable(path)} is a symbolic link to {points_to}.",
            "Name the directory that it points to. 'tui-fs delete' without a final slash removes "
            "the link itself.",
            rule="symlink",
        )
    raise Refused(
        f"{displayable(path)} is not a directory.",
        "'tui-fs delete' without a final slash deletes a single file.",
        rule="not-directory",
    )


def _check_place(path: PathStr, checks: CheckRound, silent: _Places) -> None:
    shown = displayable(path)
    if path == "/":
        raise Refused(
            "/ is the root of this system.", "Choose a directory below it.", rule="system"
        )
    if path in SYSTEM_DIRECTORIES or path in checks.system_directories(silent):
        raise Refused(
            f"{shown} is a directory that the system needs.",
            "Choose a directory inside it.",
            rule="system",
        )
    for place, description, advice, with_content in checks.protected:
        if is_within(place, path) or (with_content and is_within(path, place)):
            relation = "contains" if is_within(place, path) else "is part of"
            raise Refused(
                f"{shown} {relation} {description} ({displayable(place)}).", advice, rule="in-use"
            )


def _protected(environment: Environment) -> Iterator[tuple[str, str, str, bool]]:
    """Yield each protected place, a description, advice, and whether its content is protected."""
    standing_in = environment.standing_in
    if standing_in:
        advice = "Choose directories inside it, or run cd / and start tui-fs again."
        yield os.path.realpath(standing_in), "the current directory", advice, False
    state = os.path.realpath(environment.state)
    jobs = os.path.realpath(os.path.join(environment.state, "jobs"))
    further = (os.path.realpath(place) for place in environment.further_state)
    advice = "Choose another directory."
    for place in dict.fromkeys((state, jobs, *further)):
        yield place, "the jobs of tui-fs", advice, True
    for places, with_content in ((environment.program, True), (environment.interpreter, False)):
        for place in places:
            yield os.path.realpath(place), "the program tui-fs itself", advice, with_content


def _check_identity(path: PathStr, pin: Pin, checks: CheckRound, silent: _Places) -> None:
    """Refuse a protected place under another name, through a bind mount or link."""
    alias = checks.identities(silent).get((pin.device, pin.inode))
    if alias is not None:
        ancestor, description, place = alias
        raise Refused(
            f"{displayable(path)} is another name of {displayable(ancestor)}, which is or "
            f"contains {description} ({displayable(place)}).",
            "Choose a directory inside it.",
            rule="alias",
        )
    target = Target(path, pin)
    for protected, description in checks.whole_places:
        relation = None
        with contextlib.suppress(OSError):  # not examinable now; its path was already compared
            relation = protected.relation_of(target)
        if relation is not None:
            raise Refused(
                f"{displayable(path)} is, under another name, part of {description} "
                f"({displayable(protected.path)}).",
                "Choose a directory outside it.",
                rule="alias",
            )
