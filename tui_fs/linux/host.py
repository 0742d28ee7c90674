"""The identity of this machine, and of the present boot."""

import functools
import os
import time

from tui_fs.model.host import Host

BOOT_ID = "/proc/sys/kernel/random/boot_id"


def boot_id(path: str = BOOT_ID) -> str:
    """Return the id of this boot; empty if /proc is not mounted."""
    try:
        with open(path, encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def boottime_s() -> float:
    """Return the seconds since boot, suspended time included; setting the clock has no effect."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


MACHINE_ID = "/etc/machine-id"


@functools.cache
def current_host() -> Host:
    """Return the host of this process."""
    try:
        with open(MACHINE_ID, encoding="ascii") as file:
            machine_id = file.read().strip()
    except (OSError, ValueError):
        machine_id = ""  # containers often have none; name and boot id remain
    return Host(os.uname().nodename, machine_id, boot_id())
