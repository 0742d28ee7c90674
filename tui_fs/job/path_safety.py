"""Checks whether another user could redirect a strategy, and builds steps that prevent it."""

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from tui_fs.linux.mounts import MountTable, foreign_mount_on_way, read_mounts
from tui_fs.linux.permissions import others_may_write, replaceable_part
from tui_fs.linux.pins import open_path_fd, path_flags, pin_of
from tui_fs.model.errors import Refused, cannot_examine
from tui_fs.model.paths import PathStr, displayable
from tui_fs.model.strategy import Mechanism, Options, Step
from tui_fs.model.target import Pin, Target, is_file
from tui_fs.strategies.base import ComparesPins, Invocation, Strategy
from tui_fs.strategies.registry import RACE_SAFE
from tui_fs.tracing.perf import allow_more_descriptors

MOST_STEPS = 100
"""Each step opens about a hundred counters, which stay open to the end of the job."""

MOST_GROUPS = 25
"""Targets passed by path are split among this many command lines. Each costs 50 ms, and the fewer
targets share one, the later the supervisor compares their pins."""

MOST_ARGUMENT_BYTES = 100 << 10
"""Limit for the targets of one step: the kernel always permits 128 KiB (execve(2))."""


SPARE_DESCRIPTORS = 128
"""Descriptors for the other files of a process that has its targets open."""


class PreparedStep(Struct, frozen=True):
    """A step, and the directory in which it runs.

    Attributes:
        targets: the indexes of its targets in the plan.
        is_inside: it runs in its only target; else in the parent directory of the first.
        is_rmdir: it removes its empty targets after the strategy's own steps.
    """

    step: Step
    targets: tuple[int, ...]
    is_inside: bool
    is_rmdir: bool = False


