"""Cases in which the file system fails, is full, or changes."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from tests.conftest import wait_until
from tests.filesystems import mount_tmpfs
from tests.matrix.case import DIED, DONE, PARTIAL, Case, Group, Job, Promise, Scene
from tests.matrix.disks import (
    disk_with_an_unreadable_directory,
    disk_with_unreadable_inodes,
    ext4_disk,
    fill,
)
from tests.trees import many_directories

_RATE = 2_000
_SLOW = (50, 80)
"""Directories, and files in each: two seconds at `_RATE`."""
_SLOW_IN_MEMORY = (50, 400)
"""Enough entries that the tool still runs when the rate limit starts, even on a busy machine."""
_FEW = (10, 50)

_THE_REST_GOES = Promise(
    "What cannot be read stays and is reported as failed; everything else is deleted; the outcome "
    "is not done.",
    (PARTIAL,),
)


def _on_a_full_disk(scene: Scene) -> None:
    disk = ext4_disk(scene.place)
    scene.target = disk / "target"
    many_directories(scene.target, *_FEW)
    fill(disk)


def _without_room_but_in_memory(scene: Scene) -> None:
    _without_room_for_the_job(scene)
    scene.runtime.mkdir()


def _without_room_for_the_job(scene: Scene) -> None:
    many_directories(scene.make_target(), 3, 5)
    scene.state_home.mkdir()
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tui-fs-test", scene.state_home], check=True
    )
    fill(scene.state_home)


def _with_little_room_for_the_job(scene: Scene) -> None:
    _without_room_for_the_job(scene)
    (scene.state_home / "ballast").unlink()
    many_directories(scene.target / "more", *_SLOW)


def _fill_the_jobs_disk_for_a_moment(scene: Scene, job: Job) -> None:
    fill(scene.state_home)
    time.sleep(1.0)
    (scene.state_home / "ballast").unlink()
    job.lift_rate()


def _on_a_disk_of_its_own(scene: Scene) -> None:
    scene.target = mount_tmpfs(scene.place / "disk") / "target"
    many_directories(scene.target, *_SLOW_IN_MEMORY)


def _remount_read_only(scene: Scene, job: Job) -> None:
    command = ["mount", "-o", "remount,ro", str(scene.target.parent)]
    tools = job.tool_pids()

    def remount() -> bool:
        _signal(tools, signal.SIGSTOP)  # the file system is busy while an entry is being removed
        return subprocess.run(command, check=False).returncode == 0

    wait_until(remount, "mounted read-only")
    _signal(tools, signal.SIGCONT)
    job.lift_rate()


def _signal(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _unreadable_directory(scene: Scene) -> None:
    scene.target = disk_with_an_unreadable_directory(scene.place) / "target"


def _unreadable_inodes(scene: Scene) -> None:
    scene.target = disk_with_unreadable_inodes(scene.place) / "target"


def _assert_visible(expected: int) -> Callable[[Scene], str]:
    def count(scene: Scene) -> str:
        visible = _visible_entries(scene.target)
        assert visible == expected, f"{visible} names are left"
        return f"{visible} names can still be seen"

    return count


def _visible_entries(directory: Path) -> int:
    """Count the names of a tree without stat; the root counts as one."""
    visible = 1
    with suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            is_directory = entry.is_dir(follow_symlinks=False)
            visible += _visible_entries(Path(entry.path)) if is_directory else 1
    return visible


DISKS = Group(
    "The file system is full, fails, or changes",
    (
        Case(
            name="the target's file system is full to the last block",
            promise=Promise("All of it goes: deleting needs no room.", (DONE,)),
            build=_on_a_full_disk,
        ),
        Case(
            name="the file system that jobs are written to is full",
            promise=Promise("All of it goes: the job is written to memory.", (DONE,)),
            build=_without_room_but_in_memory,
        ),
        Case(
            name="the file system that jobs are written to is full, and there is no room in memory",
            promise=Promise("Says where there is no room; nothing is deleted.", (DIED,)),
            build=_without_room_for_the_job,
        ),
        Case(
            name="the file system that jobs are written to is full for a moment in mid-run",
            promise=Promise(
                "All of it goes, and every event is recorded: records wait for free space.",
                (DONE,),
            ),
            build=_with_little_room_for_the_job,
            during=_fill_the_jobs_disk_for_a_moment,
            rate=_RATE,
        ),
        Case(
            name="the target's file system is mounted read-only in mid-run",
            promise=Promise(
                "What is left stays and is reported; it does not say done.", (PARTIAL,)
            ),
            build=_on_a_disk_of_its_own,
            during=_remount_read_only,
            rate=_RATE,
        ),
        Case(
            name="I/O error: a directory whose list of names cannot be read",
            promise=_THE_REST_GOES,
            build=_unreadable_directory,
            after=_assert_visible(2),
            is_counted=False,
        ),
        Case(
            name="I/O error: files whose inodes cannot be read",
            promise=_THE_REST_GOES,
            build=_unreadable_inodes,
            after=_assert_visible(106),
            is_counted=False,
        ),
    ),
)
