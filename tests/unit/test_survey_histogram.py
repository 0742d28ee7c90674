"""The histograms of a survey: entries and bytes by age and by size, for each directory."""

import json
import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.needs import needs_engine, needs_root
from tests.unit.walkers import opened
from tui_fs.model.survey import Histograms
from tui_fs.survey import histogram
from tui_fs.survey.aggregator import Aggregator
from tui_fs.survey.histogram import (
    AGE_LABELS,
    AGES_DAYS,
    SHORT_AGE_LABELS,
    SHORT_SIZE_LABELS,
    SIZE_LABELS,
    SIZES_BYTES,
    Classes,
    HistogramTable,
    Labels,
    columns_of,
)
from tui_fs.survey.imported import ImportedSurvey
from tui_fs.survey.records import NO_PARENT, Batch, Cells, DirRecord, Link
from tui_fs.survey.runner import SurveyRunner
from tui_fs.survey.walker import Walker

NOW_S = 1_700_000_000
DAY_S = 86_400


def entries_of(histograms: Histograms) -> tuple[list[int], list[int]]:
    return [age.entries for age in histograms.ages], [size.entries for size in histograms.sizes]


def walked(root: Path, classes: Classes) -> Aggregator:
    collector = Aggregator(filtered=False, classes=classes)
    with opened(root) as roots:
        walker = Walker(roots, classes=classes)
        for batch in walker.batches(lambda: 1.0):
            assert batch is not None
            collector.take(batch)
        walker.close()
    return collector


def engine_survey(root: Path) -> Aggregator:
    runner = SurveyRunner([str(root)], has_histograms=True, backend="engine")
    for _ in runner.run():
        pass
    return runner.collector


def batch(*pieces: DirRecord, cells: Iterable[tuple[int, int, int, int]] = ()) -> Batch:
    return Batch(list(pieces), [], [], [], columns_of(cells), 0)


def test_every_class_has_a_name() -> None:
    assert len(AGE_LABELS) == len(SHORT_AGE_LABELS) == len(AGES_DAYS) + 1
    assert len(SIZE_LABELS) == len(SHORT_SIZE_LABELS) == len(SIZES_BYTES) + 1


def test_a_class_begins_at_its_limit(tmp_path: Path) -> None:
    for number, days in enumerate((-9, 0, 1, 7, 30, 90, 365)):
        for name, age_s in (("at", days * DAY_S), ("before", days * DAY_S - 1)):
            (tmp_path / f"{name}{number}").touch()
            os.utime(tmp_path / f"{name}{number}", (0, NOW_S - age_s))
    for number, size in enumerate(SIZES_BYTES):
        for name, exact in (("size", size), ("less", size - 1)):
            with (tmp_path / f"{name}{number}").open("wb") as file:
                file.truncate(exact)
            os.utime(tmp_path / f"{name}{number}", (0, NOW_S))
    collector = walked(tmp_path, Classes.at(NOW_S))
    ages, sizes = entries_of(collector.histograms.of(collector.table))
    assert ages == [5 + 12, 2, 2, 2, 2, 1]  # the future is in the youngest
    assert sizes == [14 + 1, 2, 2, 2, 2, 2, 1]


def test_a_subtree_has_the_sums_below_it() -> None:
    collector = Aggregator(filtered=False, classes=Classes.at(NOW_S))
    collector.take(
        batch(
            DirRecord(0, NO_PARENT, b"/t", subdirectories=2, pending=2),
            DirRecord(1, 0, b"a", subdirectories=1, pending=1),
            DirRecord(2, 0, b"b"),
            DirRecord(3, 1, b"c"),
            cells=[(0, 5, 1, 10), (1, 5, 2, 20), (2, 0, 4, 40), (3, 0, 8, 80), (3, 6, 8, 80)],
        )
    )
    collector.take(batch(DirRecord(4, NO_PARENT, b"/u"), cells=[(4, 5, 16, 160), (3, 6, 32, 320)]))

    def figures(path: str | None) -> list[tuple[int, int]]:
        row = None if path is None else collector.table.find(path)
        histograms = collector.histograms.of(collector.table, row)
        bins = histograms.ages[0], histograms.ages[-1], histograms.sizes[0]
        return [(each.entries, each.allocated_bytes) for each in bins]

    assert figures(None) == [(19, 190), (12, 120), (40, 400)]
    assert figures("/t") == [(3, 30), (12, 120), (40, 400)]
    assert figures("/t/a") == [(2, 20), (8, 80), (40, 400)]
    assert figures("/t/b") == [(0, 0), (4, 40), (0, 0)]
    assert figures("/u") == [(16, 160), (0, 0), (0, 0)]


def test_suffixes_and_owners_are_counted(tmp_path: Path) -> None:
    needs_root("giving a file away")
    needs_engine()
    (tmp_path / "in").mkdir()
    sizes = {"a.log": 9_000, "in/b.log": 1, "in/c.gz": 5_000, ".bashrc": 1, "d.123": 1, "e.äö": 1}
    for name, size in sizes.items():
        (tmp_path / name).write_bytes(b"x" * size)
    os.link(tmp_path / "in" / "c.gz", tmp_path / "c.gz")
    os.chown(tmp_path / "in" / "b.log", 1, -1)
    os.chown(tmp_path / "in" / "c.gz", 54_321, -1)
    os.sync()

    def of(
        collector: Aggregator, path: Path | None
    ) -> tuple[set[tuple[str, int, int]], set[tuple[str, int, int]]]:
        row = None if path is None else collector.table.find(str(path))
        histograms = collector.histograms.of(collector.table, row)
        return (
            {(each.suffix, each.entries, each.allocated_bytes) for each in histograms.suffixes},
            {(each.name, each.entries, each.allocated_bytes) for each in histograms.owners},
        )

    allocated = {name: (tmp_path / name).stat().st_blocks * 512 for name in sizes}
    logs, log, zipped = allocated["a.log"] + 4_096, allocated["in/b.log"], allocated["in/c.gz"]
    main = sum(allocated.values()) - log - zipped
    assert log == 4_096
    for collector in (walked(tmp_path, Classes.at(NOW_S)), engine_survey(tmp_path)):
        assert of(collector, None) == (
            {("log", 2, logs), ("gz", 2, zipped)},
            {("root", 4, main), ("daemon", 1, log), ("54321", 2, zipped)},
        )
        suffixes, owners = of(collector, tmp_path / "in")
        # One of the two names has the bytes.
        assert {(name, entries) for name, entries, _ in suffixes} == {("log", 1), ("gz", 1)}
        assert {(name, entries) for name, entries, _ in owners} == {("daemon", 1), ("54321", 1)}


