"""From a sample of directories to figures with the range in which they lie."""

import enum
import math
from dataclasses import dataclass, field

from tui_fs.model.glance import Interval

_T_95 = (6.31, 2.92, 2.35, 2.13, 2.02, 1.94, 1.90, 1.86, 1.83, 1.81)
"""Student's t with 1 to 10 degrees of freedom; one time of twenty lies above."""
_NORMAL_95 = 1.645
_MANY = 1e9
_LEAST_SPREAD = 0.006
"""What no sampling tells: names that come and go, positions that are not quite even."""
LINDY = 19.0
"""What has gone on so far goes on this many times longer in one case of twenty."""


class Sum(enum.IntEnum):
    """What is added up of directories."""

    ENTRIES = 0
    DIRECTORIES = 1
    ALLOCATED = 2
    FILES = 3
    SYMLINKS = 4
    APPARENT = 5
    ALLOCATED_BY_NAME = 6
    INODES = 7
    NON_EMPTY = 8
    PARENTS = 9
    READS = 10
    PATH_BYTES = 11
    OPEN = 12
    """Entries of which only a guess is known."""
    OPEN_DIRECTORIES = 13


INTERVALS = (Sum.ENTRIES, Sum.DIRECTORIES, Sum.ALLOCATED)
"""The sums that are told with a range."""
FURTHER = (1.0, 1.0, 2.0)
"""How much like the largest value seen may have been missed; sizes of files have long tails."""


@dataclass(slots=True)
class Sums:
    """Values of `Sum`, and the variance of those that have a range.

    Attributes:
        seen: the names, directories and bytes really met, without any guess: values at least.
        doubts: of each variance, its square by its degrees of freedom, added up (Welch and
            Satterthwaite).
        margins: what further things like the largest seen would add.
        largest_bytes: how much of the bytes allocated rests on the one file that says the most.
        files_stood_for, files_squared: for how many files each one stands that was looked at, and
            the squares of that, added up.
        is_sampled: not every directory was read.
        is_exact: nor is anything else estimated in the number of entries and directories.
    """

    values: list[float] = field(default_factory=lambda: [0.0] * len(Sum))
    variances: list[float] = field(default_factory=lambda: [0.0] * len(INTERVALS))
    doubts: list[float] = field(default_factory=lambda: [0.0] * len(INTERVALS))
    margins: list[float] = field(default_factory=lambda: [0.0] * len(INTERVALS))
    seen: list[float] = field(default_factory=lambda: [0.0] * len(INTERVALS))
    largest_bytes: float = 0.0
    files_stood_for: float = 0.0
    files_squared: float = 0.0
    is_sampled: bool = False
    is_exact: bool = True

    def has_left_out(self) -> None:
        """Say that not every directory was read."""
        self.is_sampled, self.is_exact = True, False

    def add(self, other: "Sums", weight: float = 1.0) -> None:
        """Add what `weight` times the other one is; what was seen was seen once."""
        self.values = [a + weight * b for a, b in zip(self.values, other.values, strict=True)]
        for which in range(len(INTERVALS)):
            self.variances[which] += weight**2 * other.variances[which]
            self.doubts[which] += weight**4 * other.doubts[which]
            self.margins[which] = math.hypot(self.margins[which], weight * other.margins[which])
            self.seen[which] += other.seen[which]
        self.largest_bytes = max(self.largest_bytes, weight * other.largest_bytes)
        self.files_stood_for += weight * other.files_stood_for
        self.files_squared += weight**2 * other.files_squared
        self.is_sampled = self.is_sampled or other.is_sampled
        self.is_exact = self.is_exact and other.is_exact

    def add_unknown(self, entries: float, directories: float) -> None:
        """Add directories that nobody has read: what they look like, and it may be far more."""
        # Of a directory of directories that nobody has read, its own bytes are for their names.
        each = self.values[Sum.ALLOCATED] / max(1.0, self.values[Sum.ENTRIES], directories)
        self.values[Sum.ENTRIES] += entries
        self.values[Sum.DIRECTORIES] += directories
        self.values[Sum.ALLOCATED] += entries * each
        self.values[Sum.OPEN] += entries
        self.values[Sum.OPEN_DIRECTORIES] += directories
        for which in INTERVALS:
            self.vary(which, open_of(self, which) ** 2, 1.0)
        self.has_left_out()

    def add_by_size(self, entries: float, directories: float) -> None:
        """Add directories without any in them, that nobody has read: their size tells something."""
        each = self.values[Sum.ALLOCATED] / max(1.0, self.values[Sum.ENTRIES])
        for which, value in zip(INTERVALS, (entries, directories, entries * each), strict=True):
            self.values[which] += value
            if which is not Sum.DIRECTORIES:
                self.vary(which, value * value, 3.0)
                self.margins[which] = math.hypot(self.margins[which], 2 * value)
        self.has_left_out()

    def vary(self, which: Sum, variance: float, freedom: float) -> None:
        """Add a variance and its degrees of freedom."""
        self.variances[which] += variance
        self.doubts[which] += variance * variance / freedom

    @property
    def effective_files(self) -> float:
        """As how many files drawn evenly those count that were looked at (Kish)."""
        return self.files_stood_for**2 / self.files_squared if self.files_squared else 0.0

    def freedom(self, which: Sum) -> float:
        """Return the degrees of freedom of the whole variance."""
        variance, doubt = self.variances[which], self.doubts[which]
        return variance * variance / doubt if doubt else _MANY


