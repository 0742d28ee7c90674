"""Very many targets among very many mounts: each check reads the mount table once."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import DEADLINE_S, Cli
from tests.needs import needs_root, needs_tool
from tui_fs.job.permission import check_targets
from tui_fs.linux.mounts import MOUNTINFO, MountTable, read_mounts
from tui_fs.safety import policy, rules

TARGETS = 100
MOUNTS = 1_000


def test_a_job_starts_beside_thousands_of_mounts(cli: Cli, ext4: Path) -> None:
    needs_root("a mount namespace")
    targets = [ext4 / f"t{number}" for number in range(TARGETS)]
    for target in targets:
        (target / "d").mkdir(parents=True)
    unshare = ["unshare", "--mount", "--propagation", "private"]
    many = [sys.executable, "-m", "tests.many_mounts", str(ext4 / "mounts"), str(MOUNTS)]
    delete = [cli.program, "delete", "--strategy", "rm", "--yes", *map(str, targets)]
    finished = subprocess.run(
        [*unshare, *many, *delete],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=2 * DEADLINE_S,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    assert os.listdir(ext4) == ["mounts"]


def test_the_mount_table_is_read_once_for_all_targets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    targets = [tmp_path / f"t{number}" for number in range(5)]
    for target in targets:
        target.mkdir()
    read: list[str] = []

    def counting(mountinfo: str = MOUNTINFO) -> MountTable:
        read.append(mountinfo)
        return read_mounts(mountinfo)

    for module in (rules, policy):
        monkeypatch.setattr(module, "read_mounts", counting)
    check_targets([str(target) for target in targets])
    assert read == [MOUNTINFO]


@pytest.mark.parametrize(
    "command",
    (
        ("delete", "--strategy", "rm", "--dry-run"),
        ("estimate", "--no-measuring"),
        ("estimate", "--quick"),
    ),
    ids=" ".join,
)
def test_more_targets_do_not_make_a_command_read_the_mount_table_more_often(
    cli: Cli, tmp_path: Path, command: tuple[str, ...]
) -> None:
    strace = needs_tool("strace", "strace")
    reads: list[int] = []
    for number in (2, 20):
        targets = [tmp_path / f"of-{number}" / f"t{index}" for index in range(number)]
        for target in targets:
            target.mkdir(parents=True)
        log = tmp_path / f"log-{number}"
        tracing = [strace, "--follow-forks", "-qq", "--trace=openat", f"--output={log}"]
        subprocess.run(
            [*tracing, cli.program, *command, *map(str, targets)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=DEADLINE_S,
            check=True,
        )
        reads.append(log.read_text(errors="replace").count("/proc/self/mountinfo"))
    assert reads[0] == reads[1] > 0
