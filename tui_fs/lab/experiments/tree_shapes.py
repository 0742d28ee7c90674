"""A wide tree, a chain and one large directory, deleted by every rm that is installed."""

import math
import statistics
from collections.abc import Iterator, Mapping

from tui_fs.lab.experiment import (
    CallsView,
    Claim,
    Counting,
    Experiment,
    Judgement,
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
    judged,
)
from tui_fs.lab.experiments.rivals import DELETING, OURS, RM, UUTILS, UUTILS_TOOLS, installed
from tui_fs.lab.figures import shown
from tui_fs.lab.results import Measure, NotMeasured, Results
from tui_fs.lab.tree_generators import Chain, Flat, Tree, Wide, directory_reads
from tui_fs.linux.tools import ENGINE
from tui_fs.model.paths import PathStr
from tui_fs.model.survey import Survey, Totals
from tui_fs.model.units import count
from tui_fs.strategies.fts import FTS_ENTRIES_AT_ONCE
from tui_fs.strategies.prediction import Work
from tui_fs.strategies.registry import REFERENCE, STRATEGIES

WIDE, CHAIN, FLAT = "wide", "chain", "flat"
SHAPES = (WIDE, CHAIN, FLAT)
PLACES = (Place.TMPFS, Place.HERE)
FIND, BUSYBOX = "find", "busybox"
_TOOLS: Mapping[str, tuple[str, Pipeline]] = {
    **{tool: DELETING[tool] for tool in (RM, FIND, BUSYBOX)},
    "toybox": ("toybox rm", (("toybox", "rm", "-rf", "{tree}"),)),
    **{tool: DELETING[tool] for tool in (UUTILS, OURS)},
}
SIZES = 4
"""Number of directories of growing size; the largest is the flat tree."""

_CONSTANT_CALLS = 100
"""The text counts 40 that do not depend on the tree: loading the program, opening, closing."""

_PAGE_BYTES = 4_096
_MIN_NAME_BYTES = 100
"""A name in memory takes 288 bytes on x86-64 in the text."""

_ALIKE_FACTOR = 1.5
_MOST_SHARE = 0.75


def key_of(shape: str, tool: str, place: Place) -> str:
    """Return the key of a step."""
    return f"{shape}-{tool}-{place}"


def growing(number: int) -> str:
    """Return the shape of the directory of that size; the largest is the flat tree."""
    return FLAT if number == SIZES - 1 else f"growing-{number + 1}"


def expected_reads(shape: str, entries: int) -> int:
    """Return the calls of getdents64 that the cost model expects of rm.

    Args:
        entries: of the tree, its own name included.
    """
    below = entries - 1
    if shape == WIDE:  # n directories of n files: n + n * n
        breadth = (math.isqrt(4 * below + 1) - 1) // 2
        directories = full = breadth + 1
        reads = directories * directory_reads(breadth)
    elif shape == CHAIN:
        directories, full = entries, below
        reads = full * directory_reads(1) + directory_reads(0)
    else:
        directories = full = 1
        reads = directory_reads(below)
    survey = Survey(
        PathStr("/tree"),
        Totals(files=entries - directories, directories=directories),
        non_empty_directories=full,
        directory_reads=reads,
    )
    return STRATEGIES[REFERENCE].predicted_calls(Work(survey)).calls["getdents64"]


def _rm_keys() -> Iterator[tuple[str, str]]:
    return ((shape, key_of(shape, RM, Place.TMPFS)) for shape in SHAPES)


def _one_unlink_each(results: Results) -> Judgement:
    parts, holds = [], True
    for shape, key in _rm_keys():
        made, names = results.calls(key, "unlinkat"), results.plan(key).entries
        holds = holds and made.calls == names and not made.errors
        parts.append(f"{shape}: {count(made.calls)} unlinkat for {count(names)} names")
    return judged(holds, "; ".join(parts))


