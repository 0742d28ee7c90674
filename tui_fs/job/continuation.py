"""Going on with what a job has left that died: a new job, confirmed anew."""

import os

from tui_fs.job.permission import check_target
from tui_fs.model.errors import BadInput, Refused
from tui_fs.model.paths import displayable
from tui_fs.model.plan import Plan
from tui_fs.model.target import Target


def target_again(plan: Plan) -> Target:
    """Return the pinned target of a job that died.

    The mount has another number after a restart of the machine, and the device may have; the
    inode stays.

    Raises:
        BadInput: nothing is left, or it cannot be looked at.
        Refused: another directory stands there, or a rule forbids it.
    """
    if not os.path.lexists(plan.target.path):
        raise BadInput(f"{displayable(plan.target.path)} is gone: nothing is left to delete.")
    target = check_target(plan.target.path)
    if target.path != plan.target.path or target.pin.inode != plan.target.pin.inode:
        raise Refused(
            f"{displayable(plan.target.path)} is not the directory that job {plan.job_id} was "
            "to delete.",
            "Look at it, and delete it in a job of its own if it shall go.",
            rule="changed",
        )
    return target
