"""Apply the policy files of the administrator and the user in addition to the built-in rules.

A file can only add restrictions, so files combine. A file that cannot be parsed blocks every
deletion. Only an absent file means that there is no policy.
"""

import os
import stat
from collections.abc import Collection, Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tui_fs.linux.mounts import MountTable, read_mounts, unresponsive_mounts
from tui_fs.linux.resolve_path import canonical, lies_in, resolve
from tui_fs.model.errors import BadInput, Refused
from tui_fs.model.paths import PathStr, displayable, upwards
from tui_fs.model.target import Target
from tui_fs.safety.relation import Place, Relation, other_names

SYSTEM_POLICY = "/etc/tui-fs/policy.toml"
READ_ONLY_VARIABLE = "TUI_FS_READ_ONLY"
MAX_POLICY_BYTES = 1 << 20

_KEYS = ("never", "allowed", "type_name_above_entries", "strategies", "read_only", "confine")
_UNTIL_MENDED = "Nothing is deleted until this file is corrected or removed."
_ASK = "Choose another directory, or ask the administrator who maintains the policy."
_MAX_SHOWN_CHARACTERS = 200


class Policy(Struct, frozen=True):
    """The combined policy of all files.

    Attributes:
        sources: the files that were read.
        never: no directory at, in or above one of these may be deleted.
        allowed: one list for each file with such a list; every list must contain the target.
        strategies: the only strategies that may be used; None for all.
        type_name_above_entries: the user must type the name of larger targets; 0 for every
            target, None if no file sets it.
        read_only: the source of the read-only mode, in words; None if deletion is enabled.
        confines: the kernel must keep the tools inside the targets.
    """

    sources: tuple[str, ...] = ()
    never: tuple[PathStr, ...] = ()
    allowed: tuple[tuple[PathStr, ...], ...] = ()
    strategies: frozenset[str] | None = None
    type_name_above_entries: int | None = None
    read_only: str | None = None
    confines: bool = False

    @property
    def files(self) -> str:
        """The files, for the end of a sentence; empty if there are none."""
        files = ", ".join(displayable(file) for file in self.sources)
        return f" (policy: {files})" if files else ""


def read_policy(
    files: tuple[str, ...] | None = None, *, known_strategies: Collection[str]
) -> Policy:
    """Return the combined policy of `files` (None: those of the administrator and the user).

    Args:
        known_strategies: valid names for `strategies`.

    Raises:
        BadInput: a file exists, but cannot be read or parsed.
    """
    policy = Policy()
    for file in _two_places() if files is None else files:
        content = _content(file)
        if content is not None:
            policy = _combined(policy, _parsed(content, file, known_strategies))
    if policy.read_only is None and os.environ.get(READ_ONLY_VARIABLE):
        policy = replace(policy, read_only=f"the environment variable {READ_ONLY_VARIABLE}")
    return policy


def check_read_only(policy: Policy) -> None:
    """Raise Refused (rule "read-only") in read-only mode."""
    if policy.read_only is not None:
        raise Refused(
            f"Deleting is switched off: {policy.read_only} sets read-only mode.",
            "Nothing was deleted; survey and estimate still work.",
            rule="read-only",
        )


def check_policy(policy: Policy, target: Target, mounts: MountTable | None = None) -> None:
    """Raise Refused if the policy forbids the deletion of the target (rule "policy"; in read-only
    mode "read-only").

    Args:
        mounts: the mount table; None to read it now.
    """
    check_read_only(policy)
    if mounts is None:
        mounts = read_mounts()
    silent = unresponsive_mounts(target.path, mounts)
    for place in policy.never:
        relation = _relation(target, Place(place, mounts, silent))
        if relation is not None:
            shown, never = displayable(target.path), displayable(place)
            subject = shown if shown == never else f"{shown} {relation} {never}, which"
            raise Refused(
                f"{subject} must never be deleted{policy.files}.",
                _ASK,
                rule="policy",
            )
    for places in policy.allowed:
        _check_allowed(policy, places, target, mounts, silent)


def _relation(target: Target, place: Place) -> Relation | None:
    try:
        return place.relation_of(target)
    except OSError as error:
        shown = displayable(os.fsdecode(error.filename or place.path))
        raise Refused(
            f"{shown}, which the policy names, cannot be examined "
            f"({os.strerror(error.errno or 0)}). It may be the target under another name.",
            "Make it accessible, or remove it from the policy.",
            rule="policy",
        ) from error


