"""Rules about mounts and other uses that forbid the deletion of a directory."""

from tui_fs.linux.external_uses import ExternalUses
from tui_fs.linux.filesystem import ROOT_INODE, subvolume_above
from tui_fs.linux.mounts import Mount, MountTable, mount_of, mounts_below
from tui_fs.model.errors import Refused
from tui_fs.model.paths import PathStr, displayable, shell_quoted
from tui_fs.model.target import Pin


def check_mounts(path: PathStr, pin: Pin, mounts: MountTable, uses: ExternalUses) -> None:
    """Raise Refused if mounts or other uses by the kernel forbid the deletion of a directory.

    Args:
        path: the directory in the kernel's spelling, because file systems may ignore case.
        uses: uses of places in all file systems, by `mounts` and other mount tables.
    """
    if mounts.visible_at(path) is not None:
        raise mount_point(path, is_file=pin.is_file)
    # The mount table of a chrooted process lacks the mount of its root.
    holder = mounts.by_id.get(pin.mount_id) or mount_of(path, mounts)
    if holder is not None and holder.is_pseudo:
        raise Refused(
            (
                f"{displayable(path)} is on {holder.filesystem}, a file system whose entries "
                "belong to the kernel."
            ),
            "Choose a directory on a real file system.",
            rule="pseudo",
        )
    if holder is not None and holder.is_read_only:
        raise _read_only_mount(path, holder)
    inside = mounts_below(path, mounts)
    if inside:
        first = displayable(inside[0].mount_point)
        more, order = "", "Unmount it first"
        if len(inside) > 1:
            more = f" (and {len(inside) - 1} more)"
            order = "Unmount all of them first, beginning with"
        raise Refused(
            f"A file system is mounted inside {displayable(path)}: {first}{more}.",
            f"{order}: {shell_quoted(('umount', inside[0].mount_point))}",
            rule="mount-inside",
        )
    if holder is None:
        return
    if holder.inner_path(path) is None:
        raise Refused(
            f"{displayable(path)} does not match the mount table: the mounts changed during the "
            "check.",
            "Try again.",
            rule="changed",
        )
    for use in uses.of(path, holder):
        raise Refused(use.sentence, use.advice, rule=use.kind.value)


def _read_only_mount(path: str, mount: Mount) -> Refused:
    point = displayable(mount.mount_point)
    if mount.has_failed:
        sentence = f"{displayable(path)} is on {point}, which allows no changes after an error."
        advice = "Check the kernel log (dmesg), then unmount the file system and run fsck."
    else:
        remount = shell_quoted(("mount", "-o", "remount,rw", mount.mount_point))
        sentence = f"{displayable(path)} is on {point}, which is mounted read-only."
        advice = (
            f"Remount it writable first: {remount}. If an error has made it read-only, the kernel "
            "log (dmesg) has the error."
        )
    return Refused(sentence, advice, rule="read-only")


def read_only(path: str, pin: Pin, mounts: MountTable) -> Refused:
    """Return the refusal of a directory for which the kernel returns EROFS."""
    if not _is_on_btrfs(path, pin, mounts):
        return Refused(
            f"The file system of {displayable(path)} does not allow changes (EROFS).",
            "Make it writable first, on its server if it is a network file system.",
            rule="read-only",
        )
    subvolume = subvolume_above(path)
    change = shell_quoted(("btrfs", "property", "set", "-ts", subvolume, "ro", "false"))
    return Refused(
        f"{displayable(path)} is in the read-only subvolume or snapshot {displayable(subvolume)}.",
        f"Make that writable first: {change}",
        rule="read-only",
    )


def own_device(path: str, pin: Pin, mounts: MountTable) -> Refused:
    """Return the refusal of a directory whose parent is on another device or mount."""
    if pin.inode != ROOT_INODE or not _is_on_btrfs(path, pin, mounts):
        return mount_point(path)
    delete = shell_quoted(("btrfs", "subvolume", "delete", path))
    return Refused(
        f"{displayable(path)} is a btrfs subvolume.",
        f"To delete it with everything in it: {delete}",
        rule="subvolume",
    )


def _is_on_btrfs(path: str, pin: Pin, mounts: MountTable) -> bool:
    holder = mounts.by_id.get(pin.mount_id) or mount_of(path, mounts)
    return holder is not None and holder.filesystem == "btrfs"


def mount_point(path: str, *, is_file: bool = False) -> Refused:
    """Return the refusal of a mount point."""
    inside = "" if is_file else ", or choose the directories inside it"
    return Refused(
        f"{displayable(path)} is a mount point.",
        f"Unmount it first{inside}.",
        rule="mount-point",
    )
