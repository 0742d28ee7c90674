"""Directories that something else uses: what uses them, and what a refusal must say of it."""

import os
import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tests.filesystems import unmount_below
from tests.namespaces import other_namespace
from tests.trees import flat

_SWAP_BYTES = 1 << 20
_IMAGE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Used:
    """A directory in use.

    Attributes:
        says: what the refusal must say.
        where: the path that the finding of a survey has.
    """

    target: Path
    says: tuple[str, ...]
    where: Path


Use = Callable[[Path, ExitStack], Used]


def _run(*command: object) -> str:
    finished = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert finished.returncode == 0, f"{command}: {finished.stderr}"
    return finished.stdout.strip()


def _target(place: Path) -> Path:
    target = place / "target"
    (target / "part").mkdir(parents=True)
    flat(target / "part" / "deep", 3)
    return target


def _part_mounted_in_a_namespace(place: Path, end: ExitStack) -> Used:
    target = _target(place)
    point = place / "point"
    point.mkdir()
    part = target / "part"
    pid = end.enter_context(other_namespace('mount --bind "$1" "$2"', part, point))
    return Used(target, (f"Process {pid} (cat)", str(part), str(point), f"--target {pid}"), part)


def _itself_mounted_in_a_namespace(place: Path, end: ExitStack) -> Used:
    target = _target(place)
    point = place / "point"
    point.mkdir()
    pid = end.enter_context(other_namespace('mount --bind "$1" "$2"', target, point))
    return Used(target, (f"Process {pid} (cat)", str(point)), target)


def _file_mounted_in_a_namespace(place: Path, end: ExitStack) -> Used:
    target = _target(place)
    file = target / "part" / "file"
    file.touch()
    point = place / "point"
    point.touch()
    pid = end.enter_context(other_namespace('mount --bind "$1" "$2"', file, point))
    return Used(target, (f"Process {pid} (cat)", str(file)), file)


def _mounted_on_in_a_namespace(place: Path, end: ExitStack) -> Used:
    target = _target(place)
    part = target / "part"
    pid = end.enter_context(other_namespace('mount -t tmpfs none "$1"', part))
    return Used(target, (f"Process {pid} (cat)", f"mounted on {part}"), part)


def _itself_mounted_on_in_a_namespace(place: Path, end: ExitStack) -> Used:
    target = _target(place)
    pid = end.enter_context(other_namespace('mount -t tmpfs none "$1"', target))
    return Used(target, (f"Process {pid} (cat)", f"mounted on {target}"), target)


def _mounted_on_by_another_way(place: Path, end: ExitStack) -> Used:
    """Mount on a part through a bind mount, which shows the target at a second path."""
    target = _target(place)
    second = place / "second"
    second.mkdir()
    end.callback(unmount_below, second)
    _run("mount", "--bind", place, second)
    _run("mount", "--make-private", second)
    point = second / "target" / "part"
    _run("mount", "-t", "tmpfs", "none", point)
    part = target / "part"
    return Used(target, (f"mounted on {part} (mount point: {point})", f"umount {point}"), part)


def _overlay(place: Path, end: ExitStack, options: str) -> Path:
    for name in ("lower", "upper", "work", "merged"):
        (place / name).mkdir(exist_ok=True)
    merged = place / "merged"
    end.callback(unmount_below, merged)
    _run("mount", "-t", "overlay", "none", "-o", options.format(place=place), merged)
    return merged


_LAYERS = "lowerdir={place}/lower,upperdir={place}/upper,workdir={place}/work"


def _layer(name: str) -> Use:
    def use(place: Path, end: ExitStack) -> Used:
        merged = _overlay(place, end, _LAYERS)
        target = place / name
        return Used(target, (f"{target} is the {name} directory", str(merged)), target)

    return use


def _holds_a_layer(place: Path, end: ExitStack) -> Used:
    target = _target(place)
    options = "lowerdir={place}/target/part:{place}/lower"
    merged = _overlay(place, end, options)
    part = target / "part"
    return Used(target, (f"{part} is the lower directory", f"umount {merged}"), part)


def _in_a_layer(place: Path, end: ExitStack) -> Used:
    target = place / "upper" / "a" / "target"
    target.mkdir(parents=True)
    merged = _overlay(place, end, _LAYERS)
    return Used(target, (f"{target} is in the upper directory", str(merged)), target)


def _layer_with_a_strange_name(place: Path, end: ExitStack) -> Used:
    target = place / "a:b,c d\\e"
    target.mkdir()
    options = "lowerdir={place}/lower:{place}/a\\:b\\,c d\\\\e"
    merged = _overlay(place, end, options)
    return Used(target, ("is the lower directory", str(merged)), target)


