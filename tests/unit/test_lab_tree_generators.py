"""Trees of the lab: what a recipe says of itself, against a naive walk of what it has made."""

import os
import resource
import subprocess
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.needs import needs_root
from tests.trees import census, chain, flat, manifest
from tests.unit.scratching import told_by_child
from tests.unit.survey_trees import TREES, Tree, grown
from tui_fs.lab.experiment import Recipe
from tui_fs.lab.shape_copy import LARGEST_BYTES, Sampled, name_of, sample
from tui_fs.lab.tree_generators import BLOCK_BYTES, Chain, Flat, Realistic, Wide, blocks_bytes
from tui_fs.model.errors import BadInput, TuiFsError


class _Ticks:
    """Adds up what it is told."""

    def __init__(self) -> None:
        self.each: list[int] = []

    def __call__(self, entries: int) -> None:
        self.each.append(entries)


def _built(recipe: Recipe, place: Path) -> _Ticks:
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
        (Flat(10, file_bytes=5_000), 10, 1),
        (Wide(7, 5), 35, 8),
        (Wide(3, 2, depth=4), 54, 40),
        (Wide(9, 4, depth=1), 4, 1),
        (Wide(0, 4), 0, 1),
        (Chain(0), 0, 1),
        (Chain(300), 0, 301),
        (Realistic(1, 500, 3_000), 500, 42),
    ],
)
def test_a_recipe_makes_as_many_names_as_it_says(
    recipe: Recipe, files: int, directories: int, tmp_path: Path
) -> None:
    # when it is built
    ticks = _built(recipe, tmp_path / "tree")
    # then a naive walk finds what was promised, and all of it was told, a bit at a time
    found = census(tmp_path / "tree")
    assert (found.files, found.directories) == (files, directories)
    assert recipe.entries == found.entries == sum(ticks.each)
    assert max(ticks.each) <= 1_000


@pytest.mark.parametrize(
    "recipe",
    [Flat(20, file_bytes=1), Flat(5, file_bytes=3 << 20), Realistic(7, 400, 20_000)],
    ids=str,
)
def test_contents_are_written_and_occupy_what_was_said(recipe: Recipe, tmp_path: Path) -> None:
    # when a tree with contents is built
    _built(recipe, tmp_path / "tree")
    # then its files are of that many blocks, and hold something
    facts = manifest(tmp_path / "tree").values()
    sizes = [one.size for one in facts if one.kind == "-"]
    assert sum(map(blocks_bytes, sizes)) == recipe.contents_bytes
    for path, _, names in os.walk(tmp_path / "tree"):
        for name in names:
            content = (Path(path) / name).read_bytes()
            assert len(content) < 100 or len(set(content)) > 10


def test_the_names_of_a_shell_loop_with_suffixes_and_with_spaces(tmp_path: Path) -> None:
    # given files of two kinds, and files with spaces in their names
    kinds = Flat(5, prefix="n", suffixes=(".log", ".txt"))
    spaced = Flat(3, prefix="two words", is_spaced=True)
    # when they are built
    _built(kinds, tmp_path / "kinds")
    _built(spaced, tmp_path / "spaced")
    # then the names are as a person expects them
    assert sorted(os.listdir(tmp_path / "kinds")) == [
        "n1.log",
        "n2.txt",
        "n3.log",
        "n4.txt",
        "n5.log",
    ]
    assert set(os.listdir(tmp_path / "spaced")) == {f"two words {n} of 3" for n in (1, 2, 3)}


def test_the_published_wide_tree_has_a_name_for_each_unlinkat_of_the_text() -> None:
    # given what was counted for 1,000 directories of 1,000 files
    # then that is how many names the recipe has
    assert Wide(1_000, 1_000).entries == 1_001_001
    assert Wide(1_000, 1_000).words == "1,000 directories with 1,000 empty files in each"


