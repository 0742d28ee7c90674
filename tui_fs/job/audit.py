"""Audit lines in the system's log: who deletes what, from where, how, and the result."""

import errno
import os
import re
import selectors
import socket
import stat
import syslog
from collections.abc import Sequence

from msgspec import Struct

from tui_fs.model.caller import CallerIdentity
from tui_fs.model.outcome import Outcome
from tui_fs.model.paths import displayable, shown_characters
from tui_fs.model.plan import Plan

SYSLOG_SOCKET = "/dev/log"
"""Where the C library sends; this cannot be configured."""

MAX_LINE_BYTES = 900
"""syslog cuts at 1,024 bytes (RFC 3164); priority, time, host name and tag need 102 of them."""

_IDENT = "tui-fs"
_MAX_NAME_BYTES = 40
_MAX_SSH_BYTES = 104  # two IPv6 addresses and two ports need 92
_MAX_GLOB_BYTES = 60
_MAX_NUMBER_BYTES = 20  # 2**64 has 20 digits
_BARE = re.compile(r"[A-Za-z0-9_./:@%+,~-]+")
_CUT = "…"
_ALSO_ESCAPED = {'"': "\\x22", "=": "\\x3d"}
_MAX_WAIT_S = 1.0


class AuditedEnd(Struct, frozen=True):
    """How a job ended, for the log.

    Attributes:
        deleted_entries, left_entries: None where nothing could count them.
    """

    outcome: Outcome
    deleted_entries: int | None
    failed_entries: int
    left_entries: int | None
    elapsed_s: float


def audit_line(plan: Plan, requester: CallerIdentity, end: AuditedEnd | None = None) -> str:
    """Return the line for a job's start, or with `end` for its end.

    The line is ``key=value`` pairs with one space between, at most MAX_LINE_BYTES in UTF-8.
    A value that is not plain is in double quotes. No value holds a double quote, an equals
    sign, a control character or a line break: they are escaped as `displayable` does, ``"`` as
    ``\\x22`` and ``=`` as ``\\x3d``. So ``(\\w+)=("[^"]*"|[^ "]*)`` reads the line back, and a
    search for ``outcome=`` finds no path. ``KEY_cut=yes`` follows a value that was cut in the
    middle. The path comes last and gets the rest of the line. With several targets ``targets`` is
    their number; ``path``, ``path_2`` and so on name all of them if there is room, else ``path``
    names the first.
    """
    options, filters = plan.options, plan.options.filters
    pairs = [
        log_pair("event", "start" if end is None else "end"),
        log_pair("job", plan.job_id),
        *caller_pairs(requester),
        log_pair("strategy", plan.strategy),
        log_pair("keep_root", _yes_or_no(options.keep_root)),
    ]
    if filters.name_glob is not None:
        pairs.append(log_pair("name_glob", filters.name_glob, _MAX_GLOB_BYTES))
    limits = ("min_size_bytes", "size_below_bytes", "modified_before_s", "modified_after_s")
    for name in limits:
        if (limit := getattr(filters, name)) is not None:
            pairs.append(_number(name, limit))
    if filters.share is not None:
        pairs.append(log_pair("share", str(filters.share)))
    if plan.confined_by:
        pairs.append(log_pair("confined_by", ",".join(plan.confined_by)))
    if options.accept_races:
        pairs.append(log_pair("accept_races", "yes"))
    pairs.append(_number("expected_entries", plan.expected.totals.entries))
    if not plan.expected.complete:
        pairs.append(log_pair("expected_complete", "no"))
    if end is not None:
        pairs += [
            log_pair("outcome", end.outcome.value),
            _number("deleted_entries", end.deleted_entries),
            _number("failed_entries", end.failed_entries),
            _number("left_entries", end.left_entries),
            log_pair("elapsed_s", f"{end.elapsed_s:.1f}", _MAX_NUMBER_BYTES),
        ]
    if len(plan.targets) > 1:
        pairs.append(_number("targets", len(plan.targets)))
        whole = " ".join([*pairs, *_all_paths(plan.paths)])
        if len(whole.encode()) <= MAX_LINE_BYTES:
            return whole
    line = " ".join(pairs)
    room = MAX_LINE_BYTES - len(line.encode()) - len(' path="" path_cut=yes')
    return f"{line} {log_pair('path', plan.paths[0], room)}"


