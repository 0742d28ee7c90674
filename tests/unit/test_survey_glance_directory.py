"""What a part of one directory says of the whole of it."""

import math
import os
import random
from pathlib import Path

import pytest

from tests.trees import flat
from tui_fs.survey.glance_directory import EXT, DirectoryReading
from tui_fs.survey.glance_looking import BLOCK_BYTES, Looking
from tui_fs.survey.glance_statistics import Sum
from tui_fs.survey.glance_tree import Node, Root

FILES, DIRECTORIES = 6_000, 6_000


def half_directories(directory: Path) -> None:
    """Make a large directory, half of it directories."""
    flat(directory, FILES)
    for number in range(DIRECTORIES):
        os.mkdir(directory / f"d{number}")


def uncounted(status: os.stat_result) -> os.stat_result:
    """Give the status of a directory the link count of one with more than 64,998 on ext4."""
    further = {name: getattr(status, name) for name in dir(status) if name.startswith("st_")}
    return os.stat_result((*status[:3], 1, *status[4:]), further)


@pytest.mark.parametrize("are_counted", [True, False])
def test_directories_are_known_as_well_as_their_number_is(ext4: Path, are_counted: bool) -> None:
    # Given a large directory, half of it directories, whose link count tells how many or not
    half_directories(ext4 / "t")
    descriptor = os.open(ext4 / "t", os.O_RDONLY)
    status = os.fstat(descriptor)
    status = status if are_counted else uncounted(status)
    # When a part of it is read
    reader = DirectoryReading(EXT, random.Random(1), lambda: False)
    reading = reader.read(descriptor, status, lambda: False)
    os.close(descriptor)
    # Then its directories are known, or how well they are not
    assert not reading.is_read_to_end
    off = abs(reading.directories - DIRECTORIES)
    spread = math.sqrt(reading.directories_variance)
    assert off <= 3 * spread
    assert spread < 0.05 * DIRECTORIES
    assert (spread == 0) == are_counted


def test_what_was_seen_of_a_part_is_known_and_the_rest_is_not(
    ext4: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given such a directory whose link count tells nothing, and content in every file
    half_directories(ext4 / "t")
    for number, name in enumerate(sorted(os.listdir(ext4 / "t"))):
        if not name.startswith("d"):
            (ext4 / "t" / name).write_bytes(bytes(1 + number % 2 * 4096))
    descriptor = os.open(ext4 / "t", os.O_RDONLY)
    status = uncounted(os.fstat(descriptor))
    root = Root(os.fsencode(ext4 / "t"), descriptor, status.st_dev, EXT)
    looking = Looking([root], random.Random(1), lambda _: False)
    monkeypatch.setattr(looking.ways, "open", lambda _: (descriptor, status))
    # When a part of it is read and some of its files are looked at
    sums, reading = looking.read(Node(root, b"", None, 0, len(root.path)))
    looking.close()
    # Then how many directories there are is as uncertain as that part leaves it
    assert sums.variances[Sum.DIRECTORIES] == reading.directories_variance > 0
    # And each file stands for as many, their own bytes are certain, and one says little
    others, number = reading.entries - reading.directories, looking.files_looked_at
    assert (sums.files_stood_for, sums.effective_files) == pytest.approx((others, number))
    own = status.st_blocks * BLOCK_BYTES
    assert own + 4_096 * number <= sums.seen[Sum.ALLOCATED] <= own + 8_192 * number
    assert sums.largest_bytes == pytest.approx(others * 8_192 / number)
