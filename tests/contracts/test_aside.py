"""``aside`` as a person meets it: there and back, what it prints and leaves alone."""

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.conftest import Cli
from tests.contracts.curing import full, put_aside, refused, spool
from tests.waiting_process import StartPython

__all__ = ["full", "spool"]


def test_putting_aside_and_back(cli: Cli, full: Path) -> None:
    """A full directory leaves its place at once, is recorded, and comes back."""
    inode = full.stat().st_ino
    record = put_aside(cli, full)
    aside = Path(record["aside"])
    assert re.fullmatch(r"\.spool\.tui-fs-aside-[0-9a-f]{8}", aside.name)
    assert (aside.parent, aside.stat().st_ino) == (full.parent, inode)
    assert not full.exists()
    assert record["delete_command"] == [
        ["tui-fs", "delete", str(aside), "--strategy", "rm", "--gentle"]
    ]
    (listed,) = cli.run("aside", "--list", "--json").expect(0).array()
    assert (listed["id"], listed["state"], listed["path"]) == (record["id"], "aside", str(full))
    cli.run(*record["undo_command"][1:], "--yes").expect(0)
    assert full.stat().st_ino == inode
    assert os.listdir(full.parent) == ["spool"]
    assert cli.run("aside", "--list", "--json").expect(0).array() == []


def test_a_twin_takes_the_place(cli: Cli, full: Path) -> None:
    """With --twin, an equal empty directory takes its place until the undo removes it."""
    inode, mode = full.stat().st_ino, full.stat().st_mode

    record = put_aside(cli, full, "--twin")

    assert record["twin"] is True
    assert (os.listdir(full), full.stat().st_mode) == ([], mode)
    assert set(os.listdir(full.parent)) == {"spool", Path(record["aside"]).name}
    cli.run("aside", "--undo", record["id"], "--yes").expect(0)
    assert full.stat().st_ino == inode
    assert os.listdir(full.parent) == ["spool"]


def test_what_is_printed_can_be_pasted(cli: Cli, tmpfs: Path) -> None:
    """The printed command quotes a name with quotes, spaces and escapes correctly."""
    spool = tmpfs / "it's a \x1b[31m 'spool'"
    spool.mkdir()

    printed = cli.run("aside", spool, "--yes").expect(0).stdout.decode()

    assert "\x1b" not in printed
    command = next(line for line in printed.splitlines() if line.startswith("To delete it:"))
    pasted = command.removeprefix("To delete it:").strip().replace("tui-fs", "printf '%s\\n'", 1)
    words = subprocess.run(["bash", "-c", pasted], capture_output=True, check=True).stdout
    assert words.decode().splitlines()[1] == str(next(iter(tmpfs.iterdir())))


def test_the_printed_command_deletes_it(cli: Cli, full: Path) -> None:
    """The printed command deletes what was set aside and leaves nothing."""
    record = put_aside(cli, full)

    cli.run(*record["delete_command"][0][1:], "--yes").expect(0)

    (listed,) = cli.run("aside", "--list", "--json").expect(0).array()
    assert listed["state"] == "gone"
    order = ("aside", "--undo", record["id"], "--yes")
    assert "so nothing can be put back" in refused(cli.run(*order))
    assert "There is no record" in refused(cli.run(*order), 2)


@pytest.mark.parametrize("instead", ["file", "empty", "full", "link"])
def test_what_is_now_at_the_old_place_stays(cli: Cli, full: Path, instead: str) -> None:
    """An undo does not replace what is now at the old place, and says what to do."""
    record = put_aside(cli, full)
    if instead == "file":
        full.touch()
    elif instead == "link":
        full.symlink_to(Path(record["aside"]).name)
    else:
        full.mkdir()
        if instead == "full":
            (full / "new").touch()

    sentence = refused(cli.run("aside", "--undo", record["id"], "--yes"))

    assert "There is something else at" in sentence
    assert f"mv -T {shlex.quote(str(full))}" in sentence
    assert sorted(os.listdir(record["aside"])) == ["a", "b", "c"]
    assert set(os.listdir(full.parent)) == {"spool", Path(record["aside"]).name}


@pytest.mark.parametrize("change", ["entry", "mode", "occupant"])
def test_a_twin_in_use_stays(cli: Cli, full: Path, start_python: StartPython, change: str) -> None:
    """A twin that was written into, changed or entered is not removed."""
    record = put_aside(cli, full, "--twin")
    twin = full.stat().st_ino
    if change == "entry":
        (full / "new").touch()
    elif change == "mode":
        full.chmod(0o700)
    else:
        start_python("", cwd=full)

    refused(cli.run("aside", "--undo", record["id"], "--yes"))

    assert full.stat().st_ino == twin
    assert sorted(os.listdir(record["aside"])) == ["a", "b", "c"]


@pytest.mark.parametrize(
    "arguments", [(), ("--list", "--undo", "x"), ("P", "--list"), ("--twin", "--list"), ("P", "-x")]
)
def test_arguments_that_make_no_sense(cli: Cli, arguments: tuple[str, ...]) -> None:
    """Contradicting arguments are a usage error."""
    refused(cli.run("aside", *arguments), 2)


def test_a_long_name_can_be_put_aside(cli: Cli, tmpfs: Path) -> None:
    """A name of 255 bytes that are not UTF-8 can be set aside and put back."""
    name = b"\xff" * 255
    os.mkdir(os.path.join(os.fsencode(tmpfs), name))

    record = put_aside(cli, Path(os.fsdecode(os.path.join(os.fsencode(tmpfs), name))))

    assert len(os.listdir(os.fsencode(tmpfs))[0]) <= 255
    assert "path_b64" in record
    cli.run("aside", "--undo", record["id"], "--yes").expect(0)
    assert os.listdir(os.fsencode(tmpfs)) == [name]
