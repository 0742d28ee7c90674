"""Whether the targets of a running job still are what was confirmed."""

import errno
import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from tui_fs.job.outcome import is_deleted
from tui_fs.job.path_safety import PreparedStep
from tui_fs.job.permission import RepeatedChecks, check_again_all
from tui_fs.linux.limits import cause_of, is_limit, measured
from tui_fs.linux.mounts import mount_of, read_mounts
from tui_fs.linux.timeouts import call_within
from tui_fs.model.errors import BadInput, Refused, TuiFsError
from tui_fs.model.paths import displayable, upwards
from tui_fs.model.plan import Plan
from tui_fs.model.target import Target

_Result = TypeVar("_Result")

_CHECKING_S = 0.05
"""Checking a target takes some milliseconds, and commands must not wait for many."""

_CHECK_TIMEOUT_S = 1.0
"""How long a check waits for a network or FUSE file system."""

_GONE = (errno.ENOENT, errno.ENOTDIR)


class CheckFailed(Exception):
    """A check could not be made now; whether the target is what was confirmed is not known.

    Attributes:
        advice: what helps; empty if nothing is known.
    """

    def __init__(self, error: BaseException) -> None:
        cause, self.advice = cause_of(error)
        super().__init__(cause)


class TargetWatch:
    """Checks targets before their step, when mounts have changed, and while tools run.

    Args:
        target_fds: an open descriptor of each target.
    """

    def __init__(
        self, plan: Plan, prepared_steps: Sequence[PreparedStep], target_fds: Sequence[int]
    ) -> None:
        self._plan = plan
        self._prepared_steps = prepared_steps
        self._target_fds = target_fds
        self._doubtful: deque[Target] = deque()
        mounts = measured(read_mounts)
        places = [mount_of(path, mounts) if mounts else None for path in plan.paths]
        self._may_hang = any(mount is None or mount.may_not_answer for mount in places)
        self._checks: RepeatedChecks | None = None

    @property
    def has_doubts(self) -> bool:
        """Whether some targets are to be checked."""
        return bool(self._doubtful)

    def check_before(self, step: PreparedStep) -> None:
        """Raise TuiFsError unless its targets are what was confirmed, nothing mounted in them.

        Raises:
            CheckFailed: they cannot be checked now.
        """
        self._check_again(self._targets_of(step.targets))

    def check_ahead(self, number: int) -> None:
        """Raise as `check_before` for all targets of a step and of those that follow it."""
        ahead = sorted(
            {target for step in self._prepared_steps[number:] for target in step.targets}
        )
        # The step may have removed some of its targets, but not the name of another directory.
        left = self._checked(
            lambda: [
                number
                for number in ahead
                if os.path.lexists(self._plan.targets[number].path)
                or not is_deleted(self._target_fds[number])
            ]
        )
        self._check_again(self._targets_of(left))

    def mounts_changed(self, number: int) -> None:
        """Doubt whether the tools of a step would go on into something that was mounted.

        The targets of later steps are compared in the moment before theirs.
        """
        running = self._prepared_steps[number].targets if number < len(self._prepared_steps) else ()
        targets = self._targets_of(running)
        mounts = measured(read_mounts) if len(targets) > 1 else None
        if mounts is not None:
            holders = {place for mount in mounts for place in upwards(mount.mount_point)}
            targets.sort(key=lambda target: target.path not in holders)
        self._doubtful = deque(targets)
        self._checks = None

    def step_ended(self) -> None:
        """Forget doubts: before another step its targets are checked in any case."""
        self._doubtful.clear()

    def reason_to_end(self) -> str | None:
        """Look at doubtful targets for a short time; return why the job must end, if it must.

        Raises:
            CheckFailed: a target cannot be checked now; it stays doubtful.
        """
        deadline = time.monotonic() + _CHECKING_S
        while self._doubtful and time.monotonic() < deadline:
            target = self._doubtful[0]
            try:
                self._checked(partial(self._check_own_namespace, target))
            except TuiFsError as why:
                if isinstance(why, Refused) and why.rule.startswith(
                    ("mount", "overlay", "changed", "path")
                ):
                    return why.sentence
                # what the tools have begun to remove themselves is no reason
                cause = why.__cause__
                is_gone = isinstance(cause, OSError) and cause.errno in _GONE
                if isinstance(why, BadInput) and not is_gone:
                    raise CheckFailed(why) from why
            self._doubtful.popleft()
        return None

    def exchanged_reason(self, step_number: int) -> str | None:
        """Return which target that the tools of a step have not yet deleted was exchanged.

        A target that was deleted does not count, whatever is at its path now. A target that
        cannot be examined now becomes doubtful.
        """
        step = self._prepared_steps[step_number]
        if step.is_inside or len(step.targets) == 1:
            return None  # compared in the moment before
        for number in step.targets:
            target = self._plan.targets[number]
            try:
                if self._checked(partial(self._is_exchanged, number)):
                    shown = displayable(target.path)
                    return f"{shown} is not the directory any more that was confirmed"
            except CheckFailed:
                if target not in self._doubtful:
                    self._doubtful.append(target)
        return None

    def _check_own_namespace(self, target: Target) -> None:
        """Check a target again when the kernel has reported a change of mounts.

        It reports changes of our own namespace only, and reading those of others would hold up
        commands.
        """
        if self._checks is None:
            self._checks = RepeatedChecks(self._plan, is_own_namespace_only=True)
        self._checks.check(target)

    def _is_exchanged(self, number: int) -> bool:
        target = self._plan.targets[number]
        try:
            now = os.lstat(target.path)
        except OSError as error:
            if error.errno in _GONE:
                return False  # nothing is there that could be deleted
            raise
        if (now.st_dev, now.st_ino) == (target.pin.device, target.pin.inode):
            return False
        try:
            return not is_deleted(self._target_fds[number])
        except OSError as error:
            if error.errno in (errno.ESTALE, errno.ENOENT):
                return True  # nothing proves that the confirmed directory is deleted
            raise

    def _check_again(self, targets: Sequence[Target]) -> None:
        if not self._may_hang:
            self._checked(partial(check_again_all, self._plan, targets))
            return
        for target in targets:  # each has a time limit of its own
            self._checked(partial(check_again_all, self._plan, [target]))

    def _checked(self, check: Callable[[], _Result]) -> _Result:
        """Return what a check returns; CheckFailed if a limit or the file system prevents it."""
        try:
            return call_within(check, _CHECK_TIMEOUT_S) if self._may_hang else check()
        except (OSError, MemoryError) as error:
            raise CheckFailed(error) from error
        except (RuntimeError, ImportError) as error:
            if not is_limit(error):
                raise
            raise CheckFailed(error) from error
        except TuiFsError as why:
            if is_limit(why.__cause__):
                raise CheckFailed(why.__cause__ or why) from why
            raise

    def _targets_of(self, numbers: Sequence[int]) -> list[Target]:
        return [self._plan.targets[number] for number in numbers]
