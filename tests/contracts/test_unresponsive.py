"""A file system that does not answer: each command reports that, and can be ended."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from tests.conftest import Cli, entries_in, wait_until
from tests.fuse.hanging_tree import fuse_tree
from tests.fuse.protocol import FuseMount
from tests.needs import needs_tools_of
from tests.waiting_process import waiting_process

SOON_S = 15.0
"""For what takes two or three seconds on a machine with nothing else to do."""


@pytest.fixture
def hanging(tmp_path: Path) -> Iterator[FuseMount]:
    """Give a tree in which the directory ``hang`` never answers."""
    with fuse_tree(tmp_path / "mount", "hang") as tree:
        yield tree


@pytest.fixture
def dead(tmp_path: Path) -> Iterator[FuseMount]:
    """Give a tree whose server has stopped."""
    with fuse_tree(tmp_path / "mount") as tree:
        tree.stop_answering()
        yield tree


COMMANDS = (
    ("survey",),
    ("survey", "--export", "-", "--format", "ncdu"),
    ("estimate",),
    ("delete", "--strategy", "rm", "--dry-run"),
    ("aside", "--yes"),
    ("recreate", "--yes"),
)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_ctrl_c_ends_a_command_that_waits_for_a_dead_server(
    cli: Cli, dead: FuseMount, command: tuple[str, ...]
) -> None:
    _assert_reports_and_ends(cli, command, dead.tree, dead.mount_point, signal.SIGINT)


def test_sigterm_ends_a_command_that_waits_for_a_dead_server(cli: Cli, dead: FuseMount) -> None:
    _assert_reports_and_ends(cli, ("survey",), dead.tree, dead.mount_point, signal.SIGTERM)


@pytest.mark.parametrize("command", COMMANDS[:4], ids=" ".join)
@pytest.mark.parametrize("name", ("hang", ""))
def test_ctrl_c_ends_a_command_that_no_signal_can_end(
    cli: Cli, hanging: FuseMount, command: tuple[str, ...], name: str
) -> None:
    # A call that even SIGKILL does not end, on the target or on a directory in it
    _assert_reports_and_ends(cli, command, hanging.tree / name, hanging.tree, signal.SIGINT)


def _assert_reports_and_ends(
    cli: Cli, command: tuple[str, ...], target: Path, place: Path, number: signal.Signals
) -> None:
    with cli.start(*command, target) as process:
        assert process.stderr is not None and process.stdout is not None
        sentence = process.stderr.readline().decode()
        assert f"The file system at {place}" in sentence
        assert "has not answered for 3 s; still waiting. Ctrl-C ends this." in sentence
        # And one signal ends it, and whoever reads its output sees the end
        process.send_signal(number)
        process.communicate(timeout=SOON_S)
    assert process.returncode in (-number, 128 + number)  # the same to a shell


def test_ctrl_c_ends_a_survey_without_the_engine(
    cli: Cli, hanging: FuseMount, tmp_path: Path
) -> None:
    log = tmp_path / "stderr"
    refusing = [sys.executable, "-m", "tests.seccomp", "ENOSYS", "statx", "--"]
    with (
        log.open("wb") as stderr,
        subprocess.Popen(
            [*refusing, cli.program, "survey", str(hanging.tree)],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            start_new_session=True,
        ) as process,
    ):
        wait_until(lambda: b"still waiting" in log.read_bytes(), "the sentence")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=SOON_S)
    assert process.returncode == 130


@pytest.mark.parametrize("name", ("hang", ""))
def test_a_quick_estimate_of_a_silent_file_system_says_that_nothing_is_known(
    cli: Cli, hanging: FuseMount, name: str
) -> None:
    if not name:
        hanging.stop_answering()
    began_s = time.monotonic()
    with cli.start("estimate", "--quick", "--json", hanging.tree / name) as process:
        stdout, stderr = process.communicate(timeout=SOON_S)
    assert time.monotonic() - began_s < SOON_S
    assert (process.returncode, stdout) == (1, b"")
    assert b"has not answered for 2 s. Nothing is known about the size of the tree." in stderr


@pytest.mark.parametrize("strategy", ("rm", "parallel"))
def test_a_deletion_whose_server_stops_says_so_and_need_not_be_waited_for(
    cli: Cli, tmp_path: Path, strategy: str
) -> None:
    needs_tools_of(strategy)
    with fuse_tree(tmp_path / "mount") as fuse:
        slowly = ("--yes", "--rate", "10")
        with cli.start("delete", "--strategy", strategy, *slowly, fuse.tree) as process:
            assert process.stderr is not None
            wait_until(lambda: entries_in(fuse.tree / "d0") < 20, "the deletion's beginning")
            fuse.stop_answering()
            sentence = _line_with(process.stderr, "still waiting. Ctrl-C cancels the job.")
            assert f"The file system at {fuse.mount_point}" in sentence
            # And Ctrl-C cancels, and once more ends the waiting
            process.send_signal(signal.SIGINT)
            _line_with(process.stderr, "has not ended yet. Ctrl-C stops waiting for it.")
            process.send_signal(signal.SIGINT)
            _, stderr = process.communicate(timeout=SOON_S)
        assert process.returncode == 130
        job = cli.only_job()
        assert f"tui-fs attach {job}" in stderr.decode()
        # And the job ends when the server answers
        fuse.answer_again()
        cli.wait_for_state(job, "cancelled")


def _line_with(stream: IO[bytes], text: str) -> str:
    """Read lines to the first that has the text: the job's own messages come between."""
    for line in iter(stream.readline, b""):
        if text.encode() in line:
            return line.decode()
    raise AssertionError(f"no line has {text!r}")


def test_what_others_have_open_there_keeps_nothing_waiting(cli: Cli, tmp_path: Path) -> None:
    # A process with a directory of the same name on a file system that does not answer
    spool = tmp_path / "place" / "tree"
    spool.mkdir(parents=True)
    with fuse_tree(tmp_path / "mount") as fuse:
        descriptor = os.open(fuse.tree, os.O_RDONLY | os.O_DIRECTORY)
        with waiting_process(["sh", "-c", "echo; exec cat"], cwd=fuse.tree):
            fuse.stop_answering()
            cli.run("aside", spool, "--yes").expect(0)
            fuse.answer_again()
        os.close(descriptor)
