"""Whether a strategy can delete a tree at all, and what it will leave, before it is started.

A hindrance says why nothing should be begun; a note says what to expect. The safety rules refuse
some of it again at the start (mounts, what is used elsewhere, read-only file systems): here it is
said earlier.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tui_fs.linux.memory import MemoryRoom
from tui_fs.model.paths import displayable
from tui_fs.model.strategy import StrategyName
from tui_fs.model.survey import Finding, Survey
from tui_fs.model.units import bytes_iec, counted
from tui_fs.strategies.base import Strategy
from tui_fs.strategies.prediction import Work

_LOCKED = {
    "immutable": "immutable",
    "append-only": "append-only",
    "unwritable": "not yours to write",
}


@dataclass(frozen=True, slots=True)
class Feasibility:
    """Why a strategy cannot do it, and what it will leave, each a part of a sentence."""

    hindrances: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is known of the place, besides the tree.

    Attributes:
        room: memory for further processes; None if not known.
        versions: first line of each tool's ``--version``, as far as known.
        is_read_only: of the file system.
        is_inside: the tools run in the targets and name them ``.``.
    """

    room: MemoryRoom | None = None
    versions: Mapping[str, str] | None = None
    is_read_only: bool = False
    is_inside: bool = False


def feasibility(
    strategy: Strategy, work: Work, peak_bytes: int, place: Surroundings
) -> Feasibility:
    """Return what stands against a strategy here, the gravest first.

    Args:
        peak_bytes: the memory that its largest process will need.
    """
    survey = work.survey
    hindrances: list[str] = []
    notes: list[str] = []
    if place.is_read_only:
        hindrances.append("the file system or snapshot is read-only")
    hindrances += _mounts(survey)
    hindrances += _uses(survey)
    hindrances += strategy.limits(work, place.versions or {})
    _add_memory(hindrances, notes, strategy.name, peak_bytes, place.room)
    _add_locked(hindrances, notes, survey)
    return Feasibility(tuple(hindrances), tuple(notes))


def _mounts(survey: Survey) -> list[str]:
    mounts = _of_kind(survey, "mount-inside")
    if not mounts:
        return []
    more = f" and in {counted(len(mounts) - 1, 'more place', 'more places')}"
    more = more if len(mounts) > 1 else ""
    shown = displayable(mounts[0].path)
    return [f"something is mounted inside, at {shown}{more}: it is refused until that is unmounted"]


def _uses(survey: Survey) -> list[str]:
    uses = _of_kind(survey, "used-elsewhere")
    if not uses:
        return []
    more = f" (and {counted(len(uses) - 1, 'more use', 'more uses')})" if len(uses) > 1 else ""
    return [f"{uses[0].meaning.rstrip('.')}{more}: end this use first"]


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
        f"{strategy} needs about {bytes_iec(peak_bytes)} of memory, and "
        f"{bytes_iec(room.bytes_left)} are left of {room.limited_by}"
    )
    (hindrances if peak_bytes > room.bytes_left else notes).append(text)


def _add_locked(hindrances: list[str], notes: list[str], survey: Survey) -> None:
    """Say what will be left, and whether that is all there is."""
    locked_roots: set[str] = set()
    roots = set(_roots(survey))
    locked_notes: list[str] = []
    for kind, word in _LOCKED.items():
        found = _of_kind(survey, kind)
        if not found:
            continue
        locked_roots |= roots & {one.path for one in found}
        number = found[0].numbers.get("directories", len(found))
        where, them = (
            ("a directory is", "it") if number == 1 else (f"{number:,} directories are", "them")
        )
        locked_notes.append(f"{where} {word}: what is directly in {them} stays")
    top = survey.top_directories + survey.top_non_directories
    is_all_at_top = survey.totals.entries - len(roots) == top
    if locked_roots == roots and is_all_at_top:
        reasons = " and ".join(word for kind, word in _LOCKED.items() if _of_kind(survey, kind))
        what = "the target is" if len(roots) == 1 else "the targets are"
        hindrances.append(f"{what} {reasons}: nothing at all can be deleted")
    else:
        notes += locked_notes
    if files := _of_kind(survey, "locked-files"):
        number = files[0].numbers["directories"]
        where = counted(number, "directory", "directories")
        notes.append(f"immutable or append-only files in {where} stay")
    if subvolumes := _of_kind(survey, "subvolume-inside"):
        number = subvolumes[0].numbers["directories"]
        notes.append(
            "a btrfs subvolume inside stays"
            if number == 1
            else f"{number:,} btrfs subvolumes inside stay"
        )
    if sticky := _of_kind(survey, "sticky"):
        number = sticky[0].numbers.get("directories", len(sticky))
        where = counted(number, "sticky directory", "sticky directories")
        notes.append(f"others' entries in {where} stay")
    if survey.unreadable:
        number = survey.unreadable
        where = "a directory" if number == 1 else f"{number:,} directories"
        notes.append(f"{where} could not be read to the end: what is in them was not counted")
    for finding in _of_kind(survey, "listed-only"):
        notes.append(f"{displayable(finding.path)} is listed but cannot be examined")


def _of_kind(survey: Survey, kind: str) -> list[Finding]:
    return [finding for finding in survey.findings if finding.kind == kind]


def _roots(survey: Survey) -> tuple[str, ...]:
    return tuple(root.path for root in survey.roots) or (survey.path,)
