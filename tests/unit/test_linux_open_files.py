"""Holders of files of a tree, from a fake /proc and from the real one."""

import ctypes
import errno
import itertools
import mmap
import os
import subprocess
from pathlib import Path

import pytest

from tests.needs import needs_root
from tests.unit.scratching import result_of_child
from tests.waiting_process import StartPython
from tui_fs.linux.mounts import MountTable, read_mounts
from tui_fs.linux.open_files import HeldFile, Holder, HoldKind, OpenFileScan, scan_open_files

OWN = 900
_KERNEL_THREAD = 0x0020_0000


class FakeProc:
    """A fake /proc, with links into a real tree."""

    def __init__(self, base: Path) -> None:
        self.path = base / "proc"
        self.path.mkdir()
        self.tree = base / "tree"
        self.tree.mkdir()
        root = os.stat(base).st_dev
        device = f"{os.major(root)}:{os.minor(root)}"
        self.mounts = f"1 0 {device} / / rw - ext4 /dev/x rw\n"
        self.device_of_maps = f"{os.major(root):02x}:{os.minor(root):02x}"
        self.process(OWN, parent=1)

    def process(
        self, pid: int, parent: int = 1, flags: int = 0, namespace: str = "mnt:[1]"
    ) -> Path:
        """Make a process that holds nothing."""
        folder = self.path / str(pid)
        for name in ("fd", "fdinfo", "ns"):
            (folder / name).mkdir(parents=True)
        (folder / "stat").write_text(f"{pid} (a) b) S {parent} 1 1 0 -1 {flags} 0 0\n")
        (folder / "status").write_text("Name:\tx\nUid:\t1\t1000\t1\t1\n")
        (folder / "comm").write_text(f"name {pid}\n")
        (folder / "maps").write_text("")
        (folder / "mountinfo").write_text(self.mounts)
        (folder / "ns" / "mnt").symlink_to(namespace)
        for name in ("cwd", "root"):
            (folder / name).symlink_to("/")
        return folder

    def descriptor(
        self, pid: int, number: int, to: str | bytes, flags: str = "0100000", mount_id: int = 1
    ) -> None:
        """Add an open file to a process."""
        folder = os.fsencode(self.path / str(pid))
        os.symlink(os.fsencode(to), folder + b"/fd/%d" % number)
        info = self.path / str(pid) / "fdinfo" / str(number)
        info.write_text(f"pos:\t0\nflags:\t{flags}\nmnt_id:\t{mount_id}\n")

    def enter_tree(self, folder: Path) -> None:
        """Make the tree the current directory of a process."""
        (folder / "cwd").unlink()
        (folder / "cwd").symlink_to(self.tree)

    def look(self, limit_s: float = 60, **others: object) -> OpenFileScan:
        """Scan for holders of the tree."""
        device = os.stat(self.tree).st_dev
        return scan_open_files([str(self.tree)], device, str(self.path), limit_s, OWN, **others)  # type: ignore[arg-type]


@pytest.fixture
def fake(tmp_path: Path) -> FakeProc:
    """Return a /proc in which only we live."""
    return FakeProc(tmp_path)


def test_open_files_and_how_they_are_open(fake: FakeProc) -> None:
    file = fake.tree / "log"
    file.write_bytes(b"x" * 5000)
    beside = fake.tree.with_name("tree-not")
    beside.write_bytes(b"")
    fake.process(7)
    fake.descriptor(7, 3, str(file))
    fake.descriptor(7, 4, str(file), flags="0100002")
    fake.descriptor(7, 5, str(beside))
    fake.descriptor(7, 6, "socket:[123]")
    looked = fake.look()
    # The file is there once, with both descriptors, and nothing else
    status = file.stat()
    (held_file,) = looked.held_files
    assert (held_file.path, held_file.inode) == (str(file), status.st_ino)
    assert held_file.allocated_bytes == status.st_blocks * 512
    assert sorted(held_file.holders, key=lambda holder: holder.descriptor or 0) == [
        Holder(7, "name 7", 1000, 3, HoldKind.DESCRIPTOR, False, False),
        Holder(7, "name 7", 1000, 4, HoldKind.DESCRIPTOR, True, False),
    ]
    assert (looked.living, looked.deleted, looked.complete) == ((), (), True)


def test_a_scan_by_descriptor_only_finds_the_same_open_files_and_nothing_else(
    fake: FakeProc,
) -> None:
    file = fake.tree / "log"
    file.write_bytes(b"x" * 5000)
    fake.enter_tree(fake.process(7))
    fake.descriptor(7, 3, str(file))
    whole, part = fake.look(), fake.look(by_descriptor_only=True)
    assert whole.held_files and whole.living
    assert (part.held_files, part.living) == (whole.held_files, ())


