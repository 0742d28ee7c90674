"""An exported survey is one that ncdu reads, and what ncdu exports is read like one's own."""

import csv
import io
import json
import os
import pty
import re
import select
import signal
import stat
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import DEADLINE_S, Cli
from tests.needs import needs_tool
from tests.trees import hostile_names, many_directories

COUNTS = ("entries", "files", "directories", "inodes", "apparent_bytes", "allocated_bytes")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Make a tree of everything: hostile names, hard links, every kind of entry, a hole."""
    root = tmp_path / "root"
    hostile_names(root)
    many_directories(root / "many", 5, 40)
    (root / "data").write_bytes(b"x" * 300_000)
    os.link(root / "data", root / "many" / "data-again")
    (root / "shared").write_bytes(b"x" * 80_000)
    os.link(root / "shared", tmp_path / "outside")
    with (root / "sparse").open("wb") as sparse:
        sparse.truncate(50_000_000)
    os.sync()
    return root


def sums(exported: bytes) -> dict[str, int]:
    """Add up an export as ncdu does: every inode with several names once."""
    waiting = [json.loads(exported.decode("utf-8", "surrogateescape"))[3]]
    seen: set[int] = set()
    sums_so_far = {"entries": 0, "directories": 0, "apparent_bytes": 0, "allocated_bytes": 0}
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            sums_so_far["directories"] += 1
            waiting += node[1:]
            node = node[0]
        sums_so_far["entries"] += 1
        if node.get("hlnkc"):
            if node["ino"] in seen:
                continue
            seen.add(node["ino"])
        sums_so_far["apparent_bytes"] += node.get("asize", 0)
        sums_so_far["allocated_bytes"] += node.get("dsize", 0)
    return sums_so_far


def test_ncdu_reads_what_is_exported(cli: Cli, tree: Path, tmp_path: Path) -> None:
    ncdu = needs_tool("ncdu", package="ncdu")
    file = tmp_path / "out.json"
    cli.run("survey", tree, "--export", file).expect(0)
    again = subprocess.run([ncdu, "-0", "-e", "-f", file, "-o-"], capture_output=True, check=True)
    own = subprocess.run([ncdu, "-0", "-e", "-x", "-o-", tree], capture_output=True, check=True)
    assert entries_of(again.stdout) == entries_of(own.stdout) == entries_of(file.read_bytes())
    # And the sums are those of the survey
    report = cli.run("survey", tree, "--json").expect(0).object()
    assert sums(again.stdout) == {name: report[name] for name in sums(again.stdout)}


def entries_of(exported: bytes) -> list[tuple[str, list[tuple[str, Any]]]]:
    """Return all entries with their fields, sorted, as directories are read in any order."""
    directories: list[tuple[str, list[tuple[str, Any]]]] = []
    waiting = [("", json.loads(exported.decode("utf-8", "surrogateescape"))[3])]
    while waiting:
        above, one = waiting.pop()
        item = one[0] if isinstance(one, list) else one
        path = f"{above}/{item['name']}"
        directories.append((path, sorted(item.items())))
        waiting += [(path, below) for below in one[1:]] if isinstance(one, list) else []
    return sorted(directories)


def test_ncdu_shows_the_same_totals(cli: Cli, tree: Path, tmp_path: Path) -> None:
    ncdu = needs_tool("ncdu", package="ncdu")
    file = tmp_path / "out.json"
    cli.run("survey", tree, "--export", file).expect(0)
    report = cli.run("survey", tree, "--json").expect(0).object()
    screen = shown_by(ncdu, "--si", "-f", str(file))
    # They are those of the survey; ncdu does not count the top as an item
    totals = re.search(r"disk usage: ([\d.]+ .?B) .*size: ([\d.]+ .?B) Items: (\d+)", screen)
    assert totals is not None, screen
    assert totals[1] == si(report["allocated_bytes"])
    assert totals[2] == si(report["apparent_bytes"])
    assert int(totals[3]) == report["entries"] - 1


def si(size_bytes: float) -> str:
    """Write a size as ncdu --si does."""
    units = ["B", "kB", "MB", "GB"]
    while size_bytes >= 1000:
        size_bytes /= 1000
        units.pop(0)
    return f"{size_bytes:.1f} {units[0]}"


def shown_by(*command: str) -> str:
    """Return the text that a full-screen program paints until it shows the number of items."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(command[0], command, {"TERM": "xterm", "COLUMNS": "120", "LINES": "30"})
    painted, text = b"", ""
    deadline = time.monotonic() + DEADLINE_S
    while not re.search(r"Items: \d+ ", text):
        assert time.monotonic() < deadline, painted
        if select.select([terminal], [], [], 0.1)[0]:
            painted += os.read(terminal, 65_536)
        plain = re.sub(rb"\x1b\[[0-9;?]*[a-zA-Z]|\x1b\(B", b" ", painted)
        text = re.sub(r"\s+", " ", plain.decode(errors="replace"))
    os.kill(pid, signal.SIGKILL)
    os.close(terminal)
    os.waitpid(pid, 0)
    return text


