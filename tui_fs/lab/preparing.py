"""Prepares an experiment for this machine: tools, plans of the steps, free space."""

import os
import platform
import re
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from tui_fs.job.permission import refuse_scratch
from tui_fs.job.store import cache_directory, made_private
from tui_fs.lab.experiment import PIN, Experiment, Pipeline, Place, Scale, Setting, Step, Trial
from tui_fs.lab.filesystems import Needs, needs_of, place_obstacle, refuse_without_room
from tui_fs.lab.results import Machine, StepPlan
from tui_fs.linux.filesystem import DROP_CACHES, file_system_of
from tui_fs.linux.limits import processors
from tui_fs.linux.mounts import foreign_mount_on_way, read_mounts
from tui_fs.linux.permissions import protects_new_entries, replaceable_part
from tui_fs.linux.resolve_path import resolve
from tui_fs.linux.tools import find_tool
from tui_fs.model.errors import BadInput, Missing, Refused
from tui_fs.model.paths import PathStr, displayable, harmless, shell_quoted
from tui_fs.strategies.registry import why_missing

TREE, EMPTY = "tree", "empty"
ALL_NAMES = "*"
_TOOL = re.compile(r"\{path:([^}]+)\}")


class Prepared(Struct, frozen=True):
    """An experiment as it will run here.

    Attributes:
        directory: in which the scratch directory is made.
        tools: absolute paths by name, of those that are installed.
        plans: of all steps, in their order.
    """

    experiment: Experiment
    scale: Scale
    directory: PathStr
    target: str
    trials: tuple[Trial, ...]
    tools: Mapping[str, str]
    plans: tuple[StepPlan, ...]
    machine: Machine
    needs: Needs

    def trials_to_do(self) -> tuple[Trial, ...]:
        """Return the trials with at least one step that can run here."""
        possible = {plan.key for plan in self.plans if not plan.why_not}
        return tuple(
            trial for trial in self.trials if possible & {step.key for step in trial.steps}
        )


def prepare(
    experiment: Experiment,
    scale: Scale,
    directory: str | None = None,
    target: str = "",
    max_rounds: int | None = None,
) -> Prepared:
    """Prepare a run; nothing is made but the default directory.

    Args:
        directory: where the scratch directory will be made; None for the one below the cache.
        target: a directory whose shape the experiment copies, if it takes one.
        max_rounds: most times that each step is timed; None for the rounds of its trial.

    Raises:
        BadInput: a path is not a usable directory, or the experiment takes no target.
        Missing: no step can run here.
        Refused: there is no room, or other users could replace the scratch directory.
    """
    if target and not experiment.takes_target:
        raise BadInput(f"The experiment {experiment.name} takes no target directory.")
    place = _working_directory(directory)
    installed = _installed(experiment.tools)
    paths = {name: path for name, (path, _) in installed.items()}
    setting = Setting(paths, target)
    trials = experiment.trials(scale, setting)
    if max_rounds is not None:
        trials = tuple(replace(each, rounds=min(each.rounds, max_rounds)) for each in trials)
    needed = {name for trial in trials for step in trial.steps for name in _tool_names(step)}
    installed |= _installed(needed)
    tools = {name: path for name, (path, _) in installed.items()}
    kind = file_system_of(place).kind
    plans = tuple(plan for trial in trials for plan in _plans(trial, tools, kind))
    if all(plan.why_not for plan in plans):
        raise Missing(f"{experiment.name} cannot run here: {plans[0].why_not}.")
    machine = _machine({name: version for name, (_, version) in installed.items()})
    nothing = Needs(0, 0, 0)
    prepared = Prepared(experiment, scale, place, target, trials, tools, plans, machine, nothing)
    needs = needs_of(prepared.trials_to_do())
    refuse_without_room(needs, place)
    return replace(prepared, needs=needs)


def in_words(step: Step, tools: Mapping[str, str]) -> tuple[str, ...]:
    """Return a step's commands as a user would type them in the directory above the tree."""
    lines: list[str] = []
    for pipeline in step.commands:
        typed = " | ".join(_typed(argv, tools) for argv in pipeline)
        lines.append(f"cd {TREE}; {typed}" if step.is_in_tree else typed)
    return tuple(lines)


def _typed(argv: tuple[str, ...], tools: Mapping[str, str]) -> str:
    words = [
        word
        if word == ALL_NAMES
        else shell_quoted((_substitute(word, tools, ".", "DEV:INO:BIRTH"),))
        for word in argv
    ]
    return " ".join(words)


def pipelines(
    step: Step, tools: Mapping[str, str], out: str, names: tuple[str, ...], pin: str
) -> tuple[Pipeline, ...]:
    """Return a step's commands as they are executed.

    Args:
        out: the folder for files that are kept.
        names: in the tree, for the argument ``*``.
        pin: of the tree, as the engine takes it.
    """

    def expand(argv: tuple[str, ...]) -> tuple[str, ...]:
        words = [tools[argv[0]]]
        for word in argv[1:]:
            words += names if word == ALL_NAMES else [_substitute(word, tools, out, pin)]
        return tuple(words)

    return tuple(tuple(expand(argv) for argv in pipeline) for pipeline in step.commands)


