"""``recreate`` and ``aside`` as a person meets them: what they print, refuse and leave behind."""

import fcntl
import os
import re
import shlex
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Cli, Finished, Json, wait_until
from tests.contracts.test_overlap import cancel, start_slowly
from tests.filesystems import mount_bind, mount_tmpfs, unmount_below
from tests.needs import needs_root, needs_tool
from tests.trees import flat
from tui_fs.job import cure_rules
from tui_fs.job.set_aside import Action, new_record
from tui_fs.linux.pins import take_pin
from tui_fs.model.paths import PathStr
from tui_fs.model.target import Target

INDEXED_FILES = 30_000
STANDING = "import sys; print(flush=True); sys.stdin.read()"


@pytest.fixture
def spool(tmpfs: Path) -> Path:
    """Give an empty directory."""
    spool = tmpfs / "spool"
    spool.mkdir(mode=0o750)
    return spool


@pytest.fixture
def full(spool: Path) -> Path:
    """Give a directory of three files."""
    for name in ("a", "b", "c"):
        (spool / name).touch()
    return spool


@pytest.fixture
def standing(spool: Path) -> Iterator[int]:
    """Give a process that stands in the directory."""
    command = [sys.executable, "-I", "-c", STANDING]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, cwd=spool, **pipes) as process:  # type: ignore[call-overload]
        process.stdout.readline()
        yield process.pid
        process.communicate()


def put_aside(cli: Cli, path: Path, *options: str) -> Json:
    """Put a directory aside and return what is told."""
    return cli.run("aside", path, "--yes", "--json", *options).expect(0).object()


def refused(finished: Finished, code: int = 3) -> str:
    """Return the sentence of what was refused, with its advice."""
    finished.expect(code)
    assert finished.stdout == b""
    sentence = finished.stderr.strip().splitlines()[-1]
    assert sentence.startswith("tui-fs: ")
    assert len(sentence.split()) > 3
    return sentence


def test_an_emptied_directory_gets_a_small_index(cli: Cli, ext4: Path) -> None:
    """Given an ext4 directory that had 30,000 entries, its index is one block afterwards."""
    # Given
    spool = ext4 / "spool"
    flat(spool, INDEXED_FILES)
    for entry in list(os.scandir(spool)):
        os.unlink(entry.path)
    before = spool.stat()
    assert before.st_size > 1 << 19
    # When
    told = cli.run("recreate", spool, "--yes", "--json").expect(0).object()
    # Then
    after = spool.stat()
    assert (told["type"], told["path"], told["moved_entries"]) == ("recreate", str(spool), 0)
    assert told["index_bytes_before"] == before.st_size
    assert told["index_bytes_after"] == after.st_size == 4096
    assert after.st_ino != before.st_ino
    assert os.listdir(ext4) == ["spool"]
    assert cli.run("aside", "--list", "--json").expect(0).array() == []


def test_recreating_tells_what_it_did(cli: Cli, spool: Path) -> None:
    """Given no --json, one sentence tells the size before and after."""
    finished = cli.run("recreate", spool, "--yes").expect(0)

    assert re.search(rf"{spool} is recreated: .* took .*, now ", finished.stdout.decode())


def test_recreating_refuses_what_it_must(cli: Cli, full: Path) -> None:
    """Given entries, nothing there, a link or a file, it is refused with the right exit code."""
    link = full.parent / "link"
    link.symlink_to("spool")

    assert "not empty" in refused(cli.run("recreate", full, "--yes"))
    assert "symbolic link" in refused(cli.run("recreate", link, "--yes"))
    assert "not a directory" in refused(cli.run("recreate", full / "a", "--yes"))
    assert "does not exist" in refused(cli.run("recreate", full / "nothing", "--yes"), 2)
    assert "--help" in refused(cli.run("recreate", "--yes"), 2)
    assert sorted(os.listdir(full)) == ["a", "b", "c"]


@pytest.mark.parametrize("command", ["recreate", "aside"])
def test_without_a_terminal_it_needs_yes(cli: Cli, spool: Path, command: str) -> None:
    """Given nobody to ask, nothing is changed."""
    inode = spool.stat().st_ino

    assert "Add --yes" in refused(cli.run(command, spool), 2)

    assert spool.stat().st_ino == inode


