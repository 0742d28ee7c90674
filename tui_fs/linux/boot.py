"""Which run of the kernel this is."""

BOOT_ID = "/proc/sys/kernel/random/boot_id"


def boot_id(path: str = BOOT_ID) -> str:
    """Return the name of this boot, empty where the kernel does not tell."""
    try:
        with open(path, encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""  # /proc is not mounted: nobody can tell boots apart
