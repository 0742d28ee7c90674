"""A process for each file against one for many: `find -exec … ;`, `| xargs` and `-exec … +`."""

import functools
import math

from tui_fs.lab.claims import time_ratio
from tui_fs.lab.experiment import (
    CallsView,
    Claim,
    Counting,
    Experiment,
    Judge,
    Judgement,
    Pipeline,
    Published,
    PublishedCalls,
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
from tui_fs.lab.results import Measure, Results
from tui_fs.lab.tree_generators import Flat
from tui_fs.model.strategy import Argv

BATCHES = (1, 10, 100, 1_000, 5_000)
BATCHED_FILES, BATCH = 10_000, 1_000
SPACED_FILES = 20
LOGS, LARGE_LOGS = 1_000, 10

_SAME_FACTOR = 1.25
"""Times within this factor count as equal; the two in the text are within 1.1."""
_TENFOLD = 10.0
_NEARLY_100 = (10**1.5, 10**2.5)
"""The ratios nearer to a hundred than to ten or a thousand."""
_NOTICED_S = 1.0
"""Longer than this, a person notices having to wait (R. B. Miller, 1968)."""


def _few_are_fine(results: Results) -> Judgement:
    seconds, left = results.median("logs-each"), _left(results, "logs-each-left")
    here = f"{shown(Measure.SECONDS, seconds)} for {LARGE_LOGS} files of {LOGS:,}, {left} left"
    return judged(seconds < _NOTICED_S and left == LOGS - LARGE_LOGS, here)


def _files(results: Results, key: str) -> int:
    return results.plan(key).entries - 1


def _shell_for_each(results: Results) -> Judgement:
    files, started = _files(results, "exec-path"), results.successes("exec-path", "execve")
    return judged(
        started >= 2 * files,
        f"{started:,} programs started, including find, for {files:,} files",
        (
            "find forks and executes the program itself; a shell would be an additional program "
            "each time."
        ),
    )


def _path_searched(results: Results) -> Judgement:
    files, failed = _files(results, "exec-name"), results.calls("exec-name", "execve").errors
    by_path = results.calls("exec-path", "execve").errors
    return judged(
        failed > 0 and failed % files == 0 and by_path == 0,
        f"{failed:,} execve failed for {files:,} files, {by_path:,} with an absolute path",
        f"PATH directories searched before that of file(1): {failed // files:,} here, 1 in the "
        "published run.",
    )


def _one_for_a_batch(results: Results) -> Judgement:
    parts, holds = [], True
    for key in ("batches", *(f"xargs-{batch}" for batch in BATCHES)):
        if key == "batches" or (key in results.measured and results.measured[key].calls):
            batch = results.plan(key).x
            around = 3 if key == "batches" else 2  # find, head and xargs, or find and xargs
            expected = around + math.ceil(_files(results, key) / batch)
            started = results.successes(key, "execve")
            holds = holds and started == expected
            parts.append(f"{started:,} in batches of {batch:,.0f}, {expected:,} expected")
    return judged(holds, "; ".join(parts), "Here no shell runs the commands: one program fewer.")


def _mostly_waiting(results: Results) -> Judgement:
    seconds = [results.call_seconds(key) for key in ("exec-name", "batches")]
    waits = [100 * each.get("wait4", 0.0) / sum(each.values()) for each in seconds]
    return judged(
        all(max(each.values()) == each.get("wait4") for each in seconds),
        f"{waits[0]:.1f} % one by one, {waits[1]:.1f} % in batches",
        (
            "Waiting is not work: find and xargs wait for processes whose calls are counted "
            "separately."
        ),
    )


def _calls_for_a_file(results: Results) -> Judgement:
    each, batched = (
        results.total_calls(key) * results.plan(key).share / _files(results, key)
        for key in ("exec-name", "batches")
    )
    return judged(each >= _TENFOLD * batched, f"{each:,.1f} one by one, {batched:,.1f} in batches")


def _left(results: Results, key: str) -> int:
    results.median(key)  # NotMeasured with the reason if there is none
    return int(results.measured[key].runs[-1].output)


def _leaves(key: str, number: int) -> Judge:
    """Return a judge: `number` of the files with spaces are left."""

    def judge(results: Results) -> Judgement:
        left = _left(results, key)
        return judged(left == number, f"{left:,} of {SPACED_FILES:,} files are left")

    return judge


CLAIMS = (
    Claim(
        "-exec … ; takes about a hundred times as long as xargs.",
        "84.764 s against 0.860 s for 200,000 files: 99 times",
        time_ratio(
            "exec-name", "xargs", *_NEARLY_100, reason=("This is the cost of starting file(1).")
        ),
    ),
    Claim(
        "-exec … + is as fast as xargs.",
        "0.801 s against 0.860 s",
        time_ratio(
            "exec-plus",
            "xargs",
            1 / _SAME_FACTOR,
            _SAME_FACTOR,
            reason="find continues while xargs waits for the program; with + find itself waits.",
        ),
    ),
    Claim(
        "Caches are not the cause: a second pass takes as long.",
        "84.764 s, then 85.722 s",
        time_ratio("exec-name-again", "exec-name", 1 / _SAME_FACTOR),
    ),
    Claim("-exec … ; starts a shell for each file.", "stated, not measured", _shell_for_each),
    Claim(
        "A program given by name is searched for in PATH for each file; execve fails in every "
        "directory before the right one.",
        "400,001 execve for 200,000 files, 200,000 of them failed",
        _path_searched,
    ),
    Claim(
        "xargs starts one program for each batch.",
        (
            "14 execve for 10,000 names by 1,000: 10 of file, 1 each of find, head, xargs and a "
            "shell"
        ),
        _one_for_a_batch,
    ),
    Claim(
        "No call takes as much time as wait4, which waits for the started processes.",
        "wait4: 96.80 % one by one, 99.55 % in batches",
        _mostly_waiting,
    ),
    Claim(
        "One process per file makes many times as many system calls as batches.",
        "15,811,808 for 200,000 files, 79 each; 24,910 for 10,000 in batches, 2.5 each",
        _calls_for_a_file,
    ),
    Claim("For a few files, -exec … ; is fast enough.", "just fine", _few_are_fine),
    Claim(
        "The difference is as large with rm as with file(1).",
        "assumed; file(1) was measured because it leaves the files in place",
        time_ratio(
            "rm-each", "rm-xargs", _TENFOLD, reason="Deleting itself takes time either way."
        ),
    ),
    Claim(
        "xargs treats every word of a name with spaces as a file.",
        "four errors for one such name",
        _leaves("spaces-left", SPACED_FILES),
    ),
    Claim(
        "With -print0 and xargs -0, names with spaces work.",
        "both files were found",
        _leaves("spaces-print0-left", 0),
    ),
)

_CALLS_IN_BATCHES = (
    "wait4 16 2 newfstatat 12372 0 getdents 208 0 lstat 10000 0 read 199 0 write 276 1 open "
    "384 91 close 313 4 stat 68 42 fstat 189 0 lseek 5 1 mmap 209 0 mprotect 71 0 munmap 37 0 "
    "brk 72 0 rt_sigaction 41 0 rt_sigprocmask 80 0 rt_sigreturn 2 0 ioctl 13 12 access 77 77 "
    "pipe 2 0 dup2 6 0 getpid 1 0 clone 14 0 execve 14 0 uname 2 0 fcntl 4 1 fchdir 206 0 "
    "getrlimit 5 0 getuid 1 0 getgid 1 0 geteuid 1 0 getegid 1 0 getppid 1 0 getpgrp 1 0 "
    "arch_prctl 14 0 futex 2 1 set_tid_address 1 0 set_robust_list 1 0"
)
_CALLS_ONE_BY_ONE = (
    "wait4 200000 0 clone 200000 0 open 2602351 1400007 munmap 600001 0 mmap 3200017 0 fstat "
    "1401173 0 access 1200006 1200006 close 1202345 0 stat 1000004 600003 read 1000004 0 "
    "lstat 200000 0 brk 600026 0 mprotect 1000009 0 ioctl 200001 200000 newfstatat 201169 0 "
    "getdents 2347 0 write 200000 0 arch_prctl 200001 0 fchdir 202341 0 rt_sigaction 3 0 "
    "rt_sigprocmask 1 0 execve 400001 200000 uname 1 0 fcntl 1 0 getrlimit 2 0 futex 2 1 "
    "set_tid_address 1 0 set_robust_list 1 0"
)


WHOLE = {Scale.SMALL: 5_000, Scale.PUBLISHED: 200_000}
PART = {Scale.SMALL: 100, Scale.PUBLISHED: 5_000}
"""Files of the tree, and of the part of it where each file gets a process."""

_ROUNDS = {Scale.SMALL: 3, Scale.PUBLISHED: 5}
_MIN_BATCHES = 10
"""A part of the files predicts the time of the whole if it makes at least this many batches."""

COMMAND_BYTES = 131_072
"""xargs fills a command up to this (findutils, lib/buildcmd.c); each name has a NUL, too."""

_LARGE_LOGS_FIND: Argv = ("find", ".", "-name", "*.log", "-size", "+1M")
_ALL_FILES: Argv = ("find", ".", "-type", "f")
_FIND: Argv = (*_ALL_FILES, "-name", "file_*")
_LEFT: tuple[Pipeline] = ((_ALL_FILES, ("wc", "-l")),)
_FILE, _RM = "{path:file}", "{path:rm}"
_PRINT0: tuple[Pipeline] = (((*_ALL_FILES, "-print0"), ("xargs", "-0", _RM)),)
_RM_TITLES = {"each": "-exec rm {} ;", "xargs": "| xargs rm", "plus": "-exec rm {} +",
              "delete": "-delete"}  # fmt: skip

_XARGS_FAILED = 123
"""Exit status of xargs if one of its commands did not exit with 0."""

_step = functools.partial(Step, is_in_tree=True)


def fitting(names: int, command: str) -> int:
    """Return how many of the tree's names fit into one command, as find prints them."""
    room = COMMAND_BYTES - len(command) - 1
    return max(1, min(names, room // (len(f"./{Flat(names).name(names)}") + 1)))


def _trials(scale: Scale, setting: Setting) -> tuple[Trial, ...]:
    whole, part, rounds = WHOLE[scale], PART[scale], _ROUNDS[scale]
    on_part = [batch for batch in BATCHES if batch * _MIN_BATCHES <= part]
    limit = fitting(whole, setting.tools.get("file", ""))
    on_whole = [batch for batch in BATCHES if batch not in on_part and batch < limit]
    calls, times = Counting.CALLS, Counting.TIMES
    counted = calls if scale is Scale.PUBLISHED else Counting.NOTHING
    share = part / whole
    by_name, by_path = _commands(_FIND, "file"), _commands(_FIND, _FILE)
    of_part = (
        # First: if file is not installed, the runner leaves out the rest.
        _step("exec-path", "-exec /…/file {} ;", by_path["each"], counting=calls, share=share),
        _step("exec-name", "-exec file {} ;", by_name["each"], counting=times, share=share),
        _step("exec-name-again", "-exec file {} ;, second pass", by_name["each"], share=share),
        *(_batched(batch, counted, share) for batch in on_part),
    )
    of_whole = (
        _step("xargs", "| xargs file", by_path["xargs"], series="xargs", x=limit),
        _step("exec-plus", "-exec file {} +", by_path["plus"]),
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


def _commands(find: Argv, program: str) -> dict[str, tuple[Pipeline]]:
    """Return the commands that pass names from find to a program, or delete them in find."""
    return {
        "each": (((*find, "-exec", program, "{}", ";"),),),
        "xargs": ((find, ("xargs", program)),),
        "plus": (((*find, "-exec", program, "{}", "+"),),),
        "delete": (((*find, "-delete"),),),
    }


def _removing(whole: int, part: int, rounds: int) -> tuple[Trial, ...]:
    """Return trials of the same commands with rm, and of find -delete."""
    files = {"each": part}
    return tuple(
        Trial(
            (_step(f"rm-{key}", _RM_TITLES[key], commands, share=files.get(key, whole) / whole),),
            tree=Flat(files.get(key, whole)),
            rounds=rounds,
        )
        for key, commands in _commands(_FIND, _RM).items()
    )


def _filtering(rounds: int) -> tuple[Trial, ...]:
    """Return trials that delete a few large logs, but not the many small ones among them."""
    tree = Flat(LOGS, suffixes=(".log", ".txt"))
    large = (tree.name(number) for number in range(1, 2 * LARGE_LOGS, 2))
    grow: tuple[Pipeline] = ((("truncate", "-s", "2M", *large),),)
    return tuple(
        Trial(
            (
                _step(f"grow-{key}", "make some logs large", grow),
                _step(f"logs-{key}", f"large logs: {_RM_TITLES[key]}", commands),
                _step(f"logs-{key}-left", f"logs left by {_RM_TITLES[key]}", _LEFT),
            ),
            tree=tree,
            rounds=rounds,
        )
        for key, commands in _commands(_LARGE_LOGS_FIND, _RM).items()
    )


_SPACED = (
    _step(
        "spaces",
        "names with spaces | xargs rm",
        ((_ALL_FILES, ("xargs", _RM)),),
        expects=frozenset({_XARGS_FAILED}),
    ),
    _step("spaces-left", "remaining names with spaces", _LEFT),
    _step("spaces-print0", "-print0 | xargs -0 rm", _PRINT0),
    _step("spaces-print0-left", "remaining names after -print0", _LEFT),
)


def _views(results: Results) -> tuple[View, ...]:
    times = (Measure.SECONDS, Measure.USER_S, Measure.SYSTEM_S, Measure.CPU_PERCENT)
    batches = (*(f"xargs-{batch}" for batch in BATCHES), "xargs")
    of_file = ("exec-name", "exec-name-again", "exec-path", "xargs", "exec-plus")
    return (
        TableView("file(1) on every file", (*of_file, "batches"), (*times, Measure.CALLS)),
        TableView("Time by names in a batch", batches, (Measure.SECONDS,), has_bars=True),
        CallsView("One by one and in batches", ("exec-name", "batches", "exec-path")),
        TableView("With rm", _keys(results, "rm-"), times, has_bars=True),
        TableView("A few large logs among small ones", _keys(results, "logs-"), times),
        TableView("Names with spaces", _keys(results, "spaces"), (Measure.SECONDS,)),
    )


def _keys(results: Results, prefix: str) -> tuple[str, ...]:
    return tuple(
        key for key in results.measured if key.startswith(prefix) and not key.endswith("-left")
    )


_BY = "200,000 files, file from the second directory of PATH"


EXPERIMENT = Experiment(
    name="exec-vs-xargs",
    title="find -exec against xargs",
    question="What does one process per file cost, and how much do batches save?",
    source="'No arguments here – use xargs for file management performance', a blog post by Jared, "
    "a database administrator; undated",
    needs=("file, rm, find and xargs", "root and bpftrace for the time in each system call"),
    trials=_trials,
    tools=("file", "find", "head", "rm", "truncate", "wc", "xargs"),
    published=(
        *published_times("exec-name", (84.764, 4.624, 12.581), _BY),
        *published_times("exec-name-again", (85.722, 3.900, 11.893), _BY),
        *published_times("xargs", (0.860, 0.456, 0.432), _BY),
        *published_times("exec-plus", (0.801, 0.436, 0.404), _BY),
        Published("exec-name", Measure.CALLS, 15_811_808, _BY),
        Published("batches", Measure.CALLS, 24_910, "10,000 names, in a bash script"),
    ),
    published_calls=(
        PublishedCalls("exec-name", _CALLS_ONE_BY_ONE, _BY),
        PublishedCalls("batches", _CALLS_IN_BATCHES, "10,000 names, in a bash script"),
    ),
    claims=CLAIMS,
    views=_views,
)
