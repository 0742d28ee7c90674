"""Walkers that give work to each other: every directory is read once, whoever reads it."""

import os
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.trees import chain, flat
from tests.unit.survey_trees import TREES, Tree, comb, grown, naive
from tests.unit.walkers import Ticking, assert_settled, collected, opened
from tui_fs.survey import walker as walker_module
from tui_fs.survey.collector import Collector
from tui_fs.survey.records import Batch, DirectoryFlag, Piece, Task
from tui_fs.survey.walker import Walker


@dataclass
class Crew:
    """Walkers of this process that take turns, and what they have told.

    Attributes:
        is_hungry: asked with every batch; one more has nothing to do from then on.
        tasks, told: what was done, and the batches of each.
    """

    roots: list[Path | bytes]
    walkers: int = 2
    is_hungry: Callable[[], bool] = lambda: True
    before_task: Callable[[Task], None] | None = None
    hunger: list[int] = field(default_factory=lambda: [1, 0])
    told: list[list[Batch]] = field(default_factory=list)
    tasks: list[Task] = field(default_factory=list)

    def __post_init__(self) -> None:
        with opened(*self.roots) as roots:
            clock = Ticking()
            walkers = [
                Walker(roots, self._take, self.hunger, index, self.walkers, clock=clock)
                for index in range(self.walkers)
            ]
            waiting = deque(Task(index) for index in range(len(roots)))
            while waiting:
                task = waiting.popleft()
                if self.before_task is not None:
                    self.before_task(task)
                self.told.append([])
                self.tasks.append(task)
                walkers[len(self.tasks) % self.walkers].work(task)
                given = [batch.give for batch in self.told[-1] if batch.give is not None]
                waiting.extend(map(Task._make, given))

    def _take(self, batch: Batch) -> None:
        self.told[-1].append(batch)
        if self.is_hungry():
            self.hunger[1] += 1

    def in_turn(self) -> list[Batch]:
        """Return the batches as they were told."""
        return [batch for batches in self.told for batch in batches]

    def mixed(self, choose: Callable[[int], int]) -> list[Batch]:
        """Return the batches as they may arrive: a task's only after the one that gave it."""
        heads = [deque(batches) for batches in self.told]
        roots = sum(task.number < 0 for task in self.tasks)
        running, started = list(range(roots)), roots
        mixed: list[Batch] = []
        while running:
            at = running[choose(len(running))]
            batch = heads[at].popleft()
            mixed.append(batch)
            if not heads[at]:
                running.remove(at)
            if batch.give is not None:
                running.append(self.tasks.index(Task._make(batch.give)))
                started += 1
        assert started == len(self.tasks)
        return mixed


def assert_read_once(collector: Collector, *roots: bytes) -> None:
    """Fail unless the table has each directory of the trees once, and nothing else."""
    table = collector.table
    paths = Counter(os.fsencode(table.path(row)) for row in range(len(table)))
    assert paths == Counter(path for root in roots for path, _, _ in os.walk(root))
    assert_settled(collector)


@given(TREES, st.integers(1, 4), st.randoms(use_true_random=True))
@example({b"a": {b"x": {}, b"y": {}}, b"b": {b"c": {b"d": {}}}}, 2, Random(1))
@settings(max_examples=60)
def test_every_directory_is_read_once_over_all_tasks(
    tree: Tree, walkers: int, random: Random
) -> None:
    # Given walkers that give as often as they can, halves and parts of every directory
    with pytest.MonkeyPatch.context() as patch, grown(tree) as root:
        patch.setattr(walker_module, "SPLIT_FROM_BYTES", 0)
        patch.setattr(walker_module, "NAMES_AT_ONCE", 2)
        patch.setattr(walker_module, "OPEN_LIMIT", 2)
        crew = Crew([root], walkers, is_hungry=lambda: random.random() < 0.8)
        # When they have walked / Then in any order of arrival all is counted once
        for batches in (crew.in_turn(), crew.mixed(random.randrange)):
            collector = collected(batches)
            slow = naive(root)
            assert collector.totals == slow.totals
            assert collector.inodes == slow.inodes
            assert collector.max_entries == slow.max_entries
            assert (collector.non_empty, collector.parents) == (slow.non_empty, slow.parents)
            assert collector.non_directory_path_bytes == slow.path_bytes
            assert_read_once(collector, root)


def test_halves_are_given_from_furthest_up(tmp_path: Path) -> None:
    # Given a root of sixteen directories with directories in them
    for number in range(16):
        (tmp_path / f"{number}" / "below").mkdir(parents=True)
    # When somebody is hungry once, from the beginning
    crew = Crew([tmp_path], walkers=1, is_hungry=lambda: False)
    # Then half of what waited in the root was given, and walked from there
    assert len(crew.tasks) == 2
    assert crew.tasks[1].steps == ()
    assert len(crew.tasks[1].names) == 7  # one was being read, fifteen waited
    assert_read_once(collected(crew.in_turn()), os.fsencode(tmp_path))


