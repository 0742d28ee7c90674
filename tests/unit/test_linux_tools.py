"""Finding tools on PATH, and distinguishing GNU builds from others."""

import errno
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acl import NAMED_USER, grant
from tests.needs import needs_root
from tui_fs.linux.tools import ENGINE, Tool, find_tool
from tui_fs.model.errors import Missing
from tui_fs.strategies.registry import why_missing


def install(directory: Path, name: str, says: str, mode: int = 0o755) -> Path:
    """Write a tool that prints a version."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / name
    path.write_text(f"#!/bin/sh\ncat <<'END'\n{says}\nEND\n")
    path.chmod(mode)
    return path


def search(monkeypatch: pytest.MonkeyPatch, *directories: Path | str) -> None:
    """Make these directories the PATH."""
    monkeypatch.setenv("PATH", os.pathsep.join(map(str, directories)))


def found(name: str) -> Tool:
    """Find a tool that must be there."""
    tool = find_tool(name)
    assert tool is not None
    return tool


def test_a_tool_is_found_with_the_first_line_of_its_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = install(tmp_path / "bin", "rm", "rm (GNU coreutils) 9.1\nCopyright")
    search(monkeypatch, tmp_path / "bin")
    tool = found("rm")
    assert (tool.path, tool.version, tool.is_gnu) == (str(path), "rm (GNU coreutils) 9.1", True)


@pytest.mark.parametrize(
    "version", ["rm (uutils coreutils) 0.1.0", "BusyBox v1.37.0 multi-call binary.", ""]
)
def test_other_builds_are_not_taken_for_gnu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    install(tmp_path / "bin", "rm", version)
    search(monkeypatch, tmp_path / "bin")
    assert not found("rm").is_gnu


def test_a_tool_that_refuses_to_print_its_version_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A tool that cannot be executed at all (a script without its interpreter)
    path = install(tmp_path / "bin", "rm", "")
    path.write_text("#!/no/such/interpreter\n")
    search(monkeypatch, tmp_path / "bin")
    tool = found("rm")
    assert (tool.version, tool.is_gnu) == ("", False)


@pytest.mark.parametrize("entry", ["bin", "./bin", "", "."])
def test_relative_entries_of_path_are_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: str
) -> None:
    # A tool that only a relative entry leads to
    install(tmp_path / "bin", "rm", "evil")
    install(tmp_path, "rm", "evil")
    monkeypatch.chdir(tmp_path)
    search(monkeypatch, entry, tmp_path / "empty")
    assert find_tool("rm") is None


def test_the_first_of_path_that_may_be_executed_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path / "one", "rm", "no", mode=0o644)
    (tmp_path / "two" / "rm").mkdir(parents=True)
    path = install(tmp_path / "three", "rm", "yes")
    install(tmp_path / "four", "rm", "later")
    search(monkeypatch, *(tmp_path / name for name in ("one", "two", "three", "four")))
    assert found("rm").path == str(path)


def test_a_missing_tool_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    search(monkeypatch, tmp_path)
    assert find_tool("rm") is None


def _open_the_directory(directory: Path) -> None:
    directory.chmod(0o777)


def _open_the_directory_above(directory: Path) -> None:
    directory.parent.chmod(0o777)


def _open_the_file(directory: Path) -> None:
    (directory / "rm").chmod(0o777)


def _change_file_owner(directory: Path) -> None:
    os.chown(directory / "rm", 65534, 65534)


def _add_an_acl(directory: Path) -> None:
    grant(directory, NAMED_USER, 65534)


@pytest.mark.parametrize(
    "expose",
    [
        _open_the_directory,
        _open_the_directory_above,
        _open_the_file,
        _change_file_owner,
        _add_an_acl,
    ],
)
def test_a_tool_that_others_can_replace_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, expose: Callable[[Path], None]
) -> None:
    needs_root("giving files away")
    exposed = install(tmp_path / "exposed" / "bin", "rm", "evil")
    safe = install(tmp_path / "safe", "rm", "safe")
    expose(exposed.parent)
    search(monkeypatch, exposed.parent, safe.parent)
    assert found("rm").path == str(safe)
    # And without it there is none, and the reason names the rejected file
    search(monkeypatch, exposed.parent)
    assert find_tool("rm") is None
    assert f"{exposed} is not used: a user other than you and root can" in why_missing("rm")


def test_a_tool_behind_a_link_that_others_can_change_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_root("giving files away")
    safe = install(tmp_path / "safe", "rm", "safe")
    linked = tmp_path / "linked"
    linked.mkdir()
    (linked / "rm").symlink_to(safe)
    search(monkeypatch, linked)
    assert find_tool("rm") is not None
    os.chown(linked / "rm", 65534, 65534, follow_symlinks=False)
    search(monkeypatch, linked, tmp_path / "empty")
    assert find_tool("rm") is None
    assert f"{linked / 'rm'} is not used:" in why_missing("rm")


def test_the_engine_is_not_taken_from_where_others_can_replace_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exposed = install(tmp_path / "scripts", ENGINE, "tui-fs-engine 0.1.0", mode=0o777)
    monkeypatch.setattr("sysconfig.get_path", lambda _: str(exposed.parent))
    search(monkeypatch, tmp_path / "empty")
    assert find_tool(ENGINE) is None
    assert f"{exposed} is not used:" in why_missing(ENGINE)


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.EAGAIN, "ulimit -u"),
        (errno.EMFILE, "ulimit -n"),
        (errno.ENFILE, "fs.file-max"),
        (errno.ENOMEM, "memory"),
    ],
)
def test_a_limit_of_this_process_is_not_blamed_on_the_tool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, advice: str
) -> None:
    install(tmp_path / "bin", "rm", "rm (GNU coreutils) 9.1")
    search(monkeypatch, tmp_path / "bin")

    def refused(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as limit:
        limit.setattr(subprocess, "run", refused)
        with pytest.raises(Missing, match="bin/rm --version could not be started") as error:
            find_tool("rm")
    assert os.strerror(number) in error.value.sentence
    assert advice in error.value.advice
    # And afterwards the tool is what it is
    assert found("rm").is_gnu
