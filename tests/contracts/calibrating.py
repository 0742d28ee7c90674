"""Helpers for the tests of calibration next to a target."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.conftest import DEADLINE_S, Json, wait_until
from tests.trees import Manifest, manifest, many_directories
from tui_fs.estimate.calibration import Calibration
from tui_fs.estimate.fit import TOO_SLOW
from tui_fs.job.calibration.store import calibrate
from tui_fs.job.scratch import PREFIX
from tui_fs.model.errors import TuiFsError

SHORT_S = 0.7
"""Enough for trees to be made and deleted, and little enough to be repeated."""
LIMITS_S = 2.0, 8.0, *[17.0] * 4
"""The first suffices on an idle machine; the last ends before the measuring process is killed."""
_BUSY = (TOO_SLOW, "The file system does not answer.", "Another measurement is under way.")
_SHORTLY = (
    "import sys, tui_fs.job.calibration.child as child; "
    "child.LIMIT_S = float(sys.argv.pop(1)); child.main()"
)


@pytest.fixture
def above(tmpfs: Path) -> Path:
    """Return a directory in memory that holds a target."""
    above = tmpfs / "above"
    above.mkdir()
    many_directories(above / "target", 2, 3)
    return above


def command_for(target: Path | bytes, limit_s: float = SHORT_S) -> list[str]:
    """Return the command that measures for so long."""
    return [sys.executable, "-I", "-c", _SHORTLY, str(limit_s), os.fsdecode(target)]


class Measurement:
    """A measurement that is going on, in a session of its own."""

    def __init__(self, command: Sequence[str], environment: dict[str, str] | None = None) -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            cwd="/",
            env={**os.environ, **(environment or {})},
        )
        self.pid = self._process.pid

    def processes(self) -> list[int]:
        """List the processes of its session, without zombies."""
        pids: list[int] = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            with suppress(OSError):
                fields = Path("/proc", name, "stat").read_bytes().rpartition(b") ")[2].split()
                if int(fields[3]) == self.pid and fields[0] not in (b"Z", b"X"):
                    pids.append(int(name))
        return pids

    def child(self) -> int:
        """Return the process that measures, which the first one has forked."""
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        return int(children[0])

    def is_over(self) -> bool:
        """Return whether the first process has ended."""
        return self._process.poll() is not None

    def ended(self) -> tuple[int, Json, str]:
        """Wait for all its processes; return its exit code, standard output and standard error."""
        out, complaint = self._process.communicate(timeout=DEADLINE_S)
        wait_until(lambda: not self.processes(), "the end of the last process")
        return self._process.returncode, json.loads(out or b"{}"), complaint.decode()


def run(command: Sequence[str], environment: dict[str, str] | None = None) -> Json:
    """Measure to the end; fail unless it prints something, without a traceback."""
    code, output, complaint = Measurement(command, environment).ended()
    assert (code, complaint) == (0, "")
    assert output
    return output


def measured(
    target: Path | bytes, prefix: Sequence[str] = (), environment: dict[str, str] | None = None
) -> Json:
    """Measure with longer limits until one suffices, however busy the machine is."""
    for limit_s in LIMITS_S:
        output = run([*prefix, *command_for(target, limit_s)], environment)
        if "prices" in output:
            return output
    pytest.fail(str(output))


def calibrated(target: str) -> Calibration:
    """Calibrate as a user would who reads that the machine is too busy: once more."""
    calibrations: list[Calibration] = []

    def is_calibrated() -> bool:
        try:
            calibrations.append(calibrate(target))
        except TuiFsError as error:
            assert error.sentence in _BUSY, error.sentence
        return bool(calibrations)

    wait_until(is_calibrated, "a calibration on a busy machine")
    return calibrations[0]


def without_itself(entries: Manifest) -> Manifest:
    """Leave out the directory itself, whose time changes when something is made in it."""
    return {name: fact for name, fact in entries.items() if name != b"."}


@contextmanager
def left_as_it_was(above: Path | bytes, records: Path) -> Iterator[None]:
    """Fail unless the target's siblings, byte for byte, and the records are unchanged."""
    place = Path(os.fsdecode(above))
    before = without_itself(manifest(place))
    yield
    assert without_itself(manifest(place)) == before
    assert not records.exists() or os.listdir(records) == []


def scratches(above: Path | bytes) -> list[bytes]:
    """List the scratch directories next to a target."""
    with suppress(FileNotFoundError):
        return [n for n in os.listdir(os.fsencode(above)) if n.startswith(PREFIX.encode())]
    return []


def started(target: Path | bytes, environment: dict[str, str] | None = None) -> Measurement:
    """Start a measurement that outlasts every test; return it once a tree is being deleted."""
    above = os.path.dirname(os.fsencode(target))
    measurement = Measurement(command_for(target, 30.0), environment)

    def has_begun() -> bool:
        assert not measurement.is_over(), measurement.ended()
        return any(os.path.exists(os.path.join(above, n, b"empty")) for n in scratches(above))

    wait_until(has_begun, "a scratch directory with something in it")
    return measurement


def kill_all(measurement: Measurement) -> None:
    """Kill all its processes at once: none of them comes to clear away."""
    stopped: set[int] = set()
    while new := set(measurement.processes()) - stopped:  # one that forks meanwhile is found later
        for pid in new:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        stopped |= new
    for pid in stopped:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    assert measurement.ended()[0] == -signal.SIGKILL


def mounted(point: Path, options: str) -> Path:
    """Mount an empty file system in memory with these options."""
    point.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tui-fs-test", point], check=True)
    return point
