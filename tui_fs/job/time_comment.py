"""Why a deletion took another time than predicted, from what its journal has measured."""

import math
import os
from collections.abc import Iterator

from msgspec import Struct

from tui_fs.model.calls import TraceSource
from tui_fs.model.events import JobFinished, JobStarted, MachineUse
from tui_fs.model.outcome import Outcome
from tui_fs.model.snapshot import Snapshot
from tui_fs.model.strategy import program_of
from tui_fs.model.units import bytes_iec, count, duration, duration_span

_ENOUGH = 0.5
"""A cause must account for at least this share of the time beyond the predicted range."""
_COMPUTING = 0.8
"""Tools that ran for this share of the time waited for nothing."""
_MIN_COLD_BYTES = 128
"""Bytes read from the disk per entry; an inode has 256 bytes on ext4 and 512 on xfs."""
_OLD_S = 30 * 86_400.0
"""A file system whose costs were measured longer ago is measured again when it can be."""


class _Cause(Struct, frozen=True):
    """A measured cause.

    Attributes:
        seconds: how much it changed the time.
        words: it as a clause.
    """

    seconds: float
    words: str


def time_comment(snapshot: Snapshot) -> str:
    """Return why the time is outside the predicted range; empty if it is not, or unknown."""
    started, finished = snapshot.started, snapshot.finished
    if finished is None or started is None or started.predicted_seconds is None:
        return ""
    if finished.outcome not in (Outcome.DONE, Outcome.PARTIAL):
        return ""
    low_s, _, high_s = started.predicted_seconds
    working_s = finished.strategy_wall_s - snapshot.paused_s
    took_s = working_s - snapshot.held_s
    is_above = took_s > high_s and duration(took_s) != duration(high_s)
    is_below = took_s < low_s and duration(took_s) != duration(low_s)
    if started.pace.rate_per_s and working_s >= low_s:
        is_below = False  # after a stop, a limited tool may catch up
    if not (is_above or is_below):
        if snapshot.held_s and working_s > high_s:
            return (
                f"Gentle mode stopped the tools for {duration(snapshot.held_s)}; without that, the "
                "time is within the predicted range."
            )
        return ""
    causes = _causes_above if is_above else _causes_below
    beyond_s = took_s - high_s if is_above else low_s - took_s
    known = [
        cause
        for cause in causes(snapshot, started, finished, took_s)
        if cause.seconds >= _ENOUGH * beyond_s
    ]
    cause = max(known, key=lambda cause: cause.seconds, default=None)
    words = cause.words if cause else _other_cause(snapshot, started, took_s if is_above else None)
    without = "Without the throttled time, the" if snapshot.held_s else "The"
    side = "longer" if is_above else "less time"
    span = duration_span(low_s, high_s)
    return f"{without} deletion took {side} than predicted ({span}): {words}."


def processor_wait_s(snapshot: Snapshot) -> float:
    """Return how long an ended job was slower because others used the processors, in seconds."""
    usage, finished = snapshot.usage, snapshot.finished
    threads = max(1, snapshot.threads)
    wait_s = ((usage and usage.processor_wait_s) or 0.0) / threads
    machine = finished.machine if finished is not None else None
    if finished is None or machine is None:
        return wait_s
    other_s = _used_by_others_s(snapshot, finished, machine)
    wait_s = min(wait_s, other_s)  # its own processes may wait for each other
    if not (snapshot.paused_s or snapshot.held_s):
        # Processors that others leave free cost the tools nothing.
        free_s = max(0, machine.processors - threads) * finished.strategy_wall_s
        wait_s = max(wait_s, (other_s - free_s) / threads)
    return wait_s


def _used_by_others_s(snapshot: Snapshot, finished: JobFinished, machine: MachineUse) -> float:
    own_s = snapshot.finished_user_s + snapshot.finished_system_s
    # The machine is measured from before the tools start until after they have ended.
    most_s = machine.processors * finished.strategy_wall_s
    return max(0.0, min(machine.busy_s, most_s) - own_s)


