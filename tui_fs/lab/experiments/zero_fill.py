"""Files of zeros: five ways to write them, with and without sync, then stat, read and delete."""

import functools
from collections.abc import Iterable

from tui_fs.lab.experiment import (
    CallsView,
    Claim,
    Counting,
    Experiment,
    Judge,
    Judgement,
    Pipeline,
    Published,
    Scale,
    Setting,
    Step,
    TableView,
    Trial,
    View,
    judged,
    published_times,
)
from tui_fs.lab.figures import shown
from tui_fs.lab.results import Measure, NotMeasured, Results
from tui_fs.model.units import bytes_iec, count

_FILE = "zeros"
_BLOCK_BYTES = 4 << 20
_SIZES = {Scale.SMALL: (64 << 20, "64M"), Scale.PUBLISHED: (1 << 30, "1G")}
_ROUNDS = 3
_NOISE = 1.0 / 5.736
"""Share of the time: no run of over ten in the text was a second off; the shortest took 5.736 s."""
_WAITING_CALLS = ("fsync", "fdatasync", "sync", "syncfs", "sync_file_range", "msync")
_HEAD_PIECES_BYTES = (8192, 4096)
_LONG_BEFORE = 2.0
"""Factor: most of the time is more than half of it. In the text the factor was 7 and more."""


_WRITTEN = {"head": "head -c", "dd-4m": "dd, blocks of 4 MiB", "dd-one-block": "dd, a single block"}
"""Methods that pass every byte through `write`, with their titles."""
_DD = ("dd-4m", "dd-one-block")
_UNWRITTEN = {"truncate": "truncate -s", "fallocate": "fallocate -l"}
_METHODS = _WRITTEN | _UNWRITTEN


def _commands(scale: Scale) -> dict[str, Pipeline]:
    """Return the command of each method."""
    size_bytes, size = _SIZES[scale]
    dd = ("dd", "if=/dev/zero", f"of={_FILE}")
    return {
        "head": (("sh", "-c", f'exec "$0" -c {size} /dev/zero > {_FILE}', "{path:head}"),),
        "dd-4m": ((*dd, "bs=4M", f"count={size_bytes // _BLOCK_BYTES}"),),
        "dd-one-block": ((*dd, f"bs={size}", "count=1"),),
        "truncate": (("truncate", "-s", size, _FILE),),
        "fallocate": (("fallocate", "-l", size, _FILE),),
    }


def _trials(scale: Scale, setting: Setting) -> tuple[Trial, ...]:
    size_bytes, _ = _SIZES[scale]
    return tuple(
        Trial(
            _steps(method, scale, setting),
            rounds=_ROUNDS,
            disk_bytes=size_bytes,  # each file is deleted before the next one is made
            memory_bytes=size_bytes if method == "dd-one-block" else 0,
        )
        for method in _METHODS
    )


def _steps(method: str, scale: Scale, setting: Setting) -> tuple[Step, ...]:
    """Return the steps of a method; sync writes only that file, so that no other data counts."""
    size_bytes, _ = _SIZES[scale]
    name, command = _METHODS[method], _commands(scale)[method]
    delete: tuple[Pipeline, ...] = ((("rm", "-f", _FILE),),)
    step = functools.partial(Step, series=name)
    counting = Counting.CALLS if method in _WRITTEN else Counting.NOTHING
    synced = (command, (("sync", _FILE),))
    read = step(
        f"{method}-read",
        f"read: {name}",
        ((("cmp", "-n", str(size_bytes), _FILE, "/dev/zero"),),),
        expects=frozenset({0, 1}),  # 1: cmp reports a byte that is not zero
    )
    # Without cmp the steps after it would not run, either.
    is_read = method in _UNWRITTEN and "cmp" in setting.tools
    return (
        step(f"{method}-synced", f"{name}, then sync", synced, leaves=_FILE),
        *((read,) if is_read else ()),
        step(f"{method}-delete", f"delete: {name}", delete),
        step(method, f"{name}, no sync", (command,), counting=counting),
        step(f"{method}-delete-unsynced", f"delete: {name}, no sync", delete),
    )


