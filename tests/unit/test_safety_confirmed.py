"""Which name must be typed, and how a confirmed directory is recognised again."""

import os
import pwd
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.unit.targets import here, mounted, target
from tui_fs.model.errors import BadInput, Refused
from tui_fs.safety.rules import (
    NAME_TYPED_ABOVE_ENTRIES,
    PROJECT_MARKS,
    Environment,
    Homes,
    check,
    check_again,
    name_must_be_typed,
)

__all__ = ["here", "target"]


def replace_by_another(target: Path) -> None:
    """Put another directory in the place of the target."""
    target.rename(target.parent / "old")
    target.mkdir()


def replace_by_a_link(target: Path) -> None:
    """Put a link to the target in its place."""
    target.rename(target.parent / "old")
    target.symlink_to(target.parent / "old")


def replace_the_parent_by_a_link(target: Path) -> None:
    """Put a link to the parent in its place."""
    moved = target.parent.parent / "moved"
    target.parent.rename(moved)
    target.parent.symlink_to(moved)


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (replace_by_another, "changed"),
        (replace_by_a_link, "symlink"),
        (replace_the_parent_by_a_link, "changed"),
    ],
)
def test_what_took_the_place_of_the_target_is_refused(
    here: Environment, target: Path, change: Callable[[Path], None], rule: str
) -> None:
    confirmed = check(str(target), here)
    change(target)
    with pytest.raises(Refused) as refused:
        check_again(confirmed, here)
    assert refused.value.rule == rule


def test_other_contents_are_no_change_but_a_mount_and_a_missing_target_are(
    here: Environment, target: Path
) -> None:
    confirmed = check(str(target), here)
    (target / "usb").mkdir()
    check_again(confirmed, here)
    mounted(here, target / "usb")
    with pytest.raises(Refused) as refused:
        check_again(confirmed, here)
    assert refused.value.rule == "mount-inside"
    target.rename(target.parent / "old")
    with pytest.raises(BadInput):
        check_again(confirmed, here)


def test_a_mount_over_an_equal_inode_is_refused(here: Environment, target: Path) -> None:
    confirmed = check(str(target), here)
    other = replace(confirmed, pin=replace(confirmed.pin, mount_id=confirmed.pin.mount_id + 1))
    with pytest.raises(Refused) as refused:
        check_again(other, here)
    assert refused.value.rule == "changed"


def test_a_small_ordinary_target_needs_no_name(target: Path) -> None:
    assert name_must_be_typed(str(target), NAME_TYPED_ABOVE_ENTRIES) is None


def test_a_large_target_is_typed_by_name(target: Path) -> None:
    reason = name_must_be_typed(str(target), NAME_TYPED_ABOVE_ENTRIES + 1)
    assert reason is not None
    assert f"{NAME_TYPED_ABOVE_ENTRIES:,}" in reason


@pytest.mark.parametrize("mark", sorted(PROJECT_MARKS))
def test_a_project_directory_is_typed_by_name(target: Path, mark: str) -> None:
    (target / mark).touch()
    assert mark in (name_must_be_typed(str(target), 2) or "")


def test_a_home_is_typed_by_name(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    account = pwd.struct_passwd(("ada", "x", 1, 1, "", f"{target}/", "/bin/sh"))
    monkeypatch.setattr(pwd, "getpwall", lambda: [account])
    assert name_must_be_typed(str(target), 1) == "it is the home of ada"


def test_homes_that_may_not_answer_are_not_read(
    here: Environment, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    homes = target.parent.parent / "homes"
    homes.mkdir()
    (homes / "ada").symlink_to(target)
    account = pwd.struct_passwd(("ada", "x", 1, 1, "", f"{homes}/ada", "/bin/sh"))
    monkeypatch.setattr(pwd, "getpwall", lambda: [account])
    assert name_must_be_typed(str(target), 1, Homes(here.mountinfo)) == "it is the home of ada"
    mounted(here, homes, kind="nfs")
    assert name_must_be_typed(str(target), 1, Homes(here.mountinfo)) is None


def test_an_unreadable_directory_is_typed_by_name(
    target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: str) -> list[str]:
        raise PermissionError

    monkeypatch.setattr(os, "listdir", refuse)
    assert name_must_be_typed(str(target), 1) == "it cannot be read"
