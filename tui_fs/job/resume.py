"""Going on with what a job has left that died: a new job, confirmed anew."""

import os
from dataclasses import dataclass

from tui_fs.job.permission import check_targets
from tui_fs.model.errors import BadInput, Refused
from tui_fs.model.paths import PathStr, displayable
from tui_fs.model.plan import Plan
from tui_fs.model.target import Target, in_words
from tui_fs.model.units import counted

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Remainder:
    """What a job has left that died.

    Attributes:
        targets: those that are still there.
        gone: a sentence about the others, in whose places other directories may stand; empty
            if there are none.
    """

    targets: tuple[Target, ...]
    gone: str = ""


def remainder_of(plan: Plan) -> Remainder:
    """Return the pinned targets that a job has left that died.

    The mount has another number after a restart of the machine, and the device may have; the
    inode stays. But file systems give inodes again, and another disk at the same place begins with
    the same ones, so a directory that was not made in the same moment is another one; where file
    systems do not tell when that was, nobody knows.

    Raises:
        BadInput: nothing is left, or it cannot be looked at.
        Refused: other directories stand in the place of all, or a rule forbids one.
    """
    before = {target.path: target for target in plan.targets}
    left = [path for path in plan.paths if os.path.lexists(path)]
    if not left:
        is_gone = "is" if len(before) == 1 else "are"
        raise BadInput(f"{in_words(plan.paths)} {is_gone} gone: nothing is left to delete.")
    targets = check_targets(left)
    same = tuple(
        target
        for path, target in zip(left, targets, strict=True)
        if target.path == path and _is_same(target, before[path], plan)
    )
    if not same:
        raise Refused(
            f"{in_words(left)} is not what job {plan.job_id} was to delete.",
            "Look at it, and delete it in a job of its own if it shall go.",
            rule="changed",
        )
    gone = [path for path in plan.paths if path not in {target.path for target in same}]
    return Remainder(same, _gone(gone, len(before)) if gone else "")


def _is_same(target: Target, before: Target, plan: Plan) -> bool:
    """Return whether it is the directory of the job; Refused where that cannot be known."""
    if target.pin.inode != before.pin.inode:
        return False
    if target.pin.birth_ns is None or before.pin.birth_ns is None:
        raise Refused(
            f"The file system of {displayable(target.path)} does not record when a directory was "
            f"created, so this may be another directory than the one job {plan.job_id} began to "
            "delete.",
            "Check its content, and delete it in a new job.",
            rule="changed",
        )
    return target.pin.is_same_later(before.pin)


def _gone(gone: list[PathStr], number: int) -> str:
    shown = ", ".join(displayable(path) for path in gone[:_SHOWN])
    more = f" and {len(gone) - _SHOWN:,} more" if len(gone) > _SHOWN else ""
    verb = "is" if len(gone) == 1 else "are"
    directories = counted(number, "directory", "directories")
    return f"{len(gone):,} of {directories} {verb} gone or another one by now: {shown}{more}."
