"""Whether `rsync --delete` from an empty directory spares the unlinks that rm makes, and time."""

from tui_fs.lab.claims import compare_times, faster
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
    Verdict,
    View,
    judged,
)
from tui_fs.lab.figures import shown
from tui_fs.lab.results import Measure, NotMeasured, Results
from tui_fs.lab.tree_generators import GETDENTS_BUFFER_BYTES, Flat, directory_reads

FEW, MANY, MORE = 10, 10_000, 100_000
"""Files in a tree; the text has the first two."""

_FILES = {Scale.SMALL: (FEW, MANY), Scale.PUBLISHED: (FEW, MANY, MORE)}
_ROUNDS = {Scale.SMALL: 3, Scale.PUBLISHED: 11}
_PREFIX = "tmp_"

_ALL, _TREE, _RSYNC = "rm-all", "rm-tree", "rsync"
_COMMANDS: dict[str, tuple[str, Pipeline]] = {
    _ALL: ("rm -rf *", (("rm", "-rf", "*"),)),
    _TREE: ("rm -rf tree", (("rm", "-rf", "{tree}"),)),
    _RSYNC: ("rsync --delete", (("rsync", "--delete", "-a", "-H", "{empty}/", "{tree}/"),)),
}

_STATUS_CALLS = ("lstat", "stat", "newfstatat", "statx")
_UNLINK_CALLS = ("unlink", "unlinkat")
_FORK_CALLS = ("clone", "clone3", "fork", "vfork")
_WAITING_CALLS = ("wait4", "select", "pselect6", "poll", "ppoll", "read", "nanosleep",
                  "clock_nanosleep", "futex")  # fmt: skip
"""Calls in which one of rsync's processes waits for another."""


def _trials(scale: Scale, _: Setting) -> tuple[Trial, ...]:
    return tuple(
        Trial((step,), tree=Flat(files, prefix=_PREFIX), rounds=_ROUNDS[scale])
        for files in _FILES[scale]
        for step in _steps(files)
    )


def _steps(files: int) -> tuple[Step, ...]:
    # Times of calls are judged for many files only.
    counting = Counting.CALLS if files == FEW else Counting.TIMES
    of_tree = _step(_TREE, files, Counting.CALLS if files == MANY else Counting.NOTHING)
    steps = (_step(_ALL, files, counting), of_tree, _step(_RSYNC, files, counting))
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


def _calls(results: Results, name: str, calls: tuple[str, ...], files: int = MANY) -> int:
    return sum(results.calls(_key(name, files), call).calls for call in calls)


def _for_each(name: str, calls: tuple[str, ...], reason: str, *, expected: bool = True) -> Judge:
    """Return a judge: the step makes a call for every file, or does not."""

    def judge(results: Results) -> Judgement:
        made = _calls(results, name, calls)
        named = ", ".join(call for call in calls if _calls(results, name, (call,))) or "such"
        return judged((made >= MANY) is expected, f"{made:,} {named} for {MANY:,} files", reason)

    return judge


def _mmap_replaces_reading(results: Results) -> Judgement:
    reads = _calls(results, _RSYNC, ("getdents64",))
    few, many = (_calls(results, _RSYNC, ("mmap",), files) for files in (FEW, MANY))
    return judged(
        reads < directory_reads(MANY, _PREFIX),
        f"{reads:,} getdents64; {few:,} mmap for {FEW:,} files, {many:,} for {MANY:,}",
        (
            "getdents64 reads the names. The mmap calls load libraries and allocate memory for the "
            "list."
        ),
    )


def _both_map(results: Results) -> Judgement:
    rm, rsync = (_calls(results, name, ("mmap",)) for name in (_ALL, _RSYNC))
    return judged(min(rm, rsync) > 0, f"rm {rm:,} mmap, rsync {rsync:,}")


def _unlink_each(results: Results) -> Judgement:
    rm, rsync = (_calls(results, name, _UNLINK_CALLS) for name in (_ALL, _RSYNC))
    return judged(rm == rsync == MANY, f"rm {rm:,}, rsync {rsync:,} for {MANY:,} files")


def _reads_by_buffer(results: Results) -> Judgement:
    expected = {
        files: directory_reads(files, _PREFIX) + directory_reads(0) for files in (FEW, MANY)
    }
    reads = {files: _calls(results, _RSYNC, ("getdents64",), files) for files in expected}
    here = "; ".join(
        f"{reads[files]:,} for {files:,} files, {number:,} expected"
        for files, number in expected.items()
    )
    reason = (
        f"Names fill buffers of {GETDENTS_BUFFER_BYTES:,} bytes; one more call finds the end, "
        "and the empty directory takes two."
    )
    return judged(reads == expected, here, reason)


