"""Convert the counts and findings of a survey to the value that other packages read."""

from collections.abc import Sequence

from msgspec.structs import replace

from tui_fs.linux.open_files import HeldFile, HoldKind
from tui_fs.model.survey import Ranking, Survey
from tui_fs.survey.findings.base import Evidence
from tui_fs.survey.findings.listed_only import LISTED_ONLY
from tui_fs.survey.findings.registry import detect_findings
from tui_fs.survey.records import DirectoryFlag
from tui_fs.survey.same_name_dirs import groups_of

LARGEST_KEPT = 20


def _is_own_descriptor(file: HeldFile, roots: Sequence[str]) -> bool:
    """Return whether a file is a root that only tui-fs has open, from its check to its deletion."""
    return file.path in roots and all(
        holder.is_own and holder.how is HoldKind.DESCRIPTOR for holder in file.holders
    )


def survey_of(evidence: Evidence, elapsed_s: float) -> Survey:
    """Return the counts and the findings so far."""
    counted, totals = evidence.counted, evidence.counted.totals
    groups = groups_of(counted.table) if evidence.is_finished else ()
    findings = detect_findings(replace(evidence, groups=groups))
    is_listed_only = any(finding.kind == LISTED_ONLY.kind for finding in findings)
    allocated = totals.allocated_bytes
    # A file that a process holds open keeps its space after its removal.
    open_files = () if evidence.system is None else evidence.system.occupation.held_files
    open_inside = [
        file
        for file in open_files
        if not counted.is_linked_outside(file.device, file.inode)
        and not _is_own_descriptor(file, evidence.paths)
    ]
    is_known = all(file.allocated_bytes is not None for file in open_inside)
    held_bytes = sum(file.allocated_bytes or 0 for file in open_inside) if is_known else allocated
    return Survey(
        path=evidence.root,
        totals=totals,
        inodes=counted.inodes,
        matched=counted.matched,
        freed_inodes_min=max(0, counted.inodes - counted.linked_outside - len(open_inside)),
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
        findings=findings,
        unreadable=counted.unreadable,
        writable_by_others=counted.flag_counts[DirectoryFlag.SHARED],
        vanished=counted.vanished,
        elapsed_s=elapsed_s,
        finished=evidence.is_finished,
        complete=evidence.is_finished and not counted.unreadable and not is_listed_only,
        groups=groups,
        inodes_linked_outside=counted.linked_outside,
    )
