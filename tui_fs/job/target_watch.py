"""Checks whether the targets of a running job are still the confirmed directories."""

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
"""Time limit for one round of checks: a target takes milliseconds, and commands must not wait."""

_CHECK_TIMEOUT_S = 1.0
"""How long a check waits for a network or FUSE file system."""

_GONE = (errno.ENOENT, errno.ENOTDIR)


class CheckFailed(Exception):
    """A check failed, so it is unknown whether the target is the confirmed directory.

    Attributes:
        advice: the remedy; empty if none is known.
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
        self._tools: tuple[int, ...] = ()

    @property
    def has_doubts(self) -> bool:
        """Whether some targets are waiting for a check."""
        return bool(self._doubtful)

    def check_before(self, step: PreparedStep, tools: tuple[int, ...]) -> None:
        """Raise TuiFsError unless the step's targets are the confirmed ones, without mounts inside.

        Args:
            tools: the processes of the step, which wait at their gate.

        Raises:
            CheckFailed: a target cannot be checked now.
        """
        self._tools = tools
        targets = self._targets_of(step.targets)
        if step.is_rmdir and self._plan.options.filters.share is not None:
            # Another machine may have removed a target after the last share was deleted.
            targets = self._checked(lambda: [t for t in targets if os.path.lexists(t.path)])
        self._check_again(targets)

    def check_ahead(self, number: int) -> None:
        """Raise as `check_before` for all targets of a step and of those that follow it."""
        ahead = sorted(
            {target for step in self._prepared_steps[number:] for target in step.targets}
        )
        # Skip a target that the step has removed, unless another directory is at its path now.
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
        """Mark the targets of a step for a check: its tools might descend into a new mount.

        The targets of later steps are checked just before their step in any case.
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
        """Forget doubts: the targets of the next step are checked before it in any case."""
        self._doubtful.clear()

    def reason_to_end(self) -> str | None:
        """Check doubtful targets for up to `_CHECKING_S`; return why the job must end, or None.

        Raises:
            CheckFailed: a target cannot be checked now; it stays doubtful.
        """
        deadline = time.monotonic() + _CHECKING_S
        while self._doubtful and time.monotonic() < deadline:
            target = self._doubtful[0]
            try:
                self._checked(partial(self._check_own_namespace, target))
            except TuiFsError as error:
                if isinstance(error, Refused) and error.rule.startswith(
                    ("mount", "overlay", "changed", "path")
                ):
                    return error.sentence
                # A target that the tools have begun to remove is no reason.
                cause = error.__cause__
                is_gone = isinstance(cause, OSError) and cause.errno in _GONE
                if isinstance(error, BadInput) and not is_gone:
                    raise CheckFailed(error) from error
            self._doubtful.popleft()
        return None

    def exchanged_reason(self, step_number: int) -> str | None:
        """Return which target of a step was replaced before its deletion, None if none was.

        A deleted target does not count, even if its path leads to another directory now. A target
        that cannot be examined now becomes doubtful.
        """
        step = self._prepared_steps[step_number]
        if step.is_inside or len(step.targets) == 1:
            return None  # checked just before the step
        for number in step.targets:
            target = self._plan.targets[number]
            try:
                if self._checked(partial(self._is_exchanged, number)):
                    shown = displayable(target.path)
                    return f"{shown} is no longer the directory that was confirmed"
            except CheckFailed:
                if target not in self._doubtful:
                    self._doubtful.append(target)
        return None

    def _check_own_namespace(self, target: Target) -> None:
        """Check a target again when the kernel has reported a change of mounts.

        The kernel reports only changes of this process's own namespace, and reading the mounts of
        other namespaces would delay commands.
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
                return False  # there is nothing to delete at the path
            raise
        if (now.st_dev, now.st_ino) == (target.pin.device, target.pin.inode):
            return False
        try:
            return not is_deleted(self._target_fds[number])
        except OSError as error:
            if error.errno in (errno.ESTALE, errno.ENOENT):
                return True  # no proof that the confirmed directory is deleted
            raise

    def _check_again(self, targets: Sequence[Target]) -> None:
        if not self._may_hang:
            self._checked(partial(check_again_all, self._plan, targets, self._tools))
            return
        for target in targets:  # each has a time limit of its own
            self._checked(partial(check_again_all, self._plan, [target], self._tools))

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
        except TuiFsError as error:
            if is_limit(error.__cause__):
                raise CheckFailed(error.__cause__ or error) from error
            raise

    def _targets_of(self, numbers: Sequence[int]) -> list[Target]:
        return [self._plan.targets[number] for number in numbers]
