"""Checks whether directories may be deleted, by the built-in rules and every policy."""

import os
from collections.abc import Collection, Iterable, Sequence

from msgspec.structs import replace

from tui_fs.job.conflicts import check_nested, tools_of_running_jobs
from tui_fs.job.store import emergency_directory, state_directory
from tui_fs.linux.pins import take_pin
from tui_fs.model.command import Command
from tui_fs.model.errors import BadInput, Refused
from tui_fs.model.paths import PathStr, displayable, is_typable, shell_quoted
from tui_fs.model.plan import Plan
from tui_fs.model.strategy import StrategyName
from tui_fs.model.target import Target
from tui_fs.safety.environment import current_environment
from tui_fs.safety.policy import (
    Policy,
    check_policy,
    check_read_only,
    check_scratch,
    check_strategy,
    name_required_by,
    read_policy,
)
from tui_fs.safety.rules import (
    NAME_TYPED_ABOVE_ENTRIES,
    CheckRound,
    Environment,
    Homes,
    check,
    check_again,
    name_must_be_typed,
)
from tui_fs.strategies.registry import STRATEGIES

MOST_TARGETS = 1_000
"""Each target is checked several times, and a longer list is unreadable."""

MOST_PATH_BYTES = 200 << 10
"""The first line of a journal holds the paths up to three times, each byte as up to six; a line
of more than 4 MiB is taken for damage."""

PLAIN_WORD = "delete"
"""The word to type if there are several names, or one that cannot be typed."""


def check_targets(
    paths: Sequence[str], *, to_look: bool = False, allows_file: bool = False
) -> tuple[Target, ...]:
    """Return the pinned targets at `paths`.

    Args:
        allows_file: the only target may also be a file or a symbolic link.
        to_look: nothing will be deleted yet, so read-only mode does not matter.

    Raises:
        BadInput: a target does not exist or cannot be examined, or a policy file is damaged.
        Refused: a rule or a policy forbids a target; nothing was touched.
    """
    _refuse_too_many(paths)
    environment = _environment()
    checks = CheckRound(environment, own_tools=tools_of_running_jobs)
    targets = tuple(check(path, environment, checks, allows_file=allows_file) for path in paths)
    _refuse_files_among(targets)
    check_nested(targets)
    policy = read_policy(known_strategies=STRATEGIES)
    for target in targets:
        policy_here = replace(policy, read_only=None) if to_look else policy
        check_policy(policy_here, target, checks.mounts)
    return targets


def read_only_reason(*, by_option: bool = False) -> str | None:
    """Return what turns read-only mode on, in words; None if it is off.

    Args:
        by_option: the screens run with ``--read-only``.
    """
    if by_option:
        return "--read-only"
    try:
        return read_policy(known_strategies=STRATEGIES).read_only
    except BadInput as damaged:
        return str(damaged)  # a policy that cannot be read stops every deletion


def refuse_read_only() -> None:
    """Raise Refused (rule "read-only") in read-only mode; BadInput if a policy is damaged."""
    check_read_only(read_policy(known_strategies=STRATEGIES))


def refuse_scratch(directory: PathStr) -> None:
    """Raise Refused if a policy forbids tui-fs to create and remove files of its own there.

    Raises:
        OSError: the directory cannot be opened.
        BadInput: a policy file is damaged.
    """
    check_scratch(read_policy(known_strategies=STRATEGIES), Target(directory, take_pin(directory)))


def check_command(command: Command, *, by_option: bool = False) -> None:
    """Raise Refused (rule "read-only") for a command to a job that read-only mode does not allow.

    Commands that cannot let the job delete more or faster are always allowed. They do not depend
    on the policy, so a damaged policy does not prevent cancelling a job.

    Args:
        by_option: the screens run with ``--read-only``.

    Raises:
        BadInput: a policy file is damaged.
    """
    if command.name in ("pause", "cancel") or command == Command("gentle", "on"):
        return
    reason = "--read-only" if by_option else read_policy(known_strategies=STRATEGIES).read_only
    if reason is not None:
        raise Refused(
            f"Read-only mode is on ({reason}): '{command}' could let the job delete more or "
            "faster.",
            "pause, cancel and gentle on still work.",
            rule="read-only",
        )


