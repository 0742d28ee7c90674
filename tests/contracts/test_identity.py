"""Only the confirmed directory is deleted, even if another gets its path or its inode number."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import Cli, wait_until
from tests.contracts.asking import Terminal
from tests.contracts.curing import put_aside
from tests.filesystems import image_of, mount, mount_image, mount_tmpfs, unmount_below
from tests.namespaces import other_namespace
from tests.needs import needs_root
from tests.trees import flat
from tui_fs.linux.pins import take_pin

COMMANDS = {
    "delete": ("delete", "--strategy", "rm", "--"),
    "parallel": ("delete", "--strategy", "parallel", "--"),
    "aside": ("aside", "--"),
    "recreate": ("recreate", "--"),
}


def wait_for_inode_reuse(path: Path, inode: int) -> None:
    """Make a new directory at a path until it has the inode number of the removed one."""

    def is_reused() -> bool:
        path.mkdir()
        if path.stat().st_ino == inode:
            return True
        path.rename(path.parent / f"spare-{path.stat().st_ino}")
        return False

    wait_until(is_reused, "the inode number is assigned again")


@pytest.mark.parametrize("command", COMMANDS)
def test_directory_recreated_while_it_asks_is_not_the_confirmed_one(
    cli: Cli, ext4: Path, command: str
) -> None:
    target = ext4 / "target"
    target.mkdir()
    with Terminal(cli, *COMMANDS[command], str(target)) as terminal:
        terminal.wait_for(b"yes")
        shutil.rmtree(target)
        target.mkdir()  # ext4 assigns the lowest free inode number: that of the removed directory
        inode = target.stat().st_ino
        terminal.answer(b"yes\n")
        code = terminal.wait()
    assert code == 3, terminal.seen
    assert b"not the directory that was confirmed" in b" ".join(terminal.seen.split())
    assert target.stat().st_ino == inode
    assert sorted(os.listdir(ext4)) == ["target"]


@pytest.mark.parametrize("strategy", ["rm", "parallel"])
def test_clone_of_the_disk_mounted_while_it_asks_keeps_its_files(
    cli: Cli, mount_root: Path, strategy: str
) -> None:
    # The clone has the same file system id, inode numbers and birth times; once the first disk is
    # unmounted, it also gets the same device number and mount id.
    with two_equal_disks(mount_root) as (point, clone):
        target = point / "target"
        command = ("delete", "--strategy", strategy, str(target))
        with Terminal(cli, *command) as terminal:
            terminal.wait_for(b"yes")
            is_busy = subprocess.run(["umount", point], capture_output=True, check=False).returncode
            if is_busy:
                subprocess.run(["umount", "-l", point], check=True)
            subprocess.run(["mount", "-o", "loop", clone, point], check=True)
            terminal.answer(b"yes\n")
            code = terminal.wait()
        assert code == 3, terminal.seen
        assert len(os.listdir(target)) == 3


@contextmanager
def two_equal_disks(mount_root: Path) -> Iterator[tuple[Path, Path]]:
    """Mount an ext4 with a directory `target`; yield its mount point and a copy's image."""
    place = mount_root / "disks"
    place.mkdir()
    clone, point = place / "clone", place / "mounted"
    try:
        mount_image(point, "ext4", 32 << 20)
        flat(point / "target", 3)
        unmount_below(point)
        shutil.copyfile(image_of(point), clone)
        mount(point, str(image_of(point)), "ext4", "loop")
        yield point, clone
    finally:
        unmount_below(place)
        shutil.rmtree(place)


def test_aside_does_not_put_back_another_directory_with_the_same_inode(
    cli: Cli, ext4: Path
) -> None:
    spool = ext4 / "spool"
    spool.mkdir()
    inode = spool.stat().st_ino
    record = put_aside(cli, spool)
    aside = Path(record["aside"])
    aside.rmdir()
    wait_for_inode_reuse(aside, inode)
    refused = cli.run("aside", "--undo", record["id"], "--yes").expect(3)
    assert not spool.exists()
    assert aside.exists(), refused.stderr


@pytest.mark.parametrize("command", [("aside",), ("aside", "--twin"), ("recreate",)])
def test_maintenance_that_was_confirmed_for_another_directory_is_refused(
    cli: Cli, ext4: Path, command: tuple[str, ...]
) -> None:
    spool = ext4 / "spool"
    spool.mkdir()
    pin = take_pin(str(spool))
    spool.rmdir()
    wait_for_inode_reuse(spool, pin.inode)
    cli.run(*command, "--yes", "--pin", str(pin), "--", spool).expect(3)
    assert spool.stat().st_ino == pin.inode
    cli.run(*command, "--yes", "--pin", str(take_pin(str(spool))), "--", spool).expect(0)


# What the kernel opens is not always what the text of a path says.


