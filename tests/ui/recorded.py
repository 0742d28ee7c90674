"""Recorded surveys and journals, and a function that renders a screen as text."""

import os
import time
from collections.abc import Callable, Sequence
from functools import partial

from msgspec.structs import replace
from textual.app import App
from textual.pilot import Pilot
from textual.screen import Screen

import tui_fs
from tests.conftest import DEADLINE_S
from tui_fs.app import TRUECOLOR_THEME, TuiFsApp
from tui_fs.job.journal import JournalWriter
from tui_fs.job.report import report_of
from tui_fs.job.store import JobFolder, write_json
from tui_fs.model.caller import CallerIdentity
from tui_fs.model.calls import CallCount, Removed, TraceSource
from tui_fs.model.codec import encode
from tui_fs.model.events import (
    CancelRequested,
    EntryFailed,
    Event,
    JobFinished,
    JobRefused,
    JobStarted,
    Paused,
    Sampled,
    StepFinished,
    StepStarted,
    Usage,
)
from tui_fs.model.finding import Finding, FindingKind, Severity
from tui_fs.model.outcome import JobState, Outcome
from tui_fs.model.paths import PathStr
from tui_fs.model.plan import Expected, Plan
from tui_fs.model.quick_estimate import Interval, QuickEstimate
from tui_fs.model.snapshot import Snapshot, fold
from tui_fs.model.space import Space
from tui_fs.model.strategy import Options, Pace, StrategyName
from tui_fs.model.survey import LargeDirectory, Survey, Totals
from tui_fs.model.target import Pin, Target

SPOOL = PathStr("/srv/spool")
MAILDROP = PathStr("/srv/spool/maildrop")
RM = ("/usr/bin/rm", "-rf", "--one-file-system", "--", MAILDROP)
SPACE = Space(20 << 30, 1_000_000)
MAIL_TOTALS = Totals(1_204_112, 1, 0, 0, 5_046_586_572, 5_046_586_572)

FLAT = Finding(
    FindingKind("flat"),
    Severity.WARNING,
    MAILDROP,
    {"entries": 1_204_112},
    "1,204,112 names in one directory: listing it reads all of them.",
    "Shell patterns (rm *) fail here; every strategy of tui-fs copes with it.",
)


def spool_survey(*, finished: bool = True, unreadable: int = 0) -> Survey:
    """A spool directory with a huge flat directory, hostile names and a link."""
    return Survey(
        path=SPOOL,
        totals=Totals(1_274_926, 4_112, 1, 1, 6_000_000_000, 6_012_000_000),
        freed_bytes_min=6_012_000_000,
        freed_bytes_max=6_012_000_000,
        max_depth=4,
        max_path_bytes=61,
        max_entries_in_directory=1_204_112,
        largest=(LargeDirectory(MAILDROP, 1_204_112, 39_845_888),),
        findings=(FLAT,),
        unreadable=unreadable,
        elapsed_s=3.2,
        finished=finished,
        complete=finished and not unreadable,
    )


def maildrop_survey(*, finished: bool = True, longest_path: int = 52) -> Survey:
    """The huge flat directory itself."""
    return Survey(
        path=MAILDROP,
        totals=MAIL_TOTALS,
        freed_bytes_min=MAIL_TOTALS.allocated_bytes,
        freed_bytes_max=MAIL_TOTALS.allocated_bytes,
        max_depth=1,
        max_path_bytes=longest_path,
        max_entries_in_directory=1_204_112,
        non_empty_directories=1,
        directory_reads=1_471,
        non_directory_path_bytes=1_204_112 * 52,
        largest=(LargeDirectory(MAILDROP, 1_204_112, 39_845_888),),
        findings=(FLAT,),
        elapsed_s=2.1,
        finished=finished,
        complete=finished,
    )


MAIL_ESTIMATE = QuickEstimate(
    entries=Interval(1_180_000, 1_203_871, 1_230_000),
    directories=Interval(1, 1, 1),
    allocated_bytes=Interval(4_900_000_000, 5_046_000_000, 5_200_000_000),
    elapsed_s=1.0,
    is_complete=False,
    samples=200,
    basis="Extrapolated from a part of the directory.",
    survey=Survey(
        path=MAILDROP,
        totals=replace(MAIL_TOTALS, files=1_203_870),
        max_entries_in_directory=1_203_871,
        non_empty_directories=1,
        directory_reads=1_471,
        non_directory_path_bytes=1_203_870 * 52,
        max_depth=1,
        max_path_bytes=52,
    ),
)


