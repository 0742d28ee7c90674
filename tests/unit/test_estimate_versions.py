"""The versions of the tools that the tables of calls were measured with."""

import pytest

from tui_fs.estimate import estimator
from tui_fs.estimate.estimator import installed_versions, is_measured
from tui_fs.model.errors import Missing
from tui_fs.model.strategy import StrategyName
from tui_fs.strategies.registry import STRATEGIES

AS_MEASURED = {
    "rm": "rm (GNU coreutils) 9.1",
    "find": "find (GNU findutils) 4.9.0",
    "xargs": "xargs (GNU findutils) 4.9.0",
    "rsync": "rsync  version 3.5.0  protocol version 32",
    "python": "Python 3.11.7",
    "tui-fs-engine": "tui-fs-engine 0.1.0",
}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_tables_are_for_the_measured_versions(strategy: StrategyName) -> None:
    assert is_measured(STRATEGIES[strategy], AS_MEASURED)


@pytest.mark.parametrize(
    ("tool", "version"),
    [
        ("rm", "rm (GNU coreutils) 9.10"),
        ("tui-fs-engine", "tui-fs-engine 0.2.0"),
        ("tui-fs-engine", ""),
        ("rm", "rm (GNU coreutils) 8.32"),
        ("rm", "rm (uutils coreutils) 9.1"),
        ("find", "find (GNU findutils) 4.10.0"),
        ("xargs", "xargs (GNU findutils) 4.8.0"),
        ("rsync", "rsync  version 3.2.7  protocol version 31"),
        ("rsync", "openrsync: protocol version 29"),
        ("python", "Python 3.13.1"),
    ],
)
def test_another_version_breaks_the_strategies_that_use_it(tool: str, version: str) -> None:
    versions = {**AS_MEASURED, tool: version}
    for strategy in STRATEGIES.values():
        uses_it = tool in strategy.tools
        assert is_measured(strategy, versions) is not uses_it, strategy.name


def test_a_missing_tool_breaks_them_too() -> None:
    versions = {name: line for name, line in AS_MEASURED.items() if name != "rsync"}
    assert not is_measured(STRATEGIES[StrategyName("rsync")], versions)


def test_what_is_installed_has_first_lines() -> None:
    versions = installed_versions()
    assert set(versions) <= set(AS_MEASURED)
    assert versions["python"].startswith("Python 3.")


def test_a_tool_that_cannot_be_started_now_has_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(name: str) -> None:
        raise Missing(f"{name} --version could not be started: EAGAIN.", "Raise ulimit -u.")

    monkeypatch.setattr(estimator, "find_tool", refused)
    assert installed_versions() == {}
