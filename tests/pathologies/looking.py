"""Make a pathology, survey it as a user does, and judge the findings."""

import contextlib
import io
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import Cli
from tests.pathologies.case import INFO, Made, Pathology, Scene
from tests.pathologies.counting import Totals
from tests.pathologies.grounds import Grounds
from tui_fs.cli import main
from tui_fs.model.codec import decode
from tui_fs.model.finding import Finding, Severity

_PRINTED_TOTALS = (
    "entries",
    "files",
    "directories",
    "symlinks",
    "apparent_bytes",
    "allocated_bytes",
)
OF_THE_MACHINE = frozenset({"space-low", "inodes-low", "deleted-but-open"})
"""Kinds that speak of the machine that the tests run on, which changes, not of the tree."""
_GRAVITY = {severity: number for number, severity in enumerate(Severity)}


@contextlib.contextmanager
def made(case: Pathology, filesystem: str, grounds: Grounds) -> Iterator[tuple[Scene, Made]]:
    """Make a pathology on a file system; its processes and mounts end with the context."""
    is_own = case.has_own_filesystem
    place = grounds.host_directory() if is_own else grounds.directory_on(filesystem)
    place.chmod(0o755)
    scene = Scene(place, filesystem)
    with scene.until_the_end:
        yield scene, case.make(scene)


@dataclass(frozen=True, slots=True)
class Printed:
    """What the survey command printed about a tree."""

    findings: list[Finding]
    totals: Totals


def survey_here(tree: Path) -> Printed:
    """Run the survey command in this process, which saves the start of another."""
    stdout, stderr = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
        code = main(["survey", "--json", "--", str(tree)])
    return _read(code, stdout.getvalue(), stderr.getvalue())


def survey_with(cli: Cli, tree: Path) -> Printed:
    """Run the survey command of the installed program."""
    finished = cli.run("survey", "--json", "--", tree)
    return _read(finished.code, finished.stdout.decode(), finished.stderr)


def _read(code: int, stdout: str, stderr: str) -> Printed:
    assert code in (0, 1), stderr
    assert "Traceback" not in stderr, stderr
    survey = json.loads(stdout)
    findings = [decode(Finding, record) for record in survey["pathologies"]]
    totals = {field.replace("_", " "): survey[field] for field in _PRINTED_TOTALS}
    return Printed(findings, totals)


def matching(case: Pathology, planted: Made, findings: Sequence[Finding]) -> Finding | None:
    """Return the finding that must be there, with its severity, path and numbers."""
    tree = os.path.realpath(planted.tree)
    for finding in findings:
        is_place = (
            finding.path == str(planted.where) if planted.where else _is_in(finding.path, tree)
        )
        if (
            (finding.kind, finding.severity) == (case.kind, case.severity)
            and is_place
            and all(finding.numbers.get(word) in wanted for word, wanted in planted.numbers.items())
        ):
            return finding
    return None


def _is_in(path: str, tree: str) -> bool:
    return path == tree or path.startswith(tree + "/")


def is_as_grave(severity: Severity, limit: Severity) -> bool:
    """Return whether a severity is this one or a graver one."""
    return _GRAVITY[severity] >= _GRAVITY[limit]


def warnings(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings that are more than information."""
    return [finding for finding in findings if finding.severity is not INFO]


def undeserved(case: Pathology, findings: Sequence[Finding]) -> list[Finding]:
    """Return the warnings that are not this tree's."""
    deserved = set(case.also)
    if case.severity is not INFO:
        deserved.add(case.kind)
    return [finding for finding in warnings(findings) if finding.kind not in deserved]
