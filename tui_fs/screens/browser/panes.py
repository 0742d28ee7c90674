"""The browser's panes beside the table, from 110 and from 160 columns on.

They show the highlighted directory, or the directory that is shown if the cursor is on a file.
"""

import os
from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Static

from tui_fs.model.finding import Finding
from tui_fs.model.paths import PathStr, displayable, is_within
from tui_fs.model.survey import (
    Bin,
    Child,
    Details,
    EntryKind,
    Histograms,
    Listing,
    Order,
    OwnerSum,
    Sorting,
    SuffixSum,
    Totals,
)
from tui_fs.model.units import bytes_iec, count, counted, short_count
from tui_fs.screens.base import muted, shown_below
from tui_fs.screens.browser.details import SEVERITY_SIGNS
from tui_fs.survey.findings.registry import FINDING_TYPES
from tui_fs.survey.histogram import OLD_DAYS, SHORT_AGE_LABELS, SHORT_SIZE_LABELS
from tui_fs.widgets.cell_drawing import eighth_blocks, fit_cells, fit_end
from tui_fs.widgets.figure_layout import Line
from tui_fs.widgets.fitted_lines import FittedLines
from tui_fs.widgets.treemap import Part, Treemap

_DAY_S = 86_400
_BY_ENTRIES = (Sorting.ENTRIES, Sorting.INODES)
_DRAWN = 80
_LABEL, _BYTES, _COUNT = 9, 11, 6
_SUFFIXES, _OWNERS = 4, 4


def details_lines(
    path: PathStr,
    totals: Totals,
    details: Details | None,
    findings: Sequence[Finding],
    width: int,
    height: int,
    *,
    is_complete: bool,
    is_filtered: bool,
) -> list[Line]:
    """Return the details of a directory; sections that do not fit are left out, the last first."""
    growing = "" if is_complete else "~"
    sections = [_head(path, totals, width, growing, is_filtered=is_filtered)]
    if details is None:
        sections.append([(("muted", "not counted yet"),)])
    elif details.histograms is None:
        words = "r counts ages and sizes", "of everything"
        sections.append([(("muted", fit_cells(line, width)),) for line in words])
    elif any(each.entries for each in details.histograms.sizes):
        sections += _histograms(details.histograms, width, growing)
    sections.append(_findings(findings, path, width))
    largest = _largest(details, path, width) if details is not None else []
    if details is not None and details.histograms is not None:
        suffixes, owners = _suffixes_and_owners(details.histograms, width, growing)
        sections += [suffixes, largest, owners]
    else:
        sections.append(largest)
    lines = sections[0][:height]
    for section in filter(None, sections[1:]):
        room = height - len(lines) - 1
        # The list of files may be cut.
        if len(section) <= room or (section is largest and room > 1):
            lines += [(("", ""),), *section[:room]]
    return lines


def _head(
    path: PathStr, totals: Totals, width: int, growing: str, *, is_filtered: bool
) -> list[Line]:
    name = displayable(os.path.basename(path) or path)
    kinds = [
        (totals.files, "file", "files"),
        (totals.symlinks, "link", "links"),
        (totals.other, "other", "other"),
    ]
    if not is_filtered:  # a filter selects no directories
        kinds.insert(1, (totals.directories, "directory", "directories"))
    words = [growing + counted(*kind) for kind in kinds if kind[0]] or ["nothing"]
    lines: list[Line] = [(("strong", fit_end(f"{name}/", width)),)]
    line = ""
    for word in words:
        if line and len(line) + 3 + len(word) > width:
            lines.append((("", line),))
            line = ""
        line += f" · {word}" if line else word
    lines.append((("", line),))
    sizes = (
        f"{growing}{bytes_iec(totals.allocated_bytes)} allocated",
        f"{growing}{bytes_iec(totals.apparent_bytes)} apparent",
    )
    both = ", ".join(sizes)
    lines += [(("", words),) for words in ((both,) if len(both) <= width else sizes)]
    if is_filtered:
        lines.append((("muted", "only what matches the filter"),))
    return lines


def _histograms(histograms: Histograms, width: int, growing: str) -> list[list[Line]]:
    sections: list[list[Line]] = []
    if histograms.ages:
        entries, old_bytes = histograms.older_than(OLD_DAYS)
        all_bytes = sum(age.allocated_bytes for age in histograms.ages)
        share = f" ({100 * old_bytes / all_bytes:.0f} %)" if all_bytes else ""
        noun = "file" if entries == 1 else "files"
        old = f"  {growing}{bytes_iec(old_bytes)}{share}, {growing}{short_count(entries)} {noun}"
        sections.append(
            [
                _titles("last change", width, growing),
                *_bars(SHORT_AGE_LABELS, histograms.ages, width),
                (("", f"older than {OLD_DAYS} days:"),),
                (("strong", old),),
            ]
        )
    sections.append(
        [
            _titles("apparent size", width, growing),
            *_bars(SHORT_SIZE_LABELS, histograms.sizes, width),
        ]
    )
    return sections


def _suffixes_and_owners(
    histograms: Histograms, width: int, growing: str
) -> tuple[list[Line], list[Line]]:
    """Return the suffixes with most bytes, and the owners if there are several."""
    whole = histograms.sizes
    suffixes, owners = histograms.suffixes[:_SUFFIXES], histograms.owners[:_OWNERS]
    labels = [f".{each.suffix}" for each in suffixes]
    names = [fit_end(displayable(each.name), _LABEL) for each in owners]
    by_suffix = [_titles("suffix", width, growing), *_bars(labels, suffixes, width, whole)]
    by_owner = [_titles("owner", width, growing), *_bars(names, owners, width, whole)]
    return by_suffix if suffixes else [], by_owner if len(owners) > 1 else []


