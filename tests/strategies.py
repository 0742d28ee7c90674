"""Names of strategies by what they guarantee, so that a new one joins the tests of its kind."""

from tui_fs.strategies.registry import STRATEGIES

RACE_SAFE = tuple(name for name, each in STRATEGIES.items() if each.guarantees.race_safe)
BY_PATH = tuple(name for name in STRATEGIES if name not in RACE_SAFE)
TAKE_FILTERS = tuple(name for name, each in STRATEGIES.items() if each.guarantees.takes_filters)
