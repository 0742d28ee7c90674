"""Filters delete just what find selects."""

import os
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Cli
from tests.needs import needs_engine, needs_tools_of
from tests.strategies import TAKE_FILTERS
from tests.trees import flat, manifest, many_directories
from tui_fs.model.strategy import Filters
from tui_fs.model.survey import Survey
from tui_fs.survey.runner import Backend, SurveyRunner


def aged_and_sized(root: Path) -> None:
    """Make files of many names, sizes and ages, on both sides of every limit below."""
    many_directories(root, 2, 3)
    (root / "empty.log").mkdir()
    (root / "empty.log" / "keep.txt").touch()
    for name in ("a.log", "b.log.gz", ".log", "c.LOG", "log", "new\nline.log", "*.log", "[a].log"):
        (root / name).write_bytes(b"log")
        (root / "directory-00001" / name).write_bytes(b"log")
    (root / "link.log").symlink_to("a.log")
    for size in (0, 1, 1023, 1024, 1025, 2**20 - 1, 2**20, 2**20 + 1, 5_000_000):
        with (root / f"size-{size}").open("wb") as file:
            file.truncate(size)
    now = time.time()
    for hours in (0, 1, 24 * 20, 24 * 30 - 1, 24 * 30 + 1, 24 * 31 + 1, 24 * 400):
        path = root / "directory-00000" / f"age-{hours}"
        path.write_bytes(b"aged")
        os.utime(path, (now, now - hours * 3600))


SELECTIONS: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("--name", "*.log"), ("-name", "*.log")),
    (("--name", "[[]a].log"), ("-name", "[[]a].log")),
    (("--name", "-x"), ("-name", "-x")),
    (("--min-size", "1M"), ("-type", "f", "-size", "+1048575c")),
    (("--min-size", "1k"), ("-type", "f", "-size", "+1023c")),
    (("--min-size", "1024"), ("-type", "f", "-size", "+1023c")),
    (("--size-below", "1k"), ("-type", "f", "-size", "-1024c")),
    (("--newer-than", "30d"), ("-newermt", "30 days ago")),
    (("--older-than", "30d"), ("!", "-newermt", "30 days ago")),
    (("--older-than", "12h"), ("!", "-newermt", "12 hours ago")),
    (
        ("--older-than", "30d", "--name", "age-7*"),
        ("!", "-newermt", "30 days ago", "-name", "age-7*"),
    ),
    (("--name", "size-*", "--min-size", "1M"), ("-name", "size-*", "-size", "+1048575c")),
)
"""Options, and the tests of find for the same."""


@pytest.mark.parametrize(
    ("strategy", "options", "selects"),
    [(strategy, *case) for strategy in TAKE_FILTERS for case in SELECTIONS],
    ids=lambda words: " ".join(words) if isinstance(words, tuple) else words,
)
def test_filters_delete_what_find_selects(
    cli: Cli, tmpfs: Path, strategy: str, options: tuple[str, ...], selects: tuple[str, ...]
) -> None:
    needs_tools_of(strategy)
    target = tmpfs / "target"
    aged_and_sized(target)
    (target / "-x").touch()
    selected = subprocess.run(
        ["find", ".", "!", "-type", "d", *selects, "-printf", "%P\\0"],
        cwd=target,
        capture_output=True,
        check=True,
    ).stdout.split(b"\0")[:-1]
    assert selected
    names = [f"{options[n]}={options[n + 1]}" for n in range(0, len(options), 2)]
    before = set(manifest(target))
    report = cli.delete(target, strategy, *names).expect(0).report()
    assert before - set(manifest(target)) == set(selected)
    assert report["outcome"] == "done"
    assert report["deleted_files"] == len(selected)
    assert report["deleted_directories"] == 0


def test_a_filtered_deletion_does_not_claim_that_all_is_gone(cli: Cli, tmpfs: Path) -> None:
    aged_and_sized(tmpfs / "target")
    for pattern in ("*.log", "no such name"):
        report = cli.delete(tmpfs / "target", "find", f"--name={pattern}").expect(0).report()
        # The report does not say in words what is not so
        assert (tmpfs / "target" / "size-0").exists()
        assert "nothing of it is left" not in report["explanation"].lower()
        (target,) = report["targets"]
        assert (target["gone"], target["done"]) == (False, True)


