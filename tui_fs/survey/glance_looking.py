"""Looks at single directories of a glanced tree, and at all below one of them by a sample."""

import os
import random
import stat
from collections.abc import Callable, Iterable
from functools import partial

from tui_fs.survey.glance_directory import (
    DirectoryReading,
    Reading,
    guessed_entries,
    subdirectories_of,
)
from tui_fs.survey.glance_statistics import FURTHER, Sum, Sums, freedom_of
from tui_fs.survey.glance_strata import by_kind
from tui_fs.survey.glance_tree import Elsewhere, Node, Root, Ways
from tui_fs.survey.glance_warming import Warming

BLOCK_BYTES = 512
_DOT_RECORDS_BYTES = 48
_BUFFER_BYTES = 32_768
_FILES_LOOKED_AT = 4_000
_FILES_AT_ONCE = 256
_FILES_SHARE = 0.3
"""Until when of the time for a figure so many are looked at."""
_FILES_LOOKED_AT_LEAST, _FILES_LOOKED_AT_LATER = 4, 256
_FIRST_DIRECTORIES = 3
_CHILDREN_LOOKED_AT = 64
_READ_WHOLE = 16
"""Below a directory of a sample so many are read before only one of several is followed."""
_READS_FINE = 48
"""After so many below one directory others have their turn: it is sampled ever more coarsely."""
_READ_AT_MOST = 1_000
_ALL_OF = 3
_WINDOWS_FREEDOM = 20.0

Name = tuple[int, bytes]
"""A name with its inode: looked at in the order of inodes they lie together on the disk."""