def test_who_lives_in_the_tree(fake: FakeProc) -> None:
    program, library = fake.tree / "program", fake.tree / "lib\nrary"
    program.touch()
    library.touch()
    folder = fake.process(7)
    fake.enter_tree(folder)
    (folder / "exe").symlink_to(program)
    (folder / "map_files").mkdir()
    lines = ""
    for number, file in enumerate((program, library, library)):
        start = (number + 1) << 20
        (folder / "map_files" / f"{start:x}-{start + 4096:x}").symlink_to(file)
        shown = str(file).replace("\n", "\\012")
        lines += f"{start:08x}-{start + 4096:08x} r--p 00000000 {fake.device_of_maps} "
        lines += f"{file.stat().st_ino}                     {shown}\n"
    (folder / "maps").write_text(f"00001000-00002000 rw-p 00000000 00:00 0 \n{lines}")
    living = [(holder.path, holder.holder.how) for holder in fake.look().living]
    assert living == [
        (str(fake.tree), HoldKind.CWD),
        (str(program), HoldKind.EXECUTABLE),
        (str(library), HoldKind.MAPPED),
    ]


def test_names_of_any_bytes(fake: FakeProc) -> None:
    name = os.fsencode(fake.tree) + b"/\xff\n'\\012"
    os.close(os.open(name, os.O_CREAT))
    fake.process(7)
    fake.descriptor(7, 3, name)
    assert [os.fsencode(file.path) for file in fake.look().held_files] == [name]


def test_own_processes_are_marked(fake: FakeProc) -> None:
    (fake.path / str(OWN) / "stat").write_text(f"{OWN} (x) S 20 1 1 0 -1 0 0\n")
    for pid, parent in ((10, 1), (20, 10), (30, 1)):
        fake.enter_tree(fake.process(pid, parent))
    marks = {holder.holder.pid: holder.holder.is_own for holder in fake.look().living}
    assert marks == {10: True, 20: True, 30: False}


def test_kernel_threads_and_vanished_processes_are_passed(fake: FakeProc) -> None:
    # An unreadable kernel thread, and a process that has just ended
    fake.process(2, flags=_KERNEL_THREAD)
    (fake.path / "2" / "ns" / "mnt").unlink()
    (fake.path / "3").mkdir()
    looked = fake.look()
    assert (looked.unseen_processes, looked.complete) == (0, True)


