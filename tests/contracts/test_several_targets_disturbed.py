"""Exchanges, mounts, pauses and kills while one job deletes several directories."""

import os
import signal
from pathlib import Path

import pytest

from tests.conftest import Cli, entries_in, processes_with, wait_until
from tests.contracts.several import FILES, SLOWLY, finish, gone, start
from tests.filesystems import mount_tmpfs, unmount_below
from tests.needs import needs_root
from tests.trees import Sentinel, flat, manifest

LONG = 5 * FILES
"""Not gone before a busy machine has seen that they go too fast."""


def test_one_exchanged_before_its_step_is_left_untouched(
    cli: Cli, tmpfs: Path, strategy: str
) -> None:
    # Targets that anybody can exchange, so that each has steps of its own
    place = tmpfs / "place"
    place.mkdir()
    place.chmod(0o777)
    targets = [place / name for name in ("a", "b", "c")]
    for target in targets:
        flat(target, FILES)
    sentinel = Sentinel(place)
    job = start(cli, strategy, targets, "--accept-races")
    targets[1].rename(place / "moved")
    (targets[1] / "other").mkdir(parents=True)
    (targets[1] / "other" / "file").write_text("never confirmed")
    before = manifest(targets[1])
    report = finish(cli, job, 1)
    assert not targets[0].exists()
    assert manifest(targets[1]) == before
    assert entries_in(place / "moved") == entries_in(targets[2]) == FILES
    sentinel.assert_whole()
    # And it says which and why
    assert report["outcome"] == "partial"
    assert gone(report) == [True, False, False]
    assert f"{targets[1]} is not the directory that was confirmed" in report["explanation"]
    assert f"{targets[1]} was moved" in report["explanation"]


def test_something_mounted_in_one_before_its_step_is_left_untouched(cli: Cli, tmpfs: Path) -> None:
    needs_root("mounting")
    targets = [tmpfs / name for name in ("a", "b")]
    for target in targets:
        flat(target, FILES)
    job = start(cli, "rsync", targets)
    (targets[1] / "inside").mkdir()
    mounted = mount_tmpfs(targets[1] / "inside")
    (mounted / "file").touch()
    try:
        # The second is not touched, and it says why
        cli.run("rate", job, "off")
        report = cli.run("attach", job, "--json").report()
        assert report["outcome"] in ("partial", "cancelled")
        assert "inside" in report["explanation"]
        assert gone(report)[1] is False
        assert entries_in(targets[1]) == FILES + 1
        assert (mounted / "file").exists()
    finally:
        unmount_below(mounted)


def test_resume_goes_on_with_those_that_are_left(cli: Cli, tmpfs: Path) -> None:
    # A job that died when the first target was gone and the second was not
    targets = [tmpfs / name for name in ("a", "b", "c")]
    flat(targets[0], 3)
    flat(targets[1], LONG)
    flat(targets[2], 3)
    words = ("--strategy", "rsync", "--yes", "--json", "--detach", "--rate", "8000", "--")
    job = str(cli.run("delete", *words, *targets).expect(0).object()["id"])
    wait_until(lambda: entries_in(targets[1]) < LONG, "the second target's deletion")
    os.kill(cli.supervisor_of(job), signal.SIGKILL)
    cli.wait_for_state(job, "died")
    wait_until(lambda: processes_with(targets[1]) == [], "the end of its tools")
    left = entries_in(targets[1])
    assert left > 0 and not targets[0].exists()
    report = cli.run("attach", job, "--json").expect(5).report()
    assert gone(report) == [None, None, None]
    finished = cli.run("resume", job, "--yes", "--json").expect(0)
    report = finished.report()
    assert report["outcome"] == "done"
    assert [target["path"] for target in report["targets"]] == list(map(str, targets[1:]))
    assert report["expected"]["totals"]["files"] == left + 3
    assert f"1 of 3 directories was deleted or replaced: {targets[0]}" in finished.stderr
    assert os.listdir(tmpfs) == []


# One process for all targets, steps for each, and the engine.
@pytest.mark.parametrize("strategy", ("rm", "rsync", "parallel"), indirect=True)
def test_a_pause_and_resume_bear_that_some_are_gone(cli: Cli, tmpfs: Path, strategy: str) -> None:
    targets = [tmpfs / name for name in ("a", "b", "c")]
    flat(targets[0], 5)
    flat(targets[1], LONG)
    flat(targets[2], 5)
    words = ("--strategy", strategy, "--yes", "--json", "--detach", *SLOWLY, "--")
    job = str(cli.run("delete", *words, *targets).expect(0).object()["id"])
    wait_until(lambda: entries_in(targets[1]) < LONG, "the second target's deletion")
    cli.run("pause", job).expect(0)
    assert entries_in(targets[1]) > 0, "too fast to be paused"
    cli.run("resume", job).expect(0)
    assert finish(cli, job, 0)["outcome"] == "done"
    assert os.listdir(tmpfs) == []


def test_one_exchanged_while_the_tools_have_yet_to_come_to_it_ends_the_job(
    cli: Cli, tmpfs: Path
) -> None:
    targets = [tmpfs / f"t{number:02}" for number in range(50)]
    for number, target in enumerate(targets):
        flat(target, FILES if number == 0 else 2)
    job = start(cli, "rm", targets)
    targets[1].rename(tmpfs / "kept")
    targets[1].mkdir()
    (targets[1] / "never confirmed").touch()
    report = cli.run("attach", job, "--json").expect(130).report()
    assert (targets[1] / "never confirmed").exists()
    assert entries_in(tmpfs / "kept") == 2
    assert report["outcome"] == "cancelled"
    # in other words where a mount anywhere on the machine has the targets compared before that
    ways = (
        "is no longer the directory that was confirmed",
        "is not the directory that was confirmed: ",
    )
    assert any(f"{targets[1]} {words}" in report["explanation"] for words in ways)
