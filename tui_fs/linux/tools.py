"""Find the command line tools and the native engine, and identify their builds."""

import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from msgspec import Struct

from tui_fs.linux.limits import cause_of, is_limit
from tui_fs.linux.mounts import mount_of_other_user_on_way, read_mounts
from tui_fs.linux.permissions import others_may_write, replaceable_part
from tui_fs.linux.resolve_path import resolve
from tui_fs.model.errors import Missing, Refused
from tui_fs.model.paths import displayable
from tui_fs.model.strategy import Filters

ENGINE = "tui-fs-engine"
PY_SPY = "py-spy"


def engine_filters(filters: Filters) -> list[str]:
    """Return the options that make the engine count or delete only what matches."""
    words: list[str] = []
    for option, value in (
        ("--name", filters.name_glob),
        ("--min-size", filters.min_size_bytes),
        ("--size-below", filters.size_below_bytes),
        ("--modified-before", filters.modified_before_s),
        ("--modified-after", filters.modified_after_s),
        ("--share", filters.share),
    ):
        words += [option, str(value)] if value is not None else []
    return words


_VERSION_TIMEOUT_S = 5.0


class Search(Struct, frozen=True):
    """The result of a search for a program.

    Attributes:
        path: absolute; None if no program was accepted.
        rejected: why the first program that others could replace was not accepted, as a part of a
            sentence; empty if there was none.
    """

    path: str | None
    rejected: str = ""


def find_executable(name: str, directories: Iterable[str]) -> Search:
    """Search these directories for a program; skip relative ones.

    A program that a user other than this one and root can replace is rejected.
    """
    rejected = ""
    for directory in directories:
        candidate = os.path.join(directory, name)
        if not (os.path.isabs(directory) and os.path.isfile(candidate)):
            continue
        if not os.access(candidate, os.X_OK):
            continue
        reason = why_untrusted(candidate)
        if reason is None:
            return Search(candidate, rejected)
        rejected = rejected or reason
    return Search(None, rejected)


def why_untrusted(path: str) -> str | None:
    """Return why a program must not be run, as a part of a sentence; None if it may be."""
    shown, uid = displayable(path), os.geteuid()
    try:
        real = resolve(path)
        part = replaceable_part(real, uid)
        if part is not None:
            return (
                f"{shown} is not used: a user other than you and root can replace "
                f"{displayable(part)}"
            )
        served = mount_of_other_user_on_way(real, read_mounts(), uid)
        if served is not None:
            return (
                f"{shown} is not used: a program of another user serves the file system at "
                f"{displayable(served.mount_point)}"
            )
        if others_may_write(os.lstat(real), uid, real):
            return (
                f"{shown} is not used: a user other than you and root can write to "
                f"{displayable(real)}"
            )
    except Refused as error:
        return f"{shown} is not used: {str(error).split('. ')[0].rstrip('.')}"
    except OSError as error:
        return f"{shown} is not used: it cannot be examined ({error.strerror})"
    return None


def remedy_for_start(error: OSError) -> str | None:
    """Return advice if a limit prevents this process from starting any program.

    Returns:
        None if the cause is the program itself.
    """
    return cause_of(error)[1] if is_limit(error) else None


def version_line(path: str) -> tuple[str, int]:
    """Return the first line of ``--version`` and the exit code; an empty line without an answer.

    Raises:
        Missing: a limit prevents this process from starting any program.
    """
    output, code = _output_of(path, "--version")
    lines = output.splitlines()
    return (lines[0].strip() if lines else ""), code


