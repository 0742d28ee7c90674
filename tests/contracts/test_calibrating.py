"""Measuring beside a target leaves nothing there, whoever is killed and whoever interferes."""

import json
import os
import random
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.conftest import Json, wait_until
from tests.filesystems import unmount_below
from tests.matrix.ordinary_user import GID, UID, write_launcher
from tests.needs import needs_root
from tests.trees import HOSTILE_NAMES, Manifest, Sentinel, manifest, many_directories
from tui_fs.cost.calibration import Calibration
from tui_fs.job.calibrating import (
    MEASURED_FROM_ENTRIES,
    calibrate,
    measure,
    needs_measuring,
)
from tui_fs.job.calibrations import known_of
from tui_fs.job.scratch import PREFIX
from tui_fs.linux.filesystem import file_system_of
from tui_fs.model.codec import decode
from tui_fs.model.errors import TuiFsError
from tui_fs.model.strategy import StrategyName
from tui_fs.safety.policy import READ_ONLY_VARIABLE

SHORT_S = 0.7
"""Enough for trees to be made and deleted, and little enough to be repeated."""
_SHORTLY = (
    "import sys, tui_fs.job.measuring as one; one.LIMIT_S = float(sys.argv.pop(1)); one.main()"
)
_PLACES_TO_REACH = (sys.base_prefix, sys.prefix, str(Path(__file__).parents[2]))


@pytest.fixture
def above(tmpfs: Path) -> Path:
    """Give a directory in memory that holds a target."""
    above = tmpfs / "above"
    above.mkdir()
    many_directories(above / "target", 2, 3)
    return above


@pytest.fixture
def records(state_home: Path) -> Path:
    """Give the directory of the records of what is left over."""
    return state_home / "tui-fs" / "scratch"


def command_for(target: Path | bytes, limit_s: float = SHORT_S) -> list[str]:
    """Return the command that measures for so long."""
    return [sys.executable, "-P", "-c", _SHORTLY, str(limit_s), os.fsdecode(target)]


class Measurement:
    """A measurement that is going on, in a session of its own."""

    def __init__(self, command: Sequence[str], environment: dict[str, str] | None = None) -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            cwd="/",
            env={**os.environ, **(environment or {})},
        )
        self.pid = self._process.pid

    def processes(self) -> list[int]:
        """List what lives in its session, ended processes that nobody waits for left out."""
        found: list[int] = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            with suppress(OSError):
                fields = Path("/proc", name, "stat").read_bytes().rpartition(b") ")[2].split()
                if int(fields[3]) == self.pid and fields[0] not in (b"Z", b"X"):
                    found.append(int(name))
        return found

    def child(self) -> int:
        """Return the process that measures, which the first one has forked."""
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        return int(children[0])

    def is_over(self) -> bool:
        """Tell whether the first process has ended."""
        return self._process.poll() is not None

    def ended(self) -> tuple[int, Json, str]:
        """Wait for all its processes; give its code, what it told and what it complained of."""
        out, complaint = self._process.communicate(timeout=60)
        wait_until(lambda: not self.processes(), "the end of the last process")
        return self._process.returncode, json.loads(out or b"{}"), complaint.decode()


def run(command: Sequence[str], environment: dict[str, str] | None = None) -> Json:
    """Measure to the end; fail unless it tells something, without a traceback."""
    code, told, complaint = Measurement(command, environment).ended()
    assert (code, complaint) == (0, "")
    assert told
    return told


def without_itself(found: Manifest) -> Manifest:
    """Leave out the directory itself, whose time changes when something is made in it."""
    return {name: fact for name, fact in found.items() if name != b"."}


@contextmanager
def left_as_it_was(above: Path | bytes, records: Path) -> Iterator[None]:
    """Fail unless all beside the target, byte for byte, and the records are as before."""
    place = Path(os.fsdecode(above))
    before = without_itself(manifest(place))
    yield
    assert without_itself(manifest(place)) == before
    assert not records.exists() or os.listdir(records) == []


@contextmanager
def untouched(above: Path, records: Path) -> Iterator[None]:
    """Fail unless nothing was even made."""
    with left_as_it_was(above, records):
        before = manifest(above)
        yield
        assert manifest(above) == before
    assert not records.exists()


def scratches(above: Path | bytes) -> list[bytes]:
    """List the scratch directories beside a target."""
    with suppress(FileNotFoundError):
        return [n for n in os.listdir(os.fsencode(above)) if n.startswith(PREFIX.encode())]
    return []


