"""Figures that this machine cannot measure, each with the reason."""

from msgspec import Struct

from tui_fs.model.compat import StrEnum


class Figure(StrEnum):
    """A figure that the kernel may hide, in words."""

    PRESSURE = "disk and processor pressure"
    DISK_BYTES = "bytes that processes read and write"
    MEMORY = "free memory"
    PROCESSES = "processes of other users"
    SWAP = "swap files"
    BOOT = "boot id"
    NAMESPACES = "uses in other mount namespaces"


class MissingFigure(Struct, frozen=True):
    """A figure that cannot be measured on this machine.

    Attributes:
        reason: in a few words, so that the sentence fits a terminal line.
    """

    figure: Figure
    reason: str

    @property
    def sentence(self) -> str:
        """Return the figure and the reason as a sentence."""
        return f"Unknown: {self.figure} ({self.reason})."


FOR_SURVEY = frozenset({Figure.PROCESSES, Figure.SWAP})
FOR_ESTIMATE = FOR_SURVEY | {Figure.MEMORY}
FOR_JOB = frozenset({Figure.PRESSURE, Figure.DISK_BYTES, Figure.BOOT})
