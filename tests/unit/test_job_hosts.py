"""Several hosts share one home directory: each leaves the jobs and records of the others alone."""

import argparse
import os
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.unit.test_job_lock import held
from tests.unit.test_job_view import job, seen
from tests.unit.test_model_snapshot import RUNNING, finished, sampled
from tui_fs.cli.jobs import run_attach, run_control, run_list
from tui_fs.cli.maintenance import run_aside
from tui_fs.job.aside_store import Action, AsideState, keep, new_record, records
from tui_fs.job.conflicts import check_conflicts
from tui_fs.job.maintenance import undo
from tui_fs.job.retention import RetentionRule, prune
from tui_fs.job.store import JobFolder, load_plan, read_json, write_json
from tui_fs.job.view import summaries
from tui_fs.linux.host import current_host
from tui_fs.linux.pins import take_pin
from tui_fs.model.codec import encode
from tui_fs.model.errors import JobFailed, Refused
from tui_fs.model.host import Host, Locality, locality_of
from tui_fs.model.outcome import JobState, Outcome
from tui_fs.model.paths import PathStr
from tui_fs.model.target import Target

HERE = Host("here", "m1", "b1")


@pytest.mark.parametrize(
    ("host", "locality"),
    [
        (HERE, Locality.THIS_BOOT),
        (Host("container", "m9", "b1"), Locality.THIS_BOOT),
        (Host("here", "m1", "b2"), Locality.EARLIER_BOOT),
        (Host("there", "m2", "b2"), Locality.OTHER_HOST),
        (Host("clone", "m1", "b2"), Locality.OTHER_HOST),
        (Host("here", "m2", "b2"), Locality.OTHER_HOST),
        (Host("there", "m2", ""), Locality.OTHER_HOST),
        (Host("here", "m1", ""), Locality.THIS_BOOT),
        (Host(), Locality.THIS_BOOT),
    ],
)
def test_hosts_are_distinguished_by_boot_name_and_machine_id(
    host: Host, locality: Locality
) -> None:
    assert locality_of(host, HERE) is locality


def test_this_host_is_known_by_its_boot() -> None:
    host = current_host()
    assert host.name == os.uname().nodename
    assert host.boot_id
    assert locality_of(host, host) is Locality.THIS_BOOT


OTHER = Host("nfs-client-2", "0" * 32, "11111111-1111-1111-1111-111111111111")


def made_by(folder: JobFolder, host: Host) -> JobFolder:
    """Make a job appear to be another host's."""
    plan = read_json(folder.plan)
    plan["origin"]["host"] = encode(host)
    write_json(folder.plan, plan)
    return folder


def earlier_boot() -> Host:
    """Return this machine before its last start."""
    return replace(current_host(), boot_id=OTHER.boot_id)


def test_a_job_of_another_host_is_not_shown_as_died() -> None:
    folder = made_by(job(*RUNNING, sampled(1, 10)), OTHER)
    done = job(*RUNNING, finished(Outcome.DONE), job_id="done")
    made_by(done, OTHER)
    # It is elsewhere, not died; an end counts wherever it was written
    assert seen(folder)[0] is JobState.ELSEWHERE
    by_id = {summary.job_id: summary for summary in summaries()[0]}
    assert by_id["abc"].state is JobState.ELSEWHERE
    assert by_id["done"].state is JobState.DONE
    assert all(summary.is_other_host for summary in by_id.values())


def test_the_list_names_the_other_host(capsys: pytest.CaptureFixture[str]) -> None:
    made_by(job(*RUNNING), OTHER)
    run_list(argparse.Namespace(json=False, prune=False, compare=None))
    assert "on host nfs-client-2" in capsys.readouterr().out
    run_list(argparse.Namespace(json=True, prune=False, compare=None))
    out = capsys.readouterr().out
    assert '"elsewhere"' in out
    assert '"nfs-client-2"' in out


@pytest.mark.parametrize("command", ["pause", "resume", "cancel"])
def test_a_command_to_a_job_of_another_host_names_that_host(command: str) -> None:
    made_by(job(*RUNNING), OTHER)
    with pytest.raises(JobFailed, match="runs on host nfs-client-2"):
        run_control(argparse.Namespace(command=command, job="abc", value=""))


def test_attach_to_a_job_of_another_host_names_that_host() -> None:
    made_by(job(*RUNNING), OTHER)
    with pytest.raises(JobFailed, match="runs on host nfs-client-2"):
        run_attach(argparse.Namespace(job="abc", json=False))


def test_after_a_restart_a_job_without_an_end_has_died_though_its_lock_is_taken() -> None:
    folder = made_by(job(*RUNNING, created_at=time.time() + 1e9), earlier_boot())
    with held(folder.lock):
        assert seen(folder) == (JobState.DIED, True)
        # And its lock blocks no other job
        check_conflicts(load_plan(folder).targets)


def test_after_a_restart_a_job_that_was_starting_has_died() -> None:
    assert seen(made_by(job(), earlier_boot())) == (JobState.DIED, True)


def test_a_locked_job_of_another_host_causes_a_conflict() -> None:
    folder = made_by(job(*RUNNING), OTHER)
    with held(folder.lock), pytest.raises(Refused):
        check_conflicts(load_plan(folder).targets)


def test_jobs_of_another_host_are_never_pruned() -> None:
    made_by(job(*RUNNING, finished(Outcome.DONE), job_id="done"), OTHER)
    made_by(job(*RUNNING, job_id="open"), OTHER)
    job(*RUNNING, finished(Outcome.DONE), job_id="own")
    assert prune(RetentionRule(max_jobs=0, max_bytes=0, min_jobs=0)).removed == ["own"]
    assert {summary.job_id for summary in summaries()[0]} == {"done", "open"}


@pytest.fixture
def foreign_record(tmp_path: Path) -> str:
    """Return the record of a directory that another host has put aside; here its place is empty."""
    target = Target(PathStr(str(tmp_path / "spool")), take_pin(str(tmp_path)))
    record = replace(new_record(Action.ASIDE, target), host=OTHER)
    keep(record)
    return record.id


def test_a_record_of_another_host_is_listed_with_that_host(
    foreign_record: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert [(record.id, standing) for record, standing in records()[0]] == [
        (foreign_record, AsideState.ELSEWHERE)
    ]
    run_aside(aside(list=True))
    # It is not called gone
    out = capsys.readouterr().out
    assert "on host nfs-client-2" in out
    assert "deleted or moved" not in out


def test_a_record_of_another_host_is_neither_undone_nor_forgotten(foreign_record: str) -> None:
    for act in (lambda: undo(foreign_record), lambda: run_aside(aside(undo=foreign_record))):
        with pytest.raises(JobFailed, match="on host nfs-client-2"):
            act()
    assert [record.id for record, _ in records()[0]] == [foreign_record]


def aside(**given: object) -> argparse.Namespace:
    """Return the arguments of tui-fs aside."""
    usual = {"path": None, "list": False, "undo": None, "twin": False, "yes": True, "json": False}
    return argparse.Namespace(**usual | given)
