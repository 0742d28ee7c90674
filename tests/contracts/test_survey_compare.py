"""Two surveys of one directory at two times: what has grown, and when the file system is full."""

import json
import os
import re
import shutil
from pathlib import Path

import pytest

from tests.conftest import Cli
from tests.trees import flat, many_directories


@pytest.fixture
def old(cli: Cli, tmp_path: Path) -> Path:
    """Return an export of a tree that then changes."""
    root, file = tmp_path / "root", tmp_path / "old.json"
    root.mkdir()
    many_directories(root / "many", 5, 40)
    flat(root / "flat", 300)
    (root / "log").mkdir()
    (root / "log" / "app").write_bytes(b"x" * 100_000)
    os.sync()
    cli.run("survey", root, "--export", file).expect(0)
    (root / "log" / "app").write_bytes(b"x" * 3_000_000)
    shutil.rmtree(root / "flat")
    many_directories(root / "new", 3, 7)
    os.sync()
    return file


def test_shows_growth_by_directory_and_nothing_twice(cli: Cli, old: Path, tmp_path: Path) -> None:
    shown = cli.run("survey", tmp_path / "root", "--compare", old).expect(0)
    lines = shown.stdout.decode().splitlines()
    assert lines[0] == str(tmp_path / "root")
    assert f"compared with {old}" in lines[1]
    grown, _, shrunk = shown.stdout.decode().partition("shrunk most")
    log, new = (
        re.search(rf"^ *(\S+ \S+) +(\S+)  .*/{name}", grown, re.M) for name in ("log", "new")
    )
    assert log is not None
    assert new is not None
    assert log[1].startswith("+2.8 MiB")
    assert log[2] == "+0"
    assert new[2] == "+25"  # itself, 3 directories and 21 files
    assert "/new (new)" in grown
    assert "/flat (removed)" in shrunk
    assert "-301" in shrunk
    assert "/many" not in shown.stdout.decode()


def test_the_differences_are_those_of_two_surveys(cli: Cli, old: Path, tmp_path: Path) -> None:
    before = cli.run("survey", "--import", old, "--json").object()
    now = cli.run("survey", tmp_path / "root", "--json").object()
    done = cli.run("survey", tmp_path / "root", "--compare", old, "--json")
    compared = done.object()
    assert compared["schema"] == 1
    assert compared["allocated_bytes"] == now["allocated_bytes"] - before["allocated_bytes"]
    assert compared["entries"] == now["entries"] - before["entries"]
    changes = compared["grown"] + compared["shrunk"]
    assert sum(change["allocated_bytes"] for change in changes) == compared["allocated_bytes"]
    assert sum(change["entries"] for change in changes) == compared["entries"]


def test_when_the_file_system_is_full(cli: Cli, tmpfs: Path, tmp_path: Path) -> None:
    """The use of the file system then is in the file: 10 days ago, 5 days ago, and now."""
    # No other process changes the free space of this one
    root, old = tmpfs / "root", tmp_path / "old.json"
    flat(root, 10)
    cli.run("survey", root, "--export", old).expect(0)
    room = os.statvfs(root)
    now_s = os.stat(old).st_mtime
    files = []
    for days, less in ((10, 1_000), (5, 600)):
        header, _, rest = old.read_text().partition("},\n")
        fields = json.loads(header.removeprefix("[1,2,") + "}")
        fields["timestamp"] = int(now_s - days * 86_400)
        fields["fs_available_bytes"] = room.f_bavail * room.f_frsize + (less << 20)
        fields["fs_bytes"] = room.f_blocks * room.f_frsize
        files.append(tmp_path / f"{days}.json")
        files[-1].write_text(f"[1,2,{json.dumps(fields)},\n{rest}")
    one = cli.run("survey", root, "--compare", files[0])
    assert re.search(
        r"file system: \+\d+\.\d MiB a day, full in about \d[\d,]* days$", one.stdout.decode(), re.M
    )
    assert "Two surveys give no range" in one.stdout.decode()
    several = cli.run("survey", root, "--compare", files[0], "--compare", files[1])
    assert re.search(
        r"full in about \d[\d,]* days \(.* to .*, 4 of 5 times\)", several.stdout.decode()
    )


def test_an_export_of_another_directory_is_refused(cli: Cli, old: Path, tmp_path: Path) -> None:
    refused = cli.run("survey", tmp_path / "root" / "many", "--compare", old).expect(2)
    assert "not of" in refused.stderr
    assert refused.stdout == b""


def test_an_export_of_ncdu_has_no_use_of_the_file_system(
    cli: Cli, old: Path, tmp_path: Path
) -> None:
    plain = tmp_path / "plain.json"
    _, _, rest = old.read_text().partition("},\n")
    plain.write_text(f'[1,2,{{"progname":"ncdu","progver":"1","timestamp":1}},\n{rest}')
    shown = cli.run("survey", tmp_path / "root", "--compare", plain).expect(0)
    assert "unknown when it is full" in shown.stdout.decode()


@pytest.mark.usefixtures("old")
def test_nothing_has_changed(cli: Cli, tmp_path: Path) -> None:
    again = tmp_path / "again.json"
    cli.run("survey", tmp_path / "root", "--export", again).expect(0)
    shown = cli.run("survey", tmp_path / "root", "--compare", again)
    assert "No directory has changed" in shown.stdout.decode()
    damaged = tmp_path / "damaged.json"
    damaged.write_text(again.read_text()[:-40])
    cli.run("survey", tmp_path / "root", "--compare", damaged).expect(2)
