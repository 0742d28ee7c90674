"""``survey`` counts what find and du count, and says it as its contract says."""

import itertools
import os
import re
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Cli
from tests.needs import needs_root
from tests.trees import (
    Sentinel,
    hostile_names,
    many_directories,
)

# From coreutils 9.2 on, du --apparent-size leaves directories out.
DU_WITH_DIRECTORIES = (9, 1)


def shell_output(*command: str | Path) -> str:
    """Run a naive tool and return its output."""
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def found(root: Path, *tests: str) -> int:
    """Count what find selects, one byte each, as names may hold newlines."""
    return len(shell_output("find", root, *tests, "-printf", "."))


def survey(cli: Cli, path: Path) -> dict[str, Any]:
    return cli.run("survey", "--json", path).expect(0).object()


def assert_survey_equals_the_naive_tools(cli: Cli, root: Path) -> None:
    """Compare the totals with find and du."""
    report = survey(cli, root)
    assert report["schema"] == 1
    assert report["complete"] is True
    assert report["entries"] == found(root)
    assert report["files"] == found(root, "-type", "f")
    assert report["directories"] == found(root, "-type", "d")
    assert report["symlinks"] == found(root, "-type", "l")
    assert report["other"] == found(root, "!", "-type", "f", "!", "-type", "d", "!", "-type", "l")
    depths = shell_output("find", root, "-printf", "%d ").split()
    assert report["max_depth"] == max(map(int, depths))
    assert report["allocated_bytes"] == int(shell_output("du", "-s", "-B1", root).split()[0])
    inodes = shell_output("find", root, "-printf", "%i %s\\n").split("\n")
    assert report["apparent_bytes"] == sum(int(line.split()[1]) for line in set(inodes) if line)
    version = re.search(r"(\d+)\.(\d+)", shell_output("du", "--version"))
    assert version is not None
    if (int(version[1]), int(version[2])) <= DU_WITH_DIRECTORIES:
        apparent = shell_output("du", "-s", "--apparent-size", "-B1", root).split()[0]
        assert report["apparent_bytes"] == int(apparent)


def test_survey_equals_find_and_du(cli: Cli, filesystem: Path) -> None:
    root = filesystem / "root"
    hostile_names(root)
    Sentinel(filesystem).plant(root)
    many_directories(root / "many", 10, 50)
    (root / "data").write_bytes(b"x" * 100_000)
    os.link(root / "data", root / "many" / "data-again")
    with (root / "sparse").open("wb") as sparse:
        sparse.truncate(50_000_000)
    os.sync()
    assert_survey_equals_the_naive_tools(cli, root)


def test_survey_bounds_what_hard_links_free(cli: Cli, ext4: Path) -> None:
    root = ext4 / "root"
    root.mkdir()
    (root / "inside").write_bytes(b"x" * 40_000)
    os.link(root / "inside", root / "inside-again")
    (root / "shared").write_bytes(b"x" * 80_000)
    os.link(root / "shared", ext4 / "outside")
    os.sync()
    shared_bytes = (root / "shared").stat().st_blocks * 512
    report = survey(cli, root)
    # Only the second one is uncertain
    assert report["freed_bytes_max"] == report["allocated_bytes"]
    assert report["freed_bytes_max"] - report["freed_bytes_min"] == shared_bytes > 0


def test_survey_shape(cli: Cli, tmpfs: Path) -> None:
    many_directories(tmpfs / "root", 3, 5)
    report = survey(cli, tmpfs / "root")
    promised = """schema entries files directories symlinks other apparent_bytes allocated_bytes
        freed_bytes_min freed_bytes_max max_depth max_entries_in_directory pathologies elapsed_s
        complete backend"""
    assert set(promised.split()) <= report.keys()
    assert report["max_entries_in_directory"] == 5
    # Processes of other tests may still have deleted files open there.
    kinds = {finding["kind"] for finding in report["pathologies"]}
    assert kinds <= {"deleted-but-open"}


@pytest.mark.parametrize("command", ("survey", "estimate", "delete --dry-run --strategy rm"))
def test_one_is_not_reported_as_if_it_were_many(cli: Cli, tmpfs: Path, command: str) -> None:
    (tmpfs / "root").mkdir()
    (tmpfs / "root/only").touch()
    shown = cli.run(*command.split(), tmpfs / "root").expect(0).stdout.decode()
    assert not re.findall(r"\b1 (?:\w+ )?(?:entries|files|directories|names)\b", shown)


def test_survey_shows_as_many_directories_as_asked(cli: Cli, tmpfs: Path) -> None:
    many_directories(tmpfs / "root", 9, 5)
    shown = cli.run("survey", "--json", "--top", "4", tmpfs / "root").expect(0).object()
    assert len(shown["largest"]) == 4


def test_survey_reports_a_pathology_in_the_promised_shape(cli: Cli, ext4: Path) -> None:
    # Two signs of trouble: something mounted inside, and a hard link to outside
    needs_root("mounting")
    root = ext4 / "root"
    point = root / "point"
    point.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "tui-fs-test", point], check=True)
    (root / "shared").write_bytes(b"x" * 10_000)
    os.link(root / "shared", ext4 / "outside")
    findings = survey(cli, root)["pathologies"]
    for finding in findings:
        assert {"kind", "severity", "path", "numbers", "meaning", "advice"} <= finding.keys()
        assert finding["severity"] in {"info", "warning", "critical"}
        assert isinstance(finding["numbers"], dict)
    assert any(finding["path"] == str(point) for finding in findings), findings


def test_histograms_are_what_find_counts(cli: Cli, tmp_path: Path) -> None:
    days, sizes = (0, 0.5, 1.5, 8, 40, 89.99, 90.01, 364.9, 365.1, 9_000), (0, 1, 4_095, 70_000)
    for number, (age, size) in enumerate(itertools.product(days, sizes)):
        file = tmp_path / f"directory-{number % 7}" / f"{age}-{size}"
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(b"x" * size)
        os.utime(file, (0, time.time() - age * 86_400))
    os.sync()
    for tree in (tmp_path, Path("/usr/share")):
        counted = cli.run("survey", tree, "--json", "--top", "0").object()
        for test, unit, bins in ("-mtime", "", counted["ages"]), ("-size", "c", counted["sizes"]):
            for number, least in list(enumerate(each["least"] for each in bins))[1:]:
                selects = "!", "-type", "d", test, f"+{least - 1}{unit}"
                lines = shell_output("find", tree, *selects, "-printf", "%i %b\\n").splitlines()
                assert sum(each["entries"] for each in bins[number:]) == len(lines)
                blocks = {line.partition(" ")[0]: int(line.partition(" ")[2]) for line in lines}
                allocated = sum(each["allocated_bytes"] for each in bins[number:])
                assert allocated == 512 * sum(blocks.values())
        assert counted["ages"][0]["below"] == 1
        assert counted["ages"][-1]["below"] is None
