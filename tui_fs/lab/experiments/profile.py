"""Where Python's shutil.rmtree spends its time, sampled by py-spy, and what sampling costs."""

from tui_fs.lab.claims import time_ratio
from tui_fs.lab.experiment import (
    CallsView,
    Claim,
    Counting,
    Experiment,
    FlameView,
    Judgement,
    Scale,
    Setting,
    Step,
    TableView,
    Trial,
    View,
    judged,
)
from tui_fs.lab.results import Measure, Results
from tui_fs.lab.tree_generators import Wide
from tui_fs.model.calls import REMOVING_CALLS
from tui_fs.model.strategy import Argv, Options
from tui_fs.strategies.base import Invocation
from tui_fs.strategies.rmtree import Rmtree

ALONE, RAW, NATIVE = "alone", "raw", "native"
WATCHED = (RAW, NATIVE)
KEYS = (ALONE, *WATCHED)
RAW_FILE, NATIVE_FILE = "rmtree.raw", "rmtree.native.raw"

_FILES = {RAW: RAW_FILE, NATIVE: NATIVE_FILE}
_TITLES = {RAW: "with py-spy", NATIVE: "with py-spy, C functions too"}
_DIRECTORIES = {Scale.SMALL: 200, Scale.PUBLISHED: 5_000}
_FILES_IN_EACH = 100
_RATE_PER_S = {Scale.SMALL: 500, Scale.PUBLISHED: 200}
"""Half a second must yield some hundred samples; a minute yields enough at a lower rate."""
_ROUNDS = 3


def _rmtree(python: str) -> Argv:
    ((argv,),) = Rmtree().steps(Invocation(("{tree}",), Options(), {"python": python}))
    return argv


def _trials(scale: Scale, setting: Setting) -> tuple[Trial, ...]:
    del setting
    tree = Wide(breadth=_DIRECTORIES[scale], files=_FILES_IN_EACH)
    rate = str(_RATE_PER_S[scale])
    alone = Step(ALONE, "alone", ((_rmtree("python"),),), counting=Counting.CALLS)
    trials = [Trial((alone,), tree, rounds=_ROUNDS)]
    for key in WATCHED:
        # --idle: time in calls that wait for the disk counts, too
        native = ("--native",) if key == NATIVE else ()
        record = ("py-spy", "record", "--rate", rate, "--idle", "--format", "raw", *native)
        file = _FILES[key]
        command = (*record, "--output", f"{{out}}/{file}", "--", *_rmtree("{path:python}"))
        step = Step(key, _TITLES[key], ((command,),), keeps=(file,))
        trials.append(Trial((step,), tree, rounds=_ROUNDS if key == RAW else 1))
    return tuple(trials)


def _is_in_the_kernel(results: Results) -> Judgement:
    system_s = results.median(ALONE, Measure.SYSTEM_S)
    user_s = results.median(ALONE, Measure.USER_S)
    share = 100.0 * system_s / (system_s + user_s)
    return judged(
        system_s > user_s,
        f"{system_s:.2f} s in the kernel ({share:.0f} %), {user_s:.2f} s in Python",
    )


def _is_one_call_each(results: Results) -> Judgement:
    removed = results.successes(ALONE, *REMOVING_CALLS)
    entries = results.plan(ALONE).entries
    others = results.total_calls(ALONE) - removed
    return judged(
        removed == entries and others < entries / 5,
        f"{removed:,} calls remove {entries:,} entries, and {others:,} do all the rest",
    )


def _views(results: Results) -> tuple[View, ...]:
    del results
    measures = (
        Measure.SECONDS,
        Measure.USER_S,
        Measure.SYSTEM_S,
        Measure.MICROSECONDS_PER_ENTRY,
        Measure.PEAK_MEMORY_BYTES,
    )
    return (
        FlameView("Where the time goes in shutil.rmtree", RAW_FILE),
        FlameView("The same with the C functions, which name the system calls", NATIVE_FILE),
        TableView("Alone and while profiled by py-spy", KEYS, measures, has_bars=True),
        CallsView("System calls of shutil.rmtree", (ALONE,)),
    )


EXPERIMENT = Experiment(
    name="profile",
    title="A profile of shutil.rmtree",
    question="Where does the time go while Python deletes a tree?",
    trials=_trials,
    tools=("python", "py-spy"),
    needs=(
        "py-spy (pip install 'tui-fs[profile]'), and permission to trace a child process: root, "
        "or any user if kernel.yama.ptrace_scope is 0 or 1",
    ),
    claims=(
        Claim(
            "Most of the processor time is spent in the kernel, not in Python.",
            "",
            _is_in_the_kernel,
        ),
        Claim(
            "An entry costs one system call, its removal; opening and reading directories add "
            "less than a fifth.",
            "",
            _is_one_call_each,
        ),
        Claim(
            "Profiling less than doubles the time.",
            "",
            time_ratio(
                RAW,
                ALONE,
                at_most=2.0,
                reason="The time includes starting py-spy and writing its file.",
            ),
        ),
        Claim(
            "Profiling the C functions, too, takes at least twice as long as without them.",
            "",
            time_ratio(
                NATIVE,
                RAW,
                at_least=2.0,
                reason="py-spy stops the process while it unwinds the stack of C functions.",
            ),
        ),
    ),
    views=_views,
)
