"""The kernel keeps the tools inside the targets, and reports say what was in force."""

import errno
import os
import shlex
import signal
from pathlib import Path

import pytest

from tests.conftest import Cli, entries_in, wait_until
from tests.namespaces import other_namespace
from tests.needs import needs_root, needs_tool, needs_tools_of
from tests.seccomp import under_filter
from tests.trees import chain, flat, manifest, many_directories
from tui_fs.job.launcher import run_steps
from tui_fs.linux.mounts import read_mounts
from tui_fs.linux.permissions import Capability
from tui_fs.linux.pins import open_path_fd, take_pin
from tui_fs.linux.processes import state_of
from tui_fs.model.calls import HARMLESS_ERRORS, TraceSource
from tui_fs.model.strategy import Mechanism, Options, StrategyName
from tui_fs.safety.confinement import (
    MOST_LEVELS,
    ConfinedTarget,
    Enclosure,
    available,
    capabilities_without_confining,
    give_up_confining,
)
from tui_fs.strategies.base import ComparesPins, Invocation
from tui_fs.strategies.registry import STRATEGIES, tools_of
from tui_fs.tracing.select_source import open_source

BOTH = ["namespace", "landlock"]
TOOLS = {"rm": "rm", "find": "find", "xargs": "find", "rsync": "rsync"}
"""For each strategy a tool that is looked up in PATH."""


@pytest.fixture(autouse=True)
def _both_are_available() -> None:
    """These tests say what a kernel with both mechanisms does."""
    needs_root("a mount namespace")
    assert (available().namespace, available().landlock) == ("", "")


def with_bug(cli: Cli, directory: Path, tool: str, outside: Path) -> Cli:
    """Return the program with a tool that first deletes what is outside of the target."""
    directory.mkdir()
    real = needs_tool(tool, package=tool)
    script = directory / tool
    remover = needs_tool("rm", package="coreutils")
    script.write_text(
        "#!/bin/sh\n"
        f'[ "$1" = --version ] && exec {real} --version\n'
        f"{remover} -rf {shlex.quote(str(outside))} 2>/dev/null\n"
        f"(: > {shlex.quote(str(outside.parent / 'made'))}) 2>/dev/null\n"
        f'exec {real} "$@"\n'
    )
    script.chmod(0o755)
    return cli.wrapped(["env", f"PATH={directory}:{os.environ['PATH']}"])


@pytest.mark.parametrize("strategy", TOOLS)
def test_a_tool_with_a_bug_deletes_nothing_outside(cli: Cli, tmpfs: Path, strategy: str) -> None:
    needs_tools_of(strategy)
    outside, target = tmpfs / "outside", tmpfs / "target"
    flat(outside, 5)
    flat(target, 5)
    buggy = with_bug(cli, tmpfs / "tools", TOOLS[strategy], outside)
    report = buggy.delete(target, strategy).expect(0).report()
    assert report["confined_by"] == BOTH
    assert entries_in(outside) == 5 and not target.exists()
    assert not (tmpfs / "made").exists()
    # And without confinement it does
    flat(target, 5)
    buggy.delete(target, strategy, "--confine", "off")
    assert not outside.exists()


@pytest.mark.parametrize("strategy", ("parallel", "rmtree", "rm"))
def test_a_tool_that_is_led_to_another_directory_deletes_nothing_there(
    tmpfs: Path, strategy: str
) -> None:
    # The tool gets the path of a directory that is not its target, as by a bug
    needs_tools_of(strategy)
    target, outside = tmpfs / "target", tmpfs / "outside"
    flat(target, 5)
    flat(outside, 5)
    chosen = STRATEGIES[StrategyName(strategy)]
    tools, _ = tools_of(chosen)
    steps = chosen.steps(Invocation((str(outside),), Options(), tools))
    if isinstance(chosen, ComparesPins):
        steps = chosen.pinned(steps, [take_pin(str(outside))])
    place, descriptor = open_path_fd(str(tmpfs)), open_path_fd(str(target))
    try:
        for mechanisms in ((Mechanism.NAMESPACE, Mechanism.LANDLOCK), (Mechanism.NAMESPACE,), ()):
            confined = ConfinedTarget.of(descriptor, str(target), read_mounts())
            enclosure = Enclosure(mechanisms, (confined,), is_inside=False)
            run_steps(steps, place, open_source(TraceSource.OFF), enclosure=enclosure)
            assert outside.exists() == bool(mechanisms)
            assert not mechanisms or entries_in(outside) == 5
    finally:
        os.close(place)
        os.close(descriptor)


def test_root_without_the_capability_to_mount_has_landlock(cli: Cli, tmpfs: Path) -> None:
    words = [needs_tool("setpriv", package="util-linux"), "--bounding-set=-sys_admin"]
    limited = cli.wrapped([*words, "--inh-caps=-sys_admin"])
    target = tmpfs / "target"
    flat(target, 5)
    (namespace, _) = limited.run("doctor", "--json").expect(0).object()["confinement"]
    assert (namespace["usable"], namespace["note"]) == (False, "it needs root (CAP_SYS_ADMIN)")
    assert limited.delete(target, "rsync").expect(0).report()["confined_by"] == ["landlock"]
    assert not target.exists()


