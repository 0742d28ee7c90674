"""Deletions on many hosts: order, failures, cancelling, lost connections."""

from pathlib import Path

import pytest

from tests.unit.fleet_hosts import (
    Hosts,
    deletion_on,
    job_started,
    listing,
    prints,
    report,
    run,
    step_until,
    waits_for,
)
from tests.unit.test_model_snapshot import sampled
from tui_fs.fleet.deletion import FleetDeletion, HostJob, Phase
from tui_fs.model.codec import encode

DONE = job_started() + report()
LOST = "exit 255"


@pytest.fixture
def hosts(tmp_path: Path) -> Hosts:
    """Return hosts on which deletions succeed."""
    hosts = Hosts(tmp_path)
    for host in "abcde":
        hosts.on(host, "delete", DONE)
    return hosts


def deleted_on(hosts: Hosts) -> str:
    """Return the hosts on which a deletion was started."""
    return "".join(host for host in "abcde" if any("delete" in c for c in hosts.calls(host)))


def test_all_hosts_delete(hosts: Hosts) -> None:
    with hosts.fleet(*"abc") as fleet:
        jobs = run(deletion_on(fleet, "abc"))
    assert [(j.phase, j.exit_code, j.problem) for j in jobs.values()] == [(Phase.OVER, 0, "")] * 3
    assert all(j.summary and j.summary.deleted_entries == 4 for j in jobs.values())


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("", 1),
        ("echo done", 1),
        (prints({"type": "report"}), 1),
        (prints({"type": "report", "outcome": "finished", "explanation": ""}), 1),
        ("echo '[]'; echo null; echo '{\"type\": 5}'", 1),
        ("head -c 100000 /dev/zero | tr '\\0' '['; echo", 1),
        (job_started(), 1),
        (job_started() + report("partial"), 1),
        (job_started() + report("partial") + "exit 1", 1),
        (job_started() + report("cancelled"), 130),
        (job_started() + report("refused") + "exit 3", 3),
        (prints({"type": "report", "outcome": "refused", "explanation": "No."}) + "exit 3", 3),
        ("echo 'tui-fs: /d is a mount point.' >&2; exit 3", 3),
        (report("done") + "exit 1", 1),
    ],
)
def test_only_a_report_of_done_is_a_success(hosts: Hosts, script: str, code: int) -> None:
    hosts.on("a", "delete", script)
    with hosts.fleet(*"ab") as fleet:
        deletion = deletion_on(fleet, "ab")
        jobs = run(deletion)
    assert (jobs["a"].phase, jobs["a"].exit_code, jobs["a"].has_failed) == (Phase.OVER, code, True)
    assert jobs["a"].problem or jobs["a"].report
    assert (jobs["b"].exit_code, deletion.failures) == (0, 1)


def test_a_report_that_arrived_counts_though_the_connection_broke(hosts: Hosts) -> None:
    hosts.on("a", "delete", DONE + LOST)
    hosts.on("b", "delete", job_started() + report("partial") + LOST)
    with hosts.fleet(*"ab") as fleet:
        jobs = run(deletion_on(fleet, "ab"))
    assert [job.exit_code for job in jobs.values()] == [0, 1]


def test_explanations_of_hosts_cannot_control_the_terminal(hosts: Hosts) -> None:
    hosts.on("a", "delete", report("partial", explanation="\x1b[2J\u202e") + "exit 1")
    with hosts.fleet("a") as fleet:
        assert run(deletion_on(fleet, "a"))["a"].problem.isprintable()


# Order


def test_serial_runs_so_many_jobs_at_the_same_time(hosts: Hosts) -> None:
    count = "cd ..; echo >running-$$; ls | grep -c ^running- >>counts; sleep 0.1; rm running-$$\n"
    for host in "abcde":
        hosts.on(host, "delete", f"({count})\n{DONE}")
    with hosts.fleet(*"abcde") as fleet:
        run(deletion_on(fleet, "abcde", at_once=2))
    counts = [int(line) for line in (hosts.place / "counts").read_text().split()]
    assert len(counts) == 5
    assert max(counts) <= 2


