"""Chooses which directories of a large tree to read, and estimates the tree from them.

From the top down directories are read one and all as long as they are few; the directories
met but not read are the frontier. What is below it is estimated: its directories are put into
strata by what can be seen from outside (size, links), of each stratum some are drawn at random,
and the variance among what was found below them tells how well the whole is known.
"""

import math
import random
from collections.abc import Callable, Sequence

from tui_fs.survey.glance_looking import Looking, Name
from tui_fs.survey.glance_statistics import Sum, Sums
from tui_fs.survey.glance_strata import Among, Pool, Stratum, is_leaf
from tui_fs.survey.glance_tree import Node, Root

_READ_ALL_AT_MOST = 1_000
_FEW = 4
_WORTH_BEGINNING = 5.0
"""So many times more than can be read: then reading the largest of them for certain still helps."""
_LOOK_AT_FIRST = 512
_LOOK_AT_LEAST = 64
_LOOK_CHUNK = 512
_DRAWS = 16
_READS_BELOW = 24.0
"""Directories to read, about, below a drawn one that holds directories."""
_UNSEEN_ENTRIES = 10.0
"""A directory of which nothing is known, with what is below."""
_NAMES_KEPT = 1_000_000
_EXPAND_SHARE, _LOOK_SHARE, _ROOT_SHARE = 0.55, 0.65, 0.35
"""Until when of the time for a figure these may go on."""

_Key = tuple[int, bool, int]
"""A stratum: the turn in which it was met, whether it has no subdirectories, its magnitude."""


