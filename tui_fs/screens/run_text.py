"""The words and rows of the run screen, made from a snapshot."""

from rich.text import Text

from tui_fs.model.calls import REMOVING_CALLS, CallLine, call_lines
from tui_fs.model.events import Throttled
from tui_fs.model.outcome import JobState
from tui_fs.model.snapshot import Snapshot
from tui_fs.model.strategy import IoPriority, Pace
from tui_fs.model.target import in_words
from tui_fs.model.units import bytes_iec, clock, count, counted, duration_span
from widgets.call_table import CallRow
from widgets.stats_line import Figure

_STATE_WORDS = {
    JobState.RUNNING: "deleting",
    JobState.PAUSED: "PAUSED",
}


def place_of(snapshot: Snapshot, state: JobState) -> tuple[str, str, str]:
    """Return what is going on, where, and by which job."""
    started = snapshot.started
    if started is None:
        return "", "starting…", ""
    verb = "deleting gently" if snapshot.pace.gentle else _STATE_WORDS[JobState.RUNNING]
    if state is not JobState.RUNNING:
        verb = _STATE_WORDS.get(state, str(state))
    if snapshot.held is not None:
        verb = f"WAITING: {held_words(snapshot.held)}"
    verb = "cancelling" if snapshot.cancel is not None else verb
    return verb, in_words(started.targets), f"{started.strategy} · job {started.job_id}"


def held_words(held: Throttled) -> str:
    """Return why a gentle job stands still."""
    return f"others wait for the {held.resource}, {held.pressure_percent:.0f} % of the time"


def pace_words(pace: Pace) -> str:
    """Return how fast the job may go, as far as that is limited."""
    words = []
    if pace.gentle:
        words.append("gentle")
    if pace.rate_per_s:
        words.append(f"at most {count(pace.rate_per_s)} /s")
    if pace.nice:
        words.append(f"nice {pace.nice}")
    if pace.io_priority is not IoPriority.NORMAL:
        words.append(f"disk {pace.io_priority}")
    if pace.threads:
        words.append(f"up to {counted(pace.threads, 'thread', 'threads')}")
    return " · ".join(words)


def progress_caption(snapshot: Snapshot) -> str:
    """Return what is done of what, or what is going on before the first entry falls."""
    started = snapshot.started
    if started is None:
        return "starting"
    if snapshot.removed is None:
        return "not counted" if snapshot.calls or snapshot.at_s > 1 else "starting"
    if not snapshot.removed.entries:
        return f"reading the directory; {count(snapshot.expected_entries)} to go"
    about = "" if started.expected.complete else "~"
    removed = count(snapshot.removed.entries)
    return f"{removed} of {about}{count(snapshot.expected_entries)}"


def figures_of(snapshot: Snapshot, state: JobState) -> tuple[Figure, ...]:
    """Return rate, elapsed and left."""
    figures: list[Figure] = []
    if state is not JobState.PAUSED and snapshot.rate_per_s is not None:
        figures.append(Figure("/s", count(round(snapshot.rate_per_s))))
    figures.append(Figure("elapsed", clock(snapshot.elapsed_s), label_first=True))
    if snapshot.eta_s is not None:
        figures.append(Figure("left", duration_span(*snapshot.eta_s, "–"), label_first=True))
    return tuple(figures)


def more_figures_of(snapshot: Snapshot) -> tuple[Figure, ...]:
    """Return entries left, failed, what limits the pace, and how much free space has grown."""
    figures: list[Figure] = []
    if snapshot.removed is not None and snapshot.started is not None:
        entries_left = max(0, snapshot.expected_entries - snapshot.removed.entries)
        figures.append(Figure("to go", count(entries_left)))
    failed = snapshot.failed
    if failed:
        figures.append(Figure("failed", count(failed), tone="danger", label_first=True))
    else:
        figures.append(Figure("failed", "0", label_first=True))
    # What a person has asked for is seen even where not all has room in a line.
    pace = pace_words(snapshot.pace)
    if pace:
        figures.append(Figure("pace", pace, label_first=True))
    freed = _freed(snapshot)
    if freed is not None:
        sign = "+" if freed > 0 else ""
        figures.append(Figure("free space", f"{sign}{bytes_iec(freed)}", label_first=True))
    return tuple(figures)


