"""What `tui-fs estimate` promises: what comes back, advice, and what its times rest on."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import Cli, Json
from tests.contracts.calibrating import scratches
from tests.trees import flat, manifest, many_directories
from tui_fs.job.calibration.store import MEASURED_FROM_ENTRIES
from tui_fs.safety.policy import READ_ONLY_VARIABLE

MIB = 1 << 20
_ATTEMPTS = 6


@pytest.fixture
def above(tmpfs: Path) -> Path:
    """Return the directory that holds a target."""
    above = tmpfs / "above"
    above.mkdir()
    return above


@pytest.fixture
def small(above: Path) -> Path:
    """Return a tree of 9 entries, one of them a file of a MiB."""
    target = above / "target"
    many_directories(target, 2, 3)
    (target / "directory-00000" / "file-0000000").write_bytes(bytes(MIB))
    return target


@pytest.fixture
def large(above: Path) -> Path:
    """Return a tree that is just large enough for a calibration."""
    target = above / "target"
    flat(target, MEASURED_FROM_ENTRIES - 1)
    return target


def estimate(cli: Cli, *words: str | Path) -> Json:
    """Estimate and return the JSON."""
    return cli.run("estimate", "--json", *words).expect(0).object()


def rests_on(report: Json) -> str:
    """Return what the times rest on, which is the same for all strategies."""
    (words,) = {str(row["rests_on"]) for row in report["strategies"]}
    return words


@contextmanager
def holding(*files: Path) -> Iterator[None]:
    """Let a process hold files open, and do nothing."""
    opened = [os.open(file, os.O_RDONLY) for file in files]
    holder = subprocess.Popen(["sleep", "infinity"], pass_fds=opened)
    for descriptor in opened:
        os.close(descriptor)
    try:
        yield
    finally:
        holder.kill()
        holder.wait()


def freed(report: Json) -> tuple[int, int, int, int]:
    """Return bytes and inodes, the fewest and the most of each."""
    keys = ("freed_bytes_min", "freed_bytes_max", "freed_inodes_min", "freed_inodes_max")
    low, high, few, many = (int(report[key]) for key in keys)
    assert 0 <= low <= high
    assert 0 <= few <= many
    return low, high, few, many


def test_what_comes_back_is_reported_in_bytes_and_inodes(cli: Cli, small: Path) -> None:
    low, high, few, many = freed(estimate(cli, small))
    assert (few, many) == (9, 9)
    assert MIB <= low <= high


def test_a_file_held_open_may_not_come_back(cli: Cli, small: Path) -> None:
    before = freed(estimate(cli, small))
    file = small / "directory-00000" / "file-0000000"
    with holding(file):
        freeable = freed(estimate(cli, small))
        with holding(file, file):
            held_by_two = freed(estimate(cli, small))
    assert freeable == held_by_two
    assert freeable == (before[0] - MIB, before[1], before[2] - 1, before[3])
    # And once no process holds it open, it does
    assert freed(estimate(cli, small)) == before


def test_a_file_that_is_both_is_left_out_once(cli: Cli, small: Path) -> None:
    before = freed(estimate(cli, small))
    file = small / "directory-00000" / "file-0000000"
    os.link(file, small.parent / "outside")
    with holding(file):
        freeable = freed(estimate(cli, small))
    # One MiB and one inode may stay, not two
    assert freeable == (before[0] - MIB, before[1], before[2] - 1, before[3])


def test_a_file_held_open_outside_does_not_matter(cli: Cli, small: Path) -> None:
    before = freed(estimate(cli, small))
    (small.parent / "beside").write_bytes(bytes(MIB))
    with holding(small.parent / "beside"):
        assert freed(estimate(cli, small)) == before


def test_each_strategy_has_a_sentence(cli: Cli, small: Path) -> None:
    report = estimate(cli, small)
    text = cli.run("estimate", small).expect(0).stdout.decode()
    rows = {row["strategy"]: row["advice"] for row in report["strategies"]}
    assert report["recommended"] in rows
    for name, sentence in rows.items():
        assert sentence[0].isupper(), name
        assert sentence.endswith("."), name
        assert f"{name}: {sentence}" in text.splitlines()
    assert f"The times are based on {rests_on(report)}." in text.splitlines()


def test_a_small_tree_is_not_measured_for(cli: Cli, small: Path) -> None:
    before = manifest(small.parent)
    assert rests_on(estimate(cli, small)).startswith("typical figures for tmpfs")
    assert manifest(small.parent) == before


def measured_estimate(cli: Cli, target: Path) -> Json:
    """Estimate until the machine is not too busy to measure, as a user would who reads that."""
    for _ in range(_ATTEMPTS):
        report = estimate(cli, target)
        if rests_on(report).startswith("small trees deleted on this file system"):
            return report
    pytest.fail(rests_on(report))


def test_a_large_one_is_measured_for_once(cli: Cli, large: Path) -> None:
    before = manifest(large.parent)
    without = estimate(cli, "--no-measuring", large)
    assert rests_on(without).startswith("typical figures for tmpfs")
    assert manifest(large.parent) == before
    measured = measured_estimate(cli, large)
    # And nothing is left next to the target, which is whole
    after = manifest(large.parent)
    assert scratches(large.parent) == []
    assert {**after, b".": before[b"."]} == before
    # And it holds for smaller trees too, and without a measurement
    again = estimate(cli, "--no-measuring", large)
    for report in (again, measured):
        for row in report["strategies"]:
            del row["seconds_high"]  # depends on the load of this moment
    assert again == measured
    assert manifest(large.parent) == after


def test_where_it_cannot_be_measured_it_is_estimated_and_says_why(
    cli: Cli, large: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(READ_ONLY_VARIABLE, "1")
    before = manifest(large.parent)
    report = estimate(cli, large)
    assert rests_on(report).startswith("typical figures for tmpfs")
    assert "sets read-only mode" in rests_on(report)
    assert manifest(large.parent) == before


@pytest.mark.parametrize("strategy", ("xargs", "parallel"), indirect=True)
def test_a_report_has_the_prediction(cli: Cli, above: Path, strategy: str) -> None:
    target = above / "target"
    many_directories(target, 3, 5)
    rows = estimate(cli, target)["strategies"]
    (row,) = (row for row in rows if row["strategy"] == strategy)
    report = cli.delete(target, strategy).expect(0).report()
    predicted = report["predicted"]
    assert predicted["peak_memory_bytes"] == row["peak_memory_bytes"] > 0
    assert predicted["processes"] == row["processes"] > 0
    assert predicted["syscalls"] == row["syscalls"]
    assert report["peak_memory_bytes"] is None or report["peak_memory_bytes"] > 0


@pytest.mark.parametrize("how", ("--no-measuring", "--quick"))
def test_what_would_be_refused_is_said_and_nothing_is_recommended(
    cli: Cli, small: Path, how: str
) -> None:
    report = estimate(cli, how, "/srv")
    assert report["recommended"] is None
    assert "that the system needs" in str(report["refused"])
    assert b"would refuse this deletion" in cli.run("estimate", how, "/srv").expect(0).stdout
    # And an ordinary one is recommended for
    ordinary = estimate(cli, how, small)
    assert (ordinary["refused"], ordinary["recommended"]) == (None, "rm")


def test_a_quick_estimate_has_a_range_and_is_never_complete(cli: Cli, large: Path) -> None:
    numbers = estimate(cli, "--quick", large)
    assert numbers["entries_low"] <= MEASURED_FROM_ENTRIES <= numbers["entries_high"]
    for name in ("entries", "directories", "allocated_bytes"):
        assert numbers[f"{name}_low"] <= numbers[name] <= numbers[f"{name}_high"]
    assert numbers["complete"] is False
    assert {row["strategy"] for row in numbers["strategies"]} >= {"rm", "find", "rmtree"}
    for row in numbers["strategies"]:
        assert row["seconds_low"] <= row["seconds"] <= row["seconds_high"]
        removing = sum(row["syscalls"].get(name, 0) for name in ("unlink", "unlinkat", "rmdir"))
        assert removing == pytest.approx(numbers["entries"], abs=1)
    # and nothing was made next to it
    assert scratches(large.parent) == []


def test_a_quick_estimate_in_words_says_that_it_is_one_with_its_range(
    cli: Cli, large: Path
) -> None:
    output = cli.run("estimate", "--quick", large).expect(0).stdout
    assert b"entries (" in output
    assert b"90 % range" in output


def test_a_quick_estimate_of_nothing_is_bad_input(cli: Cli, above: Path) -> None:
    finished = cli.run("estimate", "--quick", above / "nothing").expect(2)
    assert "Traceback" not in finished.stderr
