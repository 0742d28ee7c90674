"""What was said in 2009 of rm with fts and of the one before it, and how it is judged."""

import math
import statistics
from collections.abc import Iterator

from tui_fs.lab.experiment import Claim, Judgement, Place, judged
from tui_fs.lab.figures import shown
from tui_fs.lab.results import Measure, NotMeasured, Results
from tui_fs.model.paths import PathStr
from tui_fs.model.survey import Survey, Totals
from tui_fs.model.units import count
from tui_fs.strategies.fts import FTS_ENTRIES_AT_ONCE
from tui_fs.strategies.prediction import Work
from tui_fs.strategies.registry import REFERENCE, STRATEGIES

WIDE, CHAIN, FLAT = "wide", "chain", "flat"
SHAPES = (WIDE, CHAIN, FLAT)
PLACES = (Place.TMPFS, Place.HERE)
RM, FIND, BUSYBOX, TOYBOX, UUTILS = "rm", "find", "busybox", "toybox", "uutils"
ENGINE, OLD = "engine", "old"
TITLES = {
    RM: "rm",
    FIND: "find -delete",
    BUSYBOX: "busybox rm",
    TOYBOX: "toybox rm",
    UUTILS: "uutils rm",
    ENGINE: "the engine",
    OLD: "rm of before fts",
}
SIZES = 4
"""So many directories of growing size; the largest is the flat tree."""

_RECORD_BYTES, _LONG_RECORD_BYTES, _SHORT_NAMES = 24, 32, 9_999
"""Records of getdents64(2) for names of up to 4 and of up to 12 bytes, in steps of 8."""

_BUFFER_BYTES = 32_768
"""What readdir(3) asks for at once (glibc, sysdeps/unix/sysv/linux/opendir.c)."""

_CONSTANT_CALLS = 100
"""The text counts 40 that do not depend on the tree: loading the program, opening, closing."""

_PAGE_BYTES = 4_096
_HELD_BYTES = 100
"""A name that is held takes 288 bytes on x86-64 in the text, one that is not takes none."""

_ALIKE = 1.5
_MOSTLY = 0.75


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
        reads = directories * _reads(breadth)
    elif shape == CHAIN:
        directories, full = entries, below
        reads = directories * _reads(1)
    else:
        directories = full = 1
        reads = _reads(below)
    survey = Survey(
        PathStr("/tree"),
        Totals(files=entries - directories, directories=directories),
        non_empty_directories=full,
        directory_reads=reads,
    )
    return STRATEGIES[REFERENCE].predicted_calls(Work(survey)).calls["getdents64"]


def _reads(names: int) -> int:
    """Return the calls that read a directory of names that are numbers, to its end."""
    short = min(names, _SHORT_NAMES)
    record_bytes = (2 + short) * _RECORD_BYTES + (names - short) * _LONG_RECORD_BYTES
    return 2 + record_bytes // _BUFFER_BYTES


def _rm_keys() -> Iterator[tuple[str, str]]:
    return ((shape, key_of(shape, RM, Place.TMPFS)) for shape in SHAPES)


def _one_unlink_each(results: Results) -> Judgement:
    told, holds = [], True
    for shape, key in _rm_keys():
        made, names = results.calls(key, "unlinkat"), results.plan(key).entries
        holds = holds and made.calls == names and not made.errors
        told.append(f"{shape}: {count(made.calls)} unlinkat for {count(names)} names")
    return judged(holds, "; ".join(told))


def _nothing_else(results: Results) -> Judgement:
    key = key_of(FLAT, RM, Place.TMPFS)
    known = sum(results.calls(key, name).calls for name in ("unlinkat", "getdents64", "brk"))
    others = results.total_calls(key) - known
    names = results.plan(key).entries
    return judged(
        others <= _CONSTANT_CALLS, f"{count(others)} other calls for {count(names)} names"
    )


