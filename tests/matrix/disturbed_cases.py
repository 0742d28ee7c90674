"""Cases in which another process changes the tree or the job in mid-run."""

import os
import shutil
import signal
import subprocess
import threading
from pathlib import Path

from tests.acl import NAMED_USER, grant
from tests.conftest import entries_in, wait_until
from tests.filesystems import mount_bind, mount_tmpfs
from tests.matrix.case import (
    CANCELLED,
    DIED,
    DONE,
    MISSING,
    PARTIAL,
    REFUSED,
    Case,
    Group,
    Job,
    Promise,
    Scene,
)
from tests.matrix.ordinary_user import UID
from tests.strategies import BY_PATH
from tests.trees import flat, many_directories

_RATE = 2_000
_DIRECTORIES, _FILES_EACH = 50, 200
"""Five seconds at `_RATE`; the first few hundred entries may go at once."""


def _plain_tree(scene: Scene) -> None:
    many_directories(scene.make_target() / "many", _DIRECTORIES, _FILES_EACH)


def _small_tree(scene: Scene) -> None:
    many_directories(scene.make_target() / "many", 3, 5)


def _directories_in_full(scene: Scene) -> list[Path]:
    """List the directories that the job has not come to."""
    many = sorted((scene.target / "many").iterdir())
    return [directory for directory in many if entries_in(directory) == _FILES_EACH]


def _directories_vanish(scene: Scene, job: Job) -> None:
    job.pause()
    for directory in _directories_in_full(scene):
        shutil.rmtree(directory)
    job.resume()
    job.lift_rate()


def _decoy(scene: Scene) -> Path:
    """Make a directory outside that holds the same names as each in the tree."""
    decoy = scene.place / "outside"
    flat(decoy, _FILES_EACH)
    return decoy


def _say_what_is_outside(scene: Scene) -> str:
    left = entries_in(scene.place / "outside")
    return f"outside, {left} of {_FILES_EACH} files are left"


def _links_take_the_place(scene: Scene, job: Job) -> None:
    decoy = _decoy(scene)
    job.pause()
    for number, directory in enumerate(_directories_in_full(scene)):
        directory.rename(scene.place / f"moved-away-{number}")
        directory.symlink_to(decoy)
    job.resume()
    job.lift_rate()


def _bind_mounts_appear(scene: Scene, _: Job) -> None:
    _show_in_the_tree(_decoy(scene), scene)


def _other_file_system_appears(scene: Scene, _: Job) -> None:
    mount_tmpfs(scene.place / "outside")
    _show_in_the_tree(_decoy(scene), scene)


def _show_in_the_tree(outside: Path, scene: Scene) -> None:
    """Bind-mount a directory on the last ones that are there still."""
    shown = 0
    # Behind a late server, workers may have come to all of them
    there = _directories_in_full(scene) or sorted((scene.target / "many").iterdir())
    for directory in reversed(there):
        command = ["mount", "--bind", str(outside), str(directory)]
        shown += subprocess.run(command, capture_output=True, check=False).returncode == 0
    assert shown > 0, "the job ended too soon"


def _bind_mount_in_a_pause(scene: Scene, job: Job) -> None:
    decoy = _decoy(scene)
    job.pause()
    mount_bind(decoy, _directories_in_full(scene)[-1])
    refused = scene.cli.run("resume", job.id)
    assert refused.code != 0
    refused.assert_one_sentence()
    job.cancel()


