"""The path to a directory leads only through links that the user and root can change."""

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.acl import NAMED_USER, grant
from tests.conftest import open_descriptors
from tests.needs import needs_root
from tui_fs.linux import resolve_path
from tui_fs.linux.pins import pin_of
from tui_fs.linux.resolve_path import canonical, open_canonical, resolve
from tui_fs.model.errors import Refused
from tui_fs.model.target import Pin

DAEMON, OTHER = 1, 65534


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Return a directory with links of every kind in it."""
    make_links(tmp_path)
    return tmp_path


def make_links(top: Path) -> None:
    """Fill a directory with directories and links of every kind."""
    (top / "a" / "b").mkdir(parents=True)
    (top / "c").mkdir()
    (top / "to-b").symlink_to("a/b")
    (top / "whole").symlink_to(top / "a")
    (top / "a" / "up").symlink_to("..")
    (top / "twice").symlink_to("to-b/../up/c")


@settings(max_examples=200)
@given(st.lists(st.sampled_from(["a", "b", "c", "up", "to-b", "whole", "twice", ".", "..", ""])))
@pytest.mark.slow
def test_the_way_is_the_one_that_the_kernel_takes(names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        top = Path(os.path.realpath(directory))
        make_links(top)
        path = "/".join([str(top), *names])
        try:
            expected = os.path.realpath(path, strict=True)
        except OSError:
            with pytest.raises(OSError):
                resolve(path)
        else:
            assert resolve(path) == expected


def test_a_relative_way_begins_here(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    assert resolve("to-b/..") == str(place / "a")
    assert resolve(".") == str(place)


def test_links_in_circles_are_an_error(place: Path) -> None:
    (place / "one").symlink_to("two")
    (place / "two").symlink_to("one")
    with pytest.raises(OSError, match="Too many levels"):
        resolve(str(place / "one"))


def test_a_link_put_in_place_after_the_text_was_read_is_refused(place: Path) -> None:
    # The path of a directory without links, and a link that leads to another one since
    by_text = str(place / "a" / "b")
    (place / "c" / "b").mkdir()
    (place / "moved").symlink_to("c")
    with pytest.raises(Refused, match="are different directories") as refused:
        open_canonical(str(place / "moved" / "b"), by_text)
    assert refused.value.rule == "path"
    # And a link in the text itself is followed to nothing
    with pytest.raises(Refused):
        open_canonical(str(place / "moved" / "b"), str(place / "moved" / "b"))


def test_a_directory_removed_while_it_is_opened_is_gone_rather_than_another(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    removed = place / "c"

    def removed_meanwhile(descriptor: int) -> Pin:
        pin = pin_of(descriptor)
        removed.rmdir()
        return pin

    monkeypatch.setattr(resolve_path, "pin_of", removed_meanwhile)
    with pytest.raises(FileNotFoundError):
        open_canonical(str(removed), str(removed))


@pytest.mark.parametrize("whose", ["the link", "the directory"])
def test_a_link_that_another_user_can_change_is_refused(place: Path, whose: str) -> None:
    # A link of another user, or root's link in another user's directory
    needs_root("giving a link away")
    if whose == "the link":
        os.lchown(place / "to-b", OTHER, OTHER)
    else:
        os.chown(place, OTHER, OTHER)
    with pytest.raises(Refused, match="to-b is a symbolic link") as refused:
        resolve(str(place / "to-b"))
    assert refused.value.rule == "symlink"
    # And the path without it is accepted
    assert resolve(str(place / "a" / "b")) == str(place / "a" / "b")


def test_a_link_in_a_directory_that_an_acl_opens_is_refused(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_root("giving a link away")
    monkeypatch.setattr(os, "geteuid", lambda: DAEMON)
    os.chown(place, 0, DAEMON)
    place.chmod(0o775)
    assert resolve(str(place / "to-b")) == str(place / "a" / "b")
    grant(place, NAMED_USER, OTHER)
    with pytest.raises(Refused, match="to-b is a symbolic link"):
        resolve(str(place / "to-b"))


def test_no_descriptor_is_left_open(place: Path) -> None:
    before = open_descriptors()
    resolve(str(place / "twice"))
    with pytest.raises(OSError):
        resolve(str(place / "a" / "gone"))
    assert open_descriptors() == before


NAMES = ["a", "b", "c", "up", "to-b", "whole", "twice", "absent", ".", "..", ""]


@settings(max_examples=200)
@given(st.lists(st.sampled_from(NAMES)))
@pytest.mark.slow
def test_what_may_be_absent_is_resolved_as_python_does(names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        top = Path(directory)
        make_links(top)
        way = "/".join([directory, *names])
        assert canonical(way, ("/nowhere/else",)) == os.path.realpath(way)


def test_a_link_to_itself_ends(place: Path) -> None:
    (place / "round").symlink_to("round")
    assert canonical(f"{place}/round/x", ("/nowhere/else",)) == f"{place}/round/x"


@pytest.mark.parametrize(
    ("written", "resolved"),
    [
        ("a/up/c", "a/up/c"),  # the link in the silent place is not read
        ("whole/up/../c", "a/c"),
        ("a/../c", "c"),
        ("to-b/../../c", "c"),
        ("a", "a"),
        ("c/x", "c/x"),
    ],
)
def test_what_lies_in_a_silent_place_is_taken_as_it_is_written(
    place: Path, written: str, resolved: str
) -> None:
    canonical_path = canonical(f"{place}/{written}", (f"{place}/a",))
    # Only the components before it were read
    assert canonical_path == f"{place}/{resolved}"
