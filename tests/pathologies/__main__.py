"""Make pathologies to examine.

``python -m tests.pathologies list``                  names all
``python -m tests.pathologies make NAME --dir DIR``   makes one in a new directory, and keeps it
"""

import argparse
import contextlib
import signal
import tempfile
from dataclasses import replace
from pathlib import Path

from tests.filesystems import kind_of, unmount_below
from tests.pathologies.case import Pathology, Scene
from tests.pathologies.register import PATHOLOGIES


def main() -> None:
    """Do what the arguments say."""
    parser = argparse.ArgumentParser(prog="python -m tests.pathologies", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    commands = parser.add_subparsers(required=True, dest="command")
    commands.add_parser("list")
    make = commands.add_parser("make")
    make.add_argument("name", metavar="NAME", help="one of `list`, or a kind: its first tree")
    make.add_argument("--dir", type=Path, required=True)
    make.add_argument(
        "--filesystem",
        help="what a tree that brings a file system makes; otherwise that of DIR is used",
    )
    parsed = parser.parse_args()
    if parsed.command == "list":
        _list()
    else:
        _make(parsed.name, parsed.dir, parsed.filesystem)


def _list() -> None:
    width = max(len(case.name) for case in PATHOLOGIES)
    for case in PATHOLOGIES:
        systems = ", ".join(case.filesystems)
        print(f"{case.name:{width}}  {case.severity.value:8}  {case.title} ({systems})")


def _chosen(name: str) -> Pathology:
    """Return the tree of this name, else the first of this kind."""
    for case in (*PATHOLOGIES, *(replace(case, name=case.kind) for case in PATHOLOGIES)):
        if case.name == name:
            return case
    raise SystemExit(f"no pathology is called {name}; see: python -m tests.pathologies list")


def _make(name: str, directory: Path, filesystem: str | None) -> None:
    case = _chosen(name)
    directory.mkdir(exist_ok=True)
    place = Path(tempfile.mkdtemp(prefix=f"{case.name}-", dir=directory))
    place.chmod(0o755)
    scene = Scene(place, filesystem or case.filesystems[0])
    if not case.has_own_filesystem:
        scene.filesystem = kind_of(directory)
        if scene.filesystem not in case.filesystems:
            print(f"{scene.filesystem} may not have it; see: python -m tests.pathologies list")
    with scene.until_the_end:
        scene.until_the_end.callback(unmount_below, place)
        made = case.make(scene)
        print(f"{case.kind}: {case.title}")
        print(f"look at it with: tui-fs {made.tree}" + " as an ordinary user" * case.is_ordinary)
        print("Ctrl-C ends its processes and mounts, and leaves the files.", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            signal.pause()


if __name__ == "__main__":
    main()
