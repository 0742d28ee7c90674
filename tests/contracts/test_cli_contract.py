"""The command line keeps the contract of design.md: data, shapes, exit codes, filters."""

import base64
import errno
import os
import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Cli
from tests.needs import needs_root, needs_tool
from tests.trees import (
    HOSTILE_NAMES,
    Sentinel,
    chain,
    flat,
    hostile_names,
    manifest,
    many_directories,
)

STRATEGIES = ("rm", "find", "xargs", "rsync")
STATES = {"running", "paused", "done", "partial", "cancelled", "died", "refused"}
# From coreutils 9.2 on, du --apparent-size leaves directories out.
DU_WITH_DIRECTORIES = (9, 1)


def shell_output(*command: str | Path) -> str:
    """Run a naive tool, and give what it prints."""
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def found(root: Path, *tests: str) -> int:
    """Count what find selects, one byte each, as names may hold newlines."""
    return len(shell_output("find", root, *tests, "-printf", "."))


def survey(cli: Cli, path: Path) -> dict[str, Any]:
    return cli.run("survey", "--json", path).expect(0).object()


def assert_survey_equals_the_naive_tools(cli: Cli, root: Path) -> None:
    """Compare the totals with find and du."""
    told = survey(cli, root)
    assert told["schema"] == 1
    assert told["complete"] is True
    assert told["entries"] == found(root)
    assert told["files"] == found(root, "-type", "f")
    assert told["directories"] == found(root, "-type", "d")
    assert told["symlinks"] == found(root, "-type", "l")
    assert told["other"] == found(root, "!", "-type", "f", "!", "-type", "d", "!", "-type", "l")
    depths = shell_output("find", root, "-printf", "%d ").split()
    assert told["max_depth"] == max(map(int, depths))
    assert told["allocated_bytes"] == int(shell_output("du", "-s", "-B1", root).split()[0])
    inodes = shell_output("find", root, "-printf", "%i %s\\n").split("\n")
    assert told["apparent_bytes"] == sum(int(line.split()[1]) for line in set(inodes) if line)
    version = re.search(r"(\d+)\.(\d+)", shell_output("du", "--version"))
    assert version is not None
    if (int(version[1]), int(version[2])) <= DU_WITH_DIRECTORIES:
        apparent = shell_output("du", "-s", "--apparent-size", "-B1", root).split()[0]
        assert told["apparent_bytes"] == int(apparent)


def test_survey_equals_find_and_du(cli: Cli, filesystem: Path) -> None:
    # Given hostile names, every type of name, holes, and hard links inside and to outside
    root = filesystem / "root"
    hostile_names(root)
    Sentinel(filesystem).plant(root)
    many_directories(root / "many", 10, 50)
    (root / "data").write_bytes(b"x" * 100_000)
    os.link(root / "data", root / "many" / "data-again")
    with (root / "sparse").open("wb") as sparse:
        sparse.truncate(50_000_000)
    os.sync()
    # When it is surveyed, then the totals are those of find and du
    assert_survey_equals_the_naive_tools(cli, root)


def test_survey_of_an_empty_directory(cli: Cli, filesystem: Path) -> None:
    root = filesystem / "root"
    root.mkdir()
    assert_survey_equals_the_naive_tools(cli, root)


def test_survey_of_a_tree_deeper_than_a_path(cli: Cli, ext4: Path) -> None:
    chain(ext4 / "deep", 3_000)
    assert_survey_equals_the_naive_tools(cli, ext4 / "deep")


def test_survey_bounds_what_hard_links_free(cli: Cli, ext4: Path) -> None:
    # Given a file with two links in the tree, and one with a link outside
    root = ext4 / "root"
    root.mkdir()
    (root / "inside").write_bytes(b"x" * 40_000)
    os.link(root / "inside", root / "inside-again")
    (root / "shared").write_bytes(b"x" * 80_000)
    os.link(root / "shared", ext4 / "outside")
    os.sync()
    shared_bytes = (root / "shared").stat().st_blocks * 512
    # When it is surveyed
    told = survey(cli, root)
    # Then only the second one is uncertain
    assert told["freed_bytes_max"] == told["allocated_bytes"]
    assert told["freed_bytes_max"] - told["freed_bytes_min"] == shared_bytes > 0


