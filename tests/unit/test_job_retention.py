"""Which old jobs are removed, and that nothing else is."""

import argparse
import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.unit.test_job_lock import held
from tests.unit.test_job_view import job
from tests.unit.test_model_snapshot import RUNNING, finished
from tui_fs.cli.jobs import run_list
from tui_fs.job import retention
from tui_fs.job.retention import RetentionRule, prune
from tui_fs.job.store import JobFolder, all_jobs, jobs_directory, read_json, write_json
from tui_fs.job.view import summaries
from tui_fs.linux.host import boottime_s
from tui_fs.model.codec import encode
from tui_fs.model.events import Event, JobRefused, Paused
from tui_fs.model.host import Host
from tui_fs.model.outcome import Outcome

DAY_S = 86_400.0
NOW_S = 1.8e9
END = (*RUNNING, finished(Outcome.DONE))


RULE = RetentionRule(max_jobs=3, max_age_s=10 * DAY_S, max_bytes=1 << 20, min_jobs=1)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop the clock."""
    monkeypatch.setattr("time.time", lambda: NOW_S)


def aged(name: str, age_s: float, *events: Event, same_boot: bool = False) -> JobFolder:
    """Make a job of this age, of an earlier boot unless otherwise wanted."""
    folder = job(*events, job_id=name)
    if not same_boot:
        plan = read_json(folder.plan)
        host = plan["origin"]["host"]
        plan["origin"]["host"] = encode(Host(host["name"], host["machine_id"], "earlier"))
        write_json(folder.plan, plan)
    os.utime(folder.plan, (NOW_S - age_s, NOW_S - age_s))
    return folder


def left() -> set[str]:
    """Return the names of the jobs that are left."""
    return {folder.job_id for folder in all_jobs()}


def test_the_newest_jobs_are_kept() -> None:
    for number in range(5):
        aged(f"job{number}", number, *END)
    pruned = prune(RULE)
    assert sorted(pruned.removed) == ["job3", "job4"]
    assert left() == {"job0", "job1", "job2"}
    assert sorted(os.listdir(jobs_directory())) == ["job0", "job1", "job2"]
    assert pruned.freed_bytes > 0
    assert pruned.kept == []
    # And there is nothing more to do
    assert prune(RULE).removed == []


def test_jobs_beyond_the_size_are_removed() -> None:
    for number in range(3):
        Path(aged(f"job{number}", number, *END).log).write_bytes(b"x" * 600_000)
    assert sorted(prune(RULE).removed) == ["job1", "job2"]


@pytest.mark.parametrize("events", [RUNNING, (*RUNNING, Paused(2.0, 2.0, True)), ()])
@pytest.mark.slow
def test_a_job_that_runs_or_is_paused_is_never_removed(events: tuple[Event, ...]) -> None:
    folder = aged("busy", 99 * DAY_S, *events, same_boot=True)
    for number in range(4):
        aged(f"job{number}", number, *END)
    with held(folder.lock):
        assert "busy" not in prune(RULE).removed
    assert "busy" in left()


def test_an_ended_job_whose_supervisor_still_works_is_not_removed() -> None:
    folder = aged("ending", 11 * DAY_S, *END, same_boot=True)
    for number in range(3):
        aged(f"job{number}", number, *END, same_boot=True)
    with held(folder.lock):
        assert prune(RULE).removed == []
    assert prune(RULE).removed == ["ending"]


def test_a_job_of_this_boot_grows_old_by_the_time_since_boot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    aged("old", 11 * DAY_S, *END, same_boot=True)
    aged("new", 0, *END, same_boot=True)
    now_s = boottime_s()
    monkeypatch.setattr(retention, "boottime_s", lambda: now_s + 11 * DAY_S)
    assert prune(RULE).removed == ["old"]


@pytest.mark.parametrize("limit", [{"max_jobs": 2}, {"max_bytes": 900_000}])
def test_a_clock_that_was_set_back_makes_the_jobs_of_this_boot_no_older(
    monkeypatch: pytest.MonkeyPatch, limit: dict[str, Any]
) -> None:
    # A clock that was set back a year: three jobs of earlier boots seem to come from the
    # future, and those of this boot to be the oldest
    for number in range(3):
        aged(f"earlier{number}", -365 * DAY_S + number, *END)
    for number in range(3):
        monkeypatch.setattr("tui_fs.job.store.boottime_s", lambda now=number: 1000.0 + now)
        folder = aged(f"now{number}", number * DAY_S, *END, same_boot=True)
        Path(folder.log).write_bytes(bytes(400_000))
    prune(replace(RULE, **limit))
    assert left() == {"now2", "now1"}


REFUSED = JobRefused(0.1, "busy", "", "")


@pytest.mark.parametrize(
    ("jobs", "same_boot", "removed"),
    [
        pytest.param([(0, END), (11, END)], False, [1], id="old"),
        pytest.param([(0, END), (11, (REFUSED,))], False, [1], id="refused"),
        pytest.param(
            [(0, END), (1, END), (2, END), (3, END), (9, RUNNING), (11, RUNNING)],
            False,
            [3, 5],
            id="died: as long as it may be resumed",
        ),
        pytest.param([(-500, END), (-400, RUNNING)], False, [], id="from the future"),
        pytest.param([(400, END), (401, END)], False, [1], id="the newest, however old"),
        pytest.param([(400, END), (401, END), (402, RUNNING)], True, [], id="clock set ahead"),
    ],
)
def test_jobs_are_removed_by_age(
    jobs: list[tuple[int, tuple[Event, ...]]], same_boot: bool, removed: list[int]
) -> None:
    for number, (days, events) in enumerate(jobs):
        aged(f"job{number}", days * DAY_S, *events, same_boot=same_boot)
    assert sorted(prune(RULE).removed) == [f"job{number}" for number in removed]


def test_a_job_that_cannot_be_read_stays_and_is_named() -> None:
    aged("new", 0, *END)
    folder = aged("damaged", 11 * DAY_S, *END)
    Path(folder.plan).write_text("{")
    os.utime(folder.plan, (NOW_S - 11 * DAY_S,) * 2)
    pruned = prune(RULE)
    assert pruned.removed == []
    assert [kept.path for kept in pruned.kept] == [folder.path]


def strange_file(folder: JobFolder) -> None:
    """Put a file into a job's folder that does not belong there."""
    Path(folder.path, "notes.txt").write_text("mine")


