"""Two processes that only unlink, a baseline for deleters that also read directories."""

import os
import resource
import traceback
from collections.abc import Callable
from pathlib import Path

PROCESSES = 2


def only_unlinking(tree: Path) -> Callable[[], None]:
    """Get everything ready; what is returned removes the tree, which has files at one depth.

    What is to be removed is known before: names are in the order of their inodes, and each process
    has directories of its own, or its half of the only one.
    """
    root = os.open(tree, os.O_RDONLY | os.O_DIRECTORY)
    with os.scandir(root) as entries:
        by_inode = sorted((entry.inode(), entry.name, entry.is_dir()) for entry in entries)
    directories = [name for _, name, is_directory in by_inode if is_directory]
    files = [name for _, name, is_directory in by_inode if not is_directory]
    gate, start = os.pipe()
    children = []
    for part in range(PROCESSES):
        child = os.fork()
        if not child:
            os.close(start)
            _remove(root, _part(directories, part), _part(files, part), gate)
        children.append(child)
    os.close(gate)

    def run() -> None:
        os.close(start)
        for child in children:
            if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
                raise SystemExit("not everything could be removed")
        os.close(root)
        tree.rmdir()

    return run


def _part(names: list[str], part: int) -> list[str]:
    return names[len(names) * part // PROCESSES : len(names) * (part + 1) // PROCESSES]


def _remove(root: int, directories: list[str], files: list[str], gate: int) -> None:
    """Remove the received names when the gate is closed, and exit."""
    status = 1
    try:
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        below = []
        for name in directories:
            opened = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=root)
            with os.scandir(opened) as entries:
                names = [
                    name for _, name in sorted((entry.inode(), entry.name) for entry in entries)
                ]
            below.append((opened, name, names))
        os.read(gate, 1)
        for name in files:
            os.unlink(name, dir_fd=root)
        for opened, name, names in below:
            for file in names:
                os.unlink(file, dir_fd=opened)
            os.close(opened)
            os.rmdir(name, dir_fd=root)
        status = 0
    except OSError:
        traceback.print_exc()
    finally:
        os._exit(status)
