"""Which name must be typed, and how a confirmed directory is recognised again."""

import os
import pwd
from dataclasses import replace
from pathlib import Path

import pytest

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


def test_an_unchanged_target_passes_again(here: Environment, target: Path) -> None:
    check_again(check(str(target), here), here)


def test_a_changed_content_is_no_change_of_the_target(here: Environment, target: Path) -> None:
    confirmed = check(str(target), here)
    (target / "new").mkdir()
    check_again(confirmed, here)


def test_a_replaced_target_is_refused(here: Environment, target: Path) -> None:
    confirmed = check(str(target), here)
    target.rename(target.parent / "old")
    target.mkdir()
    with pytest.raises(Refused) as refused:
        check_again(confirmed, here)
    assert refused.value.rule == "changed"


def test_a_renamed_target_is_not_there_any_more(here: Environment, target: Path) -> None:
    confirmed = check(str(target), here)
    target.rename(target.parent / "old")
    with pytest.raises(BadInput):
        check_again(confirmed, here)


def test_a_target_replaced_by_a_symlink_to_it_is_refused(here: Environment, target: Path) -> None:
    confirmed = check(str(target), here)
    target.rename(target.parent / "old")
    target.symlink_to(target.parent / "old")
    with pytest.raises(Refused) as refused:
        check_again(confirmed, here)
    assert refused.value.rule == "symlink"


def test_a_parent_replaced_by_a_symlink_is_refused(here: Environment, target: Path) -> None:
    confirmed = check(str(target), here)
    moved = target.parent.parent / "moved"
    target.parent.rename(moved)
    target.parent.symlink_to(moved)
    with pytest.raises(Refused) as refused:
        check_again(confirmed, here)
    assert refused.value.rule == "changed"


def test_a_mount_that_came_since_is_refused(here: Environment, target: Path) -> None:
    confirmed = check(str(target), here)
    mounted(here, target / "usb")
    with pytest.raises(Refused) as refused:
        check_again(confirmed, here)
    assert refused.value.rule == "mount-inside"


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
    assert name_must_be_typed(str(target), 1) == "its entries cannot be read"