def _substitute(word: str, tools: Mapping[str, str], out: str, pin: str) -> str:
    word = word.replace(PIN, pin)
    word = word.replace("{tree}", TREE).replace("{empty}", EMPTY).replace("{out}", out)
    return _TOOL.sub(lambda match: tools.get(match[1], match[1]), word)


def _tool_names(step: Step) -> set[str]:
    """Return the names of the tools that a step needs."""
    argvs = [argv for pipeline in step.commands for argv in pipeline]
    named = {name for argv in argvs for word in argv for name in _TOOL.findall(word)}
    return named | {argv[0] for argv in argvs}


def _installed(names: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return path and version of the tools that are installed."""
    tools: dict[str, tuple[str, str]] = {}
    for name in sorted(names):
        if (tool := find_tool(name)) is not None:
            tools[name] = tool.path, tool.version
    return tools


def _plans(trial: Trial, tools: Mapping[str, str], kind: str) -> Iterator[StepPlan]:
    """Yield the steps of a trial; one that changes its tree needs all the steps before it."""
    blocked = ""
    for step in trial.steps:
        reason = _obstacle(step, trial, tools)
        yield _plan(step, trial, tools, kind, blocked or reason)
        if not trial.is_reading:
            blocked = blocked or (reason and f"an earlier step was skipped: {reason}")


def _plan(step: Step, trial: Trial, tools: Mapping[str, str], kind: str, why_not: str) -> StepPlan:
    of_all = f" (from {100 * step.share:g} %)" if step.share < 1 else ""
    return StepPlan(
        key=step.key,
        title=step.title + of_all,
        commands=in_words(step, tools),
        place=kind if trial.place is Place.HERE else trial.place.value,
        tree=_words(trial),
        entries=0 if trial.tree is None else trial.tree.entries,
        series=step.series,
        x=step.x,
        share=step.share,
        why_not=why_not,
    )


def _words(trial: Trial) -> str:
    if trial.tree is None:
        return ""
    return f"{trial.tree.words}, written to the disk" if trial.is_settled else trial.tree.words


def _obstacle(step: Step, trial: Trial, tools: Mapping[str, str]) -> str:
    """Return why a step cannot run here; empty if it can."""
    for name in sorted(_tool_names(step) - tools.keys()):
        return why_missing(name)
    if step.is_cold and not os.access(DROP_CACHES, os.W_OK):
        return "only root can drop the caches"
    return place_obstacle(trial.place)


_CHOOSE_ANOTHER = "Choose another directory: --dir DIRECTORY."


def _working_directory(directory: str | None) -> PathStr:
    if directory is None:
        place = os.path.join(cache_directory(), "lab")
        try:
            if not made_private(place):
                raise Refused(f"{displayable(place)} is not private to you.", _CHOOSE_ANOTHER)
            return _checked(resolve(place))
        except OSError as error:
            raise _unusable(place, error) from error
    try:
        place = resolve(directory)
        status = os.stat(place)
    except OSError as error:
        raise _unusable(directory, error) from error
    if not os.access(place, os.W_OK | os.X_OK):
        raise BadInput(f"You may not write in {displayable(place)}.", _CHOOSE_ANOTHER)
    uid = os.geteuid()
    if replaceable_part(place, uid) is not None or not protects_new_entries(status, uid, place):
        raise Refused(
            f"Other users could replace directories made in {displayable(place)}.",
            "Choose a directory that only you can write to.",
            rule="races",
        )
    return _checked(place)


def _checked(place: PathStr) -> PathStr:
    """Return a directory; Refused where a policy protects it, or a server decides who may write.

    Raises:
        OSError: it cannot be opened.
    """
    refuse_scratch(place)
    mount = foreign_mount_on_way(place, read_mounts())
    if mount is not None:
        raise Refused(
            f"Other users could replace directories made in {displayable(place)}: owners and "
            f"modes at {displayable(mount.mount_point)} ({displayable(mount.filesystem)}) do not "
            "show who may write.",
            "Choose a directory on a local file system: --dir DIRECTORY.",
            rule="races",
        )
    return place


def _unusable(place: str, error: OSError) -> BadInput:
    return BadInput(f"{displayable(place)} cannot be used: {error.strerror}.", _CHOOSE_ANOTHER)


def _machine(tools: dict[str, str]) -> Machine:
    kernel = os.uname()
    try:
        distribution = platform.freedesktop_os_release().get("PRETTY_NAME", "")
    except OSError:
        distribution = ""
    return Machine(
        kernel=f"{kernel.sysname} {kernel.release}",
        processor=_processor() or kernel.machine,
        processors=processors(),
        memory_bytes=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        distribution=distribution,
        tools=tools,
    )


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                name, _, value = line.partition(":")
                if name.strip() == "model name":
                    return harmless(value.strip())
    except OSError:
        pass  # not every machine has it; the architecture is reported instead
    return ""
