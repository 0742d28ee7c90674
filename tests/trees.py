"""Build the trees that tests delete, and the trees next to them that must survive."""

import hashlib
import os
import socket
import stat
from dataclasses import dataclass
from pathlib import Path

HOSTILE_NAMES: tuple[bytes, ...] = (
    b"two words",
    b"new\nline",
    b"\n",
    b"-rf",
    b"--",
    b"-delete",
    b"[red]",
    b"[bold",
    b"a[",
    b"b]c",
    b"\x1b]0;x\x07",
    b"\x1b[2J\x9b31m",
    b"\xff\xfe not utf-8",
    b"caf\xe9",
    "\u202egnp.exe".encode(),
    b"trailing space ",
    b" leading space",
    b"n" * 255,
    b"back\\slash",
    b"\\0101",
    b"it's",
    b'"double"',
    b"*",
    b"?",
    b"{}",
    b"%s%n",
    b"host:path",
    b"$(touch gotcha)",
    b"`touch gotcha`",
    b"; touch gotcha",
    b"#hash",
    b"~",
    b"...",
    b"tab\tcarriage\r",
)

_HOSTILE_DEPTH = 3
# Where the depth goes on, all names at every level would be 34^3 directories.
_NAMES_BELOW_THE_TOP = 4


def many_directories(root: Path, directories: int, files_each: int) -> None:
    """Make `directories` directories of `files_each` empty files each."""
    root.mkdir(exist_ok=True)
    for number in range(directories):
        flat(root / f"directory-{number:05}", files_each)


def flat(root: Path, files: int) -> None:
    """Make one directory of `files` empty files, one system call each."""
    root.mkdir(exist_ok=True)
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for number in range(files):
            os.mknod(f"file-{number:07}", stat.S_IFREG | 0o644, dir_fd=descriptor)
    finally:
        os.close(descriptor)


