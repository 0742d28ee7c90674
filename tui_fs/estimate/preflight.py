"""Whether a strategy can delete a tree at all, and what it will leave, before it is started.

A hindrance is a reason not to start; a note names an effect to expect. The safety rules refuse
some of the same at the start (mounts, targets in use, read-only file systems). This check reports
it earlier.
"""

from collections.abc import Mapping

from msgspec import Struct

from tui_fs.linux.memory import MemoryRoom
from tui_fs.model.finding import FindingKind
from tui_fs.model.strategy import StrategyName
from tui_fs.model.survey import Survey
from tui_fs.model.units import bytes_iec
from tui_fs.strategies.base import Strategy
from tui_fs.strategies.prediction import Work


class Preflight(Struct, frozen=True):
    """Why a strategy cannot run, and what it will leave, each a part of a sentence."""

    hindrances: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class RunConditions(Struct, frozen=True):
    """Conditions of a run other than the tree.

    Attributes:
        room: memory for further processes; None if not known.
        versions: first line of each tool's ``--version``, as far as known.
        is_read_only: the file system or snapshot is read-only.
        is_inside: the tools run in the targets and name them ``.``.
        slowdown: how many times longer the present load may make a run.
    """

    room: MemoryRoom | None = None
    versions: Mapping[str, str] | None = None
    is_read_only: bool = False
    is_inside: bool = False
    slowdown: float = 1.0


def check_preflight(
    strategy: Strategy, work: Work, peak_bytes: int, place: RunConditions
) -> Preflight:
    """Return why a strategy cannot run here and what it would leave, the most severe first.

    Args:
        peak_bytes: the memory that its largest process will need.
    """
    survey = work.survey
    hindrances: list[str] = []
    notes: list[str] = []
    if place.is_read_only:
        hindrances.append("the file system or snapshot is read-only")
    hindrances += _blocked(survey)
    hindrances += strategy.limits(work, place.versions or {})
    _add_memory(hindrances, notes, strategy.name, peak_bytes, place.room)
    _add_remains(hindrances, notes, survey)
    notes += dict.fromkeys(finding.note for finding in survey.findings if finding.note)
    return Preflight(tuple(hindrances), tuple(notes))


def _blocked(survey: Survey) -> list[str]:
    """Return why no deletion may begin: the first finding of each kind, and how many more."""
    reasons: dict[FindingKind, list[str]] = {}
    for finding in survey.findings:
        if finding.blocks:
            reasons.setdefault(finding.kind, []).append(finding.blocks)
    return [
        first + (f" (and {len(more):,} more)" if more else "") for first, *more in reasons.values()
    ]


def _add_memory(
    hindrances: list[str],
    notes: list[str],
    strategy: StrategyName,
    peak_bytes: int,
    room: MemoryRoom | None,
) -> None:
    if room is None or peak_bytes * 2 <= room.bytes_left:
        return
    text = (
        f"{strategy} needs about {bytes_iec(peak_bytes)} of memory, but only "
        f"{bytes_iec(room.bytes_left)} of {room.limited_by} is free"
    )
    (hindrances if peak_bytes > room.bytes_left else notes).append(text)


def _add_remains(hindrances: list[str], notes: list[str], survey: Survey) -> None:
    """Add what will remain as notes, and a hindrance if that is everything."""
    roots = {root.path for root in survey.roots} or {survey.path}
    locks = dict.fromkeys(finding.lock for finding in survey.findings if finding.lock)
    locked_roots = roots & {finding.path for finding in survey.findings if finding.lock}
    is_all_at_top = (
        survey.totals.entries - len(roots) == survey.top_directories + survey.top_non_directories
    )
    is_nothing_deleted = locked_roots == roots and is_all_at_top
    if is_nothing_deleted:
        targets = "the target is" if len(roots) == 1 else "the targets are"
        hindrances.append(f"{targets} {' and '.join(locks)}: nothing can be deleted")
    notes += dict.fromkeys(
        finding.remains
        for finding in survey.findings
        if finding.remains and not (is_nothing_deleted and finding.lock)
    )
    if survey.unreadable:
        number = survey.unreadable
        where = "a directory" if number == 1 else f"{number:,} directories"
        notes.append(f"{where} could not be read completely: unread entries are not counted")