def _output_of(path: str, *arguments: str) -> tuple[str, int]:
    """Run a program without side effects; return its output and exit code, -1 for no answer."""
    try:
        answer = subprocess.run(
            [path, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_VERSION_TIMEOUT_S,
            env={"LC_ALL": "C", "PATH": os.defpath},
            check=False,
        )
    except OSError as error:
        if (advice := remedy_for_start(error)) is not None:
            reason = os.strerror(error.errno or 0)
            command = " ".join((displayable(path), *arguments))
            raise Missing(f"{command} could not be started: {reason}.", advice) from error
        return "", -1  # a program that cannot be executed has no version
    except subprocess.TimeoutExpired:
        return "", -1  # a program that hangs has no reliable version
    return answer.stdout.decode("utf-8", "replace"), answer.returncode


HOW_TO_GET_THE_ENGINE = "install cargo 1.77 or later, then reinstall tui-fs with pip"
HOW_TO_GET_PY_SPY = "install it with: pip install 'tui-fs[profile]'"


class Tool(Struct, frozen=True):
    """An installed tool.

    Attributes:
        path: absolute.
        version: the first line of ``--version``; empty if it has none.
    """

    name: str
    path: str
    version: str

    @property
    def is_gnu(self) -> bool:
        """Whether it is the GNU version, whose options the strategies use."""
        return "GNU" in self.version


def find_tool(name: str) -> Tool | None:
    """Return the tool `name` from the absolute directories of PATH, None if there is none.

    ``python`` is the interpreter that runs this program, in any directory. The engine and py-spy
    are searched first in the scripts directory of this installation.
    """
    if name == "python":
        version = f"Python {sys.version.split()[0]}"
        return Tool(name, sys.executable, version) if sys.executable else None
    if name == ENGINE:
        path = find_engine()
        return None if path is None else _engine(path)
    return _find_tool(name, _search_path(name))


def why_rejected(name: str) -> str:
    """Return why an installed tool is not used; empty if none of that name is installed."""
    return find_executable(name, _search_path(name).split(os.pathsep)).rejected


def _search_path(name: str) -> str:
    """Return PATH; for the engine and py-spy, the scripts directory of this installation is first.

    PATH may name those of another installation.
    """
    path = os.environ.get("PATH", os.defpath)
    has_own = name in (ENGINE, PY_SPY)
    return f"{sysconfig.get_path('scripts')}{os.pathsep}{path}" if has_own else path


@lru_cache(maxsize=256)
def _find_tool(name: str, search_path: str) -> Tool | None:
    path = _find_program(name, search_path)
    return None if path is None else Tool(name, path, version_line(path)[0])


def _engine(path: str) -> Tool:
    capabilities = engine_capabilities(path)
    return Tool(ENGINE, path, "" if capabilities is None else f"{ENGINE} {capabilities.version}")


def find_engine() -> str | None:
    """Return the absolute path of the engine, None if there is none."""
    return _find_program(ENGINE, _search_path(ENGINE))


@lru_cache(maxsize=256)
def _find_program(name: str, search_path: str) -> str | None:
    return find_executable(name, search_path.split(os.pathsep)).path


class EngineCapabilities(Struct, frozen=True):
    """The capabilities that an engine reports. The defaults are those of this version's engine.

    Attributes:
        record_format: version of the survey's records (docs/record-format.md).
        auto_threads: maximum number of threads without an explicit number: one per processor up to
            this, more where threads wait for a server.
        open_directories: descriptors of the directory stacks of all threads together. Half of them
            are divided equally; the rest are for threads in a deep tree.
        read_bytes: buffer size of one getdents64.
        name_bytes: maximum memory for names of all threads together.
        min_shared_names: a directory with fewer names left is not shared among threads.
        evicts_on: file systems on which a helper thread opens names and evicts their inodes.
    """

    version: str = "0.1.0"
    record_format: int = 7
    max_threads: int = 256
    auto_threads: int = 8
    open_directories: int = 4_096
    read_bytes: int = 256 << 10
    name_bytes: int = 32 << 20
    min_shared_names: int = 1_024
    evicts_on: frozenset[str] = frozenset({"ext2", "ext3", "ext4"})


_LIMITS = (
    *("max_threads", "auto_threads", "open_directories"),
    *("read_bytes", "name_bytes", "min_shared_names"),
)


def installed_engine() -> EngineCapabilities:
    """Return the capabilities of the installed engine; without one, the defaults."""
    path = find_engine()
    try:
        capabilities = None if path is None else engine_capabilities(path)
    except Missing:  # no process can be started now; the code that needs the engine reports it
        capabilities = None
    return capabilities or EngineCapabilities()


@lru_cache(maxsize=16)
def engine_capabilities(path: str) -> EngineCapabilities | None:
    """Return the capabilities that an engine reports; None if the program is not an engine.

    Raises:
        Missing: a limit prevents this process from starting any program.
    """
    output, code = _output_of(path, "capabilities", "--json")
    try:
        return _capabilities(json.loads(output)) if code == 0 else None
    except (KeyError, TypeError, ValueError, RecursionError):
        return None


def _capabilities(answer: Mapping[str, Any]) -> EngineCapabilities:
    limits = {name: int(answer["limits"][name]) for name in _LIMITS}
    if min(limits.values()) < 1:
        raise ValueError("a limit below 1")
    evicts_on = {
        str(name)
        for file_system in answer["file_systems"]
        if file_system["defers_eviction"]
        for name in file_system["names"]
    }
    return EngineCapabilities(
        version=str(answer["version"]),
        record_format=int(answer["record_format"]),
        evicts_on=frozenset(evicts_on),
        **limits,
    )
