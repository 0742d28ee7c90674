"""The estimate of a large tree by sampling, before the survey has finished."""

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from tui_fs.model.survey import Survey, Totals


def rounded(number: int, digits: int = 3) -> int:
    """Round to three digits, because more would suggest an exact number."""
    return round(number, digits - len(str(number))) if number else 0


class Interval(Struct, frozen=True):
    """An estimated number: in nine of ten trees it is between `low` and `high`."""

    low: int
    expected: int
    high: int

    @property
    def is_exact(self) -> bool:
        """Whether only one number is possible."""
        return self.low == self.high

    def in_words(self, text_of: Callable[[int], str]) -> str:
        """Return the range, rounded: ``1,180,000 to 1,230,000``."""
        return f"{text_of(rounded(self.low))} to {text_of(rounded(self.high))}"

    def at_least(self, number: int) -> "Interval":
        """Return the interval with a number that has been counted as its lower bound."""
        return Interval(*(max(end, number) for end in (self.low, self.expected, self.high)))

    def is_within(self, share: float) -> bool:
        """Return whether both ends differ from the expected value by at most this share."""
        margin = share * self.expected
        return self.expected - self.low <= margin and self.high - self.expected <= margin


class QuickEstimate(Struct, frozen=True):
    """An estimate of one or several directories and everything below them.

    Attributes:
        entries: all names including the top directories, as in `Totals`.
        allocated_bytes: st_blocks of 512 bytes, with each inode counted once. This is an interval
            even if all names were read, because not every file was examined.
        is_complete: every directory was read to its end, so `entries` and `directories` are
            exact for the readable directories.
        samples: number of directories read and files examined.
        basis: the source of the figures, as one sentence.
        survey: the expected values as an unfinished survey, for cost predictions. All entries
            other than directories count as files; `max_depth`, `max_path_bytes` and
            `max_entries_in_directory` are the largest values seen.
    """

    entries: Interval
    directories: Interval
    allocated_bytes: Interval
    elapsed_s: float
    is_complete: bool
    samples: int
    basis: str
    survey: Survey

    def with_counted(self, totals: Totals) -> "QuickEstimate":
        """Return the estimate with what a survey has counted so far as a lower bound."""
        return replace(
            self,
            entries=self.entries.at_least(totals.entries),
            allocated_bytes=self.allocated_bytes.at_least(totals.allocated_bytes),
        )
