"""Space freed from metadata: the estimate before, and statvfs afterwards."""

import os
import shutil
from pathlib import Path

import pytest

from tests.conftest import Cli
from tests.trees import flat, many_directories
from tui_fs.linux.filesystem import settle


def free_bytes(place: Path) -> int:
    """Return what is free when all that was begun is done."""
    settle(str(place))
    now = os.statvfs(place)
    return now.f_bfree * now.f_frsize


@pytest.mark.parametrize("kind", ["xfs", "ext4"])
@pytest.mark.parametrize("shape", ["flat", "directories"])
def test_what_comes_back_lies_within_the_range(
    cli: Cli, request: pytest.FixtureRequest, kind: str, shape: str
) -> None:
    # Empty files: what comes back is their inodes, and the blocks of directories
    place: Path = request.getfixturevalue(kind)
    target = place / "target"
    if shape == "flat":
        flat(target, 20_000)
    else:
        many_directories(target, 300, 60)
    report = cli.run("survey", "--json", target).expect(0).object()
    output = cli.run("survey", target).expect(0).stdout
    before = free_bytes(place)
    shutil.rmtree(target)
    freed = free_bytes(place) - before
    least, most = report["freed_bytes_min"], report["freed_bytes_max"]
    assert least <= freed <= most + report["metadata_bytes_max"]
    has_chunks = kind == "xfs"
    assert (report["metadata_bytes_max"] > 0) is has_chunks
    assert (b"metadata is freed in chunks" in output) is has_chunks
