"""The identity of this machine and this boot."""

import functools
import os

from tui_fs.linux.boot import boot_id
from tui_fs.model.host import Host

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