def _alike(methods: Iterable[str]) -> Judge:
    """Return a judge: the times are within the noise of the text's runs, or overlap."""
    keys = tuple(f"{method}-synced" for method in methods)

    def judge(results: Results) -> Judgement:
        medians = [results.median(key) for key in keys]
        spans = [results.span(key) for key in keys]
        is_close = max(medians) <= min(medians) * (1 + _NOISE)
        is_overlapping = max(least for least, _ in spans) <= min(most for _, most in spans)
        reason = "" if is_close or not is_overlapping else "The runs of one method differ as much."
        return judged(is_close or is_overlapping, _times(results, keys), reason)

    return judge


def _ends_long_before(results: Results) -> Judgement:
    factors = {key: results.median(f"{key}-synced") / results.median(key) for key in _WRITTEN}
    least, most = min(factors.values()), max(factors.values())
    here = f"With sync {least:.1f} to {most:.1f} times as long"
    if least >= _LONG_BEFORE:
        return judged(True, here)
    short = [_WRITTEN[key] for key, factor in factors.items() if factor < _LONG_BEFORE]
    methods = "" if len(short) == len(factors) else f" with {' and with '.join(short)}"
    return judged(False, here, f"Here sync takes no longer than writing{methods}.")


def _dd_waits(results: Results) -> Judgement:
    head = _waiting_calls(results, "head")
    dd = max(_waiting_calls(results, key) for key in _DD)
    here = f"Calls that wait for the disk: dd {count(dd)}, head {count(head)}"
    reason = "" if dd else "dd waits only with conv=fsync or oflag=sync."
    return judged(dd > 0 and head == 0, here, reason)


def _waiting_calls(results: Results, key: str) -> int:
    return sum(results.calls(key, name).calls for name in _WAITING_CALLS)


def _pieces_of_head(results: Results) -> Judgement:
    writes = results.calls("head", "write").calls
    if not writes:
        return judged(False, "head made no write calls")
    piece_bytes = results.left("head-synced").apparent_bytes / writes
    # A few calls more, for a message, do not change the size of a piece.
    holds = any(abs(piece_bytes / known - 1) < 0.01 for known in _HEAD_PIECES_BYTES)
    mean = f"{count(round(piece_bytes))} bytes on average"
    return judged(holds, f"{count(writes)} write calls of {mean}")


def _is_allocated(results: Results) -> Judgement:
    states = [results.left(f"{key}-synced") for key in _WRITTEN]
    holds = all(state.allocated_bytes >= state.apparent_bytes for state in states)
    here = "; ".join(_allocation(results, key) for key in _WRITTEN)
    reason = "" if holds else "This file system compresses zeros or does not store them."
    return judged(holds, here, reason)


def _is_sparse(method: str) -> Judge:
    def judge(results: Results) -> Judgement:
        state = results.left(f"{method}-synced")
        is_sparse = state.allocated_bytes < state.apparent_bytes
        reason = "" if is_sparse else "All its blocks are reserved; their contents read as zeros."
        return judged(is_sparse, _allocation(results, method), reason)

    return judge


def _allocation(results: Results, key: str) -> str:
    state = results.left(f"{key}-synced")
    extents = "" if state.extents is None else f", extents: {count(state.extents)}"
    allocated, apparent = bytes_iec(state.allocated_bytes), bytes_iec(state.apparent_bytes)
    return f"{_METHODS[key]}: {allocated} of {apparent}{extents}"


def _reads_zeros(results: Results) -> Judgement:
    differences = []
    for key in _UNWRITTEN:
        if not results.has(f"{key}-read"):
            raise NotMeasured(f"the file made by {key} was not read; this needs cmp (diffutils)")
        differences += [run.output for run in results.measured[f"{key}-read"].runs if run.output]
        size_bytes = results.left(f"{key}-synced").apparent_bytes
        if size_bytes != results.left("head-synced").apparent_bytes:
            differences.append(f"{key} made only {bytes_iec(size_bytes)}")
    return judged(not differences, differences[0] if differences else "Every byte read was zero")


def _takes_no_time(results: Results) -> Judgement:
    keys = tuple(f"{key}-synced" for key in (*_UNWRITTEN, *_WRITTEN))
    slowest = max(results.median(f"{key}-synced") for key in _UNWRITTEN)
    fastest = min(results.median(f"{key}-synced") for key in _WRITTEN)
    holds = slowest * _LONG_BEFORE <= fastest
    size = bytes_iec(results.left("head-synced").apparent_bytes)
    reason = "" if holds else f"Writing is fast here, too: the file has only {size}."
    return judged(holds, _times(results, keys), reason)


