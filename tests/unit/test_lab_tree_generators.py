"""Trees of the lab: what a recipe says of itself, against a naive walk of what it has made."""

import os
import resource
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.trees import census, chain, flat, manifest
from tests.unit.scratching import result_of_child
from tests.unit.survey_trees import TREES, Tree, grown
from tui_fs.lab import tree_generators
from tui_fs.lab.shape_copy import MAX_FILE_BYTES, copy_shape, name_of
from tui_fs.lab.tree_generators import BLOCK_BYTES, Chain, Flat, Realistic, Wide, blocks_bytes
from tui_fs.model.errors import BadInput, TuiFsError


class _Ticks:
    """Records the numbers of entries that it is called with."""

    def __init__(self) -> None:
        self.each: list[int] = []

    def __call__(self, entries: int) -> None:
        self.each.append(entries)


def _built(recipe: tree_generators.Tree, place: Path) -> _Ticks:
    ticks = _Ticks()
    place.mkdir()
    directory = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    try:
        recipe.build(directory, ticks)
    finally:
        os.close(directory)
    return ticks


@pytest.mark.parametrize(
    ("recipe", "files", "directories"),
    [
        (Flat(0), 0, 1),
        (Flat(1_234), 1_234, 1),
        (Wide(7, 5), 35, 8),
        (Wide(0, 4), 0, 1),
        (Chain(0), 0, 1),
        (Chain(300), 0, 301),
        (Realistic(1, 500, 3_000), 500, 42),
    ],
)
def test_a_recipe_makes_as_many_names_as_it_says(
    recipe: tree_generators.Tree, files: int, directories: int, tmp_path: Path
) -> None:
    ticks = _built(recipe, tmp_path / "tree")
    counted = census(tmp_path / "tree")
    assert (counted.files, counted.directories) == (files, directories)
    assert recipe.entries == counted.entries == sum(ticks.each)
    assert max(ticks.each) <= 1_000


def test_contents_are_written_and_occupy_what_was_said(tmp_path: Path) -> None:
    recipe = Realistic(7, 400, 20_000)
    _built(recipe, tmp_path / "tree")
    facts = manifest(tmp_path / "tree").values()
    sizes = [fact.size for fact in facts if fact.kind == "-"]
    assert sum(map(blocks_bytes, sizes)) == recipe.contents_bytes
    for path, _, names in os.walk(tmp_path / "tree"):
        for name in names:
            content = (Path(path) / name).read_bytes()
            assert len(content) < 100 or len(set(content)) > 10


def test_the_names_of_a_shell_loop_with_suffixes_and_with_spaces(tmp_path: Path) -> None:
    kinds = Flat(5, prefix="n", suffixes=(".log", ".txt"))
    spaced = Flat(3, prefix="two words", is_spaced=True)
    _built(kinds, tmp_path / "kinds")
    _built(spaced, tmp_path / "spaced")
    assert sorted(os.listdir(tmp_path / "kinds")) == [
        "n1.log",
        "n2.txt",
        "n3.log",
        "n4.txt",
        "n5.log",
    ]
    assert set(os.listdir(tmp_path / "spaced")) == {f"two words {n} of 3" for n in (1, 2, 3)}


LEVELS = 2_100
"""Each of two bytes, a slash included: a path of all of them is longer than PATH_MAX (4,096)."""


@pytest.mark.slow
def test_a_chain_deeper_than_a_path_may_be_takes_few_descriptors(tmp_path: Path) -> None:
    tree = tmp_path / "tree"

    def made() -> int:
        highest = max(int(descriptor) for descriptor in os.listdir("/proc/self/fd"))
        while os.dup(0) < highest:
            pass
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (os.dup(0) + 8, hard))
        ticks = _built(Chain(LEVELS), tree)
        return sum(ticks.each)

    try:
        entries = result_of_child(made)
        levels = [level_facts.level for level_facts in copy_shape(str(tree)).copied]
    finally:
        subprocess.run(["rm", "-rf", tree], check=True)  # too deep for what clears up after tests
    assert entries == LEVELS + 1
    assert levels == list(range(LEVELS + 1))


