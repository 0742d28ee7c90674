"""Deleted files that NFS keeps under another name while a process has them open."""

import errno
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from tests.conftest import DEADLINE_S
from tests.unit.targets import ROOT_ID
from tests.unit.test_job_store import plan
from tests.waiting_process import StartPython
from tui_fs.job import record
from tui_fs.job.record import MAX_HOLDER_SCANS, JobRecord
from tui_fs.job.store import JobFolder
from tui_fs.linux.entry_causes import cause_of_failure
from tui_fs.linux.open_files import (
    HeldFile,
    Holder,
    HoldKind,
    OpenFileScan,
    ResidentProcess,
    scan_open_files,
)
from tui_fs.model.events import EntryFailed
from tui_fs.model.paths import PathStr

SILLY = ".nfs0000000000a1b2c300000005"
IS_KEPT = (
    "it is a deleted file that a process still has open: NFS keeps it under this name until it is "
    "closed"
)
NOT_FOUND = "; no process visible here has it open"
OPEN_FILE = "file = open(sys.argv[1])"


def _holder(pid: int, command: str = "app") -> Holder:
    return Holder(pid, command, 0, 3, HoldKind.DESCRIPTOR, False, False)


def _held(*pids: int) -> OpenFileScan:
    file = HeldFile(PathStr("/x"), 1, 2, 3, tuple(_holder(pid) for pid in pids))
    return OpenFileScan(held_files=(file,))


def _table(tmp_path: Path, kind: str) -> str:
    table = tmp_path / "mountinfo"
    table.write_text(f"{ROOT_ID} {ROOT_ID} 0:50 / / rw - {kind} server:/export rw\n")
    return str(table)


def _cause(path: Path, error: int, scan: OpenFileScan | None, table: str) -> str:
    def find_holders(_: Sequence[str], device: int) -> OpenFileScan | None:
        assert device == path.stat().st_dev
        return scan

    return cause_of_failure(str(path), error, find_holders, table)


@pytest.mark.parametrize(
    ("scan", "rest"),
    [
        (None, ""),
        (_held(7), "; app (7) has it open (stop the program: NFS then deletes the file by itself)"),
        (_held(7, 7), "; app (7) has it open ("),
        (_held(7, 8), "; app (7), app (8) have it open ("),
        (_held(4, 5, 6, 7, 8), "; app (4), app (5), app (6) and 2 more have it open ("),
        (
            OpenFileScan(living=(ResidentProcess(PathStr("/x"), _holder(9, "a\x1b")),)),
            "; a\\e (9) has it open (",
        ),
        (OpenFileScan(unseen_processes=2), f"{NOT_FOUND} (2 processes could not be inspected): it"),
        (OpenFileScan(complete=False), f"{NOT_FOUND} (not all could be inspected in time): it"),
        (OpenFileScan(), f"{NOT_FOUND}: it is open in a container or on another client, or"),
    ],
)
@pytest.mark.parametrize("kind", ["nfs", "ext4"])
def test_a_busy_name_of_an_open_file_has_its_holders(
    tmp_path: Path, scan: OpenFileScan | None, rest: str, kind: str
) -> None:
    (tmp_path / SILLY).touch()
    cause = _cause(tmp_path / SILLY, errno.EBUSY, scan, _table(tmp_path, kind))
    assert cause.startswith(IS_KEPT + rest)
    assert bool(cause.removeprefix(IS_KEPT)) is bool(rest)


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("file", errno.EBUSY),
        (".nfs", errno.EBUSY),
        (SILLY[:-1], errno.EBUSY),
        (f"{SILLY}0", errno.EBUSY),
        (SILLY.upper(), errno.EBUSY),
        (f"{SILLY}\n", errno.EBUSY),
        (SILLY, errno.EACCES),
        (SILLY, errno.EPERM),
        (SILLY, errno.EIO),
    ],
)
def test_other_names_and_errors_are_not_explained_by_open_files(
    tmp_path: Path, name: str, error: int
) -> None:
    (tmp_path / name).touch()
    assert _cause(tmp_path / name, error, _held(7), _table(tmp_path, "nfs4")) == ""


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "ext4", "fuse.sshfs"])
@pytest.mark.parametrize("kept", [0, 1, 3])
def test_a_directory_on_nfs_is_not_empty_because_of_open_files(
    tmp_path: Path, kind: str, kept: int
) -> None:
    directory = tmp_path / "d"
    directory.mkdir()
    (directory / "file").touch()
    for number in range(kept):
        (directory / f"{SILLY[:-1]}{number}").touch()
    cause = _cause(directory, errno.ENOTEMPTY, _held(7), _table(tmp_path, kind))
    if not kept or not kind.startswith("nfs"):
        assert cause == ""
        return
    more = " and 2 more" if kept > 1 else ""
    assert cause == (
        f"it contains {SILLY[:-1]}0{more}: NFS keeps a deleted file under such a name until it is "
        "closed; app (7) has it open (stop the program: NFS then deletes the file by itself)"
    )


def test_the_processes_that_have_the_file_open_are_found(
    tmp_path: Path, start_python: StartPython
) -> None:
    directory = tmp_path / "d"
    directory.mkdir()
    path = directory / SILLY
    path.touch()
    (directory / "other").touch()
    start_python(OPEN_FILE, directory / "other")
    find_holders = partial(scan_open_files, limit_s=DEADLINE_S)  # the machine may be busy
    assert NOT_FOUND in cause_of_failure(str(path), errno.EBUSY, find_holders)
    pid = start_python(OPEN_FILE, path)
    table = _table(tmp_path, "nfs")
    for place, error in ((path, errno.EBUSY), (directory, errno.ENOTEMPTY)):
        cause = cause_of_failure(str(place), error, find_holders, table)
        assert f"({pid}) has it open" in cause


def test_a_name_that_is_gone_has_no_cause(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        cause_of_failure(str(tmp_path / SILLY), errno.EBUSY)


def test_a_job_searches_holders_of_a_limited_number_of_entries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scanned: list[str] = []

    def scan(paths: Sequence[str], device: int, **_: object) -> OpenFileScan:
        assert device == tmp_path.stat().st_dev
        scanned.extend(paths)
        return _held(7)

    monkeypatch.setattr(record, "scan_open_files", scan)
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "end").touch()
    job = JobRecord(JobFolder(str(tmp_path / "job")), plan())
    failed: list[str] = []
    for number in range(MAX_HOLDER_SCANS + 2):
        path = tmp_path / f".nfs{number:024x}"
        path.touch()
        failed.append(str(path))
        job.note(EntryFailed(0.0, PathStr(str(path)), "unlink", errno.EBUSY))
    assert scanned == failed[:MAX_HOLDER_SCANS]