def test_survey_is_certain_where_no_link_leaves_the_tree(cli: Cli, ext4: Path) -> None:
    many_directories(ext4 / "root", 3, 3)
    os.link(ext4 / "root/directory-00000/file-0000000", ext4 / "root/again")
    told = survey(cli, ext4 / "root")
    assert told["freed_bytes_min"] == told["freed_bytes_max"] == told["allocated_bytes"]


def test_survey_shape(cli: Cli, tmpfs: Path) -> None:
    many_directories(tmpfs / "root", 3, 5)
    told = survey(cli, tmpfs / "root")
    promised = """schema entries files directories symlinks other apparent_bytes allocated_bytes
        freed_bytes_min freed_bytes_max max_depth max_entries_in_directory pathologies elapsed_s
        complete backend"""
    assert set(promised.split()) <= told.keys()
    assert told["max_entries_in_directory"] == 5
    assert told["pathologies"] == []


def test_survey_shows_as_many_directories_as_asked(cli: Cli, tmpfs: Path) -> None:
    many_directories(tmpfs / "root", 9, 5)
    shown = cli.run("survey", "--json", "--top", "4", tmpfs / "root").expect(0).object()
    assert len(shown["largest"]) == 4


def test_survey_reports_a_pathology_in_the_promised_shape(cli: Cli, ext4: Path) -> None:
    # Given two signs of trouble: something mounted inside, and a hard link to outside
    needs_root("mounting")
    root = ext4 / "root"
    point = root / "point"
    point.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "tui-fs-test", point], check=True)
    (root / "shared").write_bytes(b"x" * 10_000)
    os.link(root / "shared", ext4 / "outside")
    # When it is surveyed
    findings = survey(cli, root)["pathologies"]
    # Then each has the shape of a finding, and one of them is about the mount
    for finding in findings:
        assert {"kind", "severity", "path", "numbers", "meaning", "advice"} <= finding.keys()
        assert finding["severity"] in {"info", "warning", "critical"}
        assert isinstance(finding["numbers"], dict)
    assert any(finding["path"] == str(point) for finding in findings), findings


def test_estimate_shape(cli: Cli, tmpfs: Path) -> None:
    # Given a tree
    many_directories(tmpfs / "root", 20, 100)
    # When its deletion is estimated
    estimate = cli.run("estimate", "--json", tmpfs / "root").expect(0).object()
    # Then each strategy has a row, with what it will run
    assert {"schema", "target", "strategies", "recommended"} <= estimate.keys()
    assert estimate["schema"] == 1
    assert estimate["target"] == str(tmpfs / "root")
    rows = {row["strategy"]: row for row in estimate["strategies"]}
    assert set(STRATEGIES) <= rows.keys()
    assert rows[estimate["recommended"]]["feasible"] is True
    promised = """strategy seconds_low seconds seconds_high syscalls processes peak_memory_bytes
        feasible race_safe mount_safe reasons command"""
    for name, row in rows.items():
        assert set(promised.split()) <= row.keys(), name
        assert 0 < row["seconds_low"] <= row["seconds"] <= row["seconds_high"], name
        assert row["processes"] >= 1
        assert row["peak_memory_bytes"] > 0
        assert all(isinstance(word, str) for argv in row["command"] for word in argv), name
    # And find | xargs rm is the one that a hostile writer can lead elsewhere
    assert rows["xargs"]["race_safe"] is False
    assert rows["rm"]["race_safe"] is True
    assert rows["find"]["race_safe"] is True
    removals = ("unlinkat", "unlink", "rmdir")
    for name, row in rows.items():
        assert sum(row["syscalls"].get(call, 0) for call in removals) >= 2021, name


