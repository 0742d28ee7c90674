"""Run one cell of the matrix, hold it against the laws of every cell, and put it into words."""

import base64
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import Finished, Json
from tests.matrix.case import DIED, DONE, MISSING, PARTIAL, REFUSED, USAGE, Case, Job, Scene

_NOT_STARTED = {USAGE: "cannot", REFUSED: "refused", MISSING: "missing", DIED: "not started"}
_BY_CODE = {DONE: "done", PARTIAL: "partial"}
_SAID_BY_THE_CODE = "The directory is gone."
_FAILED = re.compile(r" ?[\d,]+ (?:entry|entries) could not be deleted\.")
_NUMBER = re.compile(r"(?<!UID )\b\d[\d,]*\b")
_JOURNAL_WAITS = re.compile("The journal cannot be written: ")  # written to the log, if possible
_LONGEST = re.compile(r"the longest here has [\d,]+")
_JOB_ID = re.compile(r"\b[0-9a-f]{6}\b")
_PYTHON = re.compile(r"(?:/[^\s/]+)*/python[\d.]*\b")
_PROGRAM = re.compile(r"(?<![\w/.])(?:/[\w.-]+)*/s?bin/")


@dataclass(frozen=True, slots=True)
class Observation:
    """What the program reported, and what was left.

    Attributes:
        report: None if the job was not started.
        left_entries: names left, including the target; None if unknown.
    """

    finished: Finished
    report: Json | None
    left_entries: int | None


def observe(case: Case, scene: Scene) -> str:
    """Build the tree, have it deleted, and return the result in words.

    Raises:
        AssertionError: a law or the promise is broken.
    """
    with scene.until_the_end:
        case.build(scene)
        if case.is_counted:
            scene.built_entries = _entries_of(scene.target)
        finished = _delete(case, scene)
    seen = Observation(
        finished,
        finished.report() if finished.stdout else None,
        _entries_of(scene.target) if case.is_counted else None,
    )
    _assert_laws(scene, seen)
    if case.failed_names is not None:
        _assert_named(case.failed_names, scene.target, seen)
    words = _printed_text(case, scene, seen)
    promise = case.promise_of(scene.strategy)
    if not promise.covers_outside:
        words = f"{words.removesuffix('.')}; outside, no promise"
    elif case.after is not None and (more := case.after(scene)):
        words = f"{words.removesuffix('.')}; {more}"
    assert finished.code in promise.codes, f"{promise.sentence} But: {words}"
    assert promise.left_entries in (None, seen.left_entries), f"{promise.sentence} But: {words}"
    return words


def _delete(case: Case, scene: Scene) -> Finished:
    """Run it to its end; let the case happen when something is gone."""
    if case.during is None:
        return scene.cli.delete(scene.target, scene.strategy, *case.options)
    options = ("--rate", str(case.rate), "--detach", *case.options)
    started = scene.cli.delete(scene.target, scene.strategy, *options).expect(0)
    job = Job(scene.cli, str(started.object()["id"]))
    case.during(scene, job)
    return scene.cli.run("attach", "--json", job.id)


def _assert_laws(scene: Scene, seen: Observation) -> None:
    """Check the laws of every cell, independent of the promise of its case."""
    finished, report = seen.finished, seen.report
    shown = f"{finished}\nstdout: {finished.stdout[-3000:]!r}\nstderr: {finished.stderr[-2000:]}"
    scene.sentinel.assert_whole()
    assert "Traceback" not in finished.stderr, shown
    is_gone = not os.path.lexists(scene.target)
    assert finished.code != DONE or is_gone, f"the target is not gone: {shown}"
    if report is None:
        finished.assert_one_sentence()
        assert finished.code in _NOT_STARTED, shown
        assert seen.left_entries in (None, scene.built_entries), f"something is gone: {shown}"
        return
    assert (report["outcome"] == "done") == (finished.code == DONE), shown
    assert report["outcome"] in ("done", "died") or not is_gone, shown
    for log in (*scene.state_home.glob("tui-fs/jobs/*/log"), *scene.runtime.glob("**/log")):
        lines = [line for line in log.read_text().splitlines() if not _JOURNAL_WAITS.match(line)]
        assert report["outcome"] == "died" or not lines, lines
    assert (report["outcome"] == "partial") == (finished.code == PARTIAL), shown
    _assert_errors_lie_in(scene.target, report)
    if seen.left_entries is not None:
        _assert_adds_up(scene.built_entries, seen.left_entries, report, shown)


