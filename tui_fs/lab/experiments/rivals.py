"""The native engine against all other installed programs that delete or count."""

from collections.abc import Callable, Mapping

from tui_fs.lab.experiment import (
    PIN,
    Claim,
    Experiment,
    Judgement,
    Pipeline,
    Place,
    RatiosView,
    Scale,
    Setting,
    Step,
    TableView,
    Trial,
    View,
    judged,
)
from tui_fs.lab.results import Measure, NotMeasured, Results
from tui_fs.lab.tree_generators import Chain, Flat, Realistic, Tree, Wide
from tui_fs.linux.tools import ENGINE
from tui_fs.model.units import bytes_iec

PLACES = (Place.EXT4, Place.XFS, Place.BTRFS, Place.TMPFS)
_PLACES_OF = {Scale.SMALL: (Place.EXT4, Place.TMPFS), Scale.PUBLISHED: PLACES}
"""Making all file systems takes longer than a small run may."""
RM, OURS, UUTILS, RMZ = "rm", "engine", "uutils", "rmz"

UUTILS_TOOLS = ("uu-rm", "uu_rm", "coreutils")
"""Names of uutils' rm: on Arch and MacPorts, on Fedora, and as the multi-call program."""

_REMOVE_TREE = "use File::Path 'remove_tree'; remove_tree(shift)"


DELETING: Mapping[str, tuple[str, Pipeline]] = {
    RM: ("rm -rf", (("rm", "-rf", "{tree}"),)),
    OURS: ("the engine", ((ENGINE, "delete", "--pin", PIN, "--", "{tree}"),)),
    "find": ("find -delete", (("find", "{tree}", "-delete"),)),
    "busybox": ("busybox rm", (("busybox", "rm", "-rf", "{tree}"),)),
    UUTILS: ("uutils rm", ((UUTILS_TOOLS[0], "-rf", "{tree}"),)),
    "perl": ("perl remove_tree", (("perl", "-e", _REMOVE_TREE, "{tree}"),)),
    "rsync": ("rsync --delete", (("rsync", "-a", "--delete", "{empty}/", "{tree}/"),)),
    RMZ: ("rmz", (("rmz", "-f", "{tree}"),)),
}
_COUNTING: Mapping[str, tuple[str, Pipeline]] = {
    "du": ("du", (("du", "-s", "{tree}"),)),
    OURS: ("the engine", ((ENGINE, "survey", "--", "{tree}"),)),
    "find": ("find -size", (("find", "{tree}", "-size", "+9999999G"),)),
    "ncdu": ("ncdu", (("ncdu", "-0", "-o", "/dev/null", "{tree}"),)),
    "gdu": ("gdu", (("gdu", "-n", "-p", "-s", "{tree}"),)),
    "dua": ("dua", (("dua", "aggregate", "{tree}"),)),
}
_FASTEST_OF = ("du", "ncdu", "gdu", "dua")

_MANY, _SMALL, _FLAT, _CHAIN, _MIXED = "many", "small", "flat", "chain", "mixed"
_SEED = 7
_TREES: Mapping[Scale, Mapping[str, Tree]] = {
    Scale.SMALL: {
        _MANY: Wide(10, 100),
        _SMALL: Wide(100, 10),
        _FLAT: Flat(2_000),
        _CHAIN: Chain(300),
        _MIXED: Realistic(_SEED, 200, 8 << 10),
    },
    Scale.PUBLISHED: {
        _MANY: Wide(100, 1_000),
        _SMALL: Wide(10_000, 20),
        _FLAT: Flat(200_000),
        _CHAIN: Chain(20_000),
        _MIXED: Realistic(_SEED, 20_000, 48 << 10),
    },
}
_TITLES = {
    _MANY: "100 × 1,000",
    _SMALL: "10,000 × 20",
    _FLAT: "one directory",
    _CHAIN: "chain",
    _MIXED: "mixed sizes",
}
_COUNTED_TREE = {Scale.SMALL: Wide(20, 100), Scale.PUBLISHED: Wide(800, 1_000)}
_ROUNDS = {Scale.SMALL: 1, Scale.PUBLISHED: 5}
_CLOSELY = (RM, OURS, RMZ)
_CLOSE_ROUNDS = {Scale.SMALL: 1, Scale.PUBLISHED: 11}
"""The claims need hundredths for these, and runs of a few tenths of a second differ by more."""