@pytest.mark.parametrize("command", ["recreate", "aside"])
def test_a_read_only_policy_forbids_it(cli: Cli, spool: Path, command: str) -> None:
    """Given that deleting is switched off, the cures are too."""
    finished = cli.run(command, spool, "--yes", environment={"TUI_FS_READ_ONLY": "1"})

    assert "read-only" in refused(finished)
    assert os.listdir(spool.parent) == ["spool"]


def test_a_read_only_policy_forbids_undoing(cli: Cli, full: Path) -> None:
    """Given that deleting is switched off, what was put aside stays there."""
    told = put_aside(cli, full)
    order = ("aside", "--undo", told["id"], "--yes")

    finished = cli.run(*order, environment={"TUI_FS_READ_ONLY": "1"})

    assert "read-only" in refused(finished)
    assert Path(told["aside"]).exists()


@pytest.mark.parametrize("command", ["recreate", "aside"])
def test_a_mount_point_is_refused(cli: Cli, spool: Path, command: str) -> None:
    """Given a mounted file system, it is refused as for deleting."""
    needs_root("mounting")
    mount_tmpfs(spool)
    try:
        assert "mount point" in refused(cli.run(command, spool, "--yes"))
    finally:
        unmount_below(spool)


@pytest.mark.parametrize("command", ["recreate", "aside"])
def test_a_subvolume_is_refused(cli: Cli, tmp_path: Path, command: str) -> None:
    """Given a subvolume of btrfs, the sentence calls it by its name."""
    needs_root("mounting btrfs")
    mkfs = needs_tool("mkfs.btrfs", package="btrfs-progs")
    image, point = tmp_path / "image", tmp_path / "point"
    with image.open("wb") as file:
        file.truncate(256 << 20)
    subprocess.run([mkfs, "-q", "-f", image], check=True)
    point.mkdir()
    subprocess.run(["mount", "-t", "btrfs", "-o", "loop", image, point], check=True)
    try:
        make = ["btrfs", "-q", "subvolume", "create", str(point / "spool")]
        subprocess.run(make, check=True, capture_output=True)
        assert "is a subvolume" in refused(cli.run(command, point / "spool", "--yes"))
    finally:
        unmount_below(point)


def test_who_stands_in_it_is_named(cli: Cli, spool: Path, standing: int) -> None:
    """Given a process in the directory, it is named, and only --accept-occupants leaves it."""
    sentence = refused(cli.run("recreate", spool, "--yes"))
    assert f"Process {standing} " in sentence
    assert "--accept-occupants" in sentence

    finished = cli.run("recreate", spool, "--yes", "--json", "--accept-occupants").expect(0)

    assert [one["pid"] for one in finished.object()["occupants"]] == [standing]
    assert str(standing) in finished.stderr


@pytest.fixture
def mounted_on(spool: Path) -> Iterator[int]:
    """Give a process in another mount namespace that has a file system mounted on it."""
    needs_root("a mount namespace")
    script = 'mount -t tmpfs none "$0" && exec "$@"'
    command = [
        "unshare", "-m", "sh", "-c", script, str(spool), sys.executable, "-I", "-c", STANDING,
    ]  # fmt: skip
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as process:  # type: ignore[call-overload]
        process.stdout.readline()
        yield process.pid
        table = Path(f"/proc/{process.pid}/mountinfo").read_text()
        process.communicate()
    assert f" {spool} " in table


def test_a_mount_of_a_container_stays(cli: Cli, spool: Path, mounted_on: int) -> None:
    """Given something mounted on it in another namespace, no option lets it be removed."""
    inode = spool.stat().st_ino

    for option in ((), ("--accept-occupants",)):
        sentence = refused(cli.run("recreate", spool, "--yes", *option))
        assert f"Process {mounted_on} " in sentence
        assert "would detach" in sentence
        assert "--accept-occupants" not in sentence

    assert spool.stat().st_ino == inode


