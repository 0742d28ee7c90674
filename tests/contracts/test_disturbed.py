"""Signals at the wrong moment, and standard streams that take nothing or are not there."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Cli, entries_in, wait_until
from tests.contracts.test_overlap import removed_by
from tests.namespaces import after_shell
from tests.trees import manifest, many_directories

_INTERRUPTED = """
import os, sys
from tui_fs.cli import main
from tui_fs.job import start

wait = start._wait_for

def interrupted(ready, is_wanted):
    if sys.argv[1] == "before":
        os.kill(os.getpid(), int(sys.argv[2]))
        return wait(ready, is_wanted)
    is_ready = wait(ready, is_wanted)
    os.kill(os.getpid(), int(sys.argv[2]))
    return is_ready

start._wait_for = interrupted
sys.exit(main(sys.argv[3:]))
"""


_SUPERVISOR_KILLED = """
import subprocess, sys
from tui_fs.cli import main
from tui_fs.job import start

class Killed(subprocess.Popen):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        if "tui_fs.job.supervisor" in arguments[0]:
            self.kill()

subprocess.Popen = Killed
start._LOOK_EVERY_S = 0.01
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """Return a tree of 50 files."""
    many_directories(tmp_path / "t", 5, 10)
    return tmp_path / "t"


# Every pair of a signal, a moment and an option.
@pytest.mark.parametrize(
    ("number", "code", "moment", "detach"),
    (
        (signal.SIGINT, 130, "before", ()),
        (signal.SIGINT, 130, "after", ("--detach",)),
        (signal.SIGTERM, 143, "before", ("--detach",)),
        (signal.SIGTERM, 143, "after", ()),
    ),
)
def test_a_signal_while_a_job_is_starting_deletes_nothing(
    cli: Cli, target: Path, number: signal.Signals, code: int, moment: str, detach: tuple[str, ...]
) -> None:
    # A job that gets ready, or is ready but did not yet receive the order to begin
    before = entries_in(target)
    script = [sys.executable, "-I", "-c", _INTERRUPTED, moment, str(int(number))]
    ended = subprocess.run(
        [*script, "delete", "--strategy", "rm", "--yes", *detach, str(target)],
        capture_output=True,
        text=True,
        check=False,
    )
    # It says that nothing was deleted, and the job never begins
    message = "tui-fs: Interrupted before the job began; nothing was deleted.\n"
    assert (ended.returncode, ended.stdout, ended.stderr) == (code, "", message)
    cli.wait_for_state(cli.only_job(), "refused")
    assert entries_in(target) == before


