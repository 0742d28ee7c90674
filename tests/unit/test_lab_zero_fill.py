"""The files of zeros: what is done at which scale, and the verdicts on figures made up here."""

from typing import Any

import pytest

from tests.unit import lab_results
from tui_fs.lab.experiment import Scale, Setting, Trial, Verdict
from tui_fs.lab.experiments.zero_fill import EXPERIMENT
from tui_fs.lab.results import FileState

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
AT_ONCE = "truncate and fallocate finish long before a file of that size could be written."


def trials(scale: Scale, *, without: str = "") -> tuple[Trial, ...]:
    """Return what is done; one tool can be missing."""
    tools = {name: path for name, path in TOOLS.items() if name != without}
    return EXPERIMENT.trials(scale, Setting(tools))


def synced(*seconds: tuple[float, ...]) -> dict[str, tuple[float, ...]]:
    """Return times of the methods with sync, in their order."""
    return {f"{key}-synced": each for key, each in zip(WAYS, seconds, strict=False)}


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


def test_without_cmp_nothing_is_read_and_the_rest_is_done() -> None:
    made = trials(Scale.SMALL, without="cmp")
    with_cmp = {step.key for trial in trials(Scale.SMALL) for step in trial.steps}
    keys = {step.key for trial in made for step in trial.steps}
    assert with_cmp - keys == {"truncate-read", "fallocate-read"}


WRITTEN = {"head-synced": FileState(64 * MIB, 64 * MIB, 1)}
MADE = dict.fromkeys(
    ("head-synced", "truncate-synced", "fallocate-synced"), FileState(64 * MIB, 0, None)
)
UNSYNCED = {**synced((4.0,), (4.0,), (4.0,)), "head": (0.5,), "dd-one-block": (0.5,)}
READ = {"truncate-read": (0.1,), "fallocate-read": (0.1,)}
DIFFERENCE = "zeros /dev/zero differ: byte 1, line 1"
HOLDS, DOES_NOT, UNTESTED = Verdict.HOLDS, Verdict.DOES_NOT, Verdict.UNTESTED


def alike(*seconds: tuple[float, ...]) -> dict[str, Any]:
    """Return times of head and both ways of dd."""
    return {"seconds": synced(*seconds)}


def written(head: dict[str, int], dd: dict[str, int]) -> dict[str, Any]:
    """Return calls of head and both ways of dd."""
    return {"calls": {"head": head, "dd-4m": dd, "dd-one-block": dd}}


def allocated(size_bytes: int) -> dict[str, Any]:
    """Return files of 64 MiB where the file system does not report extents."""
    state = FileState(64 * MIB, size_bytes, None)
    return {"left": {f"{key}-synced": state for key in WAYS}}


def in_pieces(writes: int) -> dict[str, Any]:
    """Return what head writes 64 MiB with."""
    return {"calls": {"head": {"read": 1, "write": writes}}, "left": WRITTEN}


def at_once(fallocate_s: float) -> dict[str, Any]:
    """Return times of all ways."""
    return {**alike((4.0,), (4.1,), (4.2,), (0.01,), (fallocate_s,)), "left": WRITTEN}


@pytest.mark.parametrize(
    ("claim", "figures", "expected"),
    [
        (SAME, alike((5.7, 5.8), (6.1, 6.2), (5.7, 5.8)), HOLDS),
        (SAME, alike((1.0, 9.0), (3.0, 3.1), (2.0, 3.0)), HOLDS),
        (SAME, alike((1.0, 1.1), (3.0, 3.1), (3.0, 3.2)), DOES_NOT),
        (SAME, alike((3.0, 3.1), (3.0, 3.1), (1.0, 1.1)), DOES_NOT),
        (BLOCKS, alike((5.7, 5.8), (6.1, 6.2), (5.7, 5.8)), HOLDS),
        (BLOCKS, alike((1.0, 9.0), (3.0, 3.1), (2.0, 3.0)), HOLDS),
        (BLOCKS, alike((1.0, 1.1), (3.0, 3.1), (3.0, 3.2)), HOLDS),
        (BLOCKS, alike((3.0, 3.1), (3.0, 3.1), (1.0, 1.1)), DOES_NOT),
        (LONG_BEFORE, {"seconds": {**UNSYNCED, "dd-4m": (0.5,)}}, HOLDS),
        (LONG_BEFORE, {"seconds": {**UNSYNCED, "dd-4m": (3.9,)}}, DOES_NOT),
        # dd waits if it makes a call that waits
        (DD_WAITS, written({"write": 8}, {"write": 16, "fdatasync": 1}), HOLDS),
        (DD_WAITS, written({"write": 8}, {"write": 16}), DOES_NOT),
        (DD_WAITS, written({"write": 8, "fsync": 1}, {"write": 16, "fsync": 1}), DOES_NOT),
        (PIECES, in_pieces(8192), HOLDS),
        (PIECES, in_pieces(16384), HOLDS),
        (PIECES, in_pieces(8195), HOLDS),
        (PIECES, in_pieces(256), DOES_NOT),
        (PIECES, in_pieces(0), DOES_NOT),
        # A file is sparse when blocks are missing
        *((sparse, allocated(0), HOLDS) for sparse in (TRUNCATE, FALLOCATE)),
        *((sparse, allocated(60 * MIB), HOLDS) for sparse in (TRUNCATE, FALLOCATE)),
        *((sparse, allocated(64 * MIB), DOES_NOT) for sparse in (TRUNCATE, FALLOCATE)),
        (ALLOCATED, allocated(0), DOES_NOT),
        (ALLOCATED, allocated(60 * MIB), DOES_NOT),
        (ALLOCATED, allocated(64 * MIB), HOLDS),
        # Zeros are read if cmp prints nothing, of both files, and of all of each
        (ZEROS, {"seconds": READ, "left": MADE}, HOLDS),
        (
            ZEROS,
            {"seconds": READ, "left": MADE, "outputs": {"fallocate-read": DIFFERENCE}},
            DOES_NOT,
        ),
        (
            ZEROS,
            {"seconds": READ, "left": {**MADE, "truncate-synced": FileState(MIB, 0, None)}},
            DOES_NOT,
        ),
        (ZEROS, {"seconds": {"truncate-read": (0.1,)}}, UNTESTED),
        (AT_ONCE, at_once(2.0), HOLDS),
        (AT_ONCE, at_once(2.1), DOES_NOT),
    ],
)
def test_figures_decide(claim: str, figures: dict[str, Any], expected: Verdict) -> None:
    results = lab_results.run_with(EXPERIMENT, **figures)
    assert lab_results.judgement_of(EXPERIMENT, claim, results).verdict is expected


@pytest.mark.parametrize(
    ("unsynced_s", "reason"),
    [
        ((3.9, 3.9, 3.9), "Here sync takes no longer than writing."),
        ((0.5, 3.9, 0.5), "Here sync takes no longer than writing with dd, blocks of 4 MiB."),
        (
            (3.9, 0.5, 3.9),
            "Here sync takes no longer than writing with head -c and with dd, a single block.",
        ),
    ],
)
def test_a_short_sync_is_named_with_its_methods(unsynced_s: tuple[float, ...], reason: str) -> None:
    seconds = synced((4.0,), (4.0,), (4.0,)) | {
        key: (each,) for key, each in zip(WRITERS, unsynced_s, strict=True)
    }
    results = lab_results.run_with(EXPERIMENT, seconds=seconds)
    assert lab_results.judgement_of(EXPERIMENT, LONG_BEFORE, results).reason == reason
