"""Another process exchanges a file with a sentinel while it is deleted."""

import json
import os
import platform
import signal
import sys
from pathlib import Path

import pytest

from tests.attack import exchanger
from tests.conftest import Cli, Json
from tests.needs import lacks
from tests.waiting_process import waiting_process
from tui_fs.strategies import rmtree_child

JOBS = 8
MAX_ROUNDS, REMOVALS = 5_000, 5
DONE, PARTIAL, REFUSED = 0, 1, 3
PAUSES_S = (0.0, 0.0005)
"""Without pauses most jobs are refused before they start."""


@pytest.fixture
def place(tmpfs: Path) -> Path:
    """Return an empty directory."""
    if platform.machine() not in ("x86_64", "aarch64"):
        lacks(f"renameat2 is not known for {platform.machine()}; run on x86-64 or arm64")
    return tmpfs


def _plant(place: Path) -> dict[str, int]:
    for name in ("file", "sentinel"):
        (place / f"new {name}").write_bytes(name.encode())
        (place / f"new {name}").rename(place / name)
    return {name: (place / name).lstat().st_ino for name in ("file", "sentinel")}


def _inodes(place: Path) -> set[int]:
    """Return the inodes of all names."""
    with os.scandir(place) as entries:
        return {entry.inode() for entry in entries}


def _descriptors() -> set[int]:
    """Return the open descriptors of this process."""
    names = os.listdir("/proc/self/fd")
    return {int(name) for name in names if os.path.lexists(f"/proc/self/fd/{name}")}


@pytest.mark.parametrize("pause_s", PAUSES_S)
def test_jobs_remove_the_confirmed_file_or_report_what_else(
    cli: Cli, place: Path, pause_s: float
) -> None:
    outcomes: list[tuple[object, bool]] = []
    for _ in range(JOBS):
        planted = set(_plant(place).values())
        command = (sys.executable, "-I", exchanger.__file__, "file", "sentinel", str(pause_s))
        with waiting_process(command, cwd=place):
            finished = cli.run("delete", "--yes", "--json", place / "file")
        assert finished.code in (DONE, PARTIAL, REFUSED), finished
        left = planted & _inodes(place)
        if finished.code == REFUSED:
            assert left == planted, finished
            outcomes.append(("refused", False))
            continue
        report = finished.report()
        confirmed = _confirmed_inode(cli, report)
        lost = planted - left - {confirmed}
        outcomes.append((report["outcome"], bool(lost)))
        assert (report["outcome"] == "done") is (confirmed not in left), report["explanation"]
        if lost:
            assert "was removed instead of it" in str(report["explanation"])
    print(outcomes)


def _confirmed_inode(cli: Cli, report: Json) -> int:
    plan = json.loads((cli.jobs_directory / str(report["id"]) / "plan.json").read_text())
    return int(plan["targets"][0]["pin"]["inode"])


def _stop(child: int) -> None:
    """Stop a child that runs."""
    os.kill(child, signal.SIGSTOP)
    os.waitpid(child, os.WUNTRACED)


def test_tool_reports_each_exchanged_file(
    place: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(place)
    device = place.stat().st_dev
    lost = removed = rounds = 0
    command = (sys.executable, "-I", exchanger.__file__, "file", "sentinel", "0")
    with waiting_process(command, cwd=place) as attacker:
        kept_open = _descriptors()
        _stop(attacker.pid)
        while removed < REMOVALS and rounds < MAX_ROUNDS:
            rounds += 1
            inodes = _plant(place)
            os.kill(attacker.pid, signal.SIGCONT)
            while os.lstat("file").st_ino == inodes["file"]:
                pass  # until the attacker is at work
            status = rmtree_child.delete_file("file", device, inodes["file"])
            _stop(attacker.pid)
            # The child leaves them to its end; here each survey of a later test would read them
            for descriptor in _descriptors() - kept_open:
                os.close(descriptor)
            left = _inodes(place)
            is_lost = inodes["sentinel"] not in left
            removed += inodes["file"] not in left
            lost += is_lost
            assert (status == rmtree_child.EXIT_EXCHANGED) is is_lost
            assert (status == 0) is (inodes["file"] not in left)
    capfd.readouterr()
    print(f"{removed} confirmed files and {lost} sentinels removed in {rounds} rounds")
    assert removed == REMOVALS