def check_plan(plan: Plan) -> None:
    """Check a plan just before it starts; raises as `check_targets`."""
    policy = read_policy(known_strategies=STRATEGIES)
    check_strategy(policy, plan.strategy)
    required = _required_by(policy, len(plan.targets), plan.expected.totals.entries)
    if required is not None and not plan.name_typed:
        word = word_to_type(plan.paths)
        raise Refused(
            f"The policy requires that you type '{word}', because {required}.",
            f"Without a terminal, add --confirm {shell_quoted((word,))}.",
            rule="policy",
        )
    _refuse_too_many(plan.paths)
    _refuse_files_among(plan.targets)
    check_nested(plan.targets)
    check_again_all(plan, plan.targets)


def check_again_all(plan: Plan, targets: Iterable[Target], own_tools: Collection[int] = ()) -> None:
    """Check that `targets` of a plan are the confirmed ones, and may still be deleted.

    Args:
        own_tools: tools of the job that have entered their own mount namespaces.
    """
    checks = RepeatedChecks(plan, own_tools=own_tools)
    for target in targets:
        checks.check(target)


class RepeatedChecks:
    """Checks the targets of a plan, reading environment and policy only once.

    Args:
        is_own_namespace_only: leave out the mount namespaces of other processes.
        own_tools: processes whose mount namespaces are left out, with those of other running jobs.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        is_own_namespace_only: bool = False,
        own_tools: Collection[int] = (),
    ) -> None:
        self._environment = _environment(plan.confirmed_from)
        self._policy = read_policy(known_strategies=STRATEGIES)
        self._checks = CheckRound(
            self._environment,
            is_own_namespace_only=is_own_namespace_only,
            own_tools=lambda: {*own_tools, *tools_of_running_jobs()},
        )

    def check(self, target: Target) -> None:
        """Raise TuiFsError unless a target is the confirmed one, and may still be deleted."""
        check_again(target, self._environment, self._checks)
        check_policy(self._policy, target, self._checks.mounts)


def check_strategy_here(strategy: StrategyName) -> None:
    """Raise Refused if a policy forbids the strategy."""
    check_strategy(read_policy(known_strategies=STRATEGIES), strategy)


def _environment(cwd: str | None = None) -> Environment:
    memory = emergency_directory()
    further = () if memory is None else (os.path.dirname(memory),)
    return current_environment(state_directory(), cwd, further)


def why_type_name(paths: Sequence[str], entries: int) -> str | None:
    """Return why these targets are confirmed by typing a word, None if yes or no is enough.

    Args:
        entries: the number in all targets together.
    """
    by_policy = _required_by(read_policy(known_strategies=STRATEGIES), len(paths), entries)
    homes = Homes()
    if len(paths) == 1:
        return name_must_be_typed(paths[0], entries, homes) or by_policy
    if entries > NAME_TYPED_ABOVE_ENTRIES:
        return f"together they have more than {NAME_TYPED_ABOVE_ENTRIES:,} entries"
    for path in paths:
        reason = name_must_be_typed(path, entries, homes)
        if reason is not None:
            return displayable(path) + reason.removeprefix("it")
    return by_policy


def word_to_type(paths: Sequence[str]) -> str:
    """Return the word that confirms: the name of a single target if it can be typed."""
    name = os.path.basename(paths[0])
    return name if len(paths) == 1 and is_typable(name) else PLAIN_WORD


def _required_by(policy: Policy, number: int, entries: int) -> str | None:
    required = name_required_by(policy, entries)
    if required is None or number == 1:
        return required
    return required.replace("it has", "together they have", 1)


def _refuse_files_among(targets: Sequence[Target]) -> None:
    """Raise Refused if a file is one of several targets."""
    files = [target for target in targets if target.pin.is_file]
    if files and len(targets) > 1:
        raise Refused(
            f"{displayable(files[0].path)} is not a directory, and one job deletes either a single "
            "file or directories.",
            "Delete each file in a job of its own.",
            rule="several-files",
        )


def _refuse_too_many(paths: Sequence[str]) -> None:
    advice = "Delete them in several jobs, or delete their parent directory."
    if len(paths) > MOST_TARGETS:
        raise Refused(
            f"{len(paths):,} directories are more than one job may delete ({MOST_TARGETS:,}).",
            advice,
            rule="too-many",
        )
    length = sum(len(path.encode("utf-8", "surrogatepass")) for path in paths)
    if length > MOST_PATH_BYTES:
        raise Refused(
            f"The paths of {len(paths):,} directories are {length:,} bytes long, which is more "
            f"than one job may have ({MOST_PATH_BYTES:,}).",
            advice,
            rule="too-many",
        )
