"""A directory that cannot be examined is reported with the reason, not as missing."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Cli
from tests.filesystems import mount_image, unmount_below
from tests.needs import needs_root, needs_tool

COMMANDS = (
    ("survey",),
    ("survey", "--export", "-", "--format", "ncdu"),
    ("estimate",),
    ("estimate", "--quick"),
    ("delete", "--strategy", "rm", "--yes"),
    ("aside", "--yes"),
    ("recreate", "--yes"),
)


@pytest.fixture(scope="module")
def failed_xfs(mount_root: Path) -> Iterator[Path]:
    """Mount an xfs that answers everything with EIO, as after an error of its disk."""
    xfs_io = needs_tool("xfs_io", package="xfsprogs")
    point = mount_image(mount_root / "failed", "xfs", 320 << 20)
    (point / "target").mkdir()
    subprocess.run([xfs_io, "-x", "-c", "shutdown", point], check=True)
    yield point
    unmount_below(point)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_error_of_the_disk_is_named(cli: Cli, failed_xfs: Path, command: tuple[str, ...]) -> None:
    finished = cli.run(*command, "--", failed_xfs / "target").expect(2)
    finished.assert_one_sentence()
    assert "input/output error" in finished.stderr
    assert "dmesg" in finished.stderr


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_circle_of_links_is_named(cli: Cli, tmpfs: Path, command: tuple[str, ...]) -> None:
    (tmpfs / "a").symlink_to("b")
    (tmpfs / "b").symlink_to("a")
    finished = cli.run(*command, "--", tmpfs / "a" / "target").expect(2)
    finished.assert_one_sentence()
    assert "symbolic link" in finished.stderr


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_name_that_is_too_long_is_named(cli: Cli, tmpfs: Path, command: tuple[str, ...]) -> None:
    finished = cli.run(*command, "--", tmpfs / ("x" * 300)).expect(2)
    finished.assert_one_sentence()
    assert "4,095 bytes" in finished.stderr


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_lack_of_search_permission_is_named(
    cli: Cli, tmpfs: Path, command: tuple[str, ...]
) -> None:
    needs_root("running as another user")
    (tmpfs / "closed" / "target").mkdir(parents=True)
    (tmpfs / "closed").chmod(0o700)
    tmpfs.chmod(0o755)
    user = cli.as_ordinary_user(tmpfs)
    config = {"XDG_CONFIG_HOME": str(tmpfs / "config")}
    finished = user.run(*command, "--", tmpfs / "closed" / "target", environment=config).expect(2)
    assert "permission denied" in finished.stderr
    assert "does not exist" not in finished.stderr
