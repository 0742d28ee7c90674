"""Survey directories in one pass, by the native engine or in Python; never follow symlinks."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from msgspec.structs import replace

from tui_fs.linux.directories import open_directory
from tui_fs.linux.fnmatch import name_matcher
from tui_fs.linux.mounts import (
    MOUNTINFO,
    has_lower_layers,
    mount_of,
    mounts_below,
    read_mounts,
)
from tui_fs.linux.open_files import OpenFileScan
from tui_fs.linux.statx import has_statx
from tui_fs.linux.tools import find_engine
from tui_fs.model.errors import Missing
from tui_fs.model.paths import PathStr
from tui_fs.model.strategy import Filters
from tui_fs.model.survey import Order, Root, Survey
from tui_fs.survey.aggregator import Aggregator
from tui_fs.survey.engine import EngineScan
from tui_fs.survey.findings.activity import find_holders
from tui_fs.survey.findings.barriers import UsesFound, find_external_uses
from tui_fs.survey.findings.base import Evidence, Place, SystemView, locate
from tui_fs.survey.histogram import Classes
from tui_fs.survey.listing import Names, Publish, read_names
from tui_fs.survey.progress_timer import ProgressTimer
from tui_fs.survey.result import survey_of
from tui_fs.survey.shared_extents import SharedSpace, can_share, shared_space
from tui_fs.survey.tally import predicate_of
from tui_fs.survey.walker import OpenRoot, Walker

Backend = Literal["engine", "scandir"]


class SurveyRunner:
    """One survey of one directory, or of several together.

    Args:
        paths: absolute paths of directories, none inside another.
        filters: entries to count separately, for a deletion with filters, and the share to count.
        interval_s: time between the intermediate results of `run`.
        threads: of the engine; None: it chooses.
        checks_surroundings: also detect problems of the file system, and processes that use it.
        finds_users: also find the processes that use the trees other than by an open file. They are
            a finding; only open files change the freed space.
        family: a process that, with all its descendants, is not reported as using the trees;
            0 for none.
        backend: the native engine, or this process (scandir); None for the engine if it is
            installed.
        matches_by_directory: with filters, also count in each directory what matches.
        has_histograms: also count the entries of each directory by age and by size.

    Raises:
        Missing: `backend` is the engine, and it is not installed.
    """

    def __init__(
        self,
        paths: Sequence[str],
        filters: Filters | None = None,
        interval_s: float = 0.25,
        clock: Callable[[], float] = time.monotonic,
        mountinfo: str = MOUNTINFO,
        threads: int | None = None,
        checks_surroundings: bool = True,
        finds_users: bool = True,
        family: int = 0,
        backend: Backend | None = None,
        matches_by_directory: bool = False,
        has_histograms: bool = False,
    ) -> None:
        self._paths = tuple(paths)
        self._path = paths[0] if len(paths) == 1 else os.path.commonpath(paths)
        self._telling = ProgressTimer(interval_s, clock)
        self._threads = threads
        self._filters = filters or Filters()
        self._engine = None if backend == "scandir" else find_engine()
        if backend is None and not has_statx():
            self._engine = None  # it reads every entry by statx; the walker uses fstatat
        if backend == "engine" and self._engine is None:
            raise Missing("The native engine is not installed.", "See tui-fs doctor.")
        self._began_at_s = time.time()
        self._classes = Classes.at(self._began_at_s) if has_histograms else None
        self.collector = Aggregator(
            self._filters.active, self._classes, matches_by_directory=matches_by_directory
        )
        self._table = mounts = read_mounts(mountinfo)
        self._mounts = sorted({m.mount_point for p in paths for m in mounts_below(p, mounts)})
        self._overlays = [PathStr(p) for p in self._paths if has_lower_layers(p, mounts)]
        self._roots: list[Root] = []
        self._checks_surroundings, self._finds_users = checks_surroundings, finds_users
        self._family = family
        self._occupation: OpenFileScan | None = None
        self._uses = UsesFound()
        self._places: list[Place] = []

    def names(self, path: str, order: Order, required: str, publish: Publish) -> Names:
        """Return the present entries of a directory; see `read_names`."""
        return read_names(path, order, required, publish)

    def matching_names(self, path: str, order: Order, required: str, publish: Publish) -> Names:
        """Return the directories, and the other entries that the filters select."""
        matches = predicate_of(self._filters)
        return read_names(path, order, required, publish, matches=matches)

    def flush_progress(self) -> None:
        """Let `run` yield without waiting for the next interval."""
        self._telling.at_once()

    def run(self, questions: tuple[int, Callable[[], None]] | None = None) -> Iterator[Survey]:
        """Yield the counts so far every `interval_s`, and at the end the complete ones.

        Args:
            questions: a descriptor to poll, and a function to call when it is readable.

        Raises:
            OSError: one of the directories cannot be opened, or no process can be started.
            TuiFsError: the engine was killed, or has another record format.
        """
        roots: list[OpenRoot] = []
        try:
            for path in self._paths:
                roots.append(self._open(path))
            scan = self._begin(roots)
        finally:
            for root in roots:
                os.close(root.descriptor)
        try:
            if questions is not None:
                scan.register(*questions)
            if self._checks_surroundings:  # the engine counts meanwhile
                self._occupation = find_holders(
                    self._paths,
                    self._roots[0].device,
                    {*scan.pids, self._family},
                    by_descriptor_only=not self._finds_users,
                )
                self._uses = find_external_uses(self._paths, self._table)
                places = (locate(path, self._table) for path in self._paths)
                self._places = [place for place in places if place is not None]
            for batch in scan.batches(self._telling.until_due_s):
                if batch is not None:
                    self.collector.take(batch)
                if self._telling.until_due_s() <= 0:
                    with self._telling.turn():
                        yield self._result(finished=False)
        finally:
            scan.close()
        self.collector.free_numbers()
        yield self._result(finished=True)

    def _begin(self, roots: Sequence[OpenRoot]) -> Walker | EngineScan:
        if self._engine is not None:
            return EngineScan(
                self._engine, self._roots, self._filters, self._threads, self._classes
            )
        mounts = [os.fsencode(mount) for mount in self._mounts]
        matches = predicate_of(self._filters) if self._filters.active else None
        return Walker(roots, mounts, matches, share=self._filters.share, classes=self._classes)

    def _open(self, path: str) -> OpenRoot:
        descriptor = open_directory(path)
        status = os.fstat(descriptor)
        self._roots.append(Root(PathStr(path), status.st_dev, status.st_ino))
        return OpenRoot(os.fsencode(path), descriptor, status.st_dev)

    def _result(self, finished: bool) -> Survey:
        counted = self.collector
        system = self._system_view() if finished else None
        survey = survey_of(
            Evidence(
                counted,
                PathStr(self._path),
                self._mounts,
                is_finished=finished,
                paths=self._paths,
                system=system,
            ),
            self._telling.elapsed_s,
        )
        mount = mount_of(self._paths[0], self._table)
        survey = replace(
            survey,
            roots=tuple(self._roots),
            backend="scandir" if self._engine is None else "engine",
            filesystem="" if mount is None else mount.filesystem,
            unchecked_processes=self._uses.unchecked_processes,
        )
        if self._overlays:
            survey = replace(survey, is_on_overlay=True, freed_bytes_min=0, freed_inodes_min=0)
        if finished and self._filters.name_glob is not None:
            matches = name_matcher(self._filters.name_glob)
            survey = replace(survey, matching_directories=counted.table.count_named(matches))
        if system is None or system.shared_space is None:
            return survey
        return _without_shared(survey, system.shared_space)

    def _system_view(self) -> SystemView | None:
        """Return the state of the system around the trees; None without that check."""
        if self._occupation is None:
            return None
        shares = can_share(self._paths[0], self._table)
        return SystemView(
            self._occupation,
            self._began_at_s,
            self._uses.uses,
            self._overlays,
            shared_space(self._paths) if shares else None,
            self._places,
        )


def _without_shared(survey: Survey, space: SharedSpace) -> Survey:
    """Return the survey with shared extents subtracted from `freed_bytes_min`."""
    allocated_bytes = survey.totals.allocated_bytes
    shared_bytes = allocated_bytes - space.freed_bytes_at_least(allocated_bytes)
    if not shared_bytes:
        return survey
    return replace(
        survey,
        shared_bytes=shared_bytes,
        freed_bytes_min=max(0, survey.freed_bytes_min - shared_bytes),
    )
