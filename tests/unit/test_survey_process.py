"""A survey in a process of its own answers questions, and ends with its reader."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.conftest import DEADLINE_S, wait_until
from tests.needs import needs_engine
from tests.trees import hostile_names
from tests.unit.survey_trees import assert_counts, children_of, naive
from tests.waiting_process import waiting_process
from tui_fs.model.errors import BadInput, TuiFsError
from tui_fs.model.paths import PathStr
from tui_fs.model.strategy import Filters
from tui_fs.model.survey import Details, EntryKind, Order, Ranking
from tui_fs.survey.process import ListingQuery, Query, SurveyProcess, SurveyRequest, Update
from tui_fs.survey.runner import SurveyRunner


def request(*paths: Path, filters: Filters | None = None) -> SurveyRequest:
    """Return the request for a survey of some directories."""
    return SurveyRequest(tuple(PathStr(str(path)) for path in paths), filters=filters or Filters())


def listing_of(path: Path) -> Query:
    """Return the question for the listing of a directory."""
    return Query(listing=ListingQuery(PathStr(str(path)), Order()))


@pytest.fixture
def begin() -> Iterator[Callable[..., SurveyProcess]]:
    """Yield a function that begins surveys, which are always stopped."""
    begun: list[SurveyProcess] = []
    family = children_of(os.getpid())

    def begin(*paths: Path, filters: Filters | None = None) -> SurveyProcess:
        begun.append(SurveyProcess(request(*paths, filters=filters)))
        return begun[-1]

    yield begin
    for process in begun:
        process.stop()
    assert children_of(os.getpid()) == family


def until(updates: Iterator[Update], wanted: Callable[[Update], bool]) -> Update:
    """Read on to the first update of a sort."""
    return next(update for update in updates if wanted(update))


def is_finished(update: Update) -> bool:
    """Return whether all is counted."""
    return update.survey.finished


def is_running(pid: int) -> bool:
    """Return whether a process is there and not just waiting to be taken notice of."""
    try:
        return _state(pid) not in "ZX"
    except OSError:
        return False


def _state(pid: int) -> str:
    return Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[0]


def _server(ours: set[int]) -> int:
    """Return the process of a survey that this process has started."""
    (pid,) = (pid for pid in ours if psutil.Process(pid).ppid() == os.getpid())
    return pid


def _walker(ours: set[int]) -> int:
    """Return a process that the process of the survey has started."""
    server = _server(ours)
    return next(pid for pid in ours if psutil.Process(pid).ppid() == server)


def test_a_survey_counts_and_waits_for_questions(
    tmp_path: Path, begin: Callable[..., SurveyProcess]
) -> None:
    hostile_names(tmp_path / "t")
    process = begin(tmp_path / "t")
    update = until(process.updates(), is_finished)
    assert_counts(update.survey, naive(os.fsencode(tmp_path / "t")))
    assert (update.listing, update.query) == (None, Query())


def test_questions_are_answered_with_every_update_from_then_on(
    tmp_path: Path, begin: Callable[..., SurveyProcess]
) -> None:
    for name in ("a", "b"):
        (tmp_path / "t" / name / "n\udcff\n").mkdir(parents=True)
    for number in range(3):
        (tmp_path / "t" / "b" / f"{number}").write_bytes(b"x")
    process = begin(tmp_path / "t")
    updates = process.updates()
    until(updates, is_finished)
    process.ask(listing_of(tmp_path / "t" / "b"))
    shown = until(updates, lambda update: update.listing is not None)
    process.ask(Query(ranking=Ranking.ENTRIES))
    ranked = until(updates, lambda update: update.query.ranking is not None)
    process.ask(Query(name=PathStr("n\udcff\n")))
    named = until(updates, lambda update: update.query.name is not None)
    assert shown.listing is not None
    assert sorted(child.name for child in shown.listing.children) == ["0", "1", "2", "n\udcff\n"]
    assert [row.path.rpartition("/")[2] for row in ranked.ranking[:3]] == ["b", "t", "a"]
    assert set(named.paths_named) == {str(tmp_path / "t" / name / "n\udcff\n") for name in "ab"}
    assert named.listing == ranked.listing == shown.listing
    assert (named.query.ranking, named.ranking) == (Ranking.ENTRIES, ranked.ranking)


def test_another_directory_is_shown_when_asked(
    tmp_path: Path, begin: Callable[..., SurveyProcess]
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").symlink_to("a")
    process = begin(tmp_path)
    updates = process.updates()
    process.ask(listing_of(tmp_path / "a"))
    until(updates, lambda update: is_finished(update) and update.listing is not None)
    process.ask(listing_of(tmp_path))
    listing = until(
        updates, lambda update: update.listing is not None and update.listing.path == str(tmp_path)
    ).listing
    assert listing is not None
    assert {child.name: child.kind for child in listing.children} == {
        "a": EntryKind.DIRECTORY,
        "b": EntryKind.SYMLINK,
    } | {name: EntryKind.DIRECTORY for name in os.listdir(tmp_path) if name not in "ab"}


def test_a_directory_is_described(begin: Callable[..., SurveyProcess], tmp_path: Path) -> None:
    for path, size in (("a/b/large", 65 << 20), ("a/small", 3), ("a/other.log", 70_000), ("c", 5)):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        with (tmp_path / path).open("wb") as file:
            file.truncate(size)

    def description(survey: SurveyProcess, updates: Iterator[Update], path: Path) -> Details | None:
        survey.ask(Query(described=PathStr(str(path))))
        return until(updates, lambda update: update.query.described == str(path)).details

    def sizes(details: Details | None) -> list[int]:
        assert details is not None
        assert details.histograms is not None
        return [size.entries for size in details.histograms.sizes]

    survey = begin(tmp_path)
    updates = survey.updates()
    until(updates, is_finished)
    details = description(survey, updates, tmp_path / "a")
    assert sizes(details) == [0, 1, 0, 1, 0, 1, 0]
    assert details is not None
    assert details.largest_files == ((65 << 20, str(tmp_path / "a/b/large")),)
    assert description(survey, updates, tmp_path / "no such directory") is None

    survey = begin(tmp_path, filters=Filters(name_glob="*.log"))
    updates = survey.updates()
    until(updates, is_finished)
    assert sizes(description(survey, updates, tmp_path)) == [0, 0, 0, 1, 0, 0, 0]
    survey.ask(Query(everything=True))
    details = description(survey, updates, tmp_path / "a")
    assert details is not None
    assert details.histograms is None  # they count only what matched
    assert len(details.largest_files) == 1


def test_a_question_asked_before_anything_is_counted_is_answered(
    tmp_path: Path, begin: Callable[..., SurveyProcess]
) -> None:
    hostile_names(tmp_path / "t")
    process = begin(tmp_path / "t")
    process.ask(listing_of(tmp_path / "t" / "files"))
    process.ask(Query(ranking=Ranking.ALLOCATED))
    update = until(
        process.updates(), lambda latest: is_finished(latest) and latest.query.ranking is not None
    )
    assert update.listing is not None
    assert len(update.listing.children) == len(os.listdir(tmp_path / "t" / "files"))


@pytest.mark.parametrize("name", ["missing", "link", "file", "other\nname"])
def test_a_directory_that_cannot_be_read_is_bad_input(
    tmp_path: Path, begin: Callable[..., SurveyProcess], name: str
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(
        BadInput, match=r"(does not exist|cannot be examined|is not a directory).*\.$"
    ) as caught:
        list(begin(tmp_path / name).updates())
    assert "\n" not in str(caught.value)


def test_one_of_several_that_cannot_be_read_is_named(
    tmp_path: Path, begin: Callable[..., SurveyProcess]
) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(BadInput, match="/b does not exist"):
        list(begin(tmp_path / "a", tmp_path / "b").updates())


def test_stopping_leaves_no_process_and_no_error() -> None:
    family = children_of(os.getpid())
    process = SurveyProcess(request(Path("/")))
    updates = process.updates()
    next(updates)
    assert len(children_of(os.getpid()) - family) > 1
    process.stop()
    process.stop()
    assert not any(map(is_running, children_of(os.getpid()) - family))
    assert not any(update.survey.finished for update in updates)


def test_a_survey_that_ends_while_it_is_signalled_is_no_error(
    begin: Callable[..., SurveyProcess], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = begin(tmp_path)
    until(process.updates(), is_finished)

    def gone(*_: int) -> None:
        raise ProcessLookupError  # another thread has just waited for the process

    with monkeypatch.context() as patch:
        patch.setattr(os, "killpg", gone)
        process.pause()


@pytest.mark.slow
def test_a_paused_survey_stops_all_its_processes(
    begin: Callable[..., SurveyProcess],
) -> None:
    family = children_of(os.getpid())
    process = begin(Path("/"))
    updates = process.updates()
    next(updates)
    process.pause()
    ours = children_of(os.getpid()) - family
    wait_until(lambda: all(_state(pid) == "T" for pid in ours), "all standing still")
    assert (process.is_paused, len(ours) > 1) == (True, True)
    process.resume()
    next(updates)
    before = next(updates).survey.totals.entries
    until(updates, lambda update: is_finished(update) or update.survey.totals.entries > before)
    assert not process.is_paused
    process.pause()


@pytest.mark.slow
def test_a_walker_that_the_kernel_stops_late_goes_on(begin: Callable[..., SurveyProcess]) -> None:
    family = children_of(os.getpid())
    process = begin(Path("/"))
    updates = process.updates()
    next(updates)
    ours = children_of(os.getpid()) - family
    process.pause()
    process.resume()
    walker = _walker(ours)
    os.kill(walker, signal.SIGSTOP)
    wait_until(lambda: _state(walker) == "T", "standing")
    for _ in range(3):
        next(updates)
    wait_until(lambda: _state(walker) != "T", "going on")


@pytest.mark.parametrize("is_paused", [False, True])
@pytest.mark.slow
def test_a_survey_that_is_killed_is_an_error(
    begin: Callable[..., SurveyProcess], is_paused: bool
) -> None:
    family = children_of(os.getpid())
    process = begin(Path("/"))
    updates = process.updates()
    next(updates)
    ours = children_of(os.getpid()) - family
    server = _server(ours)
    if is_paused:
        process.pause()
    os.kill(server, signal.SIGKILL)
    with pytest.raises(TuiFsError, match="ended without a result"):
        list(updates)
    wait_until(lambda: not any(map(is_running, ours)), "the end of the walkers")


@pytest.mark.slow
def test_a_walker_that_is_killed_is_an_error(begin: Callable[..., SurveyProcess]) -> None:
    family = children_of(os.getpid())
    updates = begin(Path("/")).updates()
    next(updates)
    os.kill(_walker(children_of(os.getpid()) - family), signal.SIGKILL)
    # Its reader learns that the counts are not complete
    with pytest.raises(TuiFsError, match="exited unexpectedly"):
        list(updates)


def test_nothing_is_signalled_once_the_survey_has_ended(
    tmp_path: Path, begin: Callable[..., SurveyProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    family = children_of(os.getpid())
    process = begin(tmp_path)
    updates = process.updates()
    until(updates, is_finished)
    signalled: list[int] = []
    with monkeypatch.context() as patch:
        os.kill(_server(children_of(os.getpid()) - family), signal.SIGKILL)
        with pytest.raises(TuiFsError):
            list(updates)
        patch.setattr(os, "killpg", lambda group, _: signalled.append(group))
        process.pause()
        process.stop()
    assert signalled == []


READER = """
import sys, time
from tui_fs.survey.process import SurveyProcess, SurveyRequest
process = SurveyProcess(SurveyRequest((sys.argv[1],)))
updates = process.updates()
update = next(updates)
while sys.argv[2] == "finished" and not update.survey.finished:
    update = next(updates)