_OF_MANY, _OF_FLAT, _AT_MOST, _OF_RMZ, _OF_COUNTERS = 0.55, 0.65, 1.02, 1.03, 0.55
"""Goals for the engine's time, relative to the other programs, on two processors."""
_COUNTING_BYTES = 40 << 20


def installed(tool: str, commands: Pipeline, tools: Mapping[str, str]) -> Pipeline:
    """Return the commands of a tool; uutils' rm by the first of its names that is installed."""
    name = next((name for name in UUTILS_TOOLS if name in tools), UUTILS_TOOLS[0])
    if tool != UUTILS:
        return commands
    return ((*((name, "rm") if name == "coreutils" else (name,)), *commands[0][1:]),)


def key_of(place: Place, shape: str, tool: str) -> str:
    """Return the key of a deletion."""
    return f"{place}-{shape}-{tool}"


def _counting_key(tool: str) -> str:
    return f"count-{tool}"


def _trials(scale: Scale, setting: Setting) -> tuple[Trial, ...]:
    deleting = tuple(
        Trial(
            (_deletion(place, shape, tool, setting),),
            tree,
            place,
            (_CLOSE_ROUNDS if tool in _CLOSELY else _ROUNDS)[scale],
            is_settled=place is not Place.TMPFS,
        )
        for place in _PLACES_OF[scale]
        for shape, tree in _TREES[scale].items()
        for tool in DELETING
    )
    counting = tuple(
        Step(_counting_key(tool), f"count with {title}", (commands,), series="counting")
        for tool, (title, commands) in _COUNTING.items()
    )
    # The first step would pay for filling the caches.
    warming = Step("warm", "read once", (_COUNTING["find"][1],))
    tree = _COUNTED_TREE[scale]
    return (
        *deleting,
        Trial(
            (warming, *counting),
            tree,
            Place.EXT4,
            _ROUNDS[scale],
            is_reading=True,
            is_settled=True,
        ),
    )


def _deletion(place: Place, shape: str, tool: str, setting: Setting) -> Step:
    title, commands = DELETING[tool]
    return Step(
        key_of(place, shape, tool),
        f"{title}, {_TITLES[shape]}, {place}",
        (installed(tool, commands, setting.tools),),
        series=f"{place}",
    )


def _ratio(results: Results, key: str, reference: str) -> float:
    return results.median(key) / results.median(reference)


def _at_most(
    limits: Mapping[tuple[Place, str], float], rival: str
) -> Callable[[Results], Judgement]:
    """Return a judge: the engine's time, relative to a rival's, is within each limit."""

    def judge(results: Results) -> Judgement:
        parts, holds = [], True
        for (place, shape), limit in limits.items():
            ours, reference = key_of(place, shape, OURS), key_of(place, shape, rival)
            if results.has(ours) and results.has(reference):
                ratio = _ratio(results, ours, reference)
                holds = holds and ratio <= limit
                parts.append(f"{place} {_TITLES[shape]} {ratio:.2f}")
        if not parts:
            raise NotMeasured(f"the engine and {DELETING[rival][0]} were not both measured")
        return judged(holds, "; ".join(parts))

    return judge


def _all_at(limit: float) -> dict[tuple[Place, str], float]:
    return {(place, shape): limit for place in PLACES for shape in _TITLES}


def _finishes_the_chain(results: Results) -> Judgement:
    chains = [key_of(place, _CHAIN, OURS) for place in PLACES]
    chains = [key for key in chains if key in results.measured]
    done = [key for key in chains if results.has(key)]
    if not done:
        raise NotMeasured("the engine did not delete a chain")
    others = [
        tool
        for tool in DELETING
        if any(results.has(key_of(place, _CHAIN, tool)) for place in PLACES)
    ]
    here = "done by " + ", ".join(DELETING[tool][0] for tool in others)
    return judged(len(done) == len(chains), here)