def started(target: Path | bytes, environment: dict[str, str] | None = None) -> Measurement:
    """Start measuring for longer than any test waits; give it once a tree is being deleted."""
    above = os.path.dirname(os.fsencode(target))
    measurement = Measurement(command_for(target, 30.0), environment)

    def has_begun() -> bool:
        assert not measurement.is_over(), measurement.ended()
        return any(os.path.exists(os.path.join(above, n, b"empty")) for n in scratches(above))

    wait_until(has_begun, "a scratch directory with something in it")
    return measurement


def wait_for_trees(measurement: Measurement, above: Path, number: int) -> None:
    """Wait until so many trees have come or gone since now: a moment of the measurement."""
    (name,) = scratches(above)
    tree = os.path.join(os.fsencode(above), name, b"tree")
    is_there = os.path.exists(tree)

    def has_changed() -> bool:
        return os.path.exists(tree) is not is_there or measurement.is_over()

    for _ in range(number):
        wait_until(has_changed, "a tree that is made or gone")
        is_there = not is_there


@pytest.mark.root
def test_nothing_is_left_on_any_file_system(filesystem: Path, records: Path) -> None:
    # Given a target beside what must survive, and links between them
    needs_root("mounting")
    target = filesystem / "target"
    many_directories(target, 2, 3)
    sentinel = Sentinel(filesystem)
    sentinel.plant(target / "planted")
    # When measured / Then nothing is left, and the target is whole
    with left_as_it_was(filesystem, records):
        run(command_for(target))
    sentinel.assert_whole()


def test_what_is_measured_is_whole_and_holds_from_then_on(above: Path, records: Path) -> None:
    # Given a file system that nobody has measured
    target = str(above / "target")
    assert needs_measuring(target, MEASURED_FROM_ENTRIES)
    assert not needs_measuring(target, MEASURED_FROM_ENTRIES - 1)
    # When it is measured
    with left_as_it_was(above, records):
        found = calibrate(target)
    # Then every strategy has prices of its own, and they are kept
    assert set(found.prices) == {name.value for name in StrategyName}
    assert all(price.start_s > 0 and price.name_s > 0 for price in found.prices.values())
    assert all(price.directory_s > 0 for price in found.prices.values())
    assert (found.kind, found.kernel) == ("tmpfs", os.uname().release)
    known = known_of(file_system_of(target))
    assert (known.calibration, known.is_of_this, known.is_fresh) == (found, True, True)
    assert not needs_measuring(target, 10 * MEASURED_FROM_ENTRIES)


@pytest.mark.parametrize("name", (HOSTILE_NAMES[3], b"\xff\xfe\n \x1b]0;x\x07"))
def test_any_name_will_do(tmpfs: Path, records: Path, name: bytes) -> None:
    # Given a target whose name, and that of what holds it, no terminal bears
    above = os.path.join(os.fsencode(tmpfs), name)
    target = os.path.join(above, name)
    os.makedirs(target)
    # When all processes are killed, and it is measured again
    with left_as_it_was(above, records):
        kill_all(started(target))
        assert len(scratches(above)) == 1
        told = run(command_for(target))
    # Then what was left over has gone too
    assert "problem" not in told or "slow" in told["problem"]


def test_two_at_once_leave_nothing(above: Path, records: Path) -> None:
    # Given two people who measure the same / When both are done
    # Then nothing is left of either, and each has an answer
    with left_as_it_was(above, records):
        both = [Measurement(command_for(above / "target")) for _ in range(2)]
        for one in both:
            code, told, complaint = one.ended()
            assert (code, complaint) == (0, "")
            assert told


def kill_all(measurement: Measurement) -> None:
    """Kill all its processes at once: none of them comes to clear away."""
    stopped: set[int] = set()
    while new := set(measurement.processes()) - stopped:  # one that forks meanwhile is found later
        for pid in new:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        stopped |= new
    for pid in stopped:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    assert measurement.ended()[0] == -signal.SIGKILL


@pytest.mark.parametrize("moment", range(4))
def test_the_measuring_process_killed_leaves_nothing(
    above: Path, records: Path, moment: int
) -> None:
    # Given a measurement at some moment
    with left_as_it_was(above, records):
        measurement = started(above / "target")
        wait_for_trees(measurement, above, random.Random(moment).randrange(2 + 4 * moment))
        # When the process that measures is killed
        os.kill(measurement.child(), signal.SIGKILL)
        code, told, complaint = measurement.ended()
    # Then it says so in a sentence
    assert (code, complaint) == (0, "")
    assert "measuring was ended" in told["problem"].lower()


