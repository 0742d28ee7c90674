"""GNU find -delete: one process, descends by descriptors, takes filters."""

from collections.abc import Mapping

from tui_fs.model.strategy import Guarantees, Options, Step, StrategyName
from tui_fs.strategies.base import (
    Failure,
    Progress,
    below_root,
    find_tests,
    gnu_failure,
    unquote_c,
)


class Find:
    """``find TARGETS -xdev -depth -delete``."""

    name = StrategyName.FIND
    tools = ("find", "rmdir")
    gnu_tools = ("find",)
    guarantees = Guarantees(race_safe=True, mount_safe=True, any_depth=True, takes_filters=True)

    def steps(
        self,
        targets: tuple[str, ...],
        options: Options,
        tools: Mapping[str, str],
        empty_directory: str,
    ) -> tuple[Step, ...]:
        """See `Strategy.steps`."""
        del empty_directory
        tests = (*below_root(options), "-depth", *find_tests(options.filters))
        return (((tools["find"], *targets, "-xdev", *tests, "-delete"),),)

    def steps_with_output(
        self,
        targets: tuple[str, ...],
        options: Options,
        tools: Mapping[str, str],
        empty_directory: str,
    ) -> tuple[Step, ...]:
        """See `Strategy.steps_with_output`; prints each removed entry's type."""
        (((*argv,),),) = self.steps(targets, options, tools, empty_directory)
        return (((*argv, "-printf", "%y\\n"),),)

    def at_once(self, options: Options) -> int | None:
        """See `Strategy.at_once`."""
        del options
        return None

    def read_output(self, line: bytes) -> Progress | Failure | None:
        """See `Strategy.read_output`."""
        return Progress(1, 1 if line == b"d" else 0)

    def failure(self, line: bytes) -> Failure | None:
        """See `Strategy.failure`."""
        return gnu_failure(line, unquote_c)
