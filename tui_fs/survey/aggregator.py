"""Add up the records of a survey: totals, a row for every directory, each inode once."""

import heapq
import os
from array import array
from collections import Counter

from tui_fs.model.paths import PathStr
from tui_fs.model.survey import Totals
from tui_fs.survey.histogram import Classes, HistogramTable
from tui_fs.survey.records import DIRECTORY_FLAGS, NO_PARENT, Batch, BigFile, DirectoryFlag, Link
from tui_fs.survey.table import NO_ROW, DirectoryTable

ROWS_LIMIT = 5_000_000
"""About 600 MB. A directory beyond the limit is counted in the row of its parent."""

BIG_FILES_KEPT = 200
ROWS_NAMED = 100
"""Directories remembered for each flag; further ones are only counted."""

_GETDENTS_BUFFER_BYTES = 32_768
"""glibc reads directories through a buffer of this size (sysdeps/unix/sysv/linux/opendir.c)."""
_DOT_RECORDS_BYTES = 48
"""The records of . and .. in every directory."""
_NOT_ENTERED = DirectoryFlag.ELSEWHERE | DirectoryFlag.VANISHED


class Aggregator:
    """Add up the records of one survey.

    Args:
        filtered: the survey has filters.
        matches_by_directory: also count in each directory what matches (`DirectoryTable.matches`),
            with 84 bytes for each.
        classes: of the histograms; None for no histogram.

    Attributes:
        classes: as given.
        histograms: of what the filters select, without filters of everything.
        vanished: names for which stat returned ENOENT.
        flagged: rows of the first `ROWS_NAMED` directories with each flag.
        flag_counts: how many directories have each flag.
        max_depth: levels of non-empty directories.
        deepest: the row of the first directory at that level.
        longest_path: the row of the directory with the longest path of an entry.
        max_entries: entries of the largest directory.
    """

    def __init__(
        self,
        filtered: bool,
        classes: Classes | None = None,
        *,
        matches_by_directory: bool = False,
    ) -> None:
        self.table = DirectoryTable()
        self.histograms = HistogramTable()
        self.classes = classes
        self.vanished = 0
        self.flagged: dict[int, list[int]] = {}
        self.flag_counts: Counter[int] = Counter()
        self.max_path_bytes = self.longest_name = 0
        self.max_depth = self.max_entries = 0
        self.deepest = self.longest_path = NO_ROW
        self.non_empty = self.reads = self.parents = 0
        self.non_directory_path_bytes = self.non_directory_name_bytes = 0
        self.non_empty_levels = self.non_directory_levels = 0
        self.top_directories = self.top_non_directories = 0
        self.bytes_linked_outside = self.names_of_links = 0
        self.big_files: list[tuple[int, int, bytes, BigFile]] = []
        self._big_files_linked: set[tuple[int, int]] = set()
        self._rows = array("i")
        self._files = self._directories = self._symlinks = self._other = 0
        self._apparent = self._allocated = self._repeats = 0
        self._links: dict[int | tuple[int, int], int] = {}
        self._device = -1
        self._is_filtered = filtered
        counts_matches = filtered and matches_by_directory
        self._matches = self.table.add_matches() if counts_matches else None
        self._matched = [0] * 5
        self._matched_links: set[tuple[int, int]] = set()

    def take(self, batch: Batch) -> None:
        """Add a batch of a walker."""
        for piece in batch.pieces:
            self._take_piece(*piece)
        self.table.forget_sums()
        self.vanished += batch.vanished
        for matched in batch.matched:
            row = self._rows[matched.directory]
            self._add_matches(row, *matched[1:6])
            if matched.newest_s and self._matches is not None:
                self._matches.add_times(row, matched.oldest_s, matched.newest_s)
        is_full = len(self.table) >= ROWS_LIMIT
        self.histograms.name_labels(batch.labels)
        self.histograms.take(batch.cells, self._rows, is_full=is_full)
        for link in batch.links:
            self._take_link(link)
        for file in batch.big_files:
            self._take_big_file(file)

    def _take_piece(
        self,
        number: int,
        parent: int,
        name: bytes,
        subdirectories: int,
        files: int,
        symlinks: int,
        other: int,
        apparent: int,
        allocated: int,
        own_bytes: int,
        own_allocated: int,
        oldest: int,
        newest: int,
        name_bytes: int,
        record_bytes: int,
        longest: int,
        pending: int,
        flags: int,
    ) -> None:
        table, rows = self.table, self._rows
        if flags & DirectoryFlag.VANISHED:
            self.vanished += 1
            table.pending[rows[parent]] -= 1
            return
        if number >= len(rows):
            rows.extend([NO_ROW] * (number + 1 - len(rows)))
        row = rows[number]
        is_first = row == NO_ROW
        if is_first:
            above = NO_ROW if parent == NO_PARENT else rows[parent]
            if above != NO_ROW and not flags & DirectoryFlag.ELSEWHERE:
                table.pending[above] -= 1
            if len(table) >= ROWS_LIMIT and above != NO_ROW:
                row = above
                table.further[row] += 1
            else:
                row = table.add(above, name)
            rows[number] = row
            self._directories += 1
            table.index_bytes[row] += own_bytes
            table.index_allocated[row] += own_allocated
            if not flags & _NOT_ENTERED:
                self.reads += 2
                table.record_bytes[row] += _DOT_RECORDS_BYTES
        had = table.entries(row)
        here = subdirectories + files + symlinks + other
        table.pending[row] += pending
        if here:
            non_directories = here - subdirectories
            table.files[row] += files
            table.symlinks[row] += symlinks
            table.other[row] += other
            table.apparent[row] += apparent
            table.allocated[row] += allocated
            if newest:
                table.add_times(row, oldest, newest)
            if subdirectories:
                self.parents += table.subdirectories[row] == 0
                table.subdirectories[row] += subdirectories
            if had == 0:
                self.non_empty += 1
                self.non_empty_levels += table.depth[row]
            read_before = table.record_bytes[row] // _GETDENTS_BUFFER_BYTES
            table.record_bytes[row] += record_bytes
            self.reads += table.record_bytes[row] // _GETDENTS_BUFFER_BYTES - read_before
            if table.depth[row] >= self.max_depth:
                self.max_depth, self.deepest = table.depth[row] + 1, row
            self.max_entries = max(self.max_entries, had + here)
            path_bytes = table.path_bytes[row]
            if path_bytes + 1 + longest > self.max_path_bytes:
                self.max_path_bytes, self.longest_path = path_bytes + 1 + longest, row
            self.longest_name = max(self.longest_name, longest)
            self.non_directory_path_bytes += name_bytes + (path_bytes + 1) * non_directories
            self.non_directory_name_bytes += name_bytes
            self.non_directory_levels += (table.depth[row] + 1) * non_directories
            if table.depth[row] == 0:
                self.top_directories += subdirectories
                self.top_non_directories += non_directories
            self._files += files
            self._symlinks += symlinks
            self._other += other
        self._apparent += apparent + own_bytes
        self._allocated += allocated + own_allocated
        if new_flags := flags & ~table.flags[row]:
            table.flags[row] |= flags
            self._note_flags(row, new_flags)

    def _note_flags(self, row: int, flags: int) -> None:
        for flag in DIRECTORY_FLAGS:
            if not flags & flag:
                continue
            self.flag_counts[flag] += 1
            named = self.flagged.setdefault(flag, [])
            if len(named) < ROWS_NAMED:
                named.append(row)

    def _take_link(self, link: Link) -> None:
        """Count an inode with several names once; keep the number of its missing names."""
        apparent, allocated = link.apparent_bytes, link.allocated_bytes
        self.names_of_links += 1
        if self._device < 0:
            self._device = link.device
        key = self._key(link.device, link.inode)
        row = self._rows[link.directory]
        missing = self._links.get(key)
        is_first = missing is None
        if missing is None:
            self._links[key] = link.names - 1
            self.bytes_linked_outside += allocated
            self._apparent += apparent
            self._allocated += allocated
            self.table.apparent[row] += apparent
            self.table.allocated[row] += allocated
        else:
            self._repeats += 1
            self.table.repeats[row] += 1
            if missing == 1:
                del self._links[key]
                self.bytes_linked_outside -= allocated
            else:
                self._links[key] = missing - 1
        if link.is_matched:
            identity = link.device, link.inode
            is_first = identity not in self._matched_links
            self._matched_links.add(identity)
            if self._matches is not None:
                self._matches.repeats[row] += not is_first
            size = (apparent, allocated) if is_first else (0, 0)
            self._add_matches(row, link.kind == 0, link.kind == 1, link.kind == 2, *size)
        if self.classes is not None and is_first and (link.is_matched or not self._is_filtered):
            classes = self.classes.of_time(link.modified_s), self.classes.of_size(apparent)
            for class_ in (*classes, *filter(None, (link.suffix, link.owner))):
                self.histograms.add(row, class_, 0, allocated)

    def _add_matches(
        self, row: int, files: int, symlinks: int, other: int, apparent: int, allocated: int
    ) -> None:
        if (table := self._matches) is not None:
            table.files[row] += files
            table.symlinks[row] += symlinks
            table.other[row] += other
            table.apparent[row] += apparent
            table.allocated[row] += allocated
        numbers = files, symlinks, other, apparent, allocated
        self._matched = [sum(both) for both in zip(self._matched, numbers, strict=True)]

    def _take_big_file(self, file: BigFile) -> None:
        if file.inode:
            identity = (file.device, file.inode)
            if identity in self._big_files_linked:
                return  # reported under another of its names
            self._big_files_linked.add(identity)
        row = self._rows[file.directory]
        heapq.heappush(self.big_files, (file.apparent_bytes, row, file.name, file))
        if len(self.big_files) > BIG_FILES_KEPT:
            heapq.heappop(self.big_files)

    @property
    def totals(self) -> Totals:
        """The totals so far, with each inode counted once."""
        return Totals(
            self._files,
            self._directories,
            self._symlinks,
            self._other,
            self._apparent,
            self._allocated,
        )

    @property
    def inodes(self) -> int:
        """Distinct inodes among the entries."""
        return self.totals.entries - self._repeats

    @property
    def repeats(self) -> int:
        """Names whose inode was already counted under another name."""
        return self._repeats

    def is_linked_outside(self, device: int, inode: int) -> bool:
        """Return whether an inode has names that the survey has not seen."""
        return self._key(device, inode) in self._links

    def _key(self, device: int, inode: int) -> int | tuple[int, int]:
        return inode if device == self._device else (device, inode)

    @property
    def linked_outside(self) -> int:
        """Inodes that have names which the survey has not seen."""
        return len(self._links)

    @property
    def matched(self) -> Totals | None:
        """Totals of the entries that the filters select; None without filters."""
        if not self._is_filtered:
            return None
        files, symlinks, other, apparent, allocated = self._matched
        return Totals(files, 0, symlinks, other, apparent, allocated)

    @property
    def unreadable(self) -> int:
        """Directories that could not be read to their end."""
        return self.flag_counts[DirectoryFlag.UNREADABLE]

    def paths_with(self, flag: int, number: int = ROWS_NAMED) -> list[PathStr]:
        """Return the first directories with a flag."""
        return [self.table.path(row) for row in self.flagged.get(flag, [])[:number]]

    def big_files_in(self, row: int) -> list[BigFile]:
        """Return the large files of one directory that were kept."""
        return [file for _, its_row, _, file in self.big_files if its_row == row]

    def largest_files_below(self, row: int, number: int) -> list[tuple[int, PathStr]]:
        """Return apparent sizes and paths of the largest files below a directory that were kept."""
        is_inside = self.table.rows_below(row)
        largest = sorted(self.big_files, reverse=True)
        below = [(size, at, name) for size, at, name, _ in largest if is_inside[at]]
        return [(size, self.path_of_file(at, name)) for size, at, name in below[:number]]

    def path_of_file(self, row: int, name: bytes) -> PathStr:
        """Return the path of a file in a directory."""
        return PathStr(os.path.join(self.table.path(row), os.fsdecode(name)))

    def free_numbers(self) -> None:
        """Free the tables that are needed only while records arrive."""
        self._rows = array("i")
