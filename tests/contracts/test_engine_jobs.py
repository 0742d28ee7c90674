"""Jobs of the strategy parallel: what is special about a tool that counts itself and listens."""

import os
import shlex
from pathlib import Path

import pytest

from tests.conftest import Cli, Json, wait_until
from tests.contracts.test_control import of_type, start
from tests.namespaces import in_mount_namespace
from tests.needs import needs_engine, needs_kernel_counters
from tests.trees import flat, many_directories
from tui_fs.linux.pins import take_pin
from tui_fs.linux.tools import find_engine

DIRECTORIES, FILES_EACH = 30, 50
EXACT = ("unlinkat", "openat2")
"""The other calls occur more often when threads share work, which depends on scheduling."""
GIVEN_AWAY_AT_MOST = 8
"""How often that happens in a tree of this size."""


@pytest.fixture(autouse=True)
def _engine() -> None:
    needs_engine()


def test_its_own_counts_have_times_and_are_what_was_predicted(cli: Cli, tmpfs: Path) -> None:
    target = tmpfs / "target"
    many_directories(target, DIRECTORIES, FILES_EACH)
    rows = cli.run("estimate", "--json", target).expect(0).object()["strategies"]
    (predicted,) = (row["syscalls"] for row in rows if row["strategy"] == "parallel")
    report = cli.delete(target, "parallel").expect(0).report()
    assert report["trace_source"] == "engine"
    assert report["counts_are"] == "exact"
    assert report["syscalls_are_whole"]
    assert report["deleted_files"] == DIRECTORIES * FILES_EACH
    assert report["deleted_directories"] == DIRECTORIES + 1
    calls = report["syscalls"]
    assert all(count["seconds"] > 0 for count in calls.values())
    for name in EXACT:
        assert calls[name]["calls"] == predicted[name], name
        refused = 1 if name == "unlinkat" and report["confined_by"] else 0
        assert calls[name]["errors"] == refused
    # And the prediction next to the counts has only what can be counted: nothing of its start
    beside = report["predicted"]["syscalls"]
    assert beside.keys() <= calls.keys()
    for name in beside:
        assert beside[name] == pytest.approx(calls[name]["calls"], abs=GIVEN_AWAY_AT_MOST), name
    # And the last sample has all of it
    (*_, last) = of_type(cli.journal(cli.only_job()), "Sampled")
    assert last["removed"] == {
        "entries": DIRECTORIES * (FILES_EACH + 1) + 1,
        "directories": DIRECTORIES + 1,
    }


def test_it_counts_what_the_kernel_counts(cli: Cli, tmpfs: Path) -> None:
    needs_kernel_counters()
    target = tmpfs / "target"
    calls: dict[str, Json] = {}
    for source in ("engine", "perf"):
        many_directories(target, DIRECTORIES, FILES_EACH)
        report = cli.delete(target, "parallel", "--trace", source, "--threads", "1").expect(0)
        assert report.report()["trace_source"] == source
        calls[source] = report.report()["syscalls"]
    for name in ("unlinkat", "openat2", "getdents64"):
        assert calls["engine"][name]["calls"] == calls["perf"][name]["calls"], name


def test_what_is_shown_before_is_what_runs(cli: Cli, tmpfs: Path) -> None:
    # A plan that was only shown
    target = tmpfs / "target"
    many_directories(target, 2, 3)
    options = ("--strategy", "parallel", "--name", "file-*", "--threads", "2", "--gentle")
    shown = cli.run("delete", "--dry-run", "--json", *options, target).expect(0).object()
    report = cli.run("delete", "--yes", "--json", *options, target).expect(0).report()
    assert report["command"] == shown["command"]
    pin = take_pin(str(target))
    assert f"--pin {pin.device}:{pin.inode}:{pin.birth_ns} -- {target}" in shlex.join(
        shown["command"][0]
    )


