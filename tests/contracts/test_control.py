"""A running job keeps its rate limit, pauses and ends at once, and changes its priority."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.conftest import Cli, Json, processes_with, wait_until
from tests.contracts.test_overlap import removed_by
from tests.filesystems import CROWDED_FILES
from tests.needs import needs_root, needs_tool, needs_tools_of
from tests.trees import flat, many_directories
from tui_fs.job.control import sample, send
from tui_fs.job.store import find
from tui_fs.linux.memory import children_of
from tui_fs.linux.processes import all_stopped
from tui_fs.model.command import Command
from tui_fs.model.errors import JobFailed
from tui_fs.model.events import Sampled
from tui_fs.strategies.registry import STRATEGIES

RATE_PER_S = 1000
RATED_ENTRIES = 5 * RATE_PER_S
# What a tool removes before its first sample, or at the end, when no excess is paid back.
BURST_ENTRIES = 1_200  # what tools remove in the hundredth of a second that a busy machine takes
STANDS_WITHIN_S = 0.2
ENDS_WITHIN_S = 10.0  # a killed tool ends its call first, which may wait for a busy disk
WRONG = (
    ("rate", "0"),
    ("rate", "-1"),
    ("rate", "1000001"),
    ("gentle", "maybe"),
    ("nice", "20"),
    ("nice", "-1"),
    ("ionice", "idle low"),
)


def start(cli: Cli, target: Path, strategy: str, *options: str) -> str:
    """Start a job under a rate limit, and return its id when it has removed something."""
    words = ("--strategy", strategy, "--yes", "--detach", *options)
    job = cli.run("delete", *words, target).expect(0).stdout.decode().strip()
    wait_until(lambda: removed_by(cli, job) > 0, "the deletion's beginning")
    return job


def test_a_rate_that_cannot_be_enforced_is_refused(cli: Cli, tmpfs: Path) -> None:
    target = tmpfs / "target"
    flat(target, 10)
    cli.run("delete", "--strategy", "rm", "--yes", "--trace", "off", "--rate", "5", target).expect(
        2
    ).assert_one_sentence()
    assert len(os.listdir(target)) == 10
    # But parallel counts for itself
    options = ("--trace", "off", "--rate", "1000")
    report = cli.delete(target, "parallel", *options).expect(0).report()
    assert report["deleted_files"] == 10


@pytest.mark.root
def test_a_rate_that_can_no_longer_be_enforced_ends_the_job(cli: Cli, crowded: Path) -> None:
    needs_root("bpftrace")
    needs_tool("bpftrace", "bpftrace")
    target = crowded / "target"
    job = start(cli, target, "rm", "--trace", "bpf", "--rate", "500")
    supervisor = psutil.Process(cli.supervisor_of(job))
    (counting,) = [process for process in supervisor.children() if process.name() == "bpftrace"]
    counting.kill()
    cli.wait_for_state(job, "cancelled")
    report = cli.run("attach", "--json", job).report()
    assert "the rate limit cannot be enforced" in report["explanation"]
    # And what it did not count is not called exact
    left = len(os.listdir(target))
    assert left > 0
    assert report["counts_are"] == "by difference"
    assert not report["syscalls_are_whole"]
    assert report["deleted_files"] == CROWDED_FILES - left


def of_type(events: list[Json], name: str) -> list[Json]:
    """Return the events of one type."""
    return [event for event in events if event["type"] == name]


def free_inodes(directory: Path) -> int:
    """Count by the file system itself; the directory's parent is not being deleted."""
    return os.statvfs(directory.parent).f_ffree


def wait_until_stopped(cli: Cli, job: str) -> None:
    """Wait until the tools stand: one without a processor ends its call late."""
    (launcher,) = children_of(cli.supervisor_of(job))
    wait_until(lambda: all_stopped(launcher), "the tools standing")


def removed_while_paused(job: str, for_s: float) -> list[int]:
    """Ask a paused job, whose journal gets no samples, for its counts again and again."""
    counts: list[int] = []
    times: list[float] = []

    def is_over() -> bool:
        try:
            (sampled,) = sample(find(job))
        except JobFailed:  # the supervisor has no processor
            return False
        assert isinstance(sampled, Sampled)
        assert sampled.removed is not None
        counts.append(sampled.removed.entries)
        times.append(sampled.at_s)
        return times[-1] - times[0] > for_s

    wait_until(is_over, "samples of a paused job")
    return counts


def wait_until_at_rate(cli: Cli, job: str, from_s: float) -> None:
    """Wait until the job removes as much as its limit permits, and no more on average.

    On a busy machine a tool is stopped late or continued late. What it removes too soon is paid
    back, so the journal shows the limit sooner or later; it never does if the limit is another.
    """

    def is_at_rate() -> bool:
        marks = [
            (event["at_s"], event["removed"]["entries"])
            for event in of_type(cli.journal(job), "Sampled")
            if event["at_s"] > from_s
        ]
        return any(
            is_at_most_rate(later, marks[0])
            and is_at_most_rate(later, first)
            and later[1] - first[1] > 0.85 * RATE_PER_S * (later[0] - first[0])
            for first in marks
            for later in marks
            if 3.0 < later[0] - first[0] < 6.0
        )

    wait_until(is_at_rate, f"job {job} at its rate")


