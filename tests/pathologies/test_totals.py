"""Totals are those of du and find in trees with everything that is hard to count.

The trees of the pathologies are compared in `test_found`, where they are made.
"""

import os
import stat
import subprocess
from pathlib import Path

import pytest

from tests.pathologies.counting import surveyed, totals_of_survey, totals_of_tools
from tests.pathologies.grounds import FILESYSTEMS, Grounds
from tests.trees import flat, hostile_names
from tui_fs.survey.runner import Backend

_BACKENDS: tuple[Backend, ...] = ("scandir", "engine")


@pytest.mark.parametrize("filesystem", FILESYSTEMS)
def test_counts_entries_of_every_sort(filesystem: str, grounds: Grounds) -> None:
    tree = grounds.directory_on(filesystem)
    _make_every_sort(tree)

    expected = totals_of_tools(tree)
    assert expected["names of links"] == 2 * 50 + 3
    assert {b: totals_of_survey(tree, b) for b in _BACKENDS} == dict.fromkeys(_BACKENDS, expected)


def test_counts_all_of_usr_share() -> None:
    tree = Path("/usr/share")

    assert totals_of_survey(tree) == totals_of_tools(tree)


def test_counts_files_of_strange_dates(grounds: Grounds) -> None:
    tree = grounds.directory_on("tmpfs")
    dates_s = (-(1 << 40), 0, 1 << 45)
    for date_s in dates_s:
        (tree / str(date_s)).touch()
        os.utime(tree / str(date_s), (date_s, date_s))

    survey = surveyed(tree)

    (largest, *_) = survey.largest
    assert survey.totals.files == 3
    assert largest.newest_s == max(dates_s)


def test_a_group_of_hard_links_counts_bytes_once(grounds: Grounds) -> None:
    tree = grounds.directory_on("tmpfs")
    first = tree / "1" / "cache"
    first.mkdir(parents=True)
    for number in range(1_200):
        (first / f"file-{number}").write_bytes(b"x" * 4096)
    for name in ("2", "3"):
        subprocess.run(["cp", "-al", tree / "1", tree / name], check=True)

    group = next(g for g in surveyed(tree).groups if g.name == "cache")

    assert (group.directories, group.totals.files) == (3, 3_600)
    assert group.totals.allocated_bytes - 1_200 * 4096 < 1 << 20


def _make_every_sort(tree: Path) -> None:
    hostile_names(tree / "hostile")
    os.mkfifo(tree / "fifo")
    os.mknod(tree / "device", stat.S_IFCHR | 0o600, os.makedev(1, 3))
    (tree / "link").symlink_to("x" * 1_000)
    os.link(tree / "link", tree / "link again", follow_symlinks=False)
    (tree / "linked").mkdir()
    for number in range(50):
        (tree / "linked" / f"file-{number}").write_bytes(b"x" * 5_000)
        os.link(tree / "linked" / f"file-{number}", tree / "hostile" / f"again-{number}")
    (tree / "outside").write_bytes(b"y" * 9_000)
    os.link(tree / "outside", tree.parent / f"{tree.name}-outside")
    os.truncate(tree / "outside", 70 << 20)
    flat(tree / "emptied", 3_000)
    for file in list((tree / "emptied").iterdir())[5:]:
        file.unlink()
    subprocess.run(["sync", "--file-system", tree], check=True)
