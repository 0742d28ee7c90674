"""Which targets may not be deleted: system directories, links, mounts, and what is in use."""

import os
import pwd
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.needs import lacks
from tests.unit.targets import ROOT_ID, here, mounted, refusal, target
from tui_fs.linux.mounts import read_mounts
from tui_fs.linux.pins import take_pin
from tui_fs.model.errors import BadInput, Refused
from tui_fs.model.paths import PathStr
from tui_fs.model.target import Target
from tui_fs.safety import rules
from tui_fs.safety.environment import current_environment
from tui_fs.safety.rules import (
    NAME_TYPED_ABOVE_ENTRIES,
    PROJECT_MARKS,
    SYSTEM_DIRECTORIES,
    Environment,
    Homes,
    check,
    check_again,
    name_must_be_typed,
)

__all__ = ["here", "target"]


def test_an_ordinary_directory_is_pinned(target: Path, here: Environment) -> None:
    assert check(str(target), here) == Target(PathStr(str(target)), take_pin(str(target)))


def test_trailing_slashes_do_not_matter(target: Path, here: Environment) -> None:
    assert check(f"{target}//", here).path == str(target)


def test_a_relative_path_becomes_absolute(
    target: Path, here: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(target.parent)
    assert check("target", here).path == str(target)


def test_symlinks_above_the_target_are_resolved(
    target: Path, here: Environment, tmp_path: Path
) -> None:
    (tmp_path / "short").symlink_to(target.parent)
    assert check(str(tmp_path / "short" / "target"), here).path == str(target)


@pytest.mark.parametrize("name", [b"\xff\xfe", b"new\nline", b"-rf", b" ", b"a\\b", "…".encode()])
def test_any_name_can_be_a_target(here: Environment, tmp_path: Path, name: bytes) -> None:
    path = os.path.join(os.fsencode(tmp_path), name)
    os.mkdir(path)
    assert os.fsencode(check(os.fsdecode(path), here).path) == path


def test_two_dots_after_a_symlink_mean_what_the_kernel_means(
    here: Environment, tmp_path: Path
) -> None:
    for path in ("here/victim", "other/sub", "other/victim"):
        (tmp_path / path).mkdir(parents=True)
    (tmp_path / "here" / "link").symlink_to(tmp_path / "other" / "sub")
    named = str(tmp_path / "here" / "link" / ".." / "victim")
    checked = check(named, here)
    assert checked.path == str(tmp_path / "other" / "victim")
    assert checked.pin == take_pin(os.path.realpath(named))


@pytest.mark.parametrize("path", ["", "/tmp/a\0b", "/tmp/\ud800"])
def test_what_is_no_path_is_bad_input(here: Environment, path: str) -> None:
    with pytest.raises(BadInput):
        check(path, here)


def test_what_is_not_there_is_bad_input(here: Environment, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="does not exist"):
        check(str(tmp_path / "missing"), here)


@pytest.mark.parametrize("path", [".", "..", "./", "a/.", "a/..", "a/../", "/tmp/.."])
def test_a_directory_named_by_the_current_directory_is_refused(
    here: Environment, path: str
) -> None:
    assert refusal(path, here).rule == "dot"


@pytest.mark.parametrize("path", ["/", "//", "/" * 9])
def test_the_root_is_refused(here: Environment, path: str) -> None:
    assert refusal(path, here).rule == "system"


@pytest.mark.parametrize("path", sorted(SYSTEM_DIRECTORIES))
def test_directories_of_the_system_are_refused(here: Environment, path: str) -> None:
    if not os.path.lexists(path):
        with pytest.raises(BadInput):
            check(path, here)
        return
    assert refusal(path, here).rule == ("symlink" if os.path.islink(path) else "system")


def test_the_real_place_of_a_system_directory_is_refused(
    here: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    monkeypatch.setattr(
        "tui_fs.safety.rules.SYSTEM_DIRECTORIES", frozenset({str(tmp_path / "link")})
    )
    assert refusal(tmp_path / "real", here).rule == "system"


@pytest.mark.parametrize("slash", ["", "/"])
def test_a_symlink_is_refused_even_with_a_slash(
    here: Environment, target: Path, tmp_path: Path, slash: str
) -> None:
    (tmp_path / "link").symlink_to(target)
    refused = refusal(f"{tmp_path}/link{slash}", here)
    assert refused.rule == "symlink"
    assert str(target) in refused.sentence


@pytest.mark.parametrize("kind", ["file", "fifo"])
def test_what_is_no_directory_is_refused(here: Environment, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x"
    path.touch() if kind == "file" else os.mkfifo(path)
    assert refusal(path, here).rule == "not-directory"


def test_a_hostile_name_is_harmless_in_the_sentence(here: Environment, tmp_path: Path) -> None:
    (tmp_path / "\x1b]0;x\x07").touch()
    assert "\x1b" not in str(refusal(tmp_path / "\x1b]0;x\x07", here))


def test_a_system_directory_under_another_name_is_refused(
    here: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Two names of one directory, as with a bind mount (simulated by stat here)
    (tmp_path / "system" / "below").mkdir(parents=True)
    (tmp_path / "alias").mkdir()
    monkeypatch.setattr(
        "tui_fs.safety.rules.SYSTEM_DIRECTORIES", frozenset({f"{tmp_path}/system/below"})
    )
    real = os.stat

    def stat(path: str) -> os.stat_result:
        return real(tmp_path / "alias" if path == f"{tmp_path}/system" else path)

    with monkeypatch.context() as during:
        during.setattr(os, "stat", stat)
        refused = refusal(tmp_path / "alias", here)
    assert refused.rule == "alias"


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


def environment(here: Environment, place: str | Path, whose: str) -> Environment:
    """Return an environment in which this place is the current directory, or is needed."""
    path = PathStr(str(place))
    field = (PathStr("/nowhere"), path) if whose in ("program", "interpreter") else path
    return replace(here, **{whose: field})


@pytest.mark.parametrize("below", ["", "sub", "sub/deeper"])
@pytest.mark.parametrize("whose", ["standing_in", "program", "interpreter", "state"])
def test_a_directory_that_holds_what_is_in_use_is_refused(
    here: Environment, target: Path, below: str, whose: str
) -> None:
    place = target / below
    place.mkdir(parents=True, exist_ok=True)
    assert refusal(target, environment(here, place, whose)).rule == "in-use"


def test_standing_in_the_target_through_a_symlink_is_refused(
    here: Environment, target: Path, tmp_path: Path
) -> None:
    (tmp_path / "other").symlink_to(target)
    around = environment(here, tmp_path / "other", "standing_in")
    assert refusal(target, around).rule == "in-use"


def test_the_surroundings_of_this_process_hold_its_program(tmp_path: Path) -> None:
    around = current_environment(str(tmp_path))
    assert (around.standing_in, around.state) == (os.getcwd(), str(tmp_path))
    assert os.path.dirname(os.path.realpath(os.__file__)).startswith(
        tuple(os.path.realpath(place) for place in around.program)
    )


def test_the_libraries_of_this_process_may_not_go(tmp_path: Path) -> None:
    (libc,) = {
        line.split()[-1]
        for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
        if "/libc.so" in line or "/libc-" in line
    }
    assert os.path.dirname(libc) in current_environment(str(tmp_path)).interpreter


def test_a_current_directory_that_is_gone_counts_as_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert current_environment("/state").standing_in == ""


def test_the_place_of_another_person_can_be_given(tmp_path: Path) -> None:
    assert current_environment("/state", str(tmp_path)).standing_in == str(tmp_path)


@pytest.mark.parametrize("below", ["", "inside"])
@pytest.mark.parametrize("whose", ["program", "state"])
def test_nothing_inside_the_program_or_the_jobs_may_go(
    here: Environment, target: Path, whose: str, below: str
) -> None:
    inside = target / below
    inside.mkdir(exist_ok=True)
    assert refusal(inside, environment(here, target, whose)).rule == "in-use"


@pytest.mark.parametrize(
    ("whose", "place"),
    [("standing_in", ".."), ("interpreter", ".."), ("standing_in", "../target2")],
)
def test_what_only_lies_above_or_beside_may_lose_a_part(
    here: Environment, target: Path, whose: str, place: str
) -> None:
    path = os.path.normpath(target / place)
    os.makedirs(path, exist_ok=True)
    assert check(str(target), environment(here, path, whose)).path == str(target)


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
