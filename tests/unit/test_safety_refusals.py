"""Each rule that forbids a target, and how a confirmed directory is recognised again."""

import os
import pwd
from dataclasses import replace
from pathlib import Path

import pytest

from tests.needs import lacks
from tui_fs.linux.mounts import read_mounts
from tui_fs.linux.pins import take_pin
from tui_fs.model.errors import BadInput, Refused
from tui_fs.model.paths import PathStr
from tui_fs.model.target import Target
from tui_fs.safety.here import surroundings_here
from tui_fs.safety.refusals import (
    NAME_TYPED_ABOVE_ENTRIES,
    PROJECT_MARKS,
    SYSTEM_DIRECTORIES,
    Surroundings,
    check,
    check_again,
    name_must_be_typed,
)

ROOT_MOUNT = b"22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"


@pytest.fixture
def here(tmp_path: Path) -> Surroundings:
    """Give surroundings in which nobody stands anywhere and only the root is mounted."""
    table = tmp_path / "mountinfo"
    table.write_bytes(ROOT_MOUNT)
    return Surroundings(
        standing_in=PathStr(""),
        program=(),
        interpreter=(),
        state=PathStr(str(tmp_path / "state-of-jobs")),
        mountinfo=str(table),
    )


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """Give a directory that nothing forbids."""
    path = tmp_path / "place" / "target"
    path.mkdir(parents=True)
    return path


def mounted(here: Surroundings, point: str | Path, kind: str = "ext4", options: str = "rw") -> None:
    """Add a line to the mount table."""
    escaped = str(point).replace("\\", "\\134").replace(" ", "\\040").replace("\n", "\\012")
    with open(here.mountinfo, "a", encoding="utf-8", errors="surrogateescape") as table:
        table.write(f"50 22 0:50 / {escaped} {options} - {kind} source rw\n")


def refusal(path: str | Path, here: Surroundings) -> Refused:
    """Give the refusal of a target, which must be a sentence with an advice."""
    with pytest.raises(Refused) as refused:
        check(str(path), here)
    assert refused.value.sentence.endswith(".")
    assert refused.value.advice
    return refused.value


def test_an_ordinary_directory_is_pinned(target: Path, here: Surroundings) -> None:
    # Given a directory nothing forbids / When checked / Then it is a target with its pin
    assert check(str(target), here) == Target(PathStr(str(target)), take_pin(str(target)))


def test_trailing_slashes_do_not_matter(target: Path, here: Surroundings) -> None:
    # Given the same directory with slashes / When checked / Then the path is the same
    assert check(f"{target}//", here).path == str(target)


