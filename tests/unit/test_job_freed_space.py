"""Why the space was not freed, according to the figures."""

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some
from msgspec.structs import replace

from tui_fs.job.freed_space import MOST_HOLDERS, explain_freed_space
from tui_fs.job.planning import expected_of
from tui_fs.linux.filesystem import FileSystem
from tui_fs.linux.open_files import HeldFile, Holder, HoldKind, OpenFileScan
from tui_fs.model.paths import PathStr
from tui_fs.model.plan import Expected
from tui_fs.model.space import Discrepancy, DiscrepancyKind, Space, metadata_bytes_max
from tui_fs.model.strategy import Options
from tui_fs.model.survey import Totals
from tui_fs.survey.runner import SurveyRunner

MIB = 1 << 20
GIB = 1 << 30
ROOM = FileSystem("ext4", "/dev/vdb1", "/srv", False, 100 * GIB, 50 * GIB, 50 * GIB)


def held(
    number: int,
    allocated: int | None,
    *pids: int,
    path: str = "/srv/t/log",
    how: HoldKind = HoldKind.DESCRIPTOR,
    own: bool = False,
) -> HeldFile:
    """Make a deleted file that processes hold."""
    descriptor = 4 if how is HoldKind.DESCRIPTOR else None
    holders = (Holder(pid, f"prog{pid}", 0, descriptor, how, True, own) for pid in pids)
    return HeldFile(PathStr(path), 1, number, allocated, tuple(holders))


def causes(
    got: int,
    most: int,
    /,
    *,
    kind: str = "ext4",
    least: int | None = None,
    old: tuple[HeldFile, ...] = (),
    kept: tuple[HeldFile, ...] = (),
    inodes: int = 1000,
    linked_names: int = 0,
    **others: Any,
) -> tuple[Discrepancy, ...]:
    """Ask for the causes after a deletion of 1,000 entries in /srv/t."""
    arguments: dict[str, Any] = {
        "before": Space(10 * GIB, 5000),
        "after": Space(10 * GIB + got, 5000 + inodes),
        "expected": Expected(
            Totals(990, 10),
            most if least is None else least,
            most,
            complete=True,
            metadata_bytes_max=metadata_bytes_max(kind, 1000),
            linked_names=linked_names,
        ),
        "finished": True,
        "deleted_entries": 1000,
        "file_system": replace(ROOM, kind=kind),
        "targets": ("/srv/t",),
        "held_before": OpenFileScan(deleted=old),
        "held_after": OpenFileScan(deleted=kept),
    }
    return explain_freed_space(**(arguments | others))


def amounts(discrepancies: tuple[Discrepancy, ...]) -> list[tuple[str, int | None]]:
    """Return kinds and bytes."""
    return [(cause.kind.value, cause.bytes) for cause in discrepancies]


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (GIB, GIB),
        (0, 0),
        (0, MIB),
        (GIB - 10 * MIB, GIB),
        (GIB + 10 * MIB, GIB),
        (9 * MIB, 10 * MIB),
    ],
)
def test_as_expected_within_a_hundredth_or_a_mebibyte(got: int, expected: int) -> None:
    assert causes(got, expected) == ()


def test_a_held_file_is_named() -> None:
    (cause,) = causes(800 * MIB, 1000 * MIB, kept=(held(1, 200 * MIB, 123),))
    assert (cause.kind, cause.bytes, cause.inodes) == (DiscrepancyKind.HELD_OPEN, 200 * MIB, 1)
    assert (cause.pid, cause.command) == (123, "prog123")
    for words in ("prog123 (process 123)", "200.0 MiB", "/srv/t/log"):
        assert words in cause.sentence
    assert ": > /proc/123/fd/4" in cause.advice


def test_several_holders_of_one_file_are_one_cause() -> None:
    files = (held(1, 100 * MIB, 9, 11, 10), held(2, 50 * MIB, 9, path="/srv/t/own"))
    discrepancies = causes(0, 150 * MIB, kept=files)
    assert amounts(discrepancies) == [("held-open", 100 * MIB), ("held-open", 50 * MIB)]
    assert "together with processes 10, 11," in discrepancies[0].sentence
    assert discrepancies[0].pid == 9


