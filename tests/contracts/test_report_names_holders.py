"""A report names who still holds what was deleted, or what could not be deleted."""

import sys
from pathlib import Path

import pytest

from tests.conftest import Cli, Json, wait_until
from tests.fuse.latency import fault, served_late
from tests.needs import needs_tools_of
from tests.waiting_process import StartPython, waiting_process
from tui_fs.strategies.registry import STRATEGIES

BYTES = 4 << 20
HOLD = f"""
import os, sys, time
file = open(sys.argv[1], "wb", buffering=0)
file.write(b"x" * {BYTES})
os.fsync(file.fileno())
print("held", flush=True)
time.sleep(600)
"""


def test_a_process_that_holds_a_deleted_file_is_named(cli: Cli, tmp_path: Path) -> None:
    target = tmp_path / "logs"
    target.mkdir()
    command = [sys.executable, "-c", HOLD, str(target / "app.log")]
    with waiting_process(command) as holder:
        report = cli.delete(target, "rm").expect(0).report()
    assert report["outcome"] == "done"
    (cause,) = [
        space_cause for space_cause in report["space_causes"] if space_cause["pid"] == holder.pid
    ]
    assert (cause["kind"], cause["bytes"]) == ("held-open", BYTES)
    assert cause["command"].startswith("python")
    assert f"/proc/{holder.pid}/fd/" in cause["advice"]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_name_that_nfs_keeps_for_an_open_file_has_its_holder(
    cli: Cli, tmpfs: Path, strategy: str, start_python: StartPython
) -> None:
    # A server that refuses to delete an open file again, as a client of NFS does
    needs_tools_of(strategy)
    backing = tmpfs / "backing"
    kept, left_over = f"target/a/.nfs{1:024x}", f"target/b/.nfs{2:024x}"
    for name in (kept, left_over):
        (backing / name).parent.mkdir(parents=True)
        (backing / name).touch()
    with served_late(backing, tmpfs / "mount", 0.0, *fault("unlink", "EBUSY", 1)) as mounted:
        holder = start_python("file = open(sys.argv[1])", mounted / kept)
        report = _report_that_names(holder, cli, mounted / "target", strategy)
        text = cli.run("attach", report["id"]).stdout.decode()
    causes = {error["path"]: error["cause"] for error in report["errors"]}
    beginning = "it is a deleted file that a process still has open: NFS keeps it under this name"
    for name, rest in ((kept, f"({holder}) has it open"), (left_over, "no process visible here")):
        cause = causes[str(mounted / name)]
        assert cause.startswith(beginning)
        assert rest in cause
        assert f"{mounted / name}: {cause}" in text


def _report_that_names(holder: int, cli: Cli, target: Path, strategy: str) -> Json:
    """Delete what stays, again where a busy machine did not read all processes in time."""
    reports: list[Json] = []

    def is_named() -> bool:
        reports.append(cli.delete(target, strategy).expect(1).report())
        return f"({holder}) has it open" in str(reports[-1]["errors"])

    wait_until(is_named, "a scan that finds the holder")
    return reports[-1]
