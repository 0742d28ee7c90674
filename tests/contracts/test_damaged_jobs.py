"""A damaged job folder: it is named, hides no other job, and nothing false is claimed about it."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import Cli
from tests.contracts.test_overlap import start_slowly
from tests.trees import flat

FILES = 3_000


def _replace_by_fifo(file: Path) -> None:
    file.unlink(missing_ok=True)
    os.mkfifo(file)


def _replace_by_directory(file: Path) -> None:
    file.unlink()
    file.mkdir()


def _replace_by_link(file: Path) -> None:
    file.unlink()
    file.symlink_to("/etc/passwd")


def _grow(file: Path) -> None:
    os.truncate(file, 3 << 30)  # sparse


def _write_number(file: Path) -> None:
    text = file.read_text()
    before, _, rest = text.partition('"created_at": ')
    file.write_text(f'{before}"created_at": NaN,{rest.partition(",")[2]}')


DAMAGES = (
    ("events.jsonl", _replace_by_fifo),
    ("events.jsonl", _replace_by_directory),
    ("events.jsonl", _replace_by_link),
    ("events.jsonl", _grow),
    ("plan.json", _grow),
    ("plan.json", _write_number),
)


@pytest.fixture(autouse=True)
def nothing_is_left_to_read(cli: Cli) -> Iterator[None]:
    """Let nothing that reads the journals after a test wait for a FIFO, or read 3 GiB."""
    yield
    for file in cli.jobs_directory.glob("*/*"):
        if file.is_fifo() or (file.is_file() and file.lstat().st_size > 1 << 30):
            file.unlink()


@pytest.mark.parametrize(("name", "damage"), DAMAGES)
def test_a_damaged_job_is_named_and_hides_no_other(
    cli: Cli, tmp_path: Path, name: str, damage: Callable[[Path], None]
) -> None:
    jobs = []
    for number in range(2):
        flat(tmp_path / f"t{number}", 3)
        jobs.append(str(cli.delete(tmp_path / f"t{number}", "rmtree").expect(0).report()["id"]))
    damage(cli.jobs_directory / jobs[0] / name)
    listed = cli.run("jobs", "--json").expect(0)
    assert [job["id"] for job in listed.array()] == [jobs[1]]
    assert f"job {jobs[0]}: " in listed.stderr
    # And a new job starts and ends
    flat(tmp_path / "new", 3)
    cli.delete(tmp_path / "new", "rmtree").expect(0)
    # And old jobs can be removed, without the damaged one
    cli.run("jobs", "--prune").expect(0)
    cli.run("attach", jobs[0]).expect(2).assert_one_sentence()


@pytest.mark.parametrize("name", ["end", "crash"])
def test_a_damaged_mark_of_a_job_that_died_hides_nothing(
    cli: Cli, tmp_path: Path, name: str
) -> None:
    flat(tmp_path / "t", FILES)
    job = start_slowly(cli, tmp_path / "t")
    os.kill(cli.supervisor_of(job), signal.SIGKILL)
    cli.wait_for_state(job, "died")
    _replace_by_fifo(cli.jobs_directory / job / name)
    assert cli.state_of(job) == "died"
    assert cli.run("attach", "--json", job).expect(5).report()["outcome"] == "died"


@pytest.mark.parametrize("is_ended", [True, False])
@pytest.mark.parametrize("damage", [os.unlink, lambda file: os.truncate(file, 0)])
def test_a_lost_journal_is_no_proof_that_nothing_was_deleted(
    cli: Cli, tmp_path: Path, is_ended: bool, damage: Callable[[Path], None]
) -> None:
    flat(tmp_path / "t", FILES)
    if is_ended:
        job = str(cli.delete(tmp_path / "t", "rm").expect(0).report()["id"])
    else:
        job = start_slowly(cli, tmp_path / "t")
        os.kill(cli.supervisor_of(job), signal.SIGKILL)
        cli.wait_for_state(job, "died")
    damage(cli.jobs_directory / job / "events.jsonl")
    report = cli.run("attach", "--json", job).expect(5).report()
    assert "nothing was deleted" not in report["explanation"]
