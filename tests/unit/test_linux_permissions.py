"""Who may write, replace and read: modes, access control lists, capabilities."""

import errno
import os
import stat
from pathlib import Path

import pytest

from tests.acl import NAMED_GROUP, NAMED_USER, acl, grant
from tests.needs import needs_root
from tui_fs.linux.permissions import (
    Capability,
    NamedWriters,
    missing_capabilities,
    named_writers,
    others_may_replace,
    others_may_write,
    parse,
    protects_new_entries,
    replaceable_part,
    user_namespace,
)

ME, OTHER = 1000, 1001


def status_of(mode: int, uid: int = ME, gid: int = 65534) -> os.stat_result:
    """Return the status of a directory."""
    return os.stat_result((stat.S_IFDIR | mode, 1, 1, 2, uid, gid, 0, 0, 0, 0))


@pytest.mark.parametrize(
    ("status", "others"),
    [
        (status_of(0o755), False),
        (status_of(0o755, uid=0), False),
        (status_of(0o755, uid=OTHER), True),
        (status_of(0o000, uid=OTHER), True),  # its owner can change that
        (status_of(0o777), True),
        (status_of(0o1777, uid=0), True),
        (status_of(0o775, gid=54321), True),  # an unknown group
        (status_of(0o775, uid=0, gid=0), True),  # containers run any user in group 0
    ],
)
def test_others_may_write(status: os.stat_result, others: bool) -> None:
    assert others_may_write(status, 0 if status.st_gid == 0 else ME, "/") is others


@pytest.mark.parametrize(
    ("parent", "child", "others"),
    [
        (status_of(0o755, uid=0), status_of(0o777, uid=OTHER), False),
        (status_of(0o1777, uid=0), status_of(0o700), False),
        (status_of(0o1777, uid=0), status_of(0o700, uid=OTHER), True),
        (status_of(0o777, uid=0), status_of(0o700), True),
        (status_of(0o1777, uid=OTHER), status_of(0o700), True),
        (status_of(0o755, uid=OTHER), status_of(0o700, uid=0), True),
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
        (status_of(0o755), True),
        (status_of(0o1777, uid=0), True),  # as /tmp
        (status_of(0o777, uid=0), False),
        (status_of(0o1777), True),
        (status_of(0o755, uid=OTHER), False),
        (status_of(0o1755, uid=OTHER), False),  # its owner can rename what others have made
    ],
)
def test_where_no_other_user_can_exchange_what_one_makes(
    status: os.stat_result, keeps: bool
) -> None:
    assert protects_new_entries(status, ME, "/") is keeps


DAEMON, NOBODY = 1, 65534
"""`daemon` has a private group of the same number; every distribution has both users."""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Return a directory of daemon's that its private group may write in."""
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


def test_capabilities_are_read_bit_by_bit(tmp_path: Path) -> None:
    # The status of a process in a usual container, and one without that line
    status = tmp_path / "status"
    status.write_text("Name:\tx\nCapPrm:\tffffffffffffffff\nCapEff:\t00000000a80425fb\n")
    asked = (Capability.DAC_OVERRIDE, Capability.SYS_ADMIN, Capability.PERFMON)
    missing = missing_capabilities(*asked, status=str(status))
    assert missing == (Capability.SYS_ADMIN, Capability.PERFMON)
    status.write_text("Name:\tx\n")
    assert missing_capabilities(*asked, status=str(status)) == asked


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("         0          0 4294967295\n", None),
        ("         0       1000          1\n", "0 1000 1"),
        ("0 0 1\n", "0 0 1"),
        ("0 100000 65536\n65536 1000 1\n", "0 100000 65536, 65536 1000 1"),
        ("", "empty"),
    ],
)
def test_a_user_namespace_is_known_by_its_mapping(
    tmp_path: Path, content: str, expected: str | None
) -> None:
    (tmp_path / "uid_map").write_text(content)
    assert user_namespace(str(tmp_path / "uid_map")) == expected
    assert user_namespace(str(tmp_path / "missing")) is None