def is_at_most_rate(later: tuple[float, int], first: tuple[float, int]) -> bool:
    """Return whether a job removed no more between two samples than `RATE_PER_S` permits."""
    return later[1] - first[1] < 1.15 * RATE_PER_S * (later[0] - first[0]) + BURST_ENTRIES


def test_every_strategy_keeps_to_its_rate(cli: Cli, ext4: Path) -> None:
    needs_tools_of("parallel")
    targets = {name: ext4 / name for name in STRATEGIES}
    for target in targets.values():
        flat(target, 2 * RATED_ENTRIES)
    words = ("delete", "--yes", "--json", "--rate", str(RATE_PER_S))
    runs = {name: cli.start(*words, "--strategy", name, targets[name]) for name in targets}
    for name, run in runs.items():
        job = wait_for_job(cli, name)
        wait_until_at_rate(cli, job, of_type(cli.journal(job), "StepStarted")[0]["at_s"])
        cli.run("rate", job, "off")
        stdout, stderr = run.communicate()
        assert run.returncode == 0, stderr
        assert b'"outcome":"done"' in stdout.splitlines()[-1]


def wait_for_job(cli: Cli, strategy: str) -> str:
    """Return the id of the job with a strategy once it has removed something."""

    def ids() -> list[str]:
        return [summary["id"] for summary in cli.jobs() if summary["strategy"] == strategy]

    wait_until(lambda: ids() != [], f"a job of {strategy}")
    (job,) = ids()
    wait_until(lambda: removed_by(cli, job) > 0, f"the first removals of {strategy}")
    return job


@pytest.mark.parametrize("strategy", ("find", "parallel"))
def test_the_rate_is_kept_all_the_time_and_can_be_changed(
    cli: Cli, ext4: Path, strategy: str
) -> None:
    needs_tools_of(strategy)
    target = ext4 / "t"
    flat(target, 30_000)
    job = start(cli, target, strategy, "--rate", "100")
    cli.run("rate", job, str(RATE_PER_S)).expect(0)
    (changed,) = of_type(cli.journal(job), "PaceChanged")
    wait_until_at_rate(cli, job, changed["at_s"])
    cli.run("rate", job, "off").expect(0)
    cli.run("attach", job).expect(0)
    changes = of_type(cli.journal(job), "PaceChanged")
    assert [event["pace"]["rate_per_s"] for event in changes] == [RATE_PER_S, 0]


def test_a_job_removes_nothing_while_paused_and_ends_when_cancelled(
    cli: Cli, ext4: Path, strategy: str
) -> None:
    target = ext4 / "t"
    entries = 4 * RATED_ENTRIES
    flat(target, entries)
    job = start(cli, target, strategy, "--rate", str(RATE_PER_S))
    cli.run("pause", job).expect(0)
    wait_until_stopped(cli, job)
    free = free_inodes(target)
    counts = removed_while_paused(job, for_s=0.8)
    assert free_inodes(target) == free
    cli.run("resume", job).expect(0)
    wait_until(lambda: free_inodes(target) > free, "the job going on")
    # And when it is cancelled, its tools end, and the report counts what is left
    cli.run("cancel", job).expect(0)
    report = cli.run("attach", "--json", job).expect(130).report()
    left = sum(1 for _ in os.scandir(target))
    assert report["outcome"] == "cancelled"
    assert 0 < left == entries - report["deleted_files"]
    assert processes_with(target) == []
    assert_stood_in_time(cli.journal(job), counts)
    assert_cancelled(cli.journal(job))


@pytest.mark.parametrize("strategy", ("xargs", "parallel"))
def test_tools_at_full_speed_pause_and_end_in_time(cli: Cli, ext4: Path, strategy: str) -> None:
    needs_tools_of(strategy)
    target = ext4 / "t"
    flat(target, 30_000)
    job = start(cli, target, strategy, "--rate", "100")
    folder = find(job)
    send(folder, Command("rate", "off"))
    before = free_inodes(target)
    wait_until(lambda: free_inodes(target) > before + 100, "the job at full speed")
    send(folder, Command("pause"))
    wait_until_stopped(cli, job)
    free = free_inodes(target)
    counts = removed_while_paused(job, for_s=0.3)
    assert free_inodes(target) == free
    send(folder, Command("cancel"))
    cli.run("attach", job).expect(130)
    assert_stood_in_time(cli.journal(job), counts)
    assert_cancelled(cli.journal(job))
    assert target.exists()