@settings(max_examples=10)
@given(st.integers(), st.integers(0, 300), st.integers(0, 20_000))
@pytest.mark.slow
def test_a_realistic_tree_is_the_same_each_time_and_within_its_bounds(
    seed: int, files: int, mean_bytes: int
) -> None:
    recipe = Realistic(seed, files, mean_bytes)
    with tempfile.TemporaryDirectory() as place:
        first, second = Path(place, "first"), Path(place, "second")
        _built(recipe, first)
        _built(recipe, second)
        shapes = [
            {path: (fact.kind, fact.size, fact.content) for path, fact in manifest(tree).items()}
            for tree in (first, second)
        ]
        counted = census(first)
    assert shapes[0] == shapes[1]
    assert counted.entries == recipe.entries
    sizes = [size for kind, size, _ in shapes[0].values() if kind == "-"]
    assert sum(sizes) <= 2 * files * mean_bytes
    assert recipe.contents_bytes == sum(map(blocks_bytes, sizes))


def test_a_realistic_tree_has_backups_depth_and_uneven_directories(tmp_path: Path) -> None:
    recipe = Realistic(seed=3, files=3_000, mean_bytes=500)
    _built(recipe, tmp_path / "tree")
    walked = list(os.walk(tmp_path / "tree"))
    backups = sum(os.path.basename(path) == "backup" for path, _, _ in walked)
    assert backups == recipe.backups > 5
    depths = [os.path.relpath(path, tmp_path).count("/") for path, _, _ in walked]
    fan_outs = [len(names) for _, _, names in walked]
    assert max(depths) >= 5
    assert max(fan_outs) > 5 * 12 > min(fan_outs)


def test_a_tree_that_is_moved_while_it_is_made_ends_the_building(tmp_path: Path) -> None:
    def moves(_: int) -> None:
        (tmp_path / "tree" / "1").rename(tmp_path / "elsewhere")

    (tmp_path / "tree").mkdir()
    directory = os.open(tmp_path / "tree", os.O_RDONLY | os.O_DIRECTORY)
    try:
        with pytest.raises(TuiFsError, match="moved"):
            Wide(2, 498).build(directory, moves)
    finally:
        os.close(directory)
    assert sorted(os.listdir(tmp_path)) == ["elsewhere", "tree"]


def _shape(root: Path) -> Counter[tuple[int, tuple[int, ...], int]]:
    """Return for each directory its level, the lengths of its directories' names, and its files."""
    shape: Counter[tuple[int, tuple[int, ...], int]] = Counter()
    for path, below, others in os.walk(os.fsencode(root)):
        level = os.path.relpath(path, os.fsencode(root)).count(b"/") + (path != os.fsencode(root))
        links = [name for name in below if os.path.islink(os.path.join(path, name))]
        lengths = sorted(len(name) for name in set(below) - set(links))
        shape[level, tuple(lengths), len(others + links)] += 1
    return shape


@settings(max_examples=60)
@given(TREES)
@pytest.mark.slow
def test_a_whole_copy_has_the_same_shape(tree: Tree) -> None:
    with grown(tree) as root, tempfile.TemporaryDirectory() as place:
        copy = copy_shape(os.fsdecode(root))
        _built(copy, Path(place, "copy"))
        original = Path(os.fsdecode(root))
        assert copy.entries == copy.original_entries == census(original).entries
        assert _shape(original) == _shape(Path(place, "copy"))


