"""Limits put on a running process and taken off again: processes, descriptors, memory."""

import os
import resource
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

KINDS = ("processes", "descriptors", "memory")

_PIDS_V1 = Path("/sys/fs/cgroup/pids")
_V2 = Path("/sys/fs/cgroup")
_FEWEST_DESCRIPTORS = 3


@contextmanager
def limited(kind: str, pid: int) -> Iterator[None]:
    """Let a process get no more of something; a process that has ended is no error."""
    with {"processes": _no_processes, "descriptors": _no_descriptors, "memory": _no_memory}[kind](
        pid
    ):
        yield


def why_not_limited(kind: str) -> str | None:
    """Return why a kind of limit cannot be put on a process here, None if it can."""
    if kind != "processes" or os.geteuid() != 0:
        return None
    if _pids_root() is None:
        return "no pids controller can be written to, and RLIMIT_NPROC does not bind root"
    return None


@contextmanager
def _no_descriptors(pid: int) -> Iterator[None]:
    with _rlimit(pid, resource.RLIMIT_NOFILE, _FEWEST_DESCRIPTORS):
        yield


@contextmanager
def _no_memory(pid: int) -> Iterator[None]:
    pages = 0
    with suppress(OSError):
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[0])
    with _rlimit(pid, resource.RLIMIT_AS, pages * resource.getpagesize()):
        yield


@contextmanager
def _no_processes(pid: int) -> Iterator[None]:
    root = _pids_root() if os.geteuid() == 0 else None
    if root is None:
        with _rlimit(pid, resource.RLIMIT_NPROC, 0):
            yield
        return
    group = root / f"tui-fs-limits-{uuid.uuid4().hex}"
    group.mkdir()
    home = _group_of(pid, root)
    try:
        (group / "pids.max").write_text("0")
        with suppress(OSError):  # it has ended
            (group / "cgroup.procs").write_text(str(pid))
        yield
    finally:
        with suppress(OSError):
            (home / "cgroup.procs").write_text(str(pid))
        group.rmdir()


@contextmanager
def _rlimit(pid: int, which: int, soft: int) -> Iterator[None]:
    try:
        before = resource.prlimit(pid, which)
        resource.prlimit(pid, which, (soft, before[1]))  # a hard one cannot always be raised again
    except ProcessLookupError:  # it has ended
        yield
        return
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            resource.prlimit(pid, which, before)


def _pids_root() -> Path | None:
    if (_PIDS_V1 / "cgroup.procs").exists():
        return _PIDS_V1 if os.access(_PIDS_V1, os.W_OK) else None
    try:
        controllers = (_V2 / "cgroup.subtree_control").read_text().split()
    except OSError:
        return None
    return _V2 if "pids" in controllers and os.access(_V2, os.W_OK) else None


def _group_of(pid: int, root: Path) -> Path:
    """Return the group of a process in the hierarchy with the pids controller."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
            number, controllers, path = line.split(":", 2)
            if controllers == "pids" or (number == "0" and root == _V2):
                return root / path.strip("/")
    return root