def test_several_targets_on_two_file_systems(cli: Cli, tmpfs: Path, ext4: Path) -> None:
    targets = [tmpfs / "a", tmpfs / "b", ext4 / "c"]
    words = ("--strategy", "rm", "--yes", "--json", "--", *map(str, targets))

    def is_counted() -> bool:
        for target in targets:
            flat(target, 10)
        report = cli.run("delete", *words).expect(0).report()
        assert (report["confined_by"], report["deleted_directories"]) == (BOTH, 3)
        assert not any(target.exists() for target in targets)
        return bool(report["freed_inodes"] == 33)

    # A busy kernel releases the inodes of targets that Landlock has confined after the report
    wait_until(is_counted, "a report of all freed inodes")


def test_filters_and_a_directory_of_others(cli: Cli, tmpfs: Path) -> None:
    target = tmpfs / "shared" / "target"
    target.parent.mkdir()
    flat(target, 10)
    target.parent.chmod(0o777)
    report = cli.delete(target, "xargs", "--name", "*0").expect(0).report()
    assert report["confined_by"] == BOTH
    assert entries_in(target) == 10 - report["deleted_files"] > 0


@pytest.mark.parametrize(
    ("options", "mode", "expected"),
    (((), 0o755, []), (("--confine", "always"), 0o755, ["namespace"]), ((), 0o777, ["namespace"])),
)
def test_a_deep_tree_gets_the_namespace_where_it_needs_it(
    cli: Cli, tmpfs: Path, options: tuple[str, ...], mode: int, expected: list[str]
) -> None:
    for strategy in ("rm", "parallel"):
        deep = tmpfs / "target"
        chain(deep, MOST_LEVELS + 10)
        deep.chmod(mode)
        report = cli.delete(deep, strategy, *options).expect(0).report()
        assert (report["confined_by"], report["failed"]) == (expected, 0)
        assert not deep.exists()


def test_the_mount_of_a_running_job_is_not_taken_for_that_of_another_process(
    cli: Cli, tmpfs: Path
) -> None:
    # The namespace alone gives the target a mount of its own
    target = tmpfs / "target"
    chain(target, MOST_LEVELS + 10)
    flat(target / "many", 20_000)
    words = ("--strategy", "rm", "--confine", "always", "--rate", "100", "--yes", "--detach")
    cli.run("delete", *words, target).expect(0)
    job = cli.only_job()
    wait_until(lambda: "StepStarted" in str(cli.journal(job)), "the start of the tool")
    finished = cli.delete(target, "find").expect(3)
    assert f"Job {job} is already working in {target}." in finished.stderr
    cli.run("cancel", job)


def test_what_is_in_force_is_recorded(cli: Cli, tmpfs: Path) -> None:
    target = tmpfs / "target"
    flat(target, 3)
    shown = cli.run("delete", "--strategy", "rm", "--dry-run", target).expect(0)
    assert "confined by: mount namespace + Landlock" in shown.stdout.decode()
    estimate = cli.run("estimate", "--json", target).expect(0).object()
    for row in estimate["strategies"]:
        assert row["confined_by"] == BOTH and row["race_safe"] is True
    unconfined = cli.run("estimate", "--confine", "off", "--json", target).expect(0).object()
    safe = {row["strategy"]: row["race_safe"] for row in unconfined["strategies"]}
    assert safe == {name: STRATEGIES[name].guarantees.race_safe for name in safe}
    cli.run("delete", "--strategy", "rm", "--yes", "--detach", target).expect(0)
    job = cli.only_job()
    text = cli.run("attach", job).expect(0).stdout.decode()
    assert "confined by  mount namespace + Landlock" in text
    assert HARMLESS_ERRORS["confined"] in " ".join(text.split())
    started = cli.journal(job)[0]
    assert started["confined_by"] == BOTH
    states = cli.run("doctor", "--json").expect(0).object()["confinement"]
    assert [(state["kind"], state["usable"]) for state in states] == [
        ("namespace", True),
        ("landlock", True),
    ]


_NO_LANDLOCK = "landlock_create_ruleset"
_NO_NAMESPACE = "unshare,mount_setattr,open_tree"


@pytest.mark.parametrize(
    ("refused", "error", "left"),
    (
        (_NO_LANDLOCK, "ENOSYS", ["namespace"]),
        (_NO_NAMESPACE, "EPERM", ["landlock"]),
        (f"{_NO_LANDLOCK},unshare", "EPERM", []),
    ),
)
def test_where_the_kernel_refuses_it_everything_else_works(
    cli: Cli, tmpfs: Path, refused: str, error: str, left: list[str]
) -> None:
    limited = cli.wrapped(under_filter(error, refused))
    target = tmpfs / "target"
    flat(target, 5)
    states = limited.run("doctor", "--json").expect(0).object()["confinement"]
    assert [state["kind"] for state in states if state["usable"]] == left
    assert all(state["note"] for state in states)
    if not left:
        before = manifest(tmpfs)
        finished = limited.delete(target, "rm", "--confine", "always").expect(3)
        finished.assert_one_sentence()
        assert "Landlock" in finished.stderr and manifest(tmpfs) == before
    report = limited.delete(target, "rm").expect(0).report()
    assert report["confined_by"] == left
    assert not target.exists()


