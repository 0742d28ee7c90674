"""Cases in which the server of a file system fails."""

from collections.abc import Callable

from tests.fuse.latency import fault_of, missed, only_for, served_late
from tests.matrix.case import DONE, PARTIAL, Case, Group, Promise, Scene
from tests.trees import flat, many_directories

SERVED = "parallel"
DELAY_MS = 0.2
_FILES_EACH = 5
_ONLY_DELETING = only_for("tui-fs-engine delete")
_ALSO_SURVEYS = only_for("tui-fs-engine")
_ENGINE_READS = 4  # one, and MAX_REREADS of the engine
_ALL_GOES = Promise("All of it goes, and each entry is counted once.", (DONE,))


def _left(entries: int) -> Promise:
    stay = "1 entry stays" if entries == 1 else f"{entries} entries stay"
    sentence = (
        f"{stay}: what the server does not remove or list, and the directories above; everything "
        "else is deleted, and the failure is reported."
    )
    return Promise(sentence, (PARTIAL,), entries)


def _tree_behind(*options: str) -> Callable[[Scene], None]:
    """Return what makes a tree and starts a server with these faults."""

    def build(scene: Scene) -> None:
        target = scene.make_target()
        many_directories(target / "many", 20, 20)
        flat(target / "faulty", _FILES_EACH)
        (target / "faulty" / "file").touch()
        (target / "faulty" / "second").touch()
        flat(target / "faulty" / "inside", _FILES_EACH)
        flat(target / "alone", _FILES_EACH)
        scene.until_the_end.enter_context(served_late(scene.place, scene.place, DELAY_MS, *options))

    return build


def _passes(name: str, *options: str) -> Case:
    """Return a case of a fault that passes."""
    build = _tree_behind(*options, *_ONLY_DELETING)
    return Case(name=name, promise=_ALL_GOES, build=build, failed_names=frozenset())


def _stays(name: str, left_entries: int, failed_name: str, *options: str) -> Case:
    """Return a case of a fault that stays and makes one entry fail."""
    build = _tree_behind(*options)
    failed_names = frozenset({failed_name})
    return Case(name=name, promise=_left(left_entries), build=build, failed_names=failed_names)


_FILE, _DIRECTORY = "faulty/file", "faulty/inside"
_ENTRY_LEFT = 3  # with "faulty" and the target
_DIRECTORY_LEFT = _ENTRY_LEFT + _FILES_EACH

SERVER_FAULTS = Group(
    "The server of the file system fails (strategy parallel)",
    (
        _passes(
            "ESTALE once from the removal of two files and of a directory",
            *fault_of("file", "unlink", "ESTALE", 1),
            *fault_of("second", "unlink", "ESTALE", 1),
            *fault_of("inside", "rmdir", "ESTALE", 1),
        ),
        _passes(
            "ESTALE three times from the removal of a file",
            *fault_of("file", "unlink", "ESTALE", 3),
        ),
        _passes(
            "ESTALE once when a directory is opened and another one is read",
            *fault_of("faulty", "opendir", "ESTALE", 1),
            *fault_of("inside", "readdir", "ESTALE", 1),
        ),
        _stays(
            "ESTALE always from the removal of a file",
            _ENTRY_LEFT,
            _FILE,
            *fault_of("file", "unlink", "ESTALE"),
        ),
        _stays(
            "ESTALE always from the removal of a directory",
            _ENTRY_LEFT,
            _DIRECTORY,
            *fault_of("inside", "rmdir", "ESTALE"),
        ),
        _stays(
            "ESTALE always when a directory with 5 files is opened",
            _DIRECTORY_LEFT,
            _DIRECTORY,
            *fault_of("inside", "opendir", "ESTALE"),
            *_ALSO_SURVEYS,
        ),
        _stays(
            "ESTALE always when a directory with 5 files is read by the engine",
            _DIRECTORY_LEFT,
            _DIRECTORY,
            *fault_of("inside", "readdir", "ESTALE"),
            *_ONLY_DELETING,
        ),
        _stays(
            "EIO from the removal of a file",
            _ENTRY_LEFT,
            _FILE,
            *fault_of("file", "unlink", "EIO"),
        ),
        _stays(
            "EIO when a directory with 5 files is read",
            _DIRECTORY_LEFT,
            _DIRECTORY,
            *fault_of("inside", "readdir", "EIO"),
            *_ALSO_SURVEYS,
        ),
        _stays(
            "EBUSY from the removal of a file",
            _ENTRY_LEFT,
            _FILE,
            *fault_of("file", "unlink", "EBUSY"),
        ),
        _stays(
            "ENOENT from the removal of a file that is there",
            _ENTRY_LEFT,
            "faulty",
            *fault_of("file", "unlink", "ENOENT"),
        ),
        _stays(
            "ENOENT from the removal of a directory that is there",
            _ENTRY_LEFT,
            _DIRECTORY,
            *fault_of("inside", "rmdir", "ENOENT"),
        ),
        _stays(
            "ENOENT when a directory with 5 files is opened that is there",
            _DIRECTORY_LEFT,
            "faulty",
            *fault_of("inside", "opendir", "ENOENT"),
            *_ONLY_DELETING,
        ),
        _stays(
            "ENOENT from the removal of the empty target that is there",
            1,
            "",
            *fault_of("target", "rmdir", "ENOENT"),
        ),
        _passes(
            "ENOTEMPTY three times from the removal of an empty directory",
            *fault_of("inside", "rmdir", "ENOTEMPTY", _ENGINE_READS - 1),
        ),
        _stays(
            "ENOTEMPTY always from the removal of an empty directory",
            _ENTRY_LEFT,
            _DIRECTORY,
            *fault_of("inside", "rmdir", "ENOTEMPTY"),
        ),
        _stays(
            "ENOTEMPTY always from the removal of the empty target",
            1,
            "",
            *fault_of("target", "rmdir", "ENOTEMPTY"),
        ),
        _passes(
            "a full directory and two files are missed once, another file three times, when their "
            "directories are read",
            *missed("faulty", "inside", 1),
            *missed("faulty", "file", 1),
            *missed("inside", "file-0000003", 1),
            *missed("inside", "file-0000004", _ENGINE_READS - 1),
        ),
        _passes(
            "a full directory is missed once when the target is read",
            *missed("target", "many", 1),
        ),
        _stays(
            "a file is missed whenever the engine reads its directory",
            _ENTRY_LEFT,
            "faulty",
            *missed("faulty", "file"),
            *_ONLY_DELETING,
        ),
        _stays(
            "a directory with 5 files is missed whenever the engine reads its parent",
            _DIRECTORY_LEFT,
            "faulty",
            *missed("faulty", "inside"),
            *_ONLY_DELETING,
        ),
        _stays(
            "a directory with 5 files is missed whenever the engine reads the target",
            2 + _FILES_EACH,
            "",
            *missed("target", "alone"),
            *_ONLY_DELETING,
        ),
    ),
    (SERVED,),
)
