"""Who else can write: owners, modes, sticky directories, groups."""

import os
import stat
from pathlib import Path

import pytest

from tests.needs import needs_root
from tui_fs.linux.permissions import (
    others_may_replace,
    others_may_write,
    protects_new_entries,
    replaceable_part,
)

ME, OTHER = 1000, 1001


def directory(mode: int, uid: int = ME, gid: int = 65534) -> os.stat_result:
    """Give the status of a directory."""
    return os.stat_result((stat.S_IFDIR | mode, 1, 1, 2, uid, gid, 0, 0, 0, 0))


@pytest.mark.parametrize(
    ("status", "others"),
    [
        (directory(0o755), False),
        (directory(0o755, uid=0), False),
        (directory(0o755, uid=OTHER), True),
        (directory(0o000, uid=OTHER), True),  # its owner can change that
        (directory(0o777), True),
        (directory(0o1777, uid=0), True),
        (directory(0o775, gid=54321), True),  # a group nobody knows
        (directory(0o775, uid=0, gid=0), True),  # containers run any user in group 0
    ],
)
def test_others_may_write(status: os.stat_result, others: bool) -> None:
    assert others_may_write(status, 0 if status.st_gid == 0 else ME, "/") is others


@pytest.mark.parametrize(
    ("parent", "child", "others"),
    [
        (directory(0o755, uid=0), directory(0o777, uid=OTHER), False),
        (directory(0o1777, uid=0), directory(0o700), False),
        (directory(0o1777, uid=0), directory(0o700, uid=OTHER), True),
        (directory(0o777, uid=0), directory(0o700), True),
        (directory(0o1777, uid=OTHER), directory(0o700), True),
        (directory(0o755, uid=OTHER), directory(0o700, uid=0), True),
    ],
)
def test_others_may_replace(parent: os.stat_result, child: os.stat_result, others: bool) -> None:
    assert others_may_replace(parent, child, ME, "/") is others


def test_the_highest_replaceable_part_of_a_path_is_named(tmp_path: Path) -> None:
    needs_root("giving a directory away")
    theirs = tmp_path / "theirs"
    below = theirs / "a" / "b"
    below.mkdir(parents=True)
    assert replaceable_part(str(below), 0) is None
    os.chown(theirs, 65534, 65534)
    assert replaceable_part(str(below), 0) == str(theirs / "a")
    assert replaceable_part(str(theirs), 0) is None


def test_a_missing_part_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        replaceable_part(str(tmp_path / "gone"), os.getuid())


@pytest.mark.parametrize(
    ("status", "keeps"),
    [
        (directory(0o755), True),
        (directory(0o1777, uid=0), True),  # as /tmp
        (directory(0o777, uid=0), False),
        (directory(0o1777), True),
        (directory(0o755, uid=OTHER), False),
        (directory(0o1755, uid=OTHER), False),  # its owner can rename what others have made
    ],
)
def test_where_nobody_else_can_exchange_what_one_makes(status: os.stat_result, keeps: bool) -> None:
    assert protects_new_entries(status, ME, "/") is keeps