def test_a_running_job_receives_its_threads_and_its_rate(cli: Cli, ext4: Path) -> None:
    target = ext4 / "t"
    flat(target, 20_000)
    job = start(cli, target, "parallel", "--rate", "200", "--threads", "2")

    def threads() -> int:
        number: int = of_type(cli.journal(job), "Sampled")[-1]["threads"]
        return number

    wait_until(lambda: threads() == 2, "two threads")
    cli.run("threads", job, "1").expect(0)
    wait_until(lambda: threads() == 1, "one thread")
    cli.run("threads", job, "auto").expect(0)
    wait_until(lambda: threads() == 2, "two threads again")
    cli.run("rate", job, "off").expect(0)
    report = cli.run("attach", "--json", job).expect(0).report()
    events = cli.journal(job)
    paces = [event["pace"] for event in of_type(events, "PaceChanged")]
    assert [pace["threads"] for pace in paces] == [1, 0, 0]
    assert [pace["rate_per_s"] for pace in paces] == [200, 200, 0]
    assert report["deleted_files"] == 20_000
    assert of_type(events, "ToolSaid") == []


def test_other_strategies_have_no_threads(cli: Cli, ext4: Path) -> None:
    target = ext4 / "t"
    flat(target, 30_000)
    finished = cli.delete(target, "rm", "--threads", "2").expect(2)
    finished.assert_one_sentence()
    assert "only with the strategy parallel" in finished.stderr
    job = start(cli, target, "rm", "--rate", "100")
    refused = cli.run("threads", job, "2").expect(2)
    refused.assert_one_sentence()
    assert "parallel" in refused.stderr
    cli.run("cancel", job).expect(0)
    cli.run("attach", job).expect(130)


def test_a_cancelled_job_says_that_its_last_calls_are_missing(cli: Cli, ext4: Path) -> None:
    target = ext4 / "t"
    flat(target, 30_000)
    job = start(cli, target, "parallel", "--rate", "100")
    cli.run("cancel", job).expect(0)
    attached = cli.run("attach", job).expect(130)
    assert b"The last system calls before the end are not counted." in attached.stdout
    report = cli.run("attach", "--json", job).report()
    assert report["trace_source"] == "engine"
    assert not report["syscalls_are_whole"]


def test_after_a_cancel_all_counts_are_those_of_the_file_system(cli: Cli, ext4: Path) -> None:
    """The last counts of the engine are older than its last deletions."""
    target = ext4 / "t"
    flat(target, 10_000)
    for name in os.listdir(target):
        os.link(target / name, target / f"{name}-2")
    names = len(os.listdir(target))
    job = start(cli, target, "parallel", "--rate", "5000")
    wait_until(lambda: len(os.listdir(target)) < names - 5_000, "deletions")
    cli.run("cancel", job).expect(0)
    report = cli.run("attach", "--json", job).expect(130).report()
    deleted = names - len(os.listdir(target))
    assert (report["deleted_files"], report["deleted_directories"]) == (deleted, 0)
    assert report["deleted_entries"] == deleted
    (cause,) = report["space_causes"]
    assert cause["inodes"] == deleted - report["freed_inodes"]


def test_only_it_counts_itself(cli: Cli, tmpfs: Path) -> None:
    flat(tmpfs / "t", 3)
    finished = cli.delete(tmpfs / "t", "rm", "--trace", "engine").expect(4)
    finished.assert_one_sentence()
    assert len(os.listdir(tmpfs / "t")) == 3


def test_doctor_reports_where_the_engine_is(cli: Cli) -> None:
    diagnosis = cli.run("doctor", "--json").expect(0).object()["engine"]
    assert diagnosis["is_present"] is True
    assert diagnosis["path"] == find_engine()
    assert diagnosis["version"].startswith("tui-fs-engine 0.")
    assert diagnosis["path"] in cli.run("doctor").expect(0).stdout.decode()


def test_without_the_engine_everything_else_works(cli: Cli, tmpfs: Path) -> None:
    # An installation whose engine is not to be found
    engine = find_engine()
    assert engine is not None
    hide = f"mount --bind /dev/null {shlex.quote(engine)}"
    without = cli.wrapped(in_mount_namespace(hide))
    diagnosis = without.run("doctor", "--json").expect(0).object()["engine"]
    many_directories(tmpfs / "t", 2, 3)
    rows = without.run("estimate", "--json", tmpfs / "t").expect(0).object()["strategies"]
    assert diagnosis["is_present"] is False
    assert "install cargo" in diagnosis["note"]
    (row,) = (row for row in rows if row["strategy"] == "parallel")
    assert row["feasible"] is False
    assert len(row["reasons"]) == 1 and "install cargo" in row["reasons"][0]
    without.delete(tmpfs / "t", "parallel").expect(4).assert_one_sentence()
    # And the others delete as ever
    without.delete(tmpfs / "t", "rm").expect(0)
