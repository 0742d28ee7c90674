"""``recreate`` as a person meets it: what it prints, refuses and leaves behind."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Cli
from tests.contracts.curing import full, refused, spool
from tests.namespaces import other_namespace
from tests.needs import needs_root
from tests.trees import flat
from tests.waiting_process import StartPython

__all__ = ["full", "spool"]

INDEXED_FILES = 30_000


@pytest.fixture
def occupant_pid(spool: Path, start_python: StartPython) -> int:
    """Start a process whose current directory is the directory."""
    return start_python("", cwd=spool)


def test_an_emptied_directory_gets_a_small_index(cli: Cli, ext4: Path) -> None:
    """An ext4 directory that had 30,000 entries has an index of one block afterwards."""
    spool = ext4 / "spool"
    flat(spool, INDEXED_FILES)
    for entry in list(os.scandir(spool)):
        os.unlink(entry.path)
    before = spool.stat()
    assert before.st_size > 1 << 19
    report = cli.run("recreate", spool, "--yes", "--json").expect(0).object()
    after = spool.stat()
    assert (report["type"], report["path"], report["moved_entries"]) == ("recreate", str(spool), 0)
    assert report["index_bytes_before"] == before.st_size
    assert report["index_bytes_after"] == after.st_size == 4096
    assert after.st_ino != before.st_ino
    assert os.listdir(ext4) == ["spool"]
    assert cli.run("aside", "--list", "--json").expect(0).array() == []


def test_recreating_reports_what_it_did(cli: Cli, spool: Path) -> None:
    """Without --json, one sentence states the size before and after."""
    finished = cli.run("recreate", spool, "--yes").expect(0)

    assert re.search(rf"{spool} is recreated: .* took .*, now ", finished.stdout.decode())


def test_recreating_refuses_what_it_must(cli: Cli, full: Path) -> None:
    """A directory with entries, a missing path, a link or a file is refused with its exit code."""
    link = full.parent / "link"
    link.symlink_to("spool")

    assert "not empty" in refused(cli.run("recreate", full, "--yes"))
    assert "symbolic link" in refused(cli.run("recreate", link, "--yes"))
    assert "not a directory" in refused(cli.run("recreate", full / "a", "--yes"))
    assert "does not exist" in refused(cli.run("recreate", full / "nothing", "--yes"), 2)
    assert "--help" in refused(cli.run("recreate", "--yes"), 2)
    assert sorted(os.listdir(full)) == ["a", "b", "c"]


def test_processes_in_it_are_named(cli: Cli, spool: Path, occupant_pid: int) -> None:
    """A process in the directory is named, and only --accept-occupants leaves it there."""
    sentence = refused(cli.run("recreate", spool, "--yes"))
    assert f"Process {occupant_pid} " in sentence
    assert "--accept-occupants" in sentence

    finished = cli.run("recreate", spool, "--yes", "--json", "--accept-occupants").expect(0)

    assert [occupant["pid"] for occupant in finished.object()["occupants"]] == [occupant_pid]
    assert str(occupant_pid) in finished.stderr


@pytest.fixture
def mounted_on(spool: Path) -> Iterator[int]:
    """Yield a process in another mount namespace that has a file system mounted on it."""
    needs_root("a mount namespace")
    with other_namespace('mount -t tmpfs none "$1"', spool) as pid:
        yield pid
        table = Path(f"/proc/{pid}/mountinfo").read_text()
    assert f" {spool} " in table


def test_a_mount_of_a_container_stays(cli: Cli, spool: Path, mounted_on: int) -> None:
    """With a mount on it in another namespace, no option permits the removal."""
    inode = spool.stat().st_ino

    for option in ((), ("--accept-occupants",)):
        sentence = refused(cli.run("recreate", spool, "--yes", *option))
        assert f"Process {mounted_on} " in sentence
        assert "has a file system mounted on" in sentence
        assert "--accept-occupants" not in sentence

    assert spool.stat().st_ino == inode
