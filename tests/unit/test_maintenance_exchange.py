"""Recreating and putting aside while others swap names, or the disk is full."""

import contextlib
import ctypes
import errno
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.filesystems import mount_tmpfs, unmount_below
from tests.needs import needs_root
from tui_fs.maintenance.exchange import (
    DirEntryRef,
    Recreated,
    ReplacementDir,
    cut_name,
    exchange_checked,
    exchange_names,
    finish_staging_dir,
    put_aside,
    put_aside_with_replacement,
    recreate,
    rename_new,
)
from tui_fs.model.errors import Refused
from tui_fs.model.target import Pin

ROOM = ".spool.room"
ASIDE = ".aside"


def nothing(_: ReplacementDir) -> None:
    """Do nothing once the twin is made."""


class Arena:
    """A directory `spool` and the descriptors that the actions work by."""

    def __init__(self, parent: Path) -> None:
        """Make the directory."""
        self.parent = parent
        self.path = parent / "spool"
        self.path.mkdir(mode=0o750)
        flags = os.O_RDONLY | os.O_DIRECTORY
        self.above = os.open(parent, flags)
        self.old = os.open(self.path, flags)
        self.inode = os.fstat(self.old).st_ino

    def entry(self, name: str = "spool") -> DirEntryRef:
        """Return a name in the parent."""
        return DirEntryRef(self.above, name)

    def close(self) -> None:
        """Close the descriptors."""
        os.close(self.above)
        os.close(self.old)

    def recreate(self, made: Callable[[ReplacementDir], None] = nothing) -> Recreated:
        """Recreate the directory."""
        return recreate(self.entry(), self.old, self.entry(ROOM), made)

    def put_aside(self, made: Callable[[ReplacementDir], None] = nothing) -> None:
        """Put the directory aside, with a replacement in its place."""
        put_aside_with_replacement(
            self.entry(), self.old, self.entry(ASIDE), self.entry(ROOM), made
        )


@pytest.fixture
def arena(filesystem: Path) -> Iterator[Arena]:
    """Yield a directory on each file system in turn."""
    arena = Arena(filesystem)
    yield arena
    arena.close()


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Arena]:
    """Yield a directory where tests usually work."""
    arena = Arena(tmp_path)
    yield arena
    arena.close()


@pytest.mark.parametrize("instead", ["directory", "link", "nothing"])
@pytest.mark.parametrize("action", ["recreate", "aside", "twin"])
def test_a_swapped_name_stays_as_it_was_swapped(arena: Arena, instead: str, action: str) -> None:
    elsewhere = arena.parent / "elsewhere"

    def swap(_: ReplacementDir | None = None) -> None:
        arena.path.rename(elsewhere)
        if instead == "directory":
            arena.path.mkdir()
            (arena.path / "precious").touch()
        elif instead == "link":
            arena.path.symlink_to("elsewhere")

    with pytest.raises((Refused, FileNotFoundError)):
        if action == "recreate":
            arena.recreate(swap)
        elif action == "twin":
            arena.put_aside(swap)
        else:
            swap()
            put_aside(arena.entry(), arena.old, arena.entry(".aside"))
    assert elsewhere.stat().st_ino == arena.inode
    left = {"elsewhere"} if instead == "nothing" else {"elsewhere", "spool"}
    assert set(os.listdir(arena.parent)) == left
    if instead == "directory":
        assert os.listdir(arena.path) == ["precious"]
    if instead == "link":
        assert arena.path.is_symlink()


def test_under_a_storm_of_swaps_nothing_full_is_removed(here: Arena) -> None:
    decoy = here.parent / "decoy"
    decoy.mkdir()
    (decoy / "precious").touch()
    precious = (decoy / "precious").stat().st_ino
    is_over = threading.Event()

    def storm() -> None:
        while not is_over.is_set():
            with contextlib.suppress(OSError):
                exchange_names(here.entry("spool"), here.entry("decoy"))

    thread = threading.Thread(target=storm)
    thread.start()
    outcomes = set()
    try:
        for round_number in range(150):
            room = f".room{round_number}"
            try:
                if round_number % 2:
                    recreate(here.entry(), here.old, here.entry(room), nothing)
                    outcomes.add("done")
                    break
                aside = here.entry(f".aside{round_number}")
                put_aside_with_replacement(here.entry(), here.old, aside, here.entry(room), nothing)
                outcomes.add("aside")
                rename_new(aside, here.entry(f"back{round_number}"))
                break
            except (Refused, OSError):
                outcomes.add("refused")
    finally:
        is_over.set()
        thread.join()
    assert outcomes
    paths = list(here.parent.rglob("precious"))
    assert [path.stat().st_ino for path in paths] == [precious]


