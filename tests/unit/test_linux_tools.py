"""Finding tools on PATH, and telling GNU builds from others."""

import os
from pathlib import Path

import pytest

from tui_fs.linux.tools import find_tool


def install(directory: Path, name: str, says: str, mode: int = 0o755) -> Path:
    """Write a tool that prints a version."""
    directory.mkdir(exist_ok=True)
    path = directory / name
    path.write_text(f"#!/bin/sh\ncat <<'END'\n{says}\nEND\n")
    path.chmod(mode)
    return path


def search(monkeypatch: pytest.MonkeyPatch, *directories: Path | str) -> None:
    """Make these directories the PATH."""
    monkeypatch.setenv("PATH", os.pathsep.join(map(str, directories)))


def test_a_tool_is_found_with_the_first_line_of_its_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a tool on PATH
    path = install(tmp_path / "bin", "rm", "rm (GNU coreutils) 9.1\nCopyright")
    search(monkeypatch, tmp_path / "bin")
    # When looked up / Then its absolute path and version are known
    tool = find_tool("rm")
    assert tool is not None
    assert (tool.path, tool.version, tool.is_gnu) == (str(path), "rm (GNU coreutils) 9.1", True)


@pytest.mark.parametrize(
    "version", ["rm (uutils coreutils) 0.1.0", "BusyBox v1.37.0 multi-call binary.", ""]
)
def test_other_builds_are_not_taken_for_gnu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    # Given another build / When looked up / Then it is not GNU
    install(tmp_path / "bin", "rm", version)
    search(monkeypatch, tmp_path / "bin")
    tool = find_tool("rm")
    assert tool is not None
    assert not tool.is_gnu


def test_a_tool_that_refuses_to_tell_its_version_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a tool that cannot be executed at all (a script without its interpreter)
    path = install(tmp_path / "bin", "rm", "")
    path.write_text("#!/no/such/interpreter\n")
    search(monkeypatch, tmp_path / "bin")
    # When looked up / Then it is there, without a version
    tool = find_tool("rm")
    assert tool is not None
    assert (tool.version, tool.is_gnu) == ("", False)


def test_the_first_directory_of_path_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a tool in two directories / When looked up / Then the first is taken
    first = install(tmp_path / "one", "rm", "1")
    install(tmp_path / "two", "rm", "2")
    search(monkeypatch, tmp_path / "one", tmp_path / "two")
    tool = find_tool("rm")
    assert tool is not None
    assert tool.path == str(first)


@pytest.mark.parametrize("entry", ["bin", "./bin", "", "."])
def test_relative_entries_of_path_are_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: str
) -> None:
    # Given a tool that only a relative entry leads to
    install(tmp_path / "bin", "rm", "evil")
    install(tmp_path, "rm", "evil")
    monkeypatch.chdir(tmp_path)
    search(monkeypatch, entry, tmp_path / "empty")
    # When looked up / Then it is not found
    assert find_tool("rm") is None


def test_what_may_not_be_executed_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a file and a directory of that name before the tool
    install(tmp_path / "one", "rm", "no", mode=0o644)
    (tmp_path / "two" / "rm").mkdir(parents=True)
    path = install(tmp_path / "three", "rm", "yes")
    search(monkeypatch, tmp_path / "one", tmp_path / "two", tmp_path / "three")
    # When looked up / Then the tool is found
    tool = find_tool("rm")
    assert tool is not None
    assert tool.path == str(path)


def test_a_missing_tool_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given an empty PATH / When looked up / Then none
    search(monkeypatch, tmp_path)
    assert find_tool("rm") is None
