"""Commands over ssh: banners, lost connections, shells, quoting, limits."""

import shutil
import time
from pathlib import Path

import pytest

from tests.conftest import DEADLINE_S
from tests.needs import needs_tool
from tests.unit.fleet_hosts import Hosts, ends_of, waits_for
from tui_fs.fleet.connections import Connections, Ended, HostCommand, Line, Ssh, for_any_shell
from tui_fs.model.errors import BadInput, Missing


@pytest.fixture
def hosts(tmp_path: Path) -> Hosts:
    """Return hosts without answers."""
    return Hosts(tmp_path)


def result(hosts: Hosts, command: HostCommand) -> tuple[Ended, list[bytes]]:
    """Run one command."""
    with hosts.connections() as connections:
        connections.start(command)
        (ended,), lines = ends_of(connections)
        return ended, lines


@pytest.mark.parametrize("banner", ["echo welcome", "printf welcome", "printf 'tui-fs begins'"])
def test_banners_are_no_output(hosts: Hosts, banner: str) -> None:
    hosts.on("a", "connect", f"{banner}; {banner} >&2")
    ended, lines = result(hosts, HostCommand("a", "echo out; echo err >&2; exit 3"))
    assert [line for line in lines if line] == [b"out"]
    assert (ended.exit_code, ended.sentence, ended.was_reached) == (3, "err", True)


def test_a_host_that_is_not_reached_has_the_words_of_ssh(hosts: Hosts) -> None:
    hosts.on("a", "connect", "echo 'ssh: no route to host' >&2; exit 255")
    ended, lines = result(hosts, HostCommand("a", "echo out"))
    assert lines == []
    assert (ended.was_reached, ended.is_lost, ended.sentence) == (False, False, "no route to host")


@pytest.mark.parametrize("end", ["exit 255", "kill -9 $$"])
def test_a_connection_that_breaks_after_the_start_is_lost(hosts: Hosts, end: str) -> None:
    ended, lines = result(hosts, HostCommand("a", f"echo out; {end}"))
    assert lines == [b"out"]
    assert ended.is_lost
    assert ended.sentence == "The connection was lost."


def test_a_login_shell_that_runs_something_else_is_no_success(hosts: Hosts) -> None:
    hosts.on("a", "connect", "echo this account is only for backups; exit 0")
    ended, lines = result(hosts, HostCommand("a", "echo out"))
    assert lines == []
    assert not ended.is_success
    assert ended.sentence == "The login shell did not run the command."


def test_a_command_that_takes_too_long_is_ended(hosts: Hosts) -> None:
    ended, _ = result(hosts, HostCommand("a", "exec sleep 60", timeout_s=0.3))
    assert ended.exit_code is None
    assert not ended.is_success


def test_escape_sequences_of_hosts_are_shown_escaped(hosts: Hosts) -> None:
    script = r"printf '\033[2J\302\233bad\033]0;title\007\377\n' >&2; exit 1"
    ended, _ = result(hosts, HostCommand("a", script))
    assert ended.sentence == r"\e[2J\x9bbad\e]0;title\x07\xff".replace(r"\x9b", r"\u009b")


@pytest.mark.parametrize("shell", ["sh", "bash", "tcsh", "fish"])
def test_all_login_shells_pass_any_bytes_on(hosts: Hosts, shell: str) -> None:
    path = shutil.which(shell) if shell in ("sh", "bash") else needs_tool(shell, shell)
    hosts.on("a", "connect", f"export LOGIN_SHELL={path} HOME=$HOST_DIR")
    odd = 'it\'s "$(id)" `id` ! $HOME \\ \\n \n%hosts %{x} #*?[a]~ \udcff\udcc3 ä é'
    from shlex import quote

    ended, lines = result(hosts, HostCommand("a", f"printf '%s.' {quote(odd)}; cat", stdin=b"in"))
    assert ended.is_success, ended
    assert b"\n".join(lines) == odd.encode(errors="surrogateescape") + b".in"


def test_a_command_line_that_the_kernel_refuses_is_refused_before() -> None:
    with pytest.raises(BadInput, match="too long"):
        for_any_shell("x" * 130_000)


