"""Prepares everything that a job needs before its tools start, without changing a target."""

import os
import sys
import time
from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from tui_fs.job.launcher import Launcher
from tui_fs.job.path_safety import (
    SPARE_DESCRIPTORS,
    PreparedStep,
    check_path_race,
    open_pinned,
    prepare_steps,
    step_limit_problem,
)
from tui_fs.job.permission import check_plan
from tui_fs.job.throttle import ranks_of
from tui_fs.job.tool_output import ToolOutput
from tui_fs.linux.host import boot_id
from tui_fs.linux.limits import cause_of, is_limit
from tui_fs.linux.missing_figures import missing_figures
from tui_fs.linux.mounts import read_mounts
from tui_fs.linux.priority import rank_refusal
from tui_fs.linux.tools import why_untrusted
from tui_fs.model.calls import TraceSource
from tui_fs.model.errors import Missing, Refused, TuiFsError
from tui_fs.model.events import JobStarted
from tui_fs.model.figures import FOR_JOB
from tui_fs.model.filter_text import in_words
from tui_fs.model.plan import Plan
from tui_fs.model.space import Space
from tui_fs.model.strategy import IoPriority, confined_words, flatten
from tui_fs.model.target import is_file
from tui_fs.safety.confinement import (
    ConfinedTarget,
    Enclosure,
    available,
    capabilities_without_confining,
    give_up_privileges,
)
from tui_fs.strategies.registry import strategy_named
from tui_fs.tracing.perf import allow_more_descriptors
from tui_fs.tracing.select_source import open_source
from tui_fs.tracing.source import CallSource


class PreparedJob(Struct, frozen=True):
    """The prepared parts of a job; no target has been changed.

    Attributes:
        target_fds: an open descriptor of each target.
        output: parses the output of the tools.
    """

    source: CallSource
    steps: tuple[PreparedStep, ...]
    launcher: Launcher
    target_fds: tuple[int, ...]
    output: ToolOutput


def check_tools(paths: Iterable[str]) -> None:
    """Raise Missing if a tool is gone, or if other users can replace it now."""
    for path in paths:
        if not os.access(path, os.X_OK):
            raise Missing(f"{path} is missing or not executable.", "Start the job again.")
        # The interpreter that runs this check is as trusted as the check.
        untrusted = None if path == sys.executable else why_untrusted(path)
        if untrusted is not None:
            raise Missing(f"{untrusted}.", "Start the job again.")


def check_confinement(plan: Plan) -> None:
    """Raise Missing if the kernel does not offer the planned confinement any more."""
    for mechanism in plan.confined_by:
        problem = available().reason(mechanism)
        if problem:
            words = confined_words((mechanism,))
            raise Missing(f"The tools cannot be confined by {words}: {problem}.", "Start again.")


def check_ranks(nice: int, io_priority: IoPriority) -> None:
    """Raise Missing if the tools cannot get the requested niceness and I/O priority."""
    refusal = rank_refusal(nice, io_priority)
    if refusal is not None:
        raise Missing(
            f"The tools cannot run with niceness {nice} and I/O priority {io_priority}: "
            f"{refusal.lower()}.",
            "Run without --nice, --ionice, --gentle and --rate, or allow setpriority and "
            "ioprio_set in the seccomp profile of the container or service.",
        )


def prepare(plan: Plan, empty_directory: str, own_nice: int) -> PreparedJob:
    """Check everything again, and prepare the tools and their counters.

    Args:
        empty_directory: an empty directory of the job's own.
        own_nice: niceness of the supervisor.

    Raises:
        TuiFsError: the plan may not or cannot be run any more.
    """
    try:
        return _prepare(plan, empty_directory, own_nice)
    except (OSError, MemoryError) as error:
        raise preparation_error(error) from error
    except (RuntimeError, ImportError) as error:
        if not is_limit(error):
            raise
        raise preparation_error(error) from error


def preparation_error(error: BaseException) -> TuiFsError:
    """Return the error for a job that cannot begin."""
    cause, advice = cause_of(error)
    kind = Missing if is_limit(error) else TuiFsError
    return kind(f"The job cannot be prepared: {cause}. Nothing was deleted.", advice)


