"""Reaching hosts, bringing tui-fs, sudo, and what hosts answer."""

import platform
import queue
from pathlib import Path

import pytest
from textual.message import Message

from tests.unit.fleet_hosts import Hosts, prints, waits_for
from tui_fs import __version__
from tui_fs.fleet.access import Account, OneFile, Password
from tui_fs.fleet.answers import (
    HostPlan,
    HostSurvey,
    Predicted,
    different_directories,
    total_seconds,
    understood,
)
from tui_fs.fleet.fleet import Answer, Fleet
from tui_fs.model.plan import Expected
from tui_fs.model.survey import Totals
from tui_fs.screens.fleet_client import Asked, FleetClient, Heard

DOCTOR = ("doctor", "--json")


@pytest.fixture
def hosts(tmp_path: Path) -> Hosts:
    """Return hosts without answers."""
    return Hosts(tmp_path)


def one_file(hosts: Hosts, content: bytes | None = None) -> OneFile:
    """Return a one-file build: a script that runs the stand-in."""
    content = content or f'#!/bin/sh\nBROUGHT=1 exec {hosts.program} "$@"\n'.encode()
    return OneFile("one", content, platform.machine())


# Reaching them


def test_hosts_that_fail_do_not_hinder_others(hosts: Hosts) -> None:
    hosts.on("down", "connect", "echo 'ssh: connection refused' >&2; exit 255")
    hosts.on("old", "version", "tui-fs 0.0.1\n")
    hosts.on("bare", "connect", "PATH=/usr/bin:/bin")
    hosts.on("backup", "connect", "echo only for backups; exit 0")
    with hosts.fleet("down", "old", "bare", "backup", "fine") as fleet:
        assert list(fleet.programs) == ["fine"]
    assert fleet.problems["down"] == "connection refused"
    assert fleet.problems["backup"] == "The login shell did not run the command."
    assert fleet.problems["old"].startswith(f"It has tui-fs 0.0.1, not {__version__}; give")
    assert fleet.problems["bare"].startswith("It has no tui-fs; give")


def test_what_a_host_says_of_itself_cannot_control_the_terminal(hosts: Hosts) -> None:
    hosts.on("bad", "version", "tui-fs \x1b[2J\n")
    with hosts.fleet("bad") as fleet:
        assert fleet.problems["bad"].isprintable()


def test_a_slow_host_delays_the_answers_of_no_other(hosts: Hosts) -> None:
    names, ready = ("slow", "busy", "bare", "fast"), hosts.place / "ready"
    for host in names:
        hosts.on(host, "survey", "echo '{}'")
    hosts.on("slow", "connect", waits_for(ready))
    hosts.on("busy", "survey", f"{waits_for(ready)}echo '{{}}'")
    hosts.on("bare", "connect", "PATH=/usr/bin:/bin")
    hosts.on("fast", "estimate", "echo '{}'")
    posted = queue.SimpleQueue[Message]()
    client = FleetClient(Fleet(names, hosts.ssh, one_file(hosts)), 64)

    def heard(number: int) -> list[tuple[str, str]]:
        messages = [posted.get(timeout=60) for _ in range(number)]
        return sorted((m.purpose, m.answer.host) for m in messages if isinstance(m, Heard))

    try:
        client.start(posted.put)
        client.ask(names, ("survey", "--json"))
        assert heard(2) == [("survey", "bare"), ("survey", "fast")]
        client.ask(("fast",), ("estimate", "--json"))
        assert heard(1) == [("estimate", "fast")]
        assert isinstance(posted.get(timeout=60), Asked)
        ready.touch()
        assert heard(2) == [("survey", "busy"), ("survey", "slow")]
        asked = posted.get(timeout=60)
    finally:
        ready.touch()
        client.close()
    assert isinstance(asked, Asked)
    assert asked.answers == {host: Answer(host, 0, {}) for host in names}


# Bringing the program


def test_a_program_is_brought_checked_used_and_removed(hosts: Hosts) -> None:
    hosts.on("bare", "connect", "PATH=/usr/bin:/bin XDG_RUNTIME_DIR=; export XDG_RUNTIME_DIR")
    hosts.on("bare", "doctor", 'echo "[$BROUGHT]"')
    with hosts.fleet("bare", one_file=one_file(hosts)) as fleet:
        assert fleet.brought_to == ["bare"]
        program = Path(fleet.programs["bare"])
        assert program.is_file()
        assert program.parent.stat().st_mode & 0o77 == 0
        assert fleet.ask({"bare": DOCTOR})["bare"].value == [1]
    assert not program.parent.exists()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"#!/bin/sh\necho tui-fs 0.0.1\n", "does not run there: tui-fs 0.0.1"),
        (b"#!/bin/sh\necho 'GLIBC_2.38 not found' >&2; exit 1\n", "GLIBC_2.38 not found"),
        (
            b"#!/bin/sh\nprintf 'Traceback:\\n  File\\nOSError: [Errno 5]\\n' >&2\n",
            "there: OSError: [Errno 5]",
        ),
    ],
)
def test_a_brought_program_of_another_version_is_not_used(
    hosts: Hosts, content: bytes, problem: str
) -> None:
    hosts.on("bare", "connect", "PATH=/usr/bin:/bin")
    with hosts.fleet("bare", one_file=one_file(hosts, content)) as fleet:
        assert not fleet.programs
        assert problem in fleet.problems["bare"]
    assert not [entry for entry in Path("/dev/shm").glob("tui-fs.*/tui-fs") if _has(entry, content)]