def assert_stood_in_time(events: list[Json], counts: list[int]) -> None:
    """Fail unless the counters stop at the last sample before the pause, and in time."""
    (paused,) = of_type(events, "Paused")
    if not paused["all_stopped"]:
        # a tool without a processor ends its call late, which the job must not hide
        assert paused["at_s"] - paused["asked_at_s"] > STANDS_WITHIN_S
        assert len(set(counts)) == 1
        return
    before = [event for event in of_type(events, "Sampled") if event["at_s"] <= paused["at_s"]]
    assert set(counts) == {before[-1]["removed"]["entries"]}
    # And the journal has no sample of the pause
    after = events[events.index(paused) + 1]
    assert after["type"] in ("Resumed", "CancelRequested")


def assert_cancelled(events: list[Json]) -> None:
    """Fail unless the last step ended soon after the request, which names its author."""
    (asked,) = of_type(events, "CancelRequested")
    assert 0 <= of_type(events, "StepFinished")[-1]["at_s"] - asked["at_s"] <= ENDS_WITHIN_S
    assert str(os.getuid()) in asked["reason"]


def tools_of(cli: Cli, job: str) -> list[int]:
    """List the living processes of the step's group."""
    leader = of_type(cli.journal(job), "StepStarted")[-1]["pids"][0]
    pids: list[int] = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.getpgid(int(name)) == leader:
                pids.append(int(name))
        except ProcessLookupError:
            continue
    return pids


def niceness_of(pid: int) -> int:
    """Read field 19 of /proc/PID/stat."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[16])


def disk_rank_of(pid: int) -> str:
    """Ask ionice: ``none: prio 4``, ``best-effort: prio 7`` or ``idle``."""
    ionice = needs_tool("ionice", package="util-linux")
    done = subprocess.run([ionice, "-p", str(pid)], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_the_tools_are_ranked_as_requested(cli: Cli, tmpfs: Path) -> None:
    target = tmpfs / "t"
    flat(target, 4 * RATED_ENTRIES)
    job = start(cli, target, "rsync", "--rate", "200", "--nice", "12", "--ionice", "low")
    low, idle = "best-effort: prio 7", "idle"
    steps: tuple[tuple[tuple[str, ...], int, Callable[[str], bool]], ...] = (
        ((), 12, low.__eq__),
        (("nice", "15"), 15, low.__eq__),
        (("ionice", "idle"), 15, idle.__eq__),
        (("gentle", "on"), 19, idle.__eq__),
        (("gentle", "off"), 15, idle.__eq__),
        (("ionice", "normal"), 15, lambda rank: rank not in (low, idle)),
        (("nice", "3"), 10, lambda rank: rank not in (low, idle)),  # a limited job is nice
        (("ionice", "low"), 10, low.__eq__),
    )
    for command, nice, has_rank in steps:
        if command:
            cli.run(command[0], job, command[1]).expect(0)
        tools = tools_of(cli, job)
        assert len(tools) == 3
        assert {niceness_of(pid) for pid in tools} == {max(nice, os.nice(0))}, command
        assert all(has_rank(disk_rank_of(pid)) for pid in tools), command
    # And the journal records each change
    paces = [event["pace"] for event in of_type(cli.journal(job), "PaceChanged")]
    assert [pace["nice"] for pace in paces] == [15, 15, 15, 15, 15, 3, 3]
    assert [pace["io_priority"] for pace in paces] == ["low", *["idle"] * 3, *["normal"] * 2, "low"]
    assert [pace["gentle"] for pace in paces] == [False, False, True, *[False] * 4]


def test_a_later_step_has_the_ranks_that_an_earlier_one_was_given(cli: Cli, tmpfs: Path) -> None:
    # A strategy of two steps: files, then directories
    target = tmpfs / "t"
    many_directories(target, 6_000, 0)
    flat(target / "files", 1_000)
    job = start(cli, target, "xargs", "--batch-size", "1", "--rate", "20")
    cli.run("nice", job, "17").expect(0)
    cli.run("ionice", job, "idle").expect(0)
    assert len(of_type(cli.journal(job), "StepStarted")) == 1, "the first step ended too soon"
    cli.run("rate", job, "200").expect(0)
    wait_until(lambda: len(of_type(cli.journal(job), "StepStarted")) == 2, "the second step")
    ((tool,),) = (event["pids"] for event in of_type(cli.journal(job), "StepStarted")[1:])
    wanted = (max(17, os.nice(0)), "idle")  # it ranks itself while it waits at the gate
    wait_until(lambda: (niceness_of(tool), disk_rank_of(tool)) == wanted, "its ranks")


def test_a_wrong_value_changes_nothing(cli: Cli, tmpfs: Path) -> None:
    # A running job that no moment without a supervisor can finish: a process for each file
    target = tmpfs / "t"
    flat(target, RATED_ENTRIES)
    job = start(cli, target, "xargs", "--batch-size", "1", "--rate", "50")
    for name, value in WRONG:
        cli.run(name, job, value).expect(2).assert_one_sentence()
    assert of_type(cli.journal(job), "PaceChanged") == []
    # And one that has ended takes none
    cli.run("cancel", job).expect(0)
    cli.run("attach", job).expect(130)
    cli.run("rate", job, "5").expect(2).assert_one_sentence()
    cli.run("rate", "ffffff", "5").expect(2).assert_one_sentence()
