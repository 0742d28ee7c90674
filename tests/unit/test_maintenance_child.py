"""The process that does what a screen was asked for."""

import fcntl
import os
import re
import subprocess
import threading
from pathlib import Path

import pytest

from tests.conftest import wait_until
from tui_fs.job.maintenance import run_maintenance
from tui_fs.job.store import state_directory
from tui_fs.model.errors import TuiFsError


def test_it_has_a_session_of_its_own(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    spool.mkdir()
    os.makedirs(state_directory(), mode=0o700)
    messages: list[str] = []
    thread = threading.Thread(
        target=lambda: messages.append(run_maintenance("aside", "--", str(spool)))
    )
    with open(os.path.join(state_directory(), "starting"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        inode = os.fstat(lock.fileno()).st_ino
        waits = re.compile(rf"-> FLOCK .* (\d+) \S+:{inode} ")
        thread.start()
        wait_until(lambda: bool(waits.search(Path("/proc/locks").read_text())), "its waiting")
        waiting = waits.search(Path("/proc/locks").read_text())
        assert waiting
        assert os.getsid(int(waiting[1])) != os.getsid(0)
    thread.join()
    assert messages
    assert messages[0].startswith(f"{spool} is now ")


def test_its_own_sentence_is_reported_when_it_refuses(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    (spool / "full").mkdir(parents=True)

    with pytest.raises(TuiFsError, match=r"^The directory is not empty\. Empty it"):
        run_maintenance("recreate", "--", str(spool))


def test_all_of_its_result_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    stdout = b"/a is recreated: its index took 8.0 KiB, now 4.0 KiB.\nOne more line.\n"
    stderr = b"tui-fs: 2 processes could not be inspected and may use the directory.\n"

    def run(*_: object, **__: object) -> subprocess.CompletedProcess[bytes]:
        return subprocess.CompletedProcess([], 0, stdout, stderr)

    monkeypatch.setattr(subprocess, "run", run)

    assert run_maintenance("recreate", "--", "/a").splitlines() == [
        "/a is recreated: its index took 8.0 KiB, now 4.0 KiB.",
        "One more line.",
        "2 processes could not be inspected and may use the directory.",
    ]
