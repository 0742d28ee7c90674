"""Trees with names that shells, terminals or copies stumble over."""

import os
from functools import partial
from pathlib import Path

from tests.pathologies.case import INFO, WARNING, Made, Pathology, Scene, exactly
from tests.pathologies.shapes import beyond_path_max
from tests.trees import flat
from tui_fs.model.finding import Severity

_LONG_NAME_BYTES = 255
_NEARLY_PATH_MAX_BYTES = 3_900
_CROWD_FILES = 20_000

_SORTS: tuple[tuple[str, Severity, str, bytes], ...] = (
    ("newline", WARNING, "a line break", b"two\nlines"),
    ("escape", WARNING, "an escape sequence", b"\x1b]0;title\x07"),
    ("delete-character", WARNING, "the character DEL", b"rub\x7fout"),
    ("c1-control", WARNING, "a control character of two bytes (CSI)", "\u009b31m".encode()),
    ("right-to-left", WARNING, "U+202E, which turns the rest round", "\u202egnp.exe".encode()),
    ("isolate", WARNING, "U+2067, which turns the rest round", "a\u2067b".encode()),
    ("not-utf-8", INFO, "bytes that are not UTF-8", b"caf\xe9"),
    ("trailing-space", INFO, "a space at the end", b"name "),
    ("leading-space", INFO, "a space at the beginning", b" name"),
    ("leading-dash", INFO, "a dash at the beginning", b"-rf"),
)


def _weird_name(scene: Scene, *, name: bytes, is_directory: bool) -> Made:
    tree = scene.tree()
    directory = tree / "held"
    directory.mkdir()
    for ordinary in ("ordinary", "two words", "caf\u00e9", "a-b"):
        (directory / ordinary).touch()
    path = os.path.join(os.fsencode(directory), name)
    if is_directory:
        os.mkdir(path)
    else:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
    return Made(tree, None)


def _one_in_a_crowd(scene: Scene) -> Made:
    tree = scene.tree()
    flat(tree / "spool", _CROWD_FILES)
    (tree / "spool" / "-rf").touch()
    return Made(tree, tree / "spool")


def _sort(word: str, severity: Severity, part: str, name: bytes, is_directory: bool) -> Pathology:
    return Pathology(
        name=f"weird-names-{word}{'-directory' * is_directory}",
        kind="weird-names",
        severity=severity,
        title=f"a {'directory' if is_directory else 'file'} with {part} in its name",
        make=partial(_weird_name, name=name, is_directory=is_directory),
        filesystems=("tmpfs",),
    )


def _long_name(scene: Scene) -> Made:
    tree = scene.tree()
    (tree / "held").mkdir()
    Path(tree, "held", "n" * _LONG_NAME_BYTES).touch()
    return Made(tree, None, {"longest_name_bytes": exactly(_LONG_NAME_BYTES)})


NAMES = (
    *(_sort(*sort, is_directory=False) for sort in _SORTS),
    *(_sort(*sort, is_directory=True) for sort in _SORTS[:1]),
    Pathology(
        name="weird-names-in-a-crowd",
        kind="weird-names",
        severity=INFO,
        title="one name with a leading dash among 20,000",
        make=_one_in_a_crowd,
        filesystems=("ext4", "tmpfs"),
    ),
    Pathology(
        name="long-names",
        kind="long-names",
        severity=INFO,
        title="a name of 255 bytes",
        make=_long_name,
        filesystems=("ext4", "xfs", "btrfs", "tmpfs"),
    ),
    Pathology(
        name="long-names-path",
        kind="long-names",
        severity=INFO,
        title="a path of 3,900 bytes",
        make=partial(beyond_path_max, path_bytes=_NEARLY_PATH_MAX_BYTES),
        filesystems=("tmpfs",),
    ),
)
