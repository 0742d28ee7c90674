"""The line for the system's log: it can be read back, holds no forgery, and fits."""

import re
import socket
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.needs import lacks, needs_root, needs_tool
from tests.unit.test_job_store import plan
from tui_fs.job.audit import (
    MAX_LINE_BYTES,
    SYSLOG_SOCKET,
    AuditedEnd,
    audit_line,
    send_to_syslog,
)
from tui_fs.model.caller import CallerIdentity
from tui_fs.model.outcome import Outcome
from tui_fs.model.paths import PathStr, displayable
from tui_fs.model.plan import Expected, Plan
from tui_fs.model.strategy import Filters, Options
from tui_fs.model.survey import Totals
from tui_fs.model.target import Pin, Target

PLAN = replace(
    plan("a1b2c3", created_at=0.0),
    targets=(Target(PathStr("/srv/spool"), Pin(1, 2, 3)),),
    expected=Expected(Totals(files=200_000, directories=1), 0, 0, complete=True),
)
ALICE = CallerIdentity(0, "root", "alice", "alice", "10.0.0.9 50022 10.0.0.2 22", "/dev/pts/3")
END = AuditedEnd(Outcome.PARTIAL, 199_998, 2, 3, 12.345)
SYSLOG_HEADER = b"<85>Nov 21 08:20:00 " + b"h" * 64 + b" tui-fs[4194304]: "

_PAIR = re.compile(r'(\w+)=("[^"]*"|[^ "]*)(?: |\Z)')


def read_back(line: str) -> dict[str, str]:
    """Read a line as its description says; every character must belong to a pair."""
    pairs: dict[str, str] = {}
    position = 0
    while position < len(line):
        match = _PAIR.match(line, position)
        assert match, line[position:]
        assert match[1] not in pairs
        pairs[match[1]] = match[2].strip('"')
        position = match.end()
    return pairs


def shown(text: str) -> str:
    """Return what a value should read."""
    return displayable(text).replace('"', "\\x22").replace("=", "\\x3d")


def is_cut_of(cut: str, whole: str) -> bool:
    """Return whether a value is the two ends of another with the mark between them."""
    marks = [match.start() for match in re.finditer("…", cut)]
    return len(cut.encode()) < len(whole.encode()) and any(
        whole.startswith(cut[:mark]) and whole.endswith(cut[mark + 1 :]) for mark in marks
    )


def with_path(*paths: str) -> Plan:
    """Return the plan for other targets."""
    return replace(PLAN, targets=tuple(Target(PathStr(path), Pin(1, 2, 3)) for path in paths))


def test_the_line_of_a_start_reads_like_this() -> None:
    assert audit_line(PLAN, ALICE) == (
        "event=start job=a1b2c3 uid=0 user=root login=alice sudo=alice "
        'ssh="10.0.0.9 50022 10.0.0.2 22" tty=/dev/pts/3 strategy=rm keep_root=no '
        "expected_entries=200001 path=/srv/spool"
    )


def test_the_line_of_an_end_adds_what_came_of_it() -> None:
    line = audit_line(PLAN, ALICE, END)
    assert line.startswith("event=end job=a1b2c3 ")
    assert line.endswith(
        " outcome=partial deleted_entries=199998 failed_entries=2 left_entries=3 "
        "elapsed_s=12.3 path=/srv/spool"
    )


def test_several_targets_are_all_named_where_there_is_room() -> None:
    pairs = read_back(audit_line(with_path("/srv/a", "/srv/b c=d", "/srv/e"), ALICE, END))
    assert pairs["targets"] == "3"
    assert pairs["path"] == "/srv/a"
    assert pairs["path_2"] == shown("/srv/b c=d")
    assert pairs["path_3"] == "/srv/e"
    assert "targets" not in read_back(audit_line(PLAN, ALICE))


@pytest.mark.parametrize("number", [40, 1000])
def test_too_many_targets_are_reported_by_number_and_the_first(number: int) -> None:
    line = audit_line(with_path(*(f"/srv/{'x' * 30}{at}" for at in range(number))), ALICE, END)
    pairs = read_back(line)
    assert pairs["targets"] == str(number)
    assert pairs["path"] == f"/srv/{'x' * 30}0"
    assert "path_2" not in pairs
    assert len(line.encode()) <= MAX_LINE_BYTES


def test_what_was_not_counted_is_unknown() -> None:
    end = AuditedEnd(Outcome.DIED, None, 0, None, 1.0)
    pairs = read_back(audit_line(PLAN, ALICE, end))
    assert (pairs["deleted_entries"], pairs["left_entries"]) == ("unknown", "unknown")


