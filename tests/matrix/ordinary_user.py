"""Run a program as a user without rights, wherever the directories it needs lie.

Python, the program or the tree may lie below a directory that only its owner may enter. In a
private mount namespace, and there only, such a directory is covered by an empty one that
everybody may enter, and the needed directories are shown again at their places below it.

Run inside ``unshare --mount --propagation private`` as
``python ordinary_user.py DIRECTORY ... -- PROGRAM [ARGUMENT ...]``.

A process that has loaded the program already becomes that user with `become_ordinary_here`.
"""

import ctypes
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

UID = GID = 65534
"""The user nobody: owns nothing and is in no other group."""
_HELPER = Path(__file__).resolve()

_MS_BIND, _MS_REC, _MS_PRIVATE = 1 << 12, 1 << 14, 1 << 18  # linux/mount.h
_CLONE_NEWNS = 1 << 17  # linux/sched.h
_PR_SET_DUMPABLE = 4  # linux/prctl.h


def ordinary_user(*directories: Path) -> list[str]:
    """Return the words before a command that run it as the ordinary user.

    Args:
        directories: those that the user needs to reach besides Python and this repository.
    """
    unshare = ["unshare", "--mount", "--propagation", "private", "--"]
    return [*unshare, sys.executable, "-I", str(_HELPER), *_reached(*directories), "--"]


def statements_of_ordinary_user(*directories: Path) -> str:
    """Return the Python statements that do the same in a forked process."""
    become = f"runpy.run_path({str(_HELPER)!r})['become_ordinary_here']"
    return f"import runpy; {become}({_reached(*directories)!r})"


def _reached(*directories: Path) -> list[str]:
    return [str(path) for path in (sys.base_prefix, sys.prefix, _HELPER.parents[2], *directories)]


def give_away(tree: Path) -> None:
    """Make the ordinary user the owner of a tree, which is made if it does not exist."""
    tree.mkdir(parents=True, exist_ok=True)
    for path in (tree, *tree.rglob("*")):
        os.chown(path, UID, GID, follow_symlinks=False)


def make_reachable(directories: Iterable[str]) -> None:
    """Let everybody enter these directories; their own modes stay as they are.

    Raises:
        OSError: this is not root, or not a mount namespace of its own.
    """
    # Opened before anything is covered: they are bound by descriptor afterwards.
    directory_fds = {path: os.open(path, os.O_PATH | os.O_DIRECTORY) for path in directories}
    for path, descriptor in directory_fds.items():
        for above in _ancestors(path):
            if os.path.isdir(above) and not os.stat(above).st_mode & stat.S_IXOTH:
                _mount("none", above, "tmpfs", 0, "mode=0755")
        if not os.path.isdir(path) or not os.path.samestat(os.stat(path), os.fstat(descriptor)):
            os.makedirs(path, mode=0o755, exist_ok=True)
            _mount(f"/proc/self/fd/{descriptor}", path, "", _MS_BIND | _MS_REC, "")
        os.close(descriptor)


def become_ordinary() -> None:
    """Drop every privilege permanently."""
    os.chdir("/")
    os.setgroups([])
    os.setresgid(GID, GID, GID)
    os.setresuid(UID, UID, UID)


def become_ordinary_here(directories: Iterable[str]) -> None:
    """Do in this process all that is done before the program is executed."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNS) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    _mount("none", "/", "", _MS_REC | _MS_PRIVATE, "")
    make_reachable(os.path.realpath(directory) for directory in directories)
    become_ordinary()
    # Executing a program would do that: without it, the files in /proc/self are root's.
    libc.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)


def _ancestors(path: str) -> Iterator[str]:
    """Yield the directories above an absolute path, the outermost first."""
    parts = path.strip("/").split("/")
    for number in range(1, len(parts)):
        yield "/" + "/".join(parts[:number])


def _mount(source: str, point: str, kind: str, flags: int, options: str) -> None:
    # mount(8) would resolve the descriptor's name to a path that is covered by now.
    libc = ctypes.CDLL(None, use_errno=True)
    words = (os.fsencode(word) for word in (source, point, kind))
    if libc.mount(*words, ctypes.c_ulong(flags), os.fsencode(options)) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), point)


def main(arguments: list[str]) -> None:
    """Replace this process by the program."""
    end = arguments.index("--")
    make_reachable(os.path.realpath(directory) for directory in arguments[:end])
    become_ordinary()
    program = arguments[end + 1 :]
    os.execv(program[0], program)


if __name__ == "__main__":
    main(sys.argv[1:])