def strange_link(folder: JobFolder) -> None:
    """Put a link in the place of the log."""
    Path(folder.log).symlink_to("/etc/passwd")


def strange_content(folder: JobFolder) -> None:
    """Put a file into the empty directory."""
    Path(folder.empty_directory, "x").touch()


def strange_directory(folder: JobFolder) -> None:
    """Put a directory in the place of the report."""
    Path(folder.report).mkdir()


def link_as_empty(folder: JobFolder) -> None:
    """Put a link in the place of the empty directory."""
    os.rmdir(folder.empty_directory)
    Path(folder.empty_directory).symlink_to("/etc")


STRANGE = [strange_file, strange_link, strange_content, strange_directory, link_as_empty]


@pytest.mark.parametrize("change", STRANGE)
def test_a_folder_with_anything_unexpected_stays_whole_and_is_named(
    change: Callable[[JobFolder], None],
) -> None:
    aged("new", 0, *END)
    folder = aged("strange", 11 * DAY_S, *END)
    change(folder)
    before = sorted(path.relative_to(folder.path) for path in Path(folder.path).rglob("*"))
    pruned = prune(RULE)
    assert pruned.removed == []
    assert [kept.path for kept in pruned.kept] == [folder.path]
    assert before == sorted(path.relative_to(folder.path) for path in Path(folder.path).rglob("*"))


