"""The experiments: each module here defines one value named EXPERIMENT."""

import functools
import importlib
import pkgutil

from tui_fs.lab.experiment import Experiment
from tui_fs.model.errors import BadInput, did_you_mean
from tui_fs.model.paths import displayable

_ORDER = ("rsync-vs-rm", "tree-shapes", "ext4-vs-xfs", "exec-vs-xargs", "zero-fill", "profile")
"""Listed first; the others follow by name."""


@functools.cache
def experiments() -> tuple[Experiment, ...]:
    """Return all experiments."""
    modules = (
        importlib.import_module(f"{__name__}.{module.name}")
        for module in pkgutil.iter_modules(__path__)
    )
    rank = {name: number for number, name in enumerate(_ORDER)}
    return tuple(
        sorted(
            (module.EXPERIMENT for module in modules),
            key=lambda experiment: (rank.get(experiment.name, len(rank)), experiment.name),
        )
    )


def experiment(name: str) -> Experiment:
    """Return the experiment with this name; BadInput lists the known ones."""
    by_name = {experiment.name: experiment for experiment in experiments()}
    if name not in by_name:
        raise BadInput(
            f"There is no experiment '{displayable(name)}'.",
            did_you_mean(name, by_name, f"The experiments are: {', '.join(by_name)}."),
        )
    return by_name[name]