def _has(path: Path, content: bytes) -> bool:
    try:
        return path.read_bytes() == content
    except OSError:  # that of another test
        return False


@pytest.mark.parametrize(
    ("tool", "script", "problem"),
    [
        ("head", "exit 1", "no room"),
        ("sha256sum", "exit 1", "differs from the original"),
        ("mktemp", "exit 1", "cannot be run from memory"),
    ],
)
def test_a_program_that_is_not_received_is_one_line(
    hosts: Hosts, tool: str, script: str, problem: str
) -> None:
    (hosts.place / "tools").mkdir()
    hosts._script(hosts.place / "tools" / tool, f"#!/bin/sh\n{script}\n")
    hosts.on("bare", "connect", f"PATH={hosts.place}/tools:/usr/bin:/bin")
    with hosts.fleet("bare", "fine", one_file=one_file(hosts)) as fleet:
        assert list(fleet.programs) == ["fine"]
        assert problem in fleet.problems["bare"]


def test_a_program_for_another_machine_is_not_brought(hosts: Hosts) -> None:
    hosts.on("bare", "connect", "PATH=/usr/bin:/bin")
    build = OneFile("one", b"x", "riscv64")
    with hosts.fleet("bare", one_file=build) as fleet:
        assert "the one-file build is for riscv64" in fleet.problems["bare"]


# sudo

SUDO = """#!/bin/sh
echo "$*" >>{place}/sudo-arguments
: ${{PASSWORD:='se"cret'}}
while case $1 in -*) true ;; *) false ;; esac; do
    case $1 in -n) silent=1 ;; -S) read -r password ;; -p) shift ;; esac
    shift
done
[ -z "$silent" ] || [ -n "$NOPASSWD" ] || {{ echo 'sudo: a password is required' >&2; exit 1; }}
[ -n "$silent" ] || [ "$password" = "$PASSWORD" ] || {{ echo 'sudo: wrong' >&2; exit 1; }}
[ "$NOPASSWD" != tui-fs ] || case $1 in */tui-fs) ;; *) exit 1 ;; esac
exec "$@"
"""


@pytest.fixture
def sudo(hosts: Hosts) -> Path:
    """Return the file with the arguments of a stand-in for sudo."""
    hosts._script(hosts.place / "bin" / "sudo", SUDO.format(place=hosts.place))
    hosts.on("a", "doctor", "echo '{}'")
    return hosts.place / "sudo-arguments"


@pytest.mark.parametrize("allowed", ["all", "tui-fs"])
def test_sudo_without_a_password_asks_for_none(hosts: Hosts, sudo: Path, allowed: str) -> None:
    hosts.on("a", "connect", f"export NOPASSWD={allowed}")
    with hosts.fleet("a", becomes_root=True, ask_password=pytest.fail) as fleet:
        assert fleet.ask({"a": DOCTOR})["a"].value == {}
    assert sudo.read_text().splitlines()[-1].startswith("-n -- ")


def test_the_password_of_sudo_is_in_no_argument_and_no_text(hosts: Hosts, sudo: Path) -> None:
    secret = 'se"cret'
    with hosts.fleet("a", becomes_root=True, ask_password=lambda _: secret) as fleet:
        assert fleet.ask({"a": DOCTOR})["a"].value == {}
        assert secret not in repr(fleet._known)
        for file in hosts.place.rglob("*"):
            if file.is_file() and file.name != "sudo":
                assert secret.encode() not in file.read_bytes(), file
    assert secret not in sudo.read_text()


def test_a_wrong_password_is_asked_for_again_and_then_sent_to_no_other_host(
    hosts: Hosts, sudo: Path
) -> None:
    asked: list[str] = []

    def guess(problem: str) -> str:
        asked.append(problem)
        return "guess"

    with hosts.fleet(*"abc", becomes_root=True, ask_password=guess) as fleet:
        assert fleet.problems == {
            "a": "sudo on a refuses: wrong.",
            "b": "The password was not sent, as sudo on a refuses it.",
            "c": "The password was not sent, as sudo on a refuses it.",
        }
    assert asked == ["", "sudo on a refuses: wrong."]
    assert _passwords_sent(sudo) == 2


def test_a_password_that_is_wrong_on_some_hosts_is_sent_to_each_of_them_once(
    hosts: Hosts, sudo: Path
) -> None:
    hosts.on("b", "connect", "export PASSWORD=other")
    words = iter(["guess", 'se"cret'])
    with hosts.fleet(*"abc", becomes_root=True, ask_password=lambda _: next(words)) as fleet:
        assert fleet.problems == {"b": "sudo on b refuses: wrong."}
        assert list(fleet.programs) == ["a", "c"]
        assert _passwords_sent(sudo) == 4
        assert fleet.ask({"a": DOCTOR})["a"].value == {}


