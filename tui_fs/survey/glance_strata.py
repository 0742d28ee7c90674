"""Directories of a glanced tree that are alike, and what some of them say of all."""

import math
import random
from collections import Counter
from dataclasses import dataclass, field

from tui_fs.survey.glance_directory import COUNTS_LINKS
from tui_fs.survey.glance_statistics import FURTHER, INTERVALS, Sum, Sums, freedom_of
from tui_fs.survey.glance_tree import Node

_FURTHER_BELOW = 3.0


@dataclass(eq=False, slots=True)
class Pool:
    """The subdirectories of one directory that were looked at, for all of them.

    Attributes:
        total: how many there are.
        unlooked: those known by name only, in random order.
    """

    node: Node
    total: float
    unlooked: list[tuple[int, bytes]]
    looked: int = 0

    @property
    def weight(self) -> float:
        """How many subdirectories one that was looked at stands for."""
        return max(1.0, self.total / self.looked) if self.looked else 0.0

    @property
    def uncertainty(self) -> float:
        """By which the variance among its directories is multiplied for those not looked at."""
        missing = self.total - self.looked
        return self.total * missing / self.looked if self.looked and missing > 0.5 else 0.0


@dataclass(eq=False, slots=True)
class Stratum:
    """Directories alike by their signs, some of them read with what is below."""

    waiting: list[tuple[Node, Pool]] = field(default_factory=list)
    members: Counter[Pool] = field(default_factory=Counter)
    read: list[Sums] = field(default_factory=list)
    drawn: list[Node] = field(default_factory=list)
    _pools: list[Pool] = field(default_factory=list)

    def add(self, node: Node, pool: Pool) -> None:
        """Take in one more."""
        self.waiting.append((node, pool))
        self.members[pool] += 1

    @property
    def weight(self) -> float:
        """How many directories it stands for."""
        return sum(count * pool.weight for pool, count in self.members.items())

    def draw(self, dice: random.Random) -> Node:
        """Take out one that waits, those that stand for more the more often."""
        heaviest = max(pool.weight for pool in self.members)
        while True:
            at = dice.randrange(len(self.waiting))
            if self.waiting[at][1].weight >= dice.random() * heaviest:
                self.waiting[at], self.waiting[-1] = self.waiting[-1], self.waiting[at]
                node, pool = self.waiting.pop()
                self.drawn.append(node)
                self._pools.append(pool)
                return node

    def take(self) -> Node:
        """Take out one that waits, for good."""
        node, pool = self.waiting.pop()
        self.members[pool] -= 1
        return node

    def put_back(self) -> None:
        """Let the one drawn last wait again."""
        self.waiting.append((self.drawn.pop(), self._pools.pop()))

    def take_back(self) -> Node:
        """Take out one that was drawn, for good.

        Not chosen by what was found: an estimate that happened to be low would stay for ever.
        """
        self.members[self._pools.pop()] -= 1
        self.read.pop()
        return self.drawn.pop()

    @property
    def is_done(self) -> bool:
        """Whether all were drawn, and each stands for itself only."""
        return not self.waiting and self.weight < len(self.drawn) + 0.5

    def is_usual(self, sums: Sums) -> bool:
        """Tell whether this holds no more than what was found in others."""
        if len(self.read) < 2:
            return False
        mean = sum(one.values[Sum.ENTRIES] for one in self.read) / len(self.read)
        return sums.values[Sum.ENTRIES] <= 2 * mean

    def spread(self, which: Sum) -> float:
        """Return the standard deviation among those read, a guess if there are too few."""
        values = [one.values[which] for one in self.read]
        if len(values) < 2:
            return max(values, default=0.0)
        mean = sum(values) / len(values)
        return math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1))

    def estimate(self) -> Sums:
        """Return the sums of all it stands for."""
        number, weight = len(self.read), self.weight
        total = Sums()
        for one in self.read:
            total.add(one, weight / number)
        if not self.is_done:
            total.has_left_out()
        are_whole = not any(one.is_sampled for one in self.read)
        left = max(0.0, 1 - number / weight) if are_whole else 1.0
        if not left:
            return total  # what is uncertain in each of them has been added
        # Trees differ more than directories: the large ones are seldom drawn, and seen in part.
        further = 1.0 if are_whole else _FURTHER_BELOW
        for which in INTERVALS:
            values = [one.values[which] for one in self.read]
            total.vary(
                which, left * (weight * self.spread(which)) ** 2 / number, freedom_of(values)
            )
            margin = further * left * weight * max(values) / (number + 1) * FURTHER[which]
            total.margins[which] = max(total.margins[which], margin)
        return total


@dataclass(slots=True)
class Among:
    """The variance among all directories of the frontier, by the strata."""

    weight: float = 0.0
    totals: list[float] = field(default_factory=lambda: [0.0] * len(INTERVALS))
    squares: list[float] = field(default_factory=lambda: [0.0] * len(INTERVALS))

    def add(self, stratum: Stratum) -> None:
        """Take in the directories of a stratum."""
        weight = stratum.weight
        self.weight += weight
        for which in INTERVALS:
            mean = sum(one.values[which] for one in stratum.read) / len(stratum.read)
            self.totals[which] += weight * mean
            self.squares[which] += weight * (mean * mean + stratum.spread(which) ** 2)

    def vary(self, sums: Sums, uncertainty: float) -> None:
        """Add to `sums` what comes from directories not looked at (see `Pool`)."""
        sums.has_left_out()
        for which in INTERVALS if self.weight else ():
            mean = self.totals[which] / self.weight
            spread = max(0.0, self.squares[which] / self.weight - mean * mean)
            sums.vary(which, uncertainty * spread, 10.0)


def is_leaf(node: Node) -> bool:
    """Tell whether its link count says that there are no directories in it."""
    return node.links == 2 and node.root.family in COUNTS_LINKS


def by_kind(nodes: list[Node]) -> list[list[Node]]:
    """Return those that hold no directories, and the others, without an empty group."""
    leaves = [node for node in nodes if is_leaf(node)]
    inner = [node for node in nodes if not is_leaf(node)]
    return [group for group in (leaves, inner) if group]
