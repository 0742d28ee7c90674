"""The screens over the browser: all findings of the survey, and all directories ranked."""

import time
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.widgets import Static

from tui_fs.model.errors import BadInput
from tui_fs.model.finding import Finding, Severity
from tui_fs.model.paths import PathStr, displayable, is_within
from tui_fs.model.strategy import Argv
from tui_fs.model.survey import LargeDirectory, NamedGroup, Ranking, Sorting
from tui_fs.model.units import bytes_iec, count, counted, singular
from tui_fs.screens.base import (
    TEXT_BINDINGS,
    TEXT_HINT,
    BaseScreen,
    Settings,
    age,
    muted,
    shown_below,
)
from tui_fs.screens.browser.details import SEVERITY_SIGNS
from tui_fs.screens.selection import Size, marks_line
from tui_fs.survey.findings.base import FindingType
from tui_fs.survey.findings.registry import FINDING_TYPES
from tui_fs.survey.process import Query, Update
from tui_fs.survey.tally import BIG_FILE_BYTES
from tui_fs.widgets.bar_table import BarRow, BarTable, Column, LazyRows

if TYPE_CHECKING:
    from tui_fs.screens.browser.screen import BrowserScreen


class SideScreen(BaseScreen):
    """A screen over the browser, whose survey continues."""

    OPENS = "Go to its place in the browser"
    BINDINGS = [
        Binding("escape,q,left,h,backspace", "app.pop_screen", tooltip="Go back"),
        Binding("u", "unmark_all", tooltip="Remove all marks"),
        Binding("d", "delete", tooltip="Show what deleting would cost; asks before it deletes"),
    ]

    def __init__(self, browser: "BrowserScreen", settings: Settings) -> None:
        super().__init__(settings)
        self.browser = browser
        self.client, self.marks = browser.client, browser.marks
        self._is_previewing = False
        assert self.client.last_update is not None
        self.shown: Update = self.client.last_update

    def on_screen_resume(self) -> None:
        """Return from a preview."""
        if self._is_previewing:
            self._is_previewing = False
            self.browser.after_preview()
            self.on_survey_update()

    def on_resize(self) -> None:
        """Fit the lines to the new width."""
        self.on_survey_update()

    def on_survey_update(self) -> None:
        """Show the client's last update; the browser calls this."""
        # Before mounting, on_mount shows the update. After closing, there are no widgets left.
        if self.is_mounted and self in self.app.screen_stack:
            self.show_update()

    def show_update(self) -> None:
        """Show survey and marks; extended by every screen."""
        # A recount has no counts at first; the former ones stay.
        self.shown = self.client.last_update or self.shown
        line = marks_line(self.marks, is_filtered=self.client.is_filtered)
        self.set_line("#marks", line)

    def action_unmark_all(self) -> None:
        """Remove all marks."""
        self.marks.clear()
        self.show_update()

    def on_bar_table_opened(self, message: BarTable.Opened) -> None:
        """Go there."""
        path = self.path_of(message.row)
        if path is not None:
            self.app.pop_screen()
            self.browser.jump_to(path)

    def path_of(self, row: BarRow) -> PathStr | None:
        """Return the path that a row is about."""
        return PathStr(row.key)

    def toggle_mark(self, path: PathStr, size: Size) -> bool:
        """Mark a directory or remove its mark, or explain why it cannot be marked.

        Returns:
            Whether the mark changed.
        """
        was_marked = path in self.marks
        explanation = self.marks.toggle(path, size)
        if explanation:
            self.notify(explanation, markup=False)
        self.show_update()
        return (path in self.marks) != was_marked

    def target(self) -> PathStr | None:
        """Return the directory under the cursor; explain why it has none that can be deleted."""
        row = self.query_one(BarTable).cursor_row
        return None if row is None else self.check_target(PathStr(row.key))

    def action_delete(self) -> None:
        """Preview the deletion of the marked directories, or of the one under the cursor."""
        if self.marks.refusal:
            self.notify(self.marks.refusal, markup=False)
        elif self.marks:
            self._preview(tuple(self.marks))
        elif (path := self.target()) is not None:
            self._preview((path,))

    def _preview(self, paths: Sequence[PathStr]) -> None:
        self._is_previewing = True
        self.browser.preview(paths)

    def preview_file(self, path: PathStr) -> None:
        """Preview the deletion of a single file below the surveyed directory."""
        if self.check_target(path) is not None:
            self._is_previewing = True
            self.browser.preview_file(path)

    def check_target(self, path: PathStr) -> PathStr | None:
        """Return a path below the surveyed directory; explain why any other is not deleted here."""
        root = self.shown.survey.path
        if path == root:
            self.notify(
                "This is the surveyed directory itself. To delete it, open the directory above it "
                "in the browser.",
                markup=False,
            )
        elif is_within(path, root):
            return path
        else:
            self.notify(f"{displayable(path)} is outside the surveyed tree.", markup=False)
        return None


