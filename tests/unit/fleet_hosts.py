"""Hosts that exist only here: a stand-in for ssh, and a tui-fs whose answers a test writes."""

import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from tests.conftest import DEADLINE_S
from tests.unit.test_model_snapshot import started
from tui_fs import __version__
from tui_fs.fleet.access import OneFile
from tui_fs.fleet.connections import Connections, Ended, Line, Ssh
from tui_fs.fleet.deletion import FleetDeletion, HostJob
from tui_fs.fleet.fleet import Fleet
from tui_fs.model.codec import encode
from tui_fs.model.paths import PathStr

# It drops the options of ssh, and runs the command with the environment of the host.
_SSH = """#!/bin/sh
echo "$*" >>{place}/ssh-arguments
while case $1 in -*) true ;; *) false ;; esac; do shift; done
export HOST_DIR={place}/"$1" PATH={place}/bin:"$PATH"
mkdir -p "$HOST_DIR"
cd "$HOST_DIR"
[ -e ./connect ] && . ./connect
exec "${{LOGIN_SHELL:-/bin/sh}}" -c "$2"
"""
_PROGRAM = """#!/bin/sh
[ "$1" = --version ] && {{ cat "$HOST_DIR/version" 2>/dev/null || echo "tui-fs {version}"; exit; }}
printf '%s\\n' "$*" >>"$HOST_DIR/calls"
JOB_ID=j1
for word; do case $word in --job-id=*) JOB_ID=${{word#*=}} ;; esac; done
. "$HOST_DIR/$1"
"""


class Hosts:
    """Hosts that a test describes in shell scripts."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.ssh = Ssh(self._script(place / "ssh", _SSH.format(place=place)))
        (place / "bin").mkdir()
        self.program = self._script(place / "bin" / "tui-fs", _PROGRAM.format(version=__version__))

    def on(self, host: str, name: str, script: str) -> None:
        """Let a host run a script for a command of tui-fs, or ``connect`` before any."""
        directory = self.place / host
        directory.mkdir(exist_ok=True)
        (directory / name).write_text(script)

    def calls(self, host: str) -> list[str]:
        """Return the command lines that tui-fs has got."""
        path = self.place / host / "calls"
        return path.read_text().splitlines() if path.exists() else []

    @contextmanager
    def connections(self, at_once: int = 64) -> Iterator[Connections]:
        """Yield connections."""
        connections = Connections(Ssh(self.ssh.program, at_once=at_once))
        try:
            yield connections
        finally:
            connections.close()

    @contextmanager
    def fleet(
        self, *names: str, one_file: OneFile | None = None, at_once: int = 64, **how: Any
    ) -> Iterator[Fleet]:
        """Yield a fleet that has reached its hosts."""
        fleet = Fleet(names, Ssh(self.ssh.program, at_once=at_once), one_file, **how)
        try:
            fleet.reach()
            yield fleet
        finally:
            fleet.close()

    @staticmethod
    def _script(path: Path, text: str) -> str:
        path.write_text(text)
        path.chmod(0o755)
        return str(path)


def ends_of(connections: Connections, number: int = 1) -> tuple[list[Ended], list[bytes]]:
    """Return the ends of commands, and the lines before them."""
    ends: list[Ended] = []
    lines: list[bytes] = []
    deadline = time.monotonic() + DEADLINE_S
    while len(ends) < number:
        assert time.monotonic() < deadline
        match connections.next_event(0.1):
            case Line(text=text):
                lines.append(text)
            case Ended() as ended:
                ends.append(ended)
    return ends, lines


def job_started(job_id: str = "j1") -> str:
    """Return a shell command that prints the first event of a job."""
    event = replace(started(), job_id=job_id, targets=(PathStr("/d"),))
    return prints({"schema": 1, **encode(event)})


def report(outcome: str = "done", **more: Any) -> str:
    """Return a shell command that prints a report."""
    fields = {
        "type": "report", "outcome": outcome, "explanation": f"It is {outcome}.", "id": "j1",
        "deleted_files": 3, "deleted_directories": 1, "failed": 0, "freed_bytes": 4096,
        "elapsed_s": 1.0,
    }  # fmt: skip
    return prints(fields | more)


def listing(*states: str, path: str = "/d") -> str:
    """Return a shell command that lists jobs."""
    return prints(
        [
            {
                "id": f"j{number}", "state": state, "strategy": "rm", "targets": [{"path": path}],
                "deleted_entries": 1, "expected_entries": 4, "failed": 0,
            }
            for number, state in enumerate(states, 1)
        ]
    )  # fmt: skip


def prints(value: Any) -> str:
    """Return a shell command that prints JSON; ``j1`` is the id that the fleet has given."""
    return f'sed "s/\\"j1\\"/\\"$JOB_ID\\"/g" <<\'END\'\n{json.dumps(value)}\nEND\n'


def deletion_on(
    fleet: Fleet, hosts: Sequence[str], job_id: str = "j1", **how: Any
) -> FleetDeletion:
    """Return a deletion of /d on hosts."""
    how = {"at_once": 64, "retry_interval_s": 0.05} | how
    arguments = dict.fromkeys(hosts, ("delete", "--yes", "--json", "--", "/d"))
    return FleetDeletion(fleet, arguments, dict.fromkeys(hosts, job_id), **how)


def run(deletion: FleetDeletion) -> dict[str, HostJob]:
    """Follow a deletion to its end."""
    deadline = time.monotonic() + DEADLINE_S
    while not deletion.is_over:
        assert time.monotonic() < deadline, deletion.jobs
        deletion.step()
    return deletion.jobs


def step_until(deletion: FleetDeletion, host: str, phase: str) -> None:
    """Follow a deletion until a host is in a phase."""
    deadline = time.monotonic() + DEADLINE_S
    while str(deletion.jobs[host].phase) != phase:
        assert time.monotonic() < deadline, deletion.jobs
        deletion.step()


def waits_for(path: Path) -> str:
    """Return a shell command that waits until a file exists."""
    return f"while ! [ -e {os.fspath(path)} ]; do sleep 0.02; done\n"
