"""What a killed session of the tests has mounted and made goes, and nothing of a living one."""

import fcntl
import os
import tempfile
from pathlib import Path

import pytest

from tests.filesystems import PREFIX, take_down_leftovers


def test_a_session_of_another_pid_namespace_keeps_what_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    no_process = int(Path("/proc/sys/kernel/pid_max").read_text())
    root = tmp_path / f"{PREFIX}{no_process}-abc"
    (root / "ext4").mkdir(parents=True)
    lock = os.open(root, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    take_down_leftovers()
    assert (root / "ext4").exists()
    os.close(lock)
    take_down_leftovers()
    assert not root.exists()
