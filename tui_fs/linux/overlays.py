"""The directories that a mounted overlay is made of."""

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tui_fs.linux.mounts import Mount, unescaped
from tui_fs.model.paths import upwards

_ROLES = {
    "lowerdir": "lower",
    "lowerdir+": "lower",
    "datadir+": "lower",
    "upperdir": "upper",
    "workdir": "work",
}
_STORAGES = (
    "/var/lib/docker/overlay2",
    "/var/lib/containers/storage/overlay",
    "/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots",
)
"""Where container engines stand when they mount with short, relative names."""

_LAYER = re.compile(r"(?:[^:\\]|\\.)+", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Layer:
    """A directory of an overlay, as the options name it.

    Attributes:
        role: lower, upper or work.
    """

    name: str
    role: str


def layers_of(mount: Mount) -> Iterator[Layer]:
    """Yield the directories that the options of an overlay name (filesystems/overlayfs.rst)."""
    for option in mount.options:
        key, _, value = option.partition("=")
        role = _ROLES.get(key)
        if role is None:
            continue
        text = unescaped(os.fsencode(value))
        # Only "lowerdir=" is a list, in which a backslash escapes a colon.
        for name in _LAYER.findall(text) if key == "lowerdir" else (text,):
            plain = re.sub(r"\\(.)", r"\1", name, flags=re.DOTALL)
            for form in dict.fromkeys((plain, name)):
                yield Layer(form, role)


def layer_paths(mount: Mount, is_directory: Callable[[str], bool]) -> Iterator[tuple[Layer, str]]:
    """Yield the directories of an overlay with the absolute paths at which they are expected.

    The kernel keeps a relative name without the directory that it was relative to. It is taken
    for one in which all relative names exist.
    """
    layers = tuple(layers_of(mount))
    relative = [layer for layer in layers if not layer.name.startswith("/")]
    bases = {*upwards(mount.mount_point), *_STORAGES}
    for layer in layers:
        if layer.name.startswith("/"):
            yield layer, layer.name
            bases.update(upwards(layer.name))
    # A name with a backslash has two readings, of which one does not exist.
    names = {layer.name for layer in relative if "\\" not in layer.name}
    for base in sorted(bases) if names else ():
        if all(is_directory(os.path.join(base, name)) for name in names):
            yield from ((layer, os.path.join(base, layer.name)) for layer in relative)
