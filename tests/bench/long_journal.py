"""Measure the journal of a 48-hour job, its readers, and a list of 2,000 old jobs.

Run ``python -m tests.bench.long_journal --dir DIR``. The journal is written by the supervisor's own
classes (`SampleSchedule`, `Sampled`, `ToolOutput`, `JournalWriter`) with a simulated clock: one
sample every 0.25 s, the due ones journalled, eleven system calls whose counts change each time,
and once with ``--failures`` failed entries. Each command runs
as a process of its own; the memory is its largest resident size.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from msgspec.structs import replace

from tests.unit.test_job_store import plan
from tests.unit.test_model_snapshot import finished, started
from tui_fs.job.journal import JournalWriter
from tui_fs.job.report import report_of
from tui_fs.job.sampling import SAMPLE_EVERY_S, SampleSchedule
from tui_fs.job.store import JobFolder, create, write_json
from tui_fs.job.tool_output import ToolOutput
from tui_fs.model.calls import CallCount, Removed
from tui_fs.model.events import EntryFailed, Event, Sampled, StepStarted, Usage
from tui_fs.model.outcome import JobState, Outcome
from tui_fs.model.snapshot import Snapshot, fold
from tui_fs.model.space import Space
from tui_fs.model.strategy import StrategyName
from tui_fs.strategies.registry import STRATEGIES

HOURS = 48
_CALLS = (
    "unlinkat", "rmdir", "openat", "close", "newfstatat", "getdents64", "execve", "brk", "mmap",
    "munmap", "read",
)  # fmt: skip


def sampled(at_s: float) -> Sampled:
    """Return a sample of the usual size in which every figure has changed."""
    number = int(at_s * 1_000) + 1
    return Sampled(
        at_s=round(at_s, 4),
        strategy_s=at_s - 0.1337,
        calls={name: CallCount(number + place, place) for place, name in enumerate(_CALLS)},
        removed=Removed(number, number // 100),
        usage=Usage(at_s / 2, at_s / 3, 57.31, 12_345_678, number, number, 3, "rm (4711)"),
        space=Space(1_000_000_000 + number * 4096, 1_000_000 + number),
        io_pressure_percent=12.34,
    )


def write_job(folder: JobFolder, failures: int) -> int:
    """Write the journal of a job of 48 hours; return the number of its samples."""
    writer, schedule, snapshot = JournalWriter(folder.journal), SampleSchedule(), Snapshot()
    output = ToolOutput(STRATEGIES[StrategyName("rm")], "/srv/spool")
    errors: list[EntryFailed] = []
    samples = failed = 0

    def note(event: Event) -> None:
        nonlocal snapshot
        writer.write(event)
        snapshot = fold(snapshot, event)
        if isinstance(event, EntryFailed):
            errors.append(event)

    note(replace(started(200_000_000), job_id=folder.job_id))
    note(StepStarted(0.6, 0, (4711,)))
    steps = int(HOURS * 3600 / SAMPLE_EVERY_S)
    for number in range(4, steps):
        at_s = number * SAMPLE_EVERY_S
        if not schedule.is_due(at_s):
            continue
        until = failures if number > 0.99 * steps else failures * number // steps
        for event in output.take_errors(b"".join(map(_failure, range(failed, until))), at_s):
            note(event)
        failed = until
        for event in output.counted_failures(at_s):
            note(event)
        note(sampled(at_s))
        schedule.recorded(at_s)
        samples += 1
    assert snapshot.failed == failures
    assert snapshot.removed is not None
    outcome = Outcome.PARTIAL if errors else Outcome.DONE
    deleted = snapshot.removed.entries
    end = replace(finished(outcome), failed=snapshot.failed, deleted_entries=deleted)
    note(replace(end, at_s=HOURS * 3600.0))
    write_json(folder.report, report_of(snapshot, JobState(outcome.value), errors).to_json())
    return samples


def _failure(number: int) -> bytes:
    return b"rm: cannot remove 'directory/%08d': Permission denied\n" % number


_MEASURING = """
import os, subprocess, sys, time
began_s = time.perf_counter()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, used = os.wait4(process.pid, 0)
print(time.perf_counter() - began_s, used.ru_maxrss // 1024, os.waitstatus_to_exitcode(status))
"""
"""A child begins with the memory of its parent, so a small process measures."""


def measured(label: str, command: list[str]) -> None:
    """Run a command and print its time and memory."""
    measuring = [sys.executable, "-I", "-S", "-c", _MEASURING, *command]
    answer = subprocess.run(measuring, check=True, capture_output=True, text=True).stdout
    took_s, mebibytes, code = answer.split()
    print(f"{label:35} {float(took_s):6.2f} s {mebibytes:>5} MiB  exit {code}")


_VIEW = """
import sys
from tui_fs.job.store import find
from tui_fs.job.view import JobView
view = JobView(find(sys.argv[1]))
view.poll()
assert view.snapshot.finished is not None
"""
_SCREEN = """
from tui_fs.job.view import JobList
jobs = JobList()
assert jobs.read()[0]
"""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--dir", required=True)
    parser.add_argument("--failures", type=int, default=5_000_000)
    parser.add_argument("--jobs", type=int, default=2_000)
    parsed = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=parsed.dir) as home:
        os.environ["XDG_STATE_HOME"] = os.environ["XDG_RUNTIME_DIR"] = home
        tui_fs = [sys.executable, "-m", "tui_fs.cli"]
        for failures in (0, parsed.failures):
            folder = create(plan(f"long{failures}"))
            samples = write_job(folder, failures)
            megabytes = os.path.getsize(folder.journal) / 1e6
            print(f"48 hours, {failures:,} failures: {samples:,} samples, {megabytes:.1f} MB")
            measured("  tui-fs jobs", [*tui_fs, "jobs"])
            measured("  tui-fs attach", [*tui_fs, "attach", folder.job_id])
            measured(
                "  JobView, first complete snapshot", [sys.executable, "-c", _VIEW, folder.job_id]
            )
        ended = Path(folder.journal).read_bytes().splitlines(keepends=True)
        print(f"{parsed.jobs:,} old jobs")
        for number in range(parsed.jobs):
            old = create(plan(f"old{number:06}"))
            Path(old.journal).write_bytes(b"".join((*ended[:200], ended[-1])))
            Path(old.report).write_bytes(b"{}")
        measured("  tui-fs jobs", [*tui_fs, "jobs"])
        measured("  tui-fs jobs --json", [*tui_fs, "jobs", "--json"])
        measured("  jobs screen, first list", [sys.executable, "-c", _SCREEN])
        measured("  python, no list", [sys.executable, "-c", "import tui_fs.job.view"])
        measured("  tui-fs jobs --prune", [*tui_fs, "jobs", "--prune"])


if __name__ == "__main__":
    main()
