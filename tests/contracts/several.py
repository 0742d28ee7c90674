"""Jobs that delete several directories."""

import json
from pathlib import Path

from tests.conftest import Cli, Finished, Json, entries_in, wait_until

FILES = 8000
SLOWLY = ("--rate", "200")


def delete(cli: Cli, strategy: str, targets: list[Path], *options: str) -> Finished:
    """Delete several directories in the foreground without asking."""
    words = ("--strategy", strategy, "--yes", "--json", *options, "--")
    return cli.run("delete", *words, *targets)


def start(cli: Cli, strategy: str, targets: list[Path], *options: str) -> str:
    """Start a job that lasts, and return its id when it has removed something of the first."""
    words = ("--strategy", strategy, "--yes", "--json", "--detach", *SLOWLY, *options, "--")
    before = entries_in(targets[0])
    job = str(cli.run("delete", *words, *targets).expect(0).object()["id"])
    wait_until(lambda: entries_in(targets[0]) < before, "a deletion at work")
    assert entries_in(targets[0]) > 0, "too fast to be disturbed"
    return job


def finish(cli: Cli, job: str, code: int) -> Json:
    """Lift the job's rate limit and return its report."""
    cli.run("rate", job, "off")
    return cli.run("attach", job, "--json").expect(code).report()


def resume(cli: Cli, job: str) -> tuple[Json, str]:
    """Resume a job, lift the rate limit it had; return the report and standard error."""
    resumed = cli.start("resume", job, "--yes", "--json")
    wait_until(lambda: len(cli.jobs()) == 2, "the second job")
    (second,) = (listed["id"] for listed in cli.jobs() if listed["id"] != job)
    wait_until(lambda: cli.run("rate", second, "off").code == 0, "its full speed")
    stdout, stderr = resumed.communicate()
    assert resumed.returncode == 0, stderr
    report: Json = json.loads(stdout.splitlines()[-1])
    return report, stderr.decode()


def gone(report: Json) -> list[bool]:
    """Return the targets that a report calls gone."""
    return [target["gone"] for target in report["targets"]]


def done(report: Json) -> list[bool]:
    """Return the targets that a report calls completely deleted."""
    return [target["done"] for target in report["targets"]]