def test_neither_names_nor_contents_are_copied(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "my-secret").write_bytes(b"my secret" * 1_000)
    (tmp_path / "own" / "hole").touch()
    os.truncate(tmp_path / "own" / "hole", 1 << 30)
    copy = copy_shape(str(tmp_path / "own"), is_sized=True)
    _built(copy, tmp_path / "copy")
    sizes = {name: os.stat(tmp_path / "copy" / name) for name in os.listdir(tmp_path / "copy")}
    # The mean length of a name is known to 4 bytes, by the records of the directory
    assert all(abs(len(name) - (len("my-secret") + len("hole")) / 2) <= 4 for name in sizes)
    assert "my-secret" not in sizes
    # A hole has no blocks; each of the two gets half of 12 KiB, in whole blocks
    assert {status.st_size for status in sizes.values()} == {6_144}
    assert sum(status.st_blocks * 512 for status in sizes.values()) == copy.contents_bytes == 16_384
    assert all(not any((tmp_path / "copy" / name).read_bytes()) for name in sizes)
    assert replace(copy, is_sized=False).contents_bytes == 0
    assert "2 empty files" in replace(copy, is_sized=False).words


def test_a_large_file_is_capped(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    with open(tmp_path / "own" / "large", "wb") as file:
        os.posix_fallocate(file.fileno(), 0, MAX_FILE_BYTES + BLOCK_BYTES)
    assert copy_shape(str(tmp_path / "own"), is_sized=True).contents_bytes == MAX_FILE_BYTES


def test_of_many_directories_a_sample_is_copied_whole(tmp_path: Path) -> None:
    _built(Wide(200, 9), tmp_path / "own")
    copy = copy_shape(str(tmp_path / "own"), max_entries=500)
    _built(copy, tmp_path / "copy")
    assert 400 <= copy.entries <= 500
    assert {level_facts.files for level_facts in copy.copied[1:]} == {9}
    assert census(tmp_path / "copy").entries == copy.entries
    assert f"{100 * copy.entries / 2_001:.2g} % of the 2,001 entries" in copy.words


def test_of_a_large_directory_a_sample_of_files_is_copied(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    for number in range(3):
        flat(tmp_path / "own" / f"{number}", 1_000)
    copy = copy_shape(str(tmp_path / "own"), max_entries=310)
    assert sorted(level_facts.files for level_facts in copy.copied) == [0, 100, 100, 100]


@settings(max_examples=40)
@given(TREES, st.integers(1, 12))
@pytest.mark.slow
def test_there_are_never_more_entries_than_may_be(tree: Tree, most: int) -> None:
    with grown(tree) as root, tempfile.TemporaryDirectory() as place:
        copy = copy_shape(os.fsdecode(root), max_entries=most)
        assert 1 <= copy.entries <= most
        _built(copy, Path(place, "copy"))
        assert census(Path(place, "copy")).entries == copy.entries


def test_a_deep_chain_is_sampled_to_its_limit(tmp_path: Path) -> None:
    chain(tmp_path / "own", 400)
    copy = copy_shape(str(tmp_path / "own"), max_entries=50)
    assert [level_facts.level for level_facts in copy.copied] == list(range(50))


@pytest.mark.parametrize("what", ["file", "link", "nothing"])
def test_what_is_no_directory_is_refused(what: str, tmp_path: Path) -> None:
    if what == "file":
        (tmp_path / what).touch()
    if what == "link":
        (tmp_path / what).symlink_to(tmp_path)
    with pytest.raises(BadInput, match="cannot be surveyed"):
        copy_shape(str(tmp_path / what))


def test_links_are_not_followed(tmp_path: Path) -> None:
    flat(tmp_path / "larger", 50)
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "link").symlink_to(tmp_path / "larger")
    assert copy_shape(str(tmp_path / "own")).entries == 2


@given(
    st.lists(st.tuples(st.integers(1, 10_000), st.integers(1, 20)), unique_by=lambda pair: pair[0])
)
def test_each_number_has_a_name_of_its_own(names: list[tuple[int, int]]) -> None:
    given_names = [name_of(number, name_bytes) for number, name_bytes in names]
    assert len(set(given_names)) == len(names)
    assert all(
        len(given_name) >= name_bytes
        for given_name, (_, name_bytes) in zip(given_names, names, strict=True)
    )
    assert name_of(35, 3) == "00z"
