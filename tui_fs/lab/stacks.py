"""Stacks that py-spy has collected (``record --format raw``) as rows of a flame table."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tui_fs.lab.exhibits import Flame
from tui_fs.lab.figures import safe

MOST_ROWS = 25
_LEAST_SHARE = 0.01
"""Of all samples; a line below that is not worth a row."""
_LINE_NUMBER = re.compile(r":(\d+)\)$")


@dataclass(slots=True)
class _Node:
    function: str
    depth: int
    own: int = 0
    total: int = 0
    callees: dict[str, "_Node"] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)

    def split(self, least: float) -> None:
        """Make rows of the lines that it was seen in at least so often, if it has several."""
        if len(self.lines) < 2:
            return
        for number, samples in self.lines.items():
            if samples < least:
                continue
            name = f"line {number}"
            self.callees[name] = _Node(name, self.depth + 1, samples, samples)
            self.own -= samples

    def largest(self) -> list["_Node"]:
        return sorted(self.callees.values(), key=lambda one: (-one.total, one.function))


def flames(lines: Iterable[str], most: int = MOST_ROWS) -> tuple[int, tuple[Flame, ...]]:
    """Return the number of samples and the largest functions, as a tree depth first.

    Args:
        lines: ``outer;inner;innermost 12``, the last word being how often it was seen; other
            lines are passed over. A function that calls itself counts as one call. Where it
            was seen in several of its lines, the larger ones are rows below it instead of its
            own time.
        most: rows; the smallest functions are left out.
    """
    root = _Node("", -1)
    for line in lines:
        stack, _, samples = line.strip().rpartition(" ")
        if stack and samples.isascii() and samples.isdigit():
            _add(root, stack, int(samples))
    if not root.total:
        return 0, ()
    for node in list(_below(root)):
        node.split(root.total * _LEAST_SHARE)
    by_size = sorted(_below(root), key=lambda one: (-one.total, one.depth))
    # A caller has at least the samples of what it calls and stands above it, so it is in, too.
    kept = {id(one) for one in by_size[:most]}
    return root.total, tuple(
        Flame(
            safe(one.function),
            100.0 * one.own / root.total,
            100.0 * one.total / root.total,
            one.depth,
        )
        for one in _below(root)
        if id(one) in kept
    )


def _add(root: _Node, stack: str, samples: int) -> None:
    node = root
    node.total += samples
    for frame in stack.split(";"):
        function = _LINE_NUMBER.sub(")", frame)
        if function == node.function:
            continue
        node = node.callees.setdefault(function, _Node(function, node.depth + 1))
        node.total += samples
    node.own += samples
    line = _LINE_NUMBER.search(stack)
    if line is not None:
        node.lines[line[1]] = node.lines.get(line[1], 0) + samples


def _below(root: _Node) -> Iterator[_Node]:
    """Yield all functions depth first, the largest first."""
    waiting = root.largest()[::-1]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += node.largest()[::-1]
