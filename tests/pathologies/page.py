"""A table of every pathology on every file system, as the program reports them."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Cli
from tests.filesystems import mounts_below
from tests.pathologies.case import Pathology
from tests.pathologies.grounds import FILESYSTEMS, Grounds
from tests.pathologies.looking import made, matching, survey_with
from tui_fs.model.finding import Finding

_NOT_FOUND = "**not found**"
# An undisturbed survey is not reported as disturbed; the next one is.
_ATTEMPTS = 5


def table(cli: Cli, cases: tuple[Pathology, ...], directory: Path) -> Iterator[str]:
    """Yield the lines of a Markdown table; every tree is made, surveyed, and taken down.

    Args:
        directory: where file systems are mounted meanwhile.
    """
    yield _row("kind", "tree", *FILESYSTEMS)
    yield _row(*["---"] * (2 + len(FILESYSTEMS)))
    root = Path(tempfile.mkdtemp(dir=directory))
    grounds = Grounds(root)
    try:
        for case in cases:
            cells = (_cell(cli, case, filesystem, grounds) for filesystem in FILESYSTEMS)
            yield _row(case.kind, case.title, *cells)
    finally:
        if mounts_below(root):
            grounds.take_down()


def _cell(cli: Cli, case: Pathology, filesystem: str, grounds: Grounds) -> str:
    if filesystem not in (*case.filesystems, *case.not_on):
        return ""
    try:
        with made(case, filesystem, grounds) as (scene, planted):
            if case.is_ordinary:
                cli = cli.as_ordinary_user(scene.place)
            for _ in range(_ATTEMPTS):
                findings = survey_with(cli, planted.tree).findings
                if finding := matching(case, planted, findings):
                    return _described(finding)
            of_kind = [finding for finding in findings if finding.kind == case.kind]
            if filesystem in case.not_on and not of_kind:
                return "none, as it should be"
            return " ".join((_NOT_FOUND, *map(_described, of_kind)))
    except pytest.skip.Exception as reason:
        return f"not here: {reason.msg}"


def _described(finding: Finding) -> str:
    numbers = (f"{name} {number:,}" for name, number in finding.numbers.items())
    return f"{finding.severity}: {', '.join(numbers)}".removesuffix(": ")


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
