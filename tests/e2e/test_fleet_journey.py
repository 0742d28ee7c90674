"""Choose some hosts of many, delete on the first and then on the others; the same in JSON."""

import os
import shlex
from pathlib import Path

import pytest

from tests.conftest import Cli, wait_until
from tests.e2e.conftest import Open
from tests.trees import many_directories
from tests.unit.fleet_hosts import Hosts, job_started, prints, report

CHOSEN, OTHERS = ("h1", "h3", "h4"), ("h2", "h5", "h6", "h7", "h8")
GONE = "[ ! -e gone ] || { echo 'tui-fs: There is no /d.' >&2; exit 2; }\n"


@pytest.fixture
def hosts(cli: Cli, tmp_path: Path) -> Hosts:
    """Return eight hosts with a directory; on one of them its deletion fails."""
    (tmp_path / "hosts").mkdir()
    hosts, tree = Hosts(tmp_path / "hosts"), tmp_path / "d"
    many_directories(tree, 3, 4)
    survey = prints(cli.run("survey", "--json", tree).object())
    estimate = prints(cli.run("estimate", "--json", "--no-measuring", tree).object())
    plan = prints(cli.run("delete", "--dry-run", "--json", tree).object())
    for host in (*CHOSEN, *OTHERS):
        end = "touch gone\n" + report()
        if host == "h3":
            end = report("partial", failed=2, explanation="2 entries are left.") + "exit 1"
        hosts.on(host, "survey", GONE + survey)
        hosts.on(host, "estimate", estimate)
        dry_run = f'case "$*" in *--dry-run*) {plan} exit ;; esac\n'
        hosts.on(host, "delete", f"{dry_run}{job_started()}{end}")
    return hosts


def deleted_on(hosts: Hosts) -> list[str]:
    """Return the hosts on which a deletion was started."""
    return [
        host
        for host in (*CHOSEN, *OTHERS)
        if any("delete --yes" in call for call in hosts.calls(host))
    ]


def test_three_of_eight_hosts_are_chosen_and_one_fails(
    cli: Cli, open_command: Open, hosts: Hosts
) -> None:
    path = os.fspath(hosts.place.parent / "d")
    where = ("--ssh", hosts.ssh.program)
    fleet = shlex.join((cli.program, "fleet", "-", path, *where))
    listed = f"printf 'h[1-4]\n\nh[5-8]\n' | {fleet}"
    terminal = open_command("sh", "-c", listed, columns=120, lines=40)
    terminal.wait_for("8 counted")
    terminal.press("Space", "Down", "Space", "Space")
    terminal.wait_for("3 marked")
    terminal.press("d")
    terminal.wait_for("3 of 3 hosts answered")
    terminal.press("Enter")
    terminal.wait_for("Delete on 3 hosts?")
    assert "on h[1,3-4]" in terminal.text()
    terminal.type("3 d")
    terminal.answer("Delete on 3 hosts?", "Enter")

    terminal.wait_for("Continue on the 2 other hosts?")
    assert deleted_on(hosts) == ["h1"]
    terminal.answer("Continue on the 2 other hosts?", "Right", "Enter", opens_by_itself=True)

    terminal.wait_for("2 of 3 hosts done, 1 failed !")
    terminal.wait_until(
        lambda text: (
            {"h1", "h4"}
            <= {line.split()[0] for line in text.splitlines() if line.endswith(" deleted")}
        ),
        "two hosts on which it is gone",
    )
    (failed,) = (line for line in terminal.text().splitlines() if line[2:].startswith("h3 "))
    assert "! failed: " in failed
    assert "2 entries are left." in failed
    assert deleted_on(hosts) == list(CHOSEN)
    terminal.press("q")
    wait_until(lambda: not terminal.is_open(), "the end of the program")

    arguments = ("--yes", "--canary", "--json", *where)
    finished = cli.run("fleet", "delete", ",".join(CHOSEN), path, *arguments).expect(1)
    last = finished.stream()[-1]
    assert last["type"] == "fleet-report"
    outcomes = {
        host["host"]: (host["exit_code"], host["report"]["outcome"]) for host in last["hosts"]
    }
    assert outcomes == {"h1": (0, "done"), "h3": (1, "partial"), "h4": (0, "done")}
    assert deleted_on(hosts) == list(CHOSEN)
