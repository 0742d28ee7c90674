"""Failed entries in the messages of the real tools come back byte for byte."""

import errno
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.needs import lacks, needs_root, needs_tool, needs_tools_of
from tests.trees import HOSTILE_NAMES
from tui_fs.linux.pins import take_pin
from tui_fs.linux.tools import ENGINE, find_engine
from tui_fs.model.strategy import Options, StrategyName
from tui_fs.strategies.base import (
    ComparesPins,
    Failure,
    Invocation,
    Strategy,
)
from tui_fs.strategies.registry import STRATEGIES

ENVIRONMENT = {"LC_ALL": "C"}
_TRICKY = [b"'", b"''", b"a'b\"c", b"a: b", b"a: No such file or directory", b"\\", b"\\n", b"'\n'"]
_TRICKY += [b"\\#012", b"\\\\#012", b"#", b") failed: (1)", b"x) failed: x (13)", b"$'\\n'", b"' '"]
_TRICKY += [bytes([byte]) for byte in range(1, 256) if byte not in b"/."]
_TRICKY += [b"x" + bytes([byte]) + b"1" for byte in range(1, 256) if byte != 0x2F]
NAMES = sorted({*HOSTILE_NAMES, *_TRICKY})

ANY_NAME = (
    st.one_of(
        st.binary(min_size=1, max_size=20),
        st.text(st.sampled_from("'\"\\ \n:$`a1(#)é"), min_size=1).map(str.encode),
    )
    .map(lambda name: name.replace(b"/", b"-").replace(b"\0", b"-"))
    .filter(lambda name: name not in (b".", b".."))
)


def messages(argv: list[str | bytes], directory: str | Path) -> list[bytes]:
    """Run a tool as the launcher does and return the lines it complains in."""
    finished = subprocess.run(
        argv, cwd=directory, env=ENVIRONMENT, capture_output=True, check=False
    )
    return finished.stderr.split(b"\n")[:-1]


def failures(strategy: StrategyName, lines: list[bytes]) -> list[Failure]:
    """Return the failures that the strategy reads in these lines; all lines must be."""
    failed = [STRATEGIES[strategy].parse_error(line) for line in lines]
    assert None not in failed, [
        line for line, failure in zip(lines, failed, strict=True) if not failure
    ]
    return [failure for failure in failed if failure is not None]


def _is_quoted_rightly(name: bytes) -> bool:
    """Return whether gnulib quotes it rightly: b"\\1'" loses its $ when something follows."""
    return b"'" not in name or 0x20 <= name[0] < 0x7F


@pytest.mark.parametrize(
    ("tool", "package", "before"), [("rm", "coreutils", b""), ("find", "findutils", b"./")]
)
@pytest.mark.slow
def test_names_in_messages_come_back(tool: str, package: str, before: bytes) -> None:
    path = needs_tool(tool, package=package)

    @given(st.lists(ANY_NAME, min_size=1, max_size=30, unique=True))
    @example(NAMES)
    @settings(max_examples=80)
    def come_back(names: list[bytes]) -> None:
        # Names that do not exist
        paths = [before + name for name in names if tool == "find" or _is_quoted_rightly(name)]
        with tempfile.TemporaryDirectory() as nowhere:
            lines = messages([path, *([b"--"] if tool == "rm" else []), *paths], nowhere)
        failed = failures(StrategyName(tool), lines if paths else [])
        assert [os.fsencode(failure.path) for failure in failed] == paths
        operation = {"rm": "remove", "find": "read"}[tool]
        assert {(failure.operation, failure.error) for failure in failed} <= {
            (operation, errno.ENOENT),
            (operation, errno.ENAMETOOLONG),
        }

    come_back()


@pytest.fixture
def undeletable(tmp_path: Path) -> Iterator[Path]:
    """Yield a directory `t` that holds one, `d`, from which no name can be removed."""
    directory = tmp_path / "t" / "d"
    directory.mkdir(parents=True)
    for name in NAMES:
        with open(os.path.join(os.fsencode(directory), name), "wb"):
            pass
    needs_root("making a directory immutable")
    chattr = needs_tool("chattr", package="e2fsprogs")
    frozen = subprocess.run([chattr, "+i", directory], capture_output=True, check=False)
    if frozen.returncode != 0:
        lacks(f"{tmp_path} has no immutable flag; enable it with: TMPDIR on ext4, xfs or btrfs")
    yield tmp_path / "t"
    subprocess.run([chattr, "-i", directory], check=True)


