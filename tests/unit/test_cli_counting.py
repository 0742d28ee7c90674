"""What the command line shows of commands that take a while, and of running jobs."""

from pathlib import Path

import pytest

from tui_fs.cli.counting import progress
from tui_fs.cli.jobs import _as_text
from tui_fs.cli.lab import _progress
from tui_fs.cli.output import whole_parts, with_bar
from tui_fs.job.view import JobSummary
from tui_fs.lab.results import Progressed
from tui_fs.linux.filesystem import file_system_of, whole_file_system_entries
from tui_fs.model.host import Host
from tui_fs.model.outcome import JobState
from tui_fs.model.paths import PathStr
from tui_fs.model.strategy import StrategyName
from tui_fs.model.units import percent_done


def test_the_rate_is_shown_once_a_second_has_passed() -> None:
    assert progress(1, 1, 0.9) == "counting  1 entry  1 directory"
    assert (
        progress(1_204_113, 4_112, 3.0)
        == "counting  1,204,113 entries  401,371 /s  4,112 directories  elapsed 0:03"
    )


def test_the_time_left_is_shown_where_the_number_of_entries_is_known() -> None:
    assert progress(1_000, 4, 0.9, 4_000) == "counting  ~25 %  1,000 entries  4 directories"
    assert progress(1_000, 4, 2.0, 4_000) == (
        "counting  ~25 %  left about 6.0 s  1,000 entries  500 /s  4 directories  elapsed 0:02"
    )
    assert progress(4_000, 4, 2.0, 4_000) == (
        "counting  4,000 entries  2,000 /s  4 directories  elapsed 0:02"
    )


def test_a_run_of_the_lab_has_its_time_left_from_two_percent_on() -> None:
    assert _progress(Progressed("making trees", 0.01), 5.0) == "  1 %  elapsed 0:05  making trees"
    assert _progress(Progressed("rm\x1b", 0.25), 5.0) == (
        " 25 %  left about 15 s  elapsed 0:05  rm\\e"
    )


@pytest.mark.parametrize(
    ("fraction", "line"),
    [
        (0.0, "[          ]  text"),
        (0.5, "[====>     ]  text"),
        (1.0, "[==========]  text"),
        (1.5, "[==========]  text"),
        (None, "text"),
    ],
)
def test_a_bar_fills_the_room_beside_the_text(fraction: float | None, line: str) -> None:
    assert with_bar("text", fraction, 18) == line
    assert with_bar("text", fraction, 17) == "text"
    assert len(with_bar("text", fraction, 200)) <= 4 + 4 + 30


@pytest.mark.parametrize(
    ("width", "line"),
    [
        (80, "counting  1,204,113 entries  401,371 /s  4,112 directories  elapsed 0:03"),
        (71, "counting  1,204,113 entries  401,371 /s  4,112 directories"),
        (39, "counting  1,204,113 entries  401,371 /s"),
        (38, "counting  1,204,113 entries"),
        (5, "count"),
    ],
)
def test_a_narrow_terminal_shows_no_cut_number(width: int, line: str) -> None:
    assert whole_parts(progress(1_204_113, 4_112, 3.0), width) == line


def test_what_still_runs_is_never_at_100_percent() -> None:
    assert [percent_done(share) for share in (0.0, 0.999, 1.0)] == ["0 %", "99 %", "99 %"]


INFO = "30 1 {} {} {} rw - {} /dev/x rw\n"


@pytest.mark.parametrize(
    ("root", "kind", "is_known"),
    [("/", "ext4", True), ("/part", "ext4", False), ("/", "nfs4", False), ("/", "overlay", False)],
)
def test_the_entries_of_a_whole_local_file_system_are_its_used_inodes(
    tmp_path: Path, root: str, kind: str, is_known: bool
) -> None:
    here, table = str(tmp_path), tmp_path / "mountinfo"
    table.write_text(
        INFO.format("8:1", "/", "/", "ext4")
        + INFO.format("8:2", root, here, kind).replace("30 1", "31 30")
    )
    entries = whole_file_system_entries(here, str(table))
    filesystem = file_system_of(here)
    if is_known and filesystem.total_inodes is not None and filesystem.free_inodes is not None:
        used = filesystem.total_inodes - filesystem.free_inodes
        assert entries == pytest.approx(used, rel=0.1)  # other processes create files
    else:
        assert entries is None
    assert whole_file_system_entries(f"{here}/below", str(table)) is None


def test_jobs_are_listed_with_state_progress_and_start() -> None:
    here = Host("here")
    running = JobSummary(
        job_id="7f3a01",
        targets=(PathStr("/srv/a"),),
        strategy=StrategyName("rm"),
        state=JobState.RUNNING,
        created_at=0.0,
        deleted_entries=1234,
        expected_entries=4000,
        failed=0,
        host=here,
        is_other_host=False,
        fraction=0.308,
        left_s=(5.0, 8.0),
    )
    ended = JobSummary(
        job_id="7f3a02",
        targets=(PathStr("/srv/b"),),
        strategy=StrategyName("parallel"),
        state=JobState.PARTIAL,
        created_at=86_400.0 * 365,
        deleted_entries=None,
        expected_entries=7,
        failed=2,
        host=here,
        is_other_host=False,
    )
    head, first, second = _as_text([running, ended]).splitlines()
    assert first.startswith(
        "7f3a01  running 30 %, left 5.0 s to 8.0 s  rm          1,234  4,000  19"
    )
    assert second.startswith(
        "7f3a02  partial, 2 failed                  parallel        ?      7  197"
    )
    assert head.index("target") == first.index("/srv/a") == second.index("/srv/b")
