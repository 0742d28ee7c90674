"""Whole journeys in tmux: keys in, screen and file system out."""

import os
import signal
from pathlib import Path

import pytest

from tests.conftest import Cli, entries_in, wait_until
from tests.e2e.conftest import Open
from tests.e2e.terminal import Terminal
from tests.trees import Sentinel, flat, hostile_names, many_directories
from tui_fs.strategies.registry import STRATEGIES

ROW_OF: dict[str, int] = {name: row for row, name in enumerate(STRATEGIES)}
SLOW_PER_S = 20


def confirm(terminal: Terminal, strategy: str, name: str) -> None:
    """From the browser, cursor on the directory: preview, strategy, confirmation."""
    terminal.press("d")
    terminal.wait_for("counted")
    for _ in range(ROW_OF[strategy]):
        terminal.press("j")
    terminal.wait_for(f"› {strategy}")
    terminal.press("Enter")
    terminal.wait_for("Delete permanently?")
    terminal.wait_for("No, go back")  # below all other lines of the dialog
    if f"type {name} to confirm" in terminal.text():
        terminal.type(name)
        terminal.answer("Delete permanently?", "Enter")
    else:
        terminal.answer("Delete permanently?", "Tab", "Enter")


# That each strategy keeps its promises on each file system is for the contracts to show.
@pytest.mark.parametrize(
    "filesystem, strategy",
    [("ext4", "xargs"), ("tmpfs", "parallel")],
    indirect=["filesystem"],
)
def test_a_strategy_deletes_what_was_confirmed_and_nothing_else(
    open_on: Open, filesystem: Path, strategy: str
) -> None:
    place = filesystem / "spool"
    place.mkdir()
    target = place / "maildrop"
    target.mkdir()
    many_directories(target, 20, 600)
    hostile_names(target)
    sentinel = Sentinel(filesystem)
    sentinel.plant(target)
    terminal = open_on(place)
    terminal.wait_for("complete")

    confirm(terminal, strategy, "maildrop")

    terminal.wait_for("DONE")
    assert "The directory is gone." in terminal.text()
    assert not target.exists()
    sentinel.assert_whole()
    terminal.press("q")
    terminal.wait_for("empty directory")
    terminal.press("q")
    wait_until(lambda: not terminal.is_open(), "the end of the program")


def test_largest_file_is_found_and_deleted(open_on: Open, ext4: Path) -> None:
    place = ext4 / "logs"
    (place / "deep" / "er").mkdir(parents=True)
    largest = place / "deep" / "er" / "big.log"
    with open(largest, "wb") as file:
        os.posix_fallocate(file.fileno(), 0, 200 << 20)
    (place / "deep" / "small.log").write_bytes(b"x" * (2 << 20))
    sentinel = Sentinel(ext4)
    terminal = open_on(place)
    terminal.wait_for("complete")
    terminal.press("B")
    terminal.wait_for("deep/er/big.log")
    terminal.press("d")
    terminal.wait_for("one file · allocated 200.0 MiB")
    terminal.press("Enter")
    terminal.wait_for("200.0 MiB allocated; frees 200.0 MiB")
    terminal.answer("Delete permanently?", "Tab", "Enter")
    terminal.wait_for("DONE")
    assert "The file is gone." in terminal.text()
    assert not largest.exists()
    assert (place / "deep" / "small.log").exists()
    sentinel.assert_whole()


def test_emptying_keeps_the_directory(open_on: Open, tmpfs: Path) -> None:
    target = tmpfs / "place" / "maildrop"
    target.mkdir(parents=True)
    many_directories(target, 3, 10)
    before = target.stat()
    terminal = open_on(target.parent)
    terminal.wait_for("complete")
    terminal.press("d")
    terminal.wait_for("counted")
    terminal.press("o")
    terminal.wait_for("delete its contents")
    terminal.press("Space")
    terminal.wait_for("[x] keep the directory")
    terminal.press("Enter")
    terminal.wait_for("keep directory [x]")
    terminal.press("Enter")
    terminal.wait_for("Empty it")
    terminal.answer("Delete permanently?", "Tab", "Enter")

    terminal.wait_for("DONE")

    after = target.stat()
    assert (after.st_ino, after.st_mode, after.st_uid) == (
        before.st_ino,
        before.st_mode,
        before.st_uid,
    )
    assert entries_in(target) == 0