def test_a_process_that_is_just_ending_is_passed(
    fake: FakeProc, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ending(mountinfo: str) -> MountTable:
        if "/7/" in mountinfo:
            raise OSError(errno.EINVAL, "", mountinfo)
        return read_mounts(mountinfo)

    fake.process(7, namespace="mnt:[2]")
    monkeypatch.setattr("tui_fs.linux.open_files.read_mounts", ending)
    looked = fake.look()
    assert (looked.unseen_processes, looked.complete) == (0, True)


def test_another_namespace_and_a_bind_mount(fake: FakeProc) -> None:
    inside = fake.tree / "sub"
    inside.mkdir()
    (inside / "log").touch()
    folder = fake.process(7, namespace="mnt:[2]")
    device = fake.mounts.split()[2]
    (folder / "mountinfo").write_text(
        "1 0 0:99 / / rw - overlay overlay rw\n"
        f"2 1 {device} {inside} {fake.tree.parent}/data rw - ext4 /dev/x rw\n"
    )
    (fake.tree.parent / "data").symlink_to(inside)  # so that the made /proc leads there
    fake.descriptor(7, 3, f"{fake.tree.parent}/data/log", mount_id=2)
    fake.enter_tree(folder)
    looked = fake.look()
    assert [file.path for file in looked.held_files] == [str(inside / "log")]
    assert looked.living == ()


def test_time_is_limited(fake: FakeProc) -> None:
    (fake.tree / "a").touch()
    fake.process(7)
    fake.process(8)
    for number in range(50):
        fake.descriptor(7, number, str(fake.tree / "a"))
    fake.descriptor(8, 3, str(fake.tree / "a"))
    ticks = itertools.count()
    looked = fake.look(60, clock=lambda: float(next(ticks)))
    assert not looked.complete
    holders = [file.pid for file in looked.held_files[0].holders]
    assert 20 < holders.count(7) < 35
    assert holders.count(8) == 1


# The real /proc


def scan_tree(tree: Path, device: int) -> OpenFileScan:
    """Scan the real /proc for a tree that may be gone."""
    return scan_open_files([str(tree)], device, limit_s=60)


def of_tree(files: tuple[HeldFile, ...], tree: Path) -> list[HeldFile]:
    """Pick the files that are or were in a tree."""
    return [open_file for open_file in files if open_file.path.startswith(str(tree))]


def test_a_real_child_with_an_open_file(tmp_path: Path, start_python: StartPython) -> None:
    tree = tmp_path / "t"
    tree.mkdir()
    file = tree / "big"
    file.write_bytes(b"x" * (1 << 20))
    device, inode = file.stat().st_dev, file.stat().st_ino
    one = start_python("f = open(sys.argv[1]); g = open(sys.argv[1], 'r+')", file)
    two = start_python("f = open(sys.argv[1])", file)
    before = scan_tree(tree, device)
    (held_file,) = of_tree(before.held_files, tree)
    assert {(holder.pid, holder.writes) for holder in held_file.holders} == {
        (one, False),
        (one, True),
        (two, False),
    }
    assert of_tree(before.deleted, tree) == []
    file.unlink()
    tree.rmdir()
    after = scan_tree(tree, device)
    (gone,) = of_tree(after.deleted, tree)
    assert (gone.path, gone.inode, gone.allocated_bytes) == (str(file), inode, 1 << 20)
    assert sorted(holder.pid for holder in gone.holders) == sorted((one, one, two))
    assert of_tree(after.held_files, tree) == []


def test_a_real_child_that_lives_inside(tmp_path: Path, start_python: StartPython) -> None:
    tree = tmp_path / "t"
    tree.mkdir()
    device = tree.stat().st_dev
    pid = start_python("", cwd=tree)
    before = scan_tree(tree, device)
    tree.rmdir()
    after = scan_tree(tree, device)
    assert [(holder.path, holder.holder.pid, holder.holder.how) for holder in before.living] == [
        (str(tree), pid, HoldKind.CWD)
    ]
    (gone,) = of_tree(after.deleted, tree)
    assert (gone.path, [holder.how for holder in gone.holders]) == (str(tree), [HoldKind.CWD])


def test_a_real_mapped_file(tmp_path: Path, start_python: StartPython) -> None:
    needs_root("looking into /proc/PID/map_files")
    file = tmp_path / "ma\nped"
    file.write_bytes(b"x" * (mmap.PAGESIZE * 4))
    device = file.stat().st_dev
    code = "import mmap; f = open(sys.argv[1], 'r+'); m = mmap.mmap(f.fileno(), 0); f.close()"
    # Python's mmap keeps a descriptor of its own: close all above the standard ones.
    pid = start_python(f"{code}; os.closerange(3, 99)", file)
    (living,) = scan_tree(tmp_path, device).living
    assert (living.path, living.holder.pid) == (str(file), pid)
    assert (living.holder.how, living.holder.writes) == (HoldKind.MAPPED, True)
    file.unlink()
    (gone,) = of_tree(scan_tree(tmp_path, device).deleted, tmp_path)
    assert (gone.path, gone.allocated_bytes) == (str(file), mmap.PAGESIZE * 4)
    assert [holder.how for holder in gone.holders] == [HoldKind.MAPPED]


def test_one_of_two_names_deleted(tmp_path: Path, start_python: StartPython) -> None:
    tree = tmp_path / "t"
    tree.mkdir()
    (tree / "a").write_bytes(b"x")
    os.link(tree / "a", tmp_path / "b")
    start_python("f = open(sys.argv[1])", tree / "a")
    (tree / "a").unlink()
    looked = scan_tree(tree, tmp_path.stat().st_dev)
    # It is neither in the tree any more, nor deleted
    assert (of_tree(looked.held_files, tree), of_tree(looked.deleted, tree)) == ([], [])


def test_a_real_name_that_only_looks_deleted(tmp_path: Path, start_python: StartPython) -> None:
    file = tmp_path / "x (deleted)"
    file.write_bytes(b"x")
    device = file.stat().st_dev
    start_python("f = open(sys.argv[1])", file)
    before = scan_tree(tmp_path, device)
    file.unlink()
    after = scan_tree(tmp_path, device)
    assert [open_file.path for open_file in of_tree(before.held_files, tmp_path)] == [str(file)]
    assert of_tree(before.deleted, tmp_path) == []
    assert [open_file.path for open_file in of_tree(after.deleted, tmp_path)] == [str(file)]


def test_a_path_too_long_to_be_read(tmp_path: Path, start_python: StartPython) -> None:
    code = """
os.chdir(sys.argv[1])
for _ in range(60):
    os.mkdir('n' * 100); os.chdir('n' * 100)
f = open('f', 'w+'); f.write('x' * 9000); f.flush()
print(os.fstat(f.fileno()).st_ino, file=open(sys.argv[1] + '/inode', 'w'))
"""
    device = tmp_path.stat().st_dev
    start_python(code, tmp_path)
    inode = int((tmp_path / "inode").read_text())
    assert scan_tree(tmp_path, device).unnamed >= 2
    subprocess.run(["rm", "-rf", tmp_path / ("n" * 100)], check=True)
    (gone,) = [
        open_file for open_file in scan_tree(tmp_path, device).deleted if open_file.inode == inode
    ]
    assert (gone.path, gone.allocated_bytes) == ("", 12288)


def test_unreadable_processes_are_counted(tmp_path: Path, start_python: StartPython) -> None:
    needs_root("becoming another user")
    start_python("f = open(sys.argv[1])", __file__)

    def count() -> int:
        os.setgroups([])
        os.setresgid(65534, 65534, 65534)
        os.setresuid(65534, 65534, 65534)
        ctypes.CDLL(None).prctl(4, 1)  # PR_SET_DUMPABLE: see the own /proc again
        return scan_open_files([str(tmp_path)], 1, limit_s=60).unseen_processes

    assert result_of_child(count) >= 2
