"""rsync-vs-rm: what is done at each scale, the text's tables, and the verdicts."""

from typing import Any

import pytest
from msgspec.structs import replace

from tests.unit import lab_results
from tui_fs.lab.experiment import Judged, Scale, Verdict
from tui_fs.lab.experiments.rsync_vs_rm import EXPERIMENT, FEW, MANY, MORE
from tui_fs.model.calls import CallCount

Counts = dict[str, dict[str, CallCount]]

RM, TREE, RSYNC = f"rm-all-{MANY}", f"rm-tree-{MANY}", f"rsync-{MANY}"
RM_PINNED, RSYNC_PINNED = f"{RM}-pinned", f"{RSYNC}-pinned"


def as_published() -> Counts:
    """Return the text's counts, and those of an rm -r that asks for no status."""
    counts = {
        table.key: {
            name: replace(call, seconds=0.4 if name in ("wait4", "unlinkat") else 0.01)
            for name, call in table.calls.items()
        }
        for table in EXPERIMENT.published_calls
    }
    counts[TREE] = {"unlinkat": CallCount(MANY + 1), "newfstatat": CallCount(7)}
    return counts


def judgement(beginning: str, **figures: Any) -> Judged:
    """Return the judgement on a claim by a run with these figures and no others."""
    return lab_results.judgement_of(
        EXPERIMENT, beginning, lab_results.run_with(EXPERIMENT, **figures)
    )


HOLDS = (
    "rm and rsync both use mmap",
    "rm and rsync unlink equally often",
    "rsync reads the directory in",
    "rm -rf * reads",
    "rm -rf of the directory itself",
    "rsync makes more system calls",
    "The summed time of all calls",
    "rsync works with three processes",
)
DOES_NOT = (
    "rsync deletes without an unlink",
    "rsync deletes without an lstat",
    "rsync maps the directory's contents",
)


@pytest.mark.parametrize(
    ("scale", "sizes"),
    [(Scale.SMALL, (FEW, MANY)), (Scale.PUBLISHED, (FEW, MANY, MORE))],
)
def test_each_way_has_trees_of_each_size(scale: Scale, sizes: tuple[int, ...]) -> None:
    steps = lab_results.steps_of(EXPERIMENT, scale)
    assert len(steps) == 3 * len(sizes) + 2 * (len(sizes) - 1)
    for files in sizes:
        for name in ("rm-all", "rm-tree", "rsync"):
            assert steps[f"{name}-{files}"][1] == files + 1
    # And those on one processor differ in nothing else
    for key in (RM, RSYNC):
        free, pinned = steps[key][0], steps[f"{key}-pinned"][0]
        assert pinned.commands == free.commands
        assert (free.is_pinned, pinned.is_pinned) == (False, True)


@pytest.mark.parametrize(
    ("beginning", "expected"),
    [*((text, Verdict.HOLDS) for text in HOLDS), *((text, Verdict.DOES_NOT) for text in DOES_NOT)],
)
def test_the_texts_own_counts_bear_it_out(beginning: str, expected: Verdict) -> None:
    assert judgement(beginning, calls=as_published()).verdict is expected


@pytest.mark.parametrize(
    ("beginning", "key", "name", "count"),
    [
        ("rm and rsync both use mmap", RM, "mmap", CallCount(0)),
        ("rm and rsync unlink equally often", RSYNC, "unlink", CallCount(0)),
        ("rsync reads the directory in", RSYNC, "getdents64", CallCount(14)),
        ("rm -rf * reads", RM, "newfstatat", CallCount(2)),
        ("rm -rf of the directory itself", TREE, "newfstatat", CallCount(MANY + 7)),
        ("rsync makes more system calls", RM, "brk", CallCount(400)),
        ("The summed time of all calls", RSYNC, "wait4", CallCount(9, 5, 0.001)),
        ("The summed time of all calls", RSYNC, "unlink", CallCount(MANY, 0, 1.0)),
        ("rsync works with three processes", RSYNC, "clone", CallCount(0)),
    ],
)
def test_other_counts_refute_it(beginning: str, key: str, name: str, count: CallCount) -> None:
    counts = as_published()
    counts[key][name] = count
    judged = judgement(beginning, calls=counts)
    assert judged.verdict is Verdict.DOES_NOT
    assert judged.here


@pytest.mark.parametrize(
    ("beginning", "name"),
    [
        ("rsync deletes without an unlink", "unlink"),
        ("rsync deletes without an lstat", "lstat"),
        ("rsync maps the directory's contents", "getdents64"),
    ],
)
def test_the_rumours_can_hold(beginning: str, name: str) -> None:
    counts = as_published()
    del counts[RSYNC][name]
    assert judgement(beginning, calls=counts).verdict is Verdict.HOLDS


FAST, SLOW = (0.10, 0.11, 0.12), (0.20, 0.21, 0.22)


@pytest.mark.parametrize(
    ("beginning", "fast", "slow"),
    [
        ("rsync is faster than rm", RSYNC, RM),
        ("rsync is faster when", RSYNC, RSYNC_PINNED),
        ("On a single processor", RM_PINNED, RSYNC_PINNED),
    ],
)
def test_times_decide_unless_they_overlap(beginning: str, fast: str, slow: str) -> None:
    def verdict(of_fast: tuple[float, ...], of_slow: tuple[float, ...]) -> Verdict:
        return judgement(beginning, seconds={fast: of_fast, slow: of_slow}).verdict

    assert verdict(FAST, SLOW) is Verdict.HOLDS
    assert verdict(SLOW, FAST) is Verdict.DOES_NOT
    assert verdict((0.10, 0.15, 0.21), (0.11, 0.16, 0.20)) is Verdict.UNTESTED


def test_rsync_has_to_be_faster_with_more_files_too() -> None:
    rm, rsync = f"rm-all-{MORE}", f"rsync-{MORE}"
    seconds = {RSYNC: FAST, RM: SLOW, rsync: SLOW, rm: FAST}
    judged = judgement("rsync is faster than rm", scale=Scale.PUBLISHED, seconds=seconds)
    assert judged.verdict is Verdict.DOES_NOT
    assert "10,000 files: 110 ms" in judged.here
    assert "100,000 files: 210 ms" in judged.here


def test_one_processor_or_counts_without_times_leave_claims_untested() -> None:
    seconds = {RSYNC: FAST, RSYNC_PINNED: SLOW}
    alone = judgement("rsync is faster when", seconds=seconds, processors=1)
    assert alone.verdict is Verdict.UNTESTED
    calls = {RM: {"unlinkat": MANY}, RSYNC: {"unlink": MANY}}
    assert judgement("The summed time of all calls", calls=calls).verdict is Verdict.UNTESTED