SEVERITY_WORDS = {
    Severity.CRITICAL: "critical",
    Severity.WARNING: "warning",
    Severity.INFO: "for information",
}

_LONG_PATH = 256

FINDING_COLUMNS = (
    Column("", 2),
    Column("what", 20, meaning="the kind of the finding"),
    Column("how much", 19, right=True, is_optional=True, meaning="its most important number"),
    Column("where", 0, keep_end=True, meaning="the directory"),
)


def finding_rows(findings: Sequence[Finding], root: str) -> list[BarRow]:
    """Return a row for each finding, in the same order, with a path relative to the root."""
    return [_finding_row(finding, root) for finding in findings]


def finding_key(finding: Finding) -> str:
    """Return the identity of a finding, which is stable when the finding is detected again."""
    return "\0".join((finding.kind, finding.path, *finding.numbers))


def finding_in_full(finding: Finding, *, may_mark: bool) -> Text:
    """Return path, meaning, numbers and advice.

    Args:
        may_mark: whether the user may mark directories.
    """
    severity = SEVERITY_WORDS[finding.severity]
    text = Text(f"{_end_of(displayable(finding.path))}\n", style="bold")
    text.append(f"{_type(finding).label_of(finding)} · {severity}\n", "dim not bold")
    text.append(f"{finding.meaning}\n", "not bold")
    if finding.numbers:
        numbers = (
            f"{_number_label(finding, key)} {_number(key, number)}"
            for key, number in finding.numbers.items()
        )
        text.append(" · ".join(numbers) + "\n", "dim not bold")
    text.append(f"→ {finding.advice}", "not bold")
    if _type(finding).is_group and may_mark:
        text.append("\nspace marks all directories of this name", "dim not bold")
    return text


def _end_of(shown: str) -> str:
    """Return a path, or the end of one that would leave no room for the text below it."""
    return shown if len(shown) <= _LONG_PATH else f"…{shown[1 - _LONG_PATH :]}"


def group_name(finding: Finding, groups: Sequence[NamedGroup]) -> str | None:
    """Return the common name of a group's directories; None for any other finding."""
    if not _type(finding).is_group:
        return None
    for group in groups:
        if finding.path in group.paths:
            return group.name
    return finding.path.rpartition("/")[2] or None


def _finding_row(finding: Finding, root: str) -> BarRow:
    is_info = finding.severity is Severity.INFO
    cells = (
        SEVERITY_SIGNS[finding.severity],
        _type(finding).label_of(finding),
        _headline(finding),
        shown_below(finding.path, root),
    )
    return BarRow(finding_key(finding), cells, flag_tone="muted" if is_info else "warning")


def _type(finding: Finding) -> FindingType:
    return FINDING_TYPES[finding.kind]


def _headline(finding: Finding) -> str:
    """Return the headline number."""
    entry = _type(finding)
    key = entry.headline or next(iter(finding.numbers), "")
    if key not in finding.numbers:
        return ""
    number = finding.numbers[key]
    if key.endswith("_bytes"):
        return bytes_iec(number)
    label = entry.unit or _number_label(finding, key)
    return counted(number, singular(label), label)


def _number(key: str, number: int) -> str:
    return bytes_iec(number) if key.endswith("_bytes") else count(number)


def _number_label(finding: Finding, key: str) -> str:
    label = _type(finding).number_labels.get(key)
    return label or key.removesuffix("_bytes").replace("_", " ")


