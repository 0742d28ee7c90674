"""A directory beside a target goes again, and nothing else goes with it."""

import errno
import fcntl
import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Json
from tests.needs import needs_root
from tests.trees import Sentinel, flat, manifest, many_directories
from tui_fs.job.scratch import PREFIX, Scratch, remove_left_over
from tui_fs.model.errors import Refused

NOBODY = 65534


@pytest.fixture
def above(tmp_path: Path) -> Path:
    """Give the directory that holds a target, with something precious beside it."""
    directory = tmp_path / "above"
    directory.mkdir()
    many_directories(directory / "target", 2, 3)
    return directory


@pytest.fixture
def sentinel(above: Path) -> Sentinel:
    """Give what must survive."""
    return Sentinel(above)


@pytest.fixture
def records(state_home: Path) -> Path:
    """Give the directory of the records."""
    return state_home / "tui-fs" / "scratch"


def made_in(above: Path) -> Scratch:
    """Make a scratch directory."""
    return Scratch(str(above), above.stat().st_dev)


def scratches(above: Path) -> list[Path]:
    """List the scratch directories."""
    return sorted(above.glob(f"{PREFIX}*"))


def only_scratch(above: Path) -> Path:
    """Give the one scratch directory."""
    (path,) = scratches(above)
    return path


def fill(scratch: Scratch) -> None:
    """Put into it what a measurement does, and what should never be there."""
    os.mkdir("tree", 0o700, dir_fd=scratch.descriptor)
    tree = Path(f"/proc/self/fd/{scratch.descriptor}/tree")
    many_directories(tree, 3, 5)
    (tree / "outside").symlink_to(tree.resolve().parents[1])
    (tree.parent / "link").symlink_to("..")


def in_child(what: Callable[[], None]) -> int:
    """Do something in a forked process; give how it ended, 0 if nothing came of it."""
    pid = os.fork()
    if pid == 0:
        try:
            what()
            os._exit(0)
        finally:
            os._exit(9)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def leave_behind(above: Path) -> Path:
    """Have a process make and fill a scratch directory and be killed."""

    def work() -> None:
        fill(made_in(above))
        os.kill(os.getpid(), signal.SIGKILL)

    assert in_child(work) == -signal.SIGKILL
    return only_scratch(above)


def clear_away(above: Path) -> None:
    """Do as the next measurement on that file system does before it begins."""
    remove_left_over(above.stat().st_dev)


def record_of(records: Path) -> Path:
    """Give the one record."""
    (path,) = records.iterdir()
    return path


def told_by(record: Path) -> Json:
    """Read a record: one object, or one a line, of which the last counts."""
    told: Json = {}
    text = record.read_text()
    while text.strip():
        told, end = json.JSONDecoder().raw_decode(text.lstrip())
        text = text.lstrip()[end:]
    assert isinstance(told, dict)
    return told


def change_record(records: Path, **fields: object) -> Path:
    """Write other words into the one record."""
    path = record_of(records)
    path.write_text(json.dumps({**told_by(path), **fields}) + "\n")
    return path


def test_it_is_empty_private_and_recorded(above: Path, records: Path) -> None:
    # Given a directory / When a scratch one is made in it
    scratch = made_in(above)
    # Then it is this user's alone, open, and on record by all that identifies it
    path = only_scratch(above)
    status = path.stat()
    assert status.st_mode & 0o7777 == 0o700
    assert os.listdir(path) == []
    assert os.path.samestat(os.fstat(scratch.descriptor), status)
    told = told_by(record_of(records))
    assert told["path"] == str(path)
    assert (told["device"], told["inode"]) == (status.st_dev, status.st_ino)
    assert record_of(records).stat().st_mode & 0o777 == 0o600
    assert records.stat().st_mode & 0o777 == 0o700
    scratch.remove()


def test_it_goes_with_all_that_is_in_it_and_nothing_else(
    above: Path, sentinel: Sentinel, records: Path
) -> None:
    # Given one that was filled, with links to what lies outside
    before = manifest(above / "target")
    scratch = made_in(above)
    fill(scratch)
    sentinel.plant(only_scratch(above) / "planted")
    # When removed, twice / Then nothing is left of it, and all else is as it was
    scratch.remove()
    scratch.remove()
    assert scratches(above) == []
    assert list(records.iterdir()) == []
    assert manifest(above / "target") == before
    sentinel.assert_whole()


def test_no_descriptor_is_inherited_by_a_program(above: Path) -> None:
    # Given a scratch directory / When a program is executed / Then it has none of it
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
    # Given two measurements beside one target
    first, second = made_in(above), made_in(above)
    assert len(scratches(above)) == len(list(records.iterdir())) == 2
    # When one is removed / Then the other is there
    first.remove()
    assert os.path.samestat(os.fstat(second.descriptor), only_scratch(above).stat())
    second.remove()


