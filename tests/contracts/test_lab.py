"""`tui-fs lab`: every experiment runs here at its small scale and leaves only its record."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Cli, Json, default_signals, wait_until
from tests.needs import needs_kernel_counters, needs_root, needs_tool
from tests.trees import Sentinel, many_directories
from tui_fs.model.paths import to_base64

NAMES = (
    "rsync-vs-rm",
    "tree-shapes",
    "ext4-vs-xfs",
    "exec-vs-xargs",
    "zero-fill",
    "profile",
    "race-your-strategies",
    "rivals",
)
_VERDICTS = {"holds here", "does not hold here", "cannot be tested here"}
_LONGEST_S = 600.0
"""A whole experiment takes about 20 s on an idle machine, and over a minute on a busy one."""
_MAKES_IMAGES = ("ext4-vs-xfs", "rivals")
"""They have no room on the small ext4 of the other experiments: on a large one every directory of a
chain is in another block group, and reading their bitmaps is most of the time."""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Return a directory to work in that only this user can access."""
    place = tmp_path / "place"
    place.mkdir(mode=0o700)
    return place


def mounts_at(place: Path) -> list[str]:
    """List the mounts that anybody else on this machine would see there."""
    with open("/proc/self/mountinfo", encoding="utf-8") as table:
        return [line for line in table if str(place) in line]


def loop_files() -> str:
    """Return the output of losetup."""
    return subprocess.run(["losetup", "-a"], capture_output=True, text=True, check=True).stdout


def test_the_list_names_all_experiments_with_the_fields_others_rely_on(cli: Cli) -> None:
    listed = cli.run("lab", "list", "--json").expect(0).array()
    assert [row["name"] for row in listed] == list(NAMES)
    for row in listed:
        assert {"name", "title", "scales", "needs"} <= set(row)
        assert row["scales"] == ["small", "published"]
    words = cli.run("lab", "list").expect(0).stdout.decode()
    assert all(name in words for name in NAMES)


@pytest.mark.root
@pytest.mark.parametrize("name", NAMES)
def test_each_runs_at_its_small_scale(
    cli: Cli, place: Path, ext4: Path, tmp_path: Path, name: str
) -> None:
    needs_root("dropping caches, mounting")
    needs_kernel_counters()
    for tool, package in (("rsync", "rsync"), ("file", "file"), ("mkfs.xfs", "xfsprogs")):
        needs_tool(tool, package)
    place = place if name in _MAKES_IMAGES else ext4
    target = tmp_path / "own"
    many_directories(target, 20, 10)
    sentinel = Sentinel(place)
    before = set(os.listdir(place))
    page = tmp_path / "report.html"
    words = ["--target", str(target)] if name == "race-your-strategies" else []
    command = ["lab", "run", name, "--scale", "small", "--dir", str(place), "--json"]
    command += ["--max-rounds", "1"]  # noise is no matter of this test
    report = (
        cli.run(*command, "--report", str(page), *words, deadline_s=_LONGEST_S).expect(0).object()
    )
    # Every step was measured, or says why not
    assert (report["schema"], report["experiment"], report["scale"]) == (1, name, "small")
    assert report["ending"] == "done", report
    not_done = {step["key"]: step["why_not"] for step in report["steps"] if not step["runs"]}
    for key, reason in not_done.items():
        # Not every rm can delete a chain: that is one of the claims.
        assert "was not found in PATH" in reason or (
            key.startswith("chain-") and "status" in reason
        ), reason
    assert len(not_done) < len(report["steps"]) / 2, not_done
    # And every claim has a verdict with a figure, or says why it has none
    for claim in report["claims"]:
        assert claim["verdict"] in _VERDICTS
        assert claim["here"] if claim["verdict"] != "cannot be tested here" else claim["reason"]
    # And nothing is left there, the page is whole, and the run is kept
    assert set(os.listdir(place)) == before
    sentinel.assert_whole()
    assert mounts_at(place) == []
    html = page.read_text(encoding="utf-8")
    assert html.rstrip().endswith("</html>")
    if name == "profile":  # the stacks that py-spy has sampled
        assert "rmtree" in html and "unlink" in html
    if name != "rivals":  # the shortest one
        return
    (kept,) = cli.run("lab", "runs", "--json").expect(0).array()
    assert kept["run"] == report["run"]
    shown = cli.run("lab", "show", str(report["run"]), "--json").expect(0).object()
    assert shown["steps"] == report["steps"]


