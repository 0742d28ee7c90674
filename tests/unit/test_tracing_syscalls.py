"""The names of system calls agree with the numbers that are counted by name."""

import pytest

from tui_fs.tracing.syscalls import (
    SYSCALLS,
    native_syscall_names,
    native_syscall_numbers,
)


@pytest.mark.parametrize("machine", ("x86_64", "aarch64"))
def test_every_counted_call_has_its_name_in_the_table(
    monkeypatch: pytest.MonkeyPatch, machine: str
) -> None:
    monkeypatch.setattr("os.uname", lambda: type("Uname", (), {"machine": machine}))
    names, numbers = native_syscall_names(), native_syscall_numbers()
    assert {name: names[number] for name, number in numbers.items()} == {
        name: name for name in numbers
    }
    assert set(numbers) <= set(SYSCALLS) and len(names) > 300
    assert names[-1] == "rt_sigreturn"


def test_an_unknown_machine_has_no_names_but_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.uname", lambda: type("Uname", (), {"machine": "vax"}))
    assert native_syscall_names() == {-1: "rt_sigreturn"}
