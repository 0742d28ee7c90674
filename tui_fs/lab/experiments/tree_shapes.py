"""A wide tree, a chain and one large directory, deleted by every rm that is installed."""

from tui_fs.lab.experiment import (
    PIN,
    BarsView,
    CallsView,
    Counting,
    CurveView,
    Experiment,
    Pipeline,
    Place,
    Published,
    PublishedCalls,
    Scale,
    Setting,
    Step,
    TableView,
    Trial,
    View,
)
from tui_fs.lab.other_rms import UUTILS_TOOLS, uutils_rm
from tui_fs.lab.results import Measure, Results
from tui_fs.lab.shape_claims import (
    BUSYBOX,
    CHAIN,
    CLAIMS,
    FIND,
    FLAT,
    OLD,
    PLACES,
    RM,
    SHAPES,
    SIZES,
    TITLES,
    WIDE,
    growing,
    key_of,
)
from tui_fs.lab.tree_generators import Chain, Flat, Wide
from tui_fs.linux.tools import ENGINE

_ROUNDS = {Scale.SMALL: 2, Scale.PUBLISHED: 3}
_BREADTH = {Scale.SMALL: 60, Scale.PUBLISHED: 1_000}
_LEVELS = {Scale.SMALL: 3_000, Scale.PUBLISHED: 1_000_000}
_LEVELS_ON_DISK = {Scale.SMALL: 3_000, Scale.PUBLISHED: 100_000}
"""The text has its chain in memory only; on a disk a million keeps rm busy for minutes."""
_FILES = {
    Scale.SMALL: (300, 1_000, 3_000, 10_000),
    Scale.PUBLISHED: (1_000, 10_000, 100_000, 1_000_000),
}
"""Directories of growing size; the largest is the flat tree itself."""

_OLD_TOOL = "rm-7.5"
"""rm of coreutils 7.5, which had no fts yet (8.0 brought it); whoever builds it may call it so."""

_COUNTED = (RM, FIND)
_GROWING = (RM, FIND, BUSYBOX)


def _trials(scale: Scale, setting: Setting) -> tuple[Trial, ...]:
    breadth, sizes = _BREADTH[scale], _FILES[scale]
    in_memory, on_disk = _LEVELS[scale], _LEVELS_ON_DISK[scale]
    shapes: list[tuple[str, str, Wide | Chain | Flat, tuple[str, ...], tuple[Place, ...]]] = [
        (WIDE, f"{breadth:,} × {breadth:,}", Wide(breadth, breadth), tuple(TITLES), PLACES),
        (CHAIN, f"chain of {in_memory:,}", Chain(in_memory), tuple(TITLES), (Place.TMPFS,)),
        (CHAIN, f"chain of {on_disk:,}", Chain(on_disk), tuple(TITLES), (Place.HERE,)),
    ]
    for number, files in enumerate(sizes):
        shape = growing(number)
        tools = tuple(TITLES) if shape == FLAT else _GROWING
        shapes.append((shape, f"{files:,} files", Flat(files, prefix=""), tools, PLACES))
    return tuple(
        Trial(
            (_step(shape, words, tool, place, tree, setting),),
            tree,
            place,
            _ROUNDS[scale],
        )
        for shape, words, tree, tools, places in shapes
        for tool in tools
        for place in places
    )


def _step(
    shape: str, words: str, tool: str, place: Place, tree: Wide | Chain | Flat, setting: Setting
) -> Step:
    is_counted = tool in _COUNTED and shape in SHAPES and place is Place.TMPFS
    return Step(
        key_of(shape, tool, place),
        f"{TITLES[tool]}, {words}, {place}",
        (_command(tool, setting),),
        counting=Counting.CALLS if is_counted else Counting.NOTHING,
        series=f"{place}" if shape in (WIDE, CHAIN) else f"{TITLES[tool]}, {place}",
        x=float(tree.entries - 1),
    )


