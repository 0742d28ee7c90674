"""The parts of the browser that need no screen: marks, questions, the order of rows."""

import re
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from rich.console import Console
from rich.text import Text

from tests.ui.recorded_tree import NOW_S, RANKING, SESSIONS, directory, found_survey, spool_listing
from tui_fs.job.permission import MOST_TARGETS
from tui_fs.job.view import JobSummary
from tui_fs.linux.filesystem import FileSystem
from tui_fs.model.finding import Finding, FindingKind, Severity
from tui_fs.model.host import Host
from tui_fs.model.outcome import JobState
from tui_fs.model.paths import PathStr, is_within
from tui_fs.model.strategy import StrategyName
from tui_fs.model.survey import Child, EntryKind, Listing, Order, Ranking, Sorting, Totals
from tui_fs.screens.base import BaseScreen, Settings, age, broken_at_dots
from tui_fs.screens.browser.details import (
    finding_line,
    place_note,
    totals_line,
    within_lines,
)
from tui_fs.screens.browser.job_strip import strip_of
from tui_fs.screens.browser.search import about_search, cannot_mark_files
from tui_fs.screens.browser.side_screens import (
    FINDING_COLUMNS,
    finding_rows,
    ranking_columns,
    ranking_rows,
)
from tui_fs.screens.browser.table import (
    MORE_KEY,
    Arranged,
    arrange,
    columns_of,
    sizes_of,
)
from tui_fs.screens.selection import Selection, Size
from tui_fs.screens.survey_client import SurveyClient, SurveyUpdated
from tui_fs.survey.findings.base import FindingType
from tui_fs.survey.findings.registry import FINDING_TYPES
from tui_fs.survey.process import ListingQuery, Query, SearchUpdate, Update
from tui_fs.widgets.bar_table import row_parts

WHOLE = Size(10, 4096, is_whole=True)
PATHS = st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map(
    lambda names: PathStr("/" + "/".join(names))
)


@given(st.lists(PATHS))
def test_no_mark_ever_lies_inside_another(paths: list[PathStr]) -> None:
    marks = Selection()
    for path in paths:
        marks.toggle(path, WHOLE)
        assert not any(
            mark != other and is_within(mark, other) for mark in marks for other in marks
        )


def test_a_second_press_removes_the_mark() -> None:
    marks = Selection()
    assert marks.toggle(SESSIONS, WHOLE) == marks.toggle(SESSIONS, WHOLE) == ""
    assert not marks
    assert marks.in_words() == ""


@pytest.mark.slow
def test_no_more_marks_than_one_job_takes() -> None:
    marks = Selection()
    paths = [PathStr(f"/srv/{number}") for number in range(MOST_TARGETS + 5)]
    assert marks.add_all(paths) == MOST_TARGETS
    assert "the maximum for one job" in marks.toggle(PathStr("/other"), WHOLE)
    assert len(marks) == MOST_TARGETS
    # What replaces a mark needs no room.
    assert "replaced" in marks.toggle(PathStr("/srv"), WHOLE)
    assert list(marks) == ["/srv"]


def test_sizes_of_marks_are_shown_as_far_as_they_are_known() -> None:
    marks = Selection()
    one, two, three = (PathStr(f"/srv/{name}") for name in "abc")
    marks.toggle(one, Size())
    assert marks.in_words() == "1 marked · the preview counts them"
    marks.update_sizes([(one, WHOLE), (PathStr("/unmarked"), WHOLE)])
    assert marks.in_words() == "1 marked · 10 entries · 4.0 KiB"
    marks.add_all([two, three], Size(100, 1 << 20, is_whole=True))
    assert marks.in_words() == "3 marked · 110 entries · 1.0 MiB"
    marks.toggle(three, Size())  # what the rest of a lot holds is not known
    assert marks.in_words() == "2 marked · at least 11 entries and 4.0 KiB"


class _Process:
    """Notes what is asked."""

    def __init__(self) -> None:
        self.asked: list[Query] = []
        self.is_paused = False

    def ask(self, query: Query) -> None:
        assert not self.is_paused, "a survey that stands still answers nothing"
        self.asked.append(query)

    def pause(self) -> None:
        self.is_paused = True

    def resume(self) -> None:
        self.is_paused = False


