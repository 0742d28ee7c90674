"""The requester, read from the process, the kernel and an untrusted environment."""

import os
import pwd
from collections.abc import Iterator
from pathlib import Path

import pytest

from tui_fs.linux.host import MAX_CHARACTERS, current_caller
from tui_fs.model.caller import CallerIdentity

NO_LOGIN = "/nonexistent/loginuid"


@pytest.fixture
def terminal() -> Iterator[int]:
    """Open a terminal of our own."""
    ours, theirs = os.openpty()
    yield theirs
    os.close(ours)
    os.close(theirs)


def here(
    environ: dict[str, str] | None = None,
    loginuid_path: str = NO_LOGIN,
    descriptors: tuple[int, ...] = (),
) -> CallerIdentity:
    """Read the requester from these sources only."""
    return current_caller(environ or {}, loginuid_path, descriptors)


def login_user(tmp_path: Path, content: bytes) -> str:
    """Return the login user for the content of a loginuid file."""
    (tmp_path / "loginuid").write_bytes(content)
    return here(loginuid_path=str(tmp_path / "loginuid")).login_user


def account() -> pwd.struct_passwd:
    """Return some account whose uid and name belong together."""
    return pwd.getpwuid(pwd.getpwall()[-1].pw_uid)


def test_the_user_of_this_process_is_named() -> None:
    requester = here()
    assert requester.uid == os.getuid()
    assert requester.user == pwd.getpwuid(os.getuid()).pw_name


def test_a_uid_without_an_account_is_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 4_000_000_123)
    assert (here().uid, here().user) == (4_000_000_123, "4000000123")


def test_nothing_known_is_empty() -> None:
    requester = here()
    assert (
        requester.login_user,
        requester.sudo_user,
        requester.ssh_connection,
        requester.terminal,
    ) == ("",) * 4


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_who_logged_in_is_named(tmp_path: Path, end: bytes) -> None:
    known = account()
    assert login_user(tmp_path, str(known.pw_uid).encode() + end) == known.pw_name
    assert login_user(tmp_path, b"4000000123" + end) == "4000000123"


@pytest.mark.parametrize(
    "content",
    [
        b"4294967295",
        b"-1",
        b"",
        b"root",
        b"1_0",
        b"\xff",
        "٣".encode(),
        b"99999999999999",
    ],
)
def test_an_unset_or_odd_loginuid_names_no_user(tmp_path: Path, content: bytes) -> None:
    assert login_user(tmp_path, content) == ""
    assert here(loginuid_path=str(tmp_path)).login_user == ""


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"SUDO_USER": "alice"}, "alice"),
        ({"DOAS_USER": "bob"}, "bob"),
        ({"SUDO_USER": "alice", "DOAS_USER": "bob"}, "alice"),
        ({"SUDO_USER": "", "DOAS_USER": "bob"}, "bob"),
        ({"SUDO_USER": ""}, ""),
        ({"USER": "carol"}, ""),
    ],
)
def test_sudo_comes_before_doas(environ: dict[str, str], expected: str) -> None:
    assert here(environ).sudo_user == expected


def test_the_connection_is_kept_exactly() -> None:
    value = "2001:db8::1 50022 \x1b[2J\n\udcff 22"
    assert here({"SSH_CONNECTION": value}).ssh_connection == value


@pytest.mark.parametrize("name", ["SUDO_USER", "DOAS_USER", "SSH_CONNECTION"])
def test_an_endless_variable_is_cut(name: str) -> None:
    requester = here({name: "ab" * 500_000})
    assert "ab" * (MAX_CHARACTERS // 2) in (requester.sudo_user, requester.ssh_connection)


def test_the_first_terminal_is_named(terminal: int) -> None:
    with open(os.devnull, "rb") as no_terminal:
        requester = here(descriptors=(no_terminal.fileno(), terminal))
        assert here(descriptors=(no_terminal.fileno(),)).terminal == ""
    assert requester.terminal == os.ttyname(terminal)