def test_the_kinds_with_most_bytes_come_first_and_further_ones_are_left_out() -> None:
    table, labels = HistogramTable(), Labels(0)
    for number in range(2_000):
        class_ = labels.of_suffix(b"a.x%d" % number)
        assert bool(class_) == (number < 999)  # the main owner is a label as well
        if class_:
            table.add(0, class_, 1, number)
    table.name_labels(labels.take_new())
    assert labels.take_new() == []
    suffixes = table.of(Aggregator(filtered=False).table).suffixes
    assert [each.suffix for each in suffixes] == [f"x{number}" for number in range(998, 978, -1)]


def test_what_has_not_changed_for_long_is_summed_up() -> None:
    table = HistogramTable()
    for class_ in range(6):  # the oldest first
        table.add(0, class_, 10**class_, 1)
    assert table.of(Aggregator(filtered=False).table).older_than(90) == (11, 2)


def test_the_bytes_of_an_inode_count_once(tmp_path: Path) -> None:
    (tmp_path / "inside").write_bytes(b"x" * 5_000)
    os.link(tmp_path / "inside", tmp_path / "again")
    os.utime(tmp_path / "inside", (0, NOW_S - 100 * DAY_S))
    os.sync()
    collector = walked(tmp_path, Classes.at(NOW_S))
    histograms = collector.histograms.of(collector.table)
    allocated = (tmp_path / "inside").stat().st_blocks * 512
    assert histograms.older_than(90) == (2, allocated)
    assert (histograms.sizes[2].entries, histograms.sizes[2].allocated_bytes) == (2, allocated)


def test_with_filters_only_matching_links_have_bytes() -> None:
    collector = Aggregator(filtered=True, classes=Classes.at(NOW_S))
    links = [Link(0, 7, 1, 2, 50, 512, 0, is_matched, NOW_S) for is_matched in (False, True, True)]
    pieces = [DirRecord(0, NO_PARENT, b"/t", files=3)]
    collector.take(Batch(pieces, links, [], [], Cells(), 0))
    histograms = collector.histograms.of(collector.table)
    assert histograms.ages[0].allocated_bytes == histograms.sizes[1].allocated_bytes == 512


def test_cells_of_a_full_table_are_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui_fs.survey.aggregator.ROWS_LIMIT", 2)
    monkeypatch.setattr(histogram, "_MAX_ENTRIES", 1_000)
    collector = Aggregator(filtered=False, classes=Classes.at(NOW_S))
    collector.take(
        batch(
            DirRecord(0, NO_PARENT, b"/t", subdirectories=500, pending=500),
            *(DirRecord(number, 0, b"%d" % number) for number in range(1, 500)),
            cells=[(number, 0, 4, 1 << 60) for number in range(500)],
        )
    )
    histograms = collector.histograms.of(collector.table)
    assert histograms.ages[-1].entries == 2_000
    assert histograms.ages[-1].allocated_bytes == 500 << 60
    assert len(list(collector.histograms.cells())) < 45


def test_an_import_has_ages_only_if_the_file_has_all_times(tmp_path: Path) -> None:
    entry = {"name": "f", "asize": 10, "dsize": 512, "mtime": NOW_S - 100 * DAY_S}
    file = tmp_path / "export.json"
    for entries, ages in (
        ([entry], [0, 0, 0, 0, 1, 0]),
        ([entry, {"name": "g", "asize": 0, "dsize": 0}], []),
    ):
        header = {"progname": "ncdu", "progver": "2", "timestamp": NOW_S}
        file.write_text(json.dumps([1, 2, header, [{"name": "/t"}, *entries]]))
        imported = ImportedSurvey(str(file))
        *_, _ = imported.run()
        collector = imported.collector
        assert entries_of(collector.histograms.of(collector.table))[0] == ages


@pytest.mark.parametrize("top", [{"name": "/t"}, {"name": "/t", "uid": 7}])
def test_an_import_has_owners_only_if_the_file_has_them(
    tmp_path: Path, top: dict[str, object]
) -> None:
    file = tmp_path / "export.json"
    entries = [{"name": "a.log", "dsize": 512, "uid": 0}, {"name": "b.log", "dsize": 512}]
    file.write_text(json.dumps([1, 2, {"progname": "ncdu", "progver": "2"}, [top, *entries]]))
    imported = ImportedSurvey(str(file))
    *_, _ = imported.run()
    histograms = imported.collector.histograms.of(imported.collector.table)
    assert [(each.suffix, each.entries) for each in histograms.suffixes] == [("log", 2)]
    # Names would be those of accounts of this machine.
    owners = {(each.name, each.entries, each.allocated_bytes) for each in histograms.owners}
    assert owners == ({("0", 1, 512), ("7", 1, 512)} if "uid" in top else set())
