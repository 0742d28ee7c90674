"""Running steps to their end and measuring them, where nobody has to watch or to pause them."""

import os
import select
from collections.abc import Callable
from dataclasses import dataclass

from tui_fs.job.launcher import Launcher, StepEnd
from tui_fs.model.errors import TuiFsError
from tui_fs.model.strategy import IoPriority, Step
from tui_fs.tracing.source import CallSource, Counts

LONGEST_OUTPUT_BYTES = 4_096
_READ_BYTES = 1 << 16
_ASK_EVERY_MS = 200


@dataclass(frozen=True, slots=True)
class StepsEnd:
    """How steps went.

    Attributes:
        steps: one for each.
        counts: of their system calls, if the source counts them.
        output, errors: the beginnings of what they printed.
    """

    steps: tuple[StepEnd, ...]
    counts: Counts
    output: bytes
    errors: bytes


def run_steps(
    steps: tuple[Step, ...],
    directory: int,
    source: CallSource,
    goes_on: Callable[[], None] = lambda: None,
) -> StepsEnd:
    """Run the steps one after the other; the source is closed at the end.

    Args:
        directory: open; the tools run in it.
        goes_on: asked several times a second; what it raises ends the tools, and is raised.

    Raises:
        TuiFsError: the process between has died, or the source cannot count.
    """
    wrapped = tuple(tuple(source.wrap(argv) for argv in step) for step in steps)
    launcher = Launcher(wrapped, (directory,) * len(wrapped), 0, IoPriority.NORMAL)
    pipes = {launcher.out: bytearray(), launcher.err: bytearray()}
    ended: list[StepEnd] = []
    try:
        source.prepare(launcher.pid)
        for number in range(len(wrapped)):
            for pid in launcher.fork_step(number):
                source.attach(pid)
            launcher.release()
            _wait(launcher, pipes, goes_on)
            source.step_ended()
            ended.append(launcher.ended())
    finally:
        launcher.close()  # the last that holds the pipes of strace
        source.close()
        for pipe in pipes:
            os.close(pipe)
    counts = source.read()
    output, errors = pipes.values()
    return StepsEnd(tuple(ended), counts, bytes(output), bytes(errors))


def _wait(launcher: Launcher, pipes: dict[int, bytearray], goes_on: Callable[[], None]) -> None:
    """Wait for the step's end, and take what it prints before that."""
    poll = select.poll()  # select(2) knows no descriptor above 1,023
    for descriptor in (launcher.fileno(), *pipes):
        poll.register(descriptor, select.POLLIN)
    while True:
        ready = {descriptor for descriptor, _ in poll.poll(_ASK_EVERY_MS)}
        for pipe, kept in pipes.items():
            if pipe in ready:
                chunk = os.read(pipe, _READ_BYTES)
                if not chunk:
                    raise TuiFsError("The process that runs the tools has ended.")
                kept += chunk[: LONGEST_OUTPUT_BYTES - len(kept)]
        if launcher.fileno() in ready and not any(pipe in ready for pipe in pipes):
            return
        goes_on()
