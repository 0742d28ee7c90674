"""The exit codes and options of ``tui-fs fleet``, with hosts that a test describes."""

import re
from pathlib import Path

import pytest

from tests.conftest import Cli, Finished
from tests.contracts.asking import Terminal
from tests.unit.fleet_hosts import Hosts, job_started, listing, prints, report

PLAN = prints(
    {
        "strategy": "rm",
        "expected": {
            "totals": {
                "files": 3, "directories": 1, "symlinks": 0, "other": 0, "allocated_bytes": 4096
            },
            "freed_bytes_min": 4096,
            "freed_bytes_max": 4096,
            "complete": True,
        },
        "predicted": {"seconds_low": 1, "seconds_high": 2, "syscalls": {}, "processes": 1},
        "directory_ids": ["0123456789abcdef"],
    }
)  # fmt: skip


@pytest.fixture
def hosts(tmp_path: Path) -> Hosts:
    """Return hosts that plan and delete."""
    hosts = Hosts(tmp_path)
    for host in "abc":
        deletes(hosts, host, job_started() + report())
    return hosts


def deletes(hosts: Hosts, host: str, script: str) -> None:
    """Let a host answer a dry run with a plan, and a deletion with a script."""
    hosts.on(host, "delete", f'case "$*" in *--dry-run*) {PLAN} exit ;; esac\n{script}')


def fleet(cli: Cli, hosts: Hosts, action: str, names: str, *arguments: str) -> Finished:
    """Run ``tui-fs fleet``."""
    return cli.run("fleet", action, names, *arguments, "--ssh", hosts.ssh.program)


def test_all_done_is_exit_code_0_with_a_report_for_each_host(cli: Cli, hosts: Hosts) -> None:
    finished = fleet(cli, hosts, "delete", "a,b", "/d", "--yes", "--json").expect(0)
    last = finished.stream()[-1]
    assert last["type"] == "fleet-report"
    assert [(h["host"], h["exit_code"], h["phase"]) for h in last["hosts"]] == [
        ("a", 0, "over"), ("b", 0, "over")
    ]  # fmt: skip
    # What was previewed is what is deleted
    assert "--directory-id=0123456789abcdef" in hosts.calls("a")[-1]
    assert "--strategy=rm" in hosts.calls("a")[-1]


@pytest.mark.parametrize(
    "script", ["", job_started(), report("partial") + "exit 1", "echo 'tui-fs: No.' >&2; exit 3"]
)
def test_a_host_without_a_report_of_done_is_no_success(cli: Cli, hosts: Hosts, script: str) -> None:
    deletes(hosts, "b", script)
    fleet(cli, hosts, "delete", "a,b", "/d", "--yes").expect(1)


def test_hosts_that_are_not_reached_or_refuse_are_skipped_and_no_success(
    cli: Cli, hosts: Hosts
) -> None:
    hosts.on("b", "connect", "echo 'ssh: no route' >&2; exit 255")
    hosts.on("c", "delete", "echo 'tui-fs: /d is a mount point.' >&2; exit 3")
    finished = fleet(cli, hosts, "delete", "a,b,c", "/d", "--yes", "--json").expect(1)
    ends = {host.pop("host"): host for host in finished.stream()[-1]["hosts"]}
    assert [(ends[h]["phase"], ends[h]["exit_code"]) for h in "abc"] == [
        ("over", 0), ("skipped", None), ("skipped", 3)
    ]  # fmt: skip
    assert ends["c"]["problem"] == "/d is a mount point."
    assert "b: no route" in finished.stderr
    assert "/d is a mount point." in finished.stderr
    assert not any("--yes" in call for call in hosts.calls("c"))
    assert any("--yes" in call for call in hosts.calls("a"))


@pytest.mark.parametrize("action", ["estimate", "delete"])
def test_without_an_answer_no_table_is_empty(cli: Cli, hosts: Hosts, action: str) -> None:
    for host in "ab":
        hosts.on(host, "connect", "echo 'ssh: no route' >&2; exit 255")
    options = ("--yes",) if action == "delete" else ()
    finished = fleet(cli, hosts, action, "a,b", "/d", *options).expect(4)
    assert "b: no route" in finished.stderr
    assert b"strategy" not in finished.stdout + finished.stderr.encode()