def test_what_ncdu_exports_is_imported(cli: Cli, tree: Path, tmp_path: Path) -> None:
    ncdu = needs_tool("ncdu", package="ncdu")
    file = tmp_path / "own.json"
    with file.open("wb") as output:
        subprocess.run([ncdu, "-0", "-e", "-x", "-o-", tree], stdout=output, check=True)
    report = cli.run("survey", tree, "--json").expect(0).object()
    subprocess.run(["gzip", "-k", file], check=True)
    for name in (file, tmp_path / "own.json.gz"):
        imported = cli.run("survey", "--import", name, "--json", "--top", "3").expect(0).object()
        for field in (*COUNTS, "path", "freed_bytes_min", "freed_bytes_max", "complete"):
            assert imported[field] == report[field], field
        assert imported["backend"] == "ncdu-import"
        assert len(imported["rankings"]["entries"]) == 3


def test_json_says_more(cli: Cli, tree: Path) -> None:
    report = cli.run("survey", tree, "--json", "--top", "2").expect(0).object()
    assert report["inodes"] == report["entries"] - 1
    assert set(report["rankings"]) == {"entries", "inodes", "allocated", "oldest", "newest"}
    fields = {
        "path", "entries", "inodes", "allocated_bytes", "index_bytes", "oldest_s", "newest_s",
    }  # fmt: skip
    for ranking in report["rankings"].values():
        assert len(ranking) == 2
        assert fields <= ranking[0].keys()
    assert isinstance(report["groups"], list)
    order = ["critical", "warning", "info"]
    severities = [order.index(finding["severity"]) for finding in report["pathologies"]]
    assert severities == sorted(severities)
    assert len(severities) >= 2


def test_text_says_the_same(cli: Cli, tree: Path) -> None:
    text = cli.run("survey", tree, "--top", "2").expect(0).stdout.decode()
    for part in ("inodes", "most entries", "most allocated", "oldest entry", "weird-names", "MiB"):
        assert part in text, part
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", text)


def test_csv_and_json_of_all_directories(cli: Cli, tree: Path, tmp_path: Path) -> None:
    report = cli.run("survey", tree, "--json").expect(0).object()
    cli.run("survey", tree, "--export", tmp_path / "out.csv").expect(0)
    cli.run("survey", tree, "--export", tmp_path / "out.json", "--format", "json").expect(0)
    _, first, *rest = csv.reader(io.StringIO((tmp_path / "out.csv").read_text(), newline=""))
    assert 1 + len(rest) == report["directories"]
    assert str(report["entries"]) in first
    whole = json.loads((tmp_path / "out.json").read_text())
    assert len(whole["tree"]) == report["directories"]
    assert whole["tree"][0]["subtree_allocated_bytes"] == report["allocated_bytes"]
    assert whole["entries"] == report["entries"]