def test_many_holders_are_reported_together() -> None:
    files = tuple(held(number, number * MIB, number) for number in range(1, 31))
    discrepancies = causes(0, 465 * MIB, kept=files)
    assert len(discrepancies) == MOST_HOLDERS + 1
    assert sum(cause.bytes or 0 for cause in discrepancies) == 465 * MIB
    assert discrepancies[-1].pid is None


@pytest.mark.parametrize("how", [HoldKind.MAPPED, HoldKind.EXECUTABLE])
def test_a_mapped_file_must_not_be_emptied(how: HoldKind) -> None:
    (cause,) = causes(0, 20 * MIB, kept=(held(1, 20 * MIB, 5, how=how),))
    assert "Restart prog5" in cause.advice
    assert "/proc/" not in cause.advice


def test_also_mapped_is_mapped() -> None:
    file = held(1, 20 * MIB, 5)
    both = replace(file, holders=(*file.holders, *held(1, 0, 6, how=HoldKind.MAPPED).holders))
    assert "/proc/" not in causes(0, 20 * MIB, kept=(both,))[0].advice


def test_tui_fs_itself_is_no_service_to_restart() -> None:
    (cause,) = causes(0, 20 * MIB, kept=(held(1, 20 * MIB, 5, own=True),))
    assert "tui-fs itself" in cause.advice


def test_a_strange_command_is_escaped() -> None:
    file = held(1, 20 * MIB, 5, path="/srv/t/\x1b[31m")
    file = replace(file, holders=(replace(file.holders[0], command="a\x1b]0;b\n"),))
    (cause,) = causes(0, 20 * MIB, kept=(file,))
    assert (cause.sentence + cause.advice + cause.command).isprintable()


def test_held_files_are_reported_though_they_are_few_of_much() -> None:
    discrepancies = causes(100 * GIB - 500 * MIB, 100 * GIB, kept=(held(1, 500 * MIB, 5),))
    assert amounts(discrepancies) == [("held-open", 500 * MIB)]


def test_what_was_deleted_before_is_elsewhere() -> None:
    # A file of the target deleted before the start, and a sibling of it deleted since
    old = held(1, 30 * MIB, 5)
    beside = held(2, 20 * MIB, 6, path="/srv/t2/log")
    small = held(3, MIB - 1, 7, path="/srv/small")
    discrepancies = causes(0, 100 * MIB, old=(old,), kept=(old, beside, small))
    assert amounts(discrepancies) == [
        ("others-wrote", 100 * MIB),
        ("held-open-elsewhere", 30 * MIB),
        ("held-open-elsewhere", 20 * MIB),
    ]


def test_elsewhere_is_not_reported_when_nothing_is_missing() -> None:
    assert causes(GIB, GIB, kept=(held(1, GIB, 5, path="/srv/x"),)) == ()


def test_a_path_too_long_to_be_read_is_ours() -> None:
    (cause,) = causes(0, 20 * MIB, kept=(held(1, 20 * MIB, 5, path=""),))
    assert cause.kind is DiscrepancyKind.HELD_OPEN
    assert "too long" in cause.sentence


def test_unknown_sizes_are_said_to_be_unknown() -> None:
    discrepancies = causes(80 * MIB, 100 * MIB, kept=(held(1, None, 5, how=HoldKind.MAPPED),))
    assert amounts(discrepancies) == [("held-open", None), ("others-wrote", 20 * MIB)]
    assert "unknown amount" in discrepancies[0].sentence


def test_links_outside_explain_no_more_than_the_survey_predicted() -> None:
    assert amounts(causes(750 * MIB, 1000 * MIB, least=700 * MIB)) == [("links-outside", 250 * MIB)]
    assert amounts(causes(600 * MIB, 1000 * MIB, least=700 * MIB)) == [
        ("links-outside", 300 * MIB),
        ("others-wrote", 100 * MIB),
    ]


