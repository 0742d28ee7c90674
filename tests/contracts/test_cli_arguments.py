"""Arguments, good and bad, and a tool that is missing."""

import os
from pathlib import Path

import pytest

from tests.conftest import Cli
from tests.needs import needs_tool
from tests.trees import (
    manifest,
    many_directories,
)


@pytest.fixture
def path_without_rsync(tmp_path: Path) -> str:
    """Return a PATH with every tool but rsync."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("rm", "find", "xargs", "rmdir", "strace", "sh"):
        (tools / name).symlink_to(needs_tool(name, package=name))
    return str(tools)


def test_a_missing_tool_is_exit_4(cli: Cli, tmpfs: Path, path_without_rsync: str) -> None:
    many_directories(tmpfs / "target", 2, 2)
    before = manifest(tmpfs)
    environment = {"PATH": path_without_rsync}
    arguments = ("delete", "--strategy", "rsync", "--yes", "--json", tmpfs / "target")
    finished = cli.run(*arguments, environment=environment).expect(4)
    finished.assert_one_sentence()
    assert "rsync" in finished.stderr
    assert manifest(tmpfs) == before
    # And the doctor and the estimate know it, while other strategies work
    doctor = cli.run("doctor", "--json", environment=environment).expect(0).object()
    (rsync,) = (tool for tool in doctor["tools"] if tool["name"] == "rsync")
    assert not rsync["path"]
    assert rsync["remedy"]
    estimated = cli.run("estimate", "--json", tmpfs / "target", environment=environment)
    rows = {row["strategy"]: row for row in estimated.expect(0).object()["strategies"]}
    assert rows["rsync"]["feasible"] is False
    assert rows["rsync"]["reasons"]
    others = ("delete", "--strategy", "find", "--yes", "--json", tmpfs / "target")
    cli.run(*others, environment=environment).expect(0)


@pytest.mark.parametrize(
    "arguments",
    (
        ("survey",),
        ("survey", "--no-such-option", "x"),
        ("survey", "--top", "many", "x"),
        ("survey", "--top", "-1", "x"),
        ("survey", "no-such-path"),
        ("survey", "x", "y"),
        ("estimate",),
        ("estimate", "no-such-path"),
        ("delete", "--yes", "x"),
        ("delete", "--strategy", "no-such-strategy", "--yes", "x"),
        ("delete", "--strategy", "rm", "--yes"),
        ("delete", "--strategy", "rm", "--yes", "no-such-path"),
        ("delete", "--strategy", "xargs", "--batch-size", "0", "--yes", "x"),
        ("delete", "--strategy", "xargs", "--batch-size", "many", "--yes", "x"),
        ("delete", "--strategy", "xargs", "--processes", "0", "--yes", "x"),
        ("delete", "--strategy", "xargs", "--processes", "-1", "--yes", "x"),
        ("delete", "--strategy", "rm", "--trace", "no-such-source", "--yes", "x"),
        ("delete", "--strategy", "rm", "--nice", "20", "--yes", "x"),
        ("delete", "--strategy", "rm", "--nice", "-1", "--yes", "x"),
        ("delete", "--strategy", "find", "--min-size", "banana", "--yes", "x"),
        ("delete", "--strategy", "find", "--min-size", "-1", "--yes", "x"),
        ("delete", "--strategy", "find", "--older-than", "banana", "--yes", "x"),
        ("delete", "--strategy", "find", "--older-than", "-3d", "--yes", "x"),
        ("attach",),
        ("attach", "no-such-job"),
        ("attach", "../../etc"),
        ("attach", ""),
        ("attach", "."),
        ("pause", "no-such-job"),
        ("resume", "no-such-job"),
        ("cancel", "no-such-job"),
        ("jobs", "extra"),
        ("doctor", "extra"),
        ("--no-such-option",),
    ),
    ids=" ".join,
)
def test_bad_arguments_are_exit_2(cli: Cli, tmpfs: Path, arguments: tuple[str, ...]) -> None:
    many_directories(tmpfs / "x", 1, 1)
    before = manifest(tmpfs)
    finished = cli.run(*arguments, cwd=tmpfs).expect(2)
    finished.assert_one_sentence()
    assert manifest(tmpfs) == before
    assert cli.jobs() == []


@pytest.mark.parametrize(
    "option", (["--gentle"], ["--nice", "5"], ["--trace", "auto"], ["--processes", "1"])
)
def test_takes_the_promised_options(cli: Cli, tmpfs: Path, option: list[str]) -> None:
    many_directories(tmpfs / "x", 1, 1)
    strategy = "xargs" if "--processes" in option else "rm"
    cli.delete(tmpfs / "x", strategy, *option).expect(0)
    assert os.listdir(tmpfs) == []


@pytest.mark.parametrize(
    "options", (("--batch-size", "7"), ("--batch-size", "7", "--processes", "3"))
)
def test_batch_size_is_the_number_of_names_per_rm(
    cli: Cli, tmpfs: Path, options: tuple[str, ...]
) -> None:
    many_directories(tmpfs / "target", 3, 70)
    report = cli.delete(tmpfs / "target", "xargs", *options).expect(0).report()
    assert report["deleted_files"] == 210
    assert report["syscalls"]["execve"]["calls"] - report["syscalls"]["execve"]["errors"] == 33