def test_dry_run_shows_the_command_and_deletes_nothing(
    cli: Cli, tmpfs: Path, strategy: str
) -> None:
    # Given a tree, and what the estimate would run for it
    many_directories(tmpfs / "target", 2, 2)
    before = manifest(tmpfs)
    rows = cli.run("estimate", "--json", tmpfs / "target").expect(0).object()["strategies"]
    (estimated,) = (row["command"] for row in rows if row["strategy"] == strategy)
    # When its deletion is tried out
    shown = cli.delete(tmpfs / "target", strategy, "--dry-run").expect(0).object()
    # Then it shows the same command, deletes nothing, and makes no job
    assert shown["schema"] == 1
    assert len(shown["command"]) == len(estimated)
    assert [argv[0] for argv in shown["command"]] == [argv[0] for argv in estimated]
    assert manifest(tmpfs) == before
    assert cli.jobs() == []
    # And without --yes it asks nobody, as there is nothing to confirm
    options = ("--strategy", strategy, "--dry-run", "--json")
    cli.run("delete", *options, tmpfs / "target").expect(0)
    assert manifest(tmpfs) == before


def test_the_estimated_command_is_the_one_that_runs(cli: Cli, tmpfs: Path) -> None:
    many_directories(tmpfs / "target", 2, 2)
    rows = cli.run("estimate", "--json", tmpfs / "target").expect(0).object()["strategies"]
    (estimated,) = (row["command"] for row in rows if row["strategy"] == "xargs")
    report = cli.delete(tmpfs / "target", "xargs").expect(0).report()
    assert report["command"] == estimated


def test_jobs_shape(cli: Cli, tmpfs: Path) -> None:
    # Given no job, then two
    assert cli.jobs() == []
    for name in ("first", "second"):
        many_directories(tmpfs / name, 2, 2)
        cli.delete(tmpfs / name, "find").expect(0)
    # When they are listed
    listed = cli.jobs()
    # Then each says what it was
    assert {job["target"] for job in listed} == {str(tmpfs / "first"), str(tmpfs / "second")}
    for job in listed:
        assert {"id", "target", "strategy", "state"} <= job.keys()
        assert job["strategy"] == "find"
        assert job["state"] == "done"
        assert (cli.jobs_directory / job["id"]).is_dir()
    assert {job["state"] for job in listed} <= STATES


def test_doctor_shape(cli: Cli) -> None:
    told = cli.run("doctor", "--json").expect(0).object()
    assert {"schema", "tools", "tracing", "privileges", "engine", "terminal"} <= told.keys()
    tools = {tool["name"]: tool for tool in told["tools"]}
    for name in STRATEGIES:
        assert tools[name]["path"] == shutil.which(name)
        assert tools[name]["version"]
    assert told["privileges"]["is_root"] is (os.geteuid() == 0)


