"""Real output of the program and its tools: the seeds of the mutations."""

import json
from typing import Any

from tests.ui import recorded
from tui_fs.model.calls import CallCount, Removed
from tui_fs.model.codec import encode
from tui_fs.model.events import (
    EntryFailed,
    Event,
    FailuresCounted,
    PaceChanged,
    Resumed,
    Sampled,
    StepFinished,
    StepStarted,
    Throttled,
    ToolSaid,
    Unthrottled,
)
from tui_fs.model.outcome import Outcome
from tui_fs.model.paths import PathStr
from tui_fs.model.strategy import Pace

_LONG = recorded.ended(Outcome.PARTIAL, "2 entries are left.", 900_000, 2)
JOURNALS: tuple[tuple[Event, ...], ...] = (
    recorded.ended(Outcome.DONE, "The directory is gone.", 1_204_113, 0),
    recorded.ended(Outcome.CANCELLED, "Stopped before the end.", 500, 1_203_613),
    (
        *recorded.PAUSED,
        Resumed(9.0),
        PaceChanged(9.1, Pace(gentle=True, rate_per_s=1_000)),
        Throttled(9.2, "disk", 41.5),
        Unthrottled(9.9),
        ToolSaid(9.9, 'rm: a "quoted"\tword, ü'),
        EntryFailed(9.9, PathStr("/srv/spool/maildrop/\udcff\n"), "remove", 1),
        FailuresCounted(9.9, "remove", 1, 4_000),
        Sampled(10.0, 9.0, {"rmdir": CallCount(7, 1, 0.25)}, Removed(9, None), None, None, None),
        *_LONG[-2:],
    ),
    recorded.FAILING,
    recorded.REFUSED,
    (StepStarted(0.0, 0, (1, 2)), StepFinished(1.0, 0, (0, -9), 0.5, 0.5, 1 << 20)),
)


def event_line(event: Event) -> bytes:
    """Return an event as the journal holds it, without the newline."""
    return json.dumps(encode(event), separators=(",", ":")).encode("ascii")


EVENT_LINES = tuple(event_line(event) for journal in JOURNALS for event in journal)


def plan_json() -> dict[str, Any]:
    """Return a plan as plan.json holds it."""
    value = {"schema": 2, **encode(recorded.plan())}
    assert isinstance(value, dict)
    return value


