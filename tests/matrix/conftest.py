"""The page that the observed cells are compared with, or written to."""

import os
import platform
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest

from tests.conftest import Cli
from tests.filesystems import mounts_below
from tests.matrix.case import Case, Scene
from tests.matrix.groups import GROUPS
from tests.matrix.observing import observe
from tests.matrix.ordinary_user import GID, UID
from tests.matrix.page import (
    HOW_TO_WRITE,
    PAGE,
    WRITE_VARIABLE,
    Cells,
    page_text,
    read_page,
    read_versions,
)
from tests.matrix.served import NOT_SERVED, behind_server
from tests.matrix.served_cases import SERVED
from tests.namespaces import in_mount_namespace
from tests.needs import lacks, needs_engine, needs_root, needs_tool
from tests.trees import Sentinel
from tui_fs.linux.tools import ENGINE, find_engine
from tui_fs.model.strategy import StrategyName
from tui_fs.strategies.registry import STRATEGIES

CheckCell = Callable[[Case, str], None]
CheckServed = Callable[[Case, tuple[str, ...]], None]


@pytest.fixture(scope="session")
def cells(request: pytest.FixtureRequest) -> Iterator[Cells]:
    """Yield the page's cells; regenerate the page at the end if requested."""
    known = read_page(PAGE.read_text()) if PAGE.exists() else {}
    is_written = WRITE_VARIABLE in os.environ
    assert not (is_written and hasattr(request.config, "workerinput")), f"use {HOW_TO_WRITE}"
    yield known
    if is_written:
        PAGE.write_text(page_text(GROUPS, known, _all_versions(), NOT_SERVED))


@pytest.fixture
def observe_cell(
    cli: Cli, ext4: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[Case, str], str]]:
    """Yield what observes a cell."""
    needs_root("building trees with owners, devices and mounts")
    runtime = tmp_path / "runtime"
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))

    def observe_one(case: Case, strategy: str) -> str:
        scene = Scene(
            cli, strategy, ext4, ext4 / "target", Sentinel(ext4), runtime, case.is_ordinary
        )
        if case.is_ordinary:
            scene.cli = _ordinary(cli, ext4)
        if case.is_without_tool:
            scene.cli = _without(strategy, cli)
        return observe(case, scene)

    yield observe_one
    for point in (*mounts_below(ext4), *mounts_below(tmp_path)):
        # An ended job holds its directory for a moment; no process waits for that.
        subprocess.run(["umount", "--lazy", point], check=True)


@pytest.fixture
def check_cell(observe_cell: Callable[[Case, str], str], cells: Cells) -> CheckCell:
    """Return the check of one cell: observe it and compare it with the page."""

    def check(case: Case, strategy: str) -> None:
        made_with = _versions(STRATEGIES[StrategyName(strategy)].tools)
        observed = observe_cell(case, strategy)
        if WRITE_VARIABLE in os.environ:
            cells[case.name, strategy] = observed
            return
        _compare(observed, cells.get((case.name, strategy)), made_with)

    return check


@pytest.fixture
def check_served(observe_cell: Callable[[Case, str], str], cells: Cells) -> Iterator[CheckServed]:
    """Yield the check that a cell of parallel is the same where a server answers late."""
    made_with = _versions(STRATEGIES[StrategyName(SERVED)].tools)
    with ExitStack() as until_observed:

        def check(case: Case, options: tuple[str, ...]) -> None:
            observed = observe_cell(behind_server(case, options, until_observed), SERVED)
            _compare(observed, cells.get((case.name, SERVED)), made_with)

        yield check


def _compare(observed: str, expected: str | None, made_with: Iterable[str]) -> None:
    page = f"docs/{PAGE.name}"
    is_written = WRITE_VARIABLE in os.environ
    versions = read_versions(PAGE.read_text()).split(", ")
    if not is_written and not set(made_with) <= set(versions):
        lacks(f"{page} was made with other tools than {made_with}; enable: {HOW_TO_WRITE}")
    assert observed == expected, f"{page} differs; look, then: {HOW_TO_WRITE}"


def _ordinary(cli: Cli, place: Path) -> Cli:
    """Return the program run by an unprivileged user, in a directory of that user."""
    state_home = cli.jobs_directory.parent.parent
    for directory in (place, state_home):
        directory.mkdir(exist_ok=True)
        os.chown(directory, UID, GID)
        directory.chmod(0o755)
    return cli.as_ordinary_user(place, state_home)


def _without(tool: str, cli: Cli) -> Cli:
    """Return the program run with a tool missing from PATH."""
    paths = {shutil.which(tool, path=directory) for directory in os.get_exec_path()}
    paths |= {find_engine()} if tool == StrategyName("parallel") else set()
    hide = [f"mount --bind /dev/null {shlex.quote(path)}" for path in paths if path]
    return cli.wrapped(in_mount_namespace("; ".join(hide)))


def _versions(tools: Iterable[str]) -> list[str]:
    """Return the version of each tool, as the tool prints it."""
    return list(dict.fromkeys(map(_version, tools)))


@cache
def _version(tool: str) -> str:
    command = [_path_of(tool), "--version"]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return " ".join(output.splitlines()[0].split())


def _path_of(tool: str) -> str:
    if tool == "python":
        return sys.executable
    if tool == ENGINE:
        needs_engine()
        return find_engine() or ""
    return needs_tool(tool, package=tool)


def _all_versions() -> str:
    """Describe the environment that the page was made in."""
    kernel = f"Linux {platform.release().partition('-')[0]}"
    tools = dict.fromkeys(tool for strategy in STRATEGIES.values() for tool in strategy.tools)
    return ", ".join((kernel, "ext4", *_versions(tools)))
