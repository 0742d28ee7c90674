"""A policy's places hold under every name: links and bind mounts hide none."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.needs import lacks, needs_root, needs_tool
from tests.unit.policies import allowed, at, never, quiet_environment, refusal
from tui_fs.linux.mounts import read_mounts
from tui_fs.linux.pins import take_pin
from tui_fs.model.errors import Refused
from tui_fs.model.paths import PathStr
from tui_fs.model.target import Pin, Target
from tui_fs.safety.policy import (
    check_policy,
)

__all__ = ["quiet_environment"]


@pytest.mark.parametrize(
    ("place", "target", "word"),
    [
        ("links/later", "links/later/below", "is inside"),
        ("links/later", "real/later", "is"),
        ("links/later", "real/later/below", "is inside"),
        ("links/db", "real", "contains"),
        ("links/db", ".", "contains"),
        ("away/db", "away", "contains"),
    ],
)
def test_the_text_alone_is_enough(tmp_path: Path, place: str, target: str, word: str) -> None:
    at(tmp_path / "real")
    at(tmp_path / "away")
    (tmp_path / "links").symlink_to("real")
    (tmp_path / "away" / "db").symlink_to("../real")
    asked = Target(PathStr(os.path.normpath(tmp_path / target)), Pin(0, 0, 0))
    assert f" {word} " in refusal(never(tmp_path / place), asked)


@pytest.mark.parametrize("target", ["real", "real/db", "real/db/below", "links", "links/below"])
def test_a_place_behind_a_link_is_found(tmp_path: Path, target: str) -> None:
    at(tmp_path / "real" / "db" / "below")
    at(tmp_path / "links" / "below")
    (tmp_path / "links" / "db").symlink_to(tmp_path / "real" / "db")
    asked = at(tmp_path / target)
    if target == "links/below":
        check_policy(never(tmp_path / "links" / "db"), asked)
    else:
        refusal(never(tmp_path / "links" / "db"), asked)


def test_a_place_that_is_not_there_behind_a_link_is_found(tmp_path: Path) -> None:
    at(tmp_path / "real")
    (tmp_path / "links").symlink_to(tmp_path / "real")
    policy = never(tmp_path / "links" / "later")
    assert "contains" in refusal(policy, at(tmp_path / "real"))
    assert "is" in refusal(policy, at(tmp_path / "real" / "later"))


def test_the_same_directory_under_another_name_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "above" / "db"
    at(place)
    elsewhere = PathStr("/elsewhere/name")
    for directory in (place, place.parent):
        alias = Target(elsewhere, take_pin(str(directory)))
        assert "under another name" in refusal(never(place), alias)
        assert "under another name" in refusal(never(place / "not" / "there"), alias)
    check_policy(never(place), Target(elsewhere, at(tmp_path / "other").pin))


def test_a_target_below_an_alias_of_the_place_is_refused(tmp_path: Path) -> None:
    # A path that leads through the place by another name (a link simulates a bind mount)
    below = at(tmp_path / "db" / "below")
    (tmp_path / "alias").symlink_to(tmp_path / "db")
    asked = Target(PathStr(str(tmp_path / "alias" / "below")), below.pin)
    assert "is, under another name, inside" in refusal(never(tmp_path / "db"), asked)


def test_a_place_that_cannot_be_examined_stops_everything(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    sentence = refusal(never(tmp_path / "loop"), at(tmp_path / "target"))
    assert "cannot be examined" in sentence


_IN_NAMESPACE = """
import subprocess, sys
from tui_fs.linux.pins import take_pin
from tui_fs.model.errors import Refused
from tui_fs.model.paths import PathStr
from tui_fs.model.target import Target
from tui_fs.safety.policy import Policy, check_policy
source, mount_point, place, *targets = sys.argv[1:]
subprocess.run(["mount", "--bind", source, mount_point], check=True)
for target in targets:
    try:
        check_policy(Policy(never=(PathStr(place),)), Target(PathStr(target), take_pin(target)))
        print("permitted")
    except Refused as refused:
        print("refused")
"""


@pytest.mark.parametrize(
    ("source", "place", "target", "expected"),
    [
        ("srv/db", "srv/db", "alias/part/below", "refused"),
        ("srv", "srv/db/part", "alias/db", "refused"),
        ("srv", "srv/db", "alias/other", "permitted"),
        ("srv/db/part", "srv/db", "alias/below", "refused"),
        ("srv/db/part", "srv/db/part/below/later", "alias/below", "refused"),
        ("srv/other", "srv/db", "alias/in-other", "permitted"),
        ("elsewhere", "alias", "elsewhere/below", "refused"),
        ("elsewhere", "", "elsewhere/below", "refused"),
        ("elsewhere/below", "", "elsewhere", "refused"),
        ("srv/other", "alias/later", "elsewhere/below", "permitted"),
    ],
)
def test_bind_mounts_hide_no_place(
    tmp_path: Path, source: str, place: str, target: str, expected: str
) -> None:
    needs_root("a bind mount")
    unshare = needs_tool("unshare", package="util-linux")
    for name in ("srv/db/part/below", "srv/other/in-other", "elsewhere/below", "alias"):
        (tmp_path / name).mkdir(parents=True)
    if place == "":  # a place that contains the mount
        (tmp_path / "keep").mkdir()
    mount_point = tmp_path / ("alias" if place else "keep/inner")
    mount_point.mkdir(exist_ok=True)
    arguments = [tmp_path / source, mount_point, tmp_path / (place or "keep"), tmp_path / target]
    command = [unshare, "--mount", "--propagation", "private", "--", sys.executable, "-c"]
    run = subprocess.run(
        [*command, _IN_NAMESPACE, *map(str, arguments)], capture_output=True, text=True, check=False
    )
    if run.stderr.startswith(("mount: ", "unshare: ")):
        lacks(f"no bind mounts here ({run.stderr.strip()[-200:]}); run with CAP_SYS_ADMIN")
    assert (run.stdout.strip(), run.stderr) == (expected, "")


def test_nfs_mounts_are_not_compared_by_their_roots(tmp_path: Path) -> None:
    table = tmp_path / "mountinfo"
    text = "22 1 8:1 / / rw - ext4 r rw\n50 22 0:50 / {a} rw - {kind} s rw\n"
    text += "51 22 0:50 / {b} rw - {kind} s rw\n"
    at(tmp_path / "a" / "b")
    target = Target(PathStr(str(tmp_path / "a" / "b")), Pin(1, 1, 50))
    policy = never(tmp_path / "b")
    table.write_text(text.format(a=tmp_path / "a", b=tmp_path / "b", kind="nfs4"))
    check_policy(policy, target, read_mounts(str(table)))
    table.write_text(text.format(a=tmp_path / "a", b=tmp_path / "b", kind="ext4"))
    with pytest.raises(Refused):
        check_policy(policy, target, read_mounts(str(table)))


def test_an_allowed_place_counts_where_it_really_is(tmp_path: Path) -> None:
    at(tmp_path / "real")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    check_policy(allowed((tmp_path / "link",)), at(tmp_path / "real" / "x"))
