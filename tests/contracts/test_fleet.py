"""``tui-fs fleet`` on real ssh servers, each with file systems of its own."""

import json
import os
import re
import shlex
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import DEADLINE_S, Cli, Finished, Json, wait_until
from tests.contracts.fleet_servers import REACHED, ROLES, Servers, servers
from tests.needs import needs_engine
from tests.trees import flat

pytestmark = pytest.mark.root


@pytest.fixture(scope="module")
def hosts() -> Iterator[Servers]:
    """Yield the servers."""
    with servers() as running:
        yield running


def fleet(cli: Cli, hosts: Servers, action: str, names: str, *arguments: str | Path) -> Finished:
    """Run ``tui-fs fleet``."""
    where = ("--ssh", hosts.ssh, "--become")
    return cli.run("fleet", action, names, *arguments, *where)


def by_host(finished: Finished) -> dict[str, Json]:
    """Return what the JSON has of each host."""
    return {host["host"]: host for host in finished.object()["hosts"]}


def ends(finished: Finished) -> dict[str, Json]:
    """Return what the last line of a stream has of each host."""
    last = finished.stream()[-1]
    assert last["type"] == "fleet-report"
    return {host["host"]: host for host in last["hosts"]}


def wait_for_jobs(viewer: "subprocess.Popen[bytes]", number: int) -> dict[str, str]:
    """Read a stream until that many hosts have said which job they do; return the jobs by host."""
    assert viewer.stdout is not None
    ids: dict[str, str] = {}
    while len(ids) < number:
        line = viewer.stdout.readline()
        assert line, viewer.communicate()[1]
        event = json.loads(line)
        if event["type"] == "JobStarted":
            ids[event["host"]] = event["job_id"]
    return ids


def test_a_survey_has_one_line_for_each_host(cli: Cli, hosts: Servers) -> None:
    hosts.plant(*REACHED)
    names = ",".join(role for role in ROLES if role not in ("silent", "lossy"))
    answers = by_host(fleet(cli, hosts, "survey", names, hosts.target, "--json").expect(1))
    assert list(answers) == sorted(names.split(","))
    counted = {role: answers[role]["survey"]["entries"] for role in REACHED}
    assert len(set(counted.values())) == 1
    assert counted["inner"] > 300
    assert all(answers[role]["exit_code"] == 0 for role in REACHED)
    problems = {r: answer["problem"] for r, answer in answers.items() if r not in REACHED}
    assert "Host key verification failed" in problems["unknown"]
    assert "has no tui-fs" in problems["bare"]
    assert all(answers[role]["survey"] is None for role in problems)
    # A key that was refused is not stored either
    assert len((hosts.place / "known").read_text().splitlines()) == len(ROLES) - 1


def test_the_key_of_a_jump_host_is_no_question_on_the_terminal(cli: Cli, hosts: Servers) -> None:
    """Its own ssh has none of the options of the other one, and would ask on /dev/tty."""
    config, wary = (hosts.place / "ssh_config").read_text(), hosts.place / "wary"
    wary.write_text(config.replace(f"{hosts.place}/known", f"{hosts.place}/empty"))
    words = (*cli.command, "fleet", "survey", "inner", hosts.target, "--ssh", f"ssh -F {wary}")
    command = ["script", "-qec", shlex.join(map(str, words)), "/dev/null"]
    shown = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    assert "Host key verification failed" in shown
    assert "Are you sure" not in shown
    assert not (hosts.place / "empty").exists()


def test_a_host_that_loses_all_packets_is_given_up(cli: Cli, hosts: Servers) -> None:
    quick = ("--json", "--connect-timeout", "1")
    answers = by_host(fleet(cli, hosts, "survey", "silent", hosts.target, *quick).expect(4))
    assert "timed out" in answers["silent"]["problem"]
    assert (answers["silent"]["exit_code"], answers["silent"]["survey"]) == (None, None)


def test_a_deletion_empties_each_target_and_nothing_else(cli: Cli, hosts: Servers) -> None:
    sentinels = hosts.plant(*REACHED, "bare", "unknown")
    hosts.fill("full")
    names = ",".join((*REACHED, "bare", "unknown"))
    bring = ("--bring", hosts.place / "one-file")
    finished = fleet(cli, hosts, "delete", names, hosts.target, "--yes", "--json", *bring).expect(1)
    results = ends(finished)
    unknown = results.pop("unknown")
    assert (unknown["phase"], unknown["exit_code"], unknown["report"]) == ("skipped", None, None)
    assert unknown["problem"] == "Host key verification failed."
    assert set(results) == {*REACHED, "bare"}
    for role, result in results.items():
        assert (result["exit_code"], result["phase"]) == (0, "over"), result
        assert result["report"]["outcome"] == "done"
        assert not hosts.seen_by(role, hosts.target).exists()
        sentinels[role].assert_whole()
    # The host with an unknown key is whole, and named
    assert hosts.seen_by("unknown", hosts.target / "flat").is_dir()
    sentinels["unknown"].assert_whole()
    assert "unknown: Host key verification failed" in finished.stderr
    assert "brought into memory of bare" in finished.stderr
    wait_until(lambda: hosts.in_memory("bare") == [], "nothing of tui-fs in /dev/shm")
    # Through sudo, root deleted; its record is that of root
    assert (hosts.place / "state" / "sudo" / "tui-fs" / "jobs").stat().st_uid == 0


