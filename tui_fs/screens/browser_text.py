"""The browser's lines: what is counted, what is marked, what is unusual."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

from tui_fs.model.finding import Finding, Severity
from tui_fs.model.paths import is_within
from tui_fs.model.survey import Listing, Survey
from tui_fs.model.units import bytes_iec, count, counted
from tui_fs.screens.findings import MARKS
from tui_fs.screens.frame import muted
from tui_fs.screens.header import shown_below

_TOLD_AGE_S = 60


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a survey is.

    Attributes:
        since_finished_s: how long ago it came to its end; 0 before that.
        words: what it does, if it is neither paused nor finished.
    """

    is_paused: bool = False
    since_finished_s: float = 0.0
    words: str = "counting"


def totals_line(survey: Survey, listing: Listing, progress: Progress) -> Text:
    """Return what is in the directory shown, and how far counting is."""
    totals = listing.totals
    line = Text(no_wrap=True, overflow="ellipsis")
    state = "paused" if progress.is_paused else progress.words
    if not survey.finished and not listing.complete:
        line.append(f"{state}  ", "bold" if progress.is_paused else "dim")
    growing = "" if listing.complete or survey.finished else "~"
    line.append(growing + count(totals.entries), "bold")
    noun = "entry" if totals.entries == 1 else "entries"
    line.append(f" {noun} in {counted(totals.directories, 'directory', 'directories')} · ")
    line.append(bytes_iec(totals.allocated_bytes), "bold")
    if survey.finished:
        line.append_text(_completeness(survey, listing, progress))
        return line
    if listing.complete:
        line.append(" · complete", "dim")
        line.append(f" · {state} elsewhere", "bold" if progress.is_paused else "dim")
    if progress.is_paused:
        line.append(" · p goes on", "dim")
    elif survey.elapsed_s > 0:
        line.append(f" · {count(round(survey.totals.entries / survey.elapsed_s))} /s", "dim")
    return line


def _completeness(survey: Survey, listing: Listing, progress: Progress) -> Text:
    text = Text()
    if survey.unreadable:
        where = "" if listing.path == survey.path else " in the whole tree"
        text.append(f" · {count(survey.unreadable)} unreadable{where}, not complete !", "bold")
    else:
        text.append(" · complete", "dim")
    if progress.since_finished_s >= _TOLD_AGE_S:
        minutes = f"{progress.since_finished_s / 60:.0f}"
        text.append(f", counted {minutes} min ago (r counts again)", "dim")
    return text


def finding_line(survey: Survey, path: str, highlighted: str | None) -> Text:
    """Return the gravest finding of the highlighted entry, else of the directory shown."""
    findings = survey.findings
    chosen = _gravest(findings, highlighted) if highlighted is not None else None
    if chosen is None:
        graver = [f for f in findings if f.severity is not Severity.INFO]
        chosen = _gravest(graver, path)
    if chosen is None:
        if not survey.finished:
            return muted("nothing unusual so far")
        return muted("nothing unusual here" + ("; tab: findings elsewhere" if findings else ""))
    place = "here" if chosen.path == path else shown_below(chosen.path, path)
    text = Text(f"{MARKS[chosen.severity]} {place}: ", style="bold")
    text.append(chosen.meaning, "not bold")
    return text


def _gravest(findings: Sequence[Finding], path: str) -> Finding | None:
    return next((finding for finding in findings if is_within(finding.path, path)), None)
