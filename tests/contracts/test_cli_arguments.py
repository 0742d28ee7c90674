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
        ("survey", "--top", "many", "x"),
        ("survey", "--top", "-1", "x"),
        ("survey", "no-such-path"),
        ("estimate", "no-such-path"),
        ("delete", "--strategy", "rm", "--yes", "no-such-path"),
        ("delete", "--strategy", "xargs", "--batch-size", "0", "--yes", "x"),
        ("delete", "--strategy", "xargs", "--batch-size", "many", "--yes", "x"),
        ("delete", "--strategy", "xargs", "--processes", "0", "--yes", "x"),
        ("delete", "--strategy", "xargs", "--processes", "-1", "--yes", "x"),
        ("delete", "--strategy", "rm", "--nice", "-1", "--yes", "x"),
        ("delete", "--strategy", "rm", "--rate", "0", "--yes", "x"),
        ("delete", "--strategy", "rm", "--ionice", "best", "--yes", "x"),
        ("lab", "run", "rivals", "--scale", "huge"),
        ("lab", "run", "rivals", "--dir", "/nowhere/at/all"),
        ("lab", "show", "no-such-run"),
        ("lab",),
        ("delete", "--strategy", "find", "--min-size", "-1", "--yes", "x"),
        ("delete", "--strategy", "find", "--older-than", "banana", "--yes", "x"),
        ("delete", "--strategy", "find", "--older-than", "-3d", "--yes", "x"),
        ("attach",),
        ("attach", "../../etc"),
        ("attach", ""),
        ("attach", "."),
        ("pause", "no-such-job"),
        ("resume", "no-such-job"),
        ("cancel", "no-such-job"),
        ("doctor", "extra"),
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
    ("arguments", "sentence"),
    (
        (
            "delte --strategy rm --yes x",
            "'delte' is neither a command nor a directory. Did you mean tui-fs delete?",
        ),
        ("nonsense", "'nonsense' is neither a command nor a directory. See tui-fs --help."),
        ("delete --strategi rm --yes x", "There is no option --strategi. Did you mean --strategy?"),
        ("--no-such-option", "There is no option --no-such-option. See tui-fs --help."),
        (
            "delete --strategy rn --yes x",
            "--strategy: 'rn' is not a strategy; use rm, find, xargs, rsync, rmtree or "
            "parallel. See tui-fs delete --help.",
        ),
        (
            "delete --strategy rsnc --yes x",
            "--strategy: 'rsnc' is not a strategy; use rm, find, xargs, rsync, rmtree or "
            "parallel. Did you mean rsync? See tui-fs delete --help.",
        ),
        (
            "delete --strategy nothing-like-it --yes x",
            "--strategy: 'nothing-like-it' is not a strategy; use rm, find, xargs, rsync, rmtree "
            "or parallel. See tui-fs delete --help.",
        ),
        (
            "lab run rsnc-vs-rm",
            "There is no experiment 'rsnc-vs-rm'. Did you mean rsync-vs-rm?",
        ),
        (
            "delete --strategy rm --confine alwys --yes x",
            "--confine: 'alwys' is not one of 'auto', 'always', 'off'. Did you mean always?",
        ),
        (
            "delete --strategy rm --nice 20 --yes x",
            "--nice: '20' is not a number from 0 to 19. See tui-fs delete --help.",
        ),
        (
            "delete --strategy rm --rate fast --yes x",
            "--rate: 'fast' is not a number from 1 to 1,000,000. See tui-fs delete --help.",
        ),
        (
            "delete --strategy rm --trace ptrace --yes x",
            "--trace: 'ptrace' is not a source of system call counts; use auto, perf, "
            "engine, bpf, strace or off. Did you mean strace? See tui-fs delete --help.",
        ),
        (
            "delete --strategy find --min-size banana --yes x",
            "--min-size: 'banana' is not a size; write for example 512, 10k, 1M or 2GiB. "
            "See tui-fs delete --help.",
        ),
        ("delete --strategy rm --yes", "PATH is missing. See tui-fs delete --help."),
        (
            "delete --yes x --strategy",
            "--strategy: the value is missing. See tui-fs delete --help.",
        ),
        (
            "delete --strategy rm --name f0* --yes x",
            "rm cannot delete this: rm cannot filter by name, size or age; find, xargs, "
            "parallel can.",
        ),
        (
            "delete --strategy rm --threads 2 --yes x",
            "--threads works only with the strategy parallel, not with rm.",
        ),
        (
            "delete --strategy rm --batch-size 500 --yes x",
            "--batch-size works only with the strategy xargs, not with rm.",
        ),
        (
            "delete --strategy find --processes 1 --dry-run x",
            "--processes works only with the strategy xargs, not with find.",
        ),
        (
            "delete --threads 2 --processes 2 --yes x",
            "No strategy has all of these options: --processes, --threads.",
        ),
        (
            "delete --strategy find --older-than 2w --newer-than 1d --yes x",
            "These limits exclude each other: no file can match.",
        ),
        (
            "estimate --min-size 5 --size-below 5 x",
            "These limits exclude each other: no file can match.",
        ),
        (
            "delete --strategy rm --confirm x --dry-run x",
            "--confirm is only allowed with --yes.",
        ),
        (
            "jobs --prune --compare a b",
            "--compare and --prune are mutually exclusive. Use one of them.",
        ),
        ("survey x --import y", "PATH and --import are mutually exclusive. Use one of them."),
        (
            "survey x --export - --json",
            "--json and --export - both write to standard output. Use one of them.",
        ),
        (
            "survey --import x",
            "x is a directory, not a file in ncdu's format. To count it: tui-fs survey x",
        ),
        ("estimate", "PATH is missing. See tui-fs estimate --help."),
        ("estimate --strategy rm x", "There is no option --strategy. See tui-fs estimate --help."),
        ("delete --tread 2 x", "There is no option --tread. Did you mean --threads?"),
        ("attach 123abc", "There is no job '123abc'. tui-fs jobs lists all jobs."),
        ("jobs extra", "Unexpected argument 'extra'. See tui-fs jobs --help."),
        (
            "lab lst",
            "ACTION: 'lst' is not one of 'list', 'run', 'runs', 'show', 'compare'. "
            "Did you mean list?",
        ),
    ),
    ids=lambda value: value.partition(".")[0],
)
def test_a_usage_error_names_the_mistake_and_the_remedy(
    cli: Cli, tmpfs: Path, arguments: str, sentence: str
) -> None:
    many_directories(tmpfs / "x", 1, 1)
    before = manifest(tmpfs)
    finished = cli.run(*arguments.split(), cwd=tmpfs).expect(2)
    assert (finished.stdout, finished.stderr) == (b"", f"tui-fs: {sentence}\n")
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
    started = report["syscalls"]["execve"]
    # (and the rmdir of the target)
    assert started["calls"] - started["errors"] == 33 + 1