def _all_paths(paths: Sequence[str]) -> list[str]:
    return [
        log_pair("path" if number == 1 else f"path_{number}", path, MAX_LINE_BYTES)
        for number, path in enumerate(paths, start=1)
    ]


def caller_pairs(caller: CallerIdentity) -> list[str]:
    """Return the pairs for the user who asks, and from where."""
    return [
        _number("uid", caller.uid),
        log_pair("user", caller.user),
        log_pair("login", caller.login_user),
        log_pair("sudo", caller.sudo_user),
        log_pair("ssh", caller.ssh_connection, _MAX_SSH_BYTES),
        log_pair("tty", caller.terminal),
    ]


def log_pair(key: str, text: str, max_bytes: int = _MAX_NAME_BYTES) -> str:
    """Return ``key=value`` with a value of at most `max_bytes`, quotes not counted."""
    pieces = [_ALSO_ESCAPED.get(piece, piece) for piece in shown_characters(text)]
    value = "".join(pieces)
    was_cut = len(value.encode()) > max_bytes
    if was_cut:
        room = max_bytes - len(_CUT.encode())
        head = _as_many(pieces, room // 2)
        tail = _as_many(pieces[::-1], room - room // 2)[::-1]
        value = "".join([*head, _CUT, *tail])
    quoted = value if _BARE.fullmatch(value) else f'"{value}"'
    return f"{key}={quoted} {key}_cut=yes" if was_cut else f"{key}={quoted}"


def send_to_syslog(line: str, socket_path: str = SYSLOG_SOCKET) -> str | None:
    """Send a line to the system's log (authpriv.notice); return why that failed, else None.

    The C library does not report whether a message arrived, so the socket is probed first:
    None means that a daemon listened there and had room.

    Args:
        socket_path: the socket to probe; the message itself always goes to /dev/log.
    """
    reason = _syslog_problem(socket_path)
    if reason is not None:
        return reason
    syslog.openlog(_IDENT, syslog.LOG_PID, syslog.LOG_AUTHPRIV)
    syslog.syslog(syslog.LOG_NOTICE, line)
    syslog.closelog()
    return None


def _syslog_problem(path: str) -> str | None:
    shown = displayable(path)
    try:
        if not stat.S_ISSOCK(os.stat(path).st_mode):
            return f"{shown} is not a socket"
    except FileNotFoundError:
        return f"no syslog socket at {shown}"
    except OSError as error:
        return f"the syslog socket {shown} cannot be examined: {os.strerror(error.errno or 0)}"
    try:
        if not _has_room(path):
            return f"the syslog daemon at {shown} does not read messages"
    except OSError as error:
        return f"no syslog daemon accepts messages at {shown}: {error.strerror or error}"
    return None


def _has_room(path: str, kind: socket.SocketKind = socket.SOCK_DGRAM) -> bool:
    """Connect as syslog(3) does; return whether a message could be sent without waiting."""
    with socket.socket(socket.AF_UNIX, kind) as probe:
        probe.settimeout(_MAX_WAIT_S)
        try:
            probe.connect(path)
        except OSError as error:
            if error.errno != errno.EPROTOTYPE or kind is socket.SOCK_STREAM:
                raise
            return _has_room(path, socket.SOCK_STREAM)
        with selectors.DefaultSelector() as selector:  # select(2) knows no descriptor above 1,023
            selector.register(probe, selectors.EVENT_WRITE)
            return bool(selector.select(_MAX_WAIT_S))


def _yes_or_no(value: bool) -> str:
    return "yes" if value else "no"


def _number(key: str, value: int | None) -> str:
    return log_pair(key, "unknown" if value is None else str(value), _MAX_NUMBER_BYTES)


def _as_many(pieces: list[str], max_bytes: int) -> list[str]:
    """Return the first pieces that fit; an escape is never split."""
    taken: list[str] = []
    for piece in pieces:
        max_bytes -= len(piece.encode())
        if max_bytes < 0:
            break
        taken.append(piece)
    return taken
