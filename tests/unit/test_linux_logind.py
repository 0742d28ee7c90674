"""Whether logind kills at logout, by the answer of busctl."""

from pathlib import Path

import pytest

from tui_fs.linux.logind import in_session_scope, kills_at_logout

NOBODY, ROOT = "as 0", 'as 1 "root"'


def busctl(place: Path, answer: str, code: int = 0) -> str:
    """Make a busctl that answers this, and return its path."""
    program = place / "busctl"
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{answer}\nEND\nexit {code}\n")
    program.chmod(0o755)
    return str(program)


@pytest.mark.parametrize(
    ("kill", "only", "excluded", "killed"),
    [
        ("b false", NOBODY, ROOT, set()),
        ("b true", NOBODY, ROOT, {"alice", "bob"}),
        ("b true", NOBODY, NOBODY, {"alice", "bob", "root"}),
        ("b true", NOBODY, 'as 2 "root" "bob"', {"alice"}),
        ("b false", 'as 2 "alice" "root"', ROOT, {"alice"}),
        ("b true", 'as 1 "bob"', NOBODY, {"bob"}),
    ],
)
def test_the_properties_are_applied_in_the_order_of_logind(
    tmp_path: Path, kill: str, only: str, excluded: str, killed: set[str]
) -> None:
    program = busctl(tmp_path, "\n".join((kill, only, excluded)))
    users = ("alice", "bob", "root")
    assert {user for user in users if kills_at_logout(user, program)} == killed


@pytest.mark.parametrize("answer", ["", "b true", 'b true\nas 0\nas 1 "ro', "\xff\n\xff\n\xff"])
def test_an_answer_that_is_none_means_that_nothing_is_killed(tmp_path: Path, answer: str) -> None:
    assert not kills_at_logout("alice", busctl(tmp_path, answer))


def test_without_an_answer_nothing_is_killed(tmp_path: Path) -> None:
    whole = "\n".join(("b true", NOBODY, ROOT))
    assert not kills_at_logout("alice", busctl(tmp_path, whole, code=1))
    assert not kills_at_logout("alice", str(tmp_path / "missing"))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"0::/user.slice/user-1000.slice/session-3.scope\n", True),
        (b"0::/user.slice/user-0.slice/session-c12.scope/below\n", True),
        (b"3:cpu:/\n1:name=systemd:/user.slice/user-1000.slice/session-3.scope\n", True),
        (b"0::/user.slice/user-1000.slice/user@1000.service/app.slice/run-u1.scope\n", False),
        (b"0::/system.slice/ssh.service\n", False),
        (b"0::/user.slice/my-session-3.scope\n", False),
        (b"0::/user.slice/session-3.scope.d\n", False),
        (b"0::/user.slice/session-.scope\n", False),
        (b"0::/\n", False),
        (b"\xff\x00::::/\nsession\n", False),
        (b"", False),
    ],
)
def test_a_session_scope_is_recognised(tmp_path: Path, content: bytes, expected: bool) -> None:
    (tmp_path / "cgroup").write_bytes(content)
    assert in_session_scope(str(tmp_path / "cgroup")) is expected


def test_without_control_groups_there_is_no_scope(tmp_path: Path) -> None:
    assert not in_session_scope(str(tmp_path / "missing"))
    assert not in_session_scope(str(tmp_path))
