"""Follow a job to its end: a status line or a stream of events, then the report."""

import contextlib
import os
import time
from typing import TYPE_CHECKING

from tui_fs.cli.command_process import Notice, notify_watcher
from tui_fs.cli.exit_codes import exit_code_of_job
from tui_fs.cli.interrupts import Interrupts
from tui_fs.cli.output import (
    OutputLost,
    StatusLine,
    columns,
    note,
    print_json_line,
    print_text,
)
from tui_fs.job.control import send
from tui_fs.job.report_text import (
    call_lines_of,
    calls_title,
    figures,
    harmless_errors,
    remarks,
)
from tui_fs.job.store import JobFolder
from tui_fs.model.codec import encode
from tui_fs.model.command import Command
from tui_fs.model.errors import JobFailed
from tui_fs.model.events import Event
from tui_fs.model.outcome import JobState
from tui_fs.model.paths import harmless
from tui_fs.model.snapshot import Snapshot
from tui_fs.model.target import command_lines, in_words
from tui_fs.model.units import clock, count, duration_span, percent_done

if TYPE_CHECKING:
    from tui_fs.job.report import Report
    from tui_fs.job.view import JobView
    from tui_fs.model.events import JobStarted

_FIRST_POLL_S, _MAX_POLL_S, _POLL_SHARE = 0.005, 0.25, 0.1
"""The interval is a tenth of the time the job has taken, within these limits."""

_LIVE_AFTER_S = 0.25
"""A job measures its counts so long after its start. To ask for them earlier would delay it."""

_ENDS_SOON_S = 3.0
"""A job that is cancelled ends within a second, unless a tool waits in the kernel."""


def follow(
    folder: JobFolder, interrupts: Interrupts, *, as_json: bool, interrupting_cancels: bool
) -> int:
    """Follow a job until it is over; return its exit code.

    A second signal stops following a job that does not end.

    Args:
        interrupts: created before the job starts, so that no signal is missed.
        interrupting_cancels: SIGINT and SIGTERM cancel the job; otherwise this function only
            stops following it.
    """
    from tui_fs.job.view import JobView  # loaded while the supervisor works

    view = JobView(folder)
    try:
        is_over = _watch(view, folder, interrupts, as_json, interrupting_cancels)
    except OutputLost:
        note(f"tui-fs: job {folder.job_id} continues; to follow it: tui-fs attach {folder.job_id}")
        raise
    if not is_over:
        state = "has not ended yet" if interrupting_cancels else "continues"
        note(f"tui-fs: job {folder.job_id} {state}; to follow it: tui-fs attach {folder.job_id}")
        return interrupts.exit_code
    report = view.report()
    try:
        if as_json:
            print_json_line(report.to_json())
        else:
            print_text(report_as_text(report))
    except OutputLost:
        note(
            f"tui-fs: job {folder.job_id} has ended: {view.state}; to see its report: "
            f"tui-fs attach {folder.job_id}"
        )
        raise
    if view.state is JobState.CANCELLED and interrupts.received is not None:
        return interrupts.exit_code
    return exit_code_of_job(view.state, view.snapshot)