@pytest.mark.parametrize("program", ["", "'", "no-such-ssh -v"])
def test_an_ssh_that_cannot_run_is_refused(program: str) -> None:
    with pytest.raises((BadInput, Missing)):
        Connections(Ssh(program))


def test_no_more_commands_than_wanted_run_at_the_same_time(hosts: Hosts) -> None:
    script = "cd ..; echo >running-$$; ls | grep -c ^running-; sleep 0.05; rm running-$$"
    with hosts.connections(at_once=2) as connections:
        for number in range(8):
            connections.start(HostCommand(f"h{number}", script))
        _, lines = ends_of(connections, 8)
    assert len(lines) == 8
    assert {int(line) for line in lines} <= {1, 2}


def test_long_commands_do_not_delay_others(hosts: Hosts) -> None:
    go = hosts.place / "go"
    with hosts.connections(at_once=1) as connections:
        for number in range(3):
            connections.start(HostCommand(f"h{number}", waits_for(go), is_long=True))
        connections.start(HostCommand("h0", "echo cancelled"))
        (_ended,), lines = ends_of(connections)
        assert lines == [b"cancelled"]
        go.touch()
        ends, _ = ends_of(connections, 3)
        assert all(end.is_success for end in ends)


def test_megabytes_arrive_whole(hosts: Hosts) -> None:
    with hosts.connections() as connections:
        for number in range(3):
            command = "head -c 2000000 /dev/zero | tr '\\0' x; echo; yes line | head -n 20000"
            connections.start(HostCommand(f"h{number}", command))
        _, lines = ends_of(connections, 3)
    assert sum(map(len, lines)) == 3 * (2_000_000 + 4 * 20_000)


def test_a_host_that_never_ends_its_line_is_cut(hosts: Hosts) -> None:
    with hosts.connections() as connections:
        connections.start(HostCommand("a", "exec cat /dev/zero"))
        connections.start(HostCommand("b", "echo fine"))
        ends, lines = ends_of(connections, 2)
    assert lines == [b"fine"]
    assert {end.command.host: end.was_cut for end in ends} == {"a": True, "b": False}
    assert next(end for end in ends if end.was_cut).sentence.startswith("The host prints more")


def test_a_host_that_prints_faster_than_it_is_heard_is_cut(hosts: Hosts) -> None:
    with hosts.connections() as connections:
        connections.start(HostCommand("a", "exec yes $(printf %01000d 0)"))
        deadline = time.monotonic() + DEADLINE_S
        while connections._running and time.monotonic() < deadline:
            _worker, running = next(iter(connections._running.items()))
            if running.received_bytes > 32 << 20:
                break
            time.sleep(0.05)
        (ended,), _ = ends_of(connections)
    assert ended.was_cut


def test_an_abandoned_command_ends_as_lost(hosts: Hosts) -> None:
    with hosts.connections() as connections:
        connections.start(HostCommand("a", "echo began; exec sleep 60"))
        while not isinstance(connections.next_event(1.0), Line):
            pass
        connections.abandon("a")
        (ended,), _ = ends_of(connections)
    assert ended.is_lost


def test_what_holds_sees_the_end_of_its_input_at_the_close(hosts: Hosts) -> None:
    with hosts.connections() as connections:
        connections.start(HostCommand("a", "head -c 3; cat; echo >../cleaned", "", b"ab\n", True))
        while not isinstance(connections.next_event(1.0), Line):
            pass
    assert (hosts.place / "cleaned").exists()


def test_a_password_is_in_no_text_of_a_command() -> None:
    command = HostCommand("a", "sudo -S id", stdin=b"secret\n")
    assert "secret" not in f"{command!r} {Ended(command, 1, True, ())!r}"


def test_ssh_never_asks_and_takes_no_new_key(hosts: Hosts) -> None:
    result(hosts, HostCommand("a", "true"))
    words = (hosts.place / "ssh-arguments").read_text()
    assert "-oBatchMode=yes" in words
    assert "-oStrictHostKeyChecking=yes" in words
