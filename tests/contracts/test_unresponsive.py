"""A file system that does not answer: each command reports that, and can be ended."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO

import pytest

from tests.conftest import DEADLINE_S, Cli, default_signals, entries_in, wait_until
from tests.fuse.hanging_tree import fuse_tree
from tests.fuse.protocol import FuseMount
from tests.waiting_process import waiting_process

"""For what takes two or three seconds on a machine with nothing else to do."""


@pytest.fixture
def hanging(tmp_path: Path) -> Iterator[FuseMount]:
    """Yield a tree in which the directory ``hang`` never answers."""
    with fuse_tree(tmp_path / "mount", "hang") as tree:
        yield tree


@pytest.fixture
def dead(tmp_path: Path) -> Iterator[FuseMount]:
    """Yield a tree whose server has stopped."""
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


def test_ctrl_c_ends_commands_that_wait_for_a_dead_server(cli: Cli, dead: FuseMount) -> None:
    waits = [_Waiting(cli, command, dead.tree) for command in COMMANDS]
    _assert_each_reports_and_ends(waits, dead.mount_point, signal.SIGINT)


def test_sigterm_ends_a_command_that_waits_for_a_dead_server(cli: Cli, dead: FuseMount) -> None:
    waits = [_Waiting(cli, ("survey",), dead.tree)]
    _assert_each_reports_and_ends(waits, dead.mount_point, signal.SIGTERM)


def test_ctrl_c_ends_commands_that_no_signal_can_end(cli: Cli, hanging: FuseMount) -> None:
    # A call that even SIGKILL does not end, on the target or on a directory in it
    targets = (hanging.tree / "hang", hanging.tree)
    waits = [_Waiting(cli, command, target) for command in COMMANDS[:4] for target in targets]
    _assert_each_reports_and_ends(waits, hanging.tree, signal.SIGINT)


class _Waiting:
    """A command on a target that does not answer."""

    def __init__(self, cli: Cli, command: tuple[str, ...], target: Path) -> None:
        self.words: tuple[str | Path, ...] = (*command, target)
        self.process = cli.start(*self.words)


def _assert_each_reports_and_ends(
    waits: list[_Waiting], place: Path, number: signal.Signals
) -> None:
    """Check all at once: each waits for seconds and needs no processor."""
    with ExitStack() as processes:
        for waiting in waits:
            processes.enter_context(waiting.process)
        for waiting in waits:
            assert waiting.process.stderr is not None
            sentence = waiting.process.stderr.readline().decode()
            assert f"The file system at {place}" in sentence, (waiting.words, sentence)
            assert "has not answered for 3 s; still waiting. Ctrl-C ends this command." in sentence
        for waiting in waits:
            waiting.process.send_signal(number)
        for waiting in waits:  # one signal ends each, and a reader of its output sees end of file
            waiting.process.communicate(timeout=DEADLINE_S)
            # the same to a shell
            assert waiting.process.returncode in (-number, 128 + number), waiting.words


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
            preexec_fn=default_signals,
        ) as process,
    ):
        wait_until(lambda: b"still waiting" in log.read_bytes(), "the sentence")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 130


@pytest.mark.parametrize("name", ("hang", ""))
def test_a_quick_estimate_of_a_silent_file_system_says_that_nothing_is_known(
    cli: Cli, hanging: FuseMount, name: str
) -> None:
    if not name:
        hanging.stop_answering()
    with cli.start("estimate", "--quick", "--json", hanging.tree / name) as process:
        stdout, stderr = process.communicate(timeout=DEADLINE_S)
    assert (process.returncode, stdout) == (1, b"")
    assert b"has not answered for 2 s. Nothing is known about the size of the tree." in stderr


def test_a_deletion_whose_server_stops_says_so_and_need_not_be_waited_for(
    cli: Cli, tmp_path: Path
) -> None:
    with fuse_tree(tmp_path / "mount") as fuse:
        slowly = ("--yes", "--rate", "10")
        with cli.start("delete", "--strategy", "rm", *slowly, fuse.tree) as process:
            assert process.stderr is not None
            wait_until(lambda: entries_in(fuse.tree / "d0") < 20, "the deletion's beginning")
            fuse.stop_answering()
            sentence = _line_with(process.stderr, "still waiting. Ctrl-C cancels the job.")
            assert f"The file system at {fuse.mount_point}" in sentence
            # And Ctrl-C cancels, and once more ends the waiting
            process.send_signal(signal.SIGINT)
            _line_with(process.stderr, "has not ended yet. Ctrl-C stops waiting for it.")
            process.send_signal(signal.SIGINT)
            _, stderr = process.communicate(timeout=DEADLINE_S)
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
