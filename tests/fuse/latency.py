"""A file system that answers late, as a server behind a network: `latency_fs.c`."""

import atexit
import errno
import functools
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.needs import lacks, needs_root, needs_tool

_SOURCE = Path(__file__).with_name("latency_fs.c")


@functools.cache
def built() -> str:
    """Build the server, and return its path."""
    compiler, pkg_config = needs_tool("cc", "gcc"), needs_tool("pkg-config", "pkg-config")
    found = subprocess.run(
        [pkg_config, "--cflags", "--libs", "fuse3"], capture_output=True, text=True, check=False
    )
    if found.returncode != 0:
        lacks("libfuse is not installed; enable it with: apt-get install libfuse3-dev")
    directory = tempfile.mkdtemp(prefix="tui-fs-latency-")
    atexit.register(shutil.rmtree, directory)
    program = Path(directory) / "latency_fs"
    command = [compiler, "-O2", str(_SOURCE), *found.stdout.split(), "-o", str(program)]
    subprocess.run(command, check=True)
    return str(program)


@contextmanager
def served_late(
    backing: Path, mount_point: Path, delay_ms: float = 0.0, *options: str
) -> Iterator[Path]:
    """Mount a view of a directory that answers each request late. Skip the test without root.

    Args:
        backing: the directory that is shown; its entries appear below `mount_point`. It may be
            `mount_point` itself, which the server then covers.
        delay_ms: waiting time of each request.
        options: of `latency_fs.c`, without ``--delay-us``.
    """
    needs_root("mounting FUSE")
    mount_point.mkdir(exist_ok=True)
    command = [built(), str(backing), str(mount_point), *options]
    server = subprocess.Popen(
        [*command, "--delay-us", str(round(1_000 * delay_ms))], stdout=subprocess.PIPE
    )
    assert server.stdout is not None
    try:
        assert server.stdout.readline() == b"ready\n"
        yield mount_point
    finally:
        subprocess.run(["umount", "--lazy", str(mount_point)], check=False)
        server.kill()  # else it would unmount what is mounted there now
        server.wait()


def fault(operation: str, error: str, every: int) -> tuple[str, str]:
    """Return the options that make every N-th call of an operation fail.

    Args:
        operation: unlink, rmdir, opendir, readdir or getattr.
        error: the name of an errno.
        every: N.
    """
    return "--fail", f"{operation}:{getattr(errno, error)}:{every}"


def fault_of(name: str, operation: str, error: str, times: int = 0) -> tuple[str, str]:
    """Return the options that make an operation on entries of a name fail.

    Args:
        operation: unlink, rmdir, opendir, readdir or getattr.
        error: the name of an errno.
        times: how many of the calls fail; 0 for all. The kernel itself repeats an unlink, rmdir or
            opendir once that fails with ESTALE.
    """
    return "--fail-name", f"{operation}:{getattr(errno, error)}:{times}:{name}"


def missed(directory: str, name: str, times: int = 0) -> tuple[str, str]:
    """Return the options that make readings of a directory omit an entry.

    Args:
        times: how many readings omit it; 0 for all.
    """
    return "--miss", f"{times}:{directory}/{name}"


def only_for(command: str) -> tuple[str, str]:
    """Return the options with which `fault_of` and `missed` only affect some processes.

    Args:
        command: consecutive words of their command lines, such as "tui-fs-engine delete".
    """
    return "--only-for", command
