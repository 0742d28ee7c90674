"""Find tui-fs on a host, or bring it there for the time of a connection."""

import hashlib
import os
import platform
import shlex
from collections.abc import Mapping, Sequence

from msgspec import Struct

from tui_fs import __version__
from tui_fs.fleet.connections import HostCommand
from tui_fs.model.errors import BadInput
from tui_fs.model.paths import displayable
from tui_fs.model.strategy import Argv

_PROBE = """p=$(command -v tui-fs 2>/dev/null) || p=
echo "program=$p"
[ -z "$p" ] || echo "version=$("$p" --version 2>/dev/null)"
echo "machine=$(uname -m)"
"""
"""Prints what decides whether tui-fs has to be brought to a host."""

_BECOME_PROBE = """if sudo -n -- "${p:-true}" --version >/dev/null 2>&1; then echo sudo=yes
else echo sudo=no; fi
"""
"""Asks for tui-fs itself, as sudoers may allow nothing else."""

_BRING = """umask 077
for base in /dev/shm "$XDG_RUNTIME_DIR"; do
    [ -n "$base" ] && dir=$(mktemp -d "$base/tui-fs.XXXXXXXX" 2>/dev/null) || continue
    trap 'rm -rf "$dir"' EXIT
    trap 'exit 1' HUP INT TERM PIPE
    printf '#!/bin/sh\\n' >"$dir/try" && chmod 700 "$dir/try" && "$dir/try" 2>/dev/null || {{
        rm -rf "$dir"
        continue
    }}
    head -c {size} >"$dir/tui-fs" || {{ echo "There is no room for it in $base." >&2; exit 1; }}
    echo "{sha256}  $dir/tui-fs" | sha256sum -c >/dev/null 2>&1 || {{
        echo "The copy in $base differs from the original." >&2
        exit 1
    }}
    chmod 700 "$dir/tui-fs"
    echo "version=$("$dir/tui-fs" --version 2>&1 | grep -m 1 -v -e ^Traceback -e '^ ')"
    echo "program=$dir/tui-fs"
    cat >/dev/null
    exit 0
done
echo "Programs cannot be run from memory there: /dev/shm is missing, full or mounted noexec." >&2
exit 1
"""
"""Receives the program, and removes it when the connection ends, however it ends."""


BRING = "bring"
"""What such a command is for."""


class Password:
    """A password that no log, traceback or message shows."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        """Hide it."""
        return "Password(***)"

    @property
    def line(self) -> bytes:
        """What sudo reads."""
        return os.fsencode(f"{self._text}\n")


class Account(Struct, frozen=True):
    """Who runs tui-fs on the hosts.

    Attributes:
        becomes_root: through sudo.
        password: of sudo; None where it asks for none.
    """

    becomes_root: bool = False
    password: Password | None = None

    def line(self, argv: Argv) -> str:
        """Return the line for the shell that runs a command."""
        if not self.becomes_root:
            return shlex.join(argv)
        asks = ("-n",) if self.password is None else ("-S", "-p", "")
        return shlex.join(("sudo", *asks, "--", *argv))

    @property
    def stdin(self) -> bytes:
        """What sudo reads."""
        return b"" if self.password is None else self.password.line


class OneFile(Struct, frozen=True):
    """The one-file build that hosts without tui-fs get.

    Attributes:
        machine: the architecture, as ``uname -m`` prints it.
    """

    path: str
    content: bytes
    machine: str

    def command(self, host: str) -> HostCommand:
        """Return the command that receives the content, and keeps it until its input ends."""
        sha256 = hashlib.sha256(self.content).hexdigest()
        script = _BRING.format(size=len(self.content), sha256=sha256)
        return HostCommand(host, script, BRING, self.content, holds=True)


class Probed(Struct, frozen=True):
    """What a host has.

    Attributes:
        program: the path of tui-fs; empty without one.
        version: what it says of its version.
        has_sudo: sudo runs without a password; None if that was not asked.
    """

    program: str
    version: str
    machine: str
    has_sudo: bool | None = None

    @property
    def is_compatible(self) -> bool:
        """Whether its tui-fs understands this one: before 1.0 only the same version does."""
        return bool(self.program) and self.version == f"tui-fs {__version__}"


def probe_script(*, becomes_root: bool) -> str:
    """Return the script whose output `probed` reads."""
    return _PROBE + (_BECOME_PROBE if becomes_root else "")


def probed(lines: Sequence[bytes]) -> Probed:
    """Return what a host has printed."""
    values = _values(lines)
    has_sudo = {"yes": True, "no": False}.get(values.get("sudo", ""))
    return Probed(
        values.get("program", ""), values.get("version", ""), values.get("machine", ""), has_sudo
    )


def _values(lines: Sequence[bytes]) -> Mapping[str, str]:
    text = [line.decode(errors="surrogateescape") for line in lines]
    return {name: value for name, equals, value in (line.partition("=") for line in text) if equals}


def read_one_file(path: str) -> OneFile:
    """Return the one-file build; BadInput if it cannot be read."""
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise BadInput(f"{displayable(path)} cannot be read: {reason}.") from error
    return OneFile(path, content, platform.machine())


def why_not_run(version: str) -> str:
    """Return why the program that was brought cannot be used; empty if it can."""
    if version == f"tui-fs {__version__}":
        return ""
    return f"The one-file build does not run there: {displayable(version) or 'it ends at once'}"


def why_not_brought(host: Probed, one_file: OneFile | None) -> str:
    """Return why the program cannot be brought to a host; empty if it can."""
    lacks = f"has {host.version or 'another tui-fs'}, not {__version__}" if host.program else ""
    lacks = lacks or "has no tui-fs"
    lacks = displayable(lacks)
    if one_file is None:
        return f"It {lacks}; give the one-file build with --bring FILE."
    if one_file.machine != host.machine:
        machine = displayable(host.machine)
        return f"It {lacks}, and is {machine}; the one-file build is for {one_file.machine}."
    return ""
