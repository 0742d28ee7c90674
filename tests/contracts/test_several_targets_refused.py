"""If one of several directories is forbidden, the job is refused."""

import json
import os
from pathlib import Path

import pytest

from tests.conftest import Cli, entries_in
from tests.contracts.several import FILES, delete, finish, start
from tests.filesystems import mount_bind, mount_tmpfs, unmount_below
from tests.needs import needs_root
from tests.trees import flat


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