def start(cli: Cli, place: Path, name: str) -> subprocess.Popen[bytes]:
    """Start an experiment at its small scale."""
    return subprocess.Popen(
        [cli.program, "lab", "run", name, "--dir", str(place), "--json"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        preexec_fn=default_signals,
    )


def process_of(place: Path) -> int | None:
    """Return the process that runs an experiment in a place, None if there is none."""
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/cmdline", "rb") as file:
                    words = file.read().split(b"\0")
            except OSError:
                continue
            if b"tui_fs.lab.process" in words and any(
                _is_for(word, place) for word in words if word.startswith(b"{")
            ):
                return int(entry)
    return None


def _is_for(word: bytes, place: Path) -> bool:
    asked: Json = json.loads(word)
    return bool(asked["directory"] == to_base64(str(place)))


def under_way(place: Path) -> bool:
    """Return whether the run has begun to make something."""
    return bool(os.listdir(place)) and process_of(place) is not None


@pytest.mark.parametrize("number, code", ((signal.SIGINT, 130), (signal.SIGTERM, 143)))
def test_a_cancelled_run_clears_away_and_says_so(
    cli: Cli, place: Path, number: signal.Signals, code: int
) -> None:
    with start(cli, place, "rsync-vs-rm") as run:
        wait_until(lambda: under_way(place), "the run begins")
        run.send_signal(number)
        output, _ = run.communicate(timeout=_LONGEST_S)
    assert run.returncode == code
    assert os.listdir(place) == [] and process_of(place) is None
    assert json.loads(output)["ending"] == "cancelled"


_SIGNALLED_WHILE_IT_STARTS = """
import os, subprocess, sys
from tui_fs.cli import main

class Starting(subprocess.Popen):
    def __init__(self, command, *rest, **options):
        super().__init__(command, *rest, **options)
        if "tui_fs.lab.process" in command:
            os.kill(os.getpid(), int(sys.argv[1]))

subprocess.Popen = Starting
sys.exit(main(["lab", "run", "rsync-vs-rm", "--dir", sys.argv[2], "--json"]))
"""


@pytest.mark.parametrize("number, code", ((signal.SIGINT, 130), (signal.SIGTERM, 143)))
@pytest.mark.usefixtures("state_home")
def test_a_signal_that_comes_while_the_run_is_started_cancels_it(
    place: Path, number: signal.Signals, code: int
) -> None:
    command = [sys.executable, "-c", _SIGNALLED_WHILE_IT_STARTS, str(int(number)), str(place)]
    ended = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_LONGEST_S, check=False
    )
    assert ended.returncode == code, ended.stderr
    assert os.listdir(place) == [] and process_of(place) is None
    assert json.loads(ended.stdout)["ending"] == "cancelled"


def test_a_run_whose_viewer_is_killed_ends_and_clears_away(cli: Cli, place: Path) -> None:
    with start(cli, place, "rsync-vs-rm") as run:
        wait_until(lambda: under_way(place), "the run begins")
        run.kill()
    wait_until(lambda: process_of(place) is None, "the run ends", _LONGEST_S)
    assert os.listdir(place) == []


@pytest.mark.root
def test_a_killed_run_leaves_no_mount_and_the_next_one_clears_away(cli: Cli, place: Path) -> None:
    needs_root("mounting")
    with start(cli, place, "ext4-vs-xfs") as run:
        wait_until(lambda: str(place) in loop_files(), "an image is mounted")
        pid = process_of(place)
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        run.communicate(timeout=_LONGEST_S)
    assert run.returncode == 1
    wait_until(lambda: str(place) not in loop_files(), "the loop devices are given back")
    assert mounts_at(place) == []
    # And the next run clears away what is left
    assert os.listdir(place) != []
    with start(cli, place, "rsync-vs-rm") as again:
        wait_until(lambda: process_of(place) is not None, "the next run begins")
        again.send_signal(signal.SIGINT)
        again.communicate(timeout=_LONGEST_S)
    assert os.listdir(place) == []
