"""A finding: something about a directory that a person should know before deleting it."""

import enum
from dataclasses import dataclass
from typing import NewType

from tui_fs.model.paths import PathStr

FindingKind = NewType("FindingKind", str)
"""The name of a kind of finding, as in JSON; `survey.findings.registry` has all of them."""


class Severity(enum.StrEnum):
    """How much a finding matters."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something about a directory that a person should know before deleting it.

    Attributes:
        path: where it is: a directory or a file.
        numbers: by name; the name ends in the unit, or is what is counted.
        meaning, advice: sentences.
        blocks: why no deletion should begin, as a part of a sentence; empty if one may.
        remains: what a deletion leaves behind, as a part of a sentence; empty if nothing.
        lock: an adjective for a directory whose direct entries cannot be deleted; empty if they
            can.
    """

    kind: FindingKind
    severity: Severity
    path: PathStr
    numbers: dict[str, int]
    meaning: str
    advice: str
    blocks: str = ""
    remains: str = ""
    lock: str = ""