class Looking:
    """What may be done with a directory, while there is time.

    Args:
        is_over: whether this share of the time for a figure has passed.

    Attributes:
        directories_read, files_looked_at: how many so far.
        files_linked: of the files, those with further names.
        largest: entries of the largest directory.
        max_depth, max_path_bytes: of what was met.
        unreadable: directories that could not be read.
    """

    def __init__(
        self, roots: Iterable[Root], dice: random.Random, is_over: Callable[[float], bool]
    ) -> None:
        self.ways = Ways(roots)
        self.warming = Warming(partial(is_over, 1.0))
        self.directories_read = self.files_looked_at = self.files_linked = 0
        self.largest = self.max_depth = self.max_path_bytes = self.unreadable = 0
        self._dice = dice
        self._is_over = is_over
        self._names_met = 0.0
        self._grains = dice.random()
        self._readings: dict[str, DirectoryReading] = {}

    def read(
        self, node: Node, wants_all: Callable[[], bool] = lambda: False
    ) -> tuple[Sums, Reading]:
        """Read a directory and look at some of its files.

        Returns:
            What it adds without its subdirectories, and what was read.
        """
        sums = Sums()
        try:
            descriptor, status = self.ways.open(node)
            if node.root.family not in self._readings:
                self._readings[node.root.family] = DirectoryReading(
                    node.root.family, self._dice, partial(self._is_over, 1.0)
                )
            reading = self._readings[node.root.family].read(descriptor, status, wants_all)
        except Elsewhere:
            _count_closed(sums)
            return sums, Reading()
        except PermissionError:
            self.unreadable += 1
            _count_closed(sums)
            return sums, Reading()
        except (FileNotFoundError, NotADirectoryError):
            return sums, Reading()
        except OSError:  # a loop, a stale handle, a damaged block
            self.unreadable += 1
            _count_closed(sums)
            return sums, Reading()
        covered = _leave_out_mounts(node, reading) if node.root.mounts else 0
        self.directories_read += 1
        self.largest = max(self.largest, round(reading.entries) + covered)
        self._count(sums, node, status, reading)
        for _ in range(covered):
            closed = Sums()
            _count_closed(closed)
            sums.add(closed)
        self._look_at_files(sums, descriptor, reading)
        return sums, reading

    def below(self, node: Node, grain: float) -> Sums:
        """Return a directory with everything below it, estimated where there is much.

        Args:
            grain: of about so many entries one directory is read.
        """
        whole, read_before = Sums(), self.directories_read
        waiting = [(node, 1.0)]
        while waiting:
            each, weight = waiting.pop()
            read = self.directories_read - read_before
            if read and (self._is_over(1.0) or read >= _READ_AT_MOST):
                give_up(whole, [(each, weight), *waiting])
                break
            sums, reading = self.read(each)
            whole.add(sums, weight)
            if reading.directories <= 0.5:
                continue
            names = [(one.inode, one.name) for one in reading.subdirectories]
            chosen = self._dice.sample(names, min(len(names), _CHILDREN_LOOKED_AT))
            children, _ = self.look(each, chosen, whole, weight)
            if not children:
                if reading.directories > len(names) + 0.5:
                    give_up(whole, [(each, weight * reading.directories)])
                continue
            scale = weight * max(1.0, reading.directories / max(1, len(chosen)))
            if scale > weight:
                whole.has_left_out()
            # The only way is not left to chance: what is below it would be missed altogether.
            is_only_way = not waiting and len(children) == 1
            takes = _ALL_OF if read < _READ_WHOLE or is_only_way else 0
            for group in by_kind(children):
                if len(group) <= takes:
                    waiting += [(child, scale) for child in group]
                else:
                    coarser = grain * (1.0 + (read / _READS_FINE) ** 2)
                    waiting += self._chosen(group, scale, coarser, whole)
        return whole

    def read_ahead(self, nodes: list[Node]) -> None:
        """Have the disk read directories at once that will be read one after another."""
        if not self.warming.is_cold:
            return
        directories: list[tuple[int, bytes]] = []
        for node in nodes:
            if node.above is not None:
                try:
                    above, _ = self.ways.open(node.above)
                except OSError:
                    continue  # gone meanwhile; nothing to read ahead
                directories.append((os.dup(above), node.name))
        self.warming.read_ahead(directories)

    def close(self) -> None:
        """End the threads and give back all descriptors."""
        self.warming.close()
        self.ways.close()

    def _chosen(
        self, group: list[Node], weight: float, grain: float, whole: Sums
    ) -> list[tuple[Node, float]]:
        """Choose one directory for every `grain` of entries expected, with its new weight.

        What is left of a grain is kept for the next choice, here or elsewhere in the tree. So
        all over the tree those that stand for much are read, and few of those that do not.
        """
        chosen: list[tuple[Node, float]] = []
        self._dice.shuffle(group)
        for child in group:
            chance = min(1.0, weight * child.guess / grain)
            self._grains += chance
            if chance < 1.0:
                whole.has_left_out()
            if self._grains >= 1.0:
                self._grains -= 1.0
                chosen.append((child, weight / chance))
        return chosen

    def look(
        self, node: Node, names: list[Name], sums: Sums, weight: float = 1.0
    ) -> tuple[list[Node], int]:
        """Look at some subdirectories from outside.

        Args:
            sums: takes those that are not to be entered.

        Returns:
            Those to enter, and how many of the names (the lowest inodes) were looked at.
        """
        nodes: list[Node] = []
        try:
            descriptor, _ = self.ways.open(node)
        except OSError:
            return nodes, len(names)
        answers = self.warming.stat(descriptor, [name for _, name in sorted(names)])
        for name, status in answers:
            if status is None:
                continue  # gone meanwhile
            child = Node(node.root, name, node, node.depth + 1, node.path_bytes + 1 + len(name))
            if status.st_dev != node.root.device or not stat.S_ISDIR(status.st_mode):
                closed = Sums()
                _count_closed(closed, stat.S_ISDIR(status.st_mode))
                sums.add(closed, weight)
                continue
            child.size_bytes, child.links = status.st_size, status.st_nlink
            told = subdirectories_of(node.root.family, status)
            own = guessed_entries(node.root.family, status.st_size)
            child.guess = 1.0 + own + 10.0 * (told or 0)
            nodes.append(child)
        return nodes, len(answers)

    def _count(self, sums: Sums, node: Node, status: os.stat_result, reading: Reading) -> None:
        others = max(0.0, reading.entries - reading.directories)
        values = sums.values
        values[Sum.ENTRIES] = 1.0 + others
        values[Sum.DIRECTORIES] = 1.0
        values[Sum.FILES], values[Sum.SYMLINKS] = reading.files, reading.symlinks
        values[Sum.ALLOCATED] = values[Sum.ALLOCATED_BY_NAME] = status.st_blocks * BLOCK_BYTES
        values[Sum.APPARENT] = status.st_size
        values[Sum.INODES] = 1.0
        values[Sum.NON_EMPTY] = float(reading.entries > 0)
        values[Sum.PARENTS] = float(reading.directories > 0)
        buffers = (_DOT_RECORDS_BYTES + reading.record_bytes * reading.entries) // _BUFFER_BYTES
        values[Sum.READS] = 2.0 + buffers
        values[Sum.PATH_BYTES] = others * (node.path_bytes + 1 + reading.name_bytes)
        values[Sum.OPEN] = reading.open_entries
        sums.vary(Sum.ENTRIES, reading.variance, _WINDOWS_FREEDOM)
        sums.vary(Sum.DIRECTORIES, reading.directories_variance, _WINDOWS_FREEDOM)
        sums.is_exact = reading.is_read_to_end
        known = len(reading.others) if reading.is_read_to_end else min(others, len(reading.others))
        sums.seen = [1.0 + known, 1.0, values[Sum.ALLOCATED]]
        if reading.entries > 0:
            self.max_depth = max(self.max_depth, node.depth + 1)
        longest = max((len(one.name) for one in reading.others), default=-1)
        self.max_path_bytes = max(self.max_path_bytes, node.path_bytes + 1 + longest)

    def _look_at_files(self, sums: Sums, descriptor: int, reading: Reading) -> None:
        """Estimate the bytes of a directory's files from some of them."""
        others = reading.entries - reading.directories
        # Where most of the names are, there most of the bytes may be.
        self._names_met += others
        share = others / max(1.0, self._names_met)
        wanted = max(_FILES_LOOKED_AT_LEAST, round(_FILES_LOOKED_AT * share))
        if self.directories_read > _FIRST_DIRECTORIES:
            wanted = min(wanted, _FILES_LOOKED_AT_LATER)
        chosen = self._dice.sample(reading.others, min(len(reading.others), wanted))
        until = _FILES_SHARE if self.directories_read <= _FIRST_DIRECTORIES else 1.0
        is_over = partial(self._is_over, until)
        # In parts drawn at random, each in the order of inodes: the time may end between them.
        found: list[os.stat_result] = []
        for at in range(0, len(chosen), _FILES_AT_ONCE):
            if found and is_over():
                break
            part = sorted(chosen[at : at + _FILES_AT_ONCE], key=lambda one: one.inode)
            answers = self.warming.stat(descriptor, [one.name for one in part], is_over)
            found += [status for _, status in answers if status is not None]
        if not found or others <= 0:
            return
        self.files_looked_at += len(found)
        self.files_linked += sum(one.st_nlink > 1 for one in found)
        number = len(found)
        by_name = [one.st_blocks * BLOCK_BYTES for one in found]
        once = [bytes_ / max(1, one.st_nlink) for bytes_, one in zip(by_name, found, strict=True)]
        mean = sum(once) / number
        sums.values[Sum.ALLOCATED] += others * mean
        sums.seen[Sum.ALLOCATED] += sum(once)
        sums.largest_bytes = others * max(once) / number
        sums.files_stood_for, sums.files_squared = others, others * others / number
        sums.values[Sum.ALLOCATED_BY_NAME] += others * sum(by_name) / number
        apparent = [one.st_size / max(1, one.st_nlink) for one in found]
        sums.values[Sum.APPARENT] += others * sum(apparent) / number
        sums.values[Sum.INODES] += others * sum(1 / max(1, one.st_nlink) for one in found) / number
        left = max(0.0, 1 - number / others)
        squares = sum((one - mean) ** 2 for one in once) if number > 1 else mean * mean
        spread = squares / max(1, number - 1)
        variance = others * others * left * spread / number
        sums.vary(Sum.ALLOCATED, variance, freedom_of(once))
        sums.margins[Sum.ALLOCATED] = (
            left * others * max(once) / (number + 1) * FURTHER[Sum.ALLOCATED]
        )


