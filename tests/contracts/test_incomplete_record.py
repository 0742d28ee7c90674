"""A journal that reaches the limit for the size of a file, and what the end of the job says."""

import json
import resource
import subprocess
from pathlib import Path

import pytest

from tests.conftest import DEADLINE_S, Cli, Json, wait_until
from tests.trees import flat
from tui_fs.job.lock import is_occupied
from tui_fs.job.retention import RetentionRule, prune
from tui_fs.job.store import all_jobs

FILES = 3_000


def run_with_limit(
    cli: Cli, limit_bytes: int, *arguments: str | Path
) -> "subprocess.CompletedProcess[bytes]":
    """Delete as a JSON stream under ``ulimit -f``."""
    return subprocess.run(
        [cli.program, "delete", "--yes", "--json", *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, limit_bytes)),
        timeout=DEADLINE_S,
        check=False,
    )


@pytest.mark.parametrize("strategy", ["rm", "parallel"])
def test_a_deletion_whose_journal_is_cut_off_is_done(
    cli: Cli, tmp_path: Path, strategy: str
) -> None:
    flat(tmp_path / "t", FILES)
    # So slowly that the journal reaches its limit
    options = "--strategy", strategy, "--rate", "600", tmp_path / "t"
    finished = run_with_limit(cli, 8 << 10, *options)
    assert finished.returncode == 1, finished.stderr
    report: Json = json.loads(finished.stdout.splitlines()[-1])
    assert not (tmp_path / "t").exists()
    assert report["outcome"] == "done"
    assert "The journal of this job is incomplete" in report["explanation"]
    assert report["record_problem"] == "File too large"
    assert (report["deleted_files"], report["deleted_directories"]) == (FILES, 1)
    assert report["syscalls"]["unlinkat"]["calls"] >= FILES
    # And every place agrees
    job = report["id"]
    assert cli.state_of(job) == "done"
    attached = cli.run("attach", "--json", job).expect(1).report()
    written = json.loads((cli.jobs_directory / job / "report.json").read_text())
    for other in (attached, written):
        for key in ("outcome", "explanation", "deleted_files", "failed", "syscalls"):
            assert other[key] == report[key], key
    assert "cannot be" not in cli.run("jobs").expect(0).stderr
    # And its folder can be removed; a supervisor is alive for a moment after its report
    wait_until(lambda: not any(is_occupied(job.lock) for job in all_jobs()), "its end")
    pruned = prune(RetentionRule(max_jobs=0))
    assert (len(pruned.removed), pruned.kept) == (1, [])
    assert list(cli.jobs_directory.iterdir()) == []


def test_a_job_that_cannot_be_written_deletes_nothing(cli: Cli, tmp_path: Path) -> None:
    flat(tmp_path / "t", 20)
    finished = run_with_limit(cli, 1 << 10, "--strategy", "rm", tmp_path / "t")
    assert finished.returncode == 5
    assert b"File too large. Raise the file size limit (ulimit -f)." in finished.stderr
    assert len(list((tmp_path / "t").iterdir())) == 20
    assert list(cli.jobs_directory.iterdir()) == []