def _passwords_sent(sudo: Path) -> int:
    return sum(line.startswith("-S ") for line in sudo.read_text().splitlines())


@pytest.mark.usefixtures("sudo")
def test_no_password_leaves_its_hosts_out(hosts: Hosts) -> None:
    with hosts.fleet("a", becomes_root=True) as fleet:
        assert fleet.problems == {"a": "sudo asks for a password there."}


def test_an_account_shows_no_password() -> None:
    account = Account(True, Password("secret"))
    assert "secret" not in f"{account} {account!r} {account.line(('tui-fs', 'jobs'))}"
    assert account.stdin == b"secret\n"


# Answers


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("", "The answer is empty."),
        ("echo hello", "The answer is not JSON: hello"),
        ("printf 'a\\033[2J'", "The answer is not JSON: a\\e[2J"),
        ("head -c 100000 /dev/zero | tr '\\0' '['", "The answer is not JSON"),
        ("yes $(printf %01000d 0)", "The answer is longer than"),
        ("kill -9 $$", "The connection was lost."),
        ("exit 255", "The connection was lost."),
    ],
)
def test_an_answer_that_is_none_is_a_problem_without_an_exit_code(
    hosts: Hosts, script: str, problem: str
) -> None:
    hosts.on("bad", "doctor", script)
    hosts.on("fine", "doctor", "echo '{\"a\": 1}'")
    with hosts.fleet("bad", "fine") as fleet:
        answers = fleet.ask({"bad": DOCTOR, "fine": DOCTOR})
    assert answers["bad"].problem.startswith(problem)
    assert (answers["bad"].exit_code, answers["bad"].value) == (None, None)
    assert (answers["fine"].exit_code, answers["fine"].value) == (0, {"a": 1})


def test_an_error_keeps_its_exit_code_and_its_sentence(hosts: Hosts) -> None:
    hosts.on("a", "doctor", "echo 'tui-fs: /x is a mount point.' >&2; exit 3")
    with hosts.fleet("a") as fleet:
        assert fleet.ask({"a": DOCTOR})["a"] == Answer("a", 3, None, "/x is a mount point.")


def test_an_answer_may_have_many_lines(hosts: Hosts) -> None:
    hosts.on("a", "doctor", "printf '{\n\n  \"a\":\n [1,\n2]\n}\n'")
    with hosts.fleet("a") as fleet:
        assert fleet.ask({"a": DOCTOR})["a"] == Answer("a", 0, {"a": [1, 2]})


def test_hosts_with_refusals_keep_their_json(hosts: Hosts) -> None:
    hosts.on("a", "doctor", prints({"refused": "so"}) + "exit 3")
    with hosts.fleet("a") as fleet:
        answer = fleet.ask({"a": DOCTOR})["a"]
    assert (answer.exit_code, answer.value) == (3, {"refused": "so"})


@pytest.mark.parametrize(
    "value",
    [[], {}, {"entries": -1}, {"entries": "1", "allocated_bytes": 0, "pathologies": []}, 5],
)
def test_an_answer_of_another_shape_is_not_understood(value: object) -> None:
    assert isinstance(understood(HostSurvey, Answer("a", 0, value)), str)


def test_an_answer_without_a_value_has_its_problem() -> None:
    assert understood(HostSurvey, Answer("a", None, None, "No route.")) == "No route."
    assert understood(HostSurvey, Answer("a", None)) == "There was no answer."


@pytest.mark.parametrize(
    ("seconds", "at_once", "total"),
    [([], 4, 0), ([3], 4, 3), ([1, 2, 3], 1, 6), ([1, 2, 3], 3, 3), ([3, 1, 1, 1], 2, 3)],
)
def test_total_seconds(seconds: list[float], at_once: int, total: float) -> None:
    assert total_seconds(seconds, at_once) == total


@pytest.mark.parametrize(
    ("seconds", "at_once", "total"), [([], 4, 0), ([3], 4, 3), ([1, 2, 3], 3, 4), ([1, 2, 3], 1, 6)]
)
def test_the_others_wait_for_the_first_host_alone(
    seconds: list[float], at_once: int, total: float
) -> None:
    assert total_seconds(seconds, at_once, canary=True) == total


def plan(*ids: str) -> HostPlan:
    """Return a plan for directories with these ids."""
    totals = Totals(1, 1, allocated_bytes=4096)
    expected, predicted = Expected(totals, 0, 4096, complete=True), Predicted(1, 2, {}, 1)
    return HostPlan("rm", expected, predicted, list(ids))


@pytest.mark.parametrize(
    ("plans", "differ"),
    [
        ([], False),
        ([plan("a"), plan("a")], False),
        ([plan("a"), plan("b")], True),
        ([plan("a"), plan("a", "b")], True),
        ([plan(), plan()], True),
    ],
)
def test_hosts_share_only_the_same_directory(plans: list[HostPlan], differ: bool) -> None:
    named = {f"h{number}": plan for number, plan in enumerate(plans)}
    assert bool(different_directories(named)) == differ
