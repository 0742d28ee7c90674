"""Why a deletion took another time than predicted."""

import pytest
from msgspec.structs import replace

from tests.unit.test_model_snapshot import finished, folded, sampled, started, usage
from tui_fs.job.time_comment import time_comment
from tui_fs.model.calls import TraceSource
from tui_fs.model.events import (
    Event,
    JobFinished,
    JobStarted,
    MachineUse,
    PaceChanged,
    Paused,
    Resumed,
    StepFinished,
    StepStarted,
    Throttled,
    Unthrottled,
    Usage,
)
from tui_fs.model.outcome import Outcome
from tui_fs.model.strategy import Pace

DAY_S = 86_400.0
MEASURED = replace(started(), predicted_measured_at=1e9 - DAY_S, predicted_processes=1)
"""1,000 entries, predicted to take 1 to 3 s."""


def end(wall_s: float, machine: MachineUse | None = None, deleted: int = 1000) -> JobFinished:
    """Return the end of a job that deleted everything."""
    return replace(
        finished(Outcome.DONE),
        strategy_wall_s=wall_s,
        deleted_files=deleted - 1,
        machine=machine,
        deleted_entries=deleted,
    )


def comment(
    wall_s: float,
    *events: Event,
    start: JobStarted = MEASURED,
    cpu_s: float | None = None,
    used: Usage | None = None,
    machine: MachineUse | None = None,
    deleted: int = 1000,
) -> str:
    """Return the comment on a job of one process that computed all the time."""
    own_s = wall_s if cpu_s is None else cpu_s
    sample = sampled(wall_s, deleted, usage=used or usage(own_s))
    step = StepFinished(1 + wall_s, 0, (0,), 0.0, own_s, 0)
    begun = StepStarted(1.0, 0, (7,))
    return time_comment(folded(start, begun, *events, sample, step, end(wall_s, machine, deleted)))


@pytest.mark.parametrize("wall_s", [1.0, 2.0, 3.0, 3.04])
def test_a_time_within_the_range_needs_no_comment(wall_s: float) -> None:
    assert comment(wall_s) == ""


def test_a_job_without_a_prediction_or_an_end_has_no_comment() -> None:
    assert comment(9.0, start=replace(MEASURED, predicted_seconds=None)) == ""
    assert time_comment(folded(MEASURED, sampled(9.0, 5))) == ""
    cancelled = replace(end(9.0), outcome=Outcome.CANCELLED)
    assert time_comment(folded(MEASURED, cancelled)) == ""


def test_a_miss_without_a_measured_cause_says_so() -> None:
    start = "The deletion took {} (1.0 s to 3.0 s): no cause is recorded"
    assert comment(0.5) == start.format("less time than predicted") + "."
    above = start.format("longer than predicted")
    assert comment(9.0) == f"{above}, but it was not waits: the tools ran for 9.0 s."
    several = replace(MEASURED, predicted_processes=3)
    assert comment(9.0, cpu_s=5.0, start=several) == f"{above}."


def test_processors_that_other_processes_used_are_the_cause() -> None:
    # Of 2 processors in 9 s, it had 5 s, and others the other 13.
    assert comment(9.0, cpu_s=5.0, machine=MachineUse(2, 18.0, 0.0)).endswith(
        ": other processes used 1.4 of 2 processors on average, and the tools waited about 4.0 s "
        "for one."
    )


def test_others_never_used_more_processors_than_there_are() -> None:
    # Also while the tools were started, which takes most of the time of a small deletion
    assert ": other processes used 1.5 of 2 processors" in comment(
        9.0, cpu_s=4.5, machine=MachineUse(2, 40.0, 0.0)
    )


def test_processors_that_were_free_are_not_the_cause() -> None:
    assert "processors" not in comment(9.0, cpu_s=9.0, machine=MachineUse(8, 40.0, 0.0))


def test_waits_for_a_processor_count_where_the_machine_is_not_measured() -> None:
    used = replace(usage(4.0), processor_wait_s=5.0)
    assert comment(9.0, cpu_s=4.0, used=used).endswith(": the tools waited 5.0 s for a processor.")


def test_waits_of_its_own_processes_for_each_other_are_not_of_others() -> None:
    used = replace(usage(9.0), processor_wait_s=8.0)
    assert "processor" not in comment(9.0, used=used, machine=MachineUse(2, 9.2, 0.0))


