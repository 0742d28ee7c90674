"""Measure ``tui-fs fleet``: hundreds of hosts at the same time, and shares of one file system.

Run ``python -m tests.bench.fleet hosts`` alone on the machine. The hosts are processes here that
print a stored survey, so that only the work of this side is measured: the time until all of them
have answered, until the first event of all jobs, the processor time while all of them send four
events a second, and the peak memory.

Run as root ``python -m tests.bench.fleet shards``. The hosts are real ssh servers with mounts of
their own of one file system that answers late (`tests/fuse/latency_fs.c`); the program prints the
time of 2 and 4 of them over the time of one.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sysconfig
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.contracts.fleet_servers import Servers, servers
from tests.fuse import latency
from tests.trees import flat, many_directories
from tests.unit.fleet_hosts import Hosts, deletion_on, job_started, prints, report
from tests.unit.test_model_snapshot import sampled
from tui_fs.fleet.answers import HostSurvey, understood
from tui_fs.fleet.fleet import Fleet
from tui_fs.model.events import event_to_json

_TUI_FS = str(Path(sysconfig.get_path("scripts")) / "tui-fs")
_EVENTS_S = 10
_ROLES = ("gate", "plain", "full", "inner")
_SHAPES: dict[str, Callable[[Path], None]] = {
    "flat 4000": lambda root: flat(root, 4_000),
    "200 x 20": lambda root: many_directories(root, 200, 20),
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("what", choices=("hosts", "shards"))
    parser.add_argument("--hosts", type=int, default=200)
    parser.add_argument("--delay-ms", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors")
    if asked.what == "hosts":
        with tempfile.TemporaryDirectory(prefix="tui-fs-bench-") as place:
            _measure_hosts(Path(place), asked.hosts)
    else:
        with servers() as running:
            _measure_shards(running, asked.delay_ms, asked.rounds)


def _measure_hosts(place: Path, number: int) -> None:
    stored = subprocess.run(
        [_TUI_FS, "survey", "--json", str(place)], capture_output=True, text=True, check=True
    ).stdout
    hosts = Hosts(place)
    names = [f"h{n}" for n in range(number)]
    sample = prints({"schema": 1, **event_to_json(sampled(1, 10))})
    events = f"for i in $(seq {4 * _EVENTS_S}); do {sample} sleep 0.25; done\n"
    for name in names:
        hosts.on(name, "survey", prints(json.loads(stored)))
        hosts.on(name, "delete", job_started() + events + report())
    began_s = time.monotonic()
    fleet = Fleet(names, hosts.ssh)
    try:
        fleet.reach()
        print(f"{number} hosts reached: {time.monotonic() - began_s:.1f} s")
        answers = fleet.ask(dict.fromkeys(fleet.programs, ("survey", "--json", "--", "/d")))
        surveys = [understood(HostSurvey, answer) for answer in answers.values()]
        assert len(surveys) == number and not any(isinstance(s, str) for s in surveys), surveys[0]
        print(
            f"figures of all: {time.monotonic() - began_s:.1f} s; processor time "
            f"{time.process_time():.1f} s here, {_of_hosts_s():.1f} s of the hosts"
        )
        deletion = deletion_on(fleet, names, at_once=number)
        began_s, processor_s = time.monotonic(), time.process_time()
        started_s = None
        while not deletion.is_over:
            deletion.step()
            if started_s is None and all(job.snapshot.started for job in deletion.jobs.values()):
                started_s = time.monotonic() - began_s
        passed_s, processor_s = time.monotonic() - began_s, time.process_time() - processor_s
        assert not deletion.failures
        print(f"first event of all jobs: {started_s:.1f} s")
        print(f"{4 * number} events a second: {100 * processor_s / passed_s:.0f} % of a processor")
    finally:
        fleet.close()
    peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"peak memory: {peak_kib / 1024:.0f} MiB")


def _of_hosts_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _measure_shards(hosts: Servers, delay_ms: float, rounds: int) -> None:
    backing, shared = hosts.place / "backing", hosts.place / "shared"
    backing.mkdir()
    shared.mkdir()
    late = [latency.built(), str(backing), str(shared), "--delay-us", str(round(1000 * delay_ms))]
    mounts = [hosts.start(role, *late) for role in _ROLES]
    for mount in mounts:
        assert mount.stdout is not None
        assert mount.stdout.readline() == b"ready\n"
    for shape, make in _SHAPES.items():
        times_s: dict[int, list[float]] = {number: [] for number in (1, 2, 4)}
        for _ in range(rounds):
            for number, measured in times_s.items():
                make(backing / "tree")
                measured.append(_delete(hosts, _ROLES[:number], shared / "tree"))
                assert not (backing / "tree").exists()
        best = {number: min(measured) for number, measured in times_s.items()}
        print(
            f"{shape}: {best[1]:.2f} s by one host; 2 hosts {best[1] / best[2]:.2f}, "
            f"4 hosts {best[1] / best[4]:.2f} times as fast"
        )
    for mount in mounts:
        mount.terminate()
        mount.wait()
    shutil.rmtree(backing)


def _delete(hosts: Servers, roles: tuple[str, ...], tree: Path) -> float:
    """Return the time of the slowest job."""
    shard = ("--shard",) if len(roles) > 1 else ()
    command = [
        _TUI_FS, "fleet", "delete", ",".join(roles), str(tree), "--yes", "--json",
        "--strategy", "parallel", "--ssh", hosts.ssh, *shard,
    ]  # fmt: skip
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    last = json.loads(ended.stdout.splitlines()[-1])
    return max(float(host["report"]["strategy_wall_s"]) for host in last["hosts"])


if __name__ == "__main__":
    main()
