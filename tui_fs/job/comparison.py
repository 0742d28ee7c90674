"""Two jobs side by side, the same for the command line and the screen."""

from collections.abc import Callable
from typing import NamedTuple

from msgspec import Struct

from tui_fs.job.report import cpu_times
from tui_fs.job.store import JobFolder
from tui_fs.job.view import JobView
from tui_fs.model.calls import EXPLAINED_CALLS, OTHER_CALLS_LABEL, CallGroup, guide_of
from tui_fs.model.codec import Json
from tui_fs.model.errors import BadInput
from tui_fs.model.events import Event
from tui_fs.model.outcome import JobState
from tui_fs.model.paths import PathStr
from tui_fs.model.snapshot import not_standing
from tui_fs.model.strategy import StrategyName
from tui_fs.model.target import in_words, target_fields
from tui_fs.model.units import bytes_iec, count, duration, shown_ratio

_SAME_SIZE = 0.01
"""Trees that differ by less than this share of their entries are compared by their times."""


class JobFigures(Struct, frozen=True):
    """What a comparison shows of a job; None where nothing counted or measured it.

    Attributes:
        place: what it deletes, in words.
        file_system: its type; empty for a job that did not record it.
        expected_entries: according to the survey.
        is_survey_complete: `expected_entries` is not only a lower bound.
        working_s: time in which its tools ran, without pauses.
        throttled_s: the part of it in which they were throttled.
        rate_limit_per_s: the present or last limit; 0 for none.
        is_peak_sampled: `peak_memory_bytes` is the largest sample of all processes at once, as the
            job has no end.
        syscalls: calls by name.
        trace_note: their source, in words.
    """

    job_id: str
    place: str
    targets: tuple[PathStr, ...]
    strategy: StrategyName
    file_system: str
    state: JobState
    expected_entries: int
    is_survey_complete: bool
    deleted_entries: int | None
    failed: int
    working_s: float
    throttled_s: float
    rate_limit_per_s: int
    cpu_s: float | None
    peak_memory_bytes: int | None
    is_peak_sampled: bool
    syscalls: dict[str, int]
    trace_note: str

    @property
    def entries_per_s(self) -> float | None:
        """The mean rate."""
        if self.deleted_entries is None or self.working_s <= 0:
            return None
        return self.deleted_entries / self.working_s

    def calls_of(self, group: CallGroup) -> dict[str, int]:
        """Return the calls of a group by name; calls without an own row have one together."""
        calls: dict[str, int] = {}
        for name, number in self.syscalls.items():
            label = name if name in EXPLAINED_CALLS else OTHER_CALLS_LABEL
            if guide_of(label).group is group:
                calls[label] = calls.get(label, 0) + number
        return calls

    def to_json(self) -> dict[str, Json]:
        """Return the JSON object."""
        return {
            "id": self.job_id,
            **target_fields(self.targets),
            "strategy": self.strategy,
            "file_system": self.file_system or None,
            "state": self.state.value,
            "expected_entries": self.expected_entries,
            "is_survey_complete": self.is_survey_complete,
            "deleted_entries": self.deleted_entries,
            "failed": self.failed,
            "working_s": round(self.working_s, 4),
            "throttled_s": round(self.throttled_s, 3),
            "rate_limit_per_s": self.rate_limit_per_s or None,
            "entries_per_s": self.entries_per_s and round(self.entries_per_s, 1),
            "cpu_s": self.cpu_s and round(self.cpu_s, 3),
            "peak_memory_bytes": self.peak_memory_bytes,
            "syscalls": dict(self.syscalls),
            "trace_note": self.trace_note,
        }


class ComparedJob:
    """A job of a comparison, which may still run."""

    def __init__(self, folder: JobFolder) -> None:
        """Open a job.

        Raises:
            BadInput: its plan is damaged.
        """
        self.view = JobView(folder)

    def poll(self, handle: Callable[[Event], None] = lambda _: None) -> JobFigures:
        """Return the present figures.

        Args:
            handle: called with each new event.

        Raises:
            BadInput: the journal is damaged.
            JobFailed: the job belongs to another host and has no end yet.
        """
        self.view.poll_live(handle)
        self.view.refuse_elsewhere()
        return self._figures()

    def _figures(self) -> JobFigures:
        plan, snapshot = self.view.plan, self.view.snapshot
        is_ended = snapshot.finished is not None
        if not is_ended:
            snapshot = not_standing(snapshot, snapshot.at_s)  # an open pause is no work
        deleted = snapshot.removed.entries if snapshot.removed else None
        end = snapshot.finished
        if end is not None and end.deleted_files is not None:
            deleted = end.reported_entries
        peak_bytes = snapshot.peak_memory_bytes if is_ended else snapshot.sampled_memory_bytes
        is_unmeasured = not is_ended and snapshot.usage is None
        filters = plan.options.filters
        return JobFigures(
            job_id=self.view.folder.job_id,
            place=in_words(plan.paths, filters.share, is_filtered=filters.active),
            targets=plan.paths,
            strategy=plan.strategy,
            file_system=plan.file_system,
            state=self.view.state,
            expected_entries=plan.expected.totals.entries,
            is_survey_complete=plan.expected.complete,
            deleted_entries=deleted,
            failed=snapshot.failed,
            working_s=max(0.0, snapshot.elapsed_s - snapshot.paused_s),
            throttled_s=snapshot.held_s,
            rate_limit_per_s=snapshot.pace.rate_per_s,
            cpu_s=None if is_unmeasured else sum(cpu_times(snapshot)),
            peak_memory_bytes=peak_bytes or None,
            is_peak_sampled=not is_ended,
            syscalls={name: calls.calls for name, calls in snapshot.calls.items()},
            trace_note=snapshot.started.source_note if snapshot.started else "",
        )