def test_the_answer_is_no_unless_it_is_yes(open_on: Open, tmpfs: Path) -> None:
    target = tmpfs / "place" / "maildrop"
    target.mkdir(parents=True)
    many_directories(target, 3, 10)
    terminal = open_on(target.parent)
    terminal.wait_for("complete")

    terminal.press("d")
    terminal.wait_for("counted")
    terminal.press("Enter")
    terminal.wait_for("Delete permanently?")
    terminal.answer("Delete permanently?", "Enter")  # the default
    terminal.wait_for("safe against")
    terminal.press("Enter")
    terminal.wait_for("Delete permanently?")
    terminal.answer("Delete permanently?", "Escape")
    terminal.wait_for("safe against")

    assert entries_in(target) == 3


def test_a_refused_target_cannot_be_confirmed(open_on: Open) -> None:
    terminal = open_on(Path("/"))
    terminal.wait_for("etc/")
    terminal.press("/")
    terminal.wait_for("─ search")
    terminal.type("etc")
    terminal.press("Enter")
    terminal.wait_for("search in /")
    terminal.wait_for("› ")
    terminal.press("d")
    terminal.wait_for("Refused: /etc is a directory that the system needs.")
    terminal.press("Enter")
    terminal.wait_for("nothing was deleted")
    assert "for ever?" not in terminal.text()


@pytest.fixture
def running(open_on: Open, cli: Cli, ext4: Path) -> tuple[Terminal, Path, str]:
    """A paused deletion, seen on the run screen, that will go on without a limit."""
    target = ext4 / "place" / "maildrop"
    target.mkdir(parents=True)
    flat(target, 20_000)
    terminal = open_on(target.parent)
    terminal.wait_for("complete")
    # So slow that it does not end before it is paused
    slow = ("--strategy", "find", "--detach", "--rate", str(SLOW_PER_S))
    job = cli.run("delete", "--yes", *slow, target).expect(0).stdout.decode().strip()
    terminal.press("J")
    terminal.wait_for("running")
    terminal.press("Enter")
    terminal.wait_for("system calls")
    terminal.press("p")
    terminal.wait_for("PAUSED")
    cli.run("rate", job, "off").expect(0)
    return terminal, target, job


def test_a_job_outlives_its_screen(
    running: tuple[Terminal, Path, str], open_on: Open, cli: Cli
) -> None:
    terminal, target, job = running
    terminal.close()  # SIGHUP
    wait_until(lambda: not terminal.is_open(), "the end of the screen")
    assert cli.state_of(job) == "paused"

    again = open_on(target.parent)
    again.wait_for("complete")
    again.press("J")
    again.wait_for("paused")
    again.press("Enter")
    again.wait_for("PAUSED")
    again.press("p")

    again.wait_for("DONE")
    assert not target.exists()
    assert cli.state_of(job) == "done"
    assert cli.journal(job)[-1]["type"] == "JobFinished"


def test_ranks_leaving_and_cancelling(running: tuple[Terminal, Path, str], cli: Cli) -> None:
    terminal, target, job = running

    terminal.press("z")
    terminal.wait_for("pace gentle")
    terminal.press("n")
    terminal.wait_for("nice 10 · ionice low")
    terminal.press("n")
    terminal.wait_for("nice 19 · ionice idle")
    terminal.press("z")
    terminal.wait_until(lambda text: "pace gentle" not in text, "no longer gentle")
    paces = [e["pace"] for e in cli.journal(job) if e["type"] == "PaceChanged"]
    asked = {"gentle": False, "rate_per_s": 0, "nice": 19, "io_priority": "idle", "threads": 0}
    assert paces[-1] == asked

    terminal.press("q")
    terminal.wait_for("The job stays paused")
    terminal.press("Escape")
    terminal.wait_for("maildrop/")
    terminal.press("d")
    terminal.wait_for(f"Refused: Job {job} is already working in")
    terminal.press("Escape")
    terminal.wait_for("maildrop/")
    terminal.press("J")
    terminal.wait_for("paused")
    terminal.press("Enter")
    terminal.wait_for("PAUSED")
    terminal.press("c")
    terminal.wait_for("Cancel job ")
    assert "No, do not cancel" in terminal.text()
    terminal.answer("Cancel job ", "Tab", "Enter")

    terminal.wait_for("CANCELLED")

    assert target.exists()
    assert cli.state_of(job) == "cancelled"


def test_a_dead_supervisor_is_shown_as_died_and_the_rest_taken_up(
    running: tuple[Terminal, Path, str], cli: Cli
) -> None:
    terminal, target, job = running

    os.kill(cli.supervisor_of(job), signal.SIGKILL)

    terminal.wait_for("DIED")
    assert "at least" in terminal.text()
    assert target.exists()

    terminal.press("p")
    terminal.wait_for("counted")
    terminal.wait_for("› find")
    terminal.press("Enter")
    terminal.wait_for("Delete permanently?")
    terminal.type("maildrop")
    terminal.answer("Delete permanently?", "Enter")
    wait_until(lambda: len(cli.jobs()) == 2, "the job that deletes the rest")
    (rest,) = (str(listed["id"]) for listed in cli.jobs() if listed["id"] != job)
    wait_until(lambda: cli.run("rate", rest, "off").code == 0, "its full speed")
    terminal.wait_for("DONE")
    assert not target.exists()


