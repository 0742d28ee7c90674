"""Hold a counter of every system call that jobs count, until standard input closes.

Closing the last counter of a call takes the kernel 40 ms, and an open of another one meanwhile
waits for that: without this each job would wait for the end of the previous one. No process waits
for the end of this one, which closes them all.
"""

import os
import sys
from contextlib import suppress

from tests.needs import opened_counter
from tui_fs.tracing.syscalls import SYSCALLS, tracepoint_name

_EVENTS = "/sys/kernel/tracing/events"
_ALONE = ("syscalls/sys_enter_unlinkat", "raw_syscalls/sys_exit")


def main() -> None:
    """Open what can be opened, and wait."""
    events = [f"syscalls/sys_exit_{tracepoint_name(name)}" for name in SYSCALLS]
    for event in (*_ALONE, *events):
        with suppress(OSError, KeyError):  # not known to this kernel, or not permitted
            opened_counter(os.path.join(_EVENTS, event, "id"))
    sys.stdin.read()


if __name__ == "__main__":
    main()
