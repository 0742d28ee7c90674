"""Command lines to copy: the command line reads the same options, and a shell the same bytes."""

import subprocess
from itertools import pairwise

import pytest
from msgspec.structs import replace

from tui_fs.cli.arguments import options_of, trace_of
from tui_fs.cli.parser import parse
from tui_fs.job.command_line import attach_command, delete_command, survey_command
from tui_fs.model.calls import TraceSource
from tui_fs.model.errors import BadInput
from tui_fs.model.paths import shell_quoted
from tui_fs.model.strategy import Confine, Filters, IoPriority, Options, Pace, StrategyName
from tui_fs.screens.base import continued_lines

NOW_S = 1_700_000_000
RM, XARGS = StrategyName("rm"), StrategyName("xargs")
HOSTILE = (
    "/srv/a b",
    "/srv/it's",
    '/srv/"$(touch /tmp/hand)"`id`!!',
    "/srv/new\nline",
    "/srv/\x1b]0;title\x07\x1b[2J",
    "/srv/\udcff\udcfe",
    "/srv/tab\tend \\",
    "/srv/\u202egnp.exe",
    "/srv/\x85\u2028~*?[x]{a,b}#;&|",
    "/srv/ümlaut \u0301",
    "/srv/" + "word" * 60,
    "/srv/" + "two words " * 30,
)

OPTIONS = [
    Options(),
    Options(keep_root=True, accept_races=True, confine=Confine.ALWAYS),
    Options(batch_size=7, processes=3, pace=Pace(True, 500, 19, IoPriority.IDLE)),
    Options(filters=Filters("-*.l[o]g", 0, 1 << 40, NOW_S - 30 * 86_400, NOW_S - 90 * 86_400)),
    Options(filters=Filters("it's *\n")),
]


def read_by_bash(line: str) -> list[bytes]:
    """Return the words that bash reads, without the program."""
    script = 'tui-fs() { printf "%s\\0" "$@"; }\n' + line + "\n"
    done = subprocess.run(["bash", "--norc"], input=script.encode(), capture_output=True)
    assert done.stderr == b""
    return done.stdout.split(b"\0")[:-1]


def encoded(argv: tuple[str, ...]) -> list[bytes]:
    return [word.encode("utf-8", "surrogateescape") for word in argv[1:]]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("trace", [None, TraceSource.STRACE])
def test_the_command_line_reads_the_same_options(
    options: Options, trace: TraceSource | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui_fs.cli.arguments.time.time", lambda: NOW_S + 0.5)
    argv = delete_command(("/srv/a", "/srv/-b"), XARGS, options, trace, NOW_S + 0.5)
    parsed = parse(list(argv[1:]))
    assert (options_of(parsed), trace_of(parsed)) == (options, trace)
    assert (parsed.paths, parsed.strategy, parsed.yes) == (["/srv/a", "/srv/-b"], XARGS, False)


def test_options_are_given_only_to_the_strategy_that_has_them() -> None:
    options = Options(batch_size=7, processes=3, pace=replace(Pace(), threads=4))
    for strategy, left in (
        (RM, Options()),
        (XARGS, replace(options, pace=Pace())),
        (StrategyName("parallel"), Options(pace=options.pace)),
    ):
        argv = delete_command(("/srv/a",), strategy, options, None, NOW_S)
        assert options_of(parse(list(argv[1:]))) == left


def test_a_plain_deletion_has_a_short_command() -> None:
    argv = delete_command(("/srv/a",), RM, Options(), None, NOW_S)
    assert shell_quoted(argv) == "tui-fs delete --strategy=rm -- /srv/a"
    assert shell_quoted(attach_command("7f3a01")) == "tui-fs attach 7f3a01"


@pytest.mark.parametrize("path", HOSTILE)
def test_a_shell_reads_exactly_the_bytes_of_a_hostile_name(path: str) -> None:
    options = Options(filters=Filters(name_glob="it's \n\udcff*"))
    argv = delete_command((path, "/srv/next"), RM, options, None, NOW_S)
    line = shell_quoted(argv)
    assert line.isprintable()
    assert read_by_bash(line) == encoded(argv)


@pytest.mark.parametrize("path", HOSTILE)
@pytest.mark.parametrize("width", [38, 78])
def test_the_shown_lines_are_the_same_command_when_they_are_pasted(path: str, width: int) -> None:
    argv = delete_command((path, "/srv/next"), RM, Options(keep_root=True), None, NOW_S)
    lines = continued_lines(argv, width)
    assert all(line.isprintable() for line in lines)
    assert read_by_bash("\n".join(f" {line}" for line in lines)) == encoded(argv)


def test_every_line_but_the_last_continues_and_long_words_are_quoted() -> None:
    paths = ("/srv/" + "a" * 100, "/srv/b", "/srv/" + "c" * 30)
    lines = continued_lines(delete_command(paths, RM, Options(), None, NOW_S), 40)
    assert all(line.endswith(" \\") for line, _ in pairwise(lines))
    assert not lines[-1].endswith("\\")
    assert f"'{paths[0]}'" in " ".join(lines)


def test_a_path_that_needs_a_change_of_directory_has_no_command() -> None:
    with pytest.raises(BadInput, match="without a change of directory"):
        delete_command(("/srv/" + "x" * 255 + ("/" + "y" * 255) * 16,), RM, Options(), None, NOW_S)


def test_the_command_of_the_browser_reads_the_same_filters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("time.time", lambda: float(NOW_S))
    for options in OPTIONS:
        argv = survey_command("/srv/-a b", options.filters, NOW_S)
        parsed = parse(list(argv[1:]))
        if options.filters.active:
            assert (argv[1], parsed.paths) == ("estimate", ["/srv/-a b"])
            assert options_of(parsed).filters == options.filters
        else:
            assert (argv[1], parsed.path) == ("survey", "/srv/-a b")


def test_an_estimate_takes_the_rate_of_the_deletion() -> None:
    assert options_of(parse(["estimate", "--rate", "500", "/srv"])).pace == Pace(rate_per_s=500)