@pytest.mark.parametrize("moment", range(4))
def test_the_waiting_process_killed_leaves_nothing(above: Path, records: Path, moment: int) -> None:
    # Given a measurement at some moment
    with left_as_it_was(above, records):
        measurement = started(above / "target")
        wait_for_trees(measurement, above, random.Random(moment).randrange(2 + 4 * moment))
        # When the process that waits for it is killed / Then the other one clears away
        os.kill(measurement.pid, signal.SIGKILL)
        measurement.ended()


def test_a_tool_or_its_launcher_killed_leaves_nothing(above: Path, records: Path) -> None:
    # Given a measurement / When what the measuring process has started is killed, again and again
    with left_as_it_was(above, records):
        measurement = started(above / "target")
        family = {measurement.pid, measurement.child()}
        wait_until(lambda: bool(set(measurement.processes()) - family), "a tool")
        while not measurement.is_over():
            for pid in set(measurement.processes()) - family:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        code, told, _ = measurement.ended()
    # Then it ends, and says why
    assert code == 0
    assert told["problem"]


@pytest.mark.parametrize("moment", range(2))
def test_what_all_killed_at_once_have_left_the_next_one_removes(
    above: Path, records: Path, moment: int
) -> None:
    # Given a measurement of which everything was killed in one moment
    with left_as_it_was(above, records):
        measurement = started(above / "target")
        wait_for_trees(measurement, above, random.Random(moment).randrange(2 + 6 * moment))
        kill_all(measurement)
        assert len(scratches(above)) == len(os.listdir(records)) == 1
        # When measured again / Then that is gone
        run(command_for(above / "target", 0.1))


def _becomes_a_link(left: Path, precious: Path) -> None:
    left.rename(left.parent / "moved")
    left.symlink_to(precious)


def _becomes_another_directory(left: Path, precious: Path) -> None:
    left.rename(left.parent / "moved")
    precious.rename(left)
    left.chmod(0o700)


def _becomes_another_ones(left: Path, _: Path) -> None:
    needs_root("giving a directory away")
    os.chown(left, UID, GID)


def _becomes_readable(left: Path, _: Path) -> None:
    left.chmod(0o755)


@pytest.mark.parametrize(
    "change",
    (_becomes_a_link, _becomes_another_directory, _becomes_another_ones, _becomes_readable),
)
def test_the_next_one_removes_nothing_else(
    above: Path, change: Callable[[Path, Path], None]
) -> None:
    # Given what all killed at once have left, and something else at its path since
    precious = above / "precious"
    many_directories(precious, 2, 2)
    kill_all(started(above / "target"))
    (name,) = scratches(above)
    left = above / name.decode()
    (left / "put-there").write_text("by its new owner")
    change(left, precious)
    before = without_itself(manifest(above))
    # When measured again / Then all of it stays as it is
    run(command_for(above / "target", 0.1))
    assert without_itself(manifest(above)) == before


ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@pytest.mark.parametrize("number", ENDING)
def test_a_signal_ends_it_and_leaves_nothing(
    above: Path, records: Path, number: signal.Signals
) -> None:
    # Given a measurement / When told to end / Then it does, without a word, and nothing is left
    with left_as_it_was(above, records):
        measurement = started(above / "target")
        os.kill(measurement.pid, number)
        assert measurement.ended() == (1, {}, "")


@pytest.mark.parametrize("number", ENDING)
def test_a_signal_to_everybody_leaves_nothing(
    above: Path, records: Path, number: signal.Signals
) -> None:
    # Given a measurement / When all its processes are told to end, as at a shutdown
    with left_as_it_was(above, records):
        measurement = started(above / "target")
        for pid in measurement.processes():
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        # Then they do, and nothing is left
        measurement.ended()


_IMPATIENTLY = """
import os, signal, sys
import tui_fs.job.measuring as one
from tui_fs.job.scratch import Scratch
waiting, clear_away = os.getpid(), Scratch.remove
def disturbed(scratch):
    if os.getpid() == waiting:
        os.kill(waiting, signal.{name})
    clear_away(scratch)
Scratch.remove = disturbed
one.LIMIT_S = 0.1
one.main()
"""