def test_a_supervisor_killed_before_it_is_ready_deletes_nothing_and_is_not_running(
    cli: Cli, target: Path
) -> None:
    before = entries_in(target)
    script = [sys.executable, "-I", "-c", _SUPERVISOR_KILLED, "delete", "--strategy", "rmtree"]
    ended = subprocess.run(
        [*script, "--trace", "off", "--yes", str(target)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 5, ended.stderr
    assert "did not start: it was killed" in ended.stderr
    assert entries_in(target) == before
    # And at once the job is listed as died, and its report claims no deletion
    (job,) = cli.jobs()
    assert job["state"] == "died"
    report = cli.run("attach", "--json", job["id"]).expect(5).report()
    explanation = "The supervisor ended before the job began, and nothing was deleted."
    assert report["explanation"] == explanation


def test_a_supervisor_that_cannot_be_loaded_is_not_called_killed(
    cli: Cli, target: Path, tmp_path: Path
) -> None:
    (tmp_path / "selectors.py").write_text("raise ImportError('damaged')\n")
    script = """
import sys
from tui_fs.cli import main
sys.exit(main(sys.argv[1:]))
"""
    words = "delete", "--strategy", "rmtree", "--trace", "off", "--yes"
    ended = subprocess.run(
        [sys.executable, "-I", "-c", script, *words, str(target)],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    # Its starter does not blame a lack of memory
    assert ended.returncode == 5, ended.stderr
    assert "did not start: it exited with an error" in ended.stderr
    assert [job["state"] for job in cli.jobs()] == ["died"]


def test_a_second_signal_leaves_a_job_that_does_not_end(cli: Cli, tmp_path: Path) -> None:
    many_directories(tmp_path / "t", 20, 100)
    options = ("--strategy", "rm", "--rate", "50", "--yes")
    with cli.start("delete", *options, tmp_path / "t") as foreground:
        job = cli.only_job()
        wait_until(lambda: cli.state_of(job) == "running", "the job's start")
        wait_until(lambda: removed_by(cli, job) > 0, "the deletion's beginning")
        supervisor = cli.supervisor_of(job)
        os.kill(supervisor, signal.SIGSTOP)
        try:
            stderr = _interrupted(foreground)
        finally:
            os.kill(supervisor, signal.SIGCONT)
    assert foreground.returncode == 130
    assert stderr.decode().endswith(
        f"job {job} has not ended yet; to follow it: tui-fs attach {job}\n"
    )
    cli.wait_for_state(job, "cancelled")


def _interrupted(process: "subprocess.Popen[bytes]") -> bytes:
    """Interrupt a process, with long pauses, until it ends; return its standard error."""
    for pause_s in (1, 30, 30):
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.communicate(timeout=pause_s)[1]
    raise AssertionError("it does not end")


BUFFERING = pytest.mark.parametrize("buffering", [{}, {"PYTHONUNBUFFERED": "1"}])
"""Python keeps what was not written, or it does not: both happen on people's machines."""


_OUTPUT_FULL = "tui-fs: Standard output cannot be written: No space left on device.\n"


@BUFFERING
def test_output_that_takes_nothing_is_reported_with_what_becomes_of_the_job(
    cli: Cli, target: Path, buffering: dict[str, str]
) -> None:
    with open("/dev/full", "wb") as full:
        ended = subprocess.run(
            [cli.program, "delete", "--strategy", "rm", "--yes", "--json", str(target)],
            env={**os.environ, **buffering},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    # A message says that the job continues; the exit code does not depend on it
    job = cli.only_job()
    goes_on = f"tui-fs: job {job} continues; to follow it: tui-fs attach {job}\n"
    assert ended.stderr == goes_on + _OUTPUT_FULL
    assert ended.returncode == 141
    cli.wait_for_state(job, "done")


@BUFFERING
@pytest.mark.parametrize(
    "arguments",
    [("survey", "--json"), ("survey", "--export", "-", "--format", "ncdu"), ("survey", "--help")],
)
def test_other_output_that_takes_nothing_is_reported(
    cli: Cli, target: Path, arguments: tuple[str, ...], buffering: dict[str, str]
) -> None:
    many_directories(target / "many", 2, 1000)  # more than any buffer takes
    with open("/dev/full", "wb") as full:
        ended = subprocess.run(
            [cli.program, *arguments, str(target)],
            env={**os.environ, **buffering},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert ended.stderr == _OUTPUT_FULL
    assert ended.returncode == 141


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_standard_streams_harm_nothing(cli: Cli, target: Path, closed: str) -> None:
    command = f'exec "$0" delete --strategy rm --yes "$1" {closed}'
    ended = subprocess.run(
        ["sh", "-c", command, cli.program, str(target)], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert "Traceback" not in ended.stderr
    assert not target.exists()
    assert (cli.jobs_directory / cli.only_job() / "log").read_text() == ""


@pytest.mark.parametrize("is_socket", [False, True], ids=["pipe", "socket"])
def test_a_stream_that_ends_before_the_job_starts_deletes_nothing(
    cli: Cli, target: Path, is_socket: bool
) -> None:
    # As after a lost connection: whoever started it can neither see nor cancel it
    before = manifest(target)
    if is_socket:
        reader, writer = (end.detach() for end in socket.socketpair())
    else:
        reader, writer = os.pipe()
    os.close(reader)
    command = [cli.program, "delete", "--strategy", "rm", "--yes", "--json", str(target)]
    ended = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert ended.returncode == 141
    assert "Standard output was closed before the job began; nothing was deleted." in ended.stderr
    assert manifest(target) == before
    assert [job["deleted_entries"] for job in cli.jobs()] == [None]


def test_a_report_that_cannot_be_printed_is_not_mistaken_for_a_failed_job(
    cli: Cli, target: Path
) -> None:
    with open("/dev/full", "wb") as full:
        ended = subprocess.run(
            [cli.program, "delete", "--strategy", "rm", "--yes", str(target)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    job = cli.only_job()
    note = f"tui-fs: job {job} has ended: done; to see its report: tui-fs attach {job}\n"
    assert ended.stderr == f"{note}{_OUTPUT_FULL}"
    assert ended.returncode == 141
    assert not target.exists()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("delete", "--strategy", "rm", "--yes", "/"), 3),
        (("delete", "--strategy", "rm", "--yes", "/nonexistent"), 2),
        (("delete", "--nonsense"), 2),
        (("survey", "/nonexistent"), 2),
        (("attach", "nonexistent"), 2),
        (("jobs",), 0),
        (("delete", "--strategy", "rm", "--dry-run", "TARGET"), 0),
        (("delete", "--strategy", "find", "--yes", "--name", "*", "TARGET"), 0),
        (("delete", "--strategy", "rm", "--yes", "--detach", "TARGET"), 0),
    ],
    ids=lambda value: "-".join(value)[-30:] if isinstance(value, tuple) else None,
)
def test_messages_without_a_reader_change_no_exit_code(
    cli: Cli, target: Path, arguments: tuple[str, ...], code: int
) -> None:
    words = [str(target) if word == "TARGET" else word for word in arguments]
    with open("/dev/full", "wb") as full:
        assert _code_without_a_reader(cli, words, full.fileno()) == code
    if "--name" in words:
        assert not any(path.is_file() for path in target.rglob("*"))
    if "--detach" in words:
        cli.wait_for_state(cli.only_job(), "done")


def test_messages_into_a_closed_pipe_change_no_exit_code(cli: Cli, target: Path) -> None:
    reading, descriptor = os.pipe()
    os.close(reading)
    words = ["delete", "--strategy", "rm", "--yes"]
    assert _code_without_a_reader(cli, [*words, "/nonexistent"], descriptor) == 2
    assert _code_without_a_reader(cli, [*words, str(target)], descriptor) == 0
    os.close(descriptor)
    assert not target.exists()


def _code_without_a_reader(cli: Cli, words: list[str], stderr: int) -> int:
    return subprocess.run(
        [cli.program, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=stderr,
        check=False,
    ).returncode


@pytest.mark.parametrize(("target_name", "code"), [("t", 0), ("nonexistent", 2)])
def test_python_inspection_keeps_the_exit_code_and_runs_no_input(
    cli: Cli, target: Path, target_name: str, code: int
) -> None:
    marker = target.parent / "marker"
    source = f"open({str(marker)!r}, 'w').close()\n"
    ended = subprocess.run(
        [cli.program, "delete", "--strategy", "rmtree", "--yes", str(target.parent / target_name)],
        env={**os.environ, "PYTHONINSPECT": "1"},
        input=source,
        capture_output=True,
        text=True,
        check=False,
    )
    # The exit code is that of the command, and the input is not run
    assert ended.returncode == code, ended.stderr
    assert "Traceback" not in ended.stderr
    assert not marker.exists()
    assert target.exists() == (code != 0)


@pytest.mark.parametrize("limit", ["-v 22000", "-d 9000"])
def test_a_memory_limit_that_keeps_the_program_from_being_loaded_is_named(
    cli: Cli, target: Path, limit: str
) -> None:
    limited = cli.wrapped(after_shell(f"ulimit {limit}"))
    finished = limited.run("delete", "--strategy", "rm", "--yes", target).expect(4)
    finished.assert_one_sentence()
    assert "ulimit -v" in finished.stderr
    assert entries_in(target) == 5


@pytest.mark.parametrize("limit", [16, 17])
def test_a_limit_that_keeps_a_job_from_starting_is_no_safety_rule(
    cli: Cli, target: Path, limit: int
) -> None:
    limited = cli.wrapped(after_shell(f"ulimit -n {limit}"))
    finished = limited.run("delete", "--strategy", "rm", "--yes", target)
    # The exit code is that of something missing, and not of a refusal, and the limit is named
    finished.expect(4)
    assert "ulimit -n" in finished.stdout.decode() + finished.stderr
    assert entries_in(target) == 5


def test_tools_outside_of_path_are_not_called_uninstalled(cli: Cli, target: Path) -> None:
    finished = cli.run(
        *("delete", "--strategy", "xargs", "--yes", target), environment={"PATH": "/nonexistent"}
    )
    finished.expect(4).assert_one_sentence()
    assert "rm was not found in PATH" in finished.stderr
    assert "not installed" not in finished.stderr
    assert target.exists()