def client_of_a_process(monkeypatch: pytest.MonkeyPatch) -> tuple[_Process, SurveyClient]:
    process = _Process()
    monkeypatch.setattr("tui_fs.screens.survey_client.SurveyProcess", lambda *_: process)
    screen = BaseScreen(Settings())
    monkeypatch.setattr(screen, "run_worker", lambda *_, **__: None)
    monkeypatch.setattr(BaseScreen, "workers", SimpleNamespace(cancel_group=lambda *_: None))
    client = SurveyClient(screen, 1, SurveyUpdated)
    client.start(["/"])
    return process, client


def _listing(path: str) -> Query:
    return Query(listing=ListingQuery(PathStr(path), Order()))


def _answer(query: Query) -> SurveyUpdated:
    message = SurveyUpdated(Update(found_survey(), query=query))
    message.survey_number = 1
    return message


def test_what_was_left_again_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    process, client = client_of_a_process(monkeypatch)
    for path in ("/a", "/a/b", "/a/b/c", "/a"):
        client.show(path, Order())
    assert process.asked == [_listing("/a")]
    client.accept(_answer(_listing("/elsewhere")))
    assert process.asked == [_listing("/a")]
    client.accept(_answer(_listing("/a")))
    assert process.asked == [_listing("/a"), _listing("/a")]


def test_a_paused_survey_is_woken_until_it_has_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    process, client = client_of_a_process(monkeypatch)
    ranking = Query(ranking=Ranking.OLDEST)
    client.toggle_pause()
    seen = [process.is_paused]
    client.show("/a", Order())
    client.ask(ranking)
    seen.append(process.is_paused)
    client.accept(_answer(_listing("/a")))
    assert process.asked == [_listing("/a"), ranking]
    seen.append(process.is_paused)
    client.accept(_answer(_listing("/a").merged(ranking)))
    seen.append(process.is_paused)
    assert client.is_paused
    client.toggle_pause()
    seen.append(process.is_paused)
    assert seen == [True, False, False, True, False]


def _arranged(listing: Listing, order: Order, kept: str | None = None) -> Arranged:
    return arrange(listing, (), order, is_growing=True, now_s=NOW_S, required=kept)


@pytest.mark.parametrize("sorting", Sorting)
def test_reversed_is_the_other_way_round_with_the_undated_still_last(sorting: Sorting) -> None:
    listing = spool_listing()
    usual = _arranged(listing, Order(sorting)).keys
    other = _arranged(listing, Order(sorting, is_reversed=True)).keys
    undated = 2 if sorting in (Sorting.OLDEST, Sorting.NEWEST) else 0
    dated = len(usual) - undated
    assert list(other[:dated]) == list(reversed(usual[:dated]))
    assert other[dated:] == usual[dated:]
    titles = [[c.title for c in columns_of(Order(sorting, r))] for r in (False, True)]
    assert f"{sorting} ▲" in titles[0] or f"{sorting} ▼" in titles[0]
    assert titles[0] != titles[1]


def test_what_the_cursor_is_to_go_to_is_always_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui_fs.screens.browser.table.MAX_ROWS", 2)
    children = tuple(directory(f"d{n}", Totals(n, 1)) for n in range(9))
    arranged = _arranged(
        Listing(PathStr("/x"), children=children), Order(Sorting.ENTRIES), kept="d0"
    )
    assert arranged.keys == ["d8", "d7", "d0", MORE_KEY]
    assert (arranged.more, arranged.more_directories) == (6, 6)
    assert arranged.child(MORE_KEY) is None
    assert arranged.rows(())[3].cells[-1] == "… 6 more directories"
    arranged = _arranged(
        Listing(PathStr("/x"), children=children[:3]), Order(Sorting.ENTRIES), kept="d1"
    )
    assert arranged.rows(())[2].cells[-1] == "… 1 more directory"


def test_a_search_that_lists_a_part_says_so() -> None:
    assert about_search(SearchUpdate((), 3, 10, 0, True), 3).plain == (
        "complete  3 matches · 10 names searched"
    )
    assert about_search(SearchUpdate((), 3, 10, 0, True), 3, 35).plain == "complete  3 matches"
    assert about_search(SearchUpdate((), 1_000, 10, 2, False), 3, 120).plain == (
        "searching  1,000 matches · only 3 of them listed ! · 2 directories unreadable ! · "
        "10 names searched"
    )