def test_a_container_that_mounts_on_the_twin_keeps_it(cli: Cli, full: Path) -> None:
    """Given something mounted on the twin in another namespace, undoing is refused."""
    needs_root("a mount namespace")
    told = put_aside(cli, full, "--twin")
    script = 'mount -t tmpfs none "$0" && exec "$@"'
    command = [
        "unshare", "-m", "sh", "-c", script, str(full), sys.executable, "-I", "-c", STANDING,
    ]  # fmt: skip
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        sentence = refused(cli.run("aside", "--undo", told["id"], "--yes"))
        table = Path(f"/proc/{process.pid}/mountinfo").read_text()
        process.communicate()

    assert "would detach" in sentence
    assert f" {full} " in table
    assert Path(told["aside"]).exists()


def test_ctrl_c_while_waiting_changes_nothing(cli: Cli, full: Path, state_home: Path) -> None:
    """Given Ctrl-C while a job is starting, nothing is done when the lock is free again."""
    state = state_home / "tui-fs"
    state.mkdir(parents=True, mode=0o700)
    with (state / "starting").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        process = cli.start("aside", full, "--yes")
        waits = re.compile(rf"-> FLOCK .* {process.pid} ")
        wait_until(lambda: bool(waits.search(Path("/proc/locks").read_text())), "its waiting")
        process.send_signal(signal.SIGINT)
        wait_until(lambda: process.poll() is not None, "its end", 10)
    process.communicate()

    assert process.returncode == 130
    assert os.listdir(full.parent) == ["spool"]
    assert cli.run("aside", "--list", "--json").expect(0).array() == []


def test_a_read_only_state_directory_needs_another_place(
    cli: Cli, full: Path, state_home: Path
) -> None:
    """Given a state directory on a disk that is read-only now, the record goes to memory."""
    needs_root("mounting tmpfs")
    state_home.mkdir()
    mount_tmpfs(state_home)
    (state_home / "tui-fs").mkdir(mode=0o700)
    try:
        for has_lock in (False, True):
            if has_lock:
                subprocess.run(["mount", "-o", "remount,rw", state_home], check=True)
                (state_home / "tui-fs" / "starting").touch(mode=0o600)
            subprocess.run(["mount", "-o", "remount,ro", state_home], check=True)
            assert "record" in refused(cli.run("aside", full, "--yes"))
            Path(os.environ["XDG_RUNTIME_DIR"]).mkdir(mode=0o700, exist_ok=True)

            told = put_aside(cli, full)

            assert not full.exists()
            cli.run("aside", "--undo", told["id"], "--yes").expect(0)
            assert full.exists()
            shutil.rmtree(os.environ["XDG_RUNTIME_DIR"])
    finally:
        unmount_below(state_home)


def test_a_job_under_another_name_is_seen(cli: Cli, tmpfs: Path) -> None:
    """Given a job that reaches it by a bind mount, it is not put aside."""
    needs_root("mounting")
    tree, other = tmpfs / "tree", tmpfs / "other"
    (tree / "inner").mkdir(parents=True)
    other.mkdir()
    flat(tree / "inner" / "sub", 4000)
    mount_bind(tree, other)
    try:
        job = start_slowly(cli, other / "inner" / "sub")
        finished = cli.run("aside", tree / "inner", "--yes")
        cancel(cli, job)
    finally:
        unmount_below(other)

    assert f"Job {job} is at work" in refused(finished)
    assert (tree / "inner").exists()


def test_a_damaged_record_is_listed_as_such(cli: Cli, full: Path, state_home: Path) -> None:
    """Given one damaged record, it is told, and the other one is there."""
    told = put_aside(cli, full)
    (state_home / "tui-fs" / "aside" / "0badbad0.json").write_text("{")

    listed = cli.run("aside", "--list", "--json").expect(0).array()
    printed = cli.run("aside", "--list").expect(0)

    assert [(one["id"], one["state"]) for one in listed] == [
        (told["id"], "aside"),
        ("0badbad0", "damaged"),
    ]
    assert "0badbad0 is damaged" in printed.stderr
    cli.run("aside", "--undo", told["id"], "--yes").expect(0)


