"""The mounts and other uses that forbid to delete a directory."""

from tui_fs.linux.external_uses import ExternalUses
from tui_fs.linux.mounts import MountTable, mount_of, mounts_below
from tui_fs.model.errors import Refused
from tui_fs.model.paths import PathStr, displayable, shell_quoted
from tui_fs.model.target import Pin


def check_mounts(path: PathStr, pin: Pin, mounts: MountTable, uses: ExternalUses) -> None:
    """Raise Refused if mounts, or what the kernel uses otherwise, forbid to delete a directory.

    Args:
        path: of the directory, as the kernel spells it: file systems may ignore case.
        uses: of places in all file systems, by `mounts` and by others.
    """
    if mounts.visible_at(path) is not None:
        raise mount_point(path)
    # The mount table of a process in a chroot lacks the mount that its root is on.
    holder = mounts.by_id.get(pin.mount_id) or mount_of(path, mounts)
    if holder is not None and holder.is_pseudo:
        raise Refused(
            f"{displayable(path)} lies on {holder.filesystem}, whose entries are the kernel's own.",
            "Choose a directory on a real file system.",
            rule="pseudo",
        )
    if holder is not None and holder.is_read_only:
        raise Refused(
            f"{displayable(path)} lies on {displayable(holder.mount_point)}, "
            "which is mounted read-only.",
            "Remount it writable first.",
            rule="read-only",
        )
    inside = mounts_below(path, mounts)
    if inside:
        first = displayable(inside[0].mount_point)
        more = f" (and {len(inside) - 1} more)" if len(inside) > 1 else ""
        raise Refused(
            f"Something else is mounted inside {displayable(path)}: {first}{more}.",
            f"Unmount it first: {shell_quoted(('umount', inside[0].mount_point))}",
            rule="mount-inside",
        )
    if holder is None:
        return
    if holder.inner_path(path) is None:
        raise Refused(
            f"{displayable(path)} is not where the mount table has it: the mounts changed during "
            "the check.",
            "Try again.",
            rule="changed",
        )
    for use in uses.of(path, holder):
        raise Refused(use.sentence, use.advice, rule=use.kind.value)


def mount_point(path: str) -> Refused:
    """Return the refusal of a mount point."""
    return Refused(
        f"{displayable(path)} is a mount point.",
        "Unmount it first, or choose the directories inside it.",
        rule="mount-point",
    )