def _command(tool: str, setting: Setting) -> Pipeline:
    match tool:
        case "find":
            return (("find", "{tree}", "-delete"),)
        case "busybox" | "toybox":
            return ((tool, "rm", "-rf", "{tree}"),)
        case "uutils":
            return ((*uutils_rm(setting.tools), "-rf", "{tree}"),)
        case "engine":
            return ((ENGINE, "delete", "--pin", PIN, "--", "{tree}"),)
        case "old":
            return ((_OLD_TOOL, "-rf", "{tree}"),)
        case _:
            return (("rm", "-rf", "{tree}"),)


def _views(results: Results) -> tuple[View, ...]:
    times = (Measure.SECONDS, Measure.USER_S, Measure.SYSTEM_S, Measure.CPU_PERCENT)
    memory = (Measure.MICROSECONDS_PER_ENTRY, Measure.PEAK_MEMORY_BYTES, Measure.MINOR_FAULTS)
    views: list[View] = []
    for shape in SHAPES:
        keys = tuple(key_of(shape, tool, place) for place in PLACES for tool in TITLES)
        counted = (*_COUNTED, OLD) if shape != CHAIN else _COUNTED  # the text has none of a chain
        counted_keys = tuple(key_of(shape, tool, Place.TMPFS) for tool in counted)
        words = _trees_of(results, keys)
        views += [
            TableView(f"Time: {words}", keys, times),
            BarsView(f"Time: {words}", keys, Measure.SECONDS),
            TableView(f"Memory: {words}", keys, memory),
            CallsView(f"System calls: {_trees_of(results, counted_keys)}", counted_keys),
        ]
    keys = tuple(
        key_of(growing(number), tool, place)
        for tool in _GROWING
        for place in PLACES
        for number in range(SIZES)
    )
    return (
        *views,
        CurveView("Cost of a file", keys, Measure.MICROSECONDS_PER_ENTRY, "files in one directory"),
        CurveView("Memory", keys, Measure.PEAK_MEMORY_BYTES, "files in one directory"),
    )


def _trees_of(results: Results, keys: tuple[str, ...]) -> str:
    """Return in words what the steps delete: a chain is shorter on a disk."""
    steps = (results.measured[key] for key in keys if key in results.measured)
    return " and ".join(dict.fromkeys(step.plan.tree for step in steps))


