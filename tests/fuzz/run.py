"""Try many inputs on every parser and say how many: ``python tests/fuzz/run.py --examples 100000``.

The tests of this directory run again and again, each time with other inputs, until as many as
were asked for have been tried in sum. Exit code 1 if any of them failed.
"""

import argparse
import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
_TARGETS = 35  # this many share the inputs; the few others try more


class Failures:
    """Counts the failures of each test."""

    def __init__(self) -> None:
        self.by_test: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a test, or its preparation, that failed."""
        if report.failed:
            self.by_test[report.nodeid.partition("tests/fuzz/")[2]] += 1

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note a module that could not be read."""
        if report.failed:
            self.by_test[report.nodeid.partition("tests/fuzz/")[2]] += 1


def main() -> int:
    """Run rounds until enough inputs were tried; print the table."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--examples", type=int, default=100_000, help="inputs at least, in sum")
    wanted: int = parser.parse_args().examples
    sys.path.insert(0, str(ROOT))
    os.chdir(ROOT)
    os.environ["TUI_FS_FUZZ_EXAMPLES"] = str(max(1, wanted // _TARGETS))
    from tests.fuzz import common  # reads the number of examples

    began, failures = time.monotonic(), Failures()
    arguments = ["-n", "0", "-q", "--no-header", "--tb=short", "-p", "no:cacheprovider", str(HERE)]
    while True:
        code = pytest.main(arguments, plugins=[failures])
        if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) or failures.by_test:
            break
        if common.inputs.total() >= wanted:
            break
    print(table(common.inputs, failures.by_test))
    print(f"{time.monotonic() - began:.0f} s")
    return 0 if code == pytest.ExitCode.OK and not failures.by_test else 1


def table(inputs: "Mapping[str, int]", failures: "Mapping[str, int]") -> str:
    """Return the targets with their inputs and failures, and the sums."""
    rows = [
        (name, f"{inputs.get(name, 0):,}", str(failures.get(name, 0)))
        for name in sorted({*inputs, *failures})
    ]
    rows.append(("in sum", f"{sum(inputs.values()):,}", str(sum(failures.values()))))
    width = max(len(name) for name, _, _ in rows)
    lines = [f"{'target':<{width}}  {'inputs':>9}  failures"]
    return "\n".join([*lines, *(f"{name:<{width}}  {n:>9}  {bad:>8}" for name, n, bad in rows)])


if __name__ == "__main__":
    raise SystemExit(main())
