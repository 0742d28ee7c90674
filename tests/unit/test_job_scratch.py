"""The scratch directory next to a target is removed, and nothing else with it."""

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.acl import NAMED_USER, grant
from tests.needs import needs_root
from tests.trees import Sentinel, flat, manifest
from tests.unit.scratching import (
    NOBODY,
    STRUCK_AT,
    above,
    fill,
    made_in,
    only_scratch,
    read_record,
    record_of,
    records,
    scratches,
    sentinel,
    struck,
)
from tui_fs.job.scratch import PREFIX, Scratch, place_beside
from tui_fs.model.errors import Refused

__all__ = ["above", "records", "sentinel"]


def test_it_is_empty_private_and_recorded(above: Path, records: Path) -> None:
    scratch = made_in(above)
    path = only_scratch(above)
    status = path.stat()
    assert status.st_mode & 0o7777 == 0o700
    assert os.listdir(path) == []
    assert os.path.samestat(os.fstat(scratch.descriptor), status)
    record = read_record(record_of(records))
    assert record["path"] == str(path)
    assert (record["device"], record["inode"]) == (status.st_dev, status.st_ino)
    assert record_of(records).stat().st_mode & 0o777 == 0o600
    assert records.stat().st_mode & 0o777 == 0o700
    scratch.remove()


def test_it_goes_with_all_that_is_in_it_and_nothing_else(
    above: Path, sentinel: Sentinel, records: Path
) -> None:
    before = manifest(above / "target")
    scratch = made_in(above)
    fill(scratch)
    sentinel.plant(only_scratch(above) / "planted")
    scratch.remove()
    scratch.remove()
    assert scratches(above) == []
    assert list(records.iterdir()) == []
    assert manifest(above / "target") == before
    sentinel.assert_whole()


def test_no_descriptor_is_inherited_by_a_program(above: Path) -> None:
    scratch = made_in(above)
    mine = {
        number
        for number in map(int, os.listdir("/proc/self/fd"))
        if _leads_to(number, (str(above), "scratch"))
    }
    assert scratch.descriptor in mine
    assert not any(os.get_inheritable(number) for number in mine)
    scratch.remove()


def _leads_to(number: int, places: tuple[str, ...]) -> bool:
    with suppress(OSError):
        return any(place in os.readlink(f"/proc/self/fd/{number}") for place in places)
    return False


def test_two_at_once_do_not_disturb_each_other(above: Path, records: Path) -> None:
    first, second = made_in(above), made_in(above)
    assert len(scratches(above)) == len(list(records.iterdir())) == 2
    first.remove()
    assert os.path.samestat(os.fstat(second.descriptor), only_scratch(above).stat())
    second.remove()


def test_what_was_renamed_away_is_emptied_where_it_is(
    above: Path, sentinel: Sentinel, records: Path
) -> None:
    scratch = made_in(above)
    fill(scratch)
    path = only_scratch(above)
    path.rename(above / "moved")
    path.symlink_to(sentinel.root)
    scratch.remove()
    assert os.listdir(above / "moved") == []
    assert path.is_symlink()
    assert list(records.iterdir()) == []
    sentinel.assert_whole()


@pytest.mark.parametrize("is_empty", [False, True])
def test_another_directory_in_its_place_stays(
    above: Path, sentinel: Sentinel, is_empty: bool
) -> None:
    scratch = made_in(above)
    path = only_scratch(above)
    path.rename(above / "moved")
    if is_empty:
        path.mkdir(mode=0o700)
    else:
        sentinel.root.rename(path)
    scratch.remove()
    assert path.is_dir()
    if not is_empty:
        path.rename(sentinel.root)
    sentinel.assert_whole()


def _refuse_to_open(monkeypatch: pytest.MonkeyPatch, exchange: Callable[[Path], None]) -> None:
    """Exchange what was made in the moment before it is opened."""
    real = os.open

    def exchanged(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if str(path).startswith(PREFIX) and dir_fd is not None:
            exchange(Path(os.readlink(f"/proc/self/fd/{dir_fd}"), path))
        return real(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", exchanged)


def _by_a_link(path: Path) -> None:
    path.rename(path.parent / "moved")
    path.symlink_to(path.parent / "sentinel")


def _by_a_full_one(path: Path) -> None:
    path.rmdir()
    (path.parent / "sentinel").chmod(0o700)
    (path.parent / "sentinel").rename(path)


def _by_one_of_another_mode(path: Path) -> None:
    path.rmdir()
    path.mkdir()
    path.chmod(0o755)


def _by_one_of_another_owner(path: Path) -> None:
    needs_root("giving a directory away")
    os.chown(path, NOBODY, NOBODY)


@pytest.mark.parametrize(
    "exchange", (_by_a_link, _by_a_full_one, _by_one_of_another_mode, _by_one_of_another_owner)
)
def test_what_was_exchanged_before_it_was_open_is_not_used(
    above: Path, monkeypatch: pytest.MonkeyPatch, exchange: Callable[[Path], None]
) -> None:
    flat(above / "sentinel", 3)
    files = {path.name for path in (above / "sentinel").iterdir()}
    with monkeypatch.context() as changed, pytest.raises((Refused, OSError)):
        _refuse_to_open(changed, exchange)
        made_in(above)
    paths = {path.name for path in above.rglob("file-*") if "target" not in path.parts}
    assert paths == files


def test_another_file_system_is_refused(above: Path) -> None:
    with pytest.raises(Refused):
        Scratch(str(above), above.stat().st_dev + 1)
    assert scratches(above) == []


def test_a_place_that_is_gone_is_an_error(above: Path) -> None:
    (above / "file").touch()
    (above / "link").symlink_to(above)
    for name in ("nowhere", "file", "link"):
        with pytest.raises(OSError, match=r"No such|Not a dir|symbolic"):
            made_in_place(above / name, above)


def made_in_place(place: Path, above: Path) -> Scratch:
    """Make one at a place that is none."""
    return Scratch(str(place), above.stat().st_dev)


@pytest.mark.parametrize("call", STRUCK_AT)
@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "No space left on device"), SystemExit(1), KeyboardInterrupt()]
)
def test_what_could_not_be_finished_is_taken_back(
    above: Path, monkeypatch: pytest.MonkeyPatch, call: str, error: BaseException
) -> None:
    def fail() -> None:
        raise error

    with struck(monkeypatch, call, fail), pytest.raises(type(error)):
        made_in(above)
    assert scratches(above) == []


def test_no_scratch_is_made_where_an_acl_grants_write(above: Path) -> None:
    assert place_beside(str(above / "target")) == str(above)
    grant(above, NAMED_USER, 65534)
    assert place_beside(str(above / "target")) != str(above)
    with pytest.raises(Refused, match="replace directories made"):
        made_in(above)
    assert scratches(above) == []


def test_a_state_directory_that_others_may_change_is_refused(above: Path, records: Path) -> None:
    records.mkdir(parents=True)
    records.chmod(0o777)
    with pytest.raises(Refused, match="not private to you"):
        made_in(above)
    assert scratches(above) == []