@pytest.mark.parametrize("name", STRATEGIES)
def test_undeletable_names_come_back_from_every_tool(
    undeletable: Path, tmp_path: Path, name: StrategyName
) -> None:
    strategy: Strategy = STRATEGIES[name]
    packages = {"rsync": "rsync", "find": "findutils", "xargs": "findutils"}
    needs_tools_of(name)
    tools = {
        tool: needs_tool(tool, package=packages.get(tool, "coreutils"))
        for tool in strategy.tools
        if tool != ENGINE
    }
    tools[ENGINE] = find_engine() or ""
    empty = tmp_path / "empty"
    empty.mkdir()
    reported: set[tuple[bytes, int]] = set()
    steps = strategy.steps(Invocation((str(undeletable),), Options(), tools, str(empty)))
    if isinstance(strategy, ComparesPins):
        steps = strategy.pinned(steps, [take_pin(str(undeletable))])
    for step in steps:
        piped = b""
        for argv in step:
            finished = subprocess.run(
                argv, input=piped, env=ENVIRONMENT, capture_output=True, check=False
            )
            piped = finished.stdout
            lines = finished.stderr.split(b"\n") + piped.split(b"\n")
            for line in lines:
                read = strategy.parse_error(line) or strategy.parse_output(line)
                if isinstance(read, Failure):
                    path = os.path.join(os.fsencode(undeletable), os.fsencode(read.path))
                    reported.add((path, read.error))
    directory = os.path.join(os.fsencode(undeletable), b"d")
    expected = {(os.path.join(directory, raw_name), errno.EPERM) for raw_name in NAMES}
    assert {pair for pair in reported if pair[0].startswith(directory + b"/")} == expected


@pytest.mark.parametrize(
    ("name", "line", "failure"),
    [
        ("rm", b"rm: cannot remove 't/d/a': Operation not permitted", (b"t/d/a", "remove", 1)),
        ("rm", b"/usr/bin/rm: cannot remove 'a: b': Is a directory", (b"a: b", "remove", 21)),
        ("rm", b'rm: cannot remove "it\'s": Permission denied', (b"it's", "remove", 13)),
        ("rm", b"rm: cannot remove 'a'$'\\n''b': Permission denied", (b"a\nb", "remove", 13)),
        ("rm", b"rm: cannot remove ''$'\\377\\001': Permission denied", (b"\xff\1", "remove", 13)),
        ("rm", b"rm: cannot remove 'it'\\''s'$'\\t': Permission denied", (b"it's\t", "remove", 13)),
        ("rm", b"rm: cannot remove 'x': Melted", (b"x", "remove", 0)),
        ("rm", b"rm: cannot open directory 'x': Permission denied", (b"x", "open directory", 13)),
        ("rm", b"rm: skipping 'x', since it's on a different device", (b"x", "enter", 18)),
        ("rm", b"rm: skipping x, since it's on a different device", None),
        ("rm", b"", None),
        (
            "find",
            b"find: cannot delete 't/a\\nb': Operation not permitted",
            (b"t/a\nb", "delete", 1),
        ),
        ("find", b"find: cannot delete 't/it\\'s': Is a directory", (b"t/it's", "delete", 21)),
        ("find", b"find: 't/\\377\\\\': Permission denied", (b"t/\xff\\", "read", 13)),
        ("find", b"find: cannot delete 't': Directory not empty", (b"t", "delete", 39)),
        ("xargs", b"rm: cannot remove 'a'$'\\n''b': Permission denied", (b"a\nb", "remove", 13)),
        ("xargs", b"/bin/find: 'a\\nb': Permission denied", (b"a\nb", "read", 13)),
        ("xargs", b"xargs: /bin/rm: terminated by signal 9", None),
        (
            "rsync",
            b"rsync: [generator] delete_file: unlink(d/a\\#134#012b) failed: "
            b"Operation not permitted (1)",
            (b"d/a\\#012b", "unlink", 1),
        ),
        (
            "rsync",
            b"rsync: delete_file: rmdir(caf\\#303\\#251) failed: Permission denied (13)",
            ("café".encode(), "rmdir", 13),
        ),
        (
            "rsync",
            b'rsync: [receiver] opendir "/t/d) x" failed: Permission denied (13)',
            (b"/t/d) x", "opendir", 13),
        ),
        (
            "rsync",
            b'rsync: [generator] readdir("/t/d(1"): Input/output error (5)',
            (b"/t/d(1", "readdir", 5),
        ),
        (
            "rsync",
            b'rsync: [generator] readlink_stat("/t/f") failed: Input/output error (5)',
            (b"/t/f", "readlink_stat", 5),
        ),
        ("rmtree", b"rmtree: unlink: 13: /t/a\\\\b\\nc: 7", (b"/t/a\\b\nc: 7", "unlink", 13)),
        ("rmtree", b"rmtree: recursion: 0: /t", (b"/t", "recursion", 0)),
        ("rmtree", b"Traceback (most recent call last):", None),
        (
            "rsync",
            b"rsync error: some files/attrs were not transferred (see previous errors) (code 23)",
            None,
        ),
    ],
)
def test_recorded_messages_are_read(
    name: str, line: bytes, failure: tuple[bytes, str, int] | None
) -> None:
    read = STRATEGIES[StrategyName(name)].parse_error(line)
    parsed = None if read is None else (os.fsencode(read.path), read.operation, read.error)
    assert parsed == failure


def test_rsync_reports_directories_that_stay_on_standard_output() -> None:
    read = STRATEGIES[StrategyName("rsync")].parse_output(
        b"cannot delete non-empty directory: d\\#012x"
    )
    assert read == Failure(read.path, "rmdir", errno.ENOTEMPTY)  # type: ignore[union-attr]
    assert isinstance(read, Failure)
    assert read.path == "d\nx"
