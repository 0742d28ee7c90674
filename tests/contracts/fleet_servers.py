"""Real ssh servers in name spaces of their own: network, processes, mounts, host name."""

import itertools
import os
import shutil
import signal
import subprocess
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from tests.conftest import DEADLINE_S
from tests.needs import needs_root, needs_tool
from tests.trees import Sentinel, flat, many_directories
from tests.waiting_process import waiting_process
from tui_fs import __version__

ROLES = ("gate", "inner", "silent", "lossy", "full", "bare", "unknown", "sudo", "plain")
"""``inner`` is reached through ``gate``; ``silent`` loses all packets, and ``lossy`` every sixth of
those that it receives and of those that it sends; the file system of ``full`` is full; ``bare`` has
no tui-fs; the key of ``unknown`` is not known; ``sudo`` is reached as a user who may run tui-fs as
root; ``plain`` has nothing special."""

REACHED = ("gate", "inner", "full", "sudo", "plain")
"""Those that answer without more options than --become."""

_runs = itertools.count()
_TOOLS = {"ssh": "openssh-client", "ip": "iproute2", "nft": "nftables", "sudo": "sudo"}
_UNSHARE = (
    "unshare", "--net", "--mount", "--propagation", "private", "--uts", "--pid", "--fork",
    "--kill-child", "--mount-proc",
)  # fmt: skip
_HOST = """set -e
mkdir -p /run/sshd
hostname "$1"
mount -t tmpfs -o size=192m,mode=1777 tmpfs /dev/shm
mount -t tmpfs -o size=24m,mode=0755 tmpfs "$2/fs"
cd "$2"
for name in passwd shadow sudoers hosts; do mount --bind "$name" "/etc/$name"; done
ip link set lo up
echo ready
read -r go
exec "$3" -D -e -f "$1.conf"
"""
_LOSS = """table ip loss {
  chain received {
    type filter hook input priority 0
    numgen inc mod 6 == 5 counter drop
  }
  chain sent {
    type filter hook output priority 0
    numgen inc mod 6 == 5 counter drop
  }
}
"""
_CONFIG = """Port 22
ListenAddress 0.0.0.0
HostKey {place}/{role}.key
PidFile none
UsePAM no
StrictModes no
AuthorizedKeysFile {place}/user.pub
PasswordAuthentication no
MaxStartups 100
SetEnv PATH={path} XDG_STATE_HOME={place}/state/{role} TUI_FS_TEST_PLACE={place}
"""


class Servers:
    """The running servers.

    Attributes:
        place: a directory that all of them see; ``fs`` in it is a file system of each one.
        ssh: the command that reaches them.
    """

    def __init__(self, place: Path, pids: Mapping[str, int]) -> None:
        self.place, self._pids = place, pids
        self.ssh = f"ssh -F {place}/ssh_config"
        self.target = place / "fs" / "tree"

    def seen_by(self, role: str, path: Path | str) -> Path:
        """Return where a path of a host is here."""
        return Path(f"/proc/{self._pids[role]}/root{path}")

    def run(self, role: str, *command: str) -> str:
        """Run a command in the name spaces of a host; return its output."""
        words = self._inside(role, *command)
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout

    def start(self, role: str, *command: str) -> "subprocess.Popen[bytes]":
        """Start a command in the name spaces of a host."""
        return subprocess.Popen(self._inside(role, *command), stdout=subprocess.PIPE)

    def _inside(self, role: str, *command: str) -> list[str]:
        return ["nsenter", "--all", "--target", str(self._pids[role]), *command]

    def tui_fs(self, role: str, *arguments: str) -> None:
        """Run tui-fs on a host, with the jobs of that host."""
        state = f"XDG_STATE_HOME={self.place}/state/{role}"
        self.run(role, "env", state, f"{self.place}/bin/tui-fs", *arguments)

    def plant(self, *roles: str, files: int = 300) -> dict[str, Sentinel]:
        """Make a target and a sentinel outside it on hosts."""
        sentinels = {}
        for role in roles:
            root = self.seen_by(role, self.place / "fs")
            for old in ("tree", "sentinel"):
                shutil.rmtree(root / old, ignore_errors=True)
            sentinels[role] = Sentinel(root)
            sentinels[role].plant(root / "tree")
            flat(root / "tree" / "flat", files)
            many_directories(root / "tree" / "wide", 5, 4)
        return sentinels

    def die(self, role: str) -> None:
        """Let a host fall silent, as without power, and end all its processes."""
        self.run(role, "ip", "link", "set", "net", "down")
        os.kill(self._pids[role], signal.SIGKILL)

    def fill(self, role: str) -> None:
        """Leave no byte of the file system of a host."""
        with open(self.seen_by(role, self.place / "fs" / "big"), "wb", buffering=0) as file:
            try:
                while file.write(bytes(1 << 16)):
                    pass
            except OSError:
                return

    def in_memory(self, role: str) -> list[str]:
        """Return the entries of /dev/shm of a host."""
        return os.listdir(self.seen_by(role, "/dev/shm"))

    def deletes(self) -> bool:
        """Return whether a process on a host is running a deletion of the target."""
        for entry in filter(str.isdigit, os.listdir("/proc")):
            with suppress(OSError):
                words = Path(f"/proc/{entry}/cmdline").read_bytes().split(b"\0")
                if (
                    b"--yes" in words
                    and b"fleet" not in words
                    and os.fsencode(self.target) in words
                ):
                    return True
        return False

    def kill_connections(self, number: int = signal.SIGKILL) -> None:
        """Send a signal to the clients of ssh that use the configuration of these servers."""
        marker = f"{self.place}/ssh_config".encode()
        for entry in os.listdir("/proc"):
            try:
                words = Path(f"/proc/{entry}/cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if words[0] == b"ssh" and marker in words:
                os.kill(int(entry), number)


@contextmanager
def servers() -> Iterator[Servers]:
    """Run a server for each role."""
    needs_root("network name spaces")
    sshd = needs_tool("sshd", "openssh-server")
    for tool, package in _TOOLS.items():
        needs_tool(tool, package)
    place = Path(tempfile.mkdtemp(prefix="tui-fs-servers-"))
    place.chmod(0o755)
    try:
        with ExitStack() as running:
            _write_files(place)
            pids = {}
            processes = {}
            for role in ROLES:
                command = [*_UNSHARE, "sh", "-c", _HOST, "sh", role, str(place), sshd]
                process = running.enter_context(waiting_process(command))
                children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
                pids[role], processes[role] = int(children), process
            _connect(place, pids)
            for process in processes.values():
                assert process.stdin is not None
                print("go", file=process.stdin, flush=True)
            for pid in pids.values():
                _wait_until_listening(pid)
            yield Servers(place, pids)
    finally:
        shutil.rmtree(place)


def _write_files(place: Path) -> None:
    (place / "fs").mkdir()
    (place / "bin").mkdir()
    # The user of sudo cannot reach the real one below the home of root.
    _script(
        place / "bin" / "tui-fs",
        f'[ "$1" != --version ] || {{ echo tui-fs {__version__}; exit; }}\n'
        f'case "$*" in *--yes*) touch {place}/asked; while [ -e {place}/hold ]; do sleep 0.05; done'
        f' ;; esac\nexec "{_program()}" "$@"\n',
    )
    _script(place / "one-file", f'exec "{_program()}" "$@"\n')
    for name in ("user", *(f"{role}.key" for role in ROLES)):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(place / name)]
        subprocess.run(command, check=True)
    usual = "/usr/bin:/bin:/usr/sbin:/sbin"
    for role in ROLES:
        path = usual if role == "bare" else f"{place}/bin:{usual}"
        (place / f"{role}.conf").write_text(_CONFIG.format(place=place, role=role, path=path))
        (place / "state" / role).mkdir(parents=True)
    (place / "passwd").write_text(
        "root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/:/usr/sbin/nologin\n"
        f"sshd:x:106:65534::/run/sshd:/usr/sbin/nologin\ndeploy:x:4242:4242::{place}:/bin/sh\n"
    )
    (place / "shadow").write_text("root:*:19000::::::\ndeploy:*:19000::::::\n")
    (place / "sudoers").write_text(
        f'Defaults env_keep += "XDG_STATE_HOME"\nroot ALL=(ALL) NOPASSWD: ALL\n'
        f"deploy ALL=(root) NOPASSWD: {place}/bin/tui-fs\n"
    )
    (place / "sudoers").chmod(0o440)
    (place / "hosts").write_text(f"127.0.0.1 localhost {' '.join(ROLES)}\n")


