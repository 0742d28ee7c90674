"""In environments without the usual parts, commands end with one correct sentence."""

import json
import os
import shlex
import signal
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import DEADLINE_S, Cli, default_signals, wait_until
from tests.contracts.asking import Terminal
from tests.contracts.ordinary import ordinary
from tests.filesystems import mount_bind
from tests.namespaces import after_shell, in_mount_namespace
from tests.needs import lacks, needs_engine, needs_root, needs_tool
from tests.pathologies.looking import OF_THE_MACHINE
from tests.seccomp import UNKNOWN_TO_4_18, under_filter
from tests.trees import many_directories
from tui_fs.linux.tools import find_engine

__all__ = ["ordinary"]

FILES, DIRECTORIES = 6, 4


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """Return a tree."""
    many_directories(tmp_path / "target", 3, 2)
    return tmp_path / "target"


def commands(target: Path) -> tuple[tuple[str, ...], ...]:
    """Return the commands that only read."""
    return (
        ("survey", "--json", str(target)),
        ("estimate", "--json", str(target)),
        ("estimate", "--quick", "--json", str(target)),
        ("delete", "--strategy", "rm", "--dry-run", "--json", str(target)),
        ("doctor", "--json"),
        ("jobs", "--json"),
    )


UNUSED_CALLS = (
    "bpf,fadvise64,inotify_init1,landlock_create_ruleset,listmount,memfd_create,"
    "name_to_handle_at,pidfd_open,pidfd_send_signal,process_vm_readv,ptrace,quotactl,"
    "sched_setaffinity,statmount"
)
READING_CALLS = (
    "close_range",
    "faccessat2",
    "getrandom",
    "openat2",
    "perf_event_open",
    "prctl",
    "prlimit64",
    "sched_getaffinity",
    "statx",
    UNUSED_CALLS,
)
REFUSALS = [
    *((call, error) for call in READING_CALLS for error in ("ENOSYS", "EPERM")),
    ("faccessat2,openat2,statx", "EACCES"),
    ("getdents64>32768", "EINVAL"),
    ("getrandom>3", "EINVAL"),  # GRND_INSECURE is of Linux 5.6
    (UNKNOWN_TO_4_18, "ENOSYS"),
]
_LACKING_ALONE = {(call, "ENOSYS") for call in READING_CALLS}


# Each call alone is refused as containers do it; what old kernels lack, they lack together.
@pytest.mark.parametrize(
    "call, error", [refusal for refusal in REFUSALS if refusal not in _LACKING_ALONE]
)
def test_a_system_call_that_is_refused_changes_no_figure(
    cli: Cli, target: Path, call: str, error: str
) -> None:
    needs_engine()
    wrapped = cli.wrapped(under_filter(error, call))
    surveyed = wrapped.run("survey", "--json", target).expect(0).object()
    assert (surveyed["files"], surveyed["directories"]) == (FILES, DIRECTORIES)
    assert surveyed["complete"] is True


@pytest.mark.parametrize("error", ("ENOSYS", "EPERM", "EACCES"))
def test_commands_work_where_many_calls_are_refused(cli: Cli, target: Path, error: str) -> None:
    wrapped = cli.wrapped(under_filter(error, _refused_with(error)))
    for arguments in commands(target):
        finished = wrapped.run(*arguments).expect(0)
        if arguments[0] == "delete":
            totals = finished.object()["expected"]["totals"]
            assert (totals["files"], totals["directories"]) == (FILES, DIRECTORIES)


@pytest.mark.parametrize("strategy", ("parallel", "rmtree"))
def test_a_job_needs_only_the_system_calls_of_linux_4_18(
    cli: Cli, target: Path, strategy: str
) -> None:
    needs_engine()
    old = cli.wrapped(under_filter("ENOSYS", UNKNOWN_TO_4_18))
    old.delete(target, strategy, "--detach").expect(0)
    job = cli.only_job()
    cli.wait_for_state(job, "done")
    assert not target.exists()