def test_a_host_that_refuses_is_skipped_and_whole(cli: Cli, hosts: Servers) -> None:
    hosts.plant("plain", "inner")
    hosts.run("inner", "mount", "-t", "tmpfs", "none", str(hosts.target / "wide"))
    finished = fleet(cli, hosts, "delete", "plain,inner", hosts.target, "--yes").expect(1)
    assert "mounted inside" in finished.stderr
    assert not hosts.seen_by("plain", hosts.target).exists()
    assert len(os.listdir(hosts.seen_by("inner", hosts.target / "flat"))) == 300
    hosts.run("inner", "umount", str(hosts.target / "wide"))


def test_lost_connections_and_viewers_change_nothing_on_the_hosts(cli: Cli, hosts: Servers) -> None:
    needs_engine()  # which never exceeds its rate: rm could end too early
    roles = ("inner", "plain")
    sentinels = hosts.plant(*roles, files=3000)
    names, where = ",".join(roles), ("--ssh", hosts.ssh, "--become")
    slow = ("--rate", "25", "--strategy", "parallel", "--yes", "--json")
    viewer = cli.start("fleet", "delete", names, str(hosts.target), *slow, *where)

    def states() -> list[str]:
        listed = by_host(fleet(cli, hosts, "jobs", names, "--json").expect(0))
        return [str(job["state"]) for host in listed.values() for job in host["jobs"][:1]]

    wait_for_jobs(viewer, len(roles))
    # The connections break: the jobs are found again by the same viewer
    hosts.kill_connections()
    assert viewer.poll() is None
    os.killpg(viewer.pid, signal.SIGKILL)
    viewer.communicate()
    hosts.kill_connections()
    assert states() == ["running", "running"]
    fleet(cli, hosts, "pause", names, hosts.target).expect(0)
    assert states() == ["paused", "paused"]
    fleet(cli, hosts, "resume", names, hosts.target).expect(0)
    with cli.start("fleet", "attach", names, "--json", *where) as attached:
        for role, job in wait_for_jobs(attached, len(roles)).items():
            hosts.tui_fs(role, "rate", job, "off")
        output, _ = attached.communicate(timeout=DEADLINE_S)
    assert attached.returncode == 0
    last = json.loads(output.splitlines()[-1])
    results = {host["host"]: host for host in last["hosts"]}
    for role in roles:
        assert results[role]["report"]["outcome"] == "done"
        assert not hosts.seen_by(role, hosts.target).exists()
        sentinels[role].assert_whole()


def test_a_viewer_finds_its_jobs_again(cli: Cli, hosts: Servers) -> None:
    hosts.plant("plain", files=1500)
    slow = ("--rate", "200", "--strategy", "rm", "--yes", "--json")
    where = ("--ssh", hosts.ssh)
    with cli.start("fleet", "delete", "plain", str(hosts.target), *slow, *where) as viewer:
        assert viewer.stdout is not None
        while b'"JobStarted"' not in (line := viewer.stdout.readline()):
            assert line
        hosts.kill_connections()
        output, errors = viewer.communicate(timeout=DEADLINE_S)
    assert viewer.returncode == 0, errors
    assert b'"fleet-report"' in output
    assert not hosts.seen_by("plain", hosts.target).exists()


def test_no_job_starts_after_the_viewer_and_its_connection_have_gone(
    cli: Cli, hosts: Servers
) -> None:
    hosts.plant("plain")
    (hosts.place / "asked").unlink(missing_ok=True)
    (hosts.place / "hold").touch()
    viewer = cli.start("fleet", "delete", "plain", str(hosts.target), "--yes", "--ssh", hosts.ssh)
    wait_until((hosts.place / "asked").exists, "a deletion that is about to begin")
    assert hosts.deletes()
    os.killpg(viewer.pid, signal.SIGKILL)
    viewer.communicate()
    hosts.kill_connections()
    (hosts.place / "hold").unlink()
    wait_until(lambda: not hosts.deletes(), "the end of the command on the host")
    assert len(os.listdir(hosts.seen_by("plain", hosts.target / "flat"))) == 300
    (job,) = by_host(fleet(cli, hosts, "jobs", "plain", "--json"))["plain"]["jobs"][:1]
    assert job["state"] not in ("running", "done")