def plan(job_id: str = "7f3a01") -> Plan:
    """The plan behind the recorded journals."""
    return Plan(
        job_id=job_id,
        created_at=1_700_000_000.0,
        targets=(Target(MAILDROP, Pin(1, 2, 3)),),
        strategy=StrategyName("rm"),
        options=Options(),
        tools={"rm": "/usr/bin/rm", "find": "/usr/bin/find"},
        expected=_expected(),
        predicted=None,
        confirmed_from=PathStr("/root"),
        requester=CallerIdentity(0, "root", "", "", "", ""),
    )


def _expected() -> Expected:
    allocated = MAIL_TOTALS.allocated_bytes
    return Expected(MAIL_TOTALS, allocated, allocated, True)


STARTED = JobStarted(
    at_s=0.1,
    job_id="7f3a01",
    started_at=1_700_000_000.0,
    supervisor_pid=4122,
    targets=(MAILDROP,),
    strategy=StrategyName("rm"),
    keep_root=False,
    command=(RM,),
    expected=_expected(),
    predicted_calls={
        "unlinkat": 1_204_113,
        "getdents64": 1_472,
        "close": 8,
        "fcntl": 5,
        "newfstatat": 6,
        "openat": 4,
        "execve": 1,
    },
    predicted_seconds=(5.8, 14.5, 36.2),
    source=TraceSource.PERF,
    source_note="live kernel counters, exact",
    space=SPACE,
)


