"""The engine reports and leaves what it cannot remove; it removes everything else."""

import os
import subprocess
import threading
from pathlib import Path

import pytest

from tests.engine.running import FAILURE, delete, engine
from tests.filesystems import mount_bind, unmount_below
from tests.needs import needs_root, needs_tool
from tests.trees import Sentinel, flat, hostile_names, many_directories
from tui_fs.linux.pins import take_pin
from tui_fs.strategies.base import gnu_failure, unquote_c
from tui_fs.strategies.parallel import pin_argument

NOBODY = 65534


def failures(messages: tuple[str, ...]) -> set[tuple[str, str, str]]:
    """Return operation, quoted path and reason of each message."""
    paths = set()
    for message in messages:
        match = FAILURE.fullmatch(message)
        assert match is not None, message
        paths.add((match[1], match[2], match[3]))
    return paths


@pytest.mark.root
def test_directories_that_may_not_be_written_keep_what_is_in_them(ext4: Path) -> None:
    # An ordinary user's tree in which two directories are another user's
    needs_root("another user's rights")
    target = ext4 / "target"
    many_directories(target, 4, 10)
    for place in (target, *target.rglob("*")):
        os.chown(place, NOBODY, NOBODY)
    locked, hidden = target / "directory-00001", target / "directory-00002"
    empty = target / "empty"
    empty.mkdir()
    os.chown(locked, 0, 0)
    os.chown(hidden, 0, 0)
    os.chown(empty, 0, 0)
    locked.chmod(0o755)
    hidden.chmod(0o700)
    empty.chmod(0o700)
    ended = delete("--", ".", cwd=target, uid=NOBODY).expect(1)
    # What is left is what was not permitted, each name reported once, and an empty directory
    # that could not be read is gone
    assert sorted(os.listdir(target)) == ["directory-00001", "directory-00002"]
    assert len(os.listdir(locked)) == len(os.listdir(hidden)) == 10
    failed = failures(ended.messages)
    assert len(failed) == len(ended.messages) == 11
    assert ("open", f"./{hidden.name}", "Permission denied") in failed
    assert all(reason == "Permission denied" for _, _, reason in failed)
    assert ended.counts["removed"] == 2 * 11 + 1


@pytest.mark.root
def test_immutable_files_stay_and_the_rest_goes(ext4: Path) -> None:
    needs_root("chattr")
    chattr = needs_tool("chattr", package="e2fsprogs")
    target = ext4 / "target"
    many_directories(target, 10, 200)
    hostile = os.fsencode(target / "directory-00003") + b"/it's\n\xff"
    os.close(os.open(hostile, os.O_CREAT | os.O_WRONLY))
    stubborn = [os.fsencode(target / "directory-00007" / "file-0000100"), hostile]
    subprocess.run([chattr, "+i", *stubborn], check=True)
    ended = delete("--", target).expect(1)
    # They and the directories above them are left, and only they are reported
    subprocess.run([chattr, "-i", *stubborn], check=True)
    left = {os.fsencode(path) for path in target.rglob("*") if not path.is_dir()}
    assert left == set(stubborn)
    assert sorted(os.listdir(target)) == ["directory-00003", "directory-00007"]
    read = {gnu_failure(message.encode(), unquote_c) for message in ended.messages}
    assert {(failure.path, failure.operation) for failure in read if failure} == {
        (os.fsdecode(path), "remove") for path in stubborn
    }


def test_a_directory_that_another_process_fills_is_left(tmpfs: Path) -> None:
    target = tmpfs / "target"
    flat(target, 2_000)
    holds, is_over = threading.Event(), threading.Event()

    def fill() -> None:
        number = 0
        descriptor = os.open(target, os.O_RDONLY)
        while not is_over.is_set():
            number += 1
            try:
                os.close(os.open(f"new-{number}", os.O_CREAT | os.O_WRONLY, dir_fd=descriptor))
            except FileNotFoundError:
                break  # the moment in which it was empty has come
            holds.set()
        os.close(descriptor)

    writer = threading.Thread(target=fill)
    writer.start()
    holds.wait()
    ended = delete("--", target)
    is_over.set()
    writer.join()
    assert ended.code == (1 if target.exists() else 0)
    if target.exists():
        assert failures(ended.messages) == {("remove", str(target), "Directory not empty")}


