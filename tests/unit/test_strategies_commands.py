"""Exactly what will run, for each strategy and its options."""

import pytest

from tui_fs.linux.tools import Tool
from tui_fs.model.errors import Missing
from tui_fs.model.strategy import Filters, Options, Pace, Step, StrategyName, flatten
from tui_fs.strategies import rmtree_child
from tui_fs.strategies.base import Invocation, Progress, find_tests
from tui_fs.strategies.registry import STRATEGIES, tools_of, unfit_options

TOOLS = {
    name: f"/bin/{name}"
    for name in ("rm", "find", "xargs", "rsync", "rmdir", "python", "tui-fs-engine")
}
TARGET = "/t/-rf \n[x]"
EMPTY = "/jobs/1/empty"


def steps(name: str, options: Options, output: bool = False) -> tuple[Step, ...]:
    """Return the steps of a strategy."""
    strategy = STRATEGIES[StrategyName(name)]
    return strategy.steps(Invocation((TARGET,), options, TOOLS, EMPTY, output))


def words(text: str) -> tuple[str, ...]:
    """Split a command line at blanks; T is the target."""
    names = {"T": TARGET, "T/": f"{TARGET}/"}
    return tuple(names.get(word, word) for word in text.split())


OLD_LOGS = Filters(name_glob="*.log", min_size_bytes=1024, modified_before_s=1700000000)
LOG_TESTS = "! -type d -name *.log -type f -size +1023c ! -newermt @1700000000"


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("rm", Options(), ["/bin/rm -rf --one-file-system -- T"]),
        (
            "rm",
            Options(keep_root=True),
            [
                "/bin/find T -xdev -mindepth 1 -maxdepth 1 "
                "-execdir /bin/rm -rf --one-file-system --preserve-root=all -- {} +"
            ],
        ),
        ("find", Options(), ["/bin/find T -xdev -depth -delete"]),
        ("find", Options(keep_root=True), ["/bin/find T -xdev -mindepth 1 -depth -delete"]),
        (
            "find",
            Options(filters=OLD_LOGS),
            [f"/bin/find T -xdev -mindepth 1 -depth {LOG_TESTS} -delete"],
        ),
        (
            "xargs",
            Options(),
            [
                "/bin/find T -xdev ! -type d -print0 | /bin/xargs -0 -r -n 1000 -P 1 /bin/rm -f --",
                "/bin/find T -xdev -depth -type d -delete",
            ],
        ),
        (
            "xargs",
            Options(keep_root=True, batch_size=7, processes=3),
            [
                "/bin/find T -xdev ! -type d -print0 | /bin/xargs -0 -r -n 7 -P 3 /bin/rm -f --",
                "/bin/find T -xdev -mindepth 1 -depth -type d -delete",
            ],
        ),
        (
            "xargs",
            Options(filters=OLD_LOGS),
            [
                f"/bin/find T -xdev {LOG_TESTS} -print0 | "
                "/bin/xargs -0 -r -n 1000 -P 1 /bin/rm -f --"
            ],
        ),
        (
            "rsync",
            Options(),
            ["/bin/rsync -r --delete -x /jobs/1/empty/ T/", "/bin/rmdir -- T"],
        ),
        (
            "rsync",
            Options(keep_root=True),
            ["/bin/rsync -r --delete -x /jobs/1/empty/ T/"],
        ),
        ("rmtree", Options(), [f"/bin/python -I -S {rmtree_child.__file__} -- T"]),
        (
            "rmtree",
            Options(keep_root=True),
            [f"/bin/python -I -S {rmtree_child.__file__} --keep-root -- T"],
        ),
        ("parallel", Options(), ["/bin/tui-fs-engine delete --every 50 -- T"]),
        (
            "parallel",
            Options(keep_root=True, pace=Pace(gentle=True, rate_per_s=500, threads=3)),
            [
                "/bin/tui-fs-engine delete --keep-root --threads 3 --rate 500 --gentle "
                "--every 50 -- T"
            ],
        ),
        (
            "parallel",
            Options(filters=OLD_LOGS),
            [
                "/bin/tui-fs-engine delete --name *.log --min-size 1024 "
                "--modified-before 1700000000 --every 50 -- T"
            ],
        ),
        (
            "parallel",
            Options(filters=Filters(min_size_bytes=0, modified_before_s=0)),
            ["/bin/tui-fs-engine delete --min-size 0 --modified-before 0 --every 50 -- T"],
        ),
    ],
)
def test_this_is_what_runs(name: str, options: Options, expected: list[str]) -> None:
    lines = tuple(tuple(words(argv) for argv in step.split(" | ")) for step in expected)
    assert steps(name, options) == lines


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("rm", ["/bin/rm -rfv --one-file-system -- T"]),
        ("find", ["/bin/find T -xdev -depth -delete -printf %y\\n"]),
        (
            "xargs",
            [
                "/bin/find T -xdev ! -type d -print0",
                "/bin/xargs -0 -r -n 1000 -P 1 /bin/rm -fv --",
                "/bin/find T -xdev -depth -type d -delete -printf %y\\n",
            ],
        ),
        (
            "rsync",
            [
                "/bin/rsync -r --delete -x --info=del /jobs/1/empty/ T/",
                "/bin/rmdir -- T",
            ],
        ),
        ("parallel", ["/bin/tui-fs-engine delete --every 50 -- T"]),
    ],
)
def test_this_is_what_runs_when_the_output_counts(name: str, expected: list[str]) -> None:
    assert flatten(steps(name, Options(), output=True)) == tuple(map(words, expected))