@pytest.mark.parametrize(
    ("kind", "guessed"),
    [
        ("btrfs", [("snapshots", GIB), ("others-wrote", None)]),
        ("zfs", [("snapshots", GIB), ("others-wrote", None)]),
        ("bcachefs", [("snapshots", GIB), ("others-wrote", None)]),
        ("xfs", [("others-wrote", GIB), ("snapshots", None)]),
        ("tmpfs", [("others-wrote", GIB)]),
    ],
)
def test_guesses_by_file_system(kind: str, guessed: list[tuple[str, int | None]]) -> None:
    assert amounts(causes(0, GIB, kind=kind)) == guessed


@pytest.mark.parametrize(
    ("got", "guessed"),
    [
        (-60 * 1024, [("overlay", GIB)]),  # whiteouts take some blocks
        (GIB // 2, [("overlay", GIB // 2)]),
        (GIB, []),
        (-GIB, [("overlay", GIB), ("others-wrote", GIB)]),
    ],
)
def test_lower_layers_explain_all_that_was_expected(
    got: int, guessed: list[tuple[str, int | None]]
) -> None:
    expected = Expected(Totals(990, 10), 0, GIB, complete=True, is_on_overlay=True)
    assert amounts(causes(got, GIB, kind="overlay", inodes=-2, expected=expected)) == guessed


@pytest.mark.parametrize(("most", "number"), [(MIB // 8, 0), (MIB, 0), (8 * MIB, 1)])
def test_little_that_was_expected_needs_no_explanation_on_a_busy_disk(
    most: int, number: int
) -> None:
    assert len(causes(most - 500 * MIB, most)) == number


def test_guesses_are_for_the_rest_only() -> None:
    discrepancies = causes(0, GIB, kind="btrfs", kept=(held(1, GIB, 5),))
    assert amounts(discrepancies) == [("held-open", GIB)]


def test_what_could_not_be_seen_is_said() -> None:
    (cause,) = causes(0, GIB, held_after=OpenFileScan(unseen_processes=3))
    assert "3 processes could not be inspected" in cause.advice
    # In a container, root may not inspect it either.
    assert cause.advice.endswith("check with 'lsof +L1' as root on the host.")
    (cause,) = causes(0, GIB, held_after=OpenFileScan(complete=False))
    assert "in time" in cause.advice


def test_more_than_expected_needs_no_cause() -> None:
    assert causes(3 * GIB, GIB, old=(held(1, GIB, 5),)) == ()


@pytest.mark.parametrize(
    ("free_before", "available_before", "got", "swallowed"),
    [
        (0, 0, 3 * GIB, 3 * GIB),  # all of it
        (0, 0, 8 * GIB, 5 * GIB),  # it is filled first
        (4 * GIB, 0, 8 * GIB, GIB),  # what was still lacking
        (20 * GIB, 15 * GIB, GIB, 0),  # it was full already
    ],
)
def test_the_reserve_of_ext4(
    free_before: int, available_before: int, got: int, swallowed: int
) -> None:
    free = free_before + got
    available = max(0, free - 5 * GIB)
    assert available >= available_before
    room = ROOM
    spaces: dict[str, Any] = {
        "before": Space(available_before, None, free_before - available_before),
        "after": Space(available, None, free - available),
    }
    # The report names the part that only root may use
    discrepancies = causes(0, got, file_system=room, **spaces)
    assert amounts(discrepancies) == ([("reserved", swallowed)] if swallowed else [])
    for cause in discrepancies:
        assert ("at least" in cause.sentence) == (available == 0)
        assert "tune2fs -m 1 /dev/vdb1" in cause.advice
    # And other file systems reserve for themselves, which no tune2fs changes
    other = replace(room, kind="btrfs")
    assert causes(0, got, file_system=other, **spaces) == ()


def test_unfinished_jobs_report_facts_only() -> None:
    discrepancies = causes(0, GIB, finished=False, least=0, kept=(held(1, 20 * MIB, 5),))
    assert amounts(discrepancies) == [("held-open", 20 * MIB)]


@pytest.mark.parametrize("unknown", ["before", "after"])
def test_without_an_answer_of_the_file_system(unknown: str) -> None:
    unanswered: dict[str, Any] = {unknown: None}
    discrepancies = causes(0, GIB, kept=(held(1, 20 * MIB, 5),), **unanswered)
    assert amounts(discrepancies) == [("held-open", 20 * MIB)]


@pytest.mark.parametrize(
    ("kind", "deleted", "inodes", "missing"),
    [
        ("ext4", 1000, 950, None),
        ("ext4", 1000, 500, 500),
        ("xfs", 1000, 500, None),  # its number of inodes goes with the free bytes
        ("ext4", None, 500, 500),
        ("ext4", 32, -400, None),  # others created 432 files meanwhile
        ("ext4", 1000, -5000, 6000),
    ],
)
def test_missing_inodes(kind: str, deleted: int | None, inodes: int, missing: int | None) -> None:
    discrepancies = causes(GIB, GIB, kind=kind, inodes=inodes, deleted_entries=deleted)
    assert [(discrepancy.kind, discrepancy.inodes) for discrepancy in discrepancies] == (
        [] if missing is None else [(DiscrepancyKind.INODES, missing)]
    )


@pytest.mark.parametrize("linked_names", [0, 500])
def test_hard_links_are_a_cause_only_where_there_are_some(linked_names: int) -> None:
    (cause,) = causes(GIB, GIB, inodes=500, linked_names=linked_names)
    assert ("hard links" in cause.sentence) == (linked_names > 0)
    assert "other processes created files" in cause.sentence


@pytest.mark.parametrize("place", ["inside", "outside", "nowhere"])
def test_links_to_names_anywhere_are_expected(tmp_path: Path, place: str) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    for number in range(3):
        (tree / str(number)).touch()
    other = {"inside": tree / "other", "outside": tmp_path / "other"}.get(place)
    if other is not None:
        os.link(tree / "0", other)
    *_, survey = SurveyRunner([str(tree)], checks_surroundings=False).run()
    expected = expected_of(survey, Options(), "ext4")
    assert expected.linked_names == (other is not None)


def test_held_empty_files_keep_inodes() -> None:
    files = tuple(held(number, 0, 5) for number in range(500))
    discrepancies = causes(GIB, GIB, inodes=500, kept=files)
    assert [
        (discrepancy.kind, discrepancy.bytes, discrepancy.inodes) for discrepancy in discrepancies
    ] == [(DiscrepancyKind.HELD_OPEN, 0, 500)]


@given(
    got=some.integers(-4 * GIB, 4 * GIB),
    least=some.integers(0, 2 * GIB),
    outside=some.integers(0, 2 * GIB),
    kept=some.lists(some.integers(0, GIB), max_size=4),
    kind=some.sampled_from(["ext4", "xfs", "btrfs", "overlay", "tmpfs"]),
    finished=some.booleans(),
)
def test_no_more_is_explained_than_is_missing(
    got: int, least: int, outside: int, kept: list[int], kind: str, finished: bool
) -> None:
    files = tuple(held(number, size, 5 + number) for number, size in enumerate(kept))
    most = least + outside
    discrepancies = causes(got, most, least=least, kind=kind, kept=files, finished=finished)
    facts = {DiscrepancyKind.HELD_OPEN, DiscrepancyKind.RESERVED}
    guessed = sum(
        discrepancy.bytes or 0 for discrepancy in discrepancies if discrepancy.kind not in facts
    )
    assert guessed <= max(0, most - got)
    assert sum(
        discrepancy.bytes or 0
        for discrepancy in discrepancies
        if discrepancy.kind is DiscrepancyKind.HELD_OPEN
    ) <= sum(kept)
    for discrepancy in discrepancies:
        assert discrepancy.sentence.endswith(".") and discrepancy.sentence[0].isalnum()
