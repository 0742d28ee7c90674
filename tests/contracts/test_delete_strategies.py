"""Every strategy, on every file system, deletes the target and nothing else."""

import json
import os
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Cli, Finished, wait_until
from tests.filesystems import kind_of
from tests.trees import Census, Sentinel, census, hostile_names, many_directories
from tui_fs.model.strategy import Confine
from tui_fs.safety.confinement import mechanisms_for

# An option, two lines, a host of rsync, no UTF-8, a glob.
HOSTILE_NAME = b"-rf\nhost:path \xff*"
MODE = 0o1751
# xfs frees inodes in chunks of 64, of 512 bytes each; the 65 here may be the last of two.
XFS_CHUNK_BYTES = 64 * 512
OWNER = 1234 if os.geteuid() == 0 else os.geteuid()


# What a strategy does to keep the root does not depend on the file system; that it deletes a whole
# tree on ext4 is in the matrix, and that it keeps roots on tmpfs in test_several_targets.py.
@pytest.mark.parametrize(
    ("filesystem", "keep_root"),
    (("ext4", True), ("xfs", False), ("tmpfs", False)),
    indirect=["filesystem"],
    ids=("ext4-keep-root", "xfs-whole", "tmpfs-whole"),
)
def test_deletes_the_tree_and_nothing_beside_it(
    cli: Cli, filesystem: Path, strategy: str, keep_root: bool
) -> None:
    # A busy kernel releases the inode of a target that Landlock has confined after the report
    tries = (filesystem / str(number) for number in count())
    wait_until(
        lambda: _uncounted_inodes(cli, next(tries), strategy, keep_root) == 0,
        "a report of all freed inodes",
    )


def _uncounted_inodes(cli: Cli, place: Path, strategy: str, keep_root: bool) -> int:
    """Delete a tree in a new directory; return how many of its inodes the report misses."""
    place.mkdir()
    sentinel = Sentinel(place)
    target = Path(os.fsdecode(os.fsencode(place) + b"/" + HOSTILE_NAME))
    siblings = ["-rf", "host:path", "path *", "sentinel"]
    for name in siblings[:3]:
        (place / name).mkdir()
    hostile_names(target)
    sentinel.plant(target)
    many_directories(target / "many", 20, 20)
    target.chmod(MODE)
    os.chown(target, OWNER, -1)
    counted = census(target)
    inode = target.stat().st_ino
    options = ["--keep-root"] if keep_root else []
    words = ("--strategy", strategy, "--yes", "--json", "--accept-races", *options, "--")
    finished = cli.run("delete", *words, HOSTILE_NAME, cwd=place).expect(0)
    sentinel.assert_whole()
    assert set(os.listdir(place)) == {*siblings, *([target.name] if keep_root else [])}
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
    assert report["counts_are"] == "exact"
    assert report["confined_by"] == list(mechanisms_for(Confine.AUTO, levels=3))
    return freed_inodes(place, counted) - kept - int(report["freed_inodes"])


def freed_inodes(directory: Path, counted: Census) -> int:
    """Return how many inodes statvfs counts for a tree.

    tmpfs counts every name, as a hard link pins a directory entry in memory (shmem_link).
    """
    return counted.entries if kind_of(directory) == "tmpfs" else counted.inodes_only_here


@pytest.mark.parametrize("strategy", ("xargs", "parallel"), indirect=True)
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
    ("filesystem", "strategy"),
    (("ext4", "rm"), ("xfs", "rsync"), ("tmpfs", "parallel")),
    indirect=True,
)
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