def answering_statx_as_4_18() -> list[str]:
    """Return what runs a command whose statx has no mount ids and roots of mounts (5.8)."""
    mask, block_size, attributes = 0xFFF, 4096, 0  # all fields up to STATX_BTIME
    start = struct.pack("=IIQ", mask, block_size, attributes).hex()  # of struct statx
    strace = [needs_tool("strace", "strace"), "-f", "-qq", "--seccomp-bpf", "-o", "/dev/null"]
    return [*strace, "-e", "trace=statx", "-e", f"inject=statx:poke_exit=@arg5={start}", "--"]


@pytest.mark.root
@pytest.mark.parametrize("strategy", ("parallel", "rmtree"))
def test_linux_4_18_keeps_to_the_mount_of_the_target(cli: Cli, tmpfs: Path, strategy: str) -> None:
    needs_engine()
    target, kept = tmpfs / "target", tmpfs / "kept"
    many_directories(target, 3, 2)
    kept.mkdir()
    (kept / "file").touch()
    mounted = mount_bind(kept, target / "mounted")  # on the same device
    old = cli.wrapped([*answering_statx_as_4_18(), *under_filter("ENOSYS", UNKNOWN_TO_4_18)])
    surveyed = old.run("survey", "--json", target).expect(0).object()
    assert (surveyed["files"], surveyed["directories"]) == (FILES, DIRECTORIES + 1)
    assert "mount" in old.delete(target, strategy).expect(3).stderr
    subprocess.run(["umount", mounted], check=True)
    # A process of another test may have copied the mounts, which is refused until it has ended
    wait_until(lambda: old.delete(target, strategy).code == 0, "a deletion without the mount")
    assert not target.exists()
    assert (kept / "file").exists()


def _refused_with(error: str) -> str:
    return ",".join(sorted({call for call, answer in REFUSALS if answer == error} - {"prctl"}))


@pytest.mark.root
@pytest.mark.parametrize(
    "calls, error",
    (
        ("faccessat2", "EPERM"),
        ("faccessat2", "EACCES"),  # which is also an answer of this call
        ("faccessat2,statx", "ENOSYS"),
        ("openat2", "EACCES"),
    ),
)
def test_an_ordinary_user_counts_the_same_under_a_filter(
    ordinary: tuple[Cli, Path], calls: str, error: str
) -> None:
    cli, target = ordinary
    needs_engine()
    # When a container refuses the call that answers (without statx, Python walkers count)
    wrapped = cli.wrapped(under_filter(error, calls))
    counted = wrapped.run("survey", "--json", str(target)).expect(0).object()
    assert (counted["files"], counted["directories"]) == (FILES, DIRECTORIES)
    assert counted["complete"] is True
    assert not {finding["kind"] for finding in counted["pathologies"]} - OF_THE_MACHINE
    arguments = ("delete", "--strategy", "parallel", "--yes", "--json", str(target))
    assert wrapped.run(*arguments).expect(0).report()["outcome"] == "done"


# The job under the filter is the same for all; the engine makes these calls itself.
@pytest.mark.parametrize(
    "strategy, error",
    (
        ("rm", "ENOSYS"),
        ("find", "EPERM"),
        ("xargs", "EACCES"),
        ("rsync", "ENOSYS"),
        ("rmtree", "EPERM"),
        *(("parallel", error) for error in ("ENOSYS", "EPERM", "EACCES")),
    ),
    indirect=["strategy"],
)
def test_every_strategy_deletes_the_same_under_filters(
    cli: Cli, target: Path, strategy: str, error: str
) -> None:
    wrapped = cli.wrapped(under_filter(error, f"{_refused_with(error)},kcmp,unshare"))
    arguments = ("delete", "--strategy", strategy, "--yes", "--json", str(target))
    report = wrapped.run(*arguments).expect(0).report()
    assert report["outcome"] == "done"
    assert report["expected"]["totals"]["files"] == FILES
    assert (report["deleted_files"], report["deleted_directories"]) == (FILES, DIRECTORIES)
    assert not target.exists()


