"""Whether `rsync --delete` from an empty directory spares the unlinks that rm makes, and time."""

import math
from collections.abc import Callable

from tui_fs.lab.experiment import (
    BarsView,
    CallsView,
    Claim,
    Counting,
    Experiment,
    Judgement,
    Pipeline,
    Published,
    PublishedCalls,
    Scale,
    Setting,
    Step,
    TableView,
    Trial,
    Verdict,
    View,
    judged,
)
from tui_fs.lab.figures import shown, shown_span
from tui_fs.lab.results import Measure, NotMeasured, Results
from tui_fs.lab.tree_generators import Flat

FEW, MANY, MORE = 10, 10_000, 100_000
"""Files in a tree; the text has the first two."""

_Judge = Callable[[Results], Judgement]
_Calls = dict[str, tuple[int, int, float | None]]

_FILES = {Scale.SMALL: (FEW, MANY), Scale.PUBLISHED: (FEW, MANY, MORE)}
_ROUNDS = {Scale.SMALL: 3, Scale.PUBLISHED: 11}

_ALL, _TREE, _RSYNC = "rm-all", "rm-tree", "rsync"
_COMMANDS: dict[str, tuple[str, Pipeline]] = {
    _ALL: ("rm -rf *", (("rm", "-rf", "*"),)),
    _TREE: ("rm -rf tree", (("rm", "-rf", "{tree}"),)),
    _RSYNC: ("rsync --delete", (("rsync", "--delete", "-a", "-H", "{empty}/", "{tree}/"),)),
}

BUFFER_BYTES = 32_768
"""What readdir(3) asks for at once (glibc, sysdeps/unix/sysv/linux/opendir.c)."""

NAME_BYTES = 32
"""A record of getdents64(2) for a name of 5 to 12 bytes: 19 of header, a NUL, in steps of 8."""

DOTS_BYTES = 2 * 24
"""The records of ``.`` and ``..``."""

_STATUS_CALLS = ("lstat", "stat", "newfstatat", "statx")
_UNLINK_CALLS = ("unlink", "unlinkat")
_FORK_CALLS = ("clone", "clone3", "fork", "vfork")
_WAITING_CALLS = ("wait4", "select", "pselect6", "poll", "ppoll", "read", "nanosleep",
                  "clock_nanosleep", "futex")  # fmt: skip
"""Calls in which one of rsync's processes waits for another."""


def directory_reads(files: int) -> int:
    """Return the getdents64 calls that read a directory of files with short names to its end."""
    return math.ceil((DOTS_BYTES + files * NAME_BYTES) / BUFFER_BYTES) + 1


def _trials(scale: Scale, _: Setting) -> tuple[Trial, ...]:
    return tuple(
        Trial((step,), tree=Flat(files, prefix="tmp_"), rounds=_ROUNDS[scale])
        for files in _FILES[scale]
        for step in _steps(files)
    )


def _steps(files: int) -> tuple[Step, ...]:
    # Counting takes a second each, so that what the text has no table of is counted once.
    of_tree = _step(_TREE, files, Counting.CALLS if files == MANY else Counting.NOTHING)
    steps = (_step(_ALL, files, Counting.TIMES), of_tree, _step(_RSYNC, files, Counting.TIMES))
    pinned = (_step(_ALL, files, is_pinned=True), _step(_RSYNC, files, is_pinned=True))
    return (*steps, *pinned) if files >= MANY else steps


def _step(
    name: str, files: int, counting: Counting = Counting.NOTHING, *, is_pinned: bool = False
) -> Step:
    title, command = _COMMANDS[name]
    series = f"{files:,} files" + (", one processor" if is_pinned else "")
    return Step(
        _key(name, files, is_pinned=is_pinned),
        f"{title}, {series}",
        (command,),
        is_in_tree=name == _ALL,
        is_pinned=is_pinned,
        counting=counting,
        series=series,
        x=files,
    )