def test_marked_directories_go_and_nothing_else(open_on: Open, tmpfs: Path) -> None:
    place = tmpfs / "place"
    for user in ("ada", "ben", "cai"):
        many_directories_in(place / user / "cache")
        many_directories_in(place / user / "kept")
    sentinel = Sentinel(place)
    terminal = open_on(place)
    terminal.wait_for("complete")
    terminal.press("2")
    terminal.wait_for("entries ▼")
    terminal.press("g")
    terminal.press("Enter")
    terminal.wait_for("cache/")
    terminal.wait_until(lambda text: "kept/" in text and "ben/" not in text, "the inside")
    terminal.press("/")
    terminal.wait_for("─ search")
    terminal.type("cache")
    terminal.press("Enter")
    terminal.wait_for("3 matches")
    terminal.press("A")
    terminal.wait_for("3 marked")
    terminal.press("h")
    terminal.wait_for("kept/")
    terminal.press("M")
    terminal.wait_for("3 marked directories")
    terminal.press("h")
    terminal.wait_for("kept/")
    terminal.press("d")
    terminal.wait_for("192 names")
    terminal.wait_for("counted")
    terminal.press("Enter")
    terminal.wait_for("delete 3 directories in")
    terminal.answer("Delete permanently?", "Tab", "Enter")

    terminal.wait_for("DONE")
    sentinel.assert_whole()
    left = {str(path.relative_to(place)) for path in place.glob("[abc]*/*")}
    assert left == {"ada/kept", "ben/kept", "cai/kept"}
    terminal.press("q")
    terminal.wait_for("complete")
    assert "3 marked" not in terminal.text()


def test_a_search_leaves_out_what_was_deleted_from_it(open_on: Open, tmpfs: Path) -> None:
    for user in ("ada", "ben"):
        many_directories_in(tmpfs / "place" / user / "cache")
    terminal = open_on(tmpfs / "place")
    terminal.wait_for("complete")
    terminal.press("/")
    terminal.wait_for("─ search")
    terminal.type("cache")
    terminal.press("Enter")
    terminal.wait_for("2 matches")
    terminal.press("d")
    terminal.wait_for("counted")
    terminal.press("Enter")
    terminal.wait_for("Delete permanently?")
    terminal.answer("Delete permanently?", "Tab", "Enter")
    terminal.wait_for("DONE")
    terminal.press("q")
    terminal.wait_for("1 gone since")
    paths = [
        f"{user}/cache/" for user in ("ada", "ben") if (tmpfs / "place" / user / "cache").exists()
    ]
    assert len(paths) == 1 and terminal.text().count("/cache/") == 1
    assert paths[0] in terminal.text()


def many_directories_in(root: Path) -> None:
    """Make a little tree."""
    root.mkdir(parents=True)
    many_directories(root, 3, 20)


@pytest.mark.slow
def test_keys_answer_in_a_large_directory(open_on: Open, tmpfs: Path) -> None:
    place = tmpfs / "place"
    place.mkdir()
    flat(place, 100_000)
    terminal = open_on(place)
    terminal.wait_for("entries")

    terminal.press("?")
    terminal.wait_for("esc close")
    terminal.press("Escape")
    # Else both keys may come at once, as Alt and G
    terminal.wait_until(lambda text: "esc close" not in text, "the help gone")
    terminal.wait_for("100,001")
    terminal.press("G")
    terminal.wait_for("98,000 more")


def test_typing_a_path_completes_it(open_on: Open, tmpfs: Path) -> None:
    (tmpfs / "warehouse" / "inner").mkdir(parents=True)
    terminal = open_on(tmpfs)
    terminal.wait_for("warehouse")

    terminal.press(":")
    terminal.wait_for("path")
    terminal.type("ware")
    terminal.press("Tab")
    terminal.wait_for(f"{tmpfs.name}/warehouse/")
    terminal.press("Enter")

    terminal.wait_for("inner/")