@pytest.mark.parametrize("keep_root", [False, True])
@pytest.mark.parametrize("name", STRATEGIES)
def test_several_targets_replace_a_single_one(name: StrategyName, keep_root: bool) -> None:
    strategy = STRATEGIES[name]
    options = Options(keep_root=keep_root)
    if strategy.at_once(options) == 1:
        assert name not in ("find", "xargs", "rmtree", "parallel")
        return
    several = ("/t/a", TARGET, "/t/b")
    alone = strategy.steps(Invocation((TARGET,), options, TOOLS, EMPTY))
    expected = tuple(
        tuple(
            tuple(part for word in argv for part in (several if word == TARGET else (word,)))
            for argv in step
        )
        for step in alone
    )
    assert strategy.steps(Invocation(several, options, TOOLS, EMPTY)) == expected
    assert expected != alone


@pytest.mark.parametrize(
    ("filters", "tests"),
    [
        (Filters(), ""),
        (Filters(name_glob="-*"), "! -type d -name -*"),
        (Filters(min_size_bytes=0), "! -type d -type f"),
        (Filters(min_size_bytes=1), "! -type d -type f -size +0c"),
        (Filters(min_size_bytes=1024), "! -type d -type f -size +1023c"),
        (Filters(size_below_bytes=1024), "! -type d -type f -size -1024c"),
        (Filters(modified_before_s=0), "! -type d ! -newermt @0"),
        (Filters(modified_after_s=7), "! -type d -newermt @7"),
    ],
)
def test_filters_become_tests_of_find(filters: Filters, tests: str) -> None:
    assert find_tests(filters) == words(tests)


@pytest.mark.parametrize("name", STRATEGIES)
def test_filters_are_refused_by_strategies_that_have_none(name: StrategyName) -> None:
    strategy = STRATEGIES[name]
    able = (StrategyName("find"), StrategyName("xargs"), StrategyName("parallel"))
    reasons = unfit_options(strategy, Options(filters=OLD_LOGS))
    assert bool(reasons) is (name not in able)
    assert all("find, xargs, parallel can" in reason for reason in reasons)
    assert unfit_options(strategy, Options()) == ()


@pytest.mark.parametrize(
    ("name", "race_safe", "any_depth"),
    [
        (StrategyName("rm"), True, True),
        (StrategyName("find"), True, True),
        (StrategyName("xargs"), False, False),
        (StrategyName("rsync"), False, False),
        (StrategyName("parallel"), True, True),
    ],
)
def test_guarantees_are_what_the_tools_keep(
    name: StrategyName, race_safe: bool, any_depth: bool
) -> None:
    guarantees = STRATEGIES[name].guarantees
    assert (guarantees.race_safe, guarantees.any_depth) == (race_safe, any_depth)
    assert guarantees.mount_safe