def test_no_further_job_starts_after_the_failures_that_are_accepted(hosts: Hosts) -> None:
    for host in "ac":
        hosts.on(host, "delete", "exit 1")
    with hosts.fleet(*"abcde") as fleet:
        deletion = deletion_on(fleet, "abcde", at_once=1, max_failures=2)
        jobs = run(deletion)
    assert deleted_on(hosts) == "abc"
    assert [jobs[host].phase for host in "de"] == [Phase.SKIPPED] * 2
    assert deletion.progress == "1 of 5 hosts done, 2 failed !, 2 not started"
    assert jobs["d"].problem == "Not started: 2 other hosts have failed."
    assert jobs["d"].exit_code is None


def test_the_others_wait_for_the_canary_and_the_answer(hosts: Hosts) -> None:
    with hosts.fleet(*"abc") as fleet:
        deletion = deletion_on(fleet, "abc", canary=True)
        step_until(deletion, "a", "over")
        for _ in range(5):
            deletion.step()
        assert deletion.canary is deletion.jobs["a"]
        assert deleted_on(hosts) == "a"
        deletion.go_on()
        run(deletion)
    assert deleted_on(hosts) == "abc"


def test_nothing_starts_after_a_refused_canary(hosts: Hosts) -> None:
    with hosts.fleet(*"abc") as fleet:
        deletion = deletion_on(fleet, "abc", canary=True)
        step_until(deletion, "a", "over")
        deletion.skip_waiting("No.")
        jobs = run(deletion)
    assert deleted_on(hosts) == "a"
    assert [jobs[host].phase for host in "bc"] == [Phase.SKIPPED] * 2


def test_a_canary_alone_has_nobody_to_wait_for_it(hosts: Hosts) -> None:
    with hosts.fleet("a") as fleet:
        deletion = deletion_on(fleet, "a", canary=True)
        run(deletion)
        assert deletion.canary is None


# Cancelling


def test_cancelling_starts_nothing_more_and_cancels_what_runs(hosts: Hosts) -> None:
    go = hosts.place / "go"
    hosts.on("a", "delete", job_started() + waits_for(go) + report("cancelled") + "exit 130")
    hosts.on("a", "cancel", f"touch {go}")
    with hosts.fleet(*"abc", at_once=1) as fleet:
        # All places for commands are taken by jobs
        deletion = deletion_on(fleet, "abc", at_once=1)
        step_until(deletion, "a", "running")
        deletion.cancel()
        jobs = run(deletion)
    assert deleted_on(hosts) == "a"
    assert hosts.calls("a")[-1] == "cancel j1"
    assert jobs["a"].exit_code == 130
    assert jobs["b"].problem == "It was cancelled before it began."


def test_a_job_whose_start_was_not_heard_yet_is_cancelled_when_it_is(hosts: Hosts) -> None:
    begin, go = hosts.place / "begin", hosts.place / "go"
    rest = job_started() + waits_for(go) + report("cancelled") + "exit 130"
    hosts.on("a", "delete", f"touch ../starting\n{waits_for(begin)}{rest}")
    hosts.on("a", "cancel", f"touch {go}")
    with hosts.fleet("a") as fleet:
        deletion = deletion_on(fleet, "a")
        while not (hosts.place / "starting").exists():
            deletion.step()
        deletion.cancel()
        assert deletion.jobs["a"].phase is Phase.STARTING
        begin.touch()
        assert run(deletion)["a"].exit_code == 130


def test_a_cancellation_that_fails_is_repeated(hosts: Hosts) -> None:
    go = hosts.place / "go"
    hosts.on("a", "delete", job_started() + waits_for(go) + report("cancelled") + "exit 130")
    hosts.on("a", "cancel", f"[ -e ../once ] && touch {go} && exit; touch ../once; exit 255")
    with hosts.fleet("a") as fleet:
        deletion = deletion_on(fleet, "a")
        step_until(deletion, "a", "running")
        deletion.cancel()
        assert run(deletion)["a"].exit_code == 130
    assert hosts.calls("a").count("cancel j1") == 2


