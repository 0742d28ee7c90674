"""Exact counts and times per call from bpftrace, at 5 to 10 per cent."""

import json
import os
import selectors
import subprocess
import threading
import time
from collections.abc import Mapping

from tui_fs.model.calls import REMOVING_CALLS, CallCount, Removed, TraceSource, quantiles_s
from tui_fs.model.errors import Missing
from tui_fs.tracing.perf import TRACEFS
from tui_fs.tracing.source import CallSource, Counts
from tui_fs.tracing.syscalls import AT_REMOVEDIR, native_syscall_names, native_syscall_numbers

START_TIMEOUT_S = 20.0
_LARGEST_SUM = (1 << 64) - 1  # bpftrace sums in 64 bits

# bpftrace attaches the probes in this order: once it prints READY, all of them are attached.
# @waiting: children of the launcher that have not executed their tool yet.
# bpftrace prints every map once more when it exits.
# @traced: the tools and all their descendants.
_SCRIPT = """
tracepoint:sched:sched_process_fork /args->parent_pid == ROOT/ { @waiting[args->child_pid] = 1; }
tracepoint:sched:sched_process_fork /@traced[args->parent_pid]/ { @traced[args->child_pid] = 1; }
tracepoint:sched:sched_process_exec /@waiting[tid]/ {
  delete(@waiting[tid]); @traced[tid] = 1; @since[tid] = nsecs;
}
tracepoint:raw_syscalls:sys_enter /@traced[tid]/ {
  @since[tid] = nsecs;
  @rmdir[tid] = args->id == UNLINKAT ? (args->args[2] & REMOVEDIR) : 0;
}
tracepoint:raw_syscalls:sys_exit /@traced[tid] && @since[tid]/ {
  @calls[args->id] = count();
  @ns[args->id] = sum(nsecs - @since[tid]);
  @times[args->id] = hist(nsecs - @since[tid]);
  if (args->ret < 0) { @errors[args->id] = count(); }
  if (args->ret == 0 && @rmdir[tid]) { @directories = count(); }
  delete(@since[tid]);
  delete(@rmdir[tid]);
}
tracepoint:sched:sched_process_exit /@traced[tid]/ {
  delete(@traced[tid]); delete(@since[tid]); delete(@rmdir[tid]);
}
interval:ms:250 {
  print(@calls); print(@ns); print(@times); print(@errors); print(@directories);
}
interval:ms:20 { if (@ready == 0) { @ready = 1; printf("READY\\n"); } }
"""


_LOCKS_SCRIPT = """
tracepoint:lock:contention_begin /@traced[tid] && (args->flags & SPIN) == 0/ { @lock[tid] = nsecs; }
tracepoint:lock:contention_end /@lock[tid]/ {
  @lock_ns = sum(nsecs - @lock[tid]); delete(@lock[tid]);
}
interval:ms:250 { print(@lock_ns); }
"""
_LCB_F_SPIN = 1  # include/trace/events/lock.h: a thread that spins runs, and is no waiter
_LOCK_EVENT = "events/lock/contention_begin"  # since Linux 5.19


class BpftraceParser:
    """Keeps the last sums of each map in the lines of ``bpftrace -f json``.

    Args:
        names: names of system calls by their numbers in decimal.
    """

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names
        self._maps: dict[str, Mapping[str, int]] = {}
        self._times: dict[str, tuple[float, float]] = {}
        self._directories = 0
        self._lock_ns: int | None = None

    def line(self, line: bytes) -> None:
        """Parse one line; skip a line without a complete map, since the next has newer sums."""
        if not line.startswith(b"{"):
            return  # bpftrace prints empty maps as empty lines
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            return
        data = message.get("data")
        if not isinstance(data, dict):
            return
        if message.get("type") == "hist":
            self._read_times(data.get("@times"))
        if message.get("type") not in ("map", "stats"):
            return
        for name, value in data.items():
            if isinstance(value, dict) and all(map(_is_sum, value.values())):
                self._maps[name] = value
            elif name == "@directories" and _is_sum(value):
                self._directories = value
            elif name == "@lock_ns" and _is_sum(value):
                self._lock_ns = value

    def _read_times(self, histograms: object) -> None:
        if not isinstance(histograms, dict):
            return
        for key, histogram in histograms.items():
            times_s = quantiles_s(_classes(histogram))
            if times_s is not None:
                self._times[key] = times_s

    def counts(self) -> Counts:
        """Return the last sums; errors are printed after the calls and may be newer."""
        errors = self._maps.get("@errors", {})
        times = self._maps.get("@ns", {})
        calls: dict[str, CallCount] = {}
        for key, number in self._maps.get("@calls", {}).items():
            name = self._names.get(key, f"system call {key}")
            failed = min(number, errors.get(key, 0))
            seconds = times.get(key, 0) / 1e9
            calls[name] = CallCount(number, failed, seconds, self._times.get(key))
        removed = sum(
            count.calls - count.errors for name, count in calls.items() if name in REMOVING_CALLS
        )
        rmdir = calls.get("rmdir", CallCount(0))
        directories = self._directories + rmdir.calls - rmdir.errors
        lock_wait_s = None if self._lock_ns is None else self._lock_ns / 1e9
        return Counts(calls, Removed(removed, directories), lock_wait_s)