def _reads_by_buffer(results: Results) -> Judgement:
    told, holds = [], True
    for shape, key in _rm_keys():
        made = results.calls(key, "getdents64").calls
        expected = expected_reads(shape, results.plan(key).entries)
        holds = holds and abs(made - expected) <= max(2, expected // 100)
        told.append(f"{shape}: {count(made)}, expected {count(expected)}")
    why = "Today 32 KiB are read at once, and each directory that holds something once more."
    return judged(holds, "; ".join(told), why)


def _asks_for_memory(results: Results) -> Judgement:
    key = key_of(FLAT, RM, Place.TMPFS)
    moves = results.calls(key, "brk").calls
    return judged(moves > 10, f"{count(moves)} brk for {count(results.plan(key).entries)} names")


def _held_bytes(results: Results, tool: str) -> float:
    """Return what a further name takes, by page faults, up to what fts reads at once."""
    keys = [key_of(growing(number), tool, Place.TMPFS) for number in range(SIZES)]
    sizes = {key: results.plan(key).entries - 1 for key in keys}
    first, *_, last = [key for key in keys if sizes[key] <= FTS_ENTRIES_AT_ONCE]
    faults = results.median(last, Measure.MINOR_FAULTS) - results.median(
        first, Measure.MINOR_FAULTS
    )
    return faults * _PAGE_BYTES / (sizes[last] - sizes[first])


def _holds_names(results: Results) -> Judgement:
    held_bytes = _held_bytes(results, RM)
    return judged(held_bytes >= _HELD_BYTES, f"{held_bytes:.0f} bytes for each further name")


def _holds_all_names(results: Results) -> Judgement:
    less, more = (key_of(growing(number), RM, Place.TMPFS) for number in (SIZES - 2, SIZES - 1))
    if results.plan(more).entries <= FTS_ENTRIES_AT_ONCE:
        raise NotMeasured(f"That shows above {count(FTS_ENTRIES_AT_ONCE)} names in one directory")
    sizes = [results.plan(key).entries - 1 for key in (less, more)]
    peaks = [results.median(key, Measure.PEAK_MEMORY_BYTES) for key in (less, more)]
    told = [
        f"{shown(Measure.PEAK_MEMORY_BYTES, peak)} for {count(size)} names"
        for peak, size in zip(peaks, sizes, strict=True)
    ]
    holds = peaks[1] / peaks[0] >= sizes[1] / sizes[0] / 2
    why = f"fts reads at most {count(FTS_ENTRIES_AT_ONCE)} names at a time by now."
    return judged(holds, "; ".join(told), "" if holds else why)


def _one_by_one(results: Results) -> Judgement:
    held_bytes = _held_bytes(results, BUSYBOX)
    why = "busybox rm stands for the old one: it deletes each name when it has read it, too."
    return judged(held_bytes < _HELD_BYTES, f"{held_bytes:.0f} bytes for each further name", why)


def _chain_goes(results: Results) -> Judgement:
    did, did_not = [], []
    for tool, title in TITLES.items():
        key = key_of(CHAIN, tool, Place.TMPFS)
        if results.has(key):
            did.append(f"{title} {shown(Measure.SECONDS, results.median(key))}")
        elif key in results.measured and results.measured[key].failed:
            did_not.append(title)
    is_known = results.has(key_of(CHAIN, RM, Place.TMPFS)) or TITLES[RM] in did_not
    if not is_known:
        results.median(key_of(CHAIN, RM, Place.TMPFS))  # says why there is nothing
    words = [f"Deleted by {', '.join(did)}" if did else "", f"not by {', '.join(did_not)}"]
    here = "; ".join(words if did_not else words[:1])
    why = "What names each entry by its whole path fails at 4,096 bytes." if did_not else ""
    return judged(TITLES[RM] not in did_not, here, why)


def _in_the_kernel(results: Results) -> Judgement:
    told, holds = [], True
    for shape in (WIDE, FLAT):
        key = key_of(shape, RM, Place.TMPFS)
        user_s, system_s = (results.median(key, one) for one in (Measure.USER_S, Measure.SYSTEM_S))
        if user_s + system_s <= 0:
            raise NotMeasured("It took too little time")
        share = system_s / (user_s + system_s)
        holds = holds and share >= _MOSTLY
        told.append(f"{shape}: {100 * share:.0f} %")
    return judged(holds, "; ".join(told))


def _shape_matters_little(results: Results) -> Judgement:
    costs = []
    for shape in (WIDE, FLAT):
        key = key_of(shape, RM, Place.TMPFS)
        processor_s = sum(results.median(key, one) for one in (Measure.USER_S, Measure.SYSTEM_S))
        costs.append(processor_s * 1e6 / results.plan(key).entries)
    wide, flat = costs
    is_alike = max(costs) <= _ALIKE * min(costs)
    return judged(is_alike, f"{wide:.2f} µs in many directories, {flat:.2f} µs in one")


def _cost_stays(results: Results) -> Judgement:
    told, holds = [], True
    for place in PLACES:
        keys = [key_of(growing(number), RM, place) for number in range(SIZES)]
        costs = [results.span(key, Measure.MICROSECONDS_PER_ENTRY)[0] for key in keys]
        holds = holds and costs[-1] <= _ALIKE * statistics.median(costs[:-1])
        small, large = (count(results.plan(key).entries - 1) for key in (keys[0], keys[-1]))
        told.append(
            f"{results.plan(keys[0]).place}: {costs[0]:.2f} µs of {small} files, "
            f"{costs[-1]:.2f} µs of {large}"
        )
    return judged(holds, "; ".join(told), "Small trees carry the start of the program, too.")


def _old_to_new(results: Results, shape: str, place: Place) -> float:
    """Return how many times as long the new rm takes as the old one."""
    old, new = (results.median(key_of(shape, tool, place)) for tool in (OLD, RM))
    return new / old


def _flat_slower(results: Results) -> Judgement:
    times = _old_to_new(results, FLAT, Place.TMPFS)
    return judged(times >= 1.1, f"{times:.2f} times as long")


def _wide_alike(results: Results) -> Judgement:
    times = [_old_to_new(results, WIDE, place) for place in PLACES]
    holds = all(1 / 1.1 <= one <= 1.1 for one in times)
    return judged(holds, f"{times[0]:.2f} times as long in memory, {times[1]:.2f} here")


def _chain_faster(results: Results) -> Judgement:
    times = _old_to_new(results, CHAIN, Place.TMPFS)
    return judged(times <= 0.8, f"{times:.2f} times as long")


CLAIMS = (
    Claim(
        "rm with fts makes one unlinkat for each name, and none fails.",
        "1,001,001 for as many names; the old one 1,001,002, and one failed",
        _one_unlink_each,
    ),
    Claim(
        "Beside reading and asking for memory it makes no call for each name.",
        "40 others for 1,000,000 names",
        _nothing_else,
    ),
    Claim(
        "How often it reads follows from the names and the size of the buffer.",
        "7,007 getdents64 for 1,001 directories (4 KiB at once), 976 for 1,000,000 names "
        "in one (32 KiB)",
        _reads_by_buffer,
    ),
    Claim(
        "For a large directory rm with fts asks for memory again and again.",
        "1,306 and 2,134 brk for 1,000,000 names; the old one 3",
        _asks_for_memory,
    ),
    Claim(
        "It holds the names that it has read, and needs memory for each.",
        "70,489 page faults for 1,000,000 names; the old one 174",
        _holds_names,
    ),
    Claim(
        "It holds all names of a directory, however many.",
        "43,130 and 70,489 page faults for 1,000,000 names",
        _holds_all_names,
    ),
    Claim(
        "An rm that deletes name by name needs no memory for them.",
        "164 to 174 page faults for 1,000,000 names",
        _one_by_one,
    ),
    Claim(
        "rm deletes a chain of directories of any depth.",
        "1,000,000 levels in 19.22 s",
        _chain_goes,
    ),
    Claim(
        "Nearly all the time is the kernel's.",
        "3.17 of 3.55 s in one directory, 2.75 of 3.04 s in many",
        _in_the_kernel,
    ),
    Claim(
        "A name costs as much of a processor's time in one large directory as in small ones.",
        "3.55 s and 3.04 s for 1,000,000 files",
        _shape_matters_little,
    ),
    Claim(
        "The cost of a name does not grow with its directory.",
        "not in the text, which has one size",
        _cost_stays,
    ),
    Claim(
        "In one large directory rm with fts takes a fifth longer than the old one.",
        "3.57 s to 2.98 s, and 4.35 s to 3.25 s",
        _flat_slower,
    ),
    Claim(
        "In a wide tree they take the same time, within a few per cent.",
        "3.06 s to 2.92 s in memory; 17.41 s to 17.83 s on an SSD, but there both have the page "
        "faults of the new one (10,835 and 10,834; the old one 184)",
        _wide_alike,
    ),
    Claim(
        "On a chain it is over 20 % faster.",
        "19.22 s to 25.43 s for 1,000,000 levels",
        _chain_faster,
    ),
)
