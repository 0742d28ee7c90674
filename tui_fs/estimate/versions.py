"""Which versions of the tools the strategies' tables of calls were measured with."""

import contextlib
from collections.abc import Mapping

from tui_fs.linux.tools import find_tool
from tui_fs.model.errors import Missing
from tui_fs.strategies.base import Strategy
from tui_fs.strategies.registry import STRATEGIES


def is_measured(strategy: Strategy, versions: Mapping[str, str]) -> bool:
    """Return whether the strategy's table of calls was measured with these versions of its tools.

    Args:
        versions: of each tool the first line of its ``--version``; see `installed_versions`.
    """
    return all(
        _begins_with(versions.get(tool, ""), measured)
        for tool, measured in strategy.measured_with.items()
    )


def versions_used(strategy: Strategy, versions: Mapping[str, str]) -> dict[str, str]:
    """Return the versions that a strategy's calls depend on, to keep them with what is counted."""
    return {tool: versions.get(tool, "") for tool in strategy.measured_with}


def installed_versions() -> dict[str, str]:
    """Return what is installed here; what is missing, or cannot be started now, has no version."""
    found: dict[str, str] = {}
    for name in {tool for strategy in STRATEGIES.values() for tool in strategy.measured_with}:
        with contextlib.suppress(Missing):  # no table is used for it, and the strategy says why
            if (tool := find_tool(name)) is not None:
                found[name] = tool.version
    return found


def _begins_with(version: str, measured: str) -> bool:
    """Return whether a version is the measured one or a correction of it: 9.1.4, but not 9.10."""
    return version.startswith(measured) and not version[len(measured) : len(measured) + 1].isdigit()
