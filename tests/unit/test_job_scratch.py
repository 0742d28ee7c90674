"""The scratch directory next to a target, or what a killed process left of it, is removed alone."""

import errno
import fcntl
import json
import os
import resource
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.acl import NAMED_USER, grant
from tests.filesystems import remove_tree
from tests.needs import needs_root
from tests.trees import Sentinel, chain, flat, manifest, many_directories
from tests.unit.scratching import (
    NOBODY,
    STRUCK_AT,
    above,
    clear_away,
    fill,
    in_child,
    leave_behind,
    made_in,
    only_scratch,
    read_record,
    record_of,
    records,
    scratches,
    sentinel,
    struck,
)
from tui_fs.job.scratch import PREFIX, Scratch, place_beside, remove_left_over
from tui_fs.linux.mount_namespaces import mount_tmpfs, own_mounts
from tui_fs.model.codec import encode
from tui_fs.model.errors import Refused
from tui_fs.model.host import Host

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


def change_record(records: Path, **fields: object) -> Path:
    """Write other words into the one record."""
    path = record_of(records)
    path.write_text(json.dumps({**read_record(path), **fields}) + "\n")
    return path


def assert_cleared_away(above: Path, records: Path) -> None:
    """Clear away and fail unless nothing is left."""
    clear_away(above)
    assert scratches(above) == []
    assert list(records.iterdir()) == []


def test_what_a_killed_process_left_is_removed(
    above: Path, sentinel: Sentinel, records: Path
) -> None:
    before = manifest(above / "target")
    leave_behind(above)
    assert_cleared_away(above, records)
    assert manifest(above / "target") == before
    sentinel.assert_whole()


def test_what_another_host_makes_is_left_to_it(above: Path, records: Path) -> None:
    # A directory that a process of another host with the same home has made at this path,
    # or is about to make, and a lock that this host does not see
    leave_behind(above)
    other = Host("nfs-client-2", "0" * 32, "11111111-1111-1111-1111-111111111111")
    for inode in (read_record(record_of(records))["inode"], None):
        record = change_record(records, host=encode(other), inode=inode)
        before = manifest(above)
        clear_away(above)
        assert manifest(above) == before
        assert record.exists()


@pytest.mark.slow
def test_no_depth_is_too_much(above: Path, records: Path) -> None:
    # A chain of directories deeper than a path is long and than Python can recurse, and a
    # wide tree next to it, left by a killed process
    def work() -> None:
        scratch = made_in(above)
        tree = Path(f"/proc/self/fd/{scratch.descriptor}")
        chain(tree / "chain", 5_000)
        for number in range(30):
            (tree / f"{number}").mkdir()
            many_directories(tree / f"{number}" / "below", 3, 3)
        os.kill(os.getpid(), signal.SIGKILL)

    assert in_child(work) == -signal.SIGKILL

    def clear_with_few_descriptors() -> None:
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (_few_descriptors(), most))
        clear_away(above)

    try:
        assert in_child(clear_with_few_descriptors) == 0
        assert scratches(above) == []
        assert list(records.iterdir()) == []
    finally:
        remove_tree(above)  # pytest cannot remove so deep a tree


def _few_descriptors() -> int:
    return max(map(int, os.listdir("/proc/self/fd"))) + 12


@pytest.mark.root
@pytest.mark.parametrize("is_bind", (False, True))
def test_what_is_mounted_in_it_is_refused(above: Path, sentinel: Sentinel, is_bind: bool) -> None:
    needs_root("mounting")
    point = leave_behind(above) / "tree" / "directory-00001" / "mounted"
    point.mkdir()

    def clear_around_a_mount() -> None:
        own_mounts()
        if is_bind:
            words = ["mount", "--bind", str(sentinel.root), str(point)]
            assert os.spawnvp(os.P_WAIT, "mount", words) == 0
        else:
            mount_tmpfs(str(point), 1 << 20, 10)
            (point / "more").mkdir()
        mounted = os.open(point, os.O_RDONLY)
        before = os.listdir(mounted)
        with pytest.raises(Refused, match="something is mounted"):
            clear_away(above)
        assert before
        assert os.listdir(mounted) == before

    assert in_child(clear_around_a_mount) == 0
    sentinel.assert_whole()


@pytest.mark.parametrize("call", STRUCK_AT)
def test_what_was_not_yet_finished_is_removed(
    above: Path, monkeypatch: pytest.MonkeyPatch, records: Path, call: str
) -> None:
    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    with struck(monkeypatch, call, die):
        assert in_child(lambda: fill(made_in(above))) == -signal.SIGKILL
    assert_cleared_away(above, records)


def test_what_was_cleared_away_but_for_its_record_is_forgotten(above: Path, records: Path) -> None:
    left = leave_behind(above)
    assert in_child(lambda: os.execvp("rm", ["rm", "-r", str(left)])) == 0
    clear_away(above)
    assert list(records.iterdir()) == []


def test_a_half_written_record_is_forgotten(above: Path, records: Path) -> None:
    leave_behind(above)
    (records / "0.json").write_text('{"path": "/')
    (records / "0.json.partial").write_text('{"path": "/')
    clear_away(above)
    assert list(records.iterdir()) == []


