"""Whether somebody else could lead a strategy astray, and how its tools are given the target."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace

from tui_fs.linux.accounts import others_may_write, replaceable_part
from tui_fs.linux.pins import open_directory, pin_of
from tui_fs.model.errors import Refused
from tui_fs.model.paths import PathStr, displayable
from tui_fs.model.strategy import Options, Step
from tui_fs.model.target import Target
from tui_fs.strategies.base import Strategy


@dataclass(frozen=True, slots=True)
class Staging:
    """What runs, and where.

    Attributes:
        steps: the command lines of each step.
        is_inside: for each step whether it runs in the target itself; else in the directory
            that holds it.
    """

    steps: tuple[Step, ...]
    is_inside: tuple[bool, ...]


def stage(
    strategy: Strategy,
    path: str,
    options: Options,
    tools: Mapping[str, str],
    empty_directory: str,
    *,
    with_output: bool = False,
) -> Staging:
    """Return what runs to delete the target.

    Its path is given to the tools only where nobody else can put another directory in the place
    of any part of it. Elsewhere they run in the target, which is held by descriptor, and empty
    it; then rmdir takes the name, which cannot remove anything but an empty directory.
    """
    build = strategy.steps_with_output if with_output else strategy.steps
    if is_firm(path):
        steps = build(path, options, tools, empty_directory)
        return Staging(steps, (False,) * len(steps))
    steps = build(".", replace(options, keep_root=True), tools, empty_directory)
    inside = (True,) * len(steps)
    if not (options.keep_root or options.filters.active):
        rmdir = (tools["rmdir"], "--", f"./{os.path.basename(path)}")
        return Staging((*steps, (rmdir,)), (*inside, False))
    return Staging(steps, inside)


def is_firm(path: str) -> bool:
    """Tell whether nobody else can replace any part of a path, its end included."""
    try:
        return replaceable_part(path, os.geteuid()) is None
    except OSError:
        return False  # gone or out of reach now: nobody can vouch for the way to it


def directory_named_from(path: str) -> PathStr | None:
    """Return the directory in which the command lines run; None if they name the whole path."""
    return None if is_firm(path) else PathStr(path)


def why_race(strategy: Strategy, options: Options, path: str, shared: int) -> str | None:
    """Return why the strategy could be led outside the target, None if it cannot.

    Args:
        shared: directories in the target in which others may write.
    """
    if strategy.guarantees.race_safe or options.accept_races:
        return None
    if shared:
        number = "a directory" if shared == 1 else f"{shared:,} directories"
        where = f"write in {number} of the target"
    else:
        part = _replaceable(path)
        if part is None:
            return None
        where = f"replace {displayable(part)}"
    return (
        f"{strategy.name} works by path, and somebody other than you and root may {where}: "
        "it could be led outside"
    )


def refuse_race(strategy: Strategy, options: Options, path: str, shared: int) -> None:
    """Raise Refused if the strategy could be led outside the target."""
    why = why_race(strategy, options, path, shared)
    if why is not None:
        advice = "Use rm, find or rmtree; --accept-races runs it all the same."
        raise Refused(f"{why}.", advice, rule="races")


def open_pinned(target: Target) -> tuple[int, int]:
    """Return descriptors of the directory that holds the target, and of the target in it.

    Raises:
        OSError: one of them cannot be opened.
        Refused: what is there is not what was confirmed.
    """
    above, name = os.path.split(target.path)
    parent = open_directory(above)
    flags = os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC
    held = os.open(name, flags, dir_fd=parent)
    if pin_of(held) != target.pin:
        raise Refused("The directory was replaced in this very moment.", rule="changed")
    return parent, held


def _replaceable(path: str) -> str | None:
    """Return what others can replace on the way to the target; the target itself if all in it."""
    uid = os.geteuid()
    try:
        part = replaceable_part(path, uid)
        return path if part is None and others_may_write(os.lstat(path), uid) else part
    except OSError:
        return path  # gone or out of reach now: nobody can vouch for the way to it