def _classes(histogram: object) -> list[tuple[int, int]]:
    """Return the upper limits in ns and the numbers of a histogram; nothing of a malformed one."""
    if not isinstance(histogram, list):
        return []
    pairs = [(c.get("max", -1), c.get("count", -1)) for c in histogram if isinstance(c, dict)]
    is_sound = len(pairs) == len(histogram) and all(_is_sum(n) for pair in pairs for n in pair)
    return pairs if is_sound and pairs == sorted(pairs) else []


def _is_sum(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST_SUM


class Bpftrace(CallSource):
    """A bpftrace process that traces the descendants of the launcher."""

    def __init__(self, path: str) -> None:
        super().__init__(TraceSource.BPF, "bpftrace: exact counts and times, 5 to 10 % slower")
        self._path = path
        self._process: subprocess.Popen[bytes] | None = None
        self._is_closed = self._has_died = False
        self._thread = threading.Thread(target=self._collect, name="bpftrace", daemon=True)
        self._parser = BpftraceParser(
            {str(number): name for number, name in native_syscall_names().items()}
        )

    @property
    def is_whole(self) -> bool:
        """See `CallSource.is_whole`; bpftrace may be killed."""
        return not self._has_died

    def prepare(self, launcher_pid: int) -> None:
        """See `CallSource.prepare`; Missing if bpftrace cannot attach its probes."""
        numbers = native_syscall_numbers()
        if not numbers:
            raise Missing(
                "The system call numbers of this architecture are not known, so "
                "bpftrace cannot count."
            )
        script = (
            _SCRIPT.replace("ROOT", str(launcher_pid))
            .replace("UNLINKAT", str(numbers["unlinkat"]))
            .replace("REMOVEDIR", str(AT_REMOVEDIR))
        )
        if any(os.path.exists(os.path.join(place, _LOCK_EVENT)) for place in TRACEFS):
            script += _LOCKS_SCRIPT.replace("SPIN", str(_LCB_F_SPIN))
        self._process = subprocess.Popen(
            [self._path, "-f", "json", "-e", script],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=None,  # the job's log
            start_new_session=True,
        )
        if not self._becomes_ready(self._process):
            self._process.kill()
            self._process.wait()
            self._process = None
            raise Missing(
                "bpftrace could not start.",
                "Its messages are in the file log of the job's directory.",
            )
        self._thread.start()

    @staticmethod
    def _becomes_ready(process: subprocess.Popen[bytes]) -> bool:
        assert process.stdout is not None
        output, deadline = b"", time.monotonic() + START_TIMEOUT_S
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while b"READY" not in output:
                is_readable = selector.select(max(0.0, deadline - time.monotonic()))
                chunk = os.read(process.stdout.fileno(), 4096) if is_readable else b""
                if not chunk:
                    return False
                output += chunk
        return True

    def read(self, refused_directories: int = 0) -> Counts:
        """See `CallSource.read`; up to a quarter of a second old while running."""
        del refused_directories  # each call is counted with its flags and its result
        return self._parser.counts()

    def close(self) -> None:
        """See `CallSource.close`; bpftrace prints its final sums before it ends."""
        if self._process is None:
            return
        self._is_closed = True
        self._process.terminate()
        self._thread.join()
        self._process.wait()
        self._process = None

    def _collect(self) -> None:
        process = self._process
        assert process is not None and process.stdout is not None
        try:
            for line in process.stdout:
                self._parser.line(line)
        finally:  # also on MemoryError: no later output is read
            self._has_died = not self._is_closed