def test_old_logs_are_deleted_by_a_filter_and_nothing_else(open_on: Open, tmpfs: Path) -> None:
    place = tmpfs / "log"
    (place / "app").mkdir(parents=True)
    old, fresh, other = (place / "app" / name for name in ("old.log", "fresh.log", "old.txt"))
    for path in (old, fresh, other, place / "top.log"):
        path.write_bytes(b"text")
    for path in (old, other, place / "top.log"):
        os.utime(path, (1_000_000_000, 1_000_000_000))
    terminal = open_on(place)
    terminal.wait_for("complete")

    terminal.press("f")
    terminal.wait_for("count only files that match")
    terminal.type("*.log >30")
    terminal.press("Enter")
    terminal.wait_for("'>30' needs a unit, for example >30M or >30d.")
    terminal.type("d")
    terminal.press("Enter")
    terminal.wait_for("matches 2 files")
    terminal.press("Escape")
    terminal.wait_for("6 entries in 2 directories")
    terminal.press("f")
    terminal.type("*.log >30d")
    terminal.press("Enter")
    terminal.wait_for("matches 2 files")
    terminal.press("D")
    terminal.wait_for("2 files match *.log, not modified since")
    terminal.wait_for("counted")
    terminal.press("Enter")
    terminal.wait_for("only 2 files in it that match:")
    terminal.answer("Delete permanently?", "Tab", "Enter")
    terminal.wait_for("DONE")

    assert "2 of 2 deleted" in terminal.text()
    assert sorted(path.name for path in place.rglob("*")) == ["app", "fresh.log", "old.txt"]
    terminal.press("q")
    terminal.wait_for("matches 0 files")


def test_two_jobs_are_compared_side_by_side(open_on: Open, cli: Cli, tmpfs: Path) -> None:
    for strategy, files in (("rm", 100), ("find", 4_000)):
        target = tmpfs / strategy
        target.mkdir()
        flat(target, files)
        cli.run("delete", "--strategy", strategy, "--yes", target).expect(0)
    terminal = open_on(tmpfs)
    terminal.wait_for("complete")

    terminal.press("J")
    terminal.wait_for("2 ended")
    terminal.press("Space", "=")

    terminal.wait_for("Entries differ: 101 and 4,001; compare the rates, not the times.")
    assert "tmpfs" in terminal.text()
    row = next(line for line in terminal.text().splitlines() if "strategy" in line)
    assert row.split() == ["strategy", "rm", "find"]  # the older job first
    row = next(line for line in terminal.text().splitlines() if "deleted" in line)
    assert row.split() == ["deleted", "101", "4,001", "39.6"]
    terminal.press("G", "Escape")
    terminal.wait_for("2 ended")


def test_the_treemap_leads_into_a_directory_and_out_again(open_on: Open, tmpfs: Path) -> None:
    for name, size in (("mail/ada", 4 << 20), ("mail/ben", 2 << 20), ("cache", 1 << 20)):
        (tmpfs / "srv" / name).mkdir(parents=True)
        (tmpfs / "srv" / name / "data").write_bytes(bytes(size))
    terminal = open_on(tmpfs / "srv")
    terminal.wait_for("complete")
    terminal.press("T")
    terminal.wait_for("mail/ 6.0 MiB")  # a frame around ada and ben
    terminal.wait_for("ada/")
    terminal.press("Enter")
    terminal.wait_for("srv/mail ")
    terminal.wait_until(lambda text: "cache/" not in text, "the inside alone")
    terminal.press("Enter")
    terminal.wait_for("srv/mail/ada")
    terminal.press("Left", "Left")
    terminal.wait_for("cache/")
    assert "mail/ 6.0 MiB" in terminal.text()
    terminal.press("T")
    terminal.wait_until(lambda text: "mail/ 6.0 MiB" not in text, "the table alone")


def test_the_page_of_a_survey_is_written_where_it_was_asked_for(
    open_on: Open, tmpfs: Path, tmp_path: Path
) -> None:
    (tmpfs / "srv" / "maildrop").mkdir(parents=True)
    (tmpfs / "srv" / "maildrop" / "<b>hostile").write_bytes(bytes(1 << 20))
    page = tmp_path / "page.html"
    terminal = open_on(tmpfs / "srv")
    terminal.wait_for("complete")
    terminal.press("e")
    terminal.wait_for("write this survey as a page")
    terminal.press("C-u")
    terminal.type(str(page))
    terminal.press("Enter")
    wait_until(page.exists, "the page")
    terminal.wait_for("maildrop/")
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>") and text.rstrip().endswith("</html>")
    assert "maildrop" in text and "<b>hostile" not in text
    terminal.press("e")
    terminal.wait_for("write this survey as a page")
    terminal.press("C-u")
    terminal.type(str(page))
    terminal.press("Enter")
    terminal.wait_for("exists already")
    terminal.answer("exists already", "Escape")
    terminal.press("Escape")
    terminal.wait_for("maildrop/")
