"""Examine a single file in place of a survey: its space, its other names, and who has it open."""

import os
import stat

from tui_fs.linux.descriptors import closing
from tui_fs.linux.extents import shared_bytes
from tui_fs.linux.mounts import has_lower_layers, mount_of, read_mounts
from tui_fs.linux.pins import open_path_fd
from tui_fs.model.finding import Finding, FindingKind, Severity
from tui_fs.model.paths import PathStr, displayable, shell_quoted
from tui_fs.model.survey import Root, Survey
from tui_fs.model.units import counted
from tui_fs.survey.findings.activity import find_holders
from tui_fs.survey.listing import totals_of
from tui_fs.survey.shared_extents import can_share

_MAX_HOLDERS = 5


def survey_file(path: PathStr) -> Survey:
    """Return the counts of a file or symbolic link, which is not followed.

    Args:
        path: canonical.

    Raises:
        OSError: it cannot be examined.
    """
    above, name = os.path.split(path)
    mounts = read_mounts()
    with closing(open_path_fd(above)) as directory:
        status = os.lstat(name, dir_fd=directory)
        shared = _shared_bytes(directory, name, status) if can_share(path, mounts) else 0
        target = ""
        if stat.S_ISLNK(status.st_mode):
            target = os.readlink(name, dir_fd=directory)
    allocated_bytes = status.st_blocks * 512
    others, is_on_overlay = status.st_nlink - 1, has_lower_layers(path, mounts)
    holders = _holders(path, status.st_dev)
    freed_max = 0 if others else allocated_bytes
    is_certain = not (others or holders or is_on_overlay)
    name_bytes, path_bytes = len(os.fsencode(name)), len(os.fsencode(path))
    mount = mount_of(path, mounts)
    findings: list[Finding] = []
    if others:
        findings.append(_linked(path, others))
    if holders:
        findings.append(_in_use(path, holders))
    return Survey(
        path=path,
        totals=totals_of(status),
        freed_bytes_min=max(0, allocated_bytes - shared) if is_certain else 0,
        freed_bytes_max=freed_max,
        shared_bytes=min(shared, freed_max),
        is_on_overlay=is_on_overlay,
        max_path_bytes=path_bytes,
        max_entries_in_directory=1,
        non_directory_path_bytes=path_bytes,
        non_directory_name_bytes=name_bytes,
        top_non_directories=1,
        findings=tuple(findings),
        roots=(Root(path, status.st_dev, status.st_ino),),
        finished=True,
        complete=True,
        filesystem="" if mount is None else mount.filesystem,
        inodes=1,
        freed_inodes_min=int(is_certain),
        inodes_linked_outside=int(others > 0),
        link_target=target,
    )


def remarks_on(survey: Survey) -> tuple[str, ...]:
    """Return what is special about an examined file, each in a paragraph."""
    remarks = tuple(finding.meaning for finding in survey.findings)
    if not survey.link_target:
        return remarks
    shown = displayable(survey.link_target)
    return (f"Only the link is deleted, not what it leads to: {shown}", *remarks)


def _shared_bytes(directory: int, name: str, status: os.stat_result) -> int:
    """Return the bytes that copies or snapshots may own, too; all if that cannot be examined."""
    if not stat.S_ISREG(status.st_mode):
        return 0
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(name, flags, dir_fd=directory)
    except OSError:
        return status.st_blocks * 512
    with closing(descriptor):
        return min(shared_bytes(descriptor), status.st_blocks * 512)


def _holders(path: PathStr, device: int) -> list[str]:
    """Return the processes that have the file open or mapped, in words."""
    scan = find_holders((path,), device, ())
    holders = [resident.holder for resident in scan.living]
    holders += [holder for file in scan.held_files for holder in file.holders]
    names = {holder.pid: displayable(holder.command) for holder in holders if not holder.is_own}
    return [f"{name} ({pid})" for pid, name in names.items()]


def _in_use(path: PathStr, holders: list[str]) -> Finding:
    shown = ", ".join(holders[:_MAX_HOLDERS])
    more = f" and {len(holders) - _MAX_HOLDERS} more" if len(holders) > _MAX_HOLDERS else ""
    has = "process has" if len(holders) == 1 else "processes have"
    close = "it closes" if len(holders) == 1 else "all of them close"
    return Finding(
        FindingKind("in-use"),
        Severity.WARNING,
        path,
        {"processes": len(holders)},
        f"{counted(len(holders), has, has)} this file open: {shown}{more}. "
        f"Its space comes back only when {close} it.",
        "Stop or restart the process, or let it open a new file.",
    )


def _linked(path: PathStr, others: int) -> Finding:
    names, are = counted(others, "other name", "other names"), "it is" if others == 1 else "all are"
    return Finding(
        FindingKind("hard-links"),
        Severity.WARNING,
        path,
        {"names": others + 1},
        f"The file has {names} (hard links). Its space comes back only when {are} deleted, too.",
        f"find MOUNTPOINT -xdev -samefile {shell_quoted((path,))}",
    )