def test_for_files_the_key_that_leads_to_their_deletion_is_named() -> None:
    assert cannot_mark_files(2) == (
        "2 matches are not directories: only directories can be marked. To delete files of such "
        "names, listed or not, press f; d deletes a single one."
    )


def test_an_order_that_covers_a_part_of_the_files_says_so() -> None:
    listing = replace(spool_listing(), not_listed=198_000, examined=4_000)
    survey, order = found_survey(), Order()

    def line(listing: Listing, order: Order) -> str:
        return totals_line(
            survey, listing, order, is_paused=False, since_finished_s=0, is_imported=False, room=99
        ).plain

    assert "sorted: 4,000 of 198,002 files only !" in line(listing, order)
    assert "sorting…" in line(listing, Order(Sorting.NAME))
    assert "sort" not in line(replace(listing, examined=None), order)
    assert "sort" not in line(replace(listing, not_listed=0), Order(Sorting.NAME))


def test_what_has_no_room_in_the_totals_is_left_out() -> None:
    def line(room: int, unreadable: int = 0) -> str:
        return totals_line(
            replace(found_survey(), unreadable=unreadable),
            spool_listing(),
            Order(),
            is_paused=False,
            since_finished_s=720,
            is_imported=False,
            room=room,
        ).plain

    assert line(78) == "1,279,040 entries · 5.6 GiB · complete 12 min ago (r counts again)"
    assert line(58) == "1,279,040 entries · 5.6 GiB · complete 12 min ago"
    assert line(40) == "1,279,040 entries · 5.6 GiB · 12 min ago"
    assert line(78, 3) == "1,279,040 entries · 5.6 GiB · 3 unreadable, not complete !"
    assert line(38, 3) == "1,279,040 entries · 3 unreadable !"


def test_each_number_that_still_grows_is_marked() -> None:
    survey = found_survey(finished=False)
    line = totals_line(
        survey,
        spool_listing(is_complete=False),
        Order(),
        is_paused=False,
        since_finished_s=0,
        is_imported=False,
        room=99,
    ).plain
    counts, rate = line.rsplit(" · ", 1)
    assert rate.endswith(" /s")
    numbers = re.findall(r"(\S?)\b\d[\d,.]*", counts)
    assert len(numbers) == 3 and set(numbers) == {"~"}


def test_no_line_says_that_a_directory_with_findings_has_none() -> None:
    def line(highlighted: str | None) -> str:
        survey = replace(found_survey(), findings=(finding,))
        return finding_line(survey, "/srv/spool", highlighted).plain

    finding = Finding(
        FindingKind("same-names"), Severity.INFO, PathStr("/srv/spool"), {}, "Two of a name.", ""
    )
    assert line("/srv/spool/a") == "no finding for this entry; tab: all findings"
    assert line(None) == "no finding for this entry; tab: all findings"
    finding = replace(finding, path=PathStr("/srv/spool/a"))
    assert line("/srv/spool/a") == "i a: Two of a name."
    assert line("/srv/spool/b") == "no finding for this entry; tab: all findings"
    finding = replace(finding, path=PathStr("/srv/other"))
    assert line("/srv/spool/a") == "no findings listed here; tab: all findings"


def test_a_text_that_needs_more_lines_is_marked_as_cut() -> None:
    text = Text("! here: Names with control characters in 1 directory; this is the first.")
    assert within_lines(text, Console(), 30, 3).plain == text.plain
    assert within_lines(text, Console(), 30, 2).plain == (
        "! here: Names with control\ncharacters in 1 directory; th…"
    )


def test_a_figure_is_not_parted_from_its_unit() -> None:
    text = Text("ext4 · 55.3 MiB of 57.3 MiB used · 115 k of 1.20 M inodes\nnext")
    for width in (25, 30, 40):
        lines = broken_at_dots(text, width).plain.split("\n")
        parts = " · ".join(lines[:-1]).split(" · ")
        assert parts == ["ext4", "55.3 MiB of 57.3 MiB used", "115 k of 1.20 M inodes"]
        assert lines[-1] == "next"
        assert all(len(line) <= width for line in lines)
    assert broken_at_dots(text, 80) == text


def test_what_is_not_counted_is_not_given_a_number() -> None:
    child = Child(PathStr("new"), EntryKind.DIRECTORY, Totals(directories=1), False)
    arranged = arrange(
        Listing(PathStr("/x"), children=(child,)), (), Order(), is_growing=False, now_s=0.0
    )
    row = arranged.rows(("new",))[0]
    assert row.cells[0] == "?"
    assert row.flag == "not counted"
    assert row.marked