def test_a_lost_job_is_found_again_and_cancelled(hosts: Hosts) -> None:
    go = hosts.place / "go"
    hosts.on("a", "delete", f"touch ../starting\n{waits_for(hosts.place / 'lose')}{LOST}")
    hosts.on("a", "attach", job_started() + waits_for(go) + report("cancelled") + "exit 130")
    hosts.on("a", "cancel", f"touch {go}")
    with hosts.fleet("a") as fleet:
        deletion = deletion_on(fleet, "a")
        while not (hosts.place / "starting").exists():
            deletion.step()
        deletion.cancel()
        (hosts.place / "lose").touch()
        assert run(deletion)["a"].exit_code == 130


# Lost connections


@pytest.mark.parametrize("lost", [LOST, "kill -9 $$"])
def test_a_lost_job_is_followed_by_its_id(hosts: Hosts, lost: str) -> None:
    hosts.on("a", "delete", job_started() + lost)
    hosts.on("a", "attach", DONE)
    with hosts.fleet("a") as fleet:
        job = run(deletion_on(fleet, "a"))["a"]
    assert (job.exit_code, job.problem) == (0, "")
    assert hosts.calls("a")[1:] == ["attach --json j1"]


_UNKNOWN = "echo \"tui-fs: There is no job 'j1'.\" >&2; exit 2"


def test_a_job_whose_start_was_not_heard_is_found_by_its_id(hosts: Hosts) -> None:
    hosts.on("a", "delete", LOST)
    hosts.on("a", "attach", f"[ -e ../once ] || {{ touch ../once; {_UNKNOWN}; }}\n{DONE}")
    with hosts.fleet("a") as fleet:
        job = run(deletion_on(fleet, "a"))["a"]
    assert job.exit_code == 0
    assert hosts.calls("a")[1:] == ["attach --json j1"] * 2


def test_another_job_on_the_same_target_is_not_taken_for_the_lost_one(hosts: Hosts) -> None:
    hosts.on("a", "delete", LOST)
    hosts.on("a", "jobs", listing("running", "running"))
    hosts.on("a", "attach", _UNKNOWN)
    with hosts.fleet("a") as fleet:
        job = run(deletion_on(fleet, "a", job_id="j9"))["a"]
    assert hosts.calls("a")[1:] == ["attach --json j9"] * 3
    assert (job.exit_code, job.job_id, job.report) == (255, "", None)
    assert job.problem.endswith("tui-fs fleet jobs a")


@pytest.mark.parametrize("script", [DONE, report("done")])
def test_events_and_reports_of_another_job_are_not_heard(hosts: Hosts, script: str) -> None:
    hosts.on("a", "delete", LOST)
    hosts.on("a", "attach", script)
    with hosts.fleet("a") as fleet:
        job = run(deletion_on(fleet, "a", job_id="j9"))["a"]
    assert (job.has_failed, job.job_id, job.report) == (True, "", None)


def test_a_job_that_was_found_again_has_no_problem(hosts: Hosts) -> None:
    begin, go = hosts.place / "begin", hosts.place / "go"
    hosts.on("a", "delete", job_started() + prints(encode(sampled(1, 10))) + LOST)
    hosts.on("a", "attach", waits_for(begin) + job_started() + waits_for(go) + report())
    with hosts.fleet("a") as fleet:
        deletion = deletion_on(fleet, "a")
        step_until(deletion, "a", "connection lost")
        assert (
            deletion.jobs["a"].problem
            == "The connection was lost. tui-fs tries to find the job again."
        )
        step_until(deletion, "a", "starting")
        assert deletion.jobs["a"].deleted_entries == 10
        begin.touch()
        step_until(deletion, "a", "running")
        assert deletion.jobs["a"].problem == ""
        go.touch()
        run(deletion)