@pytest.fixture
def covered(tmpfs: Path) -> Iterator[Path]:
    """Yield a directory `work` with a target; a process sees another target through the same path.

    Its mount namespace has a tmpfs over `work`, with a `work/target` that holds other files.
    """
    needs_root("mounting in another mount namespace")
    (tmpfs / "work").mkdir()
    flat(tmpfs / "work" / "target", 3)
    script = 'mount -t tmpfs tui-fs-test "$1"; cd "$1"; mkdir target; touch target/inner'
    with other_namespace(script, tmpfs / "work") as pid:
        (tmpfs / "pid").write_text(str(pid))
        yield tmpfs


def pid_of(covered: Path) -> str:
    return (covered / "pid").read_text()


LINKS = {
    "root": "/proc/{pid}/root{place}/work/target",
    "cwd": "/proc/{pid}/cwd/target",
    "task": "/proc/{pid}/task/{pid}/cwd/target",
    "dots": "/proc/{pid}/cwd/../work/target",
}


@pytest.mark.parametrize("command", [*COMMANDS.values(), ("survey", "--"), ("estimate", "--")])
@pytest.mark.parametrize("link", LINKS)
def test_path_into_another_mount_namespace_is_refused(
    cli: Cli, covered: Path, command: tuple[str, ...], link: str
) -> None:
    path = LINKS[link].format(pid=pid_of(covered), place=covered)
    yes = () if command[0] in ("survey", "estimate") else ("--yes",)
    refused = cli.run(command[0], *yes, *command[1:], path).expect(3)
    assert "mount" in refused.stderr
    assert len(os.listdir(covered / "work" / "target")) == 3
    assert os.path.exists(LINKS["cwd"].format(pid=pid_of(covered)) + "/inner")


def test_path_through_the_own_root_is_the_directory_itself(cli: Cli, tmpfs: Path) -> None:
    flat(tmpfs / "target", 3)
    surveyed = cli.run("survey", "--json", f"/proc/self/root{tmpfs}/target").expect(0).object()
    assert surveyed["files"] == 3
    cli.run("delete", "--strategy", "rm", "--yes", f"/proc/self/root{tmpfs}/target").expect(0)
    assert os.listdir(tmpfs) == []


@pytest.fixture
def mounted_over(tmpfs: Path) -> Iterator[tuple[Path, int]]:
    """Yield a directory under a mount, and a descriptor of the covered directory."""
    needs_root("mounting")
    work = tmpfs / "work"
    work.mkdir()
    flat(work / "target", 3)
    below = os.open(work, os.O_PATH | os.O_DIRECTORY)
    mount_tmpfs(work)
    (work / "target").mkdir()
    (work / "target" / "other").touch()
    yield work, below
    os.close(below)


@pytest.mark.parametrize("command", [*COMMANDS.values(), ("survey", "--"), ("estimate", "--")])
@pytest.mark.parametrize("way", ["current directory", "descriptor"])
def test_path_below_a_covering_mount_is_refused(
    cli: Cli, mounted_over: tuple[Path, int], command: tuple[str, ...], way: str
) -> None:
    work, below = mounted_over
    yes = () if command[0] in ("survey", "estimate") else ("--yes",)
    path = "target" if way == "current directory" else f"/proc/{os.getpid()}/fd/{below}/target"
    finished = subprocess.run(
        [cli.program, command[0], *yes, *command[1:], path],
        cwd=f"/proc/self/fd/{below}",
        pass_fds=(below,),
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 3, finished.stderr
    assert "covered by a mount" in finished.stderr
    assert os.listdir(work / "target") == ["other"]
    assert len(os.listdir(f"/proc/self/fd/{below}/target")) == 3


def test_relative_path_below_a_deleted_current_directory_names_the_reason(
    cli: Cli, tmpfs: Path
) -> None:
    flat(tmpfs / "target", 3)
    (tmpfs / "gone").mkdir()
    gone = os.open(tmpfs / "gone", os.O_PATH | os.O_DIRECTORY)
    (tmpfs / "gone").rmdir()

    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        command = [cli.program, *arguments]
        place = f"/proc/{os.getpid()}/fd/{gone}"
        return subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)

    for command in ("survey", "estimate"):
        assert run(command, str(tmpfs / "target")).returncode == 0
        refused = run(command, "target")
        assert refused.returncode == 2, refused.stderr
        assert "current directory" in refused.stderr, refused.stderr
    finished = run("delete", "--strategy", "rm", "--yes", str(tmpfs / "target"))
    assert finished.returncode == 0, finished.stderr
    os.close(gone)
    assert os.listdir(tmpfs) == []


def test_report_of_a_deletion_names_no_directory_that_the_program_held_open(
    cli: Cli, ext4: Path
) -> None:
    def is_counted() -> bool:
        flat(ext4 / "target", 3)
        return bool(cli.delete(ext4 / "target", "rm").expect(0).report()["freed_inodes"] == 4)

    # A busy kernel releases the inode of a target that Landlock has confined after the report
    wait_until(is_counted, "a report of all freed inodes")
