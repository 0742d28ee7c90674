"""One job deletes several directories and reports the result of each."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Cli, entries_in
from tests.contracts.several import delete, done, gone
from tests.needs import needs_root, needs_tool, needs_tools_of
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


@pytest.mark.parametrize("strategy", ("find", "xargs", "parallel"))
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
