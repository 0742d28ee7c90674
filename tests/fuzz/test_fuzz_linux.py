"""Mount tables, pressure, patterns and versions, as the kernel and the tools never write them."""

import math
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.common import filled, fuzzed, fuzzed_rarely, mutated, tried
from tests.fuzz.samples import MOUNT_LINES, MOUNT_TEMPLATES, PRESSURE, PRESSURE_TEMPLATES
from tests.needs import needs_tool
from tui_fs.linux.fnmatch import matches_glob
from tui_fs.linux.mounts import mount_of, mounts_below, read_mounts
from tui_fs.linux.pressure import PressureMeter, io_pressure_percent
from tui_fs.linux.tools import find_tool
from tui_fs.model.errors import BadInput
from tui_fs.model.paths import is_within


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory that many inputs share."""
    return tmp_path_factory.mktemp("fuzz")


@given(
    st.lists(mutated(MOUNT_LINES) | filled(*MOUNT_TEMPLATES), min_size=1, max_size=4).map(
        b"\n".join
    )
)
@fuzzed
def test_a_damaged_mount_table_is_read_whole_or_refused(folder: Path, text: bytes) -> None:
    path = folder / "mountinfo"
    path.write_bytes(text)
    with tried():
        try:
            mounts = read_mounts(str(path))
        except BadInput as refusal:
            # ... or the whole is refused
            assert refusal.sentence.isprintable()
            return
    assert len(mounts) == sum(bool(line) for line in text.split(b"\n"))
    assert all(mount.mount_point.startswith("/") for mount in mounts)
    for mount in mounts:
        assert mount_of(mount.mount_point, mounts) is not None
        below = mounts_below(mount.mount_point, mounts)
        assert all(is_within(entry.mount_point, mount.mount_point) for entry in below)


kernel_path = st.binary(max_size=12).map(lambda name: b"/" + name.replace(b"\0", b"x"))


@given(
    root=kernel_path,
    place=kernel_path,
    source=st.binary(max_size=8).map(lambda name: name.replace(b"\0", b"-")),
    tags=st.lists(st.sampled_from([b"shared:1", b"master:22", b"unbindable"]), max_size=3),
    options=st.sampled_from([b"rw", b"ro,nosuid", b"rw,errors=remount-ro"]),
)
@fuzzed
def test_a_mount_comes_back_as_the_kernel_escapes_it(
    folder: Path, root: bytes, place: bytes, source: bytes, tags: list[bytes], options: bytes
) -> None:
    words = [b"30", b"22", b"0:5", _escaped(root), _escaped(place), options, *tags]
    line = b" ".join([*words, b"-", b"tmpfs", _escaped(source), b"rw"]) + b"\n"
    (folder / "one").write_bytes(line)
    with tried():
        (mount,) = read_mounts(str(folder / "one"))
    assert (os.fsencode(mount.root), os.fsencode(mount.mount_point)) == (root, place)
    assert os.fsencode(mount.source) == source
    assert mount.is_read_only == options.startswith(b"ro")


def _escaped(name: bytes) -> bytes:
    return b"".join(
        b"\\%03o" % character if character in b" \t\n\\#" else bytes([character])
        for character in name
    )


@given(mutated([PRESSURE]) | filled(*PRESSURE_TEMPLATES))
@fuzzed
def test_damaged_pressure_is_a_share_or_nothing(folder: Path, text: bytes) -> None:
    path = folder / "pressure"
    path.write_bytes(PRESSURE)
    moments = iter((1.0, 2.0))
    with tried():
        meter = PressureMeter(str(path), lambda: next(moments))
        path.write_bytes(text)
        for share in (io_pressure_percent(str(path)), meter.percent()):
            assert share is None or (math.isfinite(share) and 0 <= share <= 100)


letters = st.sampled_from([b"a", b"b", b"A", b".", b"-", b"]", b"[", b"*", b"?", b"\\", b"!", b"^"])
exotic = st.sampled_from(
    [b"\xff", b"\xc3\xa9", b"\n", b" ", b"[:alpha:]", b"[=a=]", b"[.-.]", b"[a-", b"[]a]", b"[!]"]
)
entry_names = (
    st.lists(letters | exotic, min_size=1, max_size=6)
    .map(b"".join)
    .map(lambda name: name.replace(b"/", b"x"))
    .filter(lambda name: name not in (b".", b".."))
)
patterns = st.lists(letters | exotic, max_size=8).map(b"".join)


@given(st.lists(entry_names, min_size=1, max_size=12, unique=True), patterns)
@fuzzed_rarely
def test_a_pattern_selects_what_find_selects(
    tmp_path_factory: pytest.TempPathFactory, names: list[bytes], pattern: bytes
) -> None:
    find = needs_tool("find", package="findutils")
    place = os.fsencode(tmp_path_factory.mktemp("names"))
    for name in names:
        os.close(os.open(os.path.join(place, name), os.O_CREAT | os.O_WRONLY))
    with tried():
        finished = subprocess.run(
            [find, place, "-mindepth", "1", "-name", pattern, "-printf", "%f\\0"],
            env={"LC_ALL": "C"},
            capture_output=True,
            check=True,
        )
        selected = set(finished.stdout.split(b"\0")[:-1])
        assert {name for name in names if matches_glob(pattern, name)} == selected


@given(patterns | st.binary(max_size=40), st.binary(max_size=255))
@fuzzed
def test_no_pattern_breaks_matching(pattern: bytes, name: bytes) -> None:
    with tried():
        try:
            matches_glob(pattern, name)
        except BadInput:
            assert b"\0" in pattern + name


@pytest.mark.parametrize("part", [b"*a", b"*?", b"*[ab]", b"**", b"a*"])
def test_a_pattern_of_many_stars_ends(part: bytes) -> None:
    with tried():
        assert not matches_glob(part * 120 + b"z", b"a" * 255)


@given(mutated([b"rm (GNU coreutils) 9.1\nCopyright", b"busybox"]))
@fuzzed_rarely
def test_any_version_is_one_line(tmp_path_factory: pytest.TempPathFactory, text: bytes) -> None:
    place = tmp_path_factory.mktemp("tool")
    (place / "said").write_bytes(text)
    (place / "tool").write_text(f'#!/bin/sh\nexec cat "{place}/said"\n')
    (place / "tool").chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(place))
        with tried():
            tool = find_tool("tool")
    assert tool is not None
    assert len(tool.version.splitlines()) <= 1
    first = [*text.decode("utf-8", "replace").splitlines(), ""][0]
    assert tool.version == first.strip()