def _rm_makes_fewer_calls(results: Results) -> Judgement:
    rm, rsync = (results.total_calls(_key(name, MANY)) for name in (_ALL, _RSYNC))
    return judged(
        rm < rsync,
        f"rm {rm:,}, rsync {rsync:,}",
        (
            "Each makes two calls for each file. The calls at start-up depend on the tools and the "
            "C library."
        ),
    )


def _waiting_adds_up(results: Results) -> Judgement:
    rm, rsync = (results.call_seconds(_key(name, MANY)) for name in (_ALL, _RSYNC))
    rm_s, rsync_s = sum(rm.values()), sum(rsync.values())
    waiting_s = sum(rsync.get(name, 0.0) for name in _WAITING_CALLS)
    times = [shown(Measure.SECONDS, seconds) for seconds in (rm_s, rsync_s, waiting_s)]
    return judged(
        rsync_s > rm_s and waiting_s > rsync_s / 2,
        f"rm {times[0]}, rsync {times[1]}, {times[2]} of it in calls that wait",
        "While one process waits, the time of another process's calls is counted, too.",
    )


def _faster_from_many(results: Results) -> Judgement:
    sizes = [files for files in (MANY, MORE) if _key(_RSYNC, files) in results.measured]
    verdicts = {
        files: compare_times(results, _key(_RSYNC, files), _key(_ALL, files)) for files in sizes
    }
    failing = [verdict for verdict in verdicts.values() if verdict.verdict is not Verdict.HOLDS]
    decisive = next(iter(failing or verdicts.values()))
    here = "; ".join(f"{files:,} files: {each.here}" for files, each in verdicts.items())
    return Judgement(decisive.verdict, here, decisive.reason)


def _gains_from_processors(results: Results) -> Judgement:
    if results.began.machine.processors < 2:
        raise NotMeasured("this machine has one processor")
    return compare_times(results, _key(_RSYNC, MANY), _key(_RSYNC, MANY, is_pinned=True))


def _three_processes(results: Results) -> Judgement:
    rm, rsync = (_calls(results, name, _FORK_CALLS) for name in (_ALL, _RSYNC))
    return judged(rsync == 2 and rm == 0, f"rsync starts {rsync:,} more processes, rm {rm:,}")


def _views(results: Results) -> tuple[View, ...]:
    measures = (
        Measure.SECONDS, Measure.USER_S, Measure.SYSTEM_S, Measure.CPU_PERCENT, Measure.CALLS,
    )  # fmt: skip
    few = tuple(key for key in results.measured if results.plan(key).x < MANY)
    many = tuple(key for key in results.measured if key not in few)
    return (
        TableView(f"Deleting {MANY:,} empty files and more", many, measures, has_bars=True),
        TableView(f"Deleting {FEW:,} empty files", few, measures),
        *(
            CallsView(
                f"System calls for {files:,} files",
                tuple(_key(name, files) for name in (_ALL, _RSYNC, _TREE)),
            )
            for files in (MANY, FEW)
        ),
    )


_RM_10 = (
    "read 4 0 close 6 0 fstat 3 0 lstat 1 0 lseek 4 1 mmap 8 0 mprotect 4 0 munmap 1 0 brk 3 "
    "0 ioctl 1 0 access 1 1 execve 1 0 arch_prctl 2 1 openat 3 0 newfstatat 10 0 unlinkat 10 "
    "0"
)
_RSYNC_10 = (
    "wait4 9 5 unlink 10 0 select 34 1 mmap 37 0 read 51 0 getdents64 4 0 munmap 8 0 close 37 "
    "0 openat 23 4 write 19 0 lstat 14 0 fstat 19 0 connect 8 8 socket 8 0 utimensat 2 0 "
    "fcntl 17 0 socketpair 3 0 lseek 7 0 nanosleep 2 2 mprotect 11 0 rt_sigaction 12 0 stat 2 "
    "1 rt_sigreturn 2 2 chdir 2 0 getgroups 2 0 clone 2 0 brk 6 0 rt_sigprocmask 1 0 access 1 "
    "1 dup2 2 0 getpid 1 0 execve 1 0 kill 1 0 getcwd 1 0 umask 2 0 geteuid 1 0 getegid 1 0 "
    "arch_prctl 2 1"
)
_RM_10000 = (
    "unlinkat 10000 0 newfstatat 10000 0 brk 24 0 mmap 8 0 mprotect 4 0 openat 3 0 close 6 0 "
    "read 4 0 munmap 1 0 lseek 4 1 fstat 3 0 arch_prctl 2 1 access 1 1 execve 1 0 ioctl 1 0 "
    "lstat 1 0"
)
_RSYNC_10000 = (
    "wait4 9 5 unlink 10000 0 lstat 10004 0 getdents64 13 0 mmap 41 0 openat 23 4 read 54 0 "
    "close 37 0 munmap 12 0 mprotect 11 0 connect 8 8 fstat 19 0 rt_sigaction 12 0 select 40 "
    "1 socket 8 0 write 22 0 brk 6 0 fcntl 17 0 utimensat 2 0 lseek 7 0 socketpair 3 0 getcwd "
    "1 0 umask 2 0 rt_sigprocmask 1 0 chdir 2 0 access 1 1 stat 2 1 geteuid 1 0 arch_prctl 2 "
    "1 execve 1 0 getegid 1 0 nanosleep 2 2 clone 2 0 rt_sigreturn 2 2 dup2 2 0 getpid 1 0 "
    "kill 1 0 getgroups 2 0"
)
"""Each call with its number and errors."""

