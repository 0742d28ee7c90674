"""A process for each file against one for many: `find -exec … ;`, `| xargs` and `-exec … +`."""

import functools

from tui_fs.lab.exec_claims import (
    BATCH,
    BATCHED_FILES,
    BATCHES,
    CALLS_IN_BATCHES,
    CALLS_ONE_BY_ONE,
    CLAIMS,
    LARGE_LOGS,
    LOGS,
    SPACED_FILES,
)
from tui_fs.lab.experiment import (
    BarsView,
    CallsView,
    Counting,
    CurveView,
    Experiment,
    Pipeline,
    Published,
    PublishedCalls,
    Scale,
    Setting,
    Step,
    TableView,
    Trial,
    View,
)
from tui_fs.lab.results import Measure, Results
from tui_fs.lab.tree_generators import Flat
from tui_fs.model.strategy import Argv

WHOLE = {Scale.SMALL: 5_000, Scale.PUBLISHED: 200_000}
PART = {Scale.SMALL: 100, Scale.PUBLISHED: 5_000}
"""Files of the tree, and of the part of it that a process is started for each."""

_ROUNDS = {Scale.SMALL: 3, Scale.PUBLISHED: 5}
_PIECES = 10
"""A part of the files tells what the whole takes if it makes at least so many batches."""

COMMAND_BYTES = 131_072
"""xargs fills a command up to this (findutils, lib/buildcmd.c); each name has a NUL, too."""

_LARGE_ONES: Argv = ("find", ".", "-name", "*.log", "-size", "+1M")
_EVERY: Argv = ("find", ".", "-type", "f")
_FIND: Argv = (*_EVERY, "-name", "file_*")
_LEFT: tuple[Pipeline] = ((_EVERY, ("wc", "-l")),)
_FILE, _RM = "{path:file}", "{path:rm}"
_PRINT0: tuple[Pipeline] = (((*_EVERY, "-print0"), ("xargs", "-0", _RM)),)
_RM_TITLES = {"each": "-exec rm {} ;", "xargs": "| xargs rm", "plus": "-exec rm {} +",
              "delete": "-delete"}  # fmt: skip

_XARGS_FAILED = 123
"""xargs ends so if one of its commands did not end with 0."""

_step = functools.partial(Step, is_in_tree=True)


