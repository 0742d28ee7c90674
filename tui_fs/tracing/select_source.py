"""Selection of the call source: the best that is permitted, or the one the user asked for."""

import os
from collections.abc import Callable

from msgspec import Struct

from tui_fs.linux.permissions import Capability, missing_capabilities, user_namespace
from tui_fs.linux.tools import ENGINE, HOW_TO_GET_THE_ENGINE, find_tool, why_rejected
from tui_fs.model.calls import TraceSource
from tui_fs.model.errors import Missing
from tui_fs.tracing.perf import PerfCounters, find_tracefs
from tui_fs.tracing.source import CallSource

PTRACE_SCOPE = "/proc/sys/kernel/yama/ptrace_scope"


class SourceState(Struct, frozen=True):
    """Whether a source can be used here, and what would enable it."""

    kind: TraceSource
    usable: bool
    note: str


def probe_perf(processes: int = 3) -> PerfCounters:
    """Return perf counters after trying one on this very process; Missing if not permitted."""
    counters = PerfCounters(find_tracefs(), processes)
    counters.probe()
    return counters


def open_source(
    wanted: TraceSource | None,
    processes: int = 3,
    *,
    speaks: bool = False,
    probe: Callable[[int], PerfCounters] = probe_perf,
) -> CallSource:
    """Return a source ready to be attached.

    Args:
        wanted: None for the best that costs nothing noticeable.
        processes: to how many processes it will be attached.
        speaks: the tools count their calls themselves, which is the best.

    Raises:
        Missing: the wanted source cannot be used here.
    """
    match wanted:
        case TraceSource.PERF:
            return probe(processes)
        case TraceSource.ENGINE | None if speaks:
            return CallSource(TraceSource.ENGINE, "the engine's own counters, exact, with times")
        case TraceSource.ENGINE:
            raise Missing("Only the strategy parallel counts its own calls.", "Omit --trace.")
        case TraceSource.BPF:
            from tui_fs.tracing.bpf import Bpftrace  # few jobs need it

            _check_bpf()
            return Bpftrace(_tool("bpftrace"))
        case TraceSource.STRACE:
            from tui_fs.tracing.strace import Strace  # few jobs need it

            _check_ptrace()
            return Strace(_tool("strace"))
        case TraceSource.OUTPUT:
            return CallSource(TraceSource.OUTPUT, "the tool's own output, which slows it a little")
        case TraceSource.OFF:
            return CallSource(TraceSource.OFF, "not counted, as requested")
        case None:
            try:
                return probe(processes)
            except Missing as error:
                return CallSource(
                    TraceSource.OUTPUT, f"counted from the tool's own output. {error}".rstrip()
                )


def likely_source(wanted: TraceSource | None, *, speaks: bool = False) -> TraceSource:
    """Return the kind of source `open_source` would return."""
    if wanted is not None:
        return wanted
    if speaks:
        return TraceSource.ENGINE
    try:
        probe_perf()
    except Missing:
        return TraceSource.OUTPUT
    return TraceSource.PERF


def states(probe: Callable[[int], PerfCounters] = probe_perf) -> tuple[SourceState, ...]:
    """Return for every source whether it can be used here; for `doctor`."""
    source_states: list[SourceState] = []
    for kind in TraceSource:
        try:
            if kind is TraceSource.ENGINE and find_tool(ENGINE) is None:
                how = f"{ENGINE} is not installed; {HOW_TO_GET_THE_ENGINE}"
                raise Missing(f"{why_rejected(ENGINE) or how}.")
            source = open_source(kind, speaks=kind is TraceSource.ENGINE, probe=probe)
        except Missing as error:
            source_states.append(SourceState(kind, False, str(error)))
        else:
            source_states.append(SourceState(kind, True, source.note))
    return tuple(source_states)


def _check_bpf() -> None:
    if os.geteuid() != 0:
        raise Missing("Counting with bpftrace needs root.", "Run with sudo.")
    is_lacking = missing_capabilities(Capability.SYS_ADMIN) and missing_capabilities(
        Capability.BPF, Capability.PERFMON
    )
    if is_lacking or user_namespace() is not None:
        raise Missing(
            "Counting with bpftrace needs CAP_BPF and CAP_PERFMON outside of a user namespace.",
            "Run as root outside the container.",
        )


def _tool(name: str) -> str:
    tool = find_tool(name)
    if tool is None:
        rejected = why_rejected(name)
        if rejected:
            raise Missing(f"{rejected}.", f"Install {name} where only root can write.")
        raise Missing(f"{name} was not found in PATH.", f"Install the package {name}.")
    return tool.path


def _check_ptrace() -> None:
    try:
        with open(PTRACE_SCOPE, encoding="ascii") as file:
            scope = int(file.read())
    except OSError:
        return  # a kernel without Yama permits tracing one's own children
    if scope >= 3 or (scope == 2 and missing_capabilities(Capability.SYS_PTRACE)):
        raise Missing(
            f"kernel.yama.ptrace_scope = {scope} does not allow strace.",
            "Only a reboot can lower it; omit --trace strace."
            if scope >= 3
            else "Set it to 1: sysctl kernel.yama.ptrace_scope=1",
        )