def _layer_by_a_link(place: Path, end: ExitStack) -> Used:
    """Name a layer by a short link, as container engines do."""
    target = place / "layers" / "target"
    target.mkdir(parents=True)
    (place / "l").mkdir()
    (place / "l" / "SHORT").symlink_to("../layers/target")
    merged = _overlay(place, end, "lowerdir={place}/l/SHORT:{place}/lower")
    return Used(target, (f"{target} is the lower directory", str(merged)), target)


def _relative_layer(place: Path, end: ExitStack) -> Used:
    """Mount with names that are relative to the directory around the mount point."""
    for name in ("lower", "upper", "work", "merged"):
        (place / name).mkdir()
    merged = place / "merged"
    end.callback(unmount_below, merged)
    options = "lowerdir=lower,upperdir=upper,workdir=work"
    subprocess.run(["mount", "-t", "overlay", "none", "-o", options, merged], cwd=place, check=True)
    target = place / "lower"
    return Used(target, (f"{target} is the lower directory", str(merged)), target)


def _layer_in_a_namespace(place: Path, end: ExitStack) -> Used:
    for name in ("lower", "upper", "work", "merged"):
        (place / name).mkdir()
    merged = place / "merged"
    options = _LAYERS.format(place=place)
    script = 'mount -t overlay none -o "$1" "$2"'
    pid = end.enter_context(other_namespace(script, options, merged))
    target = place / "upper"
    return Used(target, (f"process {pid} (cat)", f"{target} is the upper directory"), target)


def _layer_of_the_paths_of_a_namespace(place: Path, end: ExitStack) -> Used:
    """Mount by paths that only the other namespace has."""
    inside = place / "inside"
    inside.mkdir()
    target = _target(place)
    (place / "lower").mkdir()
    merged = place / "merged"
    merged.mkdir()
    script = 'mount -t tmpfs none "$1"; mkdir "$1/a" "$1/b"; mount --bind "$2" "$1/a"; '
    script += 'mount -t overlay none -o "lowerdir=$1/a/lower:$1/b" "$3"'
    holder = place / "holder"
    layer = holder / "lower"
    layer.mkdir(parents=True)
    pid = end.enter_context(other_namespace(script, inside, holder, merged))
    assert target.exists()
    return Used(layer, (f"process {pid} (cat)", f"{layer} is the lower directory"), layer)


def _image(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as image:
        image.truncate(_IMAGE_BYTES)
    return path


def _attached(image: Path, end: ExitStack) -> str:
    device = _run("losetup", "--find", "--show", image)
    end.callback(_run, "losetup", "--detach", device)
    return device


def _loop_file(place: Path, end: ExitStack) -> Used:
    target = _target(place)
    image = _image(target / "part" / "disk.img")
    device = _attached(image, end)
    return Used(target, (f"{image} is the file behind", f"losetup --detach {device}"), image)


def _renamed_loop_file(place: Path, end: ExitStack) -> Used:
    target = _target(place)
    device = _attached(_image(place / "elsewhere" / "disk.img"), end)
    (place / "elsewhere").rename(target / "renamed")
    image = target / "renamed" / "disk.img"
    return Used(target, (f"{image} is the file behind", device), image)


def _swap_file(place: Path, end: ExitStack) -> Used:
    target = _target(place)
    file = target / "part" / "swap"
    file.write_bytes(os.urandom(_SWAP_BYTES))
    file.chmod(0o600)
    _run("mkswap", file)
    _run("swapon", file)
    end.callback(_run, "swapoff", file)
    return Used(target, (f"{file} is an active swap file", f"swapoff {file}"), file)


USES: dict[str, Use] = {
    "part-mounted-in-a-namespace": _part_mounted_in_a_namespace,
    "itself-mounted-in-a-namespace": _itself_mounted_in_a_namespace,
    "file-mounted-in-a-namespace": _file_mounted_in_a_namespace,
    "mounted-on-in-a-namespace": _mounted_on_in_a_namespace,
    "itself-mounted-on-in-a-namespace": _itself_mounted_on_in_a_namespace,
    "mounted-on-by-another-way": _mounted_on_by_another_way,
    "lower-layer": _layer("lower"),
    "upper-layer": _layer("upper"),
    "work-layer": _layer("work"),
    "holds-a-layer": _holds_a_layer,
    "in-a-layer": _in_a_layer,
    "layer-with-a-strange-name": _layer_with_a_strange_name,
    "layer-by-a-link": _layer_by_a_link,
    "relative-layer": _relative_layer,
    "layer-in-a-namespace": _layer_in_a_namespace,
    "layer-of-the-paths-of-a-namespace": _layer_of_the_paths_of_a_namespace,
    "loop-file": _loop_file,
    "renamed-loop-file": _renamed_loop_file,
    "swap-file": _swap_file,
}