def test_what_was_renamed_away_is_emptied_where_it_is(
    above: Path, sentinel: Sentinel, records: Path
) -> None:
    # Given a scratch directory that somebody renames, and links a precious one in its place
    scratch = made_in(above)
    fill(scratch)
    path = only_scratch(above)
    path.rename(above / "moved")
    path.symlink_to(sentinel.root)
    # When removed / Then its content goes, and the link and what it leads to stay
    scratch.remove()
    assert os.listdir(above / "moved") == []
    assert path.is_symlink()
    assert list(records.iterdir()) == []
    sentinel.assert_whole()


def test_another_directory_in_its_place_stays(above: Path, sentinel: Sentinel) -> None:
    # Given a precious directory that somebody puts in its place
    scratch = made_in(above)
    path = only_scratch(above)
    path.rename(above / "moved")
    sentinel.root.rename(path)
    # When removed / Then it stays
    scratch.remove()
    path.rename(sentinel.root)
    sentinel.assert_whole()


def test_an_empty_one_in_its_place_stays(above: Path) -> None:
    # Given an empty directory in its place, which rmdir would remove / When removed / Then it stays
    scratch = made_in(above)
    path = only_scratch(above)
    path.rename(above / "moved")
    path.mkdir(mode=0o700)
    scratch.remove()
    assert path.is_dir()


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
    # Given somebody who exchanges the new directory at once / When made
    flat(above / "sentinel", 3)
    files = {path.name for path in (above / "sentinel").iterdir()}
    with monkeypatch.context() as changed, pytest.raises((Refused, OSError)):
        _refuse_to_open(changed, exchange)
        made_in(above)
    # Then it says so, and what stands there is whole
    found = {path.name for path in above.rglob("file-*") if "target" not in path.parts}
    assert found == files


def test_another_file_system_is_refused(above: Path) -> None:
    # Given a place that has become another file system / When made / Then refused
    with pytest.raises(Refused):
        Scratch(str(above), above.stat().st_dev + 1)
    assert scratches(above) == []


def test_a_place_that_is_gone_is_an_error(above: Path) -> None:
    # Given no such directory, a file, and a link / When made / Then an OSError each
    (above / "file").touch()
    (above / "link").symlink_to(above)
    for name in ("nowhere", "file", "link"):
        with pytest.raises(OSError, match=r"No such|Not a dir|symbolic"):
            made_in_place(above / name, above)


def made_in_place(place: Path, above: Path) -> Scratch:
    """Make one at a place that is none."""
    return Scratch(str(place), above.stat().st_dev)


@contextmanager
def struck(monkeypatch: pytest.MonkeyPatch, call: str, blow: Callable[[], None]) -> Iterator[None]:
    """Let something happen when a record is flushed to the disk, or a directory has been made."""
    real = getattr(os, call)

    def hit(*words: Any, **named: Any) -> None:
        real(*words, **named)
        if call == "fsync" or str(words[0]).startswith(PREFIX):
            blow()

    with monkeypatch.context() as changed:
        changed.setattr(os, call, hit)
        yield


STRUCK_AT = ("fsync", "mkdir")


@pytest.mark.parametrize("call", STRUCK_AT)
@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "No space left on device"), SystemExit(1), KeyboardInterrupt()]
)
def test_what_could_not_be_finished_is_taken_back(
    above: Path, monkeypatch: pytest.MonkeyPatch, call: str, error: BaseException
) -> None:
    # Given a disk without room, or a signal, while one is being made
    def fail() -> None:
        raise error

    # When made / Then it is gone again
    with struck(monkeypatch, call, fail), pytest.raises(type(error)):
        made_in(above)
    assert scratches(above) == []


def test_a_state_directory_that_others_may_change_is_refused(above: Path, records: Path) -> None:
    # Given records that anybody could write / When made / Then refused, and nothing is left
    records.mkdir(parents=True)
    records.chmod(0o777)
    with pytest.raises(Refused, match="not this user's alone"):
        made_in(above)
    assert scratches(above) == []


def test_what_a_killed_process_left_is_removed(
    above: Path, sentinel: Sentinel, records: Path
) -> None:
    # Given a process that was killed in the middle
    before = manifest(above / "target")
    leave_behind(above)
    # When the next one clears away / Then nothing is left of it, and all else is as it was
    clear_away(above)
    assert scratches(above) == []
    assert list(records.iterdir()) == []
    assert manifest(above / "target") == before
    sentinel.assert_whole()


