"""What policy files say, which places they protect under every name, and what they forbid."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.needs import lacks, needs_root, needs_tool
from tests.unit.policies import allowed, at, never, policy_file, quiet_environment, read, refusal
from tui_fs.linux.mounts import read_mounts
from tui_fs.linux.pins import take_pin
from tui_fs.model.errors import BadInput, Refused
from tui_fs.model.paths import PathStr
from tui_fs.model.strategy import StrategyName
from tui_fs.model.target import Pin, Target
from tui_fs.safety.policy import (
    MAX_POLICY_BYTES,
    READ_ONLY_VARIABLE,
    SYSTEM_POLICY,
    Policy,
    check_policy,
    check_strategy,
    name_required_by,
    read_policy,
)
from tui_fs.strategies.registry import STRATEGIES

__all__ = ["quiet_environment"]

# What is forbidden


def test_no_policy_forbids_nothing(tmp_path: Path) -> None:
    check_policy(Policy(), at(tmp_path / "target"))
    check_strategy(Policy(), "rm")
    assert name_required_by(Policy(), 10**9) is None


def test_read_only_forbids_and_names_who_says_so(tmp_path: Path) -> None:
    policy = read(tmp_path, "read_only = true")
    assert policy.sources[0] in refusal(policy, at(tmp_path / "target"), "read-only")


@pytest.mark.parametrize(
    ("place", "word"),
    [
        ("a/b", "is"),
        ("a", "is inside"),
        (".", "is inside"),
        ("a/b/c", "contains"),
        ("a/b/not/there/yet", "contains"),
    ],
)
def test_at_in_or_above_a_place_that_stays_is_refused(
    tmp_path: Path, place: str, word: str
) -> None:
    target = at(tmp_path / "a" / "b")
    sentence = refusal(never("/elsewhere", tmp_path / place), target)
    words = f"{target.path} must never" if word == "is" else f"{target.path} {word} "
    assert words in sentence
    assert "/p.toml" in sentence


@pytest.mark.parametrize("place", ["a/bb", "a/b2/c", "a/B", "b"])
def test_beside_a_place_that_stays_is_permitted(tmp_path: Path, place: str) -> None:
    check_policy(never(tmp_path / place), at(tmp_path / "a" / "b"))
    at(tmp_path / place)
    check_policy(never(tmp_path / place), at(tmp_path / "a" / "b"))


def test_the_root_as_a_place_forbids_everything(tmp_path: Path) -> None:
    assert "is inside" in refusal(never("/"), at(tmp_path / "target"))


# What is allowed


def test_only_at_or_below_an_allowed_place(tmp_path: Path) -> None:
    spool = tmp_path / "srv" / "spool"
    policy = allowed((tmp_path / "other", spool))
    check_policy(policy, at(spool))
    check_policy(policy, at(spool / "deep" / "er"))
    for path in (spool.parent, spool.parent / "spool2", spool.parent / "spoo"):
        assert str(spool) in refusal(policy, at(path))


def test_every_list_must_permit(tmp_path: Path) -> None:
    policy = allowed((tmp_path / "a",), (tmp_path / "a" / "b", tmp_path / "c"))
    check_policy(policy, at(tmp_path / "a" / "b" / "x"))
    refusal(policy, at(tmp_path / "a" / "x"))
    refusal(policy, at(tmp_path / "c"))


def test_an_empty_list_allows_nothing(tmp_path: Path) -> None:
    assert "deletion is allowed: none" in refusal(
        read(tmp_path, "allowed = []"), at(tmp_path / "x")
    )


def test_never_is_stronger_than_allowed(tmp_path: Path) -> None:
    policy = Policy(
        never=never(tmp_path / "a" / "db").never, allowed=allowed((tmp_path / "a",)).allowed
    )
    check_policy(policy, at(tmp_path / "a" / "x"))
    refusal(policy, at(tmp_path / "a" / "db"))


# Strategies and names


def test_only_the_named_strategies_may_be_used() -> None:
    policy = Policy(sources=("/p.toml",), strategies=frozenset({"rm", "find"}))
    check_strategy(policy, StrategyName("rm"))
    with pytest.raises(Refused) as refused:
        check_strategy(policy, StrategyName("rsync"))
    assert refused.value.rule == "policy"
    assert "rsync" in refused.value.sentence
    assert "/p.toml" in refused.value.sentence
    assert "find, rm" in refused.value.advice
    with pytest.raises(Refused, match="No strategy"):
        check_strategy(Policy(strategies=frozenset()), StrategyName("rm"))


@pytest.mark.parametrize(
    ("limit", "entries", "required"),
    [(0, 0, True), (0, 1, True), (1, 1, False), (1, 2, True), (500, 500, False), (500, 501, True)],
)
def test_a_name_is_asked_for_above_the_limit(limit: int, entries: int, required: bool) -> None:
    reason = name_required_by(Policy(type_name_above_entries=limit), entries)
    assert (reason is not None) is required


def complaint(file: str) -> BadInput:
    """Return the error of a broken file: one sentence that names it, and an advice."""
    with pytest.raises(BadInput) as broken:
        read_policy((file,), known_strategies=STRATEGIES)
    assert file in broken.value.sentence
    assert broken.value.sentence.endswith(".")
    assert "Nothing is deleted" in broken.value.advice
    assert "\n" not in str(broken.value)
    assert len(broken.value.sentence) < 1000
    return broken.value


# Reading


def test_every_key_is_read(tmp_path: Path) -> None:
    file = policy_file(
        tmp_path,
        'never = ["/srv/db/", "//srv/./größe"]\nallowed = ["/srv"]\n'
        'type_name_above_entries = 500\nstrategies = ["rm", "parallel"]\nread_only = true\n',
    )
    assert read_policy((file,), known_strategies=STRATEGIES) == Policy(
        sources=(file,),
        never=(PathStr("/srv/db"), PathStr("/srv/größe")),
        allowed=((PathStr("/srv"),),),
        strategies=frozenset({"rm", "parallel"}),
        type_name_above_entries=500,
        read_only=f"the policy {file}",
    )


def test_an_empty_file_says_nothing_but_was_read(tmp_path: Path) -> None:
    file = policy_file(tmp_path, "")
    assert read_policy((file,), known_strategies=STRATEGIES) == Policy(sources=(file,))


def test_two_files_combine_to_what_both_permit(tmp_path: Path) -> None:
    permissive = (
        'never = ["/a"]\nallowed = ["/x", "/y"]\ntype_name_above_entries = 9\n'
        'strategies = ["rm", "find"]\nread_only = false'
    )
    strict = (
        'never = ["/b"]\nallowed = []\ntype_name_above_entries = 0\n'
        'strategies = ["find", "xargs"]\nread_only = true'
    )
    for first, second in ((permissive, strict), (strict, permissive)):
        policy = read(tmp_path, first, second)
        assert set(policy.never) == {"/a", "/b"}
        assert set(policy.allowed) == {("/x", "/y"), ()}
        assert policy.type_name_above_entries == 0
        assert policy.strategies == frozenset({"find"})
        assert policy.read_only is not None


def test_a_silent_file_takes_nothing_back(tmp_path: Path) -> None:
    strict = (
        'never = ["/a"]\nallowed = ["/x"]\ntype_name_above_entries = 9\n'
        "strategies = []\nread_only = true"
    )
    for contents in ((strict, "read_only = false"), ("read_only = false", strict)):
        policy = read(tmp_path, *contents)
        assert (policy.never, policy.allowed) == (("/a",), (("/x",),))
        assert (policy.strategies, policy.type_name_above_entries) == (frozenset(), 9)
        assert policy.read_only is not None


@pytest.mark.parametrize("missing", ["nothing", "nothing/policy.toml", "file/tui-fs/policy.toml"])
def test_no_file_is_no_policy(tmp_path: Path, missing: str) -> None:
    (tmp_path / "file").touch()
    assert read_policy((str(tmp_path / missing),), known_strategies=STRATEGIES) == Policy()


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("never = [", "TOML"),
        ('never = ["/a"]\nnever = ["/b"]', "TOML"),
        (b'never = ["/\xff"]', "UTF-8"),
        (b"\xff\xfen\0e\0v\0", "UTF-8"),
        ("a = " + "[" * 100_000, "TOML"),
        ("type_name_above_entries = " + "9" * 5000, "TOML"),
        ('nevr = ["/a"]', "nevr"),
        ('"ne\\nver" = ["/a"]', "ne\\nver"),
        ('[never]\n"/a" = 1', "never"),
        ("[other]", "other"),
        ('never = "/srv/db"', "never"),
        ("never = [1]", "never"),
        ('never = [["/a"]]', "never"),
        ("never = true", "never"),
        ('never = [""]', "never"),
        ('never = ["srv/db"]', '"srv/db"'),
        ('never = ["~/db"]', '"~/db"'),
        ('never = ["/srv/../db"]', '"/srv/../db"'),
        ('never = ["/srv/.."]', '"/srv/.."'),
        ('never = ["/a\\u0000b"]', "never"),
        ('never = ["x' + "y" * 10_000 + '"]', "never"),
        ('allowed = "/srv"', "allowed"),
        ('allowed = ["/srv", "spool"]', '"spool"'),
        ('strategies = "rm"', "strategies"),
        ("strategies = [true]", "strategies"),
        ('strategies = ["RM"]', '"RM"'),
        ('strategies = ["rm "]', "strategies"),
        ("type_name_above_entries = -1", "type_name_above_entries"),
        ("type_name_above_entries = true", "type_name_above_entries"),
        ("type_name_above_entries = 1.0", "type_name_above_entries"),
        ('type_name_above_entries = "5"', "type_name_above_entries"),
        ("confine = true", "confine"),
        ('confine = "off"', "confine"),
        ("read_only = 1", "read_only"),
        ('read_only = "yes"', "read_only"),
    ],
)
def test_a_broken_file_stops_everything(tmp_path: Path, content: str | bytes, named: str) -> None:
    assert named in complaint(policy_file(tmp_path, content)).sentence


def test_one_broken_file_is_not_outvoted(tmp_path: Path) -> None:
    files = [policy_file(tmp_path, text, name) for name, text in (("a", ""), ("b", "x"), ("c", ""))]
    with pytest.raises(BadInput):
        read_policy(tuple(files), known_strategies=STRATEGIES)


def test_a_fifo_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    assert "regular file" in complaint(str(tmp_path / "fifo")).sentence


def test_a_directory_and_a_device_are_no_policies(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(os.devnull)
    assert "regular file" in complaint(str(tmp_path)).sentence
    assert "regular file" in complaint(str(tmp_path / "link")).sentence


def test_a_link_to_nowhere_is_a_broken_policy(tmp_path: Path) -> None:
    (tmp_path / "policy.toml").symlink_to("/nonexistent/policy.toml")
    (tmp_path / "folder").symlink_to("/nonexistent")
    (tmp_path / "loop").symlink_to("loop")
    for name in ("policy.toml", "folder/policy.toml", "folder/a/b/policy.toml", "loop"):
        complaint(str(tmp_path / name))


def test_a_policy_in_the_place_of_its_folder_is_a_broken_policy(tmp_path: Path) -> None:
    (tmp_path / "tui-fs").write_text("never = ['/']")
    (tmp_path / "link").symlink_to("tui-fs")
    for name in ("tui-fs", "link"):
        sentence = complaint(str(tmp_path / name / "policy.toml")).sentence
        assert f"{tmp_path / name} is not a directory" in sentence


def test_a_link_to_a_policy_is_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(policy_file(tmp_path, "read_only = true"))
    assert read_policy((str(tmp_path / "link"),), known_strategies=STRATEGIES).read_only is not None


def test_an_unreadable_file_is_not_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", denied)
    assert "Permission denied" in complaint(str(tmp_path / "policy.toml")).sentence


def test_the_size_has_a_limit(tmp_path: Path) -> None:
    text = b"read_only = true\n#"
    assert read(tmp_path, text.ljust(MAX_POLICY_BYTES, b"x")).read_only is not None
    larger = policy_file(tmp_path, text.ljust(MAX_POLICY_BYTES + 1, b"x"))
    assert "1,048,576" in complaint(larger).sentence


@given(st.binary(max_size=300) | st.text(max_size=300).map(lambda t: t.encode("utf-8", "replace")))
@example(b"\xef\xbb\xbfread_only = true")
@example(b"read_only = true\r\n")
def test_any_bytes_are_a_policy_or_bad_input(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    file = policy_file(tmp_path_factory.mktemp("policy"), content)
    try:
        assert read_policy((file,), known_strategies=STRATEGIES).sources == (file,)
    except BadInput as error:
        assert file in error.sentence
        assert error.sentence.isprintable()


# The two places and the variable


def test_the_two_places_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "config" / "tui-fs"
    own.mkdir(parents=True)
    (own / "policy.toml").write_text('never = ["/own"]')
    assert SYSTEM_POLICY == "/etc/tui-fs/policy.toml"
    monkeypatch.setattr(
        "tui_fs.safety.policy.SYSTEM_POLICY", policy_file(tmp_path, 'never = ["/system"]')
    )
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    assert read_policy(known_strategies=STRATEGIES).never == ("/system", "/own")


@pytest.mark.parametrize("value", ["", "relative"])
def test_the_place_is_below_home_unless_another_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    for place in (tmp_path / "home" / ".config", tmp_path / "relative"):
        (place / "tui-fs").mkdir(parents=True)
        (place / "tui-fs" / "policy.toml").write_text(f'never = ["{place}"]')
    monkeypatch.setattr("tui_fs.safety.policy.SYSTEM_POLICY", str(tmp_path / "none"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", value)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert read_policy(known_strategies=STRATEGIES).never == (str(tmp_path / "home" / ".config"),)
    monkeypatch.setenv("HOME", "home")
    assert read_policy(known_strategies=STRATEGIES) == Policy()


@pytest.mark.parametrize("value", ["1", "0", " ", "no"])
def test_the_variable_switches_deletion_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv(READ_ONLY_VARIABLE, value)
    assert READ_ONLY_VARIABLE in refusal(
        read_policy((), known_strategies=STRATEGIES), at(tmp_path / "target"), "read-only"
    )


def test_an_empty_variable_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(READ_ONLY_VARIABLE, "")
    check_policy(read_policy((), known_strategies=STRATEGIES), at(tmp_path / "target"))


def test_one_file_that_requires_confinement_suffices(tmp_path: Path) -> None:
    required, free = tmp_path / "required.toml", tmp_path / "free.toml"
    required.write_text('confine = "always"\n')
    free.write_text('confine = "auto"\n')
    for files in ((required, free), (free, required)):
        assert read_policy(tuple(map(str, files)), known_strategies=("rm",)).confines
    assert not read_policy((str(free),), known_strategies=("rm",)).confines


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
