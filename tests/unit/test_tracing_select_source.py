"""Which source counts, and what is said where it cannot."""

import os
import sysconfig
from collections.abc import Collection
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.needs import needs_root
from tui_fs.linux.permissions import Capability
from tui_fs.model.calls import TraceSource
from tui_fs.model.errors import Missing
from tui_fs.tracing import perf, select_source
from tui_fs.tracing.bpf import Bpftrace
from tui_fs.tracing.select_source import open_source, states
from tui_fs.tracing.strace import Strace


def refuse(_: int) -> NoReturn:
    """Refuse the kernel's counters, as the kernel does."""
    raise Missing("The kernel does not permit counting.", "Run as root.")


class Machine:
    """The tools, user and kernel settings of a machine."""

    def __init__(self, directory: Path, patch: pytest.MonkeyPatch) -> None:
        self.directory = directory
        self._patch = patch
        self._scope = directory / "ptrace_scope"
        patch.setattr(select_source, "PTRACE_SCOPE", str(self._scope))

    def have(
        self,
        *tools: str,
        uid: int | None = None,
        lacking: Collection[Capability] = (),
        mapping: str | None = None,
        scope: int | None = None,
    ) -> None:
        """Set what the machine has.

        Args:
            uid: None for that of this process.
            lacking: capabilities that this process does not have.
            mapping: of a user namespace; None outside of one.
            scope: of Yama; None without it.
        """
        for name in tools:
            (self.directory / name).write_text("#!/bin/sh\necho 1\n")
            (self.directory / name).chmod(0o755)
        self._patch.setenv("PATH", str(self.directory))
        if uid is not None:
            self._patch.setattr(os, "geteuid", lambda: uid)
        self._patch.setattr(
            select_source, "missing_capabilities", lambda *names: tuple(set(names) & set(lacking))
        )
        self._patch.setattr(select_source, "user_namespace", lambda: mapping)
        if scope is not None:
            self._scope.write_text(f"{scope}\n")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Return a machine without tools."""
    machine = Machine(tmp_path, monkeypatch)
    machine.have()
    return machine


def test_permitted_counters_are_picked() -> None:
    counters = perf.PerfCounters("/nowhere")
    assert open_source(None, probe=lambda _: counters) is counters


def test_refused_counters_fall_back_to_the_output_unless_they_were_asked_for() -> None:
    source = open_source(None, probe=refuse)
    assert source.kind is TraceSource.OUTPUT
    assert "The kernel does not permit counting. Run as root." in source.note
    with pytest.raises(Missing, match="does not permit"):
        open_source(TraceSource.PERF, probe=refuse)


@pytest.mark.parametrize("kind", [TraceSource.OUTPUT, TraceSource.OFF])
def test_sources_without_counts_are_always_there(kind: TraceSource) -> None:
    source = open_source(kind)
    assert source.kind is kind
    assert source.wrap(("rm", "x")) == ("rm", "x")
    assert (source.read().calls, source.read().removed) == ({}, None)


def test_a_tool_that_counts_itself_is_believed() -> None:
    for wanted in (None, TraceSource.ENGINE):
        source = open_source(wanted, speaks=True, probe=refuse)
        assert source.kind is TraceSource.ENGINE
        assert source.wrap(("e", "x")) == ("e", "x")
        assert "times" in source.note
    assert select_source.likely_source(None, speaks=True) is TraceSource.ENGINE
    # But others can still be had, and no other tool counts itself
    assert open_source(TraceSource.OFF, speaks=True).kind is TraceSource.OFF
    with pytest.raises(Missing, match="Only the strategy parallel"):
        open_source(TraceSource.ENGINE)


NO_TRACING = {Capability.SYS_PTRACE}


@pytest.mark.parametrize(
    ("kind", "has", "sentence"),
    [
        (TraceSource.STRACE, {}, "strace was not found in PATH"),
        (TraceSource.STRACE, {"scope": 2, "lacking": NO_TRACING}, "ptrace_scope = 2"),
        (TraceSource.STRACE, {"scope": 3}, "ptrace_scope = 3"),
        (TraceSource.BPF, {"uid": 1000}, "needs root"),
        (TraceSource.BPF, {"uid": 0}, "bpftrace was not found in PATH"),
        (TraceSource.BPF, {"uid": 0, "mapping": "0 1000 1"}, "CAP_BPF"),
        (
            TraceSource.BPF,
            {"uid": 0, "lacking": {Capability.SYS_ADMIN, Capability.BPF}},
            "CAP_BPF",
        ),
        (
            TraceSource.BPF,
            {"uid": 0, "lacking": {Capability.SYS_ADMIN, Capability.PERFMON}},
            "CAP_BPF",
        ),
    ],
)
def test_a_source_that_cannot_be_used_says_what_is_missing(
    machine: Machine, kind: TraceSource, has: dict[str, Any], sentence: str
) -> None:
    tools = () if "not found" in sentence else ("strace", "bpftrace")
    machine.have(*tools, **has)
    with pytest.raises(Missing, match=sentence):
        open_source(kind)


@pytest.mark.parametrize(
    "has", [{"scope": 0, "lacking": NO_TRACING}, {"scope": 1, "lacking": NO_TRACING}, {"scope": 2}]
)
def test_yama_permits_strace(machine: Machine, has: dict[str, Any]) -> None:
    machine.have("strace", **has)
    assert open_source(TraceSource.STRACE).kind is TraceSource.STRACE


def test_strace_wraps_the_command(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.have("strace")
    source = open_source(TraceSource.STRACE)
    assert isinstance(source, Strace)
    pipes: list[tuple[int, int]] = []
    real = os.pipe

    def pipe() -> tuple[int, int]:
        pipes.append(real())
        return pipes[-1]

    monkeypatch.setattr(os, "pipe", pipe)
    argv = source.wrap(("/bin/rm", "--", "x"))
    for descriptor in (end for ends in pipes for end in ends):
        os.close(descriptor)
    assert argv[0] == str(machine.directory / "strace")
    assert argv[-4:] == ("--", "/bin/rm", "--", "x")
    assert "-f" in argv


def test_installed_bpftrace_is_used(machine: Machine) -> None:
    needs_root("a program that root trusts")
    machine.have("bpftrace", uid=0)
    assert isinstance(open_source(TraceSource.BPF), Bpftrace)


def test_every_source_has_a_state(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(machine.directory))
    by_kind = {state.kind: state for state in states(refuse)}
    assert set(by_kind) == set(TraceSource)
    usable = {kind for kind, state in by_kind.items() if state.usable}
    assert usable == {TraceSource.OUTPUT, TraceSource.OFF}
    assert all(state.note for state in by_kind.values())
    assert "install cargo" in by_kind[TraceSource.ENGINE].note


def test_tracefs_is_found_where_it_is_mounted(tmp_path: Path) -> None:
    event = tmp_path / "debug" / "events" / "raw_syscalls" / "sys_exit"
    event.mkdir(parents=True)
    (event / "id").write_text("1\n")
    places = (str(tmp_path / "none"), str(tmp_path / "debug"))
    assert perf.find_tracefs(places) == str(tmp_path / "debug")


@pytest.mark.parametrize(
    ("uid", "is_mounted", "sentence"),
    [
        (0, False, "mount -t tracefs"),
        (1000, False, "needs? root"),
        (0, True, "CONFIG_FTRACE_SYSCALLS"),
    ],
)
def test_a_tracefs_that_cannot_be_used_says_what_would_help(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uid: int, is_mounted: bool, sentence: str
) -> None:
    place = tmp_path / "tracing"
    place.mkdir()
    if is_mounted:
        (place / "events").mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    with pytest.raises(Missing, match=sentence):
        perf.find_tracefs((str(place), str(tmp_path / "debug")))