def _times(results: Results, keys: tuple[str, ...]) -> str:
    return "; ".join(
        f"{_METHODS[key.removesuffix('-synced')]}: {shown(Measure.SECONDS, results.median(key))}"
        for key in keys
    )


def _views(results: Results) -> tuple[View, ...]:
    del results
    synced = tuple(f"{method}-synced" for method in _METHODS)
    times = (Measure.SECONDS, Measure.USER_S, Measure.SYSTEM_S)
    sizes = (Measure.APPARENT_BYTES, Measure.ALLOCATED_BYTES, Measure.EXTENTS)
    deleted = tuple(
        f"{method}{end}" for method in _METHODS for end in ("-delete", "-delete-unsynced")
    )
    return (
        TableView("Making the file, with sync", synced, times, has_bars=True),
        TableView("Making the file, without sync", tuple(_METHODS), times),
        TableView("The resulting files", synced, sizes),
        TableView("Reading the file", tuple(f"{method}-read" for method in _UNWRITTEN), times),
        TableView("Deleting the file", deleted, times),
        CallsView("System calls, without sync", tuple(_WRITTEN)),
    )


_TIMES = {
    "head": (5.736, 0.024, 0.465),
    "dd-4m": (6.139, 0.002, 0.425),
    "dd-one-block": (5.760, 0.002, 0.550),
    "truncate": (0.011, 0.0, 0.007),
    "fallocate": (0.013, 0.0, 0.007),
}
_DD_REPORTED_S = {"dd-4m": 0.872527, "dd-one-block": 0.653189}
_NOTE = "1 GiB, sync of the whole machine, ext4 on a virtual disk, CentOS 7.2"


_PUBLISHED = (
    *(
        figure
        for method, seconds in _TIMES.items()
        for figure in published_times(f"{method}-synced", seconds, _NOTE)
    ),
    *(
        Published(method, Measure.SECONDS, seconds, f"reported by dd; {_NOTE}")
        for method, seconds in _DD_REPORTED_S.items()
    ),
)


EXPERIMENT = Experiment(
    name="zero-fill",
    title="Zeros by head, dd, truncate, fallocate",
    question="Which way of making a file of zeros is the fastest, how much space does the file "
    "occupy, and what does deleting it cost? (sync applies to that file only, not to "
    "the whole machine.)",
    source="moffumoffu (Hatena Blog), on dd and head, April 2017",
    needs=("cmp, dd, fallocate, head, sync and truncate",),
    trials=_trials,
    tools=("cmp", "dd", "fallocate", "head", "rm", "sh", "sync", "truncate"),
    published=_PUBLISHED,
    claims=(
        Claim(
            "head and dd take the same time when sync is included.",
            "5.736 s, 6.139 s and 5.760 s",
            _alike(_WRITTEN),
        ),
        Claim(
            "Most of the time is write-back: without sync the commands end much earlier.",
            "dd itself reports 0.873 s and 0.653 s; with sync 6.139 s and 5.760 s",
            _ends_long_before,
        ),
        Claim(
            "Without sync head seems faster, since dd waits for the disk and head does not.",
            "head leaves write-back to the system; dd does it itself",
            _dd_waits,
        ),
        Claim(
            "The size of dd's blocks does not matter.",
            "6.139 s with 4 MiB, 5.760 s with 1 GiB",
            _alike(_DD),
        ),
        Claim(
            "head writes in pieces of 8 KiB or 4 KiB.",
            "8 KiB or 4 KiB for each read and write",
            _pieces_of_head,
        ),
        Claim(
            "Files that head and dd write occupy all their blocks.",
            "head and dd make files with allocated blocks",
            _is_allocated,
        ),
        Claim(
            "truncate makes a sparse file.",
            "truncate and fallocate make sparse files",
            _is_sparse("truncate"),
        ),
        Claim(
            "fallocate makes a sparse file, too.",
            "truncate and fallocate make sparse files",
            _is_sparse("fallocate"),
        ),
        Claim(
            "Reading a file made by truncate or fallocate returns zeros.",
            "read() gives 0 by specification",
            _reads_zeros,
        ),
        Claim(
            "truncate and fallocate finish long before a file of that size could be written.",
            "0.011 s and 0.013 s, head and dd 5.736 s to 6.139 s",
            _takes_no_time,
        ),
    ),
    views=_views,
)
