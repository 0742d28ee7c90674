"""What policy files say, how they combine, and what they forbid."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.needs import lacks, needs_root, needs_tool
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


@pytest.fixture(autouse=True)
def quiet_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing outside of the test switch deletion off."""
    monkeypatch.delenv(READ_ONLY_VARIABLE, raising=False)


def policy_file(tmp_path: Path, content: str | bytes, name: str = "policy.toml") -> str:
    """Write a policy and give its path."""
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def read(tmp_path: Path, *contents: str | bytes) -> Policy:
    """Read files with these contents."""
    return read_policy(
        tuple(policy_file(tmp_path, text, f"{n}.toml") for n, text in enumerate(contents))
    )


def complaint(file: str) -> BadInput:
    """Give the error of a broken file: one sentence that names it, and an advice."""
    with pytest.raises(BadInput) as broken:
        read_policy((file,))
    assert file in broken.value.sentence
    assert broken.value.sentence.endswith(".")
    assert "Nothing is deleted" in broken.value.advice
    assert "\n" not in str(broken.value)
    assert len(broken.value.sentence) < 1000
    return broken.value


def never(*places: str | Path) -> Policy:
    """Give a policy with places that must stay."""
    return Policy(sources=("/p.toml",), never=tuple(PathStr(str(place)) for place in places))


def allowed(*lists: tuple[Path, ...]) -> Policy:
    """Give a policy with lists of places that may go."""
    return Policy(allowed=tuple(tuple(PathStr(str(place)) for place in one) for one in lists))


def at(path: Path) -> Target:
    """Give the target at a directory that is made where it is missing."""
    path.mkdir(parents=True, exist_ok=True)
    return Target(PathStr(str(path)), take_pin(str(path)))


def refusal(policy: Policy, target: Target) -> str:
    """Give the sentence of a refusal, which must have an advice and the rule's name."""
    with pytest.raises(Refused) as refused:
        check_policy(policy, target)
    assert refused.value.rule == "policy"
    assert refused.value.sentence.endswith(".")
    assert refused.value.advice
    return refused.value.sentence


# Reading


def test_every_key_is_read(tmp_path: Path) -> None:
    # Given a file with every key / When read / Then each stands in the policy
    file = policy_file(
        tmp_path,
        'never = ["/srv/db/", "//srv/./größe"]\nallowed = ["/srv"]\n'
        'type_name_above_entries = 500\nstrategies = ["rm", "parallel"]\nread_only = true\n',
    )
    assert read_policy((file,)) == Policy(
        sources=(file,),
        never=(PathStr("/srv/db"), PathStr("/srv/größe")),
        allowed=((PathStr("/srv"),),),
        strategies=frozenset({"rm", "parallel"}),
        type_name_above_entries=500,
        read_only=f"the policy {file}",
    )


def test_every_strategy_may_be_named(tmp_path: Path) -> None:
    # Given all strategies there are / When read / Then none is unknown
    names = [name.value for name in StrategyName]
    assert read(tmp_path, f"strategies = {json.dumps(names)}").strategies == frozenset(names)


def test_an_empty_file_says_nothing_but_was_read(tmp_path: Path) -> None:
    # Given an empty file / When read / Then only its name is known
    file = policy_file(tmp_path, "")
    assert read_policy((file,)) == Policy(sources=(file,))


def test_two_files_combine_to_what_both_permit(tmp_path: Path) -> None:
    # Given two files that differ / When read / Then each restriction of either holds
    one = (
        'never = ["/a"]\nallowed = ["/x", "/y"]\ntype_name_above_entries = 9\n'
        'strategies = ["rm", "find"]\nread_only = false'
    )
    other = (
        'never = ["/b"]\nallowed = []\ntype_name_above_entries = 0\n'
        'strategies = ["find", "xargs"]\nread_only = true'
    )
    for first, second in ((one, other), (other, one)):
        found = read(tmp_path, first, second)
        assert set(found.never) == {"/a", "/b"}
        assert set(found.allowed) == {("/x", "/y"), ()}
        assert found.type_name_above_entries == 0
        assert found.strategies == frozenset({"find"})
        assert found.read_only is not None


