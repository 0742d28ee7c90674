"""Reports of the space when samples fail, or when targets are on several devices."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from tests.unit.test_job_store import plan
from tui_fs.job import freed_space
from tui_fs.job.freed_space import SpaceWatch
from tui_fs.linux.open_files import LIMIT_S, HeldFile, Holder, HoldKind, OpenFileScan
from tui_fs.model.errors import BadInput
from tui_fs.model.paths import PathStr
from tui_fs.model.space import DiscrepancyKind

MIB = 1 << 20
LARGE = replace(plan(), expected=replace(plan().expected, freed_bytes_max=64 * MIB))


def test_a_file_system_that_cannot_be_read_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(_: str) -> None:
        raise BadInput("The mount table is damaged.")

    monkeypatch.setattr(freed_space, "file_system_of", failing)
    watch = SpaceWatch(plan(), {1: "/place"}, ["/place"])
    (cause,) = watch.causes(None, None, 0, is_finished=True)
    assert cause.kind is DiscrepancyKind.NOT_LOOKED_AT
    assert "/place" in cause.sentence and "damaged" in cause.sentence


def test_unreadable_processes_cost_no_job_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def failing(*_: object, **__: object) -> OpenFileScan:
        raise OSError("no /proc")

    monkeypatch.setattr(freed_space, "scan_open_files", failing)
    assert SpaceWatch(LARGE, {1: "/"}, ["/"]).causes(None, None, 0, is_finished=False) == ()


def test_holders_on_all_devices_of_one_file_system_are_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Two subvolumes of one file system, on each a deleted file that is held since
    looks: list[int] = []

    def looking(_: Sequence[str], device: int, limit_s: float) -> OpenFileScan:
        assert 0 < limit_s < LIMIT_S  # shared
        looks.append(device)
        if len(looks) <= 2:
            return OpenFileScan()
        holder = Holder(device, "daemon", 0, 3, HoldKind.DESCRIPTOR, writes=True, is_own=False)
        return OpenFileScan(
            deleted=(HeldFile(PathStr(f"{plan().paths[0]}/x"), device, 7, 64 * MIB, (holder,)),)
        )

    monkeypatch.setattr(freed_space, "scan_open_files", looking)
    watch = SpaceWatch(LARGE, {11: "/", 12: "/"}, ["/"])
    causes = watch.causes(None, None, 0, is_finished=True)
    assert {cause.pid for cause in causes} == {11, 12}