def test_stolen_time_is_the_cause() -> None:
    assert comment(9.0, cpu_s=4.0, machine=MachineUse(2, 4.1, 5.0)).endswith(
        ": the hypervisor withheld the processors for about 4.9 s (steal)."
    )


def test_waits_for_the_disk_are_the_cause() -> None:
    used = replace(usage(2.0), disk_wait_s=6.5)
    assert comment(9.0, cpu_s=2.0, used=used).endswith(
        ": the tools waited about 6.5 s for the disk; the record does not show whether other "
        "processes used the disk."
    )
    assert ": the tools waited about 7.0 s for the disk or for locks;" in comment(9.0, cpu_s=2.0)


def test_a_cold_cache_is_named_by_what_was_read() -> None:
    used = replace(usage(2.0), read_bytes=8 << 20)
    assert comment(9.0, cpu_s=2.0, used=used).endswith(
        " for the disk or for locks, because the cache was cold: they read 8.0 MiB."
    )
    several = replace(MEASURED, predicted_processes=3)
    assert comment(9.0, cpu_s=2.0, used=used, start=several).endswith(
        ": the cache was cold, and the tools read 8.0 MiB from the disk."
    )


def test_the_waits_of_several_processes_are_not_taken_from_the_clock() -> None:
    several = replace(MEASURED, predicted_processes=3)
    assert "no cause is recorded" in comment(9.0, cpu_s=2.0, start=several)
    rm_and_rmdir = replace(MEASURED, predicted_processes=2, command=(("rm",), ("/bin/rmdir",)))
    assert "for the disk or for locks" in comment(9.0, cpu_s=2.0, start=rm_and_rmdir)


def test_a_tree_that_had_changed_is_the_cause() -> None:
    assert comment(9.0, deleted=4000).endswith(
        ": it deleted 4,000 entries, and the survey had counted 1,000."
    )
    assert comment(0.2, deleted=100).endswith(
        ": it deleted 100 entries of the 1,000 that were counted."
    )


def test_a_few_more_entries_are_not_the_cause() -> None:
    assert "no cause" in comment(9.0, deleted=1010)


def test_a_rate_limit_is_the_cause_of_all_waits() -> None:
    limited = PaceChanged(1.5, Pace(rate_per_s=100))
    assert comment(9.0, limited, cpu_s=1.0).endswith(
        ": its rate was limited to 100 entries per second."
    )


@pytest.mark.parametrize("rate_per_s, done", [(0, "lifted"), (900, "raised to 900")])
def test_a_limit_that_was_lifted_is_the_cause_of_less_time(rate_per_s: int, done: str) -> None:
    limited = replace(MEASURED, pace=Pace(rate_per_s=400))
    change = PaceChanged(1.1, Pace(rate_per_s=rate_per_s))
    words = f": its limit of 400 entries per second was {done}."
    assert comment(0.5, change, start=limited).endswith(words)
    assert "limit" not in comment(0.5, start=limited)


def test_the_time_of_a_pause_does_not_count() -> None:
    assert comment(9.0, Paused(2.0, 2.0, True), Resumed(9.0), cpu_s=2.0) == ""


def test_the_time_in_which_gentle_mode_stopped_the_tools_is_named() -> None:
    held = Throttled(2.0, "disk", 50.0), Unthrottled(8.5)
    assert comment(9.0, *held, cpu_s=2.5) == (
        "Gentle mode stopped the tools for 6.5 s; without that, the time is within the predicted "
        "range."
    )
    assert comment(19.0, *held, cpu_s=12.5).startswith("Without the throttled time, the deletion")
    # It may catch up with its limit, on which the prediction rests
    limited = replace(MEASURED, pace=Pace(rate_per_s=400))
    short = comment(2.0, Throttled(1.2, "disk", 50.0), Unthrottled(2.9), start=limited)
    assert short == ""


@pytest.mark.parametrize(
    ("start", "words"),
    [
        (replace(MEASURED, source=TraceSource.STRACE), "strace counted its calls, which slows"),
        (replace(MEASURED, predicted_measured_at=0.0), "not rest on a measurement of this file"),
        (replace(MEASURED, predicted_measured_at=1e9 - 40 * DAY_S), "more than a month old"),
    ],
)
def test_what_has_no_known_effect_is_named_if_nothing_else_is(
    start: JobStarted, words: str
) -> None:
    assert words in comment(9.0, start=start)
    assert words not in comment(9.0, start=start, deleted=4000)
