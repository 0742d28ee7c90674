"""Reading strace's lines, as it wrote them."""

import os

import pytest

from tui_fs.model.calls import CallCount, Removed
from tui_fs.tracing.source import Counts
from tui_fs.tracing.strace import StraceParser, add_up

# Recorded from strace 6.1: -f -qq -T -e raw=all -e signal=none
UNLINK = b"22375 unlinkat(0x4, 0x55d0b4bb3bf0, 0)  = 0 <0.000035>"
RMDIR = b"22375 unlinkat(0xffffff9c, 0x55d0b4bb3bf0, 0x200) = 0 <0.000040>"
FAILED = (
    b"22375 unlinkat(0xffffff9c, 0x55d0b4bb3bf0, 0) = -1 ENOENT (No such file or directory) "
    b"<0.000035>"
)


def counted(*lines: bytes) -> Counts:
    """Parse lines."""
    parser = StraceParser()
    for line in lines:
        parser.line(line)
    return parser.counts()


def test_a_call_is_counted_with_its_time() -> None:
    assert counted(UNLINK).calls == {"unlinkat": CallCount(1, 0, 0.000035)}


@pytest.mark.parametrize(
    ("line", "removed"),
    [
        (b"1 unlink(0x7ffd)                        = 0 <0.000009>", Removed(1, 0)),
        (b"1 rmdir(0x7ffd)                         = 0 <0.000009>", Removed(1, 1)),
        (b"1 unlinkat(0x3, 0x7ffd, 0x200)          = 0 <0.000009>", Removed(1, 1)),
        (b"1 unlinkat(0x3, 0x7ffd, 0)              = 0 <0.000009>", Removed(1, 0)),
        (b"1 rmdir(0x7ffd)  = -1 ENOTEMPTY (Directory not empty) <0.000009>", Removed(0, 0)),
        (b"1 openat(0x3, 0x7ffd, 0x200, 0)         = 0x3 <0.000009>", Removed(0, 0)),
    ],
)
def test_directories_are_known_by_call_and_flag(line: bytes, removed: Removed) -> None:
    assert counted(line).removed == removed


def test_a_call_interrupted_by_another_line_is_put_together() -> None:
    counts = counted(
        b"10 unlinkat(0xffffff9c, 0x55d0, 0x200 <unfinished ...>",
        b"11 unlinkat(0x3, 0x55d1, 0 <unfinished ...>",
        b"10 <... unlinkat resumed>)                = 0 <0.000100>",
        b"11 <... unlinkat resumed>)                = 0 <0.000200>",
    )
    assert counts.removed == Removed(2, 1)
    assert counts.calls["unlinkat"].calls == 2


def test_arguments_after_the_interruption_count_too() -> None:
    counts = counted(
        b"10 unlinkat(0xffffff9c, 0x55d0 <unfinished ...>",
        b"10 <... unlinkat resumed>, 0x200)         = 0 <0.000100>",
    )
    assert counts.removed == Removed(1, 1)


def test_an_unfinished_call_is_not_counted() -> None:
    assert counted(b"10 unlinkat(0x3, 0x55d0, 0 <unfinished ...>") == Counts({}, Removed(0, 0))


def test_vfork_and_its_child_are_counted_once_each() -> None:
    counts = counted(
        b"22375 vfork( <unfinished ...>",
        b"22378 execve(0x55da34e719c0, 0x55da6f25da10, 0x55da6f25da20 <unfinished ...>",
        b"22375 <... vfork resumed>)              = 0x576a <0.000696>",
        b"22375 wait4(0xffffffff, 0x7ffdcec4885c, 0, 0 <unfinished ...>",
        b"22378 <... execve resumed>)             = 0 <0.000962>",
        b"22378 exit_group(0)                     = ?",
        b"22375 <... wait4 resumed>)              = 0x576a <0.001520>",
    )
    assert {name: count.calls for name, count in counts.calls.items()} == {
        "vfork": 1,
        "execve": 1,
        "wait4": 1,
    }


@pytest.mark.parametrize(
    "line",
    [
        b"22375 exit_group(0)                     = ?",
        b"22375 +++ exited with 0 +++",
        b"22375 +++ killed by SIGKILL +++",
        b"22375 --- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED} ---",
        b"22375 wait4(0xffffffff, 0x7ffd, 0, 0)   = ? ERESTARTSYS (To be restarted) <0.01>",
        b"22375 <... futex resumed>)              = ?",
        b"strace: Process 22378 attached",
        b"",
        b"22375",
    ],
)
def test_lines_that_are_no_returns_are_passed_over(line: bytes) -> None:
    assert counted(line) == Counts({}, Removed(0, 0))


@pytest.mark.parametrize(
    ("line", "name", "errors"),
    [
        (b"1 mmap(0, 0x2000, 0x3, 0x22, 0xffffffff, 0) = 0x7fe5d0888000 <0.000006>", "mmap", 0),
        (b"1 ioctl(0, 0x5401, 0x7fff)  = -1 ENOTTY (Inappropriate ioctl) <0.000032>", "ioctl", 1),
        (b"1 getpid()                              = 0x1", "getpid", 0),
        (b"1 fcntl(0x1, 0x1)  = -1 (errno 9) <0.000032>", "fcntl", 1),
        (b"1 newfstatat(0x3, 0x5, 0x5, 0x100) = 0 <0.000044>", "newfstatat", 0),
    ],
)
def test_results_of_every_shape_are_read(line: bytes, name: str, errors: int) -> None:
    calls = counted(line).calls[name]
    assert (calls.calls, calls.errors) == (1, errors)


def test_counts_of_several_straces_add_up() -> None:
    total = add_up([counted(UNLINK, FAILED), counted(RMDIR), counted(os.fsencode("1 a(0) = 0"))])
    assert (total.calls["unlinkat"].calls, total.calls["unlinkat"].errors) == (3, 1)
    assert total.calls["a"].calls == 1
    assert total.removed == Removed(2, 1)