def rate_caption(snapshot: Snapshot) -> str:
    """Return the highest rate so far."""
    if not snapshot.peak_rate_per_s:
        return ""
    return f"peak {count(round(snapshot.peak_rate_per_s))} /s"


def call_title(snapshot: Snapshot) -> str:
    """Return the panel's title, which names the source."""
    note = snapshot.started.source_note if snapshot.started else "…"
    return f"system calls · {note}"


def call_rows(snapshot: Snapshot) -> tuple[CallRow, ...]:
    """Return the calls, those that are predicted most often first."""
    started = snapshot.started
    predicted = started.predicted_calls if started else {}
    other = started.predicted_other_calls if started else None
    total_s = sum(one.seconds or 0.0 for one in snapshot.calls.values())
    lines = call_lines(snapshot.calls, predicted, other)
    ordered = sorted(lines, key=lambda line: (-line.predicted, -line.counted.calls, line.name))
    return tuple(_row(line, snapshot.call_rates.get(line.name, 0.0), total_s) for line in ordered)


def _row(line: CallLine, rate: float, total_s: float) -> CallRow:
    counted, done = line.counted, ""
    if line.predicted:
        percent = 100 * counted.calls // line.predicted
        done = f"{percent} %" if percent <= 100 else ">100 %"
    share = ""
    if counted.seconds is not None and total_s > 0:
        share = f"{100 * counted.seconds / total_s:.1f} %"
    return CallRow(
        name=line.name,
        calls=count(counted.calls),
        predicted=line.predicted_text,
        done=done,
        errors=count(counted.errors) if counted.errors else "",
        rate=count(round(rate)) if rate >= 1 else "",
        share=share,
        emphasised=line.name in REMOVING_CALLS,
    )


def call_footer(snapshot: Snapshot) -> str:
    """Return kernel and user time of the processes, and kernel time for each entry."""
    usage = snapshot.usage
    if usage is None or not usage.cpu_s:
        return ""
    user_s = max(0.0, usage.cpu_s - usage.system_s)
    text = f"kernel {usage.system_s:.1f} s  user {user_s:.1f} s"
    if snapshot.usage_entries:
        each_us = 1e6 * usage.system_s / snapshot.usage_entries
        text += f" · {each_us:.1f} µs kernel time per entry"
    return text


def usage_line(snapshot: Snapshot) -> Text:
    """Return what the strategy's processes use."""
    usage = snapshot.usage
    text = Text(no_wrap=True, overflow="ellipsis")
    if usage is None:
        text.append("processes not measured yet" if snapshot.started else "", "dim")
        return text
    plural = "process" if usage.processes == 1 else "processes"
    text.append(f"{usage.processes} {plural}")
    text.append(f" ({usage.busiest})" if usage.busiest else "", "dim")
    if snapshot.threads:
        text.append(f" · {counted(snapshot.threads, 'thread', 'threads')}")
    if usage.cpu_percent is not None:
        text.append(f" · cpu {usage.cpu_percent:.0f} %")
    text.append(f" · {bytes_iec(usage.rss_bytes)}")
    if snapshot.io_pressure_percent is not None:
        text.append(f" · io pressure {snapshot.io_pressure_percent:.0f} %")
    if usage.read_bytes is not None and usage.written_bytes is not None:
        text.append(f" · r {bytes_iec(usage.read_bytes)} w {bytes_iec(usage.written_bytes)}")
    return text


def missing_lines(snapshot: Snapshot) -> Text:
    """Return a line for each figure that cannot be measured, with the reason."""
    missing = snapshot.started.missing_figures if snapshot.started else ()
    return Text("\n".join(one.sentence for one in missing), style="dim")


def _freed(snapshot: Snapshot) -> int | None:
    before = snapshot.started.space if snapshot.started else None
    if before is None or snapshot.space is None:
        return None
    return snapshot.space.free_bytes - before.free_bytes