_WIDE_WORDS, _CHAIN_WORDS, _FLAT_WORDS = (
    "1,000 directories of 1,000 files", "a chain of 1,000,000 directories",
    "1,000,000 files in one directory",
)  # fmt: skip
_FIGURES = (
    # shape, tool, place, what it is, then seconds, user, system, CPU and page faults
    (WIDE, RM, Place.TMPFS, _WIDE_WORDS, (3.06, 0.29, 2.75, 99, 10_834)),
    (WIDE, OLD, Place.TMPFS, _WIDE_WORDS, (2.92, 0.14, 2.76, 99, 184)),
    (WIDE, RM, Place.HERE, f"{_WIDE_WORDS}, SSD", (17.41, 0.52, 13.88, 82, 10_835)),
    (CHAIN, RM, Place.TMPFS, _CHAIN_WORDS, (19.22, 6.25, 12.88, 99, 70_976)),
    (CHAIN, OLD, Place.TMPFS, _CHAIN_WORDS, (25.43, 11.06, 14.32, 99, 79_999)),
    (FLAT, RM, Place.TMPFS, _FLAT_WORDS, (3.57, 0.38, 3.17, 99, 70_489)),
    (FLAT, OLD, Place.TMPFS, _FLAT_WORDS, (2.98, 0.14, 2.81, 99, 174)),
)
_MEASURES = (
    Measure.SECONDS, Measure.USER_S, Measure.SYSTEM_S, Measure.CPU_PERCENT, Measure.MINOR_FAULTS,
)  # fmt: skip
_CALLS = {
    (WIDE, RM, f"{_WIDE_WORDS}, i686"): "unlinkat 1001001 0 .122730 getdents64 7007 0 .005058 "
    "close 2022 0 .000126 openat 1001 0 .000064 fstat64 1017 0 .00002 read 4 0 0 open 29 12 0 "
    "execve 1 0 0 access 3 3 0 brk 510 0 0 ioctl 1 0 0 munmap 2 0 0 mprotect 4 0 0 mmap2 19 0 0 "
    "lstat64 1 0 0 fcntl64 3003 0 0 set_thread_area 1 0 0 fstatat64 1001 0 0",
    (WIDE, OLD, f"{_WIDE_WORDS}, i686"): "unlinkat 1001002 1 .08637 getdents64 10002 0 .00831 "
    "openat 2001 0 .000214 close 2021 0 .000188 fstat64 6019 0 .000089 fcntl64 6003 0 .000073 "
    "open 29 12 .000028 read 4 0 0 execve 1 0 0 lseek 1000 0 0 access 3 3 0 brk 3 0 0 ioctl 1 0 0 "
    "munmap 2 0 0 mprotect 4 0 0 mmap2 19 0 0 lstat64 1 0 0 set_thread_area 1 0 0 fstatat64 1 0 0",
    (FLAT, RM, f"{_FLAT_WORDS}, x86-64"): "unlinkat 1000001 0 .087638 getdents 976 0 .045291 "
    "brk 2134 0 .038024 read 1 0 0 open 3 0 0 close 8 0 0 fstat 4 0 0 lstat 1 0 0 mmap 9 0 0 "
    "mprotect 3 0 0 munmap 1 0 0 ioctl 1 0 0 access 1 1 0 execve 1 0 0 fcntl 3 0 0 fstatfs 1 0 0 "
    "arch_prctl 1 0 0 openat 1 0 0 newfstatat 1 0 0",
    (FLAT, OLD, f"{_FLAT_WORDS}, x86-64"): "unlinkat 1000002 1 .081223 getdents 978 0 .040887 "
    "execve 1 0 .000199 read 1 0 0 open 3 0 0 close 7 0 0 fstat 6 0 0 lstat 1 0 0 lseek 1 0 0 "
    "mmap 9 0 0 mprotect 3 0 0 munmap 1 0 0 brk 3 0 0 ioctl 1 0 0 access 1 1 0 fcntl 3 0 0 "
    "fstatfs 1 0 0 arch_prctl 1 0 0 openat 1 0 0 newfstatat 1 0 0",
}
"""By shape, tool and note: calls, errors and seconds of each."""


def _calls(table: str) -> dict[str, tuple[int, int, float | None]]:
    words = iter(table.split())
    return {
        name: (int(calls), int(errors), float(seconds))
        for name, calls, errors, seconds in zip(words, words, words, words, strict=True)
    }


EXPERIMENT = Experiment(
    name="tree-shapes",
    title="Wide, deep and flat trees, and every rm",
    question="What does the shape of a tree cost, and what does rm pay for reading a directory "
    "before it deletes?",
    source="Jim Meyering, notes on rm with fts for GNU coreutils, 2009",
    needs=(
        "rm and find",
        "busybox, toybox, uutils (uu-rm) and the native engine to compare with",
        f"rm of coreutils 7.5, called {_OLD_TOOL}, for what is said of the old rm",
    ),
    trials=_trials,
    finds_tools=("rm", "find", "busybox", "toybox", ENGINE, *UUTILS_TOOLS, _OLD_TOOL),
    published=tuple(
        Published(key_of(shape, tool, place), measure, value, f"{words}, rm of 2009")
        for shape, tool, place, words, values in _FIGURES
        for measure, value in zip(_MEASURES, values, strict=True)
    ),
    published_calls=tuple(
        PublishedCalls(key_of(shape, tool, Place.TMPFS), _calls(table), note)
        for (shape, tool, note), table in _CALLS.items()
    ),
    claims=CLAIMS,
    views=_views,
)
