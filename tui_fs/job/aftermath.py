"""Looking at what a strategy has left, so that "done" is seen and not believed."""

import errno
import os
import time
from collections.abc import Callable
from dataclasses import dataclass

from tui_fs.linux.pins import take_pin
from tui_fs.model.paths import displayable
from tui_fs.model.plan import Plan
from tui_fs.model.survey import Totals
from tui_fs.survey.scandir import ScandirSurvey

COUNTING_LIMIT_S = 10.0
"""Survivors are counted for at most this long; more are reported as not counted."""


@dataclass(frozen=True, slots=True)
class Aftermath:
    """What is left of what was to be deleted.

    Attributes:
        is_all_gone: nothing of it is left.
        survivors: totals of what is left; None if counting took too long or was impossible.
        note: something a person should know, in a sentence; empty if there is nothing.
    """

    is_all_gone: bool
    survivors: Totals | None
    note: str = ""


def look(plan: Plan, held: int, clock: Callable[[], float] = time.monotonic) -> Aftermath:
    """Return what is left of the plan's target.

    Args:
        held: a descriptor of the confirmed directory, open since before the start: a directory
            that only lost its name, because somebody moved it, is thus not taken for deleted.
    """
    keep_root = plan.options.keep_root or plan.options.filters.active
    if _is_deleted(held):
        lost = "The directory itself, which was to be kept, is gone." if keep_root else ""
        return Aftermath(True, Totals(), lost)
    try:
        is_in_place = take_pin(plan.target.path) == plan.target.pin
    except OSError:
        is_in_place = False
    if not is_in_place:
        now = displayable(os.readlink(f"/proc/self/fd/{held}"))
        return Aftermath(False, None, f"The directory was moved while it was deleted, to {now}.")
    totals, complete = _count(plan, clock)
    return Aftermath(complete and totals.entries == 0, totals if complete else None)


def _is_deleted(held: int) -> bool:
    try:
        return os.fstat(held).st_nlink == 0
    except OSError as error:
        if error.errno in (errno.ESTALE, errno.ENOENT):  # how NFS and FUSE say it
            return True
        raise


def _count(plan: Plan, clock: Callable[[], float]) -> tuple[Totals, bool]:
    filters = plan.options.filters
    survey = ScandirSurvey([plan.target.path], filters, interval_s=0.1, clock=clock)
    deadline = clock() + COUNTING_LIMIT_S
    totals, complete = Totals(), False
    try:
        for found in survey.run():
            totals = found.totals if found.matched is None else found.matched
            pin = plan.target.pin
            complete = found.complete and [(root.device, root.inode) for root in found.roots] == [
                (pin.device, pin.inode)
            ]
            if clock() > deadline:
                break
    except OSError:
        return totals, False
    if plan.options.keep_root and not filters.active:
        totals = without_root(totals)
    return totals, complete


def without_root(totals: Totals) -> Totals:
    """Return the totals without the directory itself (its own bytes stay in)."""
    return Totals(
        totals.files,
        totals.directories - 1,
        totals.symlinks,
        totals.other,
        totals.apparent_bytes,
        totals.allocated_bytes,
    )