def test_a_sum_without_the_other_calls_of_a_host_is_a_lower_bound(cli: Cli, hosts: Hosts) -> None:
    for host, others in (("a", 1_000), ("b", None)):
        strategies = [
            {
                "strategy": name, "feasible": True, "seconds_low": 1.0, "seconds_high": 2.0,
                "syscalls": {"unlinkat": 5}, "other_calls": other, "uncounted_calls": 0,
                "processes": 1,
            }
            for name, other in (("rm", others), ("find", 7))
        ]  # fmt: skip
        value = {
            "entries": 5, "freed_bytes_min": 0, "freed_bytes_max": 0, "strategies": strategies,
            "recommended": "rm", "refused": None,
        }  # fmt: skip
        hosts.on(host, "estimate", prints(value))
    shown = fleet(cli, hosts, "estimate", "a,b", "/d").expect(0).stdout.decode()
    rows = {words[0]: words[-2] for line in shown.splitlines() if (words := line.split())}
    assert (rows["rm"], rows["find"]) == ("≥1,010", "24")
    answer = fleet(cli, hosts, "estimate", "a,b", "/d", "--json").expect(0).object()
    whole = {each["strategy"]: each["calls_are_whole"] for each in answer["total"]["strategies"]}
    assert whole["find"] and not whole["rm"]


def test_hosts_that_all_refuse_have_a_report(cli: Cli, hosts: Hosts) -> None:
    for host in "ab":
        hosts.on(host, "delete", "echo 'tui-fs: No.' >&2; exit 3")
    finished = fleet(cli, hosts, "delete", "a,b", "/d", "--yes", "--json").expect(3)
    assert [host["exit_code"] for host in finished.stream()[-1]["hosts"]] == [3, 3]


def test_three_hosts_are_confirmed_after_the_canary(cli: Cli, hosts: Hosts) -> None:
    deletes(hosts, "c", job_started() + report("partial", failed=2) + "exit 1")
    where = ("--ssh", hosts.ssh.program, "--canary", "--serial", "1")
    with Terminal(cli, "fleet", "delete", "a,b,c", "/d", *where) as terminal:
        terminal.wait_for(b"as in '3 d'")
        assert not any("--yes" in call for call in hosts.calls("a"))
        terminal.answer(b"3 d\n")
        terminal.wait_for(b"Continue on the 2 other hosts?")
        assert any("--yes" in call for call in hosts.calls("a"))
        assert not any("--yes" in call for host in "bc" for call in hosts.calls(host))
        terminal.answer(b"yes\n")
        assert terminal.wait() == 1
    assert b"c: partial" in terminal.seen
    assert b"3 of 3 hosts" in terminal.seen


@pytest.mark.parametrize("answer", [b"\n", b"2 d\n", b"3 e\n", b"yes\n", b"3\n"])
def test_another_answer_deletes_nothing(cli: Cli, hosts: Hosts, answer: bytes) -> None:
    with Terminal(cli, "fleet", "delete", "a,b,c", "/d", "--ssh", hosts.ssh.program) as terminal:
        terminal.wait_for(b"as in '3 d'")
        terminal.answer(answer)
        assert terminal.wait() == 3
    assert not any("--yes" in call for host in "abc" for call in hosts.calls(host))


@pytest.mark.parametrize(("gone", "code"), [((False, True), 0), ((False, False), 1)])
def test_shares_that_leave_the_directory_are_no_success(
    cli: Cli, hosts: Hosts, gone: tuple[bool, bool], code: int
) -> None:
    for host, is_gone in zip("ab", gone, strict=True):
        targets = [{"path": "/d", "gone": is_gone}]
        deletes(hosts, host, job_started() + report(targets=targets))
    shares = fleet(cli, hosts, "delete", "a,b", "/d", "--yes", "--shard").expect(code)
    (total,) = re.findall(r"^2 hosts +(\d+)  4.0 KiB", shares.stderr, re.MULTILINE)
    assert total == "4"  # both have counted the same directory
    fleet(cli, hosts, "delete", "a,b", "/d", "--yes", "--shard", "--keep-root").expect(0)
    assert "--shard=1/2" in hosts.calls("a")[1]
    assert "--shard=2/2" in hosts.calls("b")[1]


def test_a_failed_canary_stops_the_others(cli: Cli, hosts: Hosts) -> None:
    deletes(hosts, "a", "exit 0")
    finished = fleet(cli, hosts, "delete", "a,b,c", "/d", "--yes", "--canary", "--json").expect(1)
    phases = [host["phase"] for host in finished.stream()[-1]["hosts"]]
    assert phases == ["over", "skipped", "skipped"]
    assert not any("--yes" in call for host in "bc" for call in hosts.calls(host))


