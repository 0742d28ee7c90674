"""One job deletes several directories, or none if one is forbidden, and reports each."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Cli, entries_in, processes_with, wait_until
from tests.contracts.several import FILES, SLOWLY, delete, done, finish, gone, resume, start
from tests.filesystems import mount_bind, mount_tmpfs, unmount_below
from tests.needs import needs_root, needs_tool, needs_tools_of
from tests.strategies import TAKE_FILTERS
from tests.trees import Manifest, Sentinel, census, flat, hostile_names, manifest

NAMES = (b"-rf", b"new\nline \xff", b"z z'\"*")


def named(place: Path, name: bytes) -> Path:
    """Return a path of any bytes."""
    return Path(os.fsdecode(os.path.join(os.fsencode(place), name)))


class Row:
    """Three targets of hostile names, with something that must stay before and behind each."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.sentinel = Sentinel(place)
        self.targets = [named(place, name) for name in NAMES]
        for number, target in enumerate(self.targets):
            hostile_names(target)
            self.sentinel.plant(target)
            flat(target / "flat", 20 + number)
        self.beside = [named(place, name) for name in (b"-rf ", b"new", b"line ", b"z", b"~")]
        for path in self.beside:
            path.mkdir()
            (path / "file").write_text("stays")
        self.before = self._beside()

    def _beside(self) -> dict[Path, Manifest]:
        return {path: manifest(path) for path in self.beside}

    def assert_only_these_are_gone(self, *left: Path) -> None:
        """Fail unless their siblings are whole and just these targets are left."""
        self.sentinel.assert_whole()
        assert self._beside() == self.before
        expected = {self.sentinel.root, *self.beside, *left}
        assert set(map(os.fsencode, self.place.iterdir())) == set(map(os.fsencode, expected))


# Paths that no other user can exchange, and paths that all can. Either half of the four
# combinations with --keep-root is tried here, the other half where an entry stays.
@pytest.mark.parametrize(
    ("mode", "keep_root"), ((0o755, False), (0o777, True)), ids=("firm-whole", "open-keep-root")
)
def test_all_are_deleted_and_nothing_between_them(
    cli: Cli, tmpfs: Path, strategy: str, mode: int, keep_root: bool
) -> None:
    place = tmpfs / "place"
    place.mkdir()
    place.chmod(mode)
    row = Row(place)
    counted = [census(target) for target in row.targets]
    options = ("--accept-races", *(("--keep-root",) if keep_root else ()))
    report = delete(cli, strategy, row.targets, *options).expect(0).report()
    # They are gone, or empty, and nothing else is
    row.assert_only_these_are_gone(*(row.targets if keep_root else ()))
    if keep_root:
        assert [os.listdir(target) for target in row.targets] == [[], [], []]
    # And there is one job, one report, and it says so of each
    assert len(cli.jobs()) == 1
    assert report["outcome"] == "done"
    assert done(report) == [True, True, True]
    assert gone(report) == [not keep_root] * 3
    assert report["target"] == str(row.place)
    assert "path_b64" in report["targets"][1]
    assert report["deleted_files"] == sum(count.files for count in counted)
    kept = 3 if keep_root else 0
    assert report["deleted_directories"] == sum(count.directories for count in counted) - kept
    expected = report["expected"]["totals"]["directories"]
    assert expected == sum(count.directories for count in counted) - kept
    # And so does the list
    (listed,) = cli.jobs()
    assert [target["path"] for target in listed["targets"]] == [
        target["path"] for target in report["targets"]
    ]


@pytest.mark.parametrize("strategy", TAKE_FILTERS)
def test_filters_hold_in_all(cli: Cli, tmpfs: Path, strategy: str) -> None:
    needs_tools_of(strategy)
    targets = [tmpfs / name for name in "abc"]
    for target in targets:
        (target / "below").mkdir(parents=True)
        for name in ("one.log", "below/two.log", "three.txt", "below/four.txt"):
            (target / name).touch()
    targets[1].chmod(0o777)  # no race on the path to it, but within it
    options = ("--name", "*.log", "--accept-races")
    report = delete(cli, strategy, targets, *options).expect(0).report()
    assert report["deleted_files"] == 6
    assert done(report) == [True, True, True]
    assert gone(report) == [False, False, False]
    for target in targets:
        names = {str(path.relative_to(target)) for path in target.rglob("*")}
        assert names == {"below", "three.txt", "below/four.txt"}


