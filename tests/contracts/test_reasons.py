"""Reasons why single entries could not be deleted: the report reads them from the entry."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import Cli
from tests.contracts.ordinary import ordinary
from tests.needs import needs_engine, needs_root, needs_tool, needs_tools_of
from tui_fs.linux.entry_causes import cause_of_failure
from tui_fs.strategies.registry import STRATEGIES

__all__ = ["ordinary"]

LOCKED_FILE, LOCKED_DIRECTORY = "a/file", "a/directory"


def _causes(report: dict[str, object]) -> dict[str, str]:
    """Return the causes by the last two parts of each path."""
    errors = report["errors"]
    assert isinstance(errors, list)
    return {
        "/".join(error["path"].split("/")[-2:]): error["cause"]
        for error in errors
        if error["cause"]
    }


@pytest.fixture
def locked(ext4: Path) -> Iterator[Callable[[str], Path]]:
    """Yield a tree in which a file and a directory get an attribute."""
    needs_root("chattr")
    chattr = needs_tool("chattr", package="e2fsprogs")
    target = ext4 / "target"

    def lock(letter: str) -> Path:
        (target / LOCKED_DIRECTORY).mkdir(parents=True)
        for name in (LOCKED_FILE, f"{LOCKED_DIRECTORY}/inside", "a/free"):
            (target / name).touch()
        names = [target / LOCKED_FILE, target / LOCKED_DIRECTORY]
        subprocess.run([chattr, f"+{letter}", *names], check=True)
        return target

    yield lock
    subprocess.run([chattr, "-R", "-f", "-ia", target], check=True)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(("letter", "word"), [("i", "immutable"), ("a", "append-only")])
def test_the_attribute_of_the_very_entry_is_reported(
    cli: Cli, locked: Callable[[str], Path], strategy: str, letter: str, word: str
) -> None:
    needs_tools_of(strategy)
    target = locked(letter)
    estimated = cli.run("estimate", "--json", target).expect(0).object()
    for row in estimated["strategies"]:
        assert f"a directory is {word}: its direct entries remain" in row["reasons"]
        assert "immutable or append-only files in 1 directory remain" in row["reasons"]
    report = cli.delete(target, strategy).expect(1).report()
    causes = _causes(report)
    assert causes[LOCKED_FILE] == f"it is {word} (chattr -{letter})"
    assert causes["directory/inside"] == f"its directory is {word} (chattr -{letter})"
    text = cli.run("attach", report["id"]).stdout.decode()
    assert f"{target / LOCKED_FILE}: it is {word} (chattr -{letter})" in text
    assert not (target / "a/free").exists()


@pytest.mark.parametrize("strategy", [name for name in STRATEGIES if name != "rsync"])
def test_a_nested_subvolume_is_called_one(cli: Cli, btrfs: Path, strategy: str) -> None:
    needs_tools_of(strategy)
    program = needs_tool("btrfs", package="btrfs-progs")
    target, volume = btrfs / "target", btrfs / "target" / "volume"
    target.mkdir()
    subprocess.run([program, "-q", "subvolume", "create", volume], check=True)
    (volume / "file").touch()
    try:
        estimated = cli.run("estimate", "--json", target).expect(0).object()
        notes = {row["strategy"]: row["reasons"] for row in estimated["strategies"]}
        assert "a btrfs subvolume inside the target remains" in notes[strategy], notes[strategy]
        report = cli.delete(target, strategy).expect(1).report()
        cause = "it is a btrfs subvolume (btrfs subvolume delete)"
        assert _causes(report)["target/volume"] == cause, report["errors"]
        assert (volume / "file").exists()
    finally:
        subprocess.run([program, "-q", "subvolume", "delete", volume], check=True)


def test_the_survey_finds_locked_files(cli: Cli, locked: Callable[[str], Path]) -> None:
    needs_engine()
    target = locked("i")
    surveyed = cli.run("survey", "--json", target).expect(0).object()
    (finding,) = [
        pathology for pathology in surveyed["pathologies"] if pathology["kind"] == "locked-files"
    ]
    assert finding["path"] == str(target / "a")
    listing = subprocess.check_output(["lsattr", "-a", target / "a"], text=True)
    assert f"lsattr -a {target / 'a'}" in finding["advice"]
    assert "i" in next(line for line in listing.splitlines() if line.endswith("/file")).split()[0]


def test_an_active_swap_file_is_called_one(ext4: Path) -> None:
    needs_root("swapon")
    mkswap = needs_tool("mkswap", package="util-linux")
    swap = ext4 / "swap"
    swap.write_bytes(bytes(2 << 20))
    swap.chmod(0o600)
    subprocess.run([mkswap, swap], check=True, capture_output=True)
    subprocess.run(["swapon", swap], check=True)
    try:
        with pytest.raises(PermissionError) as refused:
            swap.unlink()
        assert cause_of_failure(str(swap), refused.value.errno or 0) == (
            "it is an active swap file (swapoff)"
        )
    finally:
        subprocess.run(["swapoff", swap], check=True)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_directory_that_may_not_be_read_was_not_moved(
    ordinary: tuple[Cli, Path], strategy: str
) -> None:
    needs_tools_of(strategy)
    cli, target = ordinary
    closed = target / sorted(os.listdir(target))[0]
    closed.chmod(0)
    report = cli.delete(target, strategy).expect(1).report()
    assert str(closed) in {error["path"] for error in report["errors"]}
    assert _causes(report) == {}
    assert all(
        "to read the directory itself" in error["meaning"]
        for error in report["errors"]
        if error["path"] == str(closed) and error["errno_name"] == "EACCES"
    )