def sampled(second: int, entries: int) -> Sampled:
    """A sample of the counters after some seconds."""
    return Sampled(
        at_s=0.2 + second,
        strategy_s=float(second),
        calls={
            "unlinkat": CallCount(entries),
            "getdents64": CallCount(entries // 820),
            "openat": CallCount(4),
            "execve": CallCount(1),
        },
        removed=Removed(entries, 0),
        usage=Usage(second * 0.99, second * 0.96, 98.0, 31 << 20, 1 << 20, 64 << 20, 1, "rm 4123"),
        space=Space(SPACE.free_bytes + entries * 4096, 1_000_000 + entries),
        io_pressure_percent=12.0,
    )


RUNNING: tuple[Event, ...] = (
    STARTED,
    StepStarted(0.2, 0, (4123,)),
    *(sampled(second, second * 81_204) for second in range(1, 9)),
)
BY_THE_ENGINE: tuple[Event, ...] = (
    replace(
        STARTED,
        strategy=StrategyName("parallel"),
        command=(("/usr/bin/tui-fs-engine", "delete", "--every", "50", "--", MAILDROP),),
        predicted_calls={"unlinkat": 1_204_113, "getdents64": 184, "close": 1, "statx": 1},
        source=TraceSource.ENGINE,
        source_note="the engine's own counters, exact, with times",
        pace=Pace(threads=2),
    ),
    StepStarted(0.2, 0, (4123,)),
    *(
        replace(
            sampled(second, second * 81_204),
            calls={
                "unlinkat": CallCount(second * 81_204, 0, second * 1.9),
                "getdents64": CallCount(second * 20, 0, second * 0.01),
                "fcntl": CallCount(second * 6, 0, second * 0.001),
            },
            threads=2,
        )
        for second in range(1, 9)
    ),
)
FAILED = EntryFailed(5.0, PathStr(f"{MAILDROP}/[red]\n\x1b[2J"), "remove", 1)
PAUSED: tuple[Event, ...] = (*RUNNING, Paused(8.4, 8.4, True))
FAILING: tuple[Event, ...] = (
    *RUNNING,
    FAILED,
    EntryFailed(8.3, PathStr(f"{MAILDROP}/locked"), "remove", 13),
)


def ended(outcome: Outcome, explanation: str, deleted: int, left: int) -> tuple[Event, ...]:
    """A journal with an end."""
    return (
        *RUNNING,
        *((FAILED,) if outcome is Outcome.PARTIAL else ()),
        *((CancelRequested(9.0, "cancelled by UID 0"),) if outcome is Outcome.CANCELLED else ()),
        sampled(15, deleted),
        StepFinished(15.1, 0, (0 if outcome is Outcome.DONE else 1,), 0.3, 14.2, 31 << 20),
        JobFinished(
            at_s=15.2,
            outcome=outcome,
            explanation=explanation,
            strategy_wall_s=14.9,
            deleted_files=deleted - (1 if outcome is Outcome.DONE else 0),
            deleted_directories=1 if outcome is Outcome.DONE else 0,
            split_is_exact=True,
            surviving_entries=left,
            space=Space(SPACE.free_bytes + deleted * 4096, 1_000_000 + deleted),
            left=(MAILDROP,) if left else (),
        ),
    )


REFUSED: tuple[Event, ...] = (
    JobRefused(
        0.1,
        "changed",
        f"{MAILDROP} is not the directory that was confirmed: it was replaced.",
        "Look at it again and confirm anew.",
    ),
)


def record(events: Sequence[Event], *, job_id: str = "7f3a01") -> JobFolder:
    """Write a job of these events below the current directory; return its folder."""
    folder = JobFolder(os.path.join("jobs", job_id))
    os.makedirs(folder.path)
    write_json(folder.plan, {"schema": 2, **encode(plan(job_id))})
    writer = JournalWriter(folder.journal)
    snapshot = Snapshot()
    for event in events:
        writer.write(event)
        snapshot = fold(snapshot, event)
    if snapshot.finished is not None or snapshot.refused is not None:
        errors = [event for event in events if isinstance(event, EntryFailed)]
        state = snapshot.state or JobState.DIED
        write_json(folder.report, report_of(snapshot, state, errors).to_json())
    return folder


class Host(TuiFsApp):
    """The application, opened on one screen."""

    CSS_PATH = os.path.join(os.path.dirname(tui_fs.__file__), "app.tcss")

    def __init__(self, screen: Screen[None], theme: str = TRUECOLOR_THEME) -> None:
        super().__init__("/", theme=theme)
        self._first = screen

    def first_screen(self) -> Screen[None]:
        """Return the screen under test."""
        return self._first


def screen_text(app: App[None]) -> str:
    """Return what the terminal shows, line by line."""
    strips = app.screen._compositor.render_strips()  # the public export is a picture
    lines = ["".join(segment.text for segment in strip).rstrip() for strip in strips]
    return "\n".join(lines) + "\n"


SIZES = ((80, 24), (40, 15), (60, 20), (120, 40), (200, 50))


def has_size(pilot: Pilot[None], size: tuple[int, int]) -> bool:
    """Return whether the screen is laid out for a size."""
    return pilot.app.screen._compositor.size == size


async def at_all_sizes(pilot: Pilot[None]) -> str:
    """Return what the screen shows at each size, one below the other."""
    pictures = ""
    for size in SIZES:
        await pilot.resize_terminal(*size)
        await until(pilot, partial(has_size, pilot, size))
        before: list[str] = []
        while len(before) < 3 or len(set(before[-3:])) > 1:  # dialogs are laid out twice
            await settle(pilot)
            before.append(screen_text(pilot.app))
        pictures += f"━━ {size[0]}×{size[1]}\n{before[-1]}\n"
    return pictures


async def until(pilot: Pilot[None], condition: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + DEADLINE_S
    pause_s = 0.025
    while time.monotonic() < deadline:
        await pilot.pause(pause_s)
        if condition():
            return
        pause_s = min(1.1 * pause_s, 0.2)  # each look draws the screen
    raise AssertionError(f"The condition never held:\n{screen_text(pilot.app)}")


async def wait_for(pilot: Pilot[None], words: str) -> None:
    """Wait until the screen shows some words."""
    await until(pilot, lambda: words in screen_text(pilot.app))


async def settle(pilot: Pilot[None]) -> None:
    """Wait until workers that will end have ended and all messages are drawn."""
    await pilot.pause()
    for worker in list(pilot.app.workers):
        is_endless = worker.group in ("follow", "survey", "lab-run", "start")
        if not is_endless and "JobsScreen" not in repr(worker.node):
            await worker.wait()
    await pilot.pause()
