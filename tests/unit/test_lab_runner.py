"""A run of an experiment: its steps, their order, its events, and what it leaves."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.needs import needs_root
from tests.trees import Sentinel
from tests.unit.lab_trials import RM, Files, Stopped, done, place, ran, results_of
from tests.unit.scratching import result_of_child
from tui_fs.lab.experiment import (
    Counting,
    Place,
    Step,
    Trial,
)
from tui_fs.lab.results import (
    Noted,
    Progressed,
    StepCounted,
    StepFailed,
    StepRan,
)
from tui_fs.lab.tree_generators import Directory
from tui_fs.model.calls import TraceSource
from tui_fs.model.errors import Missing
from tui_fs.tracing.select_source import open_source
from tui_fs.tracing.source import CallSource

__all__ = ["place"]


def test_the_trials_alternate_and_each_has_its_rounds(place: Path) -> None:
    first = Trial((Step("first", "first", RM),), Files(), rounds=3)
    second = Trial((Step("second", "second", RM),), Files(), rounds=2)
    events = done(place, first, second)
    assert ran(events) == ["first", "second", "second", "first", "first"]
    assert os.listdir(place) == []


def test_progress_goes_from_nothing_to_nearly_all_and_never_back(place: Path) -> None:
    steps = (Step("list", "list", ((("ls", "{tree}"),),)), Step("rm", "rm", RM))
    events = done(place, Trial(steps, Files(), rounds=3), Trial((replace(steps[1], key="2"),)))
    shares = [event.done for event in events if isinstance(event, Progressed)]
    assert shares == sorted(shares)
    assert shares[0] == 0.0 and 0.5 < shares[-1] <= 1.0


def test_steps_of_a_trial_work_on_one_tree_one_after_the_other(place: Path) -> None:
    steps = (
        Step("add", "add", ((("touch", "{tree}/more"),),)),
        Step("count", "count", ((("find", "{tree}"), ("wc", "-l")),)),
        Step("delete", "delete", RM),
    )
    results = results_of(done(place, Trial(steps, Files(), rounds=2)))
    assert [run.output for run in results.measured["count"].runs] == ["5", "5"]


def test_a_star_expands_to_all_names_in_the_tree_and_the_commands_run_there(place: Path) -> None:
    named = Step("names", "names", ((("echo", "*"),),), is_in_tree=True)
    results = results_of(done(place, Trial((named,), Files(), rounds=1)))
    assert results.measured["names"].runs[0].output == "file 0 file 1 file 2"
    assert results.plan("names").commands == ("cd tree; echo *",)


def test_words_expand_to_paths_and_tools(place: Path) -> None:
    words = ("{empty}", "{out}", "{path:true}", "{}", "{tree}/x")
    step = Step("words", "words", ((("echo", *words),),))
    results = results_of(done(place, Trial((step,), rounds=1)))
    arguments = results.measured["words"].runs[0].output.split(" ")
    assert arguments[0] == "empty" and arguments[1] == str(place.parent / "kept")
    assert os.path.isabs(arguments[2]) and arguments[2].endswith("/true")
    assert arguments[3:] == ["{}", "tree/x"]


def test_a_failure_is_reported_in_the_tools_own_words_and_ends_its_trial_only(place: Path) -> None:
    bad = Step("bad", "bad", ((("rm", "{tree}/nothing"),),))
    after = Step("after", "after", RM)
    good = Trial((Step("good", "good", RM),), Files(), rounds=2)
    events = done(place, Trial((bad, after), Files(), rounds=2), good)
    # The failure is reported once; the later step is not measured, the other trial is
    (failed,) = [event for event in events if isinstance(event, StepFailed)]
    assert failed.key == "bad" and "status 1" in failed.reason and "No such file" in failed.reason
    assert ran(events) == ["good", "good"]
    assert os.listdir(place) == []


def test_read_only_steps_do_not_depend_on_each_other(place: Path) -> None:
    # A tool that is not there, a step that fails and one that does not
    absent = Step("absent", "absent", ((("no-such-tool", "{tree}"),),))
    bad = Step("bad", "bad", ((("ls", "{tree}/nothing"),),))
    good = Step("good", "good", ((("ls", "{tree}"),),))
    trial = Trial((absent, bad, good), Files(), rounds=2, is_reading=True)
    events = done(place, trial)
    assert ran(events) == ["good", "good"]
    assert [event.key for event in events if isinstance(event, StepFailed)] == ["bad"]
    whys = {key: measured.why_not for key, measured in results_of(events).measured.items()}
    assert "not found in PATH" in whys["absent"] and not whys["good"]


def test_a_status_that_is_expected_is_no_failure(place: Path) -> None:
    step = Step("false", "false", ((("false",),),), expects=frozenset({1}))
    assert ran(done(place, Trial((step,), rounds=1))) == ["false"]


def test_what_is_counted_runs_once_more_without_being_timed(place: Path) -> None:
    needs_root("counting system calls")
    step = Step("rm", "rm", RM, counting=Counting.CALLS)
    events = done(place, Trial((step,), Files(), rounds=2))
    (counted,) = [event for event in events if isinstance(event, StepCounted)]
    assert counted.calls["unlinkat"].calls == 4
    assert events.index(counted) < min(
        number for number, event in enumerate(events) if isinstance(event, StepRan)
    )
    assert ran(events) == ["rm", "rm"]


def test_a_pinned_step_has_one_processor_and_the_next_one_all(place: Path) -> None:
    count = ((("nproc",),),)
    steps = (
        Step("before", "", count),
        Step("pinned", "", count, is_pinned=True),
        Step("after", "", count),
    )
    results = results_of(done(place, Trial(steps, rounds=1)))
    seen = [results.measured[key].runs[0].output for key in ("before", "pinned", "after")]
    assert seen == [str(len(os.sched_getaffinity(0))), "1", seen[0]]


def test_a_file_that_is_left_is_examined(place: Path) -> None:
    step = Step("sparse", "", ((("truncate", "-s", "1M", "big"),),), leaves="big")
    left = results_of(done(place, Trial((step,), rounds=1))).left("sparse")
    assert (left.apparent_bytes, left.allocated_bytes) == (1 << 20, 0)


@pytest.mark.root
@pytest.mark.parametrize("kind", (Place.TMPFS, Place.EXT4, Place.XFS, Place.BTRFS))
def test_a_file_system_made_for_it_is_gone_afterwards(place: Path, kind: Place) -> None:
    needs_root("mounting")
    where = Step("where", "", ((("stat", "-f", "-c", "%T", "{tree}"),),))
    trial = Trial((where, Step("rm", "", RM)), Files(), kind, rounds=1)

    def use() -> list[str]:
        results = results_of(done(place, trial))
        return [results.measured["where"].runs[0].output, results.plan("where").place]

    named = {"ext4": "ext2/ext3"}.get(kind.value, kind.value)
    assert result_of_child(use) == [named, kind.value]
    assert os.listdir(place) == []


class Written(Files, frozen=True):
    """A file that the kernel would choose a place for later."""

    def directories(self) -> Iterator[Directory]:
        """Yield the tree itself."""
        yield Directory(0, "", [("file", 1 << 20)])


HAS_NO_PLACE = """
import fcntl, os, struct
asked = struct.pack("=QQIIIIQQQQQIIII", 0, 1 << 40, 0, 0, 1, *[0] * 10)
extent = fcntl.ioctl(os.open("tree/file", os.O_RDONLY), 0xC020660B, asked)
print(struct.unpack_from("=I", extent, 72)[0] & 4 != 0)
"""
"""Ask for the first extent (FS_IOC_FIEMAP): whether its place is still to be chosen (DELALLOC)."""


@pytest.mark.root
def test_a_tree_is_on_its_disk_before_the_steps_if_they_want_so(place: Path) -> None:
    needs_root("mounting")
    looking = Step("look", "", ((("python", "-c", HAS_NO_PLACE),),))
    trial = Trial((looking,), Written(), Place.EXT4, rounds=3, is_settled=True)

    def use() -> list[str]:
        results = results_of(done(place, trial))
        return [results.plan("look").tree, *(run.output for run in results.measured["look"].runs)]

    words, *seen = result_of_child(use)
    assert words == "three files, written to the disk"
    assert seen == ["False"] * 3


def test_a_tree_is_left_to_the_kernel_if_the_steps_do_not_care(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The kernel may write it to the disk at any time: what it did shows nothing.
    monkeypatch.setattr("tui_fs.lab.runner.write_out", lambda _: pytest.fail("written out"))
    results = results_of(done(place, Trial((Step("rm", "", RM),), Files())))
    assert results.plan("rm").tree == "three files"


@pytest.fixture
def sentinel(place: Path) -> Iterator[Sentinel]:
    """Plant what must survive around the place; compare it afterwards."""
    sentinel = Sentinel(place)
    yield sentinel
    sentinel.assert_whole()


@pytest.mark.parametrize("asked", (1, 2, 3, 5, 7, 9, 11))
@pytest.mark.slow
def test_a_run_that_is_ended_at_any_moment_leaves_nothing(
    place: Path, sentinel: Sentinel, asked: int
) -> None:
    del sentinel
    before = set(os.listdir(place))
    left = asked

    def goes_on() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise Stopped

    slow = Step("slow", "", ((("sleep", "0.5"),), (("find", "{tree}"),)))
    with pytest.raises(Stopped):
        done(place, Trial((slow, Step("rm", "", RM)), Files(), rounds=4), goes_on=goes_on)
    assert set(os.listdir(place)) == before


def test_a_step_that_fails_in_a_later_round_is_not_measured(place: Path) -> None:
    # A step that can succeed only once, outside the place
    once = place.parent / "kept" / "once"
    step = Step("once", "", ((("mkdir", str(once)),),))
    results = results_of(done(place, Trial((step,), rounds=2)))
    assert not results.has("once")
    assert "mkdir ended with status 1" in results.measured["once"].failed


def test_a_failing_program_before_the_last_of_a_pipeline_is_a_failure(place: Path) -> None:
    # A find that fails, whose output is counted by one that does not
    pipeline = (("find", "{tree}/nothing"), ("wc", "-l"))
    step = Step("find", "", (pipeline,))
    results = results_of(done(place, Trial((step,), rounds=1)))
    assert "find ended with status 1" in results.measured["find"].failed


def test_who_writes_to_one_that_has_read_enough_has_not_failed(place: Path) -> None:
    step = Step("head", "", ((("yes",), ("head", "-n", "1")),))
    assert ran(done(place, Trial((step,), rounds=1))) == ["head"]


@pytest.mark.root
@pytest.mark.slow
def test_where_a_source_cannot_count_the_next_one_does(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_root("counting system calls")

    def broken(*_: object) -> None:
        raise Missing("bpftrace could not start.")

    monkeypatch.setattr("tui_fs.tracing.bpf.Bpftrace.prepare", broken)
    step = Step("rm", "rm", RM, counting=Counting.TIMES)
    events = done(place, Trial((step,), Files(), rounds=1))
    (counted,) = [event for event in events if isinstance(event, StepCounted)]
    assert counted.source is TraceSource.STRACE
    assert counted.calls["unlinkat"].calls == 4


@pytest.mark.root
def test_what_cannot_be_counted_is_timed_all_the_same(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_root("counting system calls")

    monkeypatch.setattr("tui_fs.lab.runner.open_source", _only_off)
    step = Step("rm", "rm", RM, counting=Counting.CALLS)
    events = done(place, Trial((step,), Files(), rounds=2))
    assert ran(events) == ["rm", "rm"]
    (noted,) = [event for event in events if isinstance(event, Noted)]
    assert "not counted" in noted.words and "Not permitted" in noted.words


def _only_off(kind: TraceSource | None, _: int = 1) -> CallSource:
    if kind is not TraceSource.OFF:
        raise Missing("Not permitted.")
    return open_source(kind)
