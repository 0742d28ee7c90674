"""The file systems compared: what is done at which scale, and the verdicts on made-up figures."""

import pytest

from tests.unit import lab_results
from tui_fs.lab.experiment import Judged, Scale, Verdict
from tui_fs.lab.experiments.ext4_vs_xfs import EXPERIMENT
from tui_fs.lab.results import Measure

SETTING = lab_results.all_tools(EXPERIMENT)
STEPS = ("copy", "resync", "find", "find-again", "backups", "rm")
FASTER = {
    "copy": "XFS is faster when files are copied in.",
    "resync": "XFS is faster when files are copied again with nothing new.",
    "find": "XFS is faster at listing all entries.",
    "find-again": "XFS is faster at listing all entries again.",
    "backups": "XFS is faster at finding directories by name.",
    "rm": "XFS is faster at deleting.",
}
CACHE = "Dropping the caches does not empty them all: a second search is faster."
BY_NAME = "The gain of XFS is far greater when searching by name than when listing all entries."
THE_SAME = "Each file system lists the same number of entries."


def judgement(
    claim: str, seconds: dict[str, tuple[float, ...]], outputs: dict[str, str] | None = None
) -> Judged:
    """Return the judgement on a claim by a run at the published scale with these figures only."""
    results = lab_results.run_with(EXPERIMENT, Scale.PUBLISHED, seconds=seconds, outputs=outputs)
    return lab_results.judgement_of(EXPERIMENT, claim, results)


def test_the_copy_has_room_for_files_inodes_and_directories() -> None:
    small, published = (EXPERIMENT.trials(scale, SETTING)[0] for scale in Scale)
    assert small.tree is not None
    assert published.tree is not None
    for trial in (small, published):
        assert trial.tree is not None
        assert trial.disk_bytes > trial.tree.contents_bytes + 512 * trial.tree.entries
    assert small.tree.entries > 3_000
    assert published.tree.entries > 200_000
    assert small.tree.contents_bytes < 64 << 20 < 1 << 30 < published.tree.contents_bytes


@pytest.mark.parametrize(
    ("name", "claimed"),
    [
        ("copy", "0.68"),
        ("resync", "0.74"),
        ("find", "0.38"),
        ("find-again", "0.29"),
        ("rm", "0.49"),
    ],
)
def test_a_claimed_ratio_follows_from_the_published_times(name: str, claimed: str) -> None:
    seconds = {
        figure.key: figure.value
        for figure in EXPERIMENT.published
        if figure.measure is Measure.SECONDS
    }
    assert f"{seconds[f'xfs-{name}'] / seconds[f'ext4-{name}']:.2f}" == claimed
    (claim,) = (stated for stated in EXPERIMENT.claims if stated.text == FASTER[name])
    assert claim.published.startswith(f"{claimed} of ext4's time")


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize(
    ("ext4", "xfs", "expected", "is_noise"),
    [
        ((4.0, 5.0), (2.0, 3.0), Verdict.HOLDS, False),
        ((2.0, 3.0), (4.0, 5.0), Verdict.DOES_NOT, False),
        ((2.0, 5.0), (3.0, 3.1), Verdict.UNTESTED, True),
        ((3.0,), (3.0,), Verdict.UNTESTED, True),
    ],
)
def test_xfs_is_faster_if_each_of_its_runs_is(
    name: str,
    ext4: tuple[float, ...],
    xfs: tuple[float, ...],
    expected: Verdict,
    is_noise: bool,
) -> None:
    judged = judgement(FASTER[name], {f"ext4-{name}": ext4, f"xfs-{name}": xfs})
    assert judged.verdict is expected
    assert ("overlap" in judged.reason) is is_noise


@pytest.mark.parametrize(
    ("xfs_again", "expected"), [((0.5, 0.6), Verdict.HOLDS), ((1.05, 1.2), Verdict.DOES_NOT)]
)
def test_some_cache_is_kept_if_both_search_faster_again(
    xfs_again: tuple[float, ...], expected: Verdict
) -> None:
    seconds = {
        "ext4-find": (4.0, 4.1),
        "ext4-find-again": (3.0, 3.1),
        "xfs-find": (1.0, 1.1),
        "xfs-find-again": xfs_again,
    }
    # The guess holds for both only
    assert judgement(CACHE, seconds).verdict is expected


@pytest.mark.parametrize(
    ("ext4_s", "xfs_s", "expected"),
    [(40.0, 2.0, Verdict.HOLDS), (4.0, 2.0, Verdict.DOES_NOT), (2.0, 4.0, Verdict.DOES_NOT)],
)
def test_the_gain_by_name_is_compared_with_the_plain_one(
    ext4_s: float, xfs_s: float, expected: Verdict
) -> None:
    seconds = {"ext4-find": (4.0,), "xfs-find": (2.0,)}
    by_name = {"ext4-backups": (ext4_s,), "xfs-backups": (xfs_s,)}
    # About as much of a gain is not enough
    assert judgement(BY_NAME, {**seconds, **by_name}).verdict is expected


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ({"ext4": "3,001", "xfs": "3,001"}, Verdict.HOLDS),
        ({"ext4": "3001", "xfs": "3001", "btrfs": "3001"}, Verdict.HOLDS),
        ({"ext4": "3001", "xfs": "3000"}, Verdict.DOES_NOT),
        ({"ext4": "3001", "xfs": "3001", "btrfs": "1"}, Verdict.DOES_NOT),
        ({"ext4": "3001", "btrfs": "3001"}, Verdict.UNTESTED),
    ],
)
def test_the_numbers_found_are_compared(found: dict[str, str], expected: Verdict) -> None:
    outputs = {f"{place}-find": number for place, number in found.items()}
    assert judgement(THE_SAME, {}, outputs).verdict is expected