def prepare_steps(
    strategy: Strategy,
    paths: Sequence[str],
    options: Options,
    tools: Mapping[str, str],
    empty_directory: str,
    *,
    pins: Sequence[Pin] = (),
    with_output: bool = False,
    confined_by: tuple[Mechanism, ...] = (),
) -> tuple[PreparedStep, ...]:
    """Return the steps that delete the targets.

    The tools receive the path of a target only if no other user can replace any part of it. One
    step has few targets, because the supervisor compares their pins just before the step. For
    every other target the tools run in the target, opened by descriptor, and empty it; then rmdir
    removes the name, and can remove only an empty directory.

    Args:
        pins: of all targets, for a strategy whose tool compares them, too; empty to skip that.
            A file has one step, which runs in its directory.
        confined_by: with any mechanism the tools cannot remove the targets themselves, so rmdir
            follows, as after a share: only the machine that finishes last finds the target empty.
    """
    if pins and pins[0].is_file:
        name = os.path.basename(paths[0])
        step = strategy.file_step(name, pins[0], tools, with_output=with_output)
        return (PreparedStep(step, (0,), False),)
    mounts = read_mounts()
    firm = [number for number, path in enumerate(paths) if is_unreplaceable(path, mounts)]
    prepared_steps: list[PreparedStep] = []
    at_once = -(-len(firm) // MOST_GROUPS)
    most = strategy.at_once(options)
    removes = not (options.keep_root or options.filters.active)
    emptying = replace(options, keep_root=True)
    share = options.filters.share

    def build(group: tuple[int, ...], names: tuple[str, ...], how: Options) -> tuple[Step, ...]:
        steps = strategy.steps(Invocation(names, how, tools, empty_directory, with_output))
        if not pins or not isinstance(strategy, ComparesPins):
            return steps
        on_own_mounts = confined_by == (Mechanism.NAMESPACE,)
        group_pins = [pins[number] for number in group]
        return strategy.pinned(steps, group_pins, on_own_mounts=on_own_mounts)

    for group in _groups(firm, paths, at_once if most is None else min(at_once, most)):
        names = tuple(paths[number] for number in group)
        steps = build(group, names, options if share is None else emptying)
        prepared_steps += [PreparedStep(step, group, False) for step in steps]
        if removes and strategy.ends_with_rmdir:
            prepared_steps[-1] = replace(prepared_steps[-1], is_rmdir=True)
        elif removes and (confined_by or share is not None):
            rmdir = (tools["rmdir"], "--", *names)
            prepared_steps.append(PreparedStep((rmdir,), group, False, is_rmdir=True))
    for number in sorted(set(range(len(paths))) - set(firm)):
        inside = build((number,), (".",), emptying)
        prepared_steps += [PreparedStep(step, (number,), True) for step in inside]
        if removes:
            rmdir = (tools["rmdir"], "--", f"./{os.path.basename(paths[number])}")
            prepared_steps.append(PreparedStep((rmdir,), (number,), False, is_rmdir=True))
    return tuple(prepared_steps)


def _groups(
    numbers: Sequence[int], paths: Sequence[str], at_once: int
) -> Iterator[tuple[int, ...]]:
    """Yield the targets in groups that one command line can hold."""
    group: list[int] = []
    room = MOST_ARGUMENT_BYTES
    for number in numbers:
        length = len(os.fsencode(paths[number])) + 1
        if group and (length > room or len(group) == at_once):
            yield tuple(group)
            group, room = [], MOST_ARGUMENT_BYTES
        group.append(number)
        room -= length
    if group:
        yield tuple(group)


def step_limit_problem(strategy: Strategy, prepared_steps: Sequence[PreparedStep]) -> str | None:
    """Return why one job cannot have this many steps, None if it can."""
    if len(prepared_steps) <= MOST_STEPS:
        return None
    return (
        f"{strategy.name} needs {len(prepared_steps):,} steps here, and a job has at most "
        f"{MOST_STEPS}: choose fewer directories, or another strategy"
    )


def is_unreplaceable(path: str, mounts: MountTable) -> bool:
    """Return whether only the user and root can replace any part of a path, its end included."""
    try:
        if foreign_mount_on_way(path, mounts) is not None:
            return False
        return replaceable_part(path, os.geteuid()) is None
    except OSError:
        return False  # gone or unreachable now: the path is unverifiable


def directories_named_from(
    paths: Sequence[str], mounts: MountTable | None = None
) -> tuple[PathStr, ...]:
    """Return the targets whose tools run in them; command lines have the full paths of the rest."""
    mounts = read_mounts() if mounts is None else mounts
    return tuple(PathStr(path) for path in paths if not is_unreplaceable(path, mounts))


def shown_directories(targets: Sequence[Target]) -> tuple[PathStr, ...]:
    """Return the current directories of the tools that do not work by full paths."""
    if is_file(targets):
        return (PathStr(os.path.dirname(targets[0].path)),)
    return directories_named_from([target.path for target in targets])


def path_race(
    strategy: Strategy,
    options: Options,
    paths: Sequence[str],
    shared: int,
    mounts: MountTable | None = None,
    *,
    is_confined: bool,
) -> str | None:
    """Return how others could redirect the strategy outside the targets, None if they cannot.

    Args:
        shared: number of directories in the targets in which other users may write.
        is_confined: the kernel keeps the tools inside the targets.
    """
    if strategy.guarantees.race_safe or options.accept_races or is_confined:
        return None
    mounts = read_mounts() if mounts is None else mounts
    foreign = next((m for path in paths if (m := foreign_mount_on_way(path, mounts))), None)
    if foreign is not None and foreign.is_idmapped:
        return (
            f"{strategy.name} works by path, and the mount at {displayable(foreign.mount_point)} "
            "is idmapped: it shows owners that differ from those on disk, so other users could "
            "redirect the deletion outside the target"
        )
    if foreign is not None:
        return (
            f"{strategy.name} works by path, and {displayable(foreign.mount_point)} is a file "
            f"system of type {displayable(foreign.filesystem)}: its server decides who can "
            "write, so other users could redirect the deletion outside the target"
        )
    if shared:
        number = "a directory" if shared == 1 else f"{shared:,} directories"
        where = f"write in {number} of {'the target' if len(paths) == 1 else 'the targets'}"
    else:
        part = next((part for part in map(_replaceable, paths) if part is not None), None)
        if part is None:
            return None
        where = f"replace {displayable(part)}"
    return (
        f"{strategy.name} works by path, and a user other than you and root can {where} (by "
        "owner, mode or access control list): the deletion could be redirected outside the target"
    )


def check_path_race(
    strategy: Strategy, options: Options, paths: Sequence[str], shared: int, *, is_confined: bool
) -> None:
    """Raise Refused if others could redirect the strategy outside the targets."""
    reason = path_race(strategy, options, paths, shared, is_confined=is_confined)
    if reason is not None:
        advice = f"Use {RACE_SAFE}; to accept the risk, add --accept-races."
        raise Refused(f"{reason}.", advice, rule="races")


def open_pinned(target: Target) -> tuple[int, int]:
    """Return descriptors of the parent directory and of the target in it.

    Raises:
        OSError: one of them cannot be opened.
        Refused: the directory or file at the path is not the confirmed one.
    """
    above, name = os.path.split(target.path)
    flags = path_flags(any_kind=target.pin.is_file)
    opened = [open_path_fd(above)]
    try:
        opened.append(os.open(name, flags, dir_fd=opened[0]))
        if pin_of(opened[1]) != target.pin:
            raise Refused(
                f"{displayable(target.path)} was replaced by another {target.noun}.",
                "Check it and confirm again.",
                rule="changed",
            )
    except BaseException:
        for descriptor in opened:
            os.close(descriptor)
        raise
    parent_fd, target_fd = opened
    return parent_fd, target_fd


@contextlib.contextmanager
def keep_open(targets: Sequence[Target]) -> Iterator[None]:
    """Keep a descriptor of each target open, from its check until its job has started.

    An open directory keeps its inode, its mount and its file system in use, so the kernel assigns
    their numbers to nothing else: a later match of the pin proves that it is the same directory.
    A file system with an open target cannot be unmounted, except lazily.

    Raises:
        BadInput: a target cannot be opened, or too many files are open.
        Refused: a target is another directory than the one that was checked.
    """
    with contextlib.ExitStack() as stack:
        allow_more_descriptors(len(targets) + SPARE_DESCRIPTORS)
        for target in targets:
            try:
                parent, descriptor = open_pinned(target)
            except OSError as error:
                raise cannot_examine(target.path, error) from error
            os.close(parent)
            stack.callback(os.close, descriptor)
        yield


def _replaceable(path: str) -> str | None:
    """Return the part of a path that others can replace; the path if they may write in it."""
    uid = os.geteuid()
    try:
        part = replaceable_part(path, uid)
        return path if part is None and others_may_write(os.lstat(path), uid, path) else part
    except OSError:
        return path  # gone or unreachable now: the path is unverifiable
