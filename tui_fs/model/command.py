"""Commands to a running job, as a person or a program writes them."""

from msgspec import Struct

from tui_fs.model.errors import BadInput
from tui_fs.model.strategy import IoPriority

MOST_PER_S = 1_000_000
MOST_THREADS = 256
COMMANDS = {
    "pause": "",
    "resume": "",
    "cancel": "",
    "gentle": "on or off",
    "rate": f"1 to {MOST_PER_S:,} entries per second, or off",
    "nice": "0 to 19",
    "ionice": "normal, low or idle",
    "threads": f"1 to {MOST_THREADS}, or auto",
}
"""Each command with a description of its value; empty without a value."""


class Command(Struct, frozen=True):
    """A known command with a valid value."""

    name: str
    value: str = ""

    def __str__(self) -> str:
        """Return the line to send."""
        return f"{self.name} {self.value}".rstrip()


def read_command(line: str) -> Command:
    """Parse a line ``NAME`` or ``NAME VALUE``; BadInput if it is not a valid command."""
    name, _, value = line.strip().partition(" ")
    if name not in COMMANDS:
        raise BadInput(f"{name!r} is not a command; use {', '.join(COMMANDS)}.")
    if not _fits(name, value):
        wanted = COMMANDS[name] or "no value"
        raise BadInput(f"{name} takes {wanted}, but got {value!r}.")
    return Command(name, value)


def _fits(name: str, value: str) -> bool:
    match name:
        case "gentle":
            return value in ("on", "off")
        case "rate":
            return value == "off" or _is_number(value, 1, MOST_PER_S)
        case "nice":
            return _is_number(value, 0, 19)
        case "ionice":
            return value in tuple(IoPriority)
        case "threads":
            return value == "auto" or _is_number(value, 1, MOST_THREADS)
    return value == ""


def _is_number(text: str, low: int, high: int) -> bool:
    digits = text.isascii() and text.isdigit() and len(text) <= len(str(high))
    return digits and low <= int(text) <= high