def chain(root: Path, depth: int) -> None:
    """Make one directory inside another, `depth` levels below the root."""
    root.mkdir(exist_ok=True)
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=descriptor)
        below = os.open("d", os.O_RDONLY | os.O_DIRECTORY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
    os.close(descriptor)


def hostile_names(root: Path) -> None:
    """Make files and directories of every hostile name, at three depths."""
    root.mkdir(exist_ok=True)
    top = os.fsencode(root)
    bracket = os.path.join(top, b"a[", b"b]c")
    _hostile_level(top, HOSTILE_NAMES, _HOSTILE_DEPTH)
    # Together they read a[/b]c: a closing tag to code that takes a path for markup.
    os.makedirs(bracket, exist_ok=True)
    _make_file(os.path.join(bracket, b"inside"))


def _hostile_level(directory: bytes, names: tuple[bytes, ...], depth: int) -> None:
    """Make each name as a file in `files/`, and as a directory next to `files/`."""
    files = os.path.join(directory, b"files")
    os.mkdir(files)
    for name in HOSTILE_NAMES:
        _make_file(os.path.join(files, name))
    for index, name in enumerate(names):
        below = os.path.join(directory, name)
        os.mkdir(below)
        if depth > 1 and index % 8 == 0:
            start = (index + depth) % len(HOSTILE_NAMES)
            _hostile_level(below, HOSTILE_NAMES[start : start + _NAMES_BELOW_THE_TOP], depth - 1)
        else:
            _make_file(os.path.join(below, name))


def _make_file(path: bytes) -> None:
    with open(path, "wb") as file:
        file.write(b"hostile")


@dataclass(frozen=True, slots=True)
class Fact:
    """The facts of one name; without the change time, as removing a hard link changes it."""

    kind: str
    mode: int
    owner: tuple[int, int]
    size: int
    mtime_ns: int
    content: bytes


Manifest = dict[bytes, Fact]


def manifest(root: Path) -> Manifest:
    """Describe every name at and below a directory, or nothing where it is gone."""
    facts: Manifest = {}
    top = os.fsencode(root)
    if not os.path.lexists(top):
        return facts
    waiting = [top]
    while waiting:
        path = waiting.pop()
        facts[os.path.relpath(path, top)] = _fact(path)
        if stat.S_ISDIR(os.lstat(path).st_mode):
            waiting.extend(os.path.join(path, name) for name in os.listdir(path))
    return facts


def _fact(path: bytes) -> Fact:
    status = os.lstat(path)
    content = b""
    if stat.S_ISREG(status.st_mode):
        with open(path, "rb") as file:
            content = hashlib.sha256(file.read()).digest()
    elif stat.S_ISLNK(status.st_mode):
        content = os.readlink(path)
    return Fact(
        kind=stat.filemode(status.st_mode)[0],
        mode=stat.S_IMODE(status.st_mode),
        owner=(status.st_uid, status.st_gid),
        size=status.st_size,
        mtime_ns=status.st_mtime_ns,
        content=content,
    )


@dataclass(frozen=True, slots=True)
class Census:
    """The totals of a naive walk of a tree, including the root."""

    files: int
    """Every name that is not a directory: deleting it is one unlink."""
    directories: int
    inodes_only_here: int
    """Inodes whose every link is in the tree: they go when the tree goes."""

    @property
    def entries(self) -> int:
        """Count every name, the root included."""
        return self.files + self.directories


def census(root: Path) -> Census:
    """Count a tree with os.walk and lstat."""
    files = directories = 0
    links: dict[int, tuple[int, int]] = {}
    for path, below, others in os.walk(os.fsencode(root)):
        directories += 1
        # os.walk names a symlink to a directory among the directories.
        others += [name for name in below if os.path.islink(os.path.join(path, name))]
        for name in others:
            files += 1
            status = os.lstat(os.path.join(path, name))
            seen, _ = links.get(status.st_ino, (0, 0))
            links[status.st_ino] = (seen + 1, status.st_nlink)
    whole = sum(seen == link_count for seen, link_count in links.values())
    return Census(files, directories, whole + directories)


class Sentinel:
    """A tree next to the target that the target points to by every kind of link."""

    def __init__(self, beside: Path) -> None:
        """Make the tree `sentinel` in a directory, and remember it."""
        self.root = beside / "sentinel"
        self._build()
        self._before = manifest(self.root)

    def _build(self) -> None:
        inner = self.root / "inner"
        inner.mkdir(parents=True)
        (self.root / "precious").write_bytes(b"must survive\n" * 1000)
        (self.root / "linked").write_bytes(b"has a second name in the target\n")
        (inner / "deep").write_bytes(b"\0\1\2")
        (inner / "private").write_bytes(b"secret")
        (inner / "private").chmod(0o600)
        (inner / "link").symlink_to("../precious")
        (self.root / "empty").mkdir(mode=0o711)
        os.utime(self.root / "precious", ns=(1_000_000_000, 1_234_567_890_123_456_789))

    def plant(self, target: Path) -> None:
        """Put links to the sentinel, and names of every other type, into the target."""
        target.mkdir(exist_ok=True)
        places = target / "places"
        places.mkdir()
        (places / "absolute").symlink_to(self.root)
        (places / "relative").symlink_to(os.path.relpath(self.root, places))
        (places / "to-a-file").symlink_to(self.root / "precious")
        (places / "dangling").symlink_to("nowhere/at/all")
        (places / "loop").symlink_to("loop")
        (places / "upwards").symlink_to("../..")
        (places / "slash").symlink_to("/")
        os.link(self.root / "linked", places / "hard-link")
        os.mkfifo(places / "fifo")
        _bind_socket(places, "socket")

    def assert_whole(self) -> None:
        """Compare every name, type, size, mode, content and time with the beginning."""
        assert manifest(self.root) == self._before, "the sentinel beside the target was touched"


def _bind_socket(directory: Path, name: str) -> None:
    """Leave a socket behind; its address may hold 107 bytes only, so go there."""
    before = os.getcwd()
    os.chdir(directory)
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(name)
    finally:
        os.chdir(before)
