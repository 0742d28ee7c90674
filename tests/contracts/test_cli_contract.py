"""The command line keeps the contract of design.md: data, shapes, exit codes."""

import base64
import os
import shutil
from pathlib import Path

import pytest

from tests.conftest import Cli
from tests.strategies import BY_PATH
from tests.trees import (
    HOSTILE_NAMES,
    flat,
    manifest,
    many_directories,
)
from tui_fs.strategies.registry import STRATEGIES

STRANGE_NAMES = [
    name for name in HOSTILE_NAMES if not name.isascii() or not name.decode().isprintable()
]
STATES = {"running", "paused", "done", "partial", "cancelled", "died", "refused"}


def test_estimate_shape(cli: Cli, tmpfs: Path) -> None:
    many_directories(tmpfs / "root", 20, 100)
    estimate = cli.run("estimate", "--json", tmpfs / "root").expect(0).object()
    assert {"schema", "target", "strategies", "recommended"} <= estimate.keys()
    assert estimate["schema"] == 1
    assert estimate["target"] == str(tmpfs / "root")
    rows = {row["strategy"]: row for row in estimate["strategies"]}
    assert rows.keys() == STRATEGIES.keys()
    assert rows[estimate["recommended"]]["feasible"] is True
    promised = """strategy seconds_low seconds seconds_high syscalls processes peak_memory_bytes
        feasible race_safe mount_safe reasons command"""
    for name, row in rows.items():
        assert set(promised.split()) <= row.keys(), name
        assert 0 < row["seconds_low"] <= row["seconds"] <= row["seconds_high"], name
        assert row["processes"] >= 1
        assert row["peak_memory_bytes"] > 0
        assert all(isinstance(word, str) for argv in row["command"] for word in argv), name
    # And find | xargs rm is the one that a hostile writer can lead elsewhere, unless it is confined
    assert rows["xargs"]["race_safe"] is bool(rows["xargs"]["confined_by"])
    assert rows["rm"]["race_safe"] is True
    assert rows["find"]["race_safe"] is True
    removals = ("unlinkat", "unlink", "rmdir")
    for name, row in rows.items():
        assert sum(row["syscalls"].get(call, 0) for call in removals) >= 2021, name


@pytest.mark.parametrize("strategy", BY_PATH)
def test_dry_run_shows_the_command_and_deletes_nothing(
    cli: Cli, tmpfs: Path, strategy: str
) -> None:
    many_directories(tmpfs / "target", 2, 2)
    before = manifest(tmpfs)
    rows = cli.run("estimate", "--json", tmpfs / "target").expect(0).object()["strategies"]
    (estimated,) = (row["command"] for row in rows if row["strategy"] == strategy)
    # Without --yes it asks no question, as there is nothing to confirm
    options = ("--strategy", strategy, "--dry-run", "--json")
    shown = cli.run("delete", *options, tmpfs / "target").expect(0).object()
    assert shown["schema"] == 1
    assert len(shown["command"]) == len(estimated)
    assert [argv[0] for argv in shown["command"]] == [argv[0] for argv in estimated]
    assert manifest(tmpfs) == before
    assert cli.jobs() == []


def test_the_estimated_command_is_the_one_that_runs(cli: Cli, tmpfs: Path) -> None:
    many_directories(tmpfs / "target", 2, 2)
    rows = cli.run("estimate", "--json", tmpfs / "target").expect(0).object()["strategies"]
    (estimated,) = (row["command"] for row in rows if row["strategy"] == "xargs")
    report = cli.delete(tmpfs / "target", "xargs").expect(0).report()
    assert report["command"] == estimated


def test_jobs_shape(cli: Cli, tmpfs: Path) -> None:
    assert cli.jobs() == []
    for name in ("first", "second"):
        many_directories(tmpfs / name, 2, 2)
        cli.delete(tmpfs / name, "find").expect(0)
    listed = cli.jobs()
    assert {job["target"] for job in listed} == {str(tmpfs / "first"), str(tmpfs / "second")}
    for job in listed:
        assert {"id", "target", "strategy", "state"} <= job.keys()
        assert job["strategy"] == "find"
        assert job["state"] == "done"
        assert (cli.jobs_directory / job["id"]).is_dir()
    assert {job["state"] for job in listed} <= STATES


def test_doctor_shape(cli: Cli) -> None:
    diagnosis = cli.run("doctor", "--json").expect(0).object()
    assert {"schema", "tools", "tracing", "privileges", "engine", "terminal"} <= diagnosis.keys()
    tools = {tool["name"]: tool for tool in diagnosis["tools"]}
    for name in {tool for each in STRATEGIES.values() for tool in each.gnu_tools}:
        assert tools[name]["path"] == shutil.which(name)
        assert tools[name]["version"]
    assert diagnosis["privileges"]["is_root"] is (os.geteuid() == 0)


def test_a_path_that_is_not_utf_8_is_printed_twice(cli: Cli, tmpfs: Path) -> None:
    # A target whose name is not UTF-8, with a directory inside whose name is not either
    target = os.path.join(os.fsencode(tmpfs), b"caf\xe9 \x1b]0;x\x07")
    inside = os.path.join(target, b"in\xff")
    os.makedirs(inside)
    with open(os.path.join(inside, b"file"), "wb"):
        pass
    counted_json = cli.run("survey", "--json", target).expect(0).object()
    estimate = cli.run("estimate", "--json", target).expect(0).object()
    report = cli.delete(target, "rm").expect(0).report()
    for place, key in ((counted_json, "path"), (estimate, "target"), (report, "target")):
        assert base64.b64decode(place[f"{key}_b64"]) == target, key
        assert place[key].isprintable(), key
    deep = {
        base64.b64decode(row["path_b64"]) for row in counted_json["largest"] if "path_b64" in row
    }
    assert deep == {target, inside}
    (job,) = cli.jobs()
    assert base64.b64decode(job["target_b64"]) == target
    # And it is gone
    assert os.listdir(tmpfs) == []


@pytest.mark.parametrize(
    "name",
    [b"\n", b"".join(STRANGE_NAMES)],
    ids=("line", "all"),
)
def test_no_name_reaches_the_terminal_raw(cli: Cli, tmpfs: Path, name: bytes) -> None:
    target = os.path.join(os.fsencode(tmpfs), name)
    os.makedirs(os.path.join(target, name))
    spoken = [cli.run("survey", "--", target), cli.run("estimate", "--", target)]
    spoken.append(cli.run("delete", "--strategy", "find", "--yes", "--", target))
    spoken.append(cli.run("jobs"))
    for finished in spoken:
        text = finished.expect(0).stdout.decode() + finished.stderr
        strange = {sign for sign in text if not sign.isprintable()}
        assert strange <= {"\n"}, finished
        assert name == b"\n" or b"\n" not in name or name not in text.encode(), finished


def test_text_goes_to_standard_output_and_progress_does_not(cli: Cli, tmpfs: Path) -> None:
    many_directories(tmpfs / "target", 3, 10)
    arguments = ("delete", "--strategy", "rm", "--yes", tmpfs / "target")
    finished = cli.run(*arguments).expect(0)
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