def test_jobs_of_one_host_are_followed_cancelled_and_lost_each_alone(hosts: Hosts) -> None:
    go = hosts.place / "go"
    follow = f"JOB_ID=$3\n{job_started()}"
    lost = f"[ -e ../lost ] || {{ touch ../lost; {LOST}; }}\n"
    ended = f'[ "$3" = j3 ] && {{ {report()} exit; }}\n'
    rest = waits_for(go) + report("cancelled") + "exit 130"
    hosts.on("a", "attach", f'{follow}[ "$3" = j2 ] && {{ {lost} }}\n{ended}{rest}')
    hosts.on("a", "cancel", f"[ $2 != j2 ] || touch {go}")
    with hosts.fleet("a") as fleet:
        deletion = FleetDeletion.following(fleet, {"a": ["j1", "j2", "j3"]})
        deletion._retry_interval_s = 0.05
        for job_id, phase in (("j1", "running"), ("j2", "running"), ("j3", "over")):
            step_until(deletion, f"a {job_id}", phase)
        assert deletion.progress == "0 of 1 host done"
        deletion.cancel()
        jobs = run(deletion)
    assert {job.job_id: job.exit_code for job in jobs.values()} == {"j1": 130, "j2": 130, "j3": 0}
    assert {call for call in hosts.calls("a") if "cancel" in call} == {"cancel j1", "cancel j2"}
    assert deletion.progress == "0 of 1 host done, 1 cancelled"


def test_a_connection_that_is_lost_twice_is_found_twice(hosts: Hosts) -> None:
    hosts.on("a", "delete", job_started() + LOST)
    hosts.on(
        "a",
        "attach",
        f"{job_started()}[ -e ../second ] && {{ {report()} exit; }}\ntouch ../second; {LOST}",
    )
    with hosts.fleet("a") as fleet:
        assert run(deletion_on(fleet, "a"))["a"].exit_code == 0


def test_a_host_that_cannot_be_reached_for_a_moment_is_found_again(hosts: Hosts) -> None:
    hosts.on("a", "delete", job_started() + "touch down\n" + LOST)
    hosts.on("a", "connect", "[ ! -e down ] || { rm down; echo 'ssh: no route' >&2; exit 255; }")
    hosts.on("a", "attach", DONE)
    with hosts.fleet("a") as fleet:
        assert run(deletion_on(fleet, "a"))["a"].exit_code == 0


def test_a_host_that_stays_away_is_no_success(hosts: Hosts) -> None:
    hosts.on("a", "delete", job_started() + "touch down\n" + LOST)
    hosts.on("a", "connect", "[ ! -e down ] || { echo 'ssh: no route' >&2; exit 255; }")
    with hosts.fleet(*"ab") as fleet:
        jobs = run(deletion_on(fleet, "ab"))
    assert (jobs["a"].exit_code, jobs["a"].has_failed) == (255, True)
    assert jobs["a"].problem.endswith("tui-fs fleet jobs a")
    assert jobs["b"].exit_code == 0


def test_a_host_that_loses_its_brought_program_does_not_end_the_others(hosts: Hosts) -> None:
    go = hosts.place / "go"
    hosts.on("a", "delete", job_started() + waits_for(go) + LOST)
    with hosts.fleet(*"abc") as fleet:
        deletion = deletion_on(fleet, "abc", at_once=1)
        step_until(deletion, "a", "running")
        for host in "ab":
            fleet._known[host].program = ""
        deletion.jobs["a"].cancel_at_s = 0.0
        go.touch()
        jobs = run(deletion)
    assert _codes(jobs) == {"a": 255, "b": 255, "c": 0}
    assert "nothing began" in jobs["b"].problem


def _codes(jobs: dict[str, HostJob]) -> dict[str, int | None]:
    return {host: job.exit_code for host, job in jobs.items()}
