"""Calibration next to a target leaves nothing there, for any name and under interference."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import wait_until
from tests.contracts.calibrating import (
    above,
    command_for,
    kill_all,
    left_as_it_was,
    run,
    scratches,
    started,
)
from tests.matrix.ordinary_user import GID, UID
from tests.needs import needs_root
from tests.trees import HOSTILE_NAMES, Sentinel, manifest, many_directories
from tests.unit.scratching import records
from tui_fs.job.calibration.store import (
    MEASURED_FROM_ENTRIES,
    calibrate,
    load_calibration,
    needs_measuring,
)
from tui_fs.job.scratch import PREFIX
from tui_fs.linux.filesystem import file_system_of
from tui_fs.strategies.registry import STRATEGIES

__all__ = ["above", "records"]


@pytest.mark.root
def test_nothing_is_left_on_any_file_system(filesystem: Path, records: Path) -> None:
    needs_root("mounting")
    target = filesystem / "target"
    many_directories(target, 2, 3)
    sentinel = Sentinel(filesystem)
    sentinel.plant(target / "planted")
    with left_as_it_was(filesystem, records):
        run(command_for(target))
    sentinel.assert_whole()


def test_what_is_measured_is_whole_and_holds_from_then_on(above: Path, records: Path) -> None:
    target = str(above / "target")
    assert needs_measuring(target, MEASURED_FROM_ENTRIES)
    assert not needs_measuring(target, MEASURED_FROM_ENTRIES - 1)
    with left_as_it_was(above, records):
        calibration = calibrate(target)
    assert set(calibration.prices) == set(STRATEGIES)
    assert all(price.start_s > 0 and price.name_s > 0 for price in calibration.prices.values())
    assert all(price.directory_s > 0 for price in calibration.prices.values())
    assert (calibration.kind, calibration.kernel) == ("tmpfs", os.uname().release)
    known = load_calibration(file_system_of(target))
    assert (known.calibration, known.is_of_this, known.is_fresh) == (calibration, True, True)
    assert not needs_measuring(target, 10 * MEASURED_FROM_ENTRIES)


@pytest.mark.parametrize("name", (HOSTILE_NAMES[3], b"\xff\xfe\n \x1b]0;x\x07"))
def test_any_name_will_do(tmpfs: Path, records: Path, name: bytes) -> None:
    above = os.path.join(os.fsencode(tmpfs), name)
    target = os.path.join(above, name)
    os.makedirs(target)
    with left_as_it_was(above, records):
        kill_all(started(target))
        assert len(scratches(above)) == 1
        output = run(command_for(target))
    assert "problem" not in output or "slow" in output["problem"]


_MEDDLER = """
import os, sys
above, precious, prefix = sys.argv[1:]
os.chdir(above)
os.setgroups([]); os.setresgid({gid}, {gid}, {gid}); os.setresuid({uid}, {uid}, {uid})
number = 0
open("ready", "w").close()
while True:
    for name in os.listdir("."):
        if name.startswith(prefix) and not os.path.islink(name):
            number += 1
            os.rename(name, f"moved-{{number}}")
            os.symlink(precious, name)
            open(f"mine-{{number}}", "w").close()
"""


@pytest.mark.root
def test_the_owner_of_the_place_leads_it_nowhere(tmpfs: Path, records: Path) -> None:
    # A target in the directory of a user who at once moves away what is made there, and
    # puts a link to something precious in its place
    needs_root("measuring in another user's directory")
    place = tmpfs / "theirs"
    place.mkdir()
    many_directories(place / "target", 2, 3)
    os.chown(place, UID, GID)
    tmpfs.chmod(0o755)
    sentinel = Sentinel(tmpfs)
    target = manifest(place / "target")
    script = _MEDDLER.format(uid=UID, gid=GID)
    meddler = subprocess.Popen(
        [sys.executable, "-c", script, str(place), str(sentinel.root), PREFIX]
    )
    try:
        wait_until((place / "ready").exists, "the meddler at work")
        for _ in range(3):
            run(command_for(place / "target", 0.3))
    finally:
        meddler.kill()
        meddler.wait()
    sentinel.assert_whole()
    assert manifest(place / "target") == target
    assert all(path.read_bytes() == b"" for path in place.glob("mine-*"))
    assert not any(os.listdir(path) for path in place.glob("moved-*"))
    assert os.listdir(records) == []
