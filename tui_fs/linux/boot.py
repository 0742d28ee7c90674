"""Which run of the kernel this is, and how old it is."""

import time

BOOT_ID = "/proc/sys/kernel/random/boot_id"


def boot_id(path: str = BOOT_ID) -> str:
    """Return the name of this boot, empty where the kernel does not tell."""
    try:
        with open(path, encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""  # /proc is not mounted: nobody can tell boots apart


def boottime_s() -> float:
    """Return the seconds since boot, suspended time included; setting the clock has no effect."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
