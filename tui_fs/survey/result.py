"""A survey's counts and findings as the value that everybody else reads."""

from collections.abc import Iterable, Sequence

from tui_fs.linux.open_files import HeldFile
from tui_fs.model.survey import Finding, Ranking, Survey
from tui_fs.survey.findings import Tree, in_order, tree_findings
from tui_fs.survey.groups import groups_of
from tui_fs.survey.records import DirectoryFlag

LARGEST_KEPT = 20


def survey_of(
    tree: Tree,
    elapsed_s: float,
    further: Iterable[Finding] = (),
    held: Sequence[HeldFile] = (),
) -> Survey:
    """Return the counts so far.

    Args:
        further: findings besides those that the tree itself shows.
        held: files in it that processes hold open: their room need not come back.
    """
    counted, totals = tree.counted, tree.counted.totals
    allocated = totals.allocated_bytes
    held = [file for file in held if not counted.is_linked_outside(file.device, file.inode)]
    is_known = all(file.allocated_bytes is not None for file in held)
    held_bytes = sum(file.allocated_bytes or 0 for file in held) if is_known else allocated
    groups = groups_of(counted.table) if tree.is_finished else ()
    return Survey(
        path=tree.root,
        totals=totals,
        inodes=counted.inodes,
        matched=counted.matched,
        freed_inodes_min=max(0, counted.inodes - counted.linked_outside - len(held)),
        freed_bytes_min=max(0, allocated - counted.bytes_linked_outside - held_bytes),
        freed_bytes_max=allocated,
        max_depth=counted.max_depth,
        max_path_bytes=counted.max_path_bytes,
        max_entries_in_directory=counted.max_entries,
        non_empty_directories=counted.non_empty,
        directory_reads=counted.reads,
        parent_directories=counted.parents,
        non_directory_path_bytes=counted.non_directory_path_bytes,
        non_directory_levels=counted.non_directory_levels,
        non_directory_name_bytes=counted.non_directory_name_bytes,
        top_directories=counted.top_directories,
        top_non_directories=counted.top_non_directories,
        non_empty_levels=counted.non_empty_levels,
        largest=counted.table.ranked(Ranking.ENTRIES, LARGEST_KEPT),
        findings=in_order([*tree_findings(tree, groups), *further]),
        unreadable=counted.unreadable,
        writable_by_others=counted.flag_counts[DirectoryFlag.SHARED],
        vanished=counted.vanished,
        elapsed_s=elapsed_s,
        finished=tree.is_finished,
        complete=tree.is_finished and not counted.unreadable,
        groups=groups,
    )
