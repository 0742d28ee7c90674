"""A finding: a detected problem of a directory that matters for its deletion."""

from typing import NewType

from msgspec import Struct

from tui_fs.model.codec import Argvs
from tui_fs.model.compat import StrEnum
from tui_fs.model.paths import PathStr

FindingKind = NewType("FindingKind", str)
"""The name of a kind of finding, as in JSON; `survey.findings.registry` has all of them."""


class Severity(StrEnum):
    """The severity of a finding."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


class Finding(Struct, frozen=True):
    """A detected problem of a directory that matters for its deletion.

    Attributes:
        path: the directory or file concerned.
        numbers: by name; the name ends in the unit, or names the counted objects.
        meaning, advice: sentences.
        blocks: why a deletion should not start, as a part of a sentence; empty if it may.
        remains: what a deletion leaves behind, as a part of a sentence; may be empty.
        lock: an adjective for a directory whose direct entries cannot be deleted; empty if they
            can.
        command: the command line that the advice names; empty if it names none to run as it is.
        note: something else to know before a deletion, as a part of a sentence; may be empty.
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
    note: str = ""
    command: Argvs = ()