def _key(name: str, files: int, *, is_pinned: bool = False) -> str:
    return f"{name}-{files}" + ("-pinned" if is_pinned else "")


def _made(results: Results, key: str, names: tuple[str, ...]) -> int:
    return sum(results.calls(key, name).calls for name in names)


def _each(name: str, calls: tuple[str, ...], why: str, *, wanted: bool = True) -> _Judge:
    """Judge that a call is made for every file; or that it is not."""

    def judge(results: Results) -> Judgement:
        key = _key(name, MANY)
        made = _made(results, key, calls)
        named = ", ".join(one for one in calls if results.calls(key, one).calls) or "such"
        return judged((made >= MANY) is wanted, f"{made:,} {named} for {MANY:,} files", why)

    return judge


def _none(name: str, calls: tuple[str, ...], why: str) -> _Judge:
    return _each(name, calls, why, wanted=False)


def _no_reading(results: Results) -> Judgement:
    reads = results.calls(_key(_RSYNC, MANY), "getdents64").calls
    few = results.calls(_key(_RSYNC, FEW), "mmap").calls
    many = results.calls(_key(_RSYNC, MANY), "mmap").calls
    return judged(
        reads < directory_reads(MANY),
        f"{reads:,} getdents64; {few:,} mmap for {FEW:,} files, {many:,} for {MANY:,}",
        "Names come by getdents64. The mmap load libraries and get memory for the list.",
    )


def _both_map(results: Results) -> Judgement:
    rm, rsync = (results.calls(_key(name, MANY), "mmap").calls for name in (_ALL, _RSYNC))
    return judged(min(rm, rsync) > 0, f"rm {rm:,} mmap, rsync {rsync:,}")


def _unlink_each(results: Results) -> Judgement:
    rm, rsync = (_made(results, _key(name, MANY), _UNLINK_CALLS) for name in (_ALL, _RSYNC))
    return judged(rm == rsync == MANY, f"rm {rm:,}, rsync {rsync:,} for {MANY:,} files")


def _reads_by_buffer(results: Results) -> Judgement:
    expected = {files: directory_reads(files) + directory_reads(0) for files in (FEW, MANY)}
    made = {files: results.calls(_key(_RSYNC, files), "getdents64").calls for files in expected}
    told = "; ".join(
        f"{made[files]:,} for {files:,} files, {number:,} expected"
        for files, number in expected.items()
    )
    return judged(
        made == expected,
        told,
        f"{NAME_BYTES} bytes a name in buffers of {BUFFER_BYTES:,}, and one more call that finds "
        "the end; the empty directory takes two.",
    )


def _fewer_calls(results: Results) -> Judgement:
    rm, rsync = (results.total_calls(_key(name, MANY)) for name in (_ALL, _RSYNC))
    return judged(
        rm < rsync,
        f"rm {rm:,}, rsync {rsync:,}",
        "Two for each file. What it takes to start changes with the tools and the C library.",
    )


def _waiting_adds_up(results: Results) -> Judgement:
    rm, _ = _seconds_in_calls(results, _key(_ALL, MANY))
    rsync, waiting = _seconds_in_calls(results, _key(_RSYNC, MANY))
    told = [shown(Measure.SECONDS, seconds) for seconds in (rm, rsync, waiting)]
    return judged(
        rsync > rm and waiting > rsync / 2,
        f"rm {told[0]}, rsync {told[1]}, {told[2]} of them in calls that wait",
        "While one process waits, another one's calls are counted for the same moment.",
    )


def _seconds_in_calls(results: Results, key: str) -> tuple[float, float]:
    """Return the time in all calls of a step, and in those that wait."""
    results.total_calls(key)
    calls = results.measured[key].calls
    if any(one.seconds is None for one in calls.values()):
        raise NotMeasured("The time in system calls was not measured; bpftrace and root can.")
    seconds = {name: one.seconds or 0.0 for name, one in calls.items()}
    return sum(seconds.values()), sum(seconds.get(name, 0.0) for name in _WAITING_CALLS)


