"""Whether a directory may be deleted: the built-in rules and every policy, asked by all alike."""

import os
from dataclasses import replace

from tui_fs.job.store import emergency_directory, state_directory
from tui_fs.model.errors import Refused
from tui_fs.model.plan import Plan
from tui_fs.model.strategy import StrategyName
from tui_fs.model.target import Target
from tui_fs.safety.here import surroundings_here
from tui_fs.safety.policy import check_policy, check_strategy, name_required_by, read_policy
from tui_fs.safety.refusals import Surroundings, check, check_again, name_must_be_typed


def check_target(path: str, *, to_look: bool = False) -> Target:
    """Return the pinned target at `path`.

    Args:
        to_look: nothing is to be deleted yet, so it does not matter that deleting is off.

    Raises:
        BadInput: nothing is there, it cannot be looked at, or a policy file is damaged.
        Refused: a rule or a policy forbids it; nothing was touched.
    """
    target = check(path, _surroundings())
    policy = read_policy()
    check_policy(replace(policy, read_only=None) if to_look else policy, target)
    return target


def who_forbids_deleting() -> str | None:
    """Return who has switched deleting off, in words; None if nobody has."""
    return read_policy().read_only


def check_plan(plan: Plan) -> None:
    """Check everything about a plan in the moment before it starts; raises as `check_target`."""
    policy = read_policy()
    check_strategy(policy, plan.strategy)
    required = name_required_by(policy, plan.expected.totals.entries)
    if required is not None and not plan.name_typed:
        raise Refused(
            f"The policy wants the name typed, because {required}.",
            f"--confirm {os.path.basename(plan.target.path)!r} does that without a terminal.",
            rule="policy",
        )
    check_target_again(plan)


def check_target_again(plan: Plan) -> None:
    """Check that the target is what was confirmed, and still may be deleted."""
    check_again(plan.target, _surroundings(plan.confirmed_from))
    check_policy(read_policy(), plan.target)


def check_strategy_here(strategy: StrategyName) -> None:
    """Raise Refused if a policy forbids the strategy."""
    check_strategy(read_policy(), strategy)


def _surroundings(standing_in: str | None = None) -> Surroundings:
    memory = emergency_directory()
    further = () if memory is None else (os.path.dirname(memory),)
    return surroundings_here(state_directory(), standing_in, further)


def why_type_name(path: str, entries: int) -> str | None:
    """Return why this target is confirmed by typing its name, None if yes or no is enough."""
    return name_must_be_typed(path, entries) or name_required_by(read_policy(), entries)