def _causes_above(
    snapshot: Snapshot, started: JobStarted, finished: JobFinished, took_s: float
) -> Iterator[_Cause]:
    if (pace := _limit(snapshot, started)) is not None:
        yield _Cause(took_s, f"its rate was limited to {count(pace)} entries per second")
        return  # a tool that is stopped waits, too
    expected, deleted = started.expected.totals.entries, _deleted(finished)
    if deleted > expected > 0:
        more = f"it deleted {count(deleted)} entries, and the survey had counted {count(expected)}"
        yield _Cause(took_s * (1 - expected / deleted), more)
    usage, threads, stolen_s = snapshot.usage, max(1, snapshot.threads), 0.0
    own_s = snapshot.finished_user_s + snapshot.finished_system_s
    wait_s, machine = processor_wait_s(snapshot), finished.machine
    if machine is not None and finished.strategy_wall_s > 0:
        used = _used_by_others_s(snapshot, finished, machine) / finished.strategy_wall_s
        yield _Cause(
            wait_s,
            f"other processes used {used:.1f} of {machine.processors} processors on average, and "
            f"the tools waited about {duration(wait_s)} for one",
        )
        stolen_s = machine.stolen_s * own_s / max(machine.busy_s, own_s, 1e-9) / threads
        yield _Cause(
            stolen_s,
            f"the hypervisor withheld the processors for about {duration(stolen_s)} (steal)",
        )
    else:
        yield _Cause(wait_s, f"the tools waited {duration(wait_s)} for a processor")
    rmdirs = sum(os.path.basename(program_of(argv)) == "rmdir" for argv in started.command)
    is_single = (started.predicted_processes or 0) - rmdirs == 1 and threads == 1
    if usage is not None and usage.disk_wait_s is not None:
        disk_s, resource = usage.disk_wait_s / threads, "for the disk"
    elif is_single and started.source is not TraceSource.STRACE:
        disk_s, resource = took_s - own_s - wait_s - stolen_s, "for the disk or for locks"
    else:
        return
    words = f"the tools waited about {duration(disk_s)} {resource}"
    if _is_cold(snapshot):
        words += f", because the cache was cold: they read {_read(snapshot)}"
    else:
        words += "; the record does not show whether other processes used the disk"
    yield _Cause(disk_s, words)


def _causes_below(
    snapshot: Snapshot, started: JobStarted, finished: JobFinished, took_s: float
) -> Iterator[_Cause]:
    at_first, at_last = started.pace.rate_per_s, snapshot.pace.rate_per_s
    if at_first and (not at_last or at_last > at_first):
        done = f"raised to {count(at_last)}" if at_last else "lifted"
        words = f"its limit of {count(at_first)} entries per second was {done}"
        yield _Cause(math.inf, words)
    expected, deleted = started.expected.totals.entries, _deleted(finished)
    if 0 < deleted < expected:
        words = f"it deleted {count(deleted)} entries of the {count(expected)} that were counted"
        yield _Cause(took_s * (expected / deleted - 1), words)


def _other_cause(snapshot: Snapshot, started: JobStarted, above_s: float | None) -> str:
    """Return a cause whose effect in seconds is unknown, as a clause.

    Args:
        above_s: the time if it is above the range; None if it is below.
    """
    is_above = above_s is not None
    if is_above and started.source in (TraceSource.STRACE, TraceSource.BPF):
        return f"{started.source} counted its calls, which slows each of them"
    if is_above and _is_cold(snapshot):
        return f"the cache was cold, and the tools read {_read(snapshot)} from the disk"
    measured_at = started.predicted_measured_at
    if not measured_at:
        return "the prediction did not rest on a measurement of this file system"
    if started.started_at - measured_at > _OLD_S:
        return "the measurement of this file system is more than a month old"
    own_s = snapshot.finished_user_s + snapshot.finished_system_s
    if above_s is not None and own_s >= _COMPUTING * above_s:
        return f"no cause is recorded, but it was not waits: the tools ran for {duration(own_s)}"
    return "no cause is recorded"


def _limit(snapshot: Snapshot, started: JobStarted) -> int | None:
    return snapshot.pace.rate_per_s or started.pace.rate_per_s or None


def _deleted(finished: JobFinished) -> int:
    return (finished.deleted_files or 0) + (finished.deleted_directories or 0)


def _read(snapshot: Snapshot) -> str:
    return bytes_iec((snapshot.usage and snapshot.usage.read_bytes) or 0)


def _is_cold(snapshot: Snapshot) -> bool:
    """Return whether the tools had to read about every inode from the disk."""
    read_bytes = (snapshot.usage and snapshot.usage.read_bytes) or 0
    return read_bytes >= _MIN_COLD_BYTES * max(1, snapshot.expected_entries)
