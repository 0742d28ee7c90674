"""The engine's threads stand in the directories whose names they remove, where they may."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.engine.running import DEADLINE_S, delete, delete_command
from tests.needs import needs_own_current_directory, needs_tool
from tests.trees import flat, many_directories

CALL = re.compile(r"^(\w+)\((?:(\w+)<(.*?)>)?(.*)\) += (-?\d+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Called:
    """A call as strace shows it: by which thread, of which directory, with which answer."""

    thread: str
    call: str
    descriptor: str
    directory: str
    more: str
    answer: int


def called(target: Path, trace: Path, *inject: str) -> list[Called]:
    """Remove a tree with two threads; return the calls that stand somewhere or remove."""
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
        Called(file.suffix, call, descriptor, directory, more, int(answer))
        for file in trace.parent.glob(f"{trace.name}.*")
        for call, descriptor, directory, more, answer in CALL.findall(file.read_text())
    ]


def test_a_thread_stands_in_a_directory_before_it_removes_names_there(tmp_path: Path) -> None:
    # Given directories of files, an empty one, and one that holds directories only
    needs_own_current_directory()
    target = tmp_path / "target"
    many_directories(target, 6, 40)
    of_files = {str(directory) for directory in target.iterdir()}
    (target / "empty").mkdir()
    # When they are removed
    calls = called(target, tmp_path / "trace")
    # Then each thread first gets a current directory of its own, which is then each one of files
    alone = [one.thread for one in calls if (one.call, one.answer) == ("unshare", 0)]
    stood = [one for one in calls if one.call == "fchdir"]
    assert len(alone) == len(set(alone)) == 2
    assert {one.thread for one in stood} <= set(alone)
    assert sorted(one.directory for one in stood) == sorted(of_files)
    # and none any more when nothing is left to do
    for thread in {one.thread for one in stood}:
        moves = [one.call for one in calls if one.thread == thread and one.call.endswith("chdir")]
        assert moves[-1] == "chdir"
    # and it is the one from which the names are removed, while directories go by descriptors
    files = [one for one in calls if one.call == "unlinkat" and one.more.endswith(", 0")]
    assert len(files) == 6 * 40
    assert {one.descriptor for one in files} == {"AT_FDCWD"}
    assert {one.directory for one in files} == of_files
    directories = [one for one in calls if one.more.endswith("AT_REMOVEDIR")]
    assert len(directories) == 8
    assert "AT_FDCWD" not in {one.descriptor for one in directories}


@pytest.mark.parametrize(
    "refused",
    ["unshare:error=EPERM", "unshare:retval=0", "kcmp:error=EPERM", "fchdir:error=EACCES"],
)
def test_where_it_may_not_stand_names_are_removed_by_the_descriptor(
    tmp_path: Path, refused: str
) -> None:
    # Given who refuses a thread a current directory of its own, or only says that it has one, or
    # does not tell, or does not let it stand there
    target = tmp_path / "target"
    many_directories(target, 6, 40)
    # When a tree is removed
    calls = called(target, tmp_path / "trace", "-e", f"inject={refused}")
    # Then all of it is, and nothing from a current directory
    removed = [one for one in calls if (one.call, one.answer) == ("unlinkat", 0)]
    assert len(removed) == 1 + 6 * 41
    assert "AT_FDCWD" not in {one.descriptor for one in removed}
    # and without one of its own nobody changes what all threads share
    assert refused.startswith("fchdir") or not [one for one in calls if one.call == "fchdir"]
    assert not [one for one in calls if one.call == "chdir"]


def test_it_stands_once_in_each_directory(tmp_path: Path) -> None:
    # Given directories of files, and one file above them / When removed by one thread
    needs_own_current_directory()
    many_directories(tmp_path / "target", 7, 200)
    flat(tmp_path / "target", 1)
    ended = delete("--threads", "1", "--", tmp_path / "target").expect(0)
    # Then it stands in each of them once
    assert ended.counts["calls"]["fchdir"][:2] == [8, 0]
    # and steps out when nothing is left to do
    assert ended.counts["calls"]["chdir"][:2] == [1, 0]


def test_no_thread_stands_in_what_is_gone_while_the_directories_above_it_are_removed(
    tmp_path: Path,
) -> None:
    # Given directories inside each other, with files, removed from the deepest up: the kernel keeps
    # all that are gone as long as somebody stands in the deepest, and looks at them each time
    needs_own_current_directory()
    target = tmp_path / "target"
    below = target
    for _ in range(6):
        flat(below, 2)
        below /= "d"
    # When they are removed
    calls = called(target, tmp_path / "trace")
    # Then whoever has removed the one it stands in steps out before it removes the next one
    up = [
        one.call for one in calls if one.call.endswith("chdir") or one.more.endswith("AT_REMOVEDIR")
    ]
    assert up == ["fchdir"] * 6 + ["unlinkat", "chdir"] + ["unlinkat"] * 5
