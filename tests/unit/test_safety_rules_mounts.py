"""Mounts on, in, above or from a target, and their refusals."""

import os
from pathlib import Path

import pytest

from tests.needs import lacks
from tests.unit.targets import ROOT_ID, here, mounted, refusal, target
from tui_fs.linux.mounts import read_mounts
from tui_fs.safety import rules
from tui_fs.safety.rules import (
    SYSTEM_DIRECTORIES,
    Environment,
    check,
)

__all__ = ["here", "target"]


@pytest.mark.parametrize(
    ("place", "kind", "options", "rule"),
    [
        ("target", "ext4", "rw", "mount-point"),
        (".", "cgroup2", "rw", "pseudo"),
        (".", "ext4", "ro,nosuid", "read-only"),
    ],
)
def test_a_mount_on_or_above_the_target_is_refused(
    here: Environment, target: Path, place: str, kind: str, options: str, rule: str
) -> None:
    mounted(here, target.parent / place, kind, options)
    assert refusal(target, here).rule == rule


def test_a_mount_that_the_table_lacks_is_refused(here: Environment) -> None:
    # A real mount point that is missing in the table, so that only its pin betrays it
    real = [
        mount.mount_point
        for mount in read_mounts()
        if os.path.ismount(mount.mount_point) and mount.mount_point not in SYSTEM_DIRECTORIES
    ]
    places = [place for place in real if place != "/" and os.path.isdir(place)]
    if not places:
        lacks("no mount point besides those of the system; enable it with: mount -t tmpfs …")
    assert refusal(places[0], here).rule == "mount-point"


@pytest.mark.parametrize("name", ["inside", "deep/er", "with blank", "new\nline", "back\\slash"])
def test_a_mount_inside_is_refused(here: Environment, target: Path, name: str) -> None:
    mounted(here, target / name)
    assert refusal(target, here).rule == "mount-inside"


def test_the_number_of_mounts_inside_is_reported(here: Environment, target: Path) -> None:
    for name in "abc":
        mounted(here, target / name)
    assert "(and 2 more)" in refusal(target, here).sentence


@pytest.mark.parametrize("device", ["8:1", "8:2"])
def test_what_is_mounted_elsewhere_is_refused(here: Environment, target: Path, device: str) -> None:
    mounted(here, f"{target}2")
    with open(here.mountinfo, "a", encoding="utf-8") as table:
        table.write(f"51 {ROOT_ID} {device} {target}/part /srv/shown rw - ext4 /dev/sda1 rw\n")
    if device == "8:2":  # the same path on another device
        assert check(str(target), here).path == str(target)
        return
    refused = refusal(target, here)
    assert refused.rule == "mount-source"
    assert "/srv/shown" in refused.sentence


@pytest.mark.parametrize("kind", ["ext4", "nfs4", "fuse.sshfs"])
def test_file_systems_that_may_not_answer_are_not_read(
    here: Environment, target: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    place = target.parent.parent / "mounted"
    place.mkdir()
    (place / "link").symlink_to(target)
    mounted(here, place, kind=kind)
    monkeypatch.setattr(rules, "SYSTEM_DIRECTORIES", frozenset({f"{place}/link"}))
    if kind == "ext4":
        assert refusal(target, here).rule == "system"
    else:
        assert check(str(target), here).path == str(target)


def test_what_is_on_a_file_system_that_may_not_answer_is_known_by_its_name(
    here: Environment, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounted(here, target.parent, kind="nfs4")
    monkeypatch.setattr(rules, "SYSTEM_DIRECTORIES", frozenset({str(target)}))
    assert refusal(target, here).rule == "system"


def test_a_target_is_compared_as_the_kernel_spells_it(
    here: Environment, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spelled = target.parent / "TARGET"
    mounted(here, spelled / "inside")

    def open_canonical(path: str, _: str, *, any_kind: bool) -> tuple[str, int]:
        assert not any_kind
        return str(spelled), os.open(path, os.O_PATH | os.O_DIRECTORY)

    monkeypatch.setattr("tui_fs.safety.rules.open_canonical", open_canonical)
    assert refusal(target, here).rule == "mount-inside"
