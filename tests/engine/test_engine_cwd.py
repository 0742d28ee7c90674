"""The engine's threads remove names relative to a private current directory."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import DEADLINE_S
from tests.engine.running import delete, delete_command
from tests.needs import needs_own_current_directory, needs_tool
from tests.trees import flat, many_directories

CALL = re.compile(r"^(\w+)\((?:(\w+)<(.*?)>)?(.*)\) += (-?\d+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Called:
    """A call as strace shows it."""

    thread: str
    call: str
    descriptor: str
    directory: str
    more: str
    result: int


def called(target: Path, trace: Path, *inject: str) -> list[Called]:
    """Remove a tree with two threads; return its chdir and unlinkat calls."""
    subprocess.run(
        [
            *(needs_tool("strace", "strace"), "-ff", "-yy", "-o", trace),
            *("-e", "trace=unshare,kcmp,fchdir,chdir,unlinkat", *inject),
            *delete_command("--threads", "2", "--", target),
        ],
        stdout=subprocess.DEVNULL,
        timeout=DEADLINE_S,
        check=True,
        cwd="/",
    )
    assert not target.exists()
    return [
        Called(file.suffix, call, descriptor, directory, more, int(result))
        for file in trace.parent.glob(f"{trace.name}.*")
        for call, descriptor, directory, more, result in CALL.findall(file.read_text())
    ]


def test_thread_enters_a_directory_before_it_removes_its_names(tmp_path: Path) -> None:
    # Directories of files, an empty one, and one with directories only
    needs_own_current_directory()
    target = tmp_path / "target"
    many_directories(target, 6, 40)
    of_files = {str(directory) for directory in target.iterdir()}
    (target / "empty").mkdir()
    calls = called(target, tmp_path / "trace")
    unshared = [call.thread for call in calls if (call.call, call.result) == ("unshare", 0)]
    entered = [call for call in calls if call.call == "fchdir"]
    assert len(unshared) == len(set(unshared)) == 2
    assert {call.thread for call in entered} <= set(unshared)
    assert sorted(call.directory for call in entered) == sorted(of_files)
    # and leaves it when it is idle
    for thread in {call.thread for call in entered}:
        moves = [
            call.call for call in calls if call.thread == thread and call.call.endswith("chdir")
        ]
        assert moves[-1] == "chdir"
    # and files are removed relative to it, directories by descriptor
    files = [call for call in calls if call.call == "unlinkat" and call.more.endswith(", 0")]
    assert len(files) == 6 * 40
    assert {call.descriptor for call in files} == {"AT_FDCWD"}
    assert {call.directory for call in files} == of_files
    directories = [call for call in calls if call.more.endswith("AT_REMOVEDIR")]
    assert len(directories) == 8
    assert "AT_FDCWD" not in {call.descriptor for call in directories}


@pytest.mark.parametrize(
    "refused",
    ["unshare:error=EPERM", "unshare:retval=0", "kcmp:error=EPERM", "fchdir:error=EACCES"],
)
def test_names_are_removed_by_descriptor_without_private_current_directory(
    tmp_path: Path, refused: str
) -> None:
    target = tmp_path / "target"
    many_directories(target, 6, 40)
    calls = called(target, tmp_path / "trace", "-e", f"inject={refused}")
    removed = [call for call in calls if (call.call, call.result) == ("unlinkat", 0)]
    assert len(removed) == 1 + 6 * 41
    assert "AT_FDCWD" not in {call.descriptor for call in removed}
    # and without unshare no thread changes the shared current directory
    assert refused.startswith("fchdir") or not [call for call in calls if call.call == "fchdir"]
    assert not [call for call in calls if call.call == "chdir"]


def test_each_directory_is_entered_once(tmp_path: Path) -> None:
    needs_own_current_directory()
    many_directories(tmp_path / "target", 7, 200)
    flat(tmp_path / "target", 1)
    ended = delete("--threads", "1", "--", tmp_path / "target").expect(0)
    assert ended.counts["calls"]["fchdir"][:2] == [8, 0]
    # and the idle thread leaves the tree
    assert ended.counts["calls"]["chdir"][:2] == [1, 0]


def test_thread_leaves_a_removed_directory_before_it_removes_the_next_one(
    tmp_path: Path,
) -> None:
    # Nested directories with files. While the deepest one is a current directory, the kernel
    # visits all removed directories for each further removal.
    needs_own_current_directory()
    target = tmp_path / "target"
    below = target
    for _ in range(6):
        flat(below, 2)
        below /= "d"
    calls = called(target, tmp_path / "trace")
    up = [
        call.call
        for call in calls
        if call.call.endswith("chdir") or call.more.endswith("AT_REMOVEDIR")
    ]
    assert up == ["fchdir"] * 6 + ["unlinkat", "chdir"] + ["unlinkat"] * 5