def fitting(names: int, command: str) -> int:
    """Return how many of the tree's names fit into one command, as find prints them."""
    room = COMMAND_BYTES - len(command) - 1
    return max(1, min(names, room // (len(f"./{Flat(names).name(names)}") + 1)))


def _trials(scale: Scale, setting: Setting) -> tuple[Trial, ...]:
    whole, part, rounds = WHOLE[scale], PART[scale], _ROUNDS[scale]
    on_part = [batch for batch in BATCHES if batch * _PIECES <= part]
    limit = fitting(whole, setting.tools.get("file", ""))
    on_whole = [batch for batch in BATCHES if batch not in on_part and batch < limit]
    calls, times = Counting.CALLS, Counting.TIMES
    counted = calls if scale is Scale.PUBLISHED else Counting.NOTHING
    share = part / whole
    by_name, by_path = _ways(_FIND, "file"), _ways(_FIND, _FILE)
    of_part = (
        # First, for if file is not installed, the conductor sees it here and leaves out the rest.
        _step("exec-path", "-exec /…/file {} ;", by_path["each"], counting=calls, share=share),
        _step("exec-name", "-exec file {} ;", by_name["each"], counting=times, share=share),
        _step("exec-name-again", "-exec file {} ;, once more", by_name["each"], share=share),
        *(_batched(batch, counted, share) for batch in on_part),
    )
    of_whole = (
        _step("xargs", "| xargs file", by_path["xargs"], counting=calls, series="xargs", x=limit),
        _step("exec-plus", "-exec file {} +", by_path["plus"], counting=calls),
        *(_batched(batch, counted, 1.0) for batch in on_whole),
    )
    return (
        Trial(of_part, tree=Flat(part), rounds=rounds),
        Trial(of_whole, tree=Flat(whole), rounds=rounds),
        Trial((_BATCHED,), tree=Flat(BATCHED_FILES), rounds=rounds),
        *_removing(whole, part, rounds),
        *_filtering(rounds),
        Trial(_SPACED, tree=Flat(SPACED_FILES, is_spaced=True), rounds=1),
    )


def _batched(batch: int, counting: Counting, share: float) -> Step:
    return _step(
        f"xargs-{batch}",
        f"| xargs -n {batch} file",
        ((_FIND, ("xargs", "-n", f"{batch}", _FILE)),),
        counting=counting,
        series="xargs",
        x=batch,
        share=share,
    )


_BATCHED = _step(
    "batches",
    f"{BATCHED_FILES:,} names | xargs -n {BATCH} file",
    ((_FIND, ("head", "-n", f"{BATCHED_FILES}"), ("xargs", "-n", f"{BATCH}", _FILE)),),
    counting=Counting.TIMES,
    x=BATCH,
)


def _ways(find: Argv, program: str) -> dict[str, tuple[Pipeline]]:
    """Return how a program is given what find finds; the last one deletes it without any."""
    return {
        "each": (((*find, "-exec", program, "{}", ";"),),),
        "xargs": ((find, ("xargs", program)),),
        "plus": (((*find, "-exec", program, "{}", "+"),),),
        "delete": (((*find, "-delete"),),),
    }


def _removing(whole: int, part: int, rounds: int) -> tuple[Trial, ...]:
    """Return the same with rm, and what find can do alone."""
    files = {"each": part}
    return tuple(
        Trial(
            (_step(f"rm-{key}", _RM_TITLES[key], way, share=files.get(key, whole) / whole),),
            tree=Flat(files.get(key, whole)),
            rounds=rounds,
        )
        for key, way in _ways(_FIND, _RM).items()
    )


def _filtering(rounds: int) -> tuple[Trial, ...]:
    """Return the same with a few large logs among many small ones, which are not to go."""
    tree = Flat(LOGS, suffixes=(".log", ".txt"))
    large = (tree.name(number) for number in range(1, 2 * LARGE_LOGS, 2))
    grow: tuple[Pipeline] = ((("truncate", "-s", "2M", *large),),)
    return tuple(
        Trial(
            (
                _step(f"grow-{key}", "make some logs large", grow),
                _step(f"logs-{key}", f"large logs: {_RM_TITLES[key]}", way),
                _step(f"logs-{key}-left", f"what {key} left of the logs", _LEFT),
            ),
            tree=tree,
            rounds=rounds,
        )
        for key, way in _ways(_LARGE_ONES, _RM).items()
    )


_SPACED = (
    _step(
        "spaces",
        "names with spaces | xargs rm",
        ((_EVERY, ("xargs", _RM)),),
        expects=frozenset({_XARGS_FAILED}),
    ),
    _step("spaces-left", "what is left of names with spaces", _LEFT),
    _step("spaces-print0", "-print0 | xargs -0 rm", _PRINT0),
    _step("spaces-print0-left", "what is left after -print0", _LEFT),
)


def _views(results: Results) -> tuple[View, ...]:
    times = (Measure.SECONDS, Measure.USER_S, Measure.SYSTEM_S, Measure.CPU_PERCENT)
    curve = ("xargs", *(f"xargs-{batch}" for batch in BATCHES))
    of_file = ("exec-name", "exec-name-again", "exec-path", "xargs", "exec-plus")
    return (
        TableView("file on every file", (*of_file, "batches"), (*times, Measure.CALLS)),
        CurveView("Names in a batch", curve, Measure.SECONDS, "names that xargs gives to one file"),
        CallsView("One by one, and in batches", ("exec-name", "batches")),
        CallsView("By path, and as many as fit", ("exec-path", "xargs", "exec-plus")),
        BarsView("The same with rm", _keys(results, "rm-"), Measure.SECONDS),
        TableView("A few large logs among small ones", _keys(results, "logs-"), times),
        TableView("Names with spaces", _keys(results, "spaces"), (Measure.SECONDS,)),
    )


def _keys(results: Results, prefix: str) -> tuple[str, ...]:
    return tuple(
        key for key in results.measured if key.startswith(prefix) and not key.endswith("-left")
    )


_BY = "200,000 files, file from the second directory of PATH"


def _published(key: str, *seconds: float) -> tuple[Published, ...]:
    measures = (Measure.SECONDS, Measure.USER_S, Measure.SYSTEM_S)
    return tuple(
        Published(key, measure, value, _BY)
        for measure, value in zip(measures, seconds, strict=True)
    )


EXPERIMENT = Experiment(
    name="exec-vs-xargs",
    title="find -exec against xargs",
    question="What does a process for every file cost, and what do batches save?",
    source="“No arguments here – use xargs for file management performance”, a blog post by Jared, "
    "a database administrator; undated",
    needs=("file, rm, find and xargs", "root and bpftrace for the time in each system call"),
    trials=_trials,
    finds_tools=("file", "find", "head", "rm", "truncate", "wc", "xargs"),
    published=(
        *_published("exec-name", 84.764, 4.624, 12.581),
        *_published("exec-name-again", 85.722, 3.900, 11.893),
        *_published("xargs", 0.860, 0.456, 0.432),
        *_published("exec-plus", 0.801, 0.436, 0.404),
        Published("exec-name", Measure.CALLS, 15_811_808, _BY),
        Published("batches", Measure.CALLS, 24_910, "10,000 names, in a script of bash"),
    ),
    published_calls=(
        PublishedCalls("exec-name", CALLS_ONE_BY_ONE, _BY),
        PublishedCalls("batches", CALLS_IN_BATCHES, "10,000 names, in a script of bash"),
    ),
    claims=CLAIMS,
    views=_views,
)
