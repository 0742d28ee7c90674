"""Finding the native engine next to this program, or on PATH."""

import json
import sysconfig
from pathlib import Path

import pytest

from tests.needs import needs_engine
from tui_fs.linux.tools import (
    ENGINE,
    EngineCapabilities,
    Tool,
    engine_capabilities,
    find_engine,
    find_tool,
    installed_engine,
)
from tui_fs.model.command import MOST_THREADS


@pytest.fixture
def scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the directory of this installation's scripts; PATH names no other one."""
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


def test_that_of_this_installation_comes_first(
    scripts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = install(scripts)
    install(tmp_path / "bin")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert find_engine() == expected


LIMITS = {
    "max_threads": 1,
    "auto_threads": 2,
    "open_directories": 3,
    "read_bytes": 4,
    "name_bytes": 5,
    "min_shared_names": 6,
}
FILE_SYSTEMS = [
    {"names": ["a", "b"], "defers_eviction": True},
    {"names": ["c"], "defers_eviction": False},
]
ANSWER = {
    "version": "0.1.0",
    "record_format": 7,
    "limits": LIMITS,
    "file_systems": FILE_SYSTEMS,
}


def reporting(answer: object, code: int = 0) -> str:
    """Return a script that reports this about itself."""
    return f"[ \"$*\" = 'capabilities --json' ] && echo '{json.dumps(answer)}'; exit {code}"


def test_engine_reports_its_version_and_limits(scripts: Path) -> None:
    path = install(scripts, reporting(ANSWER))
    expected = EngineCapabilities("0.1.0", 7, 1, 2, 3, 4, 5, 6, frozenset("ab"))
    assert engine_capabilities(path) == installed_engine() == expected
    assert find_tool(ENGINE) == Tool(ENGINE, path, "tui-fs-engine 0.1.0")


@pytest.mark.parametrize(
    "script",
    [
        "",
        "echo tui-fs-engine 0.1.0",
        "echo []",
        reporting(ANSWER, 1),
        reporting({**ANSWER, "limits": {}}),
        reporting({**ANSWER, "limits": {**LIMITS, "read_bytes": 0}}),
        reporting({**ANSWER, "file_systems": [{}]}),
    ],
)
def test_program_without_such_a_report_has_no_version(scripts: Path, script: str) -> None:
    path = install(scripts, script)
    assert engine_capabilities(path) is None
    assert find_tool(ENGINE) == Tool(ENGINE, path, "")
    assert installed_engine() == EngineCapabilities()


def test_defaults_are_those_of_this_engine() -> None:
    needs_engine()
    assert engine_capabilities(find_engine() or "") == EngineCapabilities()
    assert EngineCapabilities().max_threads == MOST_THREADS