@pytest.mark.parametrize("call", STRUCK_AT)
def test_what_was_not_yet_finished_is_removed(
    above: Path, monkeypatch: pytest.MonkeyPatch, records: Path, call: str
) -> None:
    # Given a process that was killed while it was making one
    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    with struck(monkeypatch, call, die):
        assert in_child(lambda: fill(made_in(above))) == -signal.SIGKILL
    # When the next one clears away / Then nothing is left
    clear_away(above)
    assert scratches(above) == []
    assert list(records.glob("*")) == []


def test_what_was_cleared_away_but_for_its_record_is_forgotten(above: Path, records: Path) -> None:
    # Given a process that was killed after the directory was gone and before its record was
    left = leave_behind(above)
    assert in_child(lambda: os.execvp("rm", ["rm", "-r", str(left)])) == 0
    # When the next one clears away / Then there is no record of nothing
    clear_away(above)
    assert list(records.iterdir()) == []


def test_a_half_written_record_is_forgotten(above: Path, records: Path) -> None:
    # Given a process that was killed while it wrote its record
    leave_behind(above)
    (records / "0.json").write_text('{"path": "/')
    (records / "0.json.partial").write_text('{"path": "/')
    # When the next one clears away / Then nothing is left in the state directory
    clear_away(above)
    assert list(records.iterdir()) == []


def test_a_record_whose_process_lives_is_left_alone(above: Path, records: Path) -> None:
    # Given a measurement that is going on / When another one clears away / Then it goes on
    scratch = made_in(above)
    fill(scratch)
    before = manifest(only_scratch(above))
    assert in_child(lambda: clear_away(above)) == 0
    assert manifest(only_scratch(above)) == before
    assert record_of(records).exists()
    scratch.remove()


def test_a_child_that_shares_it_holds_the_lock_on(above: Path, records: Path) -> None:
    # Given the waiting process killed, and its measuring child still at work
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
    # When another one clears away / Then the child's directory is left, until it has ended
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
    change_record(records, birth_s=1.0)


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
    # Given a record of something else than stands there now
    left = leave_behind(above)
    change(left, records)
    before = manifest(above.resolve())
    # When the next one clears away / Then nothing is touched, by content, mode and time
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
        '{"path": 1, "device": 2, "inode": 3, "birth_s": 4}',
        '{"path": "relative", "device": 2, "inode": 3, "birth_s": 4}',
        '{"path": "", "device": 2, "inode": 3, "birth_s": 4}',
        '{"path": "/\\u0000", "device": 2, "inode": 3, "birth_s": null}',
        '{"path": "/' + PREFIX + '\\u0000", "device": 2, "inode": 3, "birth_s": null}',
        '{"path": "/\\ud800/' + PREFIX + '1", "device": 2, "inode": 3, "birth_s": null}',
        pytest.param("[" * 100_000, id="deep"),
    ],
)
def test_a_damaged_record_harms_nothing_and_hides_nothing(
    above: Path, records: Path, sentinel: Sentinel, text: str
) -> None:
    # Given a record, and damaged ones before and after it
    leave_behind(above)
    for name in ("0.json", "g.json"):
        (records / name).write_text(text)
    # When the next one clears away / Then what the good one names is removed, and nothing else
    clear_away(above)
    assert scratches(above) == []
    sentinel.assert_whole()


def test_no_records_at_all_are_nothing_to_do(above: Path, records: Path) -> None:
    # Given a person who never measured / When cleared away / Then nothing happens
    clear_away(above)
    assert not records.exists()


def test_one_that_cannot_be_removed_is_remembered(above: Path, records: Path) -> None:
    # Given one left over where nobody may write now
    needs_root("mounting read-only")
    leave_behind(above)
    _seal(above)
    try:
        # When cleared away / Then it is refused, and nothing is forgotten
        with pytest.raises(Refused, match="Read-only"):
            clear_away(above)
        assert str(only_scratch(above)) in record_of(records).read_text()
    finally:
        _seal(above, on=False)
    # And when it can be removed, it is
    clear_away(above)
    assert scratches(above) == []
    assert list(records.iterdir()) == []


def test_one_on_another_file_system_is_left_for_its_turn(above: Path, records: Path) -> None:
    # Given one left over / When cleared away on another file system / Then it is not looked at
    leave_behind(above)
    remove_left_over(above.stat().st_dev + 1)
    assert only_scratch(above).is_dir()
    # And on its own it goes
    clear_away(above)
    assert scratches(above) == []
    assert list(records.iterdir()) == []


def _seal(directory: Path, *, on: bool = True) -> None:
    """Let nobody, not even root, change what is in a directory (mount it read-only on itself)."""
    words = ["mount", "--bind", str(directory), str(directory)]
    if not on:
        words = ["umount", str(directory)]
    assert in_child(lambda: os.execvp(words[0], words)) == 0
    if on:
        read_only = ["mount", "-o", "remount,bind,ro", str(directory)]
        assert in_child(lambda: os.execvp("mount", read_only)) == 0
