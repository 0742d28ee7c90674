"""Make pathologies to examine, or show which of them the program finds.

``python -m tests.pathologies list``                  names all
``python -m tests.pathologies make NAME --dir DIR``   makes one in a new directory, and keeps it
``python -m tests.pathologies show [NAME ...]``       prints a table of kinds and file systems
"""

import argparse
import contextlib
import os
import signal
import sysconfig
import tempfile
from pathlib import Path

from tests.conftest import Cli
from tests.filesystems import kind_of, unmount_below
from tests.pathologies.case import Pathology, Scene
from tests.pathologies.page import table
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
    show = commands.add_parser("show")
    show.add_argument("names", metavar="NAME", nargs="*", default=[])
    parsed = parser.parse_args()
    match parsed.command:
        case "list":
            _list()
        case "make":
            _make(parsed.name, parsed.dir, parsed.filesystem)
        case _:
            _show(parsed.names)


def _list() -> None:
    width = max(len(case.name) for case in PATHOLOGIES)
    for case in PATHOLOGIES:
        systems = ", ".join(case.filesystems)
        print(f"{case.name:{width}}  {case.severity.value:8}  {case.title} ({systems})")


def _chosen(name: str) -> list[Pathology]:
    """Return the tree of this name, else all of this kind, the simplest first."""
    named = [case for case in PATHOLOGIES if case.name == name]
    cases = named or [case for case in PATHOLOGIES if case.kind == name]
    if not cases:
        raise SystemExit(f"no pathology is called {name}; see: python -m tests.pathologies list")
    return cases


def _make(name: str, directory: Path, filesystem: str | None) -> None:
    case = _chosen(name)[0]
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


def _show(names: list[str]) -> None:
    cases = tuple(case for name in names for case in _chosen(name)) or PATHOLOGIES
    with tempfile.TemporaryDirectory(prefix=f"tui-fs-scratch-{os.getpid()}-") as directory:
        program = Path(sysconfig.get_path("scripts")) / "tui-fs"
        state_home = Path(directory, "state")
        os.environ["XDG_STATE_HOME"] = str(state_home)
        for line in table(Cli(str(program), state_home), cases, Path(directory)):
            print(line, flush=True)


if __name__ == "__main__":
    main()
