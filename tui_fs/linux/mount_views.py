"""The paths by which directories are reached: bind mounts and other mount namespaces."""

from collections.abc import Sequence
from dataclasses import dataclass

from tui_fs.linux.mounts import Mount, mount_of
from tui_fs.model.paths import PathStr, is_within

_ROOT_IS_DELETED = "//deleted"  # how mountinfo marks a mounted directory that has no name any more


@dataclass(frozen=True, slots=True)
class _Way:
    """Below `seen` lies what we call `ours`; None is our own path, whatever is mounted there."""

    seen: str
    ours: str
    mount_id: int | None


class MountView:
    """How some directories of ours are reached in one mount namespace.

    Args:
        directories: absolute paths in our own namespace.
        own_mounts: the mounts of our own namespace.
        mounts: those of the namespace; None if it is our own.
    """

    def __init__(
        self,
        directories: Sequence[str],
        own_mounts: tuple[Mount, ...],
        mounts: tuple[Mount, ...] | None = None,
    ) -> None:
        self.is_own = mounts is None
        self.mounts = own_mounts if mounts is None else mounts
        self.by_id = {mount.mount_id: mount for mount in self.mounts}
        self._ways = [_Way(path, path, None) for path in directories] if self.is_own else []
        for path in directories:
            self._ways += _ways_through_mounts(path, own_mounts, self.mounts)
        self._seen = tuple({way.seen for way in self._ways})

    @property
    def prefixes(self) -> tuple[str, ...]:
        """What a path in one of the directories begins with."""
        return self._seen

    def ours(self, path: str) -> PathStr | None:
        """Return a path of the namespace as ours, None if it is not in the directories."""
        if not path.startswith(self._seen):
            return None
        for way in self._ways:
            if not is_within(path, way.seen):
                continue
            if way.mount_id is None or way.mount_id == self._mount_id(path):
                return PathStr(_moved(path, way.seen, way.ours))
        return None

    def _mount_id(self, path: str) -> int | None:
        mount = mount_of(path, self.mounts)
        return mount.mount_id if mount else None


def _ways_through_mounts(
    directory: str, own_mounts: tuple[Mount, ...], mounts: tuple[Mount, ...]
) -> list[_Way]:
    home = mount_of(directory, own_mounts)
    if home is None:
        return []
    inner = _moved(directory, home.mount_point, home.root)
    ways: list[_Way] = []
    for mount in mounts:
        if mount.device != home.device:
            continue
        root = mount.root.removesuffix(_ROOT_IS_DELETED)
        if is_within(inner, root):
            seen = _moved(inner, root, mount.mount_point)
            ways.append(_Way(seen, directory, mount.mount_id))
        elif is_within(root, inner):
            ours = _moved(root, inner, directory)
            ways.append(_Way(mount.mount_point, ours, mount.mount_id))
    return ways


def _moved(path: str, old: str, new: str) -> str:
    """Return a path below `old` as it is below `new`."""
    return (new.rstrip("/") + path[len(old.rstrip("/")) :]) or "/"
