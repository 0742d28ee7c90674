"""The browser's lines of text: the file system, the counts, the highlighted finding."""

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from tui_fs.linux.filesystem import FileSystem
from tui_fs.model.finding import Finding, Severity
from tui_fs.model.paths import displayable, is_within
from tui_fs.model.survey import EntryKind, Listing, Order, Survey
from tui_fs.model.units import bytes_iec, count, counted, short_count
from tui_fs.screens.base import LinePart, fitted_line, muted, shown_below
from tui_fs.widgets.cell_drawing import dots

SEVERITY_SIGNS = {Severity.CRITICAL: "!!", Severity.WARNING: "!", Severity.INFO: "i"}

NEARLY_FULL = 0.95
_SHOWN_AGE_S = 60


def place_note(filesystem: FileSystem) -> Text:
    """Return type, source, free space and free inodes; a nearly exhausted one is marked with !."""
    source = displayable(filesystem.source)
    note = Text(f"{filesystem.kind} on {source}" if source.startswith("/") else filesystem.kind)
    if filesystem.is_read_only:
        note.append(" · read-only !", "bold")
    available = filesystem.available_bytes
    if available is None or filesystem.used_share is None:
        note.append(" · free space not known", "dim")
        return note
    _append_free(note, f"{bytes_iec(available)} free", filesystem.used_share)
    if filesystem.used_inodes_share is not None and filesystem.free_inodes is not None:
        noun = "inode" if filesystem.free_inodes == 1 else "inodes"
        words = f"{short_count(filesystem.free_inodes)} {noun} free"
        _append_free(note, words, filesystem.used_inodes_share)
    return note


def _append_free(note: Text, words: str, used: float) -> None:
    note.append(" · ", "dim")
    note.append(words, "bold" if used >= NEARLY_FULL else "")
    if used >= NEARLY_FULL:
        note.append(" !", "bold")


def totals_line(
    survey: Survey,
    listing: Listing,
    order: Order,
    *,
    is_paused: bool,
    since_finished_s: float,
    is_imported: bool,
    room: int,
    is_filtered: bool = False,
) -> Text:
    """Return the totals of the shown directory, and the progress of counting and sorting.

    Args:
        room: cells; parts that do not fit are left out, the least important first.
        is_filtered: the listing counts only what matches the filter.
    """
    totals, is_sorted = listing.totals, listing.is_sorted(order)
    state = "paused" if is_paused else "reading" if is_imported else "counting"
    growing = "" if listing.complete or survey.finished else "~"
    nouns = ("file", "files") if is_filtered else ("entry", "entries")
    parts: list[LinePart] = []
    if not survey.finished and not listing.complete:
        parts.append((0, f"{state}  ", "bold" if is_paused else "dim"))
    parts += [
        (0, "matches " if is_filtered else "", "bold"),
        (0, growing + count(totals.entries), "bold"),
        (0, f" {nouns[totals.entries != 1]}", ""),
    ]
    if is_sorted and not is_filtered:
        directories = counted(totals.directories, "directory", "directories")
        parts.append((3, f" in {growing}{directories}", ""))
    is_short = not is_sorted or growing or (survey.finished and survey.unreadable)
    allocated = f" · {growing}{bytes_iec(totals.allocated_bytes)}"
    parts.append((1 if is_short else 0, allocated, "bold" if is_sorted else ""))
    if not is_sorted:
        parts.append((0, f" · {_sorted_part(listing, order)} !", "bold"))
    elif survey.finished:
        parts += _completeness(survey, listing, since_finished_s)
    else:
        if listing.complete:
            parts.append((2, " · complete", "dim"))
            parts.append((0, f" · {state} elsewhere", "bold" if is_paused else "dim"))
        if is_paused:
            parts.append((1, " · p resumes", "dim"))
        elif survey.elapsed_s > 0:
            rate = count(round(survey.totals.entries / survey.elapsed_s))
            parts.append((1, f" · {rate} /s", "dim"))
    return fitted_line(parts, room)


def _sorted_part(listing: Listing, order: Order) -> str:
    """Return which part of the entries the order of the list covers."""
    if listing.order != order or listing.examined is None:
        return f"sorting{dots()}"
    listed = sum(child.kind is not EntryKind.DIRECTORY for child in listing.children)
    files = count(max(listing.examined, listed + listing.not_listed))
    return f"sorted: {count(listing.examined)} of {files} files only"


def _completeness(survey: Survey, listing: Listing, since_finished_s: float) -> list[LinePart]:
    if survey.unreadable:
        scope = "" if listing.path == survey.path else " in the whole tree"
        return [
            (0, f" · {count(survey.unreadable)} unreadable", "bold"),
            (3, scope, "bold"),
            (2, ", not complete", "bold"),
            (0, " !", "bold"),
        ]
    if since_finished_s < _SHOWN_AGE_S:
        return [(0, " · complete", "dim")]
    return [
        (0, " · ", "dim"),
        (1, "complete ", "dim"),
        (0, f"{since_finished_s / 60:.0f} min ago", "dim"),
        (2, " (r counts again)", "dim"),
    ]


def filter_line(words: str) -> Text:
    """Return what a filter selects, and the keys for it."""
    text = Text("only ", style="bold")
    text.append(words)
    text.append(" · f changes this filter, esc removes it", "dim not bold")
    return text


def finding_line(survey: Survey, path: str, highlighted: str | None) -> Text:
    """Return the gravest finding of the highlighted entry, else of the shown directory."""
    findings = survey.findings
    finding = _gravest(findings, highlighted) if highlighted is not None else None
    if finding is None:
        finding = _gravest([f for f in findings if f.severity is not Severity.INFO], path)
    if finding is None:
        if _gravest(findings, path) is not None:  # other rows, or the list of findings, show it
            return muted("no finding for this entry; tab: all findings")
        # A finding about many directories is listed at the first of them only.
        words = "no findings listed here" if findings else "no findings"
        words += "" if survey.finished else " so far"
        return muted(words + ("; tab: all findings" if findings else ""))
    place = "here" if finding.path == path else shown_below(finding.path, path)
    text = Text(f"{SEVERITY_SIGNS[finding.severity]} {place}: ", style="bold")
    text.append(finding.meaning, "not bold")
    return text


def within_lines(text: Text, console: Console, width: int, height: int) -> Text:
    """Return a text that is marked as cut if it needs more lines."""
    if width <= 0:
        return text
    lines = text.wrap(console, width)
    if len(lines) <= height:
        return text
    for line in lines:
        line.rstrip()
    rest = Text(" ").join(lines[height - 1 :])
    rest.truncate(width, overflow="ellipsis")
    return Text("\n").join([*lines[: height - 1], rest])


def _gravest(findings: Sequence[Finding], path: str) -> Finding | None:
    return next((finding for finding in findings if is_within(finding.path, path)), None)
