"""Which source counts, and what is said where it cannot."""

import os
from collections.abc import Collection
from pathlib import Path

import pytest

from tests.needs import needs_root
from tui_fs.linux.permissions import Capability
from tui_fs.model.calls import TraceSource
from tui_fs.model.errors import Missing
from tui_fs.tracing import perf, select_source
from tui_fs.tracing.bpf import Bpftrace
from tui_fs.tracing.select_source import open_source, states
from tui_fs.tracing.strace import Strace


def refuse_perf(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the kernel refuse its counters."""

    def refused(_: int) -> None:
        raise Missing("The kernel does not permit counting.", "Run as root.")

    monkeypatch.setattr(select_source, "probe_perf", refused)


def install(directory: Path, monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Make a PATH of these tools only."""
    for name in names:
        (directory / name).write_text("#!/bin/sh\necho 1\n")
        (directory / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(directory))


def test_permitted_counters_are_picked(monkeypatch: pytest.MonkeyPatch) -> None:
    counters = perf.PerfCounters("/nowhere")
    monkeypatch.setattr(select_source, "probe_perf", lambda _: counters)
    assert open_source(None) is counters


def test_refused_counters_fall_back_to_the_output_and_say_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refuse_perf(monkeypatch)
    source = open_source(None)
    assert source.kind is TraceSource.OUTPUT
    assert "The kernel does not permit counting. Run as root." in source.note


def test_refused_counters_that_were_asked_for_are_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refuse_perf(monkeypatch)
    with pytest.raises(Missing, match="does not permit"):
        open_source(TraceSource.PERF)


@pytest.mark.parametrize("kind", [TraceSource.OUTPUT, TraceSource.OFF])
def test_sources_without_counts_are_always_there(kind: TraceSource) -> None:
    source = open_source(kind)
    assert source.kind is kind
    assert source.wrap(("rm", "x")) == ("rm", "x")
    assert (source.read().calls, source.read().removed) == ({}, None)


def test_a_tool_that_counts_itself_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_perf(monkeypatch)
    for wanted in (None, TraceSource.ENGINE):
        source = open_source(wanted, speaks=True)
        assert source.kind is TraceSource.ENGINE
        assert source.wrap(("e", "x")) == ("e", "x")
        assert "times" in source.note
    assert select_source.likely_source(None, speaks=True) is TraceSource.ENGINE
    # But others can still be had
    assert open_source(TraceSource.OFF, speaks=True).kind is TraceSource.OFF


def test_no_other_tool_counts_itself() -> None:
    with pytest.raises(Missing, match="Only the strategy parallel"):
        open_source(TraceSource.ENGINE)


def test_strace_that_is_not_installed_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(select_source, "PTRACE_SCOPE", str(tmp_path / "none"))
    install(tmp_path, monkeypatch)
    with pytest.raises(Missing, match="strace was not found in PATH"):
        open_source(TraceSource.STRACE)


def test_strace_wraps_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(select_source, "PTRACE_SCOPE", str(tmp_path / "none"))
    install(tmp_path, monkeypatch, "strace")
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
    assert argv[0] == str(tmp_path / "strace")
    assert argv[-4:] == ("--", "/bin/rm", "--", "x")
    assert "-f" in argv


def be_root(
    monkeypatch: pytest.MonkeyPatch,
    lacking: Collection[Capability] = (),
    mapping: str | None = None,
) -> None:
    """Be root, but for some capabilities, or inside a user namespace."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(
        select_source, "missing_capabilities", lambda *wanted: tuple(set(wanted) & set(lacking))
    )
    monkeypatch.setattr(select_source, "user_namespace", lambda: mapping)


@pytest.mark.parametrize(
    ("scope", "uid", "permitted"),
    [(0, 1000, True), (1, 1000, True), (2, 1000, False), (2, 0, True), (3, 0, False)],
)
def test_yama_may_refuse_strace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scope: int, uid: int, permitted: bool
) -> None:
    (tmp_path / "scope").write_text(f"{scope}\n")
    monkeypatch.setattr(select_source, "PTRACE_SCOPE", str(tmp_path / "scope"))
    lacking = (Capability.SYS_PTRACE,) if uid else ()
    monkeypatch.setattr(select_source, "missing_capabilities", lambda *_: lacking)
    install(tmp_path, monkeypatch, "strace")
    if permitted:
        assert open_source(TraceSource.STRACE).kind is TraceSource.STRACE
    else:
        with pytest.raises(Missing, match=f"ptrace_scope = {scope}"):
            open_source(TraceSource.STRACE)


def test_bpftrace_needs_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, "bpftrace")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(Missing, match="needs root"):
        open_source(TraceSource.BPF)


def test_bpftrace_that_is_not_installed_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch)
    be_root(monkeypatch)
    with pytest.raises(Missing, match="bpftrace was not found in PATH"):
        open_source(TraceSource.BPF)


def test_installed_bpftrace_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs_root("a program that root trusts")
    install(tmp_path, monkeypatch, "bpftrace")
    be_root(monkeypatch)
    assert isinstance(open_source(TraceSource.BPF), Bpftrace)


@pytest.mark.parametrize(
    ("lacking", "mapping"),
    [
        ({Capability.SYS_ADMIN, Capability.BPF}, None),
        ({Capability.SYS_ADMIN, Capability.PERFMON}, None),
        (set(), "0 1000 1"),
    ],
)
def test_bpftrace_needs_capabilities_outside_of_a_user_namespace(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    lacking: set[Capability],
    mapping: str | None,
) -> None:
    install(tmp_path, monkeypatch, "bpftrace")
    be_root(monkeypatch, lacking, mapping)
    with pytest.raises(Missing, match="CAP_BPF"):
        open_source(TraceSource.BPF)


def test_every_source_has_a_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_perf(monkeypatch)
    install(tmp_path, monkeypatch)
    monkeypatch.setattr("tui_fs.linux.tools.find_engine", lambda: None)
    by_kind = {state.kind: state for state in states()}
    assert set(by_kind) == set(TraceSource)
    usable = {kind for kind, state in by_kind.items() if state.usable}
    assert usable == {TraceSource.OUTPUT, TraceSource.OFF}
    assert all(state.note for state in by_kind.values())
    assert "install cargo" in by_kind[TraceSource.ENGINE].note


def test_tracefs_is_found_where_it_is_mounted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    event = tmp_path / "debug" / "events" / "raw_syscalls" / "sys_exit"
    event.mkdir(parents=True)
    (event / "id").write_text("1\n")
    monkeypatch.setattr(perf, "TRACEFS", (str(tmp_path / "none"), str(tmp_path / "debug")))
    assert perf.find_tracefs() == str(tmp_path / "debug")


@pytest.mark.parametrize(("uid", "says"), [(0, "mount -t tracefs"), (1000, "needs? root")])
def test_an_unmounted_tracefs_says_what_would_help(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uid: int, says: str
) -> None:
    monkeypatch.setattr(perf, "TRACEFS", (str(tmp_path), str(tmp_path / "debug")))
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    with pytest.raises(Missing, match=says):
        perf.find_tracefs()


def test_a_kernel_without_tracepoints_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "events").mkdir()
    monkeypatch.setattr(perf, "TRACEFS", (str(tmp_path),))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(Missing, match="CONFIG_FTRACE_SYSCALLS"):
        perf.find_tracefs()
