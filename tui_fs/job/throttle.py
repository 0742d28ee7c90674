"""Stops and continues the tools: for a pause, a rate limit, gentle mode or a failed check."""

import contextlib
import signal
import time
from collections.abc import Callable, Iterable

from msgspec import Struct
from msgspec.structs import replace

from tui_fs.job.launcher import Launcher
from tui_fs.job.sampling import SampleSchedule
from tui_fs.linux.limits import measured
from tui_fs.linux.pressure import PRESSURE_CPU, PRESSURE_IO, DiskLoad, PressureMeter
from tui_fs.linux.processes import all_stopped, none_continued
from tui_fs.model.command import Command
from tui_fs.model.events import Event, PaceChanged, Throttled, ToolSaid, Unthrottled
from tui_fs.model.strategy import IoPriority, Pace

LONGEST_SAVING_S = 0.25
"""Unused tokens expire after this long, so no burst follows a pause."""
SHORTEST_LOOK_S, LONGEST_LOOK_S = 0.002, 0.05
LOOK_EVERY_S = 0.25
STOPPED_WITHIN_S = 0.2
LIMITED_NICE = 10
"""Tools under a rate limit rank below the supervisor, which must stop them in time."""
_PAUSE, _RATE, _GENTLE, _CHECK = "pause", "rate", "gentle", "check"
CONTINUED_BY_OTHERS = (
    "tui-fs: another process continued the tools during the pause; they were stopped again."
)

ASK_ABOVE_PERCENT = 20.0
OTHERS_WAIT_ABOVE_PERCENT = 10.0
GENTLE_NICE = 19
ASKING_S = 0.1
RUN_S, HOLD_S = 0.1, 0.6
"""While other processes wait, the tools run for a seventh of the time. Even if the tools took the
whole disk then, the others would keep more than four fifths of it."""
_SHORTEST_S = 0.01
FIRST_TRUST_S, LONGEST_TRUST_S = 1.0, 8.0
"""After a stop in which no other process waited, the tools run for this long without a further
stop. The time doubles up to the second value."""


