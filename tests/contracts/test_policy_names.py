"""A policy applies to a place under every name: mounts, links, overlays."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Cli
from tests.contracts.calibrating import command_for, run
from tests.contracts.test_policy import write_policy
from tests.filesystems import mount_bind, mount_overlay, mount_tmpfs, unmount_below
from tests.fuse.user_server import user_server
from tests.matrix.ordinary_user import UID
from tests.needs import needs_root
from tests.trees import manifest, many_directories

pytestmark = pytest.mark.root


@pytest.fixture
def place(tmpfs: Path) -> Iterator[Path]:
    """Yield an empty directory for mounts."""
    needs_root("mounting")
    yield tmpfs
    unmount_below(tmpfs)


def tree(target: Path) -> Path:
    """Make a small tree with all directories above it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    many_directories(target, 2, 2)
    return target


def assert_refused(cli: Cli, target: Path, *words: str) -> None:
    """Fail unless deletion is refused by the policy, and nothing is touched."""
    before = manifest(target)
    finished = cli.delete(target, "rm").expect(3)
    finished.assert_one_sentence()
    for word in (*words, "policy: "):
        assert word in finished.stderr
    assert manifest(target) == before


def test_what_is_mounted_into_an_allowed_directory_from_outside_is_not_allowed(
    cli: Cli, place: Path
) -> None:
    tree(place / "homes" / "alice")
    mount_bind(place / "homes", _made(place / "jails" / "home"))
    write_policy(place / "x", 'allowed = ["{place}/jails"]')
    assert_refused(
        cli, place / "jails" / "home" / "alice", f"is, through a mount, also {place}/homes/alice"
    )
    # But a file system of its own may be deleted from, and what is elsewhere through its mount
    mount_bind(place / "jails", place / "again")
    own = tree(mount_tmpfs(_made(place / "jails" / "disk")) / "t")
    other = tree(place / "jails" / "t")
    for target in (own, other):
        cli.delete(target, "rm").expect(0)
        assert not target.exists()


def test_a_link_of_another_user_allows_nothing(cli: Cli, place: Path) -> None:
    target = tree(place / "precious" / "t")
    (place / "theirs").mkdir()
    os.chown(place / "theirs", UID, UID)
    link = place / "theirs" / "scratch"
    link.symlink_to(place)
    os.chown(link, UID, UID, follow_symlinks=False)
    write_policy(place / "x", 'allowed = ["{place}/theirs/scratch"]')
    assert_refused(cli, target, "that a user other than you and root can change")
    # But a link of root's allows what it leads to
    (place / "ours").symlink_to(place)
    write_policy(place / "x", 'allowed = ["{place}/ours"]')
    cli.delete(target, "rm").expect(0)
    assert not target.exists()


def test_the_upper_directory_of_an_overlay_is_protected_under_the_overlay(
    cli: Cli, place: Path
) -> None:
    merged = mount_overlay(place, lambda lower: (lower / "dat").mkdir())
    target = tree(merged / "data")
    for never in ("{place}/upper", "{place}/upper/data/directory-00001"):
        write_policy(place / "x", f'never = ["{never}"]')
        assert_refused(cli, target, "under another name")
    # But not what is in another directory of the same name
    write_policy(place / "x", 'never = ["{place}/lower", "{place}/upper/dat"]')
    cli.delete(target, "rm").expect(0)
    assert not target.exists()


@pytest.mark.parametrize("key", ("never", "allowed"))
def test_a_place_that_does_not_answer_keeps_no_job_from_starting(
    cli: Cli, place: Path, key: str
) -> None:
    # A policy with a place on a FUSE file system whose program does not answer
    target = tree(place / "work" / "t")
    (place / "link").symlink_to("served/link")
    with user_server(place / "served", UID, is_silent=True):
        places = ["served/keep", "link/keep", *(["work"] if key == "allowed" else [])]
        quoted = ", ".join(f'"{{place}}/{name}"' for name in places)
        write_policy(place / "x", f"{key} = [{quoted}]")
        cli.delete(target, "rm").expect(0)
        assert not target.exists()


def test_nothing_is_measured_in_a_protected_directory_under_another_name(place: Path) -> None:
    many_directories(_made(place / "db") / "target", 2, 2)
    mount_bind(place / "db", place / "alias")
    write_policy(place / "x", 'never = ["{place}/db"]')
    before = manifest(place)
    for above in (place / "db", place / "alias"):
        output = run(command_for(above / "target"))
        assert "The policy protects" in output["problem"]
    assert manifest(place) == before


def test_no_lab_runs_in_a_protected_directory(cli: Cli, place: Path) -> None:
    directory = _made(place / "db" / "part")
    write_policy(place / "x", 'never = ["{place}/db"]')
    finished = cli.run("lab", "run", "race-your-strategies", "--dir", directory).expect(3)
    finished.assert_one_sentence()
    assert "The policy protects" in finished.stderr
    assert os.listdir(directory) == []


def test_a_protected_directory_is_known_in_any_spelling(cli: Cli, place: Path) -> None:
    target = tree(place / "db" / "t")
    before = manifest(target)
    write_policy(place / "x", 'never = ["{place}//db/./"]')
    for spelling in (f"/{target}", f"{place}/db/../db//t/", f"/proc/self/root{target}"):
        finished = cli.delete(spelling, "rm").expect(3)
        finished.assert_one_sentence()
        assert f"{target} is inside {place}/db, which must never be deleted" in finished.stderr
    assert manifest(target) == before


def _made(directory: Path) -> Path:
    directory.mkdir(parents=True)
    return directory
