"""Names that a shell inserts for a glob do not act as options; options are not abbreviated."""

import os
from pathlib import Path

import pytest

from tests.conftest import Cli
from tests.trees import manifest, many_directories

COMMANDS = (
    ("survey",),
    ("estimate",),
    ("delete", "--strategy", "rm"),
    ("recreate",),
    ("aside",),
    ("attach",),
    ("pause",),
    ("resume",),
    ("rate",),
    ("jobs",),
    ("lab", "run"),
    ("lab", "show"),
    ("doctor",),
    (),
)
"""Every kind of command, before a glob."""

OPTIONS = (
    "--yes",
    "--strategy=xargs",
    "--accept-races",
    "--acc",
    "-y",
    "-h",
    "--help",
    "--version",
    "--json",
    "--export=x",
    "--force",
    "--undo=1",
    "--confirm=a",
    "--no-such-option",
    "--",
)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_an_entry_named_like_an_option_does_not_act_as_one(
    cli: Cli, tmpfs: Path, command: tuple[str, ...]
) -> None:
    for option in OPTIONS:
        place = tmpfs / f"place-{option}"
        place.mkdir()
        many_directories(place / "a", 1, 1)
        many_directories(place / option, 1, 1)
        before = manifest(tmpfs)
        # When a shell expands * there; a locale decides the order
        for names in sorted(os.listdir(place)), sorted(os.listdir(place), reverse=True):
            finished = cli.run(*command, *names, cwd=place).expect(2)
            finished.assert_one_sentence()
            assert f"tui-fs: {option} is both" in finished.stderr
            assert "./" in finished.stderr
        assert manifest(tmpfs) == before
    assert cli.jobs() == []


def test_an_entry_does_not_become_the_value_of_an_entry(cli: Cli, tmpfs: Path) -> None:
    for name in ("--strategy", "xargs", "target"):
        many_directories(tmpfs / name, 1, 1)
    before = manifest(tmpfs)
    finished = cli.run("delete", "--yes", *sorted(os.listdir(tmpfs)), cwd=tmpfs).expect(2)
    finished.assert_one_sentence()
    assert manifest(tmpfs) == before


def test_an_entry_of_a_directory_that_a_glob_goes_through_does_not_act_as_an_option(
    cli: Cli, tmpfs: Path
) -> None:
    (tmpfs / "--export=x").mkdir()
    many_directories(tmpfs / "--export=x" / "y", 1, 1)
    many_directories(tmpfs / "a", 1, 1)
    for name in ("--export=x/", "--export=x/y"):
        finished = cli.run("survey", name, "a", cwd=tmpfs).expect(2)
        assert f"tui-fs: {name} is both" in finished.stderr


def test_names_after_two_dashes_or_below_a_directory_are_paths(cli: Cli, tmpfs: Path) -> None:
    place = tmpfs / "place"
    place.mkdir()
    for name in OPTIONS:
        many_directories(place / name, 1, 1)
    names = sorted(os.listdir(place))
    estimated = cli.run("estimate", "--no-measuring", "--", *names, cwd=place).expect(0)
    assert f"{len(names)} directories" in estimated.stdout.decode()
    # And so they are below another directory
    below = [f"place/{name}" for name in names]
    cli.run("delete", "--strategy", "rm", "--yes", *below, cwd=tmpfs).expect(0)
    assert os.listdir(place) == []


def test_one_dash_is_no_option(cli: Cli, tmpfs: Path) -> None:
    many_directories(tmpfs / "-", 1, 1)
    cli.run("survey", "-", cwd=tmpfs).expect(0)


@pytest.mark.parametrize(
    "arguments",
    (
        ("delete", "--strat", "rm", "--yes", "x"),
        ("delete", "--strategy", "rm", "--ye", "x"),
        ("delete", "--strategy", "rm", "--yes", "--accept", "x"),
        ("survey", "--js", "x"),
        ("recreate", "--ye", "x"),
        ("aside", "--ye", "x"),
        ("lab", "run", "--sca", "small", "rivals"),
        ("lab", "list", "--js"),
        ("--read",),
    ),
    ids=" ".join,
)
def test_an_option_is_not_abbreviated(cli: Cli, tmpfs: Path, arguments: tuple[str, ...]) -> None:
    many_directories(tmpfs / "x", 1, 1)
    before = manifest(tmpfs)
    finished = cli.run(*arguments, cwd=tmpfs).expect(2)
    # It is not known
    finished.assert_one_sentence()
    assert "There is no option" in finished.stderr
    assert manifest(tmpfs) == before