class RateLimit:
    """A token bucket: each removed entry takes a token, and time adds new ones.

    The tools cannot slow down by themselves. They overshoot until the next poll, and stay stopped
    until the debt is paid: on average the rate is exact to the entry.
    """

    def __init__(self, per_s: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_s = per_s
        self._clock = clock
        self._looked_at = clock()
        self._removed: int | None = None
        self._tokens = 0.0
        self._speed_per_s = 0.0
        self._is_empty = False

    def hold_s(self, removed: int) -> float:
        """Return how many seconds the tools must be stopped now; 0 if they may run.

        Args:
            removed: entries removed since the start of the job.
        """
        now = self._clock()
        passed_s, self._looked_at = now - self._looked_at, now
        before, self._removed = self._removed, removed
        taken = removed - (removed if before is None else before)
        if passed_s > 0 and not self._is_empty:
            self._speed_per_s = max(taken / passed_s, self._speed_per_s / 2)
        saved = max(1.0, self._per_s * LONGEST_SAVING_S)
        self._tokens = min(saved, self._tokens + self._per_s * passed_s) - taken
        self._is_empty = self._tokens < 1
        if not self._is_empty:
            return 0.0
        return max(SHORTEST_LOOK_S, (1 - self._tokens) / self._per_s)

    def step_begins(self) -> None:
        """Forget the speed of the last tools; the next may remove thousands before a poll."""
        self._speed_per_s = 0.0

    @property
    def poll_interval_s(self) -> float:
        """How long the tools may run before the next poll, in seconds."""
        if not self._speed_per_s:
            return SHORTEST_LOOK_S
        return min(LONGEST_LOOK_S, max(SHORTEST_LOOK_S, self._tokens / self._speed_per_s))


class Pressure(Struct, frozen=True):
    """Other processes wait for a resource.

    Attributes:
        resource: ``disk`` or ``processors``.
        percent: the share of the time since the last poll in which processes waited.
    """

    resource: str
    percent: float


Measure = Callable[[], float | None]
"""Returns the pressure since the last call in percent; None if the kernel reports none."""


def disk_pressure(devices: Iterable[int]) -> Measure:
    """Return a measure of disk pressure; without PSI it is the highest load of the devices."""
    pressure, loads = PressureMeter(PRESSURE_IO), [DiskLoad(device) for device in devices]

    def percent() -> float | None:
        waited, busy = pressure.percent(), [load.percent() for load in loads]
        known = [load for load in busy if load is not None]
        return max(known, default=None) if waited is None else waited

    return percent


class PressureThrottle:
    """Gentle mode: decides by the pressure since the last decision whether the tools may run.

    Pressure stall information reports how much of the time processes waited, not which ones. It
    includes the waiting of the tools while they run, and only that of other processes while the
    tools are stopped. So a high pressure leads to a short stop, and the pressure during the stop
    decides.
    """

    def __init__(
        self,
        disk: Measure | None = None,
        processors: Measure | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._disk = disk or PressureMeter(PRESSURE_IO).percent
        self._processors = processors or PressureMeter(PRESSURE_CPU).percent
        self._clock = clock
        self._held_since: float | None = None
        self._others_wait = False
        self._trusts_until = 0.0
        self._trust_s = FIRST_TRUST_S

    @property
    def holds(self) -> bool:
        """Whether gentle mode stops the tools now."""
        return self._held_since is not None

    def decide(self) -> tuple[Pressure | None, float]:
        """Return the pressure if the tools must stop, and the seconds until the next decision."""
        now = self._clock()
        waiting = self._waiting()
        if self._held_since is None:
            return self._decide_running(now, waiting)
        return self._decide_held(now, waiting, now - self._held_since)

    def reset(self) -> None:
        """Forget a hold, because the tools run or are stopped for another reason."""
        self._held_since = None
        self._others_wait = False

    def _decide_running(
        self, now: float, waiting: Pressure | None
    ) -> tuple[Pressure | None, float]:
        if waiting is None or (waiting.percent < ASK_ABOVE_PERCENT and not self._others_wait):
            self._others_wait = False
            return None, LOOK_EVERY_S
        if not self._others_wait and now < self._trusts_until:
            return None, LOOK_EVERY_S
        self._held_since = now
        return waiting, ASKING_S

    def _decide_held(
        self, now: float, waiting: Pressure | None, held_s: float
    ) -> tuple[Pressure | None, float]:
        if waiting is None or waiting.percent < OTHERS_WAIT_ABOVE_PERCENT:
            self._trust_s = (
                FIRST_TRUST_S if self._others_wait else min(2 * self._trust_s, LONGEST_TRUST_S)
            )
            self._trusts_until = now + self._trust_s
            self.reset()
            return None, LOOK_EVERY_S
        self._others_wait = True
        if HOLD_S - held_s > _SHORTEST_S:
            return waiting, min(LOOK_EVERY_S, HOLD_S - held_s)
        self._held_since = None
        return None, RUN_S

    def _waiting(self) -> Pressure | None:
        known = [
            Pressure(resource, percent)
            for resource, percent in (("disk", self._disk()), ("processors", self._processors()))
            if percent is not None
        ]
        return max(known, key=lambda pressure: pressure.percent, default=None)


class Throttle:
    """Stops and continues the tools; nothing else does. They run unless a reason to stop exists.

    A tool that takes commands limits its rate by itself: it removes thousands of entries in 10 ms,
    so its reports are too old to stop it in time.

    Args:
        own_nice: the niceness of the process that started the job; the tools get no better one.
        gentle_mode: decides when a gentle job is throttled.
        note: journals an event.
        now_s: the time of events.
        counts: a source counts removed entries; without it no rate limit is possible.
    """

    def __init__(
        self,
        launcher: Launcher,
        pace: Pace,
        own_nice: int,
        gentle_mode: PressureThrottle,
        note: Callable[[Event], None],
        now_s: Callable[[], float],
        *,
        counts: bool = True,
    ) -> None:
        self._launcher = launcher
        self._own_nice = own_nice
        self._counts = counts or launcher.takes_commands
        self._note = note
        self._now_s = now_s
        self._reasons: set[str] = set()
        self._were_stopped = False
        self._are_all_seen_stopped = self._has_reported_others = False
        self._next_sigcont_s = 0.0
        self._gentle_mode = gentle_mode
        self._next_gentle_poll_s = 0.0
        self._hold: Throttled | None = None
        self._is_hold_recorded = False
        self._hold_schedule = SampleSchedule()
        self._held_before_s = 0.0
        self._rate: RateLimit | None = None
        self._first_pace = self.pace = pace
        self._take(pace)

    @property
    def is_paused(self) -> bool:
        """Whether a user has paused the job."""
        return _PAUSE in self._reasons

    @property
    def hold(self) -> Throttled | None:
        """The current hold of gentle mode, None while there is none."""
        return self._hold

    @property
    def held_s(self) -> float:
        """Seconds for which gentle mode has held the tools, excluding a current journalled hold.

        Two holds a second would make a journal of 40 MB in 48 hours. So an old job journals its
        holds as rarely as its samples, and each sample has the sum.
        """
        if self._hold is None or self._is_hold_recorded:
            return self._held_before_s
        return self._held_before_s + self._now_s() - self._hold.at_s

    def pause(self) -> bool:
        """Stop the tools until `resume`; return whether all were seen stopped."""
        self._end_gentle_hold()
        self._stop_for(_PAUSE)
        self._has_reported_others = False
        deadline = time.monotonic() + STOPPED_WITHIN_S
        while not measured(lambda: all_stopped(self._launcher.pid)):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.002)
        self._are_all_seen_stopped = True
        return True

    def resume(self) -> None:
        """End the pause."""
        self._continue_after(_PAUSE)

    def stop_for_check(self) -> None:
        """Stop the tools until `continue_after_check`, while their targets cannot be checked."""
        self._stop_for(_CHECK)

    def continue_after_check(self) -> None:
        """Continue the tools: their targets are the confirmed ones."""
        self._continue_after(_CHECK)

    def step_begins(self) -> None:
        """Forget why the tools of the last step were stopped: those of the next step run."""
        self._end_gentle_hold()
        self._reasons -= {_RATE, _CHECK}
        self._were_stopped = False
        if self._rate is not None:
            self._rate.step_begins()
        with contextlib.suppress(OSError):  # the launcher has died; the supervisor notices
            self._send_changes(self._first_pace, self.pace)  # its command line has the first pace

    def change(self, command: Command) -> str | None:
        """Change the pace by a command; return why that is impossible, None once it is done."""
        if command.name == "threads" and not self._launcher.takes_commands:
            return "Only the strategy parallel has an adjustable number of threads."
        pace = changed(self.pace, command)
        if pace.rate_per_s and not self._counts:
            return "This job has no count of its removed entries, so its rate cannot be limited."
        try:
            self._launcher.rank(*ranks_of(pace, self._own_nice))
        except PermissionError:
            if command.name in ("nice", "ionice"):
                return "Only root may raise the priority of the tools."
            # gentle off, rate off: the tools keep the low rank, which slows down no other process
        except OSError as error:
            return f"The priority cannot be changed: {error.strerror}."
        try:
            self._send_changes(self.pace, pace)
        except OSError as error:
            return f"The tool does not accept commands now: {error.strerror}."
        self._take(pace)
        self._note(PaceChanged(self._now_s(), pace))
        return None

    def look(self, removed: Callable[[], int | None]) -> float:
        """Decide whether the tools run until the next call; return the seconds until then."""
        if self._reasons & {_PAUSE, _CHECK}:
            self._stop_again()
            return LOOK_EVERY_S
        until_s = LOOK_EVERY_S
        if self.pace.gentle:
            until_s = min(until_s, self._apply_gentle_mode())
        if self._rate is not None:
            hold_s = self._rate.hold_s(removed() or 0)
            if hold_s > 0:
                self._stop_for(_RATE)
                return min(until_s, hold_s)
            self._continue_after(_RATE)
            until_s = min(until_s, self._rate.poll_interval_s)
        self._repeat_sigcont()
        return until_s

    def _apply_gentle_mode(self) -> float:
        now_s = time.monotonic()
        if now_s >= self._next_gentle_poll_s:
            decision = measured(self._gentle_mode.decide)
            if decision is None:
                return LOOK_EVERY_S
            waiting, poll_interval_s = decision
            self._next_gentle_poll_s = now_s + poll_interval_s
            if waiting is None:
                self._end_gentle_hold()
            elif _GENTLE not in self._reasons:
                self._note_hold(waiting)
                self._stop_for(_GENTLE)
        return max(0.0, self._next_gentle_poll_s - now_s)

    def _note_hold(self, waiting: Pressure) -> None:
        self._hold = Throttled(self._now_s(), waiting.resource, waiting.percent)
        self._is_hold_recorded = self._hold_schedule.is_due(self._hold.at_s)
        if self._is_hold_recorded:
            self._hold_schedule.recorded(self._hold.at_s)
            self._note(self._hold)

    def _take(self, pace: Pace) -> None:
        if pace.rate_per_s != self.pace.rate_per_s or self._rate is None:
            is_ours = pace.rate_per_s and not self._launcher.takes_commands
            self._rate = RateLimit(pace.rate_per_s) if is_ours else None
        if not pace.rate_per_s:
            self._continue_after(_RATE)
        if not pace.gentle:
            self._end_gentle_hold()
        self.pace = pace

    def _send_changes(self, before: Pace, after: Pace) -> None:
        """Send the changes to a tool that takes commands; OSError if that is impossible."""
        if not self._launcher.takes_commands:
            return
        if before.rate_per_s != after.rate_per_s:
            self._launcher.send_command(f"rate {after.rate_per_s or 'off'}")
        if before.gentle != after.gentle:
            self._launcher.send_command(f"gentle {'on' if after.gentle else 'off'}")
        if before.threads != after.threads:
            self._launcher.send_command(f"threads {after.threads or 'auto'}")

    def _end_gentle_hold(self) -> None:
        if _GENTLE in self._reasons:
            self._continue_after(_GENTLE)
            ended_at_s = self._now_s()
            if self._hold is not None:
                self._held_before_s += ended_at_s - self._hold.at_s
                self._hold = None
            if self._is_hold_recorded:
                self._note(Unthrottled(ended_at_s))
        self._gentle_mode.reset()

    def _stop_for(self, reason: str) -> None:
        if not self._reasons or reason == _PAUSE:
            self._launcher.signal_tools(signal.SIGSTOP)
            self._were_stopped = True
            self._are_all_seen_stopped = False
        self._reasons.add(reason)

    def _stop_again(self) -> None:
        """Stop the tools again if another process has continued them.

        Any process of the tools' user may send SIGCONT.
        A tool that has never been seen stopped may still be in a long system call, and was not
        continued by another process.
        """
        are_stopped = measured(lambda: none_continued(self._launcher.pid))
        if are_stopped:
            self._are_all_seen_stopped = True
            return
        self._launcher.signal_tools(signal.SIGSTOP)
        if are_stopped is False and self._are_all_seen_stopped and not self._has_reported_others:
            self._has_reported_others = True  # once for each pause: SIGCONT may come continually
            self._note(ToolSaid(self._now_s(), CONTINUED_BY_OTHERS))

    def _repeat_sigcont(self) -> None:
        """Repeat SIGCONT while the tools may run, once they have been stopped.

        A fork in progress keeps a SIGSTOP pending for the child. It does not keep a SIGCONT that
        arrives before the fork ends, because SIGCONT is ignored by default (kernel/signal.c,
        __send_signal_locked). Such a child stops after the tools were continued.
        """
        now_s = time.monotonic()
        if self._were_stopped and not self._reasons and now_s >= self._next_sigcont_s:
            self._next_sigcont_s = now_s + LOOK_EVERY_S
            self._launcher.signal_tools(signal.SIGCONT)

    def _continue_after(self, reason: str) -> None:
        if self._reasons == {reason}:
            self._launcher.signal_tools(signal.SIGCONT)
        self._reasons.discard(reason)


def changed(pace: Pace, command: Command) -> Pace:
    """Return the pace after a command."""
    match command.name:
        case "gentle":
            return replace(pace, gentle=command.value == "on")
        case "rate":
            return replace(pace, rate_per_s=0 if command.value == "off" else int(command.value))
        case "nice":
            return replace(pace, nice=int(command.value))
        case "ionice":
            return replace(pace, io_priority=IoPriority(command.value))
        case "threads":
            return replace(pace, threads=0 if command.value == "auto" else int(command.value))
    raise ValueError(command.name)


def ranks_of(pace: Pace, own_nice: int) -> tuple[int, IoPriority]:
    """Return the tools' niceness and I/O priority; see `Throttle` for `own_nice`."""
    limited = LIMITED_NICE if pace.rate_per_s else 0
    nice = GENTLE_NICE if pace.gentle else max(pace.nice, limited)
    return max(nice, own_nice), pace.io_priority