@pytest.mark.parametrize("number", ENDING)
def test_a_signal_while_it_clears_away_leaves_nothing(
    above: Path, records: Path, number: signal.Signals
) -> None:
    # Given a measurement that is told to end in the moment in which it begins to clear away
    script = _IMPATIENTLY.format(name=number.name)
    # When it goes on / Then it clears away all the same
    with left_as_it_was(above, records):
        Measurement([sys.executable, "-P", "-c", script, str(above / "target")]).ended()


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
    # Given a target in the directory of somebody who moves away what is made there at once, and
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
        # When measured, several times
        for _ in range(3):
            run(command_for(place / "target", 0.3))
    finally:
        meddler.kill()
        meddler.wait()
    # Then nothing but what was made has gone
    sentinel.assert_whole()
    assert manifest(place / "target") == target
    assert all(path.read_bytes() == b"" for path in place.glob("mine-*"))
    assert not any(os.listdir(path) for path in place.glob("moved-*"))
    assert os.listdir(records) == []


@pytest.mark.root
def test_what_is_moved_later_is_emptied_all_the_same(above: Path, records: Path) -> None:
    # Given a measurement whose directory is renamed while it goes on, and a link in its place
    needs_root("mounting")
    sentinel = Sentinel(above)
    measurement = started(above / "target")
    (name,) = scratches(above)
    (above / name.decode()).rename(above / "moved")
    (above / name.decode()).symlink_to(sentinel.root)
    # When told to end / Then what it had made is gone, and what the link leads to is whole
    os.kill(measurement.pid, signal.SIGTERM)
    measurement.ended()
    assert os.listdir(above / "moved") == []
    sentinel.assert_whole()
    assert os.listdir(records) == []


def refused(target: Path) -> str:
    """Measure where that cannot be done; give the sentence."""
    with pytest.raises(TuiFsError) as why:
        calibrate(str(target))
    sentence = why.value.sentence
    assert sentence.endswith(".")
    assert len(sentence.split()) > 2, sentence
    return sentence


def mounted(point: Path, options: str) -> Path:
    """Mount an empty file system in memory with these options."""
    point.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tui-fs-test", point], check=True)
    return point


@pytest.mark.root
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("size=256m", "the file system is nearly full"),
        ("size=1g,nr_inodes=10k", "the file system has few inodes left"),
    ],
)
def test_where_room_is_scarce_nothing_is_made(
    tmpfs: Path, records: Path, options: str, words: str
) -> None:
    # Given little room / When measured / Then a sentence says so, and nothing is made
    needs_root("mounting tmpfs")
    place = mounted(tmpfs / "small", options)
    many_directories(place / "target", 2, 3)
    with untouched(place, records):
        assert refused(place / "target").lower() == f"{words}."


@pytest.mark.root
def test_where_nothing_may_be_written_nothing_is_made(tmpfs: Path, records: Path) -> None:
    # Given a file system that was mounted read-only / When measured / Then that is the reason
    needs_root("mounting tmpfs")
    place = mounted(tmpfs / "sealed", "size=1g")
    many_directories(place / "target", 2, 3)
    subprocess.run(["mount", "-o", "remount,ro", place], check=True)
    with untouched(place, records):
        assert "read-only" in refused(place / "target")


@pytest.mark.root
def test_nothing_is_measured_on_another_file_system(above: Path, records: Path) -> None:
    # Given a target that is a mount point / When measured / Then not beside it, which is another
    needs_root("mounting tmpfs")
    point = mounted(above / "point", "size=1g")
    with untouched(above, records):
        assert refused(point)


@pytest.mark.parametrize(
    "useless", ("size=64k,mode=0700", "size=1m,nr_inodes=3,mode=0700"), ids=("no room", "no inode")
)
@pytest.mark.root
def test_a_state_directory_without_room_leaves_nothing_beside_the_target(
    above: Path, state_home: Path, useless: str
) -> None:
    # Given a state directory that cannot take a record
    needs_root("mounting tmpfs")
    state_home.mkdir()
    mounted(state_home, useless)
    try:
        with suppress(OSError), (state_home / "filler").open("wb", buffering=0) as filler:
            while True:
                filler.write(bytes(4096))
        # When measured / Then not without a record, which would be left by whoever is killed
        no_room = pytest.raises(TuiFsError, match="No space left")
        with left_as_it_was(above, state_home / "tui-fs" / "scratch"), no_room:
            calibrate(str(above / "target"))
    finally:
        unmount_below(state_home)