def test_an_import_can_be_exported_as_csv(cli: Cli, tree: Path, tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    cli.run("survey", tree, "--export", file).expect(0)
    lines: list[list[tuple[str, ...]]] = []
    for source in ([tree], ["--import", file]):
        done = cli.run("survey", *source, "--export", "-", "--format", "csv").expect(0)
        rows = list(csv.DictReader(io.StringIO(done.stdout.decode(), newline="")))
        same = ("path", "path_b64", "own_entries", "index_bytes", "subtree_entries", "flags")
        lines.append([tuple(row[name] for name in (*same, "oldest_s", "newest_s")) for row in rows])
        lines[-1].append(tuple(rows[0][name] for name in rows[0] if not name.startswith("own")))
    assert lines[0] == lines[1]
    assert len(lines[0]) > 10


def test_an_export_is_private_and_replaces_nothing(cli: Cli, tree: Path, tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    done = cli.run("survey", tree, "--export", file).expect(0)
    assert done.stdout == b""
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    before = file.read_bytes()
    cli.run("survey", tree, "--export", file).expect(2).assert_one_sentence()
    assert file.read_bytes() == before
    # And with --force it is replaced; --json reports it
    report = cli.run("survey", tree, "--export", file, "--force", "--json").expect(0).object()
    assert report["schema"] == 1
    assert report["file"] == str(file)
    assert report["entries"] == before.count(b'"name"')
    # And no partial file is left next to it
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".tui")]


@pytest.mark.parametrize("kind", ["ncdu", "csv", "json"])
def test_an_export_into_the_tree_leaves_itself_out(cli: Cli, tree: Path, kind: str) -> None:
    entries = cli.run("survey", tree, "--json").expect(0).object()["entries"]
    export = ("--export", tree / "out", "--format", kind, "--json")
    # The file that is written is not counted
    assert cli.run("survey", tree, *export).expect(0).object()["entries"] == entries
    # And a file that it replaces is counted as it was, but none besides
    report = cli.run("survey", tree, *export, "--force").expect(0).object()
    assert report["entries"] == entries + 1


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        [".", "--import", "x.json"],
        ["--import", "missing.json"],
        ["--import", "/dev/null"],
        ["--import", "."],
        ["--import", ""],
        [".", "--export", "x"],
        [".", "--export", "-"],
        [".", "--export", ""],
        [".", "--export", "", "--format", "csv"],
        [".", "--export", "new/", "--format", "csv"],
        [".", "--export", "/dev/null", "--format", "csv", "--force"],
        [".", "--export", "/no/such/place.csv"],
        [".", "--export", "-", "--format", "csv", "--json"],
        [".", "--export", "x", "--format", "xml"],
        [".", "--format", "csv"],
        [".", "--force"],
        ["--import", "bad.json"],
        ["--import", "good.json", "--export", "new.json"],
    ],
)
def test_what_cannot_be_is_one_sentence(cli: Cli, tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "bad.json").write_text("[1,2,{},[{")
    (tmp_path / "good.json").write_text('[1,2,{},[{"name":"/a"}]]')
    before = sorted(tmp_path.iterdir())
    cli.run("survey", *arguments, cwd=tmp_path).expect(2).assert_one_sentence()
    assert sorted(tmp_path.iterdir()) == before


def test_what_was_not_readable_ends_with_1(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    file.write_text('[1,2,{},[{"name":"/a"},[{"name":"b","read_error":true}]]]')
    done = cli.run("survey", "--import", file, "--json").expect(1)
    assert done.object()["complete"] is False
    assert "when exported" in done.stderr


def test_the_screens_say_what_cannot_be_imported(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text("{}")
    (tmp_path / "good.json").write_text('[1,2,{},[{"name":"/a"}]]')
    for arguments in (["bad.json"], ["missing"], ["good.json", "/b"], ["good.json"]):
        done = cli.run("--import", *arguments, cwd=tmp_path).expect(2)
        done.assert_one_sentence()
    assert "terminal" in done.stderr, "the last one could be shown"


def test_names_as_they_are_do_not_reach_a_terminal(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "t" / "\x9b31m\u202e").mkdir(parents=True)
    ours, theirs = os.openpty()
    done = subprocess.run(
        [cli.program, "survey", str(tmp_path / "t"), "--export", "-", "--format", "ncdu"],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(theirs)
    assert done.returncode == 2
    assert "Redirect standard output" in done.stderr
    with pytest.raises(OSError, match="Input/output error"):
        os.read(ours, 1)
    os.close(ours)