@pytest.mark.root
def test_directories_moved_away_do_not_redirect_the_engine(ext4: Path) -> None:
    # A deep tree whose directories another process moves out of it; next to the tree is
    # what must survive
    needs_root("moving what others made")
    sentinel = Sentinel(ext4)
    outside = ext4 / "outside"
    outside.mkdir()
    for turn in range(6):
        target = ext4 / f"target-{turn}"
        target.mkdir()
        place = target
        for level in range(120):
            many_directories(place, 3, 10)
            place = place / f"directory-0000{level % 3}"
        hostile_names(target / "directory-00001" / "hostile")
        is_over = threading.Event()

        def move(target: Path = target, turn: int = turn, over: threading.Event = is_over) -> None:
            number = 0
            while not over.is_set():
                for place in (target / "directory-00000", target / "directory-00001"):
                    try:
                        os.rename(place, outside / f"{turn}-{number}")
                        os.symlink(sentinel.root, place)
                    except OSError:
                        continue
                    number += 1

        mover = threading.Thread(target=move)
        mover.start()
        ended = delete("--", target, limits="ulimit -n 40")
        is_over.set()
        mover.join()
        # Nothing but the tree was touched, and it says done only if the tree is gone
        sentinel.assert_whole()
        assert ended.code in (0, 1)
        assert ended.code == 1 or not target.exists()
        assert ended.code == 0 or ended.messages


def test_a_target_that_is_not_there_does_not_spare_the_others(ext4: Path) -> None:
    flat(ext4 / "there", 3)
    ended = delete("--", ext4 / "gone", ext4 / "there").expect(1)
    assert os.listdir(ext4) == []
    assert failures(ended.messages) == {("open", str(ext4 / "gone"), "No such file or directory")}


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--",),
        ("--", "relative/"),
        ("--", ".."),
        ("--", "/"),
        ("--", "/a/../b"),
        ("--", ".", "/a"),
        ("--force", "--", "/nowhere"),
        ("--min-size", "many", "--", "/nowhere"),
        ("--pin", "1:1:1", "--", "/nowhere", "/nothing"),
        ("--pin", "1:1", "--", "/nowhere"),
        ("--keep", "--", "/nowhere"),
        ("-y", "--", "/nowhere"),
    ],
)
def test_what_is_not_understood_is_said_and_nothing_is_done(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    flat(tmp_path / "kept", 3)
    ended = delete(*arguments, cwd=tmp_path / "kept").expect(2)
    assert len(ended.messages) == 1
    assert ended.messages[0].startswith("tui-fs-engine: ")
    assert len(os.listdir(tmp_path / "kept")) == 3


@pytest.mark.parametrize("target", [".", "directory"])
def test_without_a_pin_for_every_target_it_names_the_command_to_use(
    tmp_path: Path, target: str
) -> None:
    flat(tmp_path / "directory", 3)
    flat(tmp_path / "other", 3)
    pins = ["--pin", pin_argument(take_pin(str(tmp_path / "other")))]
    for words in ([target], ["--", target], [*pins, "--", "other", "directory"]):
        ended = subprocess.run(
            [engine(), "delete", *words], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert ended.returncode == 2, ended
        assert ended.stderr.count("\n") == 1
        assert "tui-fs delete --strategy parallel" in ended.stderr
        assert sorted(os.listdir(tmp_path)) == ["directory", "other"]
        assert len(os.listdir(tmp_path / "directory")) == len(os.listdir(tmp_path / "other")) == 3


def test_it_deletes_nothing_in_read_only_mode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flat(tmp_path / "directory", 3)
    monkeypatch.setenv("TUI_FS_READ_ONLY", "1")
    ended = delete("--", tmp_path / "directory").expect(3)
    # One sentence says why it is not
    (message,) = ended.messages
    assert "TUI_FS_READ_ONLY" in message
    assert len(os.listdir(tmp_path / "directory")) == 3


@pytest.mark.root
@pytest.mark.parametrize("options", [(), ("--keep-root",)])
def test_the_root_of_a_mount_is_refused_even_with_its_pin(
    tmpfs: Path, options: tuple[str, ...]
) -> None:
    needs_root("mounting")
    flat(tmpfs / "beside", 3)
    flat(tmpfs / "source", 3)
    mount_bind(tmpfs / "source", tmpfs / "mounted")
    try:
        both = delete(*options, "--", tmpfs / "beside", tmpfs / "mounted").expect(3)
        here = delete(*options, ".", cwd=tmpfs / "mounted").expect(3)
    finally:
        unmount_below(tmpfs)
    assert "mounted' is the root of a mount" in both.messages[0]
    assert "is the root of a mount" in here.messages[0]
    assert len(os.listdir(tmpfs / "beside")) == len(os.listdir(tmpfs / "source")) == 3