def _leave_out_mounts(node: Node, reading: Reading) -> int:
    """Take out what something is mounted on, be it of the same file system; say how many."""
    path = node.path.rstrip(b"/") + b"/"
    inside = [one for one in reading.subdirectories if path + one.name not in node.root.mounts]
    covered = len(reading.subdirectories) - len(inside)
    reading.subdirectories = inside
    reading.directories -= covered
    reading.entries -= covered
    return covered


def give_up(whole: Sums, nodes: list[tuple[Node, float]]) -> None:
    """Count directories, with their weights, for which there is no time.

    As much as they look like; but a way that has gone on for long may go on as long again: below
    the directory that is looked at, and from the top if it is the only one.
    """
    (first, weight), *others = nodes
    way = first.depth if not others and weight == 1.0 else 0
    entries = sum(weight * node.guess for node, weight in nodes)
    directories = sum(weight for _, weight in nodes)
    whole.add_unknown(
        max(entries, whole.values[Sum.ENTRIES], way),
        max(directories, whole.values[Sum.DIRECTORIES], way),
    )


def _count_closed(sums: Sums, is_directory: bool = True) -> None:
    """Count a directory of which nothing but its name is known."""
    sums.values[Sum.ENTRIES] = sums.seen[Sum.ENTRIES] = 1.0
    if is_directory:
        sums.values[Sum.DIRECTORIES] = sums.seen[Sum.DIRECTORIES] = 1.0
        sums.values[Sum.READS] = 2.0
    sums.values[Sum.INODES] = 1.0
