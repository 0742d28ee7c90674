"""Surveys by the two backends, in a form that can be compared."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from tui_fs.model.finding import Finding
from tui_fs.model.strategy import Filters
from tui_fs.model.survey import NamedGroup, Survey
from tui_fs.survey.histogram import HistogramTable
from tui_fs.survey.runner import Backend, SurveyRunner
from tui_fs.survey.table import NO_ROW, DirectoryTable

FLAGS = 11
"""The index of the flags in a row."""


@dataclass(frozen=True, slots=True)
class Comparable:
    """A finished survey without what depends on the order in which directories were read.

    The order decides which of several equal directories is named, and under which of its names
    a hard-linked inode is counted.

    Attributes:
        survey: all else.
        cells: entries and allocated bytes of the histograms, by path and class.
        rows: the record of each directory, by its path.
    """

    survey: Survey
    rows: dict[str, tuple[int, ...]]
    findings: tuple[Any, ...]
    groups: tuple[Any, ...]
    names_of_links: int
    cells: dict[tuple[str, int], tuple[int, int]]


def survey_by(
    backend: Backend,
    *paths: Path,
    filters: Filters | None = None,
    threads: int | None = None,
) -> Comparable:
    """Survey directories to their end."""
    counting = SurveyRunner(
        [str(path) for path in paths],
        filters,
        threads=threads,
        backend=backend,
        matches_by_directory=True,
        has_histograms=True,
        checks_surroundings=False,  # they are read the same way for both
    )
    *_, survey = counting.run()
    assert survey.finished
    assert survey.backend == backend
    collector = counting.collector
    plain = replace(
        survey, elapsed_s=0.0, backend="", largest=(), findings=(), groups=(), unchecked_processes=0
    )
    has_links = collector.names_of_links > 0
    rows = _rows(collector.table, has_links=has_links)
    return Comparable(
        plain,
        rows,
        tuple(sorted(map(_finding, survey.findings))),
        tuple(sorted(map(_group, survey.groups))),
        collector.names_of_links,
        _cells(collector.histograms, list(rows), has_links=has_links),
    )


def assert_same(
    *paths: Path, filters: Filters | None = None, threads: Sequence[int | None] = (None,)
) -> Comparable:
    """Fail unless both backends report the same for some directories."""
    expected = survey_by("scandir", *paths, filters=filters)
    for number in threads:
        by_engine = survey_by("engine", *paths, filters=filters, threads=number)
        assert by_engine.survey == expected.survey
        assert by_engine.rows == expected.rows
        assert by_engine == expected
    return expected


def _rows(table: DirectoryTable, *, has_links: bool) -> dict[str, tuple[int, ...]]:
    rows: dict[str, tuple[int, ...]] = {}
    paths: list[str] = []
    for row in range(len(table)):
        columns = [
            table.depth[row],
            table.subdirectories[row],
            table.files[row],
            table.symlinks[row],
            table.other[row],
            table.index_bytes[row],
            table.index_allocated[row],
            table.record_bytes[row],
            table.oldest_s[row],
            table.newest_s[row],
            table.pending[row],
            table.flags[row],
        ]
        if not has_links:
            columns += [int(table.apparent[row]), table.allocated[row]]
        if (matches := table.matches) is not None:
            columns += [matches.entries(row), matches.oldest_s[row], matches.newest_s[row]]
            columns += [] if has_links else [int(matches.apparent[row]), matches.allocated[row]]
        parent, name = table.parent[row], os.fsdecode(table.name(row))
        # joined here: the path of a row takes time for each level
        paths.append(name if parent == NO_ROW else f"{paths[parent]}/{name}")
        assert paths[-1] not in rows
        rows[paths[-1]] = tuple(columns)
    return rows


def _cells(
    histograms: HistogramTable, paths: Sequence[str], *, has_links: bool
) -> dict[tuple[str, Any], tuple[int, int]]:
    sums: dict[tuple[str, Any], tuple[int, int]] = {}
    for row, class_, entries, allocated in histograms.cells():
        label = histograms.labels.get(class_)
        meaning = class_ if label is None else (label.suffix, label.uid)
        known = sums.get((paths[row], meaning), (0, 0))
        sums[paths[row], meaning] = known[0] + entries, known[1] + allocated
    # The bytes of an inode are where its first name was met.
    return {key: (n, 0 if has_links else size) for key, (n, size) in sums.items() if n}


def _finding(finding: Finding) -> tuple[Any, ...]:
    return finding.kind, finding.severity, sorted(finding.numbers.items())


def _group(group: NamedGroup) -> tuple[Any, ...]:
    return group.name, group.directories, group.totals.entries
