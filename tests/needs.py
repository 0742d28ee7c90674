"""Say what a test needs, and the command that would provide it.

A missing thing skips the test, unless TUI_FS_REQUIRE_TOOLS=1 is set: then it fails, so that the
machine that runs every test cannot quietly run only some of them.
"""

import ctypes
import functools
import os
import platform
import shutil
import struct
import subprocess
import sys
from typing import NoReturn

import pytest

from tui_fs.linux.tools import ENGINE, find_engine
from tui_fs.model.strategy import StrategyName
from tui_fs.strategies.registry import STRATEGIES

REQUIRED_VARIABLE = "TUI_FS_REQUIRE_TOOLS"

_TRACEPOINT_ID = "/sys/kernel/tracing/events/syscalls/sys_enter_unlinkat/id"
_PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}
_PERF_TYPE_TRACEPOINT = 2
_PERF_ATTR_BYTES = 112
_PERF_ATTR_DISABLED = 1
_CLONE_FS = 0x200


def lacks(sentence: str) -> NoReturn:
    """Skip the test with this sentence, or fail it where nothing may be skipped."""
    if os.environ.get(REQUIRED_VARIABLE) == "1":
        pytest.fail(f"{sentence} ({REQUIRED_VARIABLE}=1 forbids skipping)", pytrace=False)
    pytest.skip(sentence)


def needs_root(what_for: str = "this test") -> None:
    """Require effective user id 0."""
    if os.geteuid() != 0:
        lacks(f"{what_for} needs root; enable it with: sudo -E pytest")


def needs_tool(name: str, package: str) -> str:
    """Require a program, and return its absolute path."""
    path = shutil.which(name) or shutil.which(name, path="/usr/local/sbin:/usr/sbin:/sbin")
    if path is None:
        lacks(f"{name} is not installed; enable it with: apt-get install {package}")
    return path


def needs_engine() -> None:
    """Require the native engine; it is built when tui-fs is installed, where cargo is there."""
    if find_engine() is not None:
        return
    sentence = "tui-fs-engine is not built; enable it with: pip install . (needs cargo 1.77)"
    if working_cargo() is None:
        pytest.skip(sentence)  # no package of this system need be new enough
    lacks(sentence)


@functools.cache
def working_cargo() -> str | None:
    """Return the path of a cargo that has a toolchain, None if there is none (see rustup)."""
    path = shutil.which("cargo")
    if path is None:
        return None
    asked = subprocess.run([path, "--version"], capture_output=True, check=False)
    return path if asked.returncode == 0 else None


def needs_own_current_directory() -> None:
    """Require that a thread may have a current directory of its own."""
    asked = f"import ctypes; raise SystemExit(ctypes.CDLL(None).unshare({_CLONE_FS}))"
    if subprocess.run([sys.executable, "-c", asked], check=False).returncode != 0:
        lacks("unshare(2) is forbidden here; enable it with: docker run --cap-add SYS_ADMIN")


def needs_tools_of(strategy: str) -> None:
    """Require what a strategy needs that not every system can have."""
    if ENGINE in STRATEGIES[StrategyName(strategy)].tools:
        needs_engine()


def needs_kernel_counters() -> None:
    """Require perf_event_open on system call tracepoints."""
    if platform.machine() not in _PERF_EVENT_OPEN:
        lacks(f"perf_event_open is not known for {platform.machine()}; run on x86-64 or arm64")
    if not os.access(_TRACEPOINT_ID, os.R_OK):
        lacks(
            f"{_TRACEPOINT_ID} cannot be read; enable it with: "
            "sudo Mount it: mount -t tracefs none /sys/kernel/tracing, and run as root"
        )
    try:
        os.close(opened_counter(_TRACEPOINT_ID))
    except OSError as error:
        lacks(
            f"perf_event_open: {error.strerror}; enable it with: "
            "sudo sysctl kernel.perf_event_paranoid=-1 (in a container: --cap-add PERFMON)"
        )


def opened_counter(id_file: str) -> int:
    """Open a counter of a tracepoint on this process, which never counts; OSError if refused."""
    with open(id_file, encoding="ascii") as file:
        tracepoint = int(file.read())
    attributes = struct.pack(
        "=IIQQQQQ",
        _PERF_TYPE_TRACEPOINT,
        _PERF_ATTR_BYTES,
        tracepoint,
        0,
        0,
        0,
        _PERF_ATTR_DISABLED,
    )
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(attributes.ljust(_PERF_ATTR_BYTES, b"\0"))
    number = _PERF_EVENT_OPEN[platform.machine()]
    descriptor: int = libc.syscall(number, buffer, 0, -1, -1, 0)
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return descriptor