@pytest.mark.parametrize(
    "call, error",
    [(call, error) for call, error in REFUSALS if call != UNUSED_CALLS],
)
def test_the_engine_alone_deletes_the_same_under_a_filter(
    target: Path, call: str, error: str
) -> None:
    needs_engine()
    status = target.stat()
    engine = find_engine()
    assert engine is not None
    pin = f"{status.st_dev}:{status.st_ino}:0"
    ended = subprocess.run(
        [*under_filter(error, call), engine, "delete", "--pin", pin, "--", str(target)],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    counts = json.loads(ended.stdout.splitlines()[-1])
    assert (ended.returncode, ended.stderr) == (0, "")
    assert (counts["removed"], counts["directories"]) == (FILES + DIRECTORIES, DIRECTORIES)
    assert not target.exists()


def test_a_large_directory_is_confirmed_by_its_name_without_statx(
    cli: Cli, tmp_path: Path, target: Path
) -> None:
    policy = tmp_path / "config" / "tui-fs" / "policy.toml"
    policy.parent.mkdir(parents=True)
    policy.write_text("type_name_above_entries = 5\n")
    wrapped = cli.wrapped(under_filter("EPERM", "statx,openat2"))
    arguments = ("delete", "--strategy", "rm", str(target))
    with Terminal(wrapped, *arguments) as terminal:
        terminal.wait_for(b"type its name")
        terminal.answer(b"yes\n")
        assert terminal.wait() == 3, terminal.seen
    assert target.exists()
    # And the name deletes it
    with Terminal(wrapped, *arguments) as terminal:
        terminal.wait_for(b"type its name")
        terminal.answer(b"target\n")
        assert terminal.wait() == 0, terminal.seen
    assert not target.exists()


@pytest.mark.parametrize(
    "error, call, options, named",
    (
        ("ENOSYS", "setpriority", ("--nice=5",), "--nice"),
        ("EPERM", "setpriority", ("--gentle",), "--gentle"),
        ("EPERM", "ioprio_set", ("--ionice=idle",), "--ionice"),
        ("ENOSYS", "prctl", (), "prctl"),
    ),
)
def test_a_call_that_a_job_needs_is_named_and_nothing_is_deleted(
    cli: Cli, target: Path, error: str, call: str, options: tuple[str, ...], named: str
) -> None:
    niceness = os.nice(0)
    if niceness:
        needs_root("a niceness of 0, from which a job has to change,")
    wrapped = cli.wrapped(["nice", "-n", str(-niceness), *under_filter(error, call)])
    arguments = ("delete", "--strategy", "rm", "--yes", *options, str(target))
    finished = wrapped.run(*arguments).expect(4)
    printed = finished.stdout.decode() + finished.stderr
    assert named in printed and "seccomp" in printed
    assert len(list(target.rglob("*"))) == FILES + DIRECTORIES - 1


def test_priorities_that_are_not_requested_are_not_needed(cli: Cli, target: Path) -> None:
    wrapped = cli.wrapped(under_filter("EPERM", "setpriority,ioprio_set"))
    arguments = ("delete", "--strategy", "rm", "--yes", "--json", str(target))
    assert wrapped.run(*arguments).expect(0).report()["outcome"] == "done"


@pytest.mark.parametrize(
    "error, command",
    (("ENOSYS", ("aside",)), ("EPERM", ("aside", "--twin")), ("EACCES", ("recreate",))),
)
def test_without_renameat2_nothing_is_renamed_and_the_call_is_named(
    cli: Cli, target: Path, error: str, command: tuple[str, ...]
) -> None:
    place = target
    if command == ("recreate",):
        place = target / "empty"
        place.mkdir()
    before = sorted(target.parent.rglob("*"))
    wrapped = cli.wrapped(under_filter(error, "renameat2"))
    finished = wrapped.run(*command, "--yes", str(place)).expect(4)
    assert "renameat2" in finished.stderr
    assert sorted(path for path in target.parent.rglob("*") if "state" not in str(path)) == [
        path for path in before if "state" not in str(path)
    ]


def test_a_filter_that_refuses_threads_takes_no_count_away(cli: Cli, target: Path) -> None:
    # A filter that answers clone3 with an error on which the C library does not go back
    wrapped = cli.wrapped(under_filter("EPERM", "clone3"))
    survey = wrapped.run("survey", "--json", str(target)).expect(0).object()
    assert (survey["files"], survey["directories"]) == (FILES, DIRECTORIES)
    wrapped.run("estimate", "--json", str(target)).expect(0).object()
    assert target.exists()


def test_a_filter_that_refuses_threads_is_the_reason_that_parallel_gives(
    cli: Cli, target: Path
) -> None:
    needs_engine()
    wrapped = cli.wrapped(under_filter("EPERM", "clone3"))
    options = ("--strategy", "parallel", "--yes", "--json")
    report = wrapped.run("delete", *options, str(target)).expect(1).report()
    assert len(list(target.rglob("*"))) == FILES + DIRECTORIES - 1
    assert report["explanation"] == (
        "10 entries are left. The tool reported: tui-fs-engine: cannot start a thread: "
        "Operation not permitted (os error 1); the strategies rm, find and rmtree need none."
    )


WITH_SIGNALS = [
    sys.executable,
    "-c",
    "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); "
    "signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals()); "
    "os.execv(sys.argv[1], sys.argv[1:])",
]
"""Runs a command with signals as some parent processes leave them: SIGCHLD ignored, all blocked."""


def test_inherited_signals_change_no_outcome(cli: Cli, target: Path, strategy: str) -> None:
    finished = cli.wrapped(WITH_SIGNALS).delete(target, strategy).expect(0)
    assert finished.report()["outcome"] == "done"
    assert not target.exists()


def test_inherited_signals_change_no_count(cli: Cli, target: Path) -> None:
    wrapped = cli.wrapped(WITH_SIGNALS)
    surveyed = wrapped.run("survey", "--json", str(target)).expect(0).object()
    assert (surveyed["files"], surveyed["directories"]) == (FILES, DIRECTORIES)


def test_an_interrupt_ends_a_job_though_the_parent_process_blocks_it(
    cli: Cli, target: Path
) -> None:
    many_directories(target / "more", 10, 100)
    options = ("--strategy", "rm", "--yes", "--rate", "20")
    command = [*WITH_SIGNALS, cli.program, "delete", *options, str(target)]
    started = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=default_signals,
    )
    job = cli.only_job()
    cli.supervisor_of(job)
    wait_until(lambda: len(cli.journal(job)) > 2, "the first step")
    started.send_signal(signal.SIGINT)
    assert started.wait(DEADLINE_S) == 130
    assert cli.state_of(job) == "cancelled"
    assert target.exists()