@pytest.fixture
def path_without_rsync(tmp_path: Path) -> str:
    """Give a PATH that holds every tool but rsync."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("rm", "find", "xargs", "rmdir", "strace", "sh"):
        (tools / name).symlink_to(needs_tool(name, package=name))
    return str(tools)


def test_a_missing_tool_is_exit_4(cli: Cli, tmpfs: Path, path_without_rsync: str) -> None:
    # Given a PATH without rsync
    many_directories(tmpfs / "target", 2, 2)
    before = manifest(tmpfs)
    environment = {"PATH": path_without_rsync}
    # When rsync is to delete
    arguments = ("delete", "--strategy", "rsync", "--yes", "--json", tmpfs / "target")
    finished = cli.run(*arguments, environment=environment).expect(4)
    # Then it says what to install, and nothing was touched
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
    # Given 210 files
    many_directories(tmpfs / "target", 3, 70)
    # When xargs gives 7 names to each rm
    report = cli.delete(tmpfs / "target", "xargs", *options).expect(0).report()
    # Then there are 30 rm, beside two find and one xargs
    assert report["deleted_files"] == 210
    assert report["syscalls"]["execve"]["calls"] - report["syscalls"]["execve"]["errors"] == 33


def aged_and_sized(root: Path) -> None:
    """Make files of many names, sizes and ages, on both sides of every limit below."""
    many_directories(root, 2, 3)
    (root / "empty.log").mkdir()
    (root / "empty.log" / "keep.txt").touch()
    for name in ("a.log", "b.log.gz", ".log", "c.LOG", "log", "new\nline.log", "*.log", "[a].log"):
        (root / name).write_bytes(b"log")
        (root / "directory-00001" / name).write_bytes(b"log")
    (root / "link.log").symlink_to("a.log")
    for size in (0, 1, 1023, 1024, 1025, 2**20 - 1, 2**20, 2**20 + 1, 5_000_000):
        with (root / f"size-{size}").open("wb") as file:
            file.truncate(size)
    now = time.time()
    for hours in (0, 1, 24 * 20, 24 * 30 - 1, 24 * 30 + 1, 24 * 31 + 1, 24 * 400):
        path = root / "directory-00000" / f"age-{hours}"
        path.write_bytes(b"aged")
        os.utime(path, (now, now - hours * 3600))


@pytest.mark.parametrize("strategy", ("find", "xargs"))
@pytest.mark.parametrize(
    ("options", "selects"),
    (
        (("--name", "*.log"), ("-name", "*.log")),
        (("--name", "[[]a].log"), ("-name", "[[]a].log")),
        (("--name", "-x"), ("-name", "-x")),
        (("--min-size", "1M"), ("-type", "f", "-size", "+1048575c")),
        (("--min-size", "1k"), ("-type", "f", "-size", "+1023c")),
        (("--min-size", "1024"), ("-type", "f", "-size", "+1023c")),
        (("--older-than", "30d"), ("!", "-newermt", "30 days ago")),
        (("--older-than", "12h"), ("!", "-newermt", "12 hours ago")),
        (
            ("--older-than", "30d", "--name", "age-7*"),
            ("!", "-newermt", "30 days ago", "-name", "age-7*"),
        ),
        (("--name", "size-*", "--min-size", "1M"), ("-name", "size-*", "-size", "+1048575c")),
    ),
    ids=lambda words: " ".join(words) if words[0].startswith("--") else "find",
)
def test_filters_delete_what_find_selects(
    cli: Cli, tmpfs: Path, strategy: str, options: tuple[str, ...], selects: tuple[str, ...]
) -> None:
    # Given files of many names, sizes and ages, and what find selects among them
    target = tmpfs / "target"
    aged_and_sized(target)
    (target / "-x").touch()
    selected = subprocess.run(
        ["find", ".", "!", "-type", "d", *selects, "-printf", "%P\\0"],
        cwd=target,
        capture_output=True,
        check=True,
    ).stdout.split(b"\0")[:-1]
    assert selected
    names = [f"{options[n]}={options[n + 1]}" for n in range(0, len(options), 2)]
    before = set(manifest(target))
    # When the strategy deletes with that filter
    report = cli.delete(target, strategy, *names).expect(0).report()
    # Then just those are gone, and no directory is
    assert before - set(manifest(target)) == set(selected)
    assert report["outcome"] == "done"
    assert report["deleted_files"] == len(selected)
    assert report["deleted_directories"] == 0


def test_a_filtered_deletion_does_not_claim_that_all_is_gone(cli: Cli, tmpfs: Path) -> None:
    # Given a tree of which a filter selects a part, and then nothing
    aged_and_sized(tmpfs / "target")
    for pattern in ("*.log", "no such name"):
        # When the part is deleted
        report = cli.delete(tmpfs / "target", "find", f"--name={pattern}").expect(0).report()
        # Then the report does not say in words what is not so
        assert (tmpfs / "target" / "size-0").exists()
        assert "nothing of it is left" not in report["explanation"].lower()


@pytest.mark.parametrize("strategy", ("rm", "rsync"))
@pytest.mark.parametrize("option", ("--name=*.log", "--min-size=1M", "--older-than=30d"))
def test_strategies_that_cannot_filter_say_so(
    cli: Cli, tmpfs: Path, strategy: str, option: str
) -> None:
    aged_and_sized(tmpfs / "target")
    before = manifest(tmpfs)
    cli.delete(tmpfs / "target", strategy, option).expect(2).assert_one_sentence()
    assert manifest(tmpfs) == before


def test_a_path_that_is_not_utf_8_is_told_twice(cli: Cli, tmpfs: Path, strategy: str) -> None:
    # Given a target whose name is not UTF-8, with a directory inside whose name is not either
    target = os.path.join(os.fsencode(tmpfs), b"caf\xe9 \x1b]0;x\x07")
    inside = os.path.join(target, b"in\xff")
    os.makedirs(inside)
    with open(os.path.join(inside, b"file"), "wb"):
        pass
    # When it is surveyed, estimated and deleted
    told = cli.run("survey", "--json", target).expect(0).object()
    estimate = cli.run("estimate", "--json", target).expect(0).object()
    report = cli.delete(target, strategy).expect(0).report()
    # Then each gives an escaped path for display and the bytes beside it
    for place, key in ((told, "path"), (estimate, "target"), (report, "target")):
        assert base64.b64decode(place[f"{key}_b64"]) == target, key
        assert place[key].isprintable(), key
    deep = {base64.b64decode(row["path_b64"]) for row in told["largest"] if "path_b64" in row}
    assert deep == {target, inside}
    (job,) = cli.jobs()
    assert base64.b64decode(job["target_b64"]) == target
    # And it is gone
    assert os.listdir(tmpfs) == []


@pytest.mark.parametrize(
    "name",
    [name for name in HOSTILE_NAMES if not name.isascii() or not name.decode().isprintable()],
    ids=lambda name: ascii(name)[2:-1],
)
def test_no_name_reaches_the_terminal_raw(cli: Cli, tmpfs: Path, name: bytes) -> None:
    # Given a target and a directory inside with a hostile name
    target = os.path.join(os.fsencode(tmpfs), name)
    os.makedirs(os.path.join(target, name))
    # When the program speaks to people about it
    spoken = [cli.run("survey", "--", target), cli.run("estimate", "--", target)]
    spoken.append(cli.run("delete", "--strategy", "find", "--yes", "--", target))
    spoken.append(cli.run("jobs"))
    # Then nothing that a terminal would obey comes out
    for finished in spoken:
        text = finished.expect(0).stdout.decode() + finished.stderr
        strange = {sign for sign in text if not sign.isprintable()}
        assert strange <= {"\n"}, finished
        assert name == b"\n" or b"\n" not in name or name not in text.encode(), finished


def test_what_cannot_be_deleted_is_partial(cli: Cli, ext4: Path, strategy: str) -> None:
    # Given a tree with one immutable file in it
    needs_root("chattr +i")
    needs_tool("chattr", package="e2fsprogs")
    target = ext4 / "target"
    many_directories(target, 4, 10)
    immutable = target / "directory-00002" / "immutable"
    immutable.write_bytes(b"stays")
    subprocess.run(["chattr", "+i", immutable], check=True)
    # When it is deleted
    finished = cli.delete(target, strategy).expect(1)
    # Then all but that file and its directories are gone
    assert set(manifest(target)) == {b".", b"directory-00002", b"directory-00002/immutable"}
    # And the report says so, with the path and the reason
    report = finished.report()
    assert report["outcome"] == "partial"
    assert report["failed"] >= 1
    assert (report["deleted_files"], report["deleted_directories"]) == (40, 3)
    (error,) = (error for error in report["errors"] if error["path"] == str(immutable))
    assert error["errno"] in {errno.EPERM, "EPERM"}
    assert cli.jobs()[0]["state"] == "partial"


def test_survey_counts_what_it_cannot_change(cli: Cli, ext4: Path) -> None:
    # Given an immutable directory
    needs_root("chattr +i")
    needs_tool("chattr", package="e2fsprogs")
    frozen = ext4 / "root" / "frozen"
    frozen.mkdir(parents=True)
    subprocess.run(["chattr", "+i", frozen], check=True)
    # When its parent is surveyed, then a finding names it
    findings = survey(cli, ext4 / "root")["pathologies"]
    assert any(finding["path"] == str(frozen) for finding in findings), findings


def test_text_goes_to_standard_output_and_progress_does_not(cli: Cli, tmpfs: Path) -> None:
    # Given a tree
    many_directories(tmpfs / "target", 3, 10)
    # When it is deleted without --json
    arguments = ("delete", "--strategy", "rm", "--yes", tmpfs / "target")
    finished = cli.run(*arguments).expect(0)
    # Then the report is on standard output, in words
    assert b"done" in finished.stdout
    assert b"30" in finished.stdout


def test_an_empty_directory_and_a_single_file_are_deleted(
    cli: Cli, tmpfs: Path, strategy: str
) -> None:
    (tmpfs / "empty").mkdir()
    flat(tmpfs / "one", 1)
    for name, files in (("empty", 0), ("one", 1)):
        report = cli.delete(tmpfs / name, strategy).expect(0).report()
        assert (report["deleted_files"], report["deleted_directories"]) == (files, 1)
    assert os.listdir(tmpfs) == []