if sys.argv[2] == "paused":
    process.pause()
print(flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("how", ["counting", "finished", "paused"])
@pytest.mark.slow
def test_the_death_of_the_reader_ends_the_survey(tmp_path: Path, how: str) -> None:
    path = str(tmp_path) if how == "finished" else "/"
    reader = subprocess.Popen(
        [sys.executable, "-c", READER, path, how], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert reader.stdout is not None
    reader.stdout.readline()
    ours = children_of(reader.pid)
    assert len(ours) >= (1 if how == "finished" else 2)
    try:
        reader.kill()
        reader.communicate()
        wait_until(lambda: not any(map(is_running, ours)), "the end of the survey", 10)
    finally:
        for pid in filter(is_running, ours):
            os.kill(pid, signal.SIGKILL)


_IGNORING = """
import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
from tui_fs.survey.runner import SurveyRunner
*_, survey = SurveyRunner(sys.argv[1:2], backend=sys.argv[2]).run()
print(survey.totals, survey.inodes, survey.finished, survey.complete)
try:
    print(os.waitpid(-1, os.WNOHANG))
except ChildProcessError:
    print("no child is left")
"""


def _printed(code: str, tree: Path, backend: str) -> list[str]:
    """Run a program over a tree; return the lines it prints."""
    command = [sys.executable, "-c", code, str(tree), backend]
    finished = subprocess.run(
        command, capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )
    assert (finished.returncode, finished.stderr) == (0, "")
    return finished.stdout.splitlines()


@pytest.mark.parametrize("backend", ["scandir", "engine"])
def test_it_counts_where_sigchld_is_ignored(tmp_path: Path, backend: str) -> None:
    # A process that ignores SIGCHLD, so that its children vanish when they end
    if backend == "engine":
        needs_engine()
    hostile_names(tmp_path)
    expected = naive(os.fsencode(tmp_path))
    assert _printed(_IGNORING, tmp_path, backend) == [
        f"{expected.totals} {expected.inodes} True True",
        "no child is left",
    ]


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[int, int]]:
    """Yield a process at work in a directory, and one that it has started there."""
    script = "exec 3>by-parent; (echo; exec cat) 4>by-child; :"
    with waiting_process(["sh", "-c", script], cwd=tmp_path) as parent:
        (child,) = children_of(parent.pid)
        yield parent.pid, child


def _reported_at_work(tree: Path, pids: tuple[int, int], family: int) -> tuple[bool, bool]:
    """Return which of two processes a survey reports as being at work."""
    *_, survey = SurveyRunner([str(tree)], family=family).run()
    meanings = [finding.meaning for finding in survey.findings if finding.kind == "in-use"]
    parent, child = (any(f"({pid})" in meaning for meaning in meanings) for pid in pids)
    return parent, child


def test_a_family_is_not_reported_as_being_at_work(tmp_path: Path, pair: tuple[int, int]) -> None:
    parent, child = pair
    assert _reported_at_work(tmp_path, pair, 0) == (True, True)
    assert _reported_at_work(tmp_path, pair, parent) == (False, False)
    assert _reported_at_work(tmp_path, pair, child) == (True, False)
    assert _reported_at_work(tmp_path, pair, os.getpid()) == (False, False)


def test_a_finished_survey_makes_a_page_once(
    begin: Callable[..., SurveyProcess], tmp_path: Path
) -> None:
    (tmp_path / "a").mkdir()
    process = begin(tmp_path)
    updates = process.updates()
    until(updates, is_finished)
    process.ask(Query(page=True))
    page = until(updates, lambda update: update.page is not None).page
    assert page is not None and b"<!doctype html>" in page.lower()
    assert b"had not finished" not in page
    process.ask(Query(ranking=Ranking.ENTRIES))
    assert until(updates, lambda update: update.query.ranking is Ranking.ENTRIES).page is None
