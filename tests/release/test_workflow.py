"""The workflow that makes a release on other machines than this one."""

import os
import re
from pathlib import Path

import pytest

from tests.contracts import fleet_servers
from tests.needs import REQUIRED_VARIABLE
from tests.seccomp import UNKNOWN_TO_4_18, under_filter

_ROOT = Path(__file__).parents[2]
_WORKFLOW = (_ROOT / ".github/workflows/release.yml").read_text()
_ON_EVERY_RUNNER = {"coreutils", "dpkg", "gcc", "git", "sudo", "util-linux"}
_INSTALLED_BY_PIP = {"pipx && pipx install uv"}


def test_the_workflow_installs_the_packages_that_the_tests_of_a_release_need() -> None:
    installed = {
        package
        for packages in re.findall(r"apt-get install -qq (.+)", _WORKFLOW)
        for package in packages.split()
    }
    tests = [*Path(__file__).parent.glob("*.py"), Path(fleet_servers.__file__)]
    calls = "\n".join(test.read_text() for test in tests)
    needed = set(re.findall(r'needs_tool\("[^"]+", "([^"]+)"\)', calls))
    needed |= set(fleet_servers._TOOLS.values())
    assert {"rpm", "tmux", "nftables", "openssh-server"} < needed
    assert needed - _ON_EVERY_RUNNER - _INSTALLED_BY_PIP <= installed


def test_the_workflow_runs_only_commits_of_actions() -> None:
    actions = re.findall(r"uses: (.+)", _WORKFLOW)
    assert actions
    assert [each for each in actions if not re.fullmatch(r"\S+@[0-9a-f]{40} # v[\d.]+", each)] == []


def test_the_job_that_builds_may_not_write_and_has_no_key() -> None:
    build, publish = _WORKFLOW.split("\n  publish:\n")
    assert ("scripts/release " in build, "scripts/release " in publish) == (True, False)
    assert ("secrets." in build, ": write" in build) == (False, False)


def test_on_another_processor_the_simulation_of_an_old_kernel_is_skipped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    arm = os.uname_result(("Linux", "server", "6.8", "#1", "aarch64"))
    monkeypatch.setattr(os, "uname", lambda: arm)
    monkeypatch.setenv(REQUIRED_VARIABLE, "1")
    with pytest.raises(pytest.skip.Exception):
        under_filter("ENOSYS", UNKNOWN_TO_4_18)