def _faster(results: Results) -> Judgement:
    sizes = [files for files in (MANY, MORE) if _key(_RSYNC, files) in results.measured]
    each = [_compared(results, _key(_RSYNC, size), _key(_ALL, size)) for size in sizes]
    if not each:
        raise NotMeasured("no tree was large enough")
    worst = next((one for one in each if one.verdict is not Verdict.HOLDS), each[0])
    here = "; ".join(f"{size:,} files: {one.here}" for size, one in zip(sizes, each, strict=True))
    return Judgement(worst.verdict, here, worst.why)


def _slower_on_one(results: Results) -> Judgement:
    rm, rsync = (_key(name, MANY, is_pinned=True) for name in (_ALL, _RSYNC))
    return _compared(results, rm, rsync)


def _gains_from_processors(results: Results) -> Judgement:
    if results.began.machine.processors < 2:
        raise NotMeasured("this machine has one processor")
    return _compared(results, _key(_RSYNC, MANY), _key(_RSYNC, MANY, is_pinned=True))


def _three_processes(results: Results) -> Judgement:
    rm, rsync = (_made(results, _key(name, MANY), _FORK_CALLS) for name in (_ALL, _RSYNC))
    return judged(rsync == 2 and rm == 0, f"rsync starts {rsync:,} more processes, rm {rm:,}")


def _old_rm(_: Results) -> Judgement:
    raise NotMeasured("It needs an rm and a kernel of before 2018.")


def _compared(results: Results, fast: str, slow: str) -> Judgement:
    """Judge that a step is the faster one; undecided where each median lies among the other's."""
    spans = {key: results.span(key) for key in (fast, slow)}
    medians = {key: results.median(key) for key in (fast, slow)}
    here = " against ".join(_shown(medians[key], spans[key]) for key in (fast, slow))
    if all(
        spans[one][0] <= medians[other] <= spans[one][1]
        for one, other in ((fast, slow), (slow, fast))
    ):
        return Judgement(Verdict.UNTESTED, here, "The runs overlap: no difference can be told.")
    return judged(medians[fast] < medians[slow], here)


def _shown(median: float, span: tuple[float, float]) -> str:
    middle = shown(Measure.SECONDS, median)
    ends = shown_span(Measure.SECONDS, *span, middle)
    return f"{middle} ({ends})" if ends else middle


def _views(results: Results) -> tuple[View, ...]:
    keys = tuple(results.measured)
    return (
        TableView(
            "Deleting empty files",
            keys,
            (Measure.SECONDS, Measure.USER_S, Measure.SYSTEM_S, Measure.CPU_PERCENT, Measure.CALLS),
        ),
        BarsView(
            f"Time for {MANY:,} files and more",
            tuple(key for key in keys if results.plan(key).x >= MANY),
            Measure.SECONDS,
        ),
        *(
            CallsView(
                f"System calls for {files:,} files",
                tuple(_key(name, files) for name in (_ALL, _RSYNC, _TREE)),
            )
            for files in (MANY, FEW)
        ),
    )