def check_scratch(policy: Policy, target: Target) -> None:
    """Raise Refused if tui-fs may not create and remove its own files there (rule "policy").

    Args:
        target: the directory for the files.
    """
    mounts = read_mounts()
    silent = unresponsive_mounts(target.path, mounts)
    for place in policy.never:
        relation = _relation(target, Place(place, mounts, silent))
        if relation in (Relation.IS, Relation.IN, Relation.ALIAS_IS, Relation.ALIAS_IN):
            raise Refused(
                f"The policy protects {displayable(target.path)}{policy.files}.",
                _ASK,
                rule="policy",
            )


def _check_allowed(
    policy: Policy,
    places: tuple[PathStr, ...],
    target: Target,
    mounts: MountTable,
    silent: tuple[PathStr, ...],
) -> None:
    """Raise Refused unless a target and all its other names are in one of the allowed places."""
    shown = ", ".join(displayable(place) for place in places) or "none"
    reals: list[PathStr] = []
    for place in places:
        try:
            reals.append(_allowed_directory(place, silent))
        except Refused as error:
            shown += f" ({displayable(place)} is ignored: {error.sentence.rstrip('.')})"
    if not lies_in(target.path, reals):
        raise Refused(
            f"{displayable(target.path)} is outside the directories in which deletion is allowed: "
            f"{shown}{policy.files}.",
            _ASK,
            rule="policy",
        )
    allowed_places = [Place(real, mounts, silent) for real in reals]
    for name in other_names(target, mounts):
        if not lies_in(name, reals) and not any(
            place.holds_by_mounts(target) for place in allowed_places
        ):
            raise Refused(
                f"{displayable(target.path)} is, through a mount, also {displayable(name)}, "
                "which is outside the directories in which deletion is allowed: "
                f"{shown}{policy.files}.",
                _ASK,
                rule="policy",
            )


def _allowed_directory(place: PathStr, silent: tuple[PathStr, ...]) -> PathStr:
    """Return the canonical path of an allowed place.

    Raises:
        Refused: another user can change a link in the path, and so could allow any directory.
    """
    real = canonical(place, silent)
    if lies_in(real, silent):
        return real
    try:
        return resolve(place)
    except OSError:
        return place  # it does not exist, so no target is in it


def check_strategy(policy: Policy, strategy: str) -> None:
    """Raise Refused (rule "policy") if the policy does not allow the strategy."""
    if policy.strategies is not None and strategy not in policy.strategies:
        others = ", ".join(sorted(policy.strategies))
        raise Refused(
            f"The strategy {strategy} is not allowed here{policy.files}.",
            f"Allowed: {others}."
            if others
            else "No strategy is allowed; ask the administrator who maintains the policy.",
            rule="policy",
        )


def name_required_by(policy: Policy, entries: int) -> str | None:
    """Return why the policy requires the name of this target to be typed, None if not."""
    limit = policy.type_name_above_entries
    if limit == 0:
        return "the policy requires this for every target"
    if limit is not None and entries > limit:
        return f"it has more than {limit:,} entries, the limit of the policy"
    return None


def _two_places() -> Iterator[str]:
    yield SYSTEM_POLICY
    configuration = os.environ.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(configuration):
        configuration = os.path.join(os.path.expanduser("~"), ".config")
    if os.path.isabs(configuration):
        yield os.path.join(configuration, "tui-fs", "policy.toml")


def _content(file: str) -> bytes | None:
    """Return the content of a file, None if it does not exist; never block on a FIFO."""
    shown = displayable(file)
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError) as error:
        for place in upwards(file):
            if os.path.islink(place) and not os.path.exists(place):
                sentence = (
                    f"The policy {shown} cannot be read: {displayable(place)} is a dangling "
                    "symbolic link"
                )
                raise BadInput(f"{sentence}.", _UNTIL_MENDED) from error
        directory = os.path.dirname(file)
        if os.path.exists(directory) and not os.path.isdir(directory):
            sentence = (
                f"The policy {shown} cannot be read: {displayable(directory)} is not a directory"
            )
            raise BadInput(f"{sentence}.", _UNTIL_MENDED) from error
        return None
    except OSError as error:
        raise _unreadable(shown, error) from error
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise BadInput(f"The policy {shown} must be a regular file.", _UNTIL_MENDED)
        with open(descriptor, "rb", closefd=False) as stream:
            content = stream.read(MAX_POLICY_BYTES + 1)
    except OSError as error:
        raise _unreadable(shown, error) from error
    finally:
        os.close(descriptor)
    if len(content) > MAX_POLICY_BYTES:
        raise BadInput(
            f"The policy {shown} must not be larger than {MAX_POLICY_BYTES:,} bytes.",
            _UNTIL_MENDED,
        )
    return content