@pytest.mark.parametrize(
    ("action", "code"), [("delete", 3), ("resume", 3), ("pause", 0), ("survey", 0)]
)
def test_read_only_mode_here_changes_nothing_there(
    cli: Cli, hosts: Hosts, action: str, code: int
) -> None:
    hosts.on("a", "jobs", listing("running"))
    hosts.on("a", "survey", prints({"entries": 1, "allocated_bytes": 1, "pathologies": []}))
    for name in ("resume", "pause"):
        hosts.on("a", name, "exit 0")
    arguments = {"delete": ("/d", "--yes"), "survey": ("/d", "--json")}.get(action, ())
    where = ("--ssh", hosts.ssh.program)
    environment = {"TUI_FS_READ_ONLY": "1"}
    finished = cli.run("fleet", action, "a", *arguments, *where, environment=environment)
    if code:
        finished.expect(code)
    assert (hosts.calls("a") == []) == bool(code)


def test_filters_that_are_zero_reach_the_hosts(cli: Cli, hosts: Hosts) -> None:
    zeros = ("--newer-than", "0s", "--size-below", "0", "--older-than", "0s", "--min-size", "0")
    fleet(cli, hosts, "delete", "a", "/d", "--yes", *zeros, "--nice", "0").expect(0)
    for call in hosts.calls("a"):
        assert "--newer-than=0s" in call
        assert "--size-below=0" in call
        assert "--older-than=0s" in call
        assert "--min-size=0" in call


def test_an_answer_that_is_not_understood_is_no_success(cli: Cli, hosts: Hosts) -> None:
    hosts.on("a", "survey", 'echo \'{"entries": "many"}\'')
    finished = fleet(cli, hosts, "survey", "a", "/d")
    assert finished.code != 0
    assert b"not understood" in finished.stdout


@pytest.mark.parametrize("action", ["cancel", "pause", "attach", "jobs"])
def test_a_host_that_lists_no_jobs_is_no_success(cli: Cli, hosts: Hosts, action: str) -> None:
    for host in "ab":
        hosts.on(host, "jobs", "echo '[]'")
    fleet(cli, hosts, action, "a,b").expect(0)
    hosts.on("b", "jobs", "echo '{}'")
    assert fleet(cli, hosts, action, "a,b").code != 0


def test_control_reaches_the_jobs_with_these_targets(cli: Cli, hosts: Hosts) -> None:
    hosts.on("a", "jobs", listing("running", "done", "paused"))
    hosts.on("b", "jobs", listing("running", path="/other"))
    for host in "ab":
        hosts.on(host, "cancel", "exit 0")
    finished = fleet(cli, hosts, "cancel", "a,b", "/d/").expect(0)
    assert hosts.calls("a")[1:] == ["cancel j1", "cancel j3"]
    assert hosts.calls("b")[1:] == []
    assert "b: not chosen: job j1 on /other." in finished.stderr


def test_a_job_is_chosen_by_its_id(cli: Cli, hosts: Hosts) -> None:
    for host in "ab":
        hosts.on(host, "jobs", listing("running", "running"))
        hosts.on(host, "pause", "exit 0")
    hosts.on("a", "attach", job_started("j2") + report(id="j2"))
    finished = fleet(cli, hosts, "attach", "a", "--job", "j2").expect(0)
    assert hosts.calls("a")[1:] == ["attach --json j2"]
    assert "not chosen: job j1 on /d" in finished.stderr
    fleet(cli, hosts, "pause", "a,b", "--job", "j2").expect(0)
    assert [hosts.calls(host)[-1] for host in "ab"] == ["pause j2"] * 2
    finished = fleet(cli, hosts, "pause", "a,b", "--job", "j5").expect(2)
    assert "No job j5 runs on these hosts." in finished.stderr


def test_all_jobs_of_a_host_are_followed(cli: Cli, hosts: Hosts) -> None:
    hosts.on("a", "jobs", listing("running", "paused", "done"))
    hosts.on("b", "jobs", listing("running"))
    for host in "ab":
        hosts.on(host, "attach", f"JOB_ID=$3\n{job_started()}{report()}")
    finished = fleet(cli, hosts, "attach", "a,b", "--json").expect(0)
    *events, last = finished.stream()
    followed = [("a", "j1"), ("a", "j2"), ("b", "j1")]
    assert [(host["host"], host["job"]) for host in last["hosts"]] == followed
    for pair in followed:
        types = [event["type"] for event in events if (event["host"], event["job"]) == pair]
        assert types == ["JobStarted", "report"]
    assert b"2 of 2 hosts" in fleet(cli, hosts, "attach", "a,b").expect(0).stdout