@pytest.mark.root
def test_without_proc_one_sentence_says_what_is_missing(cli: Cli, target: Path) -> None:
    # A place where /proc is not mounted
    wrapped = cli.wrapped(in_mount_namespace("umount -l /proc"))
    for arguments in commands(target):
        if arguments[0] == "jobs":
            wrapped.run(*arguments).expect(0)
            continue
        finished = wrapped.run(*arguments).expect(4)
        finished.assert_one_sentence()
        assert "/proc is not mounted" in finished.stderr
    # And nothing is deleted
    finished = wrapped.run("delete", "--strategy", "rm", "--yes", str(target)).expect(4)
    assert target.exists()


@pytest.mark.root
@pytest.mark.parametrize("options", ["subset=pid", "hidepid=2"])
def test_a_part_of_proc_is_enough(cli: Cli, target: Path, options: str) -> None:
    # A /proc that shows processes only, or only one's own
    needs_tool("setpriv", "util-linux")
    wrapper = in_mount_namespace(f"mount -t proc -o {options} proc /proc")
    if options == "hidepid=2":  # those who may trace others see them all the same
        wrapper += ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]
    wrapped = cli.wrapped(wrapper)
    for arguments in commands(target):
        finished = wrapped.run(*arguments).expect(0)
        if arguments[0] == "survey":
            assert finished.object()["files"] == FILES


