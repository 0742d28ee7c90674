"""The file systems of a run are made for it, invisible to other processes, and gone after it."""

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.conftest import wait_until
from tests.needs import lacks, needs_root, needs_tool
from tests.trees import chain
from tests.unit.scratching import (
    above,
    clear_away,
    made_in,
    only_scratch,
    records,
    result_of_child,
    scratches,
)
from tui_fs.job.scratch import PREFIX
from tui_fs.lab import filesystems as lab_places
from tui_fs.lab.experiment import Place, Trial
from tui_fs.lab.filesystems import (
    SHARED_MEMORY,
    Needed,
    Needs,
    Places,
    needed_on,
    needs_of,
    place_obstacle,
    refuse_without_room,
)
from tui_fs.lab.tree_generators import Tree
from tui_fs.linux.filesystem import FileSystem, file_system_of
from tui_fs.linux.memory import MemoryRoom
from tui_fs.linux.mounts import mounts_below, read_mounts
from tui_fs.model.errors import Missing, Refused, TuiFsError

__all__ = ["above", "records"]

IMAGES = (Place.EXT4, Place.XFS, Place.BTRFS)
MKFS = {"ext4": "e2fsprogs", "xfs": "xfsprogs", "btrfs": "btrfs-progs"}


class Planned(Tree, frozen=True):
    """A tree that is never built."""

    number: int = 5_000
    size_bytes: int = 0

    @property
    def entries(self) -> int:
        """All names in it."""
        return self.number

    @property
    def contents_bytes(self) -> int:
        """The blocks of its files."""
        return self.size_bytes


def trials_on(*places: Place) -> tuple[Trial, ...]:
    """Return a trial for each place."""
    return tuple(Trial((), Planned(size_bytes=100 << 20), place) for place in places)


def needs_mounting(place: Place) -> None:
    """Require what a place is made with."""
    needs_root("mounting")
    if place in IMAGES:
        needs_tool(f"mkfs.{place.value}", MKFS[place.value])
        needs_tool("losetup", "mount")


def mounted_below(above: Path) -> list[str]:
    """List the mounts that this process sees below a directory."""
    return [mount.filesystem for mount in mounts_below(str(above), read_mounts())]


def loops_of(image: Path) -> bool:
    """Return whether a loop device has an image, even one that was unlinked."""
    listed = subprocess.run(["losetup", "-a"], capture_output=True, text=True, check=True)
    return str(image) in listed.stdout


def put_file(places: Places, place: Place) -> None:
    """Write a file by the descriptor, and find it by the path."""
    directory = places.directory(place)
    file = os.open("file", os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=directory)
    os.write(file, b"content")
    os.close(file)
    assert Path(places.path(place), "file").read_bytes() == b"content"
    assert places.directory(place) == directory


def test_here_is_the_scratch_directory_itself(above: Path) -> None:
    scratch = made_in(above)
    with Places(scratch, trials_on(Place.HERE)) as places:
        put_file(places, Place.HERE)
        assert Path(places.path(Place.HERE)).parent == only_scratch(above)
        assert Path(places.path(Place.HERE)).stat().st_mode & 0o777 == 0o700
    # And it goes with the scratch directory
    scratch.remove()
    assert scratches(above) == []


@pytest.mark.root
@pytest.mark.parametrize("place", (Place.TMPFS, *IMAGES))
def test_a_file_system_is_made_with_room_and_taken_down(above: Path, place: Place) -> None:
    needs_mounting(place)

    def use() -> tuple[Any, ...]:
        scratch = made_in(above)
        with Places(scratch, trials_on(Place.HERE, place)) as places:
            put_file(places, Place.HERE)
            put_file(places, place)
            kind = file_system_of(places.path(place)).kind
            room = os.fstatvfs(places.directory(place))
            during = mounted_below(above)
        after = mounted_below(above), sorted(os.listdir(scratch.path))
        scratch.remove()
        return kind, during, after, room.f_bavail * room.f_frsize, room.f_files, room.f_ffree

    kind, during, after, available, inodes, free = result_of_child(use)
    needed = needed_on(trials_on(place))[place]
    assert kind == place.value
    assert during == [kind]
    assert available >= (needed.contents_bytes if place is Place.TMPFS else needed.disk_bytes)
    assert not inodes or free >= needed.entries
    # And afterwards only what is in the scratch directory itself is left, and then nothing
    assert after == [[], ["here"]]
    assert scratches(above) == []
    assert mounted_below(above) == []


