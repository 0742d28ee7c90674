"""Compare the totals of a survey with those of du and find, byte for byte."""

import os
import subprocess
from collections import Counter
from pathlib import Path

from tests.filesystems import kind_of
from tui_fs.model.survey import Survey
from tui_fs.survey.runner import Backend, SurveyRunner

Totals = dict[str, int]


def surveyed(tree: Path, backend: Backend | None = None) -> Survey:
    """Survey a directory to its end."""
    *_, survey = SurveyRunner([str(tree)], backend=backend).run()
    assert survey.finished
    return survey


def totals_of_survey(tree: Path, backend: Backend | None = None) -> Totals:
    """Count a directory with the survey."""
    counting = SurveyRunner([str(tree)], backend=backend, checks_surroundings=False)
    *_, survey = counting.run()
    assert survey.complete
    assert survey.vanished == 0
    totals = survey.totals
    return {
        "entries": totals.entries,
        "files": totals.files,
        "directories": totals.directories,
        "symlinks": totals.symlinks,
        "names of links": counting.collector.names_of_links,
        "apparent bytes": totals.apparent_bytes,
        "allocated bytes": totals.allocated_bytes,
    }


def totals_of_tools(tree: Path) -> Totals:
    """Count a directory with du and find, which stay on its file system too.

    Both skip other file systems, but find counts the mount point as an
    entry, as the survey does.
    """
    # A letter an entry, as names may hold line breaks; a plus where the inode has further names.
    linked = ("!", "-type", "d", "-links", "+1")
    letters = _find(tree, *linked, "-printf", "%y+", "-o", "-printf", "%y")
    kinds = Counter(letters.decode())
    names_of_links = kinds.pop("+", 0)
    return {
        "entries": kinds.total(),
        "files": kinds["f"],
        "directories": kinds["d"],
        "symlinks": kinds["l"],
        "names of links": names_of_links,
        "apparent bytes": _apparent_bytes(tree),
        "allocated bytes": _du(tree),
    }


def _apparent_bytes(tree: Path) -> int:
    apparent = _du(tree, "--apparent-size")
    if not _du_knows_directories():
        sizes = _find(tree, "-type", "d", "-printf", "%s\n")
        apparent += sum(map(int, sizes.split()))
    return apparent


def _du_knows_directories() -> bool:
    """Return whether du counts the size of a directory itself; it does not from 9.2 on."""
    whole = _run("du", "--version").splitlines()[0].split()[-1].decode()
    major, minor = map(int, whole.split(".")[:2])
    return (major, minor) < (9, 2)


def _du(tree: Path, *options: str) -> int:
    # Files of an overlay have the device of their layer, and du -x would leave them out. They
    # are the tree's all the same: nothing is mounted inside, and deleting it takes them too.
    stay = () if kind_of(tree) == "overlayfs" else ("-x",)
    return int(_run("du", *stay, "-s", "--block-size=1", *options, "--", str(tree)).split()[0])


def _find(tree: Path, *tests: str) -> bytes:
    return _run("find", str(tree), "-xdev", *tests)


def _run(*command: str) -> bytes:
    environment = {**os.environ, "LC_ALL": "C"}
    finished = subprocess.run(command, capture_output=True, check=True, env=environment)
    return finished.stdout
