"""What a short look at a large tree says: figures with the range in which they lie."""

from dataclasses import dataclass, field, replace

from tui_fs.model.paths import PathStr
from tui_fs.model.survey import Survey, Totals


@dataclass(frozen=True, slots=True)
class Interval:
    """A count that is not known exactly: nine times of ten it lies between `low` and `high`."""

    low: int
    expected: int
    high: int

    @property
    def is_exact(self) -> bool:
        """Whether nothing is left open."""
        return self.low == self.high

    def is_within(self, share: float) -> bool:
        """Whether both ends lie within this share of the expected value."""
        room = share * self.expected
        return self.expected - self.low <= room and self.high - self.expected <= room


@dataclass(frozen=True, slots=True)
class Glance:
    """What is known of one or several directories after a short time.

    Attributes:
        entries: all names, the directories at the top among them, as `Totals` counts them.
        allocated_bytes: st_blocks of 512 bytes, names of one file counted once. An interval even
            where all names were read: not every file was looked at.
        is_all_read: every directory was read to its end, so `entries` and `directories` are
            exact for what could be read.
        largest_directory_entries: of the directories seen.
        samples: directories read and files looked at.
        rests_on: where the figures come from, one sentence.
        totals: expected values. The further counts are those of the same names in `Survey`;
            `max_depth` and `max_path_bytes` are the largest seen.
    """

    entries: Interval
    directories: Interval
    allocated_bytes: Interval
    elapsed_s: float
    is_all_read: bool
    largest_directory_entries: int
    samples: int
    rests_on: str
    totals: Totals = field(default_factory=Totals)
    non_empty_directories: int = 0
    parent_directories: int = 0
    directory_reads: int = 0
    non_directory_path_bytes: int = 0
    max_depth: int = 0
    max_path_bytes: int = 0
    unreadable: int = 0

    def narrowed(self, counted: int) -> "Glance":
        """Return it with what has been counted meanwhile as the least."""
        known = self.entries
        low, expected, high = (max(one, counted) for one in (known.low, known.expected, known.high))
        return replace(self, entries=Interval(low, expected, high))

    def as_survey(self, path: str) -> Survey:
        """Return the expected values as an unfinished survey, for those who forecast with one."""
        names, above_bytes = self.totals.non_directories, len(path.encode(errors="replace")) + 1
        return Survey(
            path=PathStr(path),
            totals=self.totals,
            freed_bytes_max=self.totals.allocated_bytes,
            max_depth=self.max_depth,
            max_path_bytes=self.max_path_bytes,
            max_entries_in_directory=self.largest_directory_entries,
            non_empty_directories=self.non_empty_directories,
            directory_reads=self.directory_reads,
            parent_directories=self.parent_directories,
            non_directory_path_bytes=self.non_directory_path_bytes,
            non_directory_levels=names,
            non_directory_name_bytes=max(0, self.non_directory_path_bytes - names * above_bytes),
            unreadable=self.unreadable,
            elapsed_s=self.elapsed_s,
            finished=False,
            complete=False,
            backend="glance",
            inodes=self.totals.entries,
        )
