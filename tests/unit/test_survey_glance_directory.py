"""What a part of one directory says of the whole of it."""

import math
import os
import random
from pathlib import Path

import pytest

from tests.trees import flat
from tui_fs.survey.glance_directory import EXT, DirectoryReading

FILES, DIRECTORIES = 6_000, 6_000


@pytest.mark.parametrize("are_counted", [True, False])
def test_directories_are_known_as_well_as_their_number_is(ext4: Path, are_counted: bool) -> None:
    # Given a large directory, half of it directories, whose link count tells how many or not
    flat(ext4 / "t", FILES)
    for number in range(DIRECTORIES):
        os.mkdir(ext4 / "t" / f"d{number}")
    descriptor = os.open(ext4 / "t", os.O_RDONLY)
    fields = list(os.fstat(descriptor))
    fields[3] = fields[3] if are_counted else 1  # ext4 above 64,998
    status = os.stat_result(fields)
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