def test_marked_directories_learn_their_size_from_a_listing() -> None:
    (size,) = sizes_of(spool_listing(), {"sessions", "lock"})
    assert size == (SESSIONS, Size(61_002, 3 << 20, is_whole=True))


@pytest.mark.parametrize(
    ("passed_s", "words"),
    [
        (-5, "future"),
        (0, "0 s"),
        (119, "119 s"),
        (120, "2 min"),
        (7_199, "119 min"),
        (7_200, "2 h"),
        (2 * 86_400, "2 d"),
        (700 * 86_400, "700 d"),
        (1_200 * 86_400, "3 y"),
    ],
)
def test_ages(passed_s: int, words: str) -> None:
    assert age(NOW_S - passed_s, NOW_S) == words


def test_an_age_that_nothing_has() -> None:
    assert age(None, NOW_S) == "–"


@pytest.mark.parametrize("entry", FINDING_TYPES.values(), ids=FINDING_TYPES)
def test_labels_of_findings_fit_their_column(entry: FindingType) -> None:
    for label in (entry.label, *entry.variants.values()):
        assert 0 < len(label) <= FINDING_COLUMNS[1].width


@pytest.mark.parametrize(
    ("kind", "numbers", "text"),
    [
        ("weird-names", {"directories_space": 1}, "1 dir"),
        ("in-use", {"processes": 1}, "1 process"),
        ("in-use", {"processes": 2}, "2 processes"),
        ("flat", {"entries": 1}, "1 entry"),
    ],
)
def test_the_number_of_a_finding_agrees_with_its_noun(
    kind: str, numbers: dict[str, int], text: str
) -> None:
    finding = Finding(FindingKind(kind), Severity.INFO, PathStr("/t/a"), numbers, "", "")
    (row,) = finding_rows([finding], "/t")
    assert row.cells[2] == text


def test_a_path_that_is_too_long_keeps_its_end() -> None:
    rows = ranking_rows(RANKING, Ranking.ENTRIES, "/", (), NOW_S)
    columns = ranking_columns(Ranking.ENTRIES)
    drawn = "".join(text for _, text in row_parts(rows[2], columns, 60))
    assert drawn.rstrip().endswith("/one/cache/")
    assert len(drawn) == 60


def test_the_free_space_of_a_place_is_what_users_can_use() -> None:
    # A file system with 5 % of it free for root only
    room = FileSystem("ext4", "/dev/vdb", "/m", False, 1000 << 20, 60 << 20, 10 << 20, 9, 1)
    note = place_note(room)
    assert note.plain == "ext4 on /dev/vdb · 10.0 MiB free ! · 1 inode free"


JOB = JobSummary(
    "7f3a01",
    (PathStr("/srv/spool"),),
    StrategyName("rm"),
    JobState.RUNNING,
    NOW_S,
    72_000,
    1_200_000,
    0,
    Host("here", "boot", "machine"),
    False,
    0.06,
    (700.0, 800.0),
)


def test_the_strip_shows_how_far_the_newest_job_is() -> None:
    assert strip_of([JOB], 78).plain == (
        "▶ rm 6 % · 12 min–13 min left · job 7f3a01 · w watches · /srv/spool"
    )
    paused = replace(JOB, state=JobState.PAUSED, failed=3)
    assert strip_of([paused, JOB, JOB], 78).plain.startswith(
        "PAUSED rm 6 % · 3 failed ! · job 7f3a01 · 2 more (J) · w watches"
    )
    # A job that runs is never shown as complete
    assert "99 %" in strip_of([replace(JOB, fraction=1.0)], 78).plain
    assert strip_of([replace(JOB, fraction=None, left_s=None)], 78).plain.startswith("▶ rm · job")


def test_a_narrow_strip_shows_the_end_of_the_path_and_no_key_is_cut() -> None:
    deep = replace(
        JOB,
        state=JobState.PAUSED,
        targets=(PathStr("/srv/a-long-directory/and-a-longer-one/sessions"),),
    )
    wide, narrow = strip_of([deep], 70).plain, strip_of([deep], 38).plain
    assert wide.endswith("-one/sessions")
    assert len(wide) == 70
    assert narrow == "PAUSED rm 6 % · w watches"
