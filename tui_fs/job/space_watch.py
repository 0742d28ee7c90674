"""Who held files before a job and who holds them after it, and what that means for its space."""

from collections.abc import Mapping, Sequence

from tui_fs.job.freed_space import explain_freed_space
from tui_fs.linux.filesystem import file_system_of
from tui_fs.linux.open_files import LIMIT_S, OpenFileScan, scan_open_files
from tui_fs.model.errors import BadInput
from tui_fs.model.paths import displayable
from tui_fs.model.plan import Plan
from tui_fs.model.space import Discrepancy, DiscrepancyKind, Space


class SpaceWatch:
    """One look at the targets' file systems before the start, another one after the end.

    Args:
        places: for each device a directory on it that stays.
        watched: those of them whose free space is watched, one on each file system.
    """

    def __init__(self, plan: Plan, places: Mapping[int, str], watched: Sequence[str]) -> None:
        self._plan = plan
        self._devices = tuple(places)
        self._watched = tuple(watched)
        self._before = self._look()

    def causes(
        self,
        before: Space | None,
        after: Space | None,
        deleted_entries: int | None,
        *,
        is_finished: bool,
    ) -> tuple[Discrepancy, ...]:
        """Return why the space that came back is not what was expected.

        On several file systems nobody knows what was expected of which, so that only facts are
        told of each.
        """
        is_one = len(self._watched) == 1
        held_after = self._look()
        found: dict[Discrepancy, None] = {}  # of several file systems each tells the same holders
        for place in self._watched:
            try:
                filesystem = file_system_of(place)
            except (OSError, BadInput) as why:  # the end of a job is told whatever happens
                sentence = f"The file system of {displayable(place)} could not be looked at: {why}"
                found[Discrepancy(DiscrepancyKind.NOT_LOOKED_AT, sentence, "")] = None
                continue
            causes = explain_freed_space(
                before=before if is_one else None,
                after=after if is_one else None,
                expected=self._plan.expected,
                finished=is_finished and is_one,
                deleted_entries=deleted_entries,
                file_system=filesystem,
                targets=self._plan.paths,
                held_before=self._before,
                held_after=held_after,
            )
            found |= dict.fromkeys(causes)
        return tuple(found)

    def _look(self) -> OpenFileScan:
        """Return who holds files on any of the devices; the looks share one limit of time."""
        looks: list[OpenFileScan] = []
        for device in self._devices:
            try:
                limit_s = LIMIT_S / len(self._devices)
                looks.append(scan_open_files(self._plan.paths, device, limit_s=limit_s))
            except (OSError, MemoryError, BadInput):
                looks.append(OpenFileScan(complete=False))  # no deletion is held up by that
        return OpenFileScan(
            living=looks[0].living,
            held=looks[0].held,
            deleted=tuple(file for one in looks for file in one.deleted),
            unseen_processes=max(one.unseen_processes for one in looks),
            unnamed=max(one.unnamed for one in looks),
            complete=all(one.complete for one in looks),
        )