class Sample:
    """What is known of the directories below some roots.

    Args:
        clock: seconds.
    """

    def __init__(
        self, roots: Sequence[Root], dice: random.Random, clock: Callable[[], float]
    ) -> None:
        self._clock, self._dice = clock, dice
        self._deadline_s = self._began_s = clock()
        self.looking = Looking(roots, dice, self._is_over)
        self._roots = [Node(root, b"", None, 0, len(root.path)) for root in roots]
        self._known = Sums()
        self._strata: dict[_Key, Stratum] = {}
        self._pools: list[Pool] = []
        # All directories of which every subdirectory was looked at: one stands for one.
        self._whole = Pool(self._roots[0], 0.0, [])
        self._turn = 0
        self._has_drawn = False
        self._drawn, self._drawn_entries = 0, 0.0
        self._expanded = 0
        self._expand_s = 0.0

    def work_until(self, deadline_s: float) -> bool:
        """Learn more until a time of the clock.

        Returns:
            Whether anything is left to learn.
        """
        self._began_s, self._deadline_s = self._clock(), deadline_s
        if self._has_drawn:
            # Whoever is met from now on has not had the chance to be drawn.
            self._turn, self._has_drawn = self._turn + 1, False
        while not self._is_over():
            if not self._step():
                return False
        return True

    def estimate(self) -> Sums:
        """Return the sums of the whole tree."""
        whole, among = Sums(), Among()
        whole.add(self._known)
        unread: list[Stratum] = []
        ratio = [0.0, 0.0]
        for stratum in self._strata.values():
            weight = stratum.weight
            if not stratum.read:
                unread += [stratum] if stratum.waiting else []
                continue
            sums = stratum.estimate()
            whole.add(sums)
            among.add(stratum)
            if is_leaf(stratum.drawn[0]):
                ratio[0] += sums.values[Sum.ENTRIES]
                ratio[1] += weight * sum(n.guess for n in stratum.drawn) / len(stratum.drawn)
        self._add_unread(whole, unread, ratio[0] / ratio[1] if ratio[1] else 1.0)
        for pool in self._pools:
            if not pool.looked and pool.total > 0.5:
                whole.add_unknown(_UNSEEN_ENTRIES * pool.total, pool.total)
        uncertainty = sum(pool.uncertainty for pool in self._pools)
        if uncertainty:
            among.vary(whole, uncertainty)
        met = sum(len(stratum.waiting) for stratum in self._strata.values())
        met += sum(len(pool.unlooked) for pool in self._pools)
        whole.seen[Sum.ENTRIES] += met
        whole.seen[Sum.DIRECTORIES] += met
        # What was read below a directory that is to be read once more is forgotten, but was there.
        levels = self.looking.max_depth
        whole.seen[Sum.ENTRIES] = max(whole.seen[Sum.ENTRIES], levels + 1.0)
        whole.seen[Sum.DIRECTORIES] = max(whole.seen[Sum.DIRECTORIES], float(levels))
        return whole

    def _add_unread(self, whole: Sums, unread: list[Stratum], ratio: float) -> None:
        """Add strata of which nothing was read, by their signs.

        Args:
            ratio: how much more than the signs say was found in others.
        """
        entries = directories = 0.0
        for stratum in unread:
            node, weight = stratum.waiting[0][0], stratum.weight
            if is_leaf(node):
                whole.add_by_size(weight * max(1.0, node.guess * ratio), weight)
                continue
            each = self._drawn_entries / self._drawn if self._drawn else 0.0
            entries += weight * max(node.guess * ratio, each)
            directories += weight
        if directories:
            if not self._drawn:
                # A tree that has gone down so far may well go as far again.
                entries = max(entries, whole.values[Sum.ENTRIES])
                directories = max(directories, whole.values[Sum.DIRECTORIES])
            whole.add_unknown(entries, directories)

    def _step(self) -> bool:
        """Do the most useful thing next; say whether there was any."""
        if self._roots:
            self._expand(self._roots.pop(0))
            return True
        share = (self._clock() - self._began_s) / max(1e-9, self._deadline_s - self._began_s)
        if share < _EXPAND_SHARE and (stratum := self._to_expand(share)):
            nodes = [stratum.take() for _ in range(min(_DRAWS, len(stratum.waiting)))]
            self.looking.read_ahead(nodes)
            while nodes and not self._is_over(_EXPAND_SHARE):
                self._expand(nodes.pop())
            for node in nodes:  # only such are expanded as stand for themselves
                stratum.add(node, self._whole)
            return True
        if share < _LOOK_SHARE and self._look_further():
            return True
        if self._draw():
            return True
        return self._look_further() or self._refine()

    def _refine(self) -> bool:
        """Where all were drawn, read for certain what was only estimated by samples below."""
        done = [
            (magnitude, turn, stratum)
            for (turn, _, magnitude), stratum in self._strata.items()
            if stratum.is_done and any(one.is_sampled for one in stratum.read)
        ]
        if not done:
            return False
        if self._has_drawn:
            self._turn, self._has_drawn = self._turn + 1, False
        *_, stratum = max(done, key=lambda one: one[:2])
        self._expand(stratum.take_back())
        return True

    def _to_expand(self, share: float) -> Stratum | None:
        """Return a stratum of which all are to be read: where that is possible or they are few."""
        inner = {
            (magnitude, turn): stratum
            for (turn, leaf, magnitude), stratum in self._strata.items()
            if not leaf and stratum.waiting and not stratum.read
        }
        if not inner:
            return None
        largest = inner[max(inner)]
        is_plain = all(pool.weight < 1.01 for pool in largest.members)
        waiting = sum(len(stratum.waiting) for stratum in self._strata.values())
        waiting += sum(len(pool.unlooked) for pool in self._pools)
        number = sum(len(stratum.waiting) for stratum in inner.values())
        each_s = self._expand_s / max(1, self._expanded)
        left_s = (_EXPAND_SHARE - share) * (self._deadline_s - self._began_s)
        if is_plain and (
            len(largest.waiting) < _FEW or waiting <= _READ_ALL_AT_MOST or number * each_s < left_s
        ):
            return largest
        small = [one for one in inner.values() if len(one.waiting) < _FEW]
        return small[0] if small and is_plain else None

    def _expand(self, node: Node) -> None:
        """Read a directory for certain; its subdirectories become part of the frontier."""
        began_s = self._clock()
        until_s = began_s + _ROOT_SHARE * (self._deadline_s - began_s)
        sums, reading = self.looking.read(node, lambda: self._clock() < until_s)
        self._known.add(sums)
        names = [(one.inode, one.name) for one in reading.subdirectories[:_NAMES_KEPT]]
        if reading.directories > 0.5:
            self._dice.shuffle(names)
            pool = Pool(node, max(float(len(names)), reading.directories), names)
            if reading.is_read_to_end:
                pool.total = float(len(reading.subdirectories))
            self._pools.append(pool)
            at_first = max(_LOOK_AT_LEAST, _LOOK_AT_FIRST // (1 + self._expanded))
            self._look(pool, at_first)
        self._expanded += 1
        self._expand_s += self._clock() - began_s

    def _look(self, pool: Pool, number: int) -> None:
        names: list[Name] = pool.unlooked[-number:]
        del pool.unlooked[-number:]
        before = len(names)
        nodes, looked = self.looking.look(pool.node, names, self._known)
        if looked < before:
            pool.unlooked += sorted(names)[looked:]
        # Names that have vanished or are no directories stand for nothing any more.
        pool.looked += len(nodes)
        pool.total -= looked - len(nodes)
        if pool.looked == len(nodes) and not pool.unlooked and pool.uncertainty == 0:
            self._pools.remove(pool)
            pool = self._whole
            pool.looked += len(nodes)
            pool.total += len(nodes)
        for node in nodes:
            magnitude = int(math.log2(1 + node.guess) * (2 if is_leaf(node) else 1))
            key = (self._turn, is_leaf(node), magnitude)
            self._strata.setdefault(key, Stratum()).add(node, pool)

    def _look_further(self) -> bool:
        """Look at more subdirectories of the one of which the most is missing."""
        pools = [pool for pool in self._pools if pool.unlooked]
        if not pools:
            return False
        self._look(max(pools, key=lambda p: p.uncertainty or p.total * p.total), _LOOK_CHUNK)
        return True

    def _draw(self) -> bool:
        """Read some directories of the frontier, where it tells the most."""
        strata = [stratum for stratum in self._strata.values() if stratum.waiting]
        if not strata:
            return False
        self._has_drawn = True
        fresh = [stratum for stratum in strata if len(stratum.read) < 2]
        if fresh:
            fresh.sort(key=_urgency)
            chosen = fresh[:_DRAWS]
        else:
            gains = [self._gain(stratum) for stratum in strata]
            chosen = self._dice.choices(strata, gains, k=_DRAWS)
        drawn = [(one, one.draw(self._dice)) for one in chosen if one.waiting]
        self.looking.read_ahead([node for _, node in drawn])
        while drawn and not self._is_over():
            stratum, node = drawn[0]
            grain = (self._drawn_entries + node.guess) / (self._drawn + 1) / _READS_BELOW
            below = self.looking.below(node, grain)
            if below.values[Sum.OPEN] and self._is_over() and stratum.is_usual(below):
                break  # half a look would say less than none
            stratum.read.append(below)
            drawn.pop(0)
            if not is_leaf(node):
                self._drawn += 1
                self._drawn_entries += below.values[Sum.ENTRIES]
        for stratum, _ in reversed(drawn):
            stratum.put_back()
        return True

    def _gain(self, stratum: Stratum) -> float:
        """Return how much a further directory of a stratum takes from the error."""
        mean = sum(one.values[Sum.ENTRIES] for one in stratum.read) / len(stratum.read)
        spread = max(stratum.spread(Sum.ENTRIES), 0.05 * mean)
        number = len(stratum.read)
        return stratum.weight * spread / math.sqrt(number * (number + 1.0)) + 1e-9

    def _is_over(self, share: float = 1.0) -> bool:
        return self._clock() >= self._began_s + share * (self._deadline_s - self._began_s)


def _urgency(stratum: Stratum) -> tuple[bool, float]:
    """Sort first what holds directories, then what seems to hold most."""
    guess = max(node.guess for node, _ in stratum.waiting)
    return is_leaf(stratum.waiting[0][0]), -stratum.weight * guess