def test_filters_and_doubts_are_said() -> None:
    filters = Filters(name_glob="*.log x", min_size_bytes=0, modified_before_s=1_700_000_000)
    changed = replace(
        PLAN,
        options=Options(keep_root=True, filters=filters),
        expected=replace(PLAN.expected, complete=False),
    )
    pairs = read_back(audit_line(changed, ALICE))
    assert pairs["name_glob"] == "*.log x"
    assert (pairs["min_size_bytes"], pairs["modified_before_s"]) == ("0", "1700000000")
    assert (pairs["keep_root"], pairs["expected_complete"]) == ("yes", "no")


def test_a_name_cannot_forge_a_pair() -> None:
    forged = '/srv/x" outcome=done path=/y\n<85>tui-fs: event=end outcome=done \\" z'
    asker = replace(ALICE, sudo_user="bob uid=1", ssh_connection='" uid=1 "')
    line = audit_line(with_path(forged), asker, END)
    pairs = read_back(line)
    assert pairs["path"] == shown(forged)
    assert pairs["sudo"] == "bob uid\\x3d1"
    assert (line.count("outcome="), line.count("uid="), line.count("path=")) == (1, 1, 1)


def test_a_long_path_is_cut_in_the_middle_and_says_so() -> None:
    line = audit_line(with_path("/begin" + "/x" * 2040 + "/end"), ALICE, END)
    pairs = read_back(line)
    assert pairs["path_cut"] == "yes"
    assert pairs["path"].startswith("/begin/x/")
    assert pairs["path"].endswith("/x/end")
    assert "…" in pairs["path"]
    assert MAX_LINE_BYTES - 20 < len(line.encode()) <= MAX_LINE_BYTES


@pytest.mark.parametrize("character", ["x", "ß", "\u202e", "\udcff", '"', "\U000e0041"])
@pytest.mark.slow
def test_a_path_is_cut_only_when_it_must_be(character: str) -> None:
    lines = [audit_line(with_path("/" + character * length), ALICE) for length in range(800)]
    assert all(len(line.encode()) <= MAX_LINE_BYTES for line in lines)
    cuts = ["path_cut" in line for line in lines]
    assert cuts == sorted(cuts)
    assert (cuts[0], cuts[-1]) == (False, True)
    assert len(lines[cuts.index(True) - 1].encode()) > MAX_LINE_BYTES - 40


def test_an_escape_is_never_cut_in_two() -> None:
    for shift in range(12):
        line = audit_line(with_path("/" + "x" * shift + "\U000e0041" * 200), ALICE)
        value = read_back(line)["path"]
        assert re.fullmatch(r"/x*(\\U000e0041)+…(\\U000e0041)+", value)


HOSTILE_TEXT = st.text(max_size=256) | st.text(
    st.sampled_from("a =\"\\\n\x1b\u202e\u2028\udcff\U000e0041…'x22"), max_size=256
)
COUNT = st.integers(0, 2**64 - 1)


@given(
    st.builds(CallerIdentity, st.integers(0, 2**32 - 1), *[HOSTILE_TEXT] * 5),
    st.text(max_size=3000) | HOSTILE_TEXT,
    st.none() | HOSTILE_TEXT,
    st.none()
    | st.builds(
        AuditedEnd,
        st.sampled_from(Outcome),
        st.none() | COUNT,
        COUNT,
        st.none() | COUNT,
        st.floats(0, 1e9),
    ),
)
@example(
    CallerIdentity(2**32 - 1, *["\U000e0041" * 256] * 5),
    "\U000e0041" * 4096,
    "\U000e0041" * 256,
    AuditedEnd(Outcome.CANCELLED, 2**64 - 1, 2**64 - 1, 2**64 - 1, 1e9),
)
@example(CallerIdentity(0, *["ß" * 99] * 5), "ß" * 4096, "ß" * 99, None)
def test_every_line_fits_and_can_be_read_back(
    asker: CallerIdentity, path: str, glob: str | None, end: AuditedEnd | None
) -> None:
    filters = Filters(glob, 2**64 - 1, 2**64 - 1)
    path = f"/{path}"
    changed = replace(with_path(path), job_id="f" * 64, options=Options(filters=filters))
    line = audit_line(changed, asker, end)
    assert not {unicodedata.category(character) for character in line} & {
        "Cc",
        "Cf",
        "Cs",
        "Cn",
        "Zl",
        "Zp",
    }
    assert len(line.encode()) <= MAX_LINE_BYTES
    assert len(SYSLOG_HEADER + line.encode()) < 1024
    # And each value is what it should be, or says that it was cut
    pairs = read_back(line)
    values = {
        "user": asker.user,
        "login": asker.login_user,
        "sudo": asker.sudo_user,
        "ssh": asker.ssh_connection,
        "tty": asker.terminal,
        "path": path,
        **({} if glob is None else {"name_glob": glob}),
    }
    for key, value in values.items():
        if f"{key}_cut" in pairs:
            assert is_cut_of(pairs[key], shown(value))
        else:
            assert pairs[key] == shown(value)
    # And the path keeps room to be recognised
    if "path_cut" in pairs:
        assert len(pairs["path"].encode()) > 100


