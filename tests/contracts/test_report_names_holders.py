"""A report says who still holds what was deleted."""

import sys
from pathlib import Path

from tests.conftest import Cli
from tests.waiting_process import waiting_process

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
