"""The hosts of a fleet: reach them, run tui-fs there, collect what each one answers."""

import itertools
import json
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from tui_fs.fleet.access import (
    BRING,
    Account,
    OneFile,
    Password,
    Probed,
    probe_script,
    probed,
    why_not_brought,
    why_not_run,
)
from tui_fs.fleet.connections import Connections, Ended, HostCommand, Line, Ssh
from tui_fs.model.paths import displayable, shell_quoted
from tui_fs.model.strategy import Argv
from tui_fs.model.units import bytes_iec

_PROBE_TIMEOUT_S = 30.0
_PASSWORD_ATTEMPTS = 2
_BRING_TIMEOUT_S = 600.0
_BRING_AT_ONCE = 8
"""Each of them has a copy of the program in its buffer."""

_BROUGHT_IS_LOST = "The connection that brought tui-fs was lost."

_POLL_S = 0.1
_MAX_ANSWER_BYTES = 32 << 20


class Answer(Struct, frozen=True):
    """What a host has answered.

    Attributes:
        exit_code: of the command; None if it was not started or did not end in time.
        value: its JSON; None without any.
        problem: one sentence; empty if all went well.
    """

    host: str
    exit_code: int | None
    value: Any = None
    problem: str = ""


def ignore(_: object) -> None:
    """Hear nothing."""


class _Pending(Struct):
    """A command whose output is collected for `take`."""

    take: Callable[[Ended, list[bytes]], None]
    lines: list[bytes] = field(default_factory=list)
    size_bytes: int = 0


