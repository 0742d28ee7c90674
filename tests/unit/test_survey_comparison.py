"""Two surveys of one directory: changes add up, and past growth says when it is full."""

import pytest

from tui_fs.cli.survey import full_in_words
from tui_fs.survey.comparison import Forecast, compare, forecasts
from tui_fs.survey.ncdu_export import ExportHeader
from tui_fs.survey.table import NO_ROW, DirectoryTable

DAY_S = 86_400


def table_of(directories: dict[str, tuple[int, int]]) -> DirectoryTable:
    """Return a table of paths below /top with the allocated bytes and files of each itself."""
    table = DirectoryTable()
    rows = {"": table.add(NO_ROW, b"/top")}
    for path, (allocated, files) in {"": (0, 0), **directories}.items():
        if path:
            above, _, name = path.rpartition("/")
            rows[path] = table.add(rows[above], name.encode())
            table.subdirectories[rows[above]] += 1
        table.allocated[rows[path]] = allocated
        table.files[rows[path]] = files
    return table


def test_each_directory_counts_without_its_subdirectories() -> None:
    before = table_of({"a": (10, 1), "a/b": (100, 5), "c": (7, 7)})
    now = table_of({"a": (10, 1), "a/b": (140, 9), "c": (3, 6)})
    comparison = compare(before, now, 10)
    assert [(str(c.path), c.allocated_bytes, c.entries) for c in comparison.grown] == [
        ("/top/a/b", 40, 4)
    ]
    assert [(str(c.path), c.allocated_bytes, c.entries) for c in comparison.shrunk] == [
        ("/top/c", -4, -1)
    ]
    assert (comparison.allocated_bytes, comparison.entries, comparison.changed) == (36, 3, 2)


def test_new_and_removed_directories_count_with_everything_in_them() -> None:
    before = table_of({"old": (5, 1), "old/deep": (50, 2)})
    now = table_of({"new": (8, 1), "new/deep": (80, 3)})
    comparison = compare(before, now, 10)
    (grown,), (shrunk,) = comparison.grown, comparison.shrunk
    assert (grown.path, grown.allocated_bytes, grown.entries, grown.is_new) == (
        "/top/new",
        88,
        6,
        True,
    )
    assert (shrunk.path, shrunk.allocated_bytes, shrunk.entries) == ("/top/old", -55, -5)
    assert shrunk.is_removed


def test_changes_add_up_to_the_difference_of_the_tree() -> None:
    before = table_of({"a": (1, 1), "a/b": (20, 2), "a/b/c": (5, 0), "d": (9, 9)})
    now = table_of({"": (3, 3), "a": (2, 9), "a/x": (7, 7), "a/x/y": (1, 0), "d": (9, 8)})
    comparison = compare(before, now, 100)
    changes = (*comparison.grown, *comparison.shrunk)
    assert sum(change.allocated_bytes for change in changes) == comparison.allocated_bytes
    assert sum(change.entries for change in changes) == comparison.entries
    assert len(changes) == comparison.changed


def test_only_the_largest_are_kept_in_order() -> None:
    before = table_of({})
    now = table_of({f"d{number}": (number, 1) for number in range(1, 9)})
    comparison = compare(before, now, 3)
    assert [change.allocated_bytes for change in comparison.grown] == [8, 7, 6]
    assert comparison.changed == 8


def header(day: float, used: int, *, total: int = 1_000) -> ExportHeader:
    return ExportHeader(int(day * DAY_S), total, total - used, None, None)


def test_two_surveys_give_a_day_without_a_range() -> None:
    found = forecasts([header(0, 100), header(10, 300)])
    assert set(found) == {"bytes"}
    assert found["bytes"].per_day == pytest.approx(20)
    assert found["bytes"].days == pytest.approx(35)
    assert found["bytes"].days_low is None


def test_more_surveys_give_a_range_around_the_day() -> None:
    found = forecasts([header(0, 100), header(5, 190), header(10, 310), header(15, 400)])
    forecast = found["bytes"]
    assert forecast.days is not None
    assert forecast.days_low is not None
    assert forecast.days_high is not None
    assert forecast.days_low < forecast.days < forecast.days_high
    exact = forecasts([header(day, 100 + 20 * day) for day in range(4)])["bytes"]
    assert exact.days_low == pytest.approx(exact.days)


def test_a_file_system_that_empties_is_never_full() -> None:
    assert forecasts([header(0, 300), header(10, 100)])["bytes"].days is None
    wild = forecasts([header(0, 100), header(5, 900), header(10, 120)])["bytes"]
    assert wild.days is not None
    assert wild.days_high is None


def test_what_exports_do_not_say_is_missing() -> None:
    assert forecasts([ExportHeader(None), header(1, 100)]) == {}
    assert forecasts([header(1, 100), header(1, 200)]) == {}


@pytest.mark.parametrize(
    ("forecast", "words"),
    [
        (Forecast(0.0, None), "not filling"),
        (Forecast(9.0, 0.4), "full in less than a day"),
        (Forecast(9.0, 0.4, 0.2, 0.9), "full in less than a day (4 of 5 times)"),
        (
            Forecast(9.0, 20.2, 12.0, 33.1),
            "full in about 20 days (12 days to 33 days, 4 of 5 times)",
        ),
        (Forecast(9.0, 20.2, 12.0), "full in about 20 days (12 days to never, 4 of 5 times)"),
    ],
)
def test_a_forecast_is_in_words(forecast: Forecast, words: str) -> None:
    assert full_in_words(forecast) == words
