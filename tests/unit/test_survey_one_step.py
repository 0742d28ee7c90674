"""Directories that their server or file system can delete by one command of its own."""

import os
from pathlib import Path

import pytest

from tests.unit.targets import ROOT_ID, ROOT_MOUNT
from tui_fs.model.finding import Finding, Severity
from tui_fs.survey.runner import SurveyRunner

JUICEFS = ("fuse.juicefs", "JuiceFS:volume")
UUID = "0b5c2a34-9f6e-4d0a-8a53-5b3fd5b4f1c2"
V2_SOURCE = "admin@4d5e6f70-1111-2222-3333-444455556666.cephfs"


def findings(
    tmp_path: Path, mounted: tuple[str, str], below: str = "x", root: str = "/", options: str = "rw"
) -> dict[str, Finding]:
    """Survey a directory below a mount point of an injected table; return what concerns servers.

    Args:
        mounted: type and source of the mount.
        below: the path of the surveyed directory below the mount point.
    """
    point = tmp_path / "m"
    (point / below).mkdir(parents=True, exist_ok=True)
    kind, source = mounted
    line = f"{ROOT_ID + 1} {ROOT_ID} 0:50 {root} {point} rw - {kind} {source} {options}\n"
    table = tmp_path / "mountinfo"
    table.write_bytes(ROOT_MOUNT + line.encode())
    path = str(point / below).removesuffix("/.")
    *_, survey = SurveyRunner([path], mountinfo=str(table)).run()
    wanted = ("one-step-deletion", "freed-later")
    found: dict[str, Finding] = {
        finding.kind: finding for finding in survey.findings if finding.kind in wanted
    }
    for finding in found.values():
        assert (finding.path, finding.severity) == (path, Severity.INFO)
        assert not finding.blocks
        assert not finding.remains
    return found


def command(tmp_path: Path, mounted: tuple[str, str], below: str = "x", **mount: str) -> str:
    """Return the command of the finding; empty without one."""
    finding = findings(tmp_path, mounted, below, **mount).get("one-step-deletion")
    if finding is None:
        return ""
    caveats, _, shown = finding.advice.partition(" tui-fs does not run this command: ")
    assert caveats.endswith(".")
    assert finding.meaning.endswith(".")
    assert finding.note.endswith(f": {shown}")
    return shown


def test_juicefs_deletes_a_directory_by_its_client(tmp_path: Path) -> None:
    assert command(tmp_path, JUICEFS) == f"juicefs rmr {tmp_path}/m/x"
    assert command(tmp_path, JUICEFS, "a b'\n") == f"juicefs rmr $'{tmp_path}/m/a b\\'\\x0a'"
    advice = findings(tmp_path, JUICEFS)["one-step-deletion"].advice
    assert "trash-days" in advice
    assert "--skip-trash" in advice


@pytest.mark.parametrize(
    "mounted",
    [("ext4", "/dev/sda1"), ("fuse.sshfs", "host:/ifs"), ("tmpfs", "none"), ("xfs", "/dev/vdb")],
)
def test_other_file_systems_have_no_such_command(tmp_path: Path, mounted: tuple[str, str]) -> None:
    assert findings(tmp_path, mounted) == {}


@pytest.mark.parametrize("mounted", [JUICEFS, ("nfs4", "s:/ifs/data"), ("btrfs", "/dev/sda1")])
def test_a_mount_point_has_no_such_command(tmp_path: Path, mounted: tuple[str, str]) -> None:
    (tmp_path / "m" / ".vast_trash").mkdir(parents=True)
    assert findings(tmp_path, mounted, ".") == {}


@pytest.mark.parametrize(
    ("source", "path"),
    [
        ("s:/ifs", "/ifs/x"),
        ("s:/ifs/", "/ifs/x"),
        ("s:/ifs/data/home", "/ifs/data/home/x"),
        ("[fe80::1%25eth0]:/ifs/data", "/ifs/data/x"),
        ("s:/ifs/a\\040b", "'/ifs/a b/x'"),
        ("s:/ifsx", ""),
        ("s:/data/ifs", ""),
        ("s:/", ""),
        ("/ifs", ""),
    ],
)
@pytest.mark.parametrize("kind", ["nfs", "nfs4"])
def test_onefs_deletes_a_directory_below_ifs(
    tmp_path: Path, kind: str, source: str, path: str
) -> None:
    shown = f"isi job jobs start TreeDelete --paths {path}" if path else ""
    assert command(tmp_path, (kind, source)) == shown


def test_vast_deletes_what_is_moved_to_its_trash(tmp_path: Path) -> None:
    mounted = ("nfs", "s:/view")
    assert command(tmp_path, mounted) == ""
    trash = tmp_path / "m" / ".vast_trash"
    trash.touch()
    assert command(tmp_path, mounted) == ""
    trash.unlink()
    trash.symlink_to(tmp_path)
    assert command(tmp_path, mounted) == ""
    trash.unlink()
    trash.mkdir()
    assert command(tmp_path, mounted, "a b") == f"mv '{tmp_path}/m/a b' {trash}/"
    assert command(tmp_path, mounted, ".vast_trash/x") == ""
    assert command(tmp_path, ("ext4", "/dev/sda1")) == ""