class _Writer:
    """Makes new names in a directory until it is stopped."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._write)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _write(self) -> None:
        made = 0
        while not self._stop.wait(0.001):
            for number in range(made, made + 10):
                os.mknod(self._directory / f"new-{number}", 0o600)
            made += 10


def _a_tool_is_killed(_: Scene, job: Job) -> None:
    os.kill(job.tool_pids()[-1], signal.SIGKILL)


def _the_supervisor_is_killed(scene: Scene, job: Job) -> None:
    tools = job.tool_pids()
    os.kill(scene.cli.supervisor_of(job.id), signal.SIGKILL)
    wait_until(lambda: not any(map(_is_running, tools)), "the end of the tools")


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes() != b""
    except OSError:
        return False


def _it_is_cancelled(_: Scene, job: Job) -> None:
    job.cancel()


def _refilled_directory(scene: Scene) -> None:
    refilled = scene.make_target() / "refilled"
    flat(refilled, 20_000)  # enough for the writer to get its turn on a busy machine, too
    scene.until_the_end.enter_context(_Writer(refilled))


def _writable_by_another(scene: Scene) -> None:
    _small_tree(scene)
    os.chown(scene.target / "many" / "directory-00001", UID, -1)


def _writable_through_an_acl(scene: Scene) -> None:
    _small_tree(scene)
    grant(scene.target / "many" / "directory-00001", NAMED_USER, UID)


_ONLY_THE_TARGET = Promise("Only the target changes; outside, nothing is deleted.", (DONE, PARTIAL))
_MOUNTS_END_IT = Promise(
    "The job ends when it sees the mount; what is mounted in is kept.",
    (CANCELLED,),
)

OTHERS = Group(
    "Other users and processes change the tree",
    (
        Case(
            name="a user other than you and root can write in the tree",
            promise=Promise("All of it goes: it cannot be redirected outside.", (DONE,)),
            build=_writable_by_another,
        ),
        Case(
            name="a user other than you and root can write in the tree, with --confine off",
            promise=Promise("All of it goes: it cannot be redirected outside.", (DONE,)),
            unlike=dict.fromkeys(
                BY_PATH,
                Promise("Refused before anything is touched: it works by path.", (REFUSED,)),
            ),
            build=_writable_by_another,
            options=("--confine", "off"),
        ),
        Case(
            name="an access control list lets another user write in the tree, with --confine off",
            promise=Promise("All of it goes: it cannot be redirected outside.", (DONE,)),
            unlike=dict.fromkeys(
                BY_PATH,
                Promise("Refused before anything is touched: it works by path.", (REFUSED,)),
            ),
            build=_writable_through_an_acl,
            options=("--confine", "off"),
        ),
        Case(
            name="another user can write in the tree, with --confine off --accept-races",
            promise=Promise("All of it goes.", (DONE,)),
            build=_writable_by_another,
            options=("--confine", "off", "--accept-races"),
        ),
        Case(
            name="directories are replaced by symbolic links out of the tree in mid-run",
            promise=_ONLY_THE_TARGET,
            build=_plain_tree,
            during=_links_take_the_place,
            after=_say_what_is_outside,
            rate=_RATE,
            is_counted=False,
            fails_by_chance=True,
        ),
        Case(
            name="a directory from outside is bind-mounted in the tree during a pause",
            promise=Promise(
                "Does not go on: resuming is refused, and outside nothing is deleted.",
                (CANCELLED,),
            ),
            build=_plain_tree,
            during=_bind_mount_in_a_pause,
            after=_say_what_is_outside,
            rate=_RATE,
            is_counted=False,
        ),
        Case(
            name="directories from outside are bind-mounted in the tree in mid-run",
            promise=_MOUNTS_END_IT,
            build=_plain_tree,
            during=_bind_mounts_appear,
            after=_say_what_is_outside,
            rate=_RATE,
            is_counted=False,
            fails_by_chance=True,
        ),
        Case(
            name="another file system is mounted on directories of the tree in mid-run",
            promise=Promise(
                "The job ends when it sees the mount; on the other file system, nothing is "
                "deleted.",
                (CANCELLED,),
            ),
            build=_plain_tree,
            during=_other_file_system_appears,
            after=_say_what_is_outside,
            rate=_RATE,
            is_counted=False,
            fails_by_chance=True,
        ),
        Case(
            name="directories vanish in mid-run",
            promise=Promise("What is gone already is no failure.", (DONE,)),
            build=_plain_tree,
            during=_directories_vanish,
            rate=_RATE,
            is_counted=False,
            fails_by_chance=True,
        ),
        Case(
            name="a writer refills a directory until the end",
            promise=Promise("Ends, and does not say done.", (PARTIAL,)),
            build=_refilled_directory,
            is_counted=False,
            not_for={"parallel": "it may empty the directory between two of the writer's names"},
        ),
    ),
)

ENDINGS = Group(
    "A tool is missing, or the job is killed or cancelled",
    (
        Case(
            name="the tool is missing",
            promise=Promise(
                "Says before the start what to install; nothing is touched.", (MISSING,)
            ),
            build=_small_tree,
            is_without_tool=True,
            not_for={"rmtree": "its tool is the Python that runs tui-fs"},
        ),
        Case(
            name="the tool is killed in mid-run (SIGKILL)",
            promise=Promise("Says that it was killed and what is left.", (PARTIAL,)),
            build=_plain_tree,
            during=_a_tool_is_killed,
            rate=_RATE,
        ),
        Case(
            name="the supervisor is killed in mid-run (SIGKILL)",
            promise=Promise("The tools end within 3 seconds; the job is called dead.", (DIED,)),
            build=_plain_tree,
            during=_the_supervisor_is_killed,
            rate=_RATE,
        ),
        Case(
            name="the job is cancelled in mid-run",
            promise=Promise("Ends, and says what is left.", (CANCELLED,)),
            build=_plain_tree,
            during=_it_is_cancelled,
            rate=_RATE,
        ),
    ),
)
