"""Several machines delete one directory together, each its share (``--shard``)."""

import errno
import json
import os
import zlib
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.conftest import DEADLINE_S, Cli
from tests.fuse.latency import served_late
from tests.needs import needs_engine
from tests.trees import flat, hostile_names, many_directories
from tui_fs.job.outcome import outcome_of_job, verify
from tui_fs.job.planning import make_plan
from tui_fs.linux.filesystem import directory_id
from tui_fs.linux.pins import open_path_fd, take_pin
from tui_fs.model.paths import PathStr
from tui_fs.model.snapshot import Snapshot
from tui_fs.model.strategy import Filters, Options, Pace, Share, StrategyName
from tui_fs.model.target import Target
from tui_fs.survey.runner import Backend, SurveyRunner

PARALLEL = "parallel"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a tree with names and directories in every share, and as many levels below."""
    tree = tmp_path / "tree"
    hostile_names(tree)
    many_directories(tree, 30, 7)
    flat(tree / "flat", 200)
    for number in range(100):
        (tree / f"file-{number}").touch()
    return tree


def _share_of(name: str, of: int) -> int:
    return zlib.crc32(os.fsencode(name)) % of + 1


def _entries(path: Path) -> int:
    return sum(len(names) + len(files) for _, names, files in os.walk(path)) + 1


def _finished_survey(path: Path, backend: Backend | None, share: Share | None) -> int:
    runner = SurveyRunner([str(path)], Filters(share=share), backend=backend)
    *_, survey = runner.run()
    assert survey.complete
    return survey.totals.entries - 1  # without the directory itself


def test_each_share_is_deleted_and_the_last_removes_the_directory(cli: Cli, tree: Path) -> None:
    needs_engine()
    whole, deleted = _entries(tree), 0
    for number in (2, 3, 1):
        before = set(os.listdir(tree))
        finished = cli.delete(tree, PARALLEL, "--shard", f"{number}/3").expect(0)
        report = finished.report()
        assert report["outcome"] == "done"
        assert report["failed"] == 0
        assert report["share"] == f"{number}/3"
        assert [target["done"] for target in report["targets"]] == [True]
        assert [target["gone"] for target in report["targets"]] == [number == 1]
        text = cli.run("attach", report["id"]).expect(0).stdout.decode()
        assert f"share {number}/3 of {tree}" in text
        deleted += report["deleted_files"] + report["deleted_directories"]
        if number == 1:
            assert not tree.exists()
            assert report["explanation"] == "The directory is gone."
        else:
            assert set(os.listdir(tree)) == {n for n in before if _share_of(n, 3) != number}
            assert report["explanation"].startswith(f"Share {number}/3 is deleted.")
    assert deleted == whole


def test_several_directories_that_still_exist_are_not_reported_as_gone(
    cli: Cli, tree: Path, tmp_path: Path
) -> None:
    needs_engine()
    many_directories(tmp_path / "second", 20, 2)
    report = (
        cli.delete(tree, PARALLEL, "--shard", "1/2", str(tmp_path / "second")).expect(0).report()
    )
    assert [target["gone"] for target in report["targets"]] == [False, False]
    text = cli.run("attach", report["id"]).expect(0).stdout.decode()
    assert "share deleted" in text
    assert "gone" not in text


@pytest.mark.parametrize("backend", ["engine", "scandir"])
def test_surveys_count_one_share(tree: Path, backend: Backend) -> None:
    shares = [_finished_survey(tree, backend, Share(number, 4)) for number in (1, 2, 3, 4)]
    assert sum(shares) == _finished_survey(tree, backend, None) == _entries(tree) - 1
    assert min(shares) > 0
    names = [name for name in os.listdir(tree) if _share_of(name, 4) == 2]
    assert shares[1] == sum(
        _entries(tree / name) if (tree / name).is_dir() else 1 for name in names
    )


@pytest.mark.parametrize("of", [2, 3, 4, 7, 16])
@pytest.mark.parametrize("pattern", ["file-{}", "{:08d}", "core.{}.gz", "sess_{:x}", "{}"])
def test_shares_of_usual_names_are_about_equal(pattern: str, of: int) -> None:
    names = [pattern.format(number).encode() for number in range(20_000)]
    sizes = [sum(map(Share(number, of).contains, names)) for number in range(1, of + 1)]
    assert sum(sizes) == len(names)
    assert max(sizes) < 1.1 * len(names) / of


@pytest.mark.parametrize("confine", ["always", "off"])
def test_filters_and_a_share_select_together(cli: Cli, tree: Path, confine: str) -> None:
    needs_engine()
    cli.delete(tree, PARALLEL, "--shard", "1/2", "--name", "file-*", "--confine", confine).expect(0)
    left = {name for name in os.listdir(tree) if name.startswith("file-")}
    assert left == {f"file-{n}" for n in range(100) if _share_of(f"file-{n}", 2) == 2}


def test_the_directory_stays_if_that_is_wanted(cli: Cli, tree: Path) -> None:
    needs_engine()
    for number in (1, 2):
        report = (
            cli.delete(tree, PARALLEL, "--shard", f"{number}/2", "--keep-root").expect(0).report()
        )
        assert "stays" in report["explanation"]
    assert os.listdir(tree) == []


@pytest.mark.parametrize("clients", [2, 3])
def test_clients_delete_at_the_same_time(
    cli: Cli, tree: Path, tmp_path: Path, clients: int
) -> None:
    needs_engine()
    backing = tmp_path / "backing"
    backing.mkdir()
    tree.rename(backing / "tree")
    whole = _entries(backing / "tree")
    jobs, reports = [], []
    with ExitStack() as mounts:
        for number in range(1, clients + 1):
            client = served_late(backing, tmp_path / f"client-{number}", 0.5)
            share = ("--shard", f"{number}/{clients}", "--strategy", PARALLEL)
            path = mounts.enter_context(client) / "tree"
            jobs.append(cli.start("delete", path, *share, "--yes", "--json"))
        for job in jobs:
            output, _ = job.communicate(timeout=DEADLINE_S)
            assert job.returncode == 0, output.decode()
            reports.append(json.loads(output.splitlines()[-1]))
    assert os.listdir(backing) == []
    assert {report["outcome"] for report in reports} == {"done"}
    counts = [(r["deleted_files"], r["deleted_directories"]) for r in reports]
    assert sum(sum(pair) for pair in counts) == whole


def test_a_directory_removed_by_another_client_counts_as_gone(tmp_path: Path) -> None:
    needs_engine()
    (tmp_path / "backing" / "tree").mkdir(parents=True)
    with served_late(tmp_path / "backing", tmp_path / "mount", 0.1) as mounted:
        path = PathStr(str(mounted / "tree"))
        options = Options(filters=Filters(share=Share(1, 2)))
        *_, survey = SurveyRunner([path], options.filters).run()
        plan = make_plan([Target(path, take_pin(path))], survey, StrategyName(PARALLEL), options)
        descriptor = open_path_fd(path)
        try:
            verification = verify(plan, [descriptor])
            assert verification.is_all_gone
            assert verification.shared == (path,)
            (tmp_path / "backing" / "tree").rmdir()
            unfinished = verify(plan, [descriptor])
            verification = verify(plan, [descriptor], is_share_deleted=True)
            flat(tmp_path / "backing" / "tree", 20)
            another = verify(plan, [descriptor], is_share_deleted=True)
        finally:
            os.close(descriptor)
    assert not unfinished.is_all_gone
    assert not another.is_all_gone
    assert verification.is_all_gone
    assert verification.shared == ()
    assert (
        outcome_of_job(plan, Snapshot(), verification, "").explanation == "The directory is gone."
    )


def test_a_directory_that_a_server_has_forgotten_but_its_path_leads_to_is_not_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_engine()
    flat(tmp_path / "tree", 20)
    path = PathStr(str(tmp_path / "tree"))
    options = Options(filters=Filters(share=Share(1, 2)))
    *_, survey = SurveyRunner([path], options.filters).run()
    plan = make_plan([Target(path, take_pin(path))], survey, StrategyName(PARALLEL), options)

    def forgotten(_: int) -> int:
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))

    monkeypatch.setattr("tui_fs.job.outcome.current_links", forgotten)
    descriptor = open_path_fd(path)
    try:
        assert verify(plan, [descriptor], is_share_deleted=True).left == (path,)
    finally:
        os.close(descriptor)


def test_names_of_other_shares_are_read_too(cli: Cli, tmp_path: Path) -> None:
    needs_engine()
    flat(tmp_path / "flat", 30_000)
    report = cli.delete(tmp_path / "flat", PARALLEL, "--shard", "1/4").expect(0).report()
    calls = report["syscalls"]["getdents64"]["calls"]
    assert report["predicted"]["syscalls"]["getdents64"] == pytest.approx(calls, abs=2)
    assert calls > 8


def test_a_job_with_failures_does_not_report_its_share_as_deleted(cli: Cli, tmp_path: Path) -> None:
    needs_engine()
    (tmp_path / "backing").mkdir()
    many_directories(tmp_path / "backing" / "tree", 20, 5)
    with served_late(
        tmp_path / "backing", tmp_path / "mount", 0.1, "--fail", "unlink:5:7"
    ) as mounted:
        report = cli.delete(mounted / "tree", PARALLEL, "--shard", "1/2").expect(1).report()
    assert report["outcome"] == "partial"
    assert "is deleted" not in report["explanation"]


def test_directory_id_is_the_same_on_every_client_of_a_server(cli: Cli, tmp_path: Path) -> None:
    needs_engine()
    backing = tmp_path / "backing"
    backing.mkdir()
    many_directories(backing / "tree", 6, 2)
    (backing / "other").mkdir()
    with (
        served_late(backing, tmp_path / "one", 0.1) as one,
        served_late(backing, tmp_path / "two", 0.1) as two,
    ):
        ids = [directory_id(str(m / "tree"), take_pin(str(m / "tree"))) for m in (one, two)]
        other = directory_id(str(two / "other"), take_pin(str(two / "other")))
        assert ids[0] == ids[1] != other
        dry = ["--shard", "1/2", "--dry-run", "--json", "--strategy", PARALLEL]
        printed = cli.run("delete", *dry, one / "tree").expect(0).object()
        assert printed["directory_ids"] == [ids[0]]
        refused = cli.delete(two / "tree", PARALLEL, "--shard", "1/2", "--directory-id", other)
        assert f"its id is {ids[0]}, not {other}" in refused.expect(3).stderr
        cli.delete(two / "tree", PARALLEL, "--shard", "1/2", "--directory-id", ids[0]).expect(0)
    # not mounted on this machine: another directory at the same path
    many_directories(tmp_path / "one" / "tree", 2, 2)
    refused = cli.delete(tmp_path / "one" / "tree", PARALLEL, "--directory-id", ids[0])
    assert "findmnt" in refused.expect(3).stderr
    assert _entries(tmp_path / "one" / "tree") == 7


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--shard", "0/2"), "'0' is not a number from 1 to 10,000"),
        (("--shard", "3/2"), "there is no share 3 of 2"),
        (("--shard", "2"), "'2' is not K/N, for example 1/4"),
        (("--shard", "1/0"), "'0' is not a number from 1 to 10,000"),
        (
            ("--shard", "1/2", "--strategy", "rm"),
            "--shard works only with the strategy parallel, not with rm.",
        ),
        (("--directory-id", "abc"), "'abc' is not an id"),
    ],
)
def test_wrong_shares_are_usage_errors(
    cli: Cli, tree: Path, arguments: tuple[str, ...], sentence: str
) -> None:
    before = _entries(tree)
    finished = cli.run("delete", tree, "--strategy", PARALLEL, "--yes", *arguments).expect(2)
    assert sentence in finished.stderr
    assert _entries(tree) == before


def test_a_plan_has_threads_only_for_a_strategy_with_that_option(tmp_path: Path) -> None:
    flat(tmp_path / "t", 3)
    path = PathStr(str(tmp_path / "t"))
    *_, survey = SurveyRunner([path]).run()
    options = Options(pace=Pace(threads=5))
    for name, threads in (("rm", 0), (PARALLEL, 5)):
        plan = make_plan([Target(path, take_pin(path))], survey, StrategyName(name), options)
        assert plan.options.pace.threads == threads