class FindingsScreen(SideScreen):
    """The findings, the gravest first, and the full text of the highlighted one."""

    KEYS: ClassVar = (
        ("enter", "go there"),
        TEXT_HINT,
        ("space", "mark group"),
        ("d", "delete…"),
        ("esc", "back"),
        ("y", "copy"),
    )
    MARKS = "Mark all directories of the same name"
    EXPLANATION = (
        "Findings of the survey: where, why it matters, and what to do. !! is critical, ! a "
        "warning, i for information. Enter shows the place in the browser. A group is many "
        "directories with the same name; space marks all of them. d previews deleting the marked "
        "directories or, if none is marked, the directory of the finding."
    )

    BINDINGS = [
        Binding("tab", "app.pop_screen", tooltip="Go back", show=False),
        Binding("y", "copy", tooltip="Copy the command that the finding advises"),
        *TEXT_BINDINGS,
    ]

    def compose_body(self) -> ComposeResult:
        """Lay out the list above the finding in full."""
        yield BarTable(FINDING_COLUMNS, toggle_mark=self._toggle_mark, id="finding-list")
        with VerticalScroll(id="body", can_focus=False):
            yield Static(Text(""), id="finding-in-full")
        yield Static(Text(""), id="marks")

    def on_mount(self) -> None:
        """Show the findings so far."""
        self.query_one(BarTable).focus()
        self.show_update()

    def show_update(self) -> None:
        """Show the findings so far."""
        super().show_update()
        survey = self.shown.survey
        number = counted(len(survey.findings), "finding", "findings")
        note = Text(number, "" if survey.finished else "bold")
        if not survey.finished:
            note.append(" ~ so far")
        if self.client.is_filtered:
            note.append(" · of all files, without the filter", "dim")
        self.show_place("", displayable(survey.path), note)
        rows = self.query_one(BarTable)
        rows.empty_text = "no findings" if survey.finished else "no findings so far"
        rows.set_rows(finding_rows(survey.findings, survey.path))
        self._show_finding()

    def on_bar_table_highlighted(self) -> None:
        """Show the finding under the cursor."""
        self._show_finding()
        self.query_one("#body").scroll_home(animate=False)

    def _show_finding(self) -> None:
        finding = self._highlighted()
        text = muted("")
        if finding is not None:
            text = finding_in_full(finding, may_mark=not self.marks.refusal)
        self.query_one("#finding-in-full", Static).update(text)
        self.show_idle_keys()

    def idle_keys(self) -> frozenset[str]:
        """Return the keys that would do nothing for the highlighted finding."""
        idle = set(super().idle_keys())
        finding = self._highlighted()
        if finding is not None and not (_type(finding).is_group and not self.marks.refusal):
            idle.add("space")
        if finding is not None and not finding.command:
            idle.add("y")
        if self.marks.refusal:
            idle.add("d")
        return frozenset(idle)

    def _highlighted(self) -> Finding | None:
        row = self.query_one(BarTable).cursor_row
        return self._finding(row.key) if row is not None else None

    def command_to_copy(self) -> Argv:
        """Return the command that the advice of the highlighted finding names."""
        finding = self._highlighted()
        if finding is None or not finding.command:
            raise BadInput("The advice of this finding names no command to run as it is.")
        return finding.command[0]

    def _finding(self, key: str) -> Finding | None:
        findings = self.shown.survey.findings
        return next((finding for finding in findings if finding_key(finding) == key), None)

    def path_of(self, row: BarRow) -> PathStr | None:
        """Return the path of the finding of a row, while there is one."""
        finding = self._finding(row.key)
        return None if finding is None else finding.path

    def target(self) -> PathStr | None:
        """Return the directory of the finding, unless the finding is about several."""
        finding = self._highlighted()
        if finding is None:
            return None
        if _type(finding).is_group:
            self.notify("Mark the directories of this name first: press space.", markup=False)
            return None
        return self.check_target(finding.path)

    def _toggle_mark(self, row: BarRow) -> bool:
        """Mark the directories of a group; the cursor stays on it, as the row has no mark."""
        finding = self._finding(row.key)
        if finding is None:
            return False
        name = group_name(finding, self.shown.survey.groups)
        if name is None:
            self.notify(
                "Only a group (same-name dirs) can be marked here; enter shows the place in the "
                "browser.",
                markup=False,
            )
        elif self.marks.refusal:
            self.notify(self.marks.refusal, markup=False)
        else:
            self.client.find_named(name)
        return False


