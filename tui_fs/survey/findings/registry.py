"""The registry of all kinds of findings. A new kind needs an entry here and a detector."""

from collections.abc import Iterable, Mapping

from tui_fs.model.finding import Finding, FindingKind, Severity
from tui_fs.model.survey import Survey
from tui_fs.survey.findings import activity, barriers, shape, space
from tui_fs.survey.findings.base import Evidence, FindingType
from tui_fs.survey.findings.listed_only import LISTED_ONLY
from tui_fs.survey.findings.one_step import ONE_STEP_DELETION

_ALL = (
    barriers.MOUNT_INSIDE,
    barriers.USED_ELSEWHERE,
    barriers.SUBVOLUME_INSIDE,
    barriers.IMMUTABLE,
    barriers.APPEND_ONLY,
    barriers.LOCKED_FILES,
    barriers.UNREADABLE,
    barriers.UNWRITABLE,
    barriers.STICKY,
    activity.REFILLED,
    shape.FLAT,
    barriers.WRITABLE_BY_OTHERS,
    shape.DEEP,
    shape.LONG_NAMES,
    shape.EMPTIED,
    shape.MANY_SUBDIRECTORIES,
    space.HARD_LINKS,
    space.SMALL_FILE_WASTE,
    space.SPARSE,
    shape.FOREIGN_OWNERS,
    shape.WEIRD_NAMES,
    shape.GROUP,
    space.INODES_LOW,
    space.SPACE_LOW,
    activity.IN_USE,
    space.DELETED_BUT_OPEN,
    space.FRAGMENTED,
    space.LOWER_LAYER,
    LISTED_ONLY,
    space.SHARED_BLOCKS,
    space.FREED_LATER,
    ONE_STEP_DELETION,
    shape.LEFT_OUT,
)
"""Findings of equal severity keep this order."""

FINDING_TYPES: Mapping[FindingKind, FindingType] = {entry.kind: entry for entry in _ALL}

_ORDER = {Severity.CRITICAL: 0, Severity.WARNING: 1, Severity.INFO: 2}


def detect_findings(evidence: Evidence) -> tuple[Finding, ...]:
    """Return all findings, the most severe first."""
    findings = [finding for entry in _ALL for finding in entry.detect(evidence)]
    return by_severity(findings)


def activity_in(survey: Survey) -> list[Finding]:
    """Return what others do in the counted directories, which is said before a deletion."""
    return [each for each in survey.findings if FINDING_TYPES[each.kind].is_activity]


def by_severity(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings, the most severe first; equal ones keep their order."""
    return tuple(sorted(findings, key=lambda finding: _ORDER[finding.severity]))