def gnu(name: str) -> Tool:
    """Return a GNU tool."""
    return Tool(name, f"/bin/{name}", f"{name} (GNU something) 9")


@pytest.mark.parametrize("name", STRATEGIES)
def test_installed_gnu_tools_give_paths_and_no_reason(name: StrategyName) -> None:
    paths, reasons = tools_of(STRATEGIES[name], gnu)
    assert (set(paths), reasons) == (set(STRATEGIES[name].tools), ())


@pytest.mark.parametrize(
    ("name", "missing", "package"),
    [
        ("rm", "rm", "coreutils"),
        ("rm", "find", "findutils"),
        ("find", "find", "findutils"),
        ("xargs", "xargs", "findutils"),
        ("rsync", "rsync", "rsync"),
        ("rsync", "rmdir", "coreutils"),
    ],
)
def test_a_missing_tool_is_a_reason_with_its_package(name: str, missing: str, package: str) -> None:
    paths, reasons = tools_of(
        STRATEGIES[StrategyName(name)], lambda tool: None if tool == missing else gnu(tool)
    )
    assert reasons == (f"{missing} was not found in PATH; it comes with the package {package}",)
    assert missing not in paths


def test_a_missing_engine_is_a_reason_with_what_would_build_it() -> None:
    paths, reasons = tools_of(
        STRATEGIES[StrategyName("parallel")], lambda tool: gnu(tool) if tool == "rmdir" else None
    )
    (reason,) = reasons
    assert reason.startswith("tui-fs-engine is not installed; install cargo")
    assert reason.endswith("reinstall tui-fs with pip")
    assert set(paths) == {"rmdir"}


@pytest.mark.parametrize("name", ["rm", "find", "xargs", "rsync"])
def test_another_build_is_a_reason(name: str) -> None:
    strategy = STRATEGIES[StrategyName(name)]
    _, reasons = tools_of(strategy, lambda tool: Tool(tool, f"/bin/{tool}", "BusyBox v1.37"))
    assert (
        len(reasons)
        == len(strategy.gnu_tools)
        == {"xargs": 3, "rm": 2, "find": 1, "rsync": 0}[name]
    )
    assert all("is not GNU" in reason for reason in reasons)


@pytest.mark.parametrize(
    ("name", "line", "progress"),
    [
        ("rm", b"removed 't/a'", Progress(1, 0)),
        ("rm", b"removed directory 't/a'", Progress(1, 1)),
        ("rm", b"removed 't/directory a'", Progress(1, 0)),
        ("rm", b"something else", None),
        ("find", b"f", Progress(1, 0)),
        ("find", b"d", Progress(1, 1)),
        ("find", b"l", Progress(1, 0)),
        ("xargs", b"removed 't/a'", Progress(1, 0)),
        ("xargs", b"d", Progress(1, 1)),
        ("xargs", b"ed 'torn'", Progress(1, 0)),
        ("rsync", b"deleting a/b", Progress(1, 0)),
        ("rsync", b"deleting a/", Progress(1, 1)),
        ("rsync", b"sending incremental file list", None),
        ("rmtree", b"removed", Progress(1, 0)),
        ("rmtree", b"removed directory", Progress(1, 1)),
        ("rmtree", b"remove", None),
    ],
)
def test_lines_of_output_count_removals(name: str, line: bytes, progress: Progress | None) -> None:
    assert STRATEGIES[StrategyName(name)].parse_output(line) == progress


def test_a_tool_that_cannot_be_started_now_is_not_called_another_build() -> None:
    def find(name: str) -> Tool | None:
        raise Missing(f"/bin/{name} --version could not be started: EMFILE.", "Raise ulimit -n.")

    _, reasons = tools_of(STRATEGIES[StrategyName("rm")], find)
    assert reasons[0] == "/bin/rm --version could not be started: EMFILE; Raise ulimit -n"
    assert not any("install" in reason for reason in reasons)