def test_a_link_among_the_jobs_is_not_followed(tmp_path: Path) -> None:
    aged("new", 0, *END)
    outside = tmp_path / "outside"
    os.rename(aged("old", 11 * DAY_S, *END).path, outside)
    Path(jobs_directory(), "old").symlink_to(outside)
    pruned = prune(RULE)
    assert pruned.removed == []
    assert (outside / "plan.json").exists()
    assert (outside / "events.jsonl").exists()


def test_files_of_an_interrupted_write_and_the_socket_go_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    aged("new", 0, *END)
    folder = aged("old", 11 * DAY_S, *END)
    Path(f"{folder.report}.0123abcd.partial").touch()
    with socket.socket(socket.AF_UNIX) as server, monkeypatch.context() as patch:
        patch.chdir(folder.path)
        server.bind(os.path.basename(folder.socket))  # a whole path may be too long
    assert prune(RULE).removed == ["old"]
    assert os.listdir(jobs_directory()) == ["new"]


def test_jobs_in_a_directory_that_others_can_read_stay() -> None:
    aged("new", 0, *END)
    folder = aged("old", 11 * DAY_S, *END)
    os.chmod(jobs_directory(), 0o755)
    pruned = prune(RULE)
    assert pruned.removed == []
    assert pruned.kept
    assert os.path.exists(folder.plan)


@pytest.mark.parametrize("files", [0, 1])
def test_a_removal_that_is_interrupted_leaves_no_job_that_seems_to_have_died(
    monkeypatch: pytest.MonkeyPatch, files: int
) -> None:
    aged("new", 0, *END)
    aged("old", 11 * DAY_S, *END)
    unlink, calls = os.unlink, list[str]()

    def some(path: str, *, dir_fd: int) -> None:
        if len(calls) == files:
            raise KeyboardInterrupt
        calls.append(path)
        unlink(path, dir_fd=dir_fd)

    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", some)
        with pytest.raises(KeyboardInterrupt):
            prune(RULE)
    assert [summary.job_id for summary in summaries()[0]] == ["new"]
    assert len(os.listdir(jobs_directory())) == 2
    assert prune(RULE).removed == ["old"]
    assert os.listdir(jobs_directory()) == ["new"]


@pytest.mark.parametrize("call", ["unlink", "rmdir"])
def test_a_job_that_two_processes_remove_at_the_same_time_is_removed(
    monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    aged("new", 0, *END)
    aged("old", 11 * DAY_S, *END)
    system_call: Callable[..., None] = getattr(os, call)

    def after_another(name: str, *, dir_fd: int) -> None:
        monkeypatch.setattr(os, call, system_call)
        assert prune(RULE).removed == ["old"]  # as the supervisor of a job that has just ended
        system_call(name, dir_fd=dir_fd)

    monkeypatch.setattr(os, call, after_another)
    pruned = prune(RULE)
    assert (pruned.removed, pruned.kept) == (["old"], [])
    assert os.listdir(jobs_directory()) == ["new"]


def test_the_command_lists_what_it_removed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui_fs.cli.jobs.prune", lambda: prune(RULE))
    aged("new", 0, *END)
    aged("old", 11 * DAY_S, *END)
    strange = aged("strange", 12 * DAY_S, *END)
    strange_file(strange)
    assert run_list(argparse.Namespace(json=True, prune=True, compare=None)) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["removed"] == ["old"]
    assert [kept["path"] for kept in answer["kept"]] == [strange.path]
    aged("again", 11 * DAY_S, *END)
    os.unlink(os.path.join(strange.path, "notes.txt"))
    assert run_list(argparse.Namespace(json=False, prune=True, compare=None)) == 0
    output = capsys.readouterr()
    assert sorted(output.out.splitlines()) == ["removed job again", "removed job strange"]
    assert "2 jobs removed" in output.err


def test_a_lock_of_an_earlier_boot_keeps_no_job() -> None:
    aged("new", 0, *END)
    folder = aged("old", 11 * DAY_S, *END)
    with held(folder.lock):
        assert prune(RULE).removed == ["old"]
