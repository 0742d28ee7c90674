"""A job that died is resumed; what it left is confirmed again."""

import json
import os
import signal
from pathlib import Path

import pytest

from tests.conftest import Cli, entries_in, wait_until
from tests.contracts.several import resume
from tests.trees import flat

FILES = 1500


@pytest.fixture
def died(cli: Cli, tmpfs: Path) -> tuple[str, Path]:
    """Return a job whose supervisor was killed in its midst, and its target."""
    target = tmpfs / "place" / "target"
    target.mkdir(parents=True)
    flat(target, FILES)
    options = ("--batch-size", "1", "--rate", "20", "--detach", "--yes", "--json")
    job = str(cli.run("delete", "--strategy", "xargs", *options, target).expect(0).object()["id"])
    wait_until(lambda: 0 < entries_in(target) < FILES, "a deletion at work")
    os.kill(cli.supervisor_of(job), signal.SIGKILL)
    cli.wait_for_state(job, "died")
    return job, target


def test_resume_goes_on_with_the_rest(cli: Cli, died: tuple[str, Path]) -> None:
    job, target = died
    left = entries_in(target)
    assert left > 0
    report, _ = resume(cli, job)
    assert report["outcome"] == "done"
    assert report["strategy"] == "xargs"
    assert report["expected"]["totals"]["files"] == left
    assert report["id"] != job
    assert not target.exists()
    plan = json.loads((cli.jobs_directory / str(report["id"]) / "plan.json").read_text())
    assert plan["continues"] == job
    assert cli.state_of(job) == "died"


def test_resume_asks_where_it_can(cli: Cli, died: tuple[str, Path]) -> None:
    job, target = died
    left = entries_in(target)
    cli.run("resume", job).expect(2).assert_one_sentence()
    assert entries_in(target) == left


def test_resume_refuses_another_directory(cli: Cli, died: tuple[str, Path]) -> None:
    job, target = died
    target.rename(target.parent / "old")
    target.mkdir()
    flat(target, 3)
    cli.run("resume", job, "--yes").expect(3).assert_one_sentence()
    assert entries_in(target) == 3


@pytest.mark.parametrize("same_boot", (True, False))
def test_a_restart_of_the_machine_is_reported(
    cli: Cli, died: tuple[str, Path], same_boot: bool
) -> None:
    job, _ = died
    journal = cli.jobs_directory / job / "events.jsonl"
    first, _, rest = journal.read_text().partition("\n")
    started = json.loads(first)
    assert started["boot_id"]
    if not same_boot:
        started["boot_id"] = "00000000-0000-0000-0000-000000000000"
    journal.write_text(f"{json.dumps(started)}\n{rest}")
    report = cli.run("attach", job, "--json").expect(5).report()
    assert ("restarted" in report["explanation"]) is not same_boot
    assert f"tui-fs resume {job}" in report["explanation"]
