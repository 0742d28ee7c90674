"""The directories that the user chose, their identity, and their names for display."""

import itertools
import os
import re
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from tui_fs.model.codec import Json, path_fields
from tui_fs.model.errors import BadInput
from tui_fs.model.paths import PathStr, displayable, shell_quoted
from tui_fs.model.strategy import Argv, Share, program_of

_PATHS_SHOWN = 3
_UNPACKED = re.compile(r"/(?:.*/)?tui-fs-[0-9a-f]{12}-[0-9a-f]{8}/")
"""The directory with the programs of the one file (onefile/src/lib.rs)."""


class Pin(Struct, frozen=True):
    """The identity of a directory or of a single file at confirmation.

    The kernel reuses device, inode and mount numbers after nothing uses them. So code that compares
    a pin later must keep a descriptor of the directory open from the first check to the last
    (`job.path_safety.keep_open`), or rely on the birth time.

    Attributes:
        birth_ns: creation time in nanoseconds since the epoch; None if the file system does not
            record it.
        is_file: it is anything but a directory.
    """

    device: int
    inode: int
    mount_id: int
    birth_ns: int | None = None
    is_file: bool = False

    def __str__(self) -> str:
        return f"{self.device}:{self.inode}:{self.mount_id}:{self.birth_ns or 0}"

    @classmethod
    def parse(cls, text: str) -> "Pin":
        """Parse the result of `str`; ValueError if it is not a pin."""
        device, inode, mount_id, birth_ns = map(int, text.split(":"))
        return cls(device, inode, mount_id, birth_ns or None)

    def is_same_later(self, recorded: "Pin") -> bool:
        """Return whether this directory is the recorded one, possibly pinned before a reboot.

        A remount changes the mount id and may change the device number. Another file system at the
        same mount point may have the same inode numbers, but not the same birth times. Without
        birth times, only a directory on the same device can be recognized.
        """
        if self.birth_ns is None or recorded.birth_ns is None:
            return self == replace(recorded, mount_id=self.mount_id)
        return (self.inode, self.birth_ns) == (recorded.inode, recorded.birth_ns)


class Target(Struct, frozen=True):
    """A directory or file that may be deleted: its canonical absolute path and its pin.

    The path of a file, also of a symbolic link, is that of its directory and its name there.
    """

    path: PathStr
    pin: Pin

    @property
    def noun(self) -> str:
        """The word for it in a sentence."""
        return "file" if self.pin.is_file else "directory"


def is_file(targets: "Sequence[Target]") -> bool:
    """Return whether the targets are a single file, which is never mixed with others."""
    return targets[0].pin.is_file


def check_paths(paths: Sequence[str]) -> None:
    """Raise BadInput unless these are the absolute paths of at least one target."""
    if not paths:
        raise BadInput("No target is named.")
    if not all(path.startswith("/") for path in paths):
        raise BadInput("The path of a target is not absolute.")


def common_directory(paths: Sequence[str]) -> PathStr:
    """Return the only directory, or the common ancestor of several."""
    return PathStr(paths[0] if len(paths) == 1 else os.path.commonpath(paths))


def in_words(
    paths: Sequence[str], share: Share | str | None = None, *, is_filtered: bool = False
) -> str:
    """Return the text for one or several directories: ``/srv/a``, ``3 directories in /srv``.

    Args:
        share: the only share of them that is meant: ``share 1/3 of /srv/a``; None for all.
        is_filtered: only entries in them that match a filter are meant: ``matches in /srv/a``.
    """
    words = _words(len(paths), displayable(common_directory(paths)), share)
    return f"matches in {words}" if is_filtered else words


def target_fields(
    paths: Sequence[str], states: Sequence[Mapping[str, bool | None]] = ()
) -> dict[str, Json]:
    """Return the JSON fields that name the targets.

    Args:
        states: further fields of each target; may be empty.
    """
    targets = [path_fields("path", path) for path in paths]
    for target, state in zip(targets, states, strict=False):
        target.update(state)
    return {**path_fields("target", common_directory(paths)), "targets": targets}


def command_lines(argvs: Sequence[Argv], inside: Sequence[str] = ()) -> list[str]:
    """Return command lines for display; of many successive paths only the first few.

    A program of the one file has its name only, because its directory exists until tui-fs ends.

    Args:
        inside: targets that are the current directory of their tools.
    """
    lines = [f"cd {shell_quoted((path,))}" for path in inside[:_PATHS_SHOWN]]
    if len(inside) > _PATHS_SHOWN:
        lines.append(f"cd … (and {len(inside) - _PATHS_SHOWN:,} more)")
    return lines + [_command_line(argv) for argv in argvs]


def _command_line(argv: Argv) -> str:
    words: list[str] = []
    for is_path, group in itertools.groupby(
        _program_names(argv), lambda word: word.startswith("/")
    ):
        run = tuple(group)
        if is_path and len(run) > _PATHS_SHOWN + 1:
            words.append(shell_quoted(run[:_PATHS_SHOWN]))
            words.append(f"… (and {len(run) - _PATHS_SHOWN:,} more)")
        else:
            words.append(shell_quoted(run))
    return " ".join(words)


def _program_names(argv: Argv) -> Argv:
    tree = _UNPACKED.match(program_of(argv))
    if tree is None or "--" not in argv:
        return argv
    end = argv.index("--")  # targets follow
    own = (os.path.basename(word) if word.startswith(tree[0]) else word for word in argv[:end])
    return (*own, *argv[end:])


def _words(number: int, shown: str, share: Share | str | None) -> str:
    words = shown if number == 1 else f"{number:,} directories in {shown}"
    return words if share is None else f"share {share} of {words}"