def _titles(title: str, width: int, growing: str) -> Line:
    """Return the titles above bars; those of numbers that still grow are marked."""
    numbers = f" {growing + 'allocated':>{_BYTES}} {growing + 'files':>{_COUNT + 1}}"
    return (("muted", fit_cells(title, width - len(numbers)) + numbers),)


def _bars(
    labels: Sequence[str],
    bins: Sequence[Bin | SuffixSum | OwnerSum],
    width: int,
    whole: Sequence[Bin] = (),
) -> list[Line]:
    """Return a bar for each label: its share of the bytes, or of the entries if none has bytes.

    Args:
        whole: the classes whose sum is the whole; `bins` by default.
    """
    all_bytes = sum(each.allocated_bytes for each in whole or bins)
    all_entries = max(1, sum(each.entries for each in whole or bins))
    length = width - _LABEL - _BYTES - _COUNT - 4
    lines: list[Line] = []
    for label, each in zip(labels, bins, strict=True):
        share = each.allocated_bytes / all_bytes if all_bytes else each.entries / all_entries
        bar = eighth_blocks(share, length)
        numbers = f" {bytes_iec(each.allocated_bytes):>{_BYTES}} {short_count(each.entries):>7}"
        tone = "" if each.entries else "faint"
        lines.append(
            ((tone, f"{label:<{_LABEL}} "), ("bar", fit_cells(bar, length)), (tone, numbers))
        )
    return lines


def _findings(findings: Sequence[Finding], path: PathStr, width: int) -> list[Line]:
    inside = [finding for finding in findings if is_within(finding.path, path)]
    if not inside:
        return []
    lines: list[Line] = [(("muted", f"findings ({count(len(inside))})"),)]
    for finding in inside[:4]:
        sign, label = (
            SEVERITY_SIGNS[finding.severity],
            FINDING_TYPES[finding.kind].label_of(finding),
        )
        head = f"{sign} {label} "
        place = fit_end(shown_below(finding.path, path), max(0, width - len(head)))
        lines.append((("", fit_cells(head, min(width, len(head)))), ("muted", place)))
    return lines


def _largest(details: Details, path: PathStr, width: int) -> list[Line]:
    if not details.largest_files:
        return []
    lines: list[Line] = [(("muted", "largest files, apparent size"),)]
    for size, file in details.largest_files:
        name = fit_end(shown_below(file, path), width - _BYTES - 1)
        lines.append((("", f"{bytes_iec(size):>{_BYTES}} "), ("", name)))
    return lines


def treemap_parts(listing: Listing, order: Order, now_s: float) -> tuple[Part, ...]:
    """Return the entries of a directory as parts of a treemap, in the unit of the order."""
    by_entries = order.sorting in _BY_ENTRIES

    def value(child: Child) -> int:
        return child.totals.entries if by_entries else child.totals.allocated_bytes

    def words(number: int) -> str:
        return count(number) if by_entries else bytes_iec(number)

    def part(child: Child) -> Part:
        return Part(
            child.name,
            displayable(child.name) + ("/" if child.kind is EntryKind.DIRECTORY else ""),
            value(child),
            words(value(child)),
            _tone(child, now_s),
            tuple(map(part, child.inside)),
        )

    children = sorted(listing.children, key=value, reverse=True)[:_DRAWN]
    parts = [part(child) for child in children]
    whole = listing.totals.entries if by_entries else listing.totals.allocated_bytes
    rest = whole - sum(map(value, children))
    if by_entries and listing.totals.directories:
        rest -= 1  # the directory itself; a filter selects none
    if rest > 0 and parts:
        parts.append(Part("/rest", "the rest", rest, words(rest), "rest"))
    return tuple(parts)


def _tone(child: Child, now_s: float) -> str:
    is_old = child.newest_s is not None and now_s - child.newest_s >= OLD_DAYS * _DAY_S
    return "old" if is_old else "recent"


class DetailsPane(FittedLines):
    """Details of one directory, as many as its height has room for."""

    DEFAULT_CSS = "DetailsPane { height: 1fr; }"


class TreemapPane(Vertical):
    """The treemap of the shown directory below its title."""

    def __init__(self) -> None:
        super().__init__(id="treemap-pane")
        self.treemap = Treemap(id="treemap")

    def compose(self) -> ComposeResult:
        """Lay out the title above the map."""
        yield Static("", id="treemap-title", markup=False)
        yield self.treemap

    def show(self, listing: Listing, order: Order, now_s: float) -> None:
        """Show a directory."""
        self.treemap.parts = treemap_parts(listing, order, now_s)
        by = "entries" if order.sorting in _BY_ENTRIES else "allocated"
        title = muted(by)
        if self.treemap.has_old:
            title.append(" · ")
            # A dimmed filling looks like another one.
            title.append(self.treemap.old_sign, "not dim" if self.treemap.is_plain else "")
            title.append(f" nothing newer than {OLD_DAYS} days")
        self.query_one("#treemap-title", Static).update(title, layout=False)

    def clear(self) -> None:
        """Show nothing."""
        self.treemap.parts = ()