def test_an_interrupt_cancels_the_jobs_on_the_hosts(cli: Cli, hosts: Servers) -> None:
    needs_engine()  # which never exceeds its rate: rm could end before the interrupt
    hosts.plant("plain", "gate", files=1500)
    slow = ("--rate", "25", "--strategy", "parallel", "--yes", "--json", "--serial", "1")
    where = ("--ssh", hosts.ssh)
    with cli.start("fleet", "delete", "plain,gate", str(hosts.target), *slow, *where) as viewer:
        assert viewer.stdout is not None
        while b'"JobStarted"' not in (line := viewer.stdout.readline()):
            assert line
        hosts.kill_connections(signal.SIGINT)  # as Ctrl-C does, which every ssh gets, too
        viewer.send_signal(signal.SIGINT)
        output, errors = viewer.communicate(timeout=DEADLINE_S)
    assert viewer.returncode == 130, errors
    assert b'"JobStarted"' not in output  # no connection was lost, and the job followed anew
    left = [len(os.listdir(hosts.seen_by(r, hosts.target / "flat"))) for r in ("gate", "plain")]
    assert max(left) == 1500
    assert min(left) > 0
    assert b'"cancelled"' in output


def test_shares_of_one_file_system_remove_its_directory_last(cli: Cli, hosts: Servers) -> None:
    needs_engine()
    shared = hosts.place / "shared"
    tree = shared / "tree"
    flat(tree.parent, 10)
    flat(tree, 2000)
    names = "gate,plain"
    # Another directory at the same path
    hosts.run("full", "mount", "-t", "tmpfs", "none", str(shared))
    hosts.run("full", "mkdir", str(tree))
    options = ("--yes", "--json", "--shard", "--strategy", "parallel")
    refused = fleet(cli, hosts, "delete", "gate,full", tree, *options).expect(3)
    assert "different directories" in refused.stderr
    assert len(os.listdir(tree)) == 2000
    results = ends(fleet(cli, hosts, "delete", names, tree, *options).expect(0))
    deleted = [result["report"]["deleted_files"] for result in results.values()]
    assert sum(deleted) == 2000
    assert min(deleted) > 800
    assert not tree.exists()
    assert len(os.listdir(shared)) == 10


def test_a_host_that_loses_packets_only_takes_longer(cli: Cli, hosts: Servers) -> None:
    """By nftables, as many kernels lack netem; not at random, so that each run loses some."""
    sentinels = hosts.plant("lossy")
    (answer,) = by_host(fleet(cli, hosts, "survey", "lossy", hosts.target, "--json")).values()
    assert answer["survey"]["entries"] > 300, answer
    finished = fleet(cli, hosts, "delete", "lossy", hosts.target, "--yes", "--json").expect(0)
    assert ends(finished)["lossy"]["report"]["outcome"] == "done"
    assert not hosts.seen_by("lossy", hosts.target).exists()
    sentinels["lossy"].assert_whole()
    lost = re.findall(r"counter packets (\d+)", hosts.run("lossy", "nft", "list", "ruleset"))
    assert len(lost) == 2  # received, sent
    assert all(map(int, lost))


ASK = "tui-fs fleet jobs plain '--ssh=ssh -F "


def test_a_host_that_dies_is_one_line_and_the_others_go_on(cli: Cli) -> None:
    needs_engine()  # which never exceeds its rate: rm could end too early
    slow = ("--rate", "25", "--strategy", "parallel", "--yes", "--json")
    with servers() as hosts:
        hosts.plant("gate", "plain", files=3000)
        patient = f"{hosts.ssh} -oServerAliveInterval=1"
        where = ("--ssh", patient, "--connect-timeout", "4")
        with cli.start("fleet", "delete", "gate,plain", str(hosts.target), *slow, *where) as viewer:
            ids = wait_for_jobs(viewer, 2)
            hosts.die("plain")
            hosts.tui_fs("gate", "rate", ids["gate"], "off")
            output, errors = viewer.communicate(timeout=DEADLINE_S)
        assert viewer.returncode == 1, errors
        results = {host["host"]: host for host in json.loads(output.splitlines()[-1])["hosts"]}
        assert results["gate"]["report"]["outcome"] == "done"
        assert not hosts.seen_by("gate", hosts.target).exists()
        assert results["plain"]["report"] is None
        problem = str(results["plain"]["problem"])
        became = f"The connection was lost. What became of job {ids['plain']}: {ASK}"
        assert problem.startswith(became)
        assert f"plain: {problem}" in errors.decode()
        lost = fleet(cli, hosts, "jobs", "plain", "--json", "--connect-timeout", "1").expect(4)
        reason = by_host(lost)["plain"]["problem"]
        assert "timed out" in reason or "No route to host" in reason