def give_away(place: Path) -> None:
    """Make a directory of the ordinary user's."""
    place.mkdir(parents=True, exist_ok=True)
    os.chown(place, UID, GID)


def as_ordinary_user(command: Sequence[str], tmp_path: Path, *places: Path) -> Json:
    """Measure as a user without rights, who can reach these places."""
    script = write_launcher(
        tmp_path / "as-ordinary-user", command[0], (*_PLACES_TO_REACH, *map(str, places))
    )
    return run([str(script), *command[1:]])


@pytest.mark.root
def test_an_ordinary_user_measures_where_they_may_write(
    above: Path, tmp_path: Path, state_home: Path, records: Path
) -> None:
    # Given a directory of an ordinary user / When they measure / Then as root does
    needs_root("becoming another user")
    subprocess.run(["chown", "-R", f"{UID}:{GID}", above], check=True)
    give_away(state_home)
    with left_as_it_was(above, records):
        told = as_ordinary_user(command_for(above / "target", 2.0), tmp_path, above, state_home)
    assert decode(Calibration, told).kind == "tmpfs"


@pytest.mark.root
def test_an_ordinary_user_makes_nothing_where_they_may_not_write(
    above: Path, tmp_path: Path, state_home: Path, records: Path
) -> None:
    # Given their target in a directory of root / When they measure / Then that is the reason
    needs_root("becoming another user")
    os.chown(above / "target", UID, GID)
    above.chmod(0o755)
    give_away(state_home)
    with untouched(above, records):
        told = as_ordinary_user(command_for(above / "target"), tmp_path, above, state_home)
    assert len(told["problem"].split()) > 3


def tools_without(missing: str, directory: Path) -> str:
    """Return a PATH in which one tool is not to be found."""
    directory.mkdir()
    for name in {"rm", "rmdir", "find", "xargs", "rsync"} - {missing}:
        found = next(
            (
                path
                for place in os.get_exec_path()
                if os.access(path := os.path.join(place, name), os.X_OK)
            ),
            None,
        )
        if found is not None:
            (directory / name).symlink_to(os.path.realpath(found))
    return str(directory)


@pytest.mark.parametrize("missing", ("rsync", "xargs"))
def test_what_is_not_installed_is_not_measured(
    above: Path, records: Path, tmp_path: Path, missing: str
) -> None:
    # Given a machine without a tool / When measured
    path = tools_without(missing, tmp_path / "tools")
    with left_as_it_was(above, records):
        told = run(command_for(above / "target", 2.0), {"PATH": path})
    # Then the others are, and it has a price beside theirs
    found = decode(Calibration, told)
    assert found.prices[missing].name_s > 0
    assert set(found.prices) == {name.value for name in StrategyName}


@pytest.mark.parametrize("missing", ("rm", "find"))
def test_without_rm_a_sentence_says_so(
    above: Path, records: Path, tmp_path: Path, missing: str
) -> None:
    # Given a machine where rm cannot run, beside which all is measured (it needs find)
    path = tools_without(missing, tmp_path / "tools")
    # When measured / Then that is said, and nothing is left
    with left_as_it_was(above, records):
        told = run(command_for(above / "target"), {"PATH": path})
    assert missing in told["problem"].split()


def test_a_target_that_is_gone_is_a_sentence(above: Path, records: Path) -> None:
    # Given a target that somebody has removed / When measured / Then a sentence
    with left_as_it_was(above, records), pytest.raises(TuiFsError, match="No such file"):
        calibrate(str(above / "gone"))


def test_nothing_is_made_where_deleting_is_off(
    above: Path, records: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a person who has switched deleting off / When measured / Then that is why not
    monkeypatch.setenv(READ_ONLY_VARIABLE, "1")
    with untouched(above, records):
        assert measure(str(above / "target")).endswith("allows no writing")


def test_whoever_may_look_at_the_scratch_directory_is_its_owner(above: Path) -> None:
    # Given a measurement / When looked at from outside / Then it and its trees are private
    measurement = started(above / "target")
    (name,) = scratches(above)
    scratch = above / name.decode()
    try:
        assert stat.S_IMODE(scratch.stat().st_mode) == 0o700
        assert scratch.stat().st_uid == os.geteuid()
        assert stat.S_IMODE((scratch / "empty").stat().st_mode) == 0o700
    finally:
        os.kill(measurement.pid, signal.SIGTERM)
        measurement.ended()