def test_a_relative_path_becomes_absolute(
    target: Path, here: Surroundings, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a name in the current directory / When checked / Then the whole path is the target
    monkeypatch.chdir(target.parent)
    assert check("target", here).path == str(target)


def test_symlinks_above_the_target_are_resolved(
    target: Path, here: Surroundings, tmp_path: Path
) -> None:
    # Given a path through a symlink / When checked / Then the target is its real path
    (tmp_path / "short").symlink_to(target.parent)
    assert check(str(tmp_path / "short" / "target"), here).path == str(target)


@pytest.mark.parametrize("name", [b"\xff\xfe", b"new\nline", b"-rf", b" ", b"a\\b", "…".encode()])
def test_any_name_can_be_a_target(here: Surroundings, tmp_path: Path, name: bytes) -> None:
    # Given a hostile name / When checked / Then it comes back byte for byte
    path = os.path.join(os.fsencode(tmp_path), name)
    os.mkdir(path)
    assert os.fsencode(check(os.fsdecode(path), here).path) == path


def test_two_dots_after_a_symlink_mean_what_the_kernel_means(
    here: Surroundings, tmp_path: Path
) -> None:
    # Given here/link -> other/sub, and a "victim" both in here and in other
    for path in ("here/victim", "other/sub", "other/victim"):
        (tmp_path / path).mkdir(parents=True)
    (tmp_path / "here" / "link").symlink_to(tmp_path / "other" / "sub")
    # When here/link/../victim is checked / Then it is the one rm -r would delete
    named = str(tmp_path / "here" / "link" / ".." / "victim")
    found = check(named, here)
    assert found.path == str(tmp_path / "other" / "victim")
    assert found.pin == take_pin(os.path.realpath(named))


@pytest.mark.parametrize("path", ["", "/tmp/a\0b", "/tmp/\ud800"])
def test_what_is_no_path_is_bad_input(here: Surroundings, path: str) -> None:
    # Given no path / When checked / Then it is bad input
    with pytest.raises(BadInput):
        check(path, here)


def test_what_is_not_there_is_bad_input(here: Surroundings, tmp_path: Path) -> None:
    # Given nothing / When checked / Then the sentence says so
    with pytest.raises(BadInput, match="does not exist"):
        check(str(tmp_path / "missing"), here)


@pytest.mark.parametrize("path", [".", "..", "./", "a/.", "a/..", "a/../", "/tmp/.."])
def test_a_directory_named_by_where_one_stands_is_refused(here: Surroundings, path: str) -> None:
    # Given . or .. at the end / When checked / Then refused
    assert refusal(path, here).rule == "dot"


@pytest.mark.parametrize("path", ["/", "//", "/" * 9])
def test_the_root_is_refused(here: Surroundings, path: str) -> None:
    # Given the root directory / When checked / Then refused
    assert refusal(path, here).rule == "system"


@pytest.mark.parametrize("path", sorted(SYSTEM_DIRECTORIES))
def test_directories_of_the_system_are_refused(here: Surroundings, path: str) -> None:
    # Given a directory of the system, however it is made here / When checked / Then refused
    if not os.path.lexists(path):
        with pytest.raises(BadInput):
            check(path, here)
        return
    assert refusal(path, here).rule == ("symlink" if os.path.islink(path) else "system")


def test_the_real_place_of_a_system_directory_is_refused(
    here: Surroundings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a system directory that is a symlink to another place
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    monkeypatch.setattr(
        "tui_fs.safety.refusals.SYSTEM_DIRECTORIES", frozenset({str(tmp_path / "link")})
    )
    # When that place is checked / Then it is refused too
    assert refusal(tmp_path / "real", here).rule == "system"


@pytest.mark.parametrize("slash", ["", "/"])
def test_a_symlink_is_refused_even_with_a_slash(
    here: Surroundings, target: Path, tmp_path: Path, slash: str
) -> None:
    # Given a symlink to a directory / When checked / Then refused, saying where it points
    (tmp_path / "link").symlink_to(target)
    refused = refusal(f"{tmp_path}/link{slash}", here)
    assert refused.rule == "symlink"
    assert str(target) in refused.sentence


@pytest.mark.parametrize("kind", ["file", "fifo"])
def test_what_is_no_directory_is_refused(here: Surroundings, tmp_path: Path, kind: str) -> None:
    # Given a file or a pipe / When checked / Then refused
    path = tmp_path / "x"
    path.touch() if kind == "file" else os.mkfifo(path)
    assert refusal(path, here).rule == "not-directory"


@pytest.mark.parametrize("below", ["", "sub", "sub/deeper"])
@pytest.mark.parametrize("whose", ["standing_in", "program", "state"])
def test_what_somebody_stands_on_is_refused(
    here: Surroundings, target: Path, below: str, whose: str
) -> None:
    # Given the current directory, the program or the jobs at or below the target
    place = PathStr(os.path.join(target, below))
    os.makedirs(place, exist_ok=True)
    around = {
        "standing_in": replace(here, standing_in=place),
        "program": replace(here, program=(PathStr("/nowhere"), place)),
        "state": replace(here, state=place),
    }[whose]
    # When checked / Then refused
    assert refusal(target, around).rule == "in-use"


def test_standing_in_the_target_through_a_symlink_is_refused(
    here: Surroundings, target: Path, tmp_path: Path
) -> None:
    # Given a person who stands in the target by another name / When checked / Then refused
    (tmp_path / "other").symlink_to(target)
    around = replace(here, standing_in=PathStr(str(tmp_path / "other")))
    assert refusal(target, around).rule == "in-use"


def test_standing_beside_a_target_of_a_shorter_name_is_allowed(
    here: Surroundings, target: Path
) -> None:
    # Given a person in "target2" / When "target" is checked / Then allowed
    beside = f"{target}2"
    os.mkdir(beside)
    assert check(str(target), replace(here, standing_in=PathStr(beside))).path == str(target)


def test_a_mount_point_is_refused(here: Surroundings, target: Path) -> None:
    # Given something mounted on the target / When checked / Then refused
    mounted(here, target)
    assert refusal(target, here).rule == "mount-point"


def test_a_mount_that_the_table_lacks_is_refused(here: Surroundings) -> None:
    # Given a real mount point that is missing in the table, so that only its pin betrays it
    real = [
        mount.mount_point
        for mount in read_mounts()
        if os.path.ismount(mount.mount_point) and mount.mount_point not in SYSTEM_DIRECTORIES
    ]
    places = [place for place in real if place != "/" and os.path.isdir(place)]
    if not places:
        lacks("no mount point besides those of the system; enable it with: mount -t tmpfs …")
    # When checked / Then refused
    assert refusal(places[0], here).rule == "mount-point"


@pytest.mark.parametrize("name", ["inside", "deep/er", "with blank", "new\nline", "back\\slash"])
def test_a_mount_inside_is_refused(here: Surroundings, target: Path, name: str) -> None:
    # Given a mount below the target / When checked / Then refused
    mounted(here, target / name)
    assert refusal(target, here).rule == "mount-inside"


def test_the_number_of_mounts_inside_is_told(here: Surroundings, target: Path) -> None:
    # Given three mounts below / When checked / Then the first is named and the others counted
    for name in "abc":
        mounted(here, target / name)
    assert "(and 2 more)" in refusal(target, here).sentence


def test_a_mount_beside_the_target_does_not_matter(here: Surroundings, target: Path) -> None:
    # Given a mount on a longer name / When checked / Then allowed
    mounted(here, f"{target}2")
    assert check(str(target), here).path == str(target)


def test_objects_of_the_kernel_are_refused(here: Surroundings, target: Path) -> None:
    # Given a target on a pseudo file system / When checked / Then refused
    mounted(here, target.parent, kind="cgroup2")
    assert refusal(target, here).rule == "pseudo"


def test_a_read_only_mount_is_refused(here: Surroundings, target: Path) -> None:
    # Given a target that is mounted read-only / When checked / Then refused
    mounted(here, target.parent, options="ro,nosuid")
    assert refusal(target, here).rule == "read-only"


def test_a_hostile_name_is_harmless_in_the_sentence(here: Surroundings, tmp_path: Path) -> None:
    # Given a name that would set the terminal's title / When refused / Then it is escaped
    (tmp_path / "\x1b]0;x\x07").touch()
    assert "\x1b" not in str(refusal(tmp_path / "\x1b]0;x\x07", here))


def test_an_unchanged_target_passes_again(here: Surroundings, target: Path) -> None:
    # Given a confirmed target / When checked again / Then nothing is said
    check_again(check(str(target), here), here)


def test_a_changed_content_is_no_change_of_the_target(here: Surroundings, target: Path) -> None:
    # Given a confirmed target in which files come and go / When checked again / Then it passes
    confirmed = check(str(target), here)
    (target / "new").mkdir()
    check_again(confirmed, here)


def test_a_replaced_target_is_refused(here: Surroundings, target: Path) -> None:
    # Given a confirmed target / When another directory takes its name / Then refused
    confirmed = check(str(target), here)
    target.rename(target.parent / "old")
    target.mkdir()
    with pytest.raises(Refused) as refused:
        check_again(confirmed, here)
    assert refused.value.rule == "changed"


def test_a_renamed_target_is_not_there_any_more(here: Surroundings, target: Path) -> None:
    # Given a confirmed target / When it is renamed / Then it is bad input
    confirmed = check(str(target), here)
    target.rename(target.parent / "old")
    with pytest.raises(BadInput):
        check_again(confirmed, here)


def test_a_target_replaced_by_a_symlink_to_it_is_refused(here: Surroundings, target: Path) -> None:
    # Given a confirmed target / When a symlink to it takes its name / Then refused
    confirmed = check(str(target), here)
    target.rename(target.parent / "old")
    target.symlink_to(target.parent / "old")
    with pytest.raises(Refused) as refused:
        check_again(confirmed, here)
    assert refused.value.rule == "symlink"


def test_a_parent_replaced_by_a_symlink_is_refused(here: Surroundings, target: Path) -> None:
    # Given a confirmed target / When its parent becomes a symlink to the same / Then refused
    confirmed = check(str(target), here)
    moved = target.parent.parent / "moved"
    target.parent.rename(moved)
    target.parent.symlink_to(moved)
    with pytest.raises(Refused) as refused:
        check_again(confirmed, here)
    assert refused.value.rule == "changed"


def test_a_mount_that_came_since_is_refused(here: Surroundings, target: Path) -> None:
    # Given a confirmed target / When something is mounted inside / Then refused
    confirmed = check(str(target), here)
    mounted(here, target / "usb")
    with pytest.raises(Refused) as refused:
        check_again(confirmed, here)
    assert refused.value.rule == "mount-inside"


def test_a_mount_over_an_equal_inode_is_refused(here: Surroundings, target: Path) -> None:
    # Given a pin whose mount differs, as when the place was mounted over / When compared
    confirmed = check(str(target), here)
    other = replace(confirmed, pin=replace(confirmed.pin, mount_id=confirmed.pin.mount_id + 1))
    # Then refused
    with pytest.raises(Refused) as refused:
        check_again(other, here)
    assert refused.value.rule == "changed"


def test_a_small_ordinary_target_needs_no_name(target: Path) -> None:
    # Given few entries / When asked / Then yes or no is enough
    assert name_must_be_typed(str(target), NAME_TYPED_ABOVE_ENTRIES) is None


def test_a_large_target_is_typed_by_name(target: Path) -> None:
    # Given one entry more than the limit / When asked / Then the name must be typed
    reason = name_must_be_typed(str(target), NAME_TYPED_ABOVE_ENTRIES + 1)
    assert reason is not None
    assert f"{NAME_TYPED_ABOVE_ENTRIES:,}" in reason


@pytest.mark.parametrize("mark", sorted(PROJECT_MARKS))
def test_somebodys_work_is_typed_by_name(target: Path, mark: str) -> None:
    # Given a directory that looks like a project / When asked / Then the name must be typed
    (target / mark).touch()
    assert mark in (name_must_be_typed(str(target), 2) or "")


def test_a_home_is_typed_by_name(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given an account that lives in the target
    account = pwd.struct_passwd(("ada", "x", 1, 1, "", f"{target}/", "/bin/sh"))
    monkeypatch.setattr(pwd, "getpwall", lambda: [account])
    # When asked / Then the reason names the account
    assert name_must_be_typed(str(target), 1) == "it is the home of ada"


def test_what_cannot_be_looked_into_is_typed_by_name(
    target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a directory that may not be listed / When asked / Then the name must be typed
    def refuse(_: str) -> list[str]:
        raise PermissionError

    monkeypatch.setattr(os, "listdir", refuse)
    assert name_must_be_typed(str(target), 1) == "it cannot be looked into"


def test_the_surroundings_of_this_process_hold_its_program(tmp_path: Path) -> None:
    # Given this process / When asked / Then where it stands and what it runs from are known
    around = surroundings_here(str(tmp_path))
    assert (around.standing_in, around.state) == (os.getcwd(), str(tmp_path))
    assert os.path.dirname(os.path.realpath(os.__file__)).startswith(
        tuple(os.path.realpath(place) for place in around.program)
    )


def test_a_current_directory_that_is_gone_counts_as_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a process whose current directory was removed
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    # When asked / Then it stands nowhere
    assert surroundings_here("/state").standing_in == ""


def test_the_place_of_another_person_can_be_given(tmp_path: Path) -> None:
    # Given where the person stood / When asked by the supervisor / Then that counts
    assert surroundings_here("/state", str(tmp_path)).standing_in == str(tmp_path)


@pytest.mark.parametrize("below", ["", "inside"])
@pytest.mark.parametrize("whose", ["program", "state"])
def test_nothing_inside_the_program_or_the_jobs_may_go(
    here: Surroundings, target: Path, whose: str, below: str
) -> None:
    # Given a place of which everything must stay / When it or a part is checked / Then refused
    inside = target / below
    inside.mkdir(exist_ok=True)
    place = PathStr(str(target))
    around = {
        "program": replace(here, program=(place,)),
        "state": replace(here, state=place),
    }[whose]
    assert refusal(inside, around).rule == "in-use"


@pytest.mark.parametrize("whose", ["standing_in", "interpreter"])
def test_what_only_holds_other_things_besides_may_lose_a_part(
    here: Surroundings, target: Path, whose: str
) -> None:
    # Given a person or an interpreter above the target / When it is checked / Then allowed
    place = PathStr(str(target.parent))
    around = {
        "standing_in": replace(here, standing_in=place),
        "interpreter": replace(here, interpreter=(place,)),
    }[whose]
    assert check(str(target), around).path == str(target)


def test_the_interpreter_itself_is_refused(here: Surroundings, target: Path) -> None:
    # Given an interpreter below the target / When it is checked / Then refused
    (target / "bin").mkdir()
    around = replace(here, interpreter=(PathStr(str(target / "bin")),))
    assert refusal(target, around).rule == "in-use"


def test_a_system_directory_under_another_name_is_refused(
    here: Surroundings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given two names of one directory, as a bind mount gives them (here: said by stat)
    (tmp_path / "system" / "below").mkdir(parents=True)
    (tmp_path / "alias").mkdir()
    monkeypatch.setattr(
        "tui_fs.safety.refusals.SYSTEM_DIRECTORIES", frozenset({f"{tmp_path}/system/below"})
    )
    real = os.stat

    def stat(path: str) -> os.stat_result:
        return real(tmp_path / "alias" if path == f"{tmp_path}/system" else path)

    # When the other name is checked / Then refused, as it holds a system directory
    with monkeypatch.context() as during:
        during.setattr(os, "stat", stat)
        refused = refusal(tmp_path / "alias", here)
    assert refused.rule == "alias"


def test_what_is_mounted_elsewhere_is_refused(here: Surroundings, target: Path) -> None:
    # Given a part of the target that is bind-mounted at another place
    with open(here.mountinfo, "a", encoding="utf-8") as table:
        table.write(f"51 22 8:1 {target}/part /srv/shown rw - ext4 /dev/sda1 rw\n")
    # When checked / Then refused: it would vanish there too
    refused = refusal(target, here)
    assert refused.rule == "mount-source"
    assert "/srv/shown" in refused.sentence


def test_the_same_path_on_another_device_does_not_matter(here: Surroundings, target: Path) -> None:
    # Given another file system, of which the same path is mounted / When checked / Then allowed
    with open(here.mountinfo, "a", encoding="utf-8") as table:
        table.write(f"51 22 8:2 {target} /srv/shown rw - ext4 /dev/sda2 rw\n")
    assert check(str(target), here).path == str(target)