_RANKING_TITLES = {
    Ranking.ENTRIES: "most entries first",
    Ranking.INODES: "most inodes first",
    Ranking.ALLOCATED: "most allocated bytes first",
    Ranking.OLDEST: "oldest entry first",
    Ranking.NEWEST: "newest entry first",
}
_FIELDS: dict[Ranking, tuple[Ranking, Ranking]] = {
    Ranking.ENTRIES: (Ranking.ENTRIES, Ranking.ALLOCATED),
    Ranking.INODES: (Ranking.INODES, Ranking.ALLOCATED),
    Ranking.ALLOCATED: (Ranking.ENTRIES, Ranking.ALLOCATED),
    Ranking.OLDEST: (Ranking.OLDEST, Ranking.ENTRIES),
    Ranking.NEWEST: (Ranking.NEWEST, Ranking.ENTRIES),
}
_MEANINGS = {
    Ranking.ENTRIES: "the names in the directory itself",
    Ranking.INODES: "the files and directories in it; a file with several names counts once",
    Ranking.ALLOCATED: "the disk space of these entries, as du shows it",
    Ranking.OLDEST: "how long ago the oldest entry was last modified",
    Ranking.NEWEST: "how long ago the newest entry was last modified",
}
_UPWARDS = Ranking.NEWEST


RANKINGS = tuple(Ranking(sorting) for sorting in Sorting if sorting is not Sorting.NAME)
"""In the order of the browser's criteria, so that the same key selects the same one."""


def ranking_columns(by: Ranking, *, is_filtered: bool = False) -> tuple[Column, ...]:
    """Return the columns; an arrow marks the criterion."""
    arrow = " ▲" if by is _UPWARDS else " ▼"

    def title(field: Ranking) -> str:
        text = "matches" if is_filtered and field is Ranking.ENTRIES else str(field)
        return f"{text}{arrow}" if field is by else text

    return (
        *(
            Column(
                title(field),
                11,
                right=True,
                meaning=_MEANINGS[field],
                action=f"rank_by('{field}')",
            )
            for field in _FIELDS[by]
        ),
        Column("", 12, bar=True),
        Column("directory", 0, keep_end=True, meaning="its path below the top directory"),
    )


def ranking_rows(
    ranking: Sequence[LargeDirectory],
    by: Ranking,
    root: str,
    marked: Collection[str],
    now_s: float,
) -> LazyRows:
    """Return the rows.

    Args:
        root: the surveyed directory; the shown paths are relative to it.
        now_s: the reference time of ages, in seconds since the epoch.
    """
    largest = max((_amount(directory, by, now_s) for directory in ranking), default=0.0)

    def make(index: int) -> BarRow:
        directory = ranking[index]
        return BarRow(
            key=directory.path,
            cells=(
                *(_cell(directory, field, now_s) for field in _FIELDS[by]),
                "",
                _place(directory, root),
            ),
            fraction=_amount(directory, by, now_s) / largest if largest > 0 else None,
            marked=directory.path in marked,
            tone="directory",
        )

    return LazyRows([directory.path for directory in ranking], make)


def _cell(directory: LargeDirectory, field: Ranking, now_s: float) -> str:
    match field:
        case Ranking.ENTRIES:
            return count(directory.entries)
        case Ranking.INODES:
            return count(directory.inodes)
        case Ranking.ALLOCATED:
            return bytes_iec(directory.allocated_bytes)
        case Ranking.OLDEST:
            return age(directory.oldest_s, now_s)
        case Ranking.NEWEST:
            return age(directory.newest_s, now_s)


def _amount(directory: LargeDirectory, by: Ranking, now_s: float) -> float:
    match by:
        case Ranking.ENTRIES:
            return directory.entries
        case Ranking.INODES:
            return directory.inodes
        case Ranking.ALLOCATED:
            return directory.allocated_bytes
    changed_s = directory.oldest_s if by is Ranking.OLDEST else directory.newest_s
    return max(0.0, now_s - changed_s) if changed_s is not None else 0.0


def _place(directory: LargeDirectory, root: str) -> str:
    shown = shown_below(directory.path, root)
    return shown if shown.endswith("/") else shown + "/"


