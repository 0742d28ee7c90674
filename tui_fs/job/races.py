"""Whether somebody else could lead a strategy astray, and how its tools are given the target."""

import os

from tui_fs.linux.accounts import others_may_write, replaceable_part
from tui_fs.linux.pins import open_directory, pin_of
from tui_fs.model.errors import Refused
from tui_fs.model.paths import PathStr, displayable
from tui_fs.model.strategy import Options
from tui_fs.model.target import Target
from tui_fs.strategies.base import Strategy


def argument_for(path: str) -> PathStr:
    """Return the words by which tools are given the target.

    They run in the directory that holds it. Where somebody else could put another directory in
    the place of that one, its path may lead elsewhere by the time a tool walks it, and the
    target is named from there.
    """
    above, name = os.path.split(path)
    try:
        is_firm = replaceable_part(above, os.geteuid()) is None
    except OSError:
        is_firm = False
    return PathStr(path if is_firm else f"./{name}")


def directory_named_from(path: str) -> PathStr | None:
    """Return the directory from which the command lines name the target; None for its path."""
    return None if argument_for(path) == path else PathStr(os.path.dirname(path))


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
