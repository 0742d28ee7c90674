"""All experiments: every module in `tui_fs.lab.experiments` that holds an EXPERIMENT."""

import functools
import importlib
import pkgutil

import tui_fs.lab.experiments
from tui_fs.lab.experiment import Experiment
from tui_fs.model.errors import BadInput
from tui_fs.model.paths import displayable

_ORDER = ("rsync-vs-rm", "tree-shapes", "ext4-vs-xfs", "exec-vs-xargs", "zero-fill", "profile")
"""Published ones in the order in which they teach; what is not named here comes after them."""


@functools.cache
def experiments() -> tuple[Experiment, ...]:
    """Return all experiments."""
    found: list[Experiment] = []
    for module in pkgutil.iter_modules(tui_fs.lab.experiments.__path__):
        loaded = importlib.import_module(f"{tui_fs.lab.experiments.__name__}.{module.name}")
        experiment = loaded.EXPERIMENT
        assert isinstance(experiment, Experiment)
        found.append(experiment)
    order = {name: number for number, name in enumerate(_ORDER)}
    return tuple(sorted(found, key=lambda one: (order.get(one.name, len(order)), one.name)))


def experiment(name: str) -> Experiment:
    """Return the experiment of a name; BadInput names those there are."""
    for one in experiments():
        if one.name == name:
            return one
    names = ", ".join(one.name for one in experiments())
    raise BadInput(f"There is no experiment {displayable(name)}.", f"There are: {names}.")
