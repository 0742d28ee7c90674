"""Which tools and C library the formulas for system calls were measured with."""

import contextlib
import os
import re
from collections.abc import Mapping

from tui_fs.linux.tools import ENGINE, find_tool
from tui_fs.model.errors import Missing
from tui_fs.model.strategy import StrategyName

LIBC = "libc"

MEASURED: Mapping[str, frozenset[str]] = {
    "rm": frozenset({"9.1"}),
    "rmdir": frozenset({"9.1"}),
    "find": frozenset({"4.9"}),
    "xargs": frozenset({"4.9"}),
    "rsync": frozenset({"3.5"}),
    "python": frozenset({"3.11"}),
    ENGINE: frozenset({"0.1"}),
    LIBC: frozenset({"2.36"}),
}
"""The versions that the formulas hold for, their first two numbers."""

_USED: Mapping[StrategyName, tuple[str, ...]] = {
    StrategyName.RM: ("rm", "find", LIBC),
    StrategyName.FIND: ("find", LIBC),
    StrategyName.XARGS: ("find", "xargs", "rm", LIBC),
    StrategyName.RSYNC: ("rsync", "rmdir", LIBC),
    StrategyName.RMTREE: ("python", LIBC),
    StrategyName.PARALLEL: (ENGINE,),
}
_NUMBER = re.compile(r"(\d+\.\d+)(?:\.\d+)*")
_NAMED = {
    "rm": "GNU coreutils",
    "rmdir": "GNU coreutils",
    "find": "GNU findutils",
    "xargs": "GNU findutils",
    "rsync": "rsync ",
    "python": "Python",
    ENGINE: ENGINE,
    LIBC: "glibc",
}


def formulas_hold(strategy: StrategyName, versions: Mapping[str, str]) -> bool:
    """Tell whether the strategy's calls can be predicted by formula.

    Args:
        versions: of each tool the first line of its ``--version``, and of the C library what
            confstr says; see `installed_versions`.
    """
    return all(_is_measured(name, versions.get(name, "")) for name in _USED[strategy])


def versions_used(strategy: StrategyName, versions: Mapping[str, str]) -> dict[str, str]:
    """Return the versions that a strategy's calls depend on, to keep them with what is counted."""
    return {name: versions.get(name, "") for name in _USED[strategy]}


def installed_versions() -> dict[str, str]:
    """Return what is installed here; what is missing, or cannot be started now, has no version."""
    found: dict[str, str] = {}
    for name in MEASURED:
        with contextlib.suppress(Missing):  # no formula is used for it, and the strategy says why
            if (tool := find_tool(name)) is not None:
                found[name] = tool.version
    try:
        found[LIBC] = os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (OSError, ValueError):
        found[LIBC] = ""  # another library, which does not know the name
    return found


def _is_measured(name: str, version: str) -> bool:
    number = _NUMBER.search(version)
    return _NAMED[name] in version and number is not None and number[1] in MEASURED[name]