@pytest.mark.root
def test_without_dev_null_one_sentence_says_how_to_make_it(cli: Cli, target: Path) -> None:
    wrapped = cli.wrapped(in_mount_namespace("mount -t tmpfs tmpfs /dev"))
    for arguments in commands(target):
        finished = wrapped.run(*arguments).expect(4)
        finished.assert_one_sentence()
        assert "mknod -m 666 /dev/null" in finished.stderr
    assert target.exists()


def test_a_relative_path_below_a_deleted_directory_is_explained(
    cli: Cli, tmp_path: Path, target: Path
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    wrapped = cli.wrapped(after_shell(f"rmdir {shlex.quote(str(gone))}"))
    for arguments in (("survey", "x"), ("lab", "run", "rivals", "--dir", "x"), ("--import", "x")):
        gone.mkdir(exist_ok=True)
        finished = wrapped.run(*arguments, cwd=gone).expect(2)
        finished.assert_one_sentence()
        assert "current directory" in finished.stderr
    # And an absolute path is counted
    gone.mkdir()
    counted = wrapped.run("survey", "--json", str(target), cwd=gone).expect(0)
    assert counted.object()["files"] == FILES


def test_root_of_a_user_namespace_claims_no_more_than_it_may(cli: Cli) -> None:
    wrapper = ["unshare", "--user", "--map-root-user"]
    if subprocess.run([*wrapper, "true"], capture_output=True, check=False).returncode != 0:
        lacks("user namespaces are switched off; enable them with: sysctl user.max_user_namespaces")
    diagnosis = cli.wrapped(wrapper).run("doctor", "--json").expect(0).object()
    privileges = diagnosis["privileges"]
    assert privileges["uid"] == 0 and privileges["is_root"] is False
    assert "user namespace" in privileges["note"]
    assert str(os.geteuid()) in privileges["note"]
    usable = {source["kind"] for source in diagnosis["tracing"]["sources"] if source["usable"]}
    assert not usable & {"perf", "bpf"}


@pytest.mark.root
def test_root_without_capabilities_claims_no_more_than_it_may(cli: Cli) -> None:
    needs_root("dropping capabilities")
    needs_tool("setpriv", "util-linux")
    wrapped = cli.wrapped(["setpriv", "--bounding-set=-all", "--inh-caps=-all"])
    diagnosis = wrapped.run("doctor", "--json").expect(0).object()
    assert diagnosis["privileges"]["is_root"] is False
    assert "CAP_DAC_OVERRIDE" in diagnosis["privileges"]["note"]
    usable = {source["kind"] for source in diagnosis["tracing"]["sources"] if source["usable"]}
    assert not usable & {"perf", "bpf"}


def test_too_few_descriptors_are_not_blamed_on_a_tool(cli: Cli, target: Path) -> None:
    needs_engine()
    for number in (7, 8):
        fewer = cli.wrapped(after_shell(f"ulimit -n {number}"))
        finished = fewer.run("survey", str(target)).expect(4)
        finished.assert_one_sentence()
        assert "ulimit -n" in finished.stderr and "nstall" not in finished.stderr
    wrapped = cli.wrapped(after_shell("ulimit -n 10"))
    # And the doctor does not call a tool missing or another build
    diagnosis = wrapped.run("doctor").expect(0).stdout.decode()
    assert "rm --version could not be started: Too many open files" in diagnosis
    assert "GNU build" not in diagnosis and "coreutils" not in diagnosis


@pytest.mark.parametrize("locale", ["C", "xx_XX.UTF-8"])
def test_doctor_names_the_encoding_that_is_written_without_a_locale(cli: Cli, locale: str) -> None:
    finished = cli.run("doctor", "--json", environment={"LC_ALL": locale}).expect(0)
    assert finished.object()["terminal"]["encoding"] == "UTF-8"