@pytest.mark.root
@pytest.mark.parametrize("place", (Place.TMPFS, Place.EXT4))
def test_a_killed_run_leaves_no_mount_and_no_loop_device(
    above: Path, records: Path, place: Place
) -> None:
    # A process with a file system that no other process sees
    needs_mounting(place)
    ready, say_ready = os.pipe()
    run = os.fork()
    if run == 0:
        try:
            places = Places(made_in(above), trials_on(place))
            put_file(places, place)
            os.write(say_ready, b"1")
            signal.pause()
        finally:
            os._exit(9)
    os.close(say_ready)
    assert os.read(ready, 1) == b"1"
    os.close(ready)
    image = only_scratch(above) / f"{place.value}.image"
    assert loops_of(image) is image.exists() is (place in IMAGES)
    assert mounted_below(above) == []
    assert place.value in Path(f"/proc/{run}/mountinfo").read_text().split(str(above))[1]
    os.kill(run, signal.SIGKILL)
    os.waitpid(run, 0)
    if place in IMAGES:
        wait_until(lambda: not loops_of(image), "the loop device is free")
    clear_away(above)
    assert scratches(above) == []
    assert list(records.iterdir()) == []


@pytest.mark.root
def test_what_stays_in_use_is_taken_down_lazily(
    above: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_mounting(Place.EXT4)
    monkeypatch.setattr(lab_places, "_BUSY_LIMIT_S", 0.0)

    def use() -> tuple[list[str], list[str], bool]:
        scratch = made_in(above)
        with Places(scratch, trials_on(Place.EXT4)) as places:
            file_fd = os.open(places.path(Place.EXT4), os.O_RDONLY)
        scratch.remove()
        image = Path(scratch.path) / "ext4.image"
        return mounted_below(above), os.listdir(file_fd), loops_of(image)

    mounted, listed, has_loop = result_of_child(use)
    assert (mounted, listed, has_loop) == ([], ["lost+found"], True)
    assert scratches(above) == []
    wait_until(lambda: not loops_of(above), "the loop device is free")


@pytest.mark.root
@pytest.mark.parametrize("tool", ("mkfs.ext4", "mount"))
def test_a_tool_that_fails_is_reported_and_nothing_stays(
    above: Path, monkeypatch: pytest.MonkeyPatch, tool: str
) -> None:
    needs_mounting(Place.EXT4)
    real = lab_places._tool_path
    failing = needs_tool("false", "coreutils")
    monkeypatch.setattr(
        lab_places, "_tool_path", lambda name: failing if name == tool else real(name)
    )

    def use() -> tuple[str, list[str]]:
        scratch = made_in(above)
        with (
            pytest.raises(TuiFsError) as message,
            Places(scratch, trials_on(Place.EXT4)) as places,
        ):
            places.directory(Place.EXT4)
        left = os.listdir(scratch.path)
        scratch.remove()
        return str(message.value), left

    message, left = result_of_child(use)
    assert message.startswith("No ext4 file system could be created: false failed")
    assert left == []
    assert not loops_of(above)


def test_something_else_in_its_place_is_not_used(above: Path) -> None:
    # A scratch directory that is not where it was made
    scratch = made_in(above)
    path = only_scratch(above)
    path.rename(above / "moved")
    path.mkdir(mode=0o700)
    with (
        pytest.raises(TuiFsError, match="was replaced by another process"),
        Places(scratch, trials_on(Place.HERE)) as places,
    ):
        places.directory(Place.HERE)
    assert os.listdir(path) == []
    path.rmdir()
    scratch.remove()


def test_without_root_memory_that_all_share_will_do(
    above: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A person who may not mount
    monkeypatch.setattr(lab_places, "_mount_obstacle", lambda: "mounting needs root")
    if place_obstacle(Place.TMPFS):
        lacks(place_obstacle(Place.TMPFS))
    scratch = made_in(above)
    with Places(scratch, trials_on(Place.TMPFS)) as places:
        put_file(places, Place.TMPFS)
        path = places.path(Place.TMPFS)
        assert path.startswith(f"{SHARED_MEMORY}/{PREFIX}")
        assert file_system_of(path).kind == "tmpfs"
    # And it is gone afterwards
    assert not os.path.exists(path)
    scratch.remove()


def test_what_cannot_be_made_says_why(above: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A person who may not mount, and whose /dev/shm is none
    monkeypatch.setattr(lab_places, "_mount_obstacle", lambda: "mounting needs root")
    monkeypatch.setattr(lab_places, "SHARED_MEMORY", str(above / "nowhere"))
    assert [place for place in Place if not place_obstacle(place)] == [Place.HERE]
    assert all(place_obstacle(place) == "mounting needs root" for place in IMAGES)
    assert "is not a writable tmpfs" in place_obstacle(Place.TMPFS)
    # And what is asked for all the same is an error that says the same
    scratch = made_in(above)
    with pytest.raises(Missing, match="mounting needs root"):
        Places(scratch, trials_on(Place.XFS)).directory(Place.XFS)
    assert os.listdir(scratch.path) == []
    scratch.remove()


def test_a_missing_tool_is_reported_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab_places, "_mount_obstacle", lambda: "")
    monkeypatch.setattr(
        lab_places, "_tool_path", lambda name: "" if "xfs" in name else f"/bin/{name}"
    )
    assert place_obstacle(Place.XFS) == (
        "mkfs.xfs is not installed; it comes with the package xfsprogs"
    )


def test_missing_loop_devices_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab_places, "_mount_obstacle", lambda: "")
    monkeypatch.setattr(lab_places, "_tool_path", lambda name: f"/bin/{name}")
    monkeypatch.setattr(lab_places, "LOOP_CONTROL", "/nowhere")
    assert place_obstacle(Place.EXT4).startswith("there are no loop devices (/nowhere: No such")
    # And a tmpfs needs none
    assert place_obstacle(Place.TMPFS) == ""


def test_root_without_the_capability_may_not_mount(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    few, all_of_them = tmp_path / "few", tmp_path / "all"
    few.write_text("Name:\tx\nCapEff:\t00000000a80425fb\n")
    all_of_them.write_text("CapEff:\t000001ffffffffff\n")
    assert "CAP_SYS_ADMIN" in lab_places._mount_obstacle(str(few))
    assert lab_places._mount_obstacle(str(all_of_them)) == ""


def test_a_kernel_without_the_file_system_is_known(tmp_path: Path) -> None:
    filesystems, modules = tmp_path / "filesystems", tmp_path / "modules.dep"
    filesystems.write_text("nodev\ttmpfs\n\text4\n")
    modules.write_text("kernel/fs/xfs/xfs.ko.xz: kernel/lib/libcrc32c.ko.xz\n")
    known = [lab_places._kernel_has(kind, str(filesystems), str(modules)) for kind in MKFS]
    assert known == [True, True, False]
    assert not lab_places._kernel_has("xfs", str(filesystems), str(tmp_path / "nowhere"))
    # And this kernel has what it lists
    assert lab_places._kernel_has(Path("/proc/filesystems").read_text().split()[-1])


@pytest.mark.root
def test_commands_in_any_place_know_where_they_are(above: Path) -> None:
    needs_mounting(Place.TMPFS)

    def use() -> list[bool]:
        scratch = made_in(above)
        here_too = (Place.HERE, Place.TMPFS)
        with Places(scratch, trials_on(*here_too)) as places:
            same = []
            for place in here_too:
                os.fchdir(places.directory(place))
                same.append(os.getcwd() == places.path(place))
            os.chdir("/")
        scratch.remove()
        return same

    assert result_of_child(use) == [True, True]


GIB = 1 << 30
NOTHING = Needs(0, 0, 0)
DISK = FileSystem(
    "ext4", "/dev/sda1", "/", False, 1000 * GIB, 40 * GIB, 30 * GIB, 1_000_000, 500_000
)


trials = st.lists(
    st.builds(
        Trial,
        steps=st.just(()),
        tree=st.none() | st.builds(Planned, st.integers(1, 10**7), st.integers(0, 10**12)),
        place=st.sampled_from(Place),
        disk_bytes=st.integers(0, 10**12),
        memory_bytes=st.integers(0, 10**12),
    )
)


def figures(needs: Needs) -> tuple[int, int, int]:
    """Return what can be compared."""
    return needs.disk_bytes, needs.disk_inodes, needs.memory_bytes


@given(trials)
def test_all_together_need_at_least_what_each_does(some: list[Trial]) -> None:
    everything = figures(needs_of(some))
    for mount in some:
        assert all(map(int.__le__, figures(needs_of([mount])), everything))
    # And the order does not matter
    assert figures(needs_of(reversed(some))) == everything


def test_trees_in_the_directory_itself_exist_one_at_a_time() -> None:
    small, large = (Trial((), Planned(10, GIB)), Trial((), Planned(20, 5 * GIB), disk_bytes=GIB))
    assert needs_of([small, large]) == needs_of([large])
    assert 6 * GIB < needs_of([large]).disk_bytes < 6.1 * GIB
    assert 20 < needs_of([large]).disk_inodes < 100
    assert needs_of([large]).memory_bytes == 0


def test_images_stay_and_count_together() -> None:
    tree = Planned(1_000, GIB)
    on_ext4, on_xfs = (Trial((), tree, place) for place in (Place.EXT4, Place.XFS))
    both = needs_of([on_ext4, on_xfs, on_xfs]).disk_bytes
    assert both == sum(value.image_bytes for value in needed_on([on_ext4, on_xfs]).values())
    assert both > 2 * GIB
    # And an image is one entry, however many are in it
    assert needs_of([replace(on_ext4, tree=Planned(10**6))]).disk_inodes < 100


def test_a_tree_in_memory_needs_memory_and_no_disk() -> None:
    trial = Trial((), Planned(1_000_000, GIB), Place.TMPFS, memory_bytes=2 * GIB)
    needs = needs_of([trial, Trial((), memory_bytes=GIB)])
    assert 4 * GIB < needs.memory_bytes < 5 * GIB
    assert needs.disk_bytes < 1 << 20


def test_the_figure_is_enough_for_the_hungriest_entries(tmp_path: Path) -> None:
    chain(tmp_path / "chain", 500)
    (tmp_path / "names").mkdir()
    for number in range(500):
        (tmp_path / "names" / f"{number:0255}").touch()
    entries = occupied = 0
    for _, _, files, directory in os.fwalk(tmp_path):
        entries += 1 + len(files)
        occupied += 512 * (1 + len(files)) + 512 * os.fstat(directory).st_blocks
    assert entries == 1_003
    assert occupied <= Needed(0, entries).disk_bytes


def test_what_no_disk_has_is_refused(tmp_path: Path) -> None:
    refuse_without_room(Needs(4096, 1, 4096), str(tmp_path))
    with pytest.raises(Refused, match=r"EiB of disk") as refused:
        refuse_without_room(Needs(1 << 62, 1, 0), str(tmp_path))
    assert refused.value.rule == "room"
    assert "--dir" in refused.value.advice


@pytest.mark.parametrize(
    ("filesystem", "needs", "words"),
    [
        (DISK, Needs(9 * GIB, 0, 0), ""),
        (DISK, Needs(11 * GIB, 0, 0), "of disk space, and only 10.0 GiB is available"),
        (replace(DISK, available_bytes=GIB), Needs(1, 0, 0), "only 0 B is available"),
        (DISK, Needs(0, 479_000, 0), ""),
        (DISK, Needs(0, 481_000, 0), "481,000 inodes"),
        (replace(DISK, total_inodes=None, free_inodes=None), Needs(0, 481_000, 0), ""),
        (replace(DISK, is_read_only=True), NOTHING, "read-only"),
        (replace(DISK, available_bytes=None), NOTHING, "does not report"),
        (DISK, Needs(0, 0, 8 * GIB), ""),
        (DISK, Needs(0, 0, 9 * GIB), "only 8.0 GiB of the memory of this machine is free"),
        (None, Needs(0, 0, GIB), ""),  # memory that cannot be known is no reason
    ],
)
def test_a_share_of_the_disk_is_never_filled(
    monkeypatch: pytest.MonkeyPatch, filesystem: FileSystem | None, needs: Needs, words: str
) -> None:
    memory = MemoryRoom(8 * GIB, "the memory of this machine") if filesystem else None
    monkeypatch.setattr(lab_places, "file_system_of", lambda _: filesystem or DISK)
    monkeypatch.setattr(lab_places, "memory_room", lambda: memory)
    if not words:
        refuse_without_room(needs, "/somewhere")
        return
    with pytest.raises(Refused, match=words) as refused:
        refuse_without_room(needs, "/somewhere")
    assert refused.value.rule == "room"