def test_a_silent_file_takes_nothing_back(tmp_path: Path) -> None:
    # Given a strict file and an empty one / When read in either order / Then the strict holds
    strict = (
        'never = ["/a"]\nallowed = ["/x"]\ntype_name_above_entries = 9\n'
        "strategies = []\nread_only = true"
    )
    for contents in ((strict, "read_only = false"), ("read_only = false", strict)):
        found = read(tmp_path, *contents)
        assert (found.never, found.allowed) == (("/a",), (("/x",),))
        assert (found.strategies, found.type_name_above_entries) == (frozenset(), 9)
        assert found.read_only is not None


@pytest.mark.parametrize("missing", ["nothing", "nothing/policy.toml", "file/policy.toml"])
def test_no_file_is_no_policy(tmp_path: Path, missing: str) -> None:
    # Given no file, no folder, or a file in the folder's place / When read / Then no policy
    (tmp_path / "file").touch()
    assert read_policy((str(tmp_path / missing),)) == Policy()


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
        ("read_only = 1", "read_only"),
        ('read_only = "yes"', "read_only"),
    ],
)
def test_a_broken_file_stops_everything(tmp_path: Path, content: str | bytes, named: str) -> None:
    # Given a file with a fault / When read / Then the sentence names file and fault
    assert named in complaint(policy_file(tmp_path, content)).sentence


def test_one_broken_file_is_not_outvoted(tmp_path: Path) -> None:
    # Given a good file before and after a broken one / When read / Then it is an error
    files = [policy_file(tmp_path, text, name) for name, text in (("a", ""), ("b", "x"), ("c", ""))]
    with pytest.raises(BadInput):
        read_policy(tuple(files))


def test_a_fifo_does_not_hang(tmp_path: Path) -> None:
    # Given a FIFO without a writer / When read / Then an error at once
    os.mkfifo(tmp_path / "fifo")
    assert "regular file" in complaint(str(tmp_path / "fifo")).sentence


def test_a_directory_and_a_device_are_no_policies(tmp_path: Path) -> None:
    # Given a directory, and a link to a device / When read / Then an error
    (tmp_path / "link").symlink_to(os.devnull)
    assert "regular file" in complaint(str(tmp_path)).sentence
    assert "regular file" in complaint(str(tmp_path / "link")).sentence


def test_a_link_to_nowhere_is_a_broken_policy(tmp_path: Path) -> None:
    # Given a file or its folder that links to what is not there / When read / Then an error
    (tmp_path / "policy.toml").symlink_to("/nonexistent/policy.toml")
    (tmp_path / "folder").symlink_to("/nonexistent")
    (tmp_path / "loop").symlink_to("loop")
    for name in ("policy.toml", "folder/policy.toml", "loop"):
        complaint(str(tmp_path / name))


def test_a_link_to_a_policy_is_followed(tmp_path: Path) -> None:
    # Given a link to a good file / When read / Then it counts
    (tmp_path / "link").symlink_to(policy_file(tmp_path, "read_only = true"))
    assert read_policy((str(tmp_path / "link"),)).read_only is not None