@pytest.fixture
def locked(ext4: Path) -> Iterator[Path]:
    """Yield a place with three targets; the second has an entry that must stay."""
    needs_root("immutable files")
    chattr = needs_tool("chattr", package="e2fsprogs")
    for name in "abc":
        (ext4 / name).mkdir()
        flat(ext4 / name / "below", 30)
    entry = ext4 / "b" / "below" / "locked"
    entry.touch()
    subprocess.run([chattr, "+i", entry], check=True)
    yield ext4
    subprocess.run([chattr, "-i", entry], check=True)


@pytest.mark.parametrize(
    ("mode", "keep_root"), ((0o755, True), (0o777, False)), ids=("firm-keep-root", "open-whole")
)
def test_an_entry_that_stays_is_named_and_its_target_with_it(
    cli: Cli, locked: Path, strategy: str, mode: int, keep_root: bool
) -> None:
    locked.chmod(mode)
    targets = [locked / name for name in "abc"]
    options = ("--accept-races", *(("--keep-root",) if keep_root else ()))
    report = delete(cli, strategy, targets, *options).expect(1).report()
    # All else is gone, and the file and its target are named
    assert report["outcome"] == "partial"
    assert done(report) == [True, False, True]
    assert gone(report) == [not keep_root, False, not keep_root]
    assert {error["path"] for error in report["errors"]} >= {str(targets[1] / "below" / "locked")}
    assert all(error["path"].startswith(f"{targets[1]}") for error in report["errors"])
    assert str(targets[1]) in report["explanation"]
    assert [str(path) for path in targets[1].rglob("*")] == [
        str(targets[1] / "below"),
        str(targets[1] / "below" / "locked"),
    ]
    for target in (targets[0], targets[2]):
        assert entries_in(target) == 0
        assert target.exists() is keep_root


def test_three_hundred_of_one_name_go_at_once(cli: Cli, tmpfs: Path) -> None:
    targets = [tmpfs / f"project-{number}" / "node_modules" for number in range(300)]
    for target in targets:
        target.parent.mkdir()
        flat(target, 3)
        (target.parent / "package.json").touch()
    report = delete(cli, "rm", targets).expect(0).report()
    assert (report["deleted_files"], report["deleted_directories"]) == (900, 300)
    assert sum(argv[0].endswith("/rm") for argv in report["command"]) == 25
    assert all(os.listdir(target.parent) == ["package.json"] for target in targets)
    # And where each would need steps of its own, it is said before
    for target in targets:
        target.mkdir()
    finished = delete(cli, "rsync", targets).expect(2)
    assert "at most 100" in finished.stderr
    assert all(target.exists() for target in targets)


def test_one_that_is_not_there_refuses_all(cli: Cli, tmpfs: Path, strategy: str) -> None:
    for name in "ac":
        flat(tmpfs / name, 3)
    finished = delete(cli, strategy, [tmpfs / name for name in "abc"]).expect(2)
    finished.assert_one_sentence()
    assert str(tmpfs / "b") in finished.stderr
    assert [entries_in(tmpfs / name) for name in "ac"] == [3, 3]


@pytest.mark.parametrize("what", ("link", "mount point", "system"))
def test_one_that_is_forbidden_refuses_all(cli: Cli, tmpfs: Path, what: str) -> None:
    # Targets, one of which may not be deleted
    flat(tmpfs / "a", 3)
    forbidden = tmpfs / "b"
    if what == "link":
        forbidden.symlink_to("a")
    elif what == "mount point":
        needs_root("mounting")
        forbidden.mkdir()
        mount_tmpfs(forbidden)
    else:
        forbidden = Path("/usr")
    try:
        delete(cli, "rm", [tmpfs / "a", forbidden], "--dry-run").expect(3)
        delete(cli, "rm", [forbidden, tmpfs / "a"], "--dry-run").expect(3)
    finally:
        if what == "mount point":
            unmount_below(forbidden)
    assert entries_in(tmpfs / "a") == 3


@pytest.mark.parametrize(
    ("one", "two"), ((".", "."), (".", "below"), ("below", "."), ("x/../", ""))
)
def test_targets_in_each_other_are_refused(cli: Cli, tmpfs: Path, one: str, two: str) -> None:
    (tmpfs / "a" / "x").mkdir(parents=True)
    flat(tmpfs / "a" / "below", 3)
    targets = [Path(os.path.join(tmpfs / "a", name).removesuffix("/.")) for name in (one, two)]
    for command in ("delete", "estimate"):
        options = ("--strategy", "rm", "--yes") if command == "delete" else ()
        names = [os.path.realpath(target) for target in targets]
        finished = cli.run(command, *options, "--json", "--", *names).expect(3)
        finished.assert_one_sentence()
    assert entries_in(tmpfs / "a" / "below") == 3


