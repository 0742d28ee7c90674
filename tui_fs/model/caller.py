"""Who asks for a deletion, as far as it can be determined."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CallerIdentity:
    """The person behind a job.

    `login_user` is the kernel's word and survives sudo and su; `sudo_user` and
    `ssh_connection` are what the environment claims, and anybody can set that. All text is
    exact and must be shown through `displayable` only.

    Attributes:
        uid: the real user id.
        user: its name, or the number where it has none.
        login_user: who logged in, as a name or a number; empty where nobody did.
        sudo_user: who called sudo or doas; empty without.
        ssh_connection: client address, client port, server address, server port; empty
            without SSH.
        terminal: the terminal's device; empty without one.
    """

    uid: int
    user: str
    login_user: str
    sudo_user: str
    ssh_connection: str
    terminal: str
