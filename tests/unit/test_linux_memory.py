"""Memory of processes and room for more, from fake kernel files."""

import os
import subprocess
from pathlib import Path

import pytest

from tui_fs.linux.memory import (
    MemoryRoom,
    children_of,
    has_executed,
    memory_room,
    peak_bytes_of,
)

MEMINFO = "MemTotal:       16000000 kB\nMemFree:  9 kB\nMemAvailable:    1000 kB\n"


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A machine with 1,000 KiB left, and this process in the group /a/b."""
    (tmp_path / "meminfo").write_text(MEMINFO)
    (tmp_path / "self").write_text("1:name=systemd:/old\n0::/a/b\n")
    (tmp_path / "cg" / "a" / "b").mkdir(parents=True)
    return tmp_path


def group(directory: Path, **files: object) -> None:
    """Write a control group's files; _ replaces the dot in their names."""
    for name, content in files.items():
        (directory / name.replace("_", ".")).write_text(f"{content}\n")


def room(machine: Path) -> MemoryRoom | None:
    """Ask with the fixture's files."""
    return memory_room(str(machine / "meminfo"), str(machine / "self"), str(machine / "cg"))


def test_without_limits_the_machine_is_the_limit(machine: Path) -> None:
    group(machine / "cg" / "a" / "b", memory_max="max", memory_high="max", memory_current=5)
    assert room(machine) == MemoryRoom(1_024_000, "the memory of this machine")


@pytest.mark.parametrize("where", ["a", "a/b"])
@pytest.mark.parametrize("limit", ["memory_max", "memory_high"])
def test_the_narrowest_group_above_is_the_limit(machine: Path, where: str, limit: str) -> None:
    group(
        machine / "cg" / where,
        **{limit: 5_000, "memory_current": 4_000},
        memory_stat="anon 3700\ninactive_file 200\nactive_file 60\nslab_reclaimable 40",
    )
    assert room(machine) == MemoryRoom(1_300, "the memory limit of this control group")


def test_a_group_that_is_over_its_limit_has_no_room(machine: Path) -> None:
    group(machine / "cg" / "a", memory_high=1_000, memory_current=4_000)
    memory = room(machine)
    assert memory is not None and memory.bytes_left == 0


@pytest.mark.parametrize("own", ["", "0::/\n", "0::/../../x\n", "12:memory:/a\n", "garbage"])
def test_odd_groups_are_no_limit(machine: Path, own: str) -> None:
    (machine / "self").write_text(own)
    assert room(machine) == MemoryRoom(1_024_000, "the memory of this machine")


def test_nothing_to_read_is_not_known(tmp_path: Path) -> None:
    gone = str(tmp_path / "gone")
    assert memory_room(gone, gone, gone) is None


def test_this_machine_has_room() -> None:
    memory = memory_room()
    assert memory is not None and memory.bytes_left > 0


def test_a_process_has_a_peak_and_has_executed() -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None and child.stdout is not None
        child.stdin.write(b"x")
        child.stdin.flush()
        child.stdout.read(1)
        assert has_executed(child.pid)
        assert 100_000 < peak_bytes_of(child.pid) < 9_000_000
        assert peak_bytes_of(child.pid, parent=os.getpid()) > 0
        assert peak_bytes_of(child.pid, parent=1) == 0
        child.stdin.close()
    # And nothing once it is gone
    assert (peak_bytes_of(child.pid), has_executed(child.pid)) == (0, False)


def test_a_fork_has_not_executed() -> None:
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(write)
        os.read(read, 1)
        os._exit(0)
    try:
        assert not has_executed(pid)
        assert pid in children_of(os.getpid())
    finally:
        os.close(write)
        os.close(read)
        os.waitpid(pid, 0)


@pytest.mark.parametrize(
    ("stat", "executed"),
    [
        ("7 (cat) S 1 7 7 0 -1 4194304 0", True),
        ("7 (cat) S 1 7 7 0 -1 4194368 0", False),
        ("7 (a) b) (c) S 1 7 7 0 -1 4194304 0", True),
        ("7 (cat) S 1", False),
        ("", False),
        ("7 (cat) S 1 7 7 0 -1 many 0", False),
    ],
)
def test_flags_are_found_behind_any_name(tmp_path: Path, stat: str, executed: bool) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "stat").write_text(stat)
    assert has_executed(7, str(tmp_path)) is executed


def test_only_a_whole_line_is_a_peak(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    text = "Name:\tVmHWM: 9 kB\nPPid:\t3\nVmPeak:\t 50 kB\nVmHWM:\t    12 kB\n"
    (tmp_path / "7" / "status").write_text(text)
    assert peak_bytes_of(7, str(tmp_path)) == 12 * 1024
    assert peak_bytes_of(7, str(tmp_path), parent=3) == 12 * 1024
    assert peak_bytes_of(7, str(tmp_path), parent=4) == 0