def _prepare(plan: Plan, empty_directory: str, own_nice: int) -> PreparedJob:
    give_up_privileges()
    strategy = strategy_named(plan.strategy)
    check_plan(plan)
    is_confined = bool(plan.confined_by)
    check_path_race(
        strategy, plan.options, plan.paths, plan.writable_by_others, is_confined=is_confined
    )
    check_confinement(plan)
    check_tools(plan.tools.values())
    allow_more_descriptors(2 * len(plan.targets) + SPARE_DESCRIPTORS)
    pinned = [open_pinned(target) for target in plan.targets]
    ranks = ranks_of(plan.options.pace, own_nice)
    check_ranks(*ranks)
    source, prepared_steps = _prepare_steps(plan, empty_directory)
    directories = tuple(
        pinned[step.targets[0]][1 if step.is_inside else 0] for step in prepared_steps
    )
    launcher = Launcher(
        tuple(prepared.step for prepared in prepared_steps),
        directories,
        *ranks,
        takes_commands=strategy.guarantees.speaks,
        enclosures=tuple(_enclosure(plan, step, pinned) for step in prepared_steps),
        kept=capabilities_without_confining(),
    )
    for parent, _ in pinned:
        os.close(parent)  # the launcher has its own
    source.prepare(launcher.pid)
    target_fds = tuple(target_fd for _, target_fd in pinned)
    # A tool that deletes a file removes the target itself.
    confined = plan.paths if is_confined and not is_file(plan.targets) else ()
    output = ToolOutput(strategy, plan.paths[0], confined=confined)
    return PreparedJob(source, prepared_steps, launcher, target_fds, output)


def _enclosure(
    plan: Plan, step: PreparedStep, pinned: Sequence[tuple[int, int]]
) -> Enclosure | None:
    """Return the confinement of a step; an rmdir has none, because it removes the target itself.

    A step that removes a file may only remove names in its directory.
    """
    if not plan.confined_by or step.is_rmdir:
        return None
    mounts = read_mounts()
    if is_file(plan.targets):
        above = os.path.dirname(plan.paths[0])
        directory = ConfinedTarget.of(pinned[0][0], above, mounts)
        return Enclosure(plan.confined_by, (directory,), is_inside=True)
    targets = tuple(
        ConfinedTarget.of(pinned[number][1], plan.paths[number], mounts) for number in step.targets
    )
    return Enclosure(plan.confined_by, targets, step.is_inside)


def job_started(plan: Plan, prepared: PreparedJob, space: Space | None, at_s: float) -> JobStarted:
    """Return the event that begins the journal."""
    predicted = plan.predicted
    return JobStarted(
        at_s=at_s,
        job_id=plan.job_id,
        started_at=time.time(),
        supervisor_pid=os.getpid(),
        targets=plan.paths,
        strategy=plan.strategy,
        keep_root=plan.options.keep_root,
        command=flatten(tuple(step.step for step in prepared.steps)),
        expected=plan.expected,
        predicted_calls=predicted.syscalls if predicted else {},
        predicted_seconds=(predicted.seconds_low, predicted.seconds, predicted.seconds_high)
        if predicted
        else None,
        source=prepared.source.kind,
        source_note=prepared.source.note,
        space=space,
        pace=plan.options.pace,
        boot_id=boot_id(),
        predicted_peak_memory_bytes=predicted.peak_memory_bytes if predicted else None,
        predicted_processes=predicted.processes if predicted else None,
        predicted_other_calls=predicted.other_calls if predicted else None,
        missing_figures=missing_figures(FOR_JOB),
        is_filtered=plan.options.filters.active,
        filters=in_words(plan.options.filters),
        share=None if plan.options.filters.share is None else str(plan.options.filters.share),
        confined_by=plan.confined_by,
        predicted_measured_at=predicted.measured_at if predicted else 0.0,
    )


def _prepare_steps(plan: Plan, empty: str) -> tuple[CallSource, tuple[PreparedStep, ...]]:
    strategy = strategy_named(plan.strategy)
    inputs = strategy, plan.paths, plan.options, plan.tools, empty
    pins = [target.pin for target in plan.targets]
    prepared_steps = prepare_steps(*inputs, pins=pins, confined_by=plan.confined_by)
    problem = step_limit_problem(strategy, prepared_steps)
    if problem is not None:
        raise Refused(f"{problem}.", rule="too-many")
    processes = sum(len(prepared.step) for prepared in prepared_steps)
    source = open_source(plan.trace, processes, speaks=strategy.guarantees.speaks)
    if source.kind is TraceSource.OUTPUT:
        prepared_steps = prepare_steps(
            *inputs, pins=pins, with_output=True, confined_by=plan.confined_by
        )
    return source, tuple(
        replace(prepared, step=tuple(source.wrap(argv) for argv in prepared.step))
        for prepared in prepared_steps
    )
