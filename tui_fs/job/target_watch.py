"""Whether the targets of a running job still are what was confirmed."""

import contextlib
import os
import time
from collections import deque
from collections.abc import Sequence

from tui_fs.job.aftermath import is_deleted
from tui_fs.job.permission import check_again_all
from tui_fs.job.races import StagedStep
from tui_fs.linux.mounts import read_mounts
from tui_fs.model.errors import Refused, TuiFsError
from tui_fs.model.paths import displayable, upwards
from tui_fs.model.plan import Plan
from tui_fs.model.target import Target

_CHECKING_S = 0.05
"""Checking a target takes some milliseconds, and commands must not wait for many."""


class TargetWatch:
    """Looks at targets before their step, when mounts have changed, and while tools run.

    Args:
        held: an open descriptor of each target.
    """

    def __init__(self, plan: Plan, staged: Sequence[StagedStep], held: Sequence[int]) -> None:
        self._plan = plan
        self._staged = staged
        self._held = held
        self._doubtful: deque[Target] = deque()

    @property
    def has_doubts(self) -> bool:
        """Whether some targets wait for a look."""
        return bool(self._doubtful)

    def check_before(self, step: StagedStep) -> None:
        """Raise TuiFsError unless its targets are what was confirmed, nothing mounted in them."""
        check_again_all(self._plan, self._targets_of(step.targets))

    def check_ahead(self, number: int) -> None:
        """Raise as `check_before` for all targets of a step and of those that follow it."""
        ahead = sorted({one for step in self._staged[number:] for one in step.targets})
        # The step may have removed some of its targets, but not the name of another directory.
        left = [
            one
            for one in ahead
            if not is_deleted(self._held[one]) or os.path.lexists(self._plan.targets[one].path)
        ]
        check_again_all(self._plan, self._targets_of(left))

    def mounts_changed(self, number: int) -> None:
        """Doubt whether the tools of a step would go on into something that was mounted.

        The targets of later steps are compared in the moment before theirs.
        """
        running = self._staged[number].targets if number < len(self._staged) else ()
        targets = self._targets_of(running)
        if len(targets) > 1:
            holders = {place for mount in read_mounts() for place in upwards(mount.mount_point)}
            targets.sort(key=lambda target: target.path not in holders)
        self._doubtful = deque(targets)

    def step_ended(self) -> None:
        """Forget doubts: before another step its targets are checked in any case."""
        self._doubtful.clear()

    def why_to_end(self) -> str | None:
        """Look at doubtful targets for a short time; return why the job must end, if it must."""
        deadline = time.monotonic() + _CHECKING_S
        while self._doubtful and time.monotonic() < deadline:
            try:
                check_again_all(self._plan, [self._doubtful.popleft()])
            except TuiFsError as why:
                # what the tools have begun to remove themselves is no reason
                if isinstance(why, Refused) and why.rule.startswith(("mount", "changed")):
                    return why.sentence
        return None

    def why_exchanged(self, number: int) -> str | None:
        """Return which target that the tools of a step have yet to come to was exchanged.

        One that is deleted they are done with, whatever stands in its place by now.
        """
        step = self._staged[number]
        if step.is_inside or len(step.targets) == 1:
            return None  # compared in the moment before
        for one in step.targets:
            target = self._plan.targets[one]
            with contextlib.suppress(OSError):  # nothing is there that could be deleted
                if is_deleted(self._held[one]):
                    continue
                now = os.lstat(target.path)
                if (now.st_dev, now.st_ino) != (target.pin.device, target.pin.inode):
                    shown = displayable(target.path)
                    return f"{shown} is not the directory any more that was confirmed"
        return None

    def _targets_of(self, numbers: Sequence[int]) -> list[Target]:
        return [self._plan.targets[number] for number in numbers]
