"""Detect directories that their server or file system can delete by one command of its own."""

import os
import re
import stat
from collections.abc import Callable, Mapping

from msgspec import Struct

from tui_fs.linux.filesystem import ROOT_INODE
from tui_fs.model.finding import Finding, FindingKind, Severity
from tui_fs.model.paths import displayable, is_within, shell_quoted
from tui_fs.survey.findings.base import PATHS_NAMED, Evidence, FindingType, Place

_ONEFS_ROOT = "/ifs"
_VAST_TRASH = ".vast_trash"

# Patterns, compiled for the first mount of a Ceph file system.
_CEPH_SOURCE = r"(?s)[^@=/:]*@[^.=/]*\.(?P<volume>[^=/]+)=(?P<path>/.*)|.*?:(?P<old_path>/.*)"
"""USER@CLUSTER.NAME=PATH, or MONITOR[,MONITOR...]:PATH of Linux before 5.17 (mount.ceph(8))."""
_CEPH_NAME_OPTION = "mds_namespace="
_CEPH_SUBVOLUME = (
    r"/volumes/(?P<group>_nogroup|[^/_][^/]*)/(?P<name>[^/]+)"
    r"(?:/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})?"
)
"""A subvolume, or the directory in it that has its files."""
_CEPH_NO_GROUP = "_nogroup"


class _Command(Struct, frozen=True):
    """A command that deletes a directory.

    Attributes:
        fact: a sentence that names what can delete the directory.
        caveats: sentences.
    """

    fact: str
    caveats: str
    argv: tuple[str, ...]


def _detect(evidence: Evidence) -> list[Finding]:
    places = () if evidence.system is None else evidence.system.places
    return [
        _finding(place, command)
        for place in places[:PATHS_NAMED]
        if (command := _command(place)) is not None
    ]


ONE_STEP_DELETION = FindingType(FindingKind("one-step-deletion"), "one-step deletion", _detect)


def _finding(place: Place, command: _Command) -> Finding:
    shown = shell_quoted(command.argv)
    return Finding(
        FindingKind("one-step-deletion"),
        Severity.INFO,
        place.path,
        {},
        command.fact,
        f"{command.caveats} tui-fs does not run this command: {shown}",
        note="its server or file system can delete this in one step; tui-fs does not run the "
        f"command, and tui-fs survey lists its caveats: {shown}",
        command=(command.argv,),
    )


def _command(place: Place) -> _Command | None:
    find = _BY_TYPE.get(place.mount.filesystem)
    return None if find is None else find(place)


def _juicefs(place: Place) -> _Command | None:
    if place.is_mount_point:
        return None  # rmr finds the file system by the directory above
    return _Command(
        "This directory is on JuiceFS, whose client can delete it with one command.",
        "If the trash of this JuiceFS is on, the files stay there for trash-days before their "
        "space is freed; root can add --skip-trash.",
        ("juicefs", "rmr", place.canonical),
    )


def _cephfs(place: Place) -> _Command | None:
    """Return the command for a subvolume; None if the volume is not known for certain."""
    source = re.fullmatch(_CEPH_SOURCE, place.mount.source)
    below = place.mount.inner_path(place.canonical)
    if source is None or below is None:
        return None
    path = (source["path"] or source["old_path"]).rstrip("/") + below
    subvolume = re.fullmatch(_CEPH_SUBVOLUME, path.rstrip("/"))
    names = [
        option.removeprefix(_CEPH_NAME_OPTION)
        for option in place.mount.options
        if option.startswith(_CEPH_NAME_OPTION)
    ]
    volume = source["volume"] or "".join(names)
    if subvolume is None or not volume:
        return None
    group = () if subvolume["group"] == _CEPH_NO_GROUP else ("--group_name", subvolume["group"])
    return _Command(
        f"This directory is the CephFS subvolume {displayable(subvolume['name'])}, which the "
        "cluster can delete as a whole with one command.",
        "It cannot be undone, it fails if the subvolume has snapshots, and the space is freed "
        "later. If Kubernetes or another system manages the subvolume, delete it there instead.",
        ("ceph", "fs", "subvolume", "rm", volume, subvolume["name"], *group),
    )


def _nfs(place: Place) -> _Command | None:
    if place.is_mount_point:
        return None
    return _onefs(place) or _vast(place)


def _onefs(place: Place) -> _Command | None:
    _, colon, export = place.mount.source.partition(":/")
    export = f"/{export}".rstrip("/")
    below = place.mount.inner_path(place.canonical)
    if not colon or below is None or not is_within(export, _ONEFS_ROOT):
        return None
    return _Command(
        "The server exports a directory below /ifs, as OneFS does: a OneFS cluster can delete "
        "this directory with one job.",
        "Run it on the cluster and check the path there first: the job asks for no confirmation "
        "and cannot be undone. Snapshots still use the space.",
        ("isi", "job", "jobs", "start", "TreeDelete", "--paths", export + below),
    )


def _vast(place: Place) -> _Command | None:
    trash = f"{place.mount.mount_point.rstrip('/')}/{_VAST_TRASH}"
    if is_within(place.canonical, trash):
        return None
    try:
        status = os.lstat(trash)  # listings do not show it
    except OSError:
        return None
    # mv copies a directory to another file system.
    if not stat.S_ISDIR(status.st_mode) or status.st_dev != place.status.st_dev:
        return None
    return _Command(
        f"The share has the folder {_VAST_TRASH} of a VAST cluster, which deletes everything "
        "that is moved there.",
        "Do not expect to get it back. By default only root can move directories there, and "
        "their space is freed later.",
        ("mv", place.canonical, f"{trash}/"),
    )


def _btrfs(place: Place) -> _Command | None:
    # The name of a mounted subvolume in the subvolume above is not known.
    if place.status.st_ino != ROOT_INODE or place.is_mount_point:
        return None
    wait = shell_quoted(("btrfs", "subvolume", "sync", place.mount.mount_point))
    return _Command(
        "This directory is a btrfs subvolume, which btrfs can delete with one command.",
        "It cannot be undone, and it fails if the subvolume contains another one. The space is "
        f"freed later ({wait} waits for that), but not what snapshots share with it.",
        ("btrfs", "subvolume", "delete", place.canonical),
    )


def _zfs(place: Place) -> _Command | None:
    dataset = place.mount.source
    is_whole = place.is_mount_point and place.mount.root == "/"
    # Neither a snapshot nor the first dataset of a pool, which remains as long as its pool.
    if not is_whole or "@" in dataset or "/" not in dataset:
        return None
    return _Command(
        f"This directory is the mount point of the ZFS dataset {displayable(dataset)}, which zfs "
        "can destroy with one command.",
        "It also destroys all snapshots and child datasets, and cannot be undone: first add -n -v "
        "to list what it would destroy. It fails if a clone depends on a snapshot or a process "
        "uses the directory.",
        ("zfs", "destroy", "-r", dataset),
    )


_BY_TYPE: Mapping[str, Callable[[Place], _Command | None]] = {
    "btrfs": _btrfs,
    "ceph": _cephfs,
    "fuse.juicefs": _juicefs,
    "nfs": _nfs,
    "nfs4": _nfs,
    "zfs": _zfs,
}
