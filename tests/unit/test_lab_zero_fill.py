"""The files of zeros: what is done at which scale, and the verdicts on figures made up here."""

import pytest

from tests.unit import lab_results
from tui_fs.lab.experiment import Counting, Scale, Setting, Trial, Verdict
from tui_fs.lab.experiments.zero_fill import EXPERIMENT
from tui_fs.lab.results import (
    FileState,
    Results,
)
from tui_fs.model.calls import CallCount

MIB, GIB = 1 << 20, 1 << 30
WRITERS = ("head", "dd-4m", "dd-one-block")
OTHERS = ("truncate", "fallocate")
WAYS = (*WRITERS, *OTHERS)
TOOLS = {name: f"/usr/bin/{name}" for name in EXPERIMENT.tools}
SAME = "head and dd take the same time when sync is included."
LONG_BEFORE = "Most of the time is write-back: without sync the commands end much earlier."
DD_WAITS = "Without sync head seems faster, since dd waits for the disk and head does not."
BLOCKS = "The size of dd's blocks does not matter."
PIECES = "head writes in pieces of 8 KiB or 4 KiB."
ALLOCATED = "Files that head and dd write occupy all their blocks."
TRUNCATE = "truncate makes a sparse file."
FALLOCATE = "fallocate makes a sparse file, too."
ZEROS = "Reading a file made by truncate or fallocate returns zeros."
AT_ONCE = "truncate and fallocate finish long before any file could be written."


def trials(scale: Scale, *, without: str = "") -> tuple[Trial, ...]:
    """Return what is done; one tool can be missing."""
    tools = {name: path for name, path in TOOLS.items() if name != without}
    return EXPERIMENT.trials(scale, Setting(tools, False, 2))


def results_of(
    *,
    seconds: dict[str, tuple[float, ...]] | None = None,
    states: dict[str, FileState] | None = None,
    calls: dict[str, dict[str, int]] | None = None,
    outputs: dict[str, str] | None = None,
) -> Results:
    """Return a run at the small scale with these figures only."""
    plans = lab_results.plans_of(EXPERIMENT, Scale.SMALL, Setting(TOOLS, False, 2))
    runs = {
        key: [lab_results.run_of(value, (outputs or {}).get(key, "")) for value in values]
        for key, values in (seconds or {}).items()
    }
    counts = {
        key: {name: CallCount(number) for name, number in numbers.items()}
        for key, numbers in (calls or {}).items()
    }
    return lab_results.results_of(plans, runs, calls=counts, left=states)


def verdict(text: str, results: Results) -> Verdict:
    """Return the verdict on the claim with this text."""
    return lab_results.claim_of(EXPERIMENT, text).judged(results).verdict


def synced(*seconds: tuple[float, ...]) -> dict[str, tuple[float, ...]]:
    """Return times of the methods with sync, in their order."""
    return {f"{key}-synced": each for key, each in zip(WAYS, seconds, strict=False)}


@pytest.mark.parametrize("scale", list(Scale))
def test_each_way_is_a_trial_of_its_own(scale: Scale) -> None:
    made = trials(scale)
    assert [trial.steps[0].key for trial in made] == [f"{way}-synced" for way in WAYS]
    counted = {
        step.key for trial in made for step in trial.steps if step.counting is Counting.CALLS
    }
    assert counted == set(WRITERS)


@pytest.mark.parametrize(("scale", "size_bytes"), [(Scale.SMALL, 64 * MIB), (Scale.PUBLISHED, GIB)])
def test_a_way_needs_room_for_one_file(scale: Scale, size_bytes: int) -> None:
    made = trials(scale)
    assert {trial.disk_bytes for trial in made} == {size_bytes}
    in_memory = {trial.steps[0].key for trial in made if trial.memory_bytes}
    assert all("dd-one-block" in key for key in in_memory)
    assert {trial.memory_bytes for trial in made} == {0, size_bytes}


@pytest.mark.parametrize(("scale", "size"), [(Scale.SMALL, 64 * MIB), (Scale.PUBLISHED, GIB)])
def test_all_ways_make_a_file_of_one_size(scale: Scale, size: int) -> None:
    factors = {"M": MIB, "G": GIB}
    head, dd_4m, dd_one, truncate, fallocate = (
        trial.steps[0].commands[0][0] for trial in trials(scale)
    )

    def read(text: str) -> int:
        return int(text[:-1]) * factors[text[-1]]

    assert read(head[2].split()[3]) == size
    for dd in (dd_4m, dd_one):
        assert read(dd[3].removeprefix("bs=")) * int(dd[4].removeprefix("count=")) == size
    assert read(truncate[2]) == read(fallocate[2]) == size


def test_every_file_is_deleted_before_the_next_is_made() -> None:
    for trial in trials(Scale.SMALL):
        exists = False
        for step in trial.steps:
            is_deleting = step.commands[0][0][0] == "rm"
            is_reading = step.commands[0][0][0] == "cmp"
            assert exists is (is_deleting or is_reading)
            exists = not is_deleting
        assert not exists


def test_without_cmp_nothing_is_read_and_the_rest_is_done() -> None:
    made = trials(Scale.SMALL, without="cmp")
    with_cmp = {step.key for trial in trials(Scale.SMALL) for step in trial.steps}
    keys = {step.key for trial in made for step in trial.steps}
    assert with_cmp - keys == {"truncate-read", "fallocate-read"}