def test_parts_are_told_as_one_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a directory of 500 names, read in parts
    monkeypatch.setattr(walker_module, "SPLIT_FROM_BYTES", 0)
    flat(tmp_path / "t", 500)
    crew = Crew([tmp_path / "t"])
    # When added up / Then each part had some, and together they are the directory
    collector = collected(crew.in_turn())
    (_, part) = crew.tasks
    assert (part.part, part.parts, part.names) == (1, 2, ())
    in_part = sum(Piece._make(piece).files for batch in crew.told[1] for piece in batch.pieces)
    assert 0 < in_part < 500
    assert (collector.totals.files, collector.max_entries) == (500, 500)
    assert_read_once(collector, os.fsencode(tmp_path / "t"))


def test_several_roots_are_walked_by_their_own_ways(tmp_path: Path) -> None:
    # Given two roots / When walkers give work of both / Then each is read once
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        comb(tmp_path / name, 8)
    paths = [os.fsencode(tmp_path / name) for name in ("one", "other")]
    crew = Crew([*paths])
    assert {task.root for task in crew.tasks} == {0, 1}
    assert len(crew.tasks) > 4
    assert_read_once(collected(crew.in_turn()), *paths)


def test_nobody_hungry_is_given_nothing(tmp_path: Path) -> None:
    # Given a tree / When nobody is hungry / Then it is one task
    comb(tmp_path, 8)
    assert len(Crew([tmp_path], hunger=[0, 7]).tasks) == 1


def test_a_chain_is_not_handed_on(tmp_path: Path) -> None:
    # Given a chain in which one directory waits at a time / When somebody is hungry all the time
    chain(tmp_path / "t", 30)
    # Then it is walked by the one who began it
    assert len(Crew([tmp_path / "t"]).tasks) == 1


def test_one_hunger_is_answered_once(tmp_path: Path) -> None:
    # Given a tree / When one walker is hungry once / Then it is given something once
    comb(tmp_path, 30)
    crew = Crew([tmp_path], walkers=1, is_hungry=lambda: False)
    assert len(crew.tasks) == 2


def test_what_lies_deep_is_given_to_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a limit of depth / When walkers give / Then nothing from further down
    monkeypatch.setattr(walker_module, "DEPTH_GIVEN", 3)
    comb(tmp_path, 12)
    crew = Crew([tmp_path])
    assert max(len(task.steps) for task in crew.tasks) <= 3
    assert_read_once(collected(crew.in_turn()), os.fsencode(tmp_path))


def _given_then(tmp_path: Path, act: Callable[[Path], None]) -> Collector:
    """Walk t/d, of which half is given; change t/d before the one who took it begins."""
    for number in range(8):
        (tmp_path / "t" / "d" / f"{number}").mkdir(parents=True)
        (tmp_path / "t" / "d" / f"{number}" / "file").touch()
    (tmp_path / "elsewhere").mkdir()

    def before(task: Task) -> None:
        if task.steps == (b"d",):
            act(tmp_path / "t" / "d")

    crew = Crew([tmp_path / "t"], 1, is_hungry=lambda: False, before_task=before)
    assert [task.steps for task in crew.tasks] == [(), (b"d",)]
    collector = collected(crew.in_turn())
    assert_settled(collector)
    return collector


def _moved(path: Path) -> None:
    path.rename(path.parents[1] / "elsewhere" / "d")


def _moved_and_replaced(path: Path) -> None:
    _moved(path)
    for number in range(8):
        (path / f"{number}").mkdir(parents=True)
        (path / f"{number}" / "trap").touch()


def _moved_and_linked(path: Path) -> None:
    _moved(path)
    path.symlink_to(path.parents[1] / "elsewhere" / "d")


@pytest.mark.parametrize("act", [_moved, _moved_and_replaced, _moved_and_linked])
def test_what_was_given_and_cannot_be_reached_is_told(
    tmp_path: Path, act: Callable[[Path], None]
) -> None:
    # Given work that was given away / When its directory is another one when it is taken
    collector = _given_then(tmp_path, act)
    # Then nothing in that place is counted, and each name is told: it may still be somewhere
    assert (collector.vanished, collector.unreadable) == (0, 4)
    assert collector.totals.files == 4


def test_a_part_that_cannot_be_reached_makes_its_directory_unreadable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given half of a directory that was given away / When the directory has moved by then
    monkeypatch.setattr(walker_module, "SPLIT_FROM_BYTES", 0)
    flat(tmp_path / "t", 100)
    (tmp_path / "t" / "d").mkdir()
    flat(tmp_path / "t" / "d", 100)

    def before(task: Task) -> None:
        if task.steps == (b"d",):
            _moved_and_replaced(tmp_path / "t" / "d")

    (tmp_path / "elsewhere").mkdir()
    crew = Crew([tmp_path / "t"], before_task=before)
    assert any(task.steps == (b"d",) and task.parts == 2 for task in crew.tasks)
    # Then that directory is not read to its end
    collector = collected(crew.in_turn())
    assert collector.paths_with(DirectoryFlag.UNREADABLE) == [str(tmp_path / "t" / "d")]
    assert collector.totals.files < 200
    assert_settled(collector)
