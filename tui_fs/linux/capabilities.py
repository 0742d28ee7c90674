"""What the superuser of this process may really do (capabilities(7), user_namespaces(7))."""

from enum import IntEnum

STATUS = "/proc/self/status"
UID_MAP = "/proc/self/uid_map"

_ALL_IDS = (0, 0, (1 << 32) - 1)
"""The one line of uid_map in the initial user namespace."""


class Capability(IntEnum):
    """Numbers of linux/capability.h."""

    DAC_OVERRIDE = 1
    FOWNER = 3
    SYS_PTRACE = 19
    SYS_ADMIN = 21
    PERFMON = 38
    BPF = 39


def missing_capabilities(*wanted: Capability, status: str = STATUS) -> tuple[Capability, ...]:
    """Return which of these capabilities the process does not have in effect.

    In a user namespace that it has a capability says nothing about what lies outside.
    """
    with open(status, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            name, _, value = line.partition(":")
            if name == "CapEff":
                effective = int(value, 16)
                return tuple(one for one in wanted if not effective >> one & 1)
    return wanted


def user_namespace(uid_map: str = UID_MAP) -> str | None:
    """Return the mapping of user ids of this process's user namespace, None for the initial one.

    Each line of the mapping is written ``INSIDE OUTSIDE NUMBER``; lines are joined by commas.
    """
    try:
        with open(uid_map, encoding="ascii") as lines:
            ranges = [tuple(int(word) for word in line.split()) for line in lines]
    except FileNotFoundError:
        return None  # a kernel without user namespaces
    if ranges == [_ALL_IDS]:
        return None
    return ", ".join(" ".join(map(str, one)) for one in ranges) or "empty"