def _counts_faster(results: Results) -> Judgement:
    known = [tool for tool in _FASTEST_OF if results.has(_counting_key(tool))]
    if not known:
        raise NotMeasured("no other counting tool was measured")
    fastest = min(known, key=lambda tool: results.median(_counting_key(tool)))
    ratio = _ratio(results, _counting_key(OURS), _counting_key(fastest))
    return judged(ratio <= _OF_COUNTERS, f"{ratio:.2f} of {fastest}")


def _counts_in_little_memory(results: Results) -> Judgement:
    peak = results.median(_counting_key(OURS), Measure.PEAK_MEMORY_BYTES)
    return judged(0 < peak <= _COUNTING_BYTES, bytes_iec(round(peak)))


_LARGE = ((Place.EXT4, _MANY), (Place.EXT4, _SMALL), (Place.TMPFS, _MANY), (Place.TMPFS, _SMALL))
_CLAIMS = (
    Claim(
        "In trees of many directories, on ext4 and tmpfs, the engine takes little more than "
        "half the time of rm.",
        f"at most {_OF_MANY}",
        _at_most(dict.fromkeys(_LARGE, _OF_MANY), RM),
    ),
    Claim(
        (
            "In one large directory on ext4 and tmpfs, two threads of the engine are faster than "
            "rm, too."
        ),
        f"at most {_OF_FLAT} of rm",
        _at_most({(Place.EXT4, _FLAT): _OF_FLAT, (Place.TMPFS, _FLAT): _OF_FLAT}, RM),
    ),
    Claim(
        "The engine is never slower than rm on any file system.",
        f"at most {_AT_MOST} of rm on every file system and shape",
        _at_most(_all_at(_AT_MOST), RM),
    ),
    Claim(
        "The engine is never slower than rmz.",
        f"at most {_OF_RMZ} of rmz",
        _at_most(_all_at(_OF_RMZ), RMZ),
    ),
    Claim(
        "The engine deletes a deep chain, which some other tools cannot delete.",
        "on every file system",
        _finishes_the_chain,
    ),
    Claim(
        (
            "The engine counts with sizes in about half the time of the fastest of du, ncdu, gdu "
            "and dua."
        ),
        f"at most {_OF_COUNTERS}",
        _counts_faster,
    ),
    Claim(
        "The engine needs little memory to count.",
        f"at most {bytes_iec(_COUNTING_BYTES)}",
        _counts_in_little_memory,
    ),
)


def _deleting_on(place: Place) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return tuple(
        (title, tuple(key_of(place, shape, tool) for shape in _TITLES))
        for tool, (title, _) in DELETING.items()
    )


def _views(results: Results) -> tuple[View, ...]:
    places = [place for place in PLACES if key_of(place, _MANY, RM) in results.measured]
    ratios = tuple(
        RatiosView(f"Deleting on {place}, rm = 1.00", tuple(_TITLES.values()), _deleting_on(place))
        for place in places
    )
    counting = tuple(_counting_key(tool) for tool in _COUNTING)
    times = (Measure.SECONDS, Measure.CPU_PERCENT, Measure.PEAK_MEMORY_BYTES)
    return (
        *ratios,
        RatiosView(
            "Counting with sizes on ext4, caches warm, du = 1.00",
            ("time",),
            tuple((title, (_counting_key(tool),)) for tool, (title, _) in _COUNTING.items()),
        ),
        TableView("Counting", counting, times),
        *(
            TableView(
                f"Times: {_TITLES[shape]}",
                tuple(key_of(place, shape, tool) for place in places for tool in DELETING),
                times,
            )
            for shape in _TITLES
        ),
    )


EXPERIMENT = Experiment(
    name="rivals",
    title="The engine and its rivals",
    question="How long do other tools take to delete and to count the same trees?",
    trials=_trials,
    tools=tuple(
        sorted(
            {commands[0][0] for _, commands in (*DELETING.values(), *_COUNTING.values())}
            | set(UUTILS_TOOLS)
        )
    ),
    needs=(
        "the native engine, and root to create file systems",
        "find, busybox, uutils (coreutils), perl, rsync, rmz, du, ncdu, gdu, dua: each only to "
        "compare with",
    ),
    claims=_CLAIMS,
    views=_views,
)
