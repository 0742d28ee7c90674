"""Access control lists: who may write by name, and what follows from it."""

import errno
import os
from pathlib import Path

import pytest

from tests.acl import NAMED_GROUP, NAMED_USER, acl, grant
from tests.needs import needs_root
from tui_fs.linux.permissions import (
    NamedWriters,
    named_writers,
    others_may_write,
    parse,
    protects_new_entries,
    replaceable_part,
)

DAEMON, NOBODY = 1, 65534
"""`daemon` has a private group of the same number; every distribution has both users."""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Give a directory of daemon's that its private group may write in."""
    needs_root("giving directories away")
    tmp_path.chmod(0o755)
    made = tmp_path / "daemons"
    made.mkdir()
    os.chown(made, DAEMON, DAEMON)
    made.chmod(0o775)
    return made


def is_open(directory: Path) -> bool:
    """Ask for daemon."""
    return others_may_write(os.lstat(directory), DAEMON, str(directory))


@pytest.mark.parametrize(
    ("tag", "identifier", "permissions", "mask", "expected"),
    [
        (NAMED_USER, NOBODY, 7, 7, True),
        (NAMED_USER, NOBODY, 5, 7, False),
        (NAMED_USER, NOBODY, 7, 5, False),
        (NAMED_USER, DAEMON, 7, 7, False),
        (NAMED_USER, 0, 7, 7, False),
        (NAMED_GROUP, NOBODY, 7, 7, True),
        (NAMED_GROUP, 0, 7, 7, True),
        (NAMED_GROUP, DAEMON, 7, 7, False),
    ],
)
def test_a_named_entry_with_write_access_counts(
    directory: Path, tag: int, identifier: int, permissions: int, mask: int, expected: bool
) -> None:
    assert not is_open(directory)
    grant(directory, tag, identifier, permissions, mask)
    # Others may write only if an entry grants it to them and the mask permits it
    assert is_open(directory) is expected
    status = os.lstat(directory)
    assert protects_new_entries(status, DAEMON, str(directory)) is not expected
    # And they may replace what is in it
    (directory / "below").mkdir()
    part = str(directory / "below") if expected else None
    sticky_above = replaceable_part(str(directory), DAEMON)
    assert sticky_above is None
    assert replaceable_part(str(directory / "below"), DAEMON) == part


@pytest.mark.parametrize(
    ("number", "expected"),
    [(errno.ENODATA, False), (errno.EOPNOTSUPP, False), (errno.EIO, True), (errno.EACCES, True)],
)
def test_a_list_that_cannot_be_read_is_assumed_to_grant_write_access(
    directory: Path, monkeypatch: pytest.MonkeyPatch, number: int, expected: bool
) -> None:
    def getxattr(*_: object, **__: object) -> bytes:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "getxattr", getxattr)
    # Only "there is none" means none
    assert is_open(directory) is expected


def test_the_list_of_a_descriptor_is_read(directory: Path) -> None:
    grant(directory, NAMED_USER, NOBODY)
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        assert named_writers(descriptor) == NamedWriters((NOBODY,), ())
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("value", [b"", b"\x02", b"\x03\0\0\0", acl(NAMED_USER, 1)[:-1]])
def test_a_malformed_list_is_unknown(value: bytes) -> None:
    assert parse(value) is None