def _nothing_else(results: Results) -> Judgement:
    key = key_of(FLAT, RM, Place.TMPFS)
    known = sum(results.calls(key, name).calls for name in ("unlinkat", "getdents64", "brk"))
    others = results.total_calls(key) - known
    names = results.plan(key).entries
    return judged(
        others <= _CONSTANT_CALLS, f"{count(others)} other calls for {count(names)} names"
    )


def _reads_by_buffer(results: Results) -> Judgement:
    parts, holds = [], True
    for shape, key in _rm_keys():
        made = results.calls(key, "getdents64").calls
        expected = expected_reads(shape, results.plan(key).entries)
        holds = holds and abs(made - expected) <= max(2, expected // 100)
        parts.append(f"{shape}: {count(made)}, expected {count(expected)}")
    reason = "Today each read returns 32 KiB, and each directory with entries is read once more."
    return judged(holds, "; ".join(parts), reason)


def _asks_for_memory(results: Results) -> Judgement:
    key = key_of(FLAT, RM, Place.TMPFS)
    moves = results.calls(key, "brk").calls
    return judged(moves > 10, f"{count(moves)} brk for {count(results.plan(key).entries)} names")


def _bytes_per_name(results: Results, tool: str) -> float:
    """Return the bytes of a further name, from page faults, up to what fts reads at once."""
    keys = [key_of(growing(number), tool, Place.TMPFS) for number in range(SIZES)]
    sizes = {key: results.plan(key).entries - 1 for key in keys}
    first, *_, last = [key for key in keys if sizes[key] <= FTS_ENTRIES_AT_ONCE]
    faults = results.median(last, Measure.MINOR_FAULTS) - results.median(
        first, Measure.MINOR_FAULTS
    )
    return faults * _PAGE_BYTES / (sizes[last] - sizes[first])


def _keeps_names(results: Results) -> Judgement:
    name_bytes = _bytes_per_name(results, RM)
    return judged(name_bytes >= _MIN_NAME_BYTES, f"{name_bytes:.0f} bytes for each further name")


def _keeps_all_names(results: Results) -> Judgement:
    less, more = (key_of(growing(number), RM, Place.TMPFS) for number in (SIZES - 2, SIZES - 1))
    if results.plan(more).entries <= FTS_ENTRIES_AT_ONCE:
        raise NotMeasured(f"Visible only above {count(FTS_ENTRIES_AT_ONCE)} names in one directory")
    sizes = [results.plan(key).entries - 1 for key in (less, more)]
    peaks = [results.median(key, Measure.PEAK_MEMORY_BYTES) for key in (less, more)]
    parts = [
        f"{shown(Measure.PEAK_MEMORY_BYTES, peak)} for {count(size)} names"
        for peak, size in zip(peaks, sizes, strict=True)
    ]
    holds = peaks[1] / peaks[0] >= sizes[1] / sizes[0] / 2
    reason = f"Today fts reads at most {count(FTS_ENTRIES_AT_ONCE)} names at a time."
    return judged(holds, "; ".join(parts), "" if holds else reason)


def _one_by_one(results: Results) -> Judgement:
    name_bytes = _bytes_per_name(results, BUSYBOX)
    reason = "busybox rm represents the old rm: it also deletes each name as soon as it is read."
    return judged(
        name_bytes < _MIN_NAME_BYTES, f"{name_bytes:.0f} bytes for each further name", reason
    )


def _chain_goes(results: Results) -> Judgement:
    did, did_not = [], []
    for tool, (title, _) in _TOOLS.items():
        key = key_of(CHAIN, tool, Place.TMPFS)
        if results.has(key):
            did.append(f"{title} {shown(Measure.SECONDS, results.median(key))}")
        elif key in results.measured and results.measured[key].failed:
            did_not.append(title)
    is_known = results.has(key_of(CHAIN, RM, Place.TMPFS)) or _TOOLS[RM][0] in did_not
    if not is_known:
        results.median(key_of(CHAIN, RM, Place.TMPFS))  # NotMeasured with the reason
    words = [f"Deleted by {', '.join(did)}" if did else "", f"not by {', '.join(did_not)}"]
    here = "; ".join(words if did_not else words[:1])
    reason = "Tools that use the whole path of each entry fail at 4,096 bytes." if did_not else ""
    return judged(_TOOLS[RM][0] not in did_not, here, reason)


def _in_the_kernel(results: Results) -> Judgement:
    parts, holds = [], True
    for shape in (WIDE, FLAT):
        key = key_of(shape, RM, Place.TMPFS)
        user_s, system_s = (
            results.median(key, measure) for measure in (Measure.USER_S, Measure.SYSTEM_S)
        )
        if user_s + system_s <= 0:
            raise NotMeasured("the time was too short to measure")
        share = system_s / (user_s + system_s)
        holds = holds and share >= _MOST_SHARE
        parts.append(f"{shape}: {100 * share:.0f} %")
    return judged(holds, "; ".join(parts))


def _shape_matters_little(results: Results) -> Judgement:
    costs = []
    for shape in (WIDE, FLAT):
        key = key_of(shape, RM, Place.TMPFS)
        processor_s = sum(
            results.median(key, measure) for measure in (Measure.USER_S, Measure.SYSTEM_S)
        )
        costs.append(processor_s * 1e6 / results.plan(key).entries)
    wide, flat = costs
    is_alike = max(costs) <= _ALIKE_FACTOR * min(costs)
    return judged(is_alike, f"{wide:.2f} µs in many directories, {flat:.2f} µs in one")


def _cost_stays(results: Results) -> Judgement:
    parts, holds = [], True
    for place in PLACES:
        keys = [key_of(growing(number), RM, place) for number in range(SIZES)]
        costs = [results.span(key, Measure.MICROSECONDS_PER_ENTRY)[0] for key in keys]
        holds = holds and costs[-1] <= _ALIKE_FACTOR * statistics.median(costs[:-1])
        small, large = (count(results.plan(key).entries - 1) for key in (keys[0], keys[-1]))
        parts.append(
            f"{results.plan(keys[0]).place}: {costs[0]:.2f} µs with {small} files, "
            f"{costs[-1]:.2f} µs with {large}"
        )
    return judged(holds, "; ".join(parts), "In small trees the start of the program counts, too.")


CLAIMS = (
    Claim(
        "rm makes one unlinkat for each name, and none fails.",
        "1,001,001 for as many names; the old rm 1,001,002, including one that failed",
        _one_unlink_each,
    ),
    Claim(
        "Apart from reading and allocating memory, rm makes no other call per name.",
        "40 others for 1,000,000 names",
        _nothing_else,
    ),
    Claim(
        "The number of reads follows from the names and the buffer size.",
        "7,007 getdents64 for 1,001 directories (4 KiB at once), 976 for 1,000,000 names "
        "in one (32 KiB)",
        _reads_by_buffer,
    ),
    Claim(
        "For a large directory rm allocates memory repeatedly.",
        "1,306 and 2,134 brk for 1,000,000 names; the old rm 3",
        _asks_for_memory,
    ),
    Claim(
        "rm keeps the names that it has read, which takes memory for each name.",
        "70,489 page faults for 1,000,000 names; the old rm 174",
        _keeps_names,
    ),
    Claim(
        "rm keeps all names of a directory in memory, however many there are.",
        "43,130 and 70,489 page faults for 1,000,000 names",
        _keeps_all_names,
    ),
    Claim(
        "An rm that deletes each name as it reads it needs no memory for names.",
        "164 to 174 page faults for 1,000,000 names",
        _one_by_one,
    ),
    Claim(
        "rm deletes a chain of directories of any depth.",
        "1,000,000 levels in 19.22 s",
        _chain_goes,
    ),
    Claim(
        "Nearly all the time is spent in the kernel.",
        "3.17 of 3.55 s in one directory, 2.75 of 3.04 s in many",
        _in_the_kernel,
    ),
    Claim(
        "A name costs the same processor time in one large directory as in small ones.",
        "3.55 s and 3.04 s for 1,000,000 files",
        _shape_matters_little,
    ),
    Claim(
        "The cost of a name does not grow with the size of its directory.",
        "not in the source, which has one size",
        _cost_stays,
    ),
)


_ROUNDS = {Scale.SMALL: 2, Scale.PUBLISHED: 3}
_BREADTH = {Scale.SMALL: 60, Scale.PUBLISHED: 1_000}
_LEVELS = {Scale.SMALL: 3_000, Scale.PUBLISHED: 1_000_000}
_LEVELS_ON_DISK = {Scale.SMALL: 500, Scale.PUBLISHED: 100_000}
"""The text has its chain in memory only. On ext4 each directory of a chain is in another block
group, and reading their bitmaps takes most of the time: a million keep rm busy for minutes."""
_FILES = {
    Scale.SMALL: (300, 1_000, 3_000, 10_000),
    Scale.PUBLISHED: (1_000, 10_000, 100_000, 1_000_000),
}
"""Directories of growing size; the largest is the flat tree itself."""

_GROWING = (RM, FIND, BUSYBOX)


def _trials(scale: Scale, setting: Setting) -> tuple[Trial, ...]:
    breadth, sizes = _BREADTH[scale], _FILES[scale]
    in_memory, on_disk = _LEVELS[scale], _LEVELS_ON_DISK[scale]
    shapes: list[tuple[str, str, Tree, tuple[str, ...], tuple[Place, ...]]] = [
        (WIDE, f"{breadth:,} × {breadth:,}", Wide(breadth, breadth), tuple(_TOOLS), PLACES),
        (CHAIN, f"chain of {in_memory:,}", Chain(in_memory), tuple(_TOOLS), (Place.TMPFS,)),
        (CHAIN, f"chain of {on_disk:,}", Chain(on_disk), tuple(_TOOLS), (Place.HERE,)),
    ]
    for number, files in enumerate(sizes):
        shape = growing(number)
        tools = tuple(_TOOLS) if shape == FLAT else _GROWING
        shapes.append((shape, f"{files:,} files", Flat(files, prefix=""), tools, PLACES))
    return tuple(
        Trial(
            (_step(shape, words, tool, place, setting),),
            tree,
            place,
            _ROUNDS[scale],
        )
        for shape, words, tree, tools, places in shapes
        for tool in tools
        for place in places
    )


def _step(shape: str, words: str, tool: str, place: Place, setting: Setting) -> Step:
    title, commands = _TOOLS[tool]
    is_counted = tool == RM and shape in SHAPES and place is Place.TMPFS
    return Step(
        key_of(shape, tool, place),
        f"{title}, {words}, {place}",
        (installed(tool, commands, setting.tools),),
        counting=Counting.CALLS if is_counted else Counting.NOTHING,
        series=f"{place}" if shape in (WIDE, CHAIN) else f"{title}, {place}",
    )


def _views(results: Results) -> tuple[View, ...]:
    times = (Measure.SECONDS, Measure.USER_S, Measure.SYSTEM_S, Measure.CPU_PERCENT)
    memory = (Measure.MICROSECONDS_PER_ENTRY, Measure.PEAK_MEMORY_BYTES, Measure.MINOR_FAULTS)
    views: list[View] = []
    for shape in SHAPES:
        keys = tuple(key_of(shape, tool, place) for place in PLACES for tool in _TOOLS)
        words = _trees_of(results, keys)
        views += [
            TableView(f"Time: {words}", keys, times, has_bars=True),
            TableView(f"Memory: {words}", keys, memory),
            CallsView(f"System calls: {words}", (key_of(shape, RM, Place.TMPFS),)),
        ]
    keys = tuple(
        key_of(growing(number), tool, place)
        for tool in _GROWING
        for place in PLACES
        for number in range(SIZES)
    )
    growth = (
        ("Time for a file", (Measure.MICROSECONDS_PER_ENTRY,)),
        ("Memory", (Measure.PEAK_MEMORY_BYTES, Measure.MINOR_FAULTS)),
    )
    return *views, *(
        TableView(f"{title}, as the directory grows", keys, measures, has_bars=True)
        for title, measures in growth
    )


def _trees_of(results: Results, keys: tuple[str, ...]) -> str:
    """Return the trees of the steps in words: a chain is shorter on a disk."""
    steps = (results.measured[key] for key in keys if key in results.measured)
    return " and ".join(dict.fromkeys(step.plan.tree for step in steps))


_WIDE_WORDS, _CHAIN_WORDS, _FLAT_WORDS = (
    "1,000 directories of 1,000 files", "a chain of 1,000,000 directories",
    "1,000,000 files in one directory",
)  # fmt: skip
_FIGURES = (
    # shape, tool, place, description, then seconds, user, system, CPU and page faults
    (WIDE, RM, Place.TMPFS, _WIDE_WORDS, (3.06, 0.29, 2.75, 99, 10_834)),
    (WIDE, RM, Place.HERE, f"{_WIDE_WORDS}, SSD", (17.41, 0.52, 13.88, 82, 10_835)),
    (CHAIN, RM, Place.TMPFS, _CHAIN_WORDS, (19.22, 6.25, 12.88, 99, 70_976)),
    (FLAT, RM, Place.TMPFS, _FLAT_WORDS, (3.57, 0.38, 3.17, 99, 70_489)),
)
_MEASURES = (
    Measure.SECONDS, Measure.USER_S, Measure.SYSTEM_S, Measure.CPU_PERCENT, Measure.MINOR_FAULTS,
)  # fmt: skip
_CALLS = {
    (WIDE, RM, f"{_WIDE_WORDS}, i686"): (
        "unlinkat 1001001 0 getdents64 7007 0 close 2022 0 openat 1001 0 fstat64 1017 0 read "
        "4 0 open 29 12 execve 1 0 access 3 3 brk 510 0 ioctl 1 0 munmap 2 0 mprotect 4 0 "
        "mmap2 19 0 lstat64 1 0 fcntl64 3003 0 set_thread_area 1 0 fstatat64 1001 0"
    ),
    (FLAT, RM, f"{_FLAT_WORDS}, x86-64"): (
        "unlinkat 1000001 0 getdents 976 0 brk 2134 0 read 1 0 open 3 0 close 8 0 fstat 4 0 "
        "lstat 1 0 mmap 9 0 mprotect 3 0 munmap 1 0 ioctl 1 0 access 1 1 execve 1 0 fcntl 3 0 "
        "fstatfs 1 0 arch_prctl 1 0 openat 1 0 newfstatat 1 0"
    ),
}
"""By shape, tool and note: each call with its number and errors."""


EXPERIMENT = Experiment(
    name="tree-shapes",
    title="Wide, deep and flat trees, and every rm",
    question="How does the shape of a tree change the cost, and what does rm pay for reading a "
    "directory before deleting?",
    source="Jim Meyering, notes on rm with fts for GNU coreutils, 2009",
    needs=(
        "rm and find",
        "busybox, toybox, uutils (uu-rm) and the native engine to compare with",
    ),
    trials=_trials,
    tools=("rm", "find", "busybox", "toybox", ENGINE, *UUTILS_TOOLS),
    published=tuple(
        Published(key_of(shape, tool, place), measure, value, f"{words}, rm of 2009")
        for shape, tool, place, words, values in _FIGURES
        for measure, value in zip(_MEASURES, values, strict=True)
    ),
    published_calls=tuple(
        PublishedCalls(key_of(shape, tool, Place.TMPFS), table, note)
        for (shape, tool, note), table in _CALLS.items()
    ),
    claims=CLAIMS,
    views=_views,
)
