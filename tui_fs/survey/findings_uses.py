"""Findings about what uses a part of a tree from elsewhere; deleting it is refused."""

import itertools
import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tui_fs.linux.external_uses import ExternalUses, UseKind
from tui_fs.linux.mounts import MountTable, mount_of, mounts_below
from tui_fs.linux.pins import pin_of
from tui_fs.model.paths import PathStr, is_within
from tui_fs.model.survey import Finding, Severity
from tui_fs.survey.findings import PATHS_NAMED
from tui_fs.survey.walker import OPEN_FLAGS


class UseFindings(NamedTuple):
    """The uses that were found, and the number of processes that this user may not inspect."""

    findings: tuple[Finding, ...] = ()
    unchecked_processes: int = 0


def use_findings(paths: Sequence[str], mounts: MountTable) -> UseFindings:
    """Return the uses of directories by mounts, overlays, loop devices and for swapping.

    What is mounted inside is left out: the survey reports it otherwise.

    Raises:
        OSError: one of the directories cannot be opened.
        BadInput: the mount table of another process cannot be understood.
    """
    uses = ExternalUses.read(mounts)
    found = itertools.chain.from_iterable(_uses_of(path, mounts, uses) for path in paths)
    return UseFindings(tuple(itertools.islice(found, PATHS_NAMED)), uses.unseen_processes)


def _uses_of(path: str, mounts: MountTable, uses: ExternalUses) -> Iterator[Finding]:
    descriptor = os.open(path, OPEN_FLAGS)
    try:
        mount = mounts.by_id.get(pin_of(descriptor).mount_id) or mount_of(path, mounts)
        spelled = os.readlink(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)
    if mount is None:
        return
    mounted = {one.mount_point for one in mounts_below(spelled, mounts)}
    for use in uses.of(spelled, mount):
        if use.kind is UseKind.MOUNTED_ON and use.place in mounted:
            continue
        # The survey may have come by a path with a symbolic link in it.
        below = use.place[len(spelled.rstrip("/")) :] if is_within(use.place, spelled) else ""
        place = PathStr(path.rstrip("/") + below or "/")
        kind = "used-elsewhere"
        yield Finding(kind, Severity.CRITICAL, place, {}, use.sentence, use.advice)
