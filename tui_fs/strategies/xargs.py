"""find | xargs rm: the batch-size lesson, by paths and therefore not safe against races."""

from collections.abc import Mapping

from tui_fs.model.strategy import Guarantees, Options, Step, StrategyName
from tui_fs.strategies.base import (
    Failure,
    Progress,
    below_root,
    find_tests,
    gnu_failure,
    tool_of,
    unquote_c,
    unquote_shell,
)


class Xargs:
    """Files in batches through xargs and rm, then the directories with find -delete."""

    name = StrategyName.XARGS
    tools = ("find", "xargs", "rm", "rmdir")
    gnu_tools = ("find", "xargs", "rm")
    guarantees = Guarantees(race_safe=False, mount_safe=True, any_depth=False, takes_filters=True)

    def steps(
        self,
        targets: tuple[str, ...],
        options: Options,
        tools: Mapping[str, str],
        empty_directory: str,
    ) -> tuple[Step, ...]:
        """See `Strategy.steps`."""
        del empty_directory
        return self._steps(targets, options, tools, "-f", ())

    def steps_with_output(
        self,
        targets: tuple[str, ...],
        options: Options,
        tools: Mapping[str, str],
        empty_directory: str,
    ) -> tuple[Step, ...]:
        """See `Strategy.steps_with_output`."""
        del empty_directory
        return self._steps(targets, options, tools, "-fv", ("-printf", "%y\\n"))

    def at_once(self, options: Options) -> int | None:
        """See `Strategy.at_once`."""
        del options
        return None

    def read_output(self, line: bytes) -> Progress | Failure | None:
        """See `Strategy.read_output`.

        Several rm write in pieces to one pipe: their lines are torn, but each still ends one.
        """
        return Progress(1, 1 if line == b"d" else 0)

    def failure(self, line: bytes) -> Failure | None:
        """See `Strategy.failure`; rm and find quote names differently."""
        return gnu_failure(line, unquote_c if tool_of(line) == b"find" else unquote_shell)

    @staticmethod
    def _steps(
        targets: tuple[str, ...],
        options: Options,
        tools: Mapping[str, str],
        rm_flags: str,
        directory_output: tuple[str, ...],
    ) -> tuple[Step, ...]:
        filters = options.filters
        tests = find_tests(filters) if filters.active else ("!", "-type", "d")
        names = (tools["find"], *targets, "-xdev", *tests, "-print0")
        batches = (
            *(tools["xargs"], "-0", "-r"),
            *("-n", str(options.batch_size), "-P", str(options.processes)),
            *(tools["rm"], rm_flags, "--"),
        )
        if filters.active:
            return ((names, batches),)
        keep = below_root(options)
        directories = (tools["find"], *targets, "-xdev", *keep, "-depth", "-type", "d", "-delete")
        return ((names, batches), ((*directories, *directory_output),))