@pytest.mark.parametrize(
    ("head", "dd_4m", "dd_one", "all_alike", "blocks_alike"),
    [
        ((5.7, 5.8), (6.1, 6.2), (5.7, 5.8), Verdict.HOLDS, Verdict.HOLDS),
        ((1.0, 9.0), (3.0, 3.1), (2.0, 3.0), Verdict.HOLDS, Verdict.HOLDS),
        ((1.0, 1.1), (3.0, 3.1), (3.0, 3.2), Verdict.DOES_NOT, Verdict.HOLDS),
        ((3.0, 3.1), (3.0, 3.1), (1.0, 1.1), Verdict.DOES_NOT, Verdict.DOES_NOT),
    ],
)
def test_times_are_the_same_when_close_or_overlapping(
    head: tuple[float, ...],
    dd_4m: tuple[float, ...],
    dd_one: tuple[float, ...],
    all_alike: Verdict,
    blocks_alike: Verdict,
) -> None:
    results = results_of(seconds=synced(head, dd_4m, dd_one))
    assert verdict(SAME, results) is all_alike
    assert verdict(BLOCKS, results) is blocks_alike


@pytest.mark.parametrize(
    ("unsynced_s", "expected"), [(0.5, Verdict.HOLDS), (3.9, Verdict.DOES_NOT)]
)
def test_sync_takes_most_of_the_time(unsynced_s: float, expected: Verdict) -> None:
    seconds = {**synced((4.0,), (4.0,), (4.0,)), "head": (0.5,), "dd-4m": (unsynced_s,)}
    results = results_of(seconds={**seconds, "dd-one-block": (0.5,)})
    assert verdict(LONG_BEFORE, results) is expected


@pytest.mark.parametrize(
    ("head", "dd", "expected"),
    [
        ({"write": 8}, {"write": 16, "fdatasync": 1}, Verdict.HOLDS),
        ({"write": 8}, {"write": 16}, Verdict.DOES_NOT),
        ({"write": 8, "fsync": 1}, {"write": 16, "fsync": 1}, Verdict.DOES_NOT),
    ],
)
def test_dd_waits_if_it_makes_a_call_that_waits(
    head: dict[str, int], dd: dict[str, int], expected: Verdict
) -> None:
    results = results_of(calls={"head": head, "dd-4m": dd, "dd-one-block": dd})
    assert verdict(DD_WAITS, results) is expected


@pytest.mark.parametrize(
    ("writes", "expected"),
    [
        (8192, Verdict.HOLDS),
        (16384, Verdict.HOLDS),
        (8195, Verdict.HOLDS),
        (256, Verdict.DOES_NOT),
        (0, Verdict.DOES_NOT),
    ],
)
def test_pieces_of_head_follow_from_its_writes(writes: int, expected: Verdict) -> None:
    results = results_of(
        calls={"head": {"read": 1, "write": writes}},
        states={"head-synced": FileState(64 * MIB, 64 * MIB, 1)},
    )
    assert verdict(PIECES, results) is expected


@pytest.mark.parametrize(
    ("allocated_bytes", "is_sparse"), [(0, True), (60 * MIB, True), (64 * MIB, False)]
)
def test_a_file_is_sparse_when_blocks_are_missing(allocated_bytes: int, is_sparse: bool) -> None:
    # Files of 64 MiB with this much allocated, where the file system does not report extents
    state = FileState(64 * MIB, allocated_bytes, None)
    results = results_of(states={f"{key}-synced": state for key in WAYS})
    expected = Verdict.HOLDS if is_sparse else Verdict.DOES_NOT
    assert verdict(TRUNCATE, results) is verdict(FALLOCATE, results) is expected
    assert (verdict(ALLOCATED, results) is Verdict.HOLDS) is not is_sparse


_MADE = ("head-synced", "truncate-synced", "fallocate-synced")


@pytest.mark.parametrize(
    ("output", "expected"),
    [("", Verdict.HOLDS), ("zeros /dev/zero differ: byte 1, line 1", Verdict.DOES_NOT)],
)
def test_reading_gives_zeros_if_cmp_says_nothing(output: str, expected: Verdict) -> None:
    results = results_of(
        seconds={"truncate-read": (0.1,), "fallocate-read": (0.1,)},
        outputs={"fallocate-read": output},
        states=dict.fromkeys(_MADE, FileState(64 * MIB, 0, None)),
    )
    assert verdict(ZEROS, results) is expected


def test_reading_a_file_that_is_too_short_is_no_proof() -> None:
    short = {**dict.fromkeys(_MADE, FileState(64 * MIB, 0, None))}
    short["truncate-synced"] = FileState(MIB, 0, None)
    results = results_of(seconds={"truncate-read": (0.1,), "fallocate-read": (0.1,)}, states=short)
    # It does not hold
    assert verdict(ZEROS, results) is Verdict.DOES_NOT


def test_reading_one_of_two_files_is_not_enough() -> None:
    assert verdict(ZEROS, results_of(seconds={"truncate-read": (0.1,)})) is Verdict.UNTESTED


@pytest.mark.parametrize(
    ("fallocate_s", "expected"), [(2.0, Verdict.HOLDS), (2.1, Verdict.DOES_NOT)]
)
def test_made_at_once_means_long_before_the_writers(fallocate_s: float, expected: Verdict) -> None:
    results = results_of(
        seconds=synced((4.0,), (4.1,), (4.2,), (0.01,), (fallocate_s,)),
        states={"head-synced": FileState(64 * MIB, 64 * MIB, 1)},
    )
    assert verdict(AT_ONCE, results) is expected
