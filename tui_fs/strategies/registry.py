"""All strategies by name, and which of them can run here."""

from collections.abc import Callable, Iterable, Mapping

from tui_fs.linux.tools import (
    ENGINE,
    HOW_TO_GET_PY_SPY,
    HOW_TO_GET_THE_ENGINE,
    PY_SPY,
    Tool,
    find_tool,
    why_rejected,
)
from tui_fs.model.errors import BadInput, Missing
from tui_fs.model.paths import displayable
from tui_fs.model.strategy import Filters, Options, StrategyName
from tui_fs.strategies.base import Strategy
from tui_fs.strategies.find import Find
from tui_fs.strategies.parallel import Parallel
from tui_fs.strategies.rm import Rm
from tui_fs.strategies.rmtree import Rmtree
from tui_fs.strategies.rsync import Rsync
from tui_fs.strategies.xargs import Xargs

_ALL: tuple[Strategy, ...] = (Rm(), Find(), Xargs(), Rsync(), Rmtree(), Parallel())
STRATEGIES: Mapping[StrategyName, Strategy] = {strategy.name: strategy for strategy in _ALL}

REFERENCE = Rm.name
"""The unit costs of all others are compared with those of this strategy."""
BATCHED = Xargs.name
"""The costs of a process and of a path level are measured with this strategy."""


def _listed(strategies: Iterable[Strategy]) -> str:
    *names, last = [str(strategy.name) for strategy in strategies]
    return f"{', '.join(names)} or {last}" if names else last


RACE_SAFE = _listed(strategy for strategy in _ALL if strategy.guarantees.race_safe)
"""The strategies that no race can lead outside the target, as a part of a sentence."""

FinderOfTools = Callable[[str], Tool | None]

_PACKAGES = {
    "rm": "coreutils",
    "rmdir": "coreutils",
    "find": "findutils",
    "xargs": "findutils",
    "coreutils": "rust-coreutils",
    "uu-rm": "rust-coreutils",
}
_NOT_PACKAGED = {ENGINE: HOW_TO_GET_THE_ENGINE, PY_SPY: HOW_TO_GET_PY_SPY}


def strategy_named(name: str) -> Strategy:
    """Return a strategy.

    Raises:
        BadInput: there is none of this name.
    """
    strategy = STRATEGIES.get(StrategyName(name))
    if strategy is None:
        known = ", ".join(STRATEGIES)
        raise BadInput(f"There is no strategy {displayable(name)}.", f"Use one of {known}.")
    return strategy


def tools_of(
    strategy: Strategy, find: FinderOfTools = find_tool
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the absolute paths of a strategy's tools, and a reason for each that is unfit."""
    paths: dict[str, str] = {}
    reasons: list[str] = []
    for name in strategy.tools:
        try:
            tool = find(name)
        except Missing as error:  # a limit of this process; the tool itself may be fit
            reasons.append(
                "; ".join(part.removesuffix(".") for part in (error.sentence, error.advice))
            )
            continue
        if tool is None:
            reasons.append(why_missing(name))
            continue
        paths[name] = tool.path
        if name in strategy.gnu_tools and not tool.is_gnu:
            reasons.append(f"{tool.path} is not GNU {name}; install {package_of(name)}")
    return paths, tuple(reasons)


def why_missing(tool: str) -> str:
    """Return that a tool is missing and how to get it, as a part of a sentence."""
    rejected = why_rejected(tool)
    if rejected:
        return rejected
    if tool in _NOT_PACKAGED:
        return f"{tool} is not installed; {_NOT_PACKAGED[tool]}"
    return f"{tool} was not found in PATH; it comes with the package {package_of(tool)}"


def remedy(tool: str) -> str:
    """Return how to get a tool."""
    return (
        why_rejected(tool) or _NOT_PACKAGED.get(tool) or f"install the package {package_of(tool)}"
    )


def package_of(tool: str) -> str:
    """Return the name of the package that a tool comes with."""
    return _PACKAGES.get(tool, tool)


def unfit_options(
    strategy: Strategy, options: Options, *, of_file: bool = False
) -> tuple[str, ...]:
    """Return why the strategy does not support the options.

    Args:
        of_file: the target is a single file, not a directory.
    """
    if of_file and (options.keep_root or options.filters != Filters()):
        return ("filters, shares and keeping the directory apply to directories, not to a file",)
    if options.filters.active and not strategy.guarantees.takes_filters:
        able = ", ".join(strategy.name for strategy in _ALL if strategy.guarantees.takes_filters)
        return (f"{strategy.name} cannot filter by name, size or age; {able} can",)
    if options.filters.share is not None and not strategy.guarantees.takes_shares:
        able = ", ".join(strategy.name for strategy in _ALL if strategy.guarantees.takes_shares)
        return (f"{strategy.name} cannot delete one share of a directory; {able} can",)
    return ()