class RankingScreen(SideScreen):
    """The first thousand directories of a ranking, at any depth."""

    KEYS: ClassVar = (
        ("enter", "go there"),
        ("space", "mark"),
        ("d", "delete…"),
        ("s", "next ranking"),
        ("esc", "back"),
    )
    EXPLANATION = (
        "All directories of the tree, ranked by their own entries; subdirectories are ranked "
        "separately. Enter shows the directory in the browser."
    )

    BINDINGS = [
        Binding("s", "next", tooltip="Rank by the next criterion"),
        *(
            Binding(str(number), f"rank_by('{by}')", tooltip=f"Rank by {by}")
            for number, by in enumerate(RANKINGS, 1)
        ),
        Binding("b", "app.pop_screen", tooltip="Go back", show=False),
    ]

    def __init__(self, browser: "BrowserScreen", settings: Settings) -> None:
        super().__init__(browser, settings)
        self._by = RANKINGS[0]

    def compose_body(self) -> ComposeResult:
        """Lay out the criterion and the list."""
        yield Static(Text(""), id="totals")
        yield BarTable(
            ranking_columns(self._by),
            empty_text="reading…",
            toggle_mark=self._toggle_mark,
            id="ranking",
        )
        yield Static(Text(""), id="marks")

    def on_mount(self) -> None:
        """Ask for the first ranking."""
        self.query_one(BarTable).focus()
        self.client.ask(Query(ranking=self._by))
        self.show_update()

    def show_update(self) -> None:
        """Show the ranking if it is the current one."""
        super().show_update()
        update = self.shown
        survey = update.survey
        self.show_place(
            "", displayable(survey.path), Text("" if survey.finished else "~ so far", "bold")
        )
        rows = self.query_one(BarTable)
        is_wanted = update.query.ranking is self._by
        ranking = update.ranking if is_wanted else ()
        self.set_line("#totals", self._about(len(ranking)))
        rows.set_columns(ranking_columns(self._by, is_filtered=self.client.is_filtered))
        rows.empty_text = "no directory has entries with a known date" if is_wanted else "reading…"
        rows.set_rows(
            ranking_rows(ranking, self._by, survey.path, tuple(self.marks), time.time()),
            keep_cursor=rows.is_cursor_placed,
        )

    def _about(self, number: int) -> Text:
        survey = self.shown.survey
        line = Text(no_wrap=True, overflow="ellipsis")
        line.append(_RANKING_TITLES[self._by], "bold")
        if self.client.is_filtered:
            line.append(f" · only {self.browser.filter_words()}", "bold")
            return line
        listed = ""
        if 0 < number < survey.totals.directories:
            listed = f" · {count(number)} of {count(survey.totals.directories)}"
        room = self.size.width - 2 - line.cell_len - len(listed)
        scopes = (
            " · in the directory itself, not below",
            " · in the directory itself",
            " · not below",
            "",
        )
        line.append(next(scope for scope in scopes if len(scope) <= room or not scope), "dim")
        if room >= 0:
            line.append(listed, "dim")
        return line

    def action_next(self) -> None:
        """Rank by the next criterion."""
        self.action_rank_by(RANKINGS[(RANKINGS.index(self._by) + 1) % len(RANKINGS)])

    def action_rank_by(self, criterion: str) -> None:
        """Rank by a criterion."""
        self._by = Ranking(criterion)
        self.query_one(BarTable).set_rows((), keep_cursor=False)
        self.client.ask(Query(ranking=self._by))
        self.show_update()

    def _toggle_mark(self, row: BarRow) -> bool:
        """Toggle a mark; the known size is a lower bound, as it excludes the subdirectories."""
        shown = self.shown.ranking
        directory = next((large for large in shown if large.path == row.key), None)
        if directory is None:
            return False
        own = int(not self.client.is_filtered)  # the directory itself
        size = Size(directory.entries + own, directory.allocated_bytes)
        return self.toggle_mark(directory.path, size)


FILE_COLUMNS = (
    Column("apparent", 13, right=True, meaning="the size that ls shows"),
    Column("file", 0, keep_end=True, meaning="its path below the top directory"),
)


class LargestFilesScreen(SideScreen):
    """The largest files below a directory, at any depth.

    Args:
        path: a directory of the surveyed tree.
    """

    KEYS: ClassVar = (("enter", "go there"), ("d", "delete…"), ("esc", "back"))
    EXPLANATION = (
        f"Files of {bytes_iec(BIG_FILE_BYTES)} or more below the directory, the largest first, by "
        "apparent size. Enter shows the file in the browser. d previews deleting the file under "
        "the cursor, even if directories are marked."
    )

    BINDINGS = [Binding("B", "app.pop_screen", tooltip="Go back", show=False)]

    def __init__(self, browser: "BrowserScreen", settings: Settings, path: PathStr) -> None:
        super().__init__(browser, settings)
        self._path = path

    def compose_body(self) -> ComposeResult:
        """Lay out the list."""
        yield BarTable(FILE_COLUMNS, empty_text="reading…", id="files")
        yield Static(Text(""), id="marks")

    def on_mount(self) -> None:
        """Ask for the files."""
        self.query_one(BarTable).focus()
        self.client.describe(self._path)
        self.show_update()

    def show_update(self) -> None:
        """Show the files so far."""
        super().show_update()
        is_finished = self.shown.survey.finished
        note = Text(f"{bytes_iec(BIG_FILE_BYTES)} or more")
        if not is_finished:
            note.append(" · ~ so far", "bold")
        self.show_place("largest files in", displayable(self._path), note)
        details = self.client.details(self._path)
        rows = self.query_one(BarTable)
        if self.client.is_filtered:
            rows.empty_text = "not known while a filter is set"
        elif details is not None:
            so_far = "" if is_finished else " so far"
            rows.empty_text = f"no file of {bytes_iec(BIG_FILE_BYTES)} or more{so_far}"
        files = () if details is None else details.largest_files
        rows.set_rows(
            [
                BarRow(file, (bytes_iec(size), shown_below(file, self._path)))
                for size, file in files
            ],
            keep_cursor=rows.is_cursor_placed,
        )

    def action_delete(self) -> None:
        """Preview the deletion of the file under the cursor."""
        row = self.query_one(BarTable).cursor_row
        if self.marks.refusal:
            self.notify(self.marks.refusal, markup=False)
        elif row is not None:
            self.preview_file(PathStr(row.key))

    def target(self) -> PathStr | None:
        """Return nothing: files are not marked."""
        return None


