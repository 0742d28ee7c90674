"""Every directory that was set aside is on record; without a record nothing is done."""

import fcntl
import os
import re
import signal
import stat
import subprocess
from pathlib import Path

import pytest

from tests.conftest import Cli, wait_until
from tests.contracts.curing import full, put_aside, refused, spool
from tests.filesystems import mount_tmpfs, unmount_below
from tests.needs import needs_root
from tui_fs.job import maintenance
from tui_fs.job.aside_store import Action, new_record
from tui_fs.linux.pins import take_pin
from tui_fs.model.paths import PathStr
from tui_fs.model.target import Target

__all__ = ["full", "spool"]


def test_ctrl_c_while_waiting_changes_nothing(cli: Cli, full: Path, state_home: Path) -> None:
    """After Ctrl-C while a job is starting, nothing happens when the lock is free again."""
    state = state_home / "tui-fs"
    state.mkdir(parents=True, mode=0o700)
    with (state / "starting").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        process = cli.start("aside", full, "--yes")
        inode = os.fstat(lock.fileno()).st_ino
        waits = re.compile(rf"-> FLOCK .*:{inode} ")
        wait_until(lambda: bool(waits.search(Path("/proc/locks").read_text())), "its waiting")
        process.send_signal(signal.SIGINT)
        wait_until(lambda: process.poll() is not None, "its end", 10)
    process.communicate()

    assert process.returncode == 130
    assert os.listdir(full.parent) == ["spool"]
    assert cli.run("aside", "--list", "--json").expect(0).array() == []


def test_a_damaged_record_is_listed_as_such(cli: Cli, full: Path, state_home: Path) -> None:
    """A damaged record is reported, and the other record is listed."""
    record = put_aside(cli, full)
    (state_home / "tui-fs" / "aside" / "0badbad0.json").write_text("{")

    listed = cli.run("aside", "--list", "--json").expect(0).array()
    printed = cli.run("aside", "--list").expect(0)

    assert [(row["id"], row["state"]) for row in listed] == [
        (record["id"], "aside"),
        ("0badbad0", "damaged"),
    ]
    assert "0badbad0 is damaged" in printed.stderr
    cli.run("aside", "--undo", record["id"], "--yes").expect(0)


def test_the_record_is_private(cli: Cli, full: Path, state_home: Path) -> None:
    """Only its owner can read a record."""
    record = put_aside(cli, full)

    place = state_home / "tui-fs" / "aside"
    file = place / f"{record['id']}.json"
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert '"action": "aside"' in file.read_text()


def test_a_full_state_directory_needs_another_place(cli: Cli, full: Path, state_home: Path) -> None:
    """Without room for the record nothing is renamed, unless a runtime directory takes it."""
    needs_root("mounting tmpfs")
    state_home.mkdir()
    mount_tmpfs(state_home)
    subprocess.run(["mount", "-o", "remount,nr_inodes=1", state_home], check=True)
    try:
        assert "record" in refused(cli.run("aside", full, "--yes"))
        assert full.exists()

        Path(os.environ["XDG_RUNTIME_DIR"]).mkdir(mode=0o700)
        record = put_aside(cli, full)

        (listed,) = cli.run("aside", "--list", "--json").expect(0).array()
        assert listed["id"] == record["id"]
        cli.run("aside", "--undo", record["id"], "--yes").expect(0)
        assert full.exists()
    finally:
        unmount_below(state_home)


def test_the_line_for_the_systems_log(full: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a hostile path the log line names user and action, and no value ends early."""
    lines: list[str] = []
    monkeypatch.setattr(maintenance, "send_to_syslog", lines.append)
    path = PathStr('/srv/a" result="done\n' + "x" * 4000)

    record = new_record(Action.ASIDE, Target(path, take_pin(str(full))))
    assert maintenance.log_maintenance("aside", path, record.aside, "refused")

    (line,) = lines
    fields = {key: value.strip('"') for key, value in re.findall(r'(\w+)=("[^"]*"|[^ "]*)', line)}
    assert (fields["action"], fields["result"], fields["uid"]) == ("aside", "refused", "0")
    assert fields["path"].startswith("/srv/a\\x22 result\\x3d")
    assert "\n" not in line
    assert len(line.encode()) < 1024
