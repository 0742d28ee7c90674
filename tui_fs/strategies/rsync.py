"""rsync from an empty directory: three processes that unlink every entry just as rm does."""

import os
import re
from collections.abc import Mapping

from tui_fs.model.paths import PathStr
from tui_fs.model.strategy import Guarantees, Options, Step, StrategyName
from tui_fs.strategies.base import Failure, Progress

_FAILED = re.compile(
    rb"rsync: (?:\[\w+\] )?[\w ]+?: (\w+)\((.*)\) failed: .* \((\d{1,4})\)", re.DOTALL
)
_UNREAD = re.compile(
    rb"rsync: (?:\[\w+\] )?(opendir|readdir|readlink_stat|stat) ?\(?\"(.*)\"\)?(?: failed)?: "
    rb".* \((\d{1,4})\)",
    re.DOTALL,
)
_NOT_EMPTY = b"cannot delete non-empty directory: "
_ESCAPE = re.compile(rb"\\#([0-3][0-7]{2})")
_ENOTEMPTY = 39


class Rsync:
    """``rsync -r --delete -x EMPTY/ TARGET/``, then rmdir unless the target is kept.

    -r and not -a: with -a rsync would give the target the owner, mode and time of the
    empty directory.
    """

    name = StrategyName.RSYNC
    tools = ("rsync", "rmdir")
    gnu_tools = ()
    guarantees = Guarantees(race_safe=False, mount_safe=True, any_depth=False, takes_filters=False)

    def steps(
        self,
        targets: tuple[str, ...],
        options: Options,
        tools: Mapping[str, str],
        empty_directory: str,
    ) -> tuple[Step, ...]:
        """See `Strategy.steps`."""
        return self._steps(targets, options, tools, empty_directory, ())

    def steps_with_output(
        self,
        targets: tuple[str, ...],
        options: Options,
        tools: Mapping[str, str],
        empty_directory: str,
    ) -> tuple[Step, ...]:
        """See `Strategy.steps_with_output`."""
        return self._steps(targets, options, tools, empty_directory, ("--info=del",))

    def at_once(self, options: Options) -> int | None:
        """See `Strategy.at_once`."""
        del options
        return 1

    def read_output(self, line: bytes) -> Progress | Failure | None:
        """See `Strategy.read_output`; rsync tells of directories that stay on this channel."""
        if line.startswith(b"deleting "):
            return Progress(1, 1 if line.endswith(b"/") else 0)
        if line.startswith(_NOT_EMPTY):
            return Failure(_path(line[len(_NOT_EMPTY) :]), "rmdir", _ENOTEMPTY)
        return None

    def failure(self, line: bytes) -> Failure | None:
        """See `Strategy.failure`; paths are relative to the target."""
        match = _FAILED.fullmatch(line) or _UNREAD.fullmatch(line)
        if match is None:
            return None
        return Failure(_path(match[2]), match[1].decode("ascii"), int(match[3]))

    @staticmethod
    def _steps(
        targets: tuple[str, ...],
        options: Options,
        tools: Mapping[str, str],
        empty_directory: str,
        rsync_flags: tuple[str, ...],
    ) -> tuple[Step, ...]:
        (target,) = targets
        sync = (tools["rsync"], "-r", "--delete", "-x", *rsync_flags)
        first: Step = ((*sync, f"{empty_directory.rstrip('/')}/", f"{target}/"),)
        if options.keep_root:
            return (first,)
        return (first, ((tools["rmdir"], "--", target),))


def _path(escaped: bytes) -> PathStr:
    return PathStr(os.fsdecode(_ESCAPE.sub(lambda code: bytes([int(code[1], 8)]), escaped)))