def test_a_chain_deeper_than_a_path_may_be_takes_few_descriptors(tmp_path: Path) -> None:
    tree = tmp_path / "tree"

    def made_and_sampled() -> tuple[int, list[int]]:
        # given that hardly any descriptor is left
        highest = max(int(one) for one in os.listdir("/proc/self/fd"))
        while os.dup(0) < highest:
            pass
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (os.dup(0) + 8, hard))
        # when a chain is made whose path would have 10,000 bytes
        ticks = _built(Chain(5_000), tree)
        # then it is as deep as it was to be, by the levels of its copy
        return sum(ticks.each), [one.level for one in sample(str(tree)).directories]

    try:
        made, levels = told_by_child(made_and_sampled)
    finally:
        subprocess.run(["rm", "-rf", tree], check=True)  # too deep for what clears up after tests
    assert made == 5_001
    assert levels == list(range(5_001))


@settings(max_examples=10)
@given(st.integers(), st.integers(0, 300), st.integers(0, 20_000))
def test_a_realistic_tree_is_the_same_each_time_and_within_its_bounds(
    seed: int, files: int, mean_bytes: int
) -> None:
    # given a seed
    recipe = Realistic(seed, files, mean_bytes)
    with tempfile.TemporaryDirectory() as place:
        # when its tree is built twice
        first, second = Path(place, "first"), Path(place, "second")
        _built(recipe, first)
        _built(recipe, second)
        # then both are alike in all but their times, and not larger than was said
        shapes = [
            {path: (one.kind, one.size, one.content) for path, one in manifest(tree).items()}
            for tree in (first, second)
        ]
        found = census(first)
    assert shapes[0] == shapes[1]
    assert found.entries == recipe.entries
    sizes = [size for kind, size, _ in shapes[0].values() if kind == "-"]
    assert sum(sizes) <= 2 * files * mean_bytes
    assert recipe.contents_bytes == sum(map(blocks_bytes, sizes))


def test_a_realistic_tree_has_backups_depth_and_uneven_directories(tmp_path: Path) -> None:
    # given a tree of some size
    recipe = Realistic(seed=3, files=3_000, mean_bytes=500)
    # when it is built
    _built(recipe, tmp_path / "tree")
    # then some directories are called backup, as many as it says
    walked = list(os.walk(tmp_path / "tree"))
    backups = sum(os.path.basename(path) == "backup" for path, _, _ in walked)
    assert backups == recipe.backups > 5
    # and it is several levels deep, with large and empty directories
    depths = [os.path.relpath(path, tmp_path).count("/") for path, _, _ in walked]
    fan_outs = [len(names) for _, _, names in walked]
    assert max(depths) >= 5
    assert max(fan_outs) > 5 * recipe.files_each > min(fan_outs)


def test_another_seed_gives_another_tree() -> None:
    # given two seeds
    one, other = Realistic(1, 300, 4_000), Realistic(2, 300, 4_000)
    # then what their files occupy differs
    assert one.contents_bytes != other.contents_bytes


def test_a_tree_that_is_moved_while_it_is_made_ends_the_building(tmp_path: Path) -> None:
    # given a tree whose directory is moved as soon as something is in it
    def moves(_: int) -> None:
        (tmp_path / "tree" / "1").rename(tmp_path / "elsewhere")

    (tmp_path / "tree").mkdir()
    directory = os.open(tmp_path / "tree", os.O_RDONLY | os.O_DIRECTORY)
    try:
        # when it is built, then it ends before it makes anything elsewhere
        with pytest.raises(TuiFsError, match="moved"):
            Wide(2, 498).build(directory, moves)
    finally:
        os.close(directory)
    assert sorted(os.listdir(tmp_path)) == ["elsewhere", "tree"]


def _rebuilt(copy: Sampled, place: Path) -> bytes:
    _built(copy, place)
    return os.fsencode(place)