def measured_sizes(update: Update) -> list[tuple[PathStr, Size]]:
    """Return the sizes of the directories measured last."""
    return [
        (path, Size(totals.entries, totals.allocated_bytes, is_complete))
        for path, totals, is_complete in update.sizes
    ]


MARK_COLUMNS = (
    Column("allocated", 13, right=True, meaning="the disk space of everything in it; ≥ at least"),
    Column(
        "entries",
        13,
        right=True,
        is_optional=True,
        meaning="the names in it, everywhere below it, and its own",
    ),
    Column("directory", 0, keep_end=True, meaning="its path"),
)


def mark_row(path: PathStr, size: Size, *, is_marked: bool) -> BarRow:
    """Return the row of a directory that is or was marked."""
    at_least = "" if size.is_whole else "≥ "
    shown = displayable(path)
    return BarRow(
        key=path,
        cells=(
            at_least + bytes_iec(size.allocated_bytes),
            at_least + count(size.entries),
            shown if shown.endswith("/") else shown + "/",
        ),
        marked=is_marked,
        tone="directory",
    )


class MarksScreen(SideScreen):
    """The directories that were marked when the screen was opened."""

    KEYS: ClassVar = (
        ("enter", "go there"),
        ("space", "unmark"),
        ("d", "delete…"),
        ("u", "unmark all"),
        ("esc", "back"),
    )
    MARKS = "Remove the mark of the row, or set it again"
    EXPLANATION = (
        "The marked directories; the line below them adds them up. Space removes a mark, and sets "
        "it again. Numbers after ≥ are lower bounds, because counting is not complete."
    )

    BINDINGS = [Binding("M", "app.pop_screen", tooltip="Go back", show=False)]

    def __init__(self, browser: "BrowserScreen", settings: Settings) -> None:
        super().__init__(browser, settings)
        self._sizes = {path: self.marks.size(path) or Size() for path in self.marks}

    def compose_body(self) -> ComposeResult:
        """Lay out the list above the sum."""
        yield BarTable(MARK_COLUMNS, toggle_mark=self._toggle_mark, id="marked")
        yield Static(Text(""), id="marks")

    def on_mount(self) -> None:
        """Ask for the sizes."""
        self.query_one(BarTable).focus()
        self.client.ask(Query(measured=tuple(self._sizes)))
        self.show_update()

    def show_update(self) -> None:
        """Show the directories with their sizes so far."""
        update = self.client.last_update or self.shown
        sizes = [(path, size) for path, size in measured_sizes(update) if path in self._sizes]
        self._sizes.update(sizes)
        self.marks.update_sizes(sizes)
        super().show_update()
        number = counted(len(self.marks), "marked directory", "marked directories")
        if self.client.is_filtered:
            number += f" · only {self.browser.filter_words()}"
        self.show_place("", "marks", number)
        rows = [
            mark_row(path, size, is_marked=path in self.marks) for path, size in self._sizes.items()
        ]
        self.query_one(BarTable).set_rows(rows)

    def _toggle_mark(self, row: BarRow) -> bool:
        """Remove the mark, or set it again."""
        path = PathStr(row.key)
        return self.toggle_mark(path, self._sizes[path])

    def target(self) -> PathStr | None:
        """Return nothing: without a mark, nothing is deleted from this list."""
        self.notify("Nothing is marked. space marks the directory again.", markup=False)
        return None
