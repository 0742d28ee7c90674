"""Which paths are targets, and which are refused for what they name."""

import os
from pathlib import Path

import pytest

from tests.unit.targets import here, refusal, target
from tui_fs.linux.pins import take_pin
from tui_fs.model.errors import BadInput
from tui_fs.model.paths import PathStr
from tui_fs.model.target import Target
from tui_fs.safety.rules import (
    SYSTEM_DIRECTORIES,
    Environment,
    check,
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