def test_one_directory_under_two_names_is_refused(cli: Cli, tmpfs: Path) -> None:
    needs_root("mounting")
    (tmpfs / "place").mkdir()
    flat(tmpfs / "place" / "a", 3)
    again = mount_bind(tmpfs / "place", tmpfs / "again")
    try:
        targets = [tmpfs / "place" / "a", again / "a"]
        assert "same directory" in delete(cli, "rm", targets).expect(3).stderr
    finally:
        unmount_below(again)
    assert entries_in(tmpfs / "place" / "a") == 3


def test_another_job_in_one_of_them_causes_a_conflict(cli: Cli, tmpfs: Path) -> None:
    targets = [tmpfs / name for name in ("a", "b")]
    for target in (*targets, tmpfs / "c"):
        flat(target, FILES)
    job = start(cli, "rsync", targets)
    report = delete(cli, "rm", [tmpfs / "c", targets[1]]).expect(3).report()
    assert report["refusal"]["rule"] == "busy"
    assert entries_in(tmpfs / "c") == FILES
    assert finish(cli, job, 0)["outcome"] == "done"


def test_a_large_total_needs_a_word_that_is_no_name(cli: Cli, tmpfs: Path) -> None:
    for name in "ab":
        flat(tmpfs / name, 60)
    policy = Path(os.environ["XDG_CONFIG_HOME"], "tui-fs", "policy.toml")
    policy.parent.mkdir(parents=True)
    policy.write_text("type_name_above_entries = 100\n")
    targets = [tmpfs / "a", tmpfs / "b"]
    assert "--confirm delete" in delete(cli, "rm", targets).expect(3).stderr
    delete(cli, "rm", targets, "--confirm", "a").expect(3)
    assert [entries_in(target) for target in targets] == [60, 60]
    # And with it deleted
    delete(cli, "rm", targets, "--confirm", "delete").expect(0)
    assert entries_in(tmpfs) == 0


def test_a_policy_holds_for_each(cli: Cli, tmpfs: Path) -> None:
    for name in "ab":
        flat(tmpfs / name, 3)
    policy = Path(os.environ["XDG_CONFIG_HOME"], "tui-fs", "policy.toml")
    policy.parent.mkdir(parents=True)
    policy.write_text(f"never = [{json.dumps(str(tmpfs / 'b'))}]\n")
    delete(cli, "rm", [tmpfs / "a", tmpfs / "b"]).expect(3).assert_one_sentence()
    assert [entries_in(tmpfs / name) for name in "ab"] == [3, 3]


def test_more_than_a_thousand_are_refused(cli: Cli, tmpfs: Path) -> None:
    targets = [tmpfs / str(number) for number in range(1001)]
    for target in targets:
        target.mkdir()
    finished = delete(cli, "rm", targets).expect(3)
    finished.assert_one_sentence()
    assert "1,001" in finished.stderr
    assert entries_in(tmpfs) == 1001


def test_paths_too_long_for_a_journal_are_refused(cli: Cli, tmpfs: Path) -> None:
    above = tmpfs.joinpath(*["\x01" * 250] * 15)
    few, many = (above / name for name in ("few", "many"))
    for place, number in ((few, 46), (many, 60)):
        for at in range(number):
            (place / str(at)).mkdir(parents=True)
    finished = delete(cli, "rm", sorted(many.iterdir())).expect(3)
    assert "bytes" in finished.stderr
    assert entries_in(many) == 60
    report = delete(cli, "rm", sorted(few.iterdir())).expect(0).report()
    assert (report["outcome"], entries_in(few)) == ("done", 0)


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
    words = ("--strategy", "rsync", "--yes", "--json", "--detach", "--rate", "1000", "--")
    job = str(cli.run("delete", *words, *targets).expect(0).object()["id"])
    wait_until(lambda: entries_in(targets[1]) < LONG, "the second target's deletion")
    os.kill(cli.supervisor_of(job), signal.SIGKILL)
    cli.wait_for_state(job, "died")
    wait_until(lambda: processes_with(targets[1]) == [], "the end of its tools")
    left = entries_in(targets[1])
    assert left > 0 and not targets[0].exists()
    report = cli.run("attach", job, "--json").expect(5).report()
    assert gone(report) == [None, None, None]
    report, stderr = resume(cli, job)
    assert report["outcome"] == "done"
    assert [target["path"] for target in report["targets"]] == list(map(str, targets[1:]))
    assert report["expected"]["totals"]["files"] == left + 3
    assert f"1 of 3 directories was deleted or replaced: {targets[0]}" in stderr
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