_RM_10: _Calls = {
    "read": (4, 0, 0.0), "close": (6, 0, 0.0), "fstat": (3, 0, 0.0), "lstat": (1, 0, 0.0),
    "lseek": (4, 1, 0.0), "mmap": (8, 0, 0.0), "mprotect": (4, 0, 0.0), "munmap": (1, 0, 0.0),
    "brk": (3, 0, 0.0), "ioctl": (1, 0, 0.0), "access": (1, 1, 0.0), "execve": (1, 0, 0.0),
    "arch_prctl": (2, 1, 0.0), "openat": (3, 0, 0.0), "newfstatat": (10, 0, 0.0),
    "unlinkat": (10, 0, 0.0),
}  # fmt: skip
_RSYNC_10: _Calls = {
    "wait4": (9, 5, 0.005286), "unlink": (10, 0, 0.000466), "select": (34, 1, 0.000329),
    "mmap": (37, 0, 0.00031), "read": (51, 0, 0.000283), "getdents64": (4, 0, 0.000249),
    "munmap": (8, 0, 0.000232), "close": (37, 0, 0.00021), "openat": (23, 4, 0.000204),
    "write": (19, 0, 0.000201), "lstat": (14, 0, 0.000201), "fstat": (19, 0, 0.000111),
    "connect": (8, 8, 0.000099), "socket": (8, 0, 0.000072), "utimensat": (2, 0, 0.000063),
    "fcntl": (17, 0, 0.000058), "socketpair": (3, 0, 0.000042), "lseek": (7, 0, 0.000039),
    "nanosleep": (2, 2, 0.000035), "mprotect": (11, 0, 0.000033),
    "rt_sigaction": (12, 0, 0.000032), "stat": (2, 1, 0.000021),
    "rt_sigreturn": (2, 2, 0.000020), "chdir": (2, 0, 0.000019), "getgroups": (2, 0, 0.000019),
    "clone": (2, 0, 0.000013), "brk": (6, 0, 0.0), "rt_sigprocmask": (1, 0, 0.0),
    "access": (1, 1, 0.0), "dup2": (2, 0, 0.0), "getpid": (1, 0, 0.0), "execve": (1, 0, 0.0),
    "kill": (1, 0, 0.0), "getcwd": (1, 0, 0.0), "umask": (2, 0, 0.0), "geteuid": (1, 0, 0.0),
    "getegid": (1, 0, 0.0), "arch_prctl": (2, 1, 0.0),
}  # fmt: skip
_RM_10000: _Calls = {
    "unlinkat": (10_000, 0, 0.141015), "newfstatat": (10_000, 0, 0.059692),
    "brk": (24, 0, 0.000158), "mmap": (8, 0, 0.000083), "mprotect": (4, 0, 0.000048),
    "openat": (3, 0, 0.000036), "close": (6, 0, 0.000035), "read": (4, 0, 0.000025),
    "munmap": (1, 0, 0.000024), "lseek": (4, 1, 0.000023), "fstat": (3, 0, 0.000019),
    "arch_prctl": (2, 1, 0.000013), "access": (1, 1, 0.000011), "execve": (1, 0, 0.000010),
    "ioctl": (1, 0, 0.000009), "lstat": (1, 0, 0.000008),
}  # fmt: skip
_RSYNC_10000: _Calls = {
    "wait4": (9, 5, 0.386408), "unlink": (10_000, 0, 0.120021), "lstat": (10_004, 0, 0.099912),
    "getdents64": (13, 0, 0.013827), "mmap": (41, 0, 0.00086), "openat": (23, 4, 0.000755),
    "read": (54, 0, 0.000604), "close": (37, 0, 0.000479), "munmap": (12, 0, 0.000422),
    "mprotect": (11, 0, 0.000338), "connect": (8, 8, 0.000284), "fstat": (19, 0, 0.000251),
    "rt_sigaction": (12, 0, 0.000239), "select": (40, 1, 0.000236), "socket": (8, 0, 0.000192),
    "write": (22, 0, 0.000157), "brk": (6, 0, 0.000156), "fcntl": (17, 0, 0.000084),
    "utimensat": (2, 0, 0.000079), "lseek": (7, 0, 0.000078), "socketpair": (3, 0, 0.000060),
    "getcwd": (1, 0, 0.000041), "umask": (2, 0, 0.000036), "rt_sigprocmask": (1, 0, 0.000027),
    "chdir": (2, 0, 0.000026), "access": (1, 1, 0.000025), "stat": (2, 1, 0.000022),
    "geteuid": (1, 0, 0.000022), "arch_prctl": (2, 1, 0.000021), "execve": (1, 0, 0.000020),
    "getegid": (1, 0, 0.000019), "nanosleep": (2, 2, 0.000014), "clone": (2, 0, 0.000010),
    "rt_sigreturn": (2, 2, 0.000009), "dup2": (2, 0, 0.0), "getpid": (1, 0, 0.0),
    "kill": (1, 0, 0.0), "getgroups": (2, 0, 0.0),
}  # fmt: skip