def _unreadable(shown: str, error: OSError) -> BadInput:
    reason = os.strerror(error.errno or 0)
    return BadInput(f"The policy {shown} cannot be read: {reason}.", _UNTIL_MENDED)


def _parsed(content: bytes, file: str, known_strategies: Collection[str]) -> Policy:
    import msgspec.toml  # a slow import, and most machines have no policy

    try:
        table = msgspec.toml.decode(content)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise _wrong(file, f"it must be TOML in UTF-8: {_short(str(error))}") from error
    for key in table:
        if key not in _KEYS:
            raise _wrong(file, f"unknown key {_short(key)}; the valid keys are {', '.join(_KEYS)}")
    allowed = _paths(table, "allowed", file)
    read_only = table.get("read_only", False)
    if not isinstance(read_only, bool):
        raise _wrong(file, "read_only must be true or false")
    confine = table.get("confine", "auto")
    if confine not in ("auto", "always"):
        raise _wrong(file, 'confine must be "auto" or "always"')
    limit = table.get("type_name_above_entries")
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
        raise _wrong(file, "type_name_above_entries must be a whole number, 0 or more")
    return Policy(
        sources=(file,),
        never=_paths(table, "never", file) or (),
        allowed=() if allowed is None else (allowed,),
        strategies=_strategies(table, file, known_strategies),
        type_name_above_entries=limit,
        read_only=f"the policy {displayable(file)}" if read_only else None,
        confines=confine == "always",
    )


def _paths(table: dict[str, Any], key: str, file: str) -> tuple[PathStr, ...] | None:
    places = table.get(key)
    if places is None:
        return None
    expected = 'absolute paths without ".."'
    if not isinstance(places, list) or not all(isinstance(place, str) for place in places):
        raise _wrong(file, f"{key} must be a list of {expected}")
    for place in places:
        if not place.startswith("/") or ".." in place.split("/") or "\0" in place:
            raise _wrong(file, f'{key} must be a list of {expected}; "{_short(place)}" is not one')
    return tuple(_normalised(place) for place in places)


def _normalised(place: str) -> PathStr:
    """Normalize a path from the file, and decode its UTF-8 bytes like paths from the kernel."""
    names = [name for name in place.split("/") if name not in ("", ".")]
    return PathStr(os.fsdecode(("/" + "/".join(names)).encode()))


def _strategies(
    table: dict[str, Any], file: str, known_strategies: Collection[str]
) -> frozenset[str] | None:
    names = table.get("strategies")
    if names is None:
        return None
    known = ", ".join(sorted(known_strategies))
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise _wrong(file, f"strategies must be a list of names from {known}")
    for name in names:
        if name not in known_strategies:
            raise _wrong(file, f'strategies has the unknown name "{_short(name)}"; use {known}')
    return frozenset(names)


def _wrong(file: str, problem: str) -> BadInput:
    return BadInput(f"The policy {displayable(file)}: {problem}.", _UNTIL_MENDED)


def _short(text: str) -> str:
    shown = displayable(text)
    return shown if len(shown) <= _MAX_SHOWN_CHARACTERS else shown[:_MAX_SHOWN_CHARACTERS] + "…"


def _combined(first: Policy, second: Policy) -> Policy:
    strategies = first.strategies
    if strategies is None or second.strategies is None:
        strategies = second.strategies if strategies is None else strategies
    else:
        strategies &= second.strategies
    limits = [
        limit
        for limit in (first.type_name_above_entries, second.type_name_above_entries)
        if limit is not None
    ]
    return Policy(
        sources=first.sources + second.sources,
        never=first.never + second.never,
        allowed=first.allowed + second.allowed,
        strategies=strategies,
        type_name_above_entries=min(limits, default=None),
        read_only=first.read_only or second.read_only,
        confines=first.confines or second.confines,
    )