MESSAGES: dict[str, tuple[bytes, ...]] = {
    "rm": (
        b"rm: cannot remove 't/d/a': Operation not permitted",
        b"/usr/bin/rm: cannot remove 'a: b': Is a directory",
        b'rm: cannot remove "it\'s": Permission denied',
        b"rm: cannot remove 'a'$'\\n''b': Permission denied",
        b"rm: cannot remove ''$'\\377\\001': Permission denied",
        b"rm: cannot remove 'it'\\''s'$'\\t': Permission denied",
        b"rm: cannot open directory 'x': Permission denied",
        b"rm: skipping 'x', since it's on a different device",
    ),
    "find": (
        b"find: cannot delete 't/a\\nb': Operation not permitted",
        b"find: cannot delete 't/it\\'s': Is a directory",
        b"find: 't/\\377\\\\': Permission denied",
        b"find: cannot delete 't': Directory not empty",
        b"find: File system loop detected; 'x' is part of the same file system loop as 'y'.",
    ),
    "xargs": (
        b"rm: cannot remove 'a'$'\\n''b': Permission denied",
        b"/bin/find: 'a\\nb': Permission denied",
        b"xargs: /bin/rm: terminated by signal 9",
    ),
    "rsync": (
        b"rsync: [generator] delete_file: unlink(d/a\\#134#012b) failed: "
        b"Operation not permitted (1)",
        b"rsync: delete_file: rmdir(caf\\#303\\#251) failed: Permission denied (13)",
        b'rsync: [receiver] opendir "/t/d) x" failed: Permission denied (13)',
        b"rmdir: failed to remove '/t': Directory not empty",
        b"rsync error: some files/attrs were not transferred (code 23) at main.c(1338)",
        b"cannot delete non-empty directory: d\\#012x",
    ),
    "rmtree": (
        b"rmtree: unlink: 13: /t/a\\\\b\\nc: 7",
        b"rmtree: recursion: 0: /t",
        b"Traceback (most recent call last):",
    ),
    "parallel": (
        b"tui-fs-engine: cannot remove '/t/a\\nb': Operation not permitted",
        b"tui-fs-engine: cannot go back to './it\\'s\\377': Stale file handle",
        b"tui-fs-engine: '/t' is not the directory that was confirmed",
    ),
}
OUTPUT: dict[str, tuple[bytes, ...]] = {
    "rm": (b"removed 't/a'", b"removed directory 't'", b"removed 't/'$'\\377'"),
    "find": (b"f", b"d", b"l"),
    "xargs": (b"removed 't/a'", b"d"),
    "rsync": (b"deleting a/", b"deleting a", b"rmdir: removing directory, '/t'"),
    "rmtree": (b"removed", b"removed directory"),
    "parallel": (
        b'{"type":"counts","removed":12,"directories":2,"threads":2,"split":true,'
        b'"calls":{"unlinkat":[12,0,2000],"openat2":[2,1,500]},'
        b'"removal_ns":[[3071,1]]}',
        b'{"type":"answer","command":"threads 2","problem":null}',
        b'{"type":"answer","command":"rate x","problem":"not a positive number"}',
    ),
}
STRACE_LINES = (
    b"22375 unlinkat(0x4, 0x55d0b4bb3bf0, 0)  = 0 <0.000035>",
    b"22375 unlinkat(0xffffff9c, 0x55d0b4bb3bf0, 0x200) = 0 <0.000040>",
    b"22375 unlinkat(0xffffff9c, 0x55d0, 0) = -1 ENOENT (No such file or directory) <0.000035>",
    b"1 rmdir(0x7ffd)                         = 0 <0.000009>",
    b"10 unlinkat(0xffffff9c, 0x55d0, 0x200 <unfinished ...>",
    b"10 <... unlinkat resumed>)                = 0 <0.000100>",
    b"22375 mmap(0, 0x2000, 0x3, 0x22, 0xffffffff, 0) = 0x7fe5d0888000 <0.000006>",
    b"22375 exit_group(0)                     = ?",
    b"22375 wait4(0xffffffff, 0x7ffd, 0, 0)   = ? ERESTARTSYS (To be restarted) <0.01>",
    b"22375 --- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED} ---",
    b"22375 +++ exited with 0 +++",
)
BPFTRACE_LINES = (
    b'{"type": "attached_probes", "data": {"probes": 8}}',
    b'{"type": "printf", "data": "READY\\n"}',
    b'{"type": "map", "data": {"@calls": {"263": 12, "3": 40, "84": 2}}}',
    b'{"type": "map", "data": {"@ns": {"263": 120000, "3": 4000}}}',
    b'{"type": "map", "data": {"@errors": {"263": 1}}}',
    b'{"type": "hist", "data": {"@times": {"263": [{"min": 4096, "max": 8191, "count": 12}]}}}',
    b'{"type": "map", "data": {"@lock_ns": 250000}}',
    b'{"type": "stats", "data": {"@calls": {"87": 1}}}',
    b'{"type": "map", "data": {"@directories": 3}}',
    b"",
)
MOUNT_LINES = (
    b"22 1 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw,errors=remount-ro",
    b"30 22 0:5 / /mnt/a\\040b\\134 rw,nosuid shared:1 master:2 - tmpfs tmpfs rw,size=10k",
    b"31 22 8:1 /srv/d\\040x /m ro unbindable - cifs //nas/my\\040files rw",
    b"32 22 0:6 / /proc rw - proc  rw",
)
PRESSURE = (
    b"some avg10=12.34 avg60=5.00 avg300=1.00 total=123456\n"
    b"full avg10=99.00 avg60=4.00 avg300=0.50 total=12345\n"
)

# With a number of any kind at each @
MESSAGE_TEMPLATES = (
    b"rsync: [generator] delete_file: unlink(a\\#@) failed: Permission denied (@)",
    b'rsync: [receiver] opendir "a\\#@" failed: Permission denied (@)',
    b"cannot delete non-empty directory: a\\#@",
    b"rmtree: unlink: @: /t/a",
    b"rm: cannot remove 'a'$'\\@': Permission denied",
    b"find: 'a\\@': Permission denied",
)
STRACE_TEMPLATES = (
    b"@ unlinkat(0x4, 0x55d0b4bb3bf0, @) = @ <@>",
    b"@ rmdir(@) = @ <@>",
    b"1 unlinkat(@ <unfinished ...>",
    b"1 <... unlinkat resumed>, @) = 0 <@>",
)
MOUNT_TEMPLATES = (
    b"@ @ @:@ / / rw - ext4 /dev/sda1 rw",
    b"30 22 0:5 / /mnt/a\\@ rw shared:@ - tmpfs tmpfs rw",
)
PRESSURE_TEMPLATES = (
    b"some avg10=@ avg60=5.00 avg300=1.00 total=@\n",
    b"some avg10=12.34 avg60=@ avg300=@ total=@\n",
)
