"""Measure ``tui-fs fleet``: hundreds of hosts at the same time, and shares of one file system.

Run ``python -m tests.bench.fleet hosts`` alone on the machine. The hosts are processes here that
print a stored survey, so that only the work of this side is measured: the time until all of them
have answered, until the first event of all jobs, the processor time while all of them send four
events a second, and the peak memory.

Run as root ``python -m tests.bench.fleet shards``. The hosts are real ssh servers with mounts of
their own of one file system that answers late (`tests/fuse/latency_fs.c`); the program prints the
time of 2 and 4 of them over the time of one.

Run ``python -m tests.bench.fleet screen``. It opens the screen of such hosts in a terminal of
120 x 40, and presses keys while nothing happens, while all hosts count again, and while a deletion
runs on all of them. For each it prints the time from a key to the moved cursor, the bytes for the
terminal with and without keys, the processor time, and the memory.
"""

import argparse
import json
import os
import resource
import shlex
import shutil
import signal
import subprocess
import sysconfig
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from tests.bench.keys_while_counting import Screen, press, start, summary
from tests.contracts.fleet_servers import Servers, servers
from tests.fuse import latency
from tests.trees import flat, many_directories
from tests.unit.fleet_hosts import Hosts, deletion_on, job_started, prints, report
from tests.unit.test_model_snapshot import sampled
from tui_fs.fleet.answers import HostSurvey, understood
from tui_fs.fleet.fleet import Fleet
from tui_fs.model.codec import encode

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
    parser.add_argument("what", choices=("hosts", "screen", "shards"))
    parser.add_argument("--hosts", type=int, default=200)
    parser.add_argument("--delay-ms", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors")
    if asked.what != "shards":
        measure = _measure_hosts if asked.what == "hosts" else _measure_screen
        with tempfile.TemporaryDirectory(prefix="tui-fs-bench-") as place:
            measure(Path(place), asked.hosts)
    else:
        with servers() as running:
            _measure_shards(running, asked.delay_ms, asked.rounds)


def _measure_hosts(place: Path, number: int) -> None:
    stored = subprocess.run(
        [_TUI_FS, "survey", "--json", str(place)], capture_output=True, text=True, check=True
    ).stdout
    hosts = Hosts(place)
    names = [f"h{n}" for n in range(number)]
    sample = prints({"schema": 1, **encode(sampled(1, 10))})
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


def _measure_screen(place: Path, number: int) -> None:
    tree, events, hosts = place / "d", place / "events", Hosts(place)
    many_directories(tree, 20, 10)
    shows = {}
    for words in (("survey",), ("estimate", "--no-measuring"), ("delete", "--dry-run")):
        stored = place / f"stored-{words[0]}"
        with stored.open("wb") as output:
            subprocess.run([_TUI_FS, *words, "--json", "--", tree], stdout=output, check=True)
        shows[words[0]] = f"exec cat {shlex.quote(str(stored))}"
    events.touch()
    follow = f"exec tail -n +1 -f --pid={os.getpid()} {shlex.quote(str(events))}"
    names = [f"h{n}" for n in range(number)]
    for name in names:
        hosts.on(name, "survey", shows["survey"])
        hosts.on(name, "estimate", shows["estimate"])
        dry_run = f'case "$*" in *--dry-run*) {shows["delete"]} ;; esac'
        hosts.on(name, "delete", f"{dry_run}\n{job_started()}{follow}")
    arguments = ("fleet", f"h[0-{number - 1}]", str(tree), "--ssh", hosts.ssh.program)
    pid, terminal = start(arguments, 120, 40, str(place / "state"), colours="truecolor")
    screen, is_over = Screen(terminal), threading.Event()
    writer = threading.Thread(target=_write_events, args=(events, is_over))
    try:
        began_s = time.monotonic()
        screen.wait_for(f"{number} counted")
        print(f"figures of all: {time.monotonic() - began_s:.1f} s")
        # The commands on the hosts are its children, too
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        drawing = max([pid, *map(int, children)], key=_memory_kib)
        _press_keys("idle", screen, terminal, drawing)
        os.write(terminal, b"r")
        _press_keys("while all answer", screen, terminal, drawing, keys=30)
        os.write(terminal, b"A")
        screen.wait_for(f"{number} marked")
        os.write(terminal, b"d")
        screen.wait_for(f"{number} of {number} hosts answered")
        os.write(terminal, b"o\r")
        screen.wait_for(f"Delete on {number} hosts?")
        time.sleep(1.0)  # a dialog ignores what is pressed at once
        os.write(terminal, f"{number} d\r".encode())
        writer.start()
        screen.wait_for("deleted, ")
        _press_keys("during a deletion on all", screen, terminal, drawing)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        is_over.set()
        if writer.ident is not None:
            writer.join()


def _write_events(file: Path, is_over: threading.Event) -> None:
    """Append four events a second, which all hosts print."""
    with file.open("a") as output:
        number = 0
        while not is_over.wait(0.25):
            number += 1
            event = encode(sampled(number, min(900, number)))
            print(json.dumps({"schema": 1, **event}), file=output, flush=True)


def _press_keys(moment: str, screen: Screen, terminal: int, pid: int, keys: int = 60) -> None:
    before, processor_s, began_s = screen.bytes_read, _processor_s(pid), time.monotonic()
    delays_s = []
    for number in range(keys):
        delay_s = press(screen, terminal, b"j" if number % 2 == 0 else b"k")
        assert delay_s is not None, "a key was never answered"
        delays_s.append(delay_s)
        _read_for(screen, 0.1)
    passed_s = time.monotonic() - began_s
    rate = (screen.bytes_read - before) / passed_s / 1000
    busy = 100 * (_processor_s(pid) - processor_s) / passed_s
    before = screen.bytes_read
    _read_for(screen, _EVENTS_S / 2)
    quiet_rate = (screen.bytes_read - before) / (_EVENTS_S / 2) / 1000
    print(
        f"{summary(moment, delays_s)}; {rate:.1f} KB/s with keys, {quiet_rate:.1f} KB/s without; "
        f"{busy:.0f} % of a processor; {_memory_kib(pid) / 1024:.0f} MiB"
    )


def _memory_kib(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0])


def _read_for(screen: Screen, seconds: float) -> None:
    end_s = time.monotonic() + seconds
    while (left_s := end_s - time.monotonic()) > 0:
        screen.read(left_s)


def _processor_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


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
