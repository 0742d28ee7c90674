"""Finding the native engine beside this program, or on PATH."""

import os
import sysconfig
from pathlib import Path

import pytest

from tui_fs.linux.tools import ENGINE, engine_version, find_engine


@pytest.fixture
def scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the directory of this installation's scripts; PATH names no other one."""
    directory = tmp_path / "scripts"
    directory.mkdir()
    monkeypatch.setattr(sysconfig, "get_path", {"scripts": str(directory)}.__getitem__)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    return directory


def install(directory: Path, script: str = "", mode: int = 0o755) -> str:
    """Write an engine."""
    directory.mkdir(exist_ok=True)
    path = directory / ENGINE
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(mode)
    return str(path)


@pytest.mark.parametrize("is_directory", [False, True])
def test_what_cannot_be_executed_is_no_engine(scripts: Path, is_directory: bool) -> None:
    if is_directory:
        (scripts / ENGINE).mkdir()
    else:
        install(scripts, mode=0o644)
    assert find_engine() is None


def test_that_of_this_installation_comes_first(
    scripts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = install(scripts)
    install(tmp_path / "bin")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert find_engine() == expected


def test_relative_directories_are_not_searched(
    scripts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert os.listdir(scripts) == []
    expected = install(tmp_path / "bin")
    install(tmp_path / "here")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", os.pathsep.join(["", ".", "here", str(tmp_path / "bin")]))
    assert find_engine() == expected


@pytest.mark.parametrize(
    ("script", "version"),
    [
        ("echo tui-fs-engine 0.1.0; echo more", "tui-fs-engine 0.1.0"),
        ("echo tui-fs-engine 0.1.0; exit 1", ""),
        ("", ""),
    ],
)
def test_an_engine_tells_its_version(tmp_path: Path, script: str, version: str) -> None:
    assert engine_version(install(tmp_path, script)) == version
    assert engine_version(str(tmp_path / "missing")) == ""