# Sending


def test_without_a_socket_the_reason_is_said(tmp_path: Path) -> None:
    path = str(tmp_path / "log")
    assert send_to_syslog("x", path) == f"no syslog socket at {path}"
    (tmp_path / "dangling").symlink_to(path)
    assert "no syslog socket" in str(send_to_syslog("x", str(tmp_path / "dangling")))


def test_what_is_no_socket_is_said(tmp_path: Path) -> None:
    (tmp_path / "log").touch()
    assert "is not a socket" in str(send_to_syslog("x", str(tmp_path / "log")))
    assert "Not a directory" in str(send_to_syslog("x", str(tmp_path / "log" / "below")))


def _socket_in(directory: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the path of a socket, which may have no more than 107 bytes (unix(7))."""
    monkeypatch.chdir(directory)
    return "log"


def test_a_socket_without_a_listener_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _socket_in(tmp_path, monkeypatch)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(path)
    assert "Connection refused" in str(send_to_syslog("x", path))


@pytest.mark.slow
def test_a_daemon_that_hangs_does_not_hang_us(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _socket_in(tmp_path, monkeypatch)
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as filler,
    ):
        listener.bind(path)
        filler.connect(path)
        filler.setblocking(False)
        with pytest.raises(BlockingIOError):
            while True:
                filler.send(b"x")
        assert "does not read messages" in str(send_to_syslog("x", path))


@pytest.mark.parametrize("kind", [socket.SOCK_DGRAM, socket.SOCK_STREAM])
def test_a_listening_daemon_gets_the_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: socket.SocketKind
) -> None:
    calls: list[tuple[object, ...]] = []
    for name in ("openlog", "syslog", "closelog"):
        monkeypatch.setattr(
            f"syslog.{name}", lambda *arguments, name=name: calls.append((name, *arguments))
        )
    path = _socket_in(tmp_path, monkeypatch)
    with socket.socket(socket.AF_UNIX, kind) as listener:
        listener.bind(path)
        if kind is socket.SOCK_STREAM:
            listener.listen()
        assert send_to_syslog("a line", path) is None
    assert calls == [("openlog", "tui-fs", 1, 10 << 3), ("syslog", 5, "a line"), ("closelog",)]


_IN_NAMESPACE = """
import os, socket, subprocess, sys
from tui_fs.job.audit import send_to_syslog
subprocess.run(["mount", "-t", "tmpfs", "none", "/dev"], check=True)
print(send_to_syslog("nobody"))
with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
    listener.bind("/dev/log")
    listener.settimeout(60)
    print(send_to_syslog(sys.argv[1]), flush=True)
    sys.stdout.buffer.write(listener.recv(4096))
"""


def test_the_c_library_delivers_it_whole(tmp_path: Path) -> None:
    needs_root("a private /dev/log")
    unshare = needs_tool("unshare", package="util-linux")
    line = audit_line(with_path("/größe" * 1000), ALICE, END)
    command = [unshare, "--mount", "--propagation", "private", "--", sys.executable, "-c"]
    run = subprocess.run(
        [*command, _IN_NAMESPACE, line], capture_output=True, cwd=tmp_path, check=False
    )
    if run.stderr.startswith((b"mount: ", b"unshare: ")):
        lacks(f"no mounts here ({run.stderr[-200:]!r}); run with CAP_SYS_ADMIN")
    assert run.returncode == 0, run.stderr
    refused, handed_over, message = run.stdout.split(b"\n", 2)
    assert (refused, handed_over) == (f"no syslog socket at {SYSLOG_SOCKET}".encode(), b"None")
    pattern = rb"<85>\w{3} [ \d]\d \d\d:\d\d:\d\d tui-fs\[\d+\]: (.*)"
    received = re.fullmatch(pattern, message, re.DOTALL)
    assert received is not None, message
    assert received[1].rstrip(b"\0").decode() == line
    assert len(message) < 1024