def _watch(
    view: "JobView",
    folder: JobFolder,
    interrupts: Interrupts,
    as_json: bool,
    interrupting_cancels: bool,
) -> bool:
    """Show a job until its end; return False if a signal stopped the following earlier."""

    def print_event(event: Event) -> None:
        print_json_line(encode(event))

    notify_watcher(
        Notice.HINT,
        "Ctrl-C cancels the job."
        if interrupting_cancels
        else "Ctrl-C stops following; the job continues.",
    )
    interrupts.note_stops()
    line = StatusLine()
    is_signal_seen = has_cancelled = is_watched = is_wait_reported = False
    cancelled_s = 0.0
    began_s = time.monotonic()
    while True:
        is_new = interrupting_cancels and time.monotonic() - began_s < _LIVE_AFTER_S
        poll = view.poll if is_new else view.poll_live
        poll(print_event if as_json else lambda _: None)
        view.refuse_elsewhere()
        if view.is_over:
            line.clear()
            return True
        if not is_watched and view.snapshot.started is not None:
            is_watched = True
            with contextlib.suppress(ProcessLookupError):  # the supervisor has just exited
                session = os.getsid(view.snapshot.started.supervisor_pid)
                notify_watcher(Notice.SESSION, str(session))
        line.show(status(view.snapshot, view.state), view.snapshot.fraction)
        if interrupts.is_stop_wanted:
            line.clear()
            note(
                f"tui-fs: Only this command is stopped; job {folder.job_id} continues. "
                f"To pause the job: tui-fs pause {folder.job_id}"
            )
            interrupts.stop()
        if interrupts.received is not None and not has_cancelled and interrupting_cancels:
            if not is_signal_seen:
                interrupts.came_again = False  # a repeated key counts as one signal
            is_signal_seen, has_cancelled = True, _cancel(folder)
            cancelled_s = time.monotonic()
        if (
            has_cancelled
            and not is_wait_reported
            and time.monotonic() >= cancelled_s + _ENDS_SOON_S
        ):
            is_wait_reported = True
            line.clear()
            note("tui-fs: The job is cancelled but has not ended yet. Ctrl-C stops waiting for it.")
        if interrupts.came_again or (interrupts.received and not interrupting_cancels):
            line.clear()
            return False
        so_far_s = time.monotonic() - began_s
        time.sleep(min(_MAX_POLL_S, max(_FIRST_POLL_S, _POLL_SHARE * so_far_s)))


def status(snapshot: Snapshot, state: JobState) -> str:
    """Return the state of a running job in one line."""
    started = snapshot.started
    if started is None:
        return "starting"
    words = [str(started.strategy), str(state)]
    if snapshot.fraction is not None:
        words.append(percent_done(snapshot.fraction))
    if snapshot.failed:
        words.append(f"failed {count(snapshot.failed)}")
    if snapshot.eta_s is not None:
        words.append(f"left {duration_span(*snapshot.eta_s)}")
    if snapshot.throttled is not None:
        pressure = snapshot.throttled
        words.append(f"throttled, {pressure.resource} pressure {pressure.pressure_percent:.0f} %")
    if snapshot.removed is not None:
        words.append(f"{count(snapshot.removed.entries)} of {count(snapshot.expected_entries)}")
    if snapshot.rate_per_s:
        words.append(f"{count(round(snapshot.rate_per_s))} /s")
    words.append(f"elapsed {clock(snapshot.elapsed_s)}")
    return "  ".join(words)


def _cancel(folder: JobFolder) -> bool:
    try:
        send(folder, Command("cancel"))
    except JobFailed:
        return False  # the job has just ended, or is busy: the next round tries again
    return True


def report_as_text(report: "Report") -> str:
    """Return the report of a job as text."""
    lines, started = [f"{report.outcome}: {harmless(report.explanation)}"], report.started
    if started is None:
        return "\n".join(lines)
    targets = in_words(started.targets, started.share, is_filtered=started.is_filtered)
    rows: list[tuple[str, ...]] = [
        ("target", targets),
        ("strategy", started.strategy),
        *figures(report, started),
    ]
    lines.append(columns(rows, frozenset()))
    lines += [line.text for line in remarks(report, started)]
    if report.syscalls:
        lines += ["", calls_title(report, started), _calls(report, started)]
    lines += [""]
    lines += [f"$ {line}" for line in command_lines(started.command)]
    return "\n".join(lines)


def _calls(report: "Report", started: "JobStarted") -> str:
    rows: list[tuple[str, ...]] = [("system call", "calls", "predicted", "errors", "")]
    lines = call_lines_of(report, started)
    for line in lines:
        calls, errors = line.counted.calls, line.counted.errors
        number = count(errors) if errors else ""
        rows.append((line.name, count(calls), line.predicted_text, number, line.note))
    return "\n".join((columns(rows, frozenset({1, 2, 3})), *harmless_errors(lines)))
