"""Measuring where room, rights or tools are missing leaves nothing, and a sentence says why."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.contracts.calibrating import above, command_for, left_as_it_was, mounted, run
from tests.matrix.ordinary_user import GID, UID, give_away, ordinary_user
from tests.needs import needs_root
from tests.trees import manifest, many_directories
from tests.unit.scratching import records
from tui_fs.estimate.calibration import Calibration
from tui_fs.job.calibration.store import calibrate
from tui_fs.model.codec import decode
from tui_fs.model.errors import TuiFsError
from tui_fs.strategies.registry import STRATEGIES

__all__ = ["above", "records"]


@contextmanager
def untouched(above: Path, records: Path) -> Iterator[None]:
    """Fail unless nothing was even made."""
    with left_as_it_was(above, records):
        before = manifest(above)
        yield
        assert manifest(above) == before
    assert not records.exists()


def refused(target: Path) -> str:
    """Measure where that is impossible; return the error's sentence."""
    with pytest.raises(TuiFsError) as error:
        calibrate(str(target))
    sentence = error.value.sentence
    assert sentence.endswith(".")
    assert len(sentence.split()) > 2, sentence
    return sentence


@pytest.mark.root
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("size=256m", "needs 512.0 MiB of free space, and only 256.0 MiB is free"),
        ("size=1g,nr_inodes=10k", "needs 20,000 free inodes, and only 10,"),
    ],
)
def test_where_room_is_scarce_nothing_is_made(
    tmpfs: Path, records: Path, options: str, words: str
) -> None:
    needs_root("mounting tmpfs")
    place = mounted(tmpfs / "small", options)
    many_directories(place / "target", 2, 3)
    with untouched(place, records):
        assert words in refused(place / "target")


@pytest.mark.root
def test_where_nothing_may_be_written_nothing_is_made(tmpfs: Path, records: Path) -> None:
    needs_root("mounting tmpfs")
    place = mounted(tmpfs / "sealed", "size=1g")
    many_directories(place / "target", 2, 3)
    subprocess.run(["mount", "-o", "remount,ro", place], check=True)
    with untouched(place, records):
        assert "read-only" in refused(place / "target")


@pytest.mark.root
def test_an_ordinary_user_measures_where_they_may_write(
    above: Path, state_home: Path, records: Path
) -> None:
    needs_root("becoming another user")
    give_away(above)
    give_away(state_home)
    with left_as_it_was(above, records):
        output = run([*ordinary_user(above, state_home), *command_for(above / "target", 2.0)])
    assert decode(Calibration, output).kind == "tmpfs"


@pytest.mark.root
def test_an_ordinary_user_makes_nothing_where_they_may_not_write(
    above: Path, state_home: Path, records: Path
) -> None:
    needs_root("becoming another user")
    os.chown(above / "target", UID, GID)
    above.chmod(0o755)
    give_away(state_home)
    with untouched(above, records):
        output = run([*ordinary_user(above, state_home), *command_for(above / "target")])
    assert len(output["problem"].split()) > 3


def tools_without(missing: str, directory: Path) -> str:
    """Return a PATH in which one tool is not to be found."""
    directory.mkdir()
    for name in {"rm", "rmdir", "find", "xargs", "rsync"} - {missing}:
        tool_path = next(
            (
                path
                for place in os.get_exec_path()
                if os.access(path := os.path.join(place, name), os.X_OK)
            ),
            None,
        )
        if tool_path is not None:
            (directory / name).symlink_to(os.path.realpath(tool_path))
    return str(directory)


@pytest.mark.parametrize("missing", ("rsync", "xargs"))
def test_what_is_not_installed_is_not_measured(
    above: Path, records: Path, tmp_path: Path, missing: str
) -> None:
    path = tools_without(missing, tmp_path / "tools")
    with left_as_it_was(above, records):
        output = run(command_for(above / "target", 2.0), {"PATH": path})
    calibration = decode(Calibration, output)
    assert calibration.prices[missing].name_s > 0
    assert set(calibration.prices) == set(STRATEGIES)


@pytest.mark.parametrize("missing", ("rm", "find"))
def test_without_rm_a_sentence_says_so(
    above: Path, records: Path, tmp_path: Path, missing: str
) -> None:
    # A machine where rm, the baseline of all measurements, cannot run (it needs find)
    path = tools_without(missing, tmp_path / "tools")
    with left_as_it_was(above, records):
        output = run(command_for(above / "target"), {"PATH": path})
    assert missing in output["problem"].split()
