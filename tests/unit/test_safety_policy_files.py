"""Policy files: contents, locations and combination."""

import os
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.unit.policies import at, policy_file, quiet_environment, read, refusal
from tui_fs.model.errors import BadInput
from tui_fs.model.paths import PathStr
from tui_fs.safety.policy import (
    MAX_POLICY_BYTES,
    READ_ONLY_VARIABLE,
    SYSTEM_POLICY,
    Policy,
    check_policy,
    read_policy,
)
from tui_fs.strategies.registry import STRATEGIES

__all__ = ["quiet_environment"]


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
