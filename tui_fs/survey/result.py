"""A survey's counts and findings as the value that everybody else reads."""

from collections.abc import Iterable

from tui_fs.model.survey import Finding, Ranking, Survey
from tui_fs.survey.findings import Tree, in_order, tree_findings
from tui_fs.survey.groups import groups_of
from tui_fs.survey.records import DirectoryFlag

LARGEST_KEPT = 20


def survey_of(tree: Tree, elapsed_s: float, further: Iterable[Finding] = ()) -> Survey:
    """Return the counts so far.

    Args:
        further: findings besides those that the tree itself shows.
    """
    counted, totals = tree.counted, tree.counted.totals
    groups = groups_of(counted.table) if tree.is_finished else ()
    return Survey(
        path=tree.root,
        totals=totals,
        inodes=counted.inodes,
        matched=counted.matched,
        freed_bytes_min=totals.allocated_bytes - counted.bytes_linked_outside,
        freed_bytes_max=totals.allocated_bytes,
        max_depth=counted.max_depth,
        max_path_bytes=counted.max_path_bytes,
        max_entries_in_directory=counted.max_entries,
        non_empty_directories=counted.non_empty,
        directory_reads=counted.reads,
        parent_directories=counted.parents,
        non_directory_path_bytes=counted.non_directory_path_bytes,
        largest=counted.ranked(Ranking.ENTRIES, LARGEST_KEPT),
        findings=in_order([*tree_findings(tree, groups), *further]),
        unreadable=counted.unreadable,
        writable_by_others=counted.flag_counts[DirectoryFlag.SHARED],
        vanished=counted.vanished,
        elapsed_s=elapsed_s,
        finished=tree.is_finished,
        complete=tree.is_finished and not counted.unreadable,
        groups=groups,
    )
