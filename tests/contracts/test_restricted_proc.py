"""A /proc with parts hidden by a container: jobs run, and missing figures are named."""

from pathlib import Path

import pytest

from tests.conftest import Cli
from tests.contracts.ordinary import ordinary
from tests.namespaces import in_mount_namespace
from tests.needs import needs_engine, needs_root
from tests.trees import many_directories

__all__ = ["ordinary"]

pytestmark = pytest.mark.root

FILES, DIRECTORIES = 6, 4

PRESSURE, DISK_BYTES = "disk and processor pressure", "bytes that processes read and write"
MEMORY, PROCESSES = "free memory", "processes of other users"
SWAP, BOOT = "swap files", "boot id"
NAMESPACES = "uses in other mount namespaces"


def _masked(*names: str) -> str:
    return "; ".join(f"mount --bind /dev/null /proc/{name}" for name in names)


RESTRICTIONS = {
    "subset=pid": ("mount -t proc -o subset=pid proc /proc", {PRESSURE, MEMORY, SWAP, BOOT}),
    "stat masked": (_masked("stat", "uptime", "loadavg"), set[str]()),
    "pressure masked": (_masked("pressure/io", "pressure/cpu"), {PRESSURE}),
    "no pressure": ("mount -t tmpfs none /proc/pressure", {PRESSURE}),
    "memory masked": (_masked("meminfo"), {MEMORY}),
    "swaps masked": (_masked("swaps"), {SWAP}),
    "sys masked": ("mount -t tmpfs none /proc/sys", {BOOT}),
}
"""What a container does to /proc, and the figures that are missing then."""
FOR_SURVEY, FOR_JOB = {PROCESSES, SWAP}, {PRESSURE, BOOT, DISK_BYTES}
FOR_ESTIMATE = FOR_SURVEY | {MEMORY}


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """Return a tree."""
    needs_root("mounts of its own")
    many_directories(tmp_path / "target", 3, 2)
    return tmp_path / "target"


def assert_named(missing: object, expected: set[str]) -> None:
    """Fail unless just these figures are missing, each with the file that does not report it.

    Root may not inspect the first process of some containers, with or without a restriction.
    """
    assert isinstance(missing, list)
    hidden = [figure for figure in missing if figure["figure"] != NAMESPACES]
    assert {figure["figure"] for figure in hidden} == expected
    for figure in hidden:
        assert "/proc" in figure["reason"], figure


@pytest.mark.parametrize(
    "kind, tool", [*((kind, "rm") for kind in RESTRICTIONS), ("subset=pid", "parallel")]
)
def test_jobs_are_done_and_name_the_missing_figures(
    cli: Cli, target: Path, kind: str, tool: str
) -> None:
    needs_engine()
    script, missing = RESTRICTIONS[kind]
    restricted = cli.wrapped(in_mount_namespace(script))
    options = ("--strategy", tool, "--yes", "--rate", "100", "--gentle")
    finished = restricted.run("delete", *options, "--json", target).expect(0)
    report = finished.report()
    assert report["outcome"] == "done"
    assert (report["deleted_files"], report["deleted_directories"]) == (FILES, DIRECTORIES)
    assert_named(report["missing_figures"], missing & FOR_JOB)
    assert not target.exists()


def test_a_job_measures_its_tools_in_their_own_files(cli: Cli, target: Path) -> None:
    # Enough for some seconds, as processes are measured once a second, and on a busy machine some
    # ten thousand entries may be gone before the rate is enforced
    script, _ = RESTRICTIONS["subset=pid"]
    restricted = cli.wrapped(in_mount_namespace(script))
    many_directories(target / "more", 10, 4_000)
    options = ("--strategy", "rm", "--yes", "--rate", "10000", "--json")
    finished = restricted.run("delete", *options, target).expect(0)
    usages = [event["usage"] for event in finished.stream() if event.get("usage")]
    assert any(usage["busiest"].startswith("rm ") for usage in usages), usages
    assert any(usage["rss_bytes"] > 0 for usage in usages), usages


@pytest.mark.parametrize("kind", RESTRICTIONS)
def test_survey_estimate_and_doctor_name_the_missing_figures(
    cli: Cli, target: Path, kind: str
) -> None:
    script, missing = RESTRICTIONS[kind]
    restricted = cli.wrapped(in_mount_namespace(script))
    survey = restricted.run("survey", "--json", target).expect(0).object()
    assert (survey["files"], survey["directories"]) == (FILES, DIRECTORIES)
    assert_named(survey["missing_figures"], missing & FOR_SURVEY)
    estimate = restricted.run("estimate", "--json", target).expect(0).object()
    assert estimate["entries"] == FILES + DIRECTORIES
    assert_named(estimate["missing_figures"], missing & FOR_ESTIMATE)
    doctor = restricted.run("doctor", "--json").expect(0).object()
    assert_named(doctor["missing_figures"], missing)


def test_texts_name_the_missing_figures(cli: Cli, target: Path) -> None:
    script, _ = RESTRICTIONS["subset=pid"]
    restricted = cli.wrapped(in_mount_namespace(script))
    swap = "Unknown: swap files (subset=pid hides /proc/swaps)."
    assert swap in restricted.run("survey", target).expect(0).stderr
    assert swap in restricted.run("estimate", target).expect(0).stdout.decode()
    assert swap in restricted.run("doctor").expect(0).stdout.decode()
    options = ("--strategy", "rm", "--yes")
    report = restricted.run("delete", *options, target).expect(0).stdout.decode()
    assert "Unknown: disk and processor pressure (subset=pid hides /proc/pressure/io)." in report


def test_a_whole_proc_has_all_figures(cli: Cli) -> None:
    doctor = cli.run("doctor", "--json").expect(0).object()
    hidden = {figure["figure"] for figure in doctor["missing_figures"]}
    assert not hidden & {MEMORY, PROCESSES, SWAP, BOOT}


@pytest.mark.parametrize("hidepid", ("noaccess", "invisible"))
def test_processes_that_proc_hides_are_named(ordinary: tuple[Cli, Path], hidepid: str) -> None:
    user, target = ordinary
    script = f"mount -t proc -o hidepid={hidepid} proc /proc"
    restricted = user.wrapped(in_mount_namespace(script))
    survey = restricted.run("survey", "--json", target).expect(0).object()
    assert_named(survey["missing_figures"], {PROCESSES})
    estimate = restricted.run("estimate", "--json", target).expect(0).object()
    assert_named(estimate["missing_figures"], {PROCESSES})
    options = ("--strategy", "rm", "--yes", "--rate", "100")
    finished = restricted.run("delete", *options, "--json", target).expect(0)
    # And the job is done, and measures its own tools
    assert finished.report()["outcome"] == "done"
    assert not target.exists()