_BY = "Arch Linux, Linux 4.19, 2018"

EXPERIMENT = Experiment(
    name="rsync-vs-rm",
    title="rsync --delete against rm",
    question="Does rsync empty a directory with fewer system calls than rm, and faster?",
    source="“删除操作，rsync与rm谁更快？”, a blog post of 30 April 2018",
    needs=("rm and rsync", "root and bpftrace for the time in each system call"),
    trials=_trials,
    finds_tools=("rm", "rsync"),
    published=(
        Published(_key(_ALL, FEW), Measure.CALLS, 62, _BY),
        Published(_key(_RSYNC, FEW), Measure.CALLS, 365, _BY),
        Published(_key(_ALL, MANY), Measure.CALLS, 20_063, _BY),
        Published(_key(_RSYNC, MANY), Measure.CALLS, 20_374, _BY),
    ),
    published_calls=(
        PublishedCalls(_key(_ALL, FEW), _RM_10, _BY),
        PublishedCalls(_key(_RSYNC, FEW), _RSYNC_10, _BY),
        PublishedCalls(_key(_ALL, MANY), _RM_10000, _BY),
        PublishedCalls(_key(_RSYNC, MANY), _RSYNC_10000, _BY),
    ),
    claims=(
        Claim(
            "rsync deletes without an unlink for every file.",
            "passed on from page to page; refuted by 10,000 unlink for 10,000 files",
            _none(_RSYNC, _UNLINK_CALLS, "A name leaves its directory by unlink or unlinkat only."),
        ),
        Claim(
            "rsync deletes without an lstat for every file.",
            "passed on from page to page; refuted by 10,004 lstat for 10,000 files",
            _none(
                _RSYNC,
                _STATUS_CALLS,
                "A newer C library calls newfstatat where a program says lstat.",
            ),
        ),
        Claim(
            "rsync maps the directory's contents into memory instead of reading them.",
            "passed on from page to page; no explanation was found for it",
            _no_reading,
        ),
        Claim("Both use mmap, so it sets neither apart.", "rm 8 mmap, rsync 41", _both_map),
        Claim(
            "rm and rsync unlink alike: once for each file.",
            "10,000 unlinkat, 10,000 unlink",
            _unlink_each,
        ),
        Claim(
            "rsync reads the directory in as many calls as the buffer needs.",
            "13 getdents64 for 10,000 files, 4 for 10",
            _reads_by_buffer,
        ),
        Claim(
            "rm -rf * asks for the status of every file.",
            "10,000 newfstatat for 10,000 files",
            _each(_ALL, _STATUS_CALLS, "rm asks what each of its arguments is."),
        ),
        Claim(
            "rm -rf of the directory itself asks for no file's status.",
            "not in the text, which counts rm -rf * only",
            _none(
                _TREE,
                _STATUS_CALLS,
                "Reading a directory tells the kind of each entry; rm needs no more.",
            ),
        ),
        Claim(
            "rsync makes more system calls than rm.",
            "rm 20,063, rsync 20,374 for 10,000 files",
            _fewer_calls,
        ),
        Claim(
            "The time in all its calls makes rsync look slower, since waiting is added, too.",
            "rm 0.201 s, rsync 0.626 s, 0.386 s of them in wait4",
            _waiting_adds_up,
        ),
        Claim(
            "rsync is faster than rm for 10,000 files and more.",
            "a little faster, without a figure",
            _faster,
        ),
        Claim("rsync works with three processes, rm with one.", "2 clone", _three_processes),
        Claim(
            "rsync is faster when its processes have several processors.",
            "supposed",
            _gains_from_processors,
        ),
        Claim("On a single processor rsync is slower than rm.", "supposed", _slower_on_one),
        Claim("An older rm was slow with long lists of names.", "supposed", _old_rm),
    ),
    views=_views,
)
