"""Every strategy, on every file system, deletes the target and nothing else."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Cli, Finished
from tests.filesystems import CROWDED_FILES, kind_of
from tests.needs import needs_root
from tests.trees import (
    Census,
    Sentinel,
    census,
    chain,
    hostile_names,
    manifest,
    many_directories,
)

# A path of this many levels is longer than PATH_MAX, 4096 bytes.
DEEP_LEVELS = 5_000
MODE = 0o1751
# xfs frees inodes in chunks of 64, of 512 bytes each; the 65 here may be the last of two.
XFS_CHUNK_BYTES = 64 * 512
OWNER = 1234 if os.geteuid() == 0 else os.geteuid()


@pytest.fixture(params=(False, True), ids=("whole", "keep-root"))
def keep_root(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def test_deletes_the_tree_and_nothing_beside_it(
    cli: Cli, filesystem: Path, strategy: str, keep_root: bool
) -> None:
    sentinel = Sentinel(filesystem)
    target = filesystem / "target"
    hostile_names(target)
    sentinel.plant(target)
    many_directories(target / "many", 20, 200)
    target.chmod(MODE)
    os.chown(target, OWNER, -1)
    counted = census(target)
    inode = target.stat().st_ino
    options = ["--keep-root"] if keep_root else []
    finished = cli.delete(target, strategy, "--accept-races", *options).expect(0)
    sentinel.assert_whole()
    assert sorted(os.listdir(filesystem)) == (["sentinel", "target"] if keep_root else ["sentinel"])
    if keep_root:
        status = target.stat()
        assert os.listdir(target) == []
        assert status.st_ino == inode
        assert status.st_mode & 0o7777 == MODE
        assert status.st_uid == OWNER
    # And the report says just that
    kept = 1 if keep_root else 0
    report = finished.report()
    assert report["outcome"] == "done"
    assert report["failed"] == 0
    assert report["errors"] == []
    assert report["deleted_files"] == counted.files
    assert report["deleted_directories"] == counted.directories - kept
    assert report["freed_inodes"] == freed_inodes(filesystem, counted) - kept


def freed_inodes(directory: Path, counted: Census) -> int:
    """Return how many inodes statvfs counts for a tree.

    tmpfs counts every name, as a hard link pins a directory entry in memory (shmem_link).
    """
    return counted.entries if kind_of(directory) == "tmpfs" else counted.inodes_only_here


def test_streams_lines_of_schema_1_that_end_with_the_report_of_the_job_directory(
    cli: Cli, tmpfs: Path, strategy: str
) -> None:
    many_directories(tmpfs / "target", 3, 10)
    finished = cli.delete(tmpfs / "target", strategy).expect(0)
    # Each line is an object of schema 1, and only the last one is the report
    lines = finished.stream()
    assert len(lines) > 1
    assert [line["schema"] for line in lines] == [1] * len(lines)
    assert [line["type"] == "report" for line in lines] == [False] * (len(lines) - 1) + [True]
    _assert_report_shape(finished, lines[-1])
    (job,) = cli.jobs_directory.iterdir()
    stored = json.loads((job / "report.json").read_text(encoding="utf-8"))
    for key in ("outcome", "deleted_files", "deleted_directories", "failed", "syscalls"):
        assert stored[key] == lines[-1][key]
    assert job.stat().st_mode & 0o7777 == 0o700  # for the owner only
    assert {"plan.json", "events.jsonl", "report.json", "log"} <= set(os.listdir(job))


def _assert_report_shape(finished: Finished, report: dict[str, Any]) -> None:
    promised = {
        "schema",
        "type",
        "outcome",
        "deleted_files",
        "deleted_directories",
        "failed",
        "elapsed_s",
        "strategy_wall_s",
        "syscalls",
        "trace_source",
        "freed_bytes",
        "freed_inodes",
        "predicted",
        "errors",
        "command",
    }
    assert promised <= report.keys(), finished
    assert all(isinstance(word, str) for argv in report["command"] for word in argv)
    for name, counted in report["syscalls"].items():
        assert counted["calls"] >= counted["errors"] >= 0, name


@pytest.mark.parametrize(
    "name",
    (b"-rf", b"new\nline", b"\xff\xfe*", b"host:path "),
    ids=lambda name: ascii(name)[2:-1],
)
def test_deletes_a_target_of_hostile_name(
    cli: Cli, tmpfs: Path, strategy: str, name: bytes
) -> None:
    target = Path(os.fsdecode(os.path.join(os.fsencode(tmpfs), name)))
    many_directories(target, 2, 3)
    beside = {"new", "line", "sibling", "trailing", "rf", "path"}
    for sibling in beside:
        (tmpfs / sibling).mkdir()
        (tmpfs / sibling / "file").touch()
    before = {sibling: manifest(tmpfs / sibling) for sibling in beside}
    options = ("--strategy", strategy, "--yes", "--json", "--")
    finished = cli.run("delete", *options, name, cwd=tmpfs).expect(0)
    assert set(os.listdir(tmpfs)) == beside
    assert {sibling: manifest(tmpfs / sibling) for sibling in beside} == before
    assert finished.report()["deleted_directories"] == 3


@pytest.mark.slow
def test_deletes_one_large_flat_directory(cli: Cli, crowded: Path, strategy: str) -> None:
    target = crowded / "target"
    report = cli.delete(target, strategy).expect(0).report()
    assert not target.exists()
    assert report["outcome"] == "done"
    assert report["deleted_files"] == CROWDED_FILES
    assert report["deleted_directories"] == 1
    assert report["freed_inodes"] == CROWDED_FILES + 1


def test_deletes_or_says_that_it_cannot_when_the_tree_is_deeper_than_a_path(
    cli: Cli, ext4: Path, strategy: str
) -> None:
    chain(ext4 / "deep", DEEP_LEVELS)
    estimate = cli.run("estimate", "--json", ext4 / "deep").expect(0).object()
    (feasible,) = (row["feasible"] for row in estimate["strategies"] if row["strategy"] == strategy)
    finished = cli.delete(ext4 / "deep", strategy)
    # It does where the estimate says so, and elsewhere does not claim to have done it
    # (xargs hands on names of files, and there are none)
    assert feasible == (strategy in {"rm", "find", "xargs", "parallel"})
    if feasible:
        report = finished.expect(0).report()
        assert report["deleted_directories"] == DEEP_LEVELS + 1
        assert os.listdir(ext4) == []
    else:
        assert finished.code in {1, 2, 3}, finished
        assert "Traceback" not in finished.stderr
        assert os.listdir(ext4) == ["deep"]


def test_deletes_a_symlink_and_keeps_what_it_points_to(cli: Cli, ext4: Path, strategy: str) -> None:
    # A tree of another owner that holds only a symlink to a directory outside
    needs_root("changing owners")
    sentinel = Sentinel(ext4)
    target = ext4 / "target"
    target.mkdir()
    (target / "out").symlink_to(sentinel.root / "inner", target_is_directory=True)
    os.chown(target, OWNER, OWNER)
    report = cli.delete(target, strategy, "--accept-races").expect(0).report()
    sentinel.assert_whole()
    assert report["deleted_files"] == 1
    assert report["deleted_directories"] == 1


def test_frees_the_bytes_that_the_survey_promised(
    cli: Cli, filesystem: Path, strategy: str
) -> None:
    target = filesystem / "target"
    target.mkdir()
    for number in range(64):
        (target / f"data-{number}").write_bytes(os.urandom(20_000))
    os.link(target / "data-0", filesystem / "outside")
    os.sync()
    survey = cli.run("survey", "--json", target).expect(0).object()
    report = cli.delete(target, strategy).expect(0).report()
    chunks = XFS_CHUNK_BYTES * 2 if kind_of(filesystem) == "xfs" else 0
    assert survey["freed_bytes_min"] <= report["freed_bytes"]
    assert report["freed_bytes"] <= survey["freed_bytes_max"] + chunks