def test_putting_aside_and_back(cli: Cli, full: Path) -> None:
    """Given a full directory, it is gone from its place at once, recorded, and comes back."""
    # Given
    inode = full.stat().st_ino
    # When
    told = put_aside(cli, full)
    # Then
    aside = Path(told["aside"])
    assert re.fullmatch(r"\.spool\.tui-fs-aside-[0-9a-f]{8}", aside.name)
    assert (aside.parent, aside.stat().st_ino) == (full.parent, inode)
    assert not full.exists()
    assert told["delete_command"] == [
        ["tui-fs", "delete", str(aside), "--strategy", "rm", "--gentle"]
    ]
    (listed,) = cli.run("aside", "--list", "--json").expect(0).array()
    assert (listed["id"], listed["state"], listed["path"]) == (told["id"], "aside", str(full))
    # When
    cli.run(*told["undo_command"][1:], "--yes").expect(0)
    # Then
    assert full.stat().st_ino == inode
    assert os.listdir(full.parent) == ["spool"]
    assert cli.run("aside", "--list", "--json").expect(0).array() == []


def test_the_record_is_private(cli: Cli, full: Path, state_home: Path) -> None:
    """Given a record, only its owner can read it."""
    told = put_aside(cli, full)

    place = state_home / "tui-fs" / "aside"
    file = place / f"{told['id']}.json"
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert '"action": "aside"' in file.read_text()


def test_a_twin_takes_the_place(cli: Cli, full: Path) -> None:
    """Given --twin, an empty directory of the same kind stands there, and goes at the undo."""
    inode, mode = full.stat().st_ino, full.stat().st_mode

    told = put_aside(cli, full, "--twin")

    assert told["twin"] is True
    assert (os.listdir(full), full.stat().st_mode) == ([], mode)
    assert set(os.listdir(full.parent)) == {"spool", Path(told["aside"]).name}
    cli.run("aside", "--undo", told["id"], "--yes").expect(0)
    assert full.stat().st_ino == inode
    assert os.listdir(full.parent) == ["spool"]


def test_what_is_printed_can_be_pasted(cli: Cli, tmpfs: Path) -> None:
    """Given a name with quotes, spaces and escapes, the printed command names it exactly."""
    spool = tmpfs / "it's a \x1b[31m 'spool'"
    spool.mkdir()

    printed = cli.run("aside", spool, "--yes").expect(0).stdout.decode()

    assert "\x1b" not in printed
    command = next(line for line in printed.splitlines() if line.startswith("To delete it:"))
    pasted = command.removeprefix("To delete it:").strip().replace("tui-fs", "printf '%s\\n'", 1)
    words = subprocess.run(["bash", "-c", pasted], capture_output=True, check=True).stdout
    assert words.decode().splitlines()[1] == str(next(iter(tmpfs.iterdir())))


def test_the_printed_command_deletes_it(cli: Cli, full: Path) -> None:
    """Given the printed command, it deletes what was put aside, and then nothing is left."""
    told = put_aside(cli, full)

    cli.run(*told["delete_command"][0][1:], "--yes").expect(0)

    (listed,) = cli.run("aside", "--list", "--json").expect(0).array()
    assert listed["state"] == "gone"
    order = ("aside", "--undo", told["id"], "--yes")
    assert "Nothing is left" in refused(cli.run(*order))
    assert "Nothing was put aside" in refused(cli.run(*order), 2)


@pytest.mark.parametrize("instead", ["file", "empty", "full", "link"])
def test_what_stands_in_the_way_stays(cli: Cli, full: Path, instead: str) -> None:
    """Given something else at the old place, it is not replaced, and what to do is told."""
    told = put_aside(cli, full)
    if instead == "file":
        full.touch()
    elif instead == "link":
        full.symlink_to(Path(told["aside"]).name)
    else:
        full.mkdir()
        if instead == "full":
            (full / "new").touch()

    sentence = refused(cli.run("aside", "--undo", told["id"], "--yes"))

    assert "Something else stands" in sentence
    assert f"mv -T {shlex.quote(str(full))}" in sentence
    assert sorted(os.listdir(told["aside"])) == ["a", "b", "c"]
    assert set(os.listdir(full.parent)) == {"spool", Path(told["aside"]).name}


