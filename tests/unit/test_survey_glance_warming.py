"""Asking for many inodes at once gives what asking one after another gives."""

import os
from pathlib import Path

import pytest

from tests.trees import flat, many_directories
from tui_fs.survey import glance_warming
from tui_fs.survey.glance_warming import Warming


@pytest.mark.parametrize("threshold_s", [0.0, 10.0])
def test_threads_and_turns_give_the_same(
    tmp_path: Path, threshold_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a disk that is taken for cold, or for warm / When asked / Then every name in its order
    monkeypatch.setattr(glance_warming, "_COLD_S", threshold_s)
    flat(tmp_path, 300)
    names = [*sorted(os.listdir(os.fsencode(tmp_path))), b"gone"]
    descriptor = os.open(tmp_path, os.O_RDONLY)
    warming = Warming(lambda: False)
    found = warming.stat(descriptor, names)
    assert warming.is_cold == (threshold_s == 0.0)
    assert [name for name, _ in found] == names
    assert [status for _, status in found] == [
        *(os.lstat(os.path.join(os.fsencode(tmp_path), name)) for name in names[:-1]),
        None,
    ]
    warming.close()
    os.close(descriptor)


def test_it_ends_when_the_time_is_up(tmp_path: Path) -> None:
    # Given no time / When asked for many / Then the first ones only, in their order
    flat(tmp_path, 300)
    names = sorted(os.listdir(os.fsencode(tmp_path)))
    descriptor = os.open(tmp_path, os.O_RDONLY)
    found = Warming(lambda: True).stat(descriptor, names)
    assert 0 < len(found) < 300
    assert [name for name, _ in found] == names[: len(found)]
    os.close(descriptor)


def test_reading_ahead_gives_back_its_descriptors(tmp_path: Path) -> None:
    # Given directories, one of them gone / When read ahead / Then no error, nothing left open
    many_directories(tmp_path / "t", 20, 3)
    before = len(os.listdir("/proc/self/fd"))
    above = os.open(tmp_path / "t", os.O_RDONLY)
    warming = Warming(lambda: False)
    warming.read_ahead(
        [(os.dup(above), name) for name in (*os.listdir(os.fsencode(tmp_path / "t")), b"gone")]
    )
    warming.close()
    os.close(above)
    assert len(os.listdir("/proc/self/fd")) == before