def test_a_full_disk_leaves_everything_as_it_was(tmp_path: Path) -> None:
    needs_root("mounting tmpfs")
    point = tmp_path / "mount"
    point.mkdir()
    mount_tmpfs(point)
    try:
        arena = Arena(point)
        used = os.statvfs(point).f_files - os.statvfs(point).f_ffree
        for free in (0, 1):
            options = f"remount,nr_inodes={used + free}"
            subprocess.run(["mount", "-o", options, point], check=True)
            assert os.statvfs(point).f_ffree == free
            with pytest.raises(OSError, match="No space"):
                arena.recreate()
            with pytest.raises(OSError, match="No space"):
                arena.put_aside()
            assert os.listdir(point) == ["spool"]
            assert arena.path.stat().st_ino == arena.inode
        arena.close()
    finally:
        unmount_below(point)


@pytest.mark.parametrize("action", [Arena.recreate, Arena.put_aside])
def test_a_change_of_mode_in_the_last_moment_is_not_lost(
    here: Arena, action: Callable[[Arena, Callable[[ReplacementDir], None]], object]
) -> None:
    with pytest.raises(Refused, match="mode") as refused:
        action(here, lambda _: here.path.chmod(0o700))

    assert refused.value.rule == "changed"
    assert here.path.stat().st_ino == here.inode
    assert here.path.stat().st_mode & 0o777 == 0o700
    assert os.listdir(here.parent) == ["spool"]


def test_what_came_into_a_twin_that_is_taken_back_is_moved(
    here: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    def changed(*_: object) -> None:
        (here.path / "late").touch()
        raise Refused("changed", rule="changed")

    monkeypatch.setattr("tui_fs.maintenance.exchange.refuse_changed", changed)

    with pytest.raises(Refused):
        here.put_aside()

    assert here.path.stat().st_ino == here.inode
    assert os.listdir(here.path) == ["late"]
    assert os.listdir(here.parent) == ["spool"]


def test_a_file_system_without_exchange_is_reported(
    here: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Libc:
        @staticmethod
        def renameat2(*_: object) -> int:
            ctypes.set_errno(errno.EINVAL)
            return -1

        syscall = renameat2

    monkeypatch.setattr("tui_fs.maintenance.exchange.LIBC", Libc)

    with pytest.raises(Refused, match="cannot exchange two names") as refused:
        here.recreate()

    assert refused.value.rule == "no-exchange"
    assert os.listdir(here.parent) == ["spool"]


def test_a_full_directory_is_refused(here: Arena) -> None:
    (here.path / "file").touch()

    with pytest.raises(Refused, match="not empty"):
        here.recreate()

    assert os.listdir(here.parent) == ["spool"]


def test_finishing_refuses_a_strange_directory(here: Arena) -> None:
    room = here.parent / ROOM
    (room / "twin").mkdir(parents=True)
    room.chmod(0o700)
    (room / "twin" / "file").touch()

    with pytest.raises(Refused, match="are not the ones that were exchanged"):
        finish_staging_dir(here.entry(), here.entry(ROOM), (Pin(1, 1, 1),))

    assert (room / "twin" / "file").exists()


def test_a_room_of_others_is_not_entered(here: Arena) -> None:
    room = here.parent / ROOM
    room.mkdir()
    room.chmod(0o777)

    with pytest.raises(Refused, match="Another process just replaced the new directory"):
        finish_staging_dir(here.entry(), here.entry(ROOM), ())

    assert room.exists()


def test_an_exchange_of_the_wrong_thing_is_put_back(here: Arena) -> None:
    other = here.parent / "other"
    other.mkdir()
    inodes = (here.inode, other.stat().st_ino)
    device = os.fstat(here.old).st_dev

    for expected in (((device, 1), None), ((device, here.inode), (device, 1))):
        with pytest.raises(Refused):
            exchange_checked(here.entry(), here.entry("other"), *expected)
        assert (here.path.stat().st_ino, other.stat().st_ino) == inodes


@pytest.mark.parametrize("name", ["n", "n" * 255, "ü" * 127, "\udcff" * 255])
def test_a_name_is_cut_to_what_a_file_system_takes(name: str) -> None:
    joined = cut_name(".", name, ".tui-fs-aside-00000000")

    assert len(os.fsencode(joined)) <= 255
    assert joined.startswith(f".{name[:100]}")
    assert joined.endswith(".tui-fs-aside-00000000")