class Fleet:
    """Hosts on which tui-fs runs. All methods are for one thread.

    Attributes:
        programs: the path of tui-fs on each reached host.
        brought_to: the hosts that have it in memory until `close`.
        problems: why the other hosts are not reached, in one sentence each.
        options: of the command line, which say how the hosts are reached.
    """

    def __init__(
        self,
        hosts: Iterable[str],
        ssh: Ssh,
        one_file: OneFile | None = None,
        *,
        becomes_root: bool = False,
        ask_password: Callable[[str], str | None] = lambda _: None,
        options: Argv = (),
    ) -> None:
        self.hosts, self.options = tuple(hosts), options
        self.programs: dict[str, str] = {}
        self.brought_to: list[str] = []
        self.problems: dict[str, str] = {}
        self._one_file = one_file
        self._becomes_root, self._ask_password = becomes_root, ask_password
        self._accounts: dict[str, Account] = {}
        # What waits until it is known whether a host is reached
        self._undecided: dict[str, list[Callable[[], None]]] = {}
        self._probing: set[str] = set()
        self._without_sudo: dict[str, Probed] = {}
        self._to_bring: deque[str] = deque()
        self._began_s: dict[str, float] = {}  # to bring
        self._versions: dict[str, str] = {}  # of what was brought
        self._pending: dict[str, _Pending] = {}
        self._numbers = itertools.count()
        self._connections = Connections(ssh)

    def close(self) -> None:
        """Close the connections, and with them remove what was brought."""
        self._connections.close()

    def command(self, *words: str) -> str:
        """Return a command line of ``tui-fs fleet`` that reaches the hosts in the same way."""
        return shell_quoted(("tui-fs", "fleet", *words, *self.options))

    @property
    def is_busy(self) -> bool:
        """Whether hosts are still being reached, or have not answered."""
        return bool(self._undecided or self._pending)

    def reach(self) -> None:
        """Find tui-fs on all hosts, or bring it."""
        self.start_reaching()
        while self._undecided:
            self.next_event()
        self.programs = {h: self.programs[h] for h in self.hosts if h in self.programs}

    def start_reaching(self) -> None:
        """Begin to find tui-fs on all hosts, or to bring it; `next_event` continues."""
        script = probe_script(becomes_root=self._becomes_root)
        for host in self.hosts:
            self._undecided[host] = []
        for host in self.hosts:
            purpose = self._collect(self._take_probe)
            self._connections.start(HostCommand(host, script, purpose, timeout_s=_PROBE_TIMEOUT_S))
        self._probing = set(self.hosts)

    def _take_probe(self, ended: Ended, lines: list[bytes]) -> None:
        host = ended.command.host
        self._probing.discard(host)
        if not ended.is_success:
            self._decide(host, ended.sentence)
        else:
            self._accounts[host], installed = Account(self._becomes_root), probed(lines)
            if installed.has_sudo is False:
                self._without_sudo[host] = installed
            else:
                self._find_program(host, installed)
        if not self._probing and self._without_sudo:
            refused = self._take_password([h for h in self.hosts if h in self._without_sudo])
            for host, installed in self._without_sudo.items():
                if host in refused:
                    self._decide(host, refused[host])
                else:
                    self._find_program(host, installed)

    def _find_program(self, host: str, installed: Probed) -> None:
        if installed.is_compatible:
            self.programs[host] = installed.program
            self._decide(host)
        elif problem := why_not_brought(installed, self._one_file):
            self._decide(host, problem)
        else:
            self._to_bring.append(host)
            self._bring_more()

    def _decide(self, host: str, problem: str = "") -> None:
        """Run the commands that wait until a host is reached, or is known not to be."""
        if problem:
            self.problems[host] = problem
        for begin in self._undecided.pop(host):
            begin()

    def _take_password(self, hosts: Sequence[str]) -> dict[str, str]:
        """Ask for the password that sudo needs on some hosts; return why it is of no use there.

        No host gets a wrong password more than once, but for the first one, which gets two: more
        could lock the account.
        """
        problem = ""
        for _ in range(_PASSWORD_ATTEMPTS if hosts else 0):
            typed = self._ask_password(problem)
            if typed is None:
                return dict.fromkeys(hosts, problem or "sudo asks for a password there.")
            password, typed = Password(typed), None
            problem = self._refusals(password, hosts[:1]).get(hosts[0], "")
            if not problem:
                return self._refusals(password, hosts[1:])
        unsent = f"The password was not sent, as sudo on {hosts[0]} refuses it." if hosts else ""
        return {host: unsent if n else problem for n, host in enumerate(hosts)}

    def _refusals(self, password: Password, hosts: Sequence[str]) -> dict[str, str]:
        """Let sudo check a password on hosts; return why it refuses it, or keep it."""
        account = Account(self._becomes_root, password)
        line = '"$(command -v tui-fs || echo true)" --version'
        refusals: dict[str, str] = {}
        unchecked = set(hosts)

        def take(ended: Ended, _: list[bytes]) -> None:
            host = ended.command.host
            unchecked.discard(host)
            if ended.is_success:
                self._accounts[host] = account
            else:
                reason = ended.sentence.removeprefix("sudo: ").rstrip(".")
                refusals[host] = f"sudo on {host} refuses: {reason}."

        script = f"exec {account.line(())} {line}"
        for host in hosts:
            purpose = self._collect(take)
            self._connections.start(
                HostCommand(host, script, purpose, account.stdin, timeout_s=_PROBE_TIMEOUT_S)
            )
        while unchecked:
            self.next_event()
        return refusals

    def _bring_more(self) -> None:
        while self._one_file is not None and self._to_bring and len(self._began_s) < _BRING_AT_ONCE:
            host = self._to_bring.popleft()
            self._began_s[host] = time.monotonic()
            self._connections.start(self._one_file.command(host))

    def _end_bringing(self, host: str, problem: str = "") -> None:
        del self._began_s[host]
        self._bring_more()
        self._decide(host, problem)

    def _take_brought(self, event: Line | Ended) -> None:
        host = event.command.host
        match event:
            case Ended() if host in self._began_s:
                self._end_bringing(host, event.sentence)
            case Ended():  # the program is gone with the connection that brought it
                if self.programs.pop(host, None) is not None:
                    self.brought_to.remove(host)
                    if self._undecided:
                        self.problems[host] = _BROUGHT_IS_LOST
            case Line(text=text) if text.startswith(b"version="):
                self._versions[host] = os.fsdecode(text.removeprefix(b"version="))
            case Line(text=text) if host in self._began_s and text.startswith(b"program="):
                if problem := why_not_run(self._versions.get(host, "")):
                    self._connections.release(host)
                else:
                    self.programs[host] = os.fsdecode(text.removeprefix(b"program="))
                    self.brought_to.append(host)
                self._end_bringing(host, problem)

    def _give_up_bringing(self) -> None:
        late_s = time.monotonic() - _BRING_TIMEOUT_S
        for host in [host for host, began_s in self._began_s.items() if began_s < late_s]:
            self._connections.abandon(host, BRING)
            problem = f"The program was not received within {_BRING_TIMEOUT_S:.0f} s."
            self._end_bringing(host, problem)

    def start(
        self, host: str, arguments: Argv, purpose: str = "", *, is_long: bool = False
    ) -> None:
        """Run tui-fs on a reached host.

        Args:
            is_long: at once, however many commands run.
        """
        account = self._accounts[host]
        line = f"exec {account.line((self.programs[host], *arguments))}"
        command = HostCommand(host, line, purpose, account.stdin, is_long=is_long)
        self._connections.start(command)

    def next_event(self) -> Line | Ended | None:
        """Return what has happened next; None if nothing did within a tenth of a second.

        What belongs to reaching hosts and to `send` is handled here, and None is returned.
        """
        event = self._connections.next_event(_POLL_S)
        self._give_up_bringing()
        if event is None:
            return None
        if event.command.holds:
            self._take_brought(event)
            return None
        pending = self._pending.get(event.command.purpose)
        if pending is None:
            return event
        if isinstance(event, Ended):
            del self._pending[event.command.purpose]
            is_cut = event.was_cut or pending.size_bytes > _MAX_ANSWER_BYTES
            pending.take(replace(event, was_cut=is_cut), pending.lines)
            return None
        pending.size_bytes += len(event.text)
        if pending.size_bytes > _MAX_ANSWER_BYTES:
            pending.lines.clear()
            self.abandon(event.command.host, event.command.purpose)
        else:
            pending.lines.append(event.text)
        return None

    def abandon(self, host: str, purpose: str) -> None:
        """Stop listening to a host's commands for a purpose; what runs there continues."""
        self._connections.abandon(host, purpose)

    def send(
        self,
        host: str,
        arguments: Argv,
        heard: Callable[[Answer], None],
        *,
        wants_value: bool = True,
    ) -> None:
        """Run a command on a host as soon as that is reached, without waiting for its answer.

        Args:
            arguments: of tui-fs.
            heard: called by `next_event` with the answer; at once if the host was not reached.
            wants_value: an answer without JSON is a problem.
        """

        def begin() -> None:
            if host not in self.programs:
                heard(Answer(host, None, problem=self.problems.get(host, _BROUGHT_IS_LOST)))
                return
            purpose = self._collect(
                lambda ended, lines: heard(_answer(ended, lines, wants_value=wants_value))
            )
            self.start(host, arguments, purpose)

        if host in self._undecided:
            self._undecided[host].append(begin)
        else:
            begin()

    def ask(
        self,
        arguments: Mapping[str, Argv],
        heard: Callable[[Answer], None] = ignore,
        *,
        wants_value: bool = True,
    ) -> dict[str, Answer]:
        """Run a command on hosts; return what each one answers, in the order of the hosts.

        Args:
            arguments: of tui-fs, for each host.
            heard: called for each host as soon as it has answered.
            wants_value: an answer without JSON is a problem.
        """
        answers: dict[str, Answer] = {}

        def take(answer: Answer) -> None:
            answers[answer.host] = answer
            heard(answer)

        for host, argv in arguments.items():
            self.send(host, argv, take, wants_value=wants_value)
        while len(answers) < len(arguments):
            self.next_event()
        return {host: answers[host] for host in arguments}

    def _collect(self, take: Callable[[Ended, list[bytes]], None]) -> str:
        """Return the purpose of a command, whose output and end `next_event` passes on."""
        purpose = f"collect {next(self._numbers)}"
        self._pending[purpose] = _Pending(take)
        return purpose


def _answer(ended: Ended, lines: list[bytes], *, wants_value: bool) -> Answer:
    host, text = ended.command.host, b"\n".join(lines)
    exit_code = ended.exit_code if ended.was_reached and not ended.is_lost else None
    if ended.was_cut:
        limit = bytes_iec(_MAX_ANSWER_BYTES)
        return Answer(host, None, problem=f"The answer is longer than {limit}.")
    if not text.strip():
        if wants_value and ended.is_success:
            return Answer(host, None, problem="The answer is empty.")
        return Answer(host, exit_code, problem=ended.sentence)
    try:
        return Answer(host, exit_code, json.loads(text), ended.sentence)
    except (ValueError, RecursionError):
        start = displayable(text[:60].decode(errors="surrogateescape"))
        problem = ended.sentence or f"The answer is not JSON: {start}"
        return Answer(host, exit_code or None, problem=problem)
