"""The names of system calls agree with the numbers that are counted by name."""

import pytest

from tui_fs.tracing.syscalls import (
    SYSCALLS,
    native_syscall_names,
    native_syscall_numbers,
)


@pytest.mark.parametrize(
    ("machine", "unlinkat", "missing"),
    [
        ("x86_64", 263, ()),
        ("aarch64", 35, ("access", "dup2", "lstat", "poll", "rmdir", "stat", "unlink", "vfork")),
    ],
)
def test_every_counted_call_of_a_machine_has_its_number(
    monkeypatch: pytest.MonkeyPatch, machine: str, unlinkat: int, missing: tuple[str, ...]
) -> None:
    monkeypatch.setattr("os.uname", lambda: type("Uname", (), {"machine": machine}))
    names, numbers = native_syscall_names(), native_syscall_numbers()
    assert set(SYSCALLS) - set(numbers) == set(missing)
    assert numbers["unlinkat"] == unlinkat and len(names) > 300
    assert names[-1] == "rt_sigreturn"


def test_an_unknown_machine_has_no_names_but_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.uname", lambda: type("Uname", (), {"machine": "vax"}))
    assert native_syscall_names() == {-1: "rt_sigreturn"}
