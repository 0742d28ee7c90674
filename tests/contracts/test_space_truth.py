"""After a real deletion on a real ext4, the causes are those that were made."""

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.filesystems import mount_image, unmount_below
from tests.needs import needs_tool
from tests.waiting_process import StartPython
from tui_fs.job.freed_space import explain_freed_space
from tui_fs.job.planning import expected_of
from tui_fs.linux.filesystem import file_system_of, settle, space_of
from tui_fs.linux.open_files import OpenFileScan, scan_open_files
from tui_fs.model.space import Discrepancy, DiscrepancyKind, Space
from tui_fs.model.strategy import Options
from tui_fs.model.survey import Survey
from tui_fs.survey.runner import SurveyRunner
from tui_fs.survey.shared_extents import shared_space

MIB = 1 << 20
_HOLD = "file = open(sys.argv[1])"
_LOOK_LIMIT_S = 30.0  # the machine may be busy


@dataclass(frozen=True)
class Before:
    """The state before a deletion."""

    target: Path
    device: int
    survey: Survey
    space: Space | None
    held: OpenFileScan

    @classmethod
    def of(cls, target: Path) -> "Before":
        """Survey a tree and record the state of its file system."""
        subprocess.run(["sync", "-f", target], check=True)
        survey = list(SurveyRunner([str(target)]).run())[-1]
        device = target.stat().st_dev
        scan = scan_open_files([str(target)], device, limit_s=_LOOK_LIMIT_S)
        return cls(target, device, survey, space_of(str(target)), scan)

    def causes(self) -> tuple[Discrepancy, ...]:
        """Delete it, compare the space, and return the causes."""
        subprocess.run(["rm", "-rf", "--", self.target], check=True)
        place = str(self.target.parent)
        settle(place)
        survey = self.survey
        return explain_freed_space(
            before=self.space,
            after=space_of(place),
            expected=expected_of(survey, Options(), file_system_of(place).kind),
            finished=True,
            deleted_entries=survey.totals.entries,
            file_system=file_system_of(place),
            targets=(str(self.target),),
            held_before=self.held,
            held_after=scan_open_files([str(self.target)], self.device, limit_s=_LOOK_LIMIT_S),
        )


@pytest.fixture
def small_ext4(mount_root: Path) -> Iterator[Path]:
    """Yield a new ext4 of 64 MiB with half of it reserved for root."""
    reserve, options = ("-m", "50"), "loop,noinit_itable"
    point = mount_image(mount_root / "reserved", "ext4", 64 * MIB, *reserve, options=options)
    yield point
    unmount_below(point)


def write(path: Path, mebibytes: int) -> None:
    """Write a file of this size in MiB."""
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"x" * (mebibytes * MIB))


def test_nothing_to_explain(ext4: Path) -> None:
    write(ext4 / "t" / "big", 20)
    assert Before.of(ext4 / "t").causes() == ()


def test_a_held_file(ext4: Path, start_python: StartPython) -> None:
    file = ext4 / "t" / "big"
    write(file, 20)
    write(ext4 / "t" / "other", 5)
    blocks_bytes = file.stat().st_blocks * 512
    pid = start_python(_HOLD, file)
    before = Before.of(ext4 / "t")
    assert [open_file.path for open_file in before.held.held_files] == [str(file)]
    (cause,) = before.causes()
    assert (cause.kind, cause.pid, cause.bytes) == (DiscrepancyKind.HELD_OPEN, pid, blocks_bytes)
    assert cause.command == Path(f"/proc/{pid}/comm").read_text().strip()
    assert str(file) in cause.sentence
    # And following its advice frees the space
    command = cause.advice.partition("open: '")[2].partition("'")[0]
    assert command.startswith(f": > /proc/{pid}/fd/")
    free_before = os.statvfs(ext4).f_bfree
    subprocess.run(["sh", "-c", command], check=True)
    settle(str(ext4))
    freed_bytes = (os.statvfs(ext4).f_bfree - free_before) * os.statvfs(ext4).f_frsize
    assert freed_bytes == blocks_bytes


def test_another_deleted_file(ext4: Path, start_python: StartPython) -> None:
    old = ext4 / "t" / "old"
    write(old, 3)
    old_pid = start_python(_HOLD, old)
    old.unlink()
    write(ext4 / "t" / "new", 20)
    new_pid = start_python(_HOLD, ext4 / "t" / "new")
    discrepancies = [(cause.kind, cause.pid) for cause in Before.of(ext4 / "t").causes()]
    assert discrepancies == [
        (DiscrepancyKind.HELD_OPEN, new_pid),
        (DiscrepancyKind.HELD_OPEN_ELSEWHERE, old_pid),
    ]