def _shape(root: bytes) -> Counter[tuple[int, tuple[int, ...], tuple[int, ...]]]:
    """Return for each directory its level, and how long the names in it are."""
    found: Counter[tuple[int, tuple[int, ...], tuple[int, ...]]] = Counter()
    for path, below, others in os.walk(root):
        links = [name for name in below if os.path.islink(os.path.join(path, name))]
        level = os.path.relpath(path, root).count(b"/") + (path != root)
        lengths = [sorted(map(len, one)) for one in (set(below) - set(links), others + links)]
        found[level, tuple(lengths[0]), tuple(lengths[1])] += 1
    return found


@settings(max_examples=60)
@given(TREES)
def test_a_whole_copy_has_the_same_shape(tree: Tree) -> None:
    # given any tree
    with grown(tree) as root, tempfile.TemporaryDirectory() as place:
        # when its shape is taken and built
        copy = sample(os.fsdecode(root))
        built = _rebuilt(copy, Path(place, "copy"))
        # then there are as many names of the same kinds at each level
        before, after = census(Path(os.fsdecode(root))), census(Path(place, "copy"))
        assert (before.files, before.directories) == (after.files, after.directories)
        assert copy.entries == copy.seen_entries == before.entries
        # and as long, unless there are more names than such short ones can tell apart
        assert _shape(root) == _shape(built)


def test_neither_names_nor_contents_are_copied(tmp_path: Path) -> None:
    # given a file with a name and contents of one's own
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "my-secret").write_bytes(b"my secret" * 1_000)
    (tmp_path / "own" / "hole").touch()
    os.truncate(tmp_path / "own" / "hole", 1 << 30)
    # when its copy is sized
    copy = sample(str(tmp_path / "own"), is_sized=True)
    _built(copy, tmp_path / "copy")
    # then the file is as large and its name as long, and nothing else of it is there
    sizes = {name: os.stat(tmp_path / "copy" / name) for name in os.listdir(tmp_path / "copy")}
    assert {len(name) for name in sizes} == {len("my-secret"), len("hole")}
    assert "my-secret" not in sizes
    assert sorted(one.st_size for one in sizes.values()) == [0, 9_000]
    assert sum(one.st_blocks * 512 for one in sizes.values()) == copy.contents_bytes == 12_288
    assert all(not any((tmp_path / "copy" / name).read_bytes()) for name in sizes)
    # and an empty copy holds no bytes at all
    assert replace(copy, is_sized=False).contents_bytes == 0
    assert "2 empty files" in replace(copy, is_sized=False).words


def test_a_large_file_is_capped(tmp_path: Path) -> None:
    # given a file of which more is there than a copy may have
    (tmp_path / "own").mkdir()
    with open(tmp_path / "own" / "large", "wb") as file:
        os.posix_fallocate(file.fileno(), 0, LARGEST_BYTES + BLOCK_BYTES)
    # when its shape is taken, then it is no larger than that
    assert sample(str(tmp_path / "own"), is_sized=True).contents_bytes == LARGEST_BYTES


def test_of_many_directories_every_so_many_are_copied_whole(tmp_path: Path) -> None:
    # given 200 directories of 9 files
    _built(Wide(200, 9), tmp_path / "own")
    # when a quarter may be copied
    copy = sample(str(tmp_path / "own"), most_entries=500)
    _built(copy, tmp_path / "copy")
    # then about a quarter is, in whole directories, and its share is said
    assert 400 <= copy.entries <= 500
    assert {len(one.files) for one in copy.directories[1:]} == {9}
    assert census(tmp_path / "copy").entries == copy.entries
    assert f"{100 * copy.entries / 2_001:.2g} % of the 2,001 entries" in copy.words


def test_of_a_large_directory_every_so_many_files_are_copied(tmp_path: Path) -> None:
    # given three large directories, and one beside them with nothing in it
    (tmp_path / "own").mkdir()
    for number in range(3):
        flat(tmp_path / "own" / f"{number}", 1_000)
    # when a tenth may be copied
    copy = sample(str(tmp_path / "own"), most_entries=310)
    # then each has a tenth of its files
    assert [len(one.files) for one in copy.directories] == [0, 100, 100, 100]


