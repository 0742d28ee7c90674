"""Identify the machine of a job or a record, because machines may share a home directory."""

import enum

from msgspec import Struct, field


class Host(Struct, frozen=True):
    """One boot of one machine; empty fields are unknown.

    Attributes:
        name: the host name.
        machine_id: machine-id(5); clones of one image can have the same.
        boot_id: random for each boot, so it also differs between clones.
    """

    name: str = ""
    machine_id: str = ""
    boot_id: str = ""


class Origin(Struct, frozen=True):
    """The host and time of the creation of a job.

    Attributes:
        boottime_s: CLOCK_BOOTTIME; comparable within one boot, and unaffected by clock changes.
    """

    host: Host = field(default_factory=Host)
    boottime_s: float = 0.0


class Locality(enum.Enum):
    """The origin of an object relative to this host."""

    THIS_BOOT = enum.auto()
    EARLIER_BOOT = enum.auto()
    OTHER_HOST = enum.auto()


def locality_of(host: Host, here: Host) -> Locality:
    """Return the locality of `host` relative to the host `here`.

    Equal boot ids mean the same kernel, even with different names (a container has its own). With
    different boot ids, an earlier boot of this machine must have the same name and machine id. Two
    clones that share both count as one host. After a machine was renamed and rebooted, its earlier
    objects count as those of another host.
    """
    if host == Host() or (host.boot_id and host.boot_id == here.boot_id):
        return Locality.THIS_BOOT
    if (host.name, host.machine_id) != (here.name, here.machine_id):
        return Locality.OTHER_HOST
    if not host.boot_id or not here.boot_id:
        return Locality.THIS_BOOT  # without /proc, boots cannot be compared; the lock decides
    return Locality.EARLIER_BOOT
