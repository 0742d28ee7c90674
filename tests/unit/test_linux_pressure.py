"""Pressure and disk load, and kernels that report neither."""

import os
from pathlib import Path

import pytest

from tui_fs.linux.pressure import DiskLoad, ProcessorUse, io_pressure_percent, processor_use

SAMPLE = """\
some avg10=12.34 avg60=5.00 avg300=1.00 total=123456
full avg10=99.00 avg60=4.00 avg300=0.50 total=12345
"""


def test_the_share_in_which_some_task_waited_is_read(tmp_path: Path) -> None:
    (tmp_path / "io").write_text(SAMPLE)
    assert io_pressure_percent(str(tmp_path / "io")) == 12.34


def test_a_kernel_without_pressure_gives_none(tmp_path: Path) -> None:
    assert io_pressure_percent(str(tmp_path / "io")) is None


def test_a_file_without_the_line_gives_none(tmp_path: Path) -> None:
    (tmp_path / "io").write_text("")
    assert io_pressure_percent(str(tmp_path / "io")) is None


def test_the_use_of_all_processors_is_without_idle_and_waiting_time(tmp_path: Path) -> None:
    ticks = os.sysconf("SC_CLK_TCK")
    fields = [number * ticks for number in (1, 2, 4, 1000, 1000, 8, 16, 32, 64, 128)]
    stat = tmp_path / "stat"
    stat.write_text(f"cpu  {' '.join(map(str, fields))}\ncpu0 1 1 1 1 1 1 1 1 1 1\n")
    assert processor_use(str(stat)) == ProcessorUse(busy_s=31.0, stolen_s=32.0)


@pytest.mark.parametrize(
    "text", ["", "cpu 1 2 3\n", "cpu a b c d e f g h\n", "x 1 2 3 4 5 6 7 8\n"]
)
def test_a_kernel_without_the_use_of_processors_gives_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "stat").write_text(text)
    assert processor_use(str(tmp_path / "stat")) is None


DEVICE = os.makedev(8, 1)


class Disk:
    """A disk's statistics, and a clock."""

    def __init__(self, directory: Path) -> None:
        self.now_s = 10.0
        self.stat = directory / "8:1" / "stat"
        self.stat.parent.mkdir()
        self.busy(0)
        self.load = DiskLoad(DEVICE, str(directory), lambda: self.now_s)

    def busy(self, milliseconds: int) -> None:
        """Write the time it was busy since its start."""
        self.stat.write_text(f" 10 0 80 5 20 0 160 9 0 {milliseconds} 14 0 0 0 0\n")


@pytest.mark.parametrize(
    ("busy_ms", "passed_s", "percent"), [(0, 1, 0), (250, 1, 25), (500, 0.5, 100), (900, 0.5, 100)]
)
def test_the_share_since_the_last_sample(
    tmp_path: Path, busy_ms: int, passed_s: float, percent: float
) -> None:
    disk = Disk(tmp_path)
    disk.busy(busy_ms)
    disk.now_s += passed_s
    assert disk.load.percent() == percent


@pytest.mark.parametrize("text", ["", "1 2 3", "a b c d e f g h i j k"])
def test_other_books_are_no_figure(tmp_path: Path, text: str) -> None:
    disk = Disk(tmp_path)
    disk.stat.write_text(text)
    disk.now_s += 1
    assert disk.load.percent() is None


def test_without_a_disk_there_is_no_figure(tmp_path: Path) -> None:
    assert DiskLoad(os.makedev(0, 42), str(tmp_path)).percent() is None