def test_an_unreadable_file_is_not_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a file that the kernel does not open / When read / Then an error
    def denied(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", denied)
    assert "Permission denied" in complaint(str(tmp_path / "policy.toml")).sentence


def test_the_size_has_a_limit(tmp_path: Path) -> None:
    # Given a file of just the limit, and one byte more / When read / Then only the first counts
    text = b"read_only = true\n#"
    assert read(tmp_path, text.ljust(MAX_POLICY_BYTES, b"x")).read_only is not None
    larger = policy_file(tmp_path, text.ljust(MAX_POLICY_BYTES + 1, b"x"))
    assert "1,048,576" in complaint(larger).sentence


@given(st.binary(max_size=300) | st.text(max_size=300).map(lambda t: t.encode("utf-8", "replace")))
@example(b"\xef\xbb\xbfread_only = true")
@example(b"read_only = true\r\n")
@settings(deadline=None)
def test_any_bytes_are_a_policy_or_bad_input(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    # Given any bytes / When read / Then a policy, or an error that people can read
    file = policy_file(tmp_path_factory.mktemp("policy"), content)
    try:
        assert read_policy((file,)).sources == (file,)
    except BadInput as error:
        assert file in error.sentence
        assert error.sentence.isprintable()


_NAMES = st.text(st.characters(codec="utf-8", exclude_characters="/\0\x7f"), min_size=1).filter(
    lambda name: name not in (".", "..")
)


@given(st.lists(st.lists(_NAMES, max_size=4)))
@settings(deadline=None)
def test_places_are_read_name_by_name(
    tmp_path_factory: pytest.TempPathFactory, places: list[list[str]]
) -> None:
    # Given any absolute paths / When written and read / Then the same names
    paths = ["/" + "/".join(names) for names in places]
    text = f"never = {json.dumps(paths, ensure_ascii=False)}"
    found = read(tmp_path_factory.mktemp("policy"), text).never
    assert [os.fsencode(place) for place in found] == [path.encode() for path in paths]


# The two places and the variable


def test_the_two_places_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a person's own file, and one of the administrator in another place
    own = tmp_path / "config" / "tui-fs"
    own.mkdir(parents=True)
    (own / "policy.toml").write_text('never = ["/own"]')
    assert SYSTEM_POLICY == "/etc/tui-fs/policy.toml"
    monkeypatch.setattr(
        "tui_fs.safety.policy.SYSTEM_POLICY", policy_file(tmp_path, 'never = ["/system"]')
    )
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    # When the places are not given / Then both are read, the administrator's first
    assert read_policy().never == ("/system", "/own")


@pytest.mark.parametrize("value", ["", "relative"])
def test_the_place_is_below_home_unless_another_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    # Given no absolute XDG_CONFIG_HOME, and the same file there and in the home
    for place in (tmp_path / "home" / ".config", tmp_path / "relative"):
        (place / "tui-fs").mkdir(parents=True)
        (place / "tui-fs" / "policy.toml").write_text(f'never = ["{place}"]')
    monkeypatch.setattr("tui_fs.safety.policy.SYSTEM_POLICY", str(tmp_path / "none"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", value)
    # When read / Then the home's; with a home that is not absolute / Then none
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert read_policy().never == (str(tmp_path / "home" / ".config"),)
    monkeypatch.setenv("HOME", "home")
    assert read_policy() == Policy()


@pytest.mark.parametrize("value", ["1", "0", " ", "no"])
def test_the_variable_switches_deletion_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    # Given any value / When no file says anything / Then read-only, by the variable's name
    monkeypatch.setenv(READ_ONLY_VARIABLE, value)
    assert READ_ONLY_VARIABLE in refusal(read_policy(()), at(tmp_path / "target"))


def test_an_empty_variable_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given an empty value / When read / Then no policy
    monkeypatch.setenv(READ_ONLY_VARIABLE, "")
    check_policy(read_policy(()), at(tmp_path / "target"))


# What is forbidden


def test_no_policy_forbids_nothing(tmp_path: Path) -> None:
    # Given no policy / When asked / Then silence
    check_policy(Policy(), at(tmp_path / "target"))
    check_strategy(Policy(), "rm")
    assert name_required_by(Policy(), 10**9) is None


def test_read_only_forbids_and_names_who_says_so(tmp_path: Path) -> None:
    # Given read_only in a file / When asked / Then refused by that file's name
    found = read(tmp_path, "read_only = true")
    assert found.sources[0] in refusal(found, at(tmp_path / "target"))


@pytest.mark.parametrize(
    ("place", "word"),
    [
        ("a/b", "is"),
        ("a", "lies in"),
        (".", "lies in"),
        ("a/b/c", "holds"),
        ("a/b/not/there/yet", "holds"),
    ],
)
def test_at_in_or_above_a_place_that_stays_is_refused(
    tmp_path: Path, place: str, word: str
) -> None:
    # Given a target a/b, and a place around it / When asked / Then refused
    target = at(tmp_path / "a" / "b")
    sentence = refusal(never("/elsewhere", tmp_path / place), target)
    assert f"{target.path} {word} " in sentence
    assert "/p.toml" in sentence


@pytest.mark.parametrize(
    ("place", "target", "word"),
    [
        ("links/later", "links/later/below", "lies in"),
        ("links/later", "real/later", "is"),
        ("links/later", "real/later/below", "lies in"),
        ("links/db", "real", "holds"),
        ("links/db", ".", "holds"),
        ("away/db", "away", "holds"),
    ],
)
def test_the_text_alone_is_enough(tmp_path: Path, place: str, target: str, word: str) -> None:
    # Given links -> real, away/db -> real, and a target whose pin and mount are nobody's
    at(tmp_path / "real")
    at(tmp_path / "away")
    (tmp_path / "links").symlink_to("real")
    (tmp_path / "away" / "db").symlink_to("../real")
    asked = Target(PathStr(os.path.normpath(tmp_path / target)), Pin(0, 0, 0))
    # When asked / Then both the spelling and what it really is are compared
    assert f" {word} " in refusal(never(tmp_path / place), asked)


@pytest.mark.parametrize("place", ["a/bb", "a/b2/c", "a/B", "b"])
def test_beside_a_place_that_stays_is_permitted(tmp_path: Path, place: str) -> None:
    # Given a place whose name only begins alike / When asked / Then nothing
    check_policy(never(tmp_path / place), at(tmp_path / "a" / "b"))
    at(tmp_path / place)
    check_policy(never(tmp_path / place), at(tmp_path / "a" / "b"))


def test_the_root_as_a_place_forbids_everything(tmp_path: Path) -> None:
    # Given never = ["/"] / When asked / Then refused
    assert "lies in" in refusal(never("/"), at(tmp_path / "target"))


@pytest.mark.parametrize("target", ["real", "real/db", "real/db/below", "links", "links/below"])
def test_a_place_behind_a_link_is_found(tmp_path: Path, target: str) -> None:
    # Given the place links/db, which is real/db / When either is asked for / Then refused
    at(tmp_path / "real" / "db" / "below")
    at(tmp_path / "links" / "below")
    (tmp_path / "links" / "db").symlink_to(tmp_path / "real" / "db")
    asked = at(tmp_path / target)
    if target == "links/below":
        check_policy(never(tmp_path / "links" / "db"), asked)
    else:
        refusal(never(tmp_path / "links" / "db"), asked)


def test_a_place_that_is_not_there_behind_a_link_is_found(tmp_path: Path) -> None:
    # Given links -> real, and a place links/later that does not exist / Then real/later must stay
    at(tmp_path / "real")
    (tmp_path / "links").symlink_to(tmp_path / "real")
    policy = never(tmp_path / "links" / "later")
    assert "holds" in refusal(policy, at(tmp_path / "real"))
    assert "is" in refusal(policy, at(tmp_path / "real" / "later"))


def test_the_same_directory_under_another_name_is_refused(tmp_path: Path) -> None:
    # Given a target whose pin is that of the place, or of a directory above it, by another path
    place = tmp_path / "above" / "db"
    at(place)
    elsewhere = PathStr("/elsewhere/name")
    for directory in (place, place.parent):
        alias = Target(elsewhere, take_pin(str(directory)))
        # When asked / Then refused, though the text says nothing
        assert "under another name" in refusal(never(place), alias)
        assert "under another name" in refusal(never(place / "not" / "there"), alias)
    check_policy(never(place), Target(elsewhere, at(tmp_path / "other").pin))


def test_a_target_below_an_alias_of_the_place_is_refused(tmp_path: Path) -> None:
    # Given a path that leads through the place by another name (a link stands for a bind mount)
    below = at(tmp_path / "db" / "below")
    (tmp_path / "alias").symlink_to(tmp_path / "db")
    asked = Target(PathStr(str(tmp_path / "alias" / "below")), below.pin)
    # When asked / Then refused
    assert "lies, under another name, in" in refusal(never(tmp_path / "db"), asked)


def test_a_place_that_cannot_be_looked_at_stops_everything(tmp_path: Path) -> None:
    # Given a place that is a loop of links / When asked / Then refused, as nothing is known
    (tmp_path / "loop").symlink_to("loop")
    sentence = refusal(never(tmp_path / "loop"), at(tmp_path / "target"))
    assert "cannot be looked at" in sentence


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
    # Given a part of the tree that is mounted at alias too, in a mount namespace of its own
    needs_root("a bind mount")
    unshare = needs_tool("unshare", package="util-linux")
    for name in ("srv/db/part/below", "srv/other/in-other", "elsewhere/below", "alias"):
        (tmp_path / name).mkdir(parents=True)
    if place == "":  # a place in which the mount lies
        (tmp_path / "keep").mkdir()
    mount_point = tmp_path / ("alias" if place else "keep/inner")
    mount_point.mkdir(exist_ok=True)
    arguments = [tmp_path / source, mount_point, tmp_path / (place or "keep"), tmp_path / target]
    command = [unshare, "--mount", "--propagation", "private", "--", sys.executable, "-c"]
    # When asked there / Then the mount is seen through
    run = subprocess.run(
        [*command, _IN_NAMESPACE, *map(str, arguments)], capture_output=True, text=True, check=False
    )
    if run.stderr.startswith(("mount: ", "unshare: ")):
        lacks(f"no bind mounts here ({run.stderr.strip()[-200:]}); run with CAP_SYS_ADMIN")
    assert (run.stdout.strip(), run.stderr) == (expected, "")


def test_nfs_mounts_are_not_compared_by_their_roots(tmp_path: Path) -> None:
    # Given two mounts of one device, which NFS shows both with the root /
    table = tmp_path / "mountinfo"
    text = "22 1 8:1 / / rw - ext4 r rw\n50 22 0:50 / {a} rw - {kind} s rw\n"
    text += "51 22 0:50 / {b} rw - {kind} s rw\n"
    at(tmp_path / "a" / "b")
    target = Target(PathStr(str(tmp_path / "a" / "b")), Pin(1, 1, 50))
    policy = never(tmp_path / "b")
    # When asked / Then NFS's word is not taken, that of a file system is
    table.write_text(text.format(a=tmp_path / "a", b=tmp_path / "b", kind="nfs4"))
    check_policy(policy, target, str(table))
    table.write_text(text.format(a=tmp_path / "a", b=tmp_path / "b", kind="ext4"))
    with pytest.raises(Refused):
        check_policy(policy, target, str(table))


# What is allowed


def test_only_at_or_below_an_allowed_place(tmp_path: Path) -> None:
    # Given one allowed place / When asked at, below, above and beside / Then the first two
    spool = tmp_path / "srv" / "spool"
    policy = allowed((tmp_path / "other", spool))
    check_policy(policy, at(spool))
    check_policy(policy, at(spool / "deep" / "er"))
    for path in (spool.parent, spool.parent / "spool2", spool.parent / "spoo"):
        assert str(spool) in refusal(policy, at(path))


def test_every_list_must_permit(tmp_path: Path) -> None:
    # Given two lists / When asked / Then only what both hold
    policy = allowed((tmp_path / "a",), (tmp_path / "a" / "b", tmp_path / "c"))
    check_policy(policy, at(tmp_path / "a" / "b" / "x"))
    refusal(policy, at(tmp_path / "a" / "x"))
    refusal(policy, at(tmp_path / "c"))


def test_an_empty_list_allows_nothing(tmp_path: Path) -> None:
    # Given allowed = [] / When asked / Then refused
    assert "no directory at all" in refusal(read(tmp_path, "allowed = []"), at(tmp_path / "x"))


def test_an_allowed_place_counts_where_it_really_is(tmp_path: Path) -> None:
    # Given an allowed place that is a link / When asked / Then what it points to is allowed
    at(tmp_path / "real")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    check_policy(allowed((tmp_path / "link",)), at(tmp_path / "real" / "x"))


def test_never_is_stronger_than_allowed(tmp_path: Path) -> None:
    # Given a place in both lists / When asked / Then refused
    policy = Policy(
        never=never(tmp_path / "a" / "db").never, allowed=allowed((tmp_path / "a",)).allowed
    )
    check_policy(policy, at(tmp_path / "a" / "x"))
    refusal(policy, at(tmp_path / "a" / "db"))


# Strategies and names


def test_only_the_named_strategies_may_be_used() -> None:
    # Given two strategies / When asked / Then others are refused, with those two as advice
    policy = Policy(sources=("/p.toml",), strategies=frozenset({"rm", "find"}))
    check_strategy(policy, StrategyName.RM)
    with pytest.raises(Refused) as refused:
        check_strategy(policy, StrategyName.RSYNC)
    assert refused.value.rule == "policy"
    assert "rsync" in refused.value.sentence
    assert "/p.toml" in refused.value.sentence
    assert "find, rm" in refused.value.advice
    with pytest.raises(Refused, match="No strategy"):
        check_strategy(Policy(strategies=frozenset()), StrategyName.RM)


@pytest.mark.parametrize(
    ("limit", "entries", "required"),
    [(0, 0, True), (0, 1, True), (1, 1, False), (1, 2, True), (500, 500, False), (500, 501, True)],
)
def test_a_name_is_asked_for_above_the_limit(limit: int, entries: int, required: bool) -> None:
    # Given a limit / When asked / Then only larger targets, with 0 every one
    reason = name_required_by(Policy(type_name_above_entries=limit), entries)
    assert (reason is not None) is required