def _assert_adds_up(built: int, left: int, report: Json, shown: str) -> None:
    gone = built - left
    assert report["surviving_entries"] in (None, left), shown
    counts = [report["deleted_files"], report["deleted_directories"]]
    if report["counts_are"] == "at least":
        assert sum(counts) <= gone, shown
    elif None not in counts:
        assert sum(counts) == gone, shown
    assert report["failed"] <= left, shown


def _assert_errors_lie_in(target: Path, report: Json) -> None:
    """Check that every reported failure has a path in the target."""
    prefix = os.fsencode(target)
    for error in report["errors"]:
        path = os.fsencode(error["path"])
        if "path_b64" in error:
            path = base64.b64decode(error["path_b64"])
        assert path == prefix or path.startswith(prefix + b"/"), error


def _assert_named(names: frozenset[str], target: Path, seen: Observation) -> None:
    """Check that the report names these failed entries and no others."""
    errors = seen.report["errors"] if seen.report else []
    named = {error["path"].removeprefix(str(target)).removeprefix("/") for error in errors}
    assert named == names, f"{seen.finished}\nstdout: {seen.finished.stdout[-3000:]!r}"


def _entries_of(target: Path) -> int:
    """Count the names of a tree of any depth, its root included; 0 if it is gone."""
    if not os.path.lexists(target):
        return 0
    command = ["find", str(target), "-printf", "."]
    return len(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


def _printed_text(case: Case, scene: Scene, seen: Observation) -> str:
    """Return the printed text, without what differs from run to run."""
    code, report = seen.finished.code, seen.report
    if report is None:
        sentence = seen.finished.stderr.removeprefix("tui-fs: ").strip()
        return f"{_NOT_STARTED[code]} ({code}): {_plain(sentence, scene, case.is_exact)}"
    codes = case.promise_of(scene.strategy).codes
    if case.fails_by_chance and len(codes) > 1:
        return " or ".join(f"{_BY_CODE[code]} ({code})" for code in codes)
    explanation = _FAILED.sub("", str(report["explanation"])).removeprefix(_SAID_BY_THE_CODE)
    lines = [_plain(explanation, scene, case.is_exact)]
    if not case.fails_by_chance:
        failures = {_failure(group, case.is_exact) for group in report["error_groups"]}
        lines.append(", ".join(sorted(failures)))
    words = " ".join(text for text in lines if text)
    return f"{report['outcome']} ({code})" + (f": {words}" if words else "")


def _plain(text: str, scene: Scene, is_exact: bool) -> str:
    for path, name in (
        (scene.target, "TARGET"),
        (scene.place, "PLACE"),
        (scene.state_home, "STATE"),
    ):
        text = text.replace(str(path), name)
    text = _LONGEST.sub("the longest here has N", text)  # it depends on where the test is
    text = _PROGRAM.sub("", _PYTHON.sub("python", _JOB_ID.sub("JOB", text)))
    text = text if is_exact else _NUMBER.sub("N", text).replace(" (and N more)", "")
    return " ".join(text.split())


def _failure(group: Json, is_exact: bool) -> str:
    """Return what failed and why, the advice that follows the colon left out."""
    words = f"{group['operation']}: {group['meaning'].partition(':')[0]}"
    return f"{words} ({group['number']:,} ×)" if is_exact else words
