"""Pressure stall information, from samples of /proc/pressure/io."""

from pathlib import Path

from tui_fs.linux.pressure import io_pressure_percent

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
