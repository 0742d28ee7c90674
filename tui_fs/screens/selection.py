"""The directories that the user has marked, anywhere in the tree."""

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice

from msgspec import Struct
from rich.text import Text

from tui_fs.job.permission import MOST_TARGETS
from tui_fs.model.paths import PathStr, displayable, is_within, upwards
from tui_fs.model.units import bytes_iec, count, counted


class Size(Struct, frozen=True):
    """The known size of a directory.

    Attributes:
        is_whole: the numbers include everything below it; otherwise they are lower bounds.
    """

    entries: int = 1
    allocated_bytes: int = 0
    is_whole: bool = False


class Selection:
    """Marked directories, none inside another, at most as many as one job accepts.

    Args:
        refusal: a sentence with the reason why marking is not allowed; empty if it is.
    """

    def __init__(self, refusal: str = "") -> None:
        self.refusal = refusal
        self._sizes: dict[PathStr, Size] = {}
        self._totals: dict[frozenset[PathStr], Size] = {}

    def __len__(self) -> int:
        return len(self._sizes)

    def __iter__(self) -> Iterator[PathStr]:
        return iter(self._sizes)

    def __contains__(self, path: object) -> bool:
        return path in self._sizes

    def size(self, path: PathStr) -> Size | None:
        """Return the known size of a marked directory; None if it is not marked."""
        return self._sizes.get(path)

    def around(self, path: str) -> PathStr | None:
        """Return the marked directory that contains a path."""
        above = islice(upwards(path), 1, None)
        return next((PathStr(parent) for parent in above if parent in self._sizes), None)

    def toggle(self, path: PathStr, size: Size) -> str:
        """Toggle a mark; return an explanation if that is refused or replaces other marks."""
        if self.refusal:
            return self.refusal
        if path in self._sizes:
            del self._sizes[path]
            return ""
        above = self.around(path)
        if above is not None:
            return f"{displayable(above)} is marked, and this directory is inside it."
        inside = [mark for mark in self if is_within(mark, path)]
        if len(self) - len(inside) >= MOST_TARGETS:
            return f"{MOST_TARGETS:,} directories are marked, the maximum for one job."
        for mark in inside:
            del self._sizes[mark]
        self._sizes[path] = size
        if not inside:
            return ""
        return (
            "This directory contains "
            f"{counted(len(inside), 'marked directory', 'marked directories')}: "
        ) + (
            "that mark is replaced by this one."
            if len(inside) == 1
            else "those marks are replaced by this one."
        )

    def add_all(self, paths: Collection[PathStr], total: Size | None = None) -> int:
        """Mark directories up to the limit; return how many of them are marked now.

        Args:
            total: the total size of all of them, if known.
        """
        for path in paths:
            if path not in self._sizes and self.around(path) is None:
                self.toggle(path, Size())
        if total is not None:
            self._totals[frozenset(paths)] = total
        return sum(path in self._sizes for path in paths)

    def update_sizes(self, sizes: Iterable[tuple[PathStr, Size]]) -> None:
        """Replace the sizes of directories; those that are not marked are ignored."""
        for path, size in sizes:
            if path in self._sizes:
                self._sizes[path] = size

    def forget_sizes(self) -> None:
        """Forget all sizes, because other entries count from now on."""
        self._sizes = dict.fromkeys(self._sizes, Size())
        self._totals.clear()

    def remove(self, paths: Iterable[PathStr]) -> None:
        """Remove the marks of some directories."""
        for path in paths:
            self._sizes.pop(path, None)

    def clear(self) -> None:
        """Remove all marks."""
        self._sizes.clear()
        self._totals.clear()

    def _known_sizes(self) -> list[Size]:
        """Return sizes that add up to those of all marks; a known total covers its group."""
        sizes: list[Size] = []
        rest = set(self._sizes)
        for paths, total in self._totals.items():
            if paths <= rest and any(not self._sizes[path].is_whole for path in paths):
                sizes.append(total)
                rest -= paths
        return sizes + [self._sizes[path] for path in rest]

    def in_words(self, *, is_filtered: bool = False) -> str:
        """Return the number and the size of the marked directories; empty without marks.

        Args:
            is_filtered: the sizes count only what matches a filter.
        """
        if not self._sizes:
            return ""
        words = f"{count(len(self))} marked"
        sizes = self._known_sizes()
        entries = sum(size.entries for size in sizes)
        allocated_bytes = sum(size.allocated_bytes for size in sizes)
        nouns = ("match", "matches") if is_filtered else ("entry", "entries")
        contents = counted(entries, *nouns)
        if all(size.is_whole for size in sizes):
            return f"{words} · {contents} · {bytes_iec(allocated_bytes)}"
        if not allocated_bytes:
            return f"{words} · the preview counts them"
        return f"{words} · at least {contents} and {bytes_iec(allocated_bytes)}"


def marks_line(
    marks: Selection, path: str = "", *, is_filtered: bool = False, keys: str = "d previews"
) -> Text:
    """Return the marks and the keys for them; empty without any."""
    line = Text(no_wrap=True, overflow="ellipsis")
    if marks:
        line.append(f"* {marks.in_words(is_filtered=is_filtered)}", "bold")
        is_inside = path != "" and any(is_within(path, mark) for mark in marks)
        line.append(" · inside a marked directory" if is_inside else "", "bold")
        line.append(f" · {keys}", "dim")
    return line


def removed_paths(paths: Sequence[PathStr]) -> list[PathStr]:
    """Return the paths at which nothing is any more; the file system may not answer."""
    return [path for path in paths if not os.path.lexists(path)]


def toggled_pair(marked: list[str], key: str) -> list[str]:
    """Return the marks of a list in which two rows are compared; a third replaces the first."""
    if key in marked:
        return [other for other in marked if other != key]
    return [*marked[-1:], key]