def _program() -> str:
    return str(Path(sysconfig.get_path("scripts")) / "tui-fs")


def _script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}")
    path.chmod(0o755)


def _connect(place: Path, pids: Mapping[str, int]) -> None:
    """Link each host to this machine, and ``inner`` to ``gate`` alone."""
    run = next(_runs)
    net = f"198.{18 + run % 2}.{os.getpid() % 256}"  # for tests between machines (RFC 2544)
    config, known = [], []
    for number, role in enumerate(ROLES):
        ours, theirs = f"{net}.{4 * number + 1}", f"{net}.{4 * number + 2}"
        link = f"tf{os.getpid() % 100_000}-{run}-{number}"
        at_gate = role == "inner"
        _ip("link", "add", link, "type", "veth", "peer", "name", "net", "netns", str(pids[role]))
        inside = _inside(pids[role])
        _ip("addr", "add", f"{theirs}/30", "dev", "net", inside=inside)
        _ip("link", "set", "net", "up", inside=inside)
        near: tuple[str, ...] = ()
        if at_gate:
            _ip("link", "set", link, "netns", str(pids["gate"]))
            near = _inside(pids["gate"])
        _ip("addr", "add", f"{ours}/30", "dev", link, inside=near)
        _ip("link", "set", link, "up", inside=near)
        if role == "silent":
            # Every packet to an address that no interface has is lost without a word.
            lost = ("neigh", "replace", theirs, "lladdr", "02:00:00:00:00:01", "dev", link)
            _ip(*lost, "nud", "permanent")
        if role == "lossy":
            subprocess.run([*inside, "nft", "-f", "-"], input=_LOSS, text=True, check=True)
        user = "deploy" if role == "sudo" else "root"
        jump = "  ProxyJump gate\n" if at_gate else ""
        config.append(f"Host {role}\n  HostName {theirs}\n  User {user}\n{jump}")
        if role != "unknown":
            known.append(f"{theirs} {(place / f'{role}.key.pub').read_text()}")
    config.append(f"Host *\n  IdentityFile {place}/user\n  UserKnownHostsFile {place}/known\n")
    config.append("  IdentitiesOnly yes\n  LogLevel ERROR\n")
    (place / "ssh_config").write_text("".join(config))
    (place / "known").write_text("".join(known))


def _inside(pid: int) -> tuple[str, ...]:
    return ("nsenter", "--net", "--target", str(pid))


def _ip(*words: str, inside: tuple[str, ...] = ()) -> None:
    subprocess.run([*inside, "ip", *words], check=True)


def _wait_until_listening(pid: int) -> None:
    end = time.monotonic() + DEADLINE_S
    while ":0016 " not in Path(f"/proc/{pid}/net/tcp").read_text():
        assert time.monotonic() < end, "sshd does not listen"
        time.sleep(0.02)
