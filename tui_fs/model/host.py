"""Which machine made a job or a record, where several machines share a home directory."""

import enum
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Host:
    """One run of the kernel of one machine; empty fields are unknown.

    Attributes:
        name: the host name.
        machine_id: machine-id(5); clones of one image can have the same.
        boot_id: random for each boot, so it differs between clones, too.
    """

    name: str = ""
    machine_id: str = ""
    boot_id: str = ""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where and when a job was created.

    Attributes:
        boottime_s: CLOCK_BOOTTIME; comparable within one boot, and no clock change affects it.
    """

    host: Host = field(default_factory=Host)
    boottime_s: float = 0.0


class Locality(enum.Enum):
    """Where something was made, seen from here."""

    THIS_BOOT = enum.auto()
    EARLIER_BOOT = enum.auto()
    OTHER_HOST = enum.auto()


def locality_of(host: Host, here: Host) -> Locality:
    """Return where `host` is, seen from the host `here`.

    The same boot id is the same kernel, whatever the names are (a container has its own).
    Otherwise name and machine id must both be equal to be an earlier boot of this machine. Two
    clones that share both count as one host. A machine that was renamed and restarted regards
    what it made before as made by another host.
    """
    if host == Host() or (host.boot_id and host.boot_id == here.boot_id):
        return Locality.THIS_BOOT
    if (host.name, host.machine_id) != (here.name, here.machine_id):
        return Locality.OTHER_HOST
    if not host.boot_id or not here.boot_id:
        return Locality.THIS_BOOT  # without /proc boots cannot be compared; the lock decides
    return Locality.EARLIER_BOOT