class Row(NamedTuple):
    """A line of the comparison.

    Attributes:
        cells: label, the first job, the second job, and the second divided by the first.
        note: an explanation below the line; empty for none.
    """

    cells: tuple[str, str, str, str]
    note: str = ""


def refuse_same(first: str, second: str) -> None:
    """Raise BadInput if two identifiers name one job."""
    if first == second:
        raise BadInput(f"Both are job {first}.", "Compare it with another job.")


def figure_rows(first: JobFigures, second: JobFigures) -> list[Row]:
    """Return strategy, state, entries, time, rate and costs."""

    def words(label: str, text_of: Callable[[JobFigures], str]) -> Row:
        return Row((label, text_of(first), text_of(second), ""))

    def figures(
        label: str,
        value_of: Callable[[JobFigures], float | None],
        text_of: Callable[[JobFigures, float], str],
    ) -> Row:
        def text(job: JobFigures) -> str:
            value = value_of(job)
            return "?" if value is None else text_of(job, value)

        ratio = _ratio(value_of(first), value_of(second))
        return Row((label, text(first), text(second), ratio))

    return [
        words("strategy", lambda job: job.strategy),
        words("file system", lambda job: job.file_system or "unknown"),
        words("state", lambda job: str(job.state)),
        figures(
            "entries",
            lambda job: job.expected_entries,
            lambda job, value: ("" if job.is_survey_complete else "at least ") + count(int(value)),
        ),
        figures("deleted", lambda job: job.deleted_entries, lambda _, value: count(int(value))),
        figures("failed", lambda job: job.failed, lambda _, value: count(int(value))),
        figures("time", lambda job: job.working_s, lambda _, value: duration(value)),
        figures(
            "rate", lambda job: job.entries_per_s, lambda _, value: f"{count(round(value))} /s"
        ),
        figures("cpu", lambda job: job.cpu_s, lambda _, value: f"{value:,.1f} s"),
        figures(
            "peak memory",
            lambda job: job.peak_memory_bytes,
            lambda job, value: ("sampled " if job.is_peak_sampled else "") + bytes_iec(int(value)),
        ),
    ]


def call_rows(first: JobFigures, second: JobFigures) -> list[Row]:
    """Return the system calls of each group and, indented, of each name in it."""
    rows: list[Row] = []
    jobs = (first, second)

    def row(label: str, numbers: list[int]) -> Row:
        texts = [count(n) if job.syscalls else "?" for job, n in zip(jobs, numbers, strict=True)]
        return Row((label, texts[0], texts[1], _ratio(*numbers)))

    for group in CallGroup:
        calls = [job.calls_of(group) for job in jobs]
        names = sorted({*calls[0], *calls[1]}, key=lambda name: -max(c.get(name, 0) for c in calls))
        if not names:
            continue
        rows.append(row(str(group), [sum(named.values()) for named in calls]))
        if len(names) > 1 or group is not CallGroup.START:
            rows += [row(f"  {name}", [c.get(name, 0) for c in calls]) for name in names]
    return rows


def _ratio(first: float | None, second: float | None) -> str:
    return shown_ratio(second / first) if first and second else ""


def remarks(first: JobFigures, second: JobFigures) -> list[str]:
    """Return sentences on times that cannot be compared."""
    sentences = []
    deleted = [job.deleted_entries for job in (first, second)]
    advice = "compare the rates, not the times."
    if _differ(first.expected_entries, second.expected_entries):
        numbers = " and ".join(count(job.expected_entries) for job in (first, second))
        sentences.append(f"Entries differ: {numbers}; {advice}")
    elif deleted[0] is not None and deleted[1] is not None and _differ(deleted[0], deleted[1]):
        numbers = f"{count(deleted[0])} and {count(deleted[1])}"
        sentences.append(f"Deleted entries differ: {numbers}; {advice}")
    for job in (first, second):
        if job.rate_limit_per_s:
            limit = count(job.rate_limit_per_s)
            sentences.append(f"Job {job.job_id} had a limit of {limit} entries per second.")
        elif job.throttled_s:
            share = duration(job.throttled_s)
            sentences.append(f"Job {job.job_id} was throttled for {share} of its time.")
    return sentences


def call_remark(first: JobFigures, second: JobFigures) -> str:
    """Return why calls cannot be compared; empty if they can."""
    uncounted = [job.job_id for job in (first, second) if not job.syscalls]
    if uncounted:
        return f"No system calls were counted of job {' and '.join(uncounted)}."
    if first.trace_note == second.trace_note:
        return ""
    return (
        "Different sources may count different calls: "
        f"{first.job_id}: {first.trace_note}; {second.job_id}: {second.trace_note}."
    )


def _differ(first: int, second: int) -> bool:
    return abs(first - second) > _SAME_SIZE * max(first, second)


def comparison_json(first: JobFigures, second: JobFigures) -> dict[str, Json]:
    """Return the comparison as a JSON object; a ratio is the second divided by the first."""
    jobs = [first.to_json(), second.to_json()]
    ratios: dict[str, Json] = {}
    for name in _RATIOS:
        values = [job[name] for job in jobs]
        ratios[name] = round(values[1] / values[0], 4) if all(values) else None
    return {
        "type": "comparison",
        "jobs": jobs,
        "ratios": ratios,
        "remarks": [*remarks(first, second), *filter(None, [call_remark(first, second)])],
    }


_RATIOS = (
    "expected_entries",
    "deleted_entries",
    "working_s",
    "entries_per_s",
    "cpu_s",
    "peak_memory_bytes",
)
