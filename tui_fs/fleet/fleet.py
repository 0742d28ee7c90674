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


class _Host(Struct):
    """What is known of one host.

    Attributes:
        waiting: what begins as soon as it is known whether the host is reached; None afterwards.
        found: what its probe has found.
        program: the path of tui-fs; empty as long as there is none.
        is_brought: that is in its memory until the connection ends.
        brought_version: what the brought program says of its version.
        problem: why the host is not reached, in one sentence.
    """

    name: str
    account: Account
    waiting: list[Callable[[], None]] | None = None
    found: Probed | None = None
    program: str = ""
    is_brought: bool = False
    brought_version: str = ""
    problem: str = ""


class Fleet:
    """Hosts on which tui-fs runs. All methods are for one thread.

    Attributes:
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
        self._one_file = one_file
        self._becomes_root, self._ask_password = becomes_root, ask_password
        self._known = {host: _Host(host, Account(becomes_root)) for host in self.hosts}
        self._unprobed = self._undecided = 0
        self._to_bring: deque[_Host] = deque()
        self._began_s: dict[str, float] = {}  # to bring
        self._pending: dict[str, _Pending] = {}
        self._numbers = itertools.count()
        self._connections = Connections(ssh)

    @property
    def programs(self) -> dict[str, str]:
        """The path of tui-fs on each reached host."""
        return {host.name: host.program for host in self._known.values() if host.program}

    @property
    def brought_to(self) -> list[str]:
        """The hosts that have tui-fs in memory until `close`."""
        return [host.name for host in self._known.values() if host.is_brought]

    @property
    def problems(self) -> dict[str, str]:
        """Why the other hosts are not reached, in one sentence each."""
        return {host.name: host.problem for host in self._known.values() if host.problem}

    def is_reached(self, host: str) -> bool:
        """Return whether tui-fs can be started on a host."""
        return bool(self._known[host].program)

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

    def start_reaching(self) -> None:
        """Begin to find tui-fs on all hosts, or to bring it; `next_event` continues."""
        script = probe_script(becomes_root=self._becomes_root)
        self._unprobed = self._undecided = len(self._known)
        for host in self._known.values():
            host.waiting = []
            self._probe(host, script, self._take_probe)

    def _probe(
        self,
        host: _Host,
        script: str,
        take: Callable[[Ended, list[bytes]], None],
        stdin: bytes = b"",
    ) -> None:
        purpose = self._collect(take)
        command = HostCommand(host.name, script, purpose, stdin, timeout_s=_PROBE_TIMEOUT_S)
        self._connections.start(command)

    def _take_probe(self, ended: Ended, lines: list[bytes]) -> None:
        host = self._known[ended.command.host]
        self._unprobed -= 1
        if not ended.is_success:
            self._decide(host, ended.sentence)
        else:
            host.found = probed(lines)
            if not _lacks_sudo(host):
                self._find_program(host, host.found)
        if not self._unprobed:
            self._take_password([host for host in self._known.values() if _lacks_sudo(host)])

    def _find_program(self, host: _Host, found: Probed) -> None:
        if found.is_compatible:
            host.program = found.program
            self._decide(host)
        elif problem := why_not_brought(found, self._one_file):
            self._decide(host, problem)
        else:
            self._to_bring.append(host)
            self._bring_more()

    def _decide(self, host: _Host, problem: str = "") -> None:
        """Run the commands that wait until a host is reached, or is known not to be."""
        host.problem = problem
        waiting, host.waiting = host.waiting or (), None
        self._undecided -= 1
        for begin in waiting:
            begin()

    def _take_password(self, hosts: Sequence[_Host]) -> None:
        """Ask for the password that sudo needs on some hosts, and use those that accept it.

        No host gets a wrong password more than once, but for the first one, which gets two: more
        could lock the account.
        """
        refusals, problem = {}, ""
        for _ in range(_PASSWORD_ATTEMPTS if hosts else 0):
            typed = self._ask_password(problem)
            if typed is None:
                problem = problem or "sudo asks for a password there."
                refusals = {host.name: problem for host in hosts}
                break
            password, typed = Password(typed), None
            refusals = self._refusals(password, hosts[:1])
            if not refusals:
                refusals = self._refusals(password, hosts[1:])
                break
            problem = refusals[hosts[0].name]
            unsent = f"The password was not sent, as sudo on {hosts[0].name} refuses it."
            refusals |= {host.name: unsent for host in hosts[1:]}
        for host in hosts:
            if host.name in refusals:
                self._decide(host, refusals[host.name])
            elif host.found is not None:
                self._find_program(host, host.found)

    def _refusals(self, password: Password, hosts: Sequence[_Host]) -> dict[str, str]:
        """Let sudo check a password on hosts; return why it refuses it, or keep it."""
        account = Account(self._becomes_root, password)
        line = '"$(command -v tui-fs || echo true)" --version'
        refusals: dict[str, str] = {}
        unchecked = {host.name for host in hosts}

        def take(ended: Ended, _: list[bytes]) -> None:
            host = ended.command.host
            unchecked.discard(host)
            if ended.is_success:
                self._known[host].account = account
            else:
                reason = ended.sentence.removeprefix("sudo: ").rstrip(".")
                refusals[host] = f"sudo on {host} refuses: {reason}."

        for host in hosts:
            self._probe(host, f"exec {account.line(())} {line}", take, account.stdin)
        while unchecked:
            self.next_event()
        return refusals

    def _bring_more(self) -> None:
        while self._one_file is not None and self._to_bring and len(self._began_s) < _BRING_AT_ONCE:
            host = self._to_bring.popleft()
            self._began_s[host.name] = time.monotonic()
            self._connections.start(self._one_file.command(host.name))

    def _end_bringing(self, host: _Host, problem: str = "") -> None:
        del self._began_s[host.name]
        self._bring_more()
        self._decide(host, problem)

    def _take_brought(self, event: Line | Ended) -> None:
        host = self._known[event.command.host]
        is_coming = host.name in self._began_s
        match event:
            case Ended() if is_coming:
                self._end_bringing(host, event.sentence)
            case Ended():  # the program is gone with the connection that brought it
                if host.is_brought and self._undecided:
                    host.problem = _BROUGHT_IS_LOST
                if host.is_brought:
                    host.program, host.is_brought = "", False
            case Line(text=text) if text.startswith(b"version="):
                host.brought_version = os.fsdecode(text.removeprefix(b"version="))
            case Line(text=text) if is_coming and text.startswith(b"program="):
                if problem := why_not_run(host.brought_version):
                    self._connections.release(host.name)
                else:
                    host.program = os.fsdecode(text.removeprefix(b"program="))
                    host.is_brought = True
                self._end_bringing(host, problem)

    def _give_up_bringing(self) -> None:
        late_s = time.monotonic() - _BRING_TIMEOUT_S
        for host in [host for host, began_s in self._began_s.items() if began_s < late_s]:
            self._connections.abandon(host, BRING)
            problem = f"The program was not received within {_BRING_TIMEOUT_S:.0f} s."
            self._end_bringing(self._known[host], problem)

    def start(
        self, host: str, arguments: Argv, purpose: str = "", *, is_long: bool = False
    ) -> None:
        """Run tui-fs on a reached host.

        Args:
            is_long: at once, however many commands run.
        """
        known = self._known[host]
        line = f"exec {known.account.line((known.program, *arguments))}"
        command = HostCommand(host, line, purpose, known.account.stdin, is_long=is_long)
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

        known = self._known[host]

        def begin() -> None:
            if not known.program:
                heard(Answer(host, None, problem=known.problem or _BROUGHT_IS_LOST))
                return
            purpose = self._collect(
                lambda ended, lines: heard(_answer(ended, lines, wants_value=wants_value))
            )
            self.start(host, arguments, purpose)

        if known.waiting is not None:
            known.waiting.append(begin)
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


def _lacks_sudo(host: _Host) -> bool:
    """Return whether tui-fs has to become root with a password there."""
    return host.found is not None and host.found.has_sudo is False


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