def test_a_policy_can_require_it(cli: Cli, tmpfs: Path, tmp_path: Path) -> None:
    policy = tmp_path / "config" / "tui-fs" / "policy.toml"
    policy.parent.mkdir(parents=True)
    policy.write_text('confine = "always"\n')
    bound = cli.wrapped(["env", f"XDG_CONFIG_HOME={tmp_path / 'config'}"])
    target = tmpfs / "target"
    flat(target, 5)
    finished = bound.delete(target, "rm", "--confine", "off").expect(3)
    finished.assert_one_sentence()
    assert str(policy) in finished.stderr and entries_in(target) == 5
    limited = bound.wrapped(under_filter("EPERM", f"{_NO_LANDLOCK},unshare"))
    limited.delete(target, "rm").expect(3).assert_one_sentence()
    assert entries_in(target) == 5
    assert bound.delete(target, "rm").expect(0).report()["confined_by"] == BOTH


def test_a_directory_moved_out_keeps_its_content(cli: Cli, tmpfs: Path) -> None:
    target, outside = tmpfs / "target", tmpfs / "outside"
    target.mkdir()
    flat(target / "moved", 20_000)
    words = ("--strategy", "rm", "--yes", "--json", "--detach", "--rate", "200")
    job = str(cli.run("delete", *words, target).expect(0).object()["id"])
    wait_until(lambda: entries_in(target / "moved") < 20_000, "the first removals")
    cli.run("pause", job).expect(0)
    (target / "moved").rename(outside)
    left = entries_in(outside)
    cli.run("rate", job, "off").expect(0)
    cli.run("resume", job).expect(0)
    report = cli.run("attach", job, "--json").expect(1).report()
    # The tool has the directory open, but may remove nothing in it any more
    assert entries_in(outside) >= left - 1
    assert "moved out of the target" in report["errors"][0]["cause"]


def test_what_another_namespace_mounts_inside_is_kept(cli: Cli, tmpfs: Path) -> None:
    target, foreign = tmpfs / "target", tmpfs / "foreign"
    many_directories(target, 200, 50)
    flat(foreign, 5)
    words = ("--strategy", "rm", "--yes", "--json", "--detach", "--rate", "100")
    job = str(cli.run("delete", *words, target).expect(0).object()["id"])
    wait_until(lambda: entries_in(target) < 200, "the first removals")
    *_, directory = target.iterdir()  # rm comes to it last
    with other_namespace('mount --bind "$1" "$2"', foreign, directory):
        cli.run("rate", job, "off").expect(0)
        cli.run("attach", job)
    # A mount inside that only other processes see is removed by the kernel, but not its files
    assert entries_in(foreign) == 5 and not directory.exists()


def test_no_process_of_a_job_keeps_what_it_does_not_need(cli: Cli, tmpfs: Path) -> None:
    net_admin = 12  # linux/capability.h
    target = tmpfs / "target"
    flat(target, 20_000)
    words = ("--strategy", "rm", "--yes", "--json", "--detach", "--rate", "200")
    job = str(cli.run("delete", *words, target).expect(0).object()["id"])
    wait_until(lambda: entries_in(target) < 20_000, "the first removals")
    (started,) = (event for event in cli.journal(job) if event["type"] == "StepStarted")
    supervisor, (tool, *_) = cli.supervisor_of(job), started["pids"]
    launcher = state_of(f"/proc/{tool}").parent_pid
    status = {
        pid: dict(
            line.split(":\t") for line in Path(f"/proc/{pid}/status").read_text().splitlines()
        )
        for pid in (tool, launcher, supervisor)
    }
    os.kill(supervisor, signal.SIGTERM)
    assert {fields["NoNewPrivs"] for fields in status.values()} == {"1"}
    for sets in ("CapEff", "CapPrm", "CapBnd"):
        held = {pid: int(fields[sets], 16) for pid, fields in status.items()}
        assert not any(mask >> Capability.SYS_ADMIN & 1 for mask in held.values())
        assert not any(mask >> net_admin & 1 for mask in held.values())
        assert held[supervisor] >> Capability.PERFMON & 1  # to count the calls of rmdir


def test_a_right_that_cannot_be_given_up_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr("tui_fs.safety.confinement.keep_capabilities", refuse)
    assert "Operation not permitted" in give_up_confining(())


@pytest.mark.parametrize(
    ("paranoid", "needs_admin"), [("2", False), ("-1", False), ("3", True), ("4", True)]
)
def test_the_right_to_count_is_kept(tmp_path: Path, paranoid: str, needs_admin: bool) -> None:
    needs_root("capabilities")
    setting = tmp_path / "perf_event_paranoid"
    setting.write_text(f"{paranoid}\n", encoding="ascii")
    kept = capabilities_without_confining(str(setting))
    assert (Capability.SYS_ADMIN in kept) == needs_admin
    assert Capability.SYS_ADMIN in capabilities_without_confining(str(tmp_path / "hidden"))