_BY = "Arch Linux, Linux 4.19, 2018"

EXPERIMENT = Experiment(
    name="rsync-vs-rm",
    title="rsync --delete against rm",
    question="Does rsync empty a directory with fewer system calls than rm, and faster?",
    # Its title is 删除操作，rsync与rm谁更快？, which many terminals cannot draw.
    source="'Deleting: which is faster, rsync or rm?', a blog post in Chinese of 30 April 2018",
    needs=("rm and rsync", "root and bpftrace for the time in each system call"),
    trials=_trials,
    tools=("rm", "rsync"),
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
            "repeated on many pages; refuted by 10,000 unlink calls for 10,000 files",
            _for_each(
                _RSYNC,
                _UNLINK_CALLS,
                "Only unlink and unlinkat remove a name from a directory.",
                expected=False,
            ),
        ),
        Claim(
            "rsync deletes without an lstat for every file.",
            "repeated on many pages; refuted by 10,004 lstat calls for 10,000 files",
            _for_each(
                _RSYNC,
                _STATUS_CALLS,
                "A newer C library implements lstat with newfstatat.",
                expected=False,
            ),
        ),
        Claim(
            "rsync maps the directory's contents into memory instead of reading them.",
            "repeated on many pages; no explanation was found",
            _mmap_replaces_reading,
        ),
        Claim(
            "rm and rsync both use mmap, so mmap makes no difference.",
            "rm 8 mmap, rsync 41",
            _both_map,
        ),
        Claim(
            "rm and rsync unlink equally often: once for each file.",
            "10,000 unlinkat, 10,000 unlink",
            _unlink_each,
        ),
        Claim(
            "rsync reads the directory in as many calls as the buffer size requires.",
            "13 getdents64 for 10,000 files, 4 for 10",
            _reads_by_buffer,
        ),
        Claim(
            "rm -rf * reads the status of every file.",
            "10,000 newfstatat for 10,000 files",
            _for_each(_ALL, _STATUS_CALLS, "rm checks the kind of each argument."),
        ),
        Claim(
            "rm -rf of the directory itself reads the status of no file.",
            "not in the source, which counts only rm -rf *",
            _for_each(
                _TREE,
                _STATUS_CALLS,
                "Reading a directory returns the kind of each entry, which is enough for rm.",
                expected=False,
            ),
        ),
        Claim(
            "rsync makes more system calls than rm.",
            "rm 20,063, rsync 20,374 for 10,000 files",
            _rm_makes_fewer_calls,
        ),
        Claim(
            "The summed time of all calls makes rsync look slower, because it includes waiting.",
            "rm 0.201 s, rsync 0.626 s, 0.386 s of it in wait4",
            _waiting_adds_up,
        ),
        Claim(
            "rsync is faster than rm for 10,000 files and more.",
            "a little faster, without a figure",
            _faster_from_many,
        ),
        Claim("rsync works with three processes, rm with one.", "2 clone", _three_processes),
        Claim(
            "rsync is faster when its processes have several processors.",
            "supposed",
            _gains_from_processors,
        ),
        Claim(
            "On a single processor rsync is slower than rm.",
            "supposed",
            faster(_key(_ALL, MANY, is_pinned=True), _key(_RSYNC, MANY, is_pinned=True)),
        ),
    ),
    views=_views,
)
