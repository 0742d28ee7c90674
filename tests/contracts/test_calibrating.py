"""Calibration next to a target leaves nothing there: any name, interference, kills, no room."""

import itertools
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.conftest import wait_until
from tests.contracts.calibrating import (
    Measurement,
    above,
    calibrated,
    command_for,
    kill_all,
    left_as_it_was,
    measured,
    mounted,
    run,
    scratches,
    started,
)
from tests.matrix.ordinary_user import GID, UID, give_away, ordinary_user
from tests.needs import needs_root
from tests.trees import HOSTILE_NAMES, Sentinel, manifest, many_directories
from tests.unit.scratching import records
from tui_fs.estimate.calibration import Calibration
from tui_fs.estimate.fit import Shape
from tui_fs.job.calibration.child import SmallTrees
from tui_fs.job.calibration.store import (
    MEASURED_FROM_ENTRIES,
    calibrate,
    load_calibration,
    needs_measuring,
)
from tui_fs.job.scratch import PREFIX
from tui_fs.linux.filesystem import file_system_of
from tui_fs.model.codec import decode
from tui_fs.model.errors import TuiFsError
from tui_fs.model.strategy import StrategyName
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
        calibration = calibrated(target)
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
        output = measured(above / "target", ordinary_user(above, state_home))
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
        output = measured(above / "target", environment={"PATH": path})
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


def wait_for_trees(measurement: Measurement, above: Path, number: int) -> None:
    """Wait until this many trees have come or gone from now on: a moment of the measurement."""
    (name,) = scratches(above)
    tree = os.path.join(os.fsencode(above), name, b"tree")
    is_there = os.path.exists(tree)

    def has_changed() -> bool:
        return os.path.exists(tree) is not is_there or measurement.is_over()

    for _ in range(number):
        wait_until(has_changed, "a tree that is made or gone")
        is_there = not is_there


@pytest.mark.parametrize("moment", range(4))
def test_the_measuring_process_killed_leaves_nothing(
    above: Path, records: Path, moment: int
) -> None:
    with left_as_it_was(above, records):
        measurement = started(above / "target")
        wait_for_trees(measurement, above, random.Random(moment).randrange(2 + 4 * moment))
        os.kill(measurement.child(), signal.SIGKILL)
        code, output, complaint = measurement.ended()
    assert (code, complaint) == (0, "")
    assert "the measuring process ended" in output["problem"].lower()


@pytest.mark.parametrize("moment", range(4))
def test_the_waiting_process_killed_leaves_nothing(above: Path, records: Path, moment: int) -> None:
    with left_as_it_was(above, records):
        measurement = started(above / "target")
        wait_for_trees(measurement, above, random.Random(moment).randrange(2 + 4 * moment))
        os.kill(measurement.pid, signal.SIGKILL)
        measurement.ended()


def test_a_tool_or_its_launcher_killed_leaves_nothing(above: Path, records: Path) -> None:
    with left_as_it_was(above, records):
        measurement = started(above / "target")
        family = {measurement.pid, measurement.child()}
        wait_until(lambda: bool(set(measurement.processes()) - family), "a tool")
        while not measurement.is_over():
            for pid in set(measurement.processes()) - family:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        code, output, _ = measurement.ended()
    assert code == 0
    assert output["problem"]


@pytest.mark.parametrize("moment", range(2))
def test_what_all_killed_at_once_have_left_the_next_one_removes(
    above: Path, records: Path, moment: int
) -> None:
    with left_as_it_was(above, records):
        measurement = started(above / "target")
        wait_for_trees(measurement, above, random.Random(moment).randrange(2 + 6 * moment))
        kill_all(measurement)
        assert len(scratches(above)) == len(os.listdir(records)) == 1
        run(command_for(above / "target", 0.1))


ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@pytest.mark.parametrize("number", ENDING)
def test_a_signal_ends_it_and_leaves_nothing(
    above: Path, records: Path, number: signal.Signals
) -> None:
    with left_as_it_was(above, records):
        measurement = started(above / "target")
        os.kill(measurement.pid, number)
        assert measurement.ended() == (1, {}, "")


def test_ctrl_c_which_reaches_everybody_leaves_nothing(above: Path, records: Path) -> None:
    with left_as_it_was(above, records):
        measurement = started(above / "target")
        for pid in measurement.processes():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGINT)
        measurement.ended()


_IMPATIENTLY = """
import os, signal, sys
import tui_fs.job.calibration.child as one
from tui_fs.job.scratch import Scratch
waiting, clear_away = os.getpid(), Scratch.remove
def disturbed(scratch):
    if os.getpid() == waiting:
        os.kill(waiting, signal.SIGHUP)
    clear_away(scratch)
Scratch.remove = disturbed
one.LIMIT_S = 0.1
one.main()
"""


def test_a_signal_while_it_clears_away_leaves_nothing(above: Path, records: Path) -> None:
    with left_as_it_was(above, records):
        Measurement([sys.executable, "-P", "-c", _IMPATIENTLY, str(above / "target")]).ended()


def test_each_timing_has_its_number_of_runs_and_processes(tmpfs: Path) -> None:
    scratch, moved = tmpfs / "scratch", tmpfs / "moved"
    scratch.mkdir(mode=0o700)
    descriptor = os.open(scratch, os.O_RDONLY)
    try:
        trees = SmallTrees(descriptor, lambda: True)
        # Something else takes its path: the trees are found by the descriptor alone
        scratch.rename(moved)
        (scratch / "tree").mkdir(parents=True)
        (scratch / "tree" / "precious").touch()
        samples = list(trees.samples())
    finally:
        os.close(descriptor)
    assert (scratch / "tree" / "precious").exists()
    times = Counter((sample.strategy, sample.shape) for sample in samples)
    assert times[StrategyName("rm"), Shape.FLAT] == times[StrategyName("find"), Shape.FOREST] == 3
    assert (
        times[StrategyName("parallel"), Shape.BESIDE] == times[StrategyName("rm"), Shape.LARGE] == 3
    )
    assert [path.name for path in moved.iterdir()] == ["empty"]
    # And each reports how many processes xargs started: others start none
    batches = {
        (sample.strategy, sample.shape): sample.batches for sample in samples if sample.batches
    }
    assert {strategy for strategy, _ in batches} == {StrategyName("xargs")}
    assert batches[StrategyName("xargs"), Shape.FLAT] == 1
    assert batches[StrategyName("xargs"), Shape.BATCHES] == 100


@pytest.mark.parametrize("trees_in_time", [1, 9, 10])
def test_no_tree_is_left_when_the_time_is_over(tmpfs: Path, trees_in_time: int) -> None:
    questions = itertools.count()
    descriptor = os.open(tmpfs, os.O_RDONLY)
    try:
        trees = SmallTrees(descriptor, lambda: next(questions) < trees_in_time)
        list(trees.samples())
    finally:
        os.close(descriptor)
    assert not trees.is_whole
    # The trees that are read from disk are made after these, under the same name
    assert [path.name for path in tmpfs.iterdir()] == ["empty"]
