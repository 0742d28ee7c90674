"""The engine as a person runs it, without tui-fs: help, sums, and the deletion of the help."""

import os
import pty
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.needs import needs_engine, needs_root
from tui_fs.linux.tools import find_engine


@pytest.fixture
def engine() -> str:
    """Return the path of the engine."""
    needs_engine()
    path = find_engine()
    assert path is not None
    return path


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """Make a tree with a link, a file with two names, and a sparse file."""
    below = tmp_path / "target" / "a" / "b"
    below.mkdir(parents=True)
    (below / "data").write_bytes(b"x" * 10_000)
    os.link(below / "data", below.parent / "again")
    (below / "sparse").touch()
    os.truncate(below / "sparse", 1 << 30)
    (below / "link").symlink_to("/etc")
    return tmp_path / "target"


def run(*command: str) -> str:
    """Run a command; return its standard output."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def help_of(engine: str, command: str) -> str:
    """Return the help of a command."""
    return run(engine, command, "--help")


def test_the_sums_are_those_of_find_and_du(engine: str, target: Path) -> None:
    lines = run(engine, "survey", "--totals", "--", str(target)).splitlines()
    sums = {words: int(number) for number, words in (line.split(maxsplit=1) for line in lines)}
    assert sums["entries"] == len(run("find", str(target)).splitlines()) == 7
    assert (sums["directories"], sums["files"], sums["symbolic links"]) == (3, 3, 1)
    for words, flags in (("bytes on disk", "-sB1"), ("bytes (sizes of the files)", "-sb")):
        assert sums[words] == int(run("du", flags, str(target)).split()[0])


@pytest.mark.root
def test_sums_without_an_unreadable_directory_fail(engine: str, tmp_path: Path) -> None:
    needs_root("becoming another user")
    tmp_path.chmod(0o755)
    (tmp_path / "closed").mkdir(mode=0)
    shutil.copy(engine, tmp_path / "engine")
    command = ("setpriv", "--reuid=65534", "--clear-groups", "./engine", "survey", "--totals", ".")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "1  directories could not be read: the sums are too small" in done.stdout


def test_records_are_not_written_to_a_terminal(engine: str, target: Path) -> None:
    ours, terminal = pty.openpty()
    command = (engine, "survey", "--", str(target))
    done = subprocess.run(command, stdout=terminal, stderr=subprocess.PIPE, text=True, check=False)
    os.close(terminal)
    os.close(ours)
    assert done.returncode == 2 and "--totals" in done.stderr


def test_the_example_of_the_help_deletes_the_directory(engine: str, target: Path) -> None:
    example = help_of(engine, "delete").split("example")[1].splitlines()[2:]
    commands = [line.strip().replace("/var/cache/app", str(target)) for line in example if line]
    pin = run(*shlex.split(commands[0])).strip()
    deletion = shlex.split(commands[-1].replace("65024:1234:0", pin))
    (target.parent / "beside").touch()
    assert run(engine, *deletion[1:])
    assert [entry.name for entry in target.parent.iterdir()] == ["beside"]


@pytest.mark.parametrize("command", ["survey", "delete"])
def test_the_help_fits_a_terminal_and_has_every_option(engine: str, command: str) -> None:
    text = help_of(engine, command)
    assert max(map(len, text.splitlines())) <= 80
    source = Path(__file__).parents[2] / "engine/src"
    file = source / {"survey": "survey/args.rs", "delete": "delete/arguments.rs"}[command]
    options = re.findall(r'Long\("([a-z-]+)"\)', file.read_text(encoding="utf-8"))
    assert {option for option in options if f"--{option}" not in text} <= {"help"}