def interval(sums: Sums, which: Sum, cap: float = math.inf) -> Interval:
    """Return in which range a sum lies nine times of ten.

    Args:
        cap: what it certainly does not exceed.
    """
    seen, value = sums.seen[which], max(sums.values[which], sums.seen[which])
    rest = value - seen
    if rest <= 0 and not sums.variances[which]:
        return Interval(round(value), round(value), round(value))
    relative = math.sqrt(sums.variances[which]) / rest if rest else _LEAST_SPREAD
    spread = (
        math.sqrt(math.log1p(relative * relative)) * student_95(sums.freedom(which)) + _LEAST_SPREAD
    )
    # A sum of skewed things is skewed itself; in logarithms it is nearly even.
    # What was guessed too high is known no better for that: the range goes down from the cap.
    least = max(0.0, min(rest, cap - seen))
    if which is Sum.ALLOCATED:
        # What one large file that happened to be met says of others may not hold of any.
        least = max(0.0, min(least, rest - sums.largest_bytes))
    low = seen + least * math.exp(-min(spread, 50.0))
    high = seen + rest * math.exp(min(spread, 50.0)) + sums.margins[which]
    high += LINDY * open_of(sums, which)
    high = max(seen, min(high, cap))
    low = min(low, high)
    expected = min(max(value, low), high)
    return Interval(math.floor(low), round(expected), math.ceil(high))


def open_of(sums: Sums, which: Sum) -> float:
    """Return how much of a sum is a mere guess."""
    match which:
        case Sum.ENTRIES:
            return sums.values[Sum.OPEN]
        case Sum.DIRECTORIES:
            return sums.values[Sum.OPEN_DIRECTORIES]
        case _:
            share = sums.values[Sum.OPEN] / max(1.0, sums.values[Sum.ENTRIES])
            return share * sums.values[which]


def student_95(freedom: float) -> float:
    """Return what Student's t exceeds one time of twenty."""
    if freedom < 1:
        return _T_95[0]
    if freedom <= len(_T_95):
        at = int(freedom) - 1
        above = _T_95[min(at + 1, len(_T_95) - 1)]
        return _T_95[at] + (above - _T_95[at]) * (freedom - int(freedom))
    return _NORMAL_95 * (1 + 0.9 / freedom)


def freedom_of(values: list[float]) -> float:
    """Return the degrees of freedom of the variance of a sample, few if few values make it up."""
    mean = sum(values) / len(values)
    squares = [(value - mean) ** 2 for value in values]
    quartic = sum(square * square for square in squares)
    effective = sum(squares) ** 2 / quartic if quartic else _MANY
    return max(1.0, min(len(values) - 1.0, effective))
