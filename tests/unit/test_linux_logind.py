"""Whether logind kills at logout, from its files in all their places."""

import os
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_fs.linux.logind import in_session_scope, kills_at_logout

MAIN = "etc/systemd/logind.conf"
KILL = "[Login]\nKillUserProcesses=yes\n"
KEEP = "[Login]\nKillUserProcesses=no\n"
DIRECTORIES = ("usr/lib", "usr/local/lib", "run", "etc")


def write(root: Path, name: str, content: str | bytes) -> str:
    """Write a file below the root, and return its path."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def drop_in(directory: str, name: str) -> str:
    """Name a drop-in."""
    return f"{directory}/systemd/logind.conf.d/{name}.conf"


def kills(root: Path, user: str = "alice") -> str | None:
    """Ask about a user."""
    return kills_at_logout(user, str(root))


def test_the_main_file_is_named(tmp_path: Path) -> None:
    assert kills(tmp_path) is None
    path = write(tmp_path, MAIN, KILL)
    assert kills(tmp_path) == path


@pytest.mark.parametrize(
    ("before", "words", "is_killing"),
    [
        ("[Login]\n", ("yes", "YES", "y", "true", "t", "on", "1"), True),
        (KILL, ("no", "N", "false", "F", "off", "0"), False),
        (KILL, ("", "maybe", "yes no", "2", "yes # really"), True),  # they change nothing
    ],
)
def test_every_spelling_of_a_boolean_counts(
    tmp_path: Path, before: str, words: tuple[str, ...], is_killing: bool
) -> None:
    for word in words:
        path = write(tmp_path, MAIN, f"{before}  KillUserProcesses  =  {word}  \r\n")
        assert kills(tmp_path) == (path if is_killing else None), word


@pytest.mark.parametrize(
    "content",
    [
        "KillUserProcesses=yes\n",
        "[Login]\n#KillUserProcesses=yes\n;KillUserProcesses=yes\n",
        "[Manager]\nKillUserProcesses=yes\n",
        "[login]\nKillUserProcesses=yes\n",
        "[Login]\n[Other]\nKillUserProcesses=yes\n",
        "[Login\nKillUserProcesses=yes\n",
        "[Login]\nkilluserprocesses=yes\n",
        "[Login]\nKillUserProcesses yes\n",
        b"[Login]\nKillUserProcesses=yes\xff\n",
    ],
)
def test_other_sections_and_junk_do_not_count(tmp_path: Path, content: str | bytes) -> None:
    write(tmp_path, MAIN, content)
    assert kills(tmp_path) is None


@pytest.mark.parametrize("line", ["KillUserProcesses=yes\\\n", "\\\nKillUserProcesses\\\n=yes\\"])
def test_a_line_continued_to_the_end_of_the_file_counts(tmp_path: Path, line: str) -> None:
    path = write(tmp_path, MAIN, f"[Login]\n{line}")
    assert kills(tmp_path) == path


def test_a_byte_order_mark_and_a_continued_line_are_read(tmp_path: Path) -> None:
    content = b"\xef\xbb\xbf[Login]\nKillOnlyUsers=bob \\\n# not this: carol \\\n  alice\n"
    path = write(tmp_path, MAIN, content)
    assert kills(tmp_path, "alice") == path
    assert kills(tmp_path, "carol") is None


@pytest.mark.parametrize("directory", DIRECTORIES)
def test_a_drop_in_of_any_place_overrides_the_main_file(tmp_path: Path, directory: str) -> None:
    write(tmp_path, MAIN, KEEP)
    path = write(tmp_path, drop_in(directory, "50-kill"), KILL)
    assert kills(tmp_path) == path


@pytest.mark.parametrize(("lesser", "greater"), list(pairwise(DIRECTORIES)))
def test_a_more_important_file_of_the_same_name_replaces(
    tmp_path: Path, lesser: str, greater: str
) -> None:
    write(tmp_path, drop_in(lesser, "50"), KILL)
    assert kills(tmp_path) is not None
    write(tmp_path, drop_in(greater, "50"), "")
    assert kills(tmp_path) is None


def test_names_decide_the_order_and_not_places(tmp_path: Path) -> None:
    write(tmp_path, drop_in("etc", "10-keep"), KEEP)
    path = write(tmp_path, drop_in("usr/lib", "90-kill"), KILL)
    assert kills(tmp_path) == path
    write(tmp_path, drop_in("run", "95-keep"), KEEP)
    assert kills(tmp_path) is None


def test_a_drop_in_linked_to_nothing_is_masked(tmp_path: Path) -> None:
    write(tmp_path, drop_in("usr/lib", "50"), KILL)
    mask = tmp_path / drop_in("etc", "50")
    mask.parent.mkdir(parents=True)
    mask.symlink_to(os.devnull)
    assert kills(tmp_path) is None


@pytest.mark.parametrize("name", ["50-kill", ".50", "50.conf~", "50.conf.dpkg-old"])
def test_other_names_are_not_drop_ins(tmp_path: Path, name: str) -> None:
    ending = ".conf" if name == ".50" else ""
    write(tmp_path, f"etc/systemd/logind.conf.d/{name}{ending}", KILL)
    assert kills(tmp_path) is None


def test_the_main_file_of_the_vendor_counts_where_there_is_no_other(tmp_path: Path) -> None:
    path = write(tmp_path, "usr/lib/systemd/logind.conf", KILL)
    assert kills(tmp_path) == path
    write(tmp_path, MAIN, "")
    assert kills(tmp_path) is None


def test_root_is_excluded_until_a_list_is_given(tmp_path: Path) -> None:
    path = write(tmp_path, MAIN, KILL)
    assert kills(tmp_path, "root") is None
    for excluded in ("alice bob", ""):
        write(tmp_path, MAIN, f"{KILL}KillExcludeUsers={excluded}\n")
        assert kills(tmp_path, "root") == path


def test_lists_grow_and_an_empty_one_resets_them(tmp_path: Path) -> None:
    path = write(tmp_path, MAIN, f"{KILL}KillExcludeUsers=alice 'bob'\nKillExcludeUsers=carol\n")
    assert [kills(tmp_path, user) for user in ("alice", "bob", "carol")] == [None] * 3
    assert kills(tmp_path, "dave") == path
    write(tmp_path, drop_in("etc", "a"), "[Login]\nKillExcludeUsers=\nKillExcludeUsers=dave\n")
    assert kills(tmp_path, "alice") == path
    assert kills(tmp_path, "dave") is None


@pytest.mark.parametrize("switch", [KILL, KEEP, "[Login]\n"])
def test_only_users_decide_alone(tmp_path: Path, switch: str) -> None:
    write(tmp_path, MAIN, switch)
    path = write(tmp_path, drop_in("etc", "only"), "[Login]\nKillOnlyUsers=alice root\n")
    assert kills(tmp_path, "alice") == path
    assert kills(tmp_path, "bob") is None
    assert kills(tmp_path, "root") is None


def test_odd_files_are_no_files(tmp_path: Path) -> None:
    (tmp_path / MAIN).parent.mkdir(parents=True)
    os.mkfifo(tmp_path / MAIN)
    (tmp_path / drop_in("etc", "directory")).mkdir(parents=True)
    (tmp_path / drop_in("etc", "nowhere")).symlink_to("/nonexistent/file")
    assert kills(tmp_path) is None
    path = write(tmp_path, drop_in("etc", "z"), KILL)
    assert kills(tmp_path) == path


@given(st.binary(max_size=200), st.text(max_size=5))
def test_any_bytes_are_read_without_an_exception(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, user: str
) -> None:
    root = tmp_path_factory.mktemp("root")
    path = write(root, MAIN, b"[Login]\nKillUserProcesses=1\n" + content)
    assert kills_at_logout(user, str(root)) in (None, path)


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