def test_commands_to_look_later_reach_the_hosts_in_the_same_way(cli: Cli, hosts: Hosts) -> None:
    """Without --become, the jobs of root are not listed."""
    hosts.on("a", "jobs", listing("running"))
    hosts._script(
        hosts.place / "bin" / "sudo",
        '#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done; shift; exec "$@"',
    )
    finished = fleet(cli, hosts, "pause", "a", "--job", "j5", "--become").expect(2)
    command = f"tui-fs fleet jobs a --ssh={hosts.ssh.program} --become"
    assert f"{command} lists all jobs." in finished.stderr


def test_the_typed_name_reaches_hosts_whose_policy_requires_it(cli: Cli, hosts: Hosts) -> None:
    refuses = "echo \"tui-fs: The policy requires that you type 'd'.\" >&2; exit 3\n"
    deletes(
        hosts, "b",
        f'case "$*" in *--confirm=d*) ;; *) {refuses} ;; esac\n{job_started()}{report()}',
    )  # fmt: skip
    finished = fleet(cli, hosts, "delete", "a,b", "/d", "--yes", "--json").expect(1)
    ends = {host["host"]: host for host in finished.stream()[-1]["hosts"]}
    assert ends["b"]["problem"] == "The policy requires that you type 'd'."
    assert (ends["b"]["exit_code"], ends["a"]["exit_code"]) == (3, 0)
    fleet(cli, hosts, "delete", "a,b", "/d/", "--yes", "--confirm", "d").expect(0)
    with Terminal(cli, "fleet", "delete", "a,b", "/d/", "--ssh", hosts.ssh.program) as terminal:
        terminal.wait_for(b"type the number of hosts and the name, as in '2 d'")
        terminal.answer(b"2 d\n")
        assert terminal.wait() == 0


def test_several_directories_are_confirmed_by_the_word_that_a_host_asks_for(
    cli: Cli, hosts: Hosts
) -> None:
    where = ("--ssh", hosts.ssh.program)
    with Terminal(cli, "fleet", "delete", "a,b", "/d", "/e", *where) as terminal:
        terminal.wait_for(b"'2 delete':")
        terminal.answer(b"2 delete\n")
        assert terminal.wait() == 0
    assert "--confirm=delete" in hosts.calls("a")[-1]


def test_a_cancellation_that_fails_is_no_success(cli: Cli, hosts: Hosts) -> None:
    hosts.on("a", "jobs", listing("running"))
    hosts.on("a", "cancel", "echo 'tui-fs: busy' >&2; exit 5")
    finished = fleet(cli, hosts, "cancel", "a").expect(5)
    assert "is cancelled" not in finished.stderr


def test_a_job_that_ended_during_the_attachment_has_its_exit_code(cli: Cli, hosts: Hosts) -> None:
    hosts.on("a", "jobs", listing("running"))
    hosts.on("a", "attach", job_started() + report("partial") + "exit 1")
    assert b"partial" in fleet(cli, hosts, "attach", "a").expect(1).stdout


def test_tables_show_no_control_characters_of_hosts(cli: Cli, hosts: Hosts) -> None:
    hosts.on("a", "survey", "printf 'tui-fs: \\033[2J\\n' >&2; exit 1")
    hosts.on("a", "jobs", listing("running", path="/\x1b[2J"))
    hosts.on("a", "delete", "printf 'tui-fs: \\033[2J\\n' >&2; exit 3")
    for action, *rest in (("survey", "/d"), ("jobs",), ("delete", "/d", "--yes"), ("doctor",)):
        finished = fleet(cli, hosts, action, "a", *rest)
        assert b"\x1b" not in finished.stdout
        assert "\x1b" not in finished.stderr


@pytest.mark.parametrize(
    ("printed", "line"),
    [
        ("Job j1 has ended already: done.", "tui-fs: a: Job j1 has ended already: done.\n"),
        ("Read-only mode is on.", "tui-fs: a: job j1: Read-only mode is on.\n"),
    ],
)
def test_a_job_that_cannot_be_paused_is_named_once(
    cli: Cli, hosts: Hosts, printed: str, line: str
) -> None:
    hosts.on("a", "jobs", listing("running"))
    hosts.on("a", "pause", f"echo 'tui-fs: {printed}' >&2; exit 2")
    assert fleet(cli, hosts, "pause", "a").expect(2).stderr == line
