"""Determine the relation of a directory to a protected place under any of their names.

They are compared by path, by the identity of both and of their ancestors, and by their places in
their file systems, because a part of either can be bind mounted. A deletion on an overlay deletes
in its upper directory, so that directory is compared as well.
"""

import errno
import functools
import os
from collections.abc import Collection, Iterator

from tui_fs.linux.descriptors import closing
from tui_fs.linux.external_uses import layer_paths
from tui_fs.linux.mounts import Mount, MountTable, mount_of, mounts_below
from tui_fs.linux.pins import pin_of
from tui_fs.linux.resolve_path import canonical, lies_in
from tui_fs.model.compat import StrEnum
from tui_fs.model.paths import PathStr, is_within, upwards
from tui_fs.model.target import Target

_Part = tuple[str, str]
"""A directory in a file system: the device as in the mount table, and the path in it."""


class Relation(StrEnum):
    """The relation of a target to a place, as the middle of a sentence."""

    IS = "is"
    IN = "is inside"
    HOLDS = "contains"
    ALIAS_IS = "is, under another name,"
    ALIAS_HOLDS = "contains, under another name,"
    ALIAS_IN = "is, under another name, inside"
    ALIAS_HOLDS_PART = "contains, under another name, a part of"


class Place:
    """A protected place; it need not exist.

    Args:
        silent: directories that are not read (see ``unresponsive_mounts``).
    """

    def __init__(self, path: PathStr, mounts: MountTable, silent: Collection[str] = ()) -> None:
        self.path = path
        self._mounts = mounts
        self._silent = silent
        self._real = canonical(path, silent)
        self._forms = (path, self._real)

    def relation_of(self, target: Target) -> Relation | None:
        """Return the relation of a target to this place, None if they are unrelated.

        Raises:
            OSError: the place or an ancestor of it cannot be examined.
        """
        relation = self._relation_of(target)
        if relation is None:
            for upper in targets_below_overlay(target, self._mounts, self._silent):
                relation = relation or _under_another_name(self._relation_of(upper))
        return relation

    def _relation_of(self, target: Target) -> Relation | None:
        for form in self._forms:
            if is_within(target.path, form):
                return Relation.IS if target.path == form else Relation.IN
            if is_within(form, target.path):
                return Relation.HOLDS
        own, pinned = self._identity_of(self._real), (target.pin.device, target.pin.inode)
        if pinned in self._identities:
            return Relation.ALIAS_IS if pinned == own else Relation.ALIAS_HOLDS
        if own is not None and any(
            self._identity_of(above) == own for above in upwards(target.path)
        ):
            return Relation.ALIAS_IN
        return self._relation_by_mounts(target)

    def _relation_by_mounts(self, target: Target) -> Relation | None:
        target_part = _part_of(target, self._mounts)
        if target_part is None:
            return None
        for place_part in self._parts:
            if _is_part_within(target_part, place_part):
                return Relation.ALIAS_IN
            if _is_part_within(place_part, target_part):
                return Relation.ALIAS_HOLDS_PART
        return None

    def holds_by_mounts(self, target: Target) -> bool:
        """Return whether a target is in this place on the same file system; ignore other mounts."""
        target_part, place_part = _part_of(target, self._mounts), self._own_part
        return (
            target_part is not None
            and place_part is not None
            and _is_part_within(target_part, place_part)
        )

    @functools.cached_property
    def _identities(self) -> frozenset[tuple[int, int]]:
        """Device and inode of the place and of all its ancestors."""
        places = {above for form in self._forms for above in upwards(form)}
        return frozenset(filter(None, map(self._identity_of, places)))

    @functools.cached_property
    def _own_part(self) -> _Part | None:
        holder = mount_of(self._real, self._mounts)
        return None if holder is None else _part(holder, self._real)

    @functools.cached_property
    def _parts(self) -> tuple[_Part, ...]:
        """The place itself, and all mounts below it."""
        inside = mounts_below(self._real, self._mounts) if self._own_part is not None else ()
        parts = [self._own_part, *(_part(mount, mount.mount_point) for mount in inside)]
        return tuple(part for part in parts if part is not None)

    def _identity_of(self, path: str) -> tuple[int, int] | None:
        """Return device and inode, None if the path does not exist or must not be read."""
        if self._silent and lies_in(canonical(path, self._silent), self._silent):
            return None  # not on the file system of the target
        try:
            status = os.stat(path)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.EACCES):
                return None
            raise
        return status.st_dev, status.st_ino


def _under_another_name(relation: Relation | None) -> Relation | None:
    match relation:
        case Relation.IS:
            return Relation.ALIAS_IS
        case Relation.IN:
            return Relation.ALIAS_IN
        case Relation.HOLDS:
            return Relation.ALIAS_HOLDS
    return relation


def other_names(target: Target, mounts: MountTable) -> Iterator[PathStr]:
    """Yield the other paths of a target through mounts of its file system."""
    target_part = _part_of(target, mounts)
    if target_part is None:
        return
    for mount in mounts:
        if mount.has_root and _is_part_within(target_part, (mount.device, mount.root)):
            below = os.path.relpath(target_part[1], mount.root)
            path = os.path.normpath(os.path.join(mount.mount_point, below))
            if path != target.path and mount_of(path, mounts) is mount:
                yield PathStr(path)


def targets_below_overlay(
    target: Target, mounts: MountTable, silent: Collection[str]
) -> Iterator[Target]:
    """Yield a target on an overlay as a target in the upper directory, if that is reachable."""
    overlay = mounts.by_id.get(target.pin.mount_id)
    if overlay is None or overlay.filesystem != "overlay":
        return
    inner = overlay.inner_path(target.path)

    def is_directory(path: str) -> bool:
        return not lies_in(path, silent) and os.path.isdir(path)

    for layer, path in layer_paths(overlay, is_directory):
        if inner is None or layer.role != "upper" or lies_in(path, silent):
            continue
        upper = canonical(path + inner, silent)
        try:
            descriptor = os.open(upper, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            continue  # it is only in a lower directory, which does not change
        with closing(descriptor):
            upper_target = Target(upper, pin_of(descriptor))
        yield upper_target
        yield from targets_below_overlay(upper_target, mounts, silent)


def _part_of(target: Target, mounts: MountTable) -> _Part | None:
    holder = mounts.by_id.get(target.pin.mount_id)
    return None if holder is None else _part(holder, target.path)


def _part(mount: Mount, path: str) -> _Part | None:
    """Return the place of a path in its file system; None on NFS, which shows every root as "/"."""
    if mount.filesystem.startswith("nfs"):  # nfs_show_path in the kernel
        return None
    inner = mount.inner_path(path)
    return None if inner is None else (mount.device, os.path.normpath(inner))


def _is_part_within(part: _Part, container: _Part) -> bool:
    return part[0] == container[0] and is_within(part[1], container[1])