@settings(max_examples=40)
@given(TREES, st.integers(1, 12))
def test_there_are_never_more_entries_than_may_be(tree: Tree, most: int) -> None:
    # given any tree, and few entries that may be copied
    with grown(tree) as root, tempfile.TemporaryDirectory() as place:
        copy = sample(os.fsdecode(root), most_entries=most)
        # then no more are copied, and the copy can be built
        assert 1 <= copy.entries <= most
        _built(copy, Path(place, "copy"))
        assert census(Path(place, "copy")).entries == copy.entries


def test_a_deep_chain_is_sampled_to_its_limit(tmp_path: Path) -> None:
    # given a chain that is longer than what may be copied
    chain(tmp_path / "own", 400)
    # when its shape is taken, then the way down counts as well
    copy = sample(str(tmp_path / "own"), most_entries=50)
    assert [one.level for one in copy.directories] == list(range(50))


@pytest.mark.parametrize("what", ["file", "link", "nothing"])
def test_what_is_no_directory_is_refused(what: str, tmp_path: Path) -> None:
    # given a path at which no directory stands
    if what == "file":
        (tmp_path / what).touch()
    if what == "link":
        (tmp_path / what).symlink_to(tmp_path)
    # when it is to be copied, then it is refused in a sentence
    with pytest.raises(BadInput, match="cannot be looked at"):
        sample(str(tmp_path / what))


def test_links_are_not_followed(tmp_path: Path) -> None:
    # given a tree with a link to a larger one
    flat(tmp_path / "larger", 50)
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "link").symlink_to(tmp_path / "larger")
    # when its shape is taken, then the link is a name and nothing else
    assert sample(str(tmp_path / "own")).entries == 2


def test_a_mount_is_left_out_and_told(tmp_path: Path) -> None:
    # given a tree in which something is mounted that holds more
    needs_root("a mount")
    flat(tmp_path / "larger", 50)
    mounted = tmp_path / "own" / "mounted"
    mounted.mkdir(parents=True)
    subprocess.run(["mount", "--bind", tmp_path / "larger", mounted], check=True)
    try:
        # when its shape is taken
        copy = sample(str(tmp_path / "own"))
    finally:
        subprocess.run(["umount", mounted], check=True)
    # then its directory is there and empty
    assert copy.entries == 2
    assert "1 mount not entered" in copy.words


def test_unreadable_directories_are_told() -> None:
    # given a directory that nobody may read, and a user who is not root
    with tempfile.TemporaryDirectory() as place:
        closed = Path(place, "own", "closed")
        closed.mkdir(parents=True)
        flat(closed, 3)
        closed.chmod(0)
        os.chmod(place, 0o755)
        user = os.geteuid()
        os.seteuid(user or 65_534)
        try:
            # when the shape of what holds it is taken
            copy = sample(str(closed.parent))
        finally:
            os.seteuid(user)
            closed.chmod(0o700)
    # then it is there, empty, and the words say why
    assert [(one.level, one.files) for one in copy.directories] == [(0, ()), (1, ())]
    assert "1 directory could not be read" in copy.words


@given(
    st.lists(st.tuples(st.integers(1, 10_000), st.integers(1, 20)), unique_by=lambda one: one[0])
)
def test_each_number_has_a_name_of_its_own(names: list[tuple[int, int]]) -> None:
    # given numbers, and how long their names are to be
    given_names = [name_of(number, name_bytes) for number, name_bytes in names]
    # then no two names are the same, and they are as long unless that is too short
    assert len(set(given_names)) == len(names)
    assert all(
        len(one) >= name_bytes for one, (_, name_bytes) in zip(given_names, names, strict=True)
    )
    assert name_of(35, 3) == "00z"