@pytest.mark.parametrize(
    ("options", "word"),
    [((), "gone"), (("--keep-root",), "emptied"), (("--name=a",), "matches gone")],
)
def test_directories_that_stay_are_not_called_gone(
    cli: Cli, tmpfs: Path, options: tuple[str, ...], word: str
) -> None:
    targets = [tmpfs / name for name in ("one", "other")]
    for target in targets:
        flat(target, 2)
    ended = cli.run("delete", "--strategy", "find", "--yes", *options, "--", *targets).expect(0)
    row = re.compile(rf"^{word} +2 of 2 directories$", re.MULTILINE)
    assert row.search(ended.stdout.decode())
    assert [target.exists() for target in targets] == [bool(options)] * 2


@pytest.mark.parametrize("strategy", TAKE_FILTERS)
@pytest.mark.parametrize("glob", ("node_*",))
def test_directories_whose_names_match_are_named_as_what_filters_never_select(
    cli: Cli, tmpfs: Path, strategy: str, glob: str
) -> None:
    needs_tools_of(strategy)
    for name in ("a", "b"):
        (tmpfs / "target" / name).mkdir(parents=True)
        flat(tmpfs / "target" / name / "node_modules", 3)
    before = manifest(tmpfs)
    finished = cli.delete(tmpfs / "target", strategy, f"--name={glob}").expect(0)
    assert manifest(tmpfs) == before
    hint = (
        "2 directory names match, but filters select only entries that are not directories. "
        "To delete directories, name them as targets: 'tui-fs survey' lists directories with the "
        "same name, and N in the browser marks them all."
    )
    assert f"No entry matches the filters. {hint}" in finished.report()["explanation"]
    assert "0 entries match the filters" in finished.stderr
    assert hint in finished.stderr
    shown = cli.run("delete", "--dry-run", "--strategy", strategy, "--name", glob, tmpfs / "target")
    assert hint in shown.expect(0).stdout.decode()


@pytest.mark.parametrize("glob", ("node_modules/", "a/*", "/srv/*.log", "[/]"))
def test_a_pattern_with_a_slash_is_refused(cli: Cli, tmpfs: Path, glob: str) -> None:
    (tmpfs / "target" / "a" / "node_modules").mkdir(parents=True)
    finished = cli.delete(tmpfs / "target", "find", f"--name={glob}").expect(2)
    finished.assert_one_sentence()
    assert "contains a slash" in finished.stderr


@pytest.mark.parametrize(
    "options",
    (("--name=nothing like this",), ("--name=*-0000001", "--min-size=1", "--older-than=9000d")),
)
def test_nothing_matched_is_said_before_the_start_and_at_the_end(
    cli: Cli, tmpfs: Path, options: tuple[str, ...]
) -> None:
    flat(tmpfs / "target", 3)
    before = manifest(tmpfs)
    finished = cli.delete(tmpfs / "target", "find", *options).expect(0)
    assert "0 entries match the filters" in finished.stderr
    assert finished.report()["explanation"].startswith("No entry matches the filters.")
    arguments = ("delete", "--strategy=find", "--dry-run", *options, str(tmpfs / "target"))
    assert b"0 entries match the filters" in cli.run(*arguments).expect(0).stdout
    assert manifest(tmpfs) == before


@pytest.mark.parametrize("backend", ("engine", "scandir"))
def test_both_backends_count_matching_directories_below_the_target(
    tmpfs: Path, backend: Backend
) -> None:
    if backend == "engine":
        needs_engine()
    target = tmpfs / "cache"
    (target / "a" / "cache" / "cache").mkdir(parents=True)
    (target / "a" / "cached").mkdir()
    survey = last(SurveyRunner([str(target)], Filters(name_glob="cache"), backend=backend).run())
    assert survey.matching_directories == 2


def last(surveys: Iterator[Survey]) -> Survey:
    *_, survey = surveys
    return survey


def test_number_of_matches_is_printed_before_the_start(cli: Cli, tmpfs: Path) -> None:
    flat(tmpfs / "target", 3)
    finished = cli.delete(tmpfs / "target", "find", "--name=*-0000001").expect(0)
    assert "1 entry matches the filters" in finished.stderr


@pytest.mark.parametrize(
    ("strategy", "option"),
    (("rm", "--name=*.log"), ("rsync", "--min-size=1M"), ("rm", "--older-than=30d")),
)
def test_strategies_that_cannot_filter_say_so(
    cli: Cli, tmpfs: Path, strategy: str, option: str
) -> None:
    aged_and_sized(tmpfs / "target")
    before = manifest(tmpfs)
    cli.delete(tmpfs / "target", strategy, option).expect(2).assert_one_sentence()
    assert manifest(tmpfs) == before