def test_a_record_whose_process_lives_is_left_alone(above: Path, records: Path) -> None:
    scratch = made_in(above)
    fill(scratch)
    before = manifest(only_scratch(above))
    assert in_child(lambda: clear_away(above)) == 0
    assert manifest(only_scratch(above)) == before
    assert record_of(records).exists()
    scratch.remove()


def test_a_child_that_shares_it_holds_the_lock_on(above: Path, records: Path) -> None:
    begin, go_on = os.pipe()

    def work() -> None:
        made_in(above)
        if os.fork() == 0:
            os.close(go_on)
            os.read(begin, 1)
            os._exit(0)
        os.kill(os.getpid(), signal.SIGKILL)

    assert in_child(work) == -signal.SIGKILL
    os.close(begin)
    clear_away(above)
    assert only_scratch(above).is_dir()
    os.close(go_on)
    with record_of(records).open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
    clear_away(above)
    assert scratches(above) == []


def _inode(left: Path, records: Path) -> None:
    change_record(records, inode=left.stat().st_ino + 1)


def _device(left: Path, records: Path) -> None:
    change_record(records, device=left.stat().st_dev + 1)


def _birth(_: Path, records: Path) -> None:
    change_record(records, birth_ns=1)


def _mode(left: Path, _: Path) -> None:
    left.chmod(0o750)


def _owner(left: Path, _: Path) -> None:
    needs_root("giving a directory away")
    os.chown(left, NOBODY, NOBODY)


def _prefix(left: Path, records: Path) -> None:
    left.rename(left.parent / "precious")
    change_record(records, path=str(left.parent / "precious"))


def _link(left: Path, _: Path) -> None:
    left.rename(left.parent / "precious")
    left.symlink_to("precious")


def _link_above(left: Path, _: Path) -> None:
    real = left.parent.parent / "real"
    left.parent.rename(real)
    (real.parent / "above").symlink_to("real")


def _another(left: Path, _: Path) -> None:
    precious = left.parent / "precious"
    precious.mkdir(mode=0o700)
    (precious / "file").write_text("precious")
    left.rename(left.parent / "moved")
    precious.rename(left)


OTHERS = (_inode, _device, _birth, _mode, _owner, _prefix, _link, _link_above, _another)


@pytest.mark.parametrize("change", OTHERS)
def test_what_is_not_what_was_made_is_not_removed(
    above: Path, records: Path, change: Callable[[Path, Path], None], sentinel: Sentinel
) -> None:
    # A record of a directory other than the one there now
    left = leave_behind(above)
    change(left, records)
    before = manifest(above.resolve())
    clear_away(above)
    assert manifest(above.resolve()) == before
    sentinel.assert_whole()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "{}",
        '{"path": 1, "device": 2, "inode": 3, "birth_ns": 4}',
        '{"path": "relative", "device": 2, "inode": 3, "birth_ns": 4}',
        '{"path": "", "device": 2, "inode": 3, "birth_ns": 4}',
        '{"path": "/\\u0000", "device": 2, "inode": 3, "birth_ns": null}',
        '{"path": "/' + PREFIX + '\\u0000", "device": 2, "inode": 3, "birth_ns": null}',
        '{"path": "/\\ud800/' + PREFIX + '1", "device": 2, "inode": 3, "birth_ns": null}',
        pytest.param("[" * 100_000, id="deep"),
    ],
)
def test_a_damaged_record_harms_nothing_and_hides_nothing(
    above: Path, records: Path, sentinel: Sentinel, text: str
) -> None:
    leave_behind(above)
    for name in ("0.json", "g.json"):
        (records / name).write_text(text)
    clear_away(above)
    assert scratches(above) == []
    sentinel.assert_whole()


def test_no_records_at_all_are_nothing_to_do(above: Path, records: Path) -> None:
    clear_away(above)
    assert not records.exists()


def test_one_that_cannot_be_removed_is_remembered(above: Path, records: Path) -> None:
    needs_root("mounting read-only")
    leave_behind(above)
    _seal(above)
    try:
        with pytest.raises(Refused, match="Read-only"):
            clear_away(above)
        assert str(only_scratch(above)) in record_of(records).read_text()
    finally:
        _seal(above, on=False)
    # And when it can be removed, it is
    assert_cleared_away(above, records)


def test_one_on_another_file_system_is_left_for_its_turn(above: Path, records: Path) -> None:
    leave_behind(above)
    remove_left_over(above.stat().st_dev + 1)
    assert only_scratch(above).is_dir()
    # And on its own it goes
    assert_cleared_away(above, records)


def _seal(directory: Path, *, on: bool = True) -> None:
    """Make a directory unchangeable, even for root (mount it read-only on itself)."""
    words = ["mount", "--bind", str(directory), str(directory)]
    if not on:
        words = ["umount", str(directory)]
    assert in_child(lambda: os.execvp(words[0], words)) == 0
    if on:
        read_only = ["mount", "-o", "remount,bind,ro", str(directory)]
        assert in_child(lambda: os.execvp("mount", read_only)) == 0
