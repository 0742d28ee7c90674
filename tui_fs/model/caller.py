"""The identity of the caller of a deletion, as far as it can be determined."""

from msgspec import Struct


class CallerIdentity(Struct, frozen=True):
    """The person behind a job.

    `login_user` comes from the kernel and survives sudo and su. `sudo_user` and `ssh_connection`
    come from the environment, which every user can set. All text is exact and must be shown
    through `displayable` only.

    Attributes:
        uid: the real user id.
        user: its name, or the number if it has none.
        login_user: the user that logged in, as a name or a number; empty without a login.
        sudo_user: the user that called sudo or doas; empty without.
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
