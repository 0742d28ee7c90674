"""Who held files before a job and who holds them after it, and what that means for its space."""

from collections.abc import Mapping

from tui_fs.job.space_causes import space_causes
from tui_fs.linux.filesystem import file_system_of
from tui_fs.linux.open_files import Occupation, look_who_holds
from tui_fs.model.errors import BadInput
from tui_fs.model.paths import displayable
from tui_fs.model.plan import Plan
from tui_fs.model.space import Cause, CauseKind, Space


class SpaceWatch:
    """One look at the targets' file systems before the start, another one after the end.

    Args:
        places: for each device a directory on it that stays.
    """

    def __init__(self, plan: Plan, places: Mapping[int, str]) -> None:
        self._plan = plan
        self._places = dict(places)
        self._before = {device: self._look(device) for device in places}

    def causes(
        self,
        before: Space | None,
        after: Space | None,
        deleted_entries: int | None,
        *,
        is_finished: bool,
    ) -> tuple[Cause, ...]:
        """Return why the space that came back is not what was expected.

        On several file systems nobody knows what was expected of which, so that only facts are
        told of each.
        """
        is_one = len(self._places) == 1
        found: list[Cause] = []
        for device, place in self._places.items():
            try:
                filesystem = file_system_of(place)
            except (OSError, BadInput) as why:  # the end of a job is told whatever happens
                sentence = f"The file system of {displayable(place)} could not be looked at: {why}"
                found.append(Cause(CauseKind.NOT_LOOKED_AT, sentence, ""))
                continue
            found += space_causes(
                before=before if is_one else None,
                after=after if is_one else None,
                expected=self._plan.expected,
                finished=is_finished and is_one,
                deleted_entries=deleted_entries,
                file_system=filesystem,
                targets=self._plan.paths,
                held_before=self._before[device],
                held_after=self._look(device),
            )
        return tuple(found)

    def _look(self, device: int) -> Occupation:
        try:
            return look_who_holds(self._plan.paths, device)
        except (OSError, BadInput):
            return Occupation(complete=False)  # a deletion is not held up by what it cannot see