@pytest.mark.parametrize("change", ["entry", "mode", "occupant"])
def test_a_twin_in_use_stays(cli: Cli, full: Path, change: str) -> None:
    """Given a twin that was written into, changed or entered, it is not removed."""
    told = put_aside(cli, full, "--twin")
    twin = full.stat().st_ino
    process = None
    if change == "entry":
        (full / "new").touch()
    elif change == "mode":
        full.chmod(0o700)
    else:
        command = [sys.executable, "-I", "-c", STANDING]
        process = subprocess.Popen(command, cwd=full, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()

    refused(cli.run("aside", "--undo", told["id"], "--yes"))

    if process is not None:
        process.communicate()
    assert full.stat().st_ino == twin
    assert sorted(os.listdir(told["aside"])) == ["a", "b", "c"]


def test_a_begun_deletion_is_not_undone(cli: Cli, tmpfs: Path) -> None:
    """Given a job on what was put aside, running or ended, putting it back is refused."""
    spool = tmpfs / "spool"
    flat(spool, 4000)
    told = put_aside(cli, spool)
    job = start_slowly(cli, Path(told["aside"]))

    order = ("aside", "--undo", told["id"], "--yes")
    assert f"Job {job} is at work" in refused(cli.run(*order))
    cancel(cli, job)
    assert f"deletion has begun: job {job}" in refused(cli.run(*order))

    assert not spool.exists()


def test_a_directory_with_a_job_is_left_alone(cli: Cli, tmpfs: Path) -> None:
    """Given a job at work below it, it is not put aside."""
    tree = tmpfs / "tree"
    tree.mkdir()
    flat(tree / "inner", 4000)
    job = start_slowly(cli, tree / "inner")

    finished = cli.run("aside", tree, "--yes")

    cancel(cli, job)
    assert f"Job {job} is at work" in refused(finished)
    assert os.listdir(tmpfs) == ["tree"]


@pytest.mark.parametrize(
    "arguments", [(), ("--list", "--undo", "x"), ("P", "--list"), ("--twin", "--list"), ("P", "-x")]
)
def test_arguments_that_make_no_sense(cli: Cli, arguments: tuple[str, ...]) -> None:
    """Given contradicting arguments, it is a usage error."""
    refused(cli.run("aside", *arguments), 2)


def test_a_long_name_can_be_put_aside(cli: Cli, tmpfs: Path) -> None:
    """Given a name of 255 bytes that are not UTF-8, it comes and goes."""
    name = b"\xff" * 255
    os.mkdir(os.path.join(os.fsencode(tmpfs), name))

    told = put_aside(cli, Path(os.fsdecode(os.path.join(os.fsencode(tmpfs), name))))

    assert len(os.listdir(os.fsencode(tmpfs))[0]) <= 255
    assert "path_b64" in told
    cli.run("aside", "--undo", told["id"], "--yes").expect(0)
    assert os.listdir(os.fsencode(tmpfs)) == [name]


def test_a_full_state_directory_needs_another_place(cli: Cli, full: Path, state_home: Path) -> None:
    """Given no room for the record, nothing is renamed; with a runtime directory it goes there."""
    needs_root("mounting tmpfs")
    state_home.mkdir()
    mount_tmpfs(state_home)
    subprocess.run(["mount", "-o", "remount,nr_inodes=1", state_home], check=True)
    try:
        assert "record" in refused(cli.run("aside", full, "--yes"))
        assert full.exists()

        Path(os.environ["XDG_RUNTIME_DIR"]).mkdir(mode=0o700)
        told = put_aside(cli, full)

        (listed,) = cli.run("aside", "--list", "--json").expect(0).array()
        assert listed["id"] == told["id"]
        cli.run("aside", "--undo", told["id"], "--yes").expect(0)
        assert full.exists()
    finally:
        unmount_below(state_home)


def test_the_line_for_the_systems_log(full: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a hostile path, the line holds who did what, and no value ends early."""
    lines: list[str] = []
    monkeypatch.setattr(cure_rules, "send_to_syslog", lines.append)
    path = PathStr('/srv/a" result="done\n' + "x" * 4000)

    record = new_record(Action.ASIDE, Target(path, take_pin(str(full))))
    assert cure_rules.tell_system_log("aside", path, record.aside, "refused")

    (line,) = lines
    found = dict(re.findall(r'(\w+)="([^"]*)"', line))
    assert (found["action"], found["result"], found["uid"]) == ("aside", "refused", "0")
    assert found["path"].startswith("/srv/a\\x22 result\\x3d")
    assert "\n" not in line
    assert len(line.encode()) < 1024