def test_hard_links_outside(ext4: Path) -> None:
    write(ext4 / "t" / "big", 20)
    os.link(ext4 / "t" / "big", ext4 / "outside")
    (cause,) = Before.of(ext4 / "t").causes()
    assert (cause.kind, cause.bytes) == (DiscrepancyKind.LINKS_OUTSIDE, 20 * MIB)


@pytest.mark.parametrize("kind", ["xfs", "btrfs", "btrfs snapshot"])
def test_blocks_of_reflink_copies_and_snapshots_are_not_promised(
    request: pytest.FixtureRequest, kind: str
) -> None:
    place: Path = request.getfixturevalue(kind.split()[0])
    target = place / "volume" / "target"
    if kind == "btrfs snapshot":
        subvolume("create", place / "volume")
    target.mkdir(parents=True)
    write(target / "shared", 8)
    write(target / "own", 2)
    subprocess.run(["sync", "-f", target], check=True)
    if kind == "btrfs snapshot":
        subvolume("snapshot", place / "volume", place / "snapshot")
        shared_bytes = 10 * MIB
    else:
        copy = place / "copy"
        subprocess.run(["cp", "--reflink=always", target / "shared", copy], check=True)
        shared_bytes = 8 * MIB
    before = Before.of(target)
    survey = before.survey
    assert survey.shared_bytes == shared_bytes
    assert survey.freed_bytes_max - survey.freed_bytes_min == shared_bytes
    assert [f.kind for f in survey.findings if f.kind == "shared-blocks"] == ["shared-blocks"]
    (cause,) = before.causes()
    assert cause.kind is DiscrepancyKind.SNAPSHOTS
    assert cause.bytes is not None
    assert abs(cause.bytes - shared_bytes) <= MIB // 2
    if kind == "btrfs snapshot":
        subvolume("delete", place / "snapshot")
        subvolume("delete", place / "volume")


def subvolume(action: str, *paths: Path) -> None:
    needs_tool("btrfs", package="btrfs-progs")
    subprocess.run(["btrfs", "subvolume", action, *paths], check=True, capture_output=True)


def test_few_examined_files_promise_nothing_of_the_rest(xfs: Path) -> None:
    target = xfs / "target"
    target.mkdir()
    for number in range(20):
        write(target / f"file-{number}", 1)
    subprocess.run(["cp", "-r", "--reflink=always", target, xfs / "copy"], check=True)
    moments = iter(range(100))
    space = shared_space([str(target)], limit_s=3, clock=lambda: float(next(moments)))
    assert not space.is_complete
    assert space.shared_bytes == space.examined_bytes == space.examined_files * MIB
    assert space.freed_bytes_at_least(20 * MIB) == 0
    assert shared_space([str(target)]).is_complete


def test_the_reserve_of_a_full_file_system(small_ext4: Path) -> None:
    while (room := os.statvfs(small_ext4)).f_bfree * room.f_frsize > 12 * MIB:
        write(small_ext4 / f"filling{room.f_bfree}", 2)
    write(small_ext4 / "t" / "big", 8)
    assert os.statvfs(small_ext4).f_bavail == 0
    before = Before.of(small_ext4 / "t")
    assert before.space is not None
    assert before.space.free_bytes == 0
    free_bytes = before.space.reserved_bytes
    (cause,) = before.causes()
    # They have come back, and only root can use them
    freed_bytes = os.statvfs(small_ext4).f_bfree * room.f_frsize - free_bytes
    assert (cause.kind, cause.bytes) == (DiscrepancyKind.RESERVED, freed_bytes)
    assert freed_bytes >= 8 * MIB
    assert "other users can use 0 B" in cause.sentence


def test_others_that_write_meanwhile(ext4: Path) -> None:
    write(ext4 / "t" / "big", 20)
    before = Before.of(ext4 / "t")
    write(ext4 / "beside", 6)
    (cause,) = before.causes()
    assert cause.kind is DiscrepancyKind.OTHERS_WROTE
    assert cause.bytes is not None
    assert 6 * MIB <= cause.bytes < 7 * MIB
