"""An export is what is on the disk, and it is complete or absent."""

import io
import json
import os
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Cli
from tests.needs import needs_root
from tests.trees import HOSTILE_NAMES, chain
from tui_fs.linux.directories import MAX_OPEN_DIRECTORIES
from tui_fs.linux.mounts import MOUNTINFO
from tui_fs.model.errors import BadInput
from tui_fs.survey import ncdu_export
from tui_fs.survey.export_file import new_file, refuse_taken
from tui_fs.survey.ncdu_export import ExportHeader, NcduExport, Written

Node = Any
"""An entry as json.loads returns it: a dict, or a list that begins with one."""


def export(path: Path, *, mountinfo: str = MOUNTINFO) -> tuple[Written, bytes]:
    output = io.BytesIO()
    written = NcduExport(str(path), output, mountinfo=mountinfo).run(ExportHeader(1))
    return written, output.getvalue()


def loaded(data: bytes) -> Node:
    """Return the top directory."""
    major, minor, _, top = json.loads(data.decode("utf-8", "surrogateescape"))
    assert (major, minor) == (1, 2)
    return top


def items(node: Node) -> Iterator[dict[str, Any]]:
    """Yield the objects of all entries."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        if isinstance(current, list):
            yield current[0]
            waiting += current[1:]
        else:
            yield current


def named(node: Node, name: str) -> dict[str, Any]:
    (match,) = [item for item in items(node) if item["name"] == name]
    return match


def test_every_name_is_written_as_ncdu_writes_it(tmp_path: Path) -> None:
    hostile_names = {*HOSTILE_NAMES, b"rub\x7fout"}
    for name in hostile_names:
        (tmp_path / os.fsdecode(name)).touch()
    written, data = export(tmp_path)
    # A JSON reader gets the same bytes, and the file has those that are not ASCII unescaped
    names = {item["name"].encode("utf-8", "surrogateescape") for item in items(loaded(data))}
    assert names == {*hostile_names, os.fsencode(tmp_path)}
    assert written.entries == len(hostile_names) + 1
    assert b'"caf\xe9"' in data
    assert b'"\\u001b[2J\x9b31m"' in data
    assert data.isascii() is False
    assert not any((byte < 0x20 and byte != 0x0A) or byte == 0x7F for byte in data)


def test_fields_say_what_stat_says(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * 10_000)
    os.link(file, tmp_path / "again")
    (tmp_path / "link").symlink_to("/nowhere")
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "directory").mkdir()
    os.utime(file, (1_000_000, 1_000_000))
    os.utime(tmp_path / "fifo", (-5, -5))
    os.sync()
    top = loaded(export(tmp_path)[1])
    status = file.stat()
    assert named(top, "file") == {
        "name": "file",
        "asize": 10_000,
        "dsize": status.st_blocks * 512,
        "uid": status.st_uid,
        "gid": status.st_gid,
        "mode": status.st_mode,
        "mtime": 1_000_000,
        "ino": status.st_ino,
        "hlnkc": True,
        "nlink": 2,
    }
    assert named(top, "again")["ino"] == status.st_ino
    assert named(top, "link")["notreg"] is True
    assert named(top, "link")["asize"] == len("/nowhere")
    assert named(top, "fifo")["notreg"] is True
    assert named(top, "fifo")["mtime"] == 0, "ncdu reads no negative numbers"
    assert "notreg" not in named(top, "directory")
    assert top[0]["dev"] == status.st_dev
    assert "dev" not in named(top, "file")


def test_a_deep_chain_needs_few_descriptors(cli: Cli, tmpfs: Path) -> None:
    chain(tmpfs / "deep", 3_000)
    limited = 'ulimit -n 100; exec "$0" survey --export - --format ncdu "$1"'
    done = subprocess.run(
        ["bash", "-c", limited, cli.program, tmpfs / "deep"], capture_output=True, check=False
    )
    finished = subprocess.run(["find", tmpfs / "deep", "-printf", "."], stdout=subprocess.PIPE)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(b'"name"') == len(finished.stdout) > 3_000


def test_wide_directories_on_the_way_back_up(tmp_path: Path) -> None:
    place = tmp_path / "top"
    for _ in range(MAX_OPEN_DIRECTORIES * 2):
        (place / "sibling" / "inner").mkdir(parents=True)
        place = place / "down"
    written, data = export(tmp_path / "top")
    listed = subprocess.run(["find", tmp_path / "top"], capture_output=True, check=True).stdout
    assert written.entries == listed.count(b"\n") == len(list(items(loaded(data))))
    assert written.unreadable == 0


def test_a_directory_moved_away_meanwhile_does_not_lead_elsewhere(tmp_path: Path) -> None:
    levels = MAX_OPEN_DIRECTORIES * 2
    top = tmp_path / "top"
    (top / "zero" / Path(*["d"] * levels)).mkdir(parents=True)
    (top / "zero" / "later").mkdir()
    (tmp_path / "elsewhere" / "secret").mkdir(parents=True)
    moved = False

    def move(written: Written) -> None:
        nonlocal moved
        if not moved and written.directories > levels:
            moved = True
            half = top / "zero" / Path(*["d"] * (levels // 2))
            half.rename(tmp_path / "elsewhere" / "d")

    output = io.BytesIO()
    NcduExport(str(top), output, report=move).run(ExportHeader(1))
    assert moved
    names = [item["name"] for item in items(loaded(output.getvalue()))]
    assert "secret" not in names
    assert names.count("later") == 1


def test_what_is_mounted_is_named_and_not_entered(tmp_path: Path) -> None:
    (tmp_path / "point" / "inside").mkdir(parents=True)
    mountinfo = tmp_path / "mountinfo"
    line = f"30 1 0:30 / {tmp_path}/point rw - ext4 /dev/x rw\n"
    mountinfo.write_text(f"1 0 0:1 / / rw - ext4 /dev/x rw\n{line}")
    _, data = export(tmp_path, mountinfo=str(mountinfo))
    top = loaded(data)
    assert named(top, "point")["excluded"] == "otherfs"
    assert "inside" not in [item["name"] for item in items(top)]


def test_another_file_system_is_not_entered(tmp_path: Path) -> None:
    needs_root("mounting")
    point = tmp_path / "point"
    point.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "tui-fs-test", point], check=True)
    try:
        (point / "inside").touch()
        _, data = export(tmp_path)
    finally:
        subprocess.run(["umount", point], check=True)
    assert named(loaded(data), "point")["excluded"] == "otherfs"
    assert b"inside" not in data


def test_a_directory_that_cannot_be_opened_is_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "closed" / "inside").mkdir(parents=True)
    refuse(monkeypatch, lambda name: name == b"closed")
    written, data = export(tmp_path)
    # It is marked, and counted as not read
    assert named(loaded(data), "closed")["read_error"] is True
    assert (written.entries, written.unreadable) == (2, 1)


def refuse(monkeypatch: pytest.MonkeyPatch, is_closed: Callable[[bytes], bool]) -> None:
    """Let open fail for some names."""
    true_open = os.open

    def closed_open(path: Any, *arguments: Any, **named_arguments: Any) -> int:
        if isinstance(path, bytes) and is_closed(path):
            raise PermissionError(13, "Permission denied")
        return true_open(path, *arguments, **named_arguments)

    monkeypatch.setattr(os, "open", closed_open)


@pytest.mark.parametrize("first_names", [0, 10])
def test_a_directory_that_breaks_off_is_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first_names: int
) -> None:
    for number in range(30):
        (tmp_path / f"file-{number}").touch()
    true_scandir = os.scandir

    class Breaking:
        def __init__(self, descriptor: int) -> None:
            self._entries = true_scandir(descriptor)

        def __enter__(self) -> Iterator[Any]:
            return self._names()

        def __exit__(self, *_: object) -> None:
            self._entries.close()

        def _names(self) -> Iterator[Any]:
            for _ in range(first_names):
                yield next(self._entries)
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "scandir", Breaking)
    monkeypatch.setattr(ncdu_export, "NAMES_AT_ONCE", 10)
    target = tmp_path.parent / "breaking.json"
    with new_file(str(target), overwrites=True) as file:
        written = NcduExport(str(tmp_path), file, is_patchable=True).run(ExportHeader(1))
    top = loaded(target.read_bytes())
    assert top[0]["read_error"] is True
    assert len(top) == 1 + first_names
    assert written.unreadable == 1


def test_the_export_leaves_itself_out(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with new_file(str(tmp_path / "out.json")) as file:
        NcduExport(str(tmp_path), file, is_patchable=True).run(ExportHeader(1))
    names = {item["name"] for item in items(loaded((tmp_path / "out.json").read_bytes()))}
    assert names == {str(tmp_path), "file"}


def test_a_new_file_is_private_and_appears_whole(tmp_path: Path) -> None:
    target = tmp_path / "out"
    with new_file(str(target)) as file:
        file.write(b"all")
        # Its name is not there before the end
        assert not target.exists()
    assert target.read_bytes() == b"all"
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_nothing_is_left_of_a_file_that_failed(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), new_file(str(tmp_path / "out")):
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_overwritten_unasked(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.write_text("mine")
    with pytest.raises(BadInput, match="--force"), new_file(str(there)):
        pass
    later = tmp_path / "later"
    with pytest.raises(BadInput, match="Another process created"), new_file(str(later)) as file:
        file.write(b"ours")
        later.write_text("mine")
    assert (there.read_text(), later.read_text()) == ("mine", "mine")
    with new_file(str(there), overwrites=True) as file:
        file.write(b"ours")
    assert there.read_text() == "ours"


@pytest.mark.parametrize("what", ["directory", "link", "fifo"])
def test_only_a_regular_file_is_replaced(tmp_path: Path, what: str) -> None:
    target = tmp_path / "target"
    match what:
        case "directory":
            target.mkdir()
        case "link":
            target.symlink_to("victim")
        case _:
            os.mkfifo(target)
    with (
        pytest.raises(BadInput, match="not a regular file"),
        new_file(str(target), overwrites=True),
    ):
        pass


def test_a_missing_directory_is_said(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be written"), new_file(str(tmp_path / "no" / "out")):
        pass


def test_a_file_is_refused_at_once_where_its_directory_takes_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Root may write everywhere: a directory that is not writable is made up
    (tmp_path / "out").touch()
    refuse_taken(str(tmp_path / "out"), overwrites=True)
    monkeypatch.setattr(os, "access", lambda *_: False)
    for name in ("out", "new"):
        with pytest.raises(BadInput, match="cannot be written: Permission denied"):
            refuse_taken(str(tmp_path / name), overwrites=True)
