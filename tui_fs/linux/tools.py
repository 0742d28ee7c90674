"""Finding the command line tools and the native engine, and which build is installed."""

import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from tui_fs.linux.limits import cause_of, is_limit
from tui_fs.linux.mounts import mount_of_other_user_on_way, read_mounts
from tui_fs.linux.permissions import others_may_write, replaceable_part
from tui_fs.linux.resolve_path import resolve
from tui_fs.model.errors import Missing, Refused
from tui_fs.model.paths import displayable

ENGINE = "tui-fs-engine"


_VERSION_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class Search:
    """The result of looking for a program.

    Attributes:
        path: absolute; None if no program was accepted.
        rejected: why the first program that others could replace was not accepted, a part of a
            sentence; empty if there was none.
    """

    path: str | None
    rejected: str = ""


def find_executable(name: str, directories: Iterable[str]) -> Search:
    """Look for a program in the absolute ones of these directories.

    A program that a user other than this one and root can replace is passed over.
    """
    rejected = ""
    for directory in directories:
        candidate = os.path.join(directory, name)
        if not (os.path.isabs(directory) and os.path.isfile(candidate)):
            continue
        if not os.access(candidate, os.X_OK):
            continue
        why = why_untrusted(candidate)
        if why is None:
            return Search(candidate, rejected)
        rejected = rejected or why
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
    except Refused as why:
        return f"{shown} is not used: {str(why).split('. ')[0].rstrip('.')}"
    except OSError as error:
        return f"{shown} is not used: it cannot be examined ({error.strerror})"
    return None


def remedy_for_start(error: OSError) -> str | None:
    """Return what to do where a limit keeps this process from starting any program.

    Returns:
        None where the program itself cannot be executed.
    """
    return cause_of(error)[1] if is_limit(error) else None


def version_line(path: str) -> tuple[str, int]:
    """Return the first line of ``--version`` and the exit code; no line if there is no answer.

    Raises:
        Missing: this process may start nothing now, which says nothing about the program.
    """
    try:
        answer = subprocess.run(
            [path, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_VERSION_TIMEOUT_S,
            env={"LC_ALL": "C", "PATH": os.defpath},
            check=False,
        )
    except OSError as error:
        if (advice := remedy_for_start(error)) is not None:
            reason = os.strerror(error.errno or 0)
            sentence = f"{displayable(path)} --version could not be started: {reason}."
            raise Missing(sentence, advice) from error
        return "", -1  # a program that cannot be executed has no version either
    except subprocess.TimeoutExpired:
        return "", -1  # what does not answer has no version that could be relied on
    lines = answer.stdout.decode("utf-8", "replace").splitlines()
    return (lines[0].strip() if lines else ""), answer.returncode


__all__ = ["ENGINE", "HOW_TO_GET_THE_ENGINE", "Tool", "find_tool", "why_rejected"]

HOW_TO_GET_THE_ENGINE = "install cargo 1.77 or later, then reinstall tui-fs with pip"


@dataclass(frozen=True, slots=True)
class Tool:
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
        """Whether it is the GNU build, whose options the strategies use."""
        return "GNU" in self.version


def find_tool(name: str) -> Tool | None:
    """Return the tool `name` from the absolute directories of PATH, None if there is none.

    ``python`` is the interpreter that runs this program, wherever it is, and the engine lies
    beside this program.
    """
    if name == "python":
        version = f"Python {sys.version.split()[0]}"
        return Tool(name, sys.executable, version) if sys.executable else None
    if name == ENGINE:
        path = find_engine()
        return None if path is None else _engine(path)
    return _find_tool(name, os.environ.get("PATH", os.defpath))


def why_rejected(name: str) -> str:
    """Return why a tool that is there is not used; empty if there is none of that name."""
    if name == ENGINE:
        return search_engine().rejected
    directories = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return find_executable(name, directories).rejected


@lru_cache(maxsize=256)
def _find_tool(name: str, search_path: str) -> Tool | None:
    path = find_executable(name, search_path.split(os.pathsep)).path
    return None if path is None else Tool(name, path, version_line(path)[0])


@lru_cache(maxsize=16)
def _engine(path: str) -> Tool:
    return Tool(ENGINE, path, engine_version(path))


def find_engine() -> str | None:
    """Return the absolute path of the engine, None if there is none.

    It is looked for beside the scripts of this installation first, for PATH may name another
    one's, and then in the absolute directories of PATH.
    """
    return search_engine().path


def search_engine() -> Search:
    """Look for the engine as `find_engine` does; the result says what was rejected."""
    return _search(sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath))


@lru_cache(maxsize=16)
def _search(scripts: str, search_path: str) -> Search:
    return find_executable(ENGINE, (scripts, *search_path.split(os.pathsep)))


def engine_version(path: str) -> str:
    """Return what an engine says about itself, ``tui-fs-engine 0.1.0``; empty if nothing."""
    line, code = version_line(path)
    return line if code == 0 else ""
