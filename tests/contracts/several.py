"""Jobs that delete several directories."""

from pathlib import Path

from tests.conftest import Cli, Finished, Json, entries_in, wait_until

FILES = 8000
SLOWLY = ("--rate", "1000")


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


def gone(report: Json) -> list[bool]:
    """Return the targets that a report calls gone."""
    return [target["gone"] for target in report["targets"]]


def done(report: Json) -> list[bool]:
    """Return the targets that a report calls completely deleted."""
    return [target["done"] for target in report["targets"]]
