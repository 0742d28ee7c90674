"""The hosts of a fleet: reach them, run tui-fs there, collect what each one answers."""

import json
import os
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct
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
        self._connections = Connections(ssh)

    def close(self) -> None:
        """Close the connections, and with them remove what was brought."""
        self._connections.close()

    def command(self, *words: str) -> str:
        """Return a command line of ``tui-fs fleet`` that reaches the hosts in the same way."""
        return shell_quoted(("tui-fs", "fleet", *words, *self.options))

    def reach(self, heard: Callable[[Answer], None] = ignore) -> None:
        """Find tui-fs on all hosts, or bring it.

        Args:
            heard: called for each host that is not reached, as soon as that is known.
        """

        def give_up(host: str, problem: str) -> None:
            self.problems[host] = problem
            heard(Answer(host, None, problem=problem))

        script = probe_script(becomes_root=self._becomes_root)
        for host in self.hosts:
            self._connections.start(HostCommand(host, script, timeout_s=_PROBE_TIMEOUT_S))
        has: dict[str, Probed] = {}
        for ended, lines in self._collected(set(self.hosts)):
            if ended.is_success:
                has[ended.command.host] = probed(lines)
            else:
                give_up(ended.command.host, ended.sentence)
        self._accounts = {host: Account(self._becomes_root) for host in has}
        refused = self._take_password(
            [h for h in self.hosts if h in has and has[h].has_sudo is False]
        )
        waiting: list[str] = []
        for host, installed in has.items():
            if host in refused:
                give_up(host, refused[host])
            elif installed.is_compatible:
                self.programs[host] = installed.program
            elif problem := why_not_brought(installed, self._one_file):
                give_up(host, problem)
            else:
                waiting.append(host)
        if self._one_file is not None:
            self._bring(self._one_file, deque(waiting), give_up)
        self.programs = {h: self.programs[h] for h in self.hosts if h in self.programs}

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
        for host in hosts:
            script = f"exec {account.line(())} {line}"
            self._connections.start(
                HostCommand(host, script, stdin=account.stdin, timeout_s=_PROBE_TIMEOUT_S)
            )
        refusals: dict[str, str] = {}
        for ended, _ in self._collected(set(hosts)):
            host = ended.command.host
            if ended.is_success:
                self._accounts[host] = account
            else:
                reason = ended.sentence.removeprefix("sudo: ").rstrip(".")
                refusals[host] = f"sudo on {host} refuses: {reason}."
        return refusals

    def _bring(
        self, one_file: OneFile, waiting: deque[str], give_up: Callable[[str, str], None]
    ) -> None:
        began_s: dict[str, float] = {}
        versions: dict[str, str] = {}
        while waiting or began_s:
            while waiting and len(began_s) < _BRING_AT_ONCE:
                host = waiting.popleft()
                began_s[host] = time.monotonic()
                self._connections.start(one_file.command(host))
            event = self._connections.next_event(_POLL_S)
            host = event.command.host if event else ""
            match event:
                case Line(text=text) if host in began_s and text.startswith(b"version="):
                    versions[host] = os.fsdecode(text.removeprefix(b"version="))
                case Line(text=text) if host in began_s and text.startswith(b"program="):
                    del began_s[host]
                    if problem := why_not_run(versions.get(host, "")):
                        self._connections.release(host)
                        give_up(host, problem)
                    else:
                        self.programs[host] = os.fsdecode(text.removeprefix(b"program="))
                        self.brought_to.append(host)
                case Ended():
                    if began_s.pop(host, None) is not None:
                        give_up(host, event.sentence)
                    elif self.programs.pop(host, None) is not None:
                        self.brought_to.remove(host)
                        give_up(host, "The connection that brought tui-fs was lost.")
            for host in [h for h, s in began_s.items() if time.monotonic() > s + _BRING_TIMEOUT_S]:
                del began_s[host]
                self._connections.abandon(host, BRING)
                give_up(host, f"The program was not received within {_BRING_TIMEOUT_S:.0f} s.")

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
        """Return what has happened next; None if nothing did within a tenth of a second."""
        event = self._connections.next_event(_POLL_S)
        if isinstance(event, Ended) and event.command.holds:
            # The program is gone with the connection that brought it.
            self.programs.pop(event.command.host, None)
            return None
        return event

    def abandon(self, host: str, purpose: str = "") -> None:
        """Stop listening to a host's commands for a purpose; what runs there continues."""
        self._connections.abandon(host, purpose)

    def ask(
        self,
        arguments: Mapping[str, Argv],
        heard: Callable[[Answer], None] = ignore,
        *,
        wants_value: bool = True,
    ) -> dict[str, Answer]:
        """Run a command on reached hosts; return what each one answers, in the order of the hosts.

        Args:
            arguments: of tui-fs, for each host.
            heard: called for each host as soon as it has answered.
            wants_value: an answer without JSON is a problem.
        """
        for host, argv in arguments.items():
            self.start(host, argv)
        answers: dict[str, Answer] = {}
        for ended, lines in self._collected(set(arguments)):
            answer = _answer(ended, lines, wants_value=wants_value)
            answers[answer.host] = answer
            heard(answer)
        return {host: answers[host] for host in arguments}

    def _collected(self, hosts: set[str]) -> Iterable[tuple[Ended, list[bytes]]]:
        lines: dict[str, list[bytes]] = defaultdict(list)
        sizes: dict[str, int] = defaultdict(int)
        while hosts:
            event = self.next_event()
            if event is None:
                continue
            host = event.command.host
            if isinstance(event, Ended):
                hosts.discard(host)
                is_cut = event.was_cut or sizes[host] > _MAX_ANSWER_BYTES
                yield replace(event, was_cut=is_cut), lines.pop(host, [])
                continue
            sizes[host] += len(event.text)
            if sizes[host] > _MAX_ANSWER_BYTES:
                lines[host] = []
                self.abandon(host)
            else:
                lines[host].append(event.text)


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