def test_a_trash_on_another_file_system_is_not_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # mv copies a directory to another file system
    trash = tmp_path / "m" / ".vast_trash"
    trash.mkdir(parents=True)
    real = os.lstat

    def lstat(path: str) -> os.stat_result:
        status = list(real(path))
        status[2] += path == str(trash)  # st_dev
        return os.stat_result(status)

    monkeypatch.setattr("tui_fs.survey.findings.one_step.os.lstat", lstat)
    assert command(tmp_path, ("nfs", "s:/view")) == ""


@pytest.mark.parametrize(
    ("source", "below", "options", "arguments"),
    [
        (f"{V2_SOURCE}=/", f"volumes/csi/vol-1/{UUID}", "rw", "cephfs vol-1 --group_name csi"),
        (f"{V2_SOURCE}=/", "volumes/csi/vol-1", "rw", "cephfs vol-1 --group_name csi"),
        (f"{V2_SOURCE}=/volumes/csi", "vol-1", "rw", "cephfs vol-1 --group_name csi"),
        (f"{V2_SOURCE}=/volumes/g/v/{UUID}", ".", "rw", "cephfs v --group_name g"),
        (f"{V2_SOURCE}=/", "volumes/_nogroup/v", "rw", "cephfs v"),
        ("user@.fs-2=/volumes", "g/v", "rw", "fs-2 v --group_name g"),
        ("10.0.0.1:6789,10.0.0.2:/volumes", "g/v", "rw,mds_namespace=c", "c v --group_name g"),
        ("[fe80::1]:6789:/", "volumes/g/v", "rw,mds_namespace=c", "c v --group_name g"),
        ("10.0.0.1:/a@b.c=/volumes", "g/v", "rw,mds_namespace=c", ""),
        ("10.0.0.1:6789:/volumes", "g/v", "rw", ""),
        (f"{V2_SOURCE}=/", f"volumes/csi/vol-1/{UUID}/inside", "rw", ""),
        (f"{V2_SOURCE}=/", "volumes/csi/vol-1/inside", "rw", ""),
        (f"{V2_SOURCE}=/", "volumes/csi", "rw", ""),
        (f"{V2_SOURCE}=/", "volumes/_deleting/v", "rw", ""),
        (f"{V2_SOURCE}=/", "data", "rw", ""),
        ("none", "volumes/g/v", "rw", ""),
    ],
)
def test_cephfs_deletes_a_subvolume_whose_volume_is_known(
    tmp_path: Path, source: str, below: str, options: str, arguments: str
) -> None:
    shown = f"ceph fs subvolume rm {arguments}" if arguments else ""
    assert command(tmp_path, ("ceph", source), below, options=options) == shown


@pytest.mark.parametrize("kind", ["ceph", "fuse.ceph", "fuse.ceph-fuse"])
@pytest.mark.parametrize("below", [".", "x", "volumes/g/v"])
def test_cephfs_frees_space_later(tmp_path: Path, kind: str, below: str) -> None:
    found = findings(tmp_path, (kind, "ceph-fuse"), below)
    assert list(found) == ["freed-later"]
    assert "purge queue" in found["freed-later"].meaning
    assert "frees the space of deleted files later" in found["freed-later"].note


@pytest.mark.parametrize(
    ("source", "below", "root", "argument"),
    [
        ("pool/home", ".", "/", "pool/home"),
        ("pool/a\\040b/c", ".", "/", "'pool/a b/c'"),
        ("pool/home", "x", "/", ""),
        ("pool/home", ".", "/x", ""),  # a bind mount of a directory in the dataset
        ("pool/home@monday", ".", "/", ""),
        ("pool", ".", "/", ""),
    ],
)
def test_zfs_destroys_a_dataset(
    tmp_path: Path, source: str, below: str, root: str, argument: str
) -> None:
    shown = f"zfs destroy -r {argument}" if argument else ""
    assert command(tmp_path, ("zfs", source), below, root=root) == shown


def test_the_advice_for_zfs_begins_with_a_dry_run(tmp_path: Path) -> None:
    advice = findings(tmp_path, ("zfs", "pool/home"), ".")["one-step-deletion"].advice
    assert "-n -v" in advice
    assert "snapshots" in advice
    assert "cannot be undone" in advice


def test_without_the_surroundings_no_command_is_named(tmp_path: Path) -> None:
    table = tmp_path / "mountinfo"
    table.write_bytes(ROOT_MOUNT.replace(b"ext4 /dev/sda1", b"fuse.juicefs JuiceFS:v"))
    for checks, number in ((True, 1), (False, 0)):
        *_, survey = SurveyRunner(
            [str(tmp_path)], mountinfo=str(table), checks_surroundings=checks
        ).run()
        kinds = [finding.kind for finding in survey.findings if "one-step" in finding.kind]
        assert len(kinds) == number
